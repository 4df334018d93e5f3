/* Blocks and weights on their way. */
#include "block_case.h"

#include "learn/block.h"

#include <stdlib.h>

unsigned char *block_of(const learn_run *player, size_t *bytes)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *bytes = exphil_rollout_block_size(player->rollout);
    unsigned char *block = malloc(*bytes);
    assert_non_null(block);
    memset(block, 0xA5, *bytes);
    if (exphil_rollout_block_save(player->rollout, block, *bytes, &error) < 0) fail_msg("%s", error.message);
    return block;
}

exphil_status block_give(const learn_run *player, learn_run *learner, int64_t first)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    unsigned char *block = block_of(player, &bytes);
    exphil_status status =
        exphil_rollout_block_take(learner->rollout, first, EXPHIL_BLOCK_CURRENT, block, bytes, &error);
    free(block);
    if (status < 0) fail_msg("%s", error.message);
    return status;
}

void block_return(const learn_run *learner, learn_run *player)
{
    exphil_model *model = NULL, *sent = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    const char *path = test_path("sent.safetensors");
    assert_ok(exphil_trainer_model(learner->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_save(model, path, NULL));
    exphil_model_destroy(model);
    char *file = test_read(path, &bytes);
    assert_ok(exphil_model_load_memory(player->context, file, bytes, &sent, NULL));
    free(file);
    if (exphil_rollout_adopt(player->rollout, sent, &error) < 0) fail_msg("%s", error.message);
    exphil_model_destroy(sent);
}

exphil_learner_metrics block_learn(learn_run *learner)
{
    exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_learner_update(learner->learner, learner->rollout, &m, &error) < 0)
        fail_msg("%s", error.message);
    return m;
}

void block_forge(unsigned char *block, size_t bytes)
{
    uint64_t hash = xph_hash(block + offsetof(xph_flat_head, bytes), bytes - offsetof(xph_flat_head, bytes));
    memcpy(block + offsetof(xph_flat_head, hash), &hash, sizeof hash);
}
