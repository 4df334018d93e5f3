/* Blocks that nobody should trust: damaged, cut, forged with a right hash, and of other players. Each is refused by a status and
 * a message that names field and byte, and the rollout goes on as if it had not been. */
#include "block_case.h"

#include "learn/block.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A small chunk, so that every byte can be tried. */
static learn_plan small_plan(void)
{
    learn_plan p = learn_plan_of("gru");
    p.model.hidden = 8;
    p.model.delay_frames = 1;
    p.lanes = 2;
    p.time = 4;
    p.learner.batches = 1;
    return p;
}

/* A learner, and a block that it would take. */
typedef struct prey {
    learn_plan plan;
    learn_run learner;
    unsigned char *block, *work;
    size_t bytes;
    xph_flat_part part[XPH_FLAT_PARTS];
} prey;

/* Row 1 ends an episode, and its action is somebody else's. */
static void play(learn_run *player, int64_t lanes)
{
    static const int32_t other[] = {5, 1, 3};
    noise n = {.fail_at = 0};
    exphil_status status = EXPHIL_OK;
    for (int t = 0; status == EXPHIL_OK; t++) {
        float floats[13 * NOISE_LANES], reward[NOISE_LANES];
        int32_t ids[2 * NOISE_LANES], actions[3 * NOISE_LANES];
        uint8_t ends[NOISE_LANES];
        for (int64_t b = 0; b < lanes; b++) noise_row(&n, b, floats + 13 * b, ids + 2 * b);
        assert_ok(exphil_rollout_step(player->rollout, floats, ids, actions));
        for (int64_t b = 0; b < lanes; b++) {
            if (t == 1) assert_ok(exphil_session_override(exphil_rollout_session(player->rollout), b, other));
            reward[b] = (float)(t + b);
            ends[b] = (uint8_t)(t == 1 ? 1 + b % 2 : EXPHIL_GOES_ON);
        }
        status = exphil_rollout_reward(player->rollout, reward, ends, floats, ids);
    }
    assert_int_equal(status, EXPHIL_END);
}

static prey prey_begin(learn_plan p)
{
    prey y = {.plan = p, .learner = learn_begin(&p)};
    learn_run player = learn_begin(&p);
    play(&player, p.lanes);
    y.block = block_of(&player, &y.bytes);
    y.work = malloc(y.bytes);
    assert_non_null(y.work);
    assert_true(xph_flat_parts(y.learner.rollout, p.lanes, y.part) == y.bytes);
    learn_end(&player);
    return y;
}

/* The good block is taken as if nothing had been. */
static void prey_end(prey *y)
{
    uint64_t before = learn_weights(&y->learner);
    assert_int_equal(
        exphil_rollout_block_take(y->learner.rollout, 0, EXPHIL_BLOCK_CURRENT, y->block, y->bytes, NULL),
        EXPHIL_END);
    size_t bytes;
    unsigned char *kept = block_of(&y->learner, &bytes);
    assert_memory_equal(kept, y->block, y->bytes);
    free(kept);
    assert_true(block_learn(&y->learner).recomputed == 0.0);
    assert_true(learn_weights(&y->learner) != before);
    learn_end(&y->learner);
    free(y->block);
    free(y->work);
}

static exphil_status give(prey *y, const unsigned char *block, size_t bytes, exphil_error *error)
{
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    exphil_status status =
        exphil_rollout_block_take(y->learner.rollout, 0, EXPHIL_BLOCK_ANY, block, bytes, error);
    if (status < 0) assert_true(error->status == status && error->message[0]);
    if (status < 0) assert_true(y->learner.rollout->received == 0 && y->learner.rollout->decided == 0);
    return status;
}

/* ---- accidents ------------------------------------------------------------------------------------------------------- */

static void every_byte_counts(void **unused)
{
    prey y = prey_begin(small_plan());
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    exphil_error error;
    if (xph_hash_equal(1, 2)) skip(); /* a build for fuzzing: hashes say nothing */
    memcpy(y.work, y.block, y.bytes);
    for (size_t i = 0; i < y.bytes; i++) {
        y.work[i] ^= (unsigned char)(1u << i % 8);
        assert_int_equal(give(&y, y.work, y.bytes, &error), EXPHIL_E_FORMAT);
        assert_int_equal(exphil_block_query(y.work, y.bytes, &info, NULL), EXPHIL_E_FORMAT);
        y.work[i] = y.block[i];
    }
    assert_true(info.streams == 0);
    prey_end(&y);
}

