/* exphil-libretro-run: a game without a screen, for tests and demos. Loads a core (or the plugin around one), plays other
 * seats by script, counts points and costs, takes a moving picture, and tries save states. */
#include "core_host.h"
#include "run_caption.h"
#include "run_picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEATS        4
#define FRAME_NS     16666667.0
#define DRILL_FRAMES 120
#define SHOWN_LATER  2 /* frames from a console's memory to its screen */

typedef int32_t (*teacher_fn)(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action);
typedef int32_t (*takes_over_fn)(const uint8_t *state, uint32_t bytes, int32_t player);

/* A player whom the runner plays: by a teacher's library, or at random. */
struct seat {
    struct game_map map;
    teacher_fn teacher;
    takes_over_fn takes_over; /* NULL: always there */
    int plays, pressed;       /* as the button was pressed last; and it was in the frame before */
    uint64_t random;
    int begun; /* the game was once as the map wants it */
};

static struct {
    const char *core, *rom, *score, *picture, *name[2];
    long frames, drill, picture_from, picture_frames; /* picture_from -1: when play begins */
    int realtime;
    struct seat seat[SEATS];
    int seats;
    struct game_map map; /* for the score */
    int begun;
    struct run_picture *out;
    uint8_t *points_of_picture; /* the game's and the caption */
    unsigned width, height;     /* of the game's part */
    double points[2];
    int64_t scored[2];
} run = {.frames = 600, .picture_from = -1, .picture_frames = 1200};

static const char usage[] =
    "usage: exphil-libretro-run --core FILE --rom FILE [OPTIONS]\n"
    "  --frames N            how many (default 600)\n"
    "  --seat MAP WHO        plays the map's player: WHO is a teacher's library, or "
    "random (may be given 4 times).\n"
    "                        A library with exphil_takes_over presses select when it takes "
    "over from a policy, and hands back\n"
    "  --score MAP           counts points as the map says; its player stands first\n"
    "  --option NAME=VALUE   a core option (may be given 16 times)\n"
    "  --picture FILE.gif    takes a picture of every third frame ...\n"
    "  --picture-from N      ... from this one on (default: where the game of "
    "--score or --seat begins) ...\n"
    "  --picture-frames N    ... for so many frames (default 1200)\n"
    "  --names OWN OTHER     writes who plays and the points of --score under the "
    "picture; OWN is the player of its map\n"
    "  --drill N             then N times: save, 120 frames, load, the same 120 "
    "frames; demands the same memory in each\n"
    "  --realtime            60 frames a second instead of as fast as it goes, and how many were late\n"
    "  --blind               no picture and no sound is asked of the core\n"
    "  --verbose             what core and plugin say\n";

static struct core_host host;

/* ---- command line ---- */

static int load_map(struct game_map *map, const char *path)
{
    char message[1024];
    if (!game_map_load(map, path, message, sizeof message)) return 0;
    return fprintf(stderr, "exphil-libretro-run: %s\n", message), -1;
}

static int add_seat(const char *map, const char *who)
{
    struct seat *seat = &run.seat[run.seats];
    if (run.seats == SEATS) return fprintf(stderr, "exphil-libretro-run: more than %d seats\n", SEATS), -1;
    if (load_map(&seat->map, map)) return -1;
    seat->random = 88172645463325252u + (uint64_t)run.seats++;
    if (!strcmp(who, "random")) return 0;
    char why[512] = "it has no function exphil_teacher";
    void *library = system_library_open(who, why, sizeof why);
    if (library) *(void **)&seat->teacher = system_library_find(library, "exphil_teacher");
    if (!seat->teacher) return fprintf(stderr, "exphil-libretro-run: no teacher: %s: %s\n", who, why), -1;
    *(void **)&seat->takes_over = system_library_find(library, "exphil_takes_over");
    return 0;
}

