/* Any bytes as a replay and as a live stream: no crash, no leak, no hang, and both readers agree. Seeds come
 * from slp_damage_test with EXPHIL_WRITE_CORPUS=<folder>. */
#include "slp_check.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

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
    return 0;
}
