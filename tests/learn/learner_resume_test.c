/* A run that learns from what it plays goes on from its checkpoint to the last bit: weights, games, draws, teacher. Damaged and
 * foreign checkpoints are refused, and change nothing. */
#include "learn_case.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 5, BEFORE = 2 };

static char place[512];

static int32_t load_fails(void *user, int64_t lane, const void *state)
{
    if (lane == 3) return 9;
    memcpy(&((noise *)user)->rng[lane], state, sizeof(xph_rng));
    return 0;
}

static learn_plan plan_of(int k)
{
    static const char *const patterns[] = {"gru attention", "mamba", "lstm ffn", "mlp"};
    learn_plan p = learn_plan_of(patterns[k]);
    p.model.delay_frames = k == 1 ? 3 : 0;
    p.model.neutral_start = 1;
    p.model.heads = k % 2;
    p.taught = k != 3;
    p.learner.to_teacher = k != 3 ? 0.1 : 0.0;
    p.learner.most_kl = k == 2 ? 0.01 : 0.0;
    return p;
}

static void it_goes_on_to_the_last_bit(void **unused)
{
    for (int k = 0; k < 4; k++) {
        learn_plan p = plan_of(k);
        noise n = {.fail_at = 0}, other = {.fail_at = 0};
        exphil_learner_metrics m[CHUNKS], again;
        exphil_error error = EXPHIL_ERROR_INIT;
        learn_run r = learn_begin(&p);
        const exphil_world world = noise_kept_world(&n, p.lanes), fresh = noise_kept_world(&other, p.lanes);
        for (int i = 0; i < CHUNKS; i++) {
            m[i] = learn_chunk(&r, &world);
            if (i + 1 == BEFORE && exphil_learner_save(r.learner, r.rollout, &world, place, &error) < 0)
                fail_msg("%s", error.message);
        }
        uint64_t weights = learn_weights(&r);
        learn_end(&r);
        p.threads = 2;
        r = learn_begin(&p);
        if (exphil_learner_resume(r.learner, r.rollout, &fresh, place, &error) < 0)
            fail_msg("%s", error.message);
        for (int i = BEFORE; i < CHUNKS; i++) {
            again = learn_chunk(&r, &fresh);
            assert_memory_equal(&again, &m[i], sizeof again);
        }
        assert_true(learn_weights(&r) == weights);
        assert_memory_equal(n.rng, other.rng, sizeof n.rng);
        learn_end(&r);
    }
}

/* A checkpoint of CHUNKS chunks is there. */
static void make_checkpoint(const learn_plan *p)
{
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(p);
    const exphil_world world = noise_kept_world(&n, p->lanes);
    for (int i = 0; i < BEFORE; i++) learn_chunk(&r, &world);
    assert_ok(exphil_learner_save(r.learner, r.rollout, &world, place, NULL));
    learn_end(&r);
}

static void refuse(learn_plan p, const char *words)
{
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes);
    uint64_t before = learn_weights(&r);
    assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &world, place, &error), EXPHIL_E_MISMATCH);
    if (!strstr(error.message, words)) fail_msg("%s: %s", words, error.message);
    assert_true(learn_weights(&r) == before);
    learn_chunk(&r, &world); /* as if nothing had been */
    learn_end(&r);
}

static void another_run_is_refused(void **unused)
{
    learn_plan p = plan_of(0);
    make_checkpoint(&p);
    learn_plan other = p;
    other.learner.clip = 0.3;
    refuse(other, "learner.clip 0.2, this run has 0.3");
    other = p;
    other.learner.seed = 9;
    refuse(other, "learner.seed 0, this run has 9");
    other = p;
    other.play[1].temperature = 0.5f;
    refuse(other, "session's other settings");
    other = p;
    other.lanes = 12;
    refuse(other, "learner has");
    other = p;
    other.taught = false;
    other.learner.to_teacher = 0.0;
    refuse(other, "learner has");
}

