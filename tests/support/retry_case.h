/* Updates that fail on the way and are called again: what a trainer is after each failure, and at the end. */
#ifndef EXPHIL_RETRY_CASE_H
#define EXPHIL_RETRY_CASE_H

#include "train_case.h"

/* REDUCE: the communicator, once every update. CANCEL: the host, at each of the questions of an update in turn. */
typedef enum retry_cause { RETRY_REDUCE, RETRY_CANCEL } retry_cause;

/* Two runs of the plan, one without trouble. After every failure of the other it is, and saves, what the first was before
 * that update; after the last update both are the same. looks false: nothing is asked between the calls, so that a device
 * that may be behind is. */
void retry_as_never_failed(train_plan plan, retry_cause cause, bool looks);

#endif
