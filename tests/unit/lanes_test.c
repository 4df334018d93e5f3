/* Lanes of ranks: what prefetchers with own lanes give, put together, is the batch of one that fills them all, to the last bit,
 * in every kind of order, of rows in memory, in a file and of games, in order and after seeks. */
#include "game_case.h"
#include "test.h"

#include "data/sampler.h"

#include <exphil/conditions.h>
#include <exphil/games.h>
#include <exphil/learn.h>
#include <exphil/ranks.h>

#include <math.h>
#include <stdlib.h>

#define OK(call)                                                                                             \
  do {                                                                                                       \
    exphil_error error_of = EXPHIL_ERROR_INIT, *error = &error_of;                                           \
    if ((call) < 0) fail_msg("%s:%d: %s", __FILE__, __LINE__, error_of.message);                             \
  } while (0)

enum { MEMORY, ROWS, GAMES, DATASETS }; /* where rows are */
enum { MATCHES = 3, RANKS_MOST = 4, FIRST_FRAME = -123, REWARDS = 700 };
static exphil_dataset *datasets[DATASETS];

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Floats of the frames become less than 2, so that no frame is masked. */
static void make_small(slp_writer *writer)
{
    for (size_t at = 0; at < writer->bytes;) {
        uint8_t *event = writer->data + at;
        const size_t bytes = 1 + (size_t)(event[0] == 0x35 ? (size_t)event[1] - 1 : writer->size[event[0]]);
        const size_t head = event[0] == 0x37 || event[0] == 0x38 ? 7 : event[0] == 0x3B ? 5 : bytes;
        for (size_t i = head; i < bytes; i++) event[i] &= 0xBF;
        at += bytes;
    }
}

/* Matches of two people, of different lengths; of one a player is away for a while. */
static void write_match(slp_writer *writer, int which)
{
    slp_begin(writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(writer, &slp_layouts[SLP_NEWEST]);
    uint8_t *start = writer->data + writer->bytes - 1 - writer->size[0x36];
    start[0x66 + 0x24] = 0; /* the second is one too */
    game_seed(writer, (uint8_t)(which + 1));
    for (int32_t frame = FIRST_FRAME; frame < 120 + 80 * which; frame++)
        slp_frame(writer, frame, which == 1 && frame > 20 && frame < 40 ? 0x04 : 0x05, frame % 2);
    slp_game_end(writer, 2);
    make_small(writer);
}

/* Weights, rewards and a condition of every episode's game; the second player's rewards are not known. */
static void tell(exphil_dataset *dataset)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    float rewards[REWARDS];
    for (int i = 0; i < REWARDS; i++) rewards[i] = (float)(i % 7) - 2.5f;
    OK(exphil_dataset_query(dataset, &info, error));
    for (int64_t i = 0; i < info.episodes; i++) {
        exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
        OK(exphil_dataset_episode(dataset, i, &episode, error));
        OK(exphil_dataset_weight(dataset, episode.game, 0, 30, 59, 0, error));
        OK(exphil_dataset_weight(dataset, episode.game, episode.port, 60, 99, 2, error));
        OK(exphil_dataset_condition(dataset, "player", episode.game, episode.port,
                                    (int32_t)(episode.game % 3) + 2 * episode.port, error));
        if (episode.port == 1)
            OK(exphil_dataset_rewards_set(dataset, episode.game, 1, FIRST_FRAME, rewards, REWARDS, 1, 20.0,
                                          error));
    }
}

static exphil_dataset *empty(void)
{
    exphil_dataset *made = NULL;
    OK(exphil_dataset_create(context, NULL, &made, error));
    return made;
}

