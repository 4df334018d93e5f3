/* Imitation that asks what came of it, of a player of Pong who is bad in half of the rallies: plain, weighted by outcome, and
 * weighted by outcomes that were shuffled. What each policy then makes of fresh games against the game's own player.
 *   pong_outcome SEED [UPDATES [BETA]] */
#include "taught.h"

#include <exphil/learn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, FLOATS = 7, FRAMES = 6000, PLAYED = 6000, ARMS = 3 };
#define HALF_LIFE 120.0

static exphil_error error = EXPHIL_ERROR_INIT;
static uint64_t chance; /* splitmix64 */

static void must(exphil_status status)
{
    if (status >= 0) return;
    fprintf(stderr, "pong_outcome: %s: %s\n", exphil_status_name(status), error.message);
    exit(1);
}

static uint64_t draw(void)
{
    uint64_t z = (chance += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A bad rally: a direction at random, held for a while. */
static int32_t blundered(int32_t before, int64_t t)
{
    return t % 8 ? before : (int32_t)(draw() % 3);
}

static void record(exphil_context *context, exphil_dataset **dataset, uint64_t seed)
{
    static float rows[LANES][FRAMES][FLOATS], rewards[LANES][FRAMES], floats[LANES * FLOATS], reward[LANES];
    static int32_t actions[LANES][FRAMES], action[LANES], ids[1], bad[LANES];
    static uint8_t end[LANES];
    exphil_world world = {0};
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    must(exphil_world_create(context, "pong", LANES, &world, &error));
    config.spec = world.spec;
    must(exphil_dataset_create(context, &config, dataset, &error));
    for (int64_t i = 0; i < LANES; i++)
        world.reset(world.user, i, (seed << 20) + (uint64_t)i, floats + i * FLOATS, ids);
    for (int64_t t = 0; t < FRAMES; t++) {
        for (int64_t i = 0; i < LANES; i++) {
            memcpy(rows[i][t], floats + i * FLOATS, sizeof rows[i][t]);
            action[i] = bad[i] ? blundered(action[i], t) : taught(rows[i][t]);
            actions[i][t] = action[i];
        }
        world.step(world.user, 0, LANES, action, floats, ids, reward, end);
        for (int64_t i = 0; i < LANES; i++) {
            rewards[i][t] = reward[i];
            if (reward[i] != 0.0f) bad[i] = draw() & 1u;
            if (end[i])
                world.reset(world.user, i, (seed << 20) + draw() % 1000000u, floats + i * FLOATS, ids);
        }
    }
    for (int64_t i = 0; i < LANES; i++) {
        must(
            exphil_dataset_add_rows(*dataset, (uint64_t)i + 1, FRAMES, rows[i][0], NULL, actions[i], &error));
        must(exphil_dataset_rewards_set(*dataset, (uint64_t)i + 1, 0, 0, rewards[i], FRAMES, 0, HALF_LIFE,
                                        &error));
    }
    exphil_world_destroy(&world);
}

/* Points made less points lost in 1,000 frames, actions drawn: the mean over lanes and half of its 95 % interval. */
static double play(exphil_context *context, const exphil_model *model, double *half)
{
    static float floats[LANES * FLOATS], reward[LANES];
    static int32_t action[LANES], ids[1];
    static uint8_t end[LANES];
    exphil_world world = {0};
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    double net[LANES] = {0}, mean = 0.0, square = 0.0;
    config.streams = LANES;
    config.seed = 77;
    must(exphil_world_create(context, "pong", LANES, &world, &error));
    must(exphil_session_create(model, &config, &session, &error));
    for (int64_t i = 0; i < LANES; i++)
        world.reset(world.user, i, 0x5C0E0000u + (uint64_t)i, floats + i * FLOATS, ids);
    for (int64_t t = 0; t < PLAYED; t++) {
        must(exphil_session_step_row(session, floats, ids, NULL, action));
        world.step(world.user, 0, LANES, action, floats, ids, reward, end);
        for (int64_t i = 0; i < LANES; i++) {
            net[i] += 1000.0 * (double)reward[i] / (double)PLAYED;
            if (!end[i]) continue;
            world.reset(world.user, i, 0x5C0F0000u + (uint64_t)(t * LANES + i), floats + i * FLOATS, ids);
            must(exphil_session_reset(session, i));
        }
    }
    exphil_session_destroy(session);
    exphil_world_destroy(&world);
    for (int i = 0; i < LANES; i++) mean += net[i] / (double)LANES;
    for (int i = 0; i < LANES; i++) square += (net[i] - mean) * (net[i] - mean) / (LANES - 1);
    *half = 1.96 * sqrt(square / (double)LANES);
    return mean;
}

static void learn(exphil_context *context, const exphil_dataset *dataset, int arm, uint64_t seed,
                  int64_t updates, double beta)
{
    static const char *const names[ARMS] = {"plain", "by outcome", "shuffled"};
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_outcome_config outcome = EXPHIL_OUTCOME_CONFIG_INIT;
    exphil_outcome_metrics m = EXPHIL_OUTCOME_METRICS_INIT;
    exphil_model *model = NULL, *trained = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    double effective = 0.0, counted = 0.0, clipped = 0.0, half;
    must(exphil_dataset_spec(dataset, &spec, &error));
    config.spec = &spec;
    config.blocks = "mlp";
    config.hidden = config.head_width = 64;
    config.no_previous_action = config.neutral_start = 1;
    config.value = EXPHIL_VALUE_DETACHED;
    config.seed = seed;
    adam.rate = 3e-3;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = updates;
    outcome.beta = arm == 0 ? 0.0 : beta;
    outcome.shuffle = arm == 2;
    outcome.warm_up = updates / 4;
    outcome.seed = seed;
    must(exphil_model_create(context, &config, &model, &error));
    must(exphil_model_sampling(model, &how, &error));
    how.batch = LANES;
    how.time = 64;
    how.seed = seed;
    must(exphil_prefetcher_create(dataset, &how, &prefetcher, &error));
    must(exphil_optimizer_create(model, &adam, &optimizer, &error));
    must(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, &error));
    for (int64_t u = 0; u < updates; u++) {
        must(exphil_trainer_step_outcome(trainer, &outcome, &m, &error));
        if (u < updates / 2 || !m.known) continue;
        effective += m.effective;
        clipped += m.clipped;
        counted += 1.0;
    }
    must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, &error));
    double net = play(context, trained, &half);
    printf("{\"seed\":%llu,\"arm\":\"%s\",\"net\":%.4f,\"half\":%.4f,\"nll\":%.4f,\"effective\":%.3f,"
           "\"clipped\":%.3f}\n",
           (unsigned long long)seed, names[arm], net, half, m.nll, effective / counted, clipped / counted);
    fflush(stdout);
    exphil_model_destroy(trained);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model);
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    exphil_dataset *dataset = NULL;
    if (argc < 2) return fprintf(stderr, "usage: pong_outcome SEED [UPDATES [BETA]]\n"), 2;
    uint64_t seed = (uint64_t)atoll(argv[1]);
    int64_t updates = argc > 2 ? atoll(argv[2]) : 2000;
    double beta = argc > 3 ? atof(argv[3]) : 0.3;
    chance = seed;
    must(exphil_context_create(NULL, &context, &error));
    record(context, &dataset, seed);
    for (int arm = 0; arm < ARMS; arm++) learn(context, dataset, arm, seed, updates, beta);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    return 0;
}
