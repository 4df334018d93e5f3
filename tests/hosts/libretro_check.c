/* Wrong input for the libretro plugin, and what the other tests cannot see. libretro.sh builds it with sanitizers.
 *   libretro_check maps FOLDER            every complaint of a map; four thousand damaged maps; values of every type;
 *                                      leaves the good map there as tried.exphil
 *   libretro_check bus                    where the addresses of a bus lie by descriptors of every kind
 *   libretro_check wild PLUGIN            a score of no number, then of a huge one, in that core
 *   libretro_check late PLUGIN FRAMES FOLDER   a recording into a folder that is made when those frames are over
 *   libretro_check rivals PLUGIN COPY FOLDER   two plugins record to one file; the second ends first. The folder is made
 *                                      when both have begun
 *   libretro_check pads PLUGIN            what the core of libretro_core.c reads while that teacher plays
 *   libretro_check states PLUGIN GAME     damaged, cut and foreign states under a policy
 *   libretro_check twice PLUGIN COPY GAME two plugins in one process play as each does alone */
#define _GNU_SOURCE
#include "core_host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int failures;
static struct core_host host;

static int open_in(struct core_host *to, const char *core, const char *game)
{
    char message[1024];
    if (!core_host_open(to, core, game, message, sizeof message)) return 0;
    return fprintf(stderr, "libretro_check: %s\n", message), -1;
}

static int open_host(const char *core, const char *game)
{
    return open_in(&host, core, game);
}

#define CHECK(truth, ...)                                                                                    \
  do {                                                                                                       \
    if (!(truth)) {                                                                                          \
      fprintf(stderr, "libretro_check:%d: ", __LINE__);                                                      \
      fprintf(stderr, __VA_ARGS__);                                                                          \
      fputc('\n', stderr);                                                                                   \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)

/* xorshift64* (Vigna 2016). */
static uint32_t draw(void)
{
    static uint64_t state = 0x9E3779B97F4A7C15u;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1Du) >> 32);
}

/* ---- maps ---- */

static const char good_map[] = "exphil-map 1\n"
                               "layout fake # a comment\n"
                               "codec  fake\n"
                               "memory system\n"
                               "magic 0 \"FAKE\"\n"
                               "state 0 32\n"
                               "float big 4 u16be scale 1/100 offset -1\n"
                               "float less 6 s16le scale 0.5\n"
                               "float packed 8 bcd1\n"
                               "float digits 9 digits2\n"
                               "float wave 12 f32le\n"
                               "id low 11 u8 mask 0x0C entries 4 width 3\n"
                               "raw round 16 u8\n"
                               "episode round\n"
                               "when big > 0\n"
                               "score round round\n"
                               "head keys bits 3\n"
                               "press keys 0 a\n"
                               "press keys 1 b l\n"
                               "press keys 2 start\n"
                               "head stick classes 5 neutral 0\n"
                               "press stick 1 lx=-1\n"
                               "press stick 2 lx=1 ly=0.5\n"
                               "press stick 3 up\n"
                               "press stick 4 ry=-0.25\n";

