/* What the tests of the action heads share: heads of every kind, losses, a layer of made-up numbers, and what the CPU's
 * operations make of it as cases. */
#ifndef EXPHIL_HEADS_BED_H
#define EXPHIL_HEADS_BED_H

#include "device_case.h"

/* Losses: plain, everything on, focal below one with much smoothing, and one term each. */
enum { BED_HEADS = 5, BED_LOSSES = 3 };
extern const xph_head bed_heads[BED_HEADS];
extern const float bed_positive[31];
extern const xph_head_loss bed_losses[BED_LOSSES][BED_HEADS];
int64_t bed_logits(const xph_head *head, int64_t heads);
int32_t *bed_actions(const xph_head *head, int64_t heads, int64_t rows);

typedef struct bed_shape {
    int64_t rows, width, pad;
    int heads;
    bool chained, based;  /* each head sees the ones before it; logits start from something */
    const xph_head *head; /* NULL: the first of bed_heads */
} bed_shape;
/* Rows are rounded to `type`, all else to floats. */
typedef struct bed_layer {
    bed_shape s;
    xph_type type;
    int64_t logits;
    double *z, *v, *bias, *e, *base, *dy, *dv, *dbias, *de; /* de: whether chained or not */
    int32_t *actions;
} bed_layer;
bed_layer bed_layer_make(const bed_shape *s, xph_type type);
/* Numbers from -reach to reach that `type` holds. */
double *bed_numbers(xph_type type, int64_t count, double reach);

/* Without addresses, but for actions where the heads are chained. */
xph_heads_args bed_args(const bed_layer *l);
/* XPH_OP_HEADS, and XPH_OP_HEADS_GRAD from l->dy; places of what they make. */
enum { BED_Y = 5, BED_DZ = 5, BED_DV, BED_DBIAS, BED_DE };
kt_case bed_forward(const bed_layer *l);
kt_case bed_gradient(const bed_layer *l);

#endif
