/* Recordings of one match: replays rewritten as other consoles would have written them, and indices of games whose groups and
 * duplicates are found by brute force. */
#include "game_case.h"
#include "match_case.h"
#include "select_case.h"
#include "slp_edit.h"

#include <stdio.h>
#include <stdlib.h>

#define OK(call) assert_int_equal(call, EXPHIL_OK)

/* ---- recordings of one match ---- */

static int64_t index_of(const exphil_games *games, const slp_writer *w)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    OK(exphil_games_query(games, &info, NULL));
    for (int64_t i = 0; i < info.games; i++) {
        exphil_game_info game = EXPHIL_GAME_INFO_INIT;
        OK(exphil_games_game(games, i, &game, NULL, NULL));
        if (game.source_hash == xph_hash(w->data, w->bytes)) return i;
    }
    return -1;
}

/* Of two replays: in one group, and is one left out, as said? The first is to be kept. In either order. */
static void expect_pair(const slp_writer *a, const slp_writer *b, bool together, bool left_out)
{
    for (int order = 0; order < 2; order++) {
        const char *path = test_path("pair.games");
        exphil_games_writer *writer = select_create(path);
        xph_game_groups *groups = NULL;
        assert_true(select_add(writer, order ? b : a));
        assert_true(select_add(writer, order ? a : b));
        exphil_games *games = select_finish(writer, path);
        OK(xph_game_groups_make(games, NULL, &groups, NULL));
        int64_t one = index_of(games, a), other = index_of(games, b);
        assert_int_equal(xph_game_group(groups, one) == xph_game_group(groups, other), together);
        assert_false(xph_game_is_duplicate(groups, one));
        assert_int_equal(xph_game_is_duplicate(groups, other), left_out);
        xph_game_groups_free(groups);
        exphil_games_destroy(games);
    }
}

static void expect_edit(const slp_writer *from, slp_edit edit, bool together, bool left_out)
{
    slp_writer to;
    slp_edit_make(from->data, from->bytes, &edit, &to);
    expect_pair(from, &to, together, left_out);
    slp_free(&to);
}

static void all_edits(const slp_writer *from, bool certain, bool tag)
{
    expect_edit(from, (slp_edit)SELECT_OTHER_CONSOLE, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 1}, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 30, .no_end = true, .rollback = 9}, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 3, .seed = 1}, tag, tag && certain);
    expect_edit(from, (slp_edit){.drop = 3, .input = 200}, true, tag);
}

/* 700 frames have a rung of inputs; 500 do not, and are left in. */
static void recordings(void **state)
{
    slp_writer w;
    match_made m = match_usual;
    m.frames = 700;
    match_make(&w, &m);
    all_edits(&w, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 84}, true, true); /* acts on nothing */
    expect_edit(&w, (slp_edit){.drop = 3, .input = 85}, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 596}, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 597}, true, true); /* behind 512 frames from -39 on */
    slp_free(&w);
    m.frames = 500;
    match_make(&w, &m);
    all_edits(&w, false, false);
    slp_free(&w);
    /* Other players, or another stage. */
    slp_writer other;
    m = match_usual;
    m.frames = 701;
    match_make(&w, &m);
    for (int i = 0; i < 6; i++) {
        m = match_usual;
        m.frames = 700;
        if (i == 0) m.stage = 32;
        if (i == 1) m.characters[0] = 3;
        if (i == 2) m.types[1] = 1;
        if (i == 3) m.team_game = true;
        if (i == 4) m.seed = 8;
        match_make(&other, &m);
        expect_pair(&w, &other, i == 5, i == 5);
        slp_free(&other);
    }
    slp_free(&w);
}

/* Without a seed the inputs tell; where there are too few of them, nothing does, and each game is alone. */
static void seedless(void **state)
{
    slp_writer w;
    match_made m = match_usual;
    m.seed = 0;
    m.frames = 700;
    match_make(&w, &m);
    expect_edit(&w, (slp_edit)SELECT_OTHER_CONSOLE, true, true);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 200}, false, false);
    slp_free(&w);
    m.frames = 300;
    match_make(&w, &m);
    expect_edit(&w, (slp_edit)SELECT_OTHER_CONSOLE, false, false);
    slp_free(&w);
}

/* A match tag with the seed: certain without inputs. A tag alone: only together. */
static void tags(void **state)
{
    slp_writer w;
    match_made m = match_usual;
    m.frames = 300;
    match_make(&w, &m);
    uint8_t *start = w.data + 15 + 1 + w.data[16];
    while (*start != 0x36) start++;
    memcpy(start + 0x2BE, "mode.unranked-2024", 19);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 200}, true, true);
    expect_edit(&w, (slp_edit){.drop = 3, .seed = 5}, true, false);
    slp_free(&w);
}

