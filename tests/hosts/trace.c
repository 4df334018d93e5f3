/* Makes, checks and times what all hosts must agree on, with the installed library alone.
 *   trace make FOLDER [FRAMES]   writes policy.safetensors, frames.trace (10000 frames), small.safetensors (for timing)
 *   trace check MODEL TRACE      replays a trace; says how many frames are identical, fails at the first that differs
 *   trace bench MODEL [STEPS]    median nanoseconds of one exphil_session_step_row, as one JSON object */
#define _POSIX_C_SOURCE 200809L
#include "trace.h"

#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEED 20260101u

struct player {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_model_info info;
    float *floats, *logits, *want_logits;
    int32_t *ids, *actions, *want_actions;
};

static int complain(const char *what, const exphil_error *error)
{
    fprintf(stderr, "trace: %s: %s\n", what, error->message);
    return 1;
}

static int open_player(struct player *player, const char *path, uint64_t seed, int32_t deterministic)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.seed = seed;
    config.deterministic = deterministic;
    memset(player, 0, sizeof *player);
    player->info.struct_size = sizeof player->info;
    if (exphil_context_create(NULL, &player->context, &error) < 0 ||
        exphil_model_load(player->context, path, &player->model, &error) < 0 ||
        exphil_model_query(player->model, &player->info, &error) < 0 ||
        exphil_session_create(player->model, &config, &player->session, &error) < 0)
        return complain(path, &error);
    /* One more than needed: a count may be 0. */
    player->floats = calloc((size_t)player->info.float_count + 1, sizeof(float));
    player->ids = calloc((size_t)player->info.id_count + 1, sizeof(int32_t));
    player->actions = calloc((size_t)player->info.head_count + 1, sizeof(int32_t));
    player->want_actions = calloc((size_t)player->info.head_count + 1, sizeof(int32_t));
    player->logits = calloc((size_t)player->info.logit_count + 1, sizeof(float));
    player->want_logits = calloc((size_t)player->info.logit_count + 1, sizeof(float));
    if (!player->floats || !player->ids || !player->actions || !player->want_actions || !player->logits ||
        !player->want_logits)
        return fprintf(stderr, "trace: no memory\n"), 1;
    return 0;
}

static void close_player(struct player *player)
{
    free(player->floats);
    free(player->ids);
    free(player->actions);
    free(player->want_actions);
    free(player->logits);
    free(player->want_logits);
    exphil_session_destroy(player->session);
    exphil_model_destroy(player->model);
    exphil_context_destroy(player->context);
}

/* xorshift64*: Vigna 2016, An experimental exploration of Marsaglia's xorshift generators, scrambled. */
static uint32_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545F4914F6CDD1Du) >> 32);
}

static void draw_row(struct player *player, const exphil_spec *spec, uint64_t *state)
{
    for (int64_t i = 0; i < spec->float_count; i++)
        player->floats[i] = (float)(int32_t)draw(state) / 1073741824.0f; /* -2..2 */
    for (int64_t i = 0; i < spec->id_count; i++)
        player->ids[i] = (int32_t)(draw(state) % (uint32_t)spec->ids[i].entries);
}

static int make_model(const char *path, const exphil_spec *spec, const char *blocks, int64_t hidden,
                      int32_t delay)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = spec;
    config.blocks = blocks;
    config.hidden = hidden;
    config.head_width = hidden;
    config.delay_frames = delay;
    config.seed = SEED;
    int failed = 0;
    if (exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_model_create(context, &config, &model, &error) < 0 ||
        exphil_model_save(model, path, &error) < 0)
        failed = complain(path, &error);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return failed;
}

/* One step of the trace; reset now and then, as when a game starts anew. */
static int step(struct player *player, int32_t reset)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if ((reset && exphil_session_reset(player->session, -1) < 0) ||
        exphil_session_step_row(player->session, player->floats, player->ids, NULL, player->actions) < 0 ||
        exphil_session_logits(player->session, 0, player->logits, player->info.logit_count) < 0) {
        exphil_session_error(player->session, &error);
        return complain("step", &error);
    }
    return 0;
}

static int put(FILE *file, const void *data, size_t bytes)
{
    return bytes && fwrite(data, bytes, 1, file) != 1;
}

static int get(FILE *file, void *data, size_t bytes)
{
    return bytes && fread(data, bytes, 1, file) != 1;
}

static int make_trace(const char *model, const char *path, const exphil_spec *spec, int64_t frames)
{
    struct player player;
    if (open_player(&player, model, SEED, 0)) return 1;
    struct trace_header header = {.magic = {0},
                                  .floats = (int32_t)player.info.float_count,
                                  .ids = (int32_t)player.info.id_count,
                                  .heads = (int32_t)player.info.head_count,
                                  .logits = (int32_t)player.info.logit_count,
                                  .seed = SEED,
                                  .frames = frames};
    memcpy(header.magic, TRACE_MAGIC, sizeof header.magic);
    FILE *file = fopen(path, "wb");
    int failed = !file || put(file, &header, sizeof header);
    uint64_t state = SEED;
    for (int64_t t = 0; t < frames && !failed; t++) {
        int32_t reset = t % 1777 == 1776;
        draw_row(&player, spec, &state);
        failed = step(&player, reset) || put(file, &reset, sizeof reset) ||
                 put(file, player.floats, (size_t)header.floats * sizeof(float)) ||
                 put(file, player.ids, (size_t)header.ids * sizeof(int32_t)) ||
                 put(file, player.actions, (size_t)header.heads * sizeof(int32_t)) ||
                 put(file, player.logits, (size_t)header.logits * sizeof(float));
    }
    if (file && fclose(file)) failed = 1;
    if (failed) perror(path);
    close_player(&player);
    return failed;
}

