/* All that has to have the same bits on every system, as hashes, one a line: training of five models and of a learner, play
 * in three types of weights, rows, batches, reports, and the files that come of it. A second run, on another system, goes on
 * from these files; what it prints is among the lines of the first (tests/systems/bits.py).
 *   bits write FOLDER [ISA [THREADS]]        all from the beginning; files go to FOLDER
 *   bits go-on FOLDER TO [ISA [THREADS]]     from the files of FOLDER; what is saved then goes to TO
 *   bits sets                      the instruction sets that this processor and library have
 * It needs nothing but C11 and the library. */
#include <exphil/exphil.h>
#include <exphil/learn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 13, IDS = 2, HEADS = 3, LOGITS = 12, EPISODES = 6 };
enum { BATCH = 3, TIME = 12, HALF = 3, UPDATES = 6, STREAMS = 2, BEFORE = 100, FRAMES = 220 };

static const char *from_folder, *to_folder;
static int writes;

/* ---- what fails ---------------------------------------------------------------------------------------------------- */

static exphil_error error = EXPHIL_ERROR_INIT;

static void stop(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "FAILED: %s: %s\n", what, why);
    exit(1);
}

#define NEED(call)                                                                                           \
  do {                                                                                                       \
    const exphil_status need_status = (call);                                                                \
    if (need_status < 0) stop(#call, error.message[0] ? error.message : exphil_status_name(need_status));    \
  } while (0)

static void *zeroed(int64_t count, size_t each)
{
    void *memory = calloc((size_t)count + 1, each);
    if (!memory) stop("calloc", "no memory");
    return memory;
}

/* ---- hashes (FNV-1a), of values byte by byte from the lowest on ---------------------------------------------------- */

static uint64_t add_bytes(uint64_t hash, const void *data, size_t count)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t add_word(uint64_t hash, uint64_t word, int bytes)
{
    for (int i = 0; i < bytes; i++) hash = (hash ^ (word >> (8 * i) & 0xff)) * 0x100000001b3u;
    return hash;
}

static uint64_t add_floats(uint64_t hash, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        hash = add_word(hash, bits, 4);
    }
    return hash;
}

static uint64_t add_ints(uint64_t hash, const int32_t *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) hash = add_word(hash, (uint32_t)x[i], 4);
    return hash;
}

static uint64_t add_double(uint64_t hash, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return add_word(hash, bits, 8);
}

#define NOTHING 0xcbf29ce484222325u

/* "MODEL STAGE HASH"; a hash is written by hand, because not every C library prints 64 bits alike. */
static void tell(const char *model, const char *stage, uint64_t hash)
{
    printf("%s %s ", model, stage);
    for (int digit = 15; digit >= 0; digit--) putchar("0123456789abcdef"[hash >> (4 * digit) & 15]);
    putchar('\n');
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

enum { PATH = 1024 };

static void path_of(char path[PATH], const char *folder, const char *model, const char *rest)
{
    if (snprintf(path, PATH, "%s/%s.%s", folder, model, rest) >= PATH) stop(folder, "too long");
}

static unsigned char *read_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) stop(path, "cannot be opened");
    const long size = ftell(file);
    rewind(file);
    unsigned char *all = zeroed(size, 1);
    if (size < 0 || fread(all, 1, (size_t)size, file) != (size_t)size) stop(path, "cannot be read");
    fclose(file);
    *count = (size_t)size;
    return all;
}

static void write_file(const char *path, const void *data, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, count, file) != count || fclose(file)) stop(path, "cannot be written");
}

