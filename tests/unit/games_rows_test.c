/* Rows of corpora of games are those of the replays, bit for bit; batches are those of the same rows in a file. */
#include "data_case.h"
#include "game_case.h"
#include "test.h"

#include "data/sampler.h"
#include "melee/melee.h"

#include <exphil/conditions.h>
#include <exphil/games.h>

#include <stdlib.h>

#define OK(call)                                                                                             \
  do {                                                                                                       \
    exphil_error error_of = EXPHIL_ERROR_INIT, *error = &error_of;                                           \
    if ((call) < 0) fail_msg("%s:%d: %s", __FILE__, __LINE__, error_of.message);                             \
  } while (0)

static exphil_dataset *dataset_of(const char *layout)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    OK(exphil_melee_spec(layout, NULL, &spec, error));
    config.spec = &spec;
    OK(exphil_dataset_create(context, &config, &dataset, error));
    return dataset;
}

static exphil_games_writer *create(const char *path)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    config.stored = 1;
    OK(exphil_games_create(context, path, &config, &writer, error));
    return writer;
}

static exphil_games *finish(exphil_games_writer *writer, const char *path)
{
    exphil_games *games = NULL;
    OK(exphil_games_finish(writer, NULL, error));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(context, path, &games, error));
    return games;
}

/* ---- equal rows ---- */

static int64_t episodes_of(const exphil_dataset *dataset)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    OK(exphil_dataset_query(dataset, &info, error));
    return info.episodes;
}

static exphil_episode_info episode_at(const exphil_dataset *dataset, int64_t i)
{
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    OK(exphil_dataset_episode(dataset, i, &info, error));
    return info;
}

/* The same player and frames, wherever in the dataset. */
static exphil_episode_info find(const exphil_dataset *dataset, const exphil_episode_info *of)
{
    for (int64_t i = 0; i < episodes_of(dataset); i++) {
        exphil_episode_info other = episode_at(dataset, i);
        if (other.game == of->game && other.port == of->port &&
            other.first_game_frame == of->first_game_frame)
            return other;
    }
    fail_msg("no episode of port %d from frame %d", (int)of->port, (int)of->first_game_frame);
    return *of;
}

static void same_rows(const exphil_dataset *a, int64_t at, const exphil_dataset *b, int64_t other,
                      int64_t frames)
{
    static float fa[1024], fb[1024];
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    OK(exphil_dataset_query(a, &info, error));
    for (int64_t i = 0; i < frames; i++) {
        int32_t ia[EXPHIL_IDS_MAX], ib[EXPHIL_IDS_MAX], aa[EXPHIL_HEADS_MAX], ab[EXPHIL_HEADS_MAX];
        OK(exphil_dataset_frame(a, at + i, fa, ia, aa, error));
        OK(exphil_dataset_frame(b, other + i, fb, ib, ab, error));
        assert_memory_equal(fa, fb, (size_t)info.float_count * sizeof *fa);
        assert_memory_equal(ia, ib, (size_t)info.id_count * sizeof *ia);
        assert_memory_equal(aa, ab, (size_t)info.head_count * sizeof *aa);
    }
}

/* All episodes of one are those of the other; facts too. */
static void same_datasets(const exphil_dataset *games, const exphil_dataset *replays)
{
    assert_int_equal(episodes_of(games), episodes_of(replays));
    for (int64_t i = 0; i < episodes_of(replays); i++) {
        exphil_episode_info one = episode_at(replays, i), other = find(games, &one);
        int64_t first = one.first, there = other.first;
        other.first = one.first;
        assert_memory_equal(&one, &other, sizeof one);
        same_rows(replays, first, games, there, one.frames);
    }
}

static const char *const layouts[] = {"melee2", "exphil288"};

typedef struct filling {
    exphil_games_writer *writer;
    exphil_dataset *dataset;
    int64_t frames, masked;
} filling;

