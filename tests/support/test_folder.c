/* Temporary folders, small files, and the way to the real replays. */
#include "test.h"
#include "test_places.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

const char *test_folder(void)
{
    if (folder[0]) return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/exphil-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder)) fail_msg("could not make %s", folder);
    return folder;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

void test_folder_remove(void)
{
    if (folder[0]) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

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

bool test_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *test_replay(const char *name)
{
    static char path[8][1024];
    static int next;
    const char *base = getenv("EXPHIL_REPLAYS");
    char *to = path[next++ % 8];
    snprintf(to, sizeof path[0], "%s/%s", base && *base ? base : EXPHIL_SOURCE_DIR "/../shared/replays",
             name);
    if (access(to, R_OK) == 0) return to;
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
