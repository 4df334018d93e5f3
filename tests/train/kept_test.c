/* Files that a release wrote are read by every later library to the same bits, and what is computed from them keeps its
 * bits. tests/data/kept/<version> holds the files of one release and results.txt, what that release made of them.
 *   kept_test                  reads every kept release
 *   kept_test --write FOLDER   writes the files of this library: once, when it is released (doc/abi.md)
 * Kinds of files that came with a later release are in support/kept_since_0_2.c, and are read where they are. */
#include "kept_case.h"
#include "test_places.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct kept_case {
    const char *name, *blocks;
    int32_t mode, heads, delay;
} kept_case;

static const kept_case cases[] = {
    {"carry", "mamba lstm gru attention mlp ffn", EXPHIL_MODE_CARRY, EXPHIL_HEADS_AUTOREGRESSIVE, 2},
    {"window", "gru attention", EXPHIL_MODE_WINDOW, EXPHIL_HEADS_INDEPENDENT, 3},
};

/* ---- training ------------------------------------------------------------------------------------------------------- */

static train_plan plan_of(const kept_case *c)
{
    train_plan plan = train_plan_of(c->blocks, c->mode);
    plan.model.heads = c->heads;
    plan.model.delay_frames = c->delay;
    plan.episodes = 3;
    plan.adam.ema_decay = 0.98;
    plan.adam.decay = 0.01;
    return plan;
}

/* The run goes on from its checkpoint and reports; both files of the next save. */
static void tell_run(kept_results *to, const char *folder, const kept_case *c)
{
    train_plan plan = plan_of(c);
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    if (exphil_trainer_resume(run.trainer, kept_in(folder, c->name, ".safetensors"), &error) < 0)
        fail_msg("%s: %s", c->name, error.message);
    (void)train_steps(&run, KEPT_AFTER);
    assert_ok(exphil_trainer_save(run.trainer, test_path("after"), NULL));
    kept_tell(to, c->name, "trained-on", kept_digest(test_path("after")));
    kept_tell(to, c->name, "checkpoint", kept_digest(test_path("after.optimizer")));
    assert_ok(exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &report, NULL));
    kept_tell(to, c->name, "loss", xph_hash(&report.loss, sizeof report.loss));
    train_end(&run);
}

static void write_run(const char *folder, const kept_case *c)
{
    train_plan plan = plan_of(c);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, KEPT_BEFORE);
    assert_ok(exphil_trainer_save(run.trainer, kept_in(folder, c->name, ".safetensors"), NULL));
    kept_write_narrow(run.context, run.dataset, folder, c->name);
    train_end(&run);
}

/* ---- corpora --------------------------------------------------------------------------------------------------------- */

static void write_corpora(exphil_context *context, const char *folder)
{
    exphil_dataset *rows = train_dataset(context, 3), *melee = NULL;
    assert_ok(exphil_dataset_save(rows, kept_in(folder, "rows", ".corpus"), NULL));
    exphil_dataset_destroy(rows);
    size_t bytes = 0;
    char *replay = test_read(EXPHIL_SOURCE_DIR "/tests/data/kept/replay.slp", &bytes);
    assert_non_null(replay);
    assert_ok(exphil_dataset_create(context, NULL, &melee, NULL));
    assert_ok(exphil_dataset_add_replay_memory(melee, replay, bytes, NULL, NULL, NULL));
    assert_ok(exphil_dataset_save(melee, kept_in(folder, "melee", ".corpus"), NULL));
    free(replay);
    exphil_dataset_destroy(melee);
}

static void tell_corpus(kept_results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (exphil_dataset_open(context, kept_in(folder, name, ".corpus"), &dataset, &error) < 0)
        fail_msg("%s.corpus: %s", name, error.message);
    assert_ok(exphil_dataset_query(dataset, &info, NULL));
    kept_tell(to, name, "content", info.content_hash);
    kept_tell(to, name, "frames", kept_frames(dataset, &info));
    assert_ok(exphil_dataset_save(dataset, test_path("again"), NULL));
    kept_tell(to, name, "saved-again", kept_digest(test_path("again")));
    exphil_dataset_destroy(dataset);
}

/* ---- one release ----------------------------------------------------------------------------------------------------- */

static kept_results results_of(const char *folder)
{
    kept_results all = {{0}, 0};
    exphil_context *context = test_context(NULL, NULL, 1);
    tell_corpus(&all, context, folder, "rows");
    tell_corpus(&all, context, folder, "melee");
    for (int i = 0; i < 2; i++) {
        kept_tell_model(&all, context, folder, cases[i].name);
        kept_tell_state(&all, context, folder, cases[i].name);
        for (int k = 0; k < 2; k++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s-%s", cases[i].name, kept_narrow[k].name);
            kept_tell_model(&all, context, folder, name);
            kept_tell_state(&all, context, folder, name);
        }
        tell_run(&all, folder, &cases[i]);
    }
    kept_tell_0_2(&all, context, folder);
    exphil_context_destroy(context);
    return all;
}

static int write_release(const char *folder)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    if (!test_exists(folder)) test_make_folder(folder);
    write_corpora(context, folder);
    for (int i = 0; i < 2; i++) {
        write_run(folder, &cases[i]);
        kept_write_state(context, folder, cases[i].name);
    }
    kept_write_0_2(context, folder);
    exphil_context_destroy(context);
    kept_results all = results_of(folder);
    test_write(kept_in(folder, "results", ".txt"), all.text, all.used);
    test_folder_remove();
    return 0;
}

/* Which line differs says more than a sum over all. */
static void compare(const char *release, char *kept, char *now)
{
    char *kept_rest, *now_rest;
    char *k = strtok_r(kept, "\n", &kept_rest), *n = strtok_r(now, "\n", &now_rest);
    for (; k && n; k = strtok_r(NULL, "\n", &kept_rest), n = strtok_r(NULL, "\n", &now_rest))
        if (strcmp(k, n) != 0) fail_msg("release %s had \"%s\", this library has \"%s\"", release, k, n);
    if (k || n) fail_msg("release %s: results.txt has other lines than this test", release);
}

static void releases_are_read(void **state)
{
    const char *top = EXPHIL_SOURCE_DIR "/tests/data/kept";
    char **names = NULL;
    const int count = test_list(top, &names);
    int seen = 0;
    for (int i = 0; i < count; i++) {
        if (names[i][0] < '0' || names[i][0] > '9') continue;
        char path[512];
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, "%s/%s", top, names[i]);
        char *kept = test_read(kept_in(path, "results", ".txt"), &bytes);
        assert_non_null(kept);
        kept_results now = results_of(path);
        compare(names[i], kept, now.text);
        free(kept);
        seen++;
    }
    test_list_free(names, count);
    test_folder_remove();
    print_message("%d releases are read to the same bits\n", seen);
    assert_true(seen > 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) return write_release(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(releases_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
