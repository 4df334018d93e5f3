/* `exphil bench`: how fast this machine steps, trains and reads, and how fast the hardware would allow it
 * to. */
#include "bench_ranks.h"
#include "commands.h"
#include "files.h"
#include "options.h"

#include "bench.h"
#include "serve.h"

#include <stdio.h>
#include <string.h>

typedef struct subject {
    const char *name;
    bool (*run)(bench_report *report, const bench_options *options);
    const char *about;
} subject;

static bool only_floors(bench_report *report, const bench_options *options)
{
    (void)report, (void)options;
    return true;
}

static const subject subjects[] = {
    {"floors", only_floors, "what one core can do: multiply-adds, reading memory"},
    {"step", bench_step, "one decision of a policy: warm, cold, at 60 Hz, of many players"},
    {"host", bench_host, "what the processor does in a step of players on a GPU, without one"},
    {"train", bench_train, "one update of small policies, on one thread and on two"},
    {"ranks", bench_ranks, "one update by several ranks, and what they take to meet (--mpi)"},
    {"tune", bench_tune, "algorithms of cuBLASLt for an update and a step, kept in a file (--choices)"},
    {"data", bench_data, "replays to rows, opening and reading a corpus"},
    {"kernels", bench_kernels, "every operation at the shapes of training and of play"},
};

typedef struct output {
    const char *out, *plot;
    bool json, plain, force;
} output;

static const subject *subject_of(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(subjects[i].name, name) == 0) return &subjects[i];
    return NULL;
}

static bool give(bench_report *report, const output *to)
{
    bool good = true;
    if (to->plot) good = bench_chart(report->root, to->plot);
    if (to->out && !bench_write_json(report->root, to->out, JSON_INDENT(1) | JSON_REAL_PRECISION(8))) {
        fprintf(stderr, "exphil: %s: cannot be written\n", to->out);
        good = false;
    }
    if (to->json)
        good = print_json(json_incref(report->root)) == 0 && good;
    else if (report->met + report->missed)
        printf("%d of %d goals met\n", (int)report->met, (int)(report->met + report->missed));
    return good;
}

/* Training is timed on two threads too. */
static int threads_of(const subject *s, const bench_options *options)
{
    if (options->threads) return (int)options->threads;
    return s->run == bench_train && bench_cores() > 1 ? 2 : 1;
}

static int bench(const subject *s, bench_options *options, const output *to)
{
    bench_report report;
    /* Ranks wait for each other, on cores that their launcher gave them. */
    bool alone = !options->communicator, placed = alone && !to->plain, floors = alone && s->run != bench_tune;
    bench_place place = bench_take_place(placed, placed);
    if (!bench_report_begin(&report, s->name, to->json, &place)) {
        fprintf(stderr, "exphil: bench: cannot tell the machine\n");
        return 1;
    }
    if (!place.fifo && placed)
        bench_report_note(&report,
                          "without real-time priority (needs root or CAP_SYS_NICE): tails are those of a "
                          "machine that is shared");
    if (floors) {
        bench_floors_measure(&options->floors, threads_of(s, options), options->quick ? 1e6 : 60e6);
        bench_report_floors(&report, &options->floors);
    }
    bool good = s->run(&report, options);
    if (good && options->filters && report.count == 0 && s->run != bench_tune) {
        fprintf(stderr, "exphil: bench %s: no row's name holds a word that was given\n", s->name);
        good = false;
    }
    good = give(&report, to) && good;
    json_decref(report.root);
    return good ? 0 : 1;
}

/* Does this instruction set exist? The library knows. */
static bool isa_known(const char *isa)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.cpu_isa = isa;
    if (exphil_context_create(&config, &context, &error) < 0) {
        fprintf(stderr, "exphil: --isa: %s\n", error.message);
        return false;
    }
    exphil_context_destroy(context);
    return true;
}

/* Refused before anything is measured. */
static bool device_known(const char *device)
{
    const machine_options machine = {.device = device, .threads = 1};
    exphil_context *context = NULL;
    if (!open_context(&machine, NULL, &context)) return false;
    exphil_context_destroy(context);
    return true;
}