static const struct {
    const char *from, *to, *complaint; /* the good map with from replaced by to */
} wrong_maps[] = {
    {"exphil-map 1", "exphil-map 2", ":1: a map begins"},
    {"layout fake", "layout FAKE", ":2: name 'FAKE'"},
    {"codec  fake\n", "\n", "the map has no codec"},
    {"memory system", "memory everywhere",
     ":4: memory 'everywhere' is none of system save video rtc bus, nor"},
    {"memory system", "memory 65536", ":4: memory '65536' is none of"},
    {"layout fake", "layout fake\nlayout fake", ":3: layout is there already"},
    {"memory system", "port 1\nport 1", ":5: port is there already"},
    {"memory system", "port 17", ":4: port '17'"},
    {"memory system", "player 0", ":4: player counts from 1"},
    {"episode round", "episode round\nepisode round", ":15: episode is there already"},
    {"\"FAKE\"", "\"FAKE", ":5: magic is"},
    {"\"FAKE\"", "abc", ":5: magic is text"},
    {"state 0 32", "state 0 0", ":6: state of 0 bytes"},
    {"u16be", "u17", ":7: type 'u17'"},
    {"1/100", "1/0", ":7: scale '1/0'"},
    {"1/100", "0,5", ":7: scale '0,5'"},
    {"offset -1", "offset", ":7: 'offset' has no value"},
    {"float big 4", "float big -4", ":7: address '-4'"},
    {"float big 4", "float big 0x1FFFFFFFF", ":7: address '0x1FFFFFFFF'"},
    {"float less", "float big", ":8: field 'big' is there already"},
    {"scale 0.5", "size 0.5", ":8: 'size' is nothing that a float has"},
    {"mask 0x0C", "mask 0x100", ":12: mask '0x100'"},
    {"mask 0x0C", "mask 0", ":12: mask 0"},
    {"entries 4 ", "", "needs entries"},
    {"entries 4", "entries 70000", ":12: entries '70000'"},
    {"episode round", "episode end", ":14: no field 'end'"},
    {"when big > 0", "when big ~ 0", ":15: '~' is none of"},
    {"head keys bits 3", "head keys bits 32", ":17: count '32'"},
    {"head keys bits 3", "head keys knobs 3", ":17: a head has bits or classes"},
    {"press keys 0 a", "press keys 3 a", ":18: value '3'"},
    {"press keys 0 a", "press keys 0 jump", ":18: 'jump' is no button"},
    {"press keys 0 a", "press doors 0 a", ":18: no head 'doors'"},
    {"press keys 1", "press keys 0", ":19: value 0 of 'keys' has its press already"},
    {"lx=-1", "lx=-2", ":22: lx is from -1 to 1"},
    {"neutral 0", "neutral 5", ":21: neutral '5'"},
    {"head stick classes", "head keys classes", ":21: head 'keys' is there already"},
    {"state 0 32", "statue 0 32", ":6: 'statue' is no statement"},
};

/* The good map with from replaced by to and then so many of each (%d: which) is taken; with one more it is complained of. */
static const struct {
    const char *from, *to, *each;
    int most;
    const char *complaint;
} capped_maps[] = {
    {"raw round 16 u8\n", "raw round 16 u8\n", "raw more%d 0 u8\n", GAME_MAP_FIELDS - 7,
     "more than 256 fields"},
    {"float digits", "float digits", "s", GAME_MAP_NAME - 1 - 6, ":10: name 'digitss"},
    {"id low", "id low", " 11 u8 mask 3 entries 4\nid more%d", EXPHIL_IDS_MAX - 1, "more than 64 ids"},
    {"head stick", "head stick", "%d classes 2\npress stick%d 1 a\nhead stick", EXPHIL_HEADS_MAX - 2,
     "more than 16 heads"},
    {"when big > 0\n", "when big > 0\n", "when big > %d\n", 15, "more than 16 conditions"},
    {"keys 0 a", "keys 0 a", " a", 48 - 4, ":18: more than 48 words"},
    {"# a comment", "# a comment", "t", 1022 - 23, ":2: a line of more than 1022 characters"},
    {"\"FAKE", "\"FAKE", "K", 28, ":5: magic is"},
    {"\"FAKE\"", "46", "4b", 31, ":5: magic is"},
};

static int load_text(struct game_map *map, const char *folder, const char *text, size_t bytes, char *message)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tried.exphil", folder);
    FILE *file = fopen(path, "wb");
    if (!file) return perror(path), exit(1), -1;
    fwrite(text, 1, bytes, file);
    fclose(file);
    return game_map_load(map, path, message, 1024);
}

