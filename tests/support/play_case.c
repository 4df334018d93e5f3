/* Models, frames and the reference for the tests of sessions. */
#include "play_case.h"

#include <stdlib.h>

void play_shake(exphil_model *model, const char *tensor, double shake, uint64_t seed)
{
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
        if (strcmp(info.name, tensor) != 0) continue;
        bool wide = info.type == EXPHIL_TYPE_F64;
        void *data = malloc(info.size_bytes);
        assert_ok(exphil_model_tensor_get(model, tensor, data, info.size_bytes, NULL));
        for (size_t k = 0; k < info.size_bytes / (wide ? 8 : 4); k++) {
            float more = (float)model_case_uniform(&rng, -shake, shake);
            if (wide)
                ((double *)data)[k] += (double)more;
            else
                ((float *)data)[k] += more;
        }
        assert_ok(exphil_model_tensor_set(model, tensor, data, info.size_bytes, NULL));
        free(data);
        return;
    }
    fail_msg("no tensor %s", tensor);
}

/* New models repeat their last action; these should have a will of their own. */
static void forget_repeating(exphil_model *model)
{
    static const char *const names[] = {"heads.past.weight", "heads.logits.bias"};
    for (int i = 0; i < 2; i++) {
        exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
        for (int64_t k = 0; exphil_model_tensor_info(model, k, &info, NULL) == EXPHIL_OK; k++) {
            if (strcmp(info.name, names[i]) != 0) continue;
            void *zero = calloc(1, info.size_bytes);
            assert_non_null(zero);
            assert_int_equal(exphil_model_tensor_set(model, names[i], zero, info.size_bytes, NULL),
                             EXPHIL_OK);
            free(zero);
        }
    }
}

exphil_model *play_model(exphil_context *context, const exphil_model_config *config, double shake)
{
    exphil_model *model = model_case_create(context, config);
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    forget_repeating(model);
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++)
        play_shake(model, info.name, shake, 1000 + (uint64_t)i);
    return model;
}

exphil_session *play_session(const exphil_model *model, const exphil_session_config *config)
{
    exphil_session *session = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_session_create(model, config, &session, &error) < 0) fail_msg("no session: %s", error.message);
    return session;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void *zeroed(int64_t count, size_t element)
{
    void *memory = calloc((size_t)count + 1, element);
    assert_non_null(memory);
    return memory;
}

play_frames *play_frames_make(const exphil_model *model, int64_t streams, int64_t frames, uint64_t seed)
{
    const exphil_spec *spec = xph_model_spec(model);
    const xph_model_shape *shape = xph_model_shape_of(model);
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    play_frames *made = zeroed(1, sizeof *made);
    int64_t rows = streams * frames;
    *made = (play_frames){streams,       frames, shape->floats, shape->ids, shape->heads,
                          shape->logits, NULL,   NULL,          NULL};
    made->floats = zeroed(rows * shape->floats, sizeof(float));
    made->ids = zeroed(rows * shape->ids, sizeof(int32_t));
    made->noise = zeroed(rows * shape->logits, sizeof(float));
    for (int64_t i = 0; i < rows * shape->floats; i++)
        made->floats[i] = (float)model_case_uniform(&rng, -1.5, 1.5);
    for (int64_t i = 0; i < rows * shape->ids; i++)
        made->ids[i] = (int32_t)xph_rng_below(&rng, (uint64_t)spec->ids[i % shape->ids].entries);
    for (int64_t i = 0; i < rows * shape->logits; i++) made->noise[i] = xph_rng_float(&rng);
    return made;
}

void play_frames_free(play_frames *frames)
{
    if (!frames) return;
    free(frames->floats);
    free(frames->ids);
    free(frames->noise);
    free(frames);
}

void play_step(exphil_session *session, const play_frames *frames, int64_t t, bool own, int32_t *actions)
{
    int64_t row = t % frames->frames * frames->streams;
    exphil_status status = exphil_session_step_row(
        session, frames->floats + row * frames->float_count, frames->ids + row * frames->id_count,
        own ? NULL : frames->noise + row * frames->logits, actions);
    exphil_error error = EXPHIL_ERROR_INIT;
    if (status == EXPHIL_OK) return;
    (void)exphil_session_error(session, &error);
    fail_msg("frame %lld: %s", (long long)t, error.message);
}