typedef struct real_edits {
    int64_t seen, certain;
} real_edits;

static void edit_real(const char *path, exphil_slp *slp, void *arg)
{
    real_edits *seen = arg;
    slp_writer w = {0};
    size_t bytes;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    xph_game_entry entry;
    xph_game_start start;
    OK(exphil_slp_query(slp, &info, NULL));
    if (info.frame_count < 40 || info.container != EXPHIL_SLP_CONTAINER) return;
    if (info.stop != EXPHIL_SLP_STOP_COMPLETE || info.unknown_event_count) return;
    char *data = test_read(path, &bytes);
    slp_put(&w, data, bytes);
    free(data);
    memset(&entry, 0, sizeof entry);
    xph_game_describe(slp, &info, &entry, &start);
    /* Others' last frames are less certain where the recorder calls none final: a rung must not lie there. */
    bool certain = entry.digest[0] != 0 && entry.certain_end >= 472 + 30 + 16;
    all_edits(&w, certain, entry.tag != 0);
    slp_free(&w);
    seen->seen++;
    seen->certain += certain;
}

static void real_recordings(void **state)
{
    real_edits seen = {0, 0};
    if (!game_each_real(edit_real, &seen)) skip();
    print_message("%d real replays, of %d of them recordings are certain\n", (int)seen.seen,
                  (int)seen.certain);
    assert_true(seen.seen >= 10 && seen.certain >= 5);
}

/* What is kept: complete before not, more frames, whatever the selection takes; copies are never taken twice. */
static void what_is_kept(void **state)
{
    const char *path = test_path("kept.games");
    slp_writer w, cut, later;
    match_made m = match_usual;
    exphil_selection s = EXPHIL_SELECTION_INIT;
    m.frames = 700;
    match_make(&w, &m);
    slp_edit_make(w.data, w.bytes, &(slp_edit){.drop = 1, .no_end = true}, &cut);
    slp_edit_make(w.data, w.bytes, &(slp_edit){.drop = 2, .metadata = select_other_metadata}, &later);
    exphil_games_writer *writer = select_create(path);
    assert_true(select_add(writer, &cut));
    assert_true(select_add(writer, &later));
    assert_true(select_add(writer, &w));
    exphil_games *games = select_finish(writer, path);
    exphil_selection_report report = select_count(games, &s);
    assert_int_equal(report.taken, 2);
    assert_int_equal(report.refused[EXPHIL_REFUSED_DUPLICATE], 4);
    s.duplicates = 1;
    report = select_count(games, &s);
    assert_int_equal(report.taken, 6);
    s.duplicates = 0;
    s.first_day = 20000; /* only the later one, which is not the best of the three */
    report = select_count(games, &s);
    assert_int_equal(report.taken, 2);
    assert_int_equal(report.refused[EXPHIL_REFUSED_DUPLICATE], 0);
    assert_int_equal(report.refused[EXPHIL_REFUSED_EARLY], 4);
    exphil_games_destroy(games);
    slp_free(&w);
    slp_free(&cut);
    slp_free(&later);
}

/* ---- by brute force ---- */

/* A corpus that is an index alone; behind the header is a hole where games would be. */
static exphil_games *index_of_entries(xph_game_entry *entries, int64_t count)
{
    const char *path = test_path("index.games");
    uint64_t at = sizeof(xph_games_header), frames = 0, content = 0;
    uint16_t widths[3];
    xph_games_header header = {.version = XPH_GAMES_VERSION,
                               .entry_bytes = sizeof(xph_game_entry),
                               .start_bytes = sizeof(xph_game_start),
                               .facts_version = XPH_GAMES_FACTS_VERSION};
    xph_game_widths(&widths[0], &widths[1], &widths[2]);
    memcpy(header.magic, XPH_GAMES_MAGIC, 8);
    header.frame_bytes = widths[0];
    header.player_bytes = widths[1];
    header.item_bytes = widths[2];
    header.hash = xph_hash(&header, offsetof(xph_games_header, hash));
    for (int64_t i = 0; i < count; i++) {
        xph_game_entry *e = &entries[i];
        e->offset = at;
        e->first_frame = e->last_frame - (int32_t)e->frames + 1;
        e->bytes =
            (uint32_t)(xph_game_head_bytes(e) + xph_game_table_bytes(e)) + 40 * xph_game_blocks(e->frames);
        at += e->bytes;
        frames += e->frames;
        content += xph_game_share(e->content_hash);
    }
    xph_games_trailer trailer = {
        .games = (uint64_t)count, .frames = frames, .index = at, .content_hash = content};
    memcpy(trailer.magic, XPH_GAMES_TRAILER, 8);
    trailer.index_hash = xph_hash(entries, (size_t)count * sizeof *entries);
    trailer.hash = xph_hash(&trailer, offsetof(xph_games_trailer, hash));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(entries, sizeof *entries, (size_t)count, file), (size_t)count);
    assert_int_equal(fwrite(&trailer, sizeof trailer, 1, file), 1);
    fclose(file);
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_open(context, path, &games, &error) < 0) fail_msg("%s", error.message);
    return games;
}