static bool check(const bench_options *o, const subject *s, const output *to)
{
    bool joint = s->run == bench_ranks, trains = joint || s->run == bench_train, tunes = s->run == bench_tune;
    if (tunes ? !o->device || !o->choices : o->choices != NULL) {
        fprintf(stderr, "exphil: --choices is for `exphil bench tune`, which wants it and --device\n");
        return false;
    }
    if (o->device && !trains && !tunes) {
        fprintf(stderr,
                "exphil: --device is for `exphil bench train`, tune and ranks; the others measure the "
                "processor\n");
        return false;
    }
    if (o->memory_limit && !trains) {
        fprintf(stderr, "exphil: --memory-limit is for `exphil bench train` and ranks\n");
        return false;
    }
    if (joint && (o->roofline || to->plot)) {
        fprintf(stderr, "exphil: bench ranks has no floors: --%s is for others\n",
                o->roofline ? "roofline" : "plot");
        return false;
    }
    if (o->threads < 0 || o->threads > 64) {
        fprintf(stderr, "exphil: --threads wants 1 to 64\n");
        return false;
    }
    if (!(o->effort > 0 && o->effort <= 100)) {
        fprintf(stderr, "exphil: --effort wants a number above 0, at most 100\n");
        return false;
    }
    if (o->roofline && !o->device) {
        fprintf(stderr, "exphil: --roofline wants --device, the processor has `exphil bench kernels`\n");
        return false;
    }
    return isa_known(o->isa);
}

/* What was requested. */
static bench_options asked = {.effort = 1, .batch = 64, .time = 60};

static bool outputs_free(const output *to, const char *weights)
{
    return output_spares("out", to->out, weights) && output_spares("plot", to->plot, weights) &&
           output_spares("plot", to->plot, to->out) &&
           (!asked.choices || output_free("choices", asked.choices, OUTPUT_IN_PLACE, to->force)) &&
           (!to->out || output_free("out", to->out, OUTPUT_IN_PLACE, to->force)) &&
           (!to->plot || output_free("plot", to->plot, OUTPUT_IN_PLACE, to->force));
}

static bool mpi;
static output results;
static const char *precision;