/* A replay of players only: others are refused by the dataset and give no rows of the corpus. */
static void fill(const char *path, exphil_slp *slp, void *arg)
{
    filling *f = arg;
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    if (!exphil_slp_frame_count(slp)) return;
    OK(exphil_games_add(f->writer, path, &added, error));
    if (added.duplicate) return;
    if (exphil_dataset_add_replay(f->dataset, path, NULL, &result, NULL) < 0) return;
    f->frames += result.frames;
    f->masked += result.frames_masked;
}

static void real_replays(void **state)
{
    for (int i = 0; i < 2; i++) {
        const char *path = test_path("real.games");
        exphil_selection selection = EXPHIL_SELECTION_INIT;
        exphil_selection_report report = EXPHIL_SELECTION_REPORT_INIT;
        filling f = {create(path), dataset_of(layouts[i]), 0, 0};
        exphil_dataset *dataset = dataset_of(layouts[i]);
        if (!game_each_real(fill, &f)) {
            exphil_games_writer_destroy(f.writer);
            exphil_dataset_destroy(f.dataset);
            exphil_dataset_destroy(dataset);
            skip();
        }
        exphil_games *games = finish(f.writer, path);
        selection.duplicates = 1;
        OK(exphil_dataset_add_games(dataset, games, &selection, &report, error));
        exphil_games_destroy(games); /* the dataset keeps it */
        assert_int_equal(report.frames, f.frames);
        assert_int_equal(report.frames_masked, f.masked);
        int64_t refused = 0;
        for (int r = 0; r < EXPHIL_REFUSED_REASONS; r++) refused += report.refused[r];
        assert_int_equal(report.taken + refused, report.players);
        print_message("%s: %lld rows in %lld episodes of %lld players\n", layouts[i],
                      (long long)report.frames, (long long)report.episodes, (long long)report.taken);
        same_datasets(dataset, f.dataset);
        exphil_dataset_destroy(f.dataset);
        exphil_dataset_destroy(dataset);
    }
}

/* ---- games that lack frames, players and numbers ---- */

enum { ODD = 4, LONG = 700 };

