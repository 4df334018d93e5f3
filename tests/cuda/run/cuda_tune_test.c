/* The timing of cuBLASLt's algorithms (cuda/blaslt_tune.c) on a clock that the test keeps: which algorithm is chosen, what is
 * tried, in which order, by which addresses, and what is left when it fails. And whole models in every precision, tuned, run by
 * what was chosen: the library does every product as it was told, with the same bits each time. */
#include "emulated.h"
#include "train_case.h"

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a clock ---- */

/* Milliseconds of each algorithm. */
static double cost[FAKE_ALGORITHMS];
static fake_blaslt *lt;

static double time_by_cost(void)
{
    double now = 0.0;
    for (int i = 0; i < FAKE_ALGORITHMS; i++) now += (double)lt->by[i] * cost[i];
    return now;
}

static void costs(double first, double second, double third)
{
    cost[0] = first;
    cost[1] = second;
    cost[2] = third;
    for (int i = 0; i < FAKE_ALGORITHMS; i++) lt->by[i] = 0;
    lt->idle = lt->unfit = lt->hungry = 0;
    lt->where = FAKE_NOWHERE;
}

/* ---- what is told ---- */

enum { LINES = 256 };
typedef struct told {
    int count;
    char line[LINES][256];
} told;

static void note(void *user, const char *line)
{
    told *t = user;
    assert_true(t->count < LINES);
    snprintf(t->line[t->count++], sizeof t->line[0], "%s", line);
}

static told said;

/* ---- products on a device ---- */

typedef struct rig {
    exphil_context *context;
    xph_device *device;
    const xph_backend *backend;
    xph_stream *stream;
} rig;

static atomic_int warnings;

static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level > EXPHIL_LOG_WARNING) return;
    print_message("logged: %s\n", message);
    warnings++;
}

static rig rig_open(size_t limit)
{
    exphil_context_config config = emulated_config("cuda:0", hear, NULL);
    rig r = {.context = NULL};
    config.memory_limit_bytes = limit;
    assert_ok(exphil_context_create(&config, &r.context, NULL));
    r.device = xph_context_backend(r.context);
    r.backend = r.device->backend;
    assert_ok(r.backend->stream_create(r.device, XPH_STREAM_NET, &r.stream));
    return r;
}

static void rig_close(const rig *r)
{
    r->backend->stream_destroy(r->stream);
    exphil_context_destroy(r->context);
    assert_int_equal(lt->alive, 0);
    emulated_clean();
}

/* Odd everywhere: rows further apart than they are wide, matrices not square, addresses aligned as little as `skip` bytes. */
enum { ROWS = 7, IN = 12, OUT = 20, LDX = 16, LDY = 24, ROOM = 4096 };

static void *block(const rig *r, uint64_t seed)
{
    float numbers[ROOM / 4];
    void *at = NULL;
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    for (int i = 0; i < ROOM / 4; i++) numbers[i] = (float)model_case_uniform(&rng, -1.0, 1.0);
    assert_ok(r->backend->alloc(r->device, ROOM, &at));
    assert_ok(r->backend->upload(r->stream, at, numbers, ROOM));
    assert_ok(r->backend->stream_wait(r->stream));
    return at;
}

typedef struct product {
    int64_t rows, skip;
    bool bias;
} product;

/* Its bits, and the name that a plan has for it. */
static void compute(const rig *r, const product *p, float y[ROOM / 4], char name[64])
{
    unsigned char *at[4];
    xph_op_info info = {.refused = 0};
    for (int i = 0; i < 4; i++) at[i] = block(r, (uint64_t)i + 1);
    xph_linear_args a = {.rows = p->rows,
                         .in = IN,
                         .out = OUT,
                         .x = at[0] + p->skip,
                         .ldx = LDX,
                         .w = at[1] + p->skip,
                         .bias = p->bias ? at[2] + p->skip : NULL,
                         .y = at[3] + p->skip,
                         .ldy = LDY};
    assert_ok(r->backend->query(r->device, XPH_OP_LINEAR, &a, &info));
    if (name) snprintf(name, 64, "%s", info.name);
    assert_int_equal(r->backend->run(r->stream, info.kernel, &a),
                     lt->where == FAKE_AT_QUERY ? EXPHIL_E_UNSUPPORTED : EXPHIL_OK);
    assert_ok(r->backend->download(r->stream, y, at[3], ROOM));
    assert_ok(r->backend->stream_wait(r->stream));
    for (int i = 0; i < 4; i++) r->backend->free(r->device, at[i], ROOM);
}

