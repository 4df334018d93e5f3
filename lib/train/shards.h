/* Same bits for any number of ranks (exphil_trainer_config.shards): what is summed over a batch is summed within its shards, and
 * shards are joined by one binary tree, neighbours first: ((0 + 1) + (2 + 3)) + ... A rank has neighbouring shards, a subtree;
 * ranks join subtrees. */
#ifndef XPH_TRAIN_SHARDS_H
#define XPH_TRAIN_SHARDS_H

#include "train/train.h"

enum { XPH_SHARDS_MOST = 1024 };

/* Joins so many numbers, a power of two; they are overwritten. */
static inline double xph_tree_sum(double *number, int64_t count)
{
    for (int64_t apart = 1; apart < count; apart *= 2)
        for (int64_t i = 0; i + apart < count; i += 2 * apart) number[i] += number[i + apart];
    return number[0];
}
static inline bool xph_is_sharded(const exphil_trainer *trainer)
{
    return trainer->shards > 1;
}
static inline int64_t xph_own_shards(const exphil_trainer *trainer)
{
    return xph_is_sharded(trainer) ? trainer->shards / trainer->communicator.ranks : 1;
}
/* Settings of shards that cannot be: EXPHIL_E_INVALID, EXPHIL_E_UNSUPPORTED, by name. batch: of all ranks; 0: not known yet. */
exphil_status xph_shards_check(const exphil_trainer *trainer, int64_t batch, exphil_error *error);
/* Memory for a trainer's own shards, with its shape. */
exphil_status xph_shards_make(exphil_trainer *trainer, exphil_error *error);
void xph_shards_drop(exphil_trainer *trainer);
/* The gradients of the shard that was just computed, and its losses of heads, take their place in the tree. After the last one
 * trainer->gradients and control->head have those of all. */
exphil_status xph_shards_join(exphil_trainer *trainer, int64_t shard);

#endif
