/* Too little memory of the emulated GPU, everywhere: every limit of a context at which another allocation is the first to fail,
 * and every allocation of the driver that fails once. Each call says EXPHIL_E_MEMORY, the log names the limit, nothing stays
 * allocated or half made, the call can be made again, and a byte more is enough: what comes of it all has the bits of a run in
 * plenty. A stand-in for cuBLASLt takes its workspaces meanwhile. */
#include "emulated.h"
#include "play_case.h"
#include "train_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, FRAMES = 2, MODELS = 3 };

/* ---- the log ---- */

typedef struct heard {
    int lines, others;
    size_t limit, used, more;
} heard;

static void hear(void *user, exphil_log_level level, const char *message)
{
    heard *h = user;
    if (level > EXPHIL_LOG_WARNING) return;
    h->lines++;
    if (sscanf(message, "memory limit of %zu bytes: %zu are in use, %zu more were asked for", &h->limit,
               &h->used, &h->more) == 3)
        return;
    h->others++;
    print_message("logged: %s\n", message);
}

/* ---- a host at work, call by call ---- */

typedef struct scene {
    exphil_context *context;
    exphil_model *model[MODELS], *trained;
    exphil_session *session[MODELS], *clone;
    exphil_dataset *dataset;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    play_frames *frames;
    exphil_report report;
    float *logits[MODELS + 1];
    heard said;
    int at; /* the next call */
} scene;

static const char *const blocks[MODELS] = {"lstm", "mamba attention", "gru mlp"};

static exphil_status make_model(scene *s, int which, exphil_error *error)
{
    exphil_model_config config = model_case_config(blocks[which], EXPHIL_TYPE_F32);
    config.hidden = which == 1 ? 40 : 24;
    return exphil_model_create(s->context, &config, &s->model[which], error);
}

static exphil_status make_session(scene *s, int which, exphil_error *error)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.streams = STREAMS;
    XPH_TRY(exphil_session_create(s->model[which], &config, &s->session[which], error));
    if (!s->frames) s->frames = play_frames_make(s->model[which], STREAMS, FRAMES, 5);
    return EXPHIL_OK;
}

/* Steps take no memory. */
static float *played(const scene *s, exphil_session *session)
{
    int32_t actions[STREAMS * 8];
    float *logits = calloc((size_t)(STREAMS * s->frames->logits), sizeof *logits);
    for (int64_t t = 0; t < FRAMES; t++) play_step(session, s->frames, t, false, actions);
    play_logits(session, s->frames, logits);
    return logits;
}

static exphil_status play_one(scene *s, int which, exphil_error *error)
{
    s->logits[which] = played(s, s->session[which]);
    return EXPHIL_OK;
}

static exphil_status clone_one(scene *s, int which, exphil_error *error)
{
    return exphil_session_clone(s->session[which], &s->clone, error);
}

static exphil_status play_clone(scene *s, int which, exphil_error *error)
{
    s->logits[MODELS] = played(s, s->clone);
    return EXPHIL_OK;
}

static exphil_status make_prefetcher(scene *s, int which, exphil_error *error)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    if (!s->dataset) s->dataset = train_dataset(s->context, 3);
    XPH_TRY(exphil_model_sampling(s->model[which], &sampling, error));
    sampling.batch = 4;
    sampling.time = 8;
    return exphil_prefetcher_create(s->dataset, &sampling, &s->prefetcher, error);
}

static exphil_status make_optimizer(scene *s, int which, exphil_error *error)
{
    exphil_optimizer_config config = EXPHIL_OPTIMIZER_CONFIG_INIT;
    config.ema_decay = 0.9;
    return exphil_optimizer_create(s->model[which], &config, &s->optimizer, error);
}

static exphil_status make_trainer(scene *s, int which, exphil_error *error)
{
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    config.accumulate = 2;
    config.precision = EXPHIL_PRECISION_BF16;
    config.own_past = which == 1 ? 0.5 : 0.0;
    return exphil_trainer_create(s->model[which], s->optimizer, s->prefetcher, &config, &s->trainer, error);
}

