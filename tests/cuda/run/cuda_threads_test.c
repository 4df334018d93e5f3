/* Contexts of emulated GPUs in several threads, on one device and on two: trained, played, handed to other threads, destroyed in
 * any order, with stand-ins for cuBLASLt and cuDNN that contexts of a device share. Whatever runs beside it, work gives the bits
 * that it gives alone. The thread sanitizer watches the backend's own lines meanwhile. */
#include "emulated.h"
#include "play_case.h"
#include "train_case.h"

#include "device/device.h"

#include <exphil/ops.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(EXPHIL_SANITIZE)
enum { UPDATES = 3, FRAMES = 4, TIMES = 2, VISITS = 6 };
#else
enum { UPDATES = 5, FRAMES = 8, TIMES = EMU_TIMINGS, VISITS = 20 };
#endif
enum { WORKERS = 6, PARTS = 6, ORDERS = 720, STREAMS = 2 };

/* ---- what the log says, from whichever thread ---- */

static atomic_int complaints;

static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level > EXPHIL_LOG_WARNING) return;
    print_message("logged: %s\n", message);
    complaints++;
}

static exphil_context *context_on(const char *device)
{
    exphil_context_config config = emulated_config(device, hear, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("%s: %s", device, error.message);
    return context;
}

/* ---- work and what comes of it ---- */

/* An assertion that fails in a thread ends the program. */
typedef struct work work;
typedef struct kind {
    void (*run)(work *w);
    const char *device, *blocks;
    int32_t precision;
    int64_t accumulate;
} kind;
struct work {
    const kind *as;
    int order; /* of destroying: a permutation's number */
    unsigned char *bytes;
    size_t count;
};

/* Permutation `number` of what there is to destroy. */
static void permutation(int number, int at[PARTS])
{
    for (int i = 0; i < PARTS; i++) at[i] = i;
    for (int i = PARTS; i > 1; number /= i, i--) {
        const int from = number % i, moved = at[from];
        at[from] = at[i - 1];
        at[i - 1] = moved;
    }
}

static void destroy_in_order(train_run *run, int order)
{
    int at[PARTS];
    permutation(order % ORDERS, at);
    for (int i = 0; i < PARTS; i++) {
        if (at[i] == 0) exphil_context_destroy(run->context);
        if (at[i] == 1) exphil_model_destroy(run->model);
        if (at[i] == 2) exphil_dataset_destroy(run->dataset);
        if (at[i] == 3) exphil_prefetcher_destroy(run->prefetcher);
        if (at[i] == 4) exphil_optimizer_destroy(run->optimizer);
        if (at[i] == 5) exphil_trainer_destroy(run->trainer);
    }
}

static void trains(work *w)
{
    train_plan plan = train_plan_of(w->as->blocks, EXPHIL_MODE_CARRY);
    plan.device = w->as->device;
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.precision = w->as->precision;
    plan.trainer.accumulate = w->as->accumulate;
    plan.adam.ema_decay = 0.9;
    plan.log = hear;
    train_run run = train_begin(&plan);
    train_steps(&run, UPDATES);
    w->bytes = train_snapshot(run.trainer, &w->count);
    destroy_in_order(&run, w->order);
}

/* Actions and logits of all frames. */
static void play(exphil_session *session, const play_frames *f, int64_t from, int64_t to, unsigned char *into)
{
    const size_t actions = (size_t)(STREAMS * f->heads) * sizeof(int32_t),
                 logits = (size_t)(STREAMS * f->logits) * sizeof(float);
    into += (size_t)from * (actions + logits);
    for (int64_t t = from; t < to; t++, into += actions + logits) {
        play_step(session, f, t, false, (int32_t *)(void *)into);
        play_logits(session, f, (float *)(void *)(into + actions));
    }
}

static size_t played_bytes(const play_frames *f)
{
    return (size_t)(FRAMES * STREAMS) *
           ((size_t)f->heads * sizeof(int32_t) + (size_t)f->logits * sizeof(float));
}

typedef struct table {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    play_frames *frames;
} table;

static table table_on(const kind *as)
{
    table t = {.context = context_on(as->device)};
    const exphil_model_config config = model_case_config(as->blocks, EXPHIL_TYPE_F32);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = STREAMS;
    t.model = play_model(t.context, &config, 0.1);
    t.session = play_session(t.model, &how);
    t.frames = play_frames_make(t.model, STREAMS, FRAMES, 5);
    return t;
}

/* In one of six orders. */
static void table_end(table *t, int order)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 3; i++) {
        const int part = orders[order % 6][i];
        if (part == 0) exphil_context_destroy(t->context);
        if (part == 1) exphil_model_destroy(t->model);
        if (part == 2) exphil_session_destroy(t->session);
    }
    play_frames_free(t->frames);
}

