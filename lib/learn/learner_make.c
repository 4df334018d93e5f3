/* A learner is made: its configuration, what its trainer and its teacher must be, and the memory that the first chunk gives a
 * shape. */
#include "learn/loss.h"
#include "learn/returns.h"

/* ---- configuration ------------------------------------------------------------------------------------------------- */

typedef struct limit {
    const char *name;
    double *value, usual, low, high;
} limit;

static exphil_status take_numbers(exphil_learner_config *c, exphil_error *error)
{
    const limit limits[] = {
        {"clip", &c->clip, 0.2, 1e-6, 10.0},
        {"value", &c->value, 0.5, 0.0, 1e6},
        {"to_old", &c->to_old, 0.0, 0.0, 1e6},
        {"to_teacher", &c->to_teacher, 0.0, 0.0, 1e6},
        {"from_teacher", &c->from_teacher, 0.0, 0.0, 1e6},
        {"entropy", &c->entropy, 0.0, 0.0, 1e6},
        {"imitation", &c->imitation, 0.0, 0.0, 1e6},
        {"half_life_frames", &c->half_life_frames, 240.0, 0.01, 1e9},
        {"lambda", &c->lambda, 0.95, 0.0, 1.0},
        {"most_kl", &c->most_kl, XPH_KL_NEVER, 0.0, XPH_KL_NEVER},
        {"reward_scale", &c->reward_scale, 1.0, 1e-9, 1e9},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const limit *l = &limits[i];
        if (*l->value == 0.0) *l->value = l->usual;
        if (!(*l->value >= l->low && *l->value <= l->high))
            return xph_fail(error, EXPHIL_E_INVALID,
                            "learner config: %s is %g, must be %g..%g, or 0 for the default", l->name,
                            *l->value, l->low, l->high);
    }
    if (!(c->surrogate >= -1e6 && c->surrogate <= 1e6))
        return xph_fail(error, EXPHIL_E_INVALID, "learner config: surrogate is %g", c->surrogate);
    c->surrogate = c->surrogate == 0.0 ? 1.0 : c->surrogate < 0.0 ? 0.0 : c->surrogate;
    return EXPHIL_OK;
}

static exphil_status take_counts(exphil_learner_config *c, exphil_error *error)
{
    const char *bad = c->epochs < 0 || c->epochs > 1000       ? "epochs"
                      : c->batches < 0 || c->batches > 4096   ? "batches"
                      : c->burn_in < 0 || c->burn_in > 4095   ? "burn_in"
                      : c->value_only < 0                     ? "value_only"
                      : c->normalise < -1 || c->normalise > 1 ? "normalise"
                      : c->reserved                           ? "reserved"
                                                              : NULL;
    if (bad) return xph_fail(error, EXPHIL_E_INVALID, "learner config: %s is out of range", bad);
    if (!c->epochs) c->epochs = 4;
    if (!c->batches) c->batches = 4;
    return EXPHIL_OK;
}

static exphil_status check_teacher(const exphil_model *model, const exphil_model *teacher,
                                   const exphil_learner_config *config, exphil_error *error)
{
    const xph_model_shape *own = xph_model_shape_of(model);
    if (!teacher && (config->to_teacher > 0.0 || config->from_teacher > 0.0))
        return xph_fail(error, EXPHIL_E_INVALID, "learner config: %s wants a teacher",
                        config->to_teacher > 0.0 ? "to_teacher" : "from_teacher");
    if (!teacher) return EXPHIL_OK;
    const xph_model_shape *other = xph_model_shape_of(teacher);
    if (xph_model_context(teacher) != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "teacher and trainer are of different contexts");
    const char *differs = other->spec_hash != own->spec_hash ? "spec"
                          : other->delay != own->delay       ? "delay_frames"
                          : other->slots != own->slots       ? "past actions"
                          : other->mode != own->mode         ? "mode"
                          : other->told                      ? "conditions"
                          : other->type != own->type         ? "type"
                                                             : NULL;
    if (differs) return xph_fail(error, EXPHIL_E_MISMATCH, "the teacher's %s is not the policy's", differs);
    return EXPHIL_OK;
}