/* Frames go to slp_frame; slots as in exphil_slp_frame. */
static void odd_game(slp_writer *writer, int which)
{
    slp_begin(writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(writer, &slp_layouts[SLP_NEWEST]);
    game_seed(writer, (uint8_t)(which + 1));
    for (int32_t frame = -123; frame < LONG; frame++) {
        uint8_t slots = 0x05;
        if (which == 1 && frame > 100 && frame < 300) slots = 0x04;        /* port 1 is away */
        if (which == 2 && (frame == 255 || frame == 400)) continue;        /* lost frames */
        if (which == 3 && (frame % 97 == 0 || frame == 132)) slots = 0x01; /* port 2 comes and goes */
        slp_frame(writer, frame, slots, frame % 3);
    }
    slp_game_end(writer, 2);
}

/* Samples have bytes without meaning, infinities among them: what the encoder refuses is masked alike. */
static void odd_games(void **state)
{
    const char *path = test_path("odd.games");
    exphil_games_writer *writer = create(path);
    exphil_dataset *replays = dataset_of("melee2"), *rows = dataset_of("melee2");
    int64_t frames = 0, masked = 0;
    for (int which = 0; which < ODD + SLP_SAMPLES; which++) {
        slp_writer made;
        exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
        exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
        exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
        config.first_frame = -1000;
        if (which < ODD)
            odd_game(&made, which);
        else
            slp_sample(&made, which - ODD);
        if (exphil_games_add_memory(writer, made.data, made.bytes, &added, NULL) == EXPHIL_OK &&
            !added.duplicate &&
            exphil_dataset_add_replay_memory(replays, made.data, made.bytes, &config, &result, NULL) ==
                EXPHIL_OK) {
            frames += result.frames;
            masked += result.frames ? result.frames_masked : 0;
        }
        slp_free(&made);
    }
    exphil_games *games = finish(writer, path);
    exphil_selection selection = EXPHIL_SELECTION_INIT;
    exphil_selection_report report = EXPHIL_SELECTION_REPORT_INIT;
    selection.first_frame = -1000;
    selection.duplicates = 1;
    OK(exphil_dataset_add_games(rows, games, &selection, &report, error));
    assert_int_equal(report.frames, frames);
    assert_int_equal(report.frames_masked, masked);
    assert_true(frames > 1000);
    same_datasets(rows, replays);
    data_rows_at_once(rows);
    exphil_games_destroy(games);
    exphil_dataset_destroy(replays);
    exphil_dataset_destroy(rows);
}

/* ---- batches ---- */

static void same_batch(const exphil_dataset *dataset, const exphil_batch *a, const exphil_batch *b,
                       const exphil_sampling *how)
{
    size_t columns = (size_t)(how->condition_count + (how->delay_count > 0));
    int64_t slots = how->action_slots;
    const exphil_spec *spec = xph_dataset_spec_of(dataset);
    size_t rows = (size_t)(a->batch * a->time);
    assert_int_equal(a->frames, b->frames);
    assert_memory_equal(a->floats, b->floats, rows * (size_t)spec->float_count * sizeof(float));
    assert_memory_equal(a->ids, b->ids, rows * (size_t)spec->id_count * sizeof(int32_t));
    assert_memory_equal(a->actions, b->actions, rows * (size_t)spec->head_count * sizeof(int32_t));
    assert_memory_equal(a->mask, b->mask, rows * sizeof(float));
    assert_memory_equal(a->reset, b->reset, rows);
    if (slots)
        assert_memory_equal(a->past, b->past, rows * (size_t)(slots * spec->head_count) * sizeof(int32_t));
    if (how->drop_past > 0) assert_memory_equal(a->dropped, b->dropped, rows);
    if (columns) assert_memory_equal(a->conditions, b->conditions, rows * columns * sizeof(int32_t));
}

/* What a prefetcher with n workers gives is what the sampler gives, in order and after seeks. */
static void same_prefetched(const exphil_dataset *games, const exphil_sampling *given, int32_t workers)
{
    exphil_sampling how = *given;
    exphil_prefetcher *prefetcher = NULL;
    xph_sampler *sampler = NULL;
    how.workers = workers;
    how.buffers = workers == 3 ? 7 : 2;
    OK(exphil_prefetcher_create(games, &how, &prefetcher, error));
    OK(xph_sampler_create(games, given, &sampler, error));
    int64_t batches = xph_sampler_batches(sampler), seek = 0;
    for (int64_t i = 0, epoch = 0, seen = 0; seen < 2 * batches + 3; seen++) {
        exphil_batch one = EXPHIL_BATCH_INIT, other = EXPHIL_BATCH_INIT;
        exphil_status status = exphil_prefetcher_next(prefetcher, &one, NULL);
        assert_true(status >= 0);
        if (status == EXPHIL_END) {
            assert_int_equal(i, batches);
            i = 0;
            epoch++;
            continue;
        }
        OK(xph_sampler_batch(sampler, epoch, i, &other, error));
        assert_int_equal(one.index, i);
        assert_int_equal(one.epoch, epoch);
        same_batch(games, &one, &other, &how);
        i++;
        if (seen % 5 == 4 && seek < 4) {
            i = (i * 7 + seek) % batches;
            epoch = seek++ % 3;
            OK(exphil_prefetcher_seek(prefetcher, epoch, i, error));
        }
    }
    exphil_prefetcher_destroy(prefetcher);
    xph_sampler_destroy(sampler);
}

/* Of a corpus of games and of its rows in a file; with little memory, and with more threads. */
static void same_batches(const exphil_dataset *games, const exphil_dataset *file, const exphil_sampling *how)
{
    xph_sampler *a = NULL, *b = NULL;
    OK(xph_sampler_create(games, how, &a, error));
    OK(xph_sampler_create(file, how, &b, error));
    assert_int_equal(xph_sampler_batches(a), xph_sampler_batches(b));
    for (int64_t epoch = 0; epoch < 2; epoch++)
        for (int64_t i = 0; i < xph_sampler_batches(a); i += epoch ? 3 : 1) {
            exphil_batch one = EXPHIL_BATCH_INIT, other = EXPHIL_BATCH_INIT;
            OK(xph_sampler_batch(a, epoch, i, &one, error));
            OK(xph_sampler_batch(b, epoch, i, &other, error));
            same_batch(games, &one, &other, how);
        }
    xph_sampler_destroy(a);
    xph_sampler_destroy(b);
    for (int32_t workers = 1; workers <= 4; workers++) same_prefetched(games, how, workers);
    exphil_sampling narrow = *how;
    exphil_error refused = EXPHIL_ERROR_INIT;
    narrow.memory_bytes = 1;
    narrow.workers = 1;
    assert_int_equal(xph_sampler_create(games, &narrow, &a, &refused), EXPHIL_E_INVALID);
    assert_says(&refused, "memory_bytes is 1, these batches need at least ");
    narrow.memory_bytes = atoll(strstr(refused.message, "least ") + 6);
    OK(xph_sampler_create(games, &narrow, &a, error));
    OK(xph_sampler_create(games, how, &b, error));
    for (int64_t i = 0; i < xph_sampler_batches(a); i++) {
        exphil_batch one = EXPHIL_BATCH_INIT, other = EXPHIL_BATCH_INIT;
        OK(xph_sampler_batch(a, 0, i, &one, error));
        OK(xph_sampler_batch(b, 0, i, &other, error));
        same_batch(games, &one, &other, how);
    }
    xph_sampler_destroy(a);
    xph_sampler_destroy(b);
}

/* The controller stays for three frames: from the main stick on, a pre-frame event is that of the frame before. */
static void hold_inputs(slp_writer *writer)
{
    enum { STICK = 0x19 };
    const uint8_t *held[8] = {NULL};
    for (size_t at = 0; at < writer->bytes;) {
        uint8_t *event = writer->data + at, slot = (uint8_t)(2 * event[5] + event[6]);
        if (event[0] == 0x37 && slot < 8 && held[slot] && event[4] % 3)
            memcpy(event + STICK, held[slot] + STICK, (size_t)writer->size[0x37] + 1 - STICK);
        else if (event[0] == 0x37 && slot < 8)
            held[slot] = event;
        at += 1 + (size_t)(event[0] == 0x35 ? event[1] : writer->size[event[0]]);
    }
}

/* Rows of the odd games first, first + step, ... */
static exphil_dataset *odd_rows(const char *path, int first, int step)
{
    exphil_games_writer *writer = create(path);
    for (int which = first; which >= 0 && which < ODD; which += step) {
        slp_writer made;
        odd_game(&made, which);
        hold_inputs(&made);
        OK(exphil_games_add_memory(writer, made.data, made.bytes, NULL, error));
        slp_free(&made);
    }
    exphil_games *games = finish(writer, path);
    exphil_dataset *rows = dataset_of("melee2");
    OK(exphil_dataset_add_games(rows, games, NULL, NULL, error));
    exphil_games_destroy(games);
    return rows;
}

static exphil_prefetcher *prefetcher_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    exphil_prefetcher *prefetcher = NULL;
    OK(exphil_prefetcher_create(dataset, how, &prefetcher, error));
    return prefetcher;
}

