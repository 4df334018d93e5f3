/* From the files on a command line to a dataset. */
#include "commands.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void log_line(void *user, exphil_log_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "exphil: %s%s\n", level <= EXPHIL_LOG_WARNING ? "warning: " : "", message);
}

bool open_context(int64_t threads, const char *device, const char *isa, exphil_context **context)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = (int32_t)threads;
    config.device = device;
    config.cpu_isa = isa;
    config.log = log_line;
    if (exphil_context_create(&config, context, &error) >= 0) return true;
    complain("context", &error);
    return false;
}

bool preset_spec(const data_options *options, exphil_spec *spec)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (exphil_melee_spec(options->layout, options->codec, spec, &error) >= 0) return true;
    complain("layout", &error);
    return false;
}

static bool add_replay(exphil_dataset *dataset, const char *path, const data_options *options, bool must)
{
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.character = options->character;
    config.port = (int32_t)options->port;
    config.opponent_port = (int32_t)options->opponent;
    config.first_frame = (int32_t)options->first;
    config.last_frame = (int32_t)options->last;
    if (exphil_dataset_add_replay(dataset, path, &config, &result, &error) < 0) {
        complain(path, &error);
        return !must && error.status != EXPHIL_E_MEMORY;
    }
    fprintf(stderr, "%s: %" PRId64 " frames in %" PRId64 " episode%s%s\n", path, result.frames, result.episodes,
            result.episodes == 1 ? "" : "s", result.truncated ? " (the replay ends early)" : "");
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static bool add_path(exphil_dataset *dataset, const char *path, const data_options *options, int depth);

/* A folder's replays in the order of their names, so that the same folder gives the same dataset everywhere. */
static bool add_folder(exphil_dataset *dataset, const char *path, const data_options *options, int depth)
{
    struct dirent **entry = NULL;
    int count = scandir(path, &entry, NULL, by_name);
    bool fine = count >= 0;
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        size_t length = strlen(path) + strlen(name) + 2;
        char *full = name[0] == '.' ? NULL : malloc(length);
        if (full) {
            snprintf(full, length, "%s/%s", path, name);
            fine = fine && add_path(dataset, full, options, depth + 1);
        }
        free(full);
        free(entry[i]);
    }
    free(entry);
    return fine;
}

static bool add_path(exphil_dataset *dataset, const char *path, const data_options *options, int depth)
{
    struct stat kind;
    size_t length = strlen(path);
    bool replay = length > 4 && strcmp(path + length - 4, ".slp") == 0;
    if (stat(path, &kind) == 0 && S_ISDIR(kind.st_mode)) return depth > 16 || add_folder(dataset, path, options, depth);
    if (depth > 0 && !replay) return true;
    return add_replay(dataset, path, options, depth == 0);
}

static bool is_corpus(const char *path)
{
    size_t length = strlen(path);
    return length > 7 && strcmp(path + length - 7, ".corpus") == 0;
}

static bool open_corpus(exphil_context *context, const char *path, exphil_dataset **dataset)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (exphil_dataset_open(context, path, dataset, &error) < 0) return complain(path, &error) == 0;
    if (exphil_dataset_query(*dataset, &info, &error) >= 0)
        fprintf(stderr, "%s: %" PRId64 " frames in %" PRId64 " episodes%s\n", path, info.frames, info.episodes,
                info.recovered ? " (torn tail: the whole episodes were kept)" : "");
    return true;
}

bool load_dataset(exphil_context *context, const exphil_spec *spec, const data_options *options, int count, char **paths,
                  exphil_dataset **dataset)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (count == 1 && is_corpus(paths[0])) return open_corpus(context, paths[0], dataset);
    config.spec = spec;
    if (exphil_dataset_create(context, &config, dataset, &error) < 0) return complain("dataset", &error) == 0;
    bool fine = true;
    for (int i = 0; fine && i < count; i++) fine = add_path(*dataset, paths[i], options, 0);
    if (fine && exphil_dataset_query(*dataset, &info, &error) >= 0 && info.frames > 0) return true;
    if (fine) fprintf(stderr, "exphil: no frames were found in what was given\n");
    exphil_dataset_destroy(*dataset);
    return false;
}
