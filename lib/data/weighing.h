/* Private to lib/data: what rows weigh in batches: what the host says of them (row_weights.h), times what balances
 * classes (exphil_sampling.balance_...). */
#ifndef XPH_DATA_WEIGHING_H
#define XPH_DATA_WEIGHING_H

#include "data/dataset.h"

typedef struct xph_weighing xph_weighing;
size_t xph_weighing_bytes(const exphil_dataset *dataset,
                          const exphil_sampling *how); /* 0: rows are not weighed */
/* NULL: all rows weigh 1. Counts classes: reads actions, and looks at the cancel hook. EXPHIL_E_INVALID where nothing weighs
 * more than 0. dataset and how (defaults filled in) must outlive it. */
exphil_status xph_weighing_create(const exphil_dataset *dataset, const exphil_sampling *how,
                                  xph_weighing **weighing, exphil_error *error);
void xph_weighing_free(xph_weighing *weighing);

/* Multiplies what rows [t, t + count) of an episode, whose targets are delay frames later, weigh into mask. packed:
 * its actions from frame packed_first on, with those of the targets and the one before the first of them, if the
 * episode has it. Returns how many masks became 0. From any thread. */
int64_t xph_weighing_rows(const xph_weighing *weighing, const xph_episode *episode, int64_t delay, int64_t t,
                          int64_t count, const uint8_t *packed, int64_t packed_first, float *mask);

/* Of what the host says of the dataset's rows, in their order; 0: it says nothing. */
uint64_t xph_weighing_hash(const xph_weighing *weighing);
/* exphil_prefetcher_info.effective_share. */
double xph_weighing_share(const xph_weighing *weighing);

#endif
