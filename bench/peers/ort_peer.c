/* ONNX Runtime as a peer, through its C interface: runs a graph with its state fed back. The interface is a
 * table of functions that only grows at its end (onnxruntime_c_api.h, struct OrtApi), so that the few entries
 * used here are valid in every version; the Python package, which brings the library, installs no header.
 *
 *   ort_peer LIBRARY GRAPH FOLDER TENSOR...
 * TENSOR is in:NAME:DIMS, out:NAME:DIMS or out:NAME:DIMS:INPUT (fed back to that input), DIMS like 1x288, or 1x288i of int64.
 * Inputs are read from FOLDER/NAME.bin; the outputs of the first run go to FOLDER/onnxruntime.NAME.bin. */
#define _GNU_SOURCE
#include "peer.h"

#include <dlfcn.h>

typedef struct ort_base {
    const void *const *(*get_api)(uint32_t version);
    const char *(*version)(void);
} ort_base;

/* Places in the table. */
enum {
    ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_OPTIONS = 10,
    SET_OPTIMIZATION = 23,
    SET_INTRA_THREADS = 24,
    SET_INTER_THREADS = 25,
    CREATE_TENSOR = 49,
    CREATE_MEMORY_INFO = 69
};
enum { LOG_ERROR = 3, OPTIMIZE_ALL = 99, FLOAT = 1, INT64 = 7, DEVICE_ALLOCATOR = 0, MEMORY_DEFAULT = 0 };

typedef struct tensor {
    char name[64], feeds[64];
    int64_t dim[4];
    size_t dims, count; /* count: of numbers of four bytes */
    int type;
    float *data[2]; /* outputs that are fed back: written and read in turn */
    void *value[2];
} tensor;

enum { MOST = 32 };

typedef struct peer {
    const void *const *api;
    void *session;
    tensor in[MOST], out[MOST];
    size_t ins, outs;
    const char *in_name[MOST], *out_name[MOST];
    const void *in_value[2][MOST];
    void *out_value[2][MOST];
    int turn;
} peer;

static void check(const peer *p, void *status)
{
    if (!status) return;
    const char *(*message)(const void *) = (const char *(*)(const void *))(uintptr_t)p->api[ERROR_MESSAGE];
    peer_fail(message(status));
}

static void run(void *arg)
{
    peer *p = arg;
    typedef void *(*run_fn)(void *session, const void *options, const char *const *in_names,
                            const void *const *in, size_t ins, const char *const *out_names, size_t outs,
                            void **out);
    run_fn go = (run_fn)(uintptr_t)p->api[RUN];
    check(p, go(p->session, NULL, p->in_name, p->in_value[p->turn], p->ins, p->out_name, p->outs,
                p->out_value[p->turn]));
    p->turn = !p->turn;
}

static void open_session(peer *p, const char *library, const char *graph)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *env = NULL, *options = NULL;
    if (!handle) peer_fail(dlerror());
    const ort_base *(*get_base)(void) = (const ort_base *(*)(void))(uintptr_t)dlsym(handle, "OrtGetApiBase");
    if (!get_base) peer_fail("no OrtGetApiBase");
    p->api = get_base()->get_api(13);
    if (!p->api) peer_fail("no interface of version 13");
    fprintf(stderr, "version %s\n", get_base()->version());
    check(p,
          ((void *(*)(int, const char *, void **))(uintptr_t)p->api[CREATE_ENV])(LOG_ERROR, "bench", &env));
    check(p, ((void *(*)(void **))(uintptr_t)p->api[CREATE_OPTIONS])(&options));
    check(p, ((void *(*)(void *, int))(uintptr_t)p->api[SET_OPTIMIZATION])(options, OPTIMIZE_ALL));
    check(p, ((void *(*)(void *, int))(uintptr_t)p->api[SET_INTRA_THREADS])(options, 1));
    check(p, ((void *(*)(void *, int))(uintptr_t)p->api[SET_INTER_THREADS])(options, 1));
    check(p, ((void *(*)(const void *, const char *, const void *, void **))(
                  uintptr_t)p->api[CREATE_SESSION])(env, graph, options, &p->session));
}

static void parse(tensor *t, char *text)
{
    char *name = strtok(text, ":"), *dims = strtok(NULL, ":"), *feeds = strtok(NULL, ":");
    if (!name || !dims) peer_fail("a tensor is in|out:NAME:DIMS[:INPUT]");
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->feeds, sizeof t->feeds, "%s", feeds ? feeds : "");
    t->type = dims[strlen(dims) - 1] == 'i' ? INT64 : FLOAT;
    t->count = t->type == INT64 ? 2 : 1;
    for (char *d = strtok(dims, "x"); d && t->dims < 4; d = strtok(NULL, "x")) {
        t->dim[t->dims] = atoll(d);
        t->count *= (size_t)t->dim[t->dims++];
    }
}

static void *make_value(const peer *p, void *info, const tensor *t, float *data)
{
    void *value = NULL;
    typedef void *(*make_fn)(const void *info, void *data, size_t bytes, const int64_t *shape, size_t dims,
                             int type, void **value);
    check(p, ((make_fn)(uintptr_t)p->api[CREATE_TENSOR])(info, data, t->count * sizeof *data, t->dim, t->dims,
                                                         t->type, &value));
    return value;
}

/* Outputs that feed an input change places with it each turn, so that nothing is copied. */
static void connect(peer *p, void *info, const char *folder)
{
    for (size_t i = 0; i < p->ins; i++) {
        tensor *t = &p->in[i];
        t->data[0] = peer_load(folder, t->name, t->count);
        t->value[0] = t->value[1] = make_value(p, info, t, t->data[0]);
        p->in_name[i] = t->name;
        p->in_value[0][i] = p->in_value[1][i] = t->value[0];
    }
    for (size_t o = 0; o < p->outs; o++) {
        tensor *t = &p->out[o];
        t->data[0] = peer_memory(t->count * sizeof(float));
        t->value[0] = make_value(p, info, t, t->data[0]);
        p->out_name[o] = t->name;
        p->out_value[0][o] = p->out_value[1][o] = t->value[0];
        for (size_t i = 0; i < p->ins; i++) {
            if (strcmp(t->feeds, p->in[i].name) != 0) continue;
            p->in_value[1][i] = t->value[0];
            p->out_value[1][o] = p->in[i].value[0];
        }
    }
}

int main(int argc, char **argv)
{
    static peer p;
    void *info = NULL;
    if (argc < 6) peer_fail("usage: ort_peer LIBRARY GRAPH FOLDER TENSOR...");
    for (int i = 4; i < argc; i++) {
        int is_in = strncmp(argv[i], "in:", 3) == 0;
        size_t *count = is_in ? &p.ins : &p.outs;
        if (*count == MOST) peer_fail("too many tensors");
        parse(is_in ? &p.in[*count] : &p.out[*count], strchr(argv[i], ':') + 1);
        ++*count;
    }
    open_session(&p, argv[1], argv[2]);
    check(&p, ((void *(*)(int, int, void **))(uintptr_t)p.api[CREATE_MEMORY_INFO])(DEVICE_ALLOCATOR,
                                                                                   MEMORY_DEFAULT, &info));
    connect(&p, info, argv[3]);
    run(&p);
    for (size_t o = 0; o < p.outs; o++) {
        char name[96];
        snprintf(name, sizeof name, "onnxruntime.%s", p.out[o].name);
        peer_save(argv[3], name, p.out[o].data[0], p.out[o].count);
    }
    peer_converse(run, &p);
    return 0;
}