/* Rows weigh the same wherever they come from: by port and frame of the game, and balanced. */
static void same_weights(exphil_dataset *games, exphil_dataset *file, const exphil_sampling *given)
{
    for (int kind = 0; kind < 4; kind++) {
        exphil_sampling how = *given;
        exphil_batch one = EXPHIL_BATCH_INIT, other = EXPHIL_BATCH_INIT;
        int64_t zero = 0, double_weight = 0, weighed = 0;
        how.workers = 1 + kind;
        how.balance_character = kind & 1 ? 0.5 : 0;
        how.balance_action = kind & 2 ? 0.5 : 0;
        how.balance_change = kind ? 0.75 : 0;
        exphil_prefetcher *a = prefetcher_of(games, &how), *b = prefetcher_of(file, &how);
        while (exphil_prefetcher_next(a, &one, NULL) == EXPHIL_OK) {
            assert_int_equal(exphil_prefetcher_next(b, &other, NULL), EXPHIL_OK);
            same_batch(games, &one, &other, &how);
            for (int64_t row = 0; row < one.batch * one.time; row++) {
                zero += one.mask[row] == 0.0f;
                double_weight += one.mask[row] == 2.0f;
                weighed += one.mask[row] > 0.0f && one.mask[row] != 1.0f && one.mask[row] != 2.0f;
            }
        }
        assert_true(zero > 100 && (kind ? weighed > 100 : double_weight > 100));
        exphil_prefetcher_destroy(a);
        exphil_prefetcher_destroy(b);
    }
}

