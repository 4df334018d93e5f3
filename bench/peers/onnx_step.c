/* A session's decision as a peer of the same model in ONNX Runtime: makes a policy of Melee, exports it, and is timed.
 *   onnx_step BLOCKS HIDDEN f32|bf16|int8 FILE.onnx */
#include "peer.h"

#include <exphil/exphil.h>

static exphil_error error = EXPHIL_ERROR_INIT;

typedef struct policy {
    exphil_session *session;
    exphil_spec spec;
    float *floats;
    int32_t *ids, actions[EXPHIL_HEADS_MAX];
} policy;

static void must(exphil_status status)
{
    if (status < 0) peer_fail(error.message);
}

static void step(void *arg)
{
    policy *p = arg;
    if (exphil_session_step_row(p->session, p->floats, p->ids, NULL, p->actions) < 0)
        peer_fail("a step failed");
}

int main(int argc, char **argv)
{
    static policy p = {.spec = EXPHIL_SPEC_INIT};
    exphil_context_config one = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_context *context;
    exphil_model *model, *narrow;
    if (argc != 5) peer_fail("usage: onnx_step BLOCKS HIDDEN f32|bf16|int8 FILE.onnx");
    one.threads = 1;
    config.blocks = argv[1];
    config.hidden = atoll(argv[2]);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    must(exphil_context_create(&one, &context, &error));
    must(exphil_model_create(context, &config, &model, &error));
    if (strcmp(argv[3], "f32") != 0) {
        must(exphil_model_quantize(model, strcmp(argv[3], "int8") == 0 ? EXPHIL_TYPE_I8 : EXPHIL_TYPE_BF16,
                                   &narrow, &error));
        model = narrow;
    }
    must(exphil_model_export_onnx(model, argv[4], &error));
    must(exphil_model_spec(model, &p.spec, &error));
    must(exphil_session_create(model, NULL, &p.session, &error));
    p.floats = peer_memory((size_t)p.spec.float_count * sizeof *p.floats);
    p.ids = peer_memory((size_t)p.spec.id_count * sizeof *p.ids);
    for (int64_t i = 0; i < p.spec.float_count; i++) p.floats[i] = (float)(i % 7) * 0.3f - 0.9f;
    for (int64_t i = 0; i < p.spec.id_count; i++) p.ids[i] = (int32_t)i % p.spec.ids[i].entries;
    peer_converse(step, &p);
    return 0;
}
