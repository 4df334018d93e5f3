/* Serving one case to a driver: see serve.h. */
#include "serve.h"
#include "cells.h"
#include "frames.h"
#include "kernels.h"
#include "step.h"
#include "system.h"
#include "train.h"

#include "base/base.h"
#include "device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct served {
    const bench_options *options;
    const char *folder;
    json_t *json; /* of case.json */
    json_t *arrays;
    bench_work work;
    bench_cell cell;
    bench_player player;
    bench_trainer trainer;
    xph_adam_args adam;
    xph_norm_args norm;
    exphil_context *context;
    xph_stream *stream;
    const xph_kernel *kernel;
    const void *args;
} served;

/* ---- what a peer must know -------------------------------------------------------------------------------- */

static bool put(served *s, const char *name, const void *data, const char *type, int64_t rows,
                int64_t columns)
{
    char path[4096];
    size_t bytes = (size_t)(rows * columns) * 4;
    snprintf(path, sizeof path, "%s/%s.bin", s->folder, name);
    FILE *f = system_open(path, "wb");
    bool good = f && fwrite(data, 1, bytes, f) == bytes;
    if (f && fclose(f) != 0) good = false;
    if (!good) perror(path);
    json_object_set_new(
        s->arrays, name,
        json_pack("{s:s,s:[I,I]}", "type", type, "shape", (json_int_t)rows, (json_int_t)columns));
    return good;
}

static bool put_floats(served *s, const char *name, const float *data, int64_t rows, int64_t columns)
{
    return put(s, name, data, "f32", rows, columns);
}

/* The weights, in the types of the model. */
static bool put_model(const served *s, const exphil_model *model)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", s->folder);
    return exphil_model_save(model, path, NULL) >= 0;
}

static bool finish_case(served *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/case.json", s->folder);
    return bench_write_json(s->json, path, JSON_INDENT(1));
}

/* ---- cells ------------------------------------------------------------------------------------------------ */

static bool named(const char *word, const char *const *names, int count, int *which)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0) {
            *which = i;
            return true;
        }
    fprintf(stderr, "exphil: bench serve: unknown word %s\n", word);
    return false;
}

static bool serve_cell(served *s, char **words)
{
    static const char *const kinds[] = {"lstm", "gru", "mlp"}, *const names[] = {"f32", "bf16", "int8"};
    static const xph_type weights[] = {XPH_F32, XPH_BF16, XPH_I8};
    bench_cell *c = &s->cell;
    int kind, type;
    if (!named(words[0], kinds, 3, &kind) || !named(words[3], names, 3, &type)) return false;
    if (!bench_cell_make(c, kind, atoll(words[1]), atoll(words[2]), 1, weights[type], s->options->isa))
        return false;
    int64_t out = bench_cell_gates(kind) * c->hidden, state = c->hidden * (kind == CELL_LSTM ? 2 : 1);
    bool good = put_floats(s, "w_in", c->w_in, out, c->in) && put_floats(s, "b_in", c->b_in, 1, out) &&
                put_floats(s, "w_out", c->w_out, out, c->hidden) &&
                put_floats(s, "b_out", c->b_out, 1, out) && put_floats(s, "gain", c->gain, 1, c->hidden) &&
                put_floats(s, "shift", c->shift, 1, c->hidden) && put_floats(s, "x", c->x, 1, c->in) &&
                put_floats(s, "state", c->state, 1, state);
    bench_cell_step(c, 1);
    json_object_set_new(s->json, "kind", json_string(kinds[kind]));
    json_object_set_new(s->json, "weight_bytes", json_integer((json_int_t)c->weight_bytes));
    s->work = (bench_work){.run = bench_cell_step, .arg = c};
    return good && put_floats(s, "y", c->y, 1, c->hidden);
}

/* ---- decisions ---------------------------------------------------------------------------------------------- */

/* The row that the first frame becomes: floats, then the neutral action as past action. */
static bool put_row(served *s, const bench_player *p)
{
    float row[1024] = {0};
    int32_t ids[EXPHIL_IDS_MAX];
    exphil_spec spec = EXPHIL_SPEC_INIT;
    if (exphil_model_spec(p->model, &spec, NULL) < 0 ||
        exphil_melee_encode(spec.layout, p->frames, row, ids, NULL) < 0)
        return false;
    int64_t width = spec.float_count;
    for (int64_t h = 0; h < spec.head_count; h++) {
        const exphil_head_spec *head = &spec.heads[h];
        for (int32_t i = 0; i < head->count; i++)
            row[width + i] = head->kind == EXPHIL_CATEGORICAL ? (float)(head->neutral == i)
                                                              : (float)(head->neutral >> i & 1);
        width += head->count;
    }
    return put_floats(s, "row", row, 1, width);
}

