/* Caches as sysfs tells them, as the processor does where sysfs is not mounted, and from the registers of known ones. */
#include "caches.h"

#include "test.h"

#include <sys/stat.h>

static void write_cache(int i, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "index%d", i);
    (void)mkdir(test_path(path), 0700);
    snprintf(path, sizeof path, "index%d/%s", i, name);
    test_write(test_path(path), text, strlen(text));
}

static void assert_text(const json_t *list, size_t i, const char *name, const char *text)
{
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, i), name)), text);
}

static void the_system_tells(void **state)
{
    write_cache(0, "level", "1\n");
    write_cache(0, "type", "Data\n");
    write_cache(0, "size", "48K\n");
    write_cache(0, "shared_cpu_list", "0-1\n");
    write_cache(1, "level", "2\n"); /* some systems tell no more */
    json_t *list = bench_caches(test_folder());
    assert_int_equal(json_array_size(list), 2);
    assert_text(list, 0, "level", "1");
    assert_text(list, 0, "type", "Data");
    assert_text(list, 0, "size", "48K");
    assert_text(list, 0, "shared_by", "0-1");
    assert_text(list, 1, "level", "2");
    assert_text(list, 1, "size", "unknown");
    json_decref(list);
    test_folder_remove();
}

static void without_it_the_processor_does(void **state)
{
    json_t *list = bench_caches(test_path("no such folder"));
    if (json_is_string(list)) assert_string_equal(json_string_value(list), "unknown");
#if defined(__x86_64__)
    else
        assert_true(json_array_size(list) > 0);
#else
    assert_true(json_is_string(list));
#endif
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *cache = json_array_get(list, i);
        const char *type = json_string_value(json_object_get(cache, "type"));
        int level = atoi(json_string_value(json_object_get(cache, "level")));
        assert_true(level >= 1 && level <= 7);
        assert_true(atoi(json_string_value(json_object_get(cache, "size"))) > 0);
        assert_true(strcmp(type, "Data") == 0 || strcmp(type, "Instruction") == 0 ||
                    strcmp(type, "Unified") == 0);
        assert_text(list, i, "shared_by", "unknown");
    }
    json_decref(list);
    test_folder_remove();
}

static void registers_are_read(void **state)
{
    static const struct {
        uint32_t registers[4];
        bench_cache cache;
    } known[] = {
        {{0x1C004121, 0x01C0003F, 63, 0}, {1, "Data", 32 << 10}}, /* 8 ways, 64 sets, lines of 64 bytes */
        {{0x1C004122, 0x01C0003F, 63, 0}, {1, "Instruction", 32 << 10}},
        {{0x1C004143, 0x01C0003F, 511, 0}, {2, "Unified", 256 << 10}},
        {{0x1C03C163, 0x03C0003F, 8191, 6}, {3, "Unified", 8 << 20}},
        {{0x00000083, 0xFFC0103F, UINT32_MAX, 0},
         {4, "Unified", INT64_C(1) << 49}}, /* two partitions; as large as may be */
    };
    bench_cache cache;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(bench_cache_of(known[i].registers, &cache));
        assert_int_equal(cache.level, known[i].cache.level);
        assert_string_equal(cache.type, known[i].cache.type);
        assert_int_equal(cache.bytes, known[i].cache.bytes);
    }
    assert_false(bench_cache_of((const uint32_t[4]){0, 0x01C0003F, 63, 0}, &cache));
    assert_false(bench_cache_of((const uint32_t[4]){0x24, 0x01C0003F, 63, 0}, &cache));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_tells),
        cmocka_unit_test(without_it_the_processor_does),
        cmocka_unit_test(registers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
