/* A plugin of some host: linked to libexphil, loaded with RTLD_LOCAL by guest_host.c. Nothing here needs a large stack. All
 * memory of the library is counted: what is left over when the last handle is gone is a leak. */
#define _GNU_SOURCE
#include "guest.h"

#include <exphil/exphil.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAMES = 300, FLOATS = 3, LOGITS = 2, HANDLES = 7, THREADS_MAX = 16 };

struct run {
    atomic_llong bytes; /* not yet given back */
    exphil_context *context;
    exphil_model *model;
    exphil_dataset *dataset;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_session *session;
    exphil_error error;
    float floats[FRAMES * FLOATS];
    int32_t actions[FRAMES];
};

#define TRY(condition)                                                                                       \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      snprintf(text, 256, "guest_plugin.c:%d: %.200s", __LINE__, run->error.message);                        \
      return 1;                                                                                              \
    }                                                                                                        \
  } while (0)

static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    size_t whole = (bytes + align - 1) / align * align;
    void *pointer = aligned_alloc(align, whole ? whole : align);
    if (pointer) atomic_fetch_add(&((struct run *)user)->bytes, (long long)bytes);
    return pointer;
}

static void counted_free(void *user, void *pointer, size_t bytes)
{
    if (pointer) atomic_fetch_sub(&((struct run *)user)->bytes, (long long)bytes);
    free(pointer);
}

