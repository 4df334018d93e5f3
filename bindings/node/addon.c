/* What the addon offers to exphil.js. */
#include "addon.h"

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

NAPI_MODULE_INIT()
{
    return offer(env, exports, play_entries) && offer(env, exports, train_entries) ? exports : NULL;
}
