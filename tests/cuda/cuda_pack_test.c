/* All weights of a net packed at once on the emulated GPU: the bits of one by one, whatever their shapes and places, and what
 * they should be. */
#include "device_case.h"

#include <math.h>
#include <string.h>

enum { MATRICES = 70, DECAYS = 40 }; /* more arrays than a launch has room for */

typedef struct packed {
    xph_linear_pack_args matrix[MATRICES];
    xph_scan_pack_args decay[DECAYS];
    xph_packs_args all;
} packed;

static float *weights_of(int64_t count)
{
    float *w = emu_alloc((size_t)count * sizeof *w, sizeof *w);
    assert_non_null(w);
    for (int64_t i = 0; i < count; i++) w[i] = (float)(case_below(2001) - 1000) / 700.0f;
    return w;
}

static size_t bytes_of_matrix(const xph_linear_pack_args *m)
{
    return xph_cuda_packed_bytes(XPH_OP_LINEAR_PACK, m);
}

static size_t bytes_of_decay(const xph_scan_pack_args *d)
{
    return (size_t)(d->width * d->states) * sizeof(float);
}

/* What is packed begins where that of a net does, at a multiple of 64; what is between its parts is 0 before. */
static void *room(size_t bytes)
{
    void *to = emu_alloc((bytes + 63) / 64 * 64, 64);
    assert_non_null(to);
    memset(to, 0, (bytes + 63) / 64 * 64);
    return to;
}

/* Shapes from 1 by 1 up, one in three without a bias, some empty. */
static packed *packed_of(xph_type type, int64_t matrices, int64_t decays)
{
    packed *p = case_alloc(sizeof *p);
    memset(p, 0, sizeof *p);
    for (int64_t i = 0; i < matrices; i++) {
        xph_linear_pack_args *m = &p->matrix[i];
        *m = (xph_linear_pack_args){
            .type = type, .in = i % 7 == 6 ? 0 : 1 + case_below(60), .out = 1 + case_below(50)};
        if (i == 1) m->in = 64, m->out = 65;
        m->w = weights_of(m->in * m->out);
        m->bias = i % 3 ? weights_of(m->out) : NULL;
    }
    for (int64_t i = 0; i < decays; i++) {
        xph_scan_pack_args *d = &p->decay[i];
        *d = (xph_scan_pack_args){
            .type = XPH_F32, .width = 1 + case_below(300), .states = i % 5 == 4 ? 0 : 1 + case_below(17)};
        d->a_log = weights_of(d->width * d->states);
    }
    p->all = (xph_packs_args){
        .type = type, .matrices = matrices, .decays = decays, .matrix = p->matrix, .decay = p->decay};
    return p;
}

static void give_rooms(packed *p)
{
    for (int64_t i = 0; i < p->all.matrices; i++) p->matrix[i].packed = room(bytes_of_matrix(&p->matrix[i]));
    for (int64_t i = 0; i < p->all.decays; i++) p->decay[i].decay = room(bytes_of_decay(&p->decay[i]));
}

static void free_weights(const packed *p)
{
    for (int64_t i = 0; i < p->all.matrices; i++) {
        emu_free((void *)(uintptr_t)p->matrix[i].w);
        emu_free((void *)(uintptr_t)p->matrix[i].bias);
    }
    for (int64_t i = 0; i < p->all.decays; i++) emu_free((void *)(uintptr_t)p->decay[i].a_log);
}

static void free_rooms(const packed *p)
{
    for (int64_t i = 0; i < p->all.matrices; i++) emu_free(p->matrix[i].packed);
    for (int64_t i = 0; i < p->all.decays; i++) emu_free(p->decay[i].decay);
}

static void check_numbers(xph_type type, const float *from, const void *to, int64_t count)
{
    for (int64_t i = 0; from && i < count; i++)
        assert_true(device_get(type, to, i) == device_rounded(type, (double)from[i]));
}

