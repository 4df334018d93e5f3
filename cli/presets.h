/* Options under one name, for who has no opinion yet. */
#ifndef EXPHIL_CLI_PRESETS_H
#define EXPHIL_CLI_PRESETS_H

#include "options.h"

/* What each stands for, as it would be written. */
#define PRESET_FIRST    "--no-previous-action --held-out 0.1 --patience 5 --most-updates 2000"
#define PRESET_STANDARD "--drop-past 0.5 --own-past 0.5 --held-out 0.1 --patience 5 --best alone"

/* Sets the options of train that stand for this name and that nobody gave, and that go with what was given; they count as
 * given, and taken says which they are, as a line of text. leave: names, NULL ends them, that are not set. False: there is no
 * such preset, which is said on stderr. */
enum { PRESET_TEXT = 160 };
bool preset_take(const option_command *command, const char *name, const char *const *leave,
                 char taken[PRESET_TEXT]);

#endif
