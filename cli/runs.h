/* Training runs found in folders: by what each leaves beside its weights, and by their logs. */
#ifndef EXPHIL_CLI_RUNS_H
#define EXPHIL_CLI_RUNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct run {
    char *name;      /* OUT, as found; of a log alone its own */
    char *log;       /* NULL: none was found */
    json_t *record;  /* OUT.run.json; NULL: a log alone */
    json_t *options; /* all of them, files among them; NULL without a record */
    char started[24];
    double updates, planned,
        speed; /* made, asked for (0: not known), frames a second at the end (0: not known) */
    double best, best_update, last; /* of held-out scores */
    bool scored;
} run;

typedef struct run_list {
    run *of;
    size_t count, capacity;
    const char *by; /* the field of held-out scores that best and last are of; NULL: runs_read chooses */
} run_list;

/* Finds the runs in a folder and its folders, or that of one file. False: said on stderr why not; what is damaged is said and
 * left out. */
bool runs_find(run_list *list, const char *path);
/* Reads the logs of all that were found. Where by is NULL it becomes what every run chose its best weights by, or nll. A run
 * whose log is damaged is said and left out. */
void runs_read(run_list *list);
/* Best first, runs without scores last, then by name. */
void runs_sort(run_list *list);
/* The names of options in which the runs differ, as an array; where results go is no difference. */
json_t *runs_differences(const run_list *list);
void runs_free(run_list *list);
/* Is more of it better? Shares of frames that are right are, losses not. */
bool field_is_share(const char *field);

#endif