static int open_data(void **state)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    exphil_games *games = NULL;
    if (context_open(state) != 0) return 1;
    config.stored = 1;
    datasets[MEMORY] = empty();
    datasets[GAMES] = empty();
    OK(exphil_games_create(context, test_path("lanes.games"), &config, &writer, error));
    for (int i = 0; i < MATCHES; i++) {
        slp_writer match;
        write_match(&match, i);
        OK(exphil_dataset_add_replay_memory(datasets[MEMORY], match.data, match.bytes, NULL, NULL, error));
        OK(exphil_games_add_memory(writer, match.data, match.bytes, NULL, error));
        slp_free(&match);
    }
    OK(exphil_games_finish(writer, NULL, error));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(context, test_path("lanes.games"), &games, error));
    OK(exphil_dataset_add_games(datasets[GAMES], games, NULL, NULL, error));
    exphil_games_destroy(games);
    OK(exphil_dataset_save(datasets[MEMORY], test_path("lanes.rows"), error));
    OK(exphil_dataset_open(context, test_path("lanes.rows"), &datasets[ROWS], error));
    for (int i = 0; i < DATASETS; i++) tell(datasets[i]);
    return 0;
}

static int close_data(void **state)
{
    for (int i = 0; i < DATASETS; i++) exphil_dataset_destroy(datasets[i]);
    return context_close(state);
}

static exphil_prefetcher *prefetcher_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    exphil_prefetcher *made = NULL;
    OK(exphil_prefetcher_create(dataset, how, &made, error));
    return made;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static const exphil_sampling orders[] = {
    {.struct_size = sizeof(exphil_sampling), .time = 20},
    {.struct_size = sizeof(exphil_sampling), .time = 13, .in_order = 1},
    {.struct_size = sizeof(exphil_sampling), .time = 20, .segment_frames = 70},
    {.struct_size = sizeof(exphil_sampling),
     .time = 300,
     .segment_frames = 400}, /* of several blocks of a game */
    {.struct_size = sizeof(exphil_sampling), .mode = EXPHIL_MODE_WINDOW, .time = 20, .stride = 4},
    {.struct_size = sizeof(exphil_sampling),
     .mode = EXPHIL_MODE_WINDOW,
     .time = 9,
     .stride = 7,
     .in_order = 1},
    {.struct_size = sizeof(exphil_sampling),
     .mode = EXPHIL_MODE_WINDOW,
     .time = 20,
     .stride = 3,
     .shuffle_frames = 1024},
    {.struct_size = sizeof(exphil_sampling),
     .mode = EXPHIL_MODE_WINDOW,
     .time = 30,
     .stride = 5,
     .last_only = 1,
     .shuffle_frames = 1024},
};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Rows alone, with a delay, and with all that is drawn. */
enum { ALONE, DELAYED, DRAWN, EXTRAS };
static const int32_t delays[3] = {0, 2, 4};
static const exphil_condition_spec player = {"player", 9, 0, 0.3};

static exphil_sampling sampling_of(int order, int extra, int64_t batch)
{
    exphil_sampling how = orders[order];
    how.batch = batch;
    how.seed = 11;
    if (extra == ALONE) return how;
    how.action_slots = 5;
    how.delay_frames = 4;
    how.neutral_start = 1;
    if (extra == DELAYED) return how;
    how.neutral_start = 0;
    how.delays = delays;
    how.delay_count = 3;
    how.conditions = &player;
    how.condition_count = 1;
    how.drop_past = 0.4;
    how.mirror = 0.5;
    how.balance_action = how.balance_change = 0.3;
    return how;
}

/* ---- ranks against one ------------------------------------------------------------------------------------------- */

/* One prefetcher with all lanes, and one for each rank with its own. */
typedef struct ranks {
    const exphil_dataset *dataset;
    exphil_sampling how;
    int32_t count;
    int64_t first[RANKS_MOST], lanes[RANKS_MOST];
    exphil_prefetcher *all, *own[RANKS_MOST];
} ranks;

static void begin(ranks *r, const exphil_dataset *dataset, const exphil_sampling *how, int32_t count)
{
    *r = (ranks){.dataset = dataset, .how = *how, .count = count, .all = prefetcher_of(dataset, how)};
    for (int32_t i = 0; i < count; i++) {
        exphil_sampling own = *how;
        OK(exphil_rank_lanes(how->batch, i, count, &own.first_lane, &own.lane_count, error));
        own.workers = (i + count) % 2 ? 3 : 1;
        own.buffers = own.workers == 3 ? 5 : 2;
        r->own[i] = prefetcher_of(dataset, &own);
        r->first[i] = own.first_lane;
        r->lanes[i] = own.lane_count;
    }
}