static bool serve_decision(served *s, char **words)
{
    static const char *const names[] = {"f32", "bf16", "int8"};
    static const int32_t types[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
    bench_policy policy = {.name = words[0], .blocks = words[0], .hidden = atoll(words[1])};
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    bench_player *p = &s->player;
    float logits[256];
    bool absent;
    int type;
    if (!named(words[2], names, 3, &type)) return false;
    /* peers get the weights in float, whatever ours become */
    if (!bench_player_make(p, &policy, EXPHIL_TYPE_F32, 1, s->options->isa, &absent)) return false;
    if (!put_model(s, p->model)) return false;
    bench_player_end(p);
    if (!bench_player_make(p, &policy, types[type], 1, s->options->isa, &absent)) return false;
    bench_player_step(p, 1);
    if (exphil_session_query(p->session, &info, NULL) < 0 || info.logit_count > 256 ||
        exphil_session_logits(p->session, 0, logits, info.logit_count) < 0)
        return false;
    json_object_set_new(s->json, "blocks", json_string(policy.blocks));
    json_object_set_new(s->json, "hidden", json_integer(policy.hidden));
    s->work = (bench_work){.run = bench_player_step, .arg = p};
    return put_row(s, p) && put_floats(s, "logits", logits, 1, info.logit_count);
}

/* ---- updates ------------------------------------------------------------------------------------------------ */

enum { LOSSES = 4 };

static bool serve_update(served *s, char **words)
{
    const bench_workload *w = NULL;
    bench_trainer *t = &s->trainer;
    float losses[LOSSES];
    for (int i = 0; i < BENCH_WORKLOADS; i++)
        if (strcmp(bench_workloads[i].name, words[0]) == 0) w = &bench_workloads[i];
    if (!w) {
        fprintf(stderr, "exphil: bench serve: unknown update %s\n", words[0]);
        return false;
    }
    int threads = atoi(words[1]);
    if (threads > 1) bench_roam();
    if (!bench_trainer_make(t, w, threads, s->options)) return false;
    if (!put_model(s, t->model)) return false;
    int64_t rows = w->batch * w->time;
    bool good = put_floats(s, "floats", t->batch.floats, rows, 288) &&
                put(s, "actions", t->batch.actions, "i32", rows, t->heads);
    for (int i = 0; i < LOSSES; i++) {
        bench_trainer_update(t, 1);
        losses[i] = (float)t->loss;
    }
    json_object_set_new(s->json, "blocks", json_string(w->blocks));
    json_object_set_new(s->json, "hidden", json_integer(w->hidden));
    json_object_set_new(s->json, "batch", json_integer(w->batch));
    json_object_set_new(s->json, "time", json_integer(w->time));
    json_object_set_new(s->json, "flop", json_real(t->flop));
    s->work = (bench_work){.run = bench_trainer_update, .arg = t};
    return good && !t->failed && put_floats(s, "losses", losses, 1, LOSSES);
}

/* ---- single operations --------------------------------------------------------------------------------------- */

static void run_operation(void *arg, int64_t calls)
{
    const served *s = arg;
    for (int64_t i = 0; i < calls; i++) (void)s->stream->device->backend->run(s->stream, s->kernel, s->args);
}

static bool open_operation(served *s, xph_op op, void *args)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.cpu_isa = s->options->isa;
    if (exphil_context_create(&config, &s->context, &error) < 0) {
        fprintf(stderr, "exphil: bench serve: %s\n", error.message);
        return false;
    }
    xph_device *device = xph_context_backend(s->context);
    s->args = args;
    s->work = (bench_work){.run = run_operation, .arg = s};
    return xph_choose_kernel(device, op, args, &s->kernel) >= 0 &&
           device->backend->stream_create(device, XPH_STREAM_INLINE, &s->stream) >= 0;
}