/* A file that was just written. */
static void tell_file(const char *model, const char *rest)
{
    char path[PATH], stage[80];
    size_t count;
    path_of(path, to_folder, model, rest);
    unsigned char *all = read_file(path, &count);
    snprintf(stage, sizeof stage, "file.%s", rest);
    tell(model, stage, add_bytes(NOTHING, all, count));
    free(all);
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static const exphil_id_spec ids[IDS] = {{"stage", 5, 3}, {"own.character", 7, 0}};
static const exphil_head_spec heads[HEADS] = {{"buttons", EXPHIL_BERNOULLI, 3, 0, 0},
                                              {"stick", EXPHIL_CATEGORICAL, 5, 2, 0},
                                              {"trigger", EXPHIL_CATEGORICAL, 4, 0, 0}};
static const exphil_spec spec = {
    sizeof(exphil_spec), "made-up", "made-up", FLOATS, IDS, ids, HEADS, heads, 0};

/* -1..1, in thousandths. */
static float drawn(int64_t a, int64_t b, int64_t c)
{
    uint64_t x = add_word(add_word(add_word(NOTHING, (uint64_t)a, 8), (uint64_t)b, 8), (uint64_t)c, 8);
    x ^= x >> 29;
    return (float)(int32_t)(x % 2001) / 1000.0f - 1.0f;
}

static void row_of(int64_t episode, int64_t t, float *floats, int32_t *id, int32_t *action)
{
    for (int i = 0; i < FLOATS; i++) floats[i] = drawn(episode, t, i);
    id[0] = (int32_t)(episode % 5);
    id[1] = (int32_t)(t % 7);
    action[0] = (floats[0] > 0) | (floats[1] > 0.3f) << 1 | (floats[2] < 0.1f) << 2;
    action[1] = (int32_t)((floats[3] + 1.0f) * 2.49f);
    action[2] = t > 0 && drawn(episode, t - 1, 4) > 0 ? 3 : 1;
}

static int64_t frames_of(int64_t episode)
{
    return 41 + 13 * episode;
}

static exphil_dataset *make_rows(exphil_context *context)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = &spec;
    NEED(exphil_dataset_create(context, &config, &dataset, &error));
    for (int64_t e = 0; e < EPISODES; e++) {
        const int64_t count = frames_of(e);
        float *floats = zeroed(count * FLOATS, sizeof *floats);
        int32_t *id = zeroed(count * IDS, sizeof *id), *action = zeroed(count * HEADS, sizeof *action);
        for (int64_t t = 0; t < count; t++)
            row_of(e, t, floats + t * FLOATS, id + t * IDS, action + t * HEADS);
        NEED(exphil_dataset_add_rows(dataset, (uint64_t)e, count, floats, id, action, &error));
        free(floats);
        free(id);
        free(action);
    }
    return dataset;
}

/* The corpus file, from which all else reads. */
static exphil_dataset *open_rows(exphil_context *context)
{
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    char path[PATH];
    if (writes) {
        exphil_dataset *made = make_rows(context);
        path_of(path, to_folder, "rows", "corpus");
        NEED(exphil_dataset_save(made, path, &error));
        exphil_dataset_destroy(made);
        tell_file("rows", "corpus");
    }
    path_of(path, from_folder, "rows", "corpus");
    NEED(exphil_dataset_open(context, path, &dataset, &error));
    NEED(exphil_dataset_verify(dataset, &error));
    NEED(exphil_dataset_query(dataset, &info, &error));
    tell("rows", "content", info.content_hash);
    return dataset;
}

/* ---- batches: of the library, where it has threads, and by hand ------------------------------------------------------ */

static uint64_t add_batch(uint64_t hash, const exphil_batch *b, int64_t slots)
{
    const int64_t rows = b->batch * b->time;
    hash = add_floats(hash, b->floats, rows * FLOATS);
    hash = add_ints(add_ints(hash, b->ids, rows * IDS), b->past, rows * HEADS * slots);
    hash = add_ints(add_floats(hash, b->mask, rows), b->actions, rows * HEADS);
    return add_bytes(hash, b->reset, (size_t)rows);
}

static void prefetched(const exphil_dataset *dataset)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    uint64_t hash = NOTHING;
    how.batch = BATCH, how.time = TIME, how.seed = 3, how.action_slots = 2, how.delay_frames = 1;
    how.drop_past = 0.25, how.balance_action = 0.5, how.balance_change = 0.3;
    const exphil_status status = exphil_prefetcher_create(dataset, &how, &prefetcher, &error);
    if (status == EXPHIL_E_UNSUPPORTED) {
        printf("# no batches of prefetchers: %s\n", error.message);
        return;
    }
    NEED(status);
    for (int i = 0; i < 2 * UPDATES;) {
        const exphil_status next = exphil_prefetcher_next(prefetcher, &batch, &error);
        NEED(next);
        if (next == EXPHIL_END) continue;
        hash = add_batch(hash, &batch, how.action_slots);
        i++;
    }
    tell("rows", "batches", hash);
    exphil_prefetcher_destroy(prefetcher);
}