/* dw and dx of it. */
static void compute_gradients(const rig *r)
{
    unsigned char *at[5];
    xph_op_info info = {.refused = 0};
    for (int i = 0; i < 5; i++) at[i] = block(r, (uint64_t)i + 1);
    xph_linear_grad_args g = {.rows = ROWS,
                              .in = IN,
                              .out = OUT,
                              .x = at[0],
                              .ldx = LDX,
                              .w = at[1],
                              .dy = at[2],
                              .lddy = LDY,
                              .dx = at[3],
                              .lddx = LDX,
                              .dw = at[4]};
    assert_ok(r->backend->query(r->device, XPH_OP_LINEAR_GRAD, &g, &info));
    if (info.scratch_bytes) assert_ok(r->backend->alloc(r->device, info.scratch_bytes, &g.scratch));
    assert_ok(r->backend->run(r->stream, info.kernel, &g));
    assert_ok(r->backend->stream_wait(r->stream));
    if (g.scratch) r->backend->free(r->device, g.scratch, info.scratch_bytes);
    for (int i = 0; i < 5; i++) r->backend->free(r->device, at[i], ROOM);
}

static exphil_status tunes(const rig *r, const char *path, exphil_error *error)
{
    said.count = 0;
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    const exphil_memory_info empty = EXPHIL_MEMORY_INFO_INIT;
    exphil_memory_info before = empty, after = empty;
    const int alive = lt->alive;
    const int64_t objects = emulated_gpu()->count().objects;
    assert_ok(exphil_context_memory(r->context, &before, NULL));
    const exphil_status status = r->backend->tune(r->device, path, note, &said, error);
    assert_ok(exphil_context_memory(r->context, &after, NULL));
    assert_int_equal(after.device_used_bytes, before.device_used_bytes);
    assert_int_equal(emulated_gpu()->count().objects, objects);
    assert_int_equal(lt->alive, alive);
    return status;
}

static const product plain = {ROWS, 0, false};

/* The one product's line. */
static const char *line_of_one(void)
{
    exphil_error error;
    float y[ROOM / 4];
    const rig r = rig_open(0);
    compute(&r, &plain, y, NULL);
    if (tunes(&r, test_path("one"), &error) < 0) fail_msg("%s", error.message);
    assert_int_equal(said.count, 1);
    rig_close(&r);
    return said.line[0];
}

/* ---- what is chosen ---- */

static void the_fastest_is_chosen(void **state)
{
    costs(1.0, 0.5, 2.0);
    assert_string_equal(line_of_one(),
                        "y m 20 n 7 k 12 f32: 1.1.1.1, 500.00 us; cuBLASLt's first 1000.00 us; 3 tried");
    costs(1.0, 0.5, 0.25);
    assert_string_equal(line_of_one(),
                        "y m 20 n 7 k 12 f32: 2.1.1.1, 250.00 us; cuBLASLt's first 1000.00 us; 3 tried");
    /* of two that differ by less than a hundredth the one before */
    costs(1.0, 0.991, 0.9901);
    assert_non_null(strstr(line_of_one(), ": 0.1.1.1, 1000.00 us; cuBLASLt's first 1000.00 us; 3 tried"));
    costs(1.0, 0.98, 0.971);
    assert_non_null(strstr(line_of_one(), ": 1.1.1.1, 980.00 us;"));
    costs(1.0, 0.98, 0.97);
    assert_non_null(strstr(line_of_one(), ": 2.1.1.1, 970.00 us;"));
}