static int add_option(char *text)
{
    char *value = strchr(text, '=');
    if (!value || host.options == CORE_OPTIONS)
        return fprintf(stderr, "exphil-libretro-run: --option %s\n", text), -1;
    *value = 0;
    host.option_name[host.options] = text;
    host.option_value[host.options++] = value + 1;
    return 0;
}

static int take_flag(const char *name)
{
    if (!strcmp(name, "--realtime")) return run.realtime = 1, 0;
    if (!strcmp(name, "--verbose")) return host.verbose = 1, 0;
    if (!strcmp(name, "--blind")) return host.blind = 1, 0;
    return -1;
}

static int take_number(const char *name, const char *text, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    if (end != text && !*end && !errno && *number >= 0) return 0;
    return fprintf(stderr, "exphil-libretro-run: %s wants a whole number, not '%s'\n", name, text), -1;
}

static int take_value(const char *name, char *value)
{
    const struct {
        const char *name, **text;
        long *number;
    } table[] = {{"--core", &run.core, NULL},     {"--rom", &run.rom, NULL},
                 {"--score", &run.score, NULL},   {"--picture", &run.picture, NULL},
                 {"--frames", NULL, &run.frames}, {"--picture-from", NULL, &run.picture_from},
                 {"--drill", NULL, &run.drill},   {"--picture-frames", NULL, &run.picture_frames}};
    if (!strcmp(name, "--option")) return add_option(value);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name)) continue;
        if (table[i].text)
            *table[i].text = value;
        else
            return take_number(name, value, table[i].number);
        return 0;
    }
    fprintf(stderr, "exphil-libretro-run: what is %s?\n%s", name, usage);
    return -1;
}

static int take_options(int argc, char **argv)
{
    for (int i = 1; i < argc;) {
        if (!take_flag(argv[i])) {
            i++;
        } else if (!strcmp(argv[i], "--seat") && i + 2 < argc) {
            if (add_seat(argv[i + 1], argv[i + 2])) return -1;
            i += 3;
        } else if (!strcmp(argv[i], "--names") && i + 2 < argc) {
            run.name[0] = argv[i + 1], run.name[1] = argv[i + 2];
            i += 3;
        } else if (i + 1 < argc) {
            if (take_value(argv[i], argv[i + 1])) return -1;
            i += 2;
        } else {
            return fputs(usage, stderr), -1;
        }
    }
    if (!run.core || !run.rom) return fputs(usage, stderr), -1;
    if (run.name[0] && !(run.score && run.picture))
        return fprintf(stderr, "exphil-libretro-run: --names wants --score and --picture\n"), -1;
    if (host.blind && run.picture)
        return fprintf(stderr, "exphil-libretro-run: --blind takes no --picture\n"), -1;
    if (!run.score) return 0;
    if (load_map(&run.map, run.score)) return -1;
    if (run.map.score[0] >= 0) return 0;
    return fprintf(stderr, "exphil-libretro-run: %s has no line 'score OWN-FIELD OTHER-FIELD'\n", run.score),
           -1;
}

/* ---- players ---- */

/* xorshift64 (Marsaglia 2003). */
static uint32_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* -1: the game does not run yet. */
static int read_game(struct game_map *map, double *values, int *begun)
{
    int missing;
    if (core_host_read(&host, map, values, &missing)) return -1;
    *begun = 1;
    return 0;
}

/* The game never ran by this map: why. */
static void tell_unready(const struct game_map *map)
{
    char why[1024];
    core_host_unready(&host, map, why, sizeof why);
    fprintf(stderr, "exphil-libretro-run: %s\n", why);
}

/* 0: every map that was given fits, or nothing was played. */
static int check_maps(void)
{
    int wrong = 0;
    for (int i = 0; i < run.seats && run.frames; i++)
        if (!run.seat[i].begun) tell_unready(&run.seat[i].map), wrong = -1;
    if (run.score && run.frames && !run.begun) tell_unready(&run.map), wrong = -1;
    return wrong;
}

