/* emu_control.h on a real card: the tests of CUDA kernels run there as they are. Memory is the host's, mapped, so
 * that both may look at it as the tests do (managed memory can hang a card that is short of it), every launch is waited for
 * (CUDA_LAUNCH_BLOCKING), and in place of pages that cannot be touched there are zones before and behind it, looked at when
 * it is freed. Schedules are what the card makes of them: a test that runs all three runs three times. The end of an
 * allocation lies where alignment lets it, as in the emulator. */
#define _GNU_SOURCE
#include "../emu/emu_control.h"

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ZONE = 512, ASIDE = 77, UNTOUCHED = 0xff /* NaN in every type of float */ };

typedef struct block {
    char *base, *data;
    size_t bytes, span; /* span: from base on, with both zones */
    struct block *next;
} block;

static block *blocks;
static size_t allocated;
static char fault[512];
static bool begun, front;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list list;
    if (*fault) return;
    va_start(list, format);
    vsnprintf(fault, sizeof fault, format, list);
    va_end(list);
}

/* Before anything else is asked of CUDA. */
static void begin(void)
{
    struct cudaDeviceProp card;
    int count = 0;
    if (begun) return;
    begun = true;
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count > 0) code = cudaGetDeviceProperties(&card, 0);
    if (code != cudaSuccess || count < 1) {
        printf("SKIPPED: no CUDA device: %s\n", cudaGetErrorName(code));
        fflush(stdout);
        _Exit(ASIDE);
    }
    printf("on %s, sm_%d%d\n", card.name, card.major, card.minor);
}

void emu_schedule(int schedule)
{
    begin();
    front = schedule == EMU_REVERSE;
}

void *emu_alloc(size_t bytes, size_t alignment)
{
    begin();
    if (alignment > 16) alignment = 16;
    size_t padded = (bytes + alignment - 1) / alignment * alignment, inner = (padded + 255) / 256 * 256;
    block *b = calloc(1, sizeof *b);
    void *base = NULL, *there = NULL;
    if (!b || cudaHostAlloc(&base, inner + 2 * ZONE, cudaHostAllocMapped) != cudaSuccess) {
        free(b);
        return NULL;
    }
    if (cudaHostGetDevicePointer(&there, base, 0) != cudaSuccess || there != base) {
        fprintf(stderr, "ERROR: mapped memory has another address on the device\n");
        exit(1);
    }
    *b = (block){base, (char *)base + ZONE + (front ? 0 : inner - padded), bytes, inner + 2 * ZONE, blocks};
    memset(base, UNTOUCHED, b->span);
    blocks = b;
    allocated += bytes;
    return b->data;
}

/* What a case has in pages of its own is mapped likewise. */
void case_gives(void *pages, size_t bytes);
void case_takes(void *pages);

void case_gives(void *pages, size_t bytes)
{
    void *there = NULL;
    begin();
    if (!bytes) return;
    if (cudaHostRegister(pages, bytes, cudaHostRegisterMapped) != cudaSuccess ||
        cudaHostGetDevicePointer(&there, pages, 0) != cudaSuccess || there != pages) {
        fprintf(stderr, "ERROR: pages of a case have no address on the device, or another one\n");
        exit(1);
    }
}

void case_takes(void *pages)
{
    cudaDeviceSynchronize();
    if (cudaHostUnregister(pages) != cudaSuccess) cudaGetLastError(); /* it had no bytes */
}

static void look_at(const block *b)
{
    const size_t before = (size_t)(b->data - b->base);
    for (size_t i = 0; i < b->span; i++) {
        if (i == before) i += b->bytes;
        if (i < b->span && (unsigned char)b->base[i] != UNTOUCHED) {
            say("byte %lld of device memory of %zu was written", (long long)i - (long long)before, b->bytes);
            return;
        }
    }
}

void emu_free(void *address)
{
    if (!address) return;
    for (block **at = &blocks; *at; at = &(*at)->next) {
        block *b = *at;
        if (b->data != address) continue;
        if (cudaDeviceSynchronize() == cudaSuccess) look_at(b);
        *at = b->next;
        allocated -= b->bytes;
        cudaFreeHost(b->base);
        free(b);
        /* Not every test asks for faults after it has freed. */
        if (*fault) fprintf(stderr, "ERROR: %s\n", fault), exit(1);
        return;
    }
    say("freed what was not allocated");
}

size_t emu_allocated(void)
{
    return allocated;
}

const char *emu_fault(void)
{
    cudaError_t code = cudaDeviceSynchronize();
    if (code != cudaSuccess) say("%s: %s", cudaGetErrorName(code), cudaGetErrorString(code));
    return *fault ? fault : NULL;
}

void emu_clear(void)
{
    cudaGetLastError();
    *fault = 0;
}
