/* The CUDA kernels that build input rows, on the emulated GPU: parts in their order, one-hot of bits and classes, the
 * tables' gradients, two ids that share a table. */
#include "device_case.h"

#include "emu_control.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, floats, ids, slots;
} shape;

static const shape shapes[] = {{0, 3, 2, 1}, {1, 0, 0, 0},    {1, 5, 0, 0},   {7, 0, 3, 0},   {5, 2, 1, 3},
                               {3, 0, 0, 2}, {100, 17, 3, 1}, {33, 96, 2, 4}, {1100, 0, 3, 0}};

enum { HEADS = 4, LOGITS = 8 + 17 + 2 + 31, TABLES = 3 };
static const xph_head heads[HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                      {EXPHIL_CATEGORICAL, 17, 8},
                                      {EXPHIL_CATEGORICAL, 2, 25},
                                      {EXPHIL_BERNOULLI, 31, 27}};
/* The third is the first again. A table that a block holds several times, or once; columns of which it holds; none. */
static const int64_t many_entries[][TABLES] = {{5, 33, 5}, {5, 320, 5}, {5, 1000, 5}, {5, 12289, 5}};
static const int64_t *entries = many_entries[0], widths[TABLES] = {3, 37, 3};

typedef struct embed {
    shape s;
    int64_t width, ldy;
    xph_type type;
    float *x, *table[2], *dtable[2];
    int32_t *id, *actions;
    void *y, *dy;
    xph_embed_table tables[TABLES];
} embed;

static void *taken(size_t bytes, size_t alignment)
{
    void *memory = emu_alloc(bytes, alignment);
    assert_non_null(memory);
    return memory;
}

static embed embed_make(const shape *s, xph_type type)
{
    embed a = {.s = *s, .width = s->floats + s->slots * LOGITS, .type = type};
    size_t size = device_bytes(type), rows = (size_t)s->rows;
    for (int64_t i = 0; i < s->ids; i++) a.width += widths[i];
    a.ldy = a.width + 3;
    a.x = taken(rows * (size_t)s->floats * sizeof(float), 4);
    a.id = taken(rows * (size_t)s->ids * sizeof(int32_t), 4);
    a.actions = taken(rows * (size_t)(s->slots * HEADS) * sizeof(int32_t), 4);
    a.y = taken(rows * (size_t)a.ldy * size, size);
    a.dy = taken(rows * (size_t)a.ldy * size, size);
    for (int64_t i = 0; i < s->rows * s->floats; i++) a.x[i] = (float)case_uniform(-2, 2);
    for (int64_t i = 0; i < s->rows * s->ids; i++) a.id[i] = (int32_t)case_below(entries[i % s->ids]);
    for (int64_t i = 0; i < s->rows * s->slots * HEADS; i++) {
        const xph_head *h = &heads[i % HEADS];
        a.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    for (int64_t i = 0; i < s->rows * a.ldy; i++) device_put(type, a.dy, i, case_uniform(-1, 1));
    for (int i = 0; i < 2; i++) {
        a.table[i] = taken((size_t)(entries[i] * widths[i]) * sizeof(float), 4);
        a.dtable[i] = taken((size_t)(entries[i] * widths[i]) * sizeof(float), 4);
        for (int64_t k = 0; k < entries[i] * widths[i]; k++) a.table[i][k] = (float)case_uniform(-1, 1);
        for (int64_t k = 0; k < entries[i] * widths[i]; k++) a.dtable[i][k] = 0.5f;
    }
    for (int i = 0; i < TABLES; i++)
        a.tables[i] = (xph_embed_table){a.table[i % 2], a.dtable[i % 2], entries[i], widths[i]};
    return a;
}

static void embed_free(embed *a)
{
    void *all[] = {a->x,        a->id,       a->actions,   a->y,        a->dy,
                   a->table[0], a->table[1], a->dtable[0], a->dtable[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) emu_free(all[i]);
    assert_int_equal(emu_allocated(), 0);
}

/* ---- reference: one number after the other ---- */

static void check_row(const embed *a, int64_t row)
{
    int64_t at = row * a->ldy;
    for (int64_t i = 0; i < a->s.floats; i++)
        assert_true(device_get(a->type, a->y, at++) ==
                    device_rounded(a->type, (double)a->x[row * a->s.floats + i]));
    for (int64_t i = 0; i < a->s.ids; i++)
        for (int64_t k = 0; k < widths[i]; k++) {
            int64_t entry = a->id[row * a->s.ids + i];
            assert_true(device_get(a->type, a->y, at++) ==
                        device_rounded(a->type, (double)a->table[i % 2][entry * widths[i] + k]));
        }
    for (int64_t s = 0; s < a->s.slots; s++) {
        for (int h = 0; h < HEADS; h++) {
            int32_t action = a->actions[(row * a->s.slots + s) * HEADS + h];
            for (int32_t i = 0; i < heads[h].count; i++) {
                int want = heads[h].kind == EXPHIL_BERNOULLI ? action >> i & 1 : action == i;
                assert_true(device_get(a->type, a->y, at++) == (double)want);
            }
        }
    }
    for (; at < (row + 1) * a->ldy; at++) assert_true(isnan(device_get(a->type, a->y, at)));
}

static void check_tables(const embed *a)
{
    for (int t = 0; t < 2; t++) {
        int64_t count = entries[t] * widths[t];
        double *want = case_zeros(count), *got = case_zeros(count);
        for (int64_t k = 0; k < count; k++) want[k] = 0.5, got[k] = (double)a->dtable[t][k];
        for (int64_t row = 0; row < a->s.rows; row++) {
            int64_t at = row * a->ldy + a->s.floats;
            for (int64_t i = 0; i < a->s.ids; at += widths[i], i++)
                for (int64_t k = 0; i % 2 == t && k < widths[i]; k++)
                    want[a->id[row * a->s.ids + i] * widths[i] + k] += device_get(a->type, a->dy, at + k);
        }
        case_close("dtable", got, want, count, 2e-6);
    }
}

static void run(const shape *s, xph_type type, int schedule, double *tables[2])
{
    emu_schedule(schedule);
    embed a = embed_make(s, type);
    xph_embed_args args = {.type = type,
                           .rows = s->rows,
                           .floats = s->floats,
                           .ids = s->ids,
                           .slots = s->slots,
                           .heads = HEADS,
                           .logits = LOGITS,
                           .x = a.x,
                           .ldx = s->floats,
                           .id = a.id,
                           .ldid = s->ids,
                           .tables = a.tables,
                           .actions = a.actions,
                           .lda = s->slots * HEADS,
                           .head = heads,
                           .y = a.y,
                           .ldy = a.ldy};
    xph_embed_grad_args grad = {.fwd = args, .dy = a.dy, .lddy = a.ldy};
    uint32_t bit;
    const xph_cuda_candidate *back = xph_cuda_first(xph_cuda_embed_grad, &grad, 0, &bit);
    assert_true(xph_cuda_embed->accepts(&args) && back);
    const bool large = s->ids > 1 && entries == many_entries[3];
    assert_string_equal(back->name, large ? "embed_grad_large" : "embed_grad");
    if (back->scratch_bytes) grad.scratch = taken(back->scratch_bytes(&grad), sizeof(float));
    assert_int_equal(xph_cuda_embed->launch(&args, NULL), 0);
    assert_int_equal(back->launch(&grad, NULL), 0);
    emu_free(grad.scratch);
    for (int64_t row = 0; row < s->rows; row++) check_row(&a, row);
    check_tables(&a);
    for (int t = 0; t < 2; t++) {
        tables[t] = case_zeros(entries[t] * widths[t]);
        for (int64_t k = 0; k < entries[t] * widths[t]; k++) tables[t][k] = (double)a.dtable[t][k];
    }
    embed_free(&a);
}

static void rows_and_gradients(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        double *first[2], *next[2];
        for (int s = 0; s < EMU_SCHEDULES; s++) {
            case_seed(i);
            run(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES], s, s ? next : first);
            for (int t = 0; s && t < 2; t++) case_same("dtable", next[t], first[t], entries[t] * widths[t]);
        }
        case_release();
    }
}

