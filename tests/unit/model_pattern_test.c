/* The list of blocks: what patterns mean, where the message points when they are wrong, that nothing grows
 * beyond 64. */
#include "test.h"

#include "model/layer.h"

#include <stdio.h>

static void expect(const char *text, const char *letters)
{
    static const char of_kind[] = "mlgapf"; /* mamba lstm gru attention mlp ffn */
    xph_block_kind kinds[XPH_BLOCKS_MOST];
    int64_t count = -1;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_pattern_read(text, kinds, &count, &error) < 0) fail_msg("\"%s\": %s", text, error.message);
    assert_int_equal(count, strlen(letters));
    for (int64_t i = 0; i < count; i++) assert_int_equal(of_kind[kinds[i]], letters[i]);
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
    expect("mamba", "m");
    expect("mamba*2", "mm");
    expect("  lstm\tgru  attention mlp ffn ", "lgapf");
    expect("(lstm ffn)*3", "lflflf");
    expect("(mamba mamba attention)*2", "mmamma");
    expect("((mamba*2 gru) * 2 ffn)*2 mlp", "mmgmmgfmmgmmgfp");
    expect("mamba(lstm)gru", "mlg");
    expect("((((((((((((((((mamba))))))))))))))))", "m");
    expect("mamba*064", "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm");
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
    expect(text, "ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_say),
        cmocka_unit_test(errors_name_the_column),
        cmocka_unit_test(nothing_grows_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
