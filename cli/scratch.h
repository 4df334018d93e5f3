/* A corpus of games in a file without a name, which is gone with the program, whatever ends it. */
#ifndef EXPHIL_CLI_SCRATCH_H
#define EXPHIL_CLI_SCRATCH_H

#include "commands.h"

#include <exphil/games.h>

typedef struct scratch {
    exphil_context *context;
    exphil_games_writer *writer; /* what is added to */
    const char *folder;
    intptr_t file; /* -1: none */
} scratch;

/* Begins one in a folder for temporary files (system_temporary). config: of the writer; NULL: compressed a little where
 * there is a libzstd. False: said on stderr why not. End it in any case. */
bool scratch_begin(scratch *s, int64_t threads, exphil_cancel_fn cancel, const exphil_games_config *config);
/* Whole: what was added. *games stays when the scratch has ended; the caller destroys it. */
bool scratch_open(scratch *s, exphil_games **games);
void scratch_end(scratch *s);
/* Is it the scratch corpus that failed, and no replay? */
bool scratch_failed(const exphil_error *error);
/* Says on stderr that it cannot be written; returns false. */
bool scratch_complain(const scratch *s, const exphil_error *error);

#endif
