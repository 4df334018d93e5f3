/* Rows of a corpus of games in a dataset: who is taken, and which stretches of its games are episodes. Of most games the
 * index alone tells; heads are read where players come and go, whole games where frames are missing or a number is
 * not finite. */
#include "data/game_rows.h"

/* One player of a game that is taken. */
typedef struct candidate {
    uint64_t content; /* of the game */
    int64_t game;
    int32_t port, opponent;
} candidate;

typedef struct adding {
    exphil_dataset *dataset;
    const exphil_games *games;
    xph_selector *selector;
    const exphil_selection *selection;
    xph_game_groups *groups;
    xph_row_source *source;
    candidate *players;
    int64_t player_count, player_capacity;
    xph_episode *episodes;
    int64_t count, capacity;
    exphil_selection_report report;
    /* of the game at hand */
    xph_game_entry entry;
    int64_t game;
    exphil_slp *slp; /* where it is read through */
} adding;

/* ---- who -------------------------------------------------------------------------------------------------- */

static exphil_status look_at(void *arg, int64_t game, const xph_game_entry *entry, exphil_error *error)
{
    adding *a = arg;
    a->report.games++;
    for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++) {
        if (!xph_game_plays(entry, port)) continue;
        int32_t opponent = 0, reason = xph_selector_refuses(a->selector, entry, port, &opponent);
        if (reason < 0 && xph_game_is_duplicate(a->groups, game)) reason = EXPHIL_REFUSED_DUPLICATE;
        a->report.players++;
        if (reason >= 0) {
            a->report.refused[reason]++;
            continue;
        }
        candidate *players = xph_grow(a->dataset->context, a->players, &a->player_capacity,
                                      a->player_count + 1, sizeof *players, error);
        if (!players) return EXPHIL_E_MEMORY;
        a->players = players;
        players[a->player_count++] = (candidate){entry->content_hash, game, port, opponent};
    }
    return EXPHIL_OK;
}

static bool before(const candidate *a, const candidate *b)
{
    if (a->content != b->content) return a->content < b->content;
    return a->port != b->port ? a->port < b->port : a->game < b->game;
}

/* Heap sort, so that the order of a corpus does not matter: no memory, and no slow case. */
static void sift(candidate *all, int64_t root, int64_t count)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(&all[child], &all[child + 1])) child++;
        if (!before(&all[root], &all[child])) return;
        candidate kept = all[root];
        all[root] = all[child];
        all[child] = kept;
    }
}

static void sort_players(candidate *all, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;) sift(all, i, count);
    while (count > 1) {
        candidate kept = all[0];
        all[0] = all[--count];
        all[count] = kept;
        sift(all, 0, count);
    }
}

/* ---- which rows ------------------------------------------------------------------------------------------- */

static xph_episode_facts facts_of(const adding *a, const candidate *player)
{
    const xph_game_entry *entry = &a->entry;
    int32_t opponent = player->opponent;
    const xph_game_keys keys = xph_game_keys_of(entry);
    return (xph_episode_facts){.game = entry->source_hash,
                               .group = keys.start,
                               .match = keys.match,
                               .port = player->port,
                               .opponent_port = opponent,
                               .stage = entry->stage,
                               .character = entry->port[player->port - 1].character,
                               .opponent_character = opponent ? entry->port[opponent - 1].character : -1};
}

/* Rows of a run of consecutive frames, of which the one at `position` has this number. */
static exphil_status add_run(adding *a, const candidate *player, int64_t position, int64_t frame,
                             int64_t frames, exphil_error *error)
{
    int64_t first = a->selection->first_frame,
            last = a->selection->last_frame ? a->selection->last_frame : INT32_MAX;
    int64_t skip = frame < first ? first - frame : 0,
            end = frame + frames - 1 > last ? last - frame + 1 : frames;
    if (skip >= end) return EXPHIL_OK;
    xph_episode *episodes =
        xph_grow(a->dataset->context, a->episodes, &a->capacity, a->count + 1, sizeof *episodes, error);
    if (!episodes) return EXPHIL_E_MEMORY;
    a->episodes = episodes;
    xph_episode_facts facts = facts_of(a, player);
    facts.first_game_frame = (int32_t)(frame + skip);
    xph_block *block;
    XPH_TRY(xph_block_of_game(a->source, player->game, player->content, position + skip, end - skip, &facts,
                              &block, error));
    episodes[a->count++] =
        (xph_episode){.block = block, .frames = end - skip, .hash = xph_game_rows_hash(block, 0, end - skip)};
    a->report.frames += end - skip;
    return EXPHIL_OK;
}