static uint32_t below(xph_rng *rng, uint32_t bound)
{
    return (uint32_t)xph_rng_below(rng, bound);
}

/* Few seeds, tags and inputs, so that all that can be equal often is. */
static void random_entry(xph_rng *rng, uint32_t variety, xph_game_entry *e)
{
    *e = select_entry();
    e->seed = below(rng, variety);
    e->stage = (uint16_t)(30 + below(rng, 2));
    e->tag = below(rng, 3) ? 0 : 1 + below(rng, variety);
    e->frames = 100 + 40 * below(rng, 8);
    e->last_frame = (int32_t)e->frames - 124;
    if (below(rng, 4) == 0) e->flags = (uint8_t)(below(rng, 2) ? XPH_GAME_ENDED | XPH_GAME_CUT : 0);
    e->flags |= (uint8_t)(below(rng, 3) << 4);
    for (uint32_t i = 0, rungs = below(rng, 4); i < rungs; i++) e->digest[i] = 1 + below(rng, 2);
    e->content_hash = xph_rng_u64(rng) % (100 * (uint64_t)variety) + 1;
    e->source_hash = xph_rng_u64(rng);
    e->port[0].damage_dealt = (uint16_t)(95 + below(rng, 10));
}

static bool same_start(const xph_game_entry *a, const xph_game_entry *b)
{
    bool inputs = a->digest[0] && a->digest[0] == b->digest[0];
    return a->seed == b->seed && a->stage == b->stage && (a->seed || inputs);
}

static bool same_tag(const xph_game_entry *a, const xph_game_entry *b)
{
    return a->tag && a->tag == b->tag && a->stage == b->stage;
}

static bool proposed(const xph_game_entry *a, const xph_game_entry *b)
{
    return same_start(a, b) || same_tag(a, b) || a->content_hash == b->content_hash;
}

static bool complete(const xph_game_entry *e)
{
    return (e->flags & XPH_GAME_ENDED) && !(e->flags & (XPH_GAME_CUT | XPH_GAME_GAPS));
}

static bool confirmed(const xph_game_entry *a, const xph_game_entry *b)
{
    int rung = 0;
    if (a->content_hash == b->content_hash) return true;
    if (same_start(a, b) && same_tag(a, b)) return true;
    while (rung < 3 && a->digest[rung] && b->digest[rung]) rung++;
    for (int i = 0; i < rung; i++)
        if (a->digest[i] != b->digest[i]) return false;
    if (!rung) return false;
    return !complete(a) || !complete(b) ||
           abs((a->last_frame + 1000000) / 64 - (b->last_frame + 1000000) / 64) <= 1;
}

static const xph_game_entry *sorting;

static int by_worth(const void *x, const void *y)
{
    const xph_game_entry *a = &sorting[*(const int64_t *)x], *b = &sorting[*(const int64_t *)y];
    if (complete(a) != complete(b)) return complete(a) ? -1 : 1;
    if (a->frames != b->frames) return a->frames > b->frames ? -1 : 1;
    if (a->flags >> 4 != b->flags >> 4) return a->flags >> 4 < b->flags >> 4 ? -1 : 1;
    if (a->content_hash != b->content_hash) return a->content_hash < b->content_hash ? -1 : 1;
    return a->source_hash < b->source_hash ? -1 : 1;
}

/* group[i]: the least game that i is in a group with. */
static void reference(const xph_game_entry *e, int64_t count, int32_t least_damage, bool copies_only,
                      int64_t *group, bool *left_out)
{
    int64_t *order = calloc((size_t)count, sizeof *order);
    bool *kept = calloc((size_t)count, sizeof *kept);
    for (int64_t i = 0; i < count; i++) order[i] = group[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < i; k++) {
                if (group[i] == group[k] || !proposed(&e[i], &e[k])) continue;
                group[i] = group[k] = group[i] < group[k] ? group[i] : group[k];
                changed = true;
            }
    }
    sorting = e;
    qsort(order, (size_t)count, sizeof *order, by_worth);
    for (int64_t n = 0; n < count; n++) {
        int64_t i = order[n];
        left_out[i] = false;
        if (e[i].port[0].damage_dealt < least_damage) continue;
        for (int64_t k = 0; k < count && !left_out[i]; k++) {
            if (!kept[k] || group[k] != group[i]) continue;
            left_out[i] = copies_only ? e[i].content_hash == e[k].content_hash : confirmed(&e[i], &e[k]);
        }
        kept[i] = !left_out[i];
    }
    free(order);
    free(kept);
}

