/* How often each word came. */
#ifndef EXPHIL_CLI_TALLY_H
#define EXPHIL_CLI_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tally {
    struct counted {
        char *word;
        int64_t count;
    } * of;
    size_t count, capacity;
} tally;

/* False: no memory. */
bool tally_word(tally *t, const char *word);
/* A reason of the library. Byte offsets, values and names in quotes are dropped, so that the same reason is one. */
bool tally_reason(tally *t, const char *reason);
/* The commonest first, then by the alphabet. */
void tally_sort(tally *t);
void tally_free(tally *t);

#endif
