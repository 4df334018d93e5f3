/* `exphil bench step`: one decision - a frame encoded, the net run for one frame, heads, sampling - of whole
 * policies, warm, with cold caches and paced as in a game; of many players at once; and the bare cells that
 * other libraries have too. */
#include "step.h"
#include "cells.h"
#include "frames.h"
#include "platform.h"

#include <stdio.h>
#include <string.h>

static const bench_policy policies[] = {
    {"lstm 256", "lstm", 256, 1.10, 0, 0, 0, 0, 0, NULL},
    {"lstm 512", "lstm", 512, 1.10, 0, 0, 0, 0, 0, NULL},
    {"gru 256", "gru", 256, 1.10, 0, 0, 0, 0, 0, NULL},
    {"gru 512", "gru", 512, 1.10, 0, 0, 0, 0, 0, NULL},
    {"mlp 512", "mlp", 512, 1.10, 0, 0, 0, 0, 0, NULL},
    {"mamba 256 x 2", "mamba*2", 256, 0, 0, 60, 18, 150, 60, NULL},
    {"(lstm ffn)*3 512", "(lstm ffn)*3", 512, 1.10, 0.35, 0, 0, 0, 0, NULL},
};
enum { POLICIES = sizeof policies / sizeof *policies, TYPES = 3 };
static const int32_t types[TYPES] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};

typedef struct step_bench {
    bench_report *report;
    const bench_options *options;
    bool failed;
} step_bench;

/* ---- one policy, its types side by side -------------------------------------------------------------------- */

typedef struct table {
    const bench_policy *policy;
    bench_player player[TYPES];
    int count;
} table;

static void close_table(table *t)
{
    for (int i = 0; i < t->count; i++) bench_player_end(&t->player[i]);
    t->count = 0;
}

static void open_table(step_bench *b, table *t, const bench_policy *policy, int64_t streams)
{
    *t = (table){.policy = policy};
    for (int i = 0; i < TYPES; i++) {
        bool absent;
        char what[96];
        snprintf(what, sizeof what, "%s %s", policy->name, bench_type_name(types[i]));
        if (bench_player_make(&t->player[t->count], policy, types[i], streams, b->options->isa, &absent))
            t->count++;
        else if (absent && !policy->file)
            bench_report_note(b->report, "a policy is left out: no kernels for weights of that type");
        else if (!absent)
            b->failed = true;
    }
}

static bench_row row_of(const char *subject, const char *what, int32_t type, bench_work *work)
{
    bench_row row = {.time = bench_stats_of(work), .items = 1, .item = "frame"};
    snprintf(row.subject, sizeof row.subject, "%s", subject);
    snprintf(row.what, sizeof row.what, "%s", what);
    snprintf(row.how, sizeof row.how, "%s", bench_type_name(type));
    return row;
}

/* The tail of the floor, sampled in the same way, is what the machine does to anything of that length. */
static void floor_of(bench_row *row, bench_work *floor)
{
    bench_stats stats = bench_stats_of(floor);
    row->floor_ns = stats.p25;
    row->floor_tail = stats.p50 > 0 ? stats.p999 / stats.p50 : 0;
}

static void bar_us(bench_row *row, double us)
{
    if (us <= 0) return;
    row->bar_ns = us * 1e3;
    snprintf(row->bar, sizeof row->bar, "%g us", us);
}

static void bar_of(bench_row *row, double ratio, double ns, const char *what)
{
    if (ratio <= 0 || ns <= 0) return;
    row->bar_ns = ratio * ns;
    snprintf(row->bar, sizeof row->bar, "%g x %s", ratio, what);
}

static void finish(step_bench *b, table *t, bench_work *works, int count)
{
    for (int i = 0; i < t->count; i++) b->failed = b->failed || t->player[i].failed;
    for (int i = 0; i < count; i++) bench_work_free(&works[i]);
}

