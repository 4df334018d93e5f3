/* Wrong use of exphil/games.h: NULL, sizes and numbers that are none are refused by name, and nothing has happened. */
#include "misuse_case.h"
#include "slp_writer.h"

#include <exphil/games.h>

static exphil_games_writer *writer;
static exphil_games *games; /* one game */
static slp_writer replay;

static exphil_games_writer *make_writer(const char *name)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *made = NULL;
    config.stored = 1;
    assert_ok(exphil_games_create(w.run.context, test_path(name), &config, &made, NULL));
    return made;
}

static int begin(void **state)
{
    if (misuse_begin(state)) return 1;
    slp_begin(&replay, &slp_layouts[SLP_NEWEST], true);
    slp_head(&replay, &slp_layouts[SLP_NEWEST]);
    slp_frame(&replay, -123, 0x05, 1);
    exphil_games_writer *one = make_writer("one.games");
    assert_ok(exphil_games_add_memory(one, replay.data, replay.bytes, NULL, NULL));
    assert_ok(exphil_games_finish(one, NULL, NULL));
    exphil_games_writer_destroy(one);
    assert_ok(exphil_games_open(w.run.context, test_path("one.games"), &games, NULL));
    writer = make_writer("written.games");
    return 0;
}

static int end(void **state)
{
    exphil_games_destroy(games);
    exphil_games_writer_destroy(writer);
    slp_free(&replay);
    return misuse_end(state);
}

static void nulls(void **state)
{
    exphil_context *c = w.run.context;
    BAD(INVALID, "context", exphil_games_create(NULL, "x", NULL, OUT(exphil_games_writer *), &e));
    BAD(INVALID, "path", exphil_games_create(c, NULL, NULL, OUT(exphil_games_writer *), &e));
    BAD(INVALID, "path", exphil_games_create(c, "", NULL, OUT(exphil_games_writer *), &e));
    BAD(INVALID, "writer", exphil_games_create(c, "x", NULL, NULL, &e));
    BAD(INVALID, "writer", exphil_games_add(NULL, "x", FILL(exphil_games_added), &e));
    BAD(INVALID, "path", exphil_games_add(writer, NULL, FILL(exphil_games_added), &e));
    BAD(INVALID, "writer", exphil_games_add_memory(NULL, "x", 1, FILL(exphil_games_added), &e));
    BAD(INVALID, "data", exphil_games_add_memory(writer, NULL, 1, FILL(exphil_games_added), &e));
    BAD(INVALID, "writer", exphil_games_copy(NULL, games, 0, FILL(exphil_games_added), &e));
    BAD(INVALID, "from", exphil_games_copy(writer, NULL, 0, FILL(exphil_games_added), &e));
    BAD(INVALID, "writer", exphil_games_finish(NULL, FILL(exphil_games_info), &e));
    BAD(INVALID, "context", exphil_games_open(NULL, "x", OUT(exphil_games *), &e));
    BAD(INVALID, "path", exphil_games_open(c, NULL, OUT(exphil_games *), &e));
    BAD(INVALID, "games", exphil_games_open(c, "x", NULL, &e));
    BAD(INVALID, "games", exphil_games_query(NULL, FILL(exphil_games_info), &e));
    BAD(INVALID, "NULL", exphil_games_query(games, NULL, &e));
    BAD(INVALID, "games", exphil_games_game(NULL, 0, FILL(exphil_game_info), NULL, &e));
    BAD(INVALID, "games", exphil_games_read(NULL, 0, OUT(exphil_slp *), &e));
    BAD(INVALID, "slp", exphil_games_read(games, 0, NULL, &e));
    BAD(INVALID, "games", exphil_games_verify(NULL, &e));
    exphil_games_destroy(NULL);
    exphil_games_writer_destroy(NULL);
    assert_ok(exphil_games_game(games, 0, NULL, NULL, NULL));
}