static int begin(struct run *run, char *text)
{
    static const exphil_head_spec heads[] = {{"stick", EXPHIL_CATEGORICAL, LOGITS, 0, 0}};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_allocator allocator = {sizeof allocator, run, counted_alloc, counted_free};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    exphil_model_config net = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    uint32_t state = 11;
    run->error = error;
    config.allocator = &allocator;
    config.threads = 2;
    for (int t = 0; t < FRAMES; t++) {
        for (int i = 0; i < FLOATS; i++) {
            state = state * 1664525u + 1013904223u;
            run->floats[t * FLOATS + i] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        run->actions[t] = run->floats[t * FLOATS] > 0;
    }
    spec.layout = "guest", spec.codec = "guest", spec.float_count = FLOATS, spec.head_count = 1,
    spec.heads = heads;
    data.spec = net.spec = &spec;
    net.blocks = "mamba gru";
    net.hidden = net.head_width = 8;
    TRY(exphil_context_create(&config, &run->context, &run->error) == EXPHIL_OK);
    TRY(exphil_dataset_create(run->context, &data, &run->dataset, &run->error) == EXPHIL_OK);
    TRY(exphil_dataset_add_rows(run->dataset, 1, FRAMES, run->floats, NULL, run->actions, &run->error) ==
        EXPHIL_OK);
    TRY(exphil_model_create(run->context, &net, &run->model, &run->error) == EXPHIL_OK);
    TRY(exphil_model_sampling(run->model, &sampling, &run->error) == EXPHIL_OK);
    sampling.batch = 2;
    sampling.time = 10;
    TRY(exphil_prefetcher_create(run->dataset, &sampling, &run->prefetcher, &run->error) == EXPHIL_OK);
    TRY(exphil_optimizer_create(run->model, NULL, &run->optimizer, &run->error) == EXPHIL_OK);
    TRY(exphil_trainer_create(run->model, run->optimizer, run->prefetcher, NULL, &run->trainer,
                              &run->error) == EXPHIL_OK);
    TRY(exphil_session_create(run->model, NULL, &run->session, &run->error) == EXPHIL_OK);
    return 0;
}

static void destroy(struct run *run, int which)
{
    if (which == 0) exphil_context_destroy(run->context), run->context = NULL;
    if (which == 1) exphil_model_destroy(run->model), run->model = NULL;
    if (which == 2) exphil_dataset_destroy(run->dataset), run->dataset = NULL;
    if (which == 3) exphil_prefetcher_destroy(run->prefetcher), run->prefetcher = NULL;
    if (which == 4) exphil_optimizer_destroy(run->optimizer), run->optimizer = NULL;
    if (which == 5) exphil_trainer_destroy(run->trainer), run->trainer = NULL;
    if (which == 6) exphil_session_destroy(run->session), run->session = NULL;
}

static int end(struct run *run, char *text)
{
    for (int which = 0; which < HANDLES; which++) destroy(run, which);
    long long left = atomic_load(&run->bytes);
    if (left) snprintf(text, 256, "%lld bytes of the library are left", left);
    return left != 0;
}

static int update(struct run *run, int count, char *text)
{
    for (int i = 0; i < count; i++) TRY(exphil_trainer_step(run->trainer, NULL, &run->error) == EXPHIL_OK);
    return 0;
}

/* FNV-1a: Fowler, Noll, Vo. */
static void add(uint64_t *hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) *hash = (*hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
}

static int play(struct run *run, exphil_session *session, uint64_t *hash, char *text)
{
    int32_t action;
    float logits[LOGITS];
    for (int t = 0; t < FRAMES; t++) {
        TRY(exphil_session_step_row(session, run->floats + t * FLOATS, NULL, NULL, &action) == EXPHIL_OK);
        TRY(exphil_session_logits(session, 0, logits, LOGITS) == EXPHIL_OK);
        add(hash, logits, sizeof logits);
        add(hash, &action, sizeof action);
    }
    return 0;
}

static int play_trained(struct run *run, uint64_t *hash, char *text)
{
    exphil_model *trained = NULL;
    exphil_session *session = NULL, *clone = NULL;
    uint64_t again = *hash;
    TRY(exphil_trainer_model(run->trainer, EXPHIL_WEIGHTS, &trained, &run->error) == EXPHIL_OK);
    TRY(exphil_session_create(trained, NULL, &session, &run->error) == EXPHIL_OK);
    TRY(exphil_session_clone(session, &clone, &run->error) == EXPHIL_OK);
    int failed = play(run, session, hash, text) || play(run, clone, &again, text);
    TRY(failed || again == *hash);
    exphil_session_destroy(clone);
    exphil_model_destroy(trained);
    exphil_session_destroy(session);
    return failed;
}

static struct run *new_run(void)
{
    return calloc(1, sizeof(struct run));
}

static int whole_way(uint64_t *hash, char *text)
{
    struct run *run = new_run();
    *hash = 14695981039346656037u;
    int failed =
        !run || begin(run, text) || update(run, 20, text) || play_trained(run, hash, text) || end(run, text);
    free(run);
    return failed;
}

static int any_order(int order, char *text)
{
    struct run *run = new_run();
    int left[HANDLES] = {0, 1, 2, 3, 4, 5, 6};
    int32_t action;
    int failed = !run || begin(run, text);
    for (int count = HANDLES; count > 0 && !failed; count--) {
        int at = order % count;
        order /= count;
        destroy(run, left[at]);
        memmove(left + at, left + at + 1, (size_t)(count - 1 - at) * sizeof *left);
        if (run->trainer && count == 4) failed = update(run, 1, text);
        if (run->session)
            TRY(exphil_session_step_row(run->session, run->floats, NULL, NULL, &action) == EXPHIL_OK);
    }
    failed = failed || end(run, text);
    free(run);
    return failed;
}

struct worker {
    struct run *run;
    exphil_session *shared; /* NULL: a session of its own */
    uint64_t hash;
    int failed;
    long done, busy;
    char text[256];
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct run *run = worker->run;
    exphil_session *own = NULL;
    worker->hash = 1;
    if (!worker->shared) {
        /* The error is the run's: threads must not share it. */
        if (exphil_session_create(run->model, NULL, &own, NULL) < 0) return worker->failed = 1, NULL;
        for (int i = 0; i < 5 && !worker->failed; i++)
            worker->failed = play(run, own, &worker->hash, worker->text);
        exphil_session_destroy(own);
        return NULL;
    }
    for (int i = 0; i < 20000; i++) {
        int32_t action = -1;
        exphil_status status = exphil_session_step_row(worker->shared, run->floats, NULL, NULL, &action);
        worker->done += status == EXPHIL_OK;
        worker->busy += status == EXPHIL_E_BUSY;
        worker->failed |=
            status == EXPHIL_OK ? action < 0 || action >= LOGITS : status != EXPHIL_E_BUSY || action != -1;
    }
    return NULL;
}

static int together(struct run *run, int threads, exphil_session *shared, struct worker *workers, char *text)
{
    pthread_t thread[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){.run = run, .shared = shared};
        TRY(pthread_create(&thread[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < threads; i++) TRY(!workers[i].failed && workers[i].hash == workers[0].hash);
    return 0;
}

static int many_threads(int threads, char *text)
{
    struct run *run = new_run();
    struct worker *workers = calloc(THREADS_MAX, sizeof *workers);
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    long done = 0, busy = 0;
    if (!run || !workers) return 1;
    int failed = begin(run, text) || together(run, threads, NULL, workers, text) ||
                 together(run, threads, run->session, workers, text);
    for (int i = 0; i < threads; i++) done += workers[i].done, busy += workers[i].busy;
    TRY(failed || exphil_session_query(run->session, &info, &run->error) == EXPHIL_OK);
    TRY(failed || (info.steps == (uint64_t)done && done + busy == threads * 20000L && done > 0));
    failed = failed || end(run, text);
    free(workers);
    free(run);
    return failed;
}

static int across_fork(char *text)
{
    struct run *run = new_run();
    int32_t action;
    uint64_t here = 0, there = 0;
    int status = 1;
    if (!run || begin(run, text) || whole_way(&here, text)) return 1;
    pid_t child = fork();
    if (child == 0) {
        int wrong =
            exphil_session_step_row(run->session, run->floats, NULL, NULL, &action) != EXPHIL_E_STATE ||
            exphil_trainer_step(run->trainer, NULL, NULL) != EXPHIL_E_STATE;
        wrong |= whole_way(&there, text) || there != here;
        for (int which = 0; which < HANDLES; which++) destroy(run, which); /* without a crash or a wait */
        _exit(wrong);
    }
    TRY(child > 0 && waitpid(child, &status, 0) == child);
    TRY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    int failed = update(run, 3, text) || play(run, run->session, &here, text) || end(run, text);
    free(run);
    return failed;
}

static const struct guest_plugin plugin = {whole_way, any_order, many_threads, across_fork};

const struct guest_plugin *guest_plugin_entry(void);
const struct guest_plugin *guest_plugin_entry(void)
{
    return &plugin;
}
