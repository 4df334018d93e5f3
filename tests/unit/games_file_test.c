/* Corpora of games: what is read is what was added, bit for bit; duplicates, folders, copies; files that end early,
 * at every byte; every byte changed. */
#include "game_case.h"
#include "test.h"

#include "base/system.h"
#include "games/format.h"

#include <stdio.h>
#include <stdlib.h>

#define OK(call) assert_int_equal(call, EXPHIL_OK)

static exphil_games_writer *create(const char *path, int32_t stored)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    config.stored = stored;
    OK(exphil_games_create(context, path, &config, &writer, NULL));
    return writer;
}

static exphil_games_info finish(exphil_games_writer *writer)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    OK(exphil_games_finish(writer, &info, NULL));
    exphil_games_writer_destroy(writer);
    return info;
}

static exphil_games *open_games(const char *path)
{
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_open(context, path, &games, &error) < 0) fail_msg("%s", error.message);
    return games;
}

static exphil_games_info info_of(const exphil_games *games)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    OK(exphil_games_query(games, &info, NULL));
    return info;
}

static bool has_zstd(void)
{
    exphil_games_writer *writer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_games_create(context, test_path("probe"), NULL, &writer, &error);
    exphil_games_writer_destroy(writer);
    if (status == EXPHIL_OK) return true;
#ifdef XPH_ZSTD_BUNDLED
    fail_msg("the library's own encoder: %s", error.message);
#endif
    assert_int_equal(status, EXPHIL_E_UNSUPPORTED);
    assert_says(&error, XPH_LIBZSTD);
    print_message("SKIPPED: compression, since there is no " XPH_LIBZSTD "\n");
    return false;
}

/* ---- there and back ---- */

/* What a corpus does not keep is another's in `back`. */
static void same_info(const exphil_slp *slp, const exphil_slp *back)
{
    exphil_slp_info a = EXPHIL_SLP_INFO_INIT, b = EXPHIL_SLP_INFO_INIT;
    OK(exphil_slp_query(slp, &a, NULL));
    OK(exphil_slp_query(back, &b, NULL));
    assert_int_equal(b.container, EXPHIL_SLP_GAMES);
    const uint32_t dropped = EXPHIL_SLP_HAS_PRE_PERCENT | EXPHIL_SLP_HAS_FRAME_SEED |
                             EXPHIL_SLP_HAS_LATEST_FINAL | EXPHIL_SLP_HAS_SCENE_COUNTER;
    assert_int_equal(b.fields, a.fields & ~dropped);
    assert_int_equal(a.frame_count, b.frame_count);
    assert_int_equal(a.item_count, b.item_count);
    assert_int_equal(a.first_frame, b.first_frame);
    assert_int_equal(a.last_frame, b.last_frame);
    assert_int_equal(a.truncated, b.truncated);
    assert_int_equal(a.stop, b.stop);
    assert_int_equal(a.metadata_last_frame, b.metadata_last_frame);
    assert_int_equal(a.end_count != 0, b.end_count);
    int64_t events = a.problem_count - (a.metadata == EXPHIL_SLP_METADATA_UNREADABLE);
    assert_int_equal(b.problem_count, events < 15 ? events : 15);
    assert_memory_equal(&a.seed, &b.seed, offsetof(exphil_slp_info, stage) - offsetof(exphil_slp_info, seed));
    assert_int_equal(a.stage, b.stage);
    assert_memory_equal(a.version, b.version, 3);
    assert_memory_equal(&a.game_mode, &b.game_mode,
                        offsetof(exphil_slp_info, reserved) - offsetof(exphil_slp_info, game_mode));
    assert_memory_equal(a.ports, b.ports, sizeof a.ports);
    assert_int_equal(strlen(b.started_at), strlen(a.started_at) < 10 ? 0 : 10);
    assert_memory_equal(a.started_at, b.started_at, strlen(b.started_at));
}

