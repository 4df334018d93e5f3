/* Pages of Windows. */
#define WIN32_LEAN_AND_MEAN
#include "test_pages.h"

#include <malloc.h>
#include <stdlib.h>
#include <windows.h>

size_t test_page_bytes(void)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    return system.dwPageSize;
}

/* Committed pages count against what the machine has, and get memory when they are touched. */
void *test_pages(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void test_pages_free(void *pages, size_t bytes)
{
    (void)bytes;
    if (!VirtualFree(pages, 0, MEM_RELEASE)) abort();
}

void test_pages_guard(void *pages, size_t bytes)
{
    DWORD before;
    if (!VirtualProtect(pages, bytes, PAGE_NOACCESS, &before)) abort();
}

void *test_aligned(size_t align, size_t bytes)
{
    return _aligned_malloc(bytes, align);
}

void test_aligned_free(void *piece)
{
    _aligned_free(piece);
}
