/* Registers the operations with the torch that this process has loaded, once. Read by cffi too. Private. */
#ifndef EXPHIL_TORCH_OP_H
#define EXPHIL_TORCH_OP_H

#include "op_call.h"

/* NULL: done. Else what torch lacks: it is older than 2.9, or not loaded. */
const char *exphil_py_torch_register(void);

/* Status of the last operator that failed in this thread. */
int32_t exphil_py_torch_status(void);

#endif
