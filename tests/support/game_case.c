/* See game_case.h. */
#include "game_case.h"

#include <stdio.h>
#include <stdlib.h>

static void same_dump(const exphil_slp *a, const exphil_slp *b, int32_t kind, int32_t slot)
{
    size_t bytes = exphil_slp_dump_bytes(a, kind, slot);
    assert_int_equal(bytes, exphil_slp_dump_bytes(b, kind, slot));
    if (!bytes) return;
    uint8_t *from = malloc(bytes), *to = malloc(bytes);
    assert_int_equal(exphil_slp_dump(a, kind, slot, from, bytes, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_dump(b, kind, slot, to, bytes, NULL), EXPHIL_OK);
    assert_memory_equal(from, to, bytes);
    free(from);
    free(to);
}

void assert_same_replay(const exphil_slp *a, const exphil_slp *b)
{
    same_dump(a, b, EXPHIL_SLP_DUMP_ITEMS, 0);
    assert_int_equal(exphil_slp_slot_count(a), exphil_slp_slot_count(b));
    for (int32_t slot = 0; slot < exphil_slp_slot_count(a); slot++)
        for (int32_t kind = EXPHIL_SLP_DUMP_STATE; kind <= EXPHIL_SLP_DUMP_AUX; kind++)
            same_dump(a, b, kind, slot);
    for (int64_t position = 0; position < exphil_slp_frame_count(a); position++)
        for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++) {
            exphil_melee_frame seen = EXPHIL_MELEE_FRAME_INIT, again = EXPHIL_MELEE_FRAME_INIT;
            exphil_status status = exphil_slp_melee_frame(a, position, port, 0, &seen, NULL);
            assert_int_equal(exphil_slp_melee_frame(b, position, port, 0, &again, NULL), status);
            assert_memory_equal(&seen, &again, sizeof seen);
        }
}

void game_seed(slp_writer *writer, uint8_t seed)
{
    uint8_t *start = writer->data + writer->bytes - 1 - writer->size[0x36];
    memset(start + 0x2BE, 0, 51);
    start[0x13D] = seed;
}

exphil_slp *game_small(slp_writer *writer)
{
    exphil_slp *slp = NULL;
    slp_begin(writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(writer, &slp_layouts[SLP_NEWEST]);
    for (int32_t frame = -123; frame < -100; frame++) slp_frame(writer, frame, 0x07, frame % 4 + 4);
    slp_game_end(writer, 2);
    assert_int_equal(exphil_slp_read(context, writer->data, writer->bytes, NULL, &slp, NULL), EXPHIL_OK);
    return slp;
}

static int look_through(const char *folder, int next,
                        void (*fn)(const char *path, exphil_slp *slp, void *arg), void *arg)
{
    int seen = 0;
    char **names = NULL;
    const int count = test_list(folder, &names);
    if (count < 0) return 0;
    for (int i = 0; i < count; i++) {
        char path[1024];
        exphil_slp *slp = NULL;
        const char *dot = strrchr(names[i], '.');
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (i % next == 0 && dot && strcmp(dot, ".slp") == 0 &&
            exphil_slp_open(context, path, NULL, &slp, NULL) >= 0) {
            fn(path, slp, arg);
            exphil_slp_destroy(slp);
            seen++;
        }
    }
    test_list_free(names, count);
    return seen;
}

/* Where each takes ten times as long, a few of the games, which are long and alike. */
#if defined(EXPHIL_TEST_FEWER)
enum { NEXT_GAME = 16 };
#else
enum { NEXT_GAME = 1 };
#endif

/* Beside the folder of replays there is one of more games. */
bool game_each_real(void (*fn)(const char *path, exphil_slp *slp, void *arg), void *arg)
{
    char games[1024];
    const char *folder = test_replay("formats");
    if (!folder) return false;
    snprintf(games, sizeof games, "%s/../../games", folder);
    assert_true(look_through(folder, 1, fn, arg) >= 10);
    look_through(games, NEXT_GAME, fn, arg);
    return true;
}
