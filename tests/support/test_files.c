/* Small files, and the way to the real replays. */
#include "test.h"
#include "test_places.h"

#include <stdio.h>
#include <stdlib.h>

int test_leave(void **state)
{
    test_folder_remove();
    return 0;
}

const char *test_path(const char *name)
{
    static char path[8][1024];
    static atomic_uint next; /* ranks are threads */
    char *to = path[atomic_fetch_add(&next, 1) % 8];
    snprintf(to, sizeof path[0], "%s/%s", test_folder(), name);
    return to;
}

void test_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        fail_msg("could not write %s", path);
}

char *test_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(size + 1);
    if (!data || fread(data, 1, size, file) != size) fail_msg("could not read %s", path);
    data[size] = '\0';
    fclose(file);
    if (bytes) *bytes = size;
    return data;
}

void *test_find(const void *in, size_t bytes, const void *wanted, size_t length)
{
    const char *at = in;
    for (size_t i = 0; i + length <= bytes; i++)
        if (memcmp(at + i, wanted, length) == 0) return (void *)(uintptr_t)(at + i);
    return NULL;
}

const char *test_replay(const char *name)
{
    static char path[8][1024];
    static int next;
    const char *base = getenv("EXPHIL_REPLAYS");
    char *to = path[next++ % 8];
    snprintf(to, sizeof path[0], "%s/%s", base && *base ? base : EXPHIL_SOURCE_DIR "/../shared/replays",
             name);
    if (test_exists(to)) return to;
    printf("SKIPPED: no replay %s; set EXPHIL_REPLAYS to the folder that holds it\n", to);
    return NULL;
}

void assert_same_file(const char *one, const char *two)
{
    size_t bytes[2];
    char *data[2] = {test_read(one, &bytes[0]), test_read(two, &bytes[1])};
    assert_non_null(data[0]);
    assert_non_null(data[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

void test_list_free(char **names, int count)
{
    for (int i = 0; i < count; i++) free(names[i]);
    if (count >= 0) free(names);
}