static exphil_status update(scene *s, int which, exphil_error *error)
{
    return exphil_trainer_step(s->trainer, NULL, error);
}

static exphil_status evaluate(scene *s, int which, exphil_error *error)
{
    s->report = (exphil_report)EXPHIL_REPORT_INIT;
    s->report.alone_most_frames = 20;
    return exphil_trainer_evaluate(s->trainer, EXPHIL_WEIGHTS_AVERAGED, s->dataset, NULL, &s->report, error);
}

static exphil_status take_model(scene *s, int which, exphil_error *error)
{
    return exphil_trainer_model(s->trainer, EXPHIL_WEIGHTS, &s->trained, error);
}

static exphil_status save(scene *s, int which, exphil_error *error)
{
    return exphil_trainer_save(s->trainer, test_path("limited"), error);
}

static exphil_status resume(scene *s, int which, exphil_error *error)
{
    return exphil_trainer_resume(s->trainer, test_path("limited"), error);
}

typedef struct call {
    const char *name;
    exphil_status (*make)(scene *s, int which, exphil_error *error);
    int which;
} call;

static const call calls[] = {
    {"a model", make_model, 0},
    {"a session", make_session, 0},
    {"play", play_one, 0},
    {"a second model", make_model, 1},
    {"its session", make_session, 1},
    {"its play", play_one, 1},
    {"a clone", clone_one, 1},
    {"play of the clone", play_clone, 1},
    {"a prefetcher", make_prefetcher, 1},
    {"an optimizer", make_optimizer, 1},
    {"a trainer", make_trainer, 1},
    {"update 1", update, 1},
    {"update 2", update, 1},
    {"update 3", update, 1},
    {"an evaluation", evaluate, 1},
    {"a trained model", take_model, 1},
    {"a third model", make_model, 2},
    {"its session", make_session, 2},
    {"saving", save, 1},
    {"update 4", update, 1},
    {"resuming", resume, 1},
    {"update 4 again", update, 1},
    {"its play", play_one, 2},
};
enum { CALLS = sizeof calls / sizeof *calls };

static exphil_memory_info memory_of(const scene *s)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    assert_ok(exphil_context_memory(s->context, &info, NULL));
    return info;
}

static scene *scene_open(size_t limit)
{
    scene *s = calloc(1, sizeof *s);
    exphil_context_config config = emulated_config("cuda:0", hear, &s->said);
    config.memory_limit_bytes = limit;
    config.threads = 1;
    assert_ok(exphil_context_create(&config, &s->context, NULL));
    return s;
}

static void scene_close(scene *s)
{
    exphil_context *last = s->context;
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    exphil_trainer_destroy(s->trainer);
    exphil_optimizer_destroy(s->optimizer);
    exphil_prefetcher_destroy(s->prefetcher);
    exphil_session_destroy(s->clone);
    exphil_model_destroy(s->trained);
    for (int i = 0; i < MODELS; i++) {
        exphil_session_destroy(s->session[i]);
        exphil_model_destroy(s->model[i]);
    }
    exphil_dataset_destroy(s->dataset);
    assert_ok(exphil_context_memory(last, &info, NULL));
    assert_int_equal(info.device_used_bytes, 0);
    assert_int_equal(info.pinned_used_bytes, 0);
    exphil_context_destroy(last);
    play_frames_free(s->frames);
    for (int i = 0; i <= MODELS; i++) free(s->logits[i]);
    free(s);
    emulated_clean();
}

/* ---- what comes of it ---- */

typedef struct outcome {
    unsigned char *all;
    size_t bytes;
    float *logits[MODELS + 1];
    double loss, nll;
    uint64_t peak;
    size_t logits_bytes;
} outcome;