static void plays(work *w)
{
    table t = table_on(w->as);
    w->count = played_bytes(t.frames);
    w->bytes = calloc(1, w->count);
    play(t.session, t.frames, 0, FRAMES, w->bytes);
    table_end(&t, w->order);
}

/* Attention that cuDNN does, as it is and recorded; the last of them counts. */
enum { BATCH = 4, TIME = 512, DIM = 64, WINDOW = 20, ROWS = BATCH * TIME };

typedef struct rig {
    exphil_context *context;
    xph_device *device;
    const xph_backend *backend;
    xph_stream *stream;
} rig;

static rig rig_on(const char *device)
{
    rig r = {.context = context_on(device)};
    r.device = xph_context_backend(r.context);
    r.backend = r.device->backend;
    assert_int_equal(r.backend->stream_create(r.device, XPH_STREAM_NET, &r.stream), EXPHIL_OK);
    return r;
}

static void rig_end(const rig *r)
{
    r->backend->stream_destroy(r->stream);
    exphil_context_destroy(r->context);
}

/* Of small numbers, or of zeros. */
static void *block(const rig *r, size_t bytes, uint64_t seed)
{
    uint16_t *narrow = calloc(1, bytes);
    void *at = NULL;
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    for (size_t i = 0; seed && i < bytes / 2; i++)
        narrow[i] = (uint16_t)(0x3c00 + (xph_rng_below(&rng, 512) | xph_rng_below(&rng, 2) << 15));
    assert_int_equal(r->backend->alloc(r->device, bytes, &at), EXPHIL_OK);
    assert_int_equal(r->backend->upload(r->stream, at, narrow, bytes), EXPHIL_OK);
    assert_int_equal(r->backend->stream_wait(r->stream), EXPHIL_OK);
    free(narrow);
    return at;
}

static void attends(work *w)
{
    const rig r = rig_on(w->as->device);
    const size_t qkv = ROWS * 3 * DIM * 2, y = ROWS * DIM * 2, bias = WINDOW * sizeof(float),
                 state = BATCH * (2 * WINDOW * DIM + 2) * sizeof(float);
    xph_op_info info = {.refused = 0};
    xph_graph *graph = NULL;
    xph_attention_args a = {.type = XPH_BF16,
                            .fresh = 1,
                            .batch = BATCH,
                            .time = TIME,
                            .heads = 1,
                            .dim = DIM,
                            .window = WINDOW,
                            .ldqkv = 3 * DIM,
                            .ldy = DIM,
                            .ld_state = 2 * WINDOW * DIM + 2};
    a.qkv = block(&r, qkv, 7);
    a.bias = block(&r, bias, 0);
    a.y = block(&r, y, 0);
    a.state_out = block(&r, state, 0);
    assert_int_equal(r.backend->query(r.device, XPH_OP_ATTENTION, &a, &info), EXPHIL_OK);
    assert_string_equal(info.name, "attention_cudnn");
    assert_int_equal(r.backend->alloc(r.device, info.scratch_bytes, &a.scratch), EXPHIL_OK);
    assert_int_equal(r.backend->run(r.stream, info.kernel, &a), EXPHIL_OK);
    assert_int_equal(r.backend->zero(r.stream, a.y, y), EXPHIL_OK);
    assert_int_equal(r.backend->record_begin(r.stream), EXPHIL_OK);
    assert_int_equal(r.backend->run(r.stream, info.kernel, &a), EXPHIL_OK);
    assert_int_equal(r.backend->record_end(r.stream, &graph), EXPHIL_OK);
    assert_int_equal(r.backend->replay(r.stream, graph), EXPHIL_OK);
    w->count = y;
    w->bytes = calloc(1, y);
    assert_int_equal(r.backend->download(r.stream, w->bytes, a.y, y), EXPHIL_OK);
    assert_int_equal(r.backend->stream_wait(r.stream), EXPHIL_OK);
    r.backend->graph_destroy(graph);
    r.backend->free(r.device, (void *)(uintptr_t)a.qkv, qkv);
    r.backend->free(r.device, (void *)(uintptr_t)a.bias, bias);
    r.backend->free(r.device, a.y, y);
    r.backend->free(r.device, a.state_out, state);
    r.backend->free(r.device, a.scratch, info.scratch_bytes);
    rig_end(&r);
}

