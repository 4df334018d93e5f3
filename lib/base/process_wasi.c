/* The process, under WASI: nothing forks, and there are no huge pages. */
#define _GNU_SOURCE
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>

void *xph_pages_alloc(size_t bytes, size_t align)
{
    void *pointer = NULL;
    if (bytes > PTRDIFF_MAX) return NULL; /* no memory has it, and what a C library adds to it may wrap */
    return posix_memalign(&pointer, align, bytes) == 0 ? pointer : NULL;
}

void xph_pages_free(void *pointer)
{
    free(pointer);
}

const volatile unsigned char *xph_birth_mark(void)
{
    return NULL;
}

void xph_birth_mark_free(const volatile unsigned char *mark)
{
    (void)mark;
}

int64_t xph_process_number(void)
{
    return 0;
}

int64_t xph_environment(const char *name, char *value, size_t bytes)
{
    const char *set = getenv(name);
    if (!set) return -1;
    snprintf(value, bytes, "%s", set);
    return (int64_t)strlen(set);
}