/* What steps, beside a sum over as many bytes as its weights have. */
static void beside_reading(bench_work works[2], void (*run)(void *arg, int64_t calls), void *arg,
                           double weight_bytes, bench_pass *pass)
{
    double per_call;
    int64_t bytes = (int64_t)weight_bytes / 256 * 256;
    *pass = (bench_pass){.in = {bench_memory((size_t)bytes)}, .count = bytes / 4};
    works[0] = (bench_work){.run = run, .arg = arg, .calls = 1};
    (void)bench_floor_work(FLOOR_READ, pass, &works[1], &per_call);
    works[1].calls = 1;
}

static bench_effort long_effort(const step_bench *b)
{
    bench_effort effort = bench_effort_of(b->options);
    effort.round_ns *= 4;
    effort.most_ns = 0;
    return effort;
}

static void warm(step_bench *b, table *t)
{
    bench_work works[2 * TYPES] = {{0}};
    bench_pass pass[TYPES];
    double f32 = 0;
    size_t mark = bench_memory_mark();
    bench_effort effort = long_effort(b);
    for (int i = 0; i < t->count; i++) {
        bench_player *p = &t->player[i];
        beside_reading(&works[2 * i], bench_player_step, p, p->weight_bytes, &pass[i]);
    }
    if (!bench_measure(works, 2 * t->count, &effort)) b->failed = true;
    for (int i = 0; i < t->count; i++) {
        const bench_policy *policy = t->policy;
        bench_row row = row_of("decision, warm", policy->name, t->player[i].type, &works[2 * i]);
        floor_of(&row, &works[2 * i + 1]);
        snprintf(row.floor_of, sizeof row.floor_of, "reading %.3g MB", t->player[i].weight_bytes * 1e-6);
        row.bar_tail = 5;
        if (t->player[i].type == EXPHIL_TYPE_F32) {
            f32 = row.time.p50;
            bar_of(&row, policy->floor_bar, row.floor_ns, "floor");
            bar_us(&row, policy->f32_us);
        } else if (t->player[i].type == EXPHIL_TYPE_I8) {
            bar_of(&row, policy->int8_bar, f32, "f32");
            bar_us(&row, policy->int8_us);
        }
        bench_report_row(b->report, &row);
    }
    finish(b, t, works, 2 * t->count);
    bench_memory_release(mark);
}

static void cold(step_bench *b, table *t)
{
    for (int i = 0; i < t->count; i++) {
        bench_work work = {.run = bench_player_step, .arg = &t->player[i], .calls = 1};
        bench_effort effort = bench_effort_of(b->options);
        effort.before = bench_player_flush;
        effort.before_arg = &t->player[i];
        effort.rounds = b->options->quick ? 1 : 3;
        if (!bench_measure(&work, 1, &effort)) b->failed = true;
        bench_row row = row_of("decision, all caches flushed", t->policy->name, t->player[i].type, &work);
        bench_report_row(b->report, &row);
        finish(b, t, &work, 1);
    }
}

/* ---- at 60 Hz ------------------------------------------------------------------------------------------ */

enum { TICK = 16000000 };

/* How much of a core a game's policy takes at 60 Hz, sleeping included, and how many threads it has. */
static void idle_share(step_bench *b, const bench_player *p, const bench_policy *policy, int64_t wall,
                       int64_t cpu)
{
    char name[96];
    snprintf(name, sizeof name, "share of a core at 60 Hz, %s %s", policy->name, bench_type_name(p->type));
    bench_report_fact(b->report, name, 100.0 * (double)cpu / (double)wall, "%");
    snprintf(name, sizeof name, "threads at 60 Hz, %s %s", policy->name, bench_type_name(p->type));
    bench_report_fact(b->report, name, bench_threads(), "threads");
}

