/* The process, on POSIX: big memory, forked children, the environment. */
#define _GNU_SOURCE
#include "base/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__) && !defined(MADV_WIPEONFORK)
#  define MADV_WIPEONFORK 18
#endif

#define HUGE_PAGE ((size_t)1 << 21)

/* Memory of some megabytes (rows, activations) comes in huge pages where the system gives them when asked: touching fresh
 * small pages cost as much as encoding the rows that go into them. A refusal changes nothing. */
void *xph_pages_alloc(size_t bytes, size_t align)
{
    void *pointer = NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= 2 * HUGE_PAGE && bytes <= SIZE_MAX - HUGE_PAGE) {
        bytes = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        if (posix_memalign(&pointer, HUGE_PAGE, bytes) != 0) return NULL;
        int saved = errno;
        (void)madvise(pointer, bytes, MADV_HUGEPAGE);
        errno = saved;
        return pointer;
    }
#endif
    return posix_memalign(&pointer, align, bytes) == 0 ? pointer : NULL;
}

void xph_pages_free(void *pointer)
{
    free(pointer);
}

/* Asking for the pid is a system call, which a step must not make. Linux can instead clear a page in every child
 * (MADV_WIPEONFORK, since 4.14). The page is the only memory that does not come from the allocator: clearing one of
 * the allocator's pages could hit a neighbour. The C library of macOS keeps the pid. */
const volatile unsigned char *xph_birth_mark(void)
{
#ifdef MADV_WIPEONFORK
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return NULL;
    /* Who takes any advice, as qemu does for programs of other processors, follows none. */
    if (madvise(mark, page, -1) == 0 || madvise(mark, page, MADV_WIPEONFORK) != 0) {
        munmap(mark, page);
        return NULL;
    }
    *mark = 1;
    mprotect(mark, page, PROT_READ);
    return mark;
#else
    return NULL;
#endif
}

void xph_birth_mark_free(const volatile unsigned char *mark)
{
    if (mark) munmap((void *)(uintptr_t)mark, (size_t)sysconf(_SC_PAGESIZE));
}

int64_t xph_process_number(void)
{
    return (int64_t)getpid();
}

int64_t xph_environment(const char *name, char *value, size_t bytes)
{
#if defined(__APPLE__)
    const char *set = issetugid() ? NULL : getenv(name);
#else
    const char *set = secure_getenv(name);
#endif
    if (!set) return -1;
    snprintf(value, bytes, "%s", set);
    return (int64_t)strlen(set);
}
