/* Transposed copies for products (cuda/transpose.cu): every number at its place, in all schedules, and nothing besides. */
#include "device_case.h"

#include <stdio.h>
#include <string.h>

enum { SHAPES = 2 };

typedef struct matrix {
    int64_t rows, columns, pad, pad_to;
} matrix;

static size_t bytes_of(int64_t rows, int64_t columns, int64_t pad)
{
    return rows && columns ? (size_t)(rows * (columns + pad) - pad) * sizeof(float) : 0;
}

static float number(int64_t i)
{
    return (float)((i * 7919) % 10007) - 5000.0f;
}

/* Whole rows of `to`, so that what lies between them is seen. */
static float *copy_of(const matrix *m, xph_transposed *args)
{
    const size_t bytes = bytes_of(m->rows, m->columns, m->pad);
    const int64_t ldt = m->rows + m->pad_to;
    float *from = emu_alloc(bytes, sizeof(float)),
          *to = emu_alloc(bytes_of(m->columns, m->rows, m->pad_to), sizeof(float));
    assert_true(from && to);
    for (size_t i = 0; i < bytes / sizeof *from; i++) from[i] = number((int64_t)i);
    *args = (xph_transposed){from, to, m->rows, m->columns, m->columns + m->pad, ldt, 0};
    return to;
}

static void look_at(const matrix *m, const float *to)
{
    const int64_t ldt = m->rows + m->pad_to;
    for (int64_t i = 0; i < (int64_t)(bytes_of(m->columns, m->rows, m->pad_to) / sizeof *to); i++) {
        const int64_t column = i / ldt, row = i % ldt;
        const float want = number(row * (m->columns + m->pad) + column);
        const bool between = row >= m->rows;
        if (between ? to[i] == to[i] : to[i] != want)
            fail_msg("%lld x %lld: [%lld][%lld] is %.9g, %s", (long long)m->rows, (long long)m->columns,
                     (long long)column, (long long)row, (double)to[i],
                     between ? "what lies between rows was written" : "wrong");
    }
}

static void check(const matrix m[SHAPES])
{
    for (int schedule = 0; schedule < DEVICE_SCHEDULES; schedule++) {
        xph_transpose_args args;
        float *to[SHAPES];
        emu_schedule(schedule);
        for (int i = 0; i < SHAPES; i++) to[i] = copy_of(&m[i], &args.of[i]);
        assert_int_equal(xph_transpose(&args, NULL), 0);
        if (emu_fault()) fail_msg("%s", emu_fault());
        for (int i = 0; i < SHAPES; i++) {
            look_at(&m[i], to[i]);
            emu_free((void *)(uintptr_t)args.of[i].from);
            emu_free(to[i]);
        }
    }
    assert_int_equal(emu_allocated(), 0);
}

static void every_number_is_at_its_place(void **state)
{
    static const int64_t sides[] = {1, 2, 31, 63, 64, 65, 129, 200};
    enum { SIDES = sizeof sides / sizeof *sides };
    (void)state;
    for (int i = 0; i < SIDES * SIDES; i++) {
        const int64_t rows = sides[i / SIDES], columns = sides[i % SIDES];
        check((const matrix[SHAPES]){{rows, columns, 0, 0}, {columns, rows, i % 5, i % 7}});
    }
}

static void either_may_be_missing(void **state)
{
    const matrix none = {0, 0, 0, 0}, one = {70, 130, 3, 26};
    (void)state;
    check((const matrix[SHAPES]){none, one});
    check((const matrix[SHAPES]){one, none});
    check((const matrix[SHAPES]){none, none});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_at_its_place),
        cmocka_unit_test(either_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
