/* A training run as one page of HTML: no network, no script. */
#ifndef EXPHIL_CLI_REPORT_H
#define EXPHIL_CLI_REPORT_H

#include "runs.h"

#include <stdio.h>

/* What the page is made of; what is NULL is left out. */
typedef struct report_parts {
    const run *run;   /* always */
    json_t *weights;  /* facts of the weights, as an object */
    json_t *scores;   /* the last lines of the log, by kind */
    json_t *examined; /* what exphil eval --json printed */
} report_parts;

void report_page(FILE *file, const report_parts *parts);
/* The curves of a log, of each field that it has (report_figures.c). False: said on stderr why not. */
bool report_curves(FILE *file, const char *log);
/* Share right by how sure the policy was: of rows with confidence and accuracy. False: these are none. */
bool report_calibration(FILE *file, json_t *rows);
/* Rows of counts by what was recorded, columns by what the policy took, with labels where there are. False: it is none. */
bool report_confusion(FILE *file, json_t *matrix, json_t *labels);

/* ---- JSON as text and tables (report_tables.c) --------------------------------------------------------- */

/* Each name and its value, a line each. Objects and arrays are passed over. */
void report_facts(FILE *file, json_t *object);
/* Are these rows: an array of objects, or an object of objects? */
bool report_are_rows(json_t *value);
void report_rows(FILE *file, json_t *rows);
/* A value as it stands in a cell; name says what it is: shares are told in percent. */
void report_value(FILE *file, const char *name, json_t *value);

#endif
