/* `exphil plot --tensorboard`: training logs to event files. */
#include "plot.h"

#include "commands.h"
#include "events.h"
#include "system.h"

#include <stdlib.h>
#include <string.h>

typedef struct converting {
    events *to;
    double time; /* a line has none of its own: that of the file */
} converting;

static bool take_line(void *user, json_t *object)
{
    converting *c = user;
    events_write(c->to, object, c->time);
    return true;
}

static bool convert(const char *path, const char *folder, bool force)
{
    system_facts facts;
    converting c = {.time = system_look(path, &facts) ? (double)facts.modified : 0.0};
    c.to = events_open(folder, force);
    if (!c.to) return false;
    bool fine = log_each(path, take_line, &c);
    return events_close(c.to) && fine;
}

/* A folder in the folder for each of several logs, by its name. */
static void name_folder(char folder[4096], const char *base, const char *path, bool several)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    int length = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    (void)snprintf(folder, 4096, "%s%s%.*s", base, several ? "/" : "", several ? length : 0, name);
}

bool plot_events(const char *base, bool force, int count, char **paths)
{
    char folder[4096], other[4096];
    for (int i = 0; i < count; i++) {
        name_folder(folder, base, paths[i], count > 1);
        if (!log_at(paths[i])) {
            fprintf(stderr, "exphil: %s: this is no log of exphil train\n", paths[i]);
            return false;
        }
        for (int k = 0; k < i; k++) {
            name_folder(other, base, paths[k], true);
            if (strcmp(folder, other) != 0) continue;
            fprintf(stderr, "exphil: --tensorboard: %s and %s would both go into %s\n", paths[k], paths[i],
                    folder);
            return false;
        }
        if (!events_free(folder, force)) return false;
    }
    for (int i = 0; i < count; i++) {
        name_folder(folder, base, paths[i], count > 1);
        if (!convert(paths[i], folder, force)) return false;
        printf("%s\n", folder);
    }
    return true;
}