static void what_cannot_be_is_refused(void **unused)
{
    learn_plan p = plan_of(3);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    make_checkpoint(&p);
    learn_run r = learn_begin(&p);
    exphil_world world = noise_kept_world(&n, p.lanes);
    assert_int_equal(exphil_learner_save(r.learner, r.rollout, &world, place, &error), EXPHIL_E_STATE);
    assert_int_equal(exphil_learner_save(NULL, r.rollout, &world, place, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_learner_save(r.learner, r.rollout, &world, "", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_learner_resume(r.learner, NULL, &world, place, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &world, "/nowhere/at-all", &error),
                     EXPHIL_E_IO);
    exphil_world mute = noise_world(&n, p.lanes);
    assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &mute, place, &error), EXPHIL_E_UNSUPPORTED);
    /* the world is not to be had back: the rollout refuses until it is */
    world.load = load_fails;
    assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &world, place, &error), EXPHIL_E_IO);
    assert_non_null(strstr(error.message, "load failed with 9"));
    assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_STATE);
    world.load = noise_kept_world(&n, p.lanes).load;
    assert_ok(exphil_learner_resume(r.learner, r.rollout, &world, place, &error));
    exphil_learner_metrics m = learn_chunk(&r, &world);
    assert_int_equal(m.chunks, BEFORE + 1);
    /* in the midst of a chunk there is no place to save or to come back to */
    float floats[13 * 6] = {0};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    learn_run alone = learn_begin(&p);
    assert_ok(exphil_rollout_step(alone.rollout, floats, ids, actions));
    assert_int_equal(exphil_learner_save(alone.learner, alone.rollout, NULL, place, &error), EXPHIL_E_STATE);
    assert_non_null(strstr(error.message, "1 of its rows"));
    assert_int_equal(exphil_learner_resume(alone.learner, alone.rollout, NULL, place, &error),
                     EXPHIL_E_STATE);
    learn_end(&alone);
    /* the trainer alone takes what is its own */
    alone = learn_begin(&p);
    assert_ok(exphil_trainer_resume(alone.trainer, place, &error));
    learn_end(&alone);
    learn_end(&r);
}

static void a_trainers_checkpoint_is_no_learners(void **unused)
{
    learn_plan p = plan_of(3);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes);
    learn_chunk(&r, &world);
    assert_ok(exphil_trainer_save(r.trainer, place, &error));
    assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &world, place, &error), EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "learner"));
    learn_end(&r);
}

/* Bytes of a file, which is rewritten with one of them changed, or cut. */
static unsigned char *read_all(const char *name, size_t *bytes)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*bytes);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

static void write_all(const char *name, const unsigned char *data, size_t bytes)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

static void damage_is_refused(void **unused)
{
    learn_plan p = plan_of(0);
    noise n = {.fail_at = 0};
    char name[600];
    size_t bytes;
    make_checkpoint(&p);
    snprintf(name, sizeof name, "%s.optimizer", place);
    unsigned char *data = read_all(name, &bytes);
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes);
    uint64_t before = learn_weights(&r);
    for (int k = 0; k < 200; k++) {
        size_t at = bytes / 200 * (size_t)k;
        data[at] ^= 0x10;
        write_all(name, data, k % 4 == 3 ? at : bytes);
        exphil_status status = exphil_learner_resume(r.learner, r.rollout, &world, place, NULL);
        if (status >= 0) fail_msg("byte %zu of %zu may be anything", at, bytes);
        data[at] ^= 0x10;
    }
    assert_true(learn_weights(&r) == before);
    write_all(name, data, bytes);
    assert_ok(exphil_learner_resume(r.learner, r.rollout, &world, place, NULL));
    assert_true(learn_weights(&r) != before);
    free(data);
    learn_end(&r);
}

int main(void)
{
    snprintf(place, sizeof place, "%s", test_path("learner"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_to_the_last_bit), cmocka_unit_test(another_run_is_refused),
        cmocka_unit_test(what_cannot_be_is_refused),  cmocka_unit_test(a_trainers_checkpoint_is_no_learners),
        cmocka_unit_test(damage_is_refused),
    };
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove();
    return status;
}