static void add_real(const char *path, exphil_slp *slp, void *arg)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_games_add(arg, path, &added, &error);
    if (!exphil_slp_frame_count(slp)) {
        assert_int_equal(status, EXPHIL_E_UNSUPPORTED);
        return;
    }
    if (status < 0) fail_msg("%s: %s", path, error.message);
    if (!added.duplicate || added.content_hash) assert_int_equal(added.frames, exphil_slp_frame_count(slp));
}

/* The game that came from a file; -1: the corpus has its content from another. */
static int64_t find_source(const exphil_games *games, const char *path)
{
    size_t bytes;
    char *data = test_read(path, &bytes);
    uint64_t source = xph_hash(data, bytes);
    free(data);
    for (int64_t i = 0; i < info_of(games).games; i++) {
        exphil_game_info game = EXPHIL_GAME_INFO_INIT;
        OK(exphil_games_game(games, i, &game, NULL, NULL));
        if (game.source_hash == source) return i;
    }
    return -1;
}

typedef struct reading {
    exphil_games *games;
    int64_t seen;
} reading;

static void read_real(const char *path, exphil_slp *slp, void *arg)
{
    reading *r = arg;
    exphil_slp *back = NULL;
    if (!exphil_slp_frame_count(slp)) return;
    int64_t index = find_source(r->games, path);
    if (index < 0) return;
    OK(exphil_games_read(r->games, index, &back, NULL));
    same_info(slp, back);
    assert_same_replay(slp, back);
    exphil_slp_destroy(back);
    r->seen++;
}

/* Every real replay comes back, compressed and stored alike, and takes no more than 30 bytes a frame. */
static void real_replays(void **state)
{
    uint64_t hash[2] = {0, 0};
    for (int32_t stored = has_zstd() ? 0 : 1; stored < 2; stored++) {
        const char *path = test_path("real.games");
        exphil_games_writer *writer = create(path, stored);
        if (!game_each_real(add_real, writer)) {
            exphil_games_writer_destroy(writer);
            skip();
        }
        exphil_games_info wrote = finish(writer);
        reading r = {.games = open_games(path)};
        exphil_games_info info = info_of(r.games);
        assert_memory_equal(&wrote, &info, sizeof info);
        assert_true(game_each_real(read_real, &r));
        assert_true(r.seen >= info.games);
        OK(exphil_games_verify(r.games, NULL));
        exphil_games_destroy(r.games);
        hash[stored] = info.hash;
        print_message("%lld games, %lld frames, %.2f bytes a frame\n", (long long)info.games,
                      (long long)info.frames, (double)info.bytes / (double)info.frames);
        if (!stored) assert_true(info.bytes <= 30 * (uint64_t)info.frames);
    }
    assert_true(!hash[0] || hash[0] == hash[1]);
}

static void samples(void **state)
{
    const char *path = test_path("samples.games");
    exphil_games_writer *writer = create(path, 1);
    int64_t added_count = 0, refused = 0;
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer sample;
        exphil_slp *slp = NULL;
        exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
        slp_sample(&sample, which);
        exphil_status fine = exphil_slp_read(context, sample.data, sample.bytes, NULL, &slp, NULL);
        exphil_status status = exphil_games_add_memory(writer, sample.data, sample.bytes, &added, NULL);
        if (status == EXPHIL_OK && !added.duplicate) {
            exphil_games *games = NULL;
            assert_int_equal(fine, EXPHIL_OK);
            added_count++;
            /* alone, too: the same game whatever is beside it */
            exphil_games_writer *alone = create(test_path("alone.games"), 1);
            OK(exphil_games_add_memory(alone, sample.data, sample.bytes, NULL, NULL));
            finish(alone);
            games = open_games(test_path("alone.games"));
            exphil_slp *back = NULL;
            OK(exphil_games_read(games, 0, &back, NULL));
            same_info(slp, back);
            assert_same_replay(slp, back);
            exphil_slp_destroy(back);
            OK(exphil_games_verify(games, NULL));
            exphil_games_destroy(games);
        } else {
            refused++;
            assert_true(added.duplicate || (fine < 0 && status == fine) || status == EXPHIL_E_UNSUPPORTED);
        }
        exphil_slp_destroy(slp);
        slp_free(&sample);
    }
    assert_int_equal(finish(writer).games, added_count);
    if (added_count < 15 || refused < 1) fail_msg("%d added, %d refused", (int)added_count, (int)refused);
}

