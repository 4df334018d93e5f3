/* Free memory as the system's files tell it: of the machine, and of a control group of either version. */
#include "test.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static void put(const char *root, const char *path, const char *text)
{
    char name[4096];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = strchr(name + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (!test_exists(name)) test_make_folder(name);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *root_of(const char *name)
{
    const char *root = test_path(name);
    test_make_folder(root);
    return root;
}

static const char meminfo[] =
    "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    9000 kB\n";

static void of_the_machine(void **state)
{
    (void)state;
    const char *root = root_of("machine");
    assert_int_equal(xph_memory_free(root), 0);
    put(root, "/proc/meminfo", meminfo);
    assert_int_equal(xph_memory_free(root), 9000 * 1024);
    put(root, "/sys/fs/cgroup/memory.max", "max\n");
    put(root, "/sys/fs/cgroup/memory.current", "5000\n");
    assert_int_equal(xph_memory_free(root), 9000 * 1024);
    put(root, "/proc/meminfo", "MemTotal: 5 kB\n");
    assert_int_equal(xph_memory_free(root), 0);
}

/* Pages of files that nobody needs now are given back. */
static void of_a_group(void **state)
{
    (void)state;
    const char *root = root_of("group");
    put(root, "/proc/meminfo", meminfo);
    put(root, "/sys/fs/cgroup/memory.max", "1000000\n");
    put(root, "/sys/fs/cgroup/memory.current", "700000\n");
    assert_int_equal(xph_memory_free(root), 300000);
    put(root, "/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 200000\nactive_file 3\n");
    assert_int_equal(xph_memory_free(root), 500000);
    put(root, "/sys/fs/cgroup/memory.max", "100000\n");
    assert_int_equal(xph_memory_free(root), 0);
}

static void of_an_old_group(void **state)
{
    (void)state;
    const char *root = root_of("old");
    put(root, "/proc/meminfo", meminfo);
    put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
    assert_int_equal(xph_memory_free(root), 9000 * 1024);
    put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "800000\n");
    put(root, "/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 50000\n");
    assert_int_equal(xph_memory_free(root), 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_machine),
        cmocka_unit_test(of_a_group),
        cmocka_unit_test(of_an_old_group),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
