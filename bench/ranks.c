/* `exphil bench ranks`: what it costs that several ranks train one policy. Updates of one rank alone, of all ranks each by itself,
 * and of all together, in turns in one run; and the reductions by themselves, from which the time of other models on other
 * numbers of ranks is calculated. */
#include "bench.h"
#include "say.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ways to train. Strong has the lanes of one rank for all of them together. */
enum { ALONE, BESIDE, WEAK, STRONG, WAYS };
static const char *const way_names[WAYS] = {"alone", "side by side", "weak", "strong"};

typedef struct subject {
    const char *name, *blocks;
    int64_t hidden;
} subject;
static const subject subjects[] = {{"mamba*2 256", "mamba*2", 256}, {"lstm*2 256", "lstm*2", 256}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* What is reduced while it is counted. */
typedef struct counted {
    exphil_communicator with;
    int64_t floats, doubles, calls, ns;
} counted;

/* One way, with what its turns took on the slowest rank. */
typedef struct way {
    int64_t lanes; /* of this rank; 0: it waits */
    exphil_batch batch;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    counted count;
    bench_work took; /* samples of one update */
    double least_ns,
        most_ns; /* of an update in reductions, on the rank with the least and the most: sums of turns */
} way;

typedef struct ranks_bench {
    bench_report *report;
    const bench_options *options;
    exphil_communicator all;
    double *said; /* [ranks] */
    int updates, turns;
    exphil_context *context;
    exphil_model *model;
    char name[72];
    way ways[WAYS];
    bool lost; /* the ranks have failed: they meet no more */
} ranks_bench;

static bool fail(const ranks_bench *b, const char *what, const exphil_error *error)
{
    char about[128];
    (void)snprintf(about, sizeof about, "rank %d: %s: %s", (int)b->all.rank, b->name, what);
    bench_say(about, error->message);
    return false;
}

/* ---- meetings --------------------------------------------------------------------------------------------- */

/* The number of each rank, until the next question; NULL: the ranks have failed. */
static const double *gather(ranks_bench *b, double own)
{
    memset(b->said, 0, (size_t)b->all.ranks * sizeof *b->said);
    b->said[b->all.rank] = own;
    if (!b->lost && b->all.all_reduce(b->all.user, b->said, b->all.ranks, EXPHIL_TYPE_F64) == 0)
        return b->said;
    b->lost = true;
    return NULL;
}

/* All ranks go on from here, if all are well. */
static bool together(ranks_bench *b, bool fine)
{
    const double *all = gather(b, fine ? 0.0 : 1.0);
    for (int32_t k = 0; all && k < b->all.ranks; k++) fine = fine && all[k] < 0.5;
    return all && fine;
}

/* The least and the largest number of all ranks. */
static bool span(ranks_bench *b, double own, double *least, double *most)
{
    const double *all = gather(b, own);
    *least = *most = own;
    for (int32_t k = 0; all && k < b->all.ranks; k++) {
        if (all[k] < *least) *least = all[k];
        if (all[k] > *most) *most = all[k];
    }
    return all != NULL;
}

static int32_t reduce(void *user, void *data, int64_t number, int32_t type)
{
    counted *c = user;
    int64_t began = bench_now();
    int32_t code = c->with.all_reduce(c->with.user, data, number, type);
    *(type == EXPHIL_TYPE_F32 ? &c->floats : &c->doubles) += number;
    c->calls++;
    c->ns += bench_now() - began;
    return code;
}

/* ---- what is trained -------------------------------------------------------------------------------------- */

static exphil_status make_model(ranks_bench *b, const subject *s, exphil_error *error)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model_config shape = EXPHIL_MODEL_CONFIG_INIT;
    exphil_spec spec;
    config.threads = (int32_t)b->options->threads;
    config.cpu_isa = b->options->isa;
    config.device = b->options->device;
    config.memory_limit_bytes = (size_t)b->options->memory_limit;
    exphil_status status = exphil_context_create(&config, &b->context, error);
    if (status >= 0 && !s) status = exphil_model_load(b->context, b->options->weights, &b->model, error);
    if (status >= 0 && s) status = bench_train_spec(&spec, error);
    if (status >= 0 && s) {
        shape.spec = &spec;
        shape.blocks = s->blocks;
        shape.hidden = s->hidden;
        shape.seed = 1;
        shape.no_previous_action = 1;
        status = exphil_model_create(b->context, &shape, &b->model, error);
    }
    return status;
}

static int64_t lanes_of(const ranks_bench *b, int which)
{
    int64_t all = b->options->batch, first = all * b->all.rank / b->all.ranks;
    if (which == ALONE) return b->all.rank == 0 ? all : 0;
    return which == STRONG ? all * (b->all.rank + 1) / b->all.ranks - first : all;
}

