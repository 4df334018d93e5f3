/* Loading of lib/device/backend.h plugins. The core and a plugin must come from one source tree: their build ids, a hash of
 * the headers between them (CMakeLists.txt), must be equal. A plugin stays loaded for ever, because drivers keep threads
 * inside it. */
#define _GNU_SOURCE
#include "device/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_BYTES 1024

#ifdef XPH_CUDA_BUILTIN
const xph_backend *xph_cuda_backend_query(uint32_t abi, const xph_host *host); /* cuda/backend.c */
#endif

typedef struct plugin_search {
    const char *kind;
    const xph_host *host;
    const xph_backend *found;
    exphil_status worst; /* UNSUPPORTED, or VERSION when a plugin was there but did not fit */
    char tried[512];     /* "path: reason; path: reason" */
} plugin_search;

void xph_host_head(xph_host *host)
{
    host->struct_size = sizeof *host;
    host->abi = XPH_BACKEND_ABI;
    host->core_version = EXPHIL_VERSION;
    host->build_id = XPH_BUILD_ID;
}

static void note(plugin_search *search, const char *path, const char *reason)
{
    size_t used = strlen(search->tried);
    /* The loader's message starts with the path already. */
    bool named = strncmp(reason, path, strlen(path)) == 0;
    snprintf(search->tried + used, sizeof search->tried - used, "%s%s%s%s", used ? "; " : "",
             named ? "" : path, named ? "" : ": ", reason);
}

/* The head of the table is frozen, so that it can be read in any plugin. */
static bool fits(plugin_search *search, const char *path, const xph_backend *backend)
{
    char reason[128];
    if (!backend) {
        note(search, path, "the plugin refused this library");
    } else if (backend->abi != XPH_BACKEND_ABI || strcmp(backend->build_id, XPH_BUILD_ID) != 0) {
        snprintf(reason, sizeof reason, "built from other sources (%.24s, this library %s)",
                 backend->build_id, XPH_BUILD_ID);
        note(search, path, reason);
    } else {
        search->found = backend;
        return true;
    }
    search->worst = EXPHIL_E_VERSION;
    return false;
}

static void try_folder(plugin_search *search, const char *folder)
{
    char path[PATH_BYTES];
    if (search->found || !folder || !*folder) return;
    int length = snprintf(path, sizeof path, "%s/libexphil_%s.so", folder, search->kind);
    if (length < 0 || (size_t)length >= sizeof path) {
        note(search, folder, "path is too long");
        return;
    }
    if (access(path, F_OK) != 0) {
        note(search, path, "not there");
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        note(search, path, reason ? reason : "could not be loaded");
        return;
    }
    xph_backend_query_fn query;
    /* The one way from an object pointer to a function pointer that POSIX blesses and -Wpedantic accepts. */
    *(void **)(&query) = dlsym(library, "xph_backend_query");
    if (!query) {
        note(search, path, "has no xph_backend_query");
        return;
    }
    fits(search, path, query(XPH_BACKEND_ABI, search->host));
}

/* The CUDA backend that was built into this library (EXPHIL_CUDA=BUILTIN), if it was. */
static void try_builtin(plugin_search *search)
{
#ifdef XPH_CUDA_BUILTIN
    if (!search->found && strcmp(search->kind, "cuda") == 0)
        fits(search, "the built-in one", xph_cuda_backend_query(XPH_BACKEND_ABI, search->host));
#else
    (void)search;
#endif
}

/* Folder of the file that holds this code; false when it is only known by a relative name (a program that has the
 * library inside), which would mean the current folder. */
static bool own_folder(char *folder, size_t bytes)
{
    static const char anchor = 0;
    Dl_info info;
    if (!dladdr(&anchor, &info) || !info.dli_fname || info.dli_fname[0] != '/') return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = snprintf(folder, bytes, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
    return length > 0 && (size_t)length < bytes;
}

exphil_status xph_plugin_load(const char *kind, const char *folder, const xph_host *host,
                              const xph_backend **backend, exphil_error *error)
{
    plugin_search search = {.kind = kind, .host = host, .worst = EXPHIL_E_UNSUPPORTED};
    if (folder) {
        try_folder(&search, folder);
    } else {
        char own[PATH_BYTES];
        try_folder(&search, secure_getenv("EXPHIL_BACKEND_DIR"));
        try_builtin(&search);
        if (own_folder(own, sizeof own)) try_folder(&search, own);
        try_folder(&search, XPH_LIBDIR);
    }
    if (!search.found)
        return xph_fail(error, search.worst, "no %s backend%s: %s", kind,
                        folder ? "" : " (EXPHIL_BACKEND_DIR names its folder)", search.tried);
    *backend = search.found;
    return EXPHIL_OK;
}
