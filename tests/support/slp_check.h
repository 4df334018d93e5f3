/* What must hold for any bytes whatever: used by the tests of damaged replays and by the fuzz target. */
#ifndef EXPHIL_SLP_CHECK_H
#define EXPHIL_SLP_CHECK_H

#include <exphil/slp.h>

/* Reads everything that a replay gives. NULL, or what does not fit together. */
const char *slp_inconsistent(const exphil_slp *slp);
/* Reads the bytes in all rollback modes and as a stream in pieces; where they can be read, the stream gives
 * the same frames. NULL, or what is wrong. piece > 0. */
const char *slp_check_bytes(exphil_context *context, const void *data, size_t bytes, size_t piece);

#endif
