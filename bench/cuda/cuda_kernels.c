/* How long the operations of a device take, beside what a copy on it moves in that time. Each operation is
 * recorded as many times as make a replay take milliseconds, on several sets of arguments in turn, which
 * together are larger than any cache; the result is the median over replays. Operations are those of table A
 * as the library calls them, so the candidate that is timed is the one that runs.
 *
 *   cuda_kernels [--device cuda:0] [--backend FOLDER] [--json] [--smoke] [SUBJECT]...
 *   cuda_kernels --subjects
 *
 * --subjects: their names, a line each; no device is opened. --json: each row as a line of JSON when it is
 * known. --smoke: small shapes, once each, to check that it runs, also on the emulated GPU. Exit status 77:
 * no such device. */
#include "cuda_kernels.h"
#include "card_program.h"

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS = 15, MOST_SETS = 16 };
static const double REPLAY_SECONDS = 4e-3, SETS_BYTES = 256e6; /* four times the largest cache of today */

static void must(const char *what, exphil_status status)
{
    card_must(what, status, NULL);
}

/* ---- memory of a case ---- */

size_t card_size(xph_type type)
{
    return type == XPH_F32 ? 4 : 2;
}

static void *allocate(card *c, size_t bytes)
{
    if (c->blocks == CARD_BLOCKS) must("blocks", EXPHIL_E_INTERNAL);
    void *at = NULL;
    must("memory of the device", c->backend->alloc(c->device, bytes ? bytes : 1, &at));
    c->block[c->blocks].at = at;
    c->block[c->blocks++].bytes = bytes ? bytes : 1;
    c->set_bytes += (double)bytes;
    return at;
}

static void give_back(card *c)
{
    must("waiting", c->backend->stream_wait(c->stream));
    while (c->blocks) {
        c->blocks--;
        c->backend->free(c->device, c->block[c->blocks].at, c->block[c->blocks].bytes);
    }
    c->set_bytes = 0;
}

void *card_zeros(card *c, size_t bytes)
{
    void *at = allocate(c, bytes);
    must("zeros", c->backend->zero(c->stream, at, bytes));
    return at;
}

void *card_bytes(card *c, const void *from, size_t bytes)
{
    void *at = allocate(c, bytes);
    must("upload", c->backend->upload(c->stream, at, from, bytes));
    must("waiting", c->backend->stream_wait(c->stream));
    return at;
}

static uint16_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* The first numbers by the host, the others copies of them by the device. */
void *card_numbers(card *c, xph_type type, int64_t count, double scale)
{
    enum { DRAWN = 1 << 16 };
    static float wide[DRAWN];
    static uint16_t narrow[DRAWN];
    const size_t size = card_size(type), drawn = count < DRAWN ? (size_t)count : DRAWN;
    char *at = allocate(c, (size_t)count * size);
    for (size_t i = 0; i < drawn; i++) {
        c->random = c->random * 1664525u + 1013904223u;
        wide[i] = (float)(scale * ((double)(c->random >> 8) / 8388608.0 - 1.0));
        narrow[i] = bf16_bits(wide[i]);
    }
    must("upload",
         c->backend->upload(c->stream, at, size == 4 ? (void *)wide : (void *)narrow, drawn * size));
    must("waiting", c->backend->stream_wait(c->stream));
    for (size_t have = drawn; have < (size_t)count;) {
        const size_t more = have < (size_t)count - have ? have : (size_t)count - have;
        must("copy", c->backend->copy(c->stream, at + have * size, at, more * size));
        have += more;
    }
    return at;
}

/* ---- timing ---- */

typedef struct task {
    xph_op op; /* XPH_OP_COUNT: a copy of bytes */
    char *args;
    size_t args_bytes, bytes;
    void *to, *from;
    int sets;
    const xph_kernel *kernel;
} task;

static exphil_status run_set(const card *c, const task *t, int i)
{
    const void *args = t->args + (size_t)(i % t->sets) * t->args_bytes;
    return c->backend->run(c->stream, t->kernel, args);
}

