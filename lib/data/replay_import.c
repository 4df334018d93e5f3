/* Replays into episodes. Row t is what is known after frame t-1 and the controller that acted in frame t;
 * both frames must exist, follow each other, and contain the player, else an episode ends and the next good
 * frame begins another. Rows go through the same encoder and codec as live play. */
#include "data/game_rows.h"

#include <stdio.h>

#define PORTS      EXPHIL_SLP_PORTS
#define TYPE_HUMAN 0
#define TYPE_CPU   1
#define TYPE_EMPTY 3
#define LOOK_EVERY 1024 /* frames between looks at the cancel hook */

typedef struct importing {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_replay_config config;
    const xph_melee_layout *layout;
    const xph_melee_codec *codec;
    const exphil_slp *slp;
    exphil_slp_info info;
    uint64_t game;
    int64_t frames;  /* of the replay */
    int64_t run_end; /* position behind the frames that follow each other */
    /* Rows of the episode that is being gathered: memory for the rest of the run, so that an episode without gaps
     * is kept as it is. hasher has the hashes of its whole pieces, made while they are in the cache. */
    xph_block *scratch;
    xph_block_buffer buffer;
    int64_t gathered;
    xph_hasher hasher;
    xph_episode_facts facts; /* of the player at hand */
    xph_episode *episodes;   /* finished */
    int64_t count, episode_capacity;
    exphil_replay_result result;
} importing;

/* ---- what the rows are ------------------------------------------------------------------------------- */

/* The dataset's spec must be this library's own, or rows would not be what it says. */
exphil_status xph_melee_of_dataset(const exphil_dataset *dataset, const xph_melee_layout **layout,
                                   const xph_melee_codec **codec, exphil_error *error)
{
    const exphil_spec *spec = dataset->spec;
    exphil_spec own = EXPHIL_SPEC_INIT;
    *layout = xph_melee_layout_find(spec->layout);
    *codec = xph_melee_codec_find(spec->codec);
    if (!*layout || !*codec)
        return xph_fail(error, EXPHIL_E_INVALID, "replays need a Melee dataset; this one is %s with %s",
                        spec->layout, spec->codec);
    XPH_TRY(exphil_melee_spec(spec->layout, spec->codec, &own, error));
    if (exphil_spec_hash(&own) == dataset->spec_hash) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "the dataset calls itself %s with %s, but its spec has hash %016llx, not %016llx",
                    spec->layout, spec->codec, (unsigned long long)dataset->spec_hash,
                    (unsigned long long)exphil_spec_hash(&own));
}

/* ---- who plays --------------------------------------------------------------------------------------- */

static const exphil_slp_port *port_of(const importing *in, int32_t port)
{
    return &in->info.ports[port - 1];
}

static const char *type_name(uint8_t type)
{
    return type == TYPE_HUMAN ? "human" : type == TYPE_CPU ? "CPU" : "demo";
}

/* "P1 fox human, P2 falco CPU" */
static void say_who(const importing *in, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t port = 1; port <= PORTS && used < capacity; port++) {
        const exphil_slp_port *p = port_of(in, port);
        if (p->type >= TYPE_EMPTY) continue;
        const char *name = xph_melee_character_name(p->character);
        int written = snprintf(text + used, capacity - used, "%sP%d %s %s", used ? ", " : "", (int)port,
                               name ? name : "unknown", type_name(p->type));
        used += written > 0 ? (size_t)written : 0;
    }
    if (!used) snprintf(text, capacity, "nobody plays");
}

/* Only humans: for a computer player the game records no buttons, so that its rows would teach to press
 * none. */
static bool fits(const importing *in, int32_t port)
{
    const exphil_slp_port *p = port_of(in, port);
    if (p->type != TYPE_HUMAN || (in->config.port && in->config.port != port)) return false;
    return !in->config.character || p->character == xph_melee_character_find(in->config.character);
}

/* 0: there is none, as in a target test. */
static int32_t opponent_of(const importing *in, int32_t port)
{
    return in->config.opponent_port ? in->config.opponent_port : xph_melee_opponent(&in->info, port);
}

