/* Gradients of products whose operands are transposed first because a line of EXPHIL_CUBLASLT_CHOICES says so
 * (cuda/blaslt_transposed.c): the bits of the product as it is, where the library adds in the same order; in recordings too;
 * scratch as planned; other kernels where the library refuses; and nothing of it without a line. */
#include "emulated.h"
#include "plan_case.h"

#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 300, IN = 19, OUT = 23, LDX = IN + 2, LDDY = OUT + 1, LDDX = IN + 3, NUMBERS = 8 };
enum { A = 1, B = 2 }; /* operands, as the file has them: x and dy of dw, w of dx */

/* ---- a gradient on a fresh device ---- */

enum { X, W, DY, DX, DW, DBIAS, ARRAYS };
static const int64_t sizes[ARRAYS] = {ROWS * LDX, IN *OUT, ROWS *LDDY, ROWS *LDDX, IN *OUT, OUT};

typedef struct gradient {
    float of[ARRAYS][ROWS * LDDY];
    char name[64];
    size_t scratch;
    exphil_status status;
} gradient;

typedef struct how {
    const char *tune_to; /* NULL: it is not tuned */
    bool recorded, f32;
    void (*before_tuning)(fake_blaslt *lt);
    char lines[NUMBERS][160]; /* that tuning told */
    int told;
} how;

static float number(int64_t i)
{
    return (float)((i * 7919) % 1013) / 1013.0f - 0.4f;
}

static void note(void *user, const char *line)
{
    how *h = user;
    if (h->told < NUMBERS) snprintf(h->lines[h->told], sizeof h->lines[0], "%s", line);
    h->told++;
}

static exphil_status run_once(xph_stream *stream, const xph_kernel *kernel, const xph_linear_grad_args *g,
                              bool recorded)
{
    const xph_backend *b = stream->device->backend;
    xph_graph *graph = NULL;
    if (!recorded) return b->run(stream, kernel, g);
    XPH_TRY(b->record_begin(stream));
    const exphil_status status = b->run(stream, kernel, g), ended = b->record_end(stream, &graph);
    if (status < 0 || ended < 0) return status < 0 ? status : ended;
    const exphil_status replayed = b->replay(stream, graph);
    b->stream_wait(stream);
    b->graph_destroy(graph);
    return replayed;
}

static void tune(xph_device *device, how *h)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (h->before_tuning) h->before_tuning(emulated_blaslt());
    if (device->backend->tune(device, h->tune_to, note, h, &error) < 0) fail_msg("%s", error.message);
}

static void run_gradient(gradient *to, how *h)
{
    exphil_context *context = emulated_context();
    xph_device *device = xph_context_backend(context);
    const xph_backend *b = device->backend;
    xph_stream *stream = NULL;
    xph_op_info info = {0};
    void *at[ARRAYS], *scratch = NULL;
    assert_int_equal(b->stream_create(device, XPH_STREAM_NET, &stream), EXPHIL_OK);
    for (int i = 0; i < ARRAYS; i++) {
        for (int64_t k = 0; k < sizes[i]; k++) to->of[i][k] = number(k + i);
        assert_int_equal(b->alloc(device, (size_t)sizes[i] * 4, &at[i]), EXPHIL_OK);
        assert_int_equal(b->upload(stream, at[i], to->of[i], (size_t)sizes[i] * 4), EXPHIL_OK);
    }
    xph_linear_grad_args g = {.rows = ROWS, .in = IN, .out = OUT, .ldx = LDX, .lddy = LDDY, .lddx = LDDX};
    g.math = h->f32 ? XPH_MATH_F32 : XPH_MATH_TF32;
    g.x = at[X];
    g.w = at[W];
    g.dy = at[DY];
    g.dx = at[DX];
    g.dw = at[DW];
    g.dbias = at[DBIAS];
    assert_int_equal(b->query(device, XPH_OP_LINEAR_GRAD, &g, &info), EXPHIL_OK);
    snprintf(to->name, sizeof to->name, "%s", info.name);
    to->scratch = info.scratch_bytes;
    assert_int_equal(b->alloc(device, info.scratch_bytes, &scratch), EXPHIL_OK);
    g.scratch = scratch;
    to->status = run_once(stream, info.kernel, &g, h->recorded);
    for (int i = DX; i < ARRAYS; i++)
        assert_int_equal(b->download(stream, to->of[i], at[i], (size_t)sizes[i] * 4), EXPHIL_OK);
    assert_int_equal(b->stream_wait(stream), EXPHIL_OK);
    if (h->tune_to) tune(device, h);
    b->free(device, scratch, info.scratch_bytes);
    for (int i = 0; i < ARRAYS; i++) b->free(device, at[i], (size_t)sizes[i] * 4);
    b->stream_destroy(stream);
    exphil_context_destroy(context);
}