typedef struct batch_memory {
    float floats[BATCH * TIME * FLOATS], mask[BATCH * TIME];
    int32_t id[BATCH * TIME * IDS], actions[BATCH * TIME * HEADS];
    uint8_t reset[BATCH * TIME];
    int32_t *past;
} batch_memory;

/* Lane b of batch number k: rows of episode b, from k TIME on, and from the beginning again. */
static exphil_batch batch_of(const exphil_dataset *dataset, batch_memory *m, int64_t k, int64_t slots)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    int32_t nothing[HEADS];
    for (int h = 0; h < HEADS; h++) nothing[h] = heads[h].neutral;
    if (!m->past) m->past = zeroed(BATCH * TIME * HEADS * slots, sizeof *m->past);
    for (int64_t row = 0; row < BATCH * TIME; row++) {
        exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
        NEED(exphil_dataset_episode(dataset, row / TIME, &episode, &error));
        const int64_t t = (k * TIME + row % TIME) % episode.frames;
        NEED(exphil_dataset_frame(dataset, episode.first + t, m->floats + row * FLOATS, m->id + row * IDS,
                                  m->actions + row * HEADS, &error));
        for (int64_t s = 0; s < slots; s++) {
            int32_t *past = m->past + (row * slots + s) * HEADS;
            if (t > s)
                NEED(exphil_dataset_frame(dataset, episode.first + t - 1 - s, NULL, NULL, past, &error));
            else
                memcpy(past, nothing, sizeof nothing);
        }
        m->mask[row] = row % 5 ? 1.0f : 0.75f;
        m->reset[row] = t == 0;
    }
    batch.batch = BATCH, batch.time = TIME, batch.frames = BATCH * TIME, batch.index = k;
    batch.floats = m->floats, batch.ids = m->id, batch.past = m->past, batch.actions = m->actions;
    batch.mask = m->mask, batch.reset = m->reset;
    return batch;
}

/* ---- the five models ------------------------------------------------------------------------------------------------- */

typedef struct plan {
    const char *name, *blocks;
    exphil_model_config model;
    exphil_optimizer_config adam;
    exphil_trainer_config trainer;
} plan;

static const exphil_head_loss losses[HEADS] = {{0, 0, 1.5, NULL}, {2.0, 0.1, 0, NULL}, {0, 0.05, 2.0, NULL}};

enum { MAMBA, LSTM, GRU, ATTENTION, MIXED, MODELS };

static plan plan_of(int which)
{
    static const char *const names[MODELS][2] = {{"mamba", "mamba*2"},
                                                 {"lstm", "lstm ffn"},
                                                 {"gru", "gru mlp"},
                                                 {"attention", "attention"},
                                                 {"mixed", "mamba attention lstm"}};
    plan p = {names[which][0], names[which][1], EXPHIL_MODEL_CONFIG_INIT, EXPHIL_OPTIMIZER_CONFIG_INIT,
              EXPHIL_TRAINER_CONFIG_INIT};
    p.model.spec = &spec, p.model.blocks = p.blocks, p.model.seed = 7 + (uint64_t)which;
    p.model.hidden = 32, p.model.head_width = 24, p.model.mamba_states = 8, p.model.mamba_rank = 3;
    p.model.attention_heads = 3, p.model.attention_dim = 8, p.model.attention_window_frames = 9;
    p.model.neutral_start = 1;
    p.adam.rate = 5e-3, p.adam.decay = 0.01, p.adam.warmup_updates = 2;
    switch (which) {
    case LSTM:
        p.model.delay_frames = 2;
        p.adam.ema_decay = 0.9, p.adam.schedule = EXPHIL_SCHEDULE_COSINE, p.adam.total_updates = 10;
        break;
    case GRU:
        p.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        p.trainer.own_past = 0.3, p.trainer.own_past_seed = 9;
        break;
    case ATTENTION:
        p.model.attention_window_frames = 80; /* longer than what is looked at in one piece */
        p.trainer.losses = losses;
        break;
    case MIXED:
        p.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE, p.model.delay_frames = 1;
        p.model.head_layers = 2, p.model.head_activation = EXPHIL_ACTIVATION_GELU_TANH;
        p.trainer.fake_quantize = EXPHIL_TYPE_I8, p.trainer.checkpoint_blocks = 1;
        break;
    default:
        break;
    }
    return p;
}

