/* The library once more, in a file that a test opens beside its own: with another version, and nothing else changed. The linker
 * leads every question for the version here (--wrap). */
#include <exphil/exphil.h>

#define SHOWN __attribute__((visibility("default")))

/* Added to the version. */
SHOWN uint32_t other_version;

uint32_t __real_exphil_version(void);
SHOWN uint32_t __wrap_exphil_version(void);

uint32_t __wrap_exphil_version(void)
{
    return __real_exphil_version() + other_version;
}