static void tables_of_all_sizes(void **state)
{
    const shape some[] = {{70, 2, 3, 0}, {1100, 0, 3, 0}};
    for (size_t i = 0; i < 2 * sizeof many_entries / sizeof *many_entries; i++) {
        double *first[2], *next[2];
        entries = many_entries[i / 2];
        if (i == 7) continue; /* an entry a block: slow here */
        for (int s = 0; s < (i == 6 ? 1 : EMU_SCHEDULES); s++) {
            case_seed(30 + i);
            run(&some[i % 2], i % 3 ? XPH_F32 : XPH_BF16, s, s ? next : first);
            for (int t = 0; s && t < 2; t++) case_same("dtable", next[t], first[t], entries[t] * widths[t]);
        }
        case_release();
    }
    entries = many_entries[0];
}

static void too_many_ids_are_not_accepted(void **state)
{
    const xph_embed_grad_args args = {.fwd = {.rows = 1, .ids = 33}};
    assert_false(xph_cuda_embed->accepts(&args.fwd));
    assert_false(xph_cuda_embed_grad->accepts(&args));
}

/* 65535 blocks lie beside each other: of 128 columns, of 32 where a table is large. */
static void too_wide_rows_are_not_accepted(void **state)
{
    for (int64_t blocks = 65535; blocks <= 65536; blocks++) {
        const xph_embed_args rows = {.rows = 1, .floats = 128 * blocks};
        const xph_embed_table table = {.entries = 3, .width = 32 * blocks};
        const xph_embed_grad_args args = {.fwd = {.rows = 1, .ids = 1, .tables = &table}};
        const xph_cuda_candidate *back = xph_cuda_embed_grad;
        while (back->name && !back->accepts(&args)) back++;
        assert_int_equal(xph_cuda_embed->accepts(&rows), blocks < 65536);
        assert_true(blocks < 65536 ? strcmp(back->name, "embed_grad_large") == 0 : !back->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_gradients), cmocka_unit_test(tables_of_all_sizes),
        cmocka_unit_test(too_many_ids_are_not_accepted), cmocka_unit_test(too_wide_rows_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_embed", tests, NULL, NULL);
}