static void end(ranks *r)
{
    exphil_prefetcher_destroy(r->all);
    for (int32_t i = 0; i < r->count; i++) exphil_prefetcher_destroy(r->own[i]);
}

/* An array of the rank's rows against the same rows of all. */
#define SAME_ROWS(field, columns)                                                                            \
  do {                                                                                                       \
    assert_int_equal(!own->field, !all->field);                                                              \
    if (all->field)                                                                                          \
      assert_memory_equal(own->field, all->field + at * (columns),                                           \
                          (size_t)(rows * (columns)) * sizeof *own->field);                                  \
  } while (0)

static void same_lanes(const ranks *r, int32_t rank, const exphil_batch *own, const exphil_batch *all)
{
    const exphil_spec *spec = xph_dataset_spec_of(r->dataset);
    const int64_t at = r->first[rank] * all->time, rows = r->lanes[rank] * all->time;
    assert_int_equal(own->batch, r->lanes[rank]);
    assert_int_equal(own->time, all->time);
    assert_int_equal(own->epoch, all->epoch);
    assert_int_equal(own->index, all->index);
    SAME_ROWS(floats, spec->float_count);
    SAME_ROWS(ids, spec->id_count);
    if (r->how.action_slots) SAME_ROWS(past, r->how.action_slots * spec->head_count);
    SAME_ROWS(actions, spec->head_count);
    SAME_ROWS(mask, 1);
    SAME_ROWS(reset, 1);
    SAME_ROWS(dropped, 1);
    SAME_ROWS(conditions, r->how.condition_count + (r->how.delay_count > 0));
    SAME_ROWS(rows, 1);
    SAME_ROWS(returns, 1);
    int64_t counted = 0;
    for (int64_t i = 0; i < rows; i++) counted += own->mask[i] > 0.0f;
    assert_int_equal(own->frames, counted);
}

/* False: the epoch has ended, for all alike. */
static bool same_next(const ranks *r)
{
    exphil_batch all = EXPHIL_BATCH_INIT;
    int64_t lanes = 0, frames = 0;
    exphil_status status = exphil_prefetcher_next(r->all, &all, NULL);
    assert_true(status >= 0);
    for (int32_t i = 0; i < r->count; i++) {
        exphil_batch own = EXPHIL_BATCH_INIT;
        assert_int_equal(exphil_prefetcher_next(r->own[i], &own, NULL), status);
        if (status == EXPHIL_END) continue;
        same_lanes(r, i, &own, &all);
        lanes += own.batch;
        frames += own.frames;
    }
    if (status == EXPHIL_END) return false;
    assert_int_equal(lanes, all.batch);
    assert_int_equal(frames, all.frames);
    return true;
}

static void seek(const ranks *r, int64_t epoch, int64_t index)
{
    OK(exphil_prefetcher_seek(r->all, epoch, index, error));
    for (int32_t i = 0; i < r->count; i++) OK(exphil_prefetcher_seek(r->own[i], epoch, index, error));
}

static exphil_prefetcher_info info_of(exphil_prefetcher *prefetcher)
{
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    OK(exphil_prefetcher_query(prefetcher, &info, error));
    return info;
}

/* Two epochs, then what comes after seeks to another epoch's last batch, back to the first, and within. */
static int64_t walk(const ranks *r)
{
    const exphil_prefetcher_info info = info_of(r->all);
    const int64_t batches = info.batches_per_epoch;
    for (int32_t i = 0; i < r->count; i++) {
        const exphil_prefetcher_info own = info_of(r->own[i]);
        assert_int_equal(own.batches_per_epoch, batches);
        assert_int_equal(own.frames_per_epoch, info.frames_per_epoch);
        assert_true(own.effective_share == info.effective_share);
    }
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i < batches; i++) assert_true(same_next(r));
        assert_false(same_next(r));
    }
    const int64_t places[][2] = {{7, batches - 1}, {0, 0}, {3, batches / 2}, {3, batches / 3}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        seek(r, places[i][0], places[i][1]);
        for (int k = 0; k < 3; k++) (void)same_next(r);
    }
    return batches;
}

