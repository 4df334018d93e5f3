/* Loading of lib/device/backend.h plugins. The core and a plugin must come from one source tree: their build ids, a hash of
 * the headers between them (CMakeLists.txt), must be equal. A plugin stays loaded for ever, because drivers keep threads
 * inside it. */
#include "device/plugin.h"
#include "base/system.h"

#include <stdio.h>

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
    int length = snprintf(path, sizeof path, "%s/" XPH_PLUGIN_NAME, folder, search->kind);
    if (length < 0 || (size_t)length >= sizeof path) {
        note(search, folder, "path is too long");
        return;
    }
    int32_t kind = EXPHIL_IO_ABSENT;
    if (xph_system_io.kind(NULL, path, &kind) != 0 || kind == EXPHIL_IO_ABSENT) {
        note(search, path, "not there");
        return;
    }
    char reason[256];
    void *library = xph_library_open(path, reason, sizeof reason);
    if (!library) {
        note(search, path, reason);
        return;
    }
    xph_backend_query_fn query;
    if (!xph_library_find(library, "xph_backend_query", &query)) {
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

exphil_status xph_plugin_load(const char *kind, const char *folder, const xph_host *host,
                              const xph_backend **backend, exphil_error *error)
{
    plugin_search search = {.kind = kind, .host = host, .worst = EXPHIL_E_UNSUPPORTED};
    if (folder) {
        try_folder(&search, folder);
    } else {
        char place[PATH_BYTES];
        if (xph_environment("EXPHIL_BACKEND_DIR", place, sizeof place) > 0) try_folder(&search, place);
        try_builtin(&search);
        if (xph_library_folder(place, sizeof place)) try_folder(&search, place);
#ifndef _WIN32 /* where it is no folder of the system's: anybody may make one of that name on a drive */
        try_folder(&search, XPH_LIBDIR);
#endif
    }
    if (!search.found)
        return xph_fail(error, search.worst, "no %s backend%s: %s", kind,
                        folder ? "" : " (EXPHIL_BACKEND_DIR names its folder)", search.tried);
    *backend = search.found;
    return EXPHIL_OK;
}
