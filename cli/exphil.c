/* The exphil program: reads replays, trains, evaluates and plays policies, draws training logs. */
#include "commands.h"
#include "slp_command.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} command;

static const command commands[] = {
    {"slp", slp_command, "look into replays: info, dump, verify"},
    {"train", train_command, "train a policy on replays or a corpus"},
    {"eval", eval_command, "score a policy against recorded play, beside its baselines"},
    {"play", play_command, "play a policy frame by frame through a replay"},
    {"review", review_command, "where a recorded game turned, and what a policy would have done there"},
    {"learn", learn_command, "a policy plays a game and learns from what comes of it"},
    {"match", match_command, "policies against each other, and who wins how often"},
    {"corpus", corpus_command,
     "turn replays into a corpus, of games or of rows; select games; verify corpora"},
    {"quantize", quantize_command, "weights of fewer bits: smaller, faster, and how much they differ"},
    {"export", export_command, "a policy for other runtimes: its step as an ONNX graph"},
    {"info", info_command, "what a weights, corpus or replay file holds"},
    {"devices", devices_command, "what --device may be here, and which of them auto takes"},
    {"launch", launch_command, "a command as several ranks on this machine, watched and started again"},
    {"plot", plot_command, "draw training logs as SVG"},
    {"runs", runs_command, "a table of training runs, and the options in which they differ"},
    {"report", report_command, "a training run as one page of HTML"},
    {"drill", drill_command, "a small scripted world: something to learn and to play"},
#ifdef EXPHIL_HAVE_BENCH
    {"bench", bench_command, "measure this machine: steps, training, kernels, data"},
#endif
};

static void show_help(void)
{
    printf("usage: exphil COMMAND [OPTIONS] ...\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].about);
    printf("\n  --version  version of the library, instruction set in use\n\n"
           "exphil COMMAND --help (or help COMMAND) tells its options. With --json a command\n"
           "prints one JSON object, slp info one for each file.\n\n"
           "Environment: EXPHIL_CPU_ISA (instruction set at most), EXPHIL_BACKEND_DIR (folder of the\n"
           "CUDA plugin), EXPHIL_CUBLASLT, EXPHIL_CUDNN and EXPHIL_NCCL (their paths, or none),\n"
           "EXPHIL_CUBLASLT_CHOICES (file of bench tune), EXPHIL_CUDA_JOIN=none (a step on a GPU is not\n"
           "one launch), EXPHIL_CUDA_OVERLAP=none (kernels wait for the end of those before them),\n"
           "EXPHIL_MPI_LIBRARY (libexphil_mpi, for --mpi), EXPHIL_WORLDS (folder of worlds), TMPDIR\n"
           "(folder of temporary files; on Windows TMP or TEMP), CUDA_VISIBLE_DEVICES. The manual page\n"
           "tells more. On Windows there are no launch, no --mpi and no GPUs.\n"
           "Exit status: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by "
           "SIGHUP.\n");
}

/* With the instruction set that a context gets here, as EXPHIL_CPU_ISA caps it. */
static int show_version(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_context *context = NULL;
    config.threads = 1;
    bool known = exphil_context_create(&config, &context, NULL) >= 0 &&
                 exphil_context_device(context, &device, NULL) >= 0;
    printf("exphil %s%s%s\n", exphil_version_string(), known ? ", here " : "", known ? device.isa : "");
    exphil_context_destroy(context);
    return 0;
}

/* The list of commands would push the mistake out of sight. */
static int unknown(const char *name)
{
    char shown[256];
    foreign_text(name, shown, sizeof shown);
    fprintf(stderr, "exphil: unknown command %s; exphil --help lists them\n", shown);
    return 2;
}

/* "help train" is "train --help". */
static int help_with(char *name)
{
    char help[] = "--help";
    char *arguments[] = {name, help, NULL};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(2, arguments);
    return unknown(name);
}

static int run(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "help") == 0) return help_with(argv[2]);
    if (argc >= 2 &&
        (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        show_help();
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) return show_version();
    for (size_t i = 0; argc >= 2 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    if (argc >= 2) return unknown(argv[1]);
    fprintf(stderr, "usage: exphil COMMAND [OPTIONS] ...\nexphil: which command? exphil --help lists them\n");
    return 2;
}

/* Results that did not arrive, on a full disk say, are no success. */
int main(int argc, char **argv)
{
    system_begin(&argc, &argv);
    int status = run(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "exphil: the output could not be written in full\n");
    return status ? status : 1;
}
