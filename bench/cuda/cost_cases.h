/* What tools/cuda-gate counts the cost of, and cuda_times times on a card: updates and steps by name, through the public
 * interface, with the table of the device watched. The list of operations is the same on every device that offers the same
 * kernels. */
#ifndef EXPHIL_COST_CASES_H
#define EXPHIL_COST_CASES_H

#include "device/device.h"

#include <exphil/exphil.h>

#include <stdbool.h>

/* Updates and steps are not recorded while they are watched, so that each operation is one call. run is called for each, and calls
 * work(arg), which does it; real: the device's table; name: of the kernel, or of what does several operations in one launch. dry:
 * nothing is computed, so what a step gives is not looked at. */
typedef struct cost_watch {
    int64_t rounds; /* updates or steps */
    bool small, dry;
    void (*begin)(int64_t round);
    void (*end)(int64_t round);
    exphil_status (*run)(const xph_backend *real, xph_stream *stream, const char *name,
                         exphil_status (*work)(void *arg), void *arg);
} cost_watch;

/* name: update, the policy of cuda_policy.c; learn, an update of it with a value head by the loss of learning from play, with a
 * teacher; melee2, that which `exphil train` trains by default (ids, past actions); lstm and gru, one such block in the place of
 * two of Mamba; each with -f32, -tf32, -bf16 or -f16
 * (not learn) behind it; step-N, a step of N players of the first, melee2-step-N of the second. false: there is
 * no such case. What fails ends the program with a sentence. */
bool cost_case_run(exphil_context *context, const char *name, const cost_watch *watch);

#endif
