/* The commands of the exphil program; each returns the exit status: 0 done, 1 failed, 2 wrong usage. argv[0] is the
 * command's name. */
#ifndef EXPHIL_TOOLS_COMMANDS_H
#define EXPHIL_TOOLS_COMMANDS_H

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

int train_command(int argc, char **argv);
int eval_command(int argc, char **argv);
int play_command(int argc, char **argv);
int corpus_command(int argc, char **argv);
int info_command(int argc, char **argv);
int plot_command(int argc, char **argv);
int drill_command(int argc, char **argv);

/* ---- shared by the commands (data.c, console.c) ---------------------------------------------------------------- */

/* Which frames to take from which files. */
typedef struct data_options {
    const char *layout, *codec, *character;
    int64_t port, opponent, first, last;
} data_options;

/* A context for the command line; prints why not and returns false. */
bool open_context(int64_t threads, const char *device, const char *isa, exphil_context **context);
/* Files may be .slp replays, folders of them (searched through), or one corpus. Unreadable replays in folders are
 * named on stderr and passed over; those named one by one fail. */
bool load_dataset(exphil_context *context, const exphil_spec *spec, const data_options *options, int count, char **paths,
                  exphil_dataset **dataset);
/* The preset that options ask for. */
bool preset_spec(const data_options *options, exphil_spec *spec);

/* "exphil: <what>: <status name>: <message>" on stderr; returns 1, the exit status. */
int complain(const char *what, const exphil_error *error);
/* One JSON object on stdout, with a line end; takes the reference. */
void print_json(json_t *object);
json_t *report_json(const exphil_report *report, const exphil_spec *spec);
void print_report(const exphil_report *report, const exphil_spec *spec);

/* Progress of a long command: a bar on a terminal, a plain line every few seconds elsewhere, nothing when quiet. */
typedef struct progress { bool terminal, quiet; int64_t began_ns, shown_ns, total; int64_t start; } progress;
void progress_begin(progress *bar, int64_t start, int64_t total, bool quiet);
void progress_show(progress *bar, int64_t done, double loss, double frames_per_second, bool last);
int64_t now_ns(void);

#endif
