/* oneDNN as a peer, through its C interface of version 3: LSTM and GRU of one frame with the state fed back,
 * and the MLP of inner products with LayerNorm and swish between them. Weights are in the layout that each
 * primitive prefers.
 *
 *   onednn_peer FOLDER lstm|gru|mlp IN HIDDEN f32|bf16
 * Reads the arrays of the case from FOLDER; the output of the first step goes to FOLDER/onednn.y.bin. */
#define _GNU_SOURCE
#include "peer.h"

#include <oneapi/dnnl/dnnl.h>

enum { PRIMITIVES = 4, ARGUMENTS = 16 };

typedef struct step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arg[ARGUMENTS];
    int args;
} step;

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_data_type_t type; /* of weights and of what meets them */
    int64_t in, hidden;
    const char *folder;
    step step[PRIMITIVES];
    int steps;
    dnnl_memory_t y;
} peer;

static void check(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) peer_fail(what);
}

static dnnl_memory_desc_t shape(int dims, const dnnl_dims_t dim, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    check(dnnl_memory_desc_create_with_tag(&md, dims, dim, type, tag), "memory descriptor");
    return md;
}

static dnnl_memory_t memory(const peer *p, const_dnnl_memory_desc_t md, void *data)
{
    dnnl_memory_t m;
    size_t bytes = dnnl_memory_desc_get_size(md);
    check(dnnl_memory_create(&m, md, p->engine, data ? data : peer_memory(bytes)), "memory");
    return m;
}

static void reorder(const peer *p, dnnl_memory_t from, const_dnnl_memory_desc_t from_md, dnnl_memory_t to,
                    const_dnnl_memory_desc_t to_md)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    check(dnnl_reorder_primitive_desc_create(&pd, from_md, p->engine, to_md, p->engine, NULL), "reorder");
    check(dnnl_primitive_create(&primitive, pd), "reorder");
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    check(dnnl_primitive_execute(primitive, p->stream, 2, args), "reorder");
    check(dnnl_stream_wait(p->stream), "reorder");
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
}

/* Floats of the case in the layout and type that a primitive asks for. */
static dnnl_memory_t placed(const peer *p, float *data, int dims, const dnnl_dims_t dim,
                            dnnl_format_tag_t tag, const_dnnl_memory_desc_t wanted)
{
    dnnl_memory_desc_t plain = shape(dims, dim, dnnl_f32, tag);
    dnnl_memory_t from = memory(p, plain, data), to = memory(p, wanted, NULL);
    reorder(p, from, plain, to, wanted);
    return to;
}

static void give(step *s, int arg, dnnl_memory_t m)
{
    s->arg[s->args].arg = arg;
    s->arg[s->args++].memory = m;
}

static const_dnnl_memory_desc_t wants(const_dnnl_primitive_desc_t pd, int arg)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

static float *load(const peer *p, const char *name, int64_t count)
{
    return peer_load(p->folder, name, (size_t)count);
}

/* ---- recurrent ----------------------------------------------------------------------------------------- */

/* torch adds r, z, n; oneDNN wants z, r, n, and of n both biases (linear before reset). */
static void swap_gates(float *w, int64_t gate)
{
    for (int64_t i = 0; i < gate; i++) {
        float kept = w[i];
        w[i] = w[gate + i];
        w[gate + i] = kept;
    }
}

static float *joined_bias(const peer *p, int gates, int is_gru)
{
    int64_t h = p->hidden;
    float *a = load(p, "b_in", gates * h), *b = load(p, "b_out", gates * h);
    float *sum = peer_memory((size_t)(4 * h) * sizeof *sum);
    if (is_gru) {
        swap_gates(a, h);
        swap_gates(b, h);
    }
    for (int64_t i = 0; i < gates * h; i++) sum[i] = is_gru && i >= 2 * h ? a[i] : a[i] + b[i];
    if (is_gru) memcpy(sum + 3 * h, b + 2 * h, (size_t)h * sizeof *sum);
    return sum;
}

