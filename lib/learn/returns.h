/* Rewards to returns and advantages. */
#ifndef XPH_LEARN_RETURNS_H
#define XPH_LEARN_RETURNS_H

#include "base/base.h"

/* 0.5^(1 / frames): what weighs half after so many frames. */
double xph_discount(double half_life_frames);

/* One lane of a chunk of T rows and a delay of d frames: the action of row t acts in frame t + d, so that it is that frame's
 * reward which answers it, and its value is of what comes from frame t + d on. Frames go to T + d. */
typedef struct xph_lane {
    int64_t time, delay;
    const float *reward; /* [T + d] by frame */
    const uint8_t *end;  /* [T + d] EXPHIL_GOES_ON, EXPHIL_OVER, EXPHIL_CUT_OFF, by frame */
    const float *value;  /* [T + 1] by row; the last is that of the row after the chunk */
    const float *
        cut_off; /* [T + d] where a frame cut off an episode, without delay: the value of what it left; else not
                             read. With a delay the next row, which no longer acts, has that value */
} xph_lane;

/* Generalised advantage estimation (Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
 * Estimation"):
 *   A_t = r + gamma V' - V_t + gamma lambda A_{t+1}
 * V' is 0 where the episode is over, what it was cut off at where it was cut off, and A_{t+1} is 0 in both.
 * acts [T]: 0 where the episode ended before the action could act; such rows have advantage 0. target [T]: A_t + V_t. */
void xph_returns(const xph_lane *lane, double gamma, double lambda, double *advantage, double *target,
                 uint8_t *acts);

/* Sum of (G - V)^2 by that of (G - mean)^2; 1 where all returns are one number, but for what a float cannot hold. scale: the sum
 * of mean^2. */
double xph_unexplained(double miss, double square, double scale);

/* A whole game's discounted returns, one a frame: return_t = r_t + gamma return_{t+1}. cut_off: what comes after the last
 * frame, 0 where the game was over. */
void xph_whole_returns(const float *reward, int64_t frames, double gamma, double cut_off, double *to);

#endif