static const struct {
    int64_t batch;
    int32_t ranks;
} joint[] = {{7, 1}, {7, 2}, {7, 3}, {7, 4}, {4, 4}, {6, 3}};

/* Each order with each extra for all of them, spread over the kinds of data. */
#if defined(EXPHIL_TEST_FEWER)
enum { NEXT_JOINT = 3 };
#else
enum { NEXT_JOINT = 2 };
#endif

static void walk_all(int where)
{
    for (int order = 0; order < ORDERS; order++)
        for (int extra = 0; extra < EXTRAS; extra++)
            for (int i = (where + order + extra) % NEXT_JOINT; i < (int)(sizeof joint / sizeof *joint);
                 i += NEXT_JOINT) {
                const exphil_sampling how = sampling_of(order, extra, joint[i].batch);
                ranks r;
                begin(&r, datasets[where], &how, joint[i].ranks);
                assert_true(walk(&r) >= (how.time == 300 ? 1 : 5));
                end(&r);
            }
}

static void in_memory(void **state)
{
    walk_all(MEMORY);
}

static void in_a_file(void **state)
{
    walk_all(ROWS);
}

static void of_games(void **state)
{
    walk_all(GAMES);
}

/* Each rank has the least memory that its lanes need: games are decoded again and again. */
static void in_little_memory(void **state)
{
    for (int order = 0; order < ORDERS; order++) {
        exphil_sampling how = sampling_of(order, DELAYED, 7), all = how;
        ranks r = {
            .dataset = datasets[GAMES], .how = how, .count = 3, .all = prefetcher_of(datasets[GAMES], &all)};
        for (int32_t i = 0; i < r.count; i++) {
            exphil_error refused = EXPHIL_ERROR_INIT;
            exphil_sampling own = how;
            OK(exphil_rank_lanes(7, i, 3, &own.first_lane, &own.lane_count, error));
            own.memory_bytes = own.workers = 1;
            assert_int_equal(exphil_prefetcher_create(r.dataset, &own, &r.own[i], &refused),
                             EXPHIL_E_INVALID);
            assert_says(&refused, "memory_bytes is 1, these batches need at least ");
            own.memory_bytes = atoll(strstr(refused.message, "least ") + 6);
            r.own[i] = prefetcher_of(r.dataset, &own);
            r.first[i] = own.first_lane;
            r.lanes[i] = own.lane_count;
        }
        walk(&r);
        end(&r);
    }
}

/* ---- that there is something to see ------------------------------------------------------------------------------ */

typedef struct seen {
    int64_t padding, dropped, masked, told, weighed, known, unknown, delay[3];
} seen;

static void count_row(const exphil_batch *b, int64_t row, seen *s)
{
    if (b->rows[row] < 0) {
        s->padding++;
        return;
    }
    s->dropped += b->dropped[row];
    s->masked += b->conditions[row * 2] == 0;
    s->told += b->conditions[row * 2] != 0;
    s->delay[b->conditions[row * 2 + 1] - 1]++;
    s->weighed += b->mask[row] > 0.0f && b->mask[row] != 1.0f;
    s->known += isfinite(b->returns[row]) != 0;
    s->unknown += isnan(b->returns[row]) != 0;
}

/* Without it equal batches would tell little. Mirrored rows are told from those without mirror. */
static void all_is_drawn(void **state)
{
    for (int where = 0; where < DATASETS; where++)
        for (int order = 0; order < ORDERS; order++) {
            exphil_sampling how = sampling_of(order, DRAWN, 7), plain = how;
            plain.mirror = 0;
            seen s = {0};
            int64_t mirrored = 0, floats = xph_dataset_spec_of(datasets[where])->float_count;
            exphil_batch a = EXPHIL_BATCH_INIT, b = EXPHIL_BATCH_INIT;
            exphil_prefetcher *one = prefetcher_of(datasets[where], &how),
                              *other = prefetcher_of(datasets[where], &plain);
            while (exphil_prefetcher_next(one, &a, NULL) == EXPHIL_OK) {
                OK(exphil_prefetcher_next(other, &b, error));
                for (int64_t row = 0; row < a.batch * a.time; row++) {
                    count_row(&a, row, &s);
                    mirrored += memcmp(a.floats + row * floats, b.floats + row * floats,
                                       (size_t)floats * sizeof(float)) != 0;
                }
            }
            assert_true(s.padding && s.dropped && s.masked && s.told && s.known && s.unknown && mirrored);
            assert_true(s.weighed && s.delay[0] && s.delay[1] && s.delay[2]);
            exphil_prefetcher_destroy(one);
            exphil_prefetcher_destroy(other);
        }
}

