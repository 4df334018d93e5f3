/* What the programs of this folder share: options, the device, rows of JSON, the clock. What fails is said with
 * the program's name and ends it. */
#ifndef EXPHIL_CARD_PROGRAM_H
#define EXPHIL_CARD_PROGRAM_H

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

enum { CARD_ASIDE = 77 }; /* exit status: no such device */

/* [--device cuda:0] [--backend FOLDER] [--json] [--smoke] [WORD]... */
typedef struct card_options {
    const char *device, *backend;
    bool smoke, json;
    char **words;
    int count; /* 0: all that there is */
} card_options;

card_options card_options_of(int count, char **words);
bool card_asked_for(const card_options *o, const char *word);

/* threads as in the configuration. The first call ends with CARD_ASIDE where there is no such device. */
exphil_context *card_open(const card_options *o, int32_t threads);
void card_must(const char *what, exphil_status status, const exphil_error *error); /* error may be NULL */
/* A line of JSON, where the options ask for it; takes the row. */
void card_row(const card_options *o, json_t *row);

double card_now(void); /* seconds */
/* Sorts the samples. */
double card_median(double *sample, int64_t count);

#endif