/* Players, and no frame: whoever was to play, it is broken. */
static bool is_broken(const importing *in)
{
    bool any = false;
    for (int32_t i = 1; i <= PORTS; i++) any = any || port_of(in, i)->type < TYPE_EMPTY;
    return any && !exphil_slp_frame_count(in->slp);
}

static exphil_status check_players(const importing *in, exphil_error *error)
{
    char who[120], where[40] = "";
    say_who(in, who, sizeof who);
    int32_t other = in->config.opponent_port;
    if (other && port_of(in, other)->type >= TYPE_EMPTY)
        return xph_fail(error, EXPHIL_E_INVALID, "opponent_port %d is empty; %s", (int)other, who);
    for (int32_t i = 1; i <= PORTS; i++) {
        if (fits(in, i) && i != other) return EXPHIL_OK;
    }
    if (is_broken(in)) return xph_fail(error, EXPHIL_E_INVALID, "the replay has no frames");
    if (in->config.port)
        snprintf(where, sizeof where, " on port %d", (int)in->config.port);
    else if (other)
        snprintf(where, sizeof where, " beside the opponent on port %d", (int)other);
    bool any = !in->config.character;
    return xph_fail(error, EXPHIL_E_INVALID, "no human player%s%.32s%s; %s", any ? "" : " plays ",
                    any ? "" : in->config.character, where, who);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

/* The piece that ends with the last row gathered. */
static exphil_status finish_piece(importing *in, exphil_error *error)
{
    const xph_row_shape *shape = &in->dataset->shape;
    int64_t first = (in->gathered - 1) / XPH_PIECE * XPH_PIECE, frames = in->gathered - first;
    xph_rows rows = xph_rows_from(shape, &in->scratch->rows, first);
    uint64_t hash = xph_piece_hash(shape, &rows, frames);
    xph_hash_add(&in->hasher, &hash, sizeof hash);
    xph_flaw flaw = xph_rows_flaw(shape, &rows, first, frames);
    if (flaw.kind == XPH_FLAW_NONE) return EXPHIL_OK;
    return xph_fail_within(error, xph_flaw_fail(shape, &flaw, error),
                           "the encoder made a row that is no row");
}

/* The gathered rows in a block of their length. */
static exphil_status take_block(importing *in, xph_block **taken, exphil_error *error)
{
    const xph_row_shape *shape = &in->dataset->shape;
    int64_t frames = in->gathered;
    if (frames == in->scratch->frames) {
        *taken = in->scratch;
        in->scratch = NULL;
        return EXPHIL_OK;
    }
    xph_block *block;
    xph_block_buffer buffer;
    XPH_TRY(xph_block_create(in->context, shape, frames, &block, &buffer, error));
    memcpy(buffer.floats, in->buffer.floats, (size_t)(frames * shape->floats) * sizeof *buffer.floats);
    memcpy(buffer.ids, in->buffer.ids, (size_t)(frames * shape->ids) * sizeof *buffer.ids);
    memcpy(buffer.actions, in->buffer.actions, (size_t)(frames * shape->action_bytes));
    *taken = block;
    return EXPHIL_OK;
}

/* What has been gathered becomes an episode of its own. */
static exphil_status finish_episode(importing *in, exphil_error *error)
{
    int64_t frames = in->gathered;
    if (!frames) return EXPHIL_OK;
    if (frames % XPH_PIECE) XPH_TRY(finish_piece(in, error));
    xph_episode *episodes =
        xph_grow(in->context, in->episodes, &in->episode_capacity, in->count + 1, sizeof *episodes, error);
    if (!episodes) return EXPHIL_E_MEMORY;
    in->episodes = episodes;
    xph_block *block;
    XPH_TRY(take_block(in, &block, error));
    block->hash = xph_hash_end(&in->hasher);
    block->facts = in->facts;
    episodes[in->count++] = (xph_episode){.block = block, .frames = frames, .hash = block->hash};
    in->gathered = 0;
    return EXPHIL_OK;
}

/* Memory for an episode that begins at this position. */
static exphil_status begin_episode(importing *in, int64_t position, exphil_error *error)
{
    xph_hash_begin(&in->hasher);
    if (position < in->run_end && in->scratch) return EXPHIL_OK; /* the run's buffer is large enough */
    int64_t end = position + 1;
    while (end < in->frames &&
           exphil_slp_frame_at(in->slp, end)->frame == exphil_slp_frame_at(in->slp, end - 1)->frame + 1 &&
           (!in->config.last_frame || exphil_slp_frame_at(in->slp, end)->frame <= in->config.last_frame))
        end++;
    in->run_end = end;
    xph_block_release(in->scratch);
    in->scratch = NULL;
    return xph_block_create(in->context, &in->dataset->shape, end - position, &in->scratch, &in->buffer,
                            error);
}

/* What the row of the frame at this position is made of; false: there is none. */
static bool look(const importing *in, int64_t position, int32_t port, int32_t opponent,
                 exphil_melee_frame *state, int32_t *action)
{
    const exphil_slp_frame *frame = exphil_slp_frame_at(in->slp, position);
    const exphil_slp_frame *before = exphil_slp_frame_at(in->slp, position - 1);
    const char *culprit;
    exphil_pad pad;
    return before && before->frame == frame->frame - 1 &&
           xph_melee_game_state(in->slp, position - 1, port, opponent, state) &&
           xph_melee_game_pad(in->slp, position, port, &pad) &&
           xph_melee_pad_encode(in->codec, &pad, action, &culprit) >= 0;
}

/* The row of the frame at this position behind those gathered. *found false: there is none. */
static exphil_status gather(importing *in, int64_t position, bool *found, exphil_error *error)
{
    const xph_row_shape *shape = &in->dataset->shape;
    int32_t action[EXPHIL_HEADS_MAX];
    exphil_melee_frame state;
    const char *culprit;
    int64_t row = in->gathered;
    *found = false;
    if (!look(in, position, in->facts.port, in->facts.opponent_port, &state, action)) return EXPHIL_OK;
    if (!row) XPH_TRY(begin_episode(in, position, error));
    if (xph_melee_encode(in->layout, &state, in->buffer.floats + row * shape->floats,
                         in->buffer.ids + row * shape->ids, &culprit) < 0)
        return EXPHIL_OK;
    xph_action_pack(shape, action, in->buffer.actions + row * shape->action_bytes);
    if (!row) in->facts.first_game_frame = exphil_slp_frame_at(in->slp, position)->frame;
    in->gathered++;
    *found = true;
    return in->gathered % XPH_PIECE ? EXPHIL_OK : finish_piece(in, error);
}

/* Does the frame at this position go on where the last gathered one ended? */
static bool follows(const importing *in, int64_t position)
{
    const exphil_slp_frame *frame = exphil_slp_frame_at(in->slp, position);
    return frame->frame == in->facts.first_game_frame + in->gathered;
}

static exphil_status import_player(importing *in, int32_t port, exphil_error *error)
{
    int32_t opponent = opponent_of(in, port);
    xph_game_keys keys = xph_slp_keys(in->slp, &in->info, in->game);
    in->run_end = 0;
    in->facts = (xph_episode_facts){.game = in->game,
                                    .group = keys.start,
                                    .match = keys.match,
                                    .port = port,
                                    .opponent_port = opponent,
                                    .stage = in->info.stage,
                                    .character = port_of(in, port)->character,
                                    .opponent_character = opponent ? port_of(in, opponent)->character : -1};
    for (int64_t position = 0; position < in->frames; position++) {
        int32_t frame = exphil_slp_frame_at(in->slp, position)->frame;
        if (frame < in->config.first_frame) continue;
        if (in->config.last_frame && frame > in->config.last_frame) break;
        if (position % LOOK_EVERY == 0 && xph_cancelled(in->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        if (in->gathered && !follows(in, position)) XPH_TRY(finish_episode(in, error));
        bool found;
        XPH_TRY(gather(in, position, &found, error));
        if (found) {
            in->result.frames++;
        } else {
            in->result.frames_masked++;
            XPH_TRY(finish_episode(in, error));
        }
    }
    return finish_episode(in, error);
}

/* ---- the replay -------------------------------------------------------------------------------------- */

static exphil_status import_all(importing *in, exphil_error *error)
{
    in->info.struct_size = sizeof in->info;
    XPH_TRY(exphil_slp_query(in->slp, &in->info, error));
    XPH_TRY(check_players(in, error));
    in->result.truncated = in->info.truncated || in->info.stop == EXPHIL_SLP_STOP_END_OF_FILE ||
                           in->info.stop == EXPHIL_SLP_STOP_UNKNOWN_CODE;
    in->frames = exphil_slp_frame_count(in->slp);
    if (!in->frames) return EXPHIL_OK;
    for (int32_t port = 1; port <= PORTS; port++) {
        if (fits(in, port) && port != in->config.opponent_port) XPH_TRY(import_player(in, port, error));
    }
    in->result.episodes = in->count;
    return xph_dataset_append(in->dataset, in->episodes, in->count, error);
}

static exphil_status unknown_character(const char *name, exphil_error *error)
{
    char alike[120];
    xph_melee_character_alike(name, alike, sizeof alike);
    return xph_fail(error, EXPHIL_E_INVALID, "character \"%.60s\" is unknown%s", name, alike);
}

static exphil_status check_config(const importing *in, exphil_error *error)
{
    const exphil_replay_config *c = &in->config;
    if (c->character && xph_melee_character_find(c->character) < 0)
        return unknown_character(c->character, error);
    if (c->port < 0 || c->port > PORTS)
        return xph_fail(error, EXPHIL_E_INVALID, "port is %d, must be 0..%d", (int)c->port, PORTS);
    if (c->opponent_port < 0 || c->opponent_port > PORTS) {
        return xph_fail(error, EXPHIL_E_INVALID, "opponent_port is %d, must be 0..%d", (int)c->opponent_port,
                        PORTS);
    }
    if (c->port && c->port == c->opponent_port)
        return xph_fail(error, EXPHIL_E_INVALID, "port and opponent_port are both %d", (int)c->port);
    if (c->last_frame && c->last_frame < c->first_frame) {
        return xph_fail(error, EXPHIL_E_INVALID, "last_frame %d is before first_frame %d", (int)c->last_frame,
                        (int)c->first_frame);
    }
    return EXPHIL_OK;
}

static void end_import(importing *in)
{
    for (int64_t i = 0; i < in->count; i++) xph_block_release(in->episodes[i].block);
    xph_free(in->context, in->episodes, (size_t)in->episode_capacity * sizeof *in->episodes);
    xph_block_release(in->scratch);
}

static exphil_status add_replay(exphil_dataset *dataset, const void *data, size_t bytes,
                                const exphil_replay_config *config, exphil_replay_result *result,
                                exphil_error *error)
{
    importing in = {.context = dataset->context,
                    .dataset = dataset,
                    .config = EXPHIL_REPLAY_CONFIG_INIT,
                    .result = EXPHIL_REPLAY_RESULT_INIT};
    XPH_TRY(XPH_TAKE(exphil_replay_config, &in.config, config, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_replay_result, result, error)); /* before anything is added */
    XPH_TRY(xph_melee_of_dataset(dataset, &in.layout, &in.codec, error));
    XPH_TRY(check_config(&in, error));
    exphil_slp *slp = NULL;
    XPH_TRY(exphil_slp_read(in.context, data, bytes, NULL, &slp, error));
    in.slp = slp;
    in.game = xph_hash(data, bytes);
    exphil_status status = import_all(&in, error);
    if (status == EXPHIL_OK && result) status = XPH_GIVE(exphil_replay_result, result, &in.result, error);
    end_import(&in);
    exphil_slp_destroy(slp);
    return status;
}

/* ---- rows of one player without a dataset ------------------------------------------------------------ */

/* Where they go; NULL: nowhere. */
typedef struct row_target {
    int64_t capacity, floats_each, ids_each, heads;
    int32_t *frames;
    float *floats;
    int32_t *ids, *actions;
} row_target;

/* false: there is no row at this position. Rows behind the capacity are only counted. */
static bool give_row(const importing *in, int64_t position, const row_target *to, int64_t row)
{
    float floats[XPH_ROW_FLOATS_MOST];
    int32_t ids[EXPHIL_IDS_MAX], action[EXPHIL_HEADS_MAX], port = in->config.port;
    exphil_melee_frame state;
    const char *culprit;
    if (!look(in, position, port, opponent_of(in, port), &state, action)) return false;
    if (xph_melee_encode(in->layout, &state, floats, ids, &culprit) < 0) return false;
    if (row >= to->capacity) return true;
    if (to->frames) to->frames[row] = exphil_slp_frame_at(in->slp, position)->frame;
    if (to->floats)
        memcpy(to->floats + row * to->floats_each, floats, (size_t)to->floats_each * sizeof *floats);
    if (to->ids) memcpy(to->ids + row * to->ids_each, ids, (size_t)to->ids_each * sizeof *ids);
    if (to->actions) memcpy(to->actions + row * to->heads, action, (size_t)to->heads * sizeof *action);
    return true;
}

static int64_t give_rows(const importing *in, const row_target *to)
{
    int64_t rows = 0;
    for (int64_t position = 0; position < in->frames; position++) {
        int32_t frame = exphil_slp_frame_at(in->slp, position)->frame;
        if (frame < in->config.first_frame) continue;
        if (in->config.last_frame && frame > in->config.last_frame) break;
        rows += give_row(in, position, to, rows);
    }
    return rows;
}

exphil_status exphil_slp_melee_rows(const exphil_slp *slp, const char *layout, const char *codec,
                                    const exphil_replay_config *config, int64_t capacity, int32_t *frames,
                                    float *floats, int32_t *ids, int32_t *actions, int64_t *count,
                                    exphil_error *error)
{
    XPH_OWN_FPU;
    importing in = {.slp = slp, .config = EXPHIL_REPLAY_CONFIG_INIT, .info = EXPHIL_SLP_INFO_INIT};
    exphil_spec spec = EXPHIL_SPEC_INIT;
    XPH_TRY(exphil_slp_query(slp, &in.info, error));
    XPH_TRY(XPH_TAKE(exphil_replay_config, &in.config, config, error));
    XPH_TRY(exphil_melee_spec(layout, codec, &spec, error));
    XPH_TRY(check_config(&in, error));
    if (!in.config.port) return xph_fail(error, EXPHIL_E_INVALID, "port is 0, must be 1..%d", PORTS);
    XPH_TRY(check_players(&in, error));
    if (capacity < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "capacity is %lld, must not be negative",
                        (long long)capacity);
    if (!count) return xph_fail(error, EXPHIL_E_INVALID, "count is NULL");
    in.layout = xph_melee_layout_find(spec.layout);
    in.codec = xph_melee_codec_find(spec.codec);
    in.frames = exphil_slp_frame_count(slp);
    const row_target to = {capacity, spec.float_count, spec.id_count, spec.head_count,
                           frames,   floats,           ids,           actions};
    *count = give_rows(&in, &to);
    return EXPHIL_OK;
}

/* ---- public ------------------------------------------------------------------------------------------ */

exphil_status exphil_dataset_add_replay(exphil_dataset *dataset, const char *path,
                                        const exphil_replay_config *config, exphil_replay_result *result,
                                        exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    xph_file_data file = {.context = dataset->context};
    exphil_status status = xph_slp_file_read(dataset->context, path, 0, &file, error);
    if (status == EXPHIL_OK) {
        status = add_replay(dataset, file.data, file.bytes, config, result, error);
        if (status < 0) xph_fail_within(error, status, "\"%s\"", path);
        xph_file_release(&file);
    }
    xph_dataset_leave(dataset);
    return status;
}

exphil_status exphil_dataset_add_replay_memory(exphil_dataset *dataset, const void *data, size_t size_bytes,
                                               const exphil_replay_config *config,
                                               exphil_replay_result *result, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = data ? add_replay(dataset, data, size_bytes, config, result, error)
                                : xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    xph_dataset_leave(dataset);
    return status;
}
