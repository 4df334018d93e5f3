/* Games of an emulator as worlds, by the functions of exphil_world alone. libretro_world.sh builds it.
 *   world_check LIBRARY CORE,ROM MAP OWN AGAINST SHORT
 * LIBRARY exports exphil_world_open; CORE,ROM are its first arguments; of the maps OWN and AGAINST reward one side's points,
 * and SHORT cuts off after 300 frames. */
#include <exphil/learn.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 5, FLOATS = 7, FRAMES = 700, CUT = 300 };

static int failures;

#define CHECK(truth, ...)                                                                                    \
  do {                                                                                                       \
    if (!(truth)) {                                                                                          \
      fprintf(stderr, "world_check:%d: ", __LINE__);                                                         \
      fprintf(stderr, __VA_ARGS__);                                                                          \
      fputc('\n', stderr);                                                                                   \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)

static exphil_world_open_fn open_world;
static const char *core_and_rom;

typedef struct played {
    exphil_world world;
    float floats[LANES][FLOATS], reward[LANES];
    int32_t ids[1];
    uint8_t end[LANES];
} played;

static played *make(const char *map, int threads)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    char arguments[4096];
    played *p = calloc(1, sizeof *p);
    snprintf(arguments, sizeof arguments, "%s,map=%s,threads=%d", core_and_rom, map, threads);
    if (p) p->world.struct_size = sizeof p->world;
    if (p && open_world(arguments, LANES, 1, &p->world, &error) >= 0) return p;
    fprintf(stderr, "world_check: %s\n", error.message);
    exit(1);
}

static void drop(played *p)
{
    exphil_world_destroy(&p->world);
    free(p);
}

static void begin(played *p, int64_t lane, uint64_t seed)
{
    CHECK(!p->world.reset(p->world.user, lane, seed, p->floats[lane], p->ids), "reset");
}

static void step(played *p, int64_t first, int64_t count, const int32_t *actions)
{
    CHECK(!p->world.step(p->world.user, first, count, actions, p->floats[first], p->ids, p->reward + first,
                         p->end + first),
          "step");
}

/* What lane presses in a frame: held for a while, so that paddles get somewhere. */
static int32_t press_of(int64_t lane, int frame)
{
    return (int32_t)((frame / 9 + lane) * 7 % 5 % 3);
}

static void step_all(played *p, int frame)
{
    int32_t actions[LANES];
    for (int64_t lane = 0; lane < LANES; lane++) actions[lane] = press_of(lane, frame);
    step(p, 0, LANES, actions);
}

static void step_one(played *p, int64_t lane, int32_t action)
{
    step(p, lane, 1, &action);
}

/* Threads, and how lanes are asked for, change nothing. */
static void try_threads(const char *map)
{
    played *one = make(map, 1), *three = make(map, 3);
    int different = 0;
    for (int64_t lane = 0; lane < LANES; lane++)
        begin(one, lane, 40 + (uint64_t)lane), begin(three, lane, 40 + (uint64_t)lane);
    for (int frame = 0; frame < FRAMES; frame++) {
        step_all(three, frame);
        for (int64_t lane = LANES - 1; lane >= 0; lane--) step_one(one, lane, press_of(lane, frame));
        CHECK(!memcmp(one->floats, three->floats, sizeof one->floats), "rows differ in frame %d", frame);
        CHECK(!memcmp(one->reward, three->reward, sizeof one->reward), "rewards differ in frame %d", frame);
        different += memcmp(one->floats[0], one->floats[1], sizeof one->floats[0]) != 0;
        if (failures) break;
    }
    CHECK(different > FRAMES / 2, "two lanes play one game");
    drop(one);
    drop(three);
}

/* An episode is a function of its seed, on any lane, whatever was played before; seeds differ. */
static void try_seeds(const char *map)
{
    played *p = make(map, 2);
    float seen[40][FLOATS];
    int kinds = 0;
    for (int64_t lane = 0; lane < LANES; lane++) begin(p, lane, (uint64_t)lane);
    for (int frame = 0; frame < 100; frame++) step_all(p, frame);
    begin(p, 0, 7);
    begin(p, 3, 7);
    for (int frame = 0; frame < 200; frame++) {
        step_one(p, 0, press_of(0, frame));
        step_one(p, 3, press_of(0, frame));
        CHECK(!memcmp(p->floats[0], p->floats[3], sizeof p->floats[0]), "a seed gives two games");
    }
    for (int seed = 0; seed < 40; seed++) {
        begin(p, 1, (uint64_t)seed);
        for (int frame = 0; frame < 200; frame++) step_one(p, 1, press_of(0, frame));
        memcpy(seen[seed], p->floats[1], sizeof seen[seed]);
        int same = 0;
        for (int before = 0; before < seed; before++)
            same |= !memcmp(seen[before], seen[seed], sizeof seen[seed]);
        kinds += !same;
    }
    CHECK(kinds > 20, "40 seeds give %d games", kinds);
    drop(p);
}

