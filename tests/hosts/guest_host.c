/* A host with plugins, linked to nothing of libexphil: loads one with RTLD_LOCAL, the same again from another file and in a
 * name space of its own (two copies of the library in one process), and lets them do everything that hosts do to guests.
 *   guest_host PLUGIN COPY_OF_PLUGIN */
#define _GNU_SOURCE
#include "guest.h"

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 5040 };
static char text[256];

static const struct guest_plugin *entry_of(void *library)
{
    guest_entry entry = NULL;
    if (library) *(void **)(&entry) = dlsym(library, GUEST_ENTRY);
    if (!entry) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return entry();
}

static void demand(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "FAILED: %s: %s\n", what, text);
        exit(1);
    }
    printf("%s\n", what);
}

struct job {
    const struct guest_plugin *plugin;
    uint64_t hash;
    int failed;
    char text[256];
};

static void *run(void *arg)
{
    struct job *job = arg;
    for (int i = 0; i < 5 && !job->failed; i++) job->failed = job->plugin->whole_way(&job->hash, job->text);
    return NULL;
}

/* Each plugin in a thread with a stack of this size, all at the same time. */
static int beside(const struct guest_plugin *const *plugins, int count, size_t stack_bytes, uint64_t wanted)
{
    struct job jobs[4];
    pthread_t thread[4];
    pthread_attr_t attributes;
    memset(jobs, 0, sizeof jobs);
    pthread_attr_init(&attributes);
    int failed = pthread_attr_setstacksize(&attributes, stack_bytes);
    for (int i = 0; i < count; i++) {
        jobs[i].plugin = plugins[i];
        if (pthread_create(&thread[i], &attributes, run, &jobs[i])) return 1;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        if (jobs[i].failed) memcpy(text, jobs[i].text, sizeof text);
        failed |= jobs[i].failed || jobs[i].hash != wanted;
    }
    pthread_attr_destroy(&attributes);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    const struct guest_plugin *plugins[3];
    plugins[0] = entry_of(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    plugins[1] = entry_of(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
    plugins[2] = entry_of(dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL));
    demand(dlsym(RTLD_DEFAULT, "exphil_version") != NULL, "nothing became global");
    uint64_t hash = 0, again = 0;
    demand(plugins[0]->whole_way(&hash, text), "the whole way");
    demand(beside(plugins, 2, 1 << 20, hash), "two plugins at once");
    demand(beside(plugins + 2, 1, 1 << 20, hash), "a second copy of the library");
    demand(beside(plugins, 3, 1 << 20, hash), "both copies at once");
    demand(beside(plugins, 1, 64 << 10, hash), "a stack of 64 KiB");
    if (setlocale(LC_ALL, "de_DE.UTF-8") && !strcmp(localeconv()->decimal_point, ","))
        demand(plugins[0]->whole_way(&again, text) || again != hash, "a decimal comma");
    else
        printf("SKIPPED: no locale de_DE.UTF-8\n");
    demand(plugins[0]->across_fork(text), "a fork");
    demand(plugins[0]->many_threads(8, text), "8 threads");
    int failed = 0;
    for (int order = 0; order < ORDERS && !failed; order++) failed = plugins[0]->any_order(order, text);
    demand(failed, "7 handles destroyed in 5040 orders, nothing left over");
    return 0;
}
