/* What the host (guest_host.c) knows of a plugin (guest_plugin.c): both are parts of one test. The host is linked to nothing
 * of libexphil; the plugin is, as a plugin of an emulator would be. */
#ifndef EXPHIL_TESTS_GUEST_H
#define EXPHIL_TESTS_GUEST_H

#include <stdint.h>

/* All return 0 when everything was as it must be, and fill text (256 bytes) with what was not. */
struct guest_plugin {
    /* The whole way: rows, training, weights in memory, play, rollback. hash: of every logit of the play. */
    int (*whole_way)(uint64_t *hash, char *text);
    /* Seven handles destroyed in one of 5040 orders, trained and played in between. */
    int (*any_order)(int order, char *text);
    /* Threads that share a model, each with a session; then all at one session. */
    int (*many_threads)(int threads, char *text);
    /* Makes objects, forks; they refuse in the child, where new ones work; here they go on. */
    int (*across_fork)(char *text);
};

#define GUEST_ENTRY "guest_plugin_entry"
typedef const struct guest_plugin *(*guest_entry)(void);

#endif
