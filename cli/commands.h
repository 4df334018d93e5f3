/* The commands of the exphil program; each returns the exit status: 0 done, 1 failed, 2 wrong usage, 128 + the
 * number of the signal that stopped it (130: Ctrl-C). argv[0] is the command's name. */
#ifndef EXPHIL_CLI_COMMANDS_H
#define EXPHIL_CLI_COMMANDS_H

#include "file_list.h"
#include "rewards.h"
#include "select.h"

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

#define DEVICE_HELP "cpu (default), cuda, cuda:1, auto: a GPU if there is one; exphil devices lists them"
#define LIMIT_HELP  "most memory of the device, as 512MiB or 8GiB; data are not counted (default: no limit)"
#define FILES_HELP                                                                                           \
  ".slp replays, also compressed (.gz .bz2 .xz .zst) or in archives (.zip .7z .tar); corpora of games;\n"    \
  "folders of them"
#define OR_ROWS_HELP "; or one corpus of rows."
#define ISA_HELP                                                                                             \
  "instruction set at most: ref, avx2, avx2vnni, avx512, avx512vnni, avx512bf16, neon, neondot "             \
  "(default: the best)"

int train_command(int argc, char **argv);
int eval_command(int argc, char **argv);
int play_command(int argc, char **argv);
int learn_command(int argc, char **argv);
int match_command(int argc, char **argv);
int review_command(int argc, char **argv);
int corpus_command(int argc, char **argv);
int info_command(int argc, char **argv);
int quantize_command(int argc, char **argv);
int export_command(int argc, char **argv);
int plot_command(int argc, char **argv);
int runs_command(int argc, char **argv);
int report_command(int argc, char **argv);
int drill_command(int argc, char **argv);
int launch_command(int argc, char **argv);
int devices_command(int argc, char **argv);
int bench_command(int argc, char **argv);

/* ---- shared by the commands (data.c, console.c) -------------------------------------------------------- */

/* Which frames to take from which files. */
typedef struct data_options {
    const char *layout, *codec;
    select_options select;
    file_choice files;      /* beside those on the command line */
    const char *if_weights; /* what to say when weights stand where data should */
    struct {
        const char *option, *path;  /* both NULL: none */
    } outputs[6];                   /* what the command will write: never one of the files that it reads */
    bool quiet;                     /* say only what is left out, and what is wrong */
    struct replay_table *tables[2]; /* given to the data in this order; NULL: none */
    const rewards_options *rewards; /* of each frame, for exphil_batch.returns; NULL: none */
    int64_t threads;                /* for replays that are selected; 0: one per core */
    exphil_cancel_fn cancel;        /* may be NULL */
} data_options;

/* What a command computes on; NULL and 0: the library's defaults. */
typedef struct machine_options {
    const char *device, *isa;
    int64_t threads;
    uint64_t memory_limit;
    bool quiet; /* warnings alone are told of the device */
} machine_options;

/* A context for the command line; prints why not and returns false. machine NULL: one thread of the CPU. cancel may be
 * NULL. */
bool open_context(const machine_options *machine, exphil_cancel_fn cancel, exphil_context **context);
/* Weights, recognised by content; hint is what to say when they are something else. */
bool load_weights(exphil_context *context, const char *path, const char *hint, exphil_model **model);
/* Files may be .slp replays, also in archives, corpora of games, folders of them (searched through), what --files-from
 * names, or one corpus of rows. Replays in folders, archives and lists that cannot be read or have no such player are counted
 * on stderr by their reason and left out; those named one by one fail, and corpora. With a filter (select_filters) all
 * replays together are selected from as a corpus of games is, behind the corpora; else each is added by itself. */
bool load_dataset(exphil_context *context, const exphil_spec *spec, const data_options *options, int count,
                  char **paths, exphil_dataset **dataset);
/* Is all the data one corpus of rows, which has a spec of its own? */
bool is_one_corpus(const data_options *options, int count, char **paths);
/* Is there anything to read: on the command line, or by --files-from? */
bool any_files(const data_options *options, int count);
/* f32, tf32, bf16 or f16 as EXPHIL_PRECISION_...; NULL is f32. False with a message. */
bool precision_of(const char *name, int32_t *precision);
/* The preset that options ask for. */
bool preset_spec(const data_options *options, exphil_spec *spec);

/* "exphil: <what>: <status name>: <message>" on stderr; returns 1, the exit status. What a signal stopped needs no
 * complaint: stop_status. */
int complain(const char *what, const exphil_error *error);
/* What is wrong, without the path that messages of the library begin with. */
const char *error_reason(const exphil_error *error, const char *path);
/* From here on, complaints that memory is short tell this limit too. */
void complain_of_limit(uint64_t bytes);
/* One JSON object on stdout, with a line end; takes the reference. Returns the exit status: 1, said on stderr, when there
 * is none. */
int print_json(json_t *object);
/* A path, null when it is not UTF-8: JSON cannot hold its bytes. */
json_t *path_json(const char *path);
json_t *report_json(const exphil_report *report, const exphil_spec *spec);
/* slots: past actions that are inputs of the policy. */
void print_report(const exphil_report *report, const exphil_spec *spec, int64_t slots);
/* A paragraph on stdout, in lines of at most 100 columns. */
void print_paragraph(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A text of somebody's file for a terminal: what that would obey, controls and marks of direction, becomes '?'. */
void foreign_text(const char *text, char *to, size_t size);
/* Frames on which train and eval measure a policy with its own decisions as past actions. */
#define ALONE_HELP                                                                                           \
  "frames, in whole episodes, on which its own decisions are its past actions (default 20000; 0: none)"
enum { ALONE_FRAMES = 20000 };
/* "latency of a step: ..." without a line end: quantiles are upper edges of buckets. */
void print_latency(const exphil_session_info *info);
/* The type of stored matrices: "f32", "f64", "bf16", "int8". */
const char *weights_word(int32_t type);
json_t *comparison_json(const exphil_comparison *comparison, const exphil_spec *spec);
void print_comparison(const exphil_comparison *comparison, const exphil_spec *spec);

/* Progress of a long command: a bar on a terminal, a plain line every few seconds elsewhere, nothing when quiet. */
typedef struct progress {
    bool terminal, quiet;
    int64_t began_ns, shown_ns, total;
    int64_t start;
} progress;
void progress_begin(progress *bar, int64_t start, int64_t total, bool quiet);
/* held_out: what stands behind the loss, or "". */
void progress_show(progress *bar, int64_t done, double loss, const char *held_out, double frames_per_second,
                   bool last);
/* The same of what is counted: done of the total, in units of `what`, then the text. */
void progress_count(progress *bar, int64_t done, const char *what, const char *text, bool last);
/* Takes a bar off the terminal; lines stay. */
void progress_clear(const progress *bar);
int64_t now_ns(void);
/* What a word gets behind this number: "s", or nothing behind 1. */
const char *plural(int64_t number);
/* "exphil: <path>: <errno in words>" on stderr; returns false. */
bool complain_of_file(const char *path);

#endif