/* For one frame, when who plays is to change: the plugin takes a button that was up before. */
static void press_button(struct seat *seat, const uint8_t *state, struct game_press *pad)
{
    int wanted = seat->takes_over(state, seat->map.state_bytes, seat->map.player) != 0;
    if (wanted != seat->plays && !seat->pressed) {
        pad->buttons |= 1u << RETRO_DEVICE_ID_JOYPAD_SELECT;
        seat->plays = wanted;
        seat->pressed = 1;
    } else {
        seat->pressed = 0;
    }
}

static void play_seat(struct seat *seat)
{
    double values[GAME_MAP_FIELDS];
    int32_t action[EXPHIL_HEADS_MAX] = {0};
    struct game_press press, *pad = &host.pad[seat->map.port - 1];
    if (read_game(&seat->map, values, &seat->begun)) return;
    if (seat->teacher) {
        const uint8_t *state = core_memory_at(&host.memory, seat->map.state_address, seat->map.state_bytes);
        if (!state) return;
        if (seat->takes_over) press_button(seat, state, pad);
        if (seat->teacher(state, seat->map.state_bytes, seat->map.player, action)) return;
    } else {
        for (int h = 0; h < seat->map.heads; h++) {
            const struct game_head *head = &seat->map.head[h];
            uint32_t most = head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count;
            action[h] = (int32_t)(draw(&seat->random) % most);
        }
    }
    game_map_press(&seat->map, action, &press);
    pad->buttons |= press.buttons;
    for (int i = 0; i < GAME_MAP_AXES; i++)
        if (press.given & 1u << i) pad->axis[i] = press.axis[i];
}

static void count_points(void)
{
    double values[GAME_MAP_FIELDS];
    if (!run.score || read_game(&run.map, values, &run.begun)) return;
    for (int side = 0; side < 2; side++) {
        run.scored[side] += game_map_points(values[run.map.score[side]], &run.points[side]);
    }
}

static void one_frame(void)
{
    memset(host.pad, 0, sizeof host.pad);
    for (int i = 0; i < run.seats; i++) play_seat(&run.seat[i]);
    core_host_frame(&host);
}

/* ---- picture ---- */

/* By the maps that were given; without one nobody knows, and it is from the start. */
static int play_has_begun(void)
{
    if (run.score) return run.begun;
    for (int i = 0; i < run.seats; i++)
        if (run.seat[i].begun) return 1;
    return run.seats == 0;
}

/* The first picture fixes the size. */
static int picture_begin(void)
{
    unsigned height = host.height + (run.name[0] ? RUN_CAPTION_HEIGHT : 0);
    run.out = run_picture_open(run.picture, host.width, height);
    run.points_of_picture = malloc((size_t)host.width * height);
    run.width = host.width, run.height = host.height;
    return run.out && run.points_of_picture ? 0 : (perror(run.picture), -1);
}

/* Black where the game's picture has become smaller. */
static void picture_compose(void)
{
    uint8_t *points = run.points_of_picture;
    unsigned width = host.width < run.width ? host.width : run.width;
    memset(points, 0, (size_t)run.width * run.height);
    for (unsigned y = 0; y < run.height && y < host.height; y++)
        memcpy(points + (size_t)y * run.width, host.points + (size_t)y * host.width, width);
    if (run.name[0])
        run_caption_draw(points + (size_t)run.height * run.width, run.width, run.name[0], run.name[1],
                         run.scored);
}

static int picture_of(long frame)
{
    if (!run.picture || !host.width) return 0;
    if (run.picture_from < 0 && play_has_begun()) run.picture_from = frame + SHOWN_LATER;
    if (run.picture_from < 0 || frame < run.picture_from || frame >= run.picture_from + run.picture_frames)
        return 0;
    if ((frame - run.picture_from) % 3) return 0;
    if (!run.out && picture_begin()) return -1;
    picture_compose();
    run_picture_add(run.out, run.points_of_picture, 5);
    return 0;
}

