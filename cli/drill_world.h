/* A small scripted world for demonstrations: two Foxes on Final Destination, one driven by a teacher that
 * reacts to what it sees, one that wanders. It looks to the library exactly like the real game: frames in,
 * controllers out. */
#ifndef EXPHIL_CLI_DRILL_WORLD_H
#define EXPHIL_CLI_DRILL_WORLD_H

#include <exphil/exphil.h>

typedef struct drill_body {
    float x, y, facing, speed_x, speed_y, percent;
    int32_t action, age, airborne;
} drill_body;

typedef struct drill_world {
    drill_body own, other;
    uint64_t random;            /* of the wanderer */
    int32_t frame, pause, goal; /* the wanderer stands for pause frames, then walks to goal */
    int64_t hits;               /* times the own reflector touched the other */
} drill_world;

/* Frames in which nobody acts yet, as before a game: -123..-1. */
enum { COUNTDOWN = 123 };

void drill_begin(drill_world *world, uint64_t seed);
/* What is known after the latest frame. */
void drill_observe(const drill_world *world, exphil_melee_frame *frame);
/* What the teacher presses next. */
void drill_teach(const drill_world *world, exphil_pad *pad);
/* One frame with this controller in port 1. */
void drill_step(drill_world *world, const exphil_pad *pad);

/* Writes frames -123.. of the teacher's play as a replay (.slp 3.16); false and errno on failure. */
int drill_write_replay(const char *path, uint64_t seed, int64_t frames);

#endif
