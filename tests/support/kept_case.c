/* What the files of a release are made of and told by. */
#include "kept_case.h"

#include "test_places.h"

#include <stdio.h>
#include <stdlib.h>

const kept_type kept_narrow[2] = {{"bf16", EXPHIL_TYPE_BF16}, {"int8", EXPHIL_TYPE_I8}};

/* ---- results -------------------------------------------------------------------------------------------------------- */

void kept_tell(kept_results *to, const char *name, const char *what, uint64_t digest)
{
    int n = snprintf(to->text + to->used, sizeof to->text - to->used, "%s %s %016llx\n", name, what,
                     (unsigned long long)digest);
    assert_true(n > 0 && (size_t)n < sizeof to->text - to->used);
    to->used += (size_t)n;
}

const char *kept_in(const char *folder, const char *name, const char *end)
{
    static char path[8][1024];
    static int next;
    char *to = path[next++ % 8];
    assert_true(snprintf(to, sizeof path[0], "%s/%s%s", folder, name, end) < (int)sizeof path[0]);
    return to;
}

uint64_t kept_digest(const char *path)
{
    size_t bytes = 0;
    char *data = test_read(path, &bytes);
    if (!data) fail_msg("%s is not there", path);
    uint64_t digest = xph_hash(data, bytes);
    free(data);
    return digest;
}

/* ---- weights and play ------------------------------------------------------------------------------------------------- */

exphil_model *kept_load(exphil_context *context, const char *path)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_load(context, path, &model, &error) < 0) fail_msg("%s: %s", path, error.message);
    return model;
}

exphil_session *kept_session(const exphil_model *model)
{
    static const int32_t told[EXPHIL_CONDITIONS_MAX] = {1, 2};
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    config.streams = KEPT_STREAMS;
    config.seed = 5;
    if (info.delay_count) config.delay_frames = &info.delay_frames;
    if (info.condition_count) config.conditions = told, config.condition_count = info.condition_count;
    return play_session(model, &config);
}

uint64_t kept_play(exphil_session *session, int64_t first, int64_t end)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t t = first; t < end; t++) {
        float floats[KEPT_STREAMS][13], logits[12];
        int32_t ids[KEPT_STREAMS][2], actions[KEPT_STREAMS][3], unused[3];
        for (int64_t b = 0; b < KEPT_STREAMS; b++) train_row(b, t, floats[b], ids[b], unused);
        assert_ok(exphil_session_step_row(session, floats[0], ids[0], NULL, actions[0]));
        xph_hash_add(&hasher, actions, sizeof actions);
        for (int64_t b = 0; b < KEPT_STREAMS; b++) {
            assert_ok(exphil_session_logits(session, b, logits, 12));
            xph_hash_add(&hasher, logits, sizeof logits);
            float value = 0.0f;
            if (exphil_session_value(session, b, &value) == EXPHIL_OK)
                xph_hash_add(&hasher, &value, sizeof value);
        }
    }
    return xph_hash_end(&hasher);
}

void kept_tell_model(kept_results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = kept_load(context, kept_in(folder, name, ".safetensors"));
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    kept_tell(to, name, "weights", info.weights_hash);
    exphil_session *session = kept_session(model);
    kept_tell(to, name, "played", kept_play(session, 0, KEPT_PLAYED));
    exphil_session_destroy(session);
    assert_ok(exphil_model_save(model, test_path("again"), NULL));
    kept_tell(to, name, "saved-again", kept_digest(test_path("again")));
    exphil_model_destroy(model);
}

/* ---- states of sessions ----------------------------------------------------------------------------------------------- */

void kept_write_state(exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = kept_load(context, kept_in(folder, name, ".safetensors"));
    exphil_session *session = kept_session(model);
    (void)kept_play(session, 0, KEPT_SEEN);
    size_t bytes = exphil_session_state_size(session);
    char *state = malloc(KEPT_STREAMS * bytes);
    for (int64_t b = 0; b < KEPT_STREAMS; b++)
        assert_ok(exphil_session_state_save(session, b, state + (size_t)b * bytes, bytes));
    test_write(kept_in(folder, name, ".state"), state, KEPT_STREAMS * bytes);
    free(state);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

void kept_tell_state(kept_results *to, exphil_context *context, const char *folder, const char *name)
{
    exphil_model *model = kept_load(context, kept_in(folder, name, ".safetensors"));
    exphil_session *session = kept_session(model);
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes = 0;
    char *state = test_read(kept_in(folder, name, ".state"), &bytes);
    assert_non_null(state);
    for (int64_t b = 0; b < KEPT_STREAMS; b++) {
        if (exphil_session_state_restore(session, b, state + (size_t)b * (bytes / KEPT_STREAMS),
                                         bytes / KEPT_STREAMS) < 0) {
            (void)exphil_session_error(session, &error);
            fail_msg("%s.state: %s", name, error.message);
        }
    }
    free(state);
    kept_tell(to, name, "restored", kept_play(session, KEPT_SEEN, KEPT_SEEN + KEPT_PLAYED));
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

/* ---- fewer bits ------------------------------------------------------------------------------------------------------- */

void kept_write_narrow(exphil_context *context, const exphil_dataset *dataset, const char *folder,
                       const char *of)
{
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    for (int i = 0; i < 2; i++) {
        exphil_model *model = kept_load(context, kept_in(folder, of, ".safetensors")), *rounded = NULL;
        char name[64];
        (void)snprintf(name, sizeof name, "%s-%s", of, kept_narrow[i].name);
        assert_ok(exphil_model_quantize(model, kept_narrow[i].type, &rounded, NULL));
        assert_ok(exphil_model_compare(model, rounded, dataset, 0, &comparison, NULL));
        assert_ok(exphil_model_calibration_set(rounded, &comparison, NULL));
        assert_ok(exphil_model_save(rounded, kept_in(folder, name, ".safetensors"), NULL));
        exphil_model_destroy(rounded);
        exphil_model_destroy(model);
        kept_write_state(context, folder, name);
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

uint64_t kept_frames(const exphil_dataset *dataset, const exphil_dataset_info *info)
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
