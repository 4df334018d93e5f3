/* The context of programs whose tests share one. */
#ifndef EXPHIL_CONTEXT_CASE_H
#define EXPHIL_CONTEXT_CASE_H

#include "test.h"

extern exphil_context *context;

/* What cmocka runs around the group: makes the context, of one thread; destroys it and removes the folder. */
int context_open(void **state);
int context_close(void **state);

#endif
