/* A program outside the repository: it sees only what is installed. */
#include <exphil/exphil.h>
#include <exphil/slp.h>

#include <stdio.h>

int main(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    config.threads = 1;
    if (exphil_version() != EXPHIL_VERSION || exphil_context_create(&config, &context, &error) != EXPHIL_OK ||
        exphil_context_device(context, &device, &error) != EXPHIL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s on %s\n", exphil_version_string(), device.name);
    exphil_context_destroy(context);
    return 0;
}