static void weigh(exphil_dataset *dataset)
{
    for (int64_t i = 0; i < episodes_of(dataset); i++) {
        exphil_episode_info episode = episode_at(dataset, i);
        OK(exphil_dataset_weight(dataset, episode.game, 0, 50, 149, 0, error));
        OK(exphil_dataset_weight(dataset, episode.game, 1, 100, 199, 2, error));
        OK(exphil_dataset_weight(dataset, episode.game, 2, 100, 199, 5, error)); /* nobody's */
    }
}

/* Rows of the odd games from a corpus of games, and the same saved as rows. */
static void batches(void **state)
{
    exphil_dataset *rows = odd_rows(test_path("odd.games"), 0, 1), *file = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT, saved = EXPHIL_DATASET_INFO_INIT;
    OK(exphil_dataset_query(rows, &info, error));
    assert_int_equal(info.constant_floats, -1);
    OK(exphil_dataset_save(rows, test_path("rows"), error));
    OK(exphil_dataset_query(rows, &info, error));
    OK(exphil_dataset_open(context, test_path("rows"), &file, error));
    OK(exphil_dataset_query(file, &saved, error));
    assert_int_equal(info.constant_floats, saved.constant_floats);
    assert_int_equal(info.frames, saved.frames);
    assert_true(info.content_hash != saved.content_hash);
    OK(exphil_dataset_verify(rows, error));
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 3;
    how.time = 50;
    how.delay_frames = 2;
    how.action_slots = 3;
    how.seed = 5;
    same_batches(rows, file, &how);
    how.segment_frames = 120;
    same_batches(rows, file, &how);
    how.time = 600; /* chunks of several blocks */
    how.segment_frames = 0;
    same_batches(rows, file, &how);
    how.time = 40;
    how.in_order = 1;
    same_batches(rows, file, &how);
    how.mode = EXPHIL_MODE_WINDOW;
    how.stride = 7;
    same_batches(rows, file, &how);
    how.in_order = 0;
    how.shuffle_frames = 2048;
    same_batches(rows, file, &how);
    weigh(rows);
    weigh(file);
    same_weights(rows, file, &how);
    how.delay_frames = how.action_slots =
        0; /* the action before the first row of a window is looked at all the same */
    same_weights(rows, file, &how);
    how = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    how.delay_frames = 2;
    same_weights(rows, file, &how);
    exphil_dataset_destroy(rows);
    exphil_dataset_destroy(file);
}

/* ---- what a policy is told ---- */

static const int32_t delays[3] = {0, 2, 4};

/* Rows of several delays against those of the longest: its 5 past actions are all that a row of the others has, and its
 * rows are the same. */
