/* A player and a learner in two processes: the player plays CartPole and sends its chunks as blocks, the learner sends weights.
 *   apart [FRAMES [OUT.safetensors [together]]]
 * together: one process plays and learns; the weights are the same to the last bit. The player knows nothing but the weights:
 * it may as well be a bot beside an emulator, and the pipe a network. POSIX alone: fork and socketpair. */
#define _POSIX_C_SOURCE 200809L
#include <exphil/blocks.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 16, TIME = 64 };

static FILE *from, *to; /* the other process; NULL: there is none */
static exphil_error error = EXPHIL_ERROR_INIT;
static exphil_context *context;
static exphil_world world;

static void must(exphil_status status, const char *what)
{
    if (status >= 0) return;
    fprintf(stderr, "apart: %s: %s: %s\n", what, exphil_status_name(status), error.message);
    exit(1);
}

static void need(int fine, const char *what)
{
    if (!fine) perror(what), exit(1);
}

/* The learner's is like the player's; with several players it has all of their streams. */
static exphil_rollout *begin(const exphil_model *model)
{
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_rollout *rollout = NULL;
    session.streams = LANES;
    config.time = TIME;
    must(exphil_rollout_create(model, &session, &config, &rollout, &error), "rollout");
    return rollout;
}

/* Plays a chunk by the weights in the file whenever it is told that there are new ones. */
static void play(const char *path)
{
    exphil_rollout *rollout = NULL;
    void *block = NULL;
    while (fgetc(from) == 'w') {
        exphil_model *model = NULL;
        must(exphil_model_load(context, path, &model, &error), path);
        if (!rollout) rollout = begin(model);
        must(exphil_rollout_adopt(rollout, model, &error), "adopt");
        must(exphil_rollout_run(rollout, &world, &error), "play");
        size_t bytes = exphil_rollout_block_size(rollout);
        need(block || (block = malloc(bytes)), "apart");
        must(exphil_rollout_block_save(rollout, block, bytes, &error), "block");
        need(fwrite(block, 1, bytes, to) == bytes && !fflush(to), "apart: the learner");
        exphil_model_destroy(model);
    }
    free(block);
    exphil_rollout_destroy(rollout);
}

/* The next chunk, played by the weights in the file. */
static void fetch_chunk(exphil_rollout *rollout)
{
    size_t bytes = exphil_rollout_block_size(rollout);
    void *block = malloc(bytes);
    need(block && fputc('w', to) == 'w' && !fflush(to) && fread(block, 1, bytes, from) == bytes,
         "apart: the player");
    must(exphil_rollout_block_take(rollout, 0, EXPHIL_BLOCK_CURRENT, block, bytes, &error), "block");
    free(block);
}

static void learn(int64_t chunks, const char *out)
{
    exphil_model_config net = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_learner_config how = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_learner *learner = NULL;
    exphil_model *model = NULL;
    double frames = 0, episodes = 0;
    net.spec = world.spec;
    net.blocks = "mlp";
    net.hidden = net.head_width = 64;
    net.value = EXPHIL_VALUE_SHARED;
    adam.clip_norm = 0.5;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = 16 * chunks; /* four passes over a chunk, of four updates each */
    config.as_played = 1;
    how.half_life_frames = 69;
    how.reward_scale = 0.1;
    must(exphil_model_create(context, &net, &model, &error), "model");
    must(exphil_optimizer_create(model, &adam, &optimizer, &error), "optimizer");
    must(exphil_trainer_create(model, optimizer, NULL, &config, &trainer, &error), "trainer");
    must(exphil_learner_create(trainer, NULL, &how, &learner, &error), "learner");
    exphil_rollout *rollout = begin(model);
    for (int64_t i = 0; i <= chunks; i++) {
        must(exphil_model_save(model, out, &error), out);
        frames += m.episode_frames * (double)m.episodes;
        episodes += (double)m.episodes;
        if ((i % ((chunks + 9) / 10) == 0 || i == chunks) && episodes > 0) {
            printf("%8lld frames: %5.1f an episode\n", (long long)(i * LANES * TIME), frames / episodes);
            frames = episodes = 0;
        }
        if (i == chunks) break;
        if (from)
            fetch_chunk(rollout);
        else
            must(exphil_rollout_run(rollout, &world, &error), "play");
        must(exphil_learner_update(learner, rollout, &m, &error), "update");
        exphil_model_destroy(model);
        must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &model, &error), "weights");
    }
    if (to) fclose(to), fclose(from); /* which tells the player that it was the last */
    exphil_model_destroy(model);
    exphil_rollout_destroy(rollout);
    exphil_learner_destroy(learner);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
}

int main(int argc, char **argv)
{
    const int64_t frames = argc > 1 ? atoll(argv[1]) : 150000;
    const char *path = argc > 2 ? argv[2] : "cartpole.safetensors";
    int ends[2], status = 0;
    pid_t player = -1;
    if (frames < 1 || argc > 4)
        return fprintf(stderr, "usage: apart [FRAMES [OUT.safetensors [together]]]\n"), 2;
    if (argc < 4) { /* before there is a context: none goes on in a child */
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && (player = fork()) >= 0, "apart");
        close(ends[player != 0]);
        from = fdopen(ends[player == 0], "rb");
        to = fdopen(dup(ends[player == 0]), "wb");
    }
    must(exphil_context_create(NULL, &context, &error), "context");
    must(exphil_world_create(context, "cartpole", LANES, &world, &error), "world");
    player == 0 ? play(path) : learn((frames + LANES * TIME - 1) / (LANES * TIME), path);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
    return player > 0 && (waitpid(player, &status, 0) != player || status != 0);
}
