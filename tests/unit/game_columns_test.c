/* Frames as columns and back: the bits of every field that is kept, of replays of every layout and of real ones; a
 * replay put together of its blocks; columns that no replay makes. */
#include "context_case.h"
#include "game_case.h"
#include "slp_writer.h"
#include "test.h"

#include "melee/melee.h"

#include <stdlib.h>

/* Blocks of a replay, packed and unpacked. Memory ends where it must: the address sanitizer sees what goes
 * beyond. */
typedef struct trip {
    const exphil_slp *slp;
    void *memory[2];
    xph_game_block block;
    uint8_t *raw;
    size_t raw_bytes;
} trip;

static exphil_status go(trip *t, const exphil_slp *slp, int64_t position, int32_t frames)
{
    xph_game_shape shape;
    xph_game_block packed;
    exphil_status status = xph_game_shape_of(slp, position, frames, &shape, NULL);
    if (status < 0) return status;
    size_t memory = xph_game_memory_bytes(&shape);
    *t = (trip){.slp = slp, .raw_bytes = xph_game_block_bytes(&shape)};
    assert_true(t->raw_bytes < (size_t)1 << 20);
    t->raw = malloc(t->raw_bytes);
    for (int i = 0; i < 2; i++) {
        t->memory[i] = malloc(memory);
        assert_non_null(t->memory[i]);
        memset(t->memory[i], 0xA5 - i, memory);
    }
    xph_game_block_place(&shape, t->memory[0], &packed);
    xph_game_pack(slp, position, &packed, t->raw);
    xph_game_block_place(&shape, t->memory[1], &t->block);
    assert_null(xph_game_unpack(t->raw, &t->block));
    return EXPHIL_OK;
}

static void end(trip *t)
{
    free(t->memory[0]);
    free(t->memory[1]);
    free(t->raw);
}

/* What is not kept of a record, as the original has it. */
static exphil_slp_player with_the_rest(const exphil_slp_player *kept, const exphil_slp_player *of)
{
    exphil_slp_player whole = *kept;
    whole.pre_seed = of->pre_seed;
    whole.pre_x = of->pre_x;
    whole.pre_y = of->pre_y;
    whole.pre_facing = of->pre_facing;
    whole.pre_percent = of->pre_percent;
    whole.pre_action_state = of->pre_action_state;
    return whole;
}

static void same_frame(const exphil_slp_frame *a, const exphil_slp_frame *b)
{
    assert_int_equal(a->frame, b->frame);
    assert_int_equal(a->slots, b->slots);
    assert_int_equal(a->item_count, b->item_count);
    assert_memory_equal(&a->fountain_left, &b->fountain_left, sizeof a->fountain_left);
    assert_memory_equal(&a->fountain_right, &b->fountain_right, sizeof a->fountain_right);
    assert_int_equal(a->whispy, b->whispy);
    assert_int_equal(a->stadium_event, b->stadium_event);
    assert_int_equal(a->stadium_kind, b->stadium_kind);
    for (int32_t i = 0; i < a->item_count; i++)
        assert_memory_equal(&a->items[i], &b->items[i], sizeof *a->items);
}

static void same_record(const exphil_slp_player *kept, const exphil_slp_player *of)
{
    exphil_slp_player whole = with_the_rest(kept, of);
    assert_memory_equal(&whole, of, sizeof whole);
}

static void same_block(const trip *t, int64_t position)
{
    for (int32_t i = 0; i < t->block.shape.frames; i++) {
        same_frame(&t->block.frame[i], exphil_slp_frame_at(t->slp, position + i));
        for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++) {
            const exphil_slp_player *of = exphil_slp_player_at(t->slp, position + i, slot / 2, slot % 2);
            assert_int_equal(of != NULL, t->block.frame[i].slots >> slot & 1);
            if (of) same_record(&t->block.player[slot][i], of);
        }
    }
}

/* ---- a replay of its blocks ---- */

static exphil_slp *begin(const exphil_slp *slp)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    int64_t records[XPH_GAME_SLOTS] = {0};
    exphil_slp *made = NULL;
    assert_int_equal(exphil_slp_query(slp, &info, NULL), EXPHIL_OK);
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        records[2 * slot->port + slot->follower] = slot->record_count;
    }
    assert_int_equal(
        xph_slp_assemble_begin(context, &info, info.frame_count, info.item_count, records, &made, NULL),
        EXPHIL_OK);
    return made;
}

