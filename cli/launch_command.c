/* `exphil launch`: several processes of one command on this machine, watched and started again. Options. */
#include "commands.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

static launch_options asked = {.ranks = -1, .max_restarts = 3, .grace = 5.0};
static const option_entry entries[] = {
    {"ranks", OPTION_INT, &asked.ranks, "N",
     "how many, 1 to 256; -n N is the same (default: one for each GPU of --gpus)"},
    {"gpus", OPTION_TEXT, &asked.gpus, "LIST",
     "one GPU a rank, as 0,1,2 or GPU-...,GPU-...; or all: those of CUDA_VISIBLE_DEVICES, else of the "
     "machine (default: "
     "ranks see what launch sees)"},
    {"max-restarts", OPTION_INT, &asked.max_restarts, "K",
     "how often all are started again (default 3; 0: never)"},
    {"restart-arg", OPTION_TEXTS, &asked.restart_args, "WORD",
     "stands behind COMMAND's own from the second start on, may be repeated (default: none; exphil train and "
     "learn "
     "get --resume)"},
    {"keep-ranks", OPTION_FLAG, &asked.keep_ranks, NULL,
     "as many ranks in each start (default: one that failed twice without a checkpoint between is left out)"},
    {"grace", OPTION_NUMBER, &asked.grace, "SECONDS", "between SIGTERM and SIGKILL (default 5)"},
    {"log-dir", OPTION_TEXT, &asked.log_dir, "DIR",
     "output of rank 3 also goes to DIR/rank-3.log, behind what is there (default: none)"},
    {NULL, 0, NULL, NULL, NULL},
};

/* Returns 2, the exit status. */
static int wrong(const char *what)
{
    fprintf(stderr, "exphil: launch wants %s; see exphil launch --help\n", what);
    return 2;
}

/* Options stand before the first --, and -n is --ranks, as in mpirun and srun. Returns the command. */
static char **split(int *argc, char **argv)
{
    static char ranks[] = "--ranks";
    int i = 1;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-n") == 0) argv[i] = ranks;
    char **command = i + 1 < *argc ? argv + i + 1 : NULL;
    *argc = i;
    return command;
}

/* exphil train and exphil learn go on from their checkpoint when they are told. */
static bool resumes(char *const *command)
{
    const char *name = strrchr(command[0], '/');
    return strcmp(name ? name + 1 : command[0], "exphil") == 0 && command[1] &&
           (strcmp(command[1], "train") == 0 || strcmp(command[1], "learn") == 0);
}

/* A GPU for each rank, a rank for each GPU where nothing else is asked for. Returns the exit status. */
static int take_gpus(void)
{
    static char gpu[LAUNCH_RANKS_MOST][LAUNCH_NAME];
    if (!asked.gpus) return asked.ranks < 0 ? wrong("--ranks N or --gpus LIST") : 0;
    if (!launch_gpus(asked.gpus, gpu, &asked.gpu_count)) return strcmp(asked.gpus, "all") == 0 ? 1 : 2;
    asked.gpu = gpu;
    if (asked.ranks < 0) asked.ranks = asked.gpu_count;
    if (asked.ranks <= asked.gpu_count) return 0;
    fprintf(stderr, "exphil: --ranks %d: --gpus has %d\n", (int)asked.ranks, asked.gpu_count);
    return 2;
}

int launch_command(int argc, char **argv)
{
    static const option_command command = {
        .usage = "launch [OPTIONS] -- COMMAND [ARGUMENT]...",
        .about =
            "Runs COMMAND in N processes on this machine, its ranks, and watches them. Across machines take "
            "mpirun or srun.\n"
            "exphil launch --gpus all -- exphil train --device cuda ... trains one policy by all GPUs "
            "(NCCL).\n"
            "Each finds its place in EXPHIL_RANK, EXPHIL_RANKS, EXPHIL_LOCAL_RANK, EXPHIL_LOCAL_RANKS, and "
            "as with\n"
            "torchrun in RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. "
            "EXPHIL_RESTART is the\n"
            "number of the start, from 0. Rank 0 may write an id of at most 4096 bytes, in one write, to the "
            "descriptor\n"
            "EXPHIL_ID_OUT; the others read it, up to the end, from EXPHIL_ID_IN. For each checkpoint rank 0 "
            "may write a\n"
            "byte to EXPHIL_PROGRESS_OUT.\n"
            "Lines of rank 0 come as they are, those of rank 3 behind \"[3] \"; standard input is empty.\n"
            "All end with 0: the status is 0. One ends otherwise: the others get SIGTERM, and SIGKILL after "
            "--grace; by a\n"
            "signal or with status 75 (try again) all are started again, else that is the status. What a "
            "rank leaves\n"
            "running ends with it. SIGINT, SIGTERM and SIGHUP go to all ranks, which may then save and end; "
            "a second one\n"
            "kills them. They do not outlive launch.\n"
            "Status: that of the rank that failed first, 128 and the signal's number for a signal; 126 and "
            "127 where\n"
            "COMMAND cannot be run.",
        .entry = entries};
    int count, status;
    char **words = split(&argc, argv);
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count) return wrong("COMMAND behind --");
    if (!words) return wrong("-- and COMMAND");
    if ((status = take_gpus())) return status;
    asked.command = words;
    asked.exphil = resumes(words);
    return launch_ranks(&asked);
}
