/* The old program, policies against each other: a match, and a world in which others play the second seat. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum { LANES = 4, TIME = 60, FRAMES = 400 };

static exphil_model *make_player(exphil_context *context, const exphil_spec *spec, uint64_t seed)
{
    exphil_model_config *config = task_config();
    config->spec = spec;
    config->blocks = "mlp";
    config->no_previous_action = 1;
    config->value = EXPHIL_VALUE_SHARED;
    config->seed = seed;
    return task_model(context, config);
}

/* Whoever is first, the games are the same. */
static void play_match(const exphil_model *a, const exphil_model *b, const exphil_world *world)
{
    exphil_match_config *config = EDGE(exphil_match_config, EXPHIL_MATCH_CONFIG_INIT);
    exphil_match_result *result = EDGE(exphil_match_result, EXPHIL_MATCH_RESULT_INIT),
                        *other = EDGE_OF(*result);
    config->games = 4;
    config->points = 1;
    config->most_frames = FRAMES;
    config->seed = 8;
    DONE(exphil_match(a, b, world, config, result, error));
    DONE(exphil_match(b, a, world, config, other, error));
    CHECK(result->games == 4 && result->won + result->lost + result->drawn == 4);
    CHECK(result->won == other->lost && result->points == other->points_against);
    CHECK(result->low <= result->score && result->score <= result->high && result->frames > 0);
    DIGEST(result);
    config->games = 3;
    CHECK(exphil_match(a, b, world, config, result, error) == EXPHIL_E_INVALID);
    digest_end("match");
}

static exphil_rollout *make_rollout(const exphil_model *model)
{
    exphil_session_config *session = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_rollout_config *config = EDGE(exphil_rollout_config, EXPHIL_ROLLOUT_CONFIG_INIT);
    exphil_rollout *rollout = NULL;
    session->streams = LANES;
    config->time = TIME;
    DONE(exphil_rollout_create(model, session, config, &rollout, error));
    return rollout;
}

static void play_against(exphil_context *context, exphil_model *const players[3], const exphil_world *world)
{
    const exphil_model *others[2] = {players[0], players[1]};
    exphil_world *against = EDGE(exphil_world, {0});
    exphil_record *record = EDGE(exphil_record, EXPHIL_RECORD_INIT);
    DONE(exphil_world_against(context, world, others, 2, 9, against, error));
    CHECK(against->struct_size == sizeof *against && against->seats == 1 && against->lanes == LANES);
    exphil_rollout *rollout = make_rollout(players[2]);
    size_t size = exphil_rollout_block_size(rollout);
    void *block = malloc(size);
    CHECK(block);
    for (int chunk = 0; chunk < 3; chunk++) {
        DONE(exphil_rollout_run(rollout, against, error));
        DONE(exphil_rollout_block_save(rollout, block, size, error));
        digest(block, size);
        DONE(exphil_rollout_adopt(rollout, NULL, error));
        DONE(exphil_world_opponent(against, chunk % 2, players[2], record, error));
        CHECK(record->won + record->lost <= record->episodes);
        DIGEST(record);
    }
    CHECK(exphil_world_opponent(world, 0, NULL, record, error) == EXPHIL_E_INVALID);
    digest_end("against");
    free(block);
    exphil_rollout_destroy(rollout);
    exphil_world_destroy(against);
    CHECK(!against->struct_size && !against->user);
}

void matches(exphil_context *context)
{
    exphil_world *world = EDGE(exphil_world, {sizeof(exphil_world)});
    exphil_model *players[3];
    DONE(exphil_world_create(context, "pong-two", LANES, world, error));
    CHECK(world->seats == 2);
    for (int i = 0; i < 3; i++) players[i] = make_player(context, world->spec, (uint64_t)i + 1);
    play_match(players[0], players[1], world);
    play_against(context, players, world);
    for (int i = 0; i < 3; i++) exphil_model_destroy(players[i]);
    exphil_world_destroy(world);
}

#else
typedef int nothing_before_0_2;
#endif
