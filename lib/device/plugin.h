/* Finding and loading a device backend that is not part of the library. */
#ifndef XPH_DEVICE_PLUGIN_H
#define XPH_DEVICE_PLUGIN_H

#include "base/base.h"
#include "device/backend.h"

/* Fills everything of host that does not depend on a context. */
void xph_host_head(xph_host *host);

/* Loads libexphil_<kind>.so from folder; NULL: from $EXPHIL_BACKEND_DIR, then what was built in, then from
 * beside this library, then from the libdir it was built for, never from the current folder. Never unloads.
 * EXPHIL_E_UNSUPPORTED with every path tried and why not; EXPHIL_E_VERSION when one was found that was built
 * from other sources. */
exphil_status xph_plugin_load(const char *kind, const char *folder, const xph_host *host,
                              const xph_backend **backend, exphil_error *error);

#endif