static exphil_status check_trainer(const exphil_trainer *trainer, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    if (!shape->value) return xph_fail(error, EXPHIL_E_INVALID, "learner: the model has no value head");
    XPH_TRY(xph_split_possible(trainer, error));
    if (trainer->communicator.all_reduce)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "learner: the trainer has a communicator");
    if (trainer->prefetcher)
        return xph_fail(error, EXPHIL_E_INVALID, "learner: the trainer has a prefetcher of its own");
    if (shape->mode == EXPHIL_MODE_WINDOW || shape->told || shape->type != XPH_F32)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "learner: a model %s",
                        shape->told              ? "with conditions or several delays"
                        : shape->type != XPH_F32 ? "of doubles"
                                                 : "in window mode");
    return EXPHIL_OK;
}

/* AdamW takes a share of every weight, also of those that no gradient comes to. */
static exphil_status check_decay(const exphil_trainer *trainer, const exphil_learner_config *c,
                                 exphil_error *error)
{
    const bool never = c->surrogate == 0.0 && c->to_old == 0.0 && c->to_teacher == 0.0 &&
                       c->from_teacher == 0.0 && c->entropy == 0.0 && c->imitation == 0.0;
    if (trainer->optimizer->config.decay == 0.0 || (!never && !c->value_only)) return EXPHIL_OK;
    return xph_fail(
        error, EXPHIL_E_UNSUPPORTED,
        "learner config: %s: the optimizer's decay would move the policy where only the value is learnt",
        c->value_only ? "value_only" : "surrogate");
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static size_t cut_all(exphil_learner *l, const exphil_rollout *r, unsigned char *base)
{
    const xph_model_shape *s = l->shape;
    xph_cutter c = {base, 0};
    int64_t rows = r->streams * r->time, some = l->each * r->time, all = r->streams * r->rows;
    const int64_t by_host = l->loss.kernel ? 0 : 1, taught = l->teacher ? by_host : 0;
    l->chunk.advantage = xph_cut(&c, rows, 1, sizeof(double));
    l->chunk.target = xph_cut(&c, rows, 1, sizeof(double));
    l->chunk.old = xph_cut(&c, rows * by_host, s->logits, sizeof(double));
    l->chunk.old_chances = xph_cut(&c, rows * by_host, s->logits, sizeof(double));
    l->chunk.teacher = xph_cut(&c, rows * taught, s->logits, sizeof(double));
    l->chunk.teacher_chances = xph_cut(&c, rows * taught, s->logits, sizeof(double));
    l->chunk.counts = xph_cut(&c, rows, 1, 1);
    l->chunk.result = xph_cut(&c, some * by_host, 1, sizeof(xph_policy_result));
    l->chunk.logs = xph_cut(&c, some * by_host, s->logits, sizeof(double));
    l->chunk.chances = xph_cut(&c, some * by_host, s->logits, sizeof(double));
    l->chunk.miss = xph_cut(&c, some * by_host, 1, sizeof(double));
    l->chunk.scaled = xph_cut(&c, r->rows, 1, sizeof(float));
    l->chunk.value = xph_cut(&c, r->time + 1, 1, sizeof(float));
    l->chunk.ones = xph_cut(&c, all, 1, sizeof(float));
    l->narrow = xph_cut(&c, all * taught, s->logits, sizeof(float));
    l->wide = xph_cut(&c, all * taught, s->logits, sizeof(double));
    l->part.floats = xph_cut(&c, some, s->floats, sizeof(float));
    l->part.ids = xph_cut(&c, some, s->ids, sizeof(int32_t));
    l->part.past = xph_cut(&c, some, s->slots * s->heads, sizeof(int32_t));
    l->part.actions = xph_cut(&c, some, s->heads, sizeof(int32_t));
    l->part.mask = xph_cut(&c, some, 1, sizeof(float));
    l->part.reset = xph_cut(&c, some, 1, 1);
    l->part.dlogits = xph_cut(&c, some * by_host, s->logits, sizeof(float));
    l->part.dvalues = xph_cut(&c, some * by_host, 1, sizeof(float));
    l->part.states = xph_cut(&c, l->each * s->state, (int64_t)s->real_bytes, 1);
    l->part.order = xph_cut(&c, r->streams, 1, sizeof(int64_t));
    return c.at;
}

/* Streams are divided evenly: batches of a trainer have one shape. */
static int64_t streams_of_a_batch(int64_t streams, int64_t batches)
{
    while (batches > 1 && streams % batches) batches--;
    return streams / batches;
}

/* A trainer learns from batches of one shape: that of what it has learnt from before. */
static exphil_status check_trainer_shape(const exphil_trainer *trainer, int64_t each, int64_t time,
                                         exphil_error *error)
{
    const bool made = trainer->feed.net != NULL;
    const int64_t batch = made ? trainer->feed.batch : trainer->resumed.batch,
                  rows = made ? trainer->feed.time : trainer->resumed.time;
    if (!xph_trainer_shaped(trainer) || (batch == each && rows == time)) return EXPHIL_OK;
    return xph_fail(
        error, EXPHIL_E_MISMATCH,
        "the trainer has learnt from batches of %lld streams of %lld rows, this rollout and the learner's "
        "batches make them %lld of %lld",
        (long long)batch, (long long)rows, (long long)each, (long long)time);
}

static exphil_status make_shape(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    if (l->memory && (l->streams != r->streams || l->time != r->time))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the rollout has %lld streams of %lld rows, this learner's have %lld of %lld",
                        (long long)r->streams, (long long)r->time, (long long)l->streams, (long long)l->time);
    if (l->memory) return EXPHIL_OK;
    const int64_t each = streams_of_a_batch(r->streams, l->config.batches);
    if (l->config.burn_in >= r->time)
        return xph_fail(error, EXPHIL_E_INVALID, "learner config: burn_in is %lld, chunks have %lld rows",
                        (long long)l->config.burn_in, (long long)r->time);
    XPH_TRY(check_trainer_shape(l->trainer, each, r->time, error));
    l->each = each;
    xph_loss_choose(l, r);
    size_t bytes = cut_all(l, r, NULL);
    unsigned char *memory = xph_calloc(l->context, 1, bytes);
    if (!memory) return xph_no_memory(bytes, error);
    exphil_status status = xph_loss_make(l, r, error);
    if (status < 0) {
        xph_free(l->context, memory, bytes);
        return status;
    }
    l->memory = memory;
    l->memory_bytes = bytes;
    cut_all(l, r, memory);
    for (int64_t i = 0; i < r->streams * r->rows; i++) l->chunk.ones[i] = 1.0f;
    l->streams = r->streams;
    l->time = r->time;
    return EXPHIL_OK;
}

