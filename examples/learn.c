/* From nothing to a policy that beats the game's own player, in one process: Pong, which is in the library.
 *   learn [-n FRAMES] [OUT.safetensors]
 * The policy plays 64 games at once for 128 frames (a chunk), learns from what came of it, and plays on with what it has
 * learnt. A game of your own is another struct exphil_world: learn.h says what its functions do. Equal arguments give equal
 * weights, on any machine. */
#include <exphil/learn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64, TIME = 128, HIDDEN = 64, GAMES = 100 };

static exphil_error error = EXPHIL_ERROR_INIT;
static void must(exphil_status status, const char *what)
{
    if (status >= 0) return;
    fprintf(stderr, "learn: %s: %s: %s\n", what, exphil_status_name(status), error.message);
    exit(1);
}

/* A net of 64 inner units with a value head: what it expects to win is learnt beside what it does. */
static exphil_model *make_model(exphil_context *context, const exphil_spec *spec)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    config.spec = spec;
    config.blocks = "mlp"; /* "gru" or "mamba" where a frame does not show everything */
    config.hidden = config.head_width = HIDDEN;
    config.no_previous_action = 1;
    config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    config.seed = 1;
    must(exphil_model_create(context, &config, &model, &error), "model");
    return model;
}

static exphil_trainer *make_trainer(const exphil_model *model, int64_t chunks, exphil_optimizer **optimizer)
{
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_trainer *trainer = NULL;
    adam.rate = 1e-3;
    adam.clip_norm = 0.5;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = chunks * 4 * 4; /* four passes over a chunk, of four updates each */
    config.as_played = 1;                /* what is recomputed is what was played, to the last bit */
    must(exphil_optimizer_create(model, &adam, optimizer, &error), "optimizer");
    must(exphil_trainer_create(model, *optimizer, NULL, &config, &trainer, &error), "trainer");
    return trainer;
}

/* Chunk after chunk: play, learn. */
static void learn(exphil_trainer *trainer, const exphil_model *model, const exphil_world *world,
                  int64_t chunks)
{
    exphil_session_config play = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config record = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_learner_config how = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    play.streams = world->lanes * world->seats;
    record.time = TIME;
    how.entropy = 0.003;
    must(exphil_rollout_create(model, &play, &record, &rollout, &error), "rollout");
    must(exphil_learner_create(trainer, NULL, &how, &learner, &error), "learner");
    for (int64_t i = 1; i <= chunks; i++) {
        must(exphil_rollout_run(rollout, world, &error), "play");
        must(exphil_learner_update(learner, rollout, &m, &error), "update");
        if (i % (chunks < 20 ? 1 : chunks / 20) == 0)
            printf("%9lld frames  reward %+.4f a frame  entropy %.3f\n", (long long)(i * LANES * TIME),
                   m.reward, m.entropy);
    }
    exphil_learner_destroy(learner);
    exphil_rollout_destroy(rollout);
}

/* Fresh games, all of which count: points made and lost until each is over. */
static double score(exphil_context *context, const exphil_model *model)
{
    static float floats[GAMES * 7], reward[GAMES];
    static int32_t ids[1], actions[GAMES];
    static uint8_t end[GAMES];
    uint8_t over[GAMES] = {0};
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    exphil_world world = {0};
    double sum = 0.0;
    int left = GAMES;
    must(exphil_world_create(context, "pong", GAMES, &world, &error), "world");
    config.streams = GAMES;
    must(exphil_session_create(model, &config, &session, &error), "session");
    for (int i = 0; i < GAMES; i++) world.reset(world.user, i, 1000000u + (uint64_t)i, floats + 7 * i, ids);
    while (left > 0) {
        must(exphil_session_step_row(session, floats, ids, NULL, actions), "step");
        world.step(world.user, 0, GAMES, actions, floats, ids, reward, end);
        for (int i = 0; i < GAMES; i++) {
            if (!over[i]) sum += (double)reward[i];
            if (!end[i]) continue;
            left -= !over[i];
            over[i] = 1;
            world.reset(world.user, i, 0, floats + 7 * i, ids);
        }
    }
    exphil_session_destroy(session);
    exphil_world_destroy(&world);
    return sum / GAMES;
}

int main(int argc, char **argv)
{
    int64_t frames = 2000000;
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) frames = atoll(argv[2]), at = 3;
    const char *out = argc > at ? argv[at] : "pong.safetensors";
    int64_t chunks = (frames + LANES * TIME - 1) / (LANES * TIME);
    if (chunks < 1 || argc > at + 1 || out[0] == '-')
        return fprintf(stderr, "usage: learn [-n FRAMES] [OUT.safetensors]\n"), 2;
    exphil_context *context = NULL;
    exphil_world world = {0};
    exphil_optimizer *optimizer = NULL;
    exphil_model *learnt = NULL;
    must(exphil_context_create(NULL, &context, &error), "context");
    must(exphil_world_create(context, "pong", LANES, &world, &error), "world");
    exphil_model *model = make_model(context, world.spec);
    exphil_trainer *trainer = make_trainer(model, chunks, &optimizer);
    learn(trainer, model, &world, chunks);
    must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &learnt, &error), "weights");
    must(exphil_model_save(learnt, out, &error), out);
    printf("%s: %+.2f points a game to 21 against the game's own player, in %d fresh games; before, %+.2f\n",
           out, score(context, learnt), GAMES, score(context, model));
    exphil_model_destroy(learnt);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
    return 0;
}