/* ---- many games: small replays that differ in their first frame ---- */

static void small_game(slp_writer *writer, int which)
{
    slp_begin(writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(writer, &slp_layouts[SLP_NEWEST]);
    for (int32_t frame = which; frame < which + 5; frame++) slp_frame(writer, frame, 0x05, 1);
    slp_game_end(writer, 2);
}

static exphil_games_added add_small(exphil_games_writer *to, int which)
{
    slp_writer writer;
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    small_game(&writer, which);
    OK(exphil_games_add_memory(to, writer.data, writer.bytes, &added, NULL));
    slp_free(&writer);
    return added;
}

static const char *new_folder(const char *name)
{
    const char *path = test_path(name);
    test_make_folder(path);
    return path;
}

/* A folder: files of two games each; a second writer adds what is new and changes nothing. */
static void folders(void **state)
{
    const char *folder = new_folder("many");
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL, *other = NULL;
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_games_open(context, folder, &games, &error), EXPHIL_E_FORMAT);
    assert_says(&error, "no file whose name ends in .games");
    config.stored = 1;
    config.shard_bytes = 3000;
    OK(exphil_games_create(context, folder, &config, &writer, NULL));
    assert_int_equal(exphil_games_create(context, folder, &config, &other, &error), EXPHIL_E_BUSY);
    for (int i = 0; i < 7; i++) assert_int_equal(add_small(writer, i).duplicate, 0);
    assert_int_equal(add_small(writer, 3).duplicate, 1);
    assert_int_equal(exphil_games_create(context, folder, &config, &other, &error), EXPHIL_E_BUSY);
    assert_says(&error, "new.games");
    assert_int_equal(finish(writer).games, 7);
    games = open_games(folder);
    exphil_games_info first = info_of(games);
    assert_int_equal(first.games, 7);
    assert_int_equal(first.frames, 35);
    OK(exphil_games_create(context, folder, &config, &writer, NULL));
    for (int i = 0; i < 9; i++) assert_int_equal(add_small(writer, i).duplicate, i < 7);
    assert_int_equal(finish(writer).games, 2);
    OK(exphil_games_verify(games, NULL)); /* what was open stays */
    exphil_games_destroy(games);
    OK(exphil_games_create(context, folder, &config, &writer, NULL)); /* nothing new: no file */
    for (int i = 0; i < 9; i++) assert_int_equal(add_small(writer, i).duplicate, 1);
    assert_int_equal(finish(writer).games, 0);
    games = open_games(folder);
    assert_int_equal(info_of(games).games, 9);
    for (int64_t i = 0; i < 9; i++) {
        exphil_slp_info settings = EXPHIL_SLP_INFO_INIT;
        OK(exphil_games_game(games, i, NULL, &settings, NULL));
        assert_int_equal(settings.frame_count, 5);
    }
    assert_int_equal(exphil_games_game(games, 9, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "index is 9; there are 9 games");
    /* one file of it all: the same content */
    exphil_games_writer *merged = create(test_path("merged.games"), 1);
    for (int64_t i = 8; i >= 0; i--) OK(exphil_games_copy(merged, games, i, NULL, NULL));
    exphil_games_added again = EXPHIL_GAMES_ADDED_INIT;
    OK(exphil_games_copy(merged, games, 4, &again, NULL));
    assert_int_equal(again.duplicate, 1);
    exphil_games_info all = finish(merged), whole = info_of(games);
    assert_true(all.hash == whole.hash && all.games == 9);
    exphil_games_destroy(games);
    games = open_games(test_path("merged.games"));
    OK(exphil_games_verify(games, NULL));
    exphil_games_destroy(games);
}

/* A writer that is not finished leaves nothing, and what was there before. */
static void unfinished(void **state)
{
    const char *path = test_path("unfinished.games");
    exphil_games_writer *writer = create(path, 1);
    add_small(writer, 1);
    exphil_games_writer_destroy(writer);
    assert_false(test_exists(path));
    writer = create(path, 1);
    add_small(writer, 1);
    OK(exphil_games_finish(writer, NULL, NULL));
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_games_finish(writer, NULL, &error), EXPHIL_E_STATE);
    exphil_games_writer_destroy(writer);
    writer = create(path, 1);
    exphil_games_writer_destroy(writer);
    exphil_games *games = open_games(path);
    assert_int_equal(info_of(games).games, 1);
    exphil_games_destroy(games);
}