static uint64_t weights_of(const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    NEED(exphil_model_query(model, &info, &error));
    return info.weights_hash;
}

static void train(const plan *p, exphil_trainer *trainer, const exphil_dataset *dataset, int64_t slots)
{
    batch_memory memory = {.past = NULL};
    char path[PATH];
    if (!writes) {
        path_of(path, from_folder, p->name, "half");
        NEED(exphil_trainer_resume(trainer, path, &error));
    }
    for (int64_t k = writes ? 0 : HALF; k < UPDATES; k++) {
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        const exphil_batch batch = batch_of(dataset, &memory, k, slots);
        char stage[32];
        NEED(exphil_trainer_step_batch(trainer, &batch, &metrics, &error));
        snprintf(stage, sizeof stage, "update.%d", (int)metrics.update);
        uint64_t hash = add_double(add_double(NOTHING, metrics.loss), metrics.gradient_norm);
        for (int h = 0; h < HEADS; h++) hash = add_double(hash, metrics.head_loss[h]);
        tell(p->name, stage, add_double(hash, metrics.rate));
        if (k + 1 == HALF) {
            path_of(path, to_folder, p->name, "half");
            NEED(exphil_trainer_save(trainer, path, &error));
            tell_file(p->name, "half");
            tell_file(p->name, "half.optimizer");
        }
    }
    path_of(path, to_folder, p->name, "end");
    NEED(exphil_trainer_save(trainer, path, &error));
    tell_file(p->name, "end");
    tell_file(p->name, "end.optimizer");
    free(memory.past);
}

/* ---- reports --------------------------------------------------------------------------------------------------------- */

static void report(const plan *p, const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_report r = EXPHIL_REPORT_INIT;
    r.alone_most_frames = 100;
    NEED(exphil_evaluate(model, dataset, NULL, p->trainer.losses, 4, &r, &error));
    const double all[] = {r.loss,           r.nll,       r.frequency_nll,  r.exact_accuracy,
                          r.exact_majority, r.alone_nll, r.alone_accuracy, r.exact_copy};
    uint64_t hash = add_word(NOTHING, (uint64_t)r.frames, 8);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hash = add_double(hash, all[i]);
    for (int h = 0; h < HEADS; h++) {
        const exphil_head_report *head = &r.head[h];
        const double of_head[] = {head->loss, head->nll,           head->accuracy,
                                  head->top3, head->frequency_nll, head->majority_accuracy};
        for (size_t i = 0; i < sizeof of_head / sizeof *of_head; i++) hash = add_double(hash, of_head[i]);
    }
    tell(p->name, "report", hash);
}

/* Its products have many rows, those of play have two. */
static void compare(const plan *p, const exphil_model *model, exphil_model *narrow, const char *type,
                    const exphil_dataset *dataset)
{
    exphil_comparison c = EXPHIL_COMPARISON_INIT;
    char stage[32];
    NEED(exphil_model_compare(model, narrow, dataset, 4, &c, &error));
    NEED(exphil_model_calibration_set(narrow, &c, &error)); /* goes into its file */
    snprintf(stage, sizeof stage, "comparison.%s", type);
    uint64_t hash = add_double(add_double(NOTHING, c.kl), c.agreement);
    tell(p->name, stage, add_double(add_double(hash, c.max_error), c.rms_error));
}

/* ---- play ------------------------------------------------------------------------------------------------------------ */

