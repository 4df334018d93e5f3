/* Replays into episodes: the pairing of state after t-1 with the controller of t, gaps and absences, whose
 * side is taken, and the real drill replays whose facts are known. */
#include "data_case.h"
#include "slp_writer.h"

#include "data/dataset.h"
#include "melee/melee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- replays made here ------------------------------------------------------------------------------- */

static void put_f32(uint8_t *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(bits >> (24 - 8 * i));
}

/* Player 1 is Fox, 2 Falco, 3 Marth, 4 nobody; version 1.0.0: pre-frame and post-frame events alone. types:
 * of ports. */
static void begin(slp_writer *writer, const uint8_t types[4], const uint8_t *teams)
{
    static const uint8_t characters[4] = {2, 20, 9, 0};
    slp_begin(writer, &slp_layouts[1], false);
    slp_head(writer, &slp_layouts[1]);
    uint8_t *start = writer->data + writer->bytes - 1 - writer->size[0x36];
    start[0x0D] = teams != NULL;
    start[0x13] = 0;
    start[0x14] = 31;
    for (int port = 0; port < 4; port++) {
        start[0x65 + 0x24 * port] = characters[port];
        start[0x66 + 0x24 * port] = types[port];
        if (teams) start[0x6E + 0x24 * port] = teams[port];
    }
}

/* One frame: post x = frame + 10 * port, pre stick x = (frame % 9 - 4) / 4, button A on even frames. bad: 1
 * a stick, 2 a position that is not a number, both of player 1. */
static void add_frame(slp_writer *writer, int32_t frame, uint8_t ports, int bad)
{
    for (uint32_t port = 0; port < 4; port++) {
        if (!(ports >> port & 1)) continue;
        uint8_t *pre = slp_event(writer, 0x37, frame, 2 * port);
        memset(pre + 7, 0, writer->size[0x37] - 6u);
        put_f32(pre + 0x19, bad == 1 && port == 0 ? NAN : (float)(((frame + 207) % 9) - 4) / 4);
        pre[0x31] = frame % 2 ? 0 : 1;
    }
    for (uint32_t port = 0; port < 4; port++) {
        if (!(ports >> port & 1)) continue;
        uint8_t *post = slp_event(writer, 0x38, frame, 2 * port);
        memset(post + 7, 0, writer->size[0x38] - 6u);
        post[7] = 1;
        put_f32(post + 0x0A, bad == 2 && port == 0 ? NAN : (float)frame + 10 * (float)port);
        put_f32(post + 0x12, 1);
        put_f32(post + 0x1A, 60);
        post[0x21] = 4;
    }
}

static const uint8_t humans[4] = {0, 0, 3, 3};

static exphil_dataset *melee_dataset(exphil_context *context)
{
    exphil_dataset *dataset = NULL;
    assert_int_equal(exphil_dataset_create(context, NULL, &dataset, NULL), EXPHIL_OK);
    return dataset;
}

static exphil_status add(exphil_dataset *dataset, const slp_writer *writer,
                         const exphil_replay_config *config, exphil_replay_result *result,
                         exphil_error *error)
{
    return exphil_dataset_add_replay_memory(dataset, writer->data, writer->bytes, config, result, error);
}

/* Where a field of melee2 stands, and its scale. */
static exphil_melee_field field_of(const char *name)
{
    for (int64_t i = 0; i < exphil_melee_field_count(NULL); i++) {
        exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
        assert_int_equal(exphil_melee_field_get(NULL, i, &field, NULL), EXPHIL_OK);
        if (strcmp(field.name, name) == 0) return field;
    }
    fail_msg("melee2 has no %s", name);
    return (exphil_melee_field)EXPHIL_MELEE_FIELD_INIT;
}

