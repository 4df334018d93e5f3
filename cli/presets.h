/* Options under one name, for who has no opinion yet. */
#ifndef EXPHIL_CLI_PRESETS_H
#define EXPHIL_CLI_PRESETS_H

#include "options.h"

/* What each stands for, as it would be written. */
#define PRESET_FIRST    "--no-previous-action --held-out 0.1 --patience 5 --most-updates 2000"
#define PRESET_STANDARD "--drop-past 0.5 --own-past 0.5 --held-out 0.1 --patience 5 --best alone"
/* slippi-ai, rl_example.sh */
#define PRESET_NEAR_TEACHER                                                                                  \
  "--to-teacher 0.003 --rate 0.00003 --ratio-clip 0.01 --epochs 2 --batches 16 --time 240 --half-life 4 "    \
  "--value-only 8"
/* HAL, 014; 0.997 a frame is a half-life of 3.85 seconds */
#define PRESET_SELF_PLAY                                                                                     \
  "--opponent self --to-teacher 0.05 --most-kl 0.015 --rate 0.00003 --epochs 4 --batches 16 --entropy "      \
  "0.003 --half-life 3.85 --value-only 20"

/* Those of a command; name NULL ends them. */
typedef struct preset {
    const char *name, *options;
} preset;

/* Sets the options of the command that stand for this name and that nobody gave, and that go with what was given; they count
 * as given, and taken says which they are, as a line of text. leave: names, NULL ends them, that are not set. False: there is
 * no such preset, which is said on stderr. */
enum { PRESET_TEXT = 240 };
bool preset_take(const option_command *command, const preset *presets, const char *name,
                 const char *const *leave, char taken[PRESET_TEXT]);

#endif