static void try_wrong_maps(const char *folder)
{
    for (size_t i = 0; i < sizeof wrong_maps / sizeof *wrong_maps; i++) {
        static struct game_map map;
        char text[4096], message[1024] = "";
        const char *at = strstr(good_map, wrong_maps[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good_map), good_map, wrong_maps[i].to,
                 at + strlen(wrong_maps[i].from));
        int result = load_text(&map, folder, text, strlen(text), message);
        CHECK(result < 0 && strstr(message, wrong_maps[i].complaint), "'%s' -> %d '%s', expected '%s'",
              wrong_maps[i].to, result, message, wrong_maps[i].complaint);
        if (!result) game_map_free(&map);
    }
}

static void try_capped_map(const char *folder, size_t i, int count, const char *complaint)
{
    static struct game_map map;
    char text[16384], message[1024] = "";
    const char *at = strstr(good_map, capped_maps[i].from);
    int bytes = snprintf(text, sizeof text, "%.*s%s", (int)(at - good_map), good_map, capped_maps[i].to);
    for (int n = 0; n < count; n++)
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, capped_maps[i].each, n, n);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "%s", at + strlen(capped_maps[i].from));
    int result = load_text(&map, folder, text, (size_t)bytes, message);
    CHECK(complaint ? result < 0 && strstr(message, complaint) : result == 0,
          "%d of '%s' -> '%s', expected '%s'", count, capped_maps[i].each, message,
          complaint ? complaint : "");
    if (!result) game_map_free(&map);
}

static void try_capped_maps(const char *folder)
{
    for (size_t i = 0; i < sizeof capped_maps / sizeof *capped_maps; i++) {
        try_capped_map(folder, i, capped_maps[i].most, NULL);
        try_capped_map(folder, i, capped_maps[i].most + 1, capped_maps[i].complaint);
    }
}

/* What stands behind a byte of 0 would not be seen. */
static void try_zero_byte(const char *folder)
{
    static struct game_map map;
    char text[sizeof good_map], message[1024] = "";
    memcpy(text, good_map, sizeof good_map);
    *strstr(text, "scale 1/100") = 0;
    int result = load_text(&map, folder, text, sizeof good_map - 1, message);
    CHECK(result < 0 && strstr(message, ":7: a byte of 0"), "a byte of 0 -> '%s'", message);
}

static void try_damaged_maps(const char *folder, int count)
{
    static struct game_map map;
    char text[sizeof good_map], message[1024];
    int taken = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = sizeof good_map - 1;
        memcpy(text, good_map, sizeof good_map);
        for (uint32_t n = 1 + draw() % 6; n; n--) text[draw() % bytes] = (char)draw();
        if (draw() % 4 == 0) bytes = draw() % bytes;
        if (load_text(&map, folder, text, bytes, message)) continue;
        taken++;
        game_map_free(&map);
    }
    CHECK(taken > 0 && taken < count, "%d of %d damaged maps were taken", taken, count);
}

static const uint8_t *bytes_at(void *user, uint32_t address, uint32_t bytes)
{
    return address + (uint64_t)bytes <= 64 ? (const uint8_t *)user + address : NULL;
}

