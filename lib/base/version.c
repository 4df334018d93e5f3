/* Version of the loaded library and the names of statuses. */
#include "base/base.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

uint32_t exphil_version(void)
{
    return EXPHIL_VERSION;
}

const char *exphil_version_string(void)
{
    return TEXT(EXPHIL_VERSION_MAJOR) "." TEXT(EXPHIL_VERSION_MINOR) "." TEXT(EXPHIL_VERSION_PATCH)
#ifdef XPH_HAVE_X86_SETS
        " cpu:ref,avx2,avx512";
#elif defined(XPH_HAVE_ARM_SETS)
        " cpu:ref,neon";
#else
        " cpu:ref";
#endif
}

const char *exphil_status_name(exphil_status status)
{
    switch (status) {
    case EXPHIL_OK:
        return "EXPHIL_OK";
    case EXPHIL_END:
        return "EXPHIL_END";
    case EXPHIL_AGAIN:
        return "EXPHIL_AGAIN";
    case EXPHIL_E_INVALID:
        return "EXPHIL_E_INVALID";
    case EXPHIL_E_MEMORY:
        return "EXPHIL_E_MEMORY";
    case EXPHIL_E_IO:
        return "EXPHIL_E_IO";
    case EXPHIL_E_FORMAT:
        return "EXPHIL_E_FORMAT";
    case EXPHIL_E_UNSUPPORTED:
        return "EXPHIL_E_UNSUPPORTED";
    case EXPHIL_E_DEVICE:
        return "EXPHIL_E_DEVICE";
    case EXPHIL_E_STATE:
        return "EXPHIL_E_STATE";
    case EXPHIL_E_BUSY:
        return "EXPHIL_E_BUSY";
    case EXPHIL_E_VERSION:
        return "EXPHIL_E_VERSION";
    case EXPHIL_E_CANCELLED:
        return "EXPHIL_E_CANCELLED";
    case EXPHIL_E_NUMERIC:
        return "EXPHIL_E_NUMERIC";
    case EXPHIL_E_MISMATCH:
        return "EXPHIL_E_MISMATCH";
    case EXPHIL_E_INTERNAL:
        return "EXPHIL_E_INTERNAL";
    default:
        return "EXPHIL_UNKNOWN";
    }
}
