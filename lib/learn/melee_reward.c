/* What a frame of Melee was worth: zero sum, from what both characters went through. The terms are those of slippi-ai's
 * reward.py (vladfi1/slippi-ai); each is computed in double and only the difference is rounded, so that the reward of one seat
 * is that of the other with its sign changed, exactly. */
#include "learn/learn.h"
#include "melee/layout.h"
#include "melee/melee.h"

enum { DYING_LAST = 0x0A, RETURN_LAST = 0x0D, LEDGE_CAUGHT = 0xFC, VULNERABLE = 0 };
#define ABOVE_STAGE 60.0 /* units above the ground that are not yet off the stage */

typedef struct terms {
    double stock, damage, follower, ledge, stalling, distance, approach, edge;
} terms;

static double usual(double given, double otherwise)
{
    return given == 0.0 ? otherwise : given < 0.0 ? 0.0 : given;
}

static exphil_status take_config(const exphil_melee_reward_config *c, terms *t, exphil_error *error)
{
    const double all[] = {c->stock,   c->damage, c->follower, c->ledge, c->stalling, c->stalling_distance,
                          c->approach};
    static const char *const names[] = {
        "stock", "damage", "follower", "ledge", "stalling", "stalling_distance", "approach"};
    for (int i = 0; i < 7; i++)
        if (!(all[i] >= -1e6 && all[i] <= 1e6))
            return xph_fail(error, EXPHIL_E_INVALID, "reward config: %s is %g", names[i], all[i]);
    *t = (terms){.stock = usual(c->stock, 1.0),
                 .damage = usual(c->damage, 0.01),
                 .follower = usual(c->follower, 0.5),
                 .ledge = c->ledge,
                 .stalling = c->stalling,
                 .distance = usual(c->stalling_distance, 20.0),
                 .approach = c->approach};
    return EXPHIL_OK;
}

static bool is_dying(const exphil_melee_character *c)
{
    return c->action_state <= DYING_LAST;
}

/* A stock lost and percent taken between two frames. */
static double suffered(const terms *t, const exphil_melee_character *before,
                       const exphil_melee_character *now)
{
    if (!before->present || !now->present) return 0.0;
    double taken = (double)now->percent - (double)before->percent;
    double lost = is_dying(now) && !is_dying(before) ? t->stock : 0.0;
    return lost + t->damage * (taken > 0.0 ? taken : 0.0);
}

static double size_of(double x)
{
    return x < 0.0 ? -x : x;
}

/* Units beyond the edge, below the ground or far above it. */
static double off_stage(const terms *t, const exphil_melee_character *c)
{
    double x = size_of((double)c->x) - t->edge, y = (double)c->y;
    double beside = x > 0.0 ? x : 0.0, under = -y > y - ABOVE_STAGE ? -y : y - ABOVE_STAGE;
    if (under < 0.0) under = 0.0;
    return __builtin_sqrt(beside * beside + under * under);
}

/* The ledge is taken from somebody who stands nearer to the middle and could be hit. */
static bool takes_ledge(const exphil_melee_character *before, const exphil_melee_character *now,
                        const exphil_melee_character *other)
{
    bool safe = (other->known & EXPHIL_MELEE_HAS_HURTBOX) && other->hurtbox != VULNERABLE;
    return now->action_state == LEDGE_CAUGHT && before->action_state != LEDGE_CAUGHT && other->present &&
           !safe && size_of((double)other->x) < size_of((double)now->x);
}

/* Units of the frame's way that lead to where the other one was. */
static double approached(const exphil_melee_character *before, const exphil_melee_character *now,
                         const exphil_melee_character *other)
{
    if (!other->present || before->action_state <= RETURN_LAST || now->action_state <= RETURN_LAST)
        return 0.0;
    double dx = (double)other->x - (double)before->x, dy = (double)other->y - (double)before->y,
           far = __builtin_sqrt(dx * dx + dy * dy);
    if (far == 0.0) return 0.0;
    return (((double)now->x - (double)before->x) * dx + ((double)now->y - (double)before->y) * dy) / far;
}

/* Of the character at one port; other: who is fought. */
static double worth(const terms *t, const exphil_melee_frame *before, const exphil_melee_frame *now,
                    int32_t port, int32_t other)
{
    const exphil_melee_character *was = &before->player[port - 1], *is = &now->player[port - 1];
    static const exphil_melee_character nobody;
    const exphil_melee_character *foe_was = other ? &before->player[other - 1] : &nobody,
                                 *foe = other ? &now->player[other - 1] : &nobody;
    if (!was->present || !is->present) return 0.0;
    double q = -suffered(t, was, is);
    q -= t->follower * suffered(t, &before->follower[port - 1], &now->follower[port - 1]);
    if (t->ledge != 0.0 && takes_ledge(was, is, foe)) q -= t->ledge;
    if (t->stalling != 0.0 && t->edge > 0.0 && off_stage(t, is) > t->distance) q -= t->stalling / 60.0;
    if (t->approach != 0.0) q += t->approach * approached(was, is, foe_was);
    return q;
}

static exphil_status check_frames(const exphil_melee_frame *before, const exphil_melee_frame *now,
                                  exphil_error *error)
{
    const exphil_melee_frame *both[] = {before, now};
    for (int i = 0; i < 2; i++)
        if (both[i]->own_port < 1 || both[i]->own_port > 4 || both[i]->opponent_port < 0 ||
            both[i]->opponent_port > 4)
            return xph_fail(error, EXPHIL_E_INVALID, "%s: own_port is %d, opponent_port %d",
                            i ? "now" : "before", (int)both[i]->own_port, (int)both[i]->opponent_port);
    if (before->own_port == now->own_port && before->opponent_port == now->opponent_port &&
        before->stage == now->stage)
        return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "before and now are of different games");
}

/* 0: the first other port that is present, as an encoder has it. */
static int32_t opponent_of(const exphil_melee_frame *frame)
{
    int32_t port = frame->opponent_port;
    for (int32_t i = 1; i <= 4 && !port; i++)
        if (i != frame->own_port && frame->player[i - 1].present) port = i;
    return port;
}

exphil_status exphil_melee_reward(const exphil_melee_reward_config *config, const exphil_melee_frame *before,
                                  const exphil_melee_frame *now, float *reward, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_melee_reward_config known = EXPHIL_MELEE_REWARD_CONFIG_INIT;
    exphil_melee_frame was = EXPHIL_MELEE_FRAME_INIT, is = EXPHIL_MELEE_FRAME_INIT;
    terms t;
    if (!before || !now || !reward)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", !before ? "before" : !now ? "now" : "reward");
    XPH_TRY(XPH_TAKE(exphil_melee_reward_config, &known, config, error));
    XPH_TRY(XPH_TAKE(exphil_melee_frame, &was, before, error));
    XPH_TRY(XPH_TAKE(exphil_melee_frame, &is, now, error));
    XPH_TRY(take_config(&known, &t, error));
    XPH_TRY(check_frames(&was, &is, error));
    t.edge = xph_melee_stage_edge(is.stage);
    int32_t other = opponent_of(&is);
    double value = 0.0;
    if (is.frame == was.frame + 1) value = worth(&t, &was, &is, is.own_port, other);
    if (is.frame == was.frame + 1 && other) value -= worth(&t, &was, &is, other, is.own_port);
    if (!xph_finite(value) || !xph_finite((double)(float)value))
        return xph_fail(error, EXPHIL_E_NUMERIC, "frame %d: a position or percent is not finite",
                        (int)is.frame);
    *reward = (float)value;
    return EXPHIL_OK;
}
