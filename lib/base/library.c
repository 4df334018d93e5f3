/* Shared libraries of POSIX. */
#define _GNU_SOURCE
#include "base/system.h"

#include <dlfcn.h>
#include <stdio.h>

void *xph_library_open(const char *path, char *reason, size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (!library) snprintf(reason, bytes, "%s", why ? why : "could not be loaded");
    return library;
}

/* POSIX blesses this way from an object pointer to a function pointer. */
bool xph_library_find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

void xph_library_close(void *library)
{
    dlclose(library);
}

bool xph_library_folder(char *folder, size_t bytes)
{
    static const char anchor = 0;
    Dl_info info;
    if (!dladdr(&anchor, &info) || !info.dli_fname || info.dli_fname[0] != '/') return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = snprintf(folder, bytes, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
    return length > 0 && (size_t)length < bytes;
}
