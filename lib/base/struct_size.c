/* The evolution rule of configuration structs: older callers give shorter structs (the rest is zero, "as before"),
 * newer ones longer structs, accepted while the part unknown here is all zero (Linux's copy_struct_from_user). */
#include "base/base.h"

#include <string.h>

static exphil_status read_size(const void *given, size_t least_bytes, const char *name, size_t *size,
                               exphil_error *error)
{
    memcpy(size, given, sizeof *size);
    if (*size >= least_bytes && *size <= XPH_STRUCT_MOST) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID,
                    "%s.struct_size is %zu, at least %zu expected; use its INIT macro", name, *size,
                    least_bytes);
}

exphil_status xph_config_take(void *known, size_t known_bytes, const void *given, size_t least_bytes,
                              const char *name, exphil_error *error)
{
    if (!given) return EXPHIL_OK;
    size_t size;
    XPH_TRY(read_size(given, least_bytes, name, &size, error));
    const unsigned char *bytes = given;
    for (size_t i = known_bytes; i < size; i++) {
        if (bytes[i]) {
            return xph_fail(error, EXPHIL_E_VERSION,
                            "%s has %zu bytes and uses byte %zu; this library (%s) knows %zu", name, size, i,
                            exphil_version_string(), known_bytes);
        }
    }
    memcpy(known, given, size < known_bytes ? size : known_bytes);
    memcpy(known, &known_bytes, sizeof known_bytes);
    return EXPHIL_OK;
}

exphil_status xph_config_give(void *given, const void *known, size_t known_bytes, size_t least_bytes,
                              const char *name, exphil_error *error)
{
    if (!given) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", name);
    size_t size;
    XPH_TRY(read_size(given, least_bytes, name, &size, error));
    size_t take = size < known_bytes ? size : known_bytes;
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)known + sizeof size,
           take - sizeof size);
    return EXPHIL_OK;
}

exphil_status xph_config_check(const void *given, size_t least_bytes, const char *name, exphil_error *error)
{
    size_t size;
    return given ? read_size(given, least_bytes, name, &size, error) : EXPHIL_OK;
}
