/* Records the scripted player of examples/pong in the library's Pong as a corpus of rows, for `exphil train`.
 *   pong_record OUT FRAMES SEED */
#include "taught.h"

#include <exphil/learn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, FLOATS = 7 };

typedef struct lane {
    float *floats;
    int32_t *actions;
    int64_t frames, capacity, episode;
} lane;

static exphil_error error = EXPHIL_ERROR_INIT;

static void must(exphil_status status)
{
    if (status >= 0) return;
    fprintf(stderr, "pong_record: %s: %s\n", exphil_status_name(status), error.message);
    exit(1);
}

static void keep(lane *l, const float *row, int32_t action)
{
    if (l->frames == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 4096;
        l->floats = realloc(l->floats, (size_t)l->capacity * FLOATS * sizeof *l->floats);
        l->actions = realloc(l->actions, (size_t)l->capacity * sizeof *l->actions);
        if (!l->floats || !l->actions) exit(1);
    }
    memcpy(l->floats + l->frames * FLOATS, row, FLOATS * sizeof *row);
    l->actions[l->frames++] = action;
}

static void flush(exphil_dataset *dataset, lane *l, int64_t index)
{
    if (l->frames)
        must(exphil_dataset_add_rows(dataset, (uint64_t)(index * 100000 + l->episode + 1), l->frames,
                                     l->floats, NULL, l->actions, &error));
    l->frames = 0;
    l->episode++;
}

int main(int argc, char **argv)
{
    static lane lanes[LANES];
    static float floats[LANES * FLOATS], reward[LANES];
    static int32_t ids[1], actions[LANES];
    static uint8_t end[LANES];
    exphil_context *context = NULL;
    exphil_dataset *dataset = NULL;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_world world = {0};
    if (argc != 4) return fprintf(stderr, "usage: pong_record OUT FRAMES SEED\n"), 2;
    int64_t frames = atoll(argv[2]), points = 0, lost = 0;
    uint64_t seed = (uint64_t)atoll(argv[3]) << 32;
    must(exphil_context_create(NULL, &context, &error));
    must(exphil_world_create(context, "pong", LANES, &world, &error));
    config.spec = world.spec;
    must(exphil_dataset_create(context, &config, &dataset, &error));
    for (int64_t i = 0; i < LANES; i++)
        world.reset(world.user, i, seed + (uint64_t)i, floats + i * FLOATS, ids);
    for (int64_t t = 0; t < frames; t += LANES) {
        for (int64_t i = 0; i < LANES; i++) {
            actions[i] = taught(floats + i * FLOATS);
            keep(&lanes[i], floats + i * FLOATS, actions[i]);
        }
        if (world.step(world.user, 0, LANES, actions, floats, ids, reward, end)) return 1;
        for (int64_t i = 0; i < LANES; i++) {
            points += reward[i] > 0.0f;
            lost += reward[i] < 0.0f;
            if (end[i] == EXPHIL_GOES_ON) continue;
            flush(dataset, &lanes[i], i);
            seed += LANES;
            world.reset(world.user, i, seed + (uint64_t)i, floats + i * FLOATS, ids);
        }
    }
    for (int64_t i = 0; i < LANES; i++) flush(dataset, &lanes[i], i);
    must(exphil_dataset_save(dataset, argv[1], &error));
    printf("%s: %lld frames, %.2f points made and %.2f lost in 1,000\n", argv[1], (long long)frames,
           1000.0 * (double)points / (double)frames, 1000.0 * (double)lost / (double)frames);
    exphil_dataset_destroy(dataset);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
    for (int i = 0; i < LANES; i++) free(lanes[i].floats), free(lanes[i].actions);
    return 0;
}