/* The state of both streams after BEFORE frames is written, or read. */
static void snapshot(const char *name, const char *rest, exphil_session *session, unsigned char *state,
                     size_t bytes)
{
    char path[PATH];
    size_t count = STREAMS * bytes;
    if (writes) {
        for (size_t b = 0; b < STREAMS; b++)
            NEED(exphil_session_state_save(session, (int64_t)b, state + b * bytes, bytes));
        path_of(path, to_folder, name, rest);
        write_file(path, state, count);
        tell_file(name, rest);
        return;
    }
    path_of(path, from_folder, name, rest);
    unsigned char *all = read_file(path, &count);
    if (count != STREAMS * bytes) stop(path, "has another size");
    for (size_t b = 0; b < STREAMS; b++)
        NEED(exphil_session_state_restore(session, (int64_t)b, all + b * bytes, bytes));
    free(all);
}

static uint64_t play_frames(exphil_session *session, int64_t first, int64_t end)
{
    float floats[STREAMS * FLOATS], logits[LOGITS];
    int32_t id[STREAMS * IDS], actions[STREAMS * HEADS];
    uint64_t hash = NOTHING;
    for (int64_t t = first; t < end; t++) {
        for (int b = 0; b < STREAMS; b++) row_of(50 + b, t, floats + b * FLOATS, id + b * IDS, actions);
        if (exphil_session_step_row(session, floats, id, NULL, actions) < 0) {
            (void)exphil_session_error(session, &error);
            stop("exphil_session_step_row", error.message);
        }
        hash = add_ints(hash, actions, STREAMS * HEADS);
        for (int64_t b = 0; b < STREAMS; b++) {
            NEED(exphil_session_logits(session, b, logits, LOGITS));
            hash = add_floats(hash, logits, LOGITS);
        }
    }
    return hash;
}

static void play(const char *name, const char *type, const exphil_model *model)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    char first[32], second[32], rest[32];
    how.streams = STREAMS, how.seed = 31;
    NEED(exphil_session_create(model, &how, &session, &error));
    const size_t bytes = exphil_session_state_size(session);
    unsigned char *state = zeroed((int64_t)(STREAMS * bytes), 1);
    snprintf(first, sizeof first, "play.%s.%d", type, BEFORE);
    snprintf(second, sizeof second, "play.%s.%d", type, FRAMES);
    snprintf(rest, sizeof rest, "%s.state", type);
    if (writes) tell(name, first, play_frames(session, 0, BEFORE));
    snapshot(name, rest, session, state, bytes);
    tell(name, second, play_frames(session, BEFORE, FRAMES));
    free(state);
    exphil_session_destroy(session);
}

static const struct type_name {
    int32_t type;
    const char *name;
} narrow_types[] = {{EXPHIL_TYPE_BF16, "bf16"}, {EXPHIL_TYPE_I8, "int8"}};

/* In the weights as trained and of fewer bits: made here, or read from the files that were made of them. */
static void play_types(const plan *p, exphil_context *context, const exphil_model *model,
                       const exphil_dataset *dataset)
{
    play(p->name, "f32", model);
    for (int i = 0; i < 2; i++) {
        exphil_model *narrow = NULL;
        char path[PATH], rest[32];
        snprintf(rest, sizeof rest, "%s.policy", narrow_types[i].name);
        if (writes) {
            NEED(exphil_model_quantize(model, narrow_types[i].type, &narrow, &error));
            compare(p, model, narrow, narrow_types[i].name, dataset);
            path_of(path, to_folder, p->name, rest);
            NEED(exphil_model_save(narrow, path, &error));
            tell_file(p->name, rest);
        } else {
            path_of(path, from_folder, p->name, rest);
            NEED(exphil_model_load(context, path, &narrow, &error));
        }
        play(p->name, narrow_types[i].name, narrow);
        exphil_model_destroy(narrow);
    }
}

static void one_model(plan p, exphil_context *context, const exphil_dataset *dataset)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *model = NULL, *trained = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    NEED(exphil_model_create(context, &p.model, &model, &error));
    NEED(exphil_model_query(model, &info, &error));
    tell(p.name, "weights.new", weights_of(model));
    NEED(exphil_optimizer_create(model, &p.adam, &optimizer, &error));
    NEED(exphil_trainer_create(model, optimizer, NULL, &p.trainer, &trainer, &error));
    train(&p, trainer, dataset, info.action_slots);
    NEED(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, &error));
    tell(p.name, "weights", weights_of(trained));
    report(&p, trained, dataset);
    if (p.model.type == EXPHIL_TYPE_F64)
        play(p.name, "f64", trained);
    else
        play_types(&p, context, trained, dataset);
    exphil_model_destroy(trained);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