/* ---- damage ---- */

static char *small_corpus(size_t *bytes)
{
    const char *path = test_path("small.games");
    exphil_games_writer *writer = create(path, has_zstd() ? 0 : 1);
    for (int i = 0; i < 3; i++) add_small(writer, i);
    finish(writer);
    return test_read(path, bytes);
}

/* Every prefix: refused, or the whole games before the cut are there and right. */
static void prefixes(void **state)
{
    size_t bytes;
    char *data = small_corpus(&bytes);
    const char *path = test_path("cut.games");
    int64_t most = 0;
    for (size_t length = 0; length < bytes; length++) {
        exphil_games *games = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        test_write(path, data, length);
        exphil_status status = exphil_games_open(context, path, &games, &error);
        assert_int_equal(status, length < 64 ? EXPHIL_E_FORMAT : EXPHIL_OK);
        if (status < 0) continue;
        exphil_games_info info = info_of(games);
        assert_int_equal(info.recovered, 1);
        assert_true(info.games >= most);
        most = info.games;
        OK(exphil_games_verify(games, &error));
        exphil_games_destroy(games);
    }
    assert_int_equal(most, 3);
    free(data);
}

/* A loss of power leaves zeros. */
static void zeros_behind(void **state)
{
    size_t bytes;
    char *data = small_corpus(&bytes);
    const char *path = test_path("changed.games");
    char *zeros = calloc(bytes, 1);
    for (size_t length = 64; length < bytes; length += 41) {
        memcpy(zeros, data, length);
        memset(zeros + length, 0, bytes - length);
        test_write(path, zeros, bytes);
        exphil_games *games = NULL;
        if (exphil_games_open(context, path, &games, NULL) == EXPHIL_OK) {
            assert_true(info_of(games).games <= 3);
            exphil_status status = exphil_games_verify(games, NULL);
            assert_true(status == EXPHIL_OK || status == EXPHIL_E_FORMAT);
        }
        exphil_games_destroy(games);
    }
    free(zeros);
    free(data);
}

/* A file whose games are whole: index and trailer are not needed, whatever stands there. */
static void expect_recovered(const char *data, size_t bytes, uint64_t hash)
{
    const char *path = test_path("recovered.games");
    test_write(path, data, bytes);
    exphil_games *games = open_games(path);
    exphil_games_info info = info_of(games);
    assert_int_equal(info.recovered, 1);
    assert_int_equal(info.games, 3);
    assert_int_equal(info.frames, 15);
    assert_int_equal(info.bytes, bytes);
    assert_true(info.hash == hash);
    OK(exphil_games_verify(games, NULL));
    exphil_games_destroy(games);
}

