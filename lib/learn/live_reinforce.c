/* Reinforcement behind a live game: chunks come as blocks, from the rollout that plays on the session's context to one of the
 * same form on the thread's, which is learnt from. */
#include "learn/live.h"

static exphil_status make_received(exphil_live *live, const exphil_live_config *given, exphil_error *error)
{
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_session_config, &session, given->session, error));
    rollout.time = live->config.time;
    return exphil_rollout_create(live->start, &session, &rollout, &live->received, error);
}

exphil_status xph_live_reinforce_make(exphil_live *live, const exphil_live_config *given, exphil_error *error)
{
    exphil_learner_config config = EXPHIL_LEARNER_CONFIG_INIT;
    XPH_TRY(make_received(live, given, error));
    XPH_TRY(XPH_TAKE(exphil_learner_config, &config, given->learner, error));
    config.seed ^= live->config.seed;
    if (given->teacher) XPH_TRY(xph_model_copy(live->learning, given->teacher, &live->teacher, error));
    return exphil_learner_create(live->trainer, live->teacher, &config, &live->learner, error);
}

void xph_live_reinforce_end(exphil_live *live)
{
    exphil_learner_destroy(live->learner);
    exphil_rollout_destroy(live->received);
    if (live->teacher) xph_model_release(live->teacher);
}

/* A chunk whose updates were refused is done with, and taken note of. */
static exphil_status update(exphil_live *live, exphil_error *error)
{
    exphil_learner_metrics metrics = EXPHIL_LEARNER_METRICS_INIT;
    exphil_status status = exphil_learner_update(live->learner, live->received, &metrics, error);
    if (status == EXPHIL_E_NUMERIC) {
        xph_mutex_lock(live->lock);
        live->told.skipped++;
        xph_mutex_unlock(live->lock);
        return EXPHIL_OK;
    }
    XPH_TRY(status);
    XPH_TRY(xph_live_publish(live, error));
    xph_mutex_lock(live->lock);
    live->told.pieces = metrics.chunks;
    live->told.updates = metrics.updates;
    live->told.learnt += metrics.rows;
    live->told.loss = metrics.loss;
    live->told.reward = metrics.reward;
    xph_mutex_unlock(live->lock);
    return EXPHIL_OK;
}

/* Whatever weights played it: a game does not wait for new ones. */
exphil_status xph_live_reinforce(exphil_live *live, bool *done, exphil_error *error)
{
    const unsigned char *block = xph_ring_front(&live->ring);
    *done = block != NULL;
    if (!block) return EXPHIL_OK;
    exphil_status status =
        exphil_rollout_block_take(live->received, 0, EXPHIL_BLOCK_ANY, block, live->ring.bytes, error);
    xph_ring_done(&live->ring);
    XPH_TRY(status);
    return update(live, error);
}