static void run_once(card *c, const task *t, int i)
{
    if (t->op == XPH_OP_COUNT)
        must("copy", c->backend->copy(c->stream, t->to, t->from, t->bytes));
    else
        must("run", run_set(c, t, i));
}

static double many(card *c, const task *t, int runs, xph_graph *graph)
{
    const double begin = card_now();
    if (graph)
        must("replay", c->backend->replay(c->stream, graph));
    else
        for (int i = 0; i < runs; i++) run_once(c, t, i);
    must("waiting", c->backend->stream_wait(c->stream));
    return (card_now() - begin) / runs;
}

/* Seconds of one run, the median; spread: from the first to the third quarter. */
static double seconds_of(card *c, const task *t, double *spread)
{
    double sample[REPLAYS];
    xph_graph *graph = NULL;
    many(c, t, t->sets, NULL); /* kernels are loaded when they first run */
    const double first = many(c, t, t->sets, NULL);
    int runs = first > 0 ? (int)(REPLAY_SECONDS / first) + 1 : 1, replays = c->smoke ? 1 : REPLAYS;
    if (runs > 2000 || c->smoke) runs = c->smoke ? 1 : 2000;
    runs = (runs + t->sets - 1) / t->sets * t->sets;
    if (c->backend->record_begin && c->backend->record_begin(c->stream) >= 0) {
        for (int i = 0; i < runs; i++) run_once(c, t, i);
        must("recording", c->backend->record_end(c->stream, &graph));
    }
    many(c, t, runs, graph);
    for (int i = 0; i < replays; i++) sample[i] = many(c, t, runs, graph);
    if (graph) c->backend->graph_destroy(graph);
    const double median = card_median(sample, replays);
    *spread = sample[replays * 3 / 4] - sample[replays / 4];
    return median;
}

static double copy_rate(card *c)
{
    double spread;
    task t = {.op = XPH_OP_COUNT, .bytes = c->smoke ? 4096 : (size_t)1 << 30, .sets = 1};
    t.to = card_zeros(c, t.bytes);
    t.from = card_zeros(c, t.bytes);
    const double rate = 2.0 * (double)t.bytes / seconds_of(c, &t, &spread);
    give_back(c);
    return rate;
}

/* ---- cases ---- */

static const char *type_name(const shape *s)
{
    return s->type == XPH_BF16 ? "bf16" : s->math == XPH_MATH_TF32 ? "tf32" : "f32";
}

static json_t *row_of(const card *c, const card_case *k, const shape *s, const char *kernel, double bytes,
                      double seconds, double spread)
{
    const double us = seconds * 1e6, share = bytes / seconds / c->copy;
    json_t *row = json_pack("{s:s, s:[I,I,I,I], s:s, s:s, s:f, s:f, s:f, s:f}", "subject", k->of->subject,
                            "shape", (json_int_t)s->batch, (json_int_t)s->time, (json_int_t)s->width,
                            (json_int_t)s->states, "type", type_name(s), "kernel", kernel, "us", us,
                            "spread_us", spread * 1e6, "bytes", bytes, "share_of_copy", share);
    if (card_flop(k) > 0) json_object_set_new(row, "tflops", json_real(card_flop(k) / seconds * 1e-12));
    if (k->bar_us > 0) json_object_set_new(row, "bar_us", json_real(k->bar_us));
    if (k->bar_share > 0) json_object_set_new(row, "bar_share", json_real(k->bar_share));
    if (!c->smoke && (k->bar_us > 0 || k->bar_share > 0))
        json_object_set_new(row, "met",
                            json_boolean((k->bar_us <= 0 || us <= k->bar_us) &&
                                         (k->bar_share <= 0 || share >= k->bar_share)));
    printf("%-15s %4d x %4d x %5d x %2d  %-5s %10.1f us %6.1f %% of a copy  %s%s\n", k->of->subject,
           (int)s->batch, (int)s->time, (int)s->width, (int)s->states, type_name(s), us, 100.0 * share,
           kernel, json_is_false(json_object_get(row, "met")) ? "  MISSED" : "");
    fflush(stdout);
    return row;
}

