/* Whose place a policy takes in a replay. */
#ifndef EXPHIL_CLI_PLAY_PORT_H
#define EXPHIL_CLI_PLAY_PORT_H

#include <exphil/slp.h>

#include <stdbool.h>

/* The port, 1..4, of the character that the policy was trained on, by its notes; says on stderr which and why, unless quiet.
 * Without notes 1, without a word. */
int play_port(const exphil_model *model, const exphil_slp_info *info, bool quiet);

#endif
