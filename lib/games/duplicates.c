/* Which games of a corpus are recordings of one match. Equal keys propose it: they keep games together, and that is all,
 * since recorders write seeds of 16 bits, or 0, and a tag has 24. Equal inputs confirm it: only then is one left out. */
#include "games/format.h"

/* ---- keys ---------------------------------------------------------------------------------------------------- */

/* 0 means none. */
static uint64_t some(uint64_t hash)
{
    return hash ? hash : 0x9E3779B97F4A7C15u;
}

xph_game_keys xph_game_keys_of(const xph_game_entry *entry)
{
    struct {
        uint32_t seed;
        uint16_t stage;
        uint8_t mode, teams;
        uint8_t port[EXPHIL_SLP_PORTS][4]; /* type, character, costume, team */
        uint64_t instead;                  /* of a seed */
    } start = {entry->seed, entry->stage, entry->game_mode, entry->teams != 0, {{0}}, 0};
    struct {
        uint32_t tag, stage;
        uint8_t character[EXPHIL_SLP_PORTS]; /* 255: nobody plays */
    } match = {entry->tag, entry->stage, {255, 255, 255, 255}};
    /* Some recorders write no seed: not all games of theirs are one. */
    if (!entry->seed) start.instead = entry->digest[0] ? entry->digest[0] : entry->source_hash;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const xph_game_port *port = &entry->port[i];
        start.port[i][0] = 3;
        if (!xph_game_plays(entry, i + 1)) continue; /* what else stands there is nobody's */
        const uint8_t who[4] = {port->type, port->character, port->costume, entry->teams ? port->team : 0};
        memcpy(start.port[i], who, sizeof who);
        match.character[i] = port->character;
    }
    _Static_assert(sizeof start == 32 && sizeof match == 12, "without padding");
    return (xph_game_keys){.start = some(xph_hash(&start, sizeof start)),
                           .match = entry->tag ? some(xph_hash(&match, sizeof match)) : 0};
}

xph_game_keys xph_slp_keys(const exphil_slp *slp, const exphil_slp_info *info, uint64_t source_hash)
{
    xph_game_entry entry;
    memset(&entry, 0, sizeof entry);
    entry.source_hash = source_hash;
    if (!info->seed) entry.digest[0] = xph_game_first_inputs(slp, info);
    entry.seed = info->seed;
    entry.tag = xph_slp_match_tag(slp);
    entry.stage = info->stage;
    entry.game_mode = info->game_mode;
    entry.teams = info->teams;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        entry.port[i].type = info->ports[i].type;
        entry.port[i].character = info->ports[i].character;
        entry.port[i].costume = info->ports[i].costume;
        entry.port[i].team = info->ports[i].team;
    }
    return xph_game_keys_of(&entry);
}

/* ---- what is known of a game ----------------------------------------------------------------------------------- */

#define RUNGS 3 /* of digests of inputs */

typedef struct known {
    uint64_t content, source;
    uint32_t digest[RUNGS], frames;
    int32_t last_frame, problems;
    bool complete, asked; /* asked: the selector takes a player */
} known;

struct xph_game_groups {
    exphil_context *context;
    int64_t count;
    uint64_t *number;   /* [count] */
    uint8_t *duplicate; /* [count] */
};

typedef struct grouping {
    exphil_context *context;
    const xph_selector *selector; /* NULL: all are asked for */
    bool all_recordings;          /* only equal content is left out */
    int64_t count;
    xph_game_groups *groups;
    known *games;                      /* [count] */
    uint64_t *start, *match;           /* [count] keys */
    uint32_t *size, *begin, *together; /* [count] of groups by their least game; games, group after group */
    xph_join join;
    xph_set kept; /* what the games of the group at hand that are kept can be recognized by */
    int64_t grouped, largest, dropped;
} grouping;

static bool is_asked(const grouping *g, const xph_game_entry *entry)
{
    int32_t opponent;
    if (!g->selector) return true;
    for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++)
        if (xph_game_plays(entry, port) && xph_selector_refuses(g->selector, entry, port, &opponent) < 0)
            return true;
    return false;
}

enum { LOOK_EVERY = 4096 }; /* games between looks at the cancel hook */