static void paced(step_bench *b, table *t, bool busy)
{
    const char *subject = busy ? "decision at 60 Hz, busy neighbour" : "decision at 60 Hz";
    int steps = b->options->quick ? 2 : (int)(120 * (b->options->effort > 0.1 ? b->options->effort : 0.1));
    for (int i = 0; i < t->count; i++) {
        bench_player *p = &t->player[i];
        bench_work work = {.run = bench_player_step, .arg = p, .calls = 1};
        bench_effort effort = {.rounds = 1, .pause_ns = TICK, .round_ns = (double)steps * TICK};
        bench_neighbour *neighbour = busy ? bench_neighbour_begin() : NULL;
        int64_t wall = bench_now(), cpu = bench_cpu_now();
        if (!bench_measure(&work, 1, &effort)) b->failed = true;
        wall = bench_now() - wall, cpu = bench_cpu_now() - cpu;
        bench_row row = row_of(subject, t->policy->name, p->type, &work);
        if (busy && p->type == EXPHIL_TYPE_F32) bar_us(&row, t->policy->paced_f32_us);
        if (busy && p->type == EXPHIL_TYPE_I8) bar_us(&row, t->policy->paced_int8_us);
        bench_report_row(b->report, &row);
        if (!busy) idle_share(b, p, t->policy, wall, cpu);
        bench_neighbour_end(neighbour);
        finish(b, t, &work, 1);
    }
}

/* ---- many players -------------------------------------------------------------------------------------- */

static void streams(step_bench *b, const bench_policy *policy)
{
    static const int64_t counts[] = {1, 4, 16, 64, 256};
    for (int i = 0; i < (b->options->quick ? 2 : 5); i++) {
        table t;
        bench_work works[TYPES] = {{0}};
        bench_effort effort = bench_effort_of(b->options);
        char what[72];
        snprintf(what, sizeof what, "%s, %d players", policy->name, (int)counts[i]);
        open_table(b, &t, policy, counts[i]);
        for (int j = 0; j < t.count; j++)
            works[j] = (bench_work){.run = bench_player_step, .arg = &t.player[j], .calls = 1};
        if (!bench_measure(works, t.count, &effort)) b->failed = true;
        for (int j = 0; j < t.count; j++) {
            bench_row row = row_of("decisions of many players", what, t.player[j].type, &works[j]);
            row.items = (double)counts[i];
            bench_report_row(b->report, &row);
        }
        finish(b, &t, works, t.count);
        close_table(&t);
    }
}

/* ---- bare cells ---------------------------------------------------------------------------------------- */

typedef struct cell_shape {
    const char *name;
    int kind;
    int64_t in, hidden;
} cell_shape;

static const cell_shape cells[] = {
    {"lstm 288->256", CELL_LSTM, 288, 256},  {"lstm 288->512", CELL_LSTM, 288, 512},
    {"gru 288->256", CELL_GRU, 288, 256},    {"gru 288->512", CELL_GRU, 288, 512},
    {"mlp 288-512-512", CELL_MLP, 288, 512},
};

