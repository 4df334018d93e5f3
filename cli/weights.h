/* Tables of how much frames count (exphil train --frame-weights). */
#ifndef EXPHIL_CLI_WEIGHTS_H
#define EXPHIL_CLI_WEIGHTS_H

#include "replay_table.h"

/* The head is "file,port,first,last,weight"; first and last game frame may be empty: from the beginning, to the end.
 * Lines are arguments of exphil_dataset_weight; a later one replaces an earlier one where both hold. */
bool weights_read(const char *path, replay_table *table);

#endif
