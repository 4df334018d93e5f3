/* The policy's session. Also the trace of what it was given and what it answered, in the form that every host of the library
 * replays (tests/hosts/trace.h in its sources). */
#define _POSIX_C_SOURCE 200809L /* S_ISREG */
#include "plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the trace ---- */

struct trace_start {
    char magic[8];
    int32_t floats, ids, heads, logits, deterministic, reserved;
    uint64_t seed;
    int64_t frames;
};

static void write_trace_start(uint64_t seed, int32_t deterministic)
{
    struct trace_start start = {.magic = {'e', 'x', 'p', 'h', 't', 'r', 'c', '1'},
                                .frames = plugin.player.trace_rows};
    start.floats = plugin.map.floats;
    start.ids = plugin.map.ids;
    start.heads = plugin.map.heads;
    start.logits = (int32_t)plugin.player.info.logit_count;
    start.seed = seed;
    start.deterministic = deterministic;
    fwrite(&start, sizeof start, 1, plugin.player.trace);
}

static void open_trace(uint64_t seed, int32_t deterministic)
{
    const char *path = system_variable("EXPHIL_TRACE_FILE");
    uint64_t most = INT64_MAX;
    if (!path || !*path || plugin_number("EXPHIL_TRACE_FRAMES", 1, INT64_MAX, &most)) return;
    if (system_is_special(path)) { /* to open a pipe would wait for its reader */
        plugin_tell("%s: not a regular file: no trace", path);
        return;
    }
    plugin.player.trace = system_open(path, "wb");
    if (!plugin.player.trace) {
        plugin_tell("%s: %s: no trace", path, strerror(errno));
        return;
    }
    plugin.player.trace_most = (int64_t)most;
    write_trace_start(seed, deterministic);
}

void plugin_trace_end(const char *why)
{
    FILE *file = plugin.player.trace;
    if (!file) return;
    int64_t frames = plugin.player.trace_rows;
    fseek(file, (long)offsetof(struct trace_start, frames), SEEK_SET);
    fwrite(&frames, sizeof frames, 1, file);
    int failed = ferror(file);
    if (fclose(file) || failed) plugin_tell("the trace could not be written: %s", strerror(errno));
    plugin.player.trace = NULL;
    plugin_say(RETRO_LOG_INFO, "trace of %lld frames, ended by %s", (long long)frames, why);
}

static void trace_row(void)
{
    FILE *file = plugin.player.trace;
    int32_t reset = plugin.begun;
    int64_t logits = plugin.player.info.logit_count;
    if (!file) return;
    if (exphil_session_logits(plugin.player.session, 0, plugin.logits, logits) < 0) {
        plugin_trace_end("logits that cannot be had");
        return;
    }
    fwrite(&reset, sizeof reset, 1, file);
    fwrite(plugin.floats, sizeof(float), (size_t)plugin.map.floats, file);
    fwrite(plugin.ids, sizeof(int32_t), (size_t)plugin.map.ids, file);
    fwrite(plugin.action, sizeof(int32_t), (size_t)plugin.map.heads, file);
    fwrite(plugin.logits, sizeof(float), (size_t)logits, file);
    if (++plugin.player.trace_rows == plugin.player.trace_most) plugin_trace_end("EXPHIL_TRACE_FRAMES");
}

/* ---- the policy ---- */

static int open_session(exphil_session_config *config, exphil_error *error)
{
    struct plugin_player *player = &plugin.player;
    exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    context.threads = 1; /* a frame's step is small; the frontend's thread does it */
    player->info.struct_size = sizeof player->info;
    if (exphil_context_create(&context, &player->context, error) < 0 ||
        exphil_model_load(player->context, player->path, &player->model, error) < 0 ||
        exphil_model_query(player->model, &info, error) < 0 ||
        exphil_model_spec(player->model, &spec, error) < 0)
        return -1;
    if (plugin_fit(&spec, error->message, sizeof error->message)) return -1;
    if (exphil_session_create(player->model, config, &player->session, error) < 0 ||
        exphil_session_query(player->session, &player->info, error) < 0)
        return -1;
    player->weights = info.weights_hash;
    return 0;
}

/* Settings, weights, session. -1: told. */
static int open_player(void)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    const char *choice = plugin_setting("EXPHIL_CHOICE", "exphil_choice");
    config.spec = &plugin.map.spec;
    config.seed = 1;
    config.adoptable = 1; /* as the one that learns is: a save state has one size, whatever the mode */
    config.deterministic = plugin.player.likeliest = choice && !strcmp(choice, "likeliest");
    if (plugin_number("EXPHIL_SEED", 0, UINT64_MAX, &config.seed)) return -1;
    if (open_session(&config, &error)) {
        plugin_tell("%s: %s", plugin.player.path, error.message);
        return -1;
    }
    plugin.logits = calloc((size_t)plugin.player.info.logit_count + 1, sizeof(float));
    if (!plugin.logits) {
        plugin_tell("no memory");
        return -1;
    }
    open_trace(config.seed, config.deterministic);
    return 0;
}

void plugin_player_open(const char *weights)
{
    struct plugin_player *player = &plugin.player;
    if (weights)
        snprintf(player->path, sizeof player->path, "%s", weights);
    else if (plugin_path("EXPHIL_MODEL", ".safetensors", 0, player->path))
        return;
    if (!open_player()) return;
    plugin_player_close();
    player->failed = 1;
}

int plugin_player_step(void)
{
    struct plugin_player *player = &plugin.player;
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t start = plugin_now();
    if ((plugin.begun && exphil_session_reset(player->session, -1) < 0) ||
        exphil_session_step_row(player->session, plugin.floats, plugin.ids, NULL, plugin.action) < 0) {
        exphil_session_error(player->session, &error);
        plugin_tell("the policy stops: %s", error.message);
        player->failed = 1;
        return -1;
    }
    plugin.step_ns[player->rows % PLUGIN_TIMES] = (int32_t)(plugin_now() - start);
    trace_row();
    return 0;
}

void plugin_player_close(void)
{
    plugin_trace_end("the end of the game");
    exphil_session_destroy(plugin.player.session);
    exphil_model_destroy(plugin.player.model);
    exphil_context_destroy(plugin.player.context);
    free(plugin.logits);
    plugin.logits = NULL;
    memset(&plugin.player, 0, sizeof plugin.player);
}
