/* The scripted player of examples/pong, asked by the row that a policy sees. */
#ifndef EXPHIL_BENCH_LEARN_TAUGHT_H
#define EXPHIL_BENCH_LEARN_TAUGHT_H

#include "../../examples/pong/pong.h"
#include "../../examples/pong/teacher.h"

#include <math.h>

enum { MIDDLE = PONG_HEIGHT / 2 - PONG_PADDLE / 2 };

static int whole(float value, float scale, int middle)
{
    return (int)lrintf(value * scale) + middle;
}

/* The row has all that the teacher looks at. */
static int32_t taught(const float *row)
{
    struct pong game = {.magic = "", .pause = (uint8_t)whole(row[6], 30.0f, 0)};
    game.ball_x = (uint8_t)whole(row[0], 80.0f, 77);
    game.ball_y = (uint8_t)whole(row[1], 64.0f, 61);
    game.speed_x = (int8_t)whole(row[2], 3.0f, 0);
    game.speed_y = (int8_t)whole(row[3], 3.0f, 0);
    game.paddle[0] = (uint8_t)whole(row[4], 64.0f, MIDDLE);
    game.paddle[1] = (uint8_t)whole(row[5], 64.0f, MIDDLE);
    return pong_teacher((const uint8_t *)&game, 0);
}

#endif