static void numbers(void **state)
{
    static const int64_t none[] = {-1, 1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        BAD(INVALID, "index is", exphil_games_game(games, none[i], FILL(exphil_game_info), NULL, &e));
        BAD(INVALID, "index is", exphil_games_read(games, none[i], OUT(exphil_slp *), &e));
        BAD(INVALID, "index is", exphil_games_copy(writer, games, none[i], FILL(exphil_games_added), &e));
    }
    static const struct {
        exphil_games_config config;
        const char *says;
    } configs[] = {{{sizeof(exphil_games_config), -1, 0, 0}, "shard_bytes is -1"},
                   {{sizeof(exphil_games_config), 0, -1, 0}, "level is -1"},
                   {{sizeof(exphil_games_config), 0, 20, 0}, "level is 20"},
                   {{sizeof(exphil_games_config), 0, 0, 2}, "stored is 2"}};
    for (size_t i = 0; i < 4; i++)
        BAD(INVALID, configs[i].says,
            exphil_games_create(w.run.context, test_path("x"), &configs[i].config, OUT(exphil_games_writer *),
                                &e));
    assert_false(test_exists(test_path("x.exphil-tmp")));
}

/* One row per output. */
typedef exphil_status (*give_fn)(void *to, exphil_error *e);
static exphil_status give_added(void *to, exphil_error *e)
{
    return exphil_games_add_memory(writer, replay.data, replay.bytes, to, e);
}

static exphil_status give_copied(void *to, exphil_error *e)
{
    return exphil_games_copy(writer, games, 0, to, e);
}

static exphil_status give_games(void *to, exphil_error *e)
{
    return exphil_games_query(games, to, e);
}

static exphil_status give_game(void *to, exphil_error *e)
{
    return exphil_games_game(games, 0, to, NULL, e);
}

static exphil_status give_settings(void *to, exphil_error *e)
{
    return exphil_games_game(games, 0, NULL, to, e);
}

static exphil_status give_finished(void *to, exphil_error *e)
{
    return exphil_games_finish(writer, to, e);
}

static void sizes(void **state)
{
    static const struct {
        give_fn give;
        size_t bytes;
    } cases[] = {{give_added, sizeof(exphil_games_added)}, {give_copied, sizeof(exphil_games_added)},
                 {give_games, sizeof(exphil_games_info)},  {give_game, sizeof(exphil_game_info)},
                 {give_settings, sizeof(exphil_slp_info)}, {give_finished, sizeof(exphil_games_info)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t wrong[] = {1, 7, 15, (size_t)1 << 40};
        for (size_t k = 0; k < 4; k++) {
            exphil_error e = EXPHIL_ERROR_INIT;
            exphil_status status = cases[i].give(misuse_place(0, wrong[k]), &e);
            misuse_check("an output", status, EXPHIL_E_INVALID, &e, "struct_size");
        }
        /* nothing had happened: the game is new now; a longer struct is filled as far as it is known */
        unsigned char *to = misuse_place(0, cases[i].bytes + 40);
        size_t size = 0;
        assert_ok(cases[i].give(to, NULL));
        memcpy(&size, to, sizeof size);
        assert_int_equal(size, cases[i].bytes + 40);
        assert_memory_equal(to + cases[i].bytes, misuse_kept[0] + cases[i].bytes, 40);
        const exphil_games_added *added = (const exphil_games_added *)(const void *)to;
        if (i < 2) assert_int_equal(added->duplicate, i);
    }
    (void)misuse_place(0, 0);
    BAD(STATE, "finished", exphil_games_add_memory(writer, replay.data, replay.bytes, NULL, &e));
    BAD(STATE, "finished", exphil_games_finish(writer, NULL, &e));
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    config.struct_size = 3;
    BAD(INVALID, "struct_size",
        exphil_games_create(w.run.context, "x", &config, OUT(exphil_games_writer *), &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nulls), cmocka_unit_test(numbers),
                                       cmocka_unit_test(sizes)};
    return cmocka_run_group_tests(tests, begin, end);
}