/* A changed byte of a game or of the header is found by opening or verifying, and named, and so is the game. */
static void expect_damaged(const char *data, size_t bytes, size_t at)
{
    const char *path = test_path("damaged.games");
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    test_write(path, data, bytes);
    exphil_status status = exphil_games_open(context, path, &games, &error);
    assert_int_equal(status == EXPHIL_OK, at >= sizeof(xph_games_header));
    if (status == EXPHIL_OK) {
        assert_int_equal(info_of(games).recovered, 0);
        status = exphil_games_verify(games, &error);
        assert_says(&error, "\" game ");
    }
    if (status >= 0) fail_msg("byte %zu changed: nobody saw it", at);
    assert_true(status == EXPHIL_E_FORMAT || (status == EXPHIL_E_UNSUPPORTED && !games));
    assert_says(&error, "byte ");
    exphil_games_destroy(games);
}

static void every_byte(void **state)
{
    size_t bytes;
    char *data = small_corpus(&bytes);
    size_t index = bytes - sizeof(xph_games_trailer) - 3 * sizeof(xph_game_entry);
    exphil_games *games = open_games(test_path("small.games"));
    uint64_t hash = info_of(games).hash;
    exphil_games_destroy(games);
    for (size_t at = 0; at < bytes; at++) {
        data[at] = (char)(data[at] ^ 1 << at % 8);
        if (at < index)
            expect_damaged(data, bytes, at);
        else
            expect_recovered(data, bytes, hash);
        data[at] = (char)(data[at] ^ 1 << at % 8);
    }
    memset(data + index, 0x11, bytes - index); /* nothing of both is left */
    memcpy(data + bytes - sizeof(xph_games_trailer), XPH_GAMES_TRAILER, 8);
    expect_recovered(data, bytes, hash);
    free(data);
}

/* ---- what is said of damage ---- */

enum { LINES = 8 };
typedef struct lines {
    int count;
    exphil_log_level level[LINES];
    char text[LINES][240];
} lines;

static void note_line(void *user, exphil_log_level level, const char *message)
{
    lines *all = user;
    assert_true(all->count < LINES);
    all->level[all->count] = level;
    snprintf(all->text[all->count++], sizeof all->text[0], "%s", message);
}

/* Where the games of a corpus of three lie, and its index. */
static void places(const char *data, size_t bytes, uint64_t at[4])
{
    const char *index = data + bytes - sizeof(xph_games_trailer) - 3 * sizeof(xph_game_entry);
    for (int i = 0; i < 3; i++) memcpy(&at[i], index + (size_t)i * sizeof(xph_game_entry), sizeof at[i]);
    at[3] = (uint64_t)(index - data);
}

static exphil_context *logging_context(lines *all)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *made = NULL;
    *all = (lines){.count = 0};
    config.log = note_line;
    config.log_user = all;
    config.threads = 3;
    OK(exphil_context_create(&config, &made, NULL));
    return made;
}

/* Verifying goes on behind damage: a line for each damaged game, and the first is the error. */
static void all_damage_is_told(void **state)
{
    size_t bytes;
    char *data = small_corpus(&bytes), words[80];
    const char *path = test_path("told.games");
    uint64_t at[4];
    lines all;
    exphil_context *own = logging_context(&all);
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    places(data, bytes, at);
    data[at[1] - 1] ^= 1; /* the last block of game 0, and the head of game 2 */
    data[at[2] + 200] ^= 1;
    test_write(path, data, bytes);
    OK(exphil_games_open(own, path, &games, NULL));
    assert_int_equal(exphil_games_verify(games, &error), EXPHIL_E_FORMAT);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.text[0], error.message);
    assert_int_equal(all.level[0], EXPHIL_LOG_ERROR);
    assert_says(&error, "\" game 0, byte ");
    assert_says(&error, "this block is damaged");
    snprintf(words, sizeof words, "\" game 2, byte %d: the head of this game is damaged", (int)at[2]);
    assert_non_null(strstr(all.text[1], words));
    assert_int_equal(exphil_games_read(games, 2, &slp, &error), EXPHIL_E_FORMAT);
    assert_says(&error, words);
    OK(exphil_games_read(games, 1, &slp, NULL));
    exphil_slp_destroy(slp);
    exphil_games_destroy(games);
    exphil_context_destroy(own);
    free(data);
}

