/* A training run as one page of HTML: no network, no script. */
#ifndef EXPHIL_CLI_REPORT_H
#define EXPHIL_CLI_REPORT_H

#include "runs.h"

#include <stdio.h>

/* What the page is made of; what is NULL is left out. */
typedef struct report_parts {
    const run *run;   /* always */
    const char *by;   /* the field of its held-out scores */
    json_t *weights;  /* facts of the weights, as an object */
    json_t *lines;    /* the last line of the log of each kind */
    json_t *examined; /* what exphil eval --json printed, of other data; NULL: the log's examination */
    const char *eval; /* and the name of that file */
} report_parts;

void report_page(FILE *file, const report_parts *parts);
void report_title(FILE *file, int level, const char *title, const char *about);
/* The curves of a log, of each field that it has (report_figures.c). False: said on stderr why not. */
bool report_curves(FILE *file, const char *log);
/* Share right by how sure the policy was: ten bins of a head. Nothing where they are none. */
void report_calibration(FILE *file, const char *head, json_t *bins);
/* Directions of the main stick, rows by what was recorded, columns by what the policy decides. False: these are none. */
bool report_stick(FILE *file, json_t *stick);
/* An examination and the frames that cost most; each may be NULL (report_examined.c). */
void report_examination(FILE *file, json_t *examination, json_t *mistakes, const char *about);

/* ---- JSON as text and tables (report_tables.c) --------------------------------------------------------- */

enum report_kind {
    REPORT_NUMBER,
    REPORT_SHARE, /* in percent, above a bar; a full one is all */
    REPORT_RATE   /* the same where shares are small: the longest bar is the largest of the table */
};
typedef struct report_column {
    const char *name; /* of the member */
    enum report_kind kind;
    const char *title;
} report_column;

/* Each name and its value, a line each. Objects are passed over. */
void report_facts(FILE *file, json_t *object);
/* A name, with spaces for what joins its words. */
void report_name(FILE *file, const char *name);
/* A row of numbers for each object in an object, behind its name; columns that no row has are left out. */
void report_table(FILE *file, json_t *rows, const report_column *columns, size_t count);

#endif