/* A call of all ranks where they train together. */
static exphil_status make_way(ranks_bench *b, int which, exphil_error *error)
{
    way *w = &b->ways[which];
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_communicator with = {sizeof with, &w->count, reduce, b->all.rank, b->all.ranks};
    w->lanes = lanes_of(b, which);
    w->count.with = b->all;
    if (!w->lanes) return EXPHIL_OK;
    optimizer.rate = 1e-4;
    optimizer.decay = 0.01;
    trainer.precision = (int32_t)b->options->precision;
    if (which >= WEAK) {
        trainer.communicator = &with;
        trainer.reduction = EXPHIL_REDUCTION_SUMS;
    }
    exphil_status status = bench_batch_for(b->model, w->lanes, b->options->time, &w->batch, error);
    if (status >= 0) status = exphil_optimizer_create(b->model, &optimizer, &w->optimizer, error);
    return status < 0 ? status
                      : exphil_trainer_create(b->model, w->optimizer, NULL, &trainer, &w->trainer, error);
}

static void end_all(ranks_bench *b)
{
    for (int i = 0; i < WAYS; i++) {
        bench_work_free(&b->ways[i].took);
        exphil_trainer_destroy(b->ways[i].trainer);
        exphil_optimizer_destroy(b->ways[i].optimizer);
        b->ways[i] = (way){0};
    }
    exphil_model_destroy(b->model);
    exphil_context_destroy(b->context);
    b->model = NULL;
    b->context = NULL;
}

/* Each step of all ranks: one that fails ends it on all. */
static bool make_all(ranks_bench *b, const subject *s)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine = make_model(b, s, &error) >= 0 || fail(b, "model", &error);
    for (int i = 0; i < WAYS && together(b, fine); i++)
        fine = make_way(b, i, &error) >= 0 || fail(b, way_names[i], &error);
    return together(b, fine);
}

/* ---- turns ------------------------------------------------------------------------------------------------ */

/* Updates after one that is not counted. */
static bool update(ranks_bench *b, way *w, double *took, double *reduced)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_trainer_step_batch(w->trainer, &w->batch, &metrics, &error);
    w->count.floats = w->count.doubles = w->count.calls = w->count.ns = 0;
    int64_t began = bench_now();
    for (int i = 0; status >= 0 && i < b->updates; i++)
        status = exphil_trainer_step_batch(w->trainer, &w->batch, &metrics, &error);
    *took = (double)(bench_now() - began) / b->updates;
    *reduced = (double)w->count.ns / b->updates;
    return status >= 0 || fail(b, "update", &error);
}

static bool turn(ranks_bench *b, way *w)
{
    double took = 0.0, reduced = 0.0, least, most;
    if (!together(b, true)) return false;
    bool fine = !w->lanes || update(b, w, &took, &reduced);
    if (!together(b, fine) || !span(b, took, &least, &most)) return false;
    fine = bench_work_add(&w->took, most);
    if (!span(b, reduced, &least, &most)) return false;
    w->least_ns += least;
    w->most_ns += most;
    return fine;
}

static bool take_turns(ranks_bench *b)
{
    for (int round = 0; round < b->turns; round++)
        for (int i = 0; i < WAYS; i++)
            if (!turn(b, &b->ways[i])) return false;
    return true;
}

/* ---- what is told ----------------------------------------------------------------------------------------- */

static void fact(const ranks_bench *b, const char *what, double value, const char *unit)
{
    char name[160];
    (void)snprintf(name, sizeof name, "%s: %s", b->name, what);
    bench_report_fact(b->report, name, value, unit);
}

static void give_updates(ranks_bench *b)
{
    double alone = 0.0;
    for (int i = 0; i < WAYS; i++) {
        way *w = &b->ways[i];
        bench_row row = {.time = bench_stats_of(&w->took)};
        double frames = (double)(b->options->batch * b->ways[BESIDE].batch.time);
        double joint = i == BESIDE || i == WEAK ? frames * b->all.ranks : frames;
        row.items = joint;
        row.item = "frame";
        (void)snprintf(row.subject, sizeof row.subject, "update, %d ranks", (int)b->all.ranks);
        (void)snprintf(row.what, sizeof row.what, "%.40s, B=%lld T=%lld", b->name,
                       (long long)(i == STRONG ? w->lanes : b->options->batch),
                       (long long)b->ways[BESIDE].batch.time);
        (void)snprintf(row.how, sizeof row.how, "%s", way_names[i]);
        bench_report_row(b->report, &row);
        if (i == ALONE) alone = row.time.p50;
        double share = joint / frames / (i == ALONE ? 1 : b->all.ranks);
        if (i == ALONE) continue;
        char what[64];
        (void)snprintf(what, sizeof what, "efficiency, %s", way_names[i]);
        fact(b, what, row.time.p50 > 0 ? alone / row.time.p50 * share : 0, "of 1");
    }
    const way *weak = &b->ways[WEAK];
    fact(b, "weak: in reductions, rank with the least", weak->least_ns / b->turns * 1e-6, "ms an update");
    fact(b, "weak: in reductions, rank with the most", weak->most_ns / b->turns * 1e-6, "ms an update");
    fact(b, "floats that an update adds up", (double)weak->count.floats / b->updates, "floats");
    fact(b, "calls of all_reduce in an update", (double)weak->count.calls / b->updates, "calls");
}

