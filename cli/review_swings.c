/* Where a game turned: stretches in which most was won or lost beside what had been expected. */
#include "review.h"

#include "base/double.h"
#include "slp_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- swings ---------------------------------------------------------------------------------------------- */

/* How many frames before each one [count + 1] are known, and how many of those are calm: nobody dies in them. */
typedef struct counts {
    int64_t *known, *calm;
} counts;

static bool count_frames(const review *r, counts *c)
{
    c->known = calloc((size_t)r->count + 1, sizeof *c->known);
    c->calm = calloc((size_t)r->count + 1, sizeof *c->calm);
    if (!c->known || !c->calm) return false;
    for (int64_t i = 0; i < r->count; i++) {
        const int32_t frame = (int32_t)(r->first + i);
        bool dies = review_dies(r, r->port, frame) || (r->other && review_dies(r, r->other, frame));
        c->known[i + 1] = c->known[i] + r->frame[i].known;
        c->calm[i + 1] = c->calm[i] + (r->frame[i].known && !dies);
    }
    return true;
}

/* A value jumps from frame to frame, and most where somebody is about to die: what is expected is the mean of half a second in
 * which nobody does. False: there is no such one. */
static bool mean_value(const review *r, const counts *c, int64_t first, int64_t end, double *mean)
{
    double sum = 0.0;
    if (first < 0 || end > r->count || c->calm[end] - c->calm[first] < end - first) return false;
    for (int64_t i = first; i < end; i++) sum += r->frame[i].value;
    *mean = sum / (double)(end - first);
    return true;
}

/* Of the frames from one on; false: something in them, or beside them, is not known. */
static bool swing_at(const review *r, int64_t at, const counts *c, review_swing *s)
{
    const double gamma = xph_exp2_of(-1.0 / (60.0 * r->worth.half_life));
    const int64_t end = at + REVIEW_WINDOW;
    bool last = end == r->count && r->over;
    *s = (review_swing){.at = at};
    if (end > r->count || c->known[end] - c->known[at] < REVIEW_WINDOW ||
        !mean_value(r, c, at - REVIEW_MEAN, at, &s->before) ||
        (!last && !mean_value(r, c, end, end + REVIEW_MEAN, &s->after)))
        return false;
    double weight = 1.0;
    for (int64_t i = at; i < end; i++, weight *= gamma) s->came += weight * r->frame[i].reward;
    s->after *= weight;
    s->swing = s->came + s->after - s->before;
    return true;
}

static bool apart(const review *r, int64_t at)
{
    for (int64_t i = 0; i < r->swings; i++)
        if (llabs(r->swing[i].at - at) < REVIEW_WINDOW) return false;
    return true;
}

static bool next_largest(review *r, const counts *c)
{
    review_swing *best = &r->swing[r->swings], one;
    best->swing = 0.0;
    for (int64_t at = 0; at + REVIEW_WINDOW <= r->count; at++)
        if (apart(r, at) && swing_at(r, at, c, &one) && fabs(one.swing) > fabs(best->swing)) *best = one;
    return fabs(best->swing) > 0.0;
}

/* ---- what happened --------------------------------------------------------------------------------------- */

/* Action states: deaths; the ledge is caught; a shield breaks; somebody is grabbed. */
enum { DYING_LAST = 0x0A, LEDGE = 0xFC, SHIELD_BREAKS = 0xCD, GRABBED_FIRST = 0xDF, GRABBED_LAST = 0xE8 };

/* NULL: there are too many. */
static review_event *note(review_swing *s, review_kind kind, int32_t port, int32_t frame, double percent)
{
    for (int i = 0; kind == REVIEW_HIT && i < s->events; i++) {
        if (s->event[i].kind != REVIEW_HIT || s->event[i].port != port) continue;
        s->event[i].percent += percent;
        return &s->event[i];
    }
    if (s->events == REVIEW_EVENTS) return NULL;
    s->event[s->events] = (review_event){kind, port, frame, percent, INT32_MIN};
    return &s->event[s->events++];
}

static bool grabbed(const exphil_slp_player *p)
{
    return p->action_state >= GRABBED_FIRST && p->action_state <= GRABBED_LAST;
}

static const exphil_slp_player *player(const review *r, int32_t port, int32_t frame)
{
    return exphil_slp_player_at(r->slp, exphil_slp_position(r->slp, frame), port - 1, 0);
}

bool review_dies(const review *r, int32_t port, int32_t frame)
{
    const exphil_slp_player *is = player(r, port, frame), *was = player(r, port, frame - 1);
    return is && was && is->action_state <= DYING_LAST && was->action_state > DYING_LAST;
}