static outcome outcome_of(scene *s)
{
    outcome o = {.loss = s->report.loss, .nll = s->report.alone_nll};
    o.all = train_snapshot(s->trainer, &o.bytes);
    o.peak = memory_of(s).device_peak_bytes;
    o.logits_bytes = (size_t)(STREAMS * s->frames->logits) * sizeof(float);
    for (int i = 0; i <= MODELS; i++) {
        o.logits[i] = s->logits[i];
        s->logits[i] = NULL;
    }
    return o;
}

static void outcome_free(outcome *o)
{
    free(o->all);
    for (int i = 0; i <= MODELS; i++) free(o->logits[i]);
}

static void same_outcome(const outcome *got, const outcome *want)
{
    assert_int_equal(got->bytes, want->bytes);
    assert_memory_equal(got->all, want->all, want->bytes);
    for (int i = 0; i <= MODELS; i++)
        assert_memory_equal(got->logits[i], want->logits[i], want->logits_bytes);
    assert_true(got->loss == want->loss && got->nll == want->nll);
}

/* Of the run in plenty, whose peak is the same each time, with steps of one launch and without. */
static outcome undisturbed(void)
{
    static size_t peaks[2];
    size_t *peak = &peaks[getenv("EXPHIL_CUDA_JOIN") != NULL];
    scene *s = scene_open(0);
    for (s->at = 0; s->at < CALLS; s->at++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        if (calls[s->at].make(s, calls[s->at].which, &error) < 0)
            fail_msg("%s: %s", calls[s->at].name, error.message);
    }
    outcome o = outcome_of(s);
    assert_int_equal(s->said.lines, 0);
    scene_close(s);
    if (!*peak) *peak = o.peak;
    assert_int_equal(o.peak, *peak);
    return o;
}

/* The call fails for want of memory, twice alike, and leaves what was there. */
static void refused(scene *s, const char *why)
{
    const call *c = &calls[s->at];
    const exphil_memory_info before = memory_of(s);
    for (int again = 0; again <= 1; again++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        xph_log_flush(s->context); /* lines of a device wait for the end of a call that gives them out */
        s->said = (heard){.lines = 0};
        const exphil_status status = c->make(s, c->which, &error);
        const exphil_memory_info after = memory_of(s);
        xph_log_flush(s->context);
        if (status != EXPHIL_E_MEMORY || !strstr(error.message, "memory_limit_bytes"))
            fail_msg("%s, %s: %s: %s", c->name, why, exphil_status_name(status), error.message);
        if (after.device_used_bytes != before.device_used_bytes ||
            after.pinned_used_bytes != before.pinned_used_bytes)
            fail_msg("%s, %s: %llu bytes stay allocated, %llu pinned", c->name, why,
                     (unsigned long long)(after.device_used_bytes - before.device_used_bytes),
                     (unsigned long long)(after.pinned_used_bytes - before.pinned_used_bytes));
        if (s->said.lines != 1 || s->said.others)
            fail_msg("%s, %s: %d lines are logged", c->name, why, s->said.lines);
    }
}

/* ---- limits ---- */

/* All calls until one is refused. */
static scene *until_refused(size_t limit)
{
    scene *s = scene_open(limit);
    while (s->at < CALLS) {
        exphil_error error = EXPHIL_ERROR_INIT;
        const call *c = &calls[s->at];
        const exphil_status status = c->make(s, c->which, &error);
        if (status == EXPHIL_E_MEMORY) break;
        if (status < 0)
            fail_msg("%s, limit of %zu: %s: %s", c->name, limit, exphil_status_name(status), error.message);
        s->at++;
    }
    return s;
}

static void unseen(const emu_event *event) {}

/* The same where nobody looks at what comes of it: kernels do nothing. */
static scene *until_refused_dry(size_t limit)
{
    emulated_gpu()->dry(unseen);
    scene *s = until_refused(limit);
    emulated_gpu()->dry(NULL);
    return s;
}

