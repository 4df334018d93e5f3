/* Baselines of an evaluation: predictions from the frequencies of a dataset alone. */
#ifndef XPH_TRAIN_BASELINE_H
#define XPH_TRAIN_BASELINE_H

#include "base/base.h"

typedef struct xph_baseline {
    exphil_context *context;
    const exphil_spec *spec;
    double *nll; /* per head, from first[h]: categorical -log p(class); bits: off, on pairs */
    size_t nll_bytes;
    int64_t first[EXPHIL_HEADS_MAX];
    int32_t majority[EXPHIL_HEADS_MAX]; /* commonest value of each head */
    int32_t whole[EXPHIL_HEADS_MAX];    /* commonest action as a whole */
} xph_baseline;

exphil_status xph_baseline_make(const exphil_dataset *dataset, xph_baseline *baseline, exphil_error *error);
/* Bytes of a baseline; temporary: that making it takes beside them. */
size_t xph_baseline_bytes(const exphil_dataset *dataset, size_t *temporary);
void xph_baseline_free(xph_baseline *baseline);
double xph_baseline_nll(const xph_baseline *baseline, int64_t head, int32_t value);

#endif
