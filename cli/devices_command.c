/* `exphil devices`: what the library can compute on here. */
#include "commands.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1024 };

/* What --device auto takes, and what the library warns of then: why it is no GPU, say. */
typedef struct choice {
    exphil_device_info device;
    char warning[WORDS];
} choice;

typedef struct devices_options {
    bool json, verbose;
} devices_options;

static void keep_line(void *user, exphil_log_level level, const char *message)
{
    choice *taken = user;
    if (level <= EXPHIL_LOG_WARNING && !taken->warning[0])
        (void)snprintf(taken->warning, sizeof taken->warning, "%s", message);
}

/* The device of a context that was created on it. */
static bool opened_device(const char *name, choice *taken, exphil_error *error)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.device = name;
    config.log = keep_line;
    config.log_user = taken;
    taken->device = (exphil_device_info)EXPHIL_DEVICE_INFO_INIT;
    bool fine = exphil_context_create(&config, &context, error) >= 0 &&
                exphil_context_device(context, &taken->device, error) >= 0;
    exphil_context_destroy(context);
    return fine;
}

/* The CPU as a context has it: EXPHIL_CPU_ISA caps it. */
static bool listed_device(int64_t index, exphil_device_info *info, exphil_error *error)
{
    choice cpu = {.device = EXPHIL_DEVICE_INFO_INIT};
    *info = (exphil_device_info)EXPHIL_DEVICE_INFO_INIT;
    if (index > 0) return exphil_device_get(index, info, error) >= 0;
    if (!opened_device("cpu", &cpu, error)) return false;
    *info = cpu.device;
    return true;
}

static json_t *device_json(const exphil_device_info *info)
{
    return json_pack("{s:s,s:s,s:o,s:I,s:o}", "id", info->id, "name", info->name, "isa",
                     info->isa[0] ? json_string(info->isa) : json_null(), "workers",
                     (json_int_t)info->workers, "memory_bytes",
                     info->memory_bytes > 0 ? json_integer((json_int_t)info->memory_bytes) : json_null());
}

static void print_device(const exphil_device_info *info)
{
    char workers[16] = "-", memory[32] = "-";
    if (info->workers > 0) (void)snprintf(workers, sizeof workers, "%" PRId32, info->workers);
    if (info->memory_bytes > 0)
        (void)snprintf(memory, sizeof memory, "%.1f GiB", (double)info->memory_bytes / 0x1p30);
    printf("%-8s %-12s %8s %12s  %s\n", info->id, info->isa[0] ? info->isa : "-", workers, memory,
           info->name);
}

static int show_json(const exphil_device_info *devices, int64_t count, const choice *taken)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, device_json(&devices[i]));
    json_t *warning = taken->warning[0] ? json_string(taken->warning) : json_null();
    return print_json(json_pack("{s:o,s:s,s:o}", "devices", list, "auto", taken->device.id, "auto_warning",
                                warning ? warning : json_null()));
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    while ((text = strstr(text, word)) != NULL) text += strlen(word), count++;
    return count;
}

/* "... no cuda backend (...): PATH: not there; PATH: not there": there is none in any of the places. */
static bool no_plugin(const char *warning)
{
    return strstr(warning, ": no cuda backend") &&
           count_of(warning, ": not there") == count_of(warning, "; ") + 1;
}

static void print_warning(const char *warning, bool verbose)
{
    if (!warning[0]) return;
    if (verbose || !no_plugin(warning))
        printf("warning: %s\n", warning);
    else
        printf("no CUDA plugin is installed, which --device cuda wants (doc/cuda.md); --verbose tells where "
               "it was "
               "looked for\n");
}

static int show(const exphil_device_info *devices, int64_t count, const choice *taken,
                const devices_options *o)
{
    if (o->json) return show_json(devices, count, taken);
    printf("%-8s %-12s %8s %12s  %s\n", "device", "isa", "workers", "memory", "name");
    for (int64_t i = 0; i < count; i++) print_device(&devices[i]);
    printf("--device auto takes %s\n", taken->device.id);
    print_warning(taken->warning, o->verbose);
    return 0;
}

/* auto first: it starts the driver of a GPU, which then lists all devices and their memory. */
static int list_devices(const devices_options *o)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    choice taken = {.device = EXPHIL_DEVICE_INFO_INIT};
    if (!opened_device("auto", &taken, &error)) return complain("auto", &error);
    int64_t count = exphil_device_count(), known = 0;
    exphil_device_info *devices = calloc((size_t)count, sizeof *devices);
    if (!devices) return fprintf(stderr, "exphil: no memory for %" PRId64 " devices\n", count), 1;
    while (known < count && listed_device(known, &devices[known], &error)) known++;
    int status = known == count ? show(devices, count, &taken, o) : complain("devices", &error);
    free(devices);
    return status;
}

int devices_command(int argc, char **argv)
{
    devices_options o = {.json = false};
    const option_entry entries[] = {
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: a table)"},
        {"verbose", OPTION_FLAG, &o.verbose, NULL,
         "where a CUDA plugin was looked for (default: whether there is one)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "devices [OPTIONS]",
        .about =
            "What --device may be here: the processor, and GPUs where the library's plugin and a driver for "
            "them are;\nand which of them auto takes. Workers are the threads that the processor's work is "
            "shared by.\nA dash stands for what is not known, or not of this device.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0) return list_devices(&o);
    fprintf(stderr, "exphil: devices takes options alone, not %s; see exphil devices --help\n", argv[1]);
    return 2;
}
