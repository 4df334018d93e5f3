/* Memory that this process could still take: what the system says is available, or what its control group leaves of its
 * limit, whichever is less. Pages of files that nobody needs now count as available in both. */
#define _GNU_SOURCE
#include "base/base.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 8192 };

/* false: there is no such file, or nothing in it. What is longer than TEXT is cut off. */
static bool read_text(const char *root, const char *path, char text[TEXT])
{
    char name[PATH_MAX];
    size_t got = 0;
    int length = snprintf(name, sizeof name, "%s%s", root, path);
    int file = length > 0 && (size_t)length < sizeof name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return false;
    while (got < TEXT - 1) {
        ssize_t more = pread(file, text + got, TEXT - 1 - got, (off_t)got);
        if (more <= 0) break;
        got += (size_t)more;
    }
    close(file);
    text[got] = 0;
    return got > 0;
}

/* A decimal number; -1: there is none, it is "max", or it is too large. */
static int64_t number_at(const char *text)
{
    int64_t value = 0;
    while (*text == ' ' || *text == '\t') text++;
    if (*text < '0' || *text > '9') return -1;
    for (; *text >= '0' && *text <= '9'; text++) {
        int64_t digit = *text - '0';
        if (value > (INT64_MAX - digit) / 10) return -1;
        value = value * 10 + digit;
    }
    return value;
}

/* What follows a name at the beginning of a line. */
static int64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, name, length) == 0) return number_at(line + length);
    return -1;
}

static int64_t number_in(const char *root, const char *path, char text[TEXT])
{
    return read_text(root, path, text) ? number_at(text) : -1;
}

/* Of version 2 or 1 of control groups; -1: there is no limit. */
static int64_t group_leaves(const char *root, bool second, char text[TEXT])
{
    static const char *const names[2][4] = {{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                             "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                             "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file "},
                                            {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                             "/sys/fs/cgroup/memory.stat", "inactive_file "}};
    const char *const *name = names[second];
    int64_t limit = number_in(root, name[0], text), used = number_in(root, name[1], text);
    if (limit < 0 || used < 0) return -1;
    int64_t unneeded = read_text(root, name[2], text) ? number_of(text, name[3]) : 0;
    if (unneeded > 0) used -= unneeded < used ? unneeded : used;
    return limit > used ? limit - used : 0;
}

int64_t xph_memory_free(const char *root)
{
    char text[TEXT];
    int64_t kib = read_text(root, "/proc/meminfo", text) ? number_of(text, "MemAvailable:") : -1;
    int64_t least = kib >= 0 && kib <= INT64_MAX / 1024 ? kib * 1024 : -1;
    for (int second = 0; second < 2; second++) {
        int64_t left = group_leaves(root, second, text);
        if (left >= 0 && (least < 0 || left < least)) least = left;
    }
    return least > 0 ? least : 0;
}
