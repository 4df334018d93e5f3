/* What tests of selections share: entries and corpora made here, and counts as exphil_dataset_add_games makes them. */
#ifndef EXPHIL_SELECT_CASE_H
#define EXPHIL_SELECT_CASE_H

#include "context_case.h"
#include "slp_writer.h"

#include "games/format.h"

/* Fox, human, on port 1 against Falco, human, on port 3 of Battlefield; port 1 won. */
xph_game_entry select_entry(void);
xph_selector *select_selector(const exphil_selection *selection);

/* A corpus of replays: compressed where there is a libzstd. */
exphil_games_writer *select_create(const char *path);
/* False: its content is there already. */
bool select_add(exphil_games_writer *writer, const slp_writer *w);
exphil_games *select_finish(exphil_games_writer *writer, const char *path);

/* Who is taken and who is not, without looking at rows. */
exphil_selection_report select_count(const exphil_games *games, const exphil_selection *selection);

/* For edits of replays: what another console's file of the match would be, as far as it can be made of this one. */
#define SELECT_OTHER_CONSOLE                                                                                 \
  {                                                                                                          \
    .rollback = 50, .padding = 4, .drop = 3, .metadata = select_other_metadata                               \
  }
extern const char select_other_metadata[];

#endif
