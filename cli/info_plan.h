/* `exphil info --plan`: how a policy would run on a device. */
#ifndef EXPHIL_CLI_INFO_PLAN_H
#define EXPHIL_CLI_INFO_PLAN_H

#include "commands.h"

typedef struct plan_options {
    int64_t batch, time; /* time 0: what a session computes in a step */
    bool train;
} plan_options;

/* The exit status. */
int show_plan(const exphil_model *model, const char *path, const plan_options *options, bool json);

#endif
