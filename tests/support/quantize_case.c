/* Models with weights of fewer bits for the tests. */
#include "quantize_case.h"

#include <stdlib.h>

exphil_context *quantize_context;

int quantize_begin(void **state)
{
    quantize_context = test_context(NULL, NULL, 1);
    return 0;
}

int quantize_end(void **state)
{
    exphil_context_destroy(quantize_context);
    test_folder_remove();
    return 0;
}

const int32_t quantize_types[2] = {EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
const char *const quantize_patterns[QUANTIZE_PATTERNS] = {EACH_BLOCK "(gru ffn)*2", "0:gru", "1:lstm",
                                                          "2:mlp", "3:ffn"};

exphil_model *quantize_plain(const char *blocks)
{
    bool end = blocks[1] == ':';
    exphil_model_config config = model_case_config(end ? blocks + 2 : blocks, EXPHIL_TYPE_F32);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    if (end) model_case_end(&config, blocks[0] - '0');
    return play_model(quantize_context, &config, 0.1);
}

exphil_model *quantize_rounded(const exphil_model *model, int32_t type)
{
    exphil_model *quantized = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_quantize(model, type, &quantized, &error) < 0) fail_msg("%s", error.message);
    return quantized;
}

exphil_model_info quantize_info(const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    return info;
}

float *quantize_values(const exphil_model *model, const char *name, exphil_tensor_info *info)
{
    *info = (exphil_tensor_info)EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, info, NULL) == EXPHIL_OK; i++) {
        if (strcmp(info->name, name) != 0) continue;
        float *values = malloc(info->size_bytes);
        assert_ok(exphil_model_tensor_get(model, name, values, info->size_bytes, NULL));
        return values;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

void quantize_refused(exphil_status got, exphil_status want, const exphil_error *error, const char *says)
{
    if (got != want || !strstr(error->message, says))
        fail_msg("%s: %s, wanted %s: %s", exphil_status_name(got), error->message, exphil_status_name(want),
                 says);
}

exphil_model *quantize_load(const char *path)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_load(quantize_context, path, &model, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return model;
}