static bool is_hit(const exphil_slp_player *is, const exphil_slp_player *was)
{
    return is->stocks == was->stocks && is->percent > was->percent;
}

/* The last one before a frame, within five seconds. */
static int32_t last_hit(const review *r, int32_t port, int32_t frame)
{
    for (int32_t f = frame; f > frame - 300; f--) {
        const exphil_slp_player *is = player(r, port, f), *was = player(r, port, f - 1);
        if (is && was && is_hit(is, was)) return f;
    }
    return INT32_MIN;
}

static void look(const review *r, int32_t port, int32_t frame, review_swing *s)
{
    const exphil_slp_player *is = player(r, port, frame), *was = player(r, port, frame - 1);
    review_event *death = NULL;
    if (!is || !was) return;
    if (is_hit(is, was)) (void)note(s, REVIEW_HIT, port, frame, (double)is->percent - (double)was->percent);
    if (review_dies(r, port, frame)) death = note(s, REVIEW_DEATH, port, frame, (double)was->percent);
    if (death) death->hit = last_hit(r, port, frame);
    if (grabbed(is) && !grabbed(was)) (void)note(s, REVIEW_GRABBED, port, frame, 0.0);
    if (is->action_state == LEDGE && was->action_state != LEDGE)
        (void)note(s, REVIEW_LEDGE, port, frame, 0.0);
    if (is->action_state == SHIELD_BREAKS && was->action_state != SHIELD_BREAKS)
        (void)note(s, REVIEW_SHIELD_BROKEN, port, frame, 0.0);
}

const char *review_happened(const review *r, const review_swing *s, char *to, size_t size)
{
    static const char *const words[] = {[REVIEW_HIT] = "takes",
                                        [REVIEW_DEATH] = "dies at",
                                        [REVIEW_GRABBED] = "is grabbed",
                                        [REVIEW_LEDGE] = "catches the ledge",
                                        [REVIEW_SHIELD_BROKEN] = "loses the shield"};
    size_t used = 0;
    char name[WORDS_SHORT], number[24], time[WORDS_SHORT], hit[WORDS_SHORT];
    to[0] = 0;
    for (int i = 0; i < s->events && used < size; i++) {
        const review_event *e = &s->event[i];
        number[0] = hit[0] = 0;
        if (e->kind == REVIEW_DEATH && e->hit >= 0)
            snprintf(hit, sizeof hit, ", hit at %.40s", words_time(time, e->hit));
        if (e->kind == REVIEW_HIT || e->kind == REVIEW_DEATH)
            snprintf(number, sizeof number, " %.0f %%", e->percent);
        used += (size_t)snprintf(to + used, size - used, "%s%s %s%s%s", i ? "; " : "",
                                 words_player(name, &r->game, e->port - 1), words[e->kind], number, hit);
    }
    if (!s->events) snprintf(to, size, "nobody is hit: it is the position that the policy sees otherwise");
    return to;
}

int64_t review_clock(const review *r, int32_t frame)
{
    int64_t left = (int64_t)r->game.timer_seconds * 60 - frame;
    return r->game.timer_kind == 2 && left >= 0 && frame >= 0 ? left : -1;
}

/* What led to it comes before what happened first, and before a death the hit. */
static void choose_inputs(const review *r, review_swing *s)
{
    int64_t at = s->at;
    for (int i = s->events; i-- > 0;) {
        const review_event *e = &s->event[i];
        int32_t frame = e->kind == REVIEW_DEATH && e->hit != INT32_MIN ? e->hit : e->frame;
        if (i == s->events - 1 || (int64_t)frame - r->first - REVIEW_LEAD < at)
            at = (int64_t)frame - r->first - REVIEW_LEAD;
    }
    if (at > r->count - REVIEW_WINDOW) at = r->count - REVIEW_WINDOW;
    s->inputs = at < 0 ? 0 : at;
}

bool review_find(review *r)
{
    const int64_t most = r->options->swings;
    counts c = {NULL, NULL};
    r->swing = calloc((size_t)most + 1, sizeof *r->swing);
    bool fine = count_frames(r, &c) && r->swing;
    while (fine && r->swings < most && next_largest(r, &c)) {
        review_swing *s = &r->swing[r->swings++];
        for (int64_t i = s->at; i < s->at + REVIEW_WINDOW; i++) {
            look(r, r->port, (int32_t)(r->first + i), s);
            if (r->other) look(r, r->other, (int32_t)(r->first + i), s);
        }
        choose_inputs(r, s);
    }
    free(c.known);
    free(c.calm);
    if (!fine) fprintf(stderr, "exphil: no memory for the swings of the game\n");
    return fine;
}