/* What one lane has saved another goes on with. */
static void try_states(const char *map)
{
    played *p = make(map, 2);
    unsigned char *state = malloc(p->world.state_bytes);
    if (!state) exit(1);
    for (int64_t lane = 0; lane < LANES; lane++) begin(p, lane, 3 * (uint64_t)lane);
    for (int frame = 0; frame < 400; frame++) step_all(p, frame);
    CHECK(!p->world.save(p->world.user, 1, state) && !p->world.load(p->world.user, 4, state), "save, load");
    for (int frame = 0; frame < 400; frame++) {
        step_one(p, 1, press_of(2, frame));
        step_one(p, 4, press_of(2, frame));
        CHECK(!memcmp(p->floats[1], p->floats[4], sizeof p->floats[1]) && p->reward[1] == p->reward[4],
              "frame %d after a state differs", frame);
        if (failures) break;
    }
    free(state);
    drop(p);
}

/* Rewards by other maps of the same games: own points, the other's; the first to 21 ends it. */
static void try_rewards(const char *map, const char *own, const char *against)
{
    played *both = make(map, 2), *made = make(own, 2), *lost = make(against, 2);
    double sum = 0.0, points = 0.0, conceded = 0.0;
    int frame = 0;
    begin(both, 0, 11);
    begin(made, 0, 11);
    begin(lost, 0, 11);
    do {
        int32_t action = press_of(0, frame);
        step_one(both, 0, action);
        step_one(made, 0, action);
        step_one(lost, 0, action);
        sum += (double)both->reward[0];
        points += (double)made->reward[0];
        conceded += (double)lost->reward[0];
        CHECK(both->end[0] == made->end[0] && both->end[0] == lost->end[0], "one of three games ends");
    } while (++frame < 20000 && both->end[0] == EXPHIL_GOES_ON && !failures);
    CHECK(both->end[0] == EXPHIL_OVER, "after %d frames the game is not over", frame);
    CHECK(sum == points - conceded, "rewards of %g for %g points to %g", sum, points, conceded);
    CHECK(points == 21.0 || conceded == 21.0, "it ends at %g to %g", points, conceded);
    drop(both);
    drop(made);
    drop(lost);
}

static void try_cut(const char *map)
{
    played *p = make(map, 1);
    int frames = 0;
    begin(p, 2, 1);
    do step_one(p, 2, 0);
    while (++frames < 2 * CUT && p->end[2] == EXPHIL_GOES_ON);
    CHECK(frames == CUT && p->end[2] == EXPHIL_CUT_OFF, "cut off after %d frames, end %d", frames, p->end[2]);
    drop(p);
}

/* Every lane has variables of its own, and all run the code of one file. Where the system tells what is mapped. */
static void try_code(const char *map)
{
    char line[4096];
    int shared = 0, copied = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return;
    fclose(maps);
    played *p = make(map, 1);
    maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, " r-xp ")) continue;
        copied += strstr(line, "/exphil-core-") != NULL;
        shared += strstr(line, "_libretro.so") != NULL && !strstr(line, "exphil_world_libretro.so");
    }
    if (maps) fclose(maps);
    CHECK(shared == LANES && copied == 0, "%d lanes run the core's file, %d a copy", shared, copied);
    drop(p);
}

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library) *(void **)&open_world = dlsym(library, "exphil_world_open");
    if (!open_world) return fprintf(stderr, "world_check: %s\n", dlerror()), 1;
    core_and_rom = argv[2];
    try_threads(argv[3]);
    try_seeds(argv[3]);
    try_states(argv[3]);
    try_rewards(argv[3], argv[4], argv[5]);
    try_cut(argv[6]);
    try_code(argv[3]);
    return failures != 0;
}
