/* Any bytes as a block of a player: as they are, and laid over a good block whose hash is then made right. Byte 0 chooses the
 * model, byte 1 the first stream, bytes 2 and 3 the place. What is taken is learnt from. No crash, and nothing but the statuses
 * that blocks.h names; what is refused leaves a rollout that takes the good block. */
#include "block_case.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { CHOICES = 4, LANES = 2 };

typedef struct lair {
    learn_run learner;
    unsigned char *good, *work;
    size_t bytes;
} lair;

static void need(bool what, const char *says)
{
    if (what) return;
    (void)fprintf(stderr, "%s\n", says);
    abort();
}

static lair make(int choice)
{
    static const char *const patterns[CHOICES] = {"gru", "mlp", "attention", "mamba"};
    lair y = {.bytes = 0};
    noise n = {.fail_at = 0};
    learn_plan p = learn_plan_of(patterns[choice]);
    p.model.hidden = 8;
    p.model.heads = choice % 2;
    p.model.delay_frames = choice % 3;
    p.lanes = LANES;
    p.time = 4;
    p.learner.batches = p.learner.epochs = 1;
    p.learner.most_kl = 1e-300; /* always taken back: an input does not depend on those before it */
    learn_run player = learn_begin(&p);
    y.learner = learn_begin(&p);
    const exphil_world world = noise_world(&n, LANES);
    assert_ok(exphil_rollout_run(player.rollout, &world, NULL));
    y.good = block_of(&player, &y.bytes);
    y.work = malloc(y.bytes);
    need(y.work != NULL, "no memory");
    learn_end(&player);
    return y;
}

static void give(const lair *y, const uint8_t *block, size_t bytes, int64_t first)
{
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    exphil_rollout *rollout = y->learner.rollout;
    exphil_status said = exphil_block_query(block, bytes, &info, NULL);
    need(said == EXPHIL_OK || said == EXPHIL_E_FORMAT, "a query neither went well nor found damage");
    exphil_status status = exphil_rollout_block_take(rollout, first, EXPHIL_BLOCK_ANY, block, bytes, NULL);
    if (status == EXPHIL_END) {
        status = exphil_learner_update(y->learner.learner, rollout, NULL, NULL);
        need(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC, "an update neither went well nor overflowed");
        return;
    }
    if (status == EXPHIL_OK) { /* of one stream, by its own word */
        need(exphil_rollout_adopt(rollout, NULL, NULL) == EXPHIL_OK, "half a chunk was not given up");
        return;
    }
    need(status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH, "a block was refused by another status");
    status = exphil_rollout_block_take(rollout, 0, EXPHIL_BLOCK_ANY, y->good, y->bytes, NULL);
    need(status == EXPHIL_END, "the good block is refused after a bad one");
    need(exphil_rollout_adopt(rollout, NULL, NULL) == EXPHIL_OK, "a full chunk was not given up");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static lair lairs[CHOICES];
    if (bytes < 4) return 0;
    int choice = data[0] % CHOICES;
    if (!lairs[choice].good) lairs[choice] = make(choice);
    const lair *y = &lairs[choice];
    const int64_t first = data[1] % LANES;
    give(y, data + 4, bytes - 4, first);
    memcpy(y->work, y->good, y->bytes);
    size_t at = (size_t)(data[2] | data[3] << 8) % y->bytes;
    for (size_t i = 4; i < bytes && at < y->bytes; i++, at++) y->work[at] = data[i];
    block_forge(y->work, y->bytes);
    give(y, y->work, y->bytes, first);
    return 0;
}
