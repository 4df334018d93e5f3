/* Real replays: both test sets against their manifests, through the code of `exphil slp verify`; cut and
 * damaged copies of them; and the live stream against the file reader. */
#include "slp_check.h"
#include "test.h"

#include <exphil/slp.h>

#include <stdio.h>
#include <stdlib.h>

/* The program's own code is under test here. */
#include "../../cli/digest.c"
#include "../../cli/files.c"
#include "../../cli/slp_manifest.c"

#include "context_case.h" /* last: functions above name theirs context, too */

static void test_digests(void **state)
{
    char text[65];
    digest_sha256("", 0, text);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_sha256("abc", 3, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, text);
    assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_int_equal(digest_crc32("123456789", 9), 0xCBF43926);
}

static void verify(const char *name, int least)
{
    const char *path = test_replay(name);
    char *text = NULL, last[64];
    if (!path) skip();
    FILE *out = fopen(test_path("said"), "wb");
    assert_non_null(out);
    int failed = slp_manifest_verify(context, path, out);
    assert_int_equal(fclose(out), 0);
    text = test_read(test_path("said"), NULL);
    assert_non_null(text);
    if (failed) fail_msg("%s", text);
    (void)snprintf(last, sizeof last, "%d passed, 0 failed\n", least);
    assert_non_null(strstr(text, last));
    free(text);
}

static void test_formats(void **state)
{
    verify("formats/MANIFEST.tsv", 17);
}

static void test_training(void **state)
{
    verify("training/MANIFEST.tsv", 3);
}

/* A wrong fact is found, whatever the column. */
static void test_mismatch(void **state)
{
    const char *path = test_replay("formats/ics.slp");
    char *text = NULL;
    size_t bytes = 0;
    if (!path) skip();
    char *data = test_read(path, &bytes);
    test_write(test_path("ics.slp"), data, bytes);
    free(data);
    static const char manifest[] =
        "file\tbytes\tsha256\tversion\tframes\tstop\tplayers\tnotes\n"
        "# comment\n\nics.slp\t1\t2\t3\t4\t5\t6\t7\nnone.slp\t1\t2\t3\t4\t5\t6\t7\n"
        "ics.slp\t100645\n";
    test_write(test_path("m.tsv"), manifest, sizeof manifest - 1);
    FILE *out = fopen(test_path("said"), "wb");
    assert_non_null(out);
    assert_int_equal(slp_manifest_verify(context, test_path("m.tsv"), out), 2);
    assert_int_equal(fclose(out), 0);
    text = test_read(test_path("said"), NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, "MISMATCH bytes,sha256,version,frames,stop,players\n"));
    assert_non_null(strstr(text, "MISMATCH file cannot be read\n"));
    assert_non_null(strstr(text, "1 passed, 2 failed\n"));
    free(text);
    test_folder_remove();
}

static const char *const names[] = {"formats/ics.slp",
                                    "formats/short_game_tbh10.slp",
                                    "formats/v3.18.slp",
                                    "formats/duplicate_game_end.slp",
                                    "formats/BTTDK.slp",
                                    "formats/teams_p1p2_blueVSp4_green_winner_green.slp",
                                    "formats/crazy_name_tags.slp",
                                    "formats/corrupt.slp"};

/* Whole files: every frame of the stream is the file's, in pieces of odd lengths. */
static void test_streams(void **state)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = test_replay(names[i]);
        size_t bytes;
        if (!path) skip();
        char *data = test_read(path, &bytes);
        const char *wrong = slp_check_bytes(context, data, bytes, 1 + 977 * i);
        if (wrong) fail_msg("%s: %s", names[i], wrong);
        free(data);
    }
}

/* Cuts at every byte of the first 4 kB and at random places, flips in the payload table, lengths of 0. */
static void test_damage(void **state)
{
    xph_rng rng = {3, XPH_RNG_TEST, 0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = test_replay(names[i]);
        size_t bytes;
        if (!path) skip();
        uint8_t *data = (uint8_t *)test_read(path, &bytes);
        if (bytes > 150000) bytes = 150000;
        for (size_t cut = 0; cut < (i == 0 ? 4096U : 40U); cut++) {
            const char *wrong =
                slp_check_bytes(context, data, cut < 4096 && i == 0 ? cut : bytes * cut / 40, SIZE_MAX);
            if (wrong) fail_msg("%s cut: %s", names[i], wrong);
        }
        for (int round = 0; round < 40; round++) {
            size_t at = (size_t)xph_rng_below(&rng, round % 2 ? 60 : bytes);
            uint8_t kept = data[at];
            data[at] ^= (uint8_t)(1u << xph_rng_below(&rng, 8));
            const char *wrong = slp_check_bytes(context, data, bytes, 5000);
            if (wrong) fail_msg("%s damaged at %zu: %s", names[i], at, wrong);
            data[at] = kept;
        }
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),  cmocka_unit_test(test_formats), cmocka_unit_test(test_training),
        cmocka_unit_test(test_mismatch), cmocka_unit_test(test_streams), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
