#include <exphil/exphil.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_model_load(context, argc > 1 ? argv[1] : "policy.safetensors", &model, &error) < 0 ||
        exphil_session_create(model, NULL, &session, &error) < 0)
        return fprintf(stderr, "%s: %s\n", exphil_status_name(error.status), error.message), 1;
    for (int t = 0; t < 60; t++) { /* a second of a very quiet game */
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        exphil_pad pad;
        frame.frame = t;
        frame.stage = 32; /* Final Destination */
        frame.own_port = 1;
        for (int p = 0; p < 2; p++) frame.player[p].present = 1, frame.player[p].known = EXPHIL_MELEE_HAS_ALL;
        frame.player[1].x = 30.0f;
        if (exphil_session_step(session, &frame, &pad) < 0)
            return exphil_session_error(session, &error), fprintf(stderr, "%s\n", error.message), 1;
        printf("%2d  buttons %04x  main %+.2f %+.2f\n", t, (unsigned)pad.buttons, pad.main_x, pad.main_y);
    }
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
