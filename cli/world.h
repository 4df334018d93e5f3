/* Worlds by name: the library's own, and those of other libraries. */
#ifndef EXPHIL_CLI_WORLD_H
#define EXPHIL_CLI_WORLD_H

#include <exphil/learn.h>

#include <stdbool.h>

/* Of --world. */
#define WORLD_HELP                                                                                           \
  "cartpole; cartpole-blind, without speeds; drill, that of exphil drill; pong; pong-two, which is pong "    \
  "against itself; NAME:ARGUMENTS or "                                                                       \
  "FILE.so:ARGUMENTS, a library of another game"

/* Whether it is of another library: FILE.so, FILE.so:ARGUMENTS or NAME:ARGUMENTS. */
bool world_foreign(const char *name);
/* Whether a name can be played with so many seats, as far as can be said before it is opened. */
bool world_has_seats(const char *name, int seats);
bool world_known(const char *name);
/* Says why not. */
bool world_open(exphil_context *context, const char *name, int64_t lanes, int seats, exphil_world *world);
/* world->step of the lanes whose byte in gone [count] is 0, neighbours together, so that a world may use all its threads. gone
 * may be end: GOES_ON is 0. Of the others reward becomes 0, and nothing else changes. */
int32_t world_step_some(const exphil_world *world, int64_t first, int64_t count, const uint8_t *gone,
                        const int32_t *actions, float *floats, int32_t *ids, float *reward, uint8_t *end);

#endif