static exphil_status note(void *arg, int64_t game, const xph_game_entry *entry, exphil_error *error)
{
    grouping *g = arg;
    if (game % LOOK_EVERY == 0 && xph_cancelled(g->context))
        return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
    xph_game_keys keys = xph_game_keys_of(entry);
    known *k = &g->games[game];
    *k = (known){.content = entry->content_hash,
                 .source = entry->source_hash,
                 .frames = entry->frames,
                 .last_frame = entry->last_frame,
                 .problems = xph_game_problems(entry),
                 .complete = xph_game_complete(entry),
                 .asked = is_asked(g, entry)};
    memcpy(k->digest, entry->digest, sizeof k->digest);
    g->start[game] = keys.start;
    g->match[game] = keys.match;
    return EXPHIL_OK;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static void number_groups(grouping *g)
{
    uint64_t *number = g->groups->number;
    for (int64_t i = 0; i < g->count; i++) {
        int64_t root = xph_joined(&g->join, i); /* at most i, and met before */
        if (root == i || g->start[i] < number[root]) number[root] = g->start[i];
    }
    for (int64_t i = 0; i < g->count; i++) number[i] = number[xph_joined(&g->join, i)];
}

/* Puts the games of each group side by side. */
static void gather_groups(grouping *g)
{
    uint32_t at = 0;
    memset(g->size, 0, (size_t)g->count * sizeof *g->size);
    for (int64_t i = 0; i < g->count; i++) g->size[xph_joined(&g->join, i)]++;
    for (int64_t i = 0; i < g->count; i++) {
        g->begin[i] = at;
        at += g->size[i];
    }
    for (int64_t i = 0; i < g->count; i++) g->together[g->begin[xph_joined(&g->join, i)]++] = (uint32_t)i;
    for (int64_t i = 0; i < g->count; i++) g->begin[i] -= g->size[i];
}

/* Is game a to be kept rather than game b? Nothing of it depends on where they lie, but for the same file twice. */
static bool better(const grouping *g, uint32_t a, uint32_t b)
{
    const known *x = &g->games[a], *y = &g->games[b];
    if (x->complete != y->complete) return x->complete;
    if (x->frames != y->frames) return x->frames > y->frames;
    if (x->problems != y->problems) return x->problems < y->problems;
    if (x->content != y->content) return x->content < y->content;
    return x->source != y->source ? x->source < y->source : a < b;
}

static void sift(const grouping *g, uint32_t *games, int64_t i, int64_t count)
{
    uint32_t game = games[i];
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && better(g, games[child], games[child + 1])) child++;
        if (!better(g, game, games[child])) break;
        games[i] = games[child];
    }
    games[i] = game;
}

/* The best one first. Heap sort: no memory, and no slow case. */
static void sort_group(const grouping *g, uint32_t *games, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;) sift(g, games, i, count);
    for (int64_t last = count - 1; last > 0; last--) {
        uint32_t worst = games[0];
        games[0] = games[last];
        games[last] = worst;
        sift(g, games, 0, last);
    }
}

/* ---- duplicates -------------------------------------------------------------------------------------------------- */

/* What a kept game is recognized by: its content, both keys, or its inputs up to a rung. A game that is not complete
 * may end anywhere; two that are complete must end about the same frame. */
enum { BY_CONTENT = 1, BY_KEYS = 2, BY_INPUTS = 3, BY_ALL_INPUTS = 4 /* it reaches no higher rung */ };
enum { ENDS_ANYWHERE = -1, END_STEP = 64 };
/* Most marks that one game leaves. */
enum { MARKS = 2 + 2 * (RUNGS + 1) };

typedef struct mark {
    uint64_t a, b;
    uint32_t digest[RUNGS];
    int32_t kind, end, reserved;
} mark;

static uint64_t mark_of(const mark *m)
{
    return xph_hash(m, sizeof *m);
}

static uint64_t by_content(const known *k)
{
    return mark_of(&(mark){.a = k->content, .kind = BY_CONTENT});
}

static uint64_t by_keys(const grouping *g, uint32_t game)
{
    return mark_of(&(mark){.a = g->start[game], .b = g->match[game], .kind = BY_KEYS});
}

/* Digests up to a rung: all of them, since they have 32 bits each. */
static uint64_t by_inputs(const known *k, int32_t rung, int32_t kind, int32_t end)
{
    mark m = {.kind = kind, .end = end};
    for (int32_t i = 0; i <= rung; i++) m.digest[i] = k->digest[i];
    return mark_of(&m);
}

/* The highest rung that a game reaches; -1: none. */
static int32_t top_rung(const known *k)
{
    int32_t rung = -1;
    while (rung + 1 < RUNGS && k->digest[rung + 1]) rung++;
    return rung;
}

static int32_t end_of(const known *k)
{
    return (k->last_frame + EXPHIL_SLP_FRAME_LIMIT) / END_STEP;
}

/* Has a kept game the inputs of this one, at the highest rung that both reach? */
static bool same_inputs(const grouping *g, const known *k)
{
    int32_t top = top_rung(k), first = k->complete ? end_of(k) - 1 : ENDS_ANYWHERE,
            last = k->complete ? first + 2 : ENDS_ANYWHERE;
    for (int32_t rung = 0; rung <= top; rung++)
        for (int32_t end = first; end <= last; end++)
            if (xph_set_has(&g->kept, by_inputs(k, rung, rung == top ? BY_INPUTS : BY_ALL_INPUTS, end)))
                return true;
    return false;
}

static void keep(grouping *g, uint32_t game)
{
    const known *k = &g->games[game];
    int32_t top = top_rung(k);
    xph_set_add(&g->kept, by_content(k));
    if (g->match[game]) xph_set_add(&g->kept, by_keys(g, game));
    for (int32_t pass = 0; pass < (k->complete ? 2 : 1); pass++) {
        int32_t end = pass ? end_of(k) : ENDS_ANYWHERE;
        for (int32_t rung = 0; rung <= top; rung++) xph_set_add(&g->kept, by_inputs(k, rung, BY_INPUTS, end));
        if (top >= 0) xph_set_add(&g->kept, by_inputs(k, top, BY_ALL_INPUTS, end));
    }
}

