/* Faults while a corpus of games is written: whatever fails, once, a call says so, and goes on or is refused from then on;
 * what lies in the folder afterwards is whole, and adding the rest makes it what it would have been. */
#include "slp_writer.h"
#include "test.h"

#include <exphil/games.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { GAMES = 5, FAULTS_MOST = 2000 };
static slp_writer replay[GAMES];
static test_memory memory;
static test_io io;
static exphil_context *faulty, *sound;
static exphil_games *others; /* the same games, to be copied */

/* ---- one way of writing ---------------------------------------------------------------------------------- */

typedef struct way {
    bool folder, copied;
    int64_t shard_bytes;
} way;

static exphil_status make_writer(exphil_context *context, const way *how, exphil_games_writer **writer)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    config.stored = 1;
    config.shard_bytes = how->shard_bytes;
    return exphil_games_create(context, test_path(how->folder ? "d" : "f.games"), &config, writer, NULL);
}

static exphil_status add(exphil_games_writer *writer, const way *how, int i, exphil_games_added *added)
{
    return how->copied ? exphil_games_copy(writer, others, i, added, NULL)
                       : exphil_games_add_memory(writer, replay[i].data, replay[i].bytes, added, NULL);
}

static exphil_games_info look(const char *path)
{
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    if (exphil_games_open(sound, path, &games, &error) < 0 || exphil_games_query(games, &info, &error) < 0 ||
        exphil_games_verify(games, &error) < 0)
        fail_msg("%s", error.message);
    exphil_games_destroy(games);
    return info;
}

/* All games, by a writer that nothing happens to; how many were not there. */
static int64_t add_rest(const way *how)
{
    exphil_games_writer *writer = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    assert_int_equal(make_writer(sound, how, &writer), EXPHIL_OK);
    for (int i = 0; i < GAMES; i++) assert_int_equal(add(writer, how, i, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_finish(writer, &info, NULL), EXPHIL_OK);
    exphil_games_writer_destroy(writer);
    return info.games;
}

/* How many files a folder holds; each is removed, if that is asked for. */
static int64_t files_of(const char *path, bool clear)
{
    char **all = NULL;
    const int count = test_list(path, &all);
    assert_true(count >= 0);
    for (int i = 0; clear && i < count; i++) {
        char name[2048];
        snprintf(name, sizeof name, "%s/%s", path, all[i]);
        assert_int_equal(remove(name), 0);
    }
    test_list_free(all, count);
    return count;
}

/* ---- a fault --------------------------------------------------------------------------------------------- */

typedef struct outcome {
    int64_t failures, refused, lost, there;
    bool finished;
} outcome;

/* Adds a game; one that failed, once more. A failed call has added nothing. */
static void add_again(exphil_games_writer *writer, const way *how, int i, outcome *seen)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
        exphil_status status = add(writer, how, i, &added);
        if (status >= 0) {
            assert_false(added.duplicate);
            return;
        }
        seen->failures++;
        if (status == EXPHIL_E_STATE) seen->refused++;
    }
    seen->lost++;
}

static outcome write_with_fault(const way *how)
{
    outcome seen = {0};
    exphil_games_writer *writer = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    if (make_writer(faulty, how, &writer) < 0) return (outcome){.failures = 1, .lost = GAMES};
    for (int i = 0; i < GAMES; i++) add_again(writer, how, i, &seen);
    for (int attempt = 0; attempt < 2 && !seen.finished; attempt++) {
        exphil_status status = exphil_games_finish(writer, &info, NULL);
        seen.finished = status == EXPHIL_OK;
        seen.failures += !seen.finished;
        if (status == EXPHIL_E_STATE) seen.refused++;
    }
    if (seen.finished) assert_int_equal(info.games, GAMES);
    exphil_games_writer_destroy(writer);
    return seen;
}

/* What a fault left: of a folder whole files, of a file all of it or nothing. */
static void check_left(const way *how, const outcome *seen)
{
    const char *path = test_path(how->folder ? "d" : "f.games");
    bool any = how->folder ? files_of(path, false) > 0 : test_exists(path);
    int64_t there = any ? look(path).games : 0;
    if (seen->finished) assert_int_equal(there, GAMES);
    if (!how->folder) assert_true(there == 0 || there == GAMES);
    if (!how->folder) return;
    assert_int_equal(add_rest(how), GAMES - there);
    assert_int_equal(look(path).games, GAMES);
}

/* Operation number `at` of files or memory fails; false: there were not so many. */
static bool one_fault(const way *how, bool of_memory, long long at, outcome *seen)
{
    if (how->folder) files_of(test_path("d"), true);
    if (!how->folder) remove(test_path("f.games"));
    test_io_init(&io);
    test_memory_init(&memory);
    faulty = test_context(&memory, &io, 1);
    io.code = at % 2 ? ENOSPC : EIO;
    if (of_memory)
        memory.fail_at = atomic_load(&memory.calls) + at;
    else
        io.fail_at = atomic_load(&io.calls) + at;
    *seen = write_with_fault(how);
    bool happened =
        of_memory ? atomic_load(&memory.calls) >= memory.fail_at : atomic_load(&io.calls) >= io.fail_at;
    memory.fail_at = io.fail_at = 0;
    exphil_context_destroy(faulty);
    assert_int_equal(atomic_load(&io.open_files), 0);
    assert_memory_clean(&memory);
    check_left(how, seen);
    return happened;
}

static void every_fault(void **state)
{
    static const way ways[] = {{false, false, 0}, {true, false, 0}, {true, false, 1},
                               {false, true, 0},  {true, true, 0},  {true, true, 1}};
    int64_t refused = 0, overcome = 0;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        for (int of_memory = 0; of_memory < 2; of_memory++) {
            long long at = 1;
            outcome seen;
            for (; one_fault(&ways[k], of_memory, at, &seen); at++) {
                assert_true(at < FAULTS_MOST);
                refused += seen.refused > 0;
                overcome += seen.failures && seen.finished && !seen.lost;
                /* No memory is no reason to lose what is written. */
                if (of_memory) assert_int_equal(seen.refused, 0);
            }
            assert_true(at > 10);
            assert_true(seen.finished && !seen.failures);
        }
    assert_true(refused > 20);
    assert_true(overcome > 20);
}

static int begin(void **state)
{
    way how = {false, false, 0};
    sound = test_context(NULL, NULL, 1);
    for (int i = 0; i < GAMES; i++) {
        slp_begin(&replay[i], &slp_layouts[SLP_NEWEST], true);
        slp_head(&replay[i], &slp_layouts[SLP_NEWEST]);
        for (int frame = 0; frame < 3 + i; frame++) slp_frame(&replay[i], frame - 123, 0x05, 1);
    }
    test_make_folder(test_path("d"));
    if (add_rest(&how) != GAMES || rename(test_path("f.games"), test_path("others.games")) != 0) return 1;
    return exphil_games_open(sound, test_path("others.games"), &others, NULL);
}

static int end(void **state)
{
    exphil_games_destroy(others);
    exphil_context_destroy(sound);
    for (int i = 0; i < GAMES; i++) slp_free(&replay[i]);
    return test_leave(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault)};
    return cmocka_run_group_tests(tests, begin, end);
}