/* A device that is opened for one product and closed again, so that what contexts share begins and ends all the time. */
enum { SIDE = 16, PRODUCT = SIDE * SIDE * 4 };

static void visits(work *w)
{
    float bias[SIDE], *y = calloc(1, PRODUCT);
    w->count = PRODUCT;
    w->bytes = (unsigned char *)y;
    for (int visit = 0; visit < VISITS; visit++) {
        const rig r = rig_on(w->as->device);
        xph_op_info info = {.refused = 0};
        /* another bias at another address: a description that contexts share is told it before each product */
        for (int i = 0; i < SIDE; i++) bias[i] = (float)(i + w->order);
        xph_linear_args a = {.rows = SIDE, .in = SIDE, .out = SIDE, .ldx = SIDE, .ldy = SIDE};
        void *const x = block(&r, PRODUCT, 3), *const at = block(&r, sizeof bias, 0);
        a.x = x;
        a.w = x;
        a.bias = at;
        a.y = block(&r, PRODUCT, 0);
        assert_int_equal(r.backend->upload(r.stream, at, bias, sizeof bias), EXPHIL_OK);
        assert_int_equal(r.backend->query(r.device, XPH_OP_LINEAR, &a, &info), EXPHIL_OK);
        assert_string_equal(info.name, "linear_cublaslt");
        assert_int_equal(r.backend->run(r.stream, info.kernel, &a), EXPHIL_OK);
        assert_int_equal(r.backend->download(r.stream, y, a.y, PRODUCT), EXPHIL_OK);
        assert_int_equal(r.backend->stream_wait(r.stream), EXPHIL_OK);
        r.backend->free(r.device, x, PRODUCT);
        r.backend->free(r.device, at, sizeof bias);
        r.backend->free(r.device, a.y, PRODUCT);
        rig_end(&r);
    }
}

/* ---- alone and together ---- */

static void *thread_of(void *given)
{
    work *w = given;
    w->as->run(w);
    return NULL;
}

static void nothing_is_left(const fake_blaslt *lt, const fake_cudnn *dn)
{
    assert_int_equal(lt->alive, 0);
    assert_int_equal(lt->together, 0);
    assert_int_equal(dn->alive, 0);
    assert_int_equal(dn->wrong, 0);
    assert_int_equal(dn->together, 0);
    assert_int_equal(complaints, 0);
    emulated_clean();
}

