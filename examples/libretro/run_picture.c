/* GIF89a (W3C, Graphics Interchange Format Version 89a), with its Lempel-Ziv-Welch compression of 9 to 12 bits. */
#include "run_picture.h"

#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODES 4096
#define CLEAR 256
#define END   257

struct run_picture {
    FILE *file;
    unsigned width, height;
    uint8_t *last;      /* what the screen shows; NULL before the first frame */
    uint8_t block[256]; /* block[0]: its length */
    uint32_t bits;      /* not yet a whole byte */
    unsigned bit_count;
    uint16_t child[CODES][256]; /* code of a code followed by a byte; 0: none */
};

static void put16(FILE *file, unsigned value)
{
    fputc((int)(value & 255), file);
    fputc((int)(value >> 8 & 255), file);
}

struct run_picture *run_picture_open(const char *path, unsigned width, unsigned height)
{
    struct run_picture *picture = calloc(1, sizeof *picture);
    if (!picture) return NULL;
    picture->width = width;
    picture->height = height;
    picture->file = system_open(path, "wb");
    if (!picture->file) {
        free(picture);
        return NULL;
    }
    fwrite("GIF89a", 6, 1, picture->file);
    put16(picture->file, width);
    put16(picture->file, height);
    fwrite("\xF7\0\0", 3, 1, picture->file); /* a table of 256 colours for all frames */
    for (int i = 0; i < 256; i++) {
        fputc((i >> 5) * 255 / 7, picture->file);
        fputc((i >> 2 & 7) * 255 / 7, picture->file);
        fputc((i & 3) * 255 / 3, picture->file);
    }
    fwrite("\x21\xFF\x0BNETSCAPE2.0\x03\x01\0\0\0", 19, 1, picture->file); /* again and again */
    return picture;
}

/* ---- compression ---- */

static void put_byte(struct run_picture *picture, uint8_t byte)
{
    picture->block[1 + picture->block[0]++] = byte;
    if (picture->block[0] < 255) return;
    fwrite(picture->block, 256, 1, picture->file);
    picture->block[0] = 0;
}

static void put_code(struct run_picture *picture, unsigned code, unsigned width)
{
    picture->bits |= (uint32_t)code << picture->bit_count;
    picture->bit_count += width;
    for (; picture->bit_count >= 8; picture->bit_count -= 8, picture->bits >>= 8)
        put_byte(picture, (uint8_t)picture->bits);
}

static void flush(struct run_picture *picture)
{
    if (picture->bit_count) put_byte(picture, (uint8_t)picture->bits);
    picture->bits = picture->bit_count = 0;
    if (picture->block[0]) fwrite(picture->block, 1u + picture->block[0], 1, picture->file);
    picture->block[0] = 0;
    fputc(0, picture->file);
}

/* The rectangle from (x,y). */
static void compress(struct run_picture *picture, const uint8_t *points, unsigned x, unsigned y, unsigned w,
                     unsigned h)
{
    unsigned width = 9, next = END + 1, code = points[y * picture->width + x];
    fputc(8, picture->file);
    put_code(picture, CLEAR, width);
    memset(picture->child, 0, sizeof picture->child);
    for (unsigned i = 1; i < w * h; i++) {
        uint8_t point = points[(y + i / w) * picture->width + x + i % w];
        if (picture->child[code][point]) {
            code = picture->child[code][point];
            continue;
        }
        put_code(picture, code, width);
        picture->child[code][point] = (uint16_t)next;
        if (next == 1u << width) width++;
        code = point;
        if (++next < CODES) continue;
        put_code(picture, CLEAR, width);
        memset(picture->child, 0, sizeof picture->child);
        width = 9;
        next = END + 1;
    }
    put_code(picture, code, width);
    if (next == 1u << width && width < 12) width++; /* the reader has made a code more by now */
    put_code(picture, END, width);
    flush(picture);
}

/* ---- frames ---- */

static int row_differs(const struct run_picture *picture, const uint8_t *points, unsigned y)
{
    size_t at = (size_t)y * picture->width;
    return memcmp(points + at, picture->last + at, picture->width) != 0;
}

static int column_differs(const struct run_picture *picture, const uint8_t *points, unsigned x)
{
    for (size_t y = 0; y < picture->height; y++)
        if (points[y * picture->width + x] != picture->last[y * picture->width + x]) return 1;
    return 0;
}

/* x, y, width, height of what changed; at least one point. */
static void find_change(const struct run_picture *picture, const uint8_t *points, unsigned *box)
{
    unsigned left = 0, right = picture->width - 1, top = 0, bottom = picture->height - 1;
    if (picture->last) {
        while (top < bottom && !row_differs(picture, points, top)) top++;
        while (bottom > top && !row_differs(picture, points, bottom)) bottom--;
        while (left < right && !column_differs(picture, points, left)) left++;
        while (right > left && !column_differs(picture, points, right)) right--;
    }
    box[0] = left, box[1] = top, box[2] = right - left + 1, box[3] = bottom - top + 1;
}

void run_picture_add(struct run_picture *picture, const uint8_t *points, unsigned hundredths)
{
    unsigned box[4];
    size_t bytes = (size_t)picture->width * picture->height;
    find_change(picture, points, box);
    fwrite("\x21\xF9\x04\x04", 4, 1, picture->file); /* it stays under the next one */
    put16(picture->file, hundredths);
    fwrite("\0\0,", 3, 1, picture->file);
    for (int i = 0; i < 4; i++) put16(picture->file, box[i]);
    fputc(0, picture->file);
    compress(picture, points, box[0], box[1], box[2], box[3]);
    if (!picture->last) picture->last = malloc(bytes);
    if (picture->last) memcpy(picture->last, points, bytes);
}

int run_picture_close(struct run_picture *picture)
{
    fputc(';', picture->file);
    int failed = ferror(picture->file);
    if (fclose(picture->file)) failed = 1;
    free(picture->last);
    free(picture);
    return failed;
}