static void give_scratch(card *c, const card_case *k, task *t, size_t bytes)
{
    if (k->of->scratch_at == SIZE_MAX) return;
    void *scratch = allocate(c, bytes);
    for (int i = 0; i < t->sets; i++)
        memcpy(t->args + (size_t)i * k->of->args_bytes + k->of->scratch_at, &scratch, sizeof scratch);
}

/* Chooses for every set of arguments: all get the same, and what query fills in. False: there is none. */
static bool choose(const card *c, const card_case *k, task *t, xph_op_info *info)
{
    const uint32_t refused = info->refused;
    for (int i = 0; i < t->sets; i++) {
        *info = (xph_op_info){.refused = refused};
        if (c->backend->query(c->device, k->of->op, t->args + (size_t)i * k->of->args_bytes, info) < 0)
            return false;
    }
    t->kernel = info->kernel;
    return true;
}

/* The candidate that every set of arguments is done by, as a net would take it; false: there is none. */
static bool settle(card *c, const card_case *k, task *t, xph_op_info *info)
{
    for (int i = 0; i < t->sets;) {
        const exphil_status status = run_set(c, t, i);
        if (status != EXPHIL_E_UNSUPPORTED) {
            must("run", status);
            i++;
            continue;
        }
        info->refused |= info->candidate;
        if (!choose(c, k, t, info)) return false;
        give_scratch(c, k, t, info->scratch_bytes);
        i = 0;
    }
    return true;
}

/* Arguments of all sets and their common scratch; false: not on this device. */
static bool prepare(card *c, const card_case *k, const shape *s, task *t, xph_op_info *info, double *bytes)
{
    t->op = k->of->op;
    t->args_bytes = k->of->args_bytes;
    t->sets = 1;
    t->args = calloc(MOST_SETS, k->of->args_bytes);
    if (!t->args) must("memory", EXPHIL_E_MEMORY);
    *bytes = k->of->give(c, s, t->args);
    const int wanted = c->smoke ? 2 : (int)(SETS_BYTES / c->set_bytes) + 1;
    for (; t->sets < wanted && t->sets < MOST_SETS; t->sets++)
        k->of->give(c, s, t->args + (size_t)t->sets * k->of->args_bytes);
    if (!choose(c, k, t, info)) return false;
    give_scratch(c, k, t, info->scratch_bytes);
    return settle(c, k, t, info);
}

static void time_case(card *c, const card_case *k, const card_options *o)
{
    const shape s = c->smoke ? card_small(k) : k->shape;
    xph_op_info info = {0};
    task t = {0};
    double bytes = 0, spread = 0;
    if (prepare(c, k, &s, &t, &info, &bytes)) {
        const double seconds = seconds_of(c, &t, &spread);
        card_row(o, row_of(c, k, &s, info.name, bytes, seconds, spread));
    } else {
        printf("SKIPPED: %s in %s has no kernel\n", k->of->subject, type_name(&s));
    }
    give_back(c);
    free(t.args);
}

/* ---- the program ---- */

/* Rows of one subject stand together. */
static void give_subjects(void)
{
    for (const card_case *k = card_cases; k->of; k++)
        if (k == card_cases || k->of != k[-1].of) puts(k->of->subject);
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--subjects") == 0) {
        give_subjects();
        return 0;
    }
    const card_options o = card_options_of(count, words);
    exphil_context *context = card_open(&o, 1);
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    card c = {.device = xph_context_backend(context), .smoke = o.smoke, .random = 1};
    must("device", exphil_context_device(context, &info, NULL));
    c.backend = c.device->backend;
    must("stream", c.backend->stream_create(c.device, XPH_STREAM_NET, &c.stream));
    c.copy = copy_rate(&c);
    printf("%s, %s: a copy moves %.0f GB/s\n", info.name, info.isa, c.copy * 1e-9);
    card_row(&o, json_pack("{s:s, s:s, s:s, s:f}", "subject", "copy", "device", info.name, "isa", info.isa,
                           "gb_s", c.copy * 1e-9));
    for (const card_case *k = card_cases; k->of; k++)
        if (card_asked_for(&o, k->of->subject)) time_case(&c, k, &o);
    c.backend->stream_destroy(c.stream);
    exphil_context_destroy(context);
    return 0;
}
