/* Any bytes as a replay and as a live stream: no crash, no leak, no hang, both readers agree, and rows made at once are those
 * made one by one. Seeds come from slp_damage_test with EXPHIL_WRITE_CORPUS=<folder>. */
#include "slp_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FLOATS_MOST = 512 }; /* melee2 has fewer */

/* The row of the frame at a position by the calls for one frame; false: there is none. */
static bool row_of(const exphil_slp *slp, int64_t position, int32_t port, float *floats, int32_t *ids,
                   int32_t *action)
{
    const exphil_slp_frame *before = exphil_slp_frame_at(slp, position - 1);
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    exphil_pad pad;
    return before && before->frame + 1 == exphil_slp_frame_at(slp, position)->frame &&
           exphil_slp_melee_frame(slp, position - 1, port, 0, &frame, NULL) == EXPHIL_OK &&
           exphil_slp_melee_pad(slp, position, port, &pad, NULL) == EXPHIL_OK &&
           exphil_melee_pad_encode(NULL, &pad, action, NULL) == EXPHIL_OK &&
           exphil_melee_encode(NULL, &frame, floats, ids, NULL) == EXPHIL_OK;
}

/* All rows of a port at once are those of the frames. */
static void check_rows(const exphil_slp *slp, int32_t port)
{
    const exphil_replay_config config = {sizeof config, NULL, port, 0, EXPHIL_SLP_FIRST_FRAME, 0};
    exphil_spec spec = EXPHIL_SPEC_INIT;
    int64_t frames = exphil_slp_frame_count(slp), count = -1, seen = 0;
    if (exphil_melee_spec(NULL, NULL, &spec, NULL) < 0) abort();
    size_t room = (size_t)frames + 1, f = (size_t)spec.float_count, k = (size_t)spec.id_count,
           a = (size_t)spec.head_count;
    float *floats = malloc(room * f * sizeof *floats), one[FLOATS_MOST];
    int32_t *ids = malloc(room * k * sizeof *ids), *actions = malloc(room * a * sizeof *actions);
    int32_t *number = malloc(room * sizeof *number), id[EXPHIL_IDS_MAX], action[EXPHIL_HEADS_MAX];
    exphil_status status =
        exphil_slp_melee_rows(slp, NULL, NULL, &config, frames, number, floats, ids, actions, &count, NULL);
    if (status != EXPHIL_OK && (status != EXPHIL_E_INVALID || count != -1)) abort();
    for (int64_t i = 0; status == EXPHIL_OK && i < frames; i++) {
        int32_t frame = exphil_slp_frame_at(slp, i)->frame;
        if (frame < EXPHIL_SLP_FIRST_FRAME || !row_of(slp, i, port, one, id, action)) continue;
        size_t row = (size_t)seen++;
        if (seen > count || number[row] != frame || memcmp(floats + row * f, one, f * sizeof *one) != 0 ||
            memcmp(ids + row * k, id, k * sizeof *id) != 0 ||
            memcmp(actions + row * a, action, a * sizeof *action) != 0)
            abort();
    }
    if (status == EXPHIL_OK && seen != count) abort();
    free(floats);
    free(ids);
    free(actions);
    free(number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static exphil_context *context;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.threads = 1;
    if (!context && exphil_context_create(&config, &context, NULL) < 0) abort();
    size_t piece = bytes % 5 ? 1 + bytes * 7919 % 300 : SIZE_MAX;
    const char *wrong = slp_check_bytes(context, data, bytes, piece);
    if (wrong) {
        (void)fprintf(stderr, "%s\n", wrong);
        abort();
    }
    exphil_slp *slp = NULL;
    if (exphil_slp_read(context, data, bytes, NULL, &slp, NULL) == EXPHIL_OK) {
        for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++) check_rows(slp, port);
        exphil_slp_destroy(slp);
    }
    return 0;
}