/* In memory of just their size, so that a sanitizer sees what is read behind them. */
static void cut_anywhere(void **unused)
{
    prey y = prey_begin(small_plan());
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    exphil_error error;
    for (size_t bytes = 0; bytes < y.bytes; bytes++) {
        unsigned char *part = malloc(bytes ? bytes : 1);
        assert_non_null(part);
        memcpy(part, y.block, bytes);
        assert_int_equal(give(&y, part, bytes, &error), EXPHIL_E_FORMAT);
        assert_int_equal(exphil_block_query(part, bytes, &info, NULL), EXPHIL_E_FORMAT);
        if (bytes > sizeof(xph_flat_head)) { /* also where it says so itself */
            uint64_t said = bytes;
            memcpy(part + offsetof(xph_flat_head, bytes), &said, sizeof said);
            block_forge(part, bytes);
            assert_int_equal(give(&y, part, bytes, &error), EXPHIL_E_FORMAT);
        }
        free(part);
    }
    unsigned char *more = calloc(1, y.bytes + 64);
    assert_non_null(more);
    memcpy(more, y.block, y.bytes);
    assert_int_equal(give(&y, more, y.bytes + 64, &error), EXPHIL_E_FORMAT);
    free(more);
    prey_end(&y);
}

/* ---- forgers --------------------------------------------------------------------------------------------------------- */

/* One number of a part becomes value: FORMAT, and the message says which. */
static void refuse_number(prey *y, const xph_flat_part *part, int64_t i, const void *value)
{
    char place[128];
    exphil_error error;
    size_t at = part->at + (size_t)i * part->element;
    memcpy(y->work, y->block, y->bytes);
    memcpy(y->work + at, value, part->element);
    block_forge(y->work, y->bytes);
    if (give(y, y->work, y->bytes, &error) != EXPHIL_E_FORMAT)
        fail_msg("%s, number %lld: %d %s", part->name, (long long)i, error.status, error.message);
    assert_says(&error, part->name);
    /* an action is named by its first number */
    int64_t told = part->kind == XPH_FLAT_ACTIONS ? i / 3 * 3 : i;
    (void)snprintf(place, sizeof place, "stream %lld, row %lld, number %lld, byte %zu",
                   (long long)(told / part->width / part->rows), (long long)(told / part->width % part->rows),
                   (long long)(told % part->width), part->at + (size_t)told * part->element);
    assert_says(&error, place);
}

static void refuse_each(prey *y, const xph_flat_part *part, const void *values, int count)
{
    const int64_t all = y->plan.lanes * part->rows * part->width;
    for (int64_t i = 0; i < all; i++)
        for (int k = 0; k < count; k++)
            refuse_number(y, part, i, (const unsigned char *)values + (size_t)k * part->element);
}

static void numbers_out_of_range(void **unused)
{
    static const float floats[] = {NAN, INFINITY, -INFINITY};
    static const double doubles[] = {NAN, INFINITY, -INFINITY}, logs[] = {NAN, -INFINITY, 1e-9, 1e300};
    static const int32_t ids[] = {-1, 7, INT32_MAX, INT32_MIN}, actions[] = {-1, 8, INT32_MAX, INT32_MIN};
    static const int64_t frames[] = {-1, INT64_MAX, INT64_MIN, (int64_t)1 << 49};
    static const uint8_t ends[] = {3, 255}, flags[] = {2, 255};
    prey y = prey_begin(small_plan());
    for (int i = 0; i < XPH_FLAT_PARTS; i++) {
        const xph_flat_part *part = &y.part[i];
        switch (part->kind) {
        case XPH_FLAT_FLOATS:
            refuse_each(&y, part, floats, 3);
            break;
        case XPH_FLAT_DOUBLES:
            refuse_each(&y, part, doubles, 3);
            break;
        case XPH_FLAT_IDS:
            refuse_each(&y, part, ids, 4);
            break;
        case XPH_FLAT_ACTIONS:
            refuse_each(&y, part, actions, 4);
            break;
        case XPH_FLAT_LOGS:
            refuse_each(&y, part, logs, 4);
            break;
        case XPH_FLAT_FRAMES:
            refuse_each(&y, part, frames, 4);
            break;
        case XPH_FLAT_ENDS:
            refuse_each(&y, part, ends, 2);
            break;
        case XPH_FLAT_FLAGS:
        case XPH_FLAT_RESETS:
            refuse_each(&y, part, flags, 2);
            break;
        }
    }
    prey_end(&y);
}