static void try_values(const char *folder)
{
    static struct game_map map;
    char message[1024];
    uint8_t memory[64] = {'F', 'A', 'K', 'E', 1, 44, 0xD4, 0xFE, 0x97, 4, 2, 0x3B, 0, 0, 0xC0, 0xBF, 7};
    double values[GAME_MAP_FIELDS];
    float floats[8];
    int32_t ids[2];
    int field;
    CHECK(load_text(&map, folder, good_map, strlen(good_map), message) == 0, "%s", message);
    CHECK(game_map_read(&map, bytes_at, memory, values, &field) == 0, "field %d", field);
    CHECK(game_map_row(&map, values, floats, ids, &field) == 0, "field %d", field);
    CHECK(floats[0] == 2.0f && floats[1] == -150.0f && floats[2] == 97.0f && floats[3] == 42.0f &&
              floats[4] == -1.5f,
          "%g %g %g %g %g", (double)floats[0], (double)floats[1], (double)floats[2], (double)floats[3],
          (double)floats[4]);
    CHECK(ids[0] == 2, "id %d", (int)ids[0]);
    CHECK(game_map_ready(&map, bytes_at, memory, values), "not ready");
    values[5] = 4; /* of 4 entries the last is 3 */
    CHECK(game_map_row(&map, values, floats, ids, &field) && field == 5, "an id beyond its entries passes");
    memory[15] = 0x7F;
    memory[14] = 0xC0; /* NaN */
    CHECK(!game_map_read(&map, bytes_at, memory, values, &field) &&
              game_map_row(&map, values, floats, ids, &field) && field == 4,
          "a NaN passes");
    char why[1024];
    game_map_unready(&map, bytes_at, memory, values, why, sizeof why);
    CHECK(!*why, "ready, and yet: %s", why);
    values[0] = 0;
    game_map_unready(&map, bytes_at, memory, values, why, sizeof why);
    CHECK(strstr(why, "tried.exphil:15: 'when big > 0' does not hold"), "%s", why);
    memory[0] = 'f';
    CHECK(!game_map_ready(&map, bytes_at, memory, values), "ready without its magic");
    game_map_unready(&map, bytes_at, memory, values, why, sizeof why);
    CHECK(strstr(why, "tried.exphil:5: the bytes at 0x0000 are not \"FAKE\""), "%s", why);
    for (int32_t keys = 0; keys < 8; keys++)
        for (int32_t stick = 0; stick < 5; stick++) {
            int32_t action[2] = {keys, stick}, back[2] = {-1, -1};
            struct game_press press;
            game_map_press(&map, action, &press);
            game_map_action(&map, &press, back);
            CHECK(back[0] == keys && back[1] == stick, "%d %d -> %d %d", (int)keys, (int)stick, (int)back[0],
                  (int)back[1]);
        }
    game_map_free(&map);
}

/* ---- the bus ---- */

enum { CHIP = 0x20000 };
static uint8_t chip[CHIP];

/* Without a length select and disconnect say it; -1: there is nothing that may be read. */
static const struct {
    size_t start, select, disconnect, len;
    uint32_t address, bytes;
    long offset;
} bus_reads[] = {
    {0x7E0000, 0xFE0000, 0, 0, 0x7E0010, 2, 0x10},
    {0x7E0000, 0xFE0000, 0, 0, 0x7FFFFE, 2, 0x1FFFE},
    {0x7E0000, 0xFE0000, 0, 0, 0x7FFFFF, 6, -1}, /* runs over the end */
    {0x7E0000, 0xFE0000, 0, 0, 0xFF7E0010u, 2, -1},
    {0x7E0000, 0xFE0000, 0, 0, 0x800000, 1, -1},
    {0x8000, 0x408000, 0x8000, 0, 0xFFFE, 2, 0x7FFE},
    {0x8000, 0x408000, 0x8000, 0, 0x18000, 1, 0x8000},
    {0x8000, 0x408000, 0x8000, 0, 0xFFFF, 2, -1},
    {0x8000, ~(size_t)0x1FFFF & ~(size_t)0x8000, 0, 0, 0x8000, 1, -1}, /* start is no part of select */
    {0, 0, 0, 0, 0x80000000u, 4, -1},
    {0, 0, 0, 0, 0, 1, -1},
    {0xA000, 0, 0, 64, 0xA03C, 4, 60},
    {0xA000, 0, 0, 64, 0xA03D, 4, -1},
    {0xA000, 0, 0, 64, 0x9FFF, 1, -1},
    {0, 0xE000, 0, 0x800, 0x0801, 2, 1}, /* the mirror of a NES */
    {0, 0xE000, 0, 0x800, 0x07FF, 2, -1},
    {0, 0xE000, 0x1800, 0, 0x1FFF, 1, 0x7FF},
    {0, 0xE000, 0x1800, 0, 0x07FF, 2, -1},
    {0x4000, 0xFF00, 0, CHIP, 0x40FF, 2, -1}, /* a window on a larger chip */
};

