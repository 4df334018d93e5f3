/* Corpora of games that somebody forged, all hashes right: what they claim is refused, by its byte and without memory for
 * it, or is harmless. */
#include "context_case.h"
#include "slp_writer.h"

#include "games/format.h"

#include <stdio.h>
#include <stdlib.h>

/* A file with one game, and where its parts lie in it. */
typedef struct forged {
    uint8_t *data;
    size_t bytes;
} forged;

static xph_game_entry *entry_of(const forged *f)
{
    return (xph_game_entry *)(void *)(f->data + sizeof(xph_games_header));
}

static xph_game_start *start_of(const forged *f)
{
    return (xph_game_start *)(void *)(entry_of(f) + 1);
}

static xph_game_place *places_of(const forged *f)
{
    return (xph_game_place *)(void *)(f->data + sizeof(xph_games_header) + xph_game_head_bytes(entry_of(f)));
}

static size_t front_bytes(const xph_game_entry *entry)
{
    return (size_t)(xph_game_head_bytes(entry) + xph_game_table_bytes(entry));
}

/* One game of so many frames, stored. */
static forged make(int frames, uint8_t slots)
{
    forged f = {.data = NULL};
    slp_writer replay;
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    const char *path = test_path("forged.games");
    config.stored = 1;
    slp_begin(&replay, &slp_layouts[SLP_NEWEST], true);
    slp_head(&replay, &slp_layouts[SLP_NEWEST]);
    for (int32_t frame = 0; frame < frames; frame++) slp_frame(&replay, frame, slots, 1);
    assert_int_equal(exphil_games_create(context, path, &config, &writer, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_add_memory(writer, replay.data, replay.bytes, NULL, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_finish(writer, NULL, NULL), EXPHIL_OK);
    exphil_games_writer_destroy(writer);
    f.data = (uint8_t *)test_read(path, &f.bytes);
    slp_free(&replay);
    return f;
}

/* The end of a file lies wherever the games end: it is copied, and put back with its own hash. */
static xph_games_trailer trailer_of(const forged *f)
{
    xph_games_trailer trailer;
    memcpy(&trailer, f->data + f->bytes - sizeof trailer, sizeof trailer);
    return trailer;
}

static void put_trailer(const forged *f, xph_games_trailer *trailer)
{
    trailer->hash = xph_hash(trailer, offsetof(xph_games_trailer, hash));
    memcpy(f->data + f->bytes - sizeof *trailer, trailer, sizeof *trailer);
}

/* Makes all hashes right again, and the index the entry in front. The table must lie in the file. */
static void seal(const forged *f)
{
    xph_games_trailer trailer = trailer_of(f);
    xph_game_entry *entry = entry_of(f);
    size_t head = (size_t)xph_game_head_bytes(entry) - 8, table = (size_t)xph_game_table_bytes(entry) - 8;
    if (head + table + 16 <= f->bytes - 128) {
        uint64_t hash = xph_hash(places_of(f), table);
        memcpy((uint8_t *)places_of(f) + table, &hash, sizeof hash);
        entry->content_hash = xph_game_content(entry, start_of(f), places_of(f));
        hash = xph_hash(entry, head);
        memcpy((uint8_t *)entry + head, &hash, sizeof hash);
    }
    memcpy(f->data + trailer.index, entry, sizeof *entry);
    trailer.frames = entry->frames;
    trailer.index_hash = xph_hash(f->data + trailer.index, sizeof *entry);
    trailer.content_hash = xph_game_share(entry->content_hash);
    put_trailer(f, &trailer);
}

/* Makes the game so long, zeros behind its start record; the index follows. */
static void stretch(forged *f, size_t bytes)
{
    size_t front = sizeof(xph_games_header) + sizeof(xph_game_entry) + sizeof(xph_game_start),
           end = sizeof(xph_games_header) + bytes;
    uint8_t *data = calloc(end + sizeof(xph_game_entry) + sizeof(xph_games_trailer), 1);
    assert_non_null(data);
    xph_games_trailer trailer = trailer_of(f);
    memcpy(data, f->data, front);
    trailer.index = end;
    free(f->data);
    *f = (forged){data, end + sizeof(xph_game_entry) + sizeof trailer};
    put_trailer(f, &trailer);
    entry_of(f)->bytes = (uint32_t)bytes;
}

/* Opens, reads, checks and copies, in so much memory; the first that fails says these words. */
static void expect(const forged *f, int64_t megabytes, exphil_status wanted, const char *words)
{
    test_memory memory;
    exphil_games *games = NULL;
    exphil_slp *slp = NULL;
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    memory.limit_bytes = atomic_load(&memory.live_bytes) + (megabytes << 20);
    config.stored = 1;
    test_write(test_path("expected.games"), f->data, f->bytes);
    exphil_status status = exphil_games_open(own, test_path("expected.games"), &games, &error);
    if (status == EXPHIL_OK) {
        status = exphil_games_read(games, 0, &slp, &error);
        exphil_slp_destroy(slp);
        exphil_status verified = exphil_games_verify(games, status < 0 ? NULL : &error);
        assert_true(status == EXPHIL_OK || verified == status);
        assert_int_equal(exphil_games_create(own, test_path("copy.games"), &config, &writer, NULL),
                         EXPHIL_OK);
        assert_int_equal(exphil_games_copy(writer, games, 0, NULL, NULL), status);
        exphil_games_writer_destroy(writer);
        status = verified;
    }
    exphil_games_destroy(games);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
    if (status != wanted) fail_msg("%s: %s", exphil_status_name(status), error.message);
    if (wanted < 0) {
        assert_says(&error, words);
        assert_says(&error, "byte ");
    }
}

/* The forgery itself is right: an untouched game passes. */
static void sealed_games_pass(void **state)
{
    forged f = make(5, 0x05);
    seal(&f);
    expect(&f, 8, EXPHIL_OK, "");
    free(f.data);
}

/* ---- numbers that nothing stands behind ---- */

typedef struct claim {
    size_t offset;
    uint32_t value;
    const char *words;
} claim;
#define CLAIM(field) offsetof(xph_game_entry, field)

static void claims_of_an_entry(void **state)
{
    static const claim claims[] = {
        {CLAIM(frames), 0, "a game without frames"},
        {CLAIM(frames), 4000000000u, "more than a replay can hold"},
        {CLAIM(frames), 6000000, "too few bytes for its frames"},
        {CLAIM(records), 5 * 8 + 1, "more records than frames"},
        {CLAIM(records), 4000000000u, "more than a replay can hold"},
        {CLAIM(records), 11, "other counts of records"},
        {CLAIM(items), 5 * 64 + 1, "more items than its frames hold"},
        {CLAIM(items), 4000000000u, "more than a replay can hold"},
        {CLAIM(items), 6, "fewer records or items than counted"},
        {CLAIM(items), 4, "too many items"},
        {CLAIM(runs), 21, "more runs than frames"},
        {CLAIM(runs), 4000000000u, "too few bytes for its frames"},
        {CLAIM(raw_most), (1 << 20) + 1, "more than 1 MiB"},
        {CLAIM(raw_most), 1, "another size"},
        {CLAIM(bytes), 100, "too few bytes for its frames"},
        {CLAIM(bytes), 4000000000u, "does not begin where the one before ends"},
        {CLAIM(first_frame), (uint32_t)-1000000, "impossible frame numbers"},
        {CLAIM(last_frame), 1000000, "impossible frame numbers"},
        {CLAIM(last_frame), 3, "impossible frame numbers"},
        {CLAIM(last_frame), 5, "other frames than the game's front says"},
    };
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        forged f = make(5, 0x05);
        memcpy((uint8_t *)entry_of(&f) + claims[i].offset, &claims[i].value, sizeof claims[i].value);
        seal(&f);
        expect(&f, 8, EXPHIL_E_FORMAT, claims[i].words);
        free(f.data);
    }
    forged f = make(5, 0x05);
    entry_of(&f)->winner = 5;
    seal(&f);
    expect(&f, 8, EXPHIL_E_FORMAT, "an impossible winner");
    entry_of(&f)->winner = 0;
    entry_of(&f)->port[2].whole = 2;
    seal(&f);
    expect(&f, 8, EXPHIL_E_FORMAT, "neither whole nor not");
    entry_of(&f)->port[2].whole = 0;
    start_of(&f)->records[1] = 6;
    seal(&f);
    expect(&f, 8, EXPHIL_E_FORMAT, "more records than frames");
    free(f.data);
}

/* What the players did is counted again. */
static void facts_that_are_not(void **state)
{
    forged f = make(5, 0x05);
    entry_of(&f)->port[0].damage_dealt ^= 1;
    seal(&f);
    expect(&f, 8, EXPHIL_E_FORMAT, "what its players did is not what its frames say");
    entry_of(&f)->port[0].damage_dealt ^= 1;
    entry_of(&f)->flags ^= XPH_GAME_GAPS;
    seal(&f);
    expect(&f, 8, EXPHIL_E_FORMAT, "its flags are not those of its frames");
    free(f.data);
}

/* Selecting reads the index, reading the game: they must not tell two stories. */
static void another_index(void **state)
{
    forged f = make(5, 0x05);
    seal(&f);
    xph_games_trailer trailer = trailer_of(&f);
    xph_game_entry listed;
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    memcpy(&listed, f.data + trailer.index, sizeof listed);
    listed.winner = 3;
    memcpy(f.data + trailer.index, &listed, sizeof listed);
    trailer.index_hash = xph_hash(&listed, sizeof listed);
    put_trailer(&f, &trailer);
    test_write(test_path("index.games"), f.data, f.bytes);
    assert_int_equal(exphil_games_open(context, test_path("index.games"), &games, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_verify(games, &error), EXPHIL_E_FORMAT);
    assert_says(&error, "byte 64: the index says something else of this game");
    exphil_games_destroy(games);
    free(f.data);
}

/* An index that is forged badly is not believed in anything: games are what stands in front of them. */
static void damaged_index_is_not_believed(void **state)
{
    forged f = make(5, 0x05);
    seal(&f);
    xph_games_trailer trailer = trailer_of(&f);
    xph_game_entry listed;
    exphil_games *games = NULL;
    exphil_game_info game = EXPHIL_GAME_INFO_INIT;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    memcpy(&listed, f.data + trailer.index, sizeof listed);
    listed.winner = 3;
    listed.source_hash = 7;
    listed.offset = 100000;
    memcpy(f.data + trailer.index, &listed, sizeof listed);
    test_write(test_path("index.games"), f.data, f.bytes);
    assert_int_equal(exphil_games_open(context, test_path("index.games"), &games, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_query(games, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.recovered, 1);
    assert_int_equal(info.games, 1);
    assert_int_equal(exphil_games_game(games, 0, &game, NULL, NULL), EXPHIL_OK);
    assert_true(game.winner == entry_of(&f)->winner && game.source_hash == entry_of(&f)->source_hash);
    assert_int_equal(exphil_games_verify(games, NULL), EXPHIL_OK);
    exphil_games_destroy(games);
    free(f.data);
}

/* Counts of a trailer, its hash right, that are not those of the games: 1 game and an index of 192 bytes stand there. */
static void another_trailer(void **state)
{
    static const uint64_t games[] = {0, 2, 1000, UINT64_MAX / 192, UINT64_MAX};
    for (size_t i = 0; i < sizeof games / sizeof games[0]; i++) {
        forged f = make(5, 0x05);
        seal(&f);
        xph_games_trailer trailer = trailer_of(&f);
        exphil_games *opened = NULL;
        exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
        trailer.games = games[i];
        put_trailer(&f, &trailer);
        expect(&f, 8, EXPHIL_OK, "");
        assert_int_equal(exphil_games_open(context, test_path("expected.games"), &opened, NULL), EXPHIL_OK);
        assert_int_equal(exphil_games_query(opened, &info, NULL), EXPHIL_OK);
        assert_true(info.recovered == 1 && info.games == 1 && info.frames == 5);
        assert_true(info.hash == trailer.content_hash);
        exphil_games_destroy(opened);
        free(f.data);
    }
}

/* Two games, one behind the other, whose index has a hash that is not its own. */
static forged make_two(size_t *second)
{
    forged f = make(5, 0x05);
    seal(&f);
    size_t first = sizeof(xph_games_header), game = entry_of(&f)->bytes, index = first + 2 * game;
    forged two = {calloc(index + 2 * sizeof(xph_game_entry) + sizeof(xph_games_trailer), 1),
                  index + 2 * sizeof(xph_game_entry) + sizeof(xph_games_trailer)};
    assert_non_null(two.data);
    xph_games_trailer trailer = trailer_of(&f);
    memcpy(two.data, f.data, first + game);
    memcpy(two.data + first + game, entry_of(&f), game);
    *second = first + game;
    xph_game_entry entry;
    memcpy(&entry, two.data + *second, sizeof entry);
    entry.offset = *second;
    memcpy(two.data + *second, &entry, sizeof entry);
    for (int i = 0; i < 2; i++)
        memcpy(two.data + index + (size_t)i * sizeof entry, two.data + first + (size_t)i * game,
               sizeof entry);
    trailer.games = 2;
    trailer.index = index;
    put_trailer(&two, &trailer);
    free(f.data);
    return two;
}

/* A game that leads past the one behind it, or is damaged itself. */
static void damaged_games_in_front(void **state)
{
    size_t second;
    forged two = make_two(&second);
    entry_of(&two)->bytes *= 2;
    expect(&two, 8, EXPHIL_E_FORMAT, "game 0, byte 64: the head of this game is damaged");
    entry_of(&two)->frames = 0;
    expect(&two, 8, EXPHIL_E_FORMAT, "the index is damaged");
    memset(two.data + two.bytes - sizeof(xph_games_trailer) + 8, 0x11, 40);
    expect(&two, 8, EXPHIL_E_FORMAT, "the trailer is damaged");
    free(two.data);
}

/* What is lost is said: those before the damage are used, and the file is not called whole. */
static void expect_lost(const forged *f, size_t bytes, size_t second, const char *words)
{
    char said[128];
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    snprintf(said, sizeof said, "byte %zu: %s", second, words);
    test_write(test_path("lost.games"), f->data, bytes);
    assert_int_equal(exphil_games_open(context, test_path("lost.games"), &games, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_query(games, &info, NULL), EXPHIL_OK);
    assert_true(info.recovered == 1 && info.games == 1);
    exphil_status status = exphil_games_verify(games, &error);
    assert_int_equal(status, *words ? EXPHIL_E_FORMAT : EXPHIL_OK);
    if (*words) assert_says(&error, said);
    exphil_games_destroy(games);
}

static void lost_games(void **state)
{
    size_t second;
    forged two = make_two(&second);
    expect_lost(&two, two.bytes - 300, second, ""); /* a cut: the whole second game is not there */
    two.data[second + CLAIM(bytes) + 2] ^= 0x40;
    expect_lost(&two, two.bytes, second, "the head of this game is damaged");
    expect_lost(&two, two.bytes - 300, second, "the head of this game is damaged");
    two.data[second + CLAIM(offset)] ^= 1;
    expect_lost(&two, two.bytes, second, "neither a game nor the index begins here");
    expect_lost(&two, two.bytes - 300, second, "neither a game nor the index begins here");
    free(two.data);
}

/* The trailer's sum of the games' hashes is looked at, too. */
static void another_content(void **state)
{
    forged f = make(5, 0x05);
    seal(&f);
    xph_games_trailer trailer = trailer_of(&f);
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    trailer.content_hash ^= 1;
    put_trailer(&f, &trailer);
    test_write(test_path("sum.games"), f.data, f.bytes);
    assert_int_equal(exphil_games_open(context, test_path("sum.games"), &games, NULL), EXPHIL_OK);
    assert_int_equal(exphil_games_verify(games, &error), EXPHIL_E_FORMAT);
    assert_says(&error, "another hash than the trailer says");
    exphil_games_destroy(games);
    free(f.data);
}

/* ---- bombs ---- */

/* A block of the largest shape out of a few bytes: 256 frames, 8 characters, 64 items in each, all of them zeros. */
static void put_bomb(uint8_t *to, size_t bytes, uint32_t position, xph_game_place *place, uint64_t zeros_hash)
{
    const xph_game_shape shape = {
        .frames = XPH_GAME_FRAMES, .items = XPH_GAME_FRAMES * XPH_GAME_ITEMS, .slots = 0xFF};
    uint32_t raw = (uint32_t)xph_game_block_bytes(&shape), left = raw;
    uint8_t *at = to + sizeof(xph_game_block_header);
    memcpy(at, "\x28\xB5\x2F\xFD\xA0", 5);
    memcpy(at + 5, &raw, 4);
    for (at += 9; left; at += 4) {
        uint32_t part = left < 1 << 17 ? left : 1 << 17, header = (part == left) | 1u << 1 | part << 3;
        memcpy(at, &header, 3);
        at[3] = 0;
        left -= part;
    }
    xph_game_block_header header = {.magic = XPH_GAMES_BLOCK,
                                    .position = position,
                                    .first_frame = (int32_t)position,
                                    .frames = XPH_GAME_FRAMES,
                                    .slots = 0xFF,
                                    .codec = XPH_CODEC_ZSTD,
                                    .items = (uint32_t)shape.items,
                                    .raw_bytes = raw};
    header.stored_bytes = (uint32_t)(at - to - (ptrdiff_t)sizeof header);
    assert_int_equal(at - to, bytes);
    header.hash = (uint32_t)xph_hash(&header, offsetof(xph_game_block_header, hash));
    header.stored_hash = xph_hash(to + sizeof header, header.stored_bytes);
    memcpy(to, &header, sizeof header);
    place->raw_hash = zeros_hash;
}

/* A game of so many such blocks, 93 bytes each with their place in the table. */
static forged make_bomb(uint32_t blocks)
{
    enum { BYTES = 40 + 9 + 7 * 4 };
    const xph_game_shape shape = {
        .frames = XPH_GAME_FRAMES, .items = XPH_GAME_FRAMES * XPH_GAME_ITEMS, .slots = 0xFF};
    size_t raw = xph_game_block_bytes(&shape);
    uint8_t *zeros = calloc(raw, 1);
    forged f = make(5, 0x05);
    assert_non_null(zeros);
    uint64_t hash = xph_hash(zeros, raw);
    xph_game_entry entry = *entry_of(&f);
    entry.frames = blocks * XPH_GAME_FRAMES;
    entry.records = 8 * entry.frames;
    entry.items = XPH_GAME_ITEMS * entry.frames;
    entry.raw_most = (uint32_t)raw;
    entry.first_frame = 0;
    entry.last_frame = (int32_t)entry.frames - 1;
    entry.bytes = (uint32_t)(front_bytes(&entry) + blocks * BYTES);
    stretch(&f, entry.bytes);
    *entry_of(&f) = entry;
    for (int slot = 0; slot < XPH_GAME_SLOTS; slot++) start_of(&f)->records[slot] = entry.frames;
    uint8_t *at = (uint8_t *)entry_of(&f) + front_bytes(&entry);
    for (uint32_t k = 0; k < blocks; k++, at += BYTES) {
        put_bomb(at, BYTES, k * XPH_GAME_FRAMES, &places_of(&f)[k], hash);
        places_of(&f)[k].end = (k + 1) * BYTES;
        places_of(&f)[k].inputs = 0;
    }
    free(zeros);
    seal(&f);
    return f;
}

/* All zeros are frames without characters, whatever the header says. Before that is known, memory is that of the claims,
 * which end at what a replay of 64 MiB could have. */
static void bombs(void **state)
{
    forged one = make_bomb(1);
    assert_true(one.bytes < 1200);
    expect(&one, 16, EXPHIL_E_FORMAT, "other items than the block's header says");
    free(one.data);
    forged most = make_bomb(82); /* 20,992 frames, 1.3 million items, in 8 KB */
    assert_true(most.bytes < 9000);
    expect(&most, 96, EXPHIL_E_FORMAT, "other items than the block's header says");
    free(most.data);
    forged more = make_bomb(83);
    expect(&more, 1, EXPHIL_E_FORMAT, "more than a replay can hold");
    free(more.data);
}

/* ---- without an end ---- */

/* What is damaged behind games that are whole gives back what was noted of them. */
static void damaged_without_an_end(void **state)
{
    forged f = make(5, 0x05);
    size_t game = entry_of(&f)->bytes, first = sizeof(xph_games_header);
    uint8_t *data = calloc(first + 3 * game, 1);
    assert_non_null(data);
    for (int games = 1; games <= 2; games++) {
        forged cut = {data, first + (size_t)games * game + 300};
        memset(data, 0, first + 3 * game);
        memcpy(data, f.data, first + game);
        memset(data + first + game, 0x11, cut.bytes - first - game);
        expect(&cut, 8, EXPHIL_E_FORMAT, "neither a game nor the index begins here");
    }
    free(data);
    free(f.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_games_pass),
        cmocka_unit_test(claims_of_an_entry),
        cmocka_unit_test(facts_that_are_not),
        cmocka_unit_test(another_index),
        cmocka_unit_test(damaged_index_is_not_believed),
        cmocka_unit_test(another_trailer),
        cmocka_unit_test(damaged_games_in_front),
        cmocka_unit_test(lost_games),
        cmocka_unit_test(another_content),
        cmocka_unit_test(bombs),
        cmocka_unit_test(damaged_without_an_end),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
