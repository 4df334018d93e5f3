/* Frames a second of a world in a library of its own, such as a game in an emulator, with what learning adds step by step:
 *   emulator LIBRARY ARGUMENTS LANES THREADS CHUNKS
 * prints {"stepped", "recorded", "learnt"}: lanes stepped with actions that are held; a policy that plays and a rollout that
 * records, and the state of each game saved once a chunk; the same with its updates. */
#include <exphil/learn.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIME = 128 };

static exphil_error error = EXPHIL_ERROR_INIT;
static exphil_world world;
static int64_t lanes, chunks;

static void must(exphil_status status, const char *what)
{
    if (status >= 0) return;
    fprintf(stderr, "emulator: %s: %s: %s\n", what, exphil_status_name(status), error.message);
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *array(int64_t count, size_t each)
{
    void *made = calloc((size_t)count + 1, each);
    if (!made) exit(1);
    return made;
}

static void open_world(const char *library, const char *arguments)
{
    exphil_world_open_fn open = NULL;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded) *(void **)&open = dlsym(loaded, "exphil_world_open");
    if (!open) fprintf(stderr, "emulator: %s\n", dlerror()), exit(1);
    must(open(arguments, lanes, 1, &world, &error), "world");
}

static double step_speed(void)
{
    const exphil_spec *spec = world.spec;
    float *floats = array(lanes * spec->float_count, sizeof *floats), *reward = array(lanes, sizeof *reward);
    int32_t *ids = array(lanes * spec->id_count, sizeof *ids);
    int32_t *actions = array(lanes * spec->head_count, sizeof *actions);
    uint8_t *end = array(lanes, 1);
    uint64_t seed = 0;
    for (int64_t i = 0; i < lanes; i++)
        if (world.reset(world.user, i, seed++, floats + i * spec->float_count, ids)) exit(1);
    double began = seconds();
    for (int64_t t = 0; t < chunks * TIME; t++) {
        if (world.step(world.user, 0, lanes, actions, floats, ids, reward, end)) exit(1);
        for (int64_t i = 0; i < lanes; i++)
            if (end[i] != EXPHIL_GOES_ON &&
                world.reset(world.user, i, seed++, floats + i * spec->float_count, ids))
                exit(1);
    }
    double speed = (double)(chunks * TIME * lanes) / (seconds() - began);
    free(floats), free(reward), free(ids), free(actions), free(end);
    return speed;
}

/* The network of the plain world's figure. recorded: without the time of updates. */
static void learn_speed(exphil_context *context, double *recorded, double *learnt)
{
    exphil_model_config model_config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout_config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_trainer_config trainer_config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_optimizer_config optimizer_config = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_learner_metrics metrics = EXPHIL_LEARNER_METRICS_INIT;
    exphil_model *model, *now;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_rollout *rollout;
    exphil_learner *learner;
    unsigned char *state = array((int64_t)world.state_bytes, 1);
    model_config.spec = world.spec;
    model_config.blocks = "mlp";
    model_config.hidden = 64;
    model_config.no_previous_action = 1;
    model_config.value = EXPHIL_VALUE_SHARED;
    trainer_config.as_played = 1;
    rollout_config.time = TIME;
    session.streams = lanes;
    must(exphil_model_create(context, &model_config, &model, &error), "model");
    must(exphil_optimizer_create(model, &optimizer_config, &optimizer, &error), "optimizer");
    must(exphil_trainer_create(model, optimizer, NULL, &trainer_config, &trainer, &error), "trainer");
    must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &now, &error), "weights");
    must(exphil_rollout_create(now, &session, &rollout_config, &rollout, &error), "rollout");
    must(exphil_learner_create(trainer, NULL, NULL, &learner, &error), "learner");
    double playing = 0.0, all = 0.0;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        double began = seconds();
        must(exphil_rollout_run(rollout, &world, &error), "run");
        for (int64_t i = 0; i < lanes; i++)
            if (world.save(world.user, i, state)) exit(1);
        playing += seconds() - began;
        must(exphil_learner_update(learner, rollout, &metrics, &error), "update");
        all += seconds() - began;
    }
    *recorded = (double)(chunks * TIME * lanes) / playing;
    *learnt = (double)(chunks * TIME * lanes) / all;
    exphil_learner_destroy(learner);
    exphil_rollout_destroy(rollout);
    exphil_model_destroy(now);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    free(state);
}

int main(int argc, char **argv)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context;
    double recorded, learnt;
    if (argc != 6) return fprintf(stderr, "usage: emulator LIBRARY ARGUMENTS LANES THREADS CHUNKS\n"), 2;
    lanes = atoll(argv[3]);
    chunks = atoll(argv[5]);
    config.threads = atoi(argv[4]);
    open_world(argv[1], argv[2]);
    must(exphil_context_create(&config, &context, &error), "context");
    double stepped = step_speed();
    learn_speed(context, &recorded, &learnt);
    printf("{\"stepped\": %.0f, \"recorded\": %.0f, \"learnt\": %.0f}\n", stepped, recorded, learnt);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
    return 0;
}
