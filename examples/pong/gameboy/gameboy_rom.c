/* gameboy_rom INPUT.ihx OUTPUT.gb TITLE: from the linker's Intel hex to a Game Boy ROM of 32 KiB with title and checksums in
 * its header (Pan Docs, "The Cartridge Header"). The place of the logo stays empty: emulators do not ask for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROM_BYTES 32768
static unsigned char rom[ROM_BYTES];

static int hex_of(const char *text, int digits)
{
    char part[8] = {0}, *end;
    memcpy(part, text, (size_t)digits);
    long value = strtol(part, &end, 16);
    return *part && end == part + digits ? (int)value : -1;
}

/* One record: ":", count, address (2), kind, data, checksum. Returns 0, or -1 when it is damaged or lies outside. */
static int take_record(const char *line)
{
    size_t length = strcspn(line, "\r\n");
    int count, address, sum = 0;
    if (length < 11 || line[0] != ':') return length ? -1 : 0;
    count = hex_of(line + 1, 2);
    address = hex_of(line + 3, 4);
    if (count < 0 || address < 0 || length != 11 + 2 * (size_t)count) return -1;
    for (size_t i = 1; i < length; i += 2) sum += hex_of(line + i, 2);
    if ((sum & 255) != 0) return -1;
    if (hex_of(line + 7, 2) != 0) return 0;
    if (address + count > ROM_BYTES) return -1;
    for (int i = 0; i < count; i++) rom[address + i] = (unsigned char)hex_of(line + 9 + 2 * i, 2);
    return 0;
}

static void write_header(const char *title)
{
    unsigned check = 0, sum = 0;
    for (size_t i = 0; i < 15 && title[i]; i++) rom[0x134 + i] = (unsigned char)title[i];
    for (int i = 0x134; i < 0x14D; i++) check = check - rom[i] - 1;
    rom[0x14D] = (unsigned char)check;
    for (int i = 0; i < ROM_BYTES; i++) sum += rom[i];
    rom[0x14E] = (unsigned char)(sum >> 8);
    rom[0x14F] = (unsigned char)sum;
}

int main(int argc, char **argv)
{
    char line[600];
    int number = 0;
    if (argc != 4) return fprintf(stderr, "gameboy_rom INPUT.ihx OUTPUT.gb TITLE\n"), 2;
    FILE *in = fopen(argv[1], "r");
    if (!in) return perror(argv[1]), 1;
    while (fgets(line, sizeof line, in)) {
        number++;
        if (take_record(line))
            return fprintf(stderr, "%s:%d: not a record of this ROM\n", argv[1], number), 1;
    }
    fclose(in);
    write_header(argv[3]);
    FILE *out = fopen(argv[2], "wb");
    int failed = !out || fwrite(rom, sizeof rom, 1, out) != 1;
    if (out && fclose(out)) failed = 1;
    if (failed) perror(argv[2]);
    return failed;
}
