/* Files that a release wrote are read by every later library to the same bits, and what is computed from them keeps its
 * bits. tests/data/kept/<version> holds the files of one release and results.txt, what that release made of them.
 *   kept_test                  reads every kept release
 *   kept_test --write FOLDER   writes the files of this library: once, when it is released (doc/abi.md) */
#include "play_case.h"
#include "test_places.h"
#include "train_case.h"

#include <stdio.h>
#include <stdlib.h>

enum { BEFORE = 7, AFTER = 5, SEEN = 9, PLAYED = 40, STREAMS = 2 };

typedef struct kept_case {
    const char *name, *blocks;
    int32_t mode, heads, delay;
} kept_case;

static const kept_case cases[] = {
    {"carry", "mamba lstm gru attention mlp ffn", EXPHIL_MODE_CARRY, EXPHIL_HEADS_AUTOREGRESSIVE, 2},
    {"window", "gru attention", EXPHIL_MODE_WINDOW, EXPHIL_HEADS_INDEPENDENT, 3},
};

static const struct {
    const char *name;
    int32_t type;
} narrow[] = {{"bf16", EXPHIL_TYPE_BF16}, {"int8", EXPHIL_TYPE_I8}};

/* ---- results -------------------------------------------------------------------------------------------------------- */

/* What one library makes of the files, a line each. */
typedef struct results {
    char text[8192];
    size_t used;
} results;

static void tell(results *to, const char *name, const char *what, uint64_t digest)
{
    int n = snprintf(to->text + to->used, sizeof to->text - to->used, "%s %s %016llx\n", name, what,
                     (unsigned long long)digest);
    assert_true(n > 0 && (size_t)n < sizeof to->text - to->used);
    to->used += (size_t)n;
}

static const char *in(const char *folder, const char *name, const char *end)
{
    static char path[8][1024];
    static int next;
    char *to = path[next++ % 8];
    assert_true(snprintf(to, sizeof path[0], "%s/%s%s", folder, name, end) < (int)sizeof path[0]);
    return to;
}

static uint64_t file_digest(const char *path)
{
    size_t bytes = 0;
    char *data = test_read(path, &bytes);
    if (!data) fail_msg("%s is not there", path);
    uint64_t digest = xph_hash(data, bytes);
    free(data);
    return digest;
}

/* ---- weights and play ------------------------------------------------------------------------------------------------- */

static exphil_model *load(exphil_context *context, const char *path)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_load(context, path, &model, &error) < 0) fail_msg("%s: %s", path, error.message);
    return model;
}

static exphil_session *session_of(const exphil_model *model)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.streams = STREAMS;
    config.seed = 5;
    return play_session(model, &config);
}

/* Logits and actions of frames [first, end) of the task, drawn with the session's own noise. */
static uint64_t play(exphil_session *session, int64_t first, int64_t end)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t t = first; t < end; t++) {
        float floats[STREAMS][13], logits[12];
        int32_t ids[STREAMS][2], actions[STREAMS][3], unused[3];
        for (int64_t b = 0; b < STREAMS; b++) train_row(b, t, floats[b], ids[b], unused);
        assert_ok(exphil_session_step_row(session, floats[0], ids[0], NULL, actions[0]));
        xph_hash_add(&hasher, actions, sizeof actions);
        for (int64_t b = 0; b < STREAMS; b++) {
            assert_ok(exphil_session_logits(session, b, logits, 12));
            xph_hash_add(&hasher, logits, sizeof logits);
        }
    }
    return xph_hash_end(&hasher);
}

static void tell_model(results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = load(context, in(folder, name, ".safetensors"));
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    tell(to, name, "weights", info.weights_hash);
    exphil_session *session = session_of(model);
    tell(to, name, "played", play(session, 0, PLAYED));
    exphil_session_destroy(session);
    assert_ok(exphil_model_save(model, test_path("again"), NULL));
    tell(to, name, "saved-again", file_digest(test_path("again")));
    exphil_model_destroy(model);
}

/* ---- states of sessions ----------------------------------------------------------------------------------------------- */

