/* What the package of the web must compute to the bit: `bits FOLDER` plays and trains fixed rows with the library of this machine,
 * leaves weights in FOLDER, and prints "NAME HASH" lines; bits.mjs prints the same of the module. */
#include <exphil/learn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    F = 13,
    K = 2,
    A = 3,
    STREAMS = 2,
    FRAMES = 60,
    BACK = 20,
    BATCH = 4,
    TIME = 8,
    UPDATES = 6,
    STATE = 1 << 20
};

static exphil_error error = EXPHIL_ERROR_INIT;
static const char *folder;

#define NEED(call)                                                                                           \
  do {                                                                                                       \
    if ((call) < 0) {                                                                                        \
      fprintf(stderr, "FAILED: %s: %s\n", #call, error.message);                                             \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static uint32_t add(uint32_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 16777619u;
    return hash;
}
#define NOTHING 2166136261u
static void tell(const char *name, uint32_t hash)
{
    printf("%s %08x\n", name, (unsigned)hash);
}
static void tell_model(const char *name, const exphil_model *model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    NEED(exphil_model_save(model, path, &error));
    FILE *file = fopen(path, "rb");
    uint32_t hash = NOTHING;
    for (int byte; file && (byte = fgetc(file)) != EOF;) hash = (hash ^ (uint32_t)byte) * 16777619u;
    if (file) fclose(file);
    tell(name, hash);
}

static const exphil_id_spec ids[K] = {{"stage", 5, 3}, {"own.character", 7, 0}};
static const exphil_head_spec heads[A] = {{"buttons", EXPHIL_BERNOULLI, 3, 0, 0},
                                          {"stick", EXPHIL_CATEGORICAL, 5, 2, 0},
                                          {"trigger", EXPHIL_CATEGORICAL, 4, 0, 0}};
static const exphil_spec spec = {sizeof(exphil_spec), "made-up", "made-up", F, K, ids, A, heads, 0};

/* -1..1, in thousandths. */
static float drawn(int a, int b, int c)
{
    return (float)((a * 7919 + b * 104729 + c * 31 + a * b % 97) % 2001) / 1000.0f - 1.0f;
}
static void row(int stream, int t, float *floats, int32_t *id)
{
    for (int i = 0; i < F; i++) floats[i] = drawn(stream, t, i);
    id[0] = (stream + t / 9) % 5;
    id[1] = t % 7;
}

static uint32_t step(uint32_t hash, exphil_session *session, int t)
{
    float floats[STREAMS * F], logits[12];
    int32_t id[STREAMS * K], actions[STREAMS * A];
    for (int s = 0; s < STREAMS; s++) row(s, t, floats + s * F, id + s * K);
    NEED(exphil_session_step_row(session, floats, id, NULL, actions));
    hash = add(hash, actions, sizeof actions);
    for (int s = 0; s < STREAMS; s++) {
        NEED(exphil_session_logits(session, s, logits, 12));
        hash = add(hash, logits, sizeof logits);
    }
    return hash;
}

/* FRAMES frames; then the last BACK again from a state that was saved, in it and in a clone. */
static void play(const char *name, const exphil_model *model)
{
    static unsigned char state[STREAMS][STATE];
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL, *clone = NULL;
    char text[64];
    uint32_t hash = NOTHING;
    config.streams = STREAMS;
    config.seed = 11;
    NEED(exphil_session_create(model, &config, &session, &error));
    const size_t bytes = exphil_session_state_size(session);
    if (bytes > STATE) exit(1);
    for (int t = 0; t < FRAMES; t++) {
        if (t == FRAMES - BACK) {
            NEED(exphil_session_clone(session, &clone, &error));
            for (int s = 0; s < STREAMS; s++) NEED(exphil_session_state_save(session, s, state[s], bytes));
        }
        hash = step(hash, session, t);
    }
    snprintf(text, sizeof text, "%s.play", name);
    tell(text, hash);
    snprintf(text, sizeof text, "%s.state", name);
    tell(text, add(add(NOTHING, state[0], bytes), state[1], bytes));
    exphil_session *again[] = {session, clone};
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            for (int s = 0; s < STREAMS; s++) NEED(exphil_session_state_restore(session, s, state[s], bytes));
        hash = NOTHING;
        for (int t = FRAMES - BACK; t < FRAMES; t++) hash = step(hash, again[i], t);
        snprintf(text, sizeof text, "%s.%s", name, i ? "clone" : "restored");
        tell(text, hash);
        exphil_session_destroy(again[i]);
    }
}

static void train(const exphil_model *model)
{
    enum { ROWS = BATCH * TIME };
    static float floats[ROWS * F], mask[ROWS];
    static int32_t id[ROWS * K], past[ROWS * A], actions[ROWS * A];
    static uint8_t reset[ROWS];
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_model *trained = NULL, *adopted = NULL;
    uint32_t losses = NOTHING;
    NEED(exphil_optimizer_create(model, NULL, &optimizer, &error));
    NEED(exphil_trainer_create(model, optimizer, NULL, NULL, &trainer, &error));
    for (int u = 0; u < UPDATES; u++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        for (int i = 0; i < ROWS; i++) {
            const int t = u * TIME + i % TIME, b = i / TIME;
            row(b, t, floats + i * F, id + i * K);
            for (int back = 0; back < 2; back++) { /* past actions are those of the frame before */
                int32_t *to = (back ? past : actions) + i * A;
                to[0] = (t - back + b) & 7;
                to[1] = (t - back + 3 * b + 5) % 5;
                to[2] = (t - back + 4) / 3 % 4;
            }
            mask[i] = t % 11 == 10 ? 0.0f : 1.0f;
            reset[i] = t % 17 == 0;
        }
        batch.batch = BATCH;
        batch.time = TIME;
        for (int i = 0; i < ROWS; i++) batch.frames += mask[i] > 0;
        batch.floats = floats, batch.ids = id, batch.past = past, batch.actions = actions;
        batch.mask = mask, batch.reset = reset;
        NEED(exphil_trainer_step_batch(trainer, &batch, &metrics, &error));
        losses = add(losses, &metrics.loss, sizeof metrics.loss);
    }
    tell("train.losses", losses);
    NEED(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, &error));
    tell_model("trained", trained);
    /* weights that come between two frames */
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    uint32_t hash = NOTHING;
    config.streams = STREAMS;
    config.adoptable = 1;
    NEED(exphil_session_create(model, &config, &session, &error));
    for (int t = 0; t < BACK; t++) hash = step(hash, session, t);
    NEED(exphil_model_prepare(trained, &error));
    NEED(exphil_session_adopt(session, trained, &adopted));
    exphil_model_destroy(adopted);
    for (int t = BACK; t < 2 * BACK; t++) hash = step(hash, session, t);
    tell("adopted.play", hash);
    exphil_session_destroy(session);
    exphil_model_destroy(trained);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
}

