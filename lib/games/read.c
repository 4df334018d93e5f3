/* Looking into a corpus of games: what is known of a game, a game as a replay, a check of everything. */
#include "games/format.h"

/* ---- a game ------------------------------------------------------------------------------------------------ */

static exphil_game_info game_info(const xph_game_entry *entry)
{
    exphil_game_info info = {.struct_size = sizeof info,
                             .content_hash = entry->content_hash,
                             .source_hash = entry->source_hash,
                             .match_tag = (int32_t)entry->tag,
                             .day = entry->day,
                             .winner = entry->winner,
                             .certain_end = entry->certain_end,
                             .finite = entry->flags & XPH_GAME_FINITE ? 1 : 0};
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const xph_game_port *port = &entry->port[i];
        info.player[i] = (exphil_game_player){.damage_dealt = port->damage_dealt,
                                              .damage_taken = port->damage_taken,
                                              .stocks_taken = port->stocks_taken,
                                              .self_destructs = port->self_destructs,
                                              .end_stocks = port->end_stocks,
                                              .input_frames = (int32_t)port->input_frames};
    }
    return info;
}

exphil_status exphil_games_game(const exphil_games *games, int64_t index, exphil_game_info *info,
                                exphil_slp_info *settings, exphil_error *error)
{
    XPH_OWN_FPU;
    xph_game_front *front;
    if (!games) return xph_fail(error, EXPHIL_E_INVALID, "games is NULL");
    XPH_TRY(xph_context_check(games->context, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_game_info, info, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_slp_info, settings, error));
    XPH_TRY(xph_game_front_read(games, index, &front, error));
    exphil_game_info made = game_info(&front->entry);
    exphil_slp_info told = front->info;
    xph_game_front_free(front);
    if (info) XPH_TRY(XPH_GIVE(exphil_game_info, info, &made, error));
    return settings ? XPH_GIVE(exphil_slp_info, settings, &told, error) : EXPHIL_OK;
}

/* What one thread reads games with. */
typedef struct reader {
    xph_unpacker *unpacker;
    void *memory;
    size_t bytes;
} reader;

static void free_reader(exphil_context *context, reader *r)
{
    xph_unpacker_free(r->unpacker);
    xph_free(context, r->memory, r->bytes);
}

static exphil_status make_reader(exphil_context *context, size_t bytes, reader *r, exphil_error *error)
{
    if (!r->unpacker) XPH_TRY(xph_unpacker_create(context, &r->unpacker, error));
    if (r->bytes >= bytes) return EXPHIL_OK;
    xph_free(context, r->memory, r->bytes);
    r->bytes = 0;
    r->memory = xph_alloc(context, bytes);
    if (!r->memory) return xph_no_memory(bytes, error);
    r->bytes = bytes;
    return EXPHIL_OK;
}

static exphil_status take_blocks(const xph_game_front *front, reader *r, exphil_slp *slp, exphil_error *error)
{
    int64_t last = INT64_MIN;
    for (uint32_t k = 0; k < xph_game_blocks(front->entry.frames); k++) {
        xph_game_block block;
        XPH_TRY(xph_game_front_block(front, k, r->unpacker, r->memory, &block, error));
        if (block.frame[0].frame <= last || !xph_slp_assemble(slp, &block))
            return xph_game_damaged(front->file, front->game, front->at, "blocks that do not fit together",
                                    error);
        last = block.frame[block.shape.frames - 1].frame;
    }
    if (!xph_slp_assemble_end(slp))
        return xph_game_damaged(front->file, front->game, front->at, "fewer records or items than counted",
                                error);
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    XPH_TRY(exphil_slp_query(slp, &info, error));
    if (info.first_frame != front->entry.first_frame || info.last_frame != front->entry.last_frame)
        return xph_game_damaged(front->file, front->game, front->at,
                                "other frames than the game's front says", error);
    return EXPHIL_OK;
}

static exphil_status read_game(const xph_game_front *front, reader *r, exphil_slp **slp, exphil_error *error)
{
    int64_t records[XPH_GAME_SLOTS];
    exphil_slp *made = NULL;
    for (int32_t i = 0; i < XPH_GAME_SLOTS; i++) records[i] = front->start.records[i];
    XPH_TRY(make_reader(front->context, xph_game_front_block_bytes(front), r, error));
    XPH_TRY(xph_slp_assemble_begin(front->context, &front->info, front->entry.frames, front->entry.items,
                                   records, &made, error));
    exphil_status status = take_blocks(front, r, made, error);
    if (status < 0)
        exphil_slp_destroy(made);
    else
        *slp = made;
    return status;
}

exphil_status exphil_games_read(const exphil_games *games, int64_t index, exphil_slp **slp,
                                exphil_error *error)
{
    XPH_OWN_FPU;
    xph_game_front *front;
    reader r = {.unpacker = NULL};
    if (!games || !slp) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", games ? "slp" : "games");
    XPH_TRY(xph_context_check(games->context, error));
    XPH_TRY(xph_game_front_read(games, index, &front, error));
    exphil_status status = read_game(front, &r, slp, error);
    free_reader(games->context, &r);
    xph_game_front_free(front);
    return status;
}

/* ---- a check of everything ---------------------------------------------------------------------------------- */

/* What the frames say must be what the front says; what only the replay knew cannot be counted again. */
static const char *facts_wrong(const xph_game_front *front, const xph_game_entry *again)
{
    const xph_game_entry *entry = &front->entry;
    const uint8_t counted = XPH_GAME_FINITE | XPH_GAME_GAPS;
    if ((entry->flags & counted) != (again->flags & counted)) return "its flags are not those of its frames";
    if (memcmp(entry->port, again->port, sizeof entry->port) != 0)
        return "what its players did is not what its frames say";
    return entry->runs == again->runs ? NULL : "its runs are not those of its frames";
}