static void recurrent(peer *p, int is_gru)
{
    int gates = is_gru ? 3 : 4;
    int64_t h = p->hidden, in = p->in;
    dnnl_primitive_desc_t pd;
    step *s = &p->step[p->steps++];
    dnnl_dims_t layer = {1, 1, in}, iter = {1, 1, 1, h}, out = {1, 1, h}, bias = {1, 1, 4, h};
    dnnl_dims_t w_in = {1, 1, in, gates, h}, w_out = {1, 1, h, gates, h};
    dnnl_memory_desc_t layer_md = shape(3, layer, p->type, dnnl_tnc),
                       iter_md = shape(4, iter, p->type, dnnl_ldnc);
    dnnl_memory_desc_t cell_md = shape(4, iter, dnnl_f32, dnnl_ldnc),
                       out_md = shape(3, out, p->type, dnnl_tnc);
    dnnl_memory_desc_t in_md = shape(5, w_in, p->type, dnnl_format_tag_any);
    dnnl_memory_desc_t rec_md = shape(5, w_out, p->type, dnnl_format_tag_any);
    dnnl_memory_desc_t bias_md = shape(4, bias, dnnl_f32, dnnl_ldgo);
    if (is_gru)
        check(dnnl_lbr_gru_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                         dnnl_unidirectional_left2right, layer_md, iter_md,
                                                         in_md, rec_md, bias_md, out_md, iter_md, 0, NULL),
              "gru");
    else
        check(dnnl_lstm_forward_primitive_desc_create(
                  &pd, p->engine, dnnl_forward_inference, dnnl_unidirectional_left2right, layer_md, iter_md,
                  cell_md, in_md, rec_md, NULL, NULL, bias_md, out_md, iter_md, cell_md, 0, NULL),
              "lstm");
    check(dnnl_primitive_create(&s->primitive, pd), "recurrent primitive");
    float *w1 = load(p, "w_in", gates * h * in), *w2 = load(p, "w_out", gates * h * h);
    if (is_gru) {
        swap_gates(w1, h * in);
        swap_gates(w2, h * h);
    }
    float *state = load(p, "state", (is_gru ? 1 : 2) * h);
    dnnl_memory_t hidden = placed(p, state, 4, iter, dnnl_ldnc, iter_md);
    give(s, DNNL_ARG_SRC_LAYER, placed(p, load(p, "x", in), 3, layer, dnnl_tnc, layer_md));
    give(s, DNNL_ARG_SRC_ITER, hidden);
    give(s, DNNL_ARG_WEIGHTS_LAYER, placed(p, w1, 5, w_in, dnnl_ldgoi, wants(pd, DNNL_ARG_WEIGHTS_LAYER)));
    give(s, DNNL_ARG_WEIGHTS_ITER, placed(p, w2, 5, w_out, dnnl_ldgoi, wants(pd, DNNL_ARG_WEIGHTS_ITER)));
    give(s, DNNL_ARG_BIAS, memory(p, bias_md, joined_bias(p, gates, is_gru)));
    give(s, DNNL_ARG_DST_LAYER, p->y = memory(p, out_md, NULL));
    give(s, DNNL_ARG_DST_ITER, hidden); /* the state moves on in place */
    if (!is_gru) {
        dnnl_memory_t cell = memory(p, cell_md, state + h);
        give(s, DNNL_ARG_SRC_ITER_C, cell);
        give(s, DNNL_ARG_DST_ITER_C, cell);
    }
}

/* ---- mlp ----------------------------------------------------------------------------------------------- */

static dnnl_memory_t product(peer *p, dnnl_memory_t x, int64_t in, const char *w, const char *b)
{
    int64_t h = p->hidden;
    dnnl_primitive_desc_t pd;
    step *s = &p->step[p->steps++];
    dnnl_dims_t src = {1, in}, weights = {h, in}, bias = {h}, dst = {1, h};
    dnnl_memory_desc_t dst_md = shape(2, dst, p->type, dnnl_nc);
    check(dnnl_inner_product_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                           shape(2, src, p->type, dnnl_nc),
                                                           shape(2, weights, p->type, dnnl_format_tag_any),
                                                           shape(1, bias, dnnl_f32, dnnl_x), dst_md, NULL),
          "inner product");
    check(dnnl_primitive_create(&s->primitive, pd), "inner product");
    dnnl_memory_t y = memory(p, dst_md, NULL);
    give(s, DNNL_ARG_SRC, x);
    give(s, DNNL_ARG_WEIGHTS,
         placed(p, load(p, w, h * in), 2, weights, dnnl_oi, wants(pd, DNNL_ARG_WEIGHTS)));
    give(s, DNNL_ARG_BIAS, memory(p, shape(1, bias, dnnl_f32, dnnl_x), load(p, b, h)));
    give(s, DNNL_ARG_DST, y);
    return y;
}