/* A chunk of Pong played and learnt from, twice. */
static void learn(exphil_context *context)
{
    exphil_world world = {.struct_size = sizeof world};
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_session_config play = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config record = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_trainer_config as_played = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_model *model = NULL, *learnt = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    NEED(exphil_world_create(context, "pong-two", 4, &world, &error));
    config.spec = world.spec;
    config.blocks = "mlp";
    config.hidden = config.head_width = 16;
    config.no_previous_action = config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    config.seed = 3;
    as_played.as_played = 1;
    NEED(exphil_model_create(context, &config, &model, &error));
    NEED(exphil_optimizer_create(model, NULL, &optimizer, &error));
    NEED(exphil_trainer_create(model, optimizer, NULL, &as_played, &trainer, &error));
    play.streams = 8;
    play.seed = 5;
    record.time = 32;
    record.seed = 6;
    NEED(exphil_rollout_create(model, &play, &record, &rollout, &error));
    NEED(exphil_learner_create(trainer, NULL, NULL, &learner, &error));
    for (int chunk = 0; chunk < 2; chunk++) {
        exphil_learner_metrics metrics = EXPHIL_LEARNER_METRICS_INIT;
        NEED(exphil_rollout_run(rollout, &world, &error));
        NEED(exphil_learner_update(learner, rollout, &metrics, &error));
    }
    NEED(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &learnt, &error));
    tell_model("learnt", learnt);
    exphil_model_destroy(learnt);
    exphil_learner_destroy(learner);
    exphil_rollout_destroy(rollout);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    exphil_world_destroy(&world);
}

/* Frames of Melee to pads. */
static void melee(exphil_context *context)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    uint32_t hash = NOTHING;
    config.blocks = "gru";
    config.hidden = config.head_width = 16;
    config.seed = 9;
    NEED(exphil_model_create(context, &config, &model, &error));
    tell_model("melee", model);
    NEED(exphil_session_create(model, NULL, &session, &error));
    for (int t = 0; t < 30; t++) {
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        exphil_pad pad;
        frame.frame = t;
        frame.stage = 32;
        frame.own_port = 1;
        for (int p = 0; p < 2; p++) {
            exphil_melee_character *c = &frame.player[p];
            c->present = 1;
            c->known = EXPHIL_MELEE_HAS_AGE;
            c->character = 1;
            c->x = 40.0f * drawn(p, t, 0);
            c->facing = p ? -1.0f : 1.0f;
            c->shield = 60.0f;
            c->state_age = (float)t;
            c->action_state = (uint16_t)(14 + t % 3);
            c->stocks = 4;
            c->last_hit_by = 6;
        }
        frame.item_count = t % 2;
        frame.item[0].type = 54;
        frame.item[0].x = (float)t;
        frame.item[0].owner = -1;
        NEED(exphil_session_step(session, &frame, &pad));
        hash = add(hash, &pad, sizeof pad);
    }
    tell("melee.pads", hash);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL, *rounded = NULL;
    if (argc != 2) return fprintf(stderr, "usage: bits FOLDER\n"), 2;
    folder = argv[1];
    NEED(exphil_context_create(NULL, &context, &error));
    config.spec = &spec;
    config.blocks = "mamba gru attention mlp";
    config.hidden = 32;
    config.head_width = 16;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    config.seed = 7;
    NEED(exphil_model_create(context, &config, &model, &error));
    tell_model("policy", model);
    play("f32", model);
    NEED(exphil_model_quantize(model, EXPHIL_TYPE_BF16, &rounded, &error));
    play("bf16", rounded);
    exphil_model_destroy(rounded);
    NEED(exphil_model_quantize(model, EXPHIL_TYPE_I8, &rounded, &error));
    play("int8", rounded);
    exphil_model_destroy(rounded);
    train(model);
    learn(context);
    melee(context);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
