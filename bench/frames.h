/* Frames of a made-up game, for what wants frames and no file: two fighters who move, act and are hurt. */
#ifndef EXPHIL_BENCH_FRAMES_H
#define EXPHIL_BENCH_FRAMES_H

#include <exphil/exphil.h>

void bench_frame(exphil_melee_frame *frame, int64_t at);

#endif
