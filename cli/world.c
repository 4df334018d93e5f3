/* A world by its name: the library's own, and the drill. Of another library it is what the function exphil_world_open there
 * makes (exphil/learn.h). */
#include "world.h"

#include "commands.h"
#include "drill_game.h"
#include "files.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: it has not so many seats. */
static const struct {
    const char *name, *of_seats[2];
} names[] = {{"cartpole", {"cartpole", NULL}},
             {"cartpole-blind", {"cartpole-blind", NULL}},
             {"drill", {"drill", NULL}},
             {"pong", {"pong", "pong-two"}},
             {"pong-two", {NULL, "pong-two"}}};
enum { NAMES = sizeof names / sizeof names[0] };

static int find(const char *name)
{
    int i = 0;
    while (i < NAMES && strcmp(names[i].name, name) != 0) i++;
    return i;
}

bool world_foreign(const char *name)
{
    return strchr(name + system_drive(name), ':') || name_ends(name, system_library_end);
}

bool world_known(const char *name)
{
    return world_foreign(name) || find(name) < NAMES;
}

bool world_has_seats(const char *name, int seats)
{
    int i = find(name);
    return world_foreign(name) || (i < NAMES && names[i].of_seats[seats - 1]);
}

/* ---- other libraries ----------------------------------------------------------------------------------------------------- */

/* A word without a folder is exphil_world_WORD.so (.dylib, .dll), in the folder of worlds. NULL: path has it. */
static const char *path_of(const char *word, char *path, size_t bytes)
{
    const bool named = strchr(word, '/') || strstr(word, system_library_end);
    const char *folder = named ? NULL : system_worlds();
    if (!named && !folder)
        return "the folder of worlds is not known, or has too long a path; see EXPHIL_WORLDS";
    int length = named ? snprintf(path, bytes, "%s%s", strchr(word, '/') ? "" : "./", word)
                       : snprintf(path, bytes, "%s/exphil_world_%s%s", folder, word, system_library_end);
    return length > 0 && (size_t)length < bytes ? NULL : "the path of its library is too long";
}

/* The library stays loaded: worlds of it are in use until the program ends. */
static exphil_world_open_fn open_of(const char *word)
{
    char path[SYSTEM_PATH];
    exphil_world_open_fn open = NULL;
    const char *why = path_of(word, path, sizeof path);
    void *library = why ? NULL : system_library(path, false);
    if (library) *(void **)&open = system_symbol(library, "exphil_world_open");
    if (!library)
        fprintf(stderr, "exphil: --world %s: %s\n", word, why ? why : system_library_why());
    else if (!open)
        fprintf(stderr, "exphil: --world %s: no function exphil_world_open\n", word);
    return open;
}

static bool open_foreign(const char *name, int64_t lanes, int seats, exphil_world *world)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    char word[SYSTEM_PATH];
    size_t drive = system_drive(name), length = drive + strcspn(name + drive, ":");
    (void)snprintf(word, sizeof word, "%.*s", (int)length, name);
    exphil_world_open_fn open = open_of(word);
    if (!open) return false;
    *world = (exphil_world){.struct_size = sizeof *world};
    exphil_status status = open(name[length] ? name + length + 1 : "", lanes, seats, world, &error);
    if (status < 0 && error.status == EXPHIL_OK) {
        fprintf(stderr, "exphil: --world %s refuses %lld games of %d seat%s: %s, and does not say why\n",
                word, (long long)lanes, seats, seats == 1 ? "" : "s", exphil_status_name(status));
        return false;
    }
    if (status < 0) return complain("--world", &error) == 0;
    /* Its functions would take, and exphil_world_destroy would clear, what is behind the struct's end. */
    const bool longer = world->struct_size > sizeof *world;
    if (longer) world->struct_size = sizeof *world;
    const char *wrong = longer ? "with a longer struct than this program has"
                        : !world->step || !world->reset || !world->spec ? "without step, reset or spec"
                        : world->lanes != lanes                         ? "with another number of lanes"
                        : world->seats != seats                         ? "with another number of seats"
                                                                        : NULL;
    if (!wrong) return true;
    fprintf(stderr, "exphil: --world %s made a world %s\n", word, wrong);
    exphil_world_destroy(world);
    return false;
}

bool world_open(exphil_context *context, const char *name, int64_t lanes, int seats, exphil_world *world)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (world_foreign(name)) return open_foreign(name, lanes, seats, world);
    if (strcmp(name, "drill") == 0 && seats == 1)
        return drill_game_open(lanes, world, &error) >= 0 || complain("--world drill", &error) == 0;
    int i = find(name);
    if (exphil_world_create(context, i < NAMES ? names[i].of_seats[seats - 1] : name, lanes, world, &error) <
        0)
        return complain("--world", &error) == 0;
    return true;
}

int32_t world_step_some(const exphil_world *world, int64_t first, int64_t count, const uint8_t *gone,
                        const int32_t *actions, float *floats, int32_t *ids, float *reward, uint8_t *end)
{
    const exphil_spec *spec = world->spec;
    int32_t code = 0;
    for (int64_t s = 0; s < count * world->seats; s++) reward[s] = 0.0f;
    for (int64_t i = 0, n; i < count && !code; i += n + 1) {
        int64_t seat = i * world->seats;
        for (n = 0; i + n < count && !gone[i + n];) n++;
        if (n)
            code = world->step(world->user, first + i, n, actions + seat * spec->head_count,
                               floats + seat * spec->float_count, ids + seat * spec->id_count, reward + seat,
                               end + i);
    }
    return code;
}
