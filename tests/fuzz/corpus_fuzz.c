/* Corpus files from anybody: opening never crashes, and what opens can be read, sampled and saved. */
#include "data/dataset.h"
#include "memory_io.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Reads a dataset through; a value out of range here is a hole in the gate. */
static void use(exphil_dataset *dataset)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    const exphil_spec *spec = xph_dataset_spec_of(dataset);
    static float floats[4096];
    int32_t ids[EXPHIL_IDS_MAX], action[EXPHIL_HEADS_MAX];
    if (exphil_dataset_query(dataset, &info, NULL) < 0) abort();
    bool fine = exphil_dataset_verify(dataset, NULL) == EXPHIL_OK;
    for (int64_t i = 0; i < info.frames; i++) {
        exphil_status status = exphil_dataset_frame(dataset, i, floats, ids, action, NULL);
        if (status < 0 && (fine || status != EXPHIL_E_FORMAT)) abort();
        if (exphil_dataset_rows(dataset, i, 1, floats, ids, action, NULL, NULL) != status) abort();
        if (status < 0) continue;
        for (int64_t f = 0; f < info.float_count; f++) {
            if (!(floats[f] - floats[f] == 0)) abort();
        }
        for (int64_t k = 0; k < info.id_count; k++) {
            if (ids[k] < 0 || ids[k] >= spec->ids[k].entries) abort();
        }
        if (xph_action_check(spec, action, i, NULL) < 0) abort();
    }
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 2;
    how.time = 3;
    how.action_slots = 1;
    xph_sampler *sampler = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    if (xph_sampler_create(dataset, &how, &sampler, NULL) == EXPHIL_OK &&
        xph_sampler_batch(sampler, 0, 0, &batch, NULL) < 0 && fine)
        abort();
    xph_sampler_destroy(sampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static memory_io io;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    memory_io_init(&io);
    config.io = &io.hook;
    config.threads = 1;
    if (exphil_context_create(&config, &context, NULL) < 0) abort();
    io.data = malloc(bytes + 1);
    if (!io.data) abort();
    if (bytes) memcpy(io.data, data, bytes);
    io.bytes = bytes;
    exphil_dataset *dataset = NULL;
    if (exphil_dataset_open(context, "input", &dataset, NULL) == EXPHIL_OK) use(dataset);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    free(io.data);
    return 0;
}
