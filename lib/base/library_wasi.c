/* WASI loads no libraries. */
#include "base/system.h"

#include <stdio.h>

void *xph_library_open(const char *path, char *reason, size_t bytes)
{
    (void)path;
    snprintf(reason, bytes, "WASI loads no libraries");
    return NULL;
}

bool xph_library_find(void *library, const char *name, void *function)
{
    (void)library;
    (void)name;
    (void)function;
    return false;
}

void xph_library_close(void *library)
{
    (void)library;
}

bool xph_library_folder(char *folder, size_t bytes)
{
    (void)folder;
    (void)bytes;
    return false;
}