/* The reference in double. */
static plan plan_of_double(void)
{
    plan p = plan_of(MIXED);
    p.name = "double", p.model.type = EXPHIL_TYPE_F64, p.trainer.fake_quantize = 0;
    return p;
}

/* ---- learning from play ------------------------------------------------------------------------------------------------ */

static void learn(exphil_context *context)
{
    enum { LANES = 4, CHUNKS = 4 };
    exphil_world world;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config chunk = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_learner_config learning = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_model *model = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    char path[PATH], stage[32];
    memset(&world, 0, sizeof world);
    NEED(exphil_world_create(context, "cartpole", LANES, &world, &error));
    config.spec = world.spec, config.blocks = "gru", config.hidden = 32, config.head_width = 24;
    config.neutral_start = 1, config.no_previous_action = 1, config.value = EXPHIL_VALUE_SHARED;
    how.as_played = 1;
    session.streams = LANES, session.seed = 5;
    chunk.time = 32;
    learning.half_life_frames = 69.0, learning.entropy = 0.01, learning.to_old = 0.1, learning.epochs = 2;
    NEED(exphil_model_create(context, &config, &model, &error));
    NEED(exphil_optimizer_create(model, NULL, &optimizer, &error));
    NEED(exphil_trainer_create(model, optimizer, NULL, &how, &trainer, &error));
    NEED(exphil_rollout_create(model, &session, &chunk, &rollout, &error));
    NEED(exphil_learner_create(trainer, NULL, &learning, &learner, &error));
    path_of(path, writes ? to_folder : from_folder, "learner", "half");
    if (!writes) NEED(exphil_learner_resume(learner, rollout, &world, path, &error));
    for (int c = writes ? 0 : CHUNKS / 2; c < CHUNKS; c++) {
        exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
        NEED(exphil_rollout_run(rollout, &world, &error));
        NEED(exphil_learner_update(learner, rollout, &m, &error));
        snprintf(stage, sizeof stage, "chunk.%d", c + 1);
        const double all[] = {m.reward, m.kl_old, m.entropy, m.ratio, m.value_loss, m.loss, m.gradient_norm};
        uint64_t hash = NOTHING;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) hash = add_double(hash, all[i]);
        tell("learner", stage, hash);
        if (c + 1 != CHUNKS / 2) continue;
        NEED(exphil_learner_save(learner, rollout, &world, path, &error));
        tell_file("learner", "half");
        tell_file("learner", "half.optimizer");
    }
    path_of(path, to_folder, "learner", "end");
    NEED(exphil_learner_save(learner, rollout, &world, path, &error));
    tell_file("learner", "end");
    tell_file("learner", "end.optimizer");
    exphil_learner_destroy(learner);
    exphil_rollout_destroy(rollout);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    exphil_world_destroy(&world);
}

/* ---- Melee: rows and controllers ---------------------------------------------------------------------------------------- */

static exphil_melee_frame melee_frame(int64_t t)
{
    exphil_melee_frame f = EXPHIL_MELEE_FRAME_INIT;
    f.frame = (int32_t)t, f.stage = t % 2 ? 31 : 2, f.own_port = 1, f.opponent_port = 2;
    for (int p = 0; p < 2; p++) {
        exphil_melee_character *c = &f.player[p];
        c->present = 1, c->known = EXPHIL_MELEE_HAS_ALL;
        c->x = drawn(t, p, 1) * 90.0f, c->y = drawn(t, p, 2) * 60.0f, c->facing = t % 3 ? 1.0f : -1.0f;
        c->percent = (drawn(t, p, 3) + 1.0f) * 80.3f, c->shield = 30.0f + drawn(t, p, 4) * 29.7f;
        c->state_age = (float)(t % 40) + 0.37f, c->hitlag = drawn(t, p, 5) + 1.0f;
        c->speed_air_x = drawn(t, p, 6) * 2.0f, c->speed_y = drawn(t, p, 7) * 3.0f;
        c->speed_attack_x = drawn(t, p, 8), c->speed_attack_y = drawn(t, p, 9);
        c->speed_ground_x = drawn(t, p, 10);
        c->action_state = (uint16_t)((t * 37 + p * 11) % 383), c->character = (uint8_t)(1 + (t + p) % 25);
        c->stocks = (uint8_t)(1 + t % 4), c->jumps = (uint8_t)(t % 3), c->airborne = (uint8_t)(t % 2);
    }
    return f;
}

