/* How often each word came. */
#ifndef EXPHIL_CLI_TALLY_H
#define EXPHIL_CLI_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Of each word the first that it came with. */
enum { TALLY_NAMES = 3 };

typedef struct tally {
    struct counted {
        char *word;
        int64_t count;
        char *name[TALLY_NAMES]; /* NULL: none */
    } * of;
    size_t count, capacity;
} tally;

/* False: no memory. */
bool tally_word(tally *t, const char *word);
/* A reason of the library. Byte offsets, values, names in quotes and who plays are dropped, so that the same reason is one.
 * name, which may be NULL: of the file. */
bool tally_reason(tally *t, const char *reason, const char *name);
/* "reason (a.slp, b.slp and 2 more)". */
void tally_print(FILE *out, const struct counted *reason);
/* The commonest first, then by the alphabet. */
void tally_sort(tally *t);
void tally_free(tally *t);

#endif