static void try_bus(void)
{
    static struct core_memory memory;
    memory.id = GAME_MAP_BUS;
    for (size_t i = 0; i < sizeof bus_reads / sizeof *bus_reads; i++) {
        struct retro_memory_descriptor part = {.ptr = chip};
        part.start = bus_reads[i].start, part.select = bus_reads[i].select;
        part.disconnect = bus_reads[i].disconnect, part.len = bus_reads[i].len;
        struct retro_memory_map map = {&part, 1};
        core_memory_set_bus(&memory, &map);
        const uint8_t *at = core_memory_at(&memory, bus_reads[i].address, bus_reads[i].bytes);
        long offset = at ? (long)((uintptr_t)at - (uintptr_t)chip) : -1;
        CHECK(offset == bus_reads[i].offset, "read %zu: offset %ld, not %ld", i, offset, bus_reads[i].offset);
        char why[256];
        core_memory_missing(&memory, bus_reads[i].address, why, sizeof why);
        int unsized = strstr(why, "does not tell the size") != NULL;
        int must = !part.len && (!part.select || (part.start & ~part.select));
        CHECK(unsized == must, "read %zu: %s", i, why);
    }
}

/* A map that points nowhere, a part that does, and more parts than are kept. */
static void try_wrong_bus(void)
{
    static struct core_memory memory;
    static struct retro_memory_descriptor parts[CORE_MEMORY_PARTS + 1];
    struct retro_memory_map hollow = {NULL, 5}, empty = {NULL, 0}, many = {parts, CORE_MEMORY_PARTS + 1};
    char why[256];
    memory.id = GAME_MAP_BUS;
    for (unsigned i = 0; i <= CORE_MEMORY_PARTS; i++)
        parts[i] = (struct retro_memory_descriptor){.ptr = i ? chip : NULL, .start = 16 * i, .len = 16};
    CHECK(!core_memory_set_bus(&memory, &many), "many parts are refused");
    CHECK(core_memory_at(&memory, 16, 16) == chip, "the second part is not there");
    CHECK(!core_memory_at(&memory, 8, 1), "a part without memory is read");
    core_memory_missing(&memory, 16 * CORE_MEMORY_PARTS, why, sizeof why);
    CHECK(strstr(why, "of the 257 parts") && strstr(why, "only the first 256"), "%s", why);
    CHECK(!core_memory_set_bus(&memory, &empty), "an empty map is refused");
    CHECK(core_memory_set_bus(&memory, &hollow) && !core_memory_at(&memory, 16, 1),
          "a map of nothing is read");
    CHECK(core_memory_set_bus(&memory, NULL) && !core_memory_at(&memory, 16, 1), "no map is read");
}

static void *data_of(unsigned id)
{
    return id == RETRO_MEMORY_SYSTEM_RAM ? chip : NULL;
}

static size_t size_of(unsigned id)
{
    return id == RETRO_MEMORY_SYSTEM_RAM ? 64 : 0;
}

/* Up to the last byte of a memory, and none behind it. */
static void try_end(void)
{
    static const struct core_library core = {.retro_get_memory_data = data_of,
                                             .retro_get_memory_size = size_of};
    static const struct {
        uint32_t address, bytes;
        int there;
    } reads[] = {{63, 1, 1}, {64, 1, 0}, {60, 4, 1}, {61, 4, 0}, {0, 64, 1}, {0, 65, 0}, {UINT32_MAX, 4, 0}};
    static struct core_memory memory = {.core = &core, .id = RETRO_MEMORY_SYSTEM_RAM};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        const uint8_t *at = core_memory_at(&memory, reads[i].address, reads[i].bytes);
        CHECK(at == (reads[i].there ? chip + reads[i].address : NULL), "read %zu of 64 bytes", i);
    }
    memory.id = RETRO_MEMORY_SAVE_RAM;
    CHECK(!core_memory_at(&memory, 0, 1), "a memory that is not there is read");
}