static void norm_and_swish(peer *p, dnnl_memory_t x)
{
    dnnl_primitive_desc_t pd;
    dnnl_dims_t dim = {1, p->hidden}, width = {p->hidden};
    dnnl_memory_desc_t md = shape(2, dim, p->type, dnnl_nc), vector = shape(1, width, dnnl_f32, dnnl_x);
    step *norm = &p->step[p->steps++];
    check(dnnl_layer_normalization_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference, md,
                                                                 md, NULL, 1e-5f,
                                                                 dnnl_use_scale | dnnl_use_shift, NULL),
          "layer norm");
    check(dnnl_primitive_create(&norm->primitive, pd), "layer norm");
    give(norm, DNNL_ARG_SRC, x);
    give(norm, DNNL_ARG_SCALE, memory(p, vector, load(p, "gain", p->hidden)));
    give(norm, DNNL_ARG_SHIFT, memory(p, vector, load(p, "shift", p->hidden)));
    give(norm, DNNL_ARG_DST, x);
    step *swish = &p->step[p->steps++];
    check(dnnl_eltwise_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                     dnnl_eltwise_swish, md, md, 1, 0, NULL),
          "swish");
    check(dnnl_primitive_create(&swish->primitive, pd), "swish");
    give(swish, DNNL_ARG_SRC, x);
    give(swish, DNNL_ARG_DST, x);
}

static void mlp(peer *p)
{
    dnnl_dims_t src = {1, p->in};
    dnnl_memory_t x = placed(p, load(p, "x", p->in), 2, src, dnnl_nc, shape(2, src, p->type, dnnl_nc));
    dnnl_memory_t middle = product(p, x, p->in, "w_in", "b_in");
    norm_and_swish(p, middle);
    p->y = product(p, middle, p->hidden, "w_out", "b_out");
}

/* ---- running ------------------------------------------------------------------------------------------- */

static void run(void *arg)
{
    peer *p = arg;
    for (int i = 0; i < p->steps; i++)
        check(dnnl_primitive_execute(p->step[i].primitive, p->stream, p->step[i].args, p->step[i].arg),
              "execute");
    check(dnnl_stream_wait(p->stream), "wait");
}

static void save_first(peer *p)
{
    dnnl_dims_t dim = {1, p->hidden};
    dnnl_memory_desc_t from = shape(2, dim, p->type, dnnl_nc), to = shape(2, dim, dnnl_f32, dnnl_nc);
    float *y = peer_memory((size_t)p->hidden * sizeof *y);
    void *data = NULL;
    check(dnnl_memory_get_data_handle(p->y, &data), "handle");
    reorder(p, memory(p, from, data), from, memory(p, to, y), to);
    peer_save(p->folder, "onednn.y", y, (size_t)p->hidden);
}

int main(int argc, char **argv)
{
    static peer p;
    if (argc != 6) peer_fail("usage: onednn_peer FOLDER lstm|gru|mlp IN HIDDEN f32|bf16");
    p.folder = argv[1];
    p.in = atoll(argv[3]);
    p.hidden = atoll(argv[4]);
    p.type = strcmp(argv[5], "bf16") == 0 ? dnnl_bf16 : dnnl_f32;
    const dnnl_version_t *version = dnnl_version();
    fprintf(stderr, "version %d.%d.%d\n", version->major, version->minor, version->patch);
    check(dnnl_engine_create(&p.engine, dnnl_cpu, 0), "engine");
    check(dnnl_stream_create(&p.stream, p.engine, dnnl_stream_default_flags), "stream");
    if (strcmp(argv[2], "mlp") == 0)
        mlp(&p);
    else
        recurrent(&p, strcmp(argv[2], "gru") == 0);
    run(&p);
    save_first(&p);
    peer_converse(run, &p);
    return 0;
}
