/* Games of a policy in a world of one seat, from many starts, all at once:
 *   starts LIBRARY ARGUMENTS POLICY STARTS FRAMES SEED drawn|likeliest
 * Each start is played for so many frames; an episode that ends before is followed by another one. Prints {"won", "lost"}, points
 * of each start. LIBRARY: of a world, with its ARGUMENTS; or "-", one of the library's own, whose name ARGUMENTS is. */
#include <exphil/learn.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static exphil_error error = EXPHIL_ERROR_INIT;

static void must(exphil_status status, const char *what)
{
    if (status >= 0) return;
    fprintf(stderr, "starts: %s: %s: %s\n", what, exphil_status_name(status), error.message);
    exit(1);
}

static void *array(int64_t count, size_t each)
{
    void *made = calloc((size_t)count + 1, each);
    if (!made) exit(1);
    return made;
}

static void open_world(exphil_context *context, const char *library, const char *arguments, int64_t lanes,
                       exphil_world *world)
{
    exphil_world_open_fn open = NULL;
    if (strcmp(library, "-") == 0) {
        must(exphil_world_create(context, arguments, lanes, world, &error), "world");
        return;
    }
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded) *(void **)&open = dlsym(loaded, "exphil_world_open");
    if (!open) fprintf(stderr, "starts: %s\n", dlerror()), exit(1);
    must(open(arguments, lanes, 1, world, &error), "world");
}

static void print(const char *name, const int64_t *values, int64_t count, const char *end)
{
    printf("\"%s\": [", name);
    for (int64_t i = 0; i < count; i++) printf("%s%lld", i ? ", " : "", (long long)values[i]);
    printf("]%s", end);
}

static void play(const exphil_world *world, exphil_session *session, int64_t frames, uint64_t seed)
{
    const exphil_spec *spec = world->spec;
    const int64_t lanes = world->lanes;
    float *floats = array(lanes * spec->float_count, sizeof *floats), *reward = array(lanes, sizeof *reward);
    int32_t *ids = array(lanes * spec->id_count, sizeof *ids);
    int32_t *actions = array(lanes * spec->head_count, sizeof *actions);
    int64_t *won = array(lanes, sizeof *won), *lost = array(lanes, sizeof *lost);
    uint8_t *end = array(lanes, 1);
    memset(end, EXPHIL_OVER, (size_t)lanes);
    for (int64_t t = 0; t < frames; t++) {
        for (int64_t i = 0; i < lanes; i++) {
            if (end[i] == EXPHIL_GOES_ON) continue;
            if (world->reset(world->user, i, seed + (uint64_t)(i * frames + t),
                             floats + i * spec->float_count, ids + i * spec->id_count))
                exit(1);
            must(exphil_session_reset(session, i), "reset");
        }
        if (exphil_session_step_row(session, floats, ids, NULL, actions) < 0) {
            (void)exphil_session_error(session, &error);
            must(error.status, "step");
        }
        if (world->step(world->user, 0, lanes, actions, floats, ids, reward, end)) exit(1);
        for (int64_t i = 0; i < lanes; i++) won[i] += reward[i] > 0.0f, lost[i] += reward[i] < 0.0f;
    }
    printf("{");
    print("won", won, lanes, ", ");
    print("lost", lost, lanes, "}\n");
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_world world = {.struct_size = sizeof world};
    if (argc != 8) {
        fprintf(stderr, "usage: starts LIBRARY ARGUMENTS POLICY STARTS FRAMES SEED drawn|likeliest\n");
        return 2;
    }
    must(exphil_context_create(NULL, &context, &error), "context");
    must(exphil_model_load(context, argv[3], &model, &error), argv[3]);
    open_world(context, argv[1], argv[2], atoll(argv[4]), &world);
    config.streams = world.lanes;
    config.spec = world.spec;
    config.seed = strtoull(argv[6], NULL, 10);
    config.deterministic = strcmp(argv[7], "likeliest") == 0;
    must(exphil_session_create(model, &config, &session, &error), "session");
    play(&world, session, atoll(argv[5]), config.seed << 32);
    exphil_session_destroy(session);
    exphil_world_destroy(&world);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
