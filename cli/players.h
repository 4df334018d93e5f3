/* Which characters people play in data that gave no frames: what a person who asked for another wants to know. */
#ifndef EXPHIL_CLI_PLAYERS_H
#define EXPHIL_CLI_PLAYERS_H

#include "tally.h"

#include <exphil/games.h>

/* Those that the library names where it refuses a replay, as "no human player plays pichu; P1 fox human, P2 falco CPU".
 * False: no memory. */
bool players_refused(tally *who, const char *message);
/* Those of all games. False: no memory. */
bool players_of_games(tally *who, const exphil_games *games);
/* Says on stderr that nobody plays this character, and who is there. False: somebody does, or nobody is known. */
bool players_say(tally *who, const char *character);

#endif