static void as_alone(const kind kinds[], int count)
{
    work alone[WORKERS], together[WORKERS];
    pthread_t thread[WORKERS];
    const fake_blaslt *lt = emulated_blaslt();
    const fake_cudnn *dn = emulated_cudnn();
    emulated_gpu()->timing(EMU_EAGER, 1);
    for (int i = 0; i < count; i++) {
        alone[i] = (work){&kinds[i], i, NULL, 0};
        kinds[i].run(&alone[i]);
    }
    for (int timing = 0; timing < TIMES; timing++) {
        emulated_gpu()->timing(EMU_TIMINGS - 1 - timing, (uint64_t)timing + 1);
        for (int i = 0; i < count; i++) {
            together[i] = (work){&kinds[i], i, NULL, 0};
            if (kinds[i].run == trains) together[i].order = (timing + 1) * (101 * i + 37);
            assert_int_equal(pthread_create(&thread[i], NULL, thread_of, &together[i]), 0);
        }
        for (int i = 0; i < count; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < count; i++) {
            assert_int_equal(together[i].count, alone[i].count);
            if (memcmp(together[i].bytes, alone[i].bytes, alone[i].count) != 0)
                fail_msg("timing %d: worker %d (%s on %s) differs from itself alone", timing, i,
                         kinds[i].blocks ? kinds[i].blocks : "an operation", kinds[i].device);
            free(together[i].bytes);
        }
        nothing_is_left(lt, dn);
    }
    for (int i = 0; i < count; i++) free(alone[i].bytes);
}

static void contexts_of_two_devices(void **state)
{
    static const kind kinds[WORKERS] = {
        {trains, "cuda:0", "lstm", EXPHIL_PRECISION_F32, 0},
        {trains, "cuda:1", "mamba attention", EXPHIL_PRECISION_BF16, 0},
        {plays, "cuda:0", "attention gru", 0, 0},
        {trains, "cuda:0", "gru", EXPHIL_PRECISION_F16, 2},
        {plays, "cuda:1", "mamba lstm", 0, 0},
        {trains, "cuda:1", "lstm", EXPHIL_PRECISION_F32, 3},
    };
    setenv("EXPHIL_CUDA_JOIN", "none", 1); /* a step has more that may come between than one launch */
    as_alone(kinds, WORKERS);
}

static void libraries_of_a_device(void **state)
{
    static const kind kinds[WORKERS] = {
        {attends, "cuda:0", NULL, 0, 0}, {visits, "cuda:0", NULL, 0, 0}, {attends, "cuda:0", NULL, 0, 0},
        {attends, "cuda:1", NULL, 0, 0}, {visits, "cuda:0", NULL, 0, 0}, {visits, "cuda:1", NULL, 0, 0},
    };
    as_alone(kinds, WORKERS);
}

/* ---- from hand to hand ---- */

/* Each thread makes a context and plays the first frames, another goes on with it and destroys all of it. */
typedef struct hand {
    pthread_barrier_t *meet;
    table *mine, *other;
    unsigned char *into;
    const kind *as;
    int order;
} hand;

static void *hands_over(void *given)
{
    hand *h = given;
    *h->mine = table_on(h->as);
    pthread_barrier_wait(h->meet);
    play(h->other->session, h->other->frames, 0, FRAMES / 2, h->into);
    pthread_barrier_wait(h->meet);
    play(h->other->session, h->other->frames, FRAMES / 2, FRAMES, h->into);
    table_end(h->other, h->order);
    return NULL;
}

static void what_one_thread_made_another_destroys(void **state)
{
    static const kind kinds[] = {{plays, "cuda:0", "lstm mlp", 0, 0},
                                 {plays, "cuda:0", "mamba", 0, 0},
                                 {plays, "cuda:1", "gru", 0, 0}};
    enum { HANDS = sizeof kinds / sizeof *kinds };
    table tables[HANDS];
    hand hands[HANDS];
    work alone[HANDS];
    pthread_t thread[HANDS];
    pthread_barrier_t meet;
    emulated_gpu()->timing(EMU_LAZY, 1);
    for (int i = 0; i < HANDS; i++) {
        alone[i] = (work){&kinds[i], i, NULL, 0};
        plays(&alone[i]);
    }
    for (int order = 0; order < 6; order++) {
        assert_int_equal(pthread_barrier_init(&meet, NULL, HANDS), 0);
        for (int i = 0; i < HANDS; i++) {
            const int next = (i + 1) % HANDS;
            hands[i] = (hand){.meet = &meet,
                              .mine = &tables[i],
                              .other = &tables[next],
                              .as = &kinds[i],
                              .order = order + i};
            hands[i].into = calloc(1, alone[next].count);
        }
        for (int i = 0; i < HANDS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, hands_over, &hands[i]), 0);
        for (int i = 0; i < HANDS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < HANDS; i++) {
            const work *want = &alone[(i + 1) % HANDS];
            assert_memory_equal(hands[i].into, want->bytes, want->count);
            free(hands[i].into);
        }
        pthread_barrier_destroy(&meet);
        nothing_is_left(emulated_blaslt(), emulated_cudnn());
    }
    for (int i = 0; i < HANDS; i++) free(alone[i].bytes);
}

