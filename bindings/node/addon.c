/* What the addon offers to exphil.js. */
#include "addon.h"

#include <stdio.h>

static bool offer(napi_env env, napi_value exports, const struct entry *entries)
{
    for (const struct entry *entry = entries; entry->name; entry++) {
        napi_value function;
        if (napi_create_function(env, entry->name, NAPI_AUTO_LENGTH, entry->call, NULL, &function) !=
                napi_ok ||
            napi_set_named_property(env, exports, entry->name, function) != napi_ok)
            return false;
    }
    return true;
}

/* Later releases of one binary interface fit (the file name says which); earlier ones lack functions. Patches add none. */
static bool new_enough(napi_env env)
{
    char message[160];
    if (exphil_version() / 100 >= EXPHIL_VERSION / 100) return true;
    snprintf(message, sizeof message, "libexphil %s is loaded, this addon was built for %d.%d",
             exphil_version_string(), EXPHIL_VERSION_MAJOR, EXPHIL_VERSION_MINOR);
    return fail(env, EXPHIL_E_VERSION, message, 0), false;
}

NAPI_MODULE_INIT()
{
    return make_error_class(env, exports) && new_enough(env) && offer(env, exports, play_entries) &&
                   offer(env, exports, train_entries) && offer(env, exports, melee_entries)
               ? exports
               : NULL;
}
