/* Memory that is measured, and caches: see harness.h. */
#include "harness.h"
#include "platform.h"
#include "say.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

enum { BLOCKS = 512 };
static struct {
    void *address;
    size_t bytes;
} blocks[BLOCKS];
static size_t block_count;
static uint32_t noise = 12345;

static float noise_next(void)
{
    noise = noise * 1664525u + 1013904223u;
    return (float)(noise >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

void bench_seed(uint32_t seed)
{
    noise = seed;
}

static void give_up(const char *why)
{
    bench_say(NULL, why);
    exit(1);
}

void *bench_memory(size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (block_count == BLOCKS) give_up("too many blocks of memory");
    void *p = bench_pages(bytes);
    if (!p) give_up("no memory");
    blocks[block_count].address = p;
    blocks[block_count++].bytes = bytes;
    memset(p, 0, bytes);
    return p;
}

float *bench_floats(size_t count, float scale)
{
    float *p = bench_memory(count * sizeof *p);
    for (size_t i = 0; i < count; i++) p[i] = scale * noise_next();
    return p;
}

size_t bench_memory_mark(void)
{
    return block_count;
}

void bench_memory_release(size_t mark)
{
    while (block_count > mark) {
        block_count--;
        bench_pages_free(blocks[block_count].address, blocks[block_count].bytes);
    }
}

void bench_clear(const void *address, size_t bytes)
{
#if defined(__x86_64__)
    const char *p = address;
    for (size_t i = 0; i < bytes; i += 64) _mm_clflush(p + i);
    _mm_mfence();
#else
    (void)address, (void)bytes;
#endif
}

void bench_flush(const void *address, size_t bytes)
{
    static char *other;
    enum { OTHER = 8 << 20 }; /* more than the caches that a core has for itself */
    bench_clear(address, bytes);
    if (!other) other = calloc(1, OTHER);
    for (size_t i = 0; other && i < OTHER; i += 64) other[i]++;
}
