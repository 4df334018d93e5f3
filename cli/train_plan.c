/* What a run will take: the batch of --batch auto, what to do when memory is short, and how long it will last. */
#include "train_run.h"

#include <exphil/plan.h>

#include <inttypes.h>

/* More sequences at a time make fewer updates of the same passes: beyond this the weights learn less from them. */
enum { AUTO_MOST = 64 };

static bool shown(const train_state *r)
{
    return !r->options->quiet && !r->options->json;
}

/* batch: of all ranks. What comes back is of this one. */
static bool ask(const train_state *r, int64_t batch, exphil_plan *plan, exphil_error *error)
{
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    exphil_optimizer_config optimizer;
    exphil_trainer_config trainer;
    exphil_sampling sampling;
    train_losses losses;
    if (!train_sampling(r, &sampling, error)) return false;
    train_optimizer_config(r, &optimizer);
    train_trainer_config(r, &losses, &trainer);
    if (!train_lanes(r, batch, &sampling)) return false;
    config.model = r->model;
    config.optimizer = &optimizer;
    config.sampling = &sampling;
    config.trainer = &trainer;
    config.dataset = r->train;
    config.scored = r->few ? r->few : r->train;
    config.alone_most_frames = r->options->alone;
    *plan = (exphil_plan)EXPHIL_PLAN_INIT;
    return exphil_trainer_plan(r->context, &config, plan, error) >= 0;
}

/* 1234567890: "1.2 GB". */
static void bytes_text(uint64_t bytes, char *text, size_t size)
{
    if (bytes >= 1000000000)
        snprintf(text, size, "%.1f GB", (double)bytes * 1e-9);
    else
        snprintf(text, size, "%.1f MB", (double)bytes * 1e-6);
}

bool train_auto_batch(train_state *r, int64_t full)
{
    const int64_t count = ranks_count(r->options->ranks), shards = r->options->shards,
                  least = count > shards ? count : shards;
    exphil_plan plan;
    exphil_error error = EXPHIL_ERROR_INIT;
    char text[32];
    if (!ask(r, least, &plan, &error)) return complain("--batch auto", &error) == 0;
    double largest = (double)plan.largest_batch; /* of this rank */
    if (!plan.largest_batch) return train_advise_memory(r);
    if (!ranks_least(r->options->ranks, &largest)) return false;
    r->batch = full < AUTO_MOST ? full : AUTO_MOST;
    if (r->batch < least) r->batch = least;
    bool memory = (int64_t)largest * count < r->batch;
    if (memory) r->batch = (int64_t)largest * count;
    r->batch -= r->batch % shards;
    if (!ask(r, r->batch, &plan, &error)) return complain("--batch auto", &error) == 0;
    bytes_text(plan.host_peak_bytes + plan.device_peak_bytes, text, sizeof text);
    if (shown(r))
        fprintf(stderr, "batch %" PRId64 ": %s; it takes %s\n", r->batch,
                memory                  ? "the largest that fits in memory"
                : r->batch == AUTO_MOST ? "more would learn less from the same passes"
                                        : "as many as the data fill",
                text);
    return true;
}

/* What the largest part of a plan is for, in a word or two, and the option that makes it less. */
static const char *remedy(const exphil_plan *plan)
{
    static const char *const words[EXPHIL_PLAN_PURPOSES] = {
        [EXPHIL_PLAN_ACTIVATIONS] = "a smaller --time or --hidden, or --checkpoint-blocks 1",
        [EXPHIL_PLAN_GAMES] = "--memory SIZE, which keeps fewer decoded games",
        [EXPHIL_PLAN_ORDER] = "--shuffle-frames 65536",
    };
    int most = 0;
    for (int p = 0; p < EXPHIL_PLAN_SAVING; p++)
        if (plan->host_bytes[p] + plan->device_bytes[p] > plan->host_bytes[most] + plan->device_bytes[most])
            most = p;
    return words[most] ? words[most] : "a smaller --hidden, or fewer --blocks";
}