/* Recovering says what is damaged, and at which byte, and so does a check where games are lost. */
static void damage_of_an_index_is_told(void **state)
{
    size_t bytes;
    char *data = small_corpus(&bytes), words[80];
    const char *path = test_path("told.games");
    uint64_t at[4];
    lines all;
    exphil_context *own = logging_context(&all);
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    places(data, bytes, at);
    data[at[3] + 16] ^= 1;
    test_write(path, data, bytes);
    OK(exphil_games_open(own, path, &games, NULL));
    exphil_games_destroy(games);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.level[0], EXPHIL_LOG_WARNING);
    snprintf(words, sizeof words, "\" byte %d: the index is damaged; all 3 games", (int)at[3]);
    assert_non_null(strstr(all.text[0], words));
    data[at[1]] ^= 1; /* an entry in the middle: the games behind it cannot be found without the index */
    test_write(path, data, bytes);
    OK(exphil_games_open(own, path, &games, NULL));
    assert_int_equal(info_of(games).games, 1);
    snprintf(words, sizeof words, "\" byte %d: neither a game nor the index begins here", (int)at[1]);
    assert_non_null(strstr(all.text[1], words));
    assert_non_null(strstr(all.text[1], "; 1 games before it are used, others are lost"));
    assert_int_equal(exphil_games_verify(games, &error), EXPHIL_E_FORMAT);
    assert_says(&error, words);
    exphil_games_destroy(games);
    data[at[3] + 16] ^= 1; /* with it they are, and one is damaged */
    test_write(path, data, bytes);
    OK(exphil_games_open(own, path, &games, NULL));
    all.count = 0;
    assert_int_equal(exphil_games_verify(games, &error), EXPHIL_E_FORMAT);
    assert_int_equal(all.count, 1);
    snprintf(words, sizeof words, "\" game 1, byte %d: no game begins here", (int)at[1]);
    assert_says(&error, words);
    exphil_games_destroy(games);
    exphil_context_destroy(own);
    free(data);
}

/* ---- what is refused ---- */

