/* The drill over standard output and input: a bot in any language sees frames and holds the controller. A line of JSON
 * each, in turn. */
#ifndef EXPHIL_CLI_DRILL_PIPE_H
#define EXPHIL_CLI_DRILL_PIPE_H

#include <exphil/exphil.h>

#include <stdbool.h>

/* One frame out: its number, the stage, the ports, and for each player what the game shows of him. False: said on stderr. */
bool drill_pipe_say(const exphil_melee_frame *frame);
/* One controller in: buttons as EXPHIL_PAD_... together, main_x, main_y, c_x, c_y -1..1, trigger 0..1; what is left out is 0. */
bool drill_pipe_hear(int32_t frame, exphil_pad *pad);

#endif