static const xph_flat_part *part_named(const prey *y, const char *name)
{
    for (int i = 0; i < XPH_FLAT_PARTS; i++)
        if (strcmp(y->part[i].name, name) == 0) return &y->part[i];
    fail_msg("no part %s", name);
    return NULL;
}

/* Numbers that are in range, but not beside the others. */
static void numbers_that_do_not_fit_together(void **unused)
{
    prey y = prey_begin(small_plan());
    const xph_flat_part *logs = part_named(&y, "log-probability"), *resets = part_named(&y, "reset"),
                        *frames = part_named(&y, "episode's frames");
    static const double likely = -1e-3;
    static const int64_t none = 0, some = 5;
    uint8_t flag;
    for (int64_t row = 0; row < 5; row++) {
        if (row != 1) refuse_number(&y, logs, row, &likely); /* row 1 is somebody else's */
        refuse_number(&y, frames, row, y.block[part_named(&y, "end")->at + (size_t)row] ? &none : &some);
        flag = !y.block[resets->at + (size_t)row];
        if (row) refuse_number(&y, resets, row, &flag);
    }
    prey_end(&y);
}

/* The head, field by field, by numbers that are no such block's. */
static void heads_that_lie(void **unused)
{
    static const uint64_t lies[] = {0,
                                    1,
                                    3,
                                    4096,
                                    UINT32_MAX,
                                    (uint64_t)1 << 32,
                                    (uint64_t)1 << 60,
                                    (uint64_t)1 << 62,
                                    INT64_MAX,
                                    (uint64_t)1 << 63,
                                    UINT64_MAX,
                                    UINT64_MAX - 7};
    prey y = prey_begin(small_plan());
    exphil_error error;
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    for (size_t at = 0; at < sizeof(xph_flat_head); at += 8)
        for (size_t k = 0; k < sizeof lies / sizeof lies[0]; k++) {
            memcpy(y.work, y.block, y.bytes);
            memcpy(y.work + at, &lies[k], sizeof lies[k]);
            if (memcmp(y.work, y.block, y.bytes) == 0) continue;
            if (at != offsetof(xph_flat_head, hash)) block_forge(y.work, y.bytes);
            exphil_status status = give(&y, y.work, y.bytes, &error);
            exphil_status said = exphil_block_query(y.work, y.bytes, &info, NULL);
            assert_true(said == EXPHIL_OK || said == EXPHIL_E_FORMAT);
            if (at == offsetof(xph_flat_head, weights)) { /* any weights: the host asked for it */
                assert_int_equal(status, EXPHIL_END);
                assert_ok(exphil_rollout_adopt(y.learner.rollout, NULL, NULL));
            } else if (at == offsetof(xph_flat_head, hash) && xph_hash_equal(1, 2)) {
                assert_int_equal(status, EXPHIL_END);
                assert_ok(exphil_rollout_adopt(y.learner.rollout, NULL, NULL));
            } else {
                if (status != EXPHIL_E_FORMAT && status != EXPHIL_E_MISMATCH)
                    fail_msg("byte %zu, %llu: %d", at, (unsigned long long)lies[k], status);
                assert_says(&error, "byte");
            }
        }
    prey_end(&y);
}

