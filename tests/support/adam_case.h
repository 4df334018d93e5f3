/* AdamW over random numbers, as a case of kernel_test.h. */
#ifndef EXPHIL_ADAM_CASE_H
#define EXPHIL_ADAM_CASE_H

#include "kernel_test.h"

enum { ADAM_P, ADAM_GRAD, ADAM_M, ADAM_V, ADAM_EMA }; /* places among the tensors */

/* The third step; with the average of the weights or without. Nothing is wanted yet. */
kt_case adam_case(int64_t count, int64_t decay_count, bool averaged);

#endif