static void rows_of_delays(const exphil_dataset *games, const exphil_sampling *several)
{
    exphil_sampling longest = *several;
    xph_sampler *a = NULL, *b = NULL;
    int64_t heads = xph_dataset_spec_of(games)->head_count, seen[3] = {0};
    size_t action = (size_t)heads * sizeof(int32_t);
    longest.delay_count = 0;
    longest.delay_frames = 4;
    OK(xph_sampler_create(games, several, &a, error));
    OK(xph_sampler_create(games, &longest, &b, error));
    assert_int_equal(xph_sampler_batches(a), xph_sampler_batches(b));
    for (int64_t i = 0; i < 2 * xph_sampler_batches(a); i++) {
        exphil_batch x = EXPHIL_BATCH_INIT, y = EXPHIL_BATCH_INIT;
        OK(xph_sampler_batch(a, i / xph_sampler_batches(a), i % xph_sampler_batches(a), &x, error));
        OK(xph_sampler_batch(b, i / xph_sampler_batches(a), i % xph_sampler_batches(a), &y, error));
        for (int64_t row = 0; row < x.batch * x.time; row++) {
            if (!(x.mask[row] > 0)) continue;
            int32_t id = x.conditions[row * 2 + 1], d = delays[id - 1];
            const int32_t *have = x.past + row * 5 * heads, *from = y.past + row * 5 * heads;
            const int32_t *target = d == 4 ? y.actions + row * heads : from + (3 - d) * heads;
            assert_memory_equal(x.actions + row * heads, target, action);
            assert_memory_equal(have, from + (4 - d) * heads, (size_t)(d + 1) * action);
            for (int64_t s = (d + 1) * heads; s < 5 * heads; s++)
                assert_int_equal(have[s], xph_dataset_spec_of(games)->heads[s % heads].neutral);
            seen[id - 1]++;
        }
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    xph_sampler_destroy(a);
    xph_sampler_destroy(b);
}

/* Episode 1 + i of the dataset is told i; then by game and port, masked, with several delays, and by any worker. */
static void told_batches(void **state)
{
    exphil_dataset *rows = odd_rows(test_path("odd.games"), 0, 1), *file = NULL;
    int64_t episodes = episodes_of(rows);
    exphil_condition_spec which = {"which", (int32_t)episodes, 0, 0}, player = {"player", 40, 0, 0.3};
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    OK(exphil_dataset_save(rows, test_path("rows"), error));
    OK(exphil_dataset_open(context, test_path("rows"), &file, error));
    for (int64_t i = 0; i < episodes; i++) {
        exphil_episode_info e = episode_at(rows, i);
        OK(exphil_dataset_condition_episodes(rows, "which", i, 1, (int32_t)i + 1, error));
        OK(exphil_dataset_condition_episodes(file, "which", i, 1, (int32_t)i + 1, error));
        OK(exphil_dataset_condition(rows, "player", e.game, e.port, (int32_t)(e.game % 10) * 4 + e.port,
                                    error));
    }
    how.batch = 3;
    how.time = 50;
    how.action_slots = 5;
    how.seed = 5;
    for (int kind = 0; kind < 4; kind++) { /* lanes, windows in order, shuffled together and in groups */
        how.mode = kind ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        how.stride = kind ? 7 : 0;
        how.in_order = kind == 1;
        how.shuffle_frames = kind == 3 ? 2048 : 0;
        how.delay_frames = 4;
        how.delay_count = 0;
        how.condition_count = 1;
        how.conditions = &which;
        if (kind != 2)
            same_batches(rows, file, &how); /* of games 0 means 65536 frames, of rows all together */
        how.delays = delays;
        how.delay_count = 3;
        how.conditions = &player;
        rows_of_delays(rows, &how);
        how.drop_past = 0.3;
        for (int32_t workers = 1; workers <= 4; workers += 3) same_prefetched(rows, &how, workers);
        how.drop_past = 0;
    }
    exphil_dataset_destroy(rows);
    exphil_dataset_destroy(file);
}

/* What an epoch draws for an episode of a game does not depend on the order of the games, nor on others. */
static void draws_are_of_the_game(void **state)
{
    exphil_dataset *all = odd_rows(test_path("all.games"), 0, 1),
                   *some = odd_rows(test_path("some.games"), 3, -2);
    exphil_condition_spec player = {"player", 4, 0, 0.5};
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    xph_sampler *a = NULL, *b = NULL;
    int64_t masked = 0, compared = 0, each[3] = {0};
    how.action_slots = 5;
    how.conditions = &player;
    how.condition_count = 1;
    how.delays = delays;
    how.delay_count = 3;
    for (int64_t i = 0; i < episodes_of(all); i++) {
        exphil_episode_info e = episode_at(all, i);
        OK(exphil_dataset_condition(all, "player", e.game, e.port, e.port, error));
        OK(exphil_dataset_condition(some, "player", e.game, e.port, e.port, error));
    }
    OK(xph_sampler_create(all, &how, &a, error));
    OK(xph_sampler_create(some, &how, &b, error));
    for (int64_t i = 0; i < episodes_of(some); i++)
        for (int64_t k = 0; k < episodes_of(all); k++) {
            exphil_episode_info x = episode_at(some, i), y = episode_at(all, k);
            if (x.game != y.game || x.port != y.port || x.first_game_frame != y.first_game_frame) continue;
            for (int64_t epoch = 0; epoch < 20; epoch++, compared++) {
                xph_shown one = xph_sampler_shown(b, epoch, i), other = xph_sampler_shown(a, epoch, k);
                assert_memory_equal(one.told, other.told, 2 * sizeof one.told[0]);
                assert_true(one.told[0] == 0 || one.told[0] == x.port);
                masked += one.told[0] == 0;
                each[one.told[1] - 1]++;
            }
        }
    assert_int_equal(compared, 20 * episodes_of(some));
    assert_true(masked > compared / 4 && masked < compared * 3 / 4 && each[0] && each[1] && each[2]);
    xph_sampler_destroy(a);
    xph_sampler_destroy(b);
    exphil_dataset_destroy(all);
    exphil_dataset_destroy(some);
}

/* ---- memory ---- */

/* Games of many seeds. */
static exphil_games *many_games(exphil_context *of, const char *path, int count)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    exphil_games *games = NULL;
    config.stored = 1;
    OK(exphil_games_create(of, path, &config, &writer, error));
    for (int i = 0; i < count; i++) {
        slp_writer made;
        exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
        slp_begin(&made, &slp_layouts[SLP_NEWEST], true);
        slp_head(&made, &slp_layouts[SLP_NEWEST]);
        game_seed(&made, (uint8_t)(i + 1));
        for (int32_t frame = -123; frame < 500 + i; frame++) slp_frame(&made, frame, 0x05, 1);
        OK(exphil_games_add_memory(writer, made.data, made.bytes, &added, error));
        assert_false(added.duplicate);
        slp_free(&made);
    }
    OK(exphil_games_finish(writer, NULL, error));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(of, path, &games, error));
    return games;
}

