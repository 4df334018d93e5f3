/* Handles: who may use an object, and where it goes when nobody does.
 *
 * To destroy an object may mean to wait for its threads, so no scheduler does it. Every object that is closed or collected
 * goes to the reaper, one thread that destroys them in turn. Its library is linked so that it is never unmapped. */
#include "nif.h"

#include <pthread.h>

#define CLOSED 0x80000000u

struct grave {
    struct grave *next;
    void (*destroy)(void *object);
    void *object;
    void *extra;            /* of a handle that is collected; else it goes with the handle */
    handle *self, *context; /* references that are dropped when the object is gone */
    ErlNifTid thread;
    bool join;
};

struct kind_row {
    const char *name;
    bool shared; /* the library lets threads share it */
    void (*destroy)(void *object);
};

#define DESTROY(name)                                                                                        \
  static void destroy_##name(void *object)                                                                   \
  {                                                                                                          \
    exphil_##name##_destroy(object);                                                                         \
  }
DESTROY(context)
DESTROY(model)
DESTROY(dataset)
DESTROY(prefetcher)
DESTROY(optimizer)
DESTROY(trainer)
DESTROY(session)
DESTROY(slp)
DESTROY(slp_stream)
DESTROY(games)
DESTROY(rollout)
DESTROY(learner)

static const struct kind_row rows[KINDS] = {
    [CONTEXT] = {"context", true, destroy_context},
    [MODEL] = {"model", true, destroy_model},
    [DATASET] = {"dataset", false, destroy_dataset},
    [PREFETCHER] = {"prefetcher", false, destroy_prefetcher},
    [OPTIMIZER] = {"optimizer", true, destroy_optimizer},
    [TRAINER] = {"trainer", false, destroy_trainer},
    [TRAINING] = {"training", true, training_free},
    [SESSION] = {"session", false, destroy_session},
    [REPLAY] = {"replay", true, destroy_slp},
    [STREAM] = {"live", false, destroy_slp_stream},
    [GAMES] = {"games", true, destroy_games},
    [WORLD] = {"world", false, destroy_world},
    [ROLLOUT] = {"rollout", false, destroy_rollout},
    [LEARNER] = {"learner", false, destroy_learner},
    [LIVE_LEARNER] = {"live_learner", false, destroy_live},
};
static ErlNifResourceType *types[KINDS];

/* ---- the reaper ------------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct grave *first, **last;
    bool started;
    ErlNifTid thread;
} reaper = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &reaper.first, false, 0};

static void empty_grave(struct grave *grave)
{
    if (grave->join) enif_thread_join(grave->thread, NULL);
    if (grave->object) grave->destroy(grave->object);
    if (grave->extra) enif_free(grave->extra);
    if (grave->self) enif_release_resource(grave->self);
    if (grave->context) enif_release_resource(grave->context);
    enif_free(grave);
}

static void *reap(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&reaper.lock);
        while (!reaper.first) pthread_cond_wait(&reaper.filled, &reaper.lock);
        struct grave *grave = reaper.first;
        reaper.first = grave->next;
        if (!reaper.first) reaper.last = &reaper.first;
        pthread_mutex_unlock(&reaper.lock);
        empty_grave(grave);
    }
    return NULL;
}

static void bury(struct grave *grave)
{
    grave->next = NULL;
    pthread_mutex_lock(&reaper.lock);
    *reaper.last = grave;
    reaper.last = &grave->next;
    pthread_cond_signal(&reaper.filled);
    pthread_mutex_unlock(&reaper.lock);
}

static bool reaper_start(void)
{
    pthread_mutex_lock(&reaper.lock);
    if (!reaper.started)
        reaper.started = enif_thread_create("libexphil_reaper", &reaper.thread, reap, NULL, NULL) == 0;
    pthread_mutex_unlock(&reaper.lock);
    return reaper.started;
}

struct grave *grave_for_thread(void)
{
    struct grave *grave = enif_alloc(sizeof *grave);
    if (grave) *grave = (struct grave){.join = true};
    return grave;
}

void bury_thread(struct grave *grave, ErlNifTid thread, handle *kept)
{
    grave->thread = thread;
    grave->self = kept;
    bury(grave);
}

/* ---- resources ------------------------------------------------------------------------------------------- */

