/* Any bytes as the state of a stream: laid over a good block, behind the header that would refuse them. Bytes 0 and 1 choose
 * the model, 2 and 3 the place; then the stream is played. No crash, no action out of range. */
#include "model_case.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { PATTERNS = XPH_BLOCK_KINDS + 1, CHOICES = 4 * PATTERNS, HEADER = 32, CAPACITY = 1 << 16 };

static void need(bool what, const char *says)
{
    if (what) return;
    (void)fprintf(stderr, "%s\n", says);
    abort();
}

static exphil_session *make(int choice)
{
    static const char *const patterns[PATTERNS] = {EACH_BLOCK "(mamba attention)*2"};
    static exphil_context *context;
    exphil_context_config how = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    how.threads = 1;
    if (!context) need(exphil_context_create(&how, &context, NULL) == EXPHIL_OK, "no context");
    exphil_model_config config = model_case_config(patterns[choice % PATTERNS], EXPHIL_TYPE_F32);
    config.hidden = 8;
    config.mode = choice / PATTERNS % 2;
    config.window_frames = config.mode == EXPHIL_MODE_WINDOW ? 4 : 0;
    config.heads = choice / PATTERNS / 2;
    config.delay_frames = choice % 4;
    need(exphil_model_create(context, &config, &model, NULL) == EXPHIL_OK, "no model");
    need(exphil_session_create(model, NULL, &session, NULL) == EXPHIL_OK, "no session");
    exphil_model_destroy(model);
    return session;
}

static void play(exphil_session *session)
{
    const float floats[13] = {0.5f, -1, 0, 1, 0.25f, 0, 0, -0.5f, 1, 1, 0, 0, 1};
    const int32_t ids[2] = {4, 6};
    for (int t = 0; t < 3; t++) {
        int32_t action[3];
        exphil_status status = exphil_session_step_row(session, floats, ids, NULL, action);
        need(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC, "a step neither went well nor overflowed");
        if (status == EXPHIL_OK)
            need(xph_action_check(&model_case_spec, action, t, NULL) == EXPHIL_OK,
                 "an action is out of range");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static exphil_session *sessions[CHOICES];
    static uint8_t good[CAPACITY], block[CAPACITY];
    if (bytes < 4) return 0;
    int choice = data[0] % PATTERNS + data[1] % 4 * PATTERNS;
    if (!sessions[choice]) sessions[choice] = make(choice);
    exphil_session *session = sessions[choice];
    size_t size = exphil_session_state_size(session),
           at = HEADER + (size_t)(data[2] | data[3] << 8) % (size - HEADER);
    need(size <= CAPACITY, "a state is larger than expected");
    need(exphil_session_reset(session, 0) == EXPHIL_OK, "no reset");
    play(session);
    need(exphil_session_state_save(session, 0, good, size) == EXPHIL_OK, "no state");
    memcpy(block, good, size);
    for (size_t i = 4; i < bytes && at < size; i++, at++) block[at] = data[i];
    exphil_status status = exphil_session_state_restore(session, 0, block, size);
    need(status == EXPHIL_OK || status == EXPHIL_E_FORMAT, "another status");
    play(session);
    status = exphil_session_state_restore(session, 0, data, bytes); /* and the bytes as they are */
    need(status == EXPHIL_E_INVALID || status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH ||
             status == EXPHIL_OK,
         "another status");
    play(session);
    return 0;
}