/* The least that a sampling says it needs. */
static int64_t least_memory(const exphil_dataset *dataset, const exphil_sampling *given)
{
    exphil_sampling how = *given;
    exphil_prefetcher *prefetcher = NULL;
    exphil_error refused = EXPHIL_ERROR_INIT;
    how.memory_bytes = 1;
    assert_int_equal(exphil_prefetcher_create(dataset, &how, &prefetcher, &refused), EXPHIL_E_INVALID);
    return atoll(strstr(refused.message, "least ") + 6);
}

#if defined(EXPHIL_TEST_FEWER) /* the number of games is about memory */
enum { MOST_GAMES = 16 };
#else
enum { MOST_GAMES = 64 };
#endif

/* The allocator refuses what goes beyond memory_bytes and what the order takes: an epoch is read nevertheless, of few
 * games and of many. */
static void memory_is_kept(void **state)
{
    enum { ORDER = 600 << 10, EACH = 600 };
    for (int count = 4; count <= MOST_GAMES; count *= 4) {
        exphil_games_destroy(many_games(context, test_path("many.games"), count));
        for (int mode = 0; mode < 4; mode++) {
            test_memory memory;
            test_memory_init(&memory);
            exphil_context *own = test_context(&memory, NULL, 1);
            exphil_games *games = NULL;
            exphil_dataset *dataset = NULL;
            exphil_prefetcher *prefetcher = NULL;
            OK(exphil_games_open(own, test_path("many.games"), &games, error));
            OK(exphil_dataset_create(own, NULL, &dataset, error));
            OK(exphil_dataset_add_games(dataset, games, NULL, NULL, error));
            exphil_sampling how = EXPHIL_SAMPLING_INIT;
            how.batch = 16;
            how.mode = mode < 2 ? EXPHIL_MODE_CARRY : EXPHIL_MODE_WINDOW;
            how.workers = 1 + mode % 2 * 2;
            how.shuffle_frames = mode < 2 ? 0 : 2048;
            how.memory_bytes = least_memory(dataset, &how) + (mode ? 0 : 3 << 20);
            memory.limit_bytes = atomic_load(&memory.live_bytes) + how.memory_bytes + ORDER + count * EACH;
            OK(exphil_prefetcher_create(dataset, &how, &prefetcher, error));
            exphil_status status = EXPHIL_OK;
            while (status == EXPHIL_OK) {
                exphil_batch batch = EXPHIL_BATCH_INIT;
                exphil_error failed = EXPHIL_ERROR_INIT;
                status = exphil_prefetcher_next(prefetcher, &batch, &failed);
                if (status < 0) fail_msg("%d games, mode %d: %s", count, mode, failed.message);
            }
            assert_int_equal(status, EXPHIL_END);
            exphil_prefetcher_destroy(prefetcher);
            exphil_dataset_destroy(dataset);
            exphil_games_destroy(games);
            exphil_context_destroy(own);
            assert_memory_clean(&memory);
        }
    }
}

