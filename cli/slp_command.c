/* `exphil slp info|dump|verify`: what a replay says, its canonical bytes, and comparison with a manifest. */
#include "slp_command.h"

#include "files.h"
#include "slp_manifest.h"
#include "slp_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage_text[] =
    "usage: exphil slp info FILE... [--json]\n"
    "       exphil slp dump FILE --what state|input|aux|items [--slot P1] [--rollback last|first|all] [--out "
    "FILE [--force]]\n"
    "       exphil slp verify MANIFEST.tsv\n"
    "\n"
    "info    what each replay is: version, stage, ports, frames, how it ends, what is odd about it.\n"
    "        With --json one JSON object a file, one a line. Names and codes of players are never shown.\n"
    "dump    canonical little-endian bytes (include/exphil/slp.h, section 5) to stdout or a file.\n"
    "        Slots are P1..P4, and P1n..P4n for Nana; items need none. Without --out: stdout.\n"
    "        A file that is there already is replaced only with --force.\n"
    "        --rollback chooses among the simulations of a frame (default last).\n"
    "verify  reads each file of a manifest and compares; ends with 'N passed, N failed'.\n"
    "        The files lie beside the manifest; its sha256 column is checked as well.\n"
    "\n"
    "Exit status: 0 done, 1 a file was refused or differs, 2 usage.\n";

struct options {
    const char *what, *slot, *out, *rollback;
    const char **files;
    size_t file_count;
    int json, help, force;
};

static int usage(const char *complaint, const char *about)
{
    (void)fprintf(stderr, "exphil slp: %s%s; see exphil slp --help\n", complaint, about);
    return 2;
}

/* Where the value of an option goes; NULL for an unknown option. */
static const char **option_place(struct options *options, const char *name)
{
    if (strcmp(name, "--what") == 0) return &options->what;
    if (strcmp(name, "--slot") == 0) return &options->slot;
    if (strcmp(name, "--out") == 0) return &options->out;
    if (strcmp(name, "--rollback") == 0) return &options->rollback;
    return NULL;
}

/* 0, or the exit status of a wrong line. files has space for argc names. */
static int parse(int argc, char **argv, struct options *options)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options->json = 1;
        } else if (strcmp(argv[i], "--force") == 0) {
            options->force = 1;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options->help = 1;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            const char **place = option_place(options, argv[i]);
            if (!place) return usage("unknown option ", argv[i]);
            if (i + 1 == argc) return usage("value missing after ", argv[i]);
            *place = argv[++i];
        } else {
            options->files[options->file_count++] = argv[i];
        }
    }
    return 0;
}

/* ---- sub-commands -------------------------------------------------------------------------------------- */

static int fail(const exphil_error *error)
{
    (void)fprintf(stderr, "exphil slp: %s: %s\n", exphil_status_name(error->status), error->message);
    return 1;
}

static bool open_replay(exphil_context *context, const char *path, exphil_slp **slp, exphil_error *error)
{
    if (file_kind_of(path) != FILE_FOLDER) return exphil_slp_open(context, path, NULL, slp, error) >= 0;
    error->status = EXPHIL_E_INVALID;
    (void)snprintf(error->message, sizeof error->message,
                   "\"%.150s\": this is a folder; name the replays in it, as FOLDER/*.slp does", path);
    return false;
}

static int info_command(exphil_context *context, const struct options *options)
{
    int refused = 0;
    if (options->file_count == 0) return usage("info needs a file", "");
    for (size_t i = 0; i < options->file_count; i++) {
        exphil_slp *slp = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        if (!open_replay(context, options->files[i], &slp, &error)) refused = 1;
        if (options->json)
            slp_report_json(stdout, options->files[i], slp, &error);
        else if (slp)
            slp_report_text(stdout, options->files[i], slp);
        else
            (void)fail(&error);
        exphil_slp_destroy(slp);
    }
    return refused;
}

/* Index of the slot "P1".."P4" or "P1n".."P4n"; -1 when there is none, -2 when this is no slot's name. */
static int32_t slot_of(const exphil_slp *slp, const char *name)
{
    if (!name || (name[0] != 'P' && name[0] != 'p') || name[1] < '1' || name[1] > '4') return -2;
    if (name[2] && (name[2] != 'n' || name[3])) return -2;
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        if (slot->port == name[1] - '1' && slot->follower == (name[2] == 'n')) return i;
    }
    return -1;
}

