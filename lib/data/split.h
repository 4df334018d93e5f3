/* Private to lib/data: which episodes a split must keep together (split_groups.c). */
#ifndef XPH_DATA_SPLIT_H
#define XPH_DATA_SPLIT_H

#include "data/dataset.h"

/* Episodes of a dataset in groups: of one game, and of games that may be recordings of one match. */
typedef struct xph_split_groups {
    exphil_context *context;
    int64_t count; /* of episodes */
    xph_join join;
    uint64_t *game; /* [count] of a group, by its first episode: the least of its games (xph_game_key) */
    uint64_t
        *number;   /* [count] likewise: the least of its keys; what does not change when others are added */
    bool *several; /* [count] likewise: has more than one game; else undefined */
    int64_t group_count;
} xph_split_groups;
exphil_status xph_split_groups_make(const exphil_dataset *dataset, xph_split_groups *groups,
                                    exphil_error *error);
void xph_split_groups_free(xph_split_groups *groups);
/* The first episode of an episode's group. */
static inline int64_t xph_split_group(xph_split_groups *groups, int64_t episode)
{
    return xph_joined(&groups->join, episode);
}

/* cut [count], by first episodes: for each group of several games the earliest frame of the game from which on it has no
 * more than this share of its rows. */
exphil_status xph_split_cuts(xph_split_groups *groups, const exphil_dataset *dataset, double share,
                             int64_t *cut, exphil_error *error);

/* Rows of an episode from this frame of the game on. */
int64_t xph_rows_from_frame(const xph_episode *episode, int64_t frame);

/* Of so many things the number that is this share of them. */
static inline int64_t xph_share_of(double share, int64_t count)
{
    return (int64_t)(share * (double)count + 0.5);
}

#endif