/* ---- one context ---- */

/* Sessions of one model, and models and sessions that come and go meanwhile. */
typedef struct guest {
    const exphil_model *model;
    const play_frames *frames;
    unsigned char *into; /* NULL: makes a model of its own each time */
} guest;

static void *sits(void *given)
{
    guest *g = given;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = STREAMS;
    for (int visit = 0; visit < 3; visit++) {
        exphil_session *session = play_session(g->model, &how);
        play(session, g->frames, 0, FRAMES, g->into);
        exphil_session_destroy(session);
    }
    return NULL;
}

typedef struct comer {
    exphil_context *context;
} comer;

static void *comes_and_goes(void *given)
{
    const comer *c = given;
    const exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    for (int visit = 0; visit < 6; visit++) {
        exphil_model *model = model_case_create(c->context, &config);
        exphil_session *session = play_session(model, NULL);
        exphil_model_destroy(model);
        exphil_session_destroy(session);
    }
    return NULL;
}

static void sessions_of_one_model(void **state)
{
    enum { GUESTS = 3 };
    static const kind as = {plays, "cuda:1", "lstm attention", 0, 0};
    work alone = {&as, 0, NULL, 0};
    guest guests[GUESTS];
    pthread_t thread[GUESTS + 1];
    unsetenv("EXPHIL_CUDA_JOIN");
    emulated_gpu()->timing(EMU_SHUFFLED, 3);
    plays(&alone);
    table t = table_on(&as);
    comer c = {t.context};
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = (guest){t.model, t.frames, calloc(1, alone.count)};
        assert_int_equal(pthread_create(&thread[i], NULL, sits, &guests[i]), 0);
    }
    assert_int_equal(pthread_create(&thread[GUESTS], NULL, comes_and_goes, &c), 0);
    for (int i = 0; i <= GUESTS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < GUESTS; i++) {
        assert_memory_equal(guests[i].into, alone.bytes, alone.count);
        free(guests[i].into);
    }
    table_end(&t, 3);
    free(alone.bytes);
    nothing_is_left(emulated_blaslt(), emulated_cudnn());
}

/* ---- operations of many shapes ---- */

/* Layers whose launches of one kernel take more shared memory or less, at once and again and again. */
typedef struct layer {
    const char *kernel;
    int64_t hidden, frames;
} layer;

typedef struct layer_work {
    const layer *as;
    exphil_ops *ops;
    xph_device *device;
    float *y;
    int times;
} layer_work;

/* With what a stream of the plugin begins (cuda/device.h). */
typedef struct plugin_stream {
    xph_stream base;
    void *native;
} plugin_stream;