static int make(const char *folder, int64_t frames)
{
    static const exphil_id_spec ids[] = {{"own", 33, 4}, {"stage", 6, 0}};
    static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 5, 0, 0},
                                             {"stick", EXPHIL_CATEGORICAL, 17, 8, 0},
                                             {"trigger", EXPHIL_CATEGORICAL, 4, 0, 0}};
    static const exphil_head_spec one[] = {{"stick", EXPHIL_CATEGORICAL, 3, 1, 0}};
    exphil_spec spec = EXPHIL_SPEC_INIT, small = EXPHIL_SPEC_INIT;
    char policy[4096], trace[4096], tiny[4096];
    spec.layout = "trace", spec.codec = "trace";
    spec.float_count = 23, spec.id_count = 2, spec.ids = ids, spec.head_count = 3, spec.heads = heads;
    small.layout = "small", small.codec = "small";
    small.float_count = 8, small.head_count = 1, small.heads = one;
    snprintf(policy, sizeof policy, "%s/policy.safetensors", folder);
    snprintf(trace, sizeof trace, "%s/frames.trace", folder);
    snprintf(tiny, sizeof tiny, "%s/small.safetensors", folder);
    return make_model(policy, &spec, "mamba gru attention", 40, 2) ||
           make_trace(policy, trace, &spec, frames) || make_model(tiny, &small, "mlp", 8, 0);
}

static int check_frames(struct player *player, FILE *file, const struct trace_header *header)
{
    for (int64_t t = 0; t < header->frames; t++) {
        int32_t reset = 0;
        size_t heads = (size_t)header->heads * sizeof(int32_t),
               logits = (size_t)header->logits * sizeof(float);
        if (get(file, &reset, sizeof reset) ||
            get(file, player->floats, (size_t)header->floats * sizeof(float)) ||
            get(file, player->ids, (size_t)header->ids * sizeof(int32_t)) ||
            get(file, player->want_actions, heads) || get(file, player->want_logits, logits))
            return fprintf(stderr, "trace: ends within frame %lld\n", (long long)t), 1;
        if (step(player, reset)) return 1;
        if (memcmp(player->actions, player->want_actions, heads) ||
            memcmp(player->logits, player->want_logits, logits))
            return fprintf(stderr, "trace: frame %lld differs\n", (long long)t), 1;
    }
    printf("c: %lld frames identical\n", (long long)header->frames);
    return 0;
}

static int check(const char *model, const char *path)
{
    struct trace_header header;
    struct player player;
    FILE *file = fopen(path, "rb");
    if (!file) return perror(path), 1;
    int failed =
        get(file, &header, sizeof header) || memcmp(header.magic, TRACE_MAGIC, sizeof header.magic) != 0;
    if (failed) {
        fprintf(stderr, "trace: %s is no trace\n", path);
    } else if (!(failed = open_player(&player, model, header.seed, header.deterministic))) {
        if (player.info.float_count != header.floats || player.info.id_count != header.ids ||
            player.info.head_count != header.heads || player.info.logit_count != header.logits)
            failed = fprintf(stderr, "trace: %s is of another model\n", path);
        else
            failed = check_frames(&player, file, &header);
        close_player(&player);
    }
    fclose(file);
    return failed != 0;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Each call is timed alone; the clock's own cost is measured the same way and told, not taken off. */
static int bench(const char *model, int64_t steps)
{
    struct player player;
    int64_t *took = malloc((size_t)steps * sizeof *took);
    if (!took || open_player(&player, model, 1, 1)) return 1;
    int64_t clock_ns = 0, call_ns = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < steps; t++) {
            int64_t start = now();
            if (pass &&
                exphil_session_step_row(player.session, player.floats, player.ids, NULL, player.actions) < 0)
                return 1;
            took[t] = now() - start;
        }
        qsort(took, (size_t)steps, sizeof *took, compare);
        *(pass ? &call_ns : &clock_ns) = took[steps / 2];
    }
    printf("{\"host\":\"c\",\"median_ns\":%lld,\"clock_ns\":%lld,\"steps\":%lld}\n", (long long)call_ns,
           (long long)clock_ns, (long long)steps);
    free(took);
    close_player(&player);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "make")) return make(argv[2], argc > 3 ? atoll(argv[3]) : 10000);
    if (argc == 4 && !strcmp(argv[1], "check")) return check(argv[2], argv[3]);
    if (argc >= 3 && !strcmp(argv[1], "bench")) return bench(argv[2], argc > 3 ? atoll(argv[3]) : 100000);
    fprintf(stderr, "trace make FOLDER [FRAMES] | check MODEL TRACE | bench MODEL [STEPS]\n");
    return 2;
}
