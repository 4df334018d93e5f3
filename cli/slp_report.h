/* What replays say about themselves, for people and for programs. Nothing in it names a person. */
#ifndef EXPHIL_CLI_SLP_REPORT_H
#define EXPHIL_CLI_SLP_REPORT_H

#include <exphil/slp.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One replay on a page; verbose adds what few people want to know. */
void slp_report_page(FILE *out, const char *name, const exphil_slp *slp, bool verbose);
/* One line. slp may be NULL, when error says why. game: what a corpus of games says of it, for the key "game"; taken; NULL:
 * it is a replay. */
void slp_report_json(FILE *out, const char *name, const exphil_slp *slp, json_t *game,
                     const exphil_error *error);

/* Many replays: a line each, then what they are together. */
typedef struct slp_table slp_table;
slp_table *slp_table_make(void); /* NULL: no memory */
bool slp_table_add(slp_table *table, const char *name, const exphil_slp *slp);
/* A file that cannot be read: counted by its reason. */
bool slp_table_refuse(slp_table *table, const char *reason);
/* files: how many were looked at; a corpus is one of many games. */
void slp_table_print(FILE *out, slp_table *table, int64_t files, bool verbose);
void slp_table_free(slp_table *table);

#endif
