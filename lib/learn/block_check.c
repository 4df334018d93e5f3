/* The numbers of a block that was copied into a rollout: each is one that play could have recorded. A hash tells accidents from
 * blocks, not forgers from players: what indexes memory later, or would spoil what is learnt, is looked at here. */
#include "learn/block.h"

#define FRAMES_MOST ((int64_t)1 << 48) /* of an episode */

/* What is being looked at. */
typedef struct look {
    const exphil_rollout *r;
    const xph_flat_part *part;
    int64_t first, streams; /* of the rollout */
    exphil_error *error;
} look;

static int64_t count_of(const look *l)
{
    return l->streams * l->part->rows * l->part->width;
}

static unsigned char *number(const look *l, int64_t i)
{
    const xph_flat_part *p = l->part;
    return p->base + (size_t)(l->first * p->rows * p->width + i) * p->element;
}

/* Row i / width of the rollout. */
static int64_t row_of(const look *l, int64_t i)
{
    return l->first * l->part->rows + i / l->part->width;
}

/* Number i of the part is not what it must be. */
static exphil_status bad(const look *l, int64_t i, const char *what)
{
    const xph_flat_part *p = l->part;
    return xph_fail(l->error, EXPHIL_E_FORMAT, "block: %s %s: stream %lld, row %lld, number %lld, byte %zu",
                    p->name, what, (long long)(i / p->width / p->rows), (long long)(i / p->width % p->rows),
                    (long long)(i % p->width), p->at + (size_t)i * p->element);
}

static exphil_status check_floats(const look *l)
{
    int64_t at = xph_find_not_finite((const void *)number(l, 0), count_of(l));
    return at < 0 ? EXPHIL_OK : bad(l, at, "is not finite");
}

static exphil_status check_doubles(const look *l)
{
    for (int64_t i = 0; i < count_of(l); i++)
        if (!xph_finite(*(const double *)(const void *)number(l, i))) return bad(l, i, "is not finite");
    return EXPHIL_OK;
}

static exphil_status check_ids(const look *l)
{
    const exphil_spec *spec = l->r->session->spec;
    for (int64_t i = 0; i < count_of(l); i++) {
        const int32_t id = *(const int32_t *)(const void *)number(l, i);
        if (id < 0 || id >= spec->ids[i % l->part->width].entries) return bad(l, i, "is out of range");
    }
    return EXPHIL_OK;
}

static exphil_status check_actions(const look *l)
{
    const exphil_spec *spec = l->r->session->spec;
    for (int64_t i = 0; i < count_of(l); i += spec->head_count)
        if (xph_action_check(spec, (const int32_t *)(const void *)number(l, i), -1, NULL) < 0)
            return bad(l, i, "is out of range");
    return EXPHIL_OK;
}

/* Of an action that was the policy's own it follows from the logits, to the last bit on every machine. */
static exphil_status check_logs(const look *l)
{
    const exphil_rollout *r = l->r;
    for (int64_t i = 0; i < count_of(l); i++) {
        const double log = *(const double *)(const void *)number(l, i);
        const int64_t row = row_of(l, i);
        if (!xph_finite(log) || log > 0.0) return bad(l, i, "is not finite, or above 0");
        if (!r->taken[row]) continue;
        xph_policy_logs(&r->policy, r->logits + row * r->shape->logits, XPH_F32, 1, r->logs);
        if (xph_policy_log_probability(&r->policy, r->logs, r->actions + row * r->shape->heads) != log)
            return bad(l, i, "is not that of action and logits");
    }
    return EXPHIL_OK;
}

static exphil_status check_frames(const look *l)
{
    for (int64_t i = 0; i < count_of(l); i++) {
        const int64_t frames = *(const int64_t *)(const void *)number(l, i);
        const bool ended = l->r->end[row_of(l, i)] != EXPHIL_GOES_ON;
        if (ended ? frames < 1 || frames > FRAMES_MOST : frames != 0) return bad(l, i, "is out of range");
    }
    return EXPHIL_OK;
}

static exphil_status check_bytes(const look *l, uint8_t most)
{
    for (int64_t i = 0; i < count_of(l); i++)
        if (*number(l, i) > most) return bad(l, i, "is out of range");
    return EXPHIL_OK;
}

/* An episode begins where another one ended, and nowhere else inside a chunk. */
static exphil_status check_resets(const look *l)
{
    XPH_TRY(check_bytes(l, 1));
    for (int64_t i = 0; i < count_of(l); i++)
        if (i % l->part->rows && *number(l, i) != (l->r->end[row_of(l, i) - 1] != EXPHIL_GOES_ON))
            return bad(l, i, "does not follow from the row before");
    return EXPHIL_OK;
}

static exphil_status check(const look *l)
{
    if (!count_of(l)) return EXPHIL_OK;
    switch (l->part->kind) {
    case XPH_FLAT_FLOATS:
        return check_floats(l);
    case XPH_FLAT_DOUBLES:
        return check_doubles(l);
    case XPH_FLAT_IDS:
        return check_ids(l);
    case XPH_FLAT_ACTIONS:
        return check_actions(l);
    case XPH_FLAT_LOGS:
        return check_logs(l);
    case XPH_FLAT_FRAMES:
        return check_frames(l);
    case XPH_FLAT_ENDS:
        return check_bytes(l, EXPHIL_CUT_OFF);
    case XPH_FLAT_FLAGS:
        return check_bytes(l, 1);
    case XPH_FLAT_RESETS:
        return check_resets(l);
    }
    return EXPHIL_E_INTERNAL;
}

exphil_status xph_flat_check(const exphil_rollout *rollout, int64_t first, int64_t streams,
                             const xph_flat_part parts[XPH_FLAT_PARTS], exphil_error *error)
{
    for (int i = 0; i < XPH_FLAT_PARTS; i++) {
        const look l = {rollout, &parts[i], first, streams, error};
        XPH_TRY(check(&l));
    }
    return EXPHIL_OK;
}
