/* What the tests of rows that actions take share, on the processor and on the emulated GPU. */
#ifndef EXPHIL_CODES_CASE_H
#define EXPHIL_CODES_CASE_H

#include "kernel_test.h"

typedef struct codes_shape {
    int64_t rows, width, heads, pad; /* the first heads of codes_heads */
} codes_shape;

enum { CODES_HEADS = 4, CODES_LOGITS = 8 + 17 + 2 + 31 };
extern const xph_head codes_heads[CODES_HEADS];

/* Random values of random actions, some classes outside their heads, with what is wanted of y and of the table's gradient.
 * actions: where the device finds them, [rows, CODES_HEADS], made by codes_actions. */
int32_t *codes_actions(int64_t rows);
kt_case codes_case(const codes_shape *s, const int32_t *actions);
kt_case codes_gradient_case(const codes_shape *s, const int32_t *actions);

#endif
