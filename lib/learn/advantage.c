/* A full chunk's advantages, targets, and which of its rows are learnt from. */
#include "learn/learn.h"
#include "learn/returns.h"

static void value_stream(exphil_learner *l, const exphil_rollout *r, int64_t b)
{
    float *scaled = l->chunk.scaled, *value = l->chunk.value;
    const int64_t first = b * r->rows, at = b * r->time;
    for (int64_t f = 0; f < r->rows; f++) scaled[f] = (float)l->config.reward_scale * r->reward[first + f];
    for (int64_t t = 0; t < r->time; t++) value[t] = r->value[first + t];
    value[r->time] = r->delay ? r->value[first + r->time] : r->next_value[b];
    const xph_lane lane = {.time = r->time,
                           .delay = r->delay,
                           .reward = scaled,
                           .end = r->end + first,
                           .value = value,
                           .cut_off = r->cut_off + first};
    xph_returns(&lane, l->discount, l->config.lambda, l->chunk.advantage + at, l->chunk.target + at,
                l->chunk.counts + at);
    uint8_t *counts = l->chunk.counts + at; /* 1 where the action acts */
    for (int64_t t = 0; t < r->time; t++)
        counts[t] = !counts[t] || t < l->config.burn_in ? XPH_ROW_NONE
                    : r->taken[first + t]               ? XPH_ROW_PLAYED
                                                        : XPH_ROW_IMITATED;
}

static bool normalises(const exphil_learner *l)
{
    return l->config.normalise > 0 || (l->config.normalise == 0 && !l->teacher);
}

/* To mean 0 and deviation 1 over the rows that count. */
static void normalise(const exphil_learner *l, int64_t rows)
{
    const xph_chunk *c = &l->chunk;
    double count = 0.0, sum = 0.0, square = 0.0;
    for (int64_t i = 0; i < rows; i++) {
        count += c->counts[i] == XPH_ROW_PLAYED;
        sum += c->counts[i] == XPH_ROW_PLAYED ? c->advantage[i] : 0.0;
    }
    double mean = count > 0.0 ? sum / count : 0.0;
    for (int64_t i = 0; i < rows; i++)
        square += c->counts[i] == XPH_ROW_PLAYED ? (c->advantage[i] - mean) * (c->advantage[i] - mean) : 0.0;
    double deviation = count > 0.0 ? __builtin_sqrt(square / count) : 0.0;
    for (int64_t i = 0; i < rows; i++) c->advantage[i] = (c->advantage[i] - mean) / (deviation + 1e-8);
}

void xph_learner_value_chunk(exphil_learner *learner, const exphil_rollout *rollout)
{
    for (int64_t b = 0; b < rollout->streams; b++) value_stream(learner, rollout, b);
    if (normalises(learner)) normalise(learner, rollout->streams * rollout->time);
}