/* ---- which lanes ------------------------------------------------------------------------------------------------- */

/* Any lanes, not only a rank's; the sampler without a thread has them too. */
static void any_lanes(void **state)
{
    exphil_sampling how = sampling_of(6, DRAWN, 7);
    for (int where = 0; where < DATASETS; where++)
        for (int64_t first = 0; first < 7; first++)
            for (int64_t count = 1; first + count <= 7; count++) {
                exphil_sampling own = how;
                xph_sampler *a = NULL, *b = NULL;
                ranks r = {.dataset = datasets[where], .how = how, .first = {first}, .lanes = {count}};
                own.first_lane = first;
                own.lane_count = count;
                OK(xph_sampler_create(datasets[where], &how, &a, error));
                OK(xph_sampler_create(datasets[where], &own, &b, error));
                for (int64_t i = 0; i < 5; i++) {
                    int64_t index = i * 17 % xph_sampler_batches(a);
                    exphil_batch all = EXPHIL_BATCH_INIT, part = EXPHIL_BATCH_INIT;
                    OK(xph_sampler_batch(a, i % 2, index, &all, error));
                    OK(xph_sampler_batch(b, i % 2, index, &part, error));
                    same_lanes(&r, 0, &part, &all);
                }
                xph_sampler_destroy(a);
                xph_sampler_destroy(b);
            }
}

static void lanes_of_ranks(void **state)
{
    for (int64_t batch = 1; batch <= 4096; batch += batch < 70 ? 1 : 671)
        for (int32_t count = 1; count <= batch; count++) {
            int64_t next = 0;
            for (int32_t rank = 0; rank < count; rank++) {
                int64_t first = -1, lanes = -1;
                assert_int_equal(exphil_rank_lanes(batch, rank, count, &first, &lanes, NULL), EXPHIL_OK);
                assert_int_equal(first, next);
                assert_int_equal(first, rank * batch / count);
                assert_in_range(lanes, batch / count, (batch + count - 1) / count);
                next = first + lanes;
            }
            assert_int_equal(next, batch);
        }
}

static void no_such_rank(void **state)
{
    static const struct {
        int64_t batch;
        int32_t rank, ranks;
        const char *says;
    } bad[] = {{0, 0, 1, "batch is 0"},
               {-1, 0, 1, "batch is -1"},
               {4097, 0, 1, "batch is 4097"},
               {INT64_MAX, 0, 1, "batch is 9"},
               {8, 0, 0, "ranks is 0"},
               {8, 0, -3, "ranks is -3"},
               {8, 0, 9, "ranks is 9"},
               {8, 0, INT32_MAX, "ranks is"},
               {8, 4, 4, "rank is 4, must be 0..3"},
               {8, -1, 4, "rank is -1"},
               {8, INT32_MAX, 4, "rank is 2147483647"},
               {8, INT32_MIN, 4, "rank is -2"}};
    int64_t first = 77, lanes = 78;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(exphil_rank_lanes(bad[i].batch, bad[i].rank, bad[i].ranks, &first, &lanes, &error),
                         EXPHIL_E_INVALID);
        assert_says(&error, bad[i].says);
        assert_true(first == 77 && lanes == 78);
    }
    assert_int_equal(exphil_rank_lanes(8, 0, 1, NULL, &lanes, &error), EXPHIL_E_INVALID);
    assert_says(&error, "first_lane is NULL");
    assert_int_equal(exphil_rank_lanes(8, 0, 1, &first, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "lane_count is NULL");
}

