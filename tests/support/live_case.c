/* A person who plays by a rule, and a game of random rows. */
#include "live_case.h"

live_person live_person_of(uint64_t seed, int32_t delay)
{
    return (live_person){.rng = {.seed = seed, .stream = XPH_RNG_TEST}, .delay = delay};
}

void live_person_begins(live_person *p)
{
    memset(p->seen, 0, sizeof p->seen);
}

void live_person_look(live_person *p, float *floats, int32_t *ids, int32_t *action)
{
    for (int i = 0; i < 13; i++) floats[i] = (float)model_case_uniform(&p->rng, -1.0, 1.0);
    ids[0] = (int32_t)xph_rng_below(&p->rng, 5);
    ids[1] = (int32_t)xph_rng_below(&p->rng, 7);
    memmove(p->seen + 1, p->seen, (LIVE_SEEN - 1) * sizeof p->seen[0]);
    memcpy(p->seen[0], ids, sizeof p->seen[0]);
    const int32_t *known = p->seen[p->delay];
    action[0] = known[1] % 8;
    action[1] = (known[0] + 2) % 5;
    action[2] = known[1] % 4;
    p->frame++;
}

void live_play(exphil_live *live, live_person *p, const live_plan *plan, uint64_t *hash)
{
    for (int64_t i = 0; i < plan->frames; i++) {
        float floats[13];
        int32_t ids[2], action[3], actions[3];
        live_person_look(p, floats, ids, action);
        bool plays = i % plan->of < plan->on;
        assert_ok(exphil_live_step_row(live, floats, ids, plays ? action : NULL, actions));
        if (plays) assert_memory_equal(actions, action, sizeof action);
        *hash = xph_mix(*hash + xph_hash(actions, sizeof actions));
        if ((i + 1) % plan->episode == 0) {
            assert_ok(exphil_live_reward(live, 0.0f, EXPHIL_OVER, NULL, NULL));
            live_person_begins(p);
        }
        if (plan->settle && (i + 1) % plan->settle == 0) assert_ok(exphil_live_settle(live, NULL));
    }
}

double live_agreement(const exphil_model *model, uint64_t seed, int64_t frames)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    int64_t right = 0;
    config.deterministic = 1;
    assert_ok(exphil_model_query(model, &info, NULL));
    live_person p = live_person_of(seed, info.delay_frames);
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    for (int64_t i = 0; i < frames; i++) {
        float floats[13];
        int32_t ids[2], action[3], actions[3];
        live_person_look(&p, floats, ids, action);
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, actions));
        right += i >= info.delay_frames && actions[1] == action[1];
    }
    exphil_session_destroy(session);
    return (double)right / (double)(frames - info.delay_frames);
}

uint64_t live_weights(exphil_live *live)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_live_model(live, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    exphil_model_destroy(model);
    return info.weights_hash;
}

exphil_live_info live_info(const exphil_live *live)
{
    exphil_live_info info = EXPHIL_LIVE_INFO_INIT;
    assert_ok(exphil_live_query(live, &info, NULL));
    return info;
}

void live_bench_make(live_bench *b, const char *blocks, int32_t delay)
{
    exphil_model_config model = model_case_config(blocks, EXPHIL_TYPE_F32);
    memset(b, 0, sizeof *b);
    b->context = test_context(NULL, NULL, 1);
    model.delay_frames = delay;
    model.neutral_start = 1;
    model.value = EXPHIL_VALUE_SHARED;
    b->model = model_case_create(b->context, &model);
    b->config = (exphil_live_config)EXPHIL_LIVE_CONFIG_INIT;
    b->session = (exphil_session_config)EXPHIL_SESSION_CONFIG_INIT;
    b->learning = (exphil_context_config)EXPHIL_CONTEXT_CONFIG_INIT;
    b->sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    b->optimizer = (exphil_optimizer_config)EXPHIL_OPTIMIZER_CONFIG_INIT;
    assert_ok(exphil_model_sampling(b->model, &b->sampling, NULL));
    b->sampling.batch = 4;
    if (!b->sampling.time) b->sampling.time = 20;
    b->optimizer.rate = 0.01;
    b->session.seed = 3;
    b->learning.threads = 1;
    b->config.session = &b->session;
    b->config.context = &b->learning;
    b->config.sampling = &b->sampling;
    b->config.optimizer = &b->optimizer;
    b->config.piece_frames = 50;
    b->config.updates = 6;
    b->config.seed = 11;
}

void live_bench_free(live_bench *b)
{
    exphil_model_destroy(b->model);
    exphil_context_destroy(b->context);
}

exphil_live *live_bench_live(const live_bench *b)
{
    exphil_live *live = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_live_create(b->model, &b->config, &live, &error) < 0) fail_msg("%s", error.message);
    return live;
}