/* Every row of an episode shows frame t-1 of its own and the opponent's port, and has the controller of t. */
static void check_episode(const exphil_dataset *dataset, int64_t index, int32_t first, int64_t frames,
                          int32_t port)
{
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    assert_int_equal(exphil_dataset_episode(dataset, index, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.first_game_frame, first);
    assert_int_equal(info.frames, frames);
    assert_int_equal(info.port, port);
    assert_int_equal(info.stage, 31);
    exphil_melee_field x = field_of("own.x"), other_x = field_of("opponent.x");
    for (int64_t i = 0; i < frames; i++) {
        float floats[4096];
        int32_t ids[EXPHIL_IDS_MAX], action[EXPHIL_HEADS_MAX], frame = first + (int32_t)i;
        assert_int_equal(exphil_dataset_frame(dataset, info.first + i, floats, ids, action, NULL), EXPHIL_OK);
        double own = (frame - 1 + 10 * (port - 1)) * x.scale;
        double other = (frame - 1 + 10 * (info.opponent_port - 1)) * x.scale;
        assert_true(fabs(floats[x.offset] - own) < 1e-5);
        assert_true(fabs(floats[other_x.offset] - other) < 1e-5);
        assert_int_equal(action[0], frame % 2 ? 0 : 1);
        assert_int_equal(action[1], 8 + 2 * (((frame + 207) % 9) - 4));
    }
}

/* exphil_slp_melee_rows gives the rows of a dataset that this player of the replay alone was added to. */
static void same_without_dataset(const exphil_slp *slp, const exphil_replay_config *config,
                                 const exphil_dataset *dataset)
{
    enum { SPARE = 3 };
    exphil_dataset_info info = data_info(dataset);
    size_t rows = (size_t)info.frames, f = (size_t)info.float_count, k = (size_t)info.id_count,
           a = (size_t)info.head_count;
    float *floats[2] = {malloc(rows * f * 4 + 1), malloc(rows * f * 4 + 1)};
    int32_t *ids[2] = {malloc(rows * k * 4 + 1), malloc(rows * k * 4 + 1)};
    int32_t *actions[2] = {malloc(rows * a * 4 + 1), malloc(rows * a * 4 + 1)};
    int32_t *frames = malloc((rows + 1) * sizeof *frames);
    int64_t *episodes = malloc((rows + 1) * sizeof *episodes), count = -1;
    assert_int_equal(
        exphil_dataset_rows(dataset, 0, info.frames, floats[0], ids[0], actions[0], episodes, NULL),
        EXPHIL_OK);
    for (int64_t capacity = info.frames - SPARE > 0 ? info.frames - SPARE : 0; capacity <= info.frames;
         capacity++) {
        size_t given = (size_t)capacity;
        memset(frames, 0xA5, (rows + 1) * sizeof *frames);
        assert_int_equal(exphil_slp_melee_rows(slp, info.layout, info.codec, config, capacity, frames,
                                               floats[1], ids[1], actions[1], &count, NULL),
                         EXPHIL_OK);
        assert_int_equal(count, info.frames);
        assert_memory_equal(floats[0], floats[1], given * f * 4);
        assert_memory_equal(ids[0], ids[1], given * k * 4);
        assert_memory_equal(actions[0], actions[1], given * a * 4);
        assert_int_equal((uint32_t)frames[given], 0xA5A5A5A5u);
    }
    for (int64_t i = 0; i < info.frames; i++) {
        exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
        assert_int_equal(exphil_dataset_episode(dataset, episodes[i], &episode, NULL), EXPHIL_OK);
        assert_int_equal(frames[i], episode.first_game_frame + (i - episode.first));
    }
    count = -1;
    assert_int_equal(exphil_slp_melee_rows(slp, info.layout, info.codec, config, info.frames, NULL, NULL,
                                           NULL, NULL, &count, NULL),
                     EXPHIL_OK);
    assert_int_equal(count, info.frames);
    for (int i = 0; i < 2; i++) {
        free(floats[i]);
        free(ids[i]);
        free(actions[i]);
    }
    free(frames);
    free(episodes);
}

/* Of each human player of a replay, in both layouts. */
static void check_players_alone(exphil_context *context, const void *data, size_t bytes,
                                const exphil_replay_config *given)
{
    static const char *const layouts[] = {"melee2", "exphil288"};
    exphil_slp *slp = NULL;
    int added = 0;
    assert_int_equal(exphil_slp_read(context, data, bytes, NULL, &slp, NULL), EXPHIL_OK);
    for (int i = 0; i < 8; i++) {
        exphil_spec spec = EXPHIL_SPEC_INIT;
        exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
        exphil_dataset *dataset = NULL;
        exphil_replay_config one = *given;
        config.spec = &spec;
        one.port = 1 + i / 2;
        assert_int_equal(exphil_melee_spec(layouts[i % 2], i % 4 ? NULL : "exphil81-floor", &spec, NULL),
                         EXPHIL_OK);
        assert_int_equal(exphil_dataset_create(context, &config, &dataset, NULL), EXPHIL_OK);
        exphil_error error = EXPHIL_ERROR_INIT, alone = EXPHIL_ERROR_INIT;
        if (exphil_dataset_add_replay_memory(dataset, data, bytes, &one, NULL, &error) == EXPHIL_OK) {
            same_without_dataset(slp, &one, dataset);
            added++;
        } else { /* refused in the same words */
            int64_t count = -1;
            assert_int_equal(
                exphil_slp_melee_rows(slp, NULL, NULL, &one, 0, NULL, NULL, NULL, NULL, &count, &alone),
                error.status);
            assert_string_equal(alone.message, error.message);
            assert_int_equal(count, -1);
        }
        exphil_dataset_destroy(dataset);
    }
    assert_true(added > 0);
    exphil_slp_destroy(slp);
}

static void test_rows_alone_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    slp_writer writer;
    begin(&writer, humans, NULL);
    for (int32_t frame = -1; frame <= 3; frame++) add_frame(&writer, frame, 3, 0);
    slp_close(&writer, 3);
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, NULL), EXPHIL_OK);
    static const struct {
        const char *layout, *codec;
        exphil_replay_config config;
        int64_t capacity;
        const char *says;
    } wrong[] = {
        {"pong", NULL, {sizeof(exphil_replay_config), NULL, 1, 0, 0, 0}, 9, "pong"},
        {NULL, "pong", {sizeof(exphil_replay_config), NULL, 1, 0, 0, 0}, 9, "pong"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 0, 0, 0, 0}, 9, "port is 0, must be 1..4"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 5, 0, 0, 0}, 9, "port is 5"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 1, 1, 0, 0}, 9, "both 1"},
        {NULL, NULL, {sizeof(exphil_replay_config), "foxy", 1, 0, 0, 0}, 9, "foxy"},
        {NULL, NULL, {sizeof(exphil_replay_config), "falco", 1, 0, 0, 0}, 9, "P1 fox human"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 3, 0, 0, 0}, 9, "no human player on port 3"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 1, 0, 5, 4}, 9, "last_frame 4 is before"},
        {NULL, NULL, {3, NULL, 1, 0, 0, 0}, 9, "struct_size"},
        {NULL, NULL, {sizeof(exphil_replay_config), NULL, 1, 0, 0, 0}, -1, "capacity is -1"},
    };
    float floats[4096] = {42};
    int64_t count = -1;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        exphil_status status =
            exphil_slp_melee_rows(slp, wrong[i].layout, wrong[i].codec, &wrong[i].config, wrong[i].capacity,
                                  NULL, floats, NULL, NULL, &count, &error);
        assert_int_equal(status, EXPHIL_E_INVALID);
        assert_says(&error, wrong[i].says);
        assert_int_equal(count, -1);
        assert_true(floats[0] == 42);
    }
    const exphil_replay_config fine = {sizeof fine, "Fox", 1, 2, 0, 0};
    assert_int_equal(exphil_slp_melee_rows(slp, NULL, NULL, &fine, 9, NULL, NULL, NULL, NULL, NULL, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, "count is NULL");
    assert_int_equal(
        exphil_slp_melee_rows(slp, NULL, NULL, &fine, 1, NULL, floats, NULL, NULL, &count, &error),
        EXPHIL_OK);
    assert_int_equal(count, 4);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
    slp_free(&writer);
}

