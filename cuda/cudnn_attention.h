/* Attention as a graph of cuDNN's operations, and the engine that runs it. Needs no handle before there is a plan: the graph
 * and the choice of engines can be checked against the real library on a machine without a GPU. */
#ifndef XPH_CUDA_CUDNN_ATTENTION_H
#define XPH_CUDA_CUDNN_ATTENTION_H

#include "cudnn_api.h"

/* y = softmax(q k^T scale + bias) v of causal attention: frame t sees t-window+1..t. All tensors are [batch, heads, time, ...]:
 * q, k, v with rows ld_in apart and heads dim apart, y with rows ld_out apart, stats (log-sum-exp) float and dense, bias float
 * [1, heads, time, time], dense. */
typedef struct xph_cudnn_shape {
    int64_t batch, heads, time, dim, window, ld_in, ld_out;
    int32_t type, reserved; /* DN_HALF, DN_BFLOAT16 */
} xph_cudnn_shape;

/* What a variant pack gives, in this order. The last ones are floats of the host. */
enum { XPH_CUDNN_Q, XPH_CUDNN_K, XPH_CUDNN_V, XPH_CUDNN_BIAS, XPH_CUDNN_Y, XPH_CUDNN_STATS };
enum { XPH_CUDNN_SCALE = XPH_CUDNN_STATS + 1, XPH_CUDNN_NEVER, XPH_CUDNN_WINDOW, XPH_CUDNN_TENSORS };

enum { XPH_CUDNN_DESCS = 128 /* at most, in a graph */, XPH_CUDNN_NO_ENGINE = -1 /* beside cudnnStatus_t */ };
typedef struct xph_cudnn_graph {
    dn_desc all[XPH_CUDNN_DESCS]; /* in the order of making */
    int count, tensors;           /* tensors: of a pack; without XPH_CUDNN_WINDOW where all before is seen */
    dn_desc graph, plan;
    int64_t workspace; /* bytes, with a plan */
    const char *where; /* what was refused */
    float scalars[3];  /* SCALE, NEVER, WINDOW */
} xph_cudnn_graph;

/* Each gives a cudnnStatus_t or XPH_CUDNN_NO_ENGINE; drop is called whatever it was. */
int xph_cudnn_graph_make(const dn_library *lib, dn_handle handle, const xph_cudnn_shape *s,
                         xph_cudnn_graph *to);
/* Configurations of deterministic engines, best first: at most `most`. device: a description (DN_DEVICE) in place of the
 * graph's handle, or NULL. */
int xph_cudnn_engines(const dn_library *lib, xph_cudnn_graph *g, dn_desc device, int most, dn_desc configs[],
                      int *count);
/* The first of them that can be made within so many bytes of workspace. */
int xph_cudnn_plan_make(const dn_library *lib, dn_handle handle, xph_cudnn_graph *g, int64_t most_bytes);
int xph_cudnn_run(const dn_library *lib, dn_handle handle, const xph_cudnn_graph *g,
                  void *const data[XPH_CUDNN_STATS + 1], void *workspace);
void xph_cudnn_graph_drop(const dn_library *lib, xph_cudnn_graph *g);

#endif
