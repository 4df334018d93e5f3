/* Groups of episodes that a split keeps together: those that have the number of their game in common, or a key of its match.
 * Which games and episodes came first does not matter. */
#include "data/split.h"

/* ---- groups ------------------------------------------------------------------------------------------------ */

static const xph_episode_facts *facts_of(const exphil_dataset *dataset, int64_t episode)
{
    return &dataset->episodes[episode].block->facts;
}

static void join_all(xph_split_groups *groups, const exphil_dataset *dataset, uint64_t *keys)
{
    for (int64_t i = 0; i < groups->count; i++) keys[i] = xph_game_key(facts_of(dataset, i)->game);
    xph_join_equal(&groups->join, keys);
    for (int64_t i = 0; i < groups->count; i++) keys[i] = facts_of(dataset, i)->group;
    xph_join_equal(&groups->join, keys);
    for (int64_t i = 0; i < groups->count; i++) keys[i] = facts_of(dataset, i)->match;
    xph_join_equal(&groups->join, keys);
}

static void describe(xph_split_groups *groups, const exphil_dataset *dataset)
{
    for (int64_t i = 0; i < groups->count; i++) {
        const xph_episode_facts *facts = facts_of(dataset, i);
        uint64_t game = xph_game_key(facts->game), number = facts->group ? facts->group : game;
        int64_t first = xph_split_group(groups, i); /* at most i, and met before */
        if (first == i) {
            groups->group_count++;
            groups->game[i] = game;
            groups->number[i] = number;
            groups->several[i] = false;
        }
        if (game != groups->game[first]) groups->several[first] = true;
        if (game < groups->game[first]) groups->game[first] = game;
        if (number < groups->number[first]) groups->number[first] = number;
    }
}

/* Bytes of the three arrays. */
static size_t array_bytes(int64_t count)
{
    return (size_t)count * (2 * sizeof(uint64_t) + sizeof(bool));
}

exphil_status xph_split_groups_make(const exphil_dataset *dataset, xph_split_groups *groups,
                                    exphil_error *error)
{
    int64_t count = dataset->episode_count;
    *groups = (xph_split_groups){.context = dataset->context, .count = count};
    XPH_TRY(xph_join_begin(dataset->context, count, &groups->join, error));
    groups->game = xph_alloc(dataset->context, array_bytes(count));
    if (!groups->game) return xph_no_memory(array_bytes(count), error);
    groups->number = groups->game + count;
    groups->several = (bool *)(groups->number + count);
    join_all(groups, dataset, groups->number);
    describe(groups, dataset);
    return EXPHIL_OK;
}

void xph_split_groups_free(xph_split_groups *groups)
{
    if (!groups->context) return;
    xph_join_free(&groups->join);
    xph_free(groups->context, groups->game, array_bytes(groups->count));
}

/* ---- by time ------------------------------------------------------------------------------------------------- */

int64_t xph_rows_from_frame(const xph_episode *episode, int64_t frame)
{
    int64_t first = episode->block->facts.first_game_frame + episode->offset;
    if (frame <= first) return episode->frames;
    return frame >= first + episode->frames ? 0 : first + episode->frames - frame;
}

/* A group whose cut is looked for among frames low..high: from `high` on it has no more rows than may be held out. */
typedef struct search {
    int64_t low, high;
    int64_t may, rows; /* held out; rows from the frame between on */
} search;

static int64_t between(const search *s)
{
    return s->low + (s->high - s->low) / 2;
}

/* One step for all groups at once. False: there is none to take. */
static bool narrow(xph_split_groups *groups, const exphil_dataset *dataset, search *searches)
{
    bool open = false;
    for (int64_t i = 0; i < groups->count; i++) searches[i].rows = 0;
    for (int64_t i = 0; i < groups->count; i++) {
        search *s = &searches[xph_split_group(groups, i)];
        s->rows += xph_rows_from_frame(&dataset->episodes[i], between(s));
    }
    for (int64_t i = 0; i < groups->count; i++) {
        search *s = &searches[i];
        if (s->low >= s->high) continue;
        if (s->rows <= s->may)
            s->high = between(s);
        else
            s->low = between(s) + 1;
        open = true;
    }
    return open;
}

exphil_status xph_split_cuts(xph_split_groups *groups, const exphil_dataset *dataset, double share,
                             int64_t *cut, exphil_error *error)
{
    size_t bytes = (size_t)groups->count * sizeof(search);
    search *searches = xph_calloc(groups->context, 1, bytes);
    if (!searches) return xph_no_memory(bytes, error);
    for (int64_t i = 0; i < groups->count; i++)
        searches[xph_split_group(groups, i)].rows += dataset->episodes[i].frames;
    for (int64_t i = 0; i < groups->count; i++) {
        searches[i].may = xph_share_of(share, searches[i].rows);
        if (xph_split_group(groups, i) != i || !groups->several[i]) continue;
        searches[i].low = INT32_MIN;
        searches[i].high = INT32_MAX + XPH_FRAMES_MAX;
    }
    while (narrow(groups, dataset, searches)) continue;
    for (int64_t i = 0; i < groups->count; i++) cut[i] = searches[i].low;
    xph_free(groups->context, searches, bytes);
    return EXPHIL_OK;
}