static bool is_known(const grouping *g, uint32_t game)
{
    const known *k = &g->games[game];
    if (xph_set_has(&g->kept, by_content(k))) return true;
    if (g->all_recordings) return false;
    return (g->match[game] && xph_set_has(&g->kept, by_keys(g, game))) || same_inputs(g, k);
}

static exphil_status look_at_group(grouping *g, uint32_t *games, int64_t count, exphil_error *error)
{
    exphil_status status = EXPHIL_OK;
    sort_group(g, games, count);
    xph_set_begin(g->context, &g->kept);
    for (int64_t i = 0; i < count && status == EXPHIL_OK; i++) {
        if (!g->games[games[i]].asked) continue;
        if (is_known(g, games[i])) {
            g->groups->duplicate[games[i]] = 1;
            g->dropped++;
            continue;
        }
        status = xph_set_reserve(&g->kept, MARKS, error);
        if (status == EXPHIL_OK) keep(g, games[i]);
    }
    xph_set_free(&g->kept);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

static exphil_status look_at_all(grouping *g, const exphil_games *games, exphil_error *error)
{
    XPH_TRY(xph_games_each(games, note, g, error));
    xph_join_equal(&g->join, g->start);
    xph_join_equal(&g->join, g->match);
    for (int64_t i = 0; i < g->count; i++) g->groups->number[i] = g->games[i].content;
    xph_join_equal(&g->join, g->groups->number);
    number_groups(g);
    gather_groups(g);
    for (int64_t i = 0; i < g->count; i++) {
        if (i % LOOK_EVERY == 0 && xph_cancelled(g->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        if (g->size[i] > g->largest) g->largest = g->size[i];
        if (g->size[i] < 2) continue;
        g->grouped += g->size[i];
        XPH_TRY(look_at_group(g, g->together + g->begin[i], g->size[i], error));
    }
    if (g->grouped)
        xph_log(g->context, EXPHIL_LOG_INFO,
                "%lld of %lld games may be recordings of matches that others record too, the largest group "
                "of them "
                "%lld; %lld are left out",
                (long long)g->grouped, (long long)g->count, (long long)g->largest, (long long)g->dropped);
    return EXPHIL_OK;
}

/* Bytes of the arrays that end with the call, and of those that stay. */
static size_t passing_bytes(int64_t count)
{
    return (size_t)count * (sizeof(known) + 2 * sizeof(uint64_t) + 3 * sizeof(uint32_t));
}

static size_t staying_bytes(int64_t count)
{
    return sizeof(xph_game_groups) + (size_t)count * (sizeof(uint64_t) + 1);
}

/* g->games is the memory of all passing arrays. */
static exphil_status begin_grouping(grouping *g, exphil_error *error)
{
    size_t count = (size_t)g->count;
    XPH_TRY(xph_join_begin(g->context, g->count, &g->join, error));
    g->games = xph_alloc(g->context, passing_bytes(g->count));
    g->groups = xph_alloc(g->context, staying_bytes(g->count));
    if (!g->games || !g->groups)
        return xph_no_memory(passing_bytes(g->count) + staying_bytes(g->count), error);
    g->start = (uint64_t *)(void *)(g->games + count);
    g->match = g->start + count;
    g->size = (uint32_t *)(void *)(g->match + count);
    g->begin = g->size + count;
    g->together = g->begin + count;
    xph_game_groups *groups = g->groups;
    groups->context = g->context;
    groups->count = g->count;
    groups->number = (uint64_t *)(void *)(groups + 1);
    groups->duplicate = (uint8_t *)(groups->number + count);
    memset(groups->duplicate, 0, count);
    return EXPHIL_OK;
}

exphil_status xph_game_groups_make(const exphil_games *games, const xph_selector *selector,
                                   xph_game_groups **groups, exphil_error *error)
{
    grouping g = {.context = games->context, .selector = selector, .count = games->info.games};
    g.all_recordings = selector && xph_selector_of(selector)->duplicates;
    if (g.count >= UINT32_MAX)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "%lld games are more than can be compared",
                        (long long)g.count);
    exphil_status status = begin_grouping(&g, error);
    if (status == EXPHIL_OK) status = look_at_all(&g, games, error);
    xph_join_free(&g.join);
    xph_free(g.context, g.games, passing_bytes(g.count));
    if (status < 0)
        xph_free(g.context, g.groups, staying_bytes(g.count));
    else
        *groups = g.groups;
    return status;
}

void xph_game_groups_free(xph_game_groups *groups)
{
    if (groups) xph_free(groups->context, groups, staying_bytes(groups->count));
}

uint64_t xph_game_group(const xph_game_groups *groups, int64_t game)
{
    return groups->number[game];
}

bool xph_game_is_duplicate(const xph_game_groups *groups, int64_t game)
{
    return groups->duplicate[game];
}
