/* What differs between systems of what is measured on: see platform.c. Cores and priority stand in harness.h (place.c). */
#ifndef EXPHIL_BENCH_PLATFORM_H
#define EXPHIL_BENCH_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

/* Whole pages of their own, zeroed; NULL: no memory. */
void *bench_pages(size_t bytes);
void bench_pages_free(void *address, size_t bytes);
/* align: a power of two, not below that of a pointer. */
void *bench_aligned(size_t align, size_t bytes);
void bench_aligned_free(void *address);
int bench_threads(void); /* of this process, now; 0: not known */

typedef struct bench_platform {
    char system[256], kernel[208], governor[64]; /* "Debian 12", "Linux 6.1 x86_64", "performance" */
    int64_t cores, memory;                       /* bytes */
} bench_platform;
void bench_platform_of(bench_platform *platform);

#endif