static void write_state(exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = load(context, in(folder, name, ".safetensors"));
    exphil_session *session = session_of(model);
    (void)play(session, 0, SEEN);
    size_t bytes = exphil_session_state_size(session);
    char *state = malloc(STREAMS * bytes);
    for (int64_t b = 0; b < STREAMS; b++)
        assert_ok(exphil_session_state_save(session, b, state + (size_t)b * bytes, bytes));
    test_write(in(folder, name, ".state"), state, STREAMS * bytes);
    free(state);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

static void tell_state(results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = load(context, in(folder, name, ".safetensors"));
    exphil_session *session = session_of(model);
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes = 0;
    char *state = test_read(in(folder, name, ".state"), &bytes);
    assert_non_null(state);
    for (int64_t b = 0; b < STREAMS; b++) {
        if (exphil_session_state_restore(session, b, state + (size_t)b * (bytes / STREAMS), bytes / STREAMS) <
            0) {
            (void)exphil_session_error(session, &error);
            fail_msg("%s.state: %s", name, error.message);
        }
    }
    free(state);
    tell(to, name, "restored", play(session, SEEN, SEEN + PLAYED));
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

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
static void tell_run(results *to, const char *folder, const kept_case *c)
{
    train_plan plan = plan_of(c);
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    if (exphil_trainer_resume(run.trainer, in(folder, c->name, ".safetensors"), &error) < 0)
        fail_msg("%s: %s", c->name, error.message);
    (void)train_steps(&run, AFTER);
    assert_ok(exphil_trainer_save(run.trainer, test_path("after"), NULL));
    tell(to, c->name, "trained-on", file_digest(test_path("after")));
    tell(to, c->name, "checkpoint", file_digest(test_path("after.optimizer")));
    assert_ok(exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &report, NULL));
    tell(to, c->name, "loss", xph_hash(&report.loss, sizeof report.loss));
    train_end(&run);
}

static void write_run(const char *folder, const kept_case *c)
{
    train_plan plan = plan_of(c);
    train_run run = train_begin(&plan);
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    (void)train_steps(&run, BEFORE);
    assert_ok(exphil_trainer_save(run.trainer, in(folder, c->name, ".safetensors"), NULL));
    for (int i = 0; i < 2; i++) {
        exphil_model *model = load(run.context, in(folder, c->name, ".safetensors")), *rounded = NULL;
        char name[64];
        (void)snprintf(name, sizeof name, "%s-%s", c->name, narrow[i].name);
        assert_ok(exphil_model_quantize(model, narrow[i].type, &rounded, NULL));
        assert_ok(exphil_model_compare(model, rounded, run.dataset, 0, &comparison, NULL));
        assert_ok(exphil_model_calibration_set(rounded, &comparison, NULL));
        assert_ok(exphil_model_save(rounded, in(folder, name, ".safetensors"), NULL));
        exphil_model_destroy(rounded);
        exphil_model_destroy(model);
        write_state(run.context, folder, name);
    }
    train_end(&run);
}

/* ---- corpora --------------------------------------------------------------------------------------------------------- */

static void write_corpora(exphil_context *context, const char *folder)
{
    exphil_dataset *rows = train_dataset(context, 3), *melee = NULL;
    assert_ok(exphil_dataset_save(rows, in(folder, "rows", ".corpus"), NULL));
    exphil_dataset_destroy(rows);
    size_t bytes = 0;
    char *replay = test_read(EXPHIL_SOURCE_DIR "/tests/data/kept/replay.slp", &bytes);
    assert_non_null(replay);
    assert_ok(exphil_dataset_create(context, NULL, &melee, NULL));
    assert_ok(exphil_dataset_add_replay_memory(melee, replay, bytes, NULL, NULL, NULL));
    assert_ok(exphil_dataset_save(melee, in(folder, "melee", ".corpus"), NULL));
    free(replay);
    exphil_dataset_destroy(melee);
}

static uint64_t frames_digest(const exphil_dataset *dataset, const exphil_dataset_info *info)
{
    float *floats = calloc((size_t)info->float_count + 1, sizeof *floats);
    int32_t *ids = calloc((size_t)info->id_count + 1, sizeof *ids), action[EXPHIL_HEADS_MAX];
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < info->frames; i++) {
        assert_ok(exphil_dataset_frame(dataset, i, floats, ids, action, NULL));
        xph_hash_add(&hasher, floats, (size_t)info->float_count * sizeof *floats);
        xph_hash_add(&hasher, ids, (size_t)info->id_count * sizeof *ids);
        xph_hash_add(&hasher, action, (size_t)info->head_count * sizeof *action);
    }
    free(floats);
    free(ids);
    return xph_hash_end(&hasher);
}

static void tell_corpus(results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (exphil_dataset_open(context, in(folder, name, ".corpus"), &dataset, &error) < 0)
        fail_msg("%s.corpus: %s", name, error.message);
    assert_ok(exphil_dataset_query(dataset, &info, NULL));
    tell(to, name, "content", info.content_hash);
    tell(to, name, "frames", frames_digest(dataset, &info));
    assert_ok(exphil_dataset_save(dataset, test_path("again"), NULL));
    tell(to, name, "saved-again", file_digest(test_path("again")));
    exphil_dataset_destroy(dataset);
}

/* ---- one release ----------------------------------------------------------------------------------------------------- */

static results results_of(const char *folder)
{
    results all = {{0}, 0};
    exphil_context *context = test_context(NULL, NULL, 1);
    tell_corpus(&all, context, folder, "rows");
    tell_corpus(&all, context, folder, "melee");
    for (int i = 0; i < 2; i++) {
        tell_model(&all, context, folder, cases[i].name);
        tell_state(&all, context, folder, cases[i].name);
        for (int k = 0; k < 2; k++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s-%s", cases[i].name, narrow[k].name);
            tell_model(&all, context, folder, name);
            tell_state(&all, context, folder, name);
        }
        tell_run(&all, folder, &cases[i]);
    }
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
        write_state(context, folder, cases[i].name);
    }
    exphil_context_destroy(context);
    results all = results_of(folder);
    test_write(in(folder, "results", ".txt"), all.text, all.used);
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
        char *kept = test_read(in(path, "results", ".txt"), &bytes);
        assert_non_null(kept);
        results now = results_of(path);
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