/* The object leaves the handle for good; whoever calls this is the only one who can. What hangs on the handle (the hooks
 * of a context, say) must outlive the object: it stays until the handle is collected, and the handle until the object is
 * gone. A handle that is being collected gives both away together. */
static void give_up(handle *h, bool collected)
{
    struct grave *grave = h->grave;
    h->grave = NULL;
    if (!collected) enif_keep_resource(h);
    *grave = (struct grave){.destroy = rows[h->kind].destroy,
                            .object = h->object,
                            .extra = collected ? h->extra : NULL,
                            .self = collected ? NULL : h,
                            .context = h->context};
    bury(grave);
}

static void collect(ErlNifEnv *env, void *resource)
{
    (void)env;
    handle *h = resource;
    if (h->grave)
        give_up(h, true);
    else if (h->extra)
        enif_free(h->extra);
}

static void owner_down(ErlNifEnv *env, void *resource, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)pid, (void)monitor;
    training_stop(resource);
}

bool handles_open(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    for (int k = 0; k < KINDS; k++) {
        ErlNifResourceTypeInit init = {.dtor = collect, .down = k == TRAINING ? owner_down : NULL};
        ErlNifResourceFlags tried;
        types[k] = enif_open_resource_type_x(env, rows[k].name, &init, flags, &tried);
        if (!types[k]) return false;
    }
    return reaper_start();
}

handle *handle_of(ErlNifEnv *env, ERL_NIF_TERM term, enum kind kind)
{
    void *resource;
    return enif_get_resource(env, term, types[kind], &resource) ? resource : NULL;
}

int monitor_owner(handle *training, ErlNifEnv *env, const ErlNifPid *owner)
{
    return enif_monitor_process(env, training, owner, NULL);
}

static bool enter(call *c, handle *h)
{
    const struct kind_row *row = &rows[h->kind];
    uint32_t state = atomic_load_explicit(&h->state, memory_order_relaxed);
    do {
        if (state & CLOSED) return fail(c, EXPHIL_E_STATE, "%s is closed", row->name);
        if (state && !row->shared)
            return fail(c, EXPHIL_E_BUSY, "%s is in use by another process", row->name);
    } while (!atomic_compare_exchange_weak_explicit(&h->state, &state, state + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

void leave(handle *h)
{
    if (atomic_fetch_sub_explicit(&h->state, 1, memory_order_acq_rel) == (CLOSED | 1)) give_up(h, false);
}

handle *hold(call *c, ERL_NIF_TERM term, enum kind kind)
{
    if (failed(c)) return NULL;
    handle *h = handle_of(c->env, term, kind);
    if (!h) fail(c, EXPHIL_E_INVALID, "not a handle of a %s", rows[kind].name);
    if (!h || !enter(c, h)) return NULL;
    c->held[c->held_count++] = h;
    return h;
}

void give_back(handle *h)
{
    leave(h);
    enif_release_resource(h);
}

ERL_NIF_TERM make_handle(call *c, enum kind kind, void *object, void *extra, handle *relative)
{
    if (failed(c)) return 0;
    struct grave *grave = enif_alloc(sizeof *grave);
    handle *h = grave ? enif_alloc_resource(types[kind], sizeof *h) : NULL;
    if (!h) {
        if (grave) enif_free(grave);
        rows[kind].destroy(object);
        if (extra) enif_free(extra);
        fail(c, EXPHIL_E_MEMORY, "could not make a handle");
        return 0;
    }
    handle *context = relative && relative->kind != CONTEXT ? relative->context : relative;
    if (context) enif_keep_resource(context);
    *h = (handle){0, (int32_t)kind, object, extra, context, grave};
    ERL_NIF_TERM term = enif_make_resource(c->env, h);
    enif_release_resource(h);
    return term;
}

/* Any handle but a training, which is cancelled instead. Whoever is inside finishes first. */
NIF(nif_close)
{
    (void)argc;
    for (int k = 0; k < KINDS; k++) {
        handle *h = handle_of(env, argv[0], (enum kind)k);
        if (!h) continue;
        if (k == TRAINING)
            training_stop(h);
        else if (atomic_fetch_or_explicit(&h->state, CLOSED, memory_order_acq_rel) == 0)
            give_up(h, false);
        return atom_ok;
    }
    return enif_make_badarg(env);
}