void play_logits(const exphil_session *session, const play_frames *frames, float *logits)
{
    for (int64_t b = 0; b < frames->streams; b++)
        assert_ok(exphil_session_logits(session, b, logits + b * frames->logits, frames->logits));
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

/* The frames of one stream [T] with the past actions as the queue held them, as a net wants them. */
typedef struct lane {
    float *floats;
    int32_t *ids, *past, *actions;
    uint8_t *reset;
} lane;

static void fill_past(const exphil_model *model, const play_frames *f, const int32_t *queue,
                      const uint8_t *reset, int64_t b, int64_t t, int32_t *past)
{
    const exphil_spec *spec = xph_model_spec(model);
    bool begun = reset[t * f->streams + b];
    for (int64_t s = 0; s < xph_model_shape_of(model)->slots; s++) {
        int64_t from = t - 1 - s; /* decided on that frame, in the same episode */
        begun = begun || from < 0;
        for (int64_t h = 0; h < f->heads; h++)
            past[s * f->heads + h] =
                begun ? spec->heads[h].neutral : queue[(from * f->streams + b) * f->heads + h];
        begun = begun || reset[from * f->streams + b];
    }
}

static lane lane_make(const exphil_model *model, const play_frames *f, const int32_t *decided,
                      const uint8_t *reset, const int32_t *queue, int64_t b)
{
    int64_t slots = xph_model_shape_of(model)->slots * f->heads;
    lane l = {zeroed(f->frames * f->float_count, 4), zeroed(f->frames * f->id_count, 4),
              zeroed(f->frames * slots, 4), zeroed(f->frames * f->heads, 4), zeroed(f->frames, 1)};
    for (int64_t t = 0; t < f->frames; t++) {
        int64_t row = t * f->streams + b;
        memcpy(l.floats + t * f->float_count, f->floats + row * f->float_count, (size_t)f->float_count * 4);
        memcpy(l.ids + t * f->id_count, f->ids + row * f->id_count, (size_t)f->id_count * 4);
        memcpy(l.actions + t * f->heads, decided + row * f->heads, (size_t)f->heads * 4);
        l.reset[t] = t == 0 || reset[row];
        fill_past(model, f, queue, reset, b, t, l.past + t * slots);
    }
    return l;
}

static void lane_free(lane *l)
{
    free(l->floats);
    free(l->ids);
    free(l->past);
    free(l->actions);
    free(l->reset);
}

/* Frames [first, first + time) of a lane from a zero state; logits of all of them. */
static void forward(exphil_model *model, const lane *l, int64_t first, int64_t time, double *logits)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    xph_net *net = NULL;
    const void *packed = NULL;
    assert_ok(xph_model_packed(model, &packed, NULL));
    assert_ok(xph_net_create(model, 1, time, XPH_NET_PLAIN, &net, NULL));
    xph_net_io io = {.floats = l->floats + first * shape->floats,
                     .ids = l->ids + first * shape->ids,
                     .past = l->past + first * shape->slots * shape->heads,
                     .actions = l->actions + first * shape->heads,
                     .reset = l->reset + first};
    assert_ok(xph_net_forward(net, xph_model_weights(model), packed, &io));
    for (int64_t i = 0; i < time * shape->logits; i++)
        logits[i] = shape->type == XPH_F64 ? ((const double *)xph_net_logits(net))[i]
                                           : (double)((const float *)xph_net_logits(net))[i];
    xph_net_destroy(net);
}

/* The windows that end at each frame, none beyond the start of its episode. */
static void windows(exphil_model *model, const lane *l, int64_t frames, double *logits)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    double *window = zeroed(shape->window * shape->logits, sizeof *window);
    for (int64_t t = 0; t < frames; t++) {
        int64_t first = t;
        while (first > 0 && t - first + 1 < shape->window && !l->reset[first]) first--;
        forward(model, l, first, t - first + 1, window);
        memcpy(logits + t * shape->logits, window + (t - first) * shape->logits,
               (size_t)shape->logits * sizeof *logits);
    }
    free(window);
}

void play_reference(exphil_model *model, const play_frames *frames, const int32_t *decided,
                    const uint8_t *reset, const int32_t *override, double *logits)
{
    double *of_lane = zeroed(frames->frames * frames->logits, sizeof *of_lane);
    for (int64_t b = 0; b < frames->streams; b++) {
        lane l = lane_make(model, frames, decided, reset, override ? override : decided, b);
        if (xph_model_shape_of(model)->mode == EXPHIL_MODE_WINDOW)
            windows(model, &l, frames->frames, of_lane);
        else
            forward(model, &l, 0, frames->frames, of_lane);
        for (int64_t t = 0; t < frames->frames; t++)
            memcpy(logits + (t * frames->streams + b) * frames->logits, of_lane + t * frames->logits,
                   (size_t)frames->logits * sizeof *logits);
        lane_free(&l);
    }
    free(of_lane);
}

const int32_t play_neutral[PLAY_HEADS] = {0, 2, 0};

play_pair play_pair_make(const char *blocks, int32_t delay, exphil_session_config a, exphil_session_config b,
                         int64_t frames)
{
    play_pair p = {.context = test_context(NULL, NULL, 1)};
    bool end = blocks[1] == ':';
    exphil_model_config config = model_case_config(end ? blocks + 2 : blocks, EXPHIL_TYPE_F32);
    config.delay_frames = delay;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    if (end) model_case_end(&config, blocks[0] - '0');
    p.model = play_model(p.context, &config, 0.2);
    p.a = play_session(p.model, &a);
    p.b = play_session(p.model, &b);
    p.f = play_frames_make(p.model, a.streams ? a.streams : 1, frames, 11);
    return p;
}

void play_pair_free(play_pair *p)
{
    play_frames_free(p->f);
    exphil_session_destroy(p->a);
    exphil_session_destroy(p->b);
    exphil_model_destroy(p->model);
    exphil_context_destroy(p->context);
}

bool play_same_run(play_pair *p, int64_t frames, bool own)
{
    bool same = true;
    for (int64_t t = 0; t < frames; t++) {
        int32_t a[PLAY_STREAMS * PLAY_HEADS], b[PLAY_STREAMS * PLAY_HEADS];
        play_step(p->a, p->f, t, own, a);
        play_step(p->b, p->f, t, own, b);
        same &= memcmp(a, b, (size_t)(p->f->streams * PLAY_HEADS) * sizeof *a) == 0;
    }
    return same;
}

void play_says(const exphil_session *session, exphil_status status, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_session_error(session, &error), status);
    assert_int_equal(error.status, status);
    assert_says(&error, words);
}
