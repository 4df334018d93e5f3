/* Temporary folders of POSIX, and what is done to files from outside. */
#include "test.h"

#include <dirent.h>
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

bool test_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void test_make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int test_list(const char *path, char ***names)
{
    struct dirent **entry = NULL;
    int count = scandir(path, &entry, is_shown, by_name);
    if (count < 0) return -1;
    *names = malloc((size_t)count * sizeof **names + 1);
    assert_non_null(*names);
    for (int i = 0; i < count; i++) {
        (*names)[i] = strdup(entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return count;
}

void test_resize(const char *path, uint64_t bytes)
{
    assert_int_equal(truncate(path, (off_t)bytes), 0);
}

uint64_t test_file_number(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_ino : 0;
}

bool test_replaces_open(void)
{
    return true;
}

bool test_link(const char *to, const char *name)
{
    return symlink(to, name) == 0;
}

bool test_second_name(const char *of, const char *name)
{
    return link(of, name) == 0;
}

bool test_pipe(const char *name)
{
    return mkfifo(name, 0666) == 0;
}

bool test_has_command(const char *name)
{
    char line[256];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", name);
    return system(line) == 0;
}

FILE *test_command(const char *command)
{
    return popen(command, "r");
}

int test_command_end(FILE *command)
{
    return pclose(command);
}