/* The first update of a run, as torch counts: corrections of step 1 in what is compared, of no step in what is timed. */
static bool serve_adam(served *s, char **words)
{
    int64_t count = atoll(words[0]);
    size_t n = (size_t)count;
    xph_adam_args *a = &s->adam;
    bench_seed(13);
    *a = (xph_adam_args){.type = XPH_F32, .count = count, .decay_count = count, .grad_scale = 1};
    float *p = bench_floats(n, 0.1f);
    a->p = p;
    a->grad = bench_floats(n, 1e-2f);
    a->m = bench_memory(n * sizeof(float));
    a->v = bench_memory(n * sizeof(float));
    a->rate = 1e-3, a->beta1 = 0.9, a->beta2 = 0.999, a->epsilon = 1e-8, a->decay = 0.01;
    a->correction1 = 1 - a->beta1, a->correction2 = 1 - a->beta2;
    if (!put_floats(s, "p", p, 1, count) || !put_floats(s, "grad", a->grad, 1, count)) return false;
    if (!open_operation(s, XPH_OP_ADAM, a)) return false;
    run_operation(s, 1);
    return put_floats(s, "p_after", p, 1, count);
}

static bool serve_norm(served *s, char **words)
{
    int64_t rows = atoll(words[0]), width = atoll(words[1]);
    xph_norm_args *a = &s->norm;
    bench_seed(17);
    bench_give_norm(a, rows, width);
    a->saved = bench_memory((size_t)(2 * rows) * sizeof(float));
    if (!open_operation(s, XPH_OP_NORM, a)) return false;
    run_operation(s, 1);
    return put_floats(s, "x", a->x, rows, width) && put_floats(s, "gain", a->gain, 1, width) &&
           put_floats(s, "shift", a->shift, 1, width) && put_floats(s, "y", a->y, rows, width);
}

/* ---- the conversation ---------------------------------------------------------------------------------------- */

static bool one_round(served *s, int64_t calls, int64_t pause)
{
    s->work.calls = 1;
    s->work.count = 0;
    bench_effort effort = {.rounds = 1, .pause_ns = pause, .round_calls = calls};
    if (!bench_measure(&s->work, 1, &effort)) return false;
    printf("{\"ns\":[");
    for (size_t i = 0; i < s->work.count; i++) printf("%s%.0f", i ? "," : "", s->work.sample[i]);
    printf("]}\n");
    return fflush(stdout) == 0;
}

static int converse(served *s)
{
    char line[128];
    int64_t calls, pause;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "quit", 4) == 0) break;
        if (sscanf(line, "run %" SCNd64, &calls) == 1) {
            s->work.run(s->work.arg, calls);
            printf("{\"ran\":%" PRId64 "}\n", calls);
            fflush(stdout);
            continue;
        }
        if (sscanf(line, "round %" SCNd64 " %" SCNd64, &calls, &pause) != 2 || calls < 1) {
            fprintf(stderr, "exphil: bench serve: not understood: %s", line);
            return 1;
        }
        if (!one_round(s, calls, pause)) return 1;
    }
    return 0;
}

static void release(served *s)
{
    bench_cell_end(&s->cell);
    bench_player_end(&s->player);
    bench_trainer_end(&s->trainer);
    if (s->stream) s->stream->device->backend->stream_destroy(s->stream);
    exphil_context_destroy(s->context);
    bench_work_free(&s->work);
    json_decref(s->json);
}

int bench_serve(const bench_options *options, int count, char **words)
{
    static const struct {
        const char *name;
        int words;
        bool (*make)(served *s, char **words);
    } cases[] = {{"cell", 4, serve_cell},
                 {"decision", 3, serve_decision},
                 {"update", 2, serve_update},
                 {"adam", 1, serve_adam},
                 {"norm", 2, serve_norm}};
    served s = {.options = options, .folder = options->folder, .arrays = json_object()};
    s.json = json_pack("{s:o}", "arrays", s.arrays);
    int status = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && count > 0 && s.folder; i++) {
        if (strcmp(words[0], cases[i].name) != 0 || count != 1 + cases[i].words) continue;
        json_object_set_new(s.json, "case", json_string(words[0]));
        status = cases[i].make(&s, words + 1) && finish_case(&s) ? converse(&s) : 1;
    }
    if (status == 2) fprintf(stderr, "exphil: bench serve wants --folder and a case; see bench/serve.h\n");
    release(&s);
    return status;
}