static void same_bits(const gradient *a, const gradient *b)
{
    for (int i = DX; i < ARRAYS; i++) assert_memory_equal(a->of[i], b->of[i], (size_t)sizes[i] * 4);
}

static void close_to(const char *what, float is, double want)
{
    if (fabs((double)is - want) > 2e-2) fail_msg("%s is %.6g, expected %.6g", what, (double)is, want);
}

/* dw += dy^T x, dbias += dy, dx = dy w: in double, of numbers that the device rounds to 11 bits. */
static void as_in_double(const gradient *g)
{
    for (int64_t o = 0; o < OUT; o++) {
        double bias = (double)number(o + DBIAS);
        for (int64_t r = 0; r < ROWS; r++) bias += (double)g->of[DY][r * LDDY + o];
        close_to("dbias", g->of[DBIAS][o], bias);
        for (int64_t i = 0; i < IN; i++) {
            double sum = (double)number(o * IN + i + DW);
            for (int64_t r = 0; r < ROWS; r++)
                sum += (double)g->of[DY][r * LDDY + o] * (double)g->of[X][r * LDX + i];
            close_to("dw", g->of[DW][o * IN + i], sum);
        }
    }
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < LDDX; i++) {
            double sum = i < IN ? 0 : (double)number(r * LDDX + i + DX);
            for (int64_t o = 0; o < OUT && i < IN; o++)
                sum += (double)g->of[DY][r * LDDY + o] * (double)g->of[W][o * IN + i];
            close_to("dx", g->of[DX][r * LDDX + i], sum);
        }
}

/* ---- files ---- */

enum { FIELDS = 24, WORDS = 8, TRANSPOSE_A = 7, TRANSPOSE_B = 8, TRANSPOSED = 18, TOLD_ALGORITHM = 20 };
enum { NUMBER_OF_ALGORITHM = FIELDS + 5 };

static uint64_t sum_of(const char *from, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ (unsigned char)from[i]) * 0x100000001b3u;
    return sum;
}

/* Every line of dw has its operands `dw` transposed, of dx `dx`, of y `y`; -1: as it is. All take algorithm 0. */
static void edit(const char *path, int dw, int dx, int y)
{
    static char old[1 << 18], new[1 << 18];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(old, 1, sizeof old - 1, file), at = 0;
    old[bytes] = 0;
    fclose(file);
    for (char *rest = old, *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
        char *words[1 + FIELDS + WORDS] = {line}, *left = line;
        int count = 0, which = -1;
        if (strncmp(line, "product ", 8) != 0) {
            if (strncmp(line, "sum ", 4) != 0) at += (size_t)sprintf(new + at, "%s\n", line);
            continue;
        }
        while (left && count < 1 + FIELDS + WORDS) words[count++] = strsep(&left, " ");
        assert_int_equal(count, 1 + FIELDS + WORDS);
        which = *words[1 + TRANSPOSE_A] == '1' ? y : *words[1 + TRANSPOSE_B] == '1' ? dw : dx;
        for (int i = 0; i < count; i++) {
            if (i == 1 + TRANSPOSED && which >= 0)
                at += (size_t)sprintf(new + at, " %d", which);
            else if (i == 1 + TOLD_ALGORITHM)
                at += (size_t)sprintf(new + at, " 0");
            else if (i == 1 + NUMBER_OF_ALGORITHM)
                at += (size_t)sprintf(new + at, " %016d", 0);
            else
                at += (size_t)sprintf(new + at, "%s%s", i ? " " : "", words[i]);
        }
        at += (size_t)sprintf(new + at, "\n");
    }
    at += (size_t)sprintf(new + at, "sum %016llx\n", (unsigned long long)sum_of(new, at));
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(new, 1, at, file), at);
    assert_int_equal(fclose(file), 0);
}

static const char *tuned(how *h, gradient *plain)
{
    static char path[512];
    snprintf(path, sizeof path, "%s", test_path("choices"));
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    h->tune_to = path;
    run_gradient(plain, h);
    return path;
}