/* ---- a wild game ---- */

/* The core writes this number anew in each frame, after it was read: of the map's score one frame in three counts. */
static void try_wild_score(const char *plugin)
{
    host.verbose = 1;
    if (open_host(plugin, plugin)) exit(1);
    uint8_t *ram = host.core.retro_get_memory_data(RETRO_MEMORY_SYSTEM_RAM);
    for (int i = 1; i <= 300; i++) {
        float score = i % 3 == 1 ? NAN : i % 3 == 2 ? 1e38f : (float)i;
        memcpy(ram + 12, &score, sizeof score);
        core_host_frame(&host);
    }
    core_host_close(&host);
}

/* ---- a recording that cannot be saved at first ---- */

static void record_late(const char *plugin, int frames, const char *folder)
{
    if (open_host(plugin, plugin)) exit(1);
    for (int i = 0; i < frames; i++) core_host_frame(&host);
    CHECK(mkdir(folder, 0777) == 0, "%s is there", folder);
    core_host_close(&host);
}

/* ---- pads ---- */

static int s16_at(const uint8_t *ram, int at)
{
    return (int16_t)(ram[at] | ram[at + 1] << 8);
}

/* Buttons by number: b 0, start 3, up 4, a 8, l 10; the person holds y (1) and up, and the right stick to the right. */
static void try_pads(const char *plugin)
{
    static const int keys[3] = {1 << 8, 1 << 0 | 1 << 10, 1 << 3};
    const int owned = keys[0] | keys[1] | keys[2] | 1 << 4;
    const int held = 1 << 1 | 1 << 4;
    if (open_host(plugin, plugin)) exit(1);
    host.pad[0].buttons = host.pad[1].buttons = (uint16_t)held;
    host.pad[0].axis[2] = 12345;
    const uint8_t *ram = host.core.retro_get_memory_data(RETRO_MEMORY_SYSTEM_RAM);
    if (!ram) ram = host.memory.part[0].ptr;
    for (int i = 0; i < 300; i++) {
        int frame = ram[4] << 8 | ram[5], stick = frame % 5, free_frame = frame == 0 || frame % 50 == 49;
        int want = held & ~owned, lx = stick == 1 ? -32767 : stick == 2 ? 32767 : 0;
        for (int bit = 0; bit < 3; bit++)
            if (frame >> bit & 1) want |= keys[bit];
        if (stick == 3) want |= 1 << 4;
        if (free_frame) want = held;
        core_host_frame(&host);
        CHECK(s16_at(ram, 32) == want && s16_at(ram, 34) == want, "frame %d: %x and %x, not %x", frame,
              (unsigned)s16_at(ram, 32), (unsigned)s16_at(ram, 34), (unsigned)want);
        CHECK(s16_at(ram, 36) == (free_frame ? 0 : lx), "frame %d: lx %d", frame, s16_at(ram, 36));
        CHECK(s16_at(ram, 40) == 12345, "frame %d: the person's rx %d", frame, s16_at(ram, 40));
        CHECK(s16_at(ram, 44) == (!free_frame && want & keys[0] ? 32767 : 0), "frame %d: analog a", frame);
        CHECK(s16_at(ram, 46) == held, "frame %d: port 2 has %x", frame, (unsigned)s16_at(ram, 46));
    }
    core_host_close(&host);
}

/* ---- states ---- */

static void run_frames(int count)
{
    for (int i = 0; i < count; i++) core_host_frame(&host);
}