/* Who selects games reads the index, who reads one its front. */
static exphil_status check_listed(const exphil_games *games, int64_t game, const xph_game_front *front,
                                  exphil_error *error)
{
    xph_game_entry listed;
    XPH_TRY(xph_games_entry(games, game, &listed, error));
    return memcmp(&listed, &front->entry, sizeof listed) == 0
               ? EXPHIL_OK
               : xph_game_damaged(front->file, front->game, front->at,
                                  "the index says something else of this game", error);
}

static exphil_status check_game(const exphil_games *games, int64_t game, reader *r, exphil_error *error)
{
    xph_game_front *front;
    exphil_slp *slp = NULL;
    xph_game_run *runs = NULL;
    XPH_TRY(xph_game_front_read(games, game, &front, error));
    exphil_status status = check_listed(games, game, front, error);
    if (status == EXPHIL_OK) status = read_game(front, r, &slp, error);
    if (status == EXPHIL_OK) {
        xph_game_entry again;
        xph_game_start start;
        memset(&again, 0, sizeof again);
        memset(&start, 0, sizeof start);
        xph_game_describe(slp, &front->info, &again, &start);
        status = xph_game_runs(games->context, slp, &again, &runs, error);
        size_t bytes = again.runs * sizeof *runs;
        const char *wrong = facts_wrong(front, &again);
        if (!wrong && runs && memcmp(runs, front->runs, bytes) != 0)
            wrong = "its runs are not those of its frames";
        if (status == EXPHIL_OK && wrong)
            status = xph_game_damaged(front->file, front->game, front->at, wrong, error);
        xph_free(games->context, runs, bytes);
    }
    exphil_slp_destroy(slp);
    xph_game_front_free(front);
    return status;
}

typedef struct verifying {
    const exphil_games *games;
    reader *readers; /* one for each worker */
    exphil_status *statuses;
    int64_t first, count;
    exphil_error damage; /* of the first damaged game */
} verifying;

static void verify_one(void *arg, int64_t i, int32_t worker)
{
    verifying *v = arg;
    v->statuses[i] = check_game(v->games, v->first + i, &v->readers[worker], NULL);
}

/* Damage is logged, and no reason to stop. */
static void note_damage(verifying *v, const exphil_error *why)
{
    xph_log(v->games->context, EXPHIL_LOG_ERROR, "%s", why->message);
    if (v->damage.status == EXPHIL_OK) v->damage = *why;
}

/* Looks again at a game that failed, for the message. */
static exphil_status look_again(verifying *v, int64_t game, exphil_status first, exphil_error *error)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = check_game(v->games, game, &v->readers[0], &why);
    if (status == EXPHIL_OK && (first == EXPHIL_E_IO || first == EXPHIL_E_FORMAT)) {
        (void)xph_fail(&why, EXPHIL_E_IO, "game %lld could be read the second time only", (long long)game);
        status = EXPHIL_E_IO;
    }
    if (status == EXPHIL_E_FORMAT || status == EXPHIL_E_IO)
        note_damage(v, &why);
    else if (status < 0)
        return xph_fail_with(error, &why);
    return EXPHIL_OK;
}

/* What a file says as a whole. */
static exphil_status verify_shard(verifying *v, const xph_shard *shard, exphil_error *error)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    uint64_t content = 0;
    for (int64_t i = 0; i < shard->games; i++) {
        xph_game_entry entry;
        XPH_TRY(xph_games_entry(v->games, shard->first + i, &entry, error));
        content += xph_game_share(entry.content_hash);
    }
    exphil_status status = EXPHIL_OK;
    if (shard->damage)
        status = xph_games_damaged(shard->file, shard->damaged_at, shard->damage, &why);
    else if (content != shard->content)
        status = xph_games_damaged(shard->file, shard->file->file.bytes - sizeof(xph_games_trailer),
                                   "the games have another hash than the trailer says", &why);
    if (status < 0) note_damage(v, &why);
    return EXPHIL_OK;
}

/* Games that are begun together; in between the host may cancel. */
enum { BATCH = 256 };

static exphil_status verify_all(verifying *v, exphil_error *error)
{
    int64_t games = v->games->info.games;
    for (v->first = 0; v->first < games; v->first += BATCH) {
        v->count = games - v->first < BATCH ? games - v->first : BATCH;
        if (xph_cancelled(v->games->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        xph_parallel(v->games->context, verify_one, v, v->count);
        for (int64_t i = 0; i < v->count; i++)
            if (v->statuses[i] < 0) XPH_TRY(look_again(v, v->first + i, v->statuses[i], error));
    }
    for (int64_t i = 0; i < v->games->shard_count; i++) XPH_TRY(verify_shard(v, &v->games->shards[i], error));
    return v->damage.status < 0 ? xph_fail_with(error, &v->damage) : EXPHIL_OK;
}

exphil_status exphil_games_verify(const exphil_games *games, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!games) return xph_fail(error, EXPHIL_E_INVALID, "games is NULL");
    XPH_TRY(xph_context_check(games->context, error));
    exphil_context *context = games->context;
    size_t workers = (size_t)xph_workers(context),
           bytes = workers * sizeof(reader) + BATCH * sizeof(exphil_status);
    reader *readers = xph_calloc(context, 1, bytes);
    if (!readers) return xph_no_memory(bytes, error);
    verifying v = {.games = games,
                   .readers = readers,
                   .statuses = (exphil_status *)(void *)(readers + workers),
                   .damage = EXPHIL_ERROR_INIT};
    exphil_status status = verify_all(&v, error);
    for (size_t i = 0; i < workers; i++) free_reader(context, &readers[i]);
    xph_free(context, readers, bytes);
    return status;
}