static void what_cannot_run_is_not_chosen(void **state)
{
    costs(1.0, 0.1, 2.0);
    lt->idle = 2;
    assert_non_null(strstr(line_of_one(), ": 0.1.1.1, 1000.00 us; cuBLASLt's first 1000.00 us; 2 tried"));
    costs(1.0, 0.1, 0.2);
    lt->unfit = 2;
    assert_non_null(strstr(line_of_one(), ": 2.1.1.1, 200.00 us; cuBLASLt's first 1000.00 us; 2 tried"));
    costs(1.0, 0.1, 0.2);
    lt->hungry = 4;
    assert_non_null(strstr(line_of_one(), ": 1.1.1.1, 100.00 us; cuBLASLt's first 1000.00 us; 2 tried"));
}

/* Whose only product none of them does: no file, and one that is there stays. */
static void nothing_to_choose_from(void **state)
{
    exphil_error error;
    float y[ROOM / 4];
    size_t bytes[2];
    costs(1.0, 0.5, 2.0);
    const rig r = rig_open(0);
    assert_int_equal(tunes(&r, test_path("never"), &error),
                     EXPHIL_E_UNSUPPORTED); /* not asked for anything */
    assert_says(&error, "nothing to tune");
    compute(&r, &plain, y, NULL);
    assert_ok(tunes(&r, test_path("kept"), &error));
    char *before = test_read(test_path("kept"), &bytes[0]);
    lt->idle = 7;
    assert_int_equal(tunes(&r, test_path("kept"), &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "cuBLASLt did no product: nothing to tune");
    assert_int_equal(said.count, 0);
    lt->idle = 0;
    char *after = test_read(test_path("kept"), &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(before, after, bytes[0]);
    assert_false(test_exists(test_path("never")));
    assert_false(test_exists(test_path("never.new")));
    assert_false(test_exists(test_path("kept.new")));
    free(before);
    free(after);
    rig_close(&r);
}

/* ---- which products, and by which addresses ---- */

static void products_in_the_order_they_were_asked_for(void **state)
{
    static const char *const want[] = {"y m 20 n 7 k 12 ", "y m 20 n 3 k 12 ", "dw m 12 n 20 k 7 ",
                                       "dx m 12 n 7 k 20 "};
    static const product three = {3, 0, false}, five = {5, 0, false};
    exphil_error error;
    float y[ROOM / 4];
    size_t bytes;
    costs(1.0, 0.5, 2.0);
    const rig r = rig_open(0);
    compute(&r, &plain, y, NULL);
    compute(&r, &three, y, NULL);
    lt->where = FAKE_AT_QUERY; /* refused, and not tried again */
    lt->which = FAKE_ALL;
    lt->status = 15;
    compute(&r, &five, y, NULL);
    lt->where = FAKE_NOWHERE;
    compute_gradients(&r);
    assert_ok(tunes(&r, test_path("many"), &error));
    assert_int_equal(said.count, 4);
    for (int i = 0; i < 4; i++)
        if (strncmp(said.line[i], want[i], strlen(want[i])) != 0) fail_msg("line %d: %s", i, said.line[i]);
    char *text = test_read(test_path("many"), &bytes);
    assert_non_null(strstr(text, "\nproducts 4\nproduct 20 7 12 12 16 24 24 1 0 "));
    assert_non_null(strstr(text, "\nproduct 20 3 12 12 16 24 24 1 0 "));
    assert_non_null(strstr(text, "\nproduct 12 20 7 16 24 12 12 0 1 "));
    assert_non_null(strstr(text, "\nproduct 12 7 20 12 24 16 16 0 0 "));
    free(text);
    rig_close(&r);
    assert_int_equal(warnings, 1); /* the refusal */
    warnings = 0;
}

/* Tuned as the addresses were that were asked for, taken by the same ones: the library finds nothing to refuse. */
static void as_little_aligned_as_they_were(void **state)
{
    for (int64_t skip = 4; skip <= 512; skip *= 2)
        for (int bias = 0; bias <= 1; bias++) {
            const product p = {ROWS, skip, bias};
            exphil_error error;
            float own[ROOM / 4], y[2][ROOM / 4];
            char name[64];
            costs(1.0, 0.5, 2.0);
            rig r = rig_open(0);
            compute(&r, &p, own, name);
            assert_string_equal(name, "linear_cublaslt");
            if (tunes(&r, test_path("aligned"), &error) < 0) fail_msg("%s", error.message);
            assert_int_equal(said.count, 1);
            if (!strstr(said.line[0], ": 1.1.1.1, ") || !strstr(said.line[0], "; 3 tried"))
                fail_msg("skip %lld, bias %d: %s", (long long)skip, bias, said.line[0]);
            rig_close(&r);
            setenv("EXPHIL_CUBLASLT_CHOICES", test_path("aligned"), 1);
            for (int i = 0; i < 2; i++) {
                costs(1.0, 0.5, 2.0);
                r = rig_open(0);
                compute(&r, &p, y[i], name);
                assert_string_equal(name, "linear_cublaslt/1.1.1.1");
                assert_int_equal(lt->by[1], 1);
                assert_int_equal(lt->by[0] + lt->by[2], 0);
                rig_close(&r);
            }
            unsetenv("EXPHIL_CUBLASLT_CHOICES");
            assert_memory_equal(y[0], y[1], sizeof y[0]);
            assert_memory_not_equal(y[0], own, sizeof own);
            assert_int_equal(warnings, 0);
        }
}

/* ---- what goes wrong ---- */

static void failures_leave_nothing(void **state)
{
    exphil_error error;
    float before[ROOM / 4], after[ROOM / 4];
    costs(1.0, 0.5, 2.0);
    /* a limit of one byte too little, and one that is just enough */
    rig r = rig_open(0);
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    compute(&r, &plain, before, NULL);
    assert_ok(tunes(&r, test_path("failed"), &error));
    assert_ok(exphil_context_memory(r.context, &info, NULL));
    rig_close(&r);
    assert_int_equal(remove(test_path("failed")), 0);
    for (int less = 0; less <= 1; less++) {
        r = rig_open((size_t)info.device_peak_bytes - (size_t)less);
        compute(&r, &plain, before, NULL);
        assert_int_equal(tunes(&r, test_path("failed"), &error), less ? EXPHIL_E_MEMORY : EXPHIL_OK);
        if (less) assert_says(&error, "tuning failed after 0 products");
        compute(&r, &plain, after, NULL); /* no lock is kept */
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(test_exists(test_path("failed")), !less);
        if (!less) assert_int_equal(remove(test_path("failed")), 0);
        rig_close(&r);
    }
    warnings = 0;
}

static void a_lost_device_is_told(void **state)
{
    exphil_error error;
    float y[ROOM / 4];
    int64_t failed = 0;
    costs(1.0, 0.5, 2.0);
    for (int64_t n = 1; n < 100; n += 9) {
        const rig r = rig_open(0);
        compute(&r, &plain, y, NULL);
        emulated_gpu()->fail_operation(n);
        said.count = 0;
        error = (exphil_error)EXPHIL_ERROR_INIT;
        const exphil_status status = r.backend->tune(r.device, test_path("lost"), note, &said, &error);
        emulated_gpu()->fail_operation(0);
        if (status < 0) {
            failed++;
            assert_int_equal(status, EXPHIL_E_DEVICE);
            assert_says(&error, "tuning failed after 0 products");
            assert_false(test_exists(test_path("lost")));
        } else {
            (void)remove(test_path("lost"));
        }
        r.backend->stream_destroy(r.stream);
        exphil_context_destroy(r.context);
        emulated_gpu()->clear();
        assert_int_equal(lt->alive, 0);
    }
    assert_true(failed > 3);
    warnings = 0;
}

static void places_that_are_none(void **state)
{
    static char longest[5000];
    exphil_error error;
    float y[ROOM / 4];
    costs(1.0, 0.5, 2.0);
    memset(longest, 'x', sizeof longest - 1);
    const rig r = rig_open(0);
    compute(&r, &plain, y, NULL);
    assert_int_equal(tunes(&r, "/nowhere/at/all", &error), EXPHIL_E_IO);
    assert_says(&error, "/nowhere/at/all");
    assert_int_equal(tunes(&r, longest, &error), EXPHIL_E_INVALID);
    assert_int_equal(tunes(&r, test_folder(), &error), EXPHIL_E_IO); /* a folder, with something in it */
    char beside[600];
    snprintf(beside, sizeof beside, "%s.new", test_folder());
    assert_false(test_exists(beside));
    /* what is written first is taken by a folder: the file that was there stays */
    test_write(test_path("old"), "old\n", 4);
    assert_int_equal(mkdir(test_path("old.new"), 0700), 0);
    assert_int_equal(tunes(&r, test_path("old"), &error), EXPHIL_E_IO);
    size_t bytes;
    char *kept = test_read(test_path("old"), &bytes);
    assert_string_equal(kept, "old\n");
    free(kept);
    assert_int_equal(remove(test_path("old.new")), 0);
    rig_close(&r);
}

/* ---- whole models ---- */

static train_plan plan_of(int32_t precision)
{
    train_plan plan = train_plan_of("mamba lstm attention", EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.precision = precision;
    plan.log = hear;
    return plan;
}

static unsigned char *weights_after(int32_t precision, const char *tune_to, size_t *bytes)
{
    const train_plan plan = plan_of(precision);
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = train_begin(&plan);
    train_steps(&run, 4);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    if (tune_to) {
        said.count = 0;
        xph_device *device = xph_context_backend(run.context);
        if (device->backend->tune(device, tune_to, note, &said, &error) < 0) fail_msg("%s", error.message);
        train_steps(&run, 1); /* the run goes on */
    }
    train_end(&run);
    return all;
}

static void models_run_by_what_was_chosen(void **state)
{
    for (int32_t p = EXPHIL_PRECISION_F32; p <= EXPHIL_PRECISION_F16; p++) {
        unsigned char *all[3];
        size_t bytes[3];
        costs(1.0, 0.5, 2.0);
        emulated_gpu()->timing(EMU_EAGER, 1);
        all[0] = weights_after(p, test_path("model"), &bytes[0]);
        print_message("precision %d: %d products\n", p, said.count);
        assert_true(said.count > 10);
        for (int i = 0; i < said.count; i++)
            if (!strstr(said.line[i], ": 1.1.1.1, 500.00 us; cuBLASLt's first 1000.00 us; "))
                fail_msg("%s", said.line[i]);
        setenv("EXPHIL_CUBLASLT_CHOICES", test_path("model"), 1);
        for (int i = 1; i < 3; i++) {
            emulated_gpu()->timing(i == 1 ? EMU_LAZY : EMU_SHUFFLED, 1);
            costs(1.0, 0.5, 2.0);
            all[i] = weights_after(p, NULL, &bytes[i]);
            assert_int_equal(lt->by[0] + lt->by[2], 0);
            assert_true(lt->by[1] > 0);
        }
        unsetenv("EXPHIL_CUBLASLT_CHOICES");
        assert_int_equal(bytes[1], bytes[0]);
        assert_memory_equal(all[1], all[2], bytes[1]);
        assert_memory_not_equal(all[0], all[1], bytes[0]);
        for (int i = 0; i < 3; i++) free(all[i]);
        emulated_clean();
    }
    assert_int_equal(warnings, 0);
    emulated_gpu()->timing(EMU_EAGER, 1);
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    setenv("EXPHIL_CUDNN", "none", 1);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    lt = emulated_blaslt();
    emulated_gpu()->timing(EMU_EAGER, 1);
    emulated_gpu()->clock(time_by_cost);
    return 0;
}

static int teardown(void **state)
{
    emulated_gpu()->clock(NULL);
    return test_leave(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_chosen),
        cmocka_unit_test(what_cannot_run_is_not_chosen),
        cmocka_unit_test(nothing_to_choose_from),
        cmocka_unit_test(products_in_the_order_they_were_asked_for),
        cmocka_unit_test(as_little_aligned_as_they_were),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(places_that_are_none),
        cmocka_unit_test(models_run_by_what_was_chosen),
        cmocka_unit_test(a_lost_device_is_told), /* whose memory is not given back */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