static const option_entry entries[] = {
    {"isa", OPTION_TEXT, &asked.isa, "NAME",
     "instruction set at most: ref, avx2, avx2vnni, avx512, avx512vnni, avx512bf16, neon, neondot "
     "(default: the best)"},
    {"weights", OPTION_TEXT, &asked.weights, "FILE",
     "step, tune, ranks: of this policy (default: drawn ones of usual shapes)"},
    {"mpi", OPTION_FLAG, &mpi, NULL, "ranks: this process is one of several, started by mpirun or srun"},
    {"batch", OPTION_INT, &asked.batch, "N",
     "ranks, tune --weights: sequences at a time, of each rank (default 64)"},
    {"time", OPTION_INT, &asked.time, "N", "ranks, tune --weights: frames of a sequence (default 60)"},
    {"threads", OPTION_INT, &asked.threads, "N",
     "kernels: on so many threads (default 1); train: these only; ranks: each (default: its share of the "
     "machine)"},
    {"device", OPTION_TEXT, &asked.device, "NAME",
     "train, tune, ranks: on this device, as cuda:0 (default: the processor); exphil devices lists them"},
    {"memory-limit", OPTION_BYTES, &asked.memory_limit, "BYTES", "train, ranks: " LIMIT_HELP},
    {"precision", OPTION_TEXT, &precision, "NAME",
     "train, tune, ranks: f32, tf32, bf16 or f16, as the device has them (default: f32)"},
    {"roofline", OPTION_FLAG, &asked.roofline, NULL,
     "train: time, bytes and bound of every operation of an update"},
    {"choices", OPTION_TEXT, &asked.choices, "FILE",
     "tune: where the choices go; runs take them by EXPHIL_CUBLASLT_CHOICES=FILE"},
    {"candidates", OPTION_FLAG, &asked.candidates, NULL,
     "kernels: every way of computing it, not only the chosen"},
    {"replays", OPTION_TEXT, &asked.replays, "FOLDER",
     "data: replays to read (default: none, that part is left out)"},
    {"large", OPTION_TEXT, &asked.large, "FILE",
     "data: keep the large corpus of games, copies of the replays with other seeds (default: removed)"},
    {"large-frames", OPTION_INT, &asked.large_frames, "N",
     "data: of the large corpus of games (default: 10 million)"},
    {"folder", OPTION_TEXT, &asked.folder, "FOLDER",
     "data: where to put a corpus for a while (default: /tmp, or a folder for temporary files)"},
    {"effort", OPTION_NUMBER, &asked.effort, "X", "so many times the usual time for each row (default 1)"},
    {"quick", OPTION_FLAG, &asked.quick, NULL, "everything once and small: does it run?"},
    {"plain", OPTION_FLAG, &results.plain, NULL, "neither pinned to a core nor with real-time priority"},
    {"out", OPTION_TEXT, &results.out, "FILE", "also write the result as JSON"},
    {"plot", OPTION_TEXT, &results.plot, "FILE.svg", "also draw the shares of the floors"},
    {"force", OPTION_FLAG, &results.force, NULL, "replace these files if they are there (default: refuse)"},
    {"json", OPTION_FLAG, &results.json, NULL, "print one JSON object (default: a table while it runs)"},
    {NULL, 0, NULL, NULL, NULL},
};
static const option_command command = {
    .usage = "bench [OPTIONS] SUBJECT [WORD]...",
    .about =
        "Measures this machine. SUBJECT is\n"
        "  floors   what one core can do: multiply-adds, reading memory\n"
        "  step     one decision of a policy: warm, cold, at 60 Hz, of many players\n"
        "  host     what the processor does in a step of players on a GPU, without one\n"
        "  train    one update of small policies, on one thread and on two\n"
        "  ranks    one update by several ranks, and what they take to meet: mpirun -n 2 exphil bench ranks "
        "--mpi\n"
        "  tune     algorithms of cuBLASLt for an update and a step, kept in a file (--choices): of a policy "
        "of\n"
        "           yours (--weights, and --batch and --time of its training), or of bench train's own\n"
        "  data     replays to rows, opening and reading a corpus\n"
        "  kernels  every operation at the shapes of training and of play\n"
        "With WORDs only rows are measured whose name holds one of them.\n"
        "A row has the median of rounds that take turns, their quartiles and tail, and beside it the floor: "
        "the\ntime that the processor or its memory needs at least, measured in the same run.\n"
        "\"<= 60 us: met\" compares with a goal that the library sets itself; a goal that a machine\n"
        "misses is no fault of the installation. \"(floor's 3.1)\" is the tail of a bare loop that was\n"
        "measured in turns with the row: what the machine does to anything that long.",
    .entry = entries};

/* Of ranks the first alone tells and writes. */
static int subject_run(const subject *s)
{
    int32_t chosen = 0;
    ranks *all = NULL;
    if (!precision_of(precision, &chosen) || !check(&asked, s, &results)) return 2;
    asked.precision = chosen;
    if (asked.device && !device_known(asked.device)) return 1;
    if (!bench_ranks_open(mpi, s->run == bench_ranks, &asked, &all)) return ranks_end(all, 2);
    if (!ranks_first(all)) results = (output){.json = results.json};
    if (!ranks_all(all, outputs_free(&results, asked.weights))) return ranks_end(all, 1);
    int status = bench(s, &asked, &results);
    ranks_together(all, status == 0);
    return ranks_end(all, status);
}

int bench_command(int argc, char **argv)
{
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    const subject *s = count >= 1 ? subject_of(argv[1]) : NULL;
    if (count >= 1 && strcmp(argv[1], "serve") == 0) {
        bench_take_place(!results.plain, !results.plain);
        return bench_serve(&asked, count - 1, argv + 2);
    }
    if (!s) {
        if (count) fprintf(stderr, "exphil: %s is no subject of bench\n", argv[1]);
        fprintf(stderr, "exphil: bench wants a subject:\n");
        for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
            fprintf(stderr, "  %-8s %s\n", subjects[i].name, subjects[i].about);
        return 2;
    }
    asked.filters = count - 1;
    asked.filter = argv + 2;
    return subject_run(s);
}