/* ---- reductions by themselves ----------------------------------------------------------------------------- */

/* A row of the slowest rank; *median: ns. */
static bool reductions(ranks_bench *b, int64_t count, int32_t type, const char *what, double *median)
{
    size_t mark = bench_memory_mark(), each = type == EXPHIL_TYPE_F32 ? sizeof(float) : sizeof(double);
    void *data = bench_memory((size_t)count * each);
    bench_work work = {0};
    int times = b->options->quick ? 3 : 41;
    bool fine = true;
    memset(data, 0, (size_t)count * each);
    for (int i = b->options->quick ? -1 : -4; fine && i < times; i++) {
        double least, most;
        fine = together(b, true);
        int64_t began = bench_now();
        if (fine && b->all.all_reduce(b->all.user, data, count, type)) b->lost = true;
        fine = fine && span(b, (double)(bench_now() - began), &least, &most);
        if (fine && i >= 0) fine = bench_work_add(&work, most);
    }
    bench_row row = {.time = bench_stats_of(&work), .items = (double)count * (double)each, .item = "byte"};
    (void)snprintf(row.subject, sizeof row.subject, "reduction, %d ranks", (int)b->all.ranks);
    (void)snprintf(row.what, sizeof row.what, "%s", what);
    (void)snprintf(row.how, sizeof row.how, "%lld %s", (long long)count,
                   type == EXPHIL_TYPE_F32 ? "floats" : "doubles");
    *median = row.time.p50;
    if (fine) bench_report_row(b->report, &row);
    bench_work_free(&work);
    bench_memory_release(mark);
    return together(b, fine);
}

enum { MEETING_DOUBLES = 24, SMALL_FLOATS = 1 << 16, LARGE_FLOATS = 1 << 20 };

/* A meeting is as long as those of an update; the sum is large enough that its bytes are what it takes. */
static bool give_reductions(ranks_bench *b)
{
    double meeting, small, large;
    if (!reductions(b, (int64_t)MEETING_DOUBLES * b->all.ranks, EXPHIL_TYPE_F64, "meeting", &meeting) ||
        !reductions(b, SMALL_FLOATS, EXPHIL_TYPE_F32, "sum", &small) ||
        !reductions(b, LARGE_FLOATS, EXPHIL_TYPE_F32, "sum", &large))
        return false;
    bench_report_fact(b->report, "latency of a meeting", meeting * 1e-3, "us");
    bench_report_fact(b->report, "bandwidth of a sum", 4.0 * LARGE_FLOATS / large, "GB/s");
    return true;
}

/* ---- the subject ------------------------------------------------------------------------------------------ */

/* s NULL: the policy of a file. */
static bool one(ranks_bench *b, const subject *s)
{
    size_t mark = bench_memory_mark();
    double alone;
    (void)snprintf(b->name, sizeof b->name, "%s", s ? s->name : "weights");
    bool fine = make_all(b, s) && take_turns(b);
    if (fine) {
        give_updates(b);
        fine = reductions(b, b->ways[WEAK].count.floats / b->updates, EXPHIL_TYPE_F32, b->name, &alone);
        if (fine) fact(b, "the sum by itself", alone * 1e-6, "ms");
    }
    end_all(b);
    bench_memory_release(mark);
    return together(b, fine);
}

static bool all_subjects(ranks_bench *b)
{
    if (!give_reductions(b)) return false;
    if (b->options->weights) return one(b, NULL);
    for (int i = 0; i < SUBJECTS; i++)
        if (bench_wanted(b->options, "update", subjects[i].name) && !one(b, &subjects[i])) return false;
    return true;
}

bool bench_ranks(bench_report *report, const bench_options *options)
{
    const bool quick = options->quick;
    const double scale = options->effort > 0 ? options->effort : 1;
    ranks_bench b = {.report = report, .options = options, .all = *options->communicator};
    b.updates = quick ? 1 : (int)(8 * scale + 0.5);
    if (b.updates < 1) b.updates = 1;
    b.turns = quick ? 1 : 5;
    b.said = calloc((size_t)b.all.ranks, sizeof *b.said);
    if (!b.said) {
        bench_say(NULL, "no memory");
        return false;
    }
    bool good = all_subjects(&b);
    free(b.said);
    return good;
}