/* Frames of a game without gaps that the selection asks for. */
static int64_t frames_asked(const adding *a)
{
    int64_t low = a->selection->first_frame,
            high = a->selection->last_frame ? a->selection->last_frame : INT32_MAX;
    if (low < a->entry.first_frame) low = a->entry.first_frame;
    if (high > a->entry.last_frame) high = a->entry.last_frame;
    return high < low ? 0 : high - low + 1;
}

static exphil_status add_head_runs(adding *a, const candidate *player, exphil_error *error)
{
    xph_game_front *front;
    int64_t count;
    XPH_TRY(xph_game_front_read(a->games, player->game, &front, error));
    const xph_game_run *runs = xph_game_front_runs(front, &count);
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; i < count && status == EXPHIL_OK; i++)
        if (runs[i].port == (uint32_t)player->port)
            status = add_run(a, player, runs[i].position, runs[i].frame, runs[i].frames, error);
    xph_game_front_free(front);
    return status;
}

/* Can the row of the frame at this position be made? */
static bool has_row(const adding *a, const candidate *player, int64_t position)
{
    exphil_melee_frame state;
    exphil_pad pad;
    const char *culprit;
    float floats[512];
    int32_t ids[EXPHIL_IDS_MAX], action[EXPHIL_HEADS_MAX];
    if (!position ||
        exphil_slp_frame_at(a->slp, position - 1)->frame + 1 != exphil_slp_frame_at(a->slp, position)->frame)
        return false;
    return xph_melee_game_state(a->slp, position - 1, player->port, player->opponent, &state) &&
           xph_melee_game_pad(a->slp, position, player->port, &pad) &&
           xph_melee_pad_encode(a->source->codec, &pad, action, &culprit) >= 0 &&
           xph_melee_encode(a->source->layout, &state, floats, ids, &culprit) >= 0;
}

static exphil_status add_scanned_runs(adding *a, const candidate *player, exphil_error *error)
{
    int64_t frames = exphil_slp_frame_count(a->slp), begun = -1;
    int64_t low = a->selection->first_frame,
            high = a->selection->last_frame ? a->selection->last_frame : INT32_MAX;
    for (int64_t position = 0; position <= frames; position++) {
        int64_t number = position < frames ? exphil_slp_frame_at(a->slp, position)->frame : INT64_MAX;
        bool asked = position < frames && number >= low && number <= high;
        bool row = asked && has_row(a, player, position);
        if (asked && !row) a->report.frames_masked++;
        if (row && begun < 0) begun = position;
        if (row || begun < 0) continue;
        XPH_TRY(
            add_run(a, player, begun, exphil_slp_frame_at(a->slp, begun)->frame, position - begun, error));
        begun = -1;
    }
    return EXPHIL_OK;
}

static exphil_status add_player(adding *a, const candidate *player, exphil_error *error)
{
    int64_t rows = a->report.frames, masked = a->report.frames_masked, count = a->count;
    if (a->slp) {
        XPH_TRY(add_scanned_runs(a, player, error));
    } else {
        if (a->entry.port[player->port - 1].whole)
            XPH_TRY(add_run(a, player, 1, (int64_t)a->entry.first_frame + 1, (int64_t)a->entry.frames - 1,
                            error));
        else
            XPH_TRY(add_head_runs(a, player, error));
        a->report.frames_masked += frames_asked(a) - (a->report.frames - rows);
    }
    if (a->count > count) {
        a->report.taken++;
        a->report.episodes += a->count - count;
    } else {
        a->report.frames_masked = masked;
        a->report.refused[EXPHIL_REFUSED_EMPTY]++;
    }
    return EXPHIL_OK;
}

