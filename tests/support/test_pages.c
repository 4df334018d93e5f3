/* Pages of POSIX. */
#include "test_pages.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

size_t test_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *test_pages(size_t bytes)
{
    void *pages =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void test_pages_free(void *pages, size_t bytes)
{
    munmap(pages, bytes);
}

void test_pages_guard(void *pages, size_t bytes)
{
    if (mprotect(pages, bytes, PROT_NONE) != 0) abort();
}

void *test_aligned(size_t align, size_t bytes)
{
    void *piece = NULL;
    return posix_memalign(&piece, align, bytes) == 0 ? piece : NULL;
}

void test_aligned_free(void *piece)
{
    free(piece);
}