static void no_such_lanes(void **state)
{
    static const struct {
        int64_t first, count;
        const char *says;
    } bad[] = {{1, 0, "sampling.first_lane is 1, but lane_count is 0"},
               {-1, 0, "sampling.first_lane is -1, but lane_count is 0"},
               {-1, 2, "sampling.first_lane is -1, must be 0..6"},
               {7, 1, "sampling.first_lane is 7, must be 0..6"},
               {INT64_MAX, 1, "sampling.first_lane is 9"},
               {0, 8, "sampling.lane_count is 8, must be 1..7"},
               {5, 3, "sampling.lane_count is 3, must be 1..2"},
               {0, -1, "sampling.lane_count is -1, must be 1..7"},
               {3, INT64_MAX, "sampling.lane_count is 9"},
               {3, INT64_MIN, "sampling.lane_count is -9"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        exphil_sampling how = sampling_of(0, ALONE, 7);
        exphil_prefetcher *none = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        how.first_lane = bad[i].first;
        how.lane_count = bad[i].count;
        assert_int_equal(exphil_prefetcher_create(datasets[MEMORY], &how, &none, &error), EXPHIL_E_INVALID);
        assert_says(&error, bad[i].says);
        assert_null(none);
    }
}

/* A program that does not know the fields has all lanes, whatever stands behind its struct; so has one with the default
 * batch. */
static void older_callers(void **state)
{
    exphil_sampling how = sampling_of(0, ALONE, 7);
    memset((char *)&how + offsetof(exphil_sampling, first_lane), 0x55,
           sizeof how - offsetof(exphil_sampling, first_lane));
    how.struct_size = offsetof(exphil_sampling, first_lane);
    for (int i = 0; i < 2; i++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_prefetcher *prefetcher = prefetcher_of(datasets[MEMORY], &how);
        OK(exphil_prefetcher_next(prefetcher, &batch, error));
        assert_int_equal(batch.batch, i ? 16 : 7);
        exphil_prefetcher_destroy(prefetcher);
        how.batch = 0;
    }
    how = sampling_of(0, ALONE, 0);
    how.first_lane = 15;
    how.lane_count = 1;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_prefetcher *prefetcher = prefetcher_of(datasets[MEMORY], &how);
    OK(exphil_prefetcher_next(prefetcher, &batch, error));
    assert_int_equal(batch.batch, 1);
    exphil_prefetcher_destroy(prefetcher);
}

/* What a prefetcher takes is what its lanes take: as much as one that has only so many, but for the order. */
static void memory_follows_lanes(void **state)
{
    for (int where = 0; where < DATASETS; where++)
        for (int order = 0; order < ORDERS; order++) {
            exphil_sampling joint_of = sampling_of(order, DRAWN, 64), few = sampling_of(order, DRAWN, 5);
            xph_data_bytes own, alone, all;
            joint_of.first_lane = 32;
            joint_of.lane_count = 5;
            OK(xph_data_bytes_of(datasets[where], NULL, &joint_of, false, &own, error));
            OK(xph_data_bytes_of(datasets[where], NULL, &few, false, &alone, error));
            joint_of.first_lane = joint_of.lane_count = 0;
            OK(xph_data_bytes_of(datasets[where], NULL, &joint_of, false, &all, error));
            assert_int_equal(own.batches, alone.batches);
            assert_int_equal(own.games, alone.games);
            assert_true(own.batches * 64 == all.batches * 5 || own.batches * 12 < all.batches);
            assert_in_range(own.order, alone.order, alone.order + 64 * 64);
            assert_true(own.order <= all.order);
            assert_int_equal(own.how.batch, 64);
            assert_int_equal(own.how.lane_count, 5);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory),
                                       cmocka_unit_test(in_a_file),
                                       cmocka_unit_test(of_games),
                                       cmocka_unit_test(in_little_memory),
                                       cmocka_unit_test(all_is_drawn),
                                       cmocka_unit_test(any_lanes),
                                       cmocka_unit_test(lanes_of_ranks),
                                       cmocka_unit_test(no_such_rank),
                                       cmocka_unit_test(no_such_lanes),
                                       cmocka_unit_test(older_callers),
                                       cmocka_unit_test(memory_follows_lanes)};
    return cmocka_run_group_tests(tests, open_data, close_data);
}