static void expect_groups(xph_game_entry *e, int64_t count, int32_t least_damage, bool duplicates)
{
    int64_t *group = calloc((size_t)count, sizeof *group);
    bool *left_out = calloc((size_t)count, sizeof *left_out);
    exphil_selection s = EXPHIL_SELECTION_INIT;
    xph_game_groups *groups = NULL;
    s.least_damage = least_damage;
    s.port = 1;
    s.duplicates = duplicates;
    exphil_games *games = index_of_entries(e, count);
    xph_selector *selector = select_selector(&s);
    OK(xph_game_groups_make(games, selector, &groups, NULL));
    reference(e, count, least_damage, duplicates, group, left_out);
    for (int64_t i = 0; i < count; i++) {
        uint64_t least = UINT64_MAX;
        for (int64_t k = 0; k < count; k++) {
            uint64_t key = xph_game_keys_of(&e[k]).start;
            if (group[k] == group[i] && key < least) least = key;
        }
        assert_true(xph_game_group(groups, i) == least);
        assert_int_equal(xph_game_is_duplicate(groups, i), left_out[i]);
    }
    xph_game_groups_free(groups);
    xph_selector_free(selector);
    exphil_games_destroy(games);
    free(group);
    free(left_out);
}

static void brute_force(void **state)
{
    enum { MOST = 120 };
    xph_game_entry *e = calloc(MOST, sizeof *e);
    xph_rng rng = {.seed = 11, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 150; round++) {
        int64_t count = 2 + below(&rng, MOST - 1);
        uint32_t variety = 1 + below(&rng, 40);
        for (int64_t i = 0; i < count; i++) random_entry(&rng, variety, &e[i]);
        expect_groups(e, count, round % 3 == 2 ? 100 : 0, round % 5 == 4);
    }
    free(e);
}

/* Groups of a large index; $DUPLICATES_TEST_GAMES of them, and how long it took, are for whoever measures. */
static void many_games(void **state)
{
    const char *given = getenv("DUPLICATES_TEST_GAMES");
    int64_t count = given ? atoll(given) : 20000, dropped = 0;
    xph_game_entry *e = calloc((size_t)count, sizeof *e);
    xph_rng rng = {.seed = 12, .stream = XPH_RNG_TEST};
    xph_game_groups *groups = NULL;
    for (int64_t i = 0; i < count; i += 2) { /* of every match both recordings, in random places */
        random_entry(&rng, 1u << 31, &e[i]);
        e[i].digest[0] = xph_rng_u32(&rng) | 1;
        e[i + 1] = e[i];
        e[i + 1].last_frame--;
        e[i + 1].frames--;
        e[i].content_hash = xph_rng_u64(&rng);
        e[i + 1].content_hash = xph_rng_u64(&rng);
    }
    for (int64_t i = count - 1; i > 0; i--) {
        xph_game_entry kept = e[i], *other = &e[below(&rng, (uint32_t)i + 1)];
        e[i] = *other;
        *other = kept;
    }
    exphil_games *games = index_of_entries(e, count);
    int64_t begun = xph_clock_ns();
    OK(xph_game_groups_make(games, NULL, &groups, NULL));
    if (given)
        print_message("%lld games: %.2f s\n", (long long)count, (double)(xph_clock_ns() - begun) * 1e-9);
    for (int64_t i = 0; i < count; i++) dropped += xph_game_is_duplicate(groups, i);
    assert_int_equal(dropped, count / 2);
    xph_game_groups_free(groups);
    exphil_games_destroy(games);
    free(e);
}

static void group_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    xph_game_entry e[6];
    xph_rng rng = {.seed = 14, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 6; i++) random_entry(&rng, 1, &e[i]);
    exphil_games_destroy(index_of_entries(e, 6));
    exphil_context *own = test_context(&memory, NULL, 1);
    exphil_games *games = NULL;
    xph_game_groups *groups = NULL;
    OK(exphil_games_open(own, test_path("index.games"), &games, NULL));
    long long failures = 0;
    for (exphil_status status = EXPHIL_E_MEMORY; status < 0; failures++) {
        memory.fail_at = atomic_load(&memory.calls) + failures + 1;
        status = xph_game_groups_make(games, NULL, &groups, NULL);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_MEMORY);
    }
    assert_true(failures > 4);
    xph_game_groups_free(groups);
    exphil_games_destroy(games);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings),   cmocka_unit_test(tags),
        cmocka_unit_test(seedless),     cmocka_unit_test(real_recordings),
        cmocka_unit_test(what_is_kept), cmocka_unit_test(brute_force),
        cmocka_unit_test(many_games),   cmocka_unit_test(group_memory_failures),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