bool train_advise_memory(train_state *r)
{
    exphil_plan plan;
    exphil_error error = EXPHIL_ERROR_INIT;
    const int64_t count = ranks_count(r->options->ranks);
    train_drop(r);
    if (!r->model || !ask(r, count, &plan, &error)) return false;
    if (plan.largest_batch)
        fprintf(stderr, "exphil: --batch %" PRId64 " is the largest that fits\n", plan.largest_batch * count);
    else
        fprintf(
            stderr,
            "exphil: not even one sequence at a time fits, its scores and checkpoints included: take %s\n",
            remedy(&plan));
    return false;
}

void train_check_memory(train_state *r)
{
    static const char *const words[EXPHIL_PLAN_PURPOSES] = {
        [EXPHIL_PLAN_SAVING] = ", most of it to save",
        [EXPHIL_PLAN_EVALUATION] = ", most of it to score",
        [EXPHIL_PLAN_ALONE] = ", most of it to score alone"};
    exphil_plan plan;
    exphil_error error = EXPHIL_ERROR_INIT;
    char text[32], room[32];
    if (!ask(r, r->batch, &plan, &error)) return; /* the calls that are planned say why */
    r->planned = plan.host_peak_bytes + plan.device_peak_bytes;
    if (plan.fits) return;
    bool limited = plan.limited_peak_bytes > plan.limited_room_bytes,
         ends = !limited && plan.host_peak_bytes > 2 * plan.host_steady_bytes;
    bytes_text(limited ? plan.limited_peak_bytes : r->planned, text, sizeof text);
    bytes_text(plan.limited_room_bytes, room, sizeof room);
    fprintf(stderr, "exphil: warning: this run takes %s%s, which is more than %s%s%s", text,
            ends && words[plan.host_peak_purpose] ? words[plan.host_peak_purpose] : "",
            limited ? "the " : "there is", limited ? room : "",
            limited ? " that --memory-limit leaves it, scores and checkpoints included" : "");
    if (plan.largest_batch)
        fprintf(stderr, "; --batch %" PRId64 " fits\n", plan.largest_batch * ranks_count(r->options->ranks));
    else
        fprintf(stderr, "; take %s\n", remedy(&plan));
}

/* ---- how long it lasts ----------------------------------------------------------------------------------- */

/* 41234: "41,000": two digits are known so early. */
static void rough(double value, char *text, size_t size)
{
    double unit = 1.0;
    while (value / unit >= 100.0) unit *= 10.0;
    int64_t whole = (int64_t)(value / unit + 0.5) * (int64_t)unit;
    if (whole >= 1000000)
        snprintf(text, size, "%" PRId64 ",%03" PRId64 ",%03" PRId64, whole / 1000000, whole / 1000 % 1000,
                 whole % 1000);
    else if (whole >= 1000)
        snprintf(text, size, "%" PRId64 ",%03" PRId64, whole / 1000, whole % 1000);
    else
        snprintf(text, size, "%" PRId64, whole);
}

static void duration(double seconds, char *text, size_t size)
{
    int64_t minutes = (int64_t)(seconds / 60.0 + 0.5);
    if (minutes >= 60)
        snprintf(text, size, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
    else if (seconds >= 90.0)
        snprintf(text, size, "%" PRId64 " min", minutes);
    else
        snprintf(text, size, "%.0f s", seconds < 1.0 ? 1.0 : seconds);
}

/* The first update makes what the others find made; the next ones are measured. */
enum { FIRST = 1, MEASURED = 5 };

void train_estimate(train_state *r, const exphil_metrics *m, const progress *bar)
{
    char left[32], speed[32], memory[32];
    int64_t here = r->done - bar->start;
    if (!shown(r) || here > FIRST + MEASURED || here < FIRST) return;
    if (here == FIRST) {
        r->measured_frames = m->frames;
        r->measured_ns = 0;
        return;
    }
    r->measured_ns += m->time_ns;
    if (here < FIRST + MEASURED || r->done >= r->updates || r->measured_ns <= 0) return;
    double each = (double)r->measured_ns * 1e-9 / MEASURED;
    rough((double)(m->frames - r->measured_frames) / (each * MEASURED), speed, sizeof speed);
    duration(each * (double)(r->updates - r->done), left, sizeof left);
    bytes_text(r->planned, memory, sizeof memory);
    progress_clear(bar);
    fprintf(stderr, "about %s at %s frames/s; %s\n", left, speed, memory);
}
