/* The emulator's side of README.md, which is compiled in front of this: a device fed with a game as a DMA writes it, one event at a
 * time, holds what a session over the opened file decides.
 *   exi_check WEIGHTS GAME.slp */
#include <exphil/slp.h>
#include <stdio.h>
#include <string.h>

#include EXI_POLICY /* the file that was cut out of README.md */

static int fail(const char *what)
{
    fprintf(stderr, "exi_check: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    static uint8_t game[1 << 22];
    uint32_t size[256] = {0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_slp *slp;
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!file) return fail("exi_check WEIGHTS GAME.slp");
    size_t bytes = fread(game, 1, sizeof game, file), at = 15;
    fclose(file);
    if (exi_policy_create("nothing.safetensors", &error) || error.status != EXPHIL_E_IO)
        return fail("made of nothing");
    exi_policy *policy = exi_policy_create(argv[1], &error);
    if (!policy || exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_model_load(context, argv[1], &model, &error) < 0 ||
        exphil_session_create(model, NULL, &session, &error) < 0 ||
        exphil_slp_read(context, game, bytes, NULL, &slp, &error) < 0)
        return fail(error.message);
    for (size_t i = at + 2; i < at + 1 + game[at + 1]; i += 3)
        size[game[i]] = 1 + (uint32_t)(game[i + 1] << 8 | game[i + 2]);
    size[0x35] = 1u + game[at + 1];
    int64_t position = 0, compared = 0;
    for (; at < bytes && size[game[at]]; at += size[game[at]]) {
        if (exi_policy_write(policy, game + at, size[game[at]])) return fail("an event is refused");
        if (game[at] != 0x3C) continue; /* a frame is complete */
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        exphil_pad pad;
        if (exphil_slp_melee_frame(slp, position++, 1, 0, &frame, &error) < 0) return fail(error.message);
        if (frame.frame < -1) continue;
        if (exphil_session_step(session, &frame, &pad) < 0) return fail("the session does not step");
        if (memcmp(&pad, exi_policy_pad(policy), sizeof pad) != 0) return fail("another controller");
        compared++;
    }
    if (compared < 100) return fail("too few frames");
    printf("exi: %lld frames as the session's\n", (long long)compared);
    exi_policy_destroy(policy);
    exi_policy_destroy(NULL);
    exphil_slp_destroy(slp);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