static void refused(void **state)
{
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = test_path("refused.games");
    config.level = 20;
    assert_int_equal(exphil_games_create(context, path, &config, &writer, &error), EXPHIL_E_INVALID);
    assert_says(&error, "level is 20");
    config.level = 0;
    config.shard_bytes = -1;
    assert_int_equal(exphil_games_create(context, path, &config, &writer, &error), EXPHIL_E_INVALID);
    config.shard_bytes = 0;
    config.stored = 2;
    assert_int_equal(exphil_games_create(context, path, &config, &writer, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_games_create(context, NULL, NULL, &writer, &error), EXPHIL_E_INVALID);
    writer = create(path, 1);
    assert_int_equal(exphil_games_add_memory(writer, "no replay", 9, NULL, &error), EXPHIL_E_FORMAT);
    assert_int_equal(exphil_games_add(writer, test_path("absent.slp"), NULL, &error), EXPHIL_E_IO);
    slp_writer empty;
    slp_begin(&empty, &slp_layouts[SLP_NEWEST], true);
    slp_head(&empty, &slp_layouts[SLP_NEWEST]);
    slp_game_end(&empty, 2);
    assert_int_equal(exphil_games_add_memory(writer, empty.data, empty.bytes, NULL, &error),
                     EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "no frames");
    slp_free(&empty);
    slp_writer crowd;
    slp_begin(&crowd, &slp_layouts[SLP_NEWEST], true);
    slp_head(&crowd, &slp_layouts[SLP_NEWEST]);
    slp_frame(&crowd, -123, 0x05, XPH_GAME_ITEMS + 1);
    assert_int_equal(exphil_games_add_memory(writer, crowd.data, crowd.bytes, NULL, &error),
                     EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "frame -123 has 65 items");
    slp_free(&crowd);
    assert_int_equal(add_small(writer, 5).duplicate, 0); /* and it goes on */
    assert_int_equal(finish(writer).games, 1);
    exphil_games *games = NULL;
    test_write(path, "exphilco\2\0\0\0", 12);
    assert_int_equal(exphil_games_open(context, path, &games, &error), EXPHIL_E_FORMAT);
    assert_int_equal(exphil_games_open(context, test_path("absent.games"), &games, &error), EXPHIL_E_IO);
}

/* Memory that fails at every place: a status, nothing lost, nothing left behind. */
static void no_memory(void **state)
{
    test_memory memory;
    bool done = false;
    slp_writer sample;
    small_game(&sample, 1);
    for (int64_t nth = 1; !done; nth++) {
        test_memory_init(&memory);
        exphil_context *own = test_context(&memory, NULL, 1);
        exphil_games_writer *writer = NULL;
        exphil_games *games = NULL;
        exphil_slp *slp = NULL;
        exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
        config.stored = 1;
        const char *path = test_path("memory.games");
        remove(path);
        memory.fail_at = atomic_load(&memory.calls) + nth;
        exphil_status status = exphil_games_create(own, path, &config, &writer, NULL);
        if (status == EXPHIL_OK)
            status = exphil_games_add_memory(writer, sample.data, sample.bytes, NULL, NULL);
        if (status == EXPHIL_OK) status = exphil_games_finish(writer, NULL, NULL);
        if (status == EXPHIL_OK) status = exphil_games_open(own, path, &games, NULL);
        if (status == EXPHIL_OK) status = exphil_games_read(games, 0, &slp, NULL);
        if (status == EXPHIL_OK) status = exphil_games_verify(games, NULL);
        done = status == EXPHIL_OK;
        if (!done) assert_int_equal(status, EXPHIL_E_MEMORY);
        exphil_slp_destroy(slp);
        exphil_games_destroy(games);
        exphil_games_writer_destroy(writer);
        exphil_context_destroy(own);
        assert_memory_clean(&memory);
    }
    slp_free(&sample);
}

/* Every operation on files fails once: a status, and no file under the name, or the whole one. */
static void no_disk(void **state)
{
    test_io io;
    bool done = false;
    for (int64_t nth = 1; !done; nth++) {
        test_io_init(&io);
        io.code = 28; /* ENOSPC */
        exphil_context *own = test_context(NULL, &io, 1);
        exphil_games_writer *writer = NULL;
        exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
        config.stored = 1;
        const char *path = test_path("disk.games");
        remove(path);
        io.fail_at = nth;
        exphil_status status = exphil_games_create(own, path, &config, &writer, NULL);
        if (status == EXPHIL_OK) {
            slp_writer sample;
            small_game(&sample, 1);
            status = exphil_games_add_memory(writer, sample.data, sample.bytes, NULL, NULL);
            slp_free(&sample);
        }
        if (status == EXPHIL_OK) status = exphil_games_finish(writer, NULL, NULL);
        done = status == EXPHIL_OK && atomic_load(&io.calls) < nth;
        exphil_games_writer_destroy(writer);
        exphil_context_destroy(own);
        if (test_exists(path)) {
            exphil_games *games = open_games(path);
            assert_int_equal(info_of(games).recovered, 0);
            exphil_games_destroy(games);
        } else {
            assert_int_equal(status, EXPHIL_E_IO);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(folders),
        cmocka_unit_test(unfinished),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(refused),
        cmocka_unit_test(zeros_behind),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(all_damage_is_told),
        cmocka_unit_test(damage_of_an_index_is_told),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(no_disk),
        cmocka_unit_test(real_replays),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