/* The teacher begins with the first chunk that it is shown. */
static exphil_status make_teacher(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    static const xph_losses plain;
    if (!l->teacher || l->taught.net) return EXPHIL_OK;
    return xph_feed_create(l->teacher, &plain, r->streams, r->rows, 1, XPH_NET_PLAIN, &l->taught, error);
}

exphil_status xph_learner_shape(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    XPH_TRY(make_shape(l, r, error));
    return make_teacher(l, r, error);
}

/* ---- making and freeing ----------------------------------------------------------------------------------------------- */

static void free_learner(exphil_learner *l)
{
    exphil_context *context = l->context;
    xph_loss_drop(l);
    xph_free(context, l->memory, l->memory_bytes);
    xph_free(context, l->chunk.mark, l->chunk.mark_bytes);
    xph_feed_destroy(&l->taught);
    xph_model_release(l->teacher);
    exphil_trainer_destroy(l->trainer);
    xph_free(context, l, sizeof *l);
    xph_context_release(context);
}

void exphil_learner_destroy(exphil_learner *learner)
{
    if (learner) free_learner(learner);
}

exphil_status exphil_learner_create(exphil_trainer *trainer, const exphil_model *teacher,
                                    const exphil_learner_config *config, exphil_learner **learner,
                                    exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_learner_config known = EXPHIL_LEARNER_CONFIG_INIT;
    if (!trainer || !learner)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "learner" : "trainer");
    XPH_TRY(xph_context_check(trainer->context, error));
    XPH_TRY(XPH_TAKE(exphil_learner_config, &known, config, error));
    XPH_TRY(take_numbers(&known, error));
    XPH_TRY(take_counts(&known, error));
    XPH_TRY(check_trainer(trainer, error));
    XPH_TRY(check_decay(trainer, &known, error));
    XPH_TRY(check_teacher(trainer->model, teacher, &known, error));
    exphil_learner *made = xph_calloc(trainer->context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(trainer->context);
    made->trainer = xph_trainer_retain(trainer);
    made->shape = xph_model_shape_of(trainer->model);
    made->config = known;
    made->discount = xph_discount(known.half_life_frames);
    exphil_status status = EXPHIL_OK;
    if (teacher) made->teacher = xph_model_retain(teacher);
    if (teacher) status = xph_model_packed(made->teacher, &made->teacher_packed, error);
    if (status < 0) {
        free_learner(made);
        return status;
    }
    *learner = made;
    return EXPHIL_OK;
}