/* ---- tests ---- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* As cuda/blaslt_transposed.c lays copies out: rows of 32 numbers, each copy at a multiple of 256 bytes. */
static size_t copies(int dw, int dx)
{
    const size_t sum = (ROWS + 31) / 32 * 32 * 4, of_x = (sum * IN + 255) / 256 * 256, of_dy = sum * OUT;
    const size_t of_dw = (size_t)(dw ? 256 : 0) + (dw & A ? of_x : 0) + (dw & B ? of_dy : 0);
    return most(of_dw, dx ? 256 + ((OUT + 31) / 32 * 32 * 4 * IN + 255) / 256 * 256 : 0);
}

static const char *const behind[] = {"", ".ta", ".tb", ".tab"};

static void bits_are_those_of_the_product_as_it_is(void **state)
{
    static gradient plain, chosen;
    how how_tuned = {.tune_to = NULL}, plainly = {.tune_to = NULL}, recorded = {.recorded = true};
    fake_blaslt *lt = emulated_blaslt();
    const char *path = tuned(&how_tuned, &plain);
    char name[64];
    (void)state;
    assert_string_equal(plain.name, "linear_grad_cublaslt");
    as_in_double(&plain);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    for (int dw = 0; dw <= (A | B); dw++)
        for (int dx = 0; dx <= A; dx++) {
            edit(path, dw, dx, 0);
            snprintf(name, sizeof name, "linear_grad_cublaslt/0.1.1.1%s/0.1.1.1%s", behind[dw], behind[dx]);
            for (int i = 0; i < 2; i++) {
                lt->products = 0;
                run_gradient(&chosen, i ? &recorded : &plainly);
                assert_int_equal(chosen.status, EXPHIL_OK);
                assert_string_equal(chosen.name, name);
                assert_int_equal(lt->products, 2);
                assert_int_equal(chosen.scratch, most(plain.scratch, copies(dw, dx)));
                same_bits(&chosen, &plain);
            }
        }
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_clean();
}

/* Each of the three algorithms of the stand-in as it is and with each choice of operands; without tf32 only as it is. */
static void all_ways_are_timed(void **state)
{
    static gradient g;
    how h = {.tune_to = NULL}, in_f32 = {.f32 = true};
    (void)state;
    emulated_blaslt();
    tuned(&h, &g);
    assert_int_equal(h.told, 2);
    assert_non_null(strstr(h.lines[0], "dw m 19 n 23 k 300 tf32: "));
    assert_non_null(strstr(h.lines[0], "; 12 tried"));
    assert_non_null(strstr(h.lines[1], "dx m 19 n 300 k 23 tf32: "));
    assert_non_null(strstr(h.lines[1], "; 6 tried"));
    tuned(&in_f32, &g);
    assert_non_null(strstr(in_f32.lines[0], "; 3 tried"));
    assert_non_null(strstr(in_f32.lines[1], "; 3 tried"));
    assert_null(strstr(in_f32.lines[0], ".t"));
    emulated_clean();
}

/* The stand-in knows a product by which operands are transposed: only dw with dy turned over looks like dx. */
static void all_but_dy(fake_blaslt *lt)
{
    lt->where = FAKE_AT_RUN;
    lt->which = FAKE_Y | FAKE_DW;
    lt->status = 15;
}

static void all_but_turned(fake_blaslt *lt)
{
    lt->where = FAKE_AT_RUN;
    lt->which = FAKE_DW | FAKE_DX;
    lt->status = 15;
}

static void the_fastest_is_taken_as_it_is_written(void **state)
{
    static gradient plain, chosen;
    how of_dy = {.before_tuning = all_but_dy}, turned = {.before_tuning = all_but_turned},
        plainly = {.tune_to = NULL};
    fake_blaslt *lt = emulated_blaslt();
    (void)state;
    const char *path = tuned(&of_dy, &plain);
    lt->where = FAKE_NOWHERE;
    assert_non_null(strstr(of_dy.lines[0], ".1.1.1.tb, "));
    assert_non_null(strstr(of_dy.lines[0], "cuBLASLt's first none; 3 tried"));
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    run_gradient(&chosen, &plainly);
    assert_non_null(strstr(chosen.name, ".1.1.1.tb/"));
    as_in_double(&chosen);
    path = tuned(&turned, &plain);
    lt->where = FAKE_NOWHERE;
    assert_non_null(strstr(turned.lines[1], ".1.1.1.ta, "));
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    run_gradient(&chosen, &plainly);
    assert_non_null(strstr(chosen.name, ".ta"));
    as_in_double(&chosen);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_clean();
}

