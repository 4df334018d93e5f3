/* What follows for all systems from what one has. See system.h. */
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool add(char ***names, int *count, size_t *room, const char *name)
{
    if ((size_t)*count == *room) {
        size_t wider = *room ? 2 * *room : 64;
        char **more = realloc(*names, wider * sizeof *more);
        if (!more) return false;
        *names = more;
        *room = wider;
    }
    (*names)[*count] = strdup(name);
    return (*names)[(*count)++] != NULL;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int system_names(const char *path, char ***names)
{
    system_folder *folder = system_folder_open(path);
    size_t room = 0;
    int count = 0;
    bool fine = folder != NULL;
    *names = NULL;
    for (const char *name; fine && (name = system_folder_next(folder)) != NULL;)
        fine = add(names, &count, &room, name);
    if (folder) system_folder_close(folder);
    if (count > 1) qsort(*names, (size_t)count, sizeof **names, by_bytes);
    if (fine) return count;
    int why = folder ? ENOMEM : errno;
    system_names_free(*names, count);
    *names = NULL;
    errno = why;
    return -1;
}

void system_names_free(char **names, int count)
{
    for (int i = 0; i < count; i++) free(names[i]);
    free(names);
}