static void try_states(const char *plugin, const char *game)
{
    if (open_host(plugin, game)) exit(1);
    run_frames(120);
    size_t size = host.core.retro_serialize_size();
    uint8_t *good = malloc(size), *bad = malloc(2 * size);
    CHECK(good && bad && host.core.retro_serialize(good, size), "no state");
    run_frames(60);
    uint64_t after = core_host_hash(&host, 0);
    uint64_t part; /* of ours, at the end; the core's own bytes are the core's matter */
    memcpy(&part, good + size - 16, sizeof part);
    CHECK(part > 100 && part < size, "our part of a state has %llu bytes", (unsigned long long)part);
    for (int i = 0; i < 300; i++) {
        memcpy(bad, good, size);
        for (uint32_t n = 1 + draw() % 4; n; n--) bad[size - 1 - draw() % part] = (uint8_t)draw();
        CHECK(host.core.retro_unserialize(bad, size), "a state with a damaged part of ours is refused");
        run_frames(2);
        CHECK(host.core.retro_serialize_size() == size, "the size of a state has changed");
    }
    for (size_t cut = 0; cut <= part; cut += 7) {
        host.core.retro_unserialize(good, size - cut);
        run_frames(1);
    }
    CHECK(host.core.retro_unserialize(good, size - part), "the state of the core alone is refused");
    memcpy(bad, good, size);
    CHECK(!host.core.retro_serialize(bad, 3), "a state in 3 bytes");
    CHECK(host.core.retro_unserialize(good, size), "the good state is refused now");
    run_frames(60);
    CHECK(core_host_hash(&host, 0) == after, "the good state leads elsewhere now");
    free(good);
    free(bad);
    core_host_close(&host);
}

/* ---- two in one process ---- */

static uint64_t play_alone(const char *plugin, const char *game)
{
    if (open_host(plugin, game)) exit(1);
    run_frames(300);
    uint64_t hash = core_host_hash(&host, 0);
    core_host_close(&host);
    return hash;
}

static void try_two(const char *plugin, const char *copy, const char *game)
{
    static struct core_host second;
    uint64_t alone = play_alone(plugin, game);
    if (open_host(plugin, game)) exit(1);
    run_frames(100);
    if (open_in(&second, copy, game)) exit(1);
    CHECK(second.core.retro_run != host.core.retro_run, "the two plugins are one");
    for (int i = 0; i < 300; i++) {
        if (i < 200) core_host_frame(&host);
        core_host_frame(&second);
    }
    CHECK(core_host_hash(&second, 0) == alone, "the second ends otherwise than alone");
    core_host_close(&second);
    CHECK(core_host_hash(&host, 0) == alone, "the first ends otherwise than alone");
    core_host_close(&host);
}

static void try_rivals(const char *plugin, const char *copy, const char *folder)
{
    static struct core_host second;
    if (open_host(plugin, plugin) || open_in(&second, copy, copy)) exit(1);
    mkdir(folder, 0777);
    for (int i = 0; i < 300; i++) {
        core_host_frame(&host);
        core_host_frame(&second);
    }
    core_host_close(&second);
    core_host_close(&host);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "maps")) {
        try_wrong_maps(argv[2]);
        try_capped_maps(argv[2]);
        try_zero_byte(argv[2]);
        try_damaged_maps(argv[2], 4000);
        try_values(argv[2]);
    } else if (argc == 2 && !strcmp(argv[1], "bus")) {
        try_bus();
        try_wrong_bus();
        try_end();
    } else if (argc == 3 && !strcmp(argv[1], "wild")) {
        try_wild_score(argv[2]);
    } else if (argc == 5 && !strcmp(argv[1], "late")) {
        record_late(argv[2], atoi(argv[3]), argv[4]);
    } else if (argc == 5 && !strcmp(argv[1], "rivals")) {
        try_rivals(argv[2], argv[3], argv[4]);
    } else if (argc == 3 && !strcmp(argv[1], "pads")) {
        try_pads(argv[2]);
    } else if (argc == 4 && !strcmp(argv[1], "states")) {
        try_states(argv[2], argv[3]);
    } else if (argc == 5 && !strcmp(argv[1], "twice")) {
        try_two(argv[2], argv[3], argv[4]);
    } else {
        return fprintf(stderr, "libretro_check maps|bus|wild|late|rivals|pads|states|twice ...\n"), 2;
    }
    return failures != 0;
}
