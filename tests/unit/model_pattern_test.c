/* The list of blocks: what patterns mean, where the message points when they are wrong, that nothing grows
 * beyond 64. */
#include "test.h"
#include "test_places.h"

#include "model/layer.h"

#include <stdio.h>
#include <stdlib.h>

/* words: those of the blocks in their order, a blank between two. */
static void expect(const char *text, const char *words)
{
    xph_block_kind kinds[XPH_BLOCKS_MOST];
    int64_t count = -1;
    char found[XPH_BLOCKS_MOST * 16] = "";
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_pattern_read(text, kinds, &count, &error) < 0) fail_msg("\"%s\": %s", text, error.message);
    for (int64_t i = 0; i < count; i++) {
        assert_non_null(xph_block_word(kinds[i]));
        strcat(strcat(found, i ? " " : ""), xph_block_word(kinds[i]));
    }
    assert_string_equal(found, words);
}

static void expect_many(const char *text, const char *word, int64_t count)
{
    char words[XPH_BLOCKS_MOST * 16] = "";
    for (int64_t i = 0; i < count; i++) strcat(strcat(words, i ? " " : ""), word);
    expect(text, words);
}

static void refuse(const char *text, int column, const char *part)
{
    xph_block_kind kinds[XPH_BLOCKS_MOST];
    int64_t count = -1;
    exphil_error error = EXPHIL_ERROR_INIT;
    char start[40];
    snprintf(start, sizeof start, "blocks, column %d: ", column);
    assert_int_equal(xph_pattern_read(text, kinds, &count, &error), EXPHIL_E_INVALID);
    assert_int_equal(count, -1);
    if (strncmp(error.message, start, strlen(start)) != 0 || !strstr(error.message, part))
        fail_msg("\"%s\": said \"%s\", expected \"%s...%s\"", text, error.message, start, part);
}

static void patterns_mean_what_they_say(void **unused)
{
    expect("mamba", "mamba");
    expect("mamba*2", "mamba mamba");
    expect("  lstm\tgru  attention mlp ffn ", "lstm gru attention mlp ffn");
    expect("(lstm ffn)*3", "lstm ffn lstm ffn lstm ffn");
    expect("(mamba mamba attention)*2", "mamba mamba attention mamba mamba attention");
    expect("((mamba*2 gru) * 2 ffn)*2 mlp", "mamba mamba gru mamba mamba gru ffn "
                                            "mamba mamba gru mamba mamba gru ffn mlp");
    expect("mamba(lstm)gru", "mamba lstm gru");
    expect("((((((((((((((((mamba))))))))))))))))", "mamba");
    expect_many("mamba*064", "mamba", 64);
}

/* What stands in a file between two texts; the file is freed by the caller. */
static char *part_of(char *file, const char *from, const char *to)
{
    char *part = file ? strstr(file, from) : NULL;
    char *end = part ? strstr(part + 1, to) : NULL;
    if (!end) fail_msg("no part from \"%s\" to \"%s\"", from, to);
    *end = 0;
    return part;
}

/* Whether some line begins with mark and then has the word alone or as one of several: "lstm, gru". */
static bool begins_a_line(const char *text, const char *mark, const char *word)
{
    for (const char *at = text; (at = strstr(at, mark)) != NULL;) {
        at += strlen(mark);
        for (size_t length = strcspn(at, " ,\n"); length; length = strcspn(at, " ,\n")) {
            if (length == strlen(word) && memcmp(at, word, length) == 0) return true;
            at += length;
            if (strncmp(at, ", ", 2) != 0) break;
            at += 2;
        }
    }
    return false;
}

static void every_block_is_described(void **unused)
{
    size_t bytes;
    char *page = test_read(EXPHIL_SOURCE_DIR "/doc/model.md", &bytes),
         *header = test_read(EXPHIL_SOURCE_DIR "/include/exphil/exphil.h", &bytes);
    const char *sections = part_of(page, "\n## Blocks\n", "\n## "),
               *comment = part_of(header, "Every block is", "typedef"), *word;
    for (xph_block_kind kind = 0; (word = xph_block_word(kind)) != NULL; kind++) {
        expect(word, word);
        if (!begins_a_line(sections, "\n### ", word)) fail_msg("doc/model.md has no section on %s", word);
        if (!begins_a_line(comment, "\n *   ", word)) fail_msg("exphil.h has no line on %s", word);
    }
    free(page);
    free(header);
}

static void errors_name_the_column(void **unused)
{
    refuse("", 1, "no block");
    refuse("   ", 1, "no block");
    refuse("mamba foo", 7, "\"foo\" is no block (mamba, lstm, gru, attention, mlp, ffn");
    refuse("mambas", 1, "\"mambas\" is no block");
    refuse("Mamba", 1, "expected a block");
    refuse("mamba,lstm", 6, "expected a block");
    refuse("(mamba", 1, "without \")\"");
    refuse("gru ((mamba)", 5, "without \")\"");
    refuse("mamba)", 6, "without \"(\"");
    refuse("lstm ()", 7, "nothing between");
    refuse("mamba*", 7, "a number must follow");
    refuse("mamba*x", 7, "a number must follow");
    refuse("mamba*-1", 7, "a number must follow");
    refuse("mamba*0", 7, "1 or more");
    refuse("*2", 1, "expected a block");
    refuse("mamba*2*2", 8, "expected a block");
    refuse("mamba\n", 6, "expected a block");
    refuse("gru mamba*64", 5, "more than 64");
    refuse("mamba*65", 1, "more than 64");
    refuse("mamba*99999999999999999999999999", 1, "more than 64");
    refuse("((((((((((((((((( mamba", 17, "inside each other");
}

static void nothing_grows_beyond_the_limit(void **unused)
{
    refuse("((((mamba*8)*8)*8)*8)*8", 3, "more than 64");
    char text[400];
    memset(text, ' ', sizeof text);
    text[sizeof text - 1] = 0;
    refuse(text, 256, "longer than 255");
    memset(text, ' ', sizeof text);
    for (int i = 0; i < 63; i++) memcpy(text + i * 4, "gru", 3);
    text[63 * 4] = 0;
    expect_many(text, "gru", 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_say),
        cmocka_unit_test(every_block_is_described),
        cmocka_unit_test(errors_name_the_column),
        cmocka_unit_test(nothing_grows_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