static void other_kernels_do_what_is_refused(void **state)
{
    static gradient plain, chosen;
    how how_tuned = {.tune_to = NULL}, plainly = {.tune_to = NULL}, recorded = {.recorded = true};
    fake_blaslt *lt = emulated_blaslt();
    const char *path = tuned(&how_tuned, &plain);
    (void)state;
    edit(path, A | B, A, 0);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    for (int where = FAKE_AT_RUN; where <= FAKE_AT_CHECK; where++) {
        const bool in_capture = where == FAKE_IN_CAPTURE;
        lt->where = where;
        lt->which = FAKE_Y;
        lt->status = 15;
        lt->refusals = lt->products = 0;
        run_gradient(&chosen, in_capture ? &recorded : &plainly);
        lt->where = FAKE_NOWHERE;
        assert_int_equal(lt->refusals, 2);
        assert_int_equal(lt->products, 0);
        if (in_capture)
            assert_int_equal(chosen.status, EXPHIL_E_UNSUPPORTED); /* such a recording is none */
        else
            as_in_double(&chosen);
    }
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_clean();
}

static void opens(exphil_status wanted, const char *word)
{
    const exphil_context_config config = emulated_config("cuda:0", NULL, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_status status = exphil_context_create(&config, &context, &error);
    if (status >= 0) exphil_context_destroy(context);
    if (status != wanted || !strstr(error.message, word))
        fail_msg("%d %s; expected %d, %s", status, error.message, wanted, word);
}

/* Of operands that lie along the sum, or of another arithmetic. */
static void other_lines_are_refused(void **state)
{
    static gradient plain;
    how h = {.tune_to = NULL}, in_f32 = {.f32 = true};
    (void)state;
    emulated_blaslt();
    const char *path = tuned(&h, &plain);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    edit(path, A | B, A, -1);
    opens(EXPHIL_OK, "");
    for (int dx = B; dx <= (A | B); dx++) {
        edit(path, 0, dx, -1);
        opens(EXPHIL_E_FORMAT, "can be transposed");
    }
    edit(path, 4, 0, -1);
    opens(EXPHIL_E_FORMAT, "transposed");
    path = tuned(&in_f32, &plain);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    edit(path, A, 0, -1);
    opens(EXPHIL_E_FORMAT, "can be transposed");
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_clean();
}

/* ---- a whole training ---- */

typedef struct training {
    exphil_plan plan;
    plan_taken taken;
} training;

static training train(const char *tune_to)
{
    const plan_place gpu = {"cuda:0", EMULATED_FOLDER, NULL, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    how h = {.tune_to = tune_to};
    training t;
    plan_case *c = plan_case_open(0, &gpu);
    c->trainer.precision = EXPHIL_PRECISION_TF32;
    t.plan = plan_case_plan(c, 0, 0);
    if (plan_case_run(c, 0, &t.taken, &error) < 0) fail_msg("%s", error.message);
    if (tune_to) tune(xph_context_backend(c->context), &h);
    plan_case_close(c);
    return t;
}

static void scratch_is_planned(void **state)
{
    char path[512];
    (void)state;
    emulated_blaslt();
    snprintf(path, sizeof path, "%s", test_path("of-a-training"));
    const training plain = train(path);
    edit(path, A | B, A, -1);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    const training chosen = train(NULL);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    printf("planned %llu and %llu more, taken %llu and %llu more\n",
           (unsigned long long)plain.plan.device_peak_bytes,
           (unsigned long long)(chosen.plan.device_peak_bytes - plain.plan.device_peak_bytes),
           (unsigned long long)plain.taken.device_peak,
           (unsigned long long)(chosen.taken.device_peak - plain.taken.device_peak));
    assert_true(chosen.plan.device_peak_bytes > plain.plan.device_peak_bytes);
    assert_true(chosen.plan.device_peak_bytes - plain.plan.device_peak_bytes ==
                chosen.taken.device_peak - plain.taken.device_peak);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_product_as_it_is),
        cmocka_unit_test(all_ways_are_timed),
        cmocka_unit_test(the_fastest_is_taken_as_it_is_written),
        cmocka_unit_test(other_kernels_do_what_is_refused),
        cmocka_unit_test(other_lines_are_refused),
        cmocka_unit_test(scratch_is_planned),
    };
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