static void give_cell(step_bench *b, const cell_shape *shape, const bench_cell *c, bench_work *work,
                      bench_work *floor, double *f32)
{
    static const int32_t type_of[] = {EXPHIL_TYPE_F32, 0, EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
    bench_row row = row_of("cell, warm", shape->name, type_of[c->weights], work);
    floor_of(&row, floor);
    row.items = (double)c->weight_bytes;
    row.item = "byte";
    snprintf(row.floor_of, sizeof row.floor_of, "reading %.3g MB", (double)c->weight_bytes * 1e-6);
    if (c->weights == XPH_F32) {
        *f32 = row.time.p50;
        bar_of(&row, 1.10, row.floor_ns, "floor");
    } else {
        bar_of(&row, c->weights == XPH_BF16 ? 0.55 : 0.30, *f32, "f32");
    }
    row.bar_tail = 5;
    bench_report_row(b->report, &row);
}

static void bare_cell(step_bench *b, const cell_shape *shape)
{
    static const xph_type weights[TYPES] = {XPH_F32, XPH_BF16, XPH_I8};
    bench_cell cell[TYPES];
    bench_pass pass[TYPES];
    bench_work works[2 * TYPES] = {{0}};
    double f32 = 0;
    int count = 0;
    size_t mark = bench_memory_mark();
    bench_effort effort = long_effort(b);
    for (int i = 0; i < TYPES; i++) {
        if (!bench_cell_make(&cell[count], shape->kind, shape->in, shape->hidden, 1, weights[i],
                             b->options->isa))
            continue;
        beside_reading(&works[2 * count], bench_cell_step, &cell[count], (double)cell[count].weight_bytes,
                       &pass[count]);
        count++;
    }
    if (!bench_measure(works, 2 * count, &effort)) b->failed = true;
    for (int i = 0; i < count; i++) {
        give_cell(b, shape, &cell[i], &works[2 * i], &works[2 * i + 1], &f32);
        bench_cell_end(&cell[i]);
    }
    for (int i = 0; i < 2 * count; i++) bench_work_free(&works[i]);
    bench_memory_release(mark);
}

/* ---- the parts of a decision that are not the net ------------------------------------------------------------ */

typedef struct encoder {
    const char *layout;
    exphil_melee_frame frames[STEP_FRAMES];
    float floats[512];
    int32_t ids[EXPHIL_IDS_MAX];
    int64_t at;
    bool failed;
} encoder;

static void encode(void *arg, int64_t calls)
{
    encoder *e = arg;
    for (int64_t i = 0; i < calls; i++) {
        if (exphil_melee_encode(e->layout, &e->frames[e->at], e->floats, e->ids, NULL) < 0) e->failed = true;
        e->at = (e->at + 1) % STEP_FRAMES;
    }
}

static void encoding(step_bench *b)
{
    static const char *const layouts[] = {"exphil288", "melee2"};
    for (int i = 0; i < 2; i++) {
        static encoder e;
        if (!bench_wanted(b->options, "encoding a frame", layouts[i])) continue;
        e = (encoder){.layout = layouts[i]};
        for (int64_t f = 0; f < STEP_FRAMES; f++) bench_frame(&e.frames[f], f);
        bench_work work = {.run = encode, .arg = &e};
        bench_effort effort = bench_effort_of(b->options);
        if (!bench_measure(&work, 1, &effort) || e.failed) b->failed = true;
        bench_row row = {
            .subject = "encoding a frame", .time = bench_stats_of(&work), .items = 1, .item = "frame"};
        snprintf(row.what, sizeof row.what, "%s", layouts[i]);
        bar_us(&row, 2);
        bench_report_row(b->report, &row);
        bench_work_free(&work);
    }
}

/* ---- the subject --------------------------------------------------------------------------------------- */

static void one_policy(step_bench *b, const bench_policy *policy)
{
    table t;
    const bench_options *o = b->options;
    bool all = policy->file || bench_wanted(o, policy->name, policy->blocks);
    bool want[] = {all || bench_wanted(o, "decision, warm", ""),
                   all || bench_wanted(o, "decision, all caches flushed", ""),
                   all || bench_wanted(o, "decision at 60 Hz", "")};
    if (!want[0] && !want[1] && !want[2]) return;
    open_table(b, &t, policy, 1);
    if (want[0]) warm(b, &t);
    if (want[1]) cold(b, &t);
    if (want[2]) {
        paced(b, &t, false);
        paced(b, &t, true);
    }
    close_table(&t);
}

static bool of_file(step_bench *b)
{
    const char *slash = strrchr(b->options->weights, '/');
    const bench_policy policy = {.name = slash ? slash + 1 : b->options->weights,
                                 .file = b->options->weights};
    one_policy(b, &policy);
    streams(b, &policy);
    return !b->failed;
}

bool bench_step(bench_report *report, const bench_options *options)
{
    step_bench b = {.report = report, .options = options};
    if (options->weights) return of_file(&b);
    encoding(&b);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (bench_wanted(options, "cell, warm", cells[i].name)) bare_cell(&b, &cells[i]);
    for (int i = 0; i < POLICIES; i++)
        if (!options->quick || options->filters || policies[i].hidden == 256) one_policy(&b, &policies[i]);
    for (int i = 0; i < POLICIES; i++)
        if ((i == 0 || policies[i].f32_us > 0) &&
            bench_wanted(options, "decisions of many players", policies[i].name))
            streams(&b, &policies[i]);
    return !b.failed;
}