static int index_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

/* Pipes and devices take bytes as they come. */
static bool may_write(const struct options *options)
{
    const char *out = options->out;
    struct stat facts;
    if (!out || strcmp(out, "-") == 0 || strncmp(out, "/dev/", 5) == 0) return true;
    if (stat(out, &facts) == 0 && S_ISFIFO(facts.st_mode)) return true;
    return output_spares("out", out, options->files[0]) &&
           output_free("out", out, OUTPUT_IN_PLACE, options->force != 0);
}

static int write_bytes(const char *path, const void *data, size_t bytes)
{
    bool named = path && strcmp(path, "-") != 0;
    FILE *file = named ? fopen(path, "wb") : stdout;
    int good = file && fwrite(data, 1, bytes, file) == bytes && fflush(file) == 0;
    if (named && file && fclose(file) != 0) good = 0;
    if (!good) (void)fprintf(stderr, "exphil slp: cannot write %s\n", path ? path : "to stdout");
    return good ? 0 : 1;
}

static int dump_slp(const exphil_slp *slp, int32_t kind, const struct options *options)
{
    int32_t slot = kind == EXPHIL_SLP_DUMP_ITEMS ? 0 : slot_of(slp, options->slot);
    exphil_error error = EXPHIL_ERROR_INIT;
    int result = 1;
    if (slot == -2) return usage("--slot must be P1..P4 or P1n..P4n", "");
    if (slot < 0) {
        (void)fprintf(stderr, "exphil slp: the replay has no records of %s\n", options->slot);
        return 1;
    }
    size_t bytes = exphil_slp_dump_bytes(slp, kind, slot);
    void *buffer = malloc(bytes + 1);
    if (!buffer)
        (void)fprintf(stderr, "exphil slp: no memory\n");
    else if (exphil_slp_dump(slp, kind, slot, buffer, bytes, &error) < 0)
        result = fail(&error);
    else
        result = write_bytes(options->out, buffer, bytes);
    free(buffer);
    return result;
}

static int dump_command(exphil_context *context, const struct options *options)
{
    static const char *const kinds[] = {"state", "input", "aux", "items"};
    static const char *const rollbacks[] = {"last", "first", "all"};
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    int kind = index_of(options->what, kinds, 4);
    if (options->file_count != 1) return usage("dump needs one file", "");
    if (kind < 0) return usage("--what must be state, input, aux or items", "");
    config.rollback = options->rollback ? index_of(options->rollback, rollbacks, 3) : 0;
    if (config.rollback < 0) return usage("--rollback must be last, first or all", "");
    if (!may_write(options)) return 1;
    if (exphil_slp_open(context, options->files[0], &config, &slp, &error) < 0) return fail(&error);
    int result = dump_slp(slp, kind, options);
    exphil_slp_destroy(slp);
    return result;
}

static int verify_command(exphil_context *context, const struct options *options)
{
    if (options->file_count != 1) return usage("verify needs one manifest", "");
    return slp_manifest_verify(context, options->files[0], stdout) != 0;
}

static int run(const char *name, const struct options *options)
{
    static const char *const names[] = {"info", "dump", "verify"};
    int (*const commands[])(exphil_context *, const struct options *) = {info_command, dump_command,
                                                                         verify_command};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    int command = index_of(name, names, 3);
    if (command < 0) return usage("unknown command ", name);
    if (command > 0 && options->json) return usage("--json is for info, not for ", name);
    config.threads = 1;
    if (exphil_context_create(&config, &context, &error) < 0) return fail(&error);
    int result = commands[command](context, options);
    exphil_context_destroy(context);
    return result;
}

int slp_command(int argc, char **argv)
{
    struct options options = {0};
    if (argc < 2) return usage("a command is needed", "");
    options.files = calloc((size_t)argc, sizeof *options.files);
    if (!options.files) return 1;
    int result = parse(argc, argv, &options);
    if (options.help || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        result = fputs(usage_text, stdout) < 0;
    else if (result == 0)
        result = run(argv[1], &options);
    free(options.files);
    return result;
}
