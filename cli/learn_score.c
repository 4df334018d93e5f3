/* See learn_score.h. */
#include "learn_score.h"
#include "commands.h"
#include "stop.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct arrays {
    float *floats, *reward;
    int32_t *ids, *actions;
    uint8_t *end;
    double sum[SCORE_MOST];
    int64_t frames[SCORE_MOST];
    bool over[SCORE_MOST];
} arrays;

static bool make_arrays(const exphil_world *world, arrays *a)
{
    size_t streams = (size_t)(world->lanes * world->seats);
    a->floats = calloc(streams * (size_t)world->spec->float_count + 1, sizeof *a->floats);
    a->ids = calloc(streams * (size_t)world->spec->id_count + 1, sizeof *a->ids);
    a->actions = calloc(streams * (size_t)world->spec->head_count + 1, sizeof *a->actions);
    a->reward = calloc(streams, sizeof *a->reward);
    a->end = calloc(streams, 1);
    if (a->floats && a->ids && a->actions && a->reward && a->end) return true;
    fprintf(stderr, "exphil: no memory\n");
    return false;
}

static void free_arrays(arrays *a)
{
    free(a->floats);
    free(a->ids);
    free(a->actions);
    free(a->reward);
    free(a->end);
}

static bool begin(const exphil_world *world, int64_t lane, uint64_t seed, const arrays *a)
{
    int64_t first = lane * world->seats;
    int32_t code = world->reset(world->user, lane, seed, a->floats + first * world->spec->float_count,
                                a->ids + first * world->spec->id_count);
    if (code) fprintf(stderr, "exphil: the world's reset failed with %d\n", (int)code);
    return code == 0;
}

/* A lane whose episode has ended stands still until all have ended. */
static bool play_frame(const exphil_world *world, exphil_session *session, arrays *a, int64_t *left)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_session_step_row(session, a->floats, a->ids, NULL, a->actions) < 0) {
        exphil_session_error(session, &error);
        return complain("step", &error) == 0;
    }
    int32_t code =
        world_step_some(world, 0, world->lanes, a->end, a->actions, a->floats, a->ids, a->reward, a->end);
    if (code) fprintf(stderr, "exphil: the world's step failed with %d\n", (int)code);
    for (int64_t lane = 0; code == 0 && lane < world->lanes; lane++) {
        if (a->over[lane]) continue;
        a->sum[lane] += (double)a->reward[lane * world->seats];
        a->frames[lane]++;
        a->over[lane] = a->end[lane] != EXPHIL_GOES_ON;
        *left -= a->over[lane];
    }
    return code == 0;
}

static void sum_up(const arrays *a, int64_t episodes, learn_score *score)
{
    double sum = 0.0, square = 0.0, frames = 0.0;
    *score = (learn_score){.episodes = episodes, .least = a->sum[0], .most = a->sum[0]};
    for (int64_t i = 0; i < episodes; i++) {
        sum += a->sum[i];
        frames += (double)a->frames[i];
        score->least = fmin(score->least, a->sum[i]);
        score->most = fmax(score->most, a->sum[i]);
    }
    score->mean = sum / (double)episodes;
    for (int64_t i = 0; i < episodes; i++) square += (a->sum[i] - score->mean) * (a->sum[i] - score->mean);
    score->deviation = sqrt(square / (double)episodes);
    score->frames = frames / (double)episodes;
}

/* Whoever asks for an end while a run holds it back for its score waits for an hour of frames at most: episodes of a host's world
 * may never end. */
static bool ended(int64_t *waited)
{
    enum { WAITED_MOST = 60 * 60 * 60 };
    return stop_cancel(NULL) || (stop_asked() && ++*waited > WAITED_MOST);
}

static bool play(const exphil_world *world, exphil_session *session, uint64_t seed, learn_score *score)
{
    arrays a = {.sum = {0}};
    int64_t left = world->lanes, waited = 0;
    bool fine = make_arrays(world, &a);
    /* far from the seeds of training, which are drawn */
    for (int64_t lane = 0; fine && lane < world->lanes; lane++)
        fine = begin(world, lane, (seed << 32) + 0x5C0E + (uint64_t)lane, &a);
    while (fine && left > 0) fine = !ended(&waited) && play_frame(world, session, &a, &left);
    if (fine) sum_up(&a, world->lanes, score);
    free_arrays(&a);
    return fine;
}

bool learn_score_of(const exphil_world *world, const exphil_model *model, uint64_t seed, bool likeliest,
                    learn_score *score)
{
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.streams = world->lanes * world->seats;
    config.seed = seed;
    config.deterministic = likeliest;
    bool fine =
        exphil_session_create(model, &config, &session, &error) >= 0 || complain("session", &error) == 0;
    if (fine) fine = play(world, session, seed, score);
    exphil_session_destroy(session);
    return fine;
}