static exphil_status enter_game(adding *a, int64_t game, exphil_error *error)
{
    if (a->game == game) return EXPHIL_OK;
    xph_game_front *front;
    exphil_slp_destroy(a->slp);
    a->slp = NULL;
    a->game = -1;
    XPH_TRY(xph_game_front_read(a->games, game, &front, error));
    a->entry = *xph_game_front_entry(front);
    size_t bytes = xph_game_front_block_bytes(front);
    if (bytes > a->source->block_bytes) a->source->block_bytes = bytes;
    xph_game_front_free(front);
    bool plain = (a->entry.flags & (XPH_GAME_FINITE | XPH_GAME_GAPS)) == XPH_GAME_FINITE;
    if (!plain) XPH_TRY(exphil_games_read(a->games, game, &a->slp, error));
    a->game = game;
    return EXPHIL_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static exphil_status add_all(adding *a, exphil_error *error)
{
    XPH_TRY(xph_game_groups_make(a->games, a->selector, &a->groups, error));
    XPH_TRY(xph_games_each(a->games, look_at, a, error));
    sort_players(a->players, a->player_count);
    for (int64_t i = 0; i < a->player_count; i++) {
        if (xph_cancelled(a->dataset->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(enter_game(a, a->players[i].game, error));
        XPH_TRY(add_player(a, &a->players[i], error));
    }
    return xph_dataset_append(a->dataset, a->episodes, a->count, error);
}

static void end_adding(adding *a)
{
    exphil_context *context = a->dataset->context;
    exphil_slp_destroy(a->slp);
    for (int64_t i = 0; i < a->count; i++) xph_block_release(a->episodes[i].block);
    xph_free(context, a->episodes, (size_t)a->capacity * sizeof *a->episodes);
    xph_free(context, a->players, (size_t)a->player_capacity * sizeof *a->players);
    xph_game_groups_free(a->groups);
    xph_selector_free(a->selector);
    xph_row_source_release(a->source);
}

exphil_status exphil_dataset_add_games(exphil_dataset *dataset, const exphil_games *games,
                                       const exphil_selection *selection, exphil_selection_report *report,
                                       exphil_error *error)
{
    XPH_OWN_FPU;
    if (!games) return xph_fail(error, EXPHIL_E_INVALID, "games is NULL");
    XPH_TRY(xph_dataset_enter(dataset, error));
    adding a = {.dataset = dataset, .games = games, .report = EXPHIL_SELECTION_REPORT_INIT, .game = -1};
    const xph_melee_layout *layout;
    const xph_melee_codec *codec;
    exphil_status status = XPH_CHECK_OUTPUT(exphil_selection_report, report, error);
    if (status == EXPHIL_OK) status = xph_melee_of_dataset(dataset, &layout, &codec, error);
    if (status == EXPHIL_OK) status = xph_selector_create(dataset->context, selection, &a.selector, error);
    if (status == EXPHIL_OK) status = xph_row_source_create(games, layout, codec, &a.source, error);
    if (status == EXPHIL_OK) {
        a.selection = xph_selector_of(a.selector);
        status = add_all(&a, error);
    }
    if (status == EXPHIL_OK && report) status = XPH_GIVE(exphil_selection_report, report, &a.report, error);
    end_adding(&a);
    xph_dataset_leave(dataset);
    return status;
}

static exphil_status fill_dataset(exphil_dataset *dataset, const exphil_games *games, exphil_error *error)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    XPH_TRY(exphil_dataset_add_games(dataset, games, NULL, NULL, error));
    XPH_TRY(exphil_games_query(games, &info, error));
    dataset->recovered = info.recovered;
    return EXPHIL_OK;
}

exphil_status xph_dataset_of_games(exphil_context *context, const char *path, exphil_dataset **dataset,
                                   exphil_error *error)
{
    exphil_games *games;
    exphil_dataset *made = NULL;
    XPH_TRY(exphil_games_open(context, path, &games, error));
    exphil_status status = exphil_dataset_create(context, NULL, &made, error);
    if (status == EXPHIL_OK) status = fill_dataset(made, games, error);
    exphil_games_destroy(games);
    if (status < 0)
        exphil_dataset_destroy(made);
    else
        *dataset = made;
    return status;
}
