/* Synthetic rows for tests of datasets: every value is a function of episode and frame, so that a test can
 * tell from a row which one it is and what must stand around it. */
#ifndef EXPHIL_DATA_CASE_H
#define EXPHIL_DATA_CASE_H

#include "test.h"

enum { DATA_FLOATS = 4, DATA_IDS = 2, DATA_HEADS = 3 };

/* Floats: episode, frame, a third of both, always 2.5. Heads of 5 bits, 300 classes, 31 bits: 1, 2 and 4
 * bytes. */
const exphil_spec *data_spec(void);
void data_row(int64_t episode, int64_t t, float *floats, int32_t *ids, int32_t *action);
void data_action(int64_t episode, int64_t t, int32_t *action); /* the neutral one for t < 0 */

exphil_dataset *data_empty(exphil_context *context);
/* Adds an episode as game 100 + episode. */
exphil_status data_add(exphil_dataset *dataset, int64_t episode, int64_t frames, exphil_error *error);
/* Episodes 0, 1, ... of these lengths. */
exphil_dataset *data_make(exphil_context *context, const int64_t *frames, int64_t count);
exphil_dataset_info data_info(const exphil_dataset *dataset);
/* Both have the same rows in the same episodes of the same games. */
void data_same(const exphil_dataset *a, const exphil_dataset *b);
/* exphil_dataset_rows gives what exphil_dataset_frame gives, over all frames and over ranges of every kind. */
void data_rows_at_once(const exphil_dataset *dataset);

#endif
