/* The words of the program: see say.h. */
#include "say.h"

#include <stdio.h>

void bench_say(const char *about, const char *what)
{
    fprintf(stderr, "exphil: bench: %s%s%s\n", about ? about : "", about ? ": " : "", what);
}