static void test_pairing(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = melee_dataset(context);
    slp_writer writer;
    begin(&writer, humans, NULL);
    for (int32_t frame = -5; frame <= 20; frame++) add_frame(&writer, frame, 3, 0);
    slp_close(&writer, 20);
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    assert_int_equal(add(dataset, &writer, NULL, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.episodes, 2);
    assert_int_equal(result.frames, 42);
    assert_int_equal(result.frames_masked, 0);
    assert_int_equal(result.truncated, 0);
    check_episode(dataset, 0, 0, 21, 1);
    check_episode(dataset, 1, 0, 21, 2);
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    assert_int_equal(exphil_dataset_episode(dataset, 1, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.character, 20);
    assert_int_equal(info.opponent_character, 2);
    assert_int_equal(info.opponent_port, 1);
    assert_true(info.game == xph_hash(writer.data, writer.bytes));
    assert_int_equal(data_info(dataset).games, 1);
    /* A range of frames; before the first frame there is no state. */
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    config.port = 1;
    config.first_frame = 3;
    config.last_frame = 3;
    assert_int_equal(add(dataset, &writer, &config, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.frames, 1);
    check_episode(dataset, 2, 3, 1, 1);
    config.first_frame = -123;
    config.last_frame = 2;
    assert_int_equal(add(dataset, &writer, &config, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.frames, 7);
    assert_int_equal(result.frames_masked, 1);
    check_episode(dataset, 3, -4, 7, 1);
    check_players_alone(context, writer.data, writer.bytes, &config);
    /* A part of an episode knows its first frame. */
    exphil_split_config split = {sizeof split, 0.5, 0, EXPHIL_SPLIT_TIME, 0};
    exphil_dataset *kept, *held;
    assert_int_equal(exphil_dataset_split(dataset, &split, &kept, &held, NULL), EXPHIL_OK);
    check_episode(held, 0, 10, 11, 1);
    /* Through a file, facts and all. */
    assert_int_equal(exphil_dataset_save(held, test_path("held"), NULL), EXPHIL_OK);
    exphil_dataset *back = NULL;
    assert_int_equal(exphil_dataset_open(context, test_path("held"), &back, NULL), EXPHIL_OK);
    data_same(held, back);
    check_episode(back, 0, 10, 11, 1);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    slp_free(&writer);
}

/* What ends an episode: [0, first), then from again on. */
static void test_breaks(void **state)
{
    static const struct {
        int kind;
        int32_t first, again;
        int64_t masked;
    } breaks[] = {
        {0, 8, 10, 1},  /* frame 8 is not in the replay: 9 has no state */
        {1, 8, 10, 2},  /* player 1 is not in frame 8: neither row 8 nor 9 */
        {2, 8, 9, 1},   /* a stick of frame 8 is no number */
        {3, 9, 10, 1},  /* the position after frame 8 is no number: row 9 */
        {4, 21, 21, 0}, /* the opponent is not in frame 8: that is no reason */
    };
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        exphil_dataset *dataset = melee_dataset(context);
        slp_writer writer;
        begin(&writer, humans, NULL);
        for (int32_t frame = -1; frame <= 20; frame++) {
            int kind = frame == 8 ? breaks[i].kind : -1;
            if (kind == 0) continue;
            uint8_t ports = kind == 1 ? 2 : kind == 4 ? 1 : 3;
            add_frame(&writer, frame, ports, kind == 2 ? 1 : kind == 3 ? 2 : 0);
        }
        slp_close(&writer, 20);
        exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
        exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
        config.port = 1;
        assert_int_equal(add(dataset, &writer, &config, &result, NULL), EXPHIL_OK);
        int64_t rest = 21 - breaks[i].again;
        assert_int_equal(result.episodes, rest ? 2 : 1);
        assert_int_equal(result.frames, breaks[i].first + rest);
        assert_int_equal(result.frames_masked, breaks[i].masked);
        if (breaks[i].kind != 4) {
            check_episode(dataset, 0, 0, breaks[i].first, 1);
            check_episode(dataset, 1, breaks[i].again, rest, 1);
        }
        assert_int_equal(data_info(dataset).games, 1);
        check_players_alone(context, writer.data, writer.bytes, &config);
        exphil_dataset_destroy(dataset);
        slp_free(&writer);
    }
    exphil_context_destroy(context);
}

/* Adds with these ports and expects a refusal that says why, or (text NULL) these sides. */
typedef struct sides {
    uint8_t types[4], teams[4];
    bool team_game;
    const char *character;
    int32_t port, opponent_port;
    const char *text;
    int32_t want[4], want_opponent[4]; /* ports taken, 0 ends the list */
} sides;

static void check_sides(exphil_context *context, const sides *s)
{
    exphil_dataset *dataset = melee_dataset(context);
    slp_writer writer;
    begin(&writer, s->types, s->team_game ? s->teams : NULL);
    uint8_t present = 0;
    for (int port = 0; port < 4; port++) present |= (uint8_t)((s->types[port] < 3) << port);
    for (int32_t frame = -1; frame <= 3; frame++) add_frame(&writer, frame, present, 0);
    slp_close(&writer, 3);
    exphil_replay_config config = {sizeof config, s->character, s->port, s->opponent_port, 0, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = add(dataset, &writer, &config, NULL, &error);
    if (s->text) {
        assert_int_equal(status, EXPHIL_E_INVALID);
        assert_says(&error, s->text);
        assert_int_equal(data_info(dataset).episodes, 0);
    } else {
        if (status != EXPHIL_OK) fail_msg("%s", error.message);
        int64_t count = 0;
        for (; count < 4 && s->want[count]; count++) {
            exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
            assert_int_equal(exphil_dataset_episode(dataset, count, &info, NULL), EXPHIL_OK);
            assert_int_equal(info.port, s->want[count]);
            assert_int_equal(info.opponent_port, s->want_opponent[count]);
            if (!info.opponent_port) assert_int_equal(info.opponent_character, -1);
        }
        assert_int_equal(data_info(dataset).episodes, count);
    }
    exphil_dataset_destroy(dataset);
    slp_free(&writer);
}

static void test_sides(void **state)
{
    static const sides all[] = {
        {{0, 0, 3, 3}, {0}, false, NULL, 0, 0, NULL, {1, 2}, {2, 1}},
        {{0, 1, 3, 3}, {0}, false, NULL, 0, 0, NULL, {1}, {2}},
        {{0, 3, 3, 3}, {0}, false, NULL, 0, 0, NULL, {1}, {0}},
        {{0, 0, 0, 3}, {0}, false, NULL, 0, 0, NULL, {1, 2, 3}, {2, 1, 1}},
        {{0, 0, 0, 3}, {0}, false, "Marth", 0, 0, NULL, {3}, {1}},
        {{0, 0, 0, 3}, {0}, false, "marth", 3, 2, NULL, {3}, {2}},
        {{0, 0, 0, 3}, {0}, false, NULL, 0, 2, NULL, {1, 3}, {2, 2}},
        {{0, 0, 0, 3}, {1, 1, 0, 0}, true, NULL, 0, 0, NULL, {1, 2, 3}, {3, 3, 1}},
        {{0, 0, 0, 3}, {1, 1, 1, 0}, true, NULL, 1, 0, NULL, {1}, {0}},
        {{0, 0, 3, 3},
         {0},
         false,
         NULL,
         3,
         0,
         "no human player on port 3; P1 fox human, P2 falco human",
         {0},
         {0}},
        {{0, 1, 3, 3},
         {0},
         false,
         NULL,
         2,
         0,
         "no human player on port 2; P1 fox human, P2 falco CPU",
         {0},
         {0}},
        {{0, 0, 3, 3}, {0}, false, "marth", 0, 0, "no human player plays marth; P1", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, "fox", 2, 0, "no human player plays fox on port 2; P1", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, "foxy", 0, 0, "\"foxy\" is unknown", {0}, {0}},
        {{3, 3, 3, 3}, {0}, false, NULL, 0, 0, "nobody plays", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, NULL, 1, 4, "opponent_port 4 is empty", {0}, {0}},
        {{0, 1, 3, 3}, {0}, false, NULL, 0, 1, "no human player beside the opponent on port 1; P1", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, NULL, 5, 0, "port is 5", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, NULL, -1, 0, "port is -1", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, NULL, 1, 5, "opponent_port is 5", {0}, {0}},
        {{0, 0, 3, 3}, {0}, false, NULL, 1, 1, "both 1", {0}, {0}},
    };
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_sides(context, &all[i]);
    exphil_context_destroy(context);
}

static void test_refusals(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *toy = data_empty(context), *melee = melee_dataset(context), *false_melee = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    slp_writer writer;
    begin(&writer, humans, NULL);
    for (int32_t frame = -1; frame <= 20; frame++) add_frame(&writer, frame, 3, 0);
    size_t open = writer.bytes;
    slp_close(&writer, 20);
    assert_int_equal(add(toy, &writer, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "toy"));
    assert_int_equal(exphil_dataset_add_replay_memory(melee, NULL, 5, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_add_replay_memory(melee, "abc", 3, NULL, NULL, &error), EXPHIL_E_FORMAT);
    assert_int_equal(exphil_dataset_add_replay(melee, test_path("none"), NULL, NULL, &error), EXPHIL_E_IO);
    test_write(test_path("bad"), "abc", 3);
    assert_int_equal(exphil_dataset_add_replay(melee, test_path("bad"), NULL, NULL, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "/bad"));
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    config.first_frame = 5;
    config.last_frame = 4;
    assert_int_equal(add(melee, &writer, &config, NULL, &error), EXPHIL_E_INVALID);
    exphil_replay_result small = {.struct_size = 8};
    assert_int_equal(add(melee, &writer, NULL, &small, &error), EXPHIL_E_INVALID);
    assert_int_equal(data_info(melee).frames, 0);
    /* A spec that only has the name. */
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec(NULL, NULL, &spec, NULL), EXPHIL_OK);
    spec.layout_hash ^= 1;
    exphil_dataset_config other = {sizeof other, &spec};
    assert_int_equal(exphil_dataset_create(context, &other, &false_melee, NULL), EXPHIL_OK);
    assert_int_equal(add(false_melee, &writer, NULL, NULL, &error), EXPHIL_E_MISMATCH);
    /* Nothing in the range is no failure. */
    config.first_frame = 500;
    config.last_frame = 0;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    assert_int_equal(add(melee, &writer, &config, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.frames, 0);
    assert_int_equal(result.episodes, 0);
    /* Cut within the last frame: what was whole is used. */
    writer.bytes = open - 10;
    assert_int_equal(add(melee, &writer, NULL, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.truncated, 1);
    assert_int_equal(result.frames, 40);
    exphil_dataset_destroy(false_melee);
    exphil_dataset_destroy(toy);
    exphil_dataset_destroy(melee);
    exphil_context_destroy(context);
    slp_free(&writer);
}

static void test_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset *dataset = melee_dataset(context);
    slp_writer writer;
    begin(&writer, humans, NULL);
    for (int32_t frame = -1; frame <= 90; frame++) {
        if (frame % 4) add_frame(&writer, frame, 3, 0); /* many short episodes */
    }
    slp_close(&writer, 90);
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    long long failures = 0;
    for (exphil_status status = EXPHIL_E_MEMORY; status != EXPHIL_OK; failures++) {
        memory.fail_at = atomic_load(&memory.calls) + failures + 1;
        status = add(dataset, &writer, NULL, &result, NULL);
        memory.fail_at = 0;
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_MEMORY);
        assert_int_equal(data_info(dataset).frames, status == EXPHIL_OK ? result.frames : 0);
        if (status < 0) assert_int_equal(result.episodes, 0);
    }
    assert_true(failures > 40);
    assert_int_equal(result.episodes, 46);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
    slp_free(&writer);
}

/* ---- real ones --------------------------------------------------------------------------------------- */

/* Index of an action among those seen. */
static int note_action(int32_t seen[][EXPHIL_HEADS_MAX], int *count, const int32_t *action, int64_t heads)
{
    for (int i = 0; i < *count; i++) {
        if (memcmp(seen[i], action, (size_t)heads * sizeof *action) == 0) return i;
    }
    assert_true(*count < 100);
    memcpy(seen[*count], action, (size_t)heads * sizeof *action);
    return (*count)++;
}

/* The drill: three controllers in a cycle of nine frames, each told by the state of the frame before. */
static void test_multishine(void **state)
{
    const char *path = test_replay("training/fox_multishine_closed.slp");
    if (!path) return;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = melee_dataset(context);
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    config.character = "fox";
    config.port = 1;
    config.last_frame = 1678;
    assert_int_equal(exphil_dataset_add_replay(dataset, path, &config, &result, NULL), EXPHIL_OK);
    assert_int_equal(result.frames, 1679);
    assert_int_equal(result.episodes, 1);
    assert_int_equal(result.frames_masked, 0);
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_open(context, path, NULL, &slp, NULL), EXPHIL_OK);
    static int32_t seen[100][EXPHIL_HEADS_MAX];
    int actions = 0, states = 0;
    struct {
        int32_t state, age, airborne;
        int action;
    } known[100];
    for (int64_t t = 0; t < 1679; t++) {
        int32_t action[EXPHIL_HEADS_MAX];
        assert_int_equal(exphil_dataset_frame(dataset, t, NULL, NULL, action, NULL), EXPHIL_OK);
        int which = note_action(seen, &actions, action, data_info(dataset).head_count), s = 0;
        const exphil_slp_player *before = exphil_slp_player_at(slp, t + 122, 0, 0);
        assert_int_equal(before->frame, t - 1);
        while (s < states &&
               (known[s].state != before->action_state || known[s].age != (int32_t)before->state_age ||
                known[s].airborne != before->airborne))
            s++;
        if (s == states) {
            assert_true(states < 100);
            known[states].state = before->action_state;
            known[states].age = (int32_t)before->state_age;
            known[states].airborne = before->airborne;
            known[states++].action = which;
        }
        assert_int_equal(known[s].action, which);
    }
    printf("%d states, %d actions\n", states, actions);
    assert_int_equal(actions, 3);
    assert_int_equal(states, 9);
    exphil_slp_destroy(slp);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Every replay there is: all humans' sides, sane numbers, the same content through a file. */
static void test_formats(void **state)
{
    static const struct {
        const char *name;
        int64_t episodes, frames;
        int32_t truncated;
    } files[] = {
        {"formats/v0.1.slp", 2, 2 * 8113, 0},
        {"formats/unknown_event.slp", 1, 5086, 0},
        {"formats/ics.slp", 1, 221, 0},
        {"formats/transform.slp", 2, 2 * 3411, 0},
        {"formats/v2.0.slp", 2, 2 * 10616, 0},
        {"formats/crazy_name_tags.slp", 4, 4 * 13, 0},
        {"formats/duplicate_game_end.slp", 2, 2 * 4900, 0},
        {"formats/v3.18.slp", 1, 818, 0},
        {"formats/corrupt.slp", 0, 0, 1},
        {"formats/incomplete.slp", 2, 2 * 7657, 1},
        {"formats/BTTDK.slp", 1, 1067, 0},
        {"formats/teams_time_p3_redVSp1p2_blueVSp4_green_winner_blue.slp", 4, 3 * 3601 + 878, 0},
        {"formats/fox_multishine.slp", 2, 2 * 1778, 0},
        {"training/mewtwo_shfair_only.slp", 2, 2 * 7938, 0},
    };
    exphil_context *context = test_context(NULL, NULL, 2);
    exphil_dataset *dataset = melee_dataset(context);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = test_replay(files[i].name);
        if (!path) continue;
        exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_dataset_add_replay(dataset, path, NULL, &result, &error) != EXPHIL_OK)
            fail_msg("%s", error.message);
        if (result.episodes != files[i].episodes || result.frames != files[i].frames ||
            result.truncated != files[i].truncated)
            fail_msg("%s: %d episodes, %d frames, truncated %d", files[i].name, (int)result.episodes,
                     (int)result.frames, (int)result.truncated);
        size_t bytes = 0;
        char *data = test_read(path, &bytes);
        const exphil_replay_config all = {sizeof all, NULL, 0, 0, -123, 0};
        check_players_alone(context, data, bytes, &all);
        free(data);
    }
    exphil_dataset_info info = data_info(dataset);
    printf("%lld frames, %lld games, %lld constant floats\n", (long long)info.frames, (long long)info.games,
           (long long)info.constant_floats);
    assert_int_equal(exphil_dataset_save(dataset, test_path("formats"), NULL), EXPHIL_OK);
    exphil_dataset *back = NULL;
    assert_int_equal(exphil_dataset_open(context, test_path("formats"), &back, NULL), EXPHIL_OK);
    data_same(dataset, back);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairing),         cmocka_unit_test(test_breaks),
        cmocka_unit_test(test_sides),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory_failures), cmocka_unit_test(test_multishine),
        cmocka_unit_test(test_formats),         cmocka_unit_test(test_rows_alone_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove();
    return failed;
}