/* Through blocks and back. EXPHIL_E_UNSUPPORTED: a corpus does not keep such a replay. */
static exphil_status there_and_back(const exphil_slp *slp, int32_t frames_of_block)
{
    int64_t frames = exphil_slp_frame_count(slp);
    exphil_slp *made = begin(slp);
    exphil_status status = EXPHIL_OK;
    for (int64_t position = 0; position < frames && status >= 0; position += frames_of_block) {
        trip t;
        int64_t left = frames - position;
        status = go(&t, slp, position, left < frames_of_block ? (int32_t)left : frames_of_block);
        if (status < 0) break;
        same_block(&t, position);
        assert_true(xph_slp_assemble(made, &t.block));
        end(&t);
    }
    assert_int_equal(xph_slp_assemble_end(made), status >= 0);
    if (status >= 0) assert_same_replay(slp, made);
    exphil_slp_destroy(made);
    return status;
}

static void samples(void **state)
{
    int kept = 0;
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer writer;
        exphil_slp *slp = NULL;
        slp_sample(&writer, which);
        if (exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, NULL) == EXPHIL_OK) {
            for (int32_t frames = 1; frames <= 3; frames++) {
                exphil_status status = there_and_back(slp, frames);
                assert_true(status == EXPHIL_OK || status == EXPHIL_E_UNSUPPORTED);
                kept += status == EXPHIL_OK;
            }
            assert_int_equal(there_and_back(slp, XPH_GAME_FRAMES) >= 0, 1);
            exphil_slp_destroy(slp);
        }
        slp_free(&writer);
    }
    assert_true(kept > 60);
}

static void one_real(const char *path, exphil_slp *slp, void *arg)
{
    assert_int_equal(there_and_back(slp, XPH_GAME_FRAMES), EXPHIL_OK);
}

static void real_replays(void **state)
{
    if (!game_each_real(one_real, NULL)) skip();
}

/* ---- hostile columns ---- */

/* Every byte of the frames' columns changed in every bit: refused with a text, or a block that fits its shape. */
static void changed_columns(void **state)
{
    slp_writer writer;
    trip t;
    exphil_slp *slp = game_small(&writer);
    assert_int_equal(go(&t, slp, 0, (int32_t)exphil_slp_frame_count(slp)), EXPHIL_OK);
    int refused = 0, taken = 0;
    size_t frames_bytes = 20 * (size_t)t.block.shape.frames;
    for (size_t at = 0; at < t.raw_bytes; at += at < frames_bytes ? 1 : 97)
        for (int bit = 0; bit < 8; bit++) {
            t.raw[at] = (uint8_t)(t.raw[at] ^ 1u << bit);
            const char *wrong = xph_game_unpack(t.raw, &t.block);
            if (at >= frames_bytes) assert_null(wrong);
            *(wrong ? &refused : &taken) += 1;
            t.raw[at] = (uint8_t)(t.raw[at] ^ 1u << bit);
        }
    assert_true(refused > 500 && taken > 100);
    end(&t);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* Blocks that are not those of the counts that were given. */
static void other_blocks(void **state)
{
    slp_writer writer;
    trip t;
    exphil_slp *slp = game_small(&writer), *made = begin(slp);
    int32_t frames = (int32_t)exphil_slp_frame_count(slp);
    assert_int_equal(go(&t, slp, 0, frames), EXPHIL_OK);
    assert_false(xph_slp_assemble_end(made));
    assert_true(xph_slp_assemble(made, &t.block));
    assert_false(xph_slp_assemble(made, &t.block));
    exphil_slp_destroy(made);
    made = begin(slp);
    for (int32_t i = 0; i < frames; i++) t.block.frame[i].slots = 0x0F;
    assert_false(xph_slp_assemble(made, &t.block));
    exphil_slp_destroy(made);
    end(&t);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static void too_many_items(void **state)
{
    slp_writer writer;
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_game_shape shape;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x05, XPH_GAME_ITEMS);
    slp_frame(&writer, -122, 0x05, XPH_GAME_ITEMS + 1);
    assert_int_equal(exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, NULL), EXPHIL_OK);
    assert_int_equal(xph_game_shape_of(slp, 0, 1, &shape, &error), EXPHIL_OK);
    assert_int_equal(xph_game_shape_of(slp, 0, 2, &shape, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "frame -122 has 65 items, a corpus keeps 64");
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),      cmocka_unit_test(real_replays),   cmocka_unit_test(changed_columns),
        cmocka_unit_test(other_blocks), cmocka_unit_test(too_many_items),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
