/* A program of an earlier release: compiled with the headers that release had (tests/abi/<version>), run on the library of
 * today and on one whose structs have grown. It uses every struct and prints digests of all results, which must be the same. */
#define _GNU_SOURCE
#include "old.h"

#include <sys/mman.h>
#include <unistd.h>

exphil_error *error;
static uint64_t sum = 14695981039346656037u; /* FNV-1a */

void *edge(const void *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    unsigned char *map = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + whole, page, PROT_NONE) != 0) abort();
    return memcpy(map + whole - size, bytes, size);
}

void digest(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
}

void digest_end(const char *what)
{
    printf("%-12s %016llx\n", what, (unsigned long long)sum);
    sum = 14695981039346656037u;
}

/* The library names its own size of a struct when it refuses a longer one. */
static void say_size(exphil_context *context)
{
    struct {
        exphil_slp_config known;
        unsigned char more[256];
    } later = {EXPHIL_SLP_CONFIG_INIT, {0}};
    exphil_slp *slp = NULL;
    later.known.struct_size = sizeof later;
    memset(later.more, 1, sizeof later.more);
    CHECK(exphil_slp_read(context, "", 1, &later.known, &slp, error) == EXPHIL_E_VERSION);
    fprintf(stderr, "%d.%d.%d on %s: %s\n", EXPHIL_VERSION_MAJOR, EXPHIL_VERSION_MINOR, EXPHIL_VERSION_PATCH,
            exphil_version_string(), error->message);
}

int main(void)
{
    error = EDGE(exphil_error, EXPHIL_ERROR_INIT);
    CHECK(exphil_version() >= EXPHIL_VERSION);
    exphil_context *context = host_context();
    any_game(context);
    melee(context);
#if EXPHIL_VERSION >= 200
    games(context);
    told(context);
    outcome(context);
    learn(context);
    matches(context);
    live(context);
    ranks(context);
    ops(context);
#endif
    say_size(context);
    exphil_context_destroy(context);
    host_end();
    return 0;
}