/* ---- opening ---- */

static void opened(void **state)
{
    const char *path = test_path("opened.games");
    exphil_games *games = many_games(context, path, 3);
    exphil_dataset *one = NULL, *other = dataset_of("melee2");
    exphil_dataset_info a = EXPHIL_DATASET_INFO_INIT, b = EXPHIL_DATASET_INFO_INIT;
    exphil_error refused = EXPHIL_ERROR_INIT;
    OK(exphil_dataset_add_games(other, games, NULL, NULL, error));
    exphil_games_destroy(games);
    OK(exphil_dataset_open(context, path, &one, error));
    OK(exphil_dataset_query(one, &a, error));
    OK(exphil_dataset_query(other, &b, error));
    assert_memory_equal(&a, &b, sizeof a);
    assert_string_equal(xph_dataset_file(one), path);
    exphil_dataset_destroy(one);
    exphil_dataset_destroy(other);
    assert_int_equal(exphil_dataset_open(context, test_folder(), &one, NULL), EXPHIL_OK); /* a folder */
    exphil_dataset_destroy(one);
    exphil_dataset *rows = NULL;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_head_spec head = {"a", EXPHIL_CATEGORICAL, 2, 0, 0};
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    spec.float_count = 1;
    spec.head_count = 1;
    spec.heads = &head;
    spec.layout_hash = 1;
    config.spec = &spec;
    if (exphil_dataset_create(context, &config, &rows, NULL) == EXPHIL_OK) {
        OK(exphil_games_open(context, path, &games, error));
        assert_int_equal(exphil_dataset_add_games(rows, games, NULL, NULL, &refused), EXPHIL_E_INVALID);
        assert_says(&refused, "replays need a Melee dataset");
        exphil_games_destroy(games);
    }
    exphil_dataset_destroy(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_games),      cmocka_unit_test(batches),
        cmocka_unit_test(told_batches),   cmocka_unit_test(draws_are_of_the_game),
        cmocka_unit_test(memory_is_kept), cmocka_unit_test(opened),
        cmocka_unit_test(real_replays)};
    return cmocka_run_group_tests(tests, context_open, context_close);
}