/* Any bytes anywhere, with a right hash: refused, or learnt from as the finite numbers that they are. */
static void whatever_is_taken_is_harmless(void **unused)
{
    prey y = prey_begin(small_plan());
    xph_rng rng = {.seed = 8, .stream = XPH_RNG_TEST};
    exphil_error error;
    int64_t taken = 0, refused = 0;
    for (int k = 0; k < 4000; k++) {
        memcpy(y.work, y.block, y.bytes);
        for (int64_t changes = 1 + (int64_t)xph_rng_below(&rng, 3); changes > 0; changes--) {
            size_t at = sizeof(xph_flat_head) + xph_rng_below(&rng, y.bytes - sizeof(xph_flat_head));
            y.work[at] = (unsigned char)xph_rng_u32(&rng);
        }
        block_forge(y.work, y.bytes);
        exphil_status status = give(&y, y.work, y.bytes, &error);
        if (status < 0) {
            assert_int_equal(status, EXPHIL_E_FORMAT);
            refused++;
            continue;
        }
        assert_int_equal(status, EXPHIL_END);
        if (++taken % 40 == 0) {
            status = exphil_learner_update(y.learner.learner, y.learner.rollout, NULL, &error);
            assert_true(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC);
        } else
            assert_ok(exphil_rollout_adopt(y.learner.rollout, NULL, NULL));
    }
    assert_true(taken > 400 && refused > 400);
    learn_end(&y.learner);
    free(y.block);
    free(y.work);
}

/* ---- blocks of others ------------------------------------------------------------------------------------------------ */

static void refuse_player(const learn_plan *p, const char *words)
{
    prey y = prey_begin(small_plan()), other = prey_begin(*p);
    exphil_error error;
    assert_int_equal(give(&y, other.block, other.bytes, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, words);
    assert_says(&error, "byte");
    prey_end(&other);
    prey_end(&y);
}

static void other_players_are_refused(void **unused)
{
    learn_plan p = small_plan();
    p.model.blocks = "lstm";
    refuse_player(&p, "model of another configuration");
    p = small_plan();
    p.model.hidden = 16;
    refuse_player(&p, "model of another configuration");
    p = small_plan();
    p.model.delay_frames = 3;
    refuse_player(&p, "delay_frames is 3 (byte 64), this rollout's is 1");
    p = small_plan();
    p.time = 5;
    refuse_player(&p, "time is 5 (byte 56), this rollout's is 4");
    p = small_plan();
    p.lanes = 3;
    refuse_player(&p, "streams is 3 (byte 48), this rollout has 2");
    p = small_plan();
    p.play[2].temperature = 0.5f;
    refuse_player(&p, "heads[2].temperature");
}

/* CartPole's rows, with a model of its own. */
static void another_layout_is_refused(void **unused)
{
    prey y = prey_begin(small_plan());
    exphil_error error;
    exphil_world world = {0};
    exphil_model *model = NULL;
    exphil_rollout *rollout = NULL;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_model_config how = EXPHIL_MODEL_CONFIG_INIT;
    assert_ok(exphil_world_create(y.learner.context, "cartpole", 1, &world, NULL));
    how.spec = world.spec;
    how.blocks = "gru";
    how.hidden = 8;
    how.value = EXPHIL_VALUE_SHARED;
    config.time = 4;
    assert_ok(exphil_model_create(y.learner.context, &how, &model, NULL));
    assert_ok(exphil_rollout_create(model, NULL, &config, &rollout, NULL));
    assert_ok(exphil_rollout_run(rollout, &world, NULL));
    size_t bytes = exphil_rollout_block_size(rollout);
    unsigned char *block = malloc(bytes);
    assert_non_null(block);
    assert_ok(exphil_rollout_block_save(rollout, block, bytes, NULL));
    assert_int_equal(give(&y, block, bytes, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "rows are of another layout");
    assert_int_equal(exphil_rollout_adopt(y.learner.rollout, model, &error), EXPHIL_E_MISMATCH);
    free(block);
    exphil_rollout_destroy(rollout);
    exphil_model_destroy(model);
    exphil_world_destroy(&world);
    prey_end(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(numbers_that_do_not_fit_together),
        cmocka_unit_test(heads_that_lie),
        cmocka_unit_test(whatever_is_taken_is_harmless),
        cmocka_unit_test(other_players_are_refused),
        cmocka_unit_test(another_layout_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