static void melee(void)
{
    static const char *const layouts[] = {"melee2", "exphil288", "slippi", "slippi-nana"};
    static const char *const codecs[] = {"exphil81", "exphil81-floor", "slippi", "slippi-fine"};
    static float floats[4096];
    int32_t id[EXPHIL_IDS_MAX] = {0}, action[EXPHIL_HEADS_MAX] = {0};
    if (!writes) return;
    for (int i = 0; i < 4; i++) {
        exphil_spec with = EXPHIL_SPEC_INIT;
        uint64_t rows = NOTHING, pads = NOTHING;
        NEED(exphil_melee_spec(layouts[i], codecs[i], &with, &error));
        for (int64_t t = 0; t < 60; t++) {
            const exphil_melee_frame frame = melee_frame(t);
            exphil_pad pad = {(uint32_t)(t * 0x130) & 0xff0u,
                              drawn(t, 2, 1),
                              drawn(t, 2, 2),
                              drawn(t, 2, 3),
                              drawn(t, 2, 4),
                              (drawn(t, 2, 5) + 1.0f) / 2.0f};
            NEED(exphil_melee_encode(layouts[i], &frame, floats, id, &error));
            rows = add_ints(add_floats(rows, floats, with.float_count), id, with.id_count);
            NEED(exphil_melee_pad_encode(codecs[i], &pad, action, &error));
            NEED(exphil_melee_pad_decode(codecs[i], action, &pad, &error));
            const float sticks[] = {pad.main_x, pad.main_y, pad.c_x, pad.c_y, pad.trigger};
            pads = add_floats(add_ints(pads, action, with.head_count), sticks, 5);
        }
        tell(layouts[i], "rows", add_word(rows, exphil_spec_hash(&with), 8));
        tell(codecs[i], "pads", pads);
    }
}

static int sets(void)
{
    static const char *const names[] = {"ref",        "avx2", "avx512",  "avx2vnni", "avx512vnni",
                                        "avx512bf16", "neon", "neondot", "simd128",  "relaxed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        exphil_context_config with = EXPHIL_CONTEXT_CONFIG_INIT;
        exphil_context *context = NULL;
        with.cpu_isa = names[i], with.threads = 1;
        if (exphil_context_create(&with, &context, NULL) == EXPHIL_OK) puts(names[i]);
        exphil_context_destroy(context);
    }
    return 0;
}

int main(int argc, char **argv)
{
    exphil_context_config with = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    if (argc == 2 && strcmp(argv[1], "sets") == 0) return sets();
    writes = argc >= 3 && strcmp(argv[1], "write") == 0;
    if (!writes && (argc < 4 || strcmp(argv[1], "go-on") != 0)) {
        fprintf(stderr,
                "bits write FOLDER [ISA [THREADS]], bits go-on FOLDER TO [ISA [THREADS]], bits sets\n");
        return 2;
    }
    from_folder = argv[2], to_folder = argv[writes ? 2 : 3];
    const int more = writes ? 3 : 4;
    with.cpu_isa = argc > more ? argv[more] : NULL;
    with.threads = argc > more + 1 ? (int32_t)strtol(argv[more + 1], NULL, 10) : 1;
    setvbuf(stdout, NULL, _IOLBF, 1024);
    NEED(exphil_context_create(&with, &context, &error));
    NEED(exphil_context_device(context, &device, &error));
    printf("# %s, %s\n", exphil_version_string(), device.isa);
    exphil_dataset *dataset = open_rows(context);
    if (writes) prefetched(dataset);
    for (int which = 0; which < MODELS; which++) one_model(plan_of(which), context, dataset);
    one_model(plan_of_double(), context, dataset);
    learn(context);
    melee();
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    return 0;
}
