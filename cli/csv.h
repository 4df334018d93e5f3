/* Files of comma-separated values, line by line (RFC 4180, but for line ends in quotes). */
#ifndef EXPHIL_CLI_CSV_H
#define EXPHIL_CLI_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CSV_FIELDS = 16 };

typedef struct csv {
    const char *option, *path; /* borrowed; for what is said */
    FILE *file;
    char *text;
    size_t room;
    int64_t line; /* from 1 */
    char *field[CSV_FIELDS];
    int64_t fields;
} csv;

/* False: said on stderr why not. */
bool csv_open(csv *from, const char *option, const char *path);
void csv_close(csv *from);
/* The next line that is not empty, cut into fields: 1; 0: the end; -1: said what is wrong. */
int csv_next(csv *from);
/* "exphil: --OPTION: PATH:LINE: column COLUMN (NAME): WHAT" on stderr; without a name, of the whole line. Returns false. */
bool csv_wrong(const csv *from, int64_t column, const char *name, const char *what);

#endif