/* ---- what it cost ---- */

static int compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, const int32_t *times, int64_t count)
{
    int32_t *sorted = malloc((size_t)count * sizeof *sorted);
    if (!sorted) return;
    memcpy(sorted, times, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    double half = sorted[count / 2], most = sorted[count - 1], late = sorted[(count - 1) * 99 / 100];
    printf("%-9s p50 %.1f us, p99 %.1f us, max %.1f us: %.3f %%, %.3f %%, %.3f %% of a frame\n", name,
           half / 1e3, late / 1e3, most / 1e3, 100 * half / FRAME_NS, 100 * late / FRAME_NS,
           100 * most / FRAME_NS);
    free(sorted);
}

static void print_costs(void)
{
    int64_t (*times)(const int32_t **, const int32_t **);
    const int32_t *decision, *step;
    *(void **)&times = system_library_find(host.core.handle, "exphil_plugin_times");
    int64_t count = times ? times(&decision, &step) : 0;
    if (count <= 0) return;
    print_times("decision", decision, count);
    print_times("of it step", step, count);
}

/* ---- save states ---- */

static uint64_t hash_of_frames(void)
{
    uint64_t hash = 0;
    for (int i = 0; i < DRILL_FRAMES; i++) {
        one_frame();
        hash = core_host_hash(&host, hash);
    }
    return hash;
}

/* Memory holds what the game read from the pads, so equal memory in every frame is equal presses in every frame. */
static int drill(void)
{
    struct seat seats[SEATS];
    size_t size = host.core.retro_serialize_size();
    void *state = malloc(size + 1);
    long same = 0;
    for (long i = 0; state && size && i < run.drill; i++) {
        memcpy(seats, run.seat, sizeof seats);
        if (core_host_save(&host, state, size)) break;
        uint64_t first = hash_of_frames();
        memcpy(run.seat, seats, sizeof seats);
        if (core_host_load(&host, state, size)) break;
        same += hash_of_frames() == first;
    }
    free(state);
    printf("save states: %ld of %ld the same (%zu bytes)\n", same, run.drill, size);
    return same == run.drill ? 0 : -1;
}

/* ---- all of it ---- */

static int play(void)
{
    int64_t start = system_now_ns(), late = 0;
    for (long frame = 0; frame < run.frames; frame++) {
        one_frame();
        count_points();
        if (picture_of(frame)) return -1;
        if (!run.realtime) continue;
        int64_t due = start + (int64_t)((double)(frame + 1) * FRAME_NS) - system_now_ns();
        late += due < 0;
        system_sleep_ns(due);
    }
    double seconds = (double)(system_now_ns() - start) / 1e9;
    printf("%ld frames, %.0f a second\n", run.frames, (double)run.frames / seconds);
    if (run.realtime) printf("late %lld of %ld frames\n", (long long)late, run.frames);
    if (run.score) printf("score %lld:%lld\n", (long long)run.scored[0], (long long)run.scored[1]);
    print_costs();
    printf("memory %016llx\n", (unsigned long long)core_host_hash(&host, 0));
    return 0;
}

int main(int argc, char **argv)
{
    system_hold_streams();
    system_arguments(&argc, &argv);
    if (take_options(argc, argv)) return 2;
    char why[1024];
    if (core_host_open(&host, run.core, run.rom, why, sizeof why)) {
        fprintf(stderr, "exphil-libretro-run: %s\n", why);
        core_host_close(&host);
        return 1;
    }
    int failed = play() != 0;
    if (run.out && run_picture_close(run.out)) perror(run.picture), failed = 1;
    free(run.points_of_picture);
    if (!failed && run.drill) failed = drill() != 0;
    if (!failed) failed = check_maps() != 0;
    if (core_host_close(&host)) failed = 1;
    return failed;
}