static void check_values(const packed *p)
{
    for (int64_t i = 0; i < p->all.matrices && p->all.type != XPH_F32; i++) {
        const xph_linear_pack_args *m = &p->matrix[i];
        if (!m->in) continue;
        check_numbers(m->type, m->w, m->packed, m->in * m->out);
        check_numbers(m->type, m->bias, (const char *)m->packed + xph_packed_bias_at(m->in, m->out), m->out);
    }
    for (int64_t i = 0; i < p->all.decays; i++) {
        const xph_scan_pack_args *d = &p->decay[i];
        for (int64_t k = 0; k < d->width * d->states; k++) {
            const double want = -exp((double)((const float *)d->a_log)[k]) * 1.4426950408889634;
            assert_true(fabs((double)((const float *)d->decay)[k] - want) <= 1e-6 * fabs(want));
        }
    }
}

static void check_same(const packed *p, const packed *alone)
{
    for (int64_t i = 0; i < p->all.matrices; i++)
        assert_memory_equal(p->matrix[i].packed, alone->matrix[i].packed, bytes_of_matrix(&p->matrix[i]));
    for (int64_t i = 0; i < p->all.decays; i++)
        assert_memory_equal(p->decay[i].decay, alone->decay[i].decay, bytes_of_decay(&p->decay[i]));
}

static void pack_together(packed *p)
{
    device_do(xph_cuda_packs, &p->all);
    if (emu_fault()) fail_msg("packs: %s", emu_fault());
}

static void pack_alone(packed *p)
{
    for (int64_t i = 0; i < p->all.matrices; i++) device_do(xph_cuda_linear_pack, &p->matrix[i]);
    for (int64_t i = 0; i < p->all.decays; i++) device_do(xph_cuda_scan_pack, &p->decay[i]);
}

static void together_as_alone(void **state)
{
    static const int64_t counts[][2] = {{0, 0}, {1, 0}, {0, 1}, {5, 2}, {MATRICES, DECAYS}};
    for (size_t i = 0; i < DEVICE_TYPES * sizeof counts / sizeof *counts; i++) {
        case_seed(i);
        const int64_t *count = counts[i / DEVICE_TYPES];
        packed *p = packed_of(device_types[i % DEVICE_TYPES], count[0], count[1]), alone = *p;
        alone.all.matrix = alone.matrix, alone.all.decay = alone.decay;
        give_rooms(&alone);
        emu_schedule(EMU_FORWARD);
        pack_alone(&alone);
        for (int s = 0; s < EMU_SCHEDULES; s++) {
            give_rooms(p);
            emu_schedule(s);
            pack_together(p);
            check_same(p, &alone);
            if (s == 0) check_values(p);
            free_rooms(p);
        }
        free_rooms(&alone);
        free_weights(p);
        assert_int_equal(emu_allocated(), 0);
        case_release();
    }
}

/* Weights of fewer bits have another form, and matrices of another type are no part of it. */
static void others_are_not_accepted(void **state)
{
    xph_linear_pack_args matrix[2] = {{.type = XPH_BF16, .in = 3, .out = 2},
                                      {.type = XPH_BF16, .in = 3, .out = 2}};
    const xph_packs_args all = {.type = XPH_BF16, .matrices = 2, .matrix = matrix};
    assert_true(xph_cuda_packs->accepts(&all));
    matrix[1].weights = XPH_I8;
    assert_false(xph_cuda_packs->accepts(&all));
    matrix[1].weights = 0, matrix[1].type = XPH_F16;
    assert_false(xph_cuda_packs->accepts(&all));
    matrix[1].type = XPH_BF16, matrix[1].in = INT64_C(1) << 31, matrix[1].out = INT64_C(1) << 31;
    assert_false(xph_cuda_packs->accepts(&all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(together_as_alone),
                                       cmocka_unit_test(others_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_pack", tests, NULL, NULL);
}