/* From one edge to the next: the log says what is missing. One byte less fails at the same place, no byte less does not. */
static void every_limit(void **state)
{
    setenv("EXPHIL_CUDA_JOIN", "none", 1); /* steps of one launch take long, and meet each allocation below */
    outcome want = undisturbed();
    size_t limit = 1;
    int edges = 0;
    for (;; edges++) {
        char why[64];
        scene *s = limit < want.peak ? until_refused_dry(limit) : until_refused(limit);
        snprintf(why, sizeof why, "limit of %zu bytes", limit);
        if (s->at == CALLS) {
            outcome got = outcome_of(s);
            same_outcome(&got, &want);
            assert_int_equal(got.peak, want.peak);
            assert_int_equal(s->said.lines, 0);
            outcome_free(&got);
            scene_close(s);
            break;
        }
        refused(s, why);
        assert_int_equal(s->said.limit, limit);
        const size_t enough = s->said.used + s->said.more;
        const int at = s->at;
        assert_true(enough > limit && enough <= want.peak);
        scene_close(s);
        if (enough - 1 > limit) {
            s = until_refused_dry(enough - 1);
            if (s->at != at)
                fail_msg("%s is refused with %zu bytes, not with %zu", calls[at].name, limit, enough - 1);
            scene_close(s);
        }
        limit = enough;
    }
    print_message("%d limits that another allocation meets first; %zu bytes are enough\n", edges, limit);
    assert_int_equal(limit, want.peak);
    outcome_free(&want);
}

/* ---- a driver that has none ---- */

/* Each of its allocations fails once: in every call, until there is none left. */
static void every_allocation_fails(void **state)
{
    unsetenv("EXPHIL_CUDA_JOIN");
    outcome want = undisturbed();
    scene *s = scene_open(0);
    int64_t all = 0;
    for (; s->at < CALLS; s->at++) {
        const call *c = &calls[s->at];
        for (int64_t n = 1;; n++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            const exphil_memory_info before = memory_of(s);
            emulated_gpu()->fail_allocation(n);
            const exphil_status status = c->make(s, c->which, &error);
            emulated_gpu()->fail_allocation(0);
            if (status == EXPHIL_OK) break;
            const exphil_memory_info after = memory_of(s);
            if (status != EXPHIL_E_MEMORY || !strstr(error.message, "could not get ") ||
                !strstr(error.message, "memory_limit_bytes"))
                fail_msg("%s, allocation %lld: %s: %s", c->name, (long long)n, exphil_status_name(status),
                         error.message);
            if (after.device_used_bytes != before.device_used_bytes ||
                after.pinned_used_bytes != before.pinned_used_bytes)
                fail_msg("%s, allocation %lld: %lld bytes stay, %lld pinned", c->name, (long long)n,
                         (long long)(after.device_used_bytes - before.device_used_bytes),
                         (long long)(after.pinned_used_bytes - before.pinned_used_bytes));
            all++;
        }
    }
    outcome got = outcome_of(s);
    same_outcome(&got, &want);
    print_message("%lld allocations failed\n", (long long)all);
    assert_true(all > 20);
    outcome_free(&got);
    outcome_free(&want);
    scene_close(s);
}

/* A card whose memory ends: what a context keeps for itself is given back before it says that there is none. */
static void a_small_card(void **state)
{
    outcome want = undisturbed();
    emulated_gpu()->memory(want.peak);
    scene *s = until_refused(0);
    if (s->at < CALLS)
        fail_msg("%s is refused by a card of %llu bytes", calls[s->at].name, (unsigned long long)want.peak);
    outcome got = outcome_of(s);
    same_outcome(&got, &want);
    outcome_free(&got);
    scene_close(s);
    emulated_gpu()->memory(0);
    outcome_free(&want);
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    (void)emulated_blaslt();
    emulated_gpu()->timing(EMU_LAZY, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_limit),
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(a_small_card),
    };
    return cmocka_run_group_tests(tests, setup, test_leave);
}
