/* A value head through a recorded game, frame by frame. A step before frame f, with a delay of d frames, decides for frame
 * f + d and says what is to come from there on: both stand at that frame. */
#include "review.h"

#include "base/double.h"

#include "seat.h"

#include <math.h>
#include <stdlib.h>

static bool no_memory(void)
{
    fprintf(stderr, "exphil: no memory for the frames of the game\n");
    return false;
}

/* What is known before a frame is the state after the frame before; without it an episode begins anew. */
static bool one_frame(review *r, int32_t frame)
{
    exphil_melee_frame state = {.struct_size = sizeof state};
    int32_t target[EXPHIL_HEADS_MAX], due = frame + r->info.delay_frames;
    int64_t before = exphil_slp_position(r->slp, frame - 1), at = (int64_t)due - r->first;
    exphil_pad pad;
    float value;
    bool known = before >= 0 && exphil_slp_melee_frame(r->slp, before, r->port, (int32_t)r->options->opponent,
                                                       &state, NULL) >= 0;
    if (!known) return exphil_session_reset(r->session, -1) >= 0 || seat_failed(r->session, "reset") == 0;
    if (exphil_session_step(r->session, &state, &pad) < 0 || exphil_session_value(r->session, 0, &value) < 0)
        return seat_failed(r->session, "step") == 0;
    if (!seat_recorded(r->slp, &r->spec, r->port, due, target)) return true;
    review_frame *to = &r->frame[at];
    to->known = exphil_melee_pad_decode(r->spec.codec, target, &to->pressed, NULL) >= 0;
    to->policy = pad;
    to->value = (double)value;
    return exphil_session_override(r->session, 0, target) >= 0 || seat_failed(r->session, "override") == 0;
}

static bool take_rewards(review *r)
{
    rewards_found found = {0};
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t first;
    int64_t count;
    float *rewards = rewards_of_side(&r->worth, r->slp, r->port, (int32_t)r->options->opponent, &first,
                                     &count, &found, &error);
    if (!rewards) return complain(r->path, &error) == 0;
    for (int64_t i = 0; i < r->count; i++)
        r->frame[i].reward = (double)rewards[(int64_t)r->first + i - first];
    free(rewards);
    return true;
}

/* Against the returns of this game, where they are known: not close before the end of one that was cut off. */
static void explain(review *r)
{
    const double gamma = xph_exp2_of(-1.0 / (60.0 * r->worth.half_life));
    double later = 0.0, lacks = r->over ? 0.0 : 1.0, misses = 0.0, mean = 0.0, apart = 0.0;
    for (int64_t i = r->count - 1; i >= 0; i--) {
        const review_frame *f = &r->frame[i];
        later = f->reward + gamma * later;
        lacks *= gamma;
        if (lacks > 1.0 / 64.0 || !f->known) continue;
        double off = later - mean;
        misses += (f->value - later) * (f->value - later);
        mean += off / (double)++r->returns;
        apart += off * (later - mean);
    }
    r->unexplained = apart > 0.0 ? misses / apart : 1.0;
}

bool review_walk(review *r)
{
    const int64_t frames = exphil_slp_frame_count(r->slp);
    r->count = r->game.last_frame >= r->first ? (int64_t)r->game.last_frame - r->first + 1 : 0;
    r->frame = calloc((size_t)r->count + 1, sizeof *r->frame);
    if (!r->frame) return no_memory();
    for (int64_t i = 0; i < r->count; i++) r->frame[i].value = NAN;
    int64_t known = 0;
    for (int64_t position = 1; position < frames; position++) {
        int32_t frame = exphil_slp_frame_at(r->slp, position)->frame;
        if (frame >= r->first && !one_frame(r, frame)) return false;
    }
    for (int64_t i = 0; i < r->count; i++) known += r->frame[i].known;
    if (!known) {
        fprintf(stderr, "exphil: %s: port %d plays none of its frames\n", r->path, (int)r->port);
        return false;
    }
    if (!take_rewards(r)) return false;
    explain(r);
    return true;
}
