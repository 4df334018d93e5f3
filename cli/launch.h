/* `exphil launch`: several processes of one command, its ranks, on this machine. launch_command.c has the options,
 * launch_gpus.c the GPUs, launch_ranks.c starts the ranks and watches them, launch_child.c is what a rank does before it is
 * the command, launch_log.c their output, launch_keeper.c the process that ends them should launch be killed. One thread;
 * every descriptor is closed on exec but those that a rank is to have. */
#ifndef EXPHIL_CLI_LAUNCH_H
#define EXPHIL_CLI_LAUNCH_H

#include "options.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { LAUNCH_RANKS_MOST = 256, LAUNCH_NAME = 80 };

typedef struct launch_options {
    char **command;              /* NULL ends it */
    bool exphil;                 /* it is exphil train or exphil learn, which know --resume */
    int64_t ranks, max_restarts; /* ranks -1: one a GPU */
    double grace;                /* seconds between SIGTERM and SIGKILL */
    bool keep_ranks;
    const char *gpus, *log_dir; /* may be NULL */
    text_list restart_args;
    char (*gpu)[LAUNCH_NAME]; /* what CUDA_VISIBLE_DEVICES may be, each for one rank; NULL without --gpus */
    int gpu_count;
} launch_options;

/* Reads --gpus: all, or GPUs as CUDA_VISIBLE_DEVICES names them. gpu: LAUNCH_RANKS_MOST names. False, said on stderr: there
 * are none, one is named twice, or it is no name. */
bool launch_gpus(const char *text, char (*gpu)[LAUNCH_NAME], int *count);

/* Runs it all; returns the exit status. */
int launch_ranks(const launch_options *o);

/* ---- output of the ranks (launch_log.c) -------------------------------------------------------------------- */

enum { LAUNCH_OUT, LAUNCH_ERR, LAUNCH_STREAMS };

/* One of the two streams of a rank: launch's end of its pipe, -1 when it is closed, and the line that has begun. */
typedef struct launch_stream {
    int fd, rank, which;
    char *text;
    size_t held, room;
} launch_stream;

/* From here on: lines of rank 0 come as they are, those of rank r behind "[r] ", each whole, whatever the others write; a
 * line of more than 256 KiB in pieces; a last line without an end gets one. With a folder, which is made if it is not there,
 * all lines of rank r also go behind what is in FOLDER/rank-r.log. False, said on stderr: they cannot. */
bool launch_log_begin(const char *folder);
/* A new start of this rank: notes that in its file. */
bool launch_log_rank(int rank, int ranks, int start);
/* Reads what is there at this moment, at most 16 KiB; false: nothing was. At the end of the stream it is closed. */
bool launch_log_read(launch_stream *s);
/* Reads all that is there at this moment. */
void launch_log_drain(launch_stream *s);
/* The same, and closes it. */
void launch_log_close(launch_stream *s);
/* May this be read now? No: what it leads to has much to take before. */
bool launch_log_open(const launch_stream *s);
/* What is to be waited for so that more can be written: room for LAUNCH_STREAMS; returns how many. */
int launch_log_poll(struct pollfd *wait);
/* Writes what can be written without waiting. */
void launch_log_write(void);
/* Is everything written, or nobody there to take it? */
bool launch_log_empty(void);
/* Closes all; true: nothing was lost, on a full disk say. */
bool launch_log_end(void);
/* A line of launch's own, on stderr, behind "exphil: ". */
void launch_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- a rank, before it is the command (launch_child.c) ------------------------------------------------------ */

/* What a rank is to be. Descriptors of launch; -1: none. */
typedef struct launch_place {
    int rank, ranks, start, port;
    const char *gpu; /* NULL: as launch has it */
    char **command;
    int out, err, id_in, id_out, progress;
    int slots[2];       /* numbers under which the command finds id and progress */
    int keeper, failed; /* where the process is told, and errno when the command cannot be run */
    pid_t launch;
    struct rlimit files; /* as launch found it */
} launch_place;

/* Never returns. All signals are blocked. */
_Noreturn void launch_child(const launch_place *place);

/* ---- the keeper (launch_keeper.c) --------------------------------------------------------------------------- */

/* A process of its own that does nothing but wait for the end of launch, and then ends the process groups that it has
 * been told of and that are not done: SIGTERM, SIGKILL after grace. Returns the descriptor by which it is told; -1: said on
 * stderr. */
int launch_keeper_begin(double grace);
/* This group is there, or done. Called by ranks, too. */
void launch_keeper_tell(int keeper, pid_t group, bool there);

/* ---- shared ------------------------------------------------------------------------------------------------- */

/* A pipe that no command inherits; false: errno says why. */
bool launch_pipe(int ends[2]);
void launch_close(int *fd);
/* To a process group that may have ended. A stopped process must go on to hear it. */
void launch_signal(pid_t group, int which);
bool launch_group_there(pid_t group);

#endif