static void *layers(void *given)
{
    enum { GATES = 4, KINDS = 4 };
    const layer_work *w = given;
    const xph_backend *b = w->device->backend;
    const int64_t hidden = w->as->hidden, rows = w->as->frames;
    const size_t bytes[KINDS] = {
        (size_t)(GATES * hidden * rows) * sizeof(float), (size_t)(GATES * hidden * hidden) * sizeof(float),
        (size_t)(GATES * hidden) * sizeof(float), (size_t)(rows * hidden) * sizeof(float)};
    void *at[KINDS], *workspace = NULL;
    xph_stream *stream = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_rnn_args a = EXPHIL_RNN_ARGS_INIT;
    assert_int_equal(b->stream_create(w->device, 0, &stream), EXPHIL_OK);
    for (int i = 0; i < KINDS; i++) {
        xph_rng rng = {.seed = (uint64_t)i + 1, .stream = XPH_RNG_TEST};
        float *numbers = malloc(bytes[i]);
        for (size_t k = 0; k < bytes[i] / sizeof(float); k++)
            numbers[k] = ((float)xph_rng_below(&rng, 512) - 256.0f) / 4096.0f;
        assert_int_equal(b->alloc(w->device, bytes[i], &at[i]), EXPHIL_OK);
        assert_int_equal(b->upload(stream, at[i], numbers, bytes[i]), EXPHIL_OK);
        free(numbers);
    }
    a.op = EXPHIL_OP_LSTM;
    a.batch = 1;
    a.frames = rows;
    a.hidden = hidden;
    a.gates.data = at[0];
    a.weight.data = at[1];
    a.bias.data = at[2];
    a.y.data = at[3];
    if (exphil_ops_query(w->ops, &a, &info, &error) < 0) fail_msg("%s", error.message);
    assert_string_equal(info.kernel, w->as->kernel);
    assert_int_equal(b->alloc(w->device, info.workspace_bytes, &workspace), EXPHIL_OK);
    for (int i = 0; i < w->times; i++) {
        void *const native = ((const plugin_stream *)stream)->native;
        if (exphil_ops_run(w->ops, &a, workspace, info.workspace_bytes, native, &error) < 0)
            fail_msg("%lld units, run %d: %s", (long long)hidden, i, error.message);
    }
    assert_int_equal(b->download(stream, w->y, at[3], bytes[3]), EXPHIL_OK);
    assert_int_equal(b->stream_wait(stream), EXPHIL_OK);
    b->free(w->device, workspace, info.workspace_bytes);
    for (int i = 0; i < KINDS; i++) b->free(w->device, at[i], bytes[i]);
    b->stream_destroy(stream);
    return NULL;
}

static void shapes_of_one_kernel(void **state)
{
    static const layer all[] = {{"rnn_stay", 56, 3},
                                {"rnn_stay", 96, 3},
                                {"rnn_stay", 64, 3},
                                {"rnn_cluster_floats", 256, 6},
                                {"rnn_cluster_floats", 384, 6},
                                {"rnn_cluster_floats", 192, 6}};
    enum { LAYERS = sizeof all / sizeof *all, MOST = 384 * 6 };
    static float want[LAYERS][MOST], got[LAYERS][MOST];
    layer_work jobs[LAYERS];
    pthread_t thread[LAYERS];
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_on("cuda:0");
    exphil_ops *ops = NULL;
    if (exphil_ops_create(context, NULL, &ops, &error) < 0) fail_msg("%s", error.message);
    emulated_gpu()->timing(EMU_SHUFFLED, 7);
    for (int i = 0; i < LAYERS; i++) {
        jobs[i] = (layer_work){&all[i], ops, xph_context_backend(context), want[i], 1};
        layers(&jobs[i]);
    }
    for (int i = 0; i < LAYERS; i++) {
        jobs[i].y = got[i];
        jobs[i].times = VISITS;
        assert_int_equal(pthread_create(&thread[i], NULL, layers, &jobs[i]), 0);
    }
    for (int i = 0; i < LAYERS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_memory_equal(got, want, sizeof want);
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
    nothing_is_left(emulated_blaslt(), emulated_cudnn());
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    setenv("EXPHIL_CUDNN", EMULATED_CUDNN, 1);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_gpu()->devices(2, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_of_two_devices),
        cmocka_unit_test(libraries_of_a_device),
        cmocka_unit_test(what_one_thread_made_another_destroys),
        cmocka_unit_test(sessions_of_one_model),
        cmocka_unit_test(shapes_of_one_kernel),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
