/* A learner, its rollout and its world in the trainer's checkpoint, as one block: all that the next chunk depends on. The
 * block is of the moment between two chunks, where a rollout holds no rows.
 *
 * settings, each 8 bytes, that must be the same (names below); counters; then by stream: the session's state, whether an
 * episode begins, episodes begun, reward and frames so far, the row that the world shows; by lane: the world's state; and
 * the teacher's carried state. */
#include "learn/learn.h"

#include <stdio.h>

#define MAGIC 0x31304e5241454c58ull /* "XLEARN01" */

/* ---- settings ------------------------------------------------------------------------------------------------------ */

enum { SETTINGS_MOST = 40 };

typedef struct setting {
    const char *name;
    uint64_t value;
    bool real; /* value holds the bits of a double */
} setting;

typedef struct settings {
    setting of[SETTINGS_MOST];
    int count;
} settings;

static void add(settings *s, const char *name, int64_t value)
{
    s->of[s->count++] = (setting){name, (uint64_t)value, false};
}

static void add_real(settings *s, const char *name, double value)
{
    setting *of = &s->of[s->count++];
    *of = (setting){name, 0, true};
    memcpy(&of->value, &value, sizeof value);
}

static void list_learner(const exphil_learner *l, settings *s)
{
    const exphil_learner_config *c = &l->config;
    add_real(s, "learner.surrogate", c->surrogate);
    add_real(s, "learner.clip", c->clip);
    add_real(s, "learner.value", c->value);
    add_real(s, "learner.to_old", c->to_old);
    add_real(s, "learner.to_teacher", c->to_teacher);
    add_real(s, "learner.from_teacher", c->from_teacher);
    add_real(s, "learner.entropy", c->entropy);
    add_real(s, "learner.imitation", c->imitation);
    add_real(s, "learner.half_life_frames", c->half_life_frames);
    add_real(s, "learner.lambda", c->lambda);
    add_real(s, "learner.most_kl", c->most_kl);
    add_real(s, "learner.reward_scale", c->reward_scale);
    add(s, "learner.epochs", c->epochs);
    add(s, "learner.batches", c->batches);
    add(s, "learner.burn_in", c->burn_in);
    add(s, "learner.value_only", c->value_only);
    add(s, "learner.seed", (int64_t)c->seed);
    add(s, "learner.normalise", c->normalise);
}

static exphil_status list(const exphil_learner *l, const exphil_rollout *r, const exphil_world *world,
                          settings *s, exphil_error *error)
{
    uint64_t teacher = 0;
    s->count = 0;
    if (l->teacher) XPH_TRY(xph_model_weights_hash(l->teacher, &teacher, error));
    list_learner(l, s);
    add(s, "the teacher", (int64_t)teacher);
    add(s, "rollout.time", r->time);
    add(s, "rollout.seed", (int64_t)r->seed);
    add(s, "session.streams", r->streams);
    add(s, "session's other settings", (int64_t)r->session->play_hash);
    add(s, "world.lanes", world ? world->lanes : 0);
    add(s, "world.seats", world ? world->seats : 0);
    add(s, "world.state_bytes", world ? (int64_t)world->state_bytes : 0);
    return EXPHIL_OK;
}

static void say(const setting *s, uint64_t value, char text[32])
{
    double real;
    memcpy(&real, &value, sizeof real);
    if (s->real)
        (void)snprintf(text, 32, "%.9g", real);
    else
        (void)snprintf(text, 32, "%lld", (long long)(int64_t)value);
}

/* ---- the block ----------------------------------------------------------------------------------------------------- */

typedef struct head {
    uint64_t magic, settings;
    int64_t chunks, updates, playing, teacher_state; /* the last: whether there is one */
} head;

/* A block is walked once to measure, once to fill and once to read: the same order, by one function. */
typedef enum direction { MEASURE, WRITE, READ } direction;
typedef struct walk {
    direction to;
    unsigned char *at;
    size_t bytes;
} walk;

static void part(walk *w, void *mine, size_t bytes)
{
    unsigned char *there = w->at;
    if (there && w->to == WRITE) memcpy(there, mine, bytes);
    if (there && w->to == READ) memcpy(mine, there, bytes);
    if (there) w->at += bytes;
    w->bytes =
        bytes > SIZE_MAX - w->bytes ? SIZE_MAX : w->bytes + bytes; /* a world says how large its games are */
}

typedef struct saved {
    exphil_learner *l;
    exphil_rollout *r;
    const exphil_world *world; /* NULL: the host's own */
    settings settings;
    head head;
    unsigned char *block, *scratch; /* scratch: state of one stream or lane, or the teacher's */
    size_t bytes, scratch_bytes;
} saved;

static void walk_head(saved *s, walk *w)
{
    part(w, &s->head, sizeof s->head);
    for (int i = 0; i < s->settings.count; i++) part(w, &s->settings.of[i].value, sizeof(uint64_t));
}

static exphil_status walk_session(saved *s, walk *w, int64_t b)
{
    exphil_session *session = s->r->session;
    size_t bytes = exphil_session_state_size(session);
    exphil_status status = EXPHIL_OK;
    if (w->to == WRITE) XPH_TRY(exphil_session_state_save(session, b, s->scratch, bytes));
    part(w, s->scratch, bytes);
    if (w->to != READ) return EXPHIL_OK;
    XPH_TRY(xph_play_enter(session));
    status = xph_play_restore(session, b, s->scratch, bytes);
    xph_play_leave(session);
    return status;
}

static void walk_rows(saved *s, walk *w)
{
    exphil_rollout *r = s->r;
    size_t streams = (size_t)r->streams;
    part(w, r->fresh, streams);
    part(w, r->episodes, streams * sizeof *r->episodes);
    part(w, r->sum, streams * sizeof *r->sum);
    part(w, r->frames, streams * sizeof *r->frames);
    part(w, r->world_floats, streams * (size_t)r->shape->floats * sizeof(float));
    part(w, r->world_ids, streams * (size_t)r->shape->ids * sizeof(int32_t));
}

static exphil_status walk_world(saved *s, walk *w, int64_t lane, exphil_error *error)
{
    const exphil_world *world = s->world;
    int32_t code = w->to == WRITE ? world->save(world->user, lane, s->scratch) : 0;
    part(w, s->scratch, world->state_bytes);
    if (w->to == READ) code = world->load(world->user, lane, s->scratch);
    return code ? xph_fail(error, EXPHIL_E_IO, "the world's %s failed with %d",
                           w->to == WRITE ? "save" : "load", (int)code)
                : EXPHIL_OK;
}

static exphil_status walk_teacher(saved *s, walk *w)
{
    const xph_feed *taught = &s->l->taught;
    if (!taught->state_bytes) return EXPHIL_OK;
    const xph_backend *backend = taught->device->backend;
    xph_stream *stream = xph_net_stream(taught->net);
    if (w->to == WRITE) {
        XPH_TRY(backend->download(stream, s->scratch, taught->state[0], taught->state_bytes));
        XPH_TRY(backend->stream_wait(stream));
    }
    part(w, s->scratch, taught->state_bytes);
    if (w->to != READ) return EXPHIL_OK;
    XPH_TRY(backend->upload(stream, taught->state[0], s->scratch, taught->state_bytes));
    return backend->stream_wait(stream);
}

/* What cannot fail comes last, so that a failure leaves a rollout that was not touched, or is broken. */
static exphil_status walk_all(saved *s, direction to, unsigned char *at, size_t *bytes, exphil_error *error)
{
    walk w = {to, at, 0};
    exphil_status status = EXPHIL_OK;
    walk_head(s, &w);
    for (int64_t b = 0; status >= 0 && b < s->r->streams; b++) status = walk_session(s, &w, b);
    if (status < 0) return xph_rollout_fail(s->r, status, error);
    for (int64_t lane = 0; s->world && status >= 0 && lane < s->world->lanes; lane++)
        status = walk_world(s, &w, lane, error);
    XPH_TRY(status);
    status = walk_teacher(s, &w);
    if (status < 0) return xph_fail_device(error, s->l->taught.device, status, "learner: the device failed");
    walk_rows(s, &w);
    if (bytes) *bytes = w.bytes;
    return EXPHIL_OK;
}

/* ---- saving and resuming ------------------------------------------------------------------------------------------- */

static void drop(saved *s)
{
    xph_free(s->l->context, s->block, s->bytes);
    xph_free(s->l->context, s->scratch, s->scratch_bytes);
}

/* Memory for the block. Needs drop also after a failure. */
static exphil_status make(saved *s, exphil_error *error)
{
    XPH_TRY(list(s->l, s->r, s->world, &s->settings, error));
    s->scratch_bytes = exphil_session_state_size(s->r->session);
    if (s->world && s->world->state_bytes > s->scratch_bytes) s->scratch_bytes = s->world->state_bytes;
    if (s->l->taught.state_bytes > s->scratch_bytes) s->scratch_bytes = s->l->taught.state_bytes;
    s->scratch = xph_calloc(s->l->context, 1, s->scratch_bytes);
    if (!s->scratch) return xph_no_memory(s->scratch_bytes, error);
    XPH_TRY(walk_all(s, MEASURE, NULL, &s->bytes, error));
    s->block = xph_calloc(s->l->context, 1, s->bytes);
    return s->block ? EXPHIL_OK : xph_no_memory(s->bytes, error);
}

static exphil_status check_world(const exphil_rollout *r, const exphil_world *world, exphil_error *error)
{
    if (!world) return EXPHIL_OK;
    XPH_TRY(xph_rollout_check_world(r, world, error));
    if (!world->state_bytes || !world->save || !world->load)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "the world cannot be saved: it has no %s",
                        !world->state_bytes ? "state_bytes"
                        : !world->save      ? "save"
                                            : "load");
    return EXPHIL_OK;
}

static exphil_status save(saved *s, const char *path, exphil_error *error)
{
    const exphil_learner *l = s->l;
    XPH_TRY(xph_learner_check_bound(l, s->r, error));
    XPH_TRY(xph_rollout_check_whole(s->r, error));
    XPH_TRY(check_world(s->r, s->world, error));
    XPH_TRY(xph_rollout_check_empty(s->r, error));
    s->head = (head){MAGIC, (uint64_t)s->settings.count, l->chunks, l->updates, s->r->playing, 0};
    XPH_TRY(make(s, error));
    s->head.settings = (uint64_t)s->settings.count;
    XPH_TRY(walk_all(s, WRITE, s->block, NULL, error));
    const xph_beside beside = {.data = s->block, .bytes = s->bytes};
    return xph_trainer_save(l->trainer, path, &beside, error);
}

/* Of what the file has: nothing has changed yet. */
static exphil_status check(void *user, exphil_error *error)
{
    const saved *s = user;
    head found;
    memcpy(&found, s->block, sizeof found);
    if (found.magic != MAGIC || found.settings != (uint64_t)s->settings.count || found.chunks < 0 ||
        found.updates < 0 || found.chunks > (int64_t)1 << 48 || (found.playing != 0 && found.playing != 1))
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: its learner is of another release, or damaged");
    for (int i = 0; i < s->settings.count; i++) {
        const setting *mine = &s->settings.of[i];
        uint64_t value;
        char before[32], now[32];
        memcpy(&value, s->block + sizeof found + (size_t)i * sizeof value, sizeof value);
        if (value == mine->value) continue;
        say(mine, value, before);
        say(mine, mine->value, now);
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made with %s %s, this run has %s",
                        mine->name, before, now);
    }
    return EXPHIL_OK;
}

static exphil_status resume(saved *s, const char *path, exphil_error *error)
{
    XPH_TRY(xph_learner_check_rollout(s->l, s->r, error));
    XPH_TRY(check_world(s->r, s->world, error));
    XPH_TRY(xph_rollout_check_empty(s->r, error));
    XPH_TRY(xph_learner_shape(s->l, s->r, error));
    XPH_TRY(make(s, error));
    xph_beside beside = {.data = s->block, .bytes = s->bytes, .check = check, .user = s};
    XPH_TRY(xph_trainer_resume(s->l->trainer, path, &beside, error));
    s->r->broken = true; /* until all of it is there */
    XPH_TRY(xph_learner_adopt(s->l, s->r, error));
    XPH_TRY(walk_all(s, READ, s->block, NULL, error));
    s->r->broken = false;
    s->r->playing = s->head.playing;
    if (s->world) xph_rollout_bind(s->r, s->world);
    xph_learner_bind(s->l, s->r);
    s->l->chunks = s->head.chunks;
    s->l->updates = s->head.updates;
    return EXPHIL_OK;
}

static exphil_status enter(exphil_learner *learner, exphil_rollout *rollout, const exphil_world *world,
                           const char *path, exphil_world *known, exphil_error *error)
{
    if (!learner || !rollout || !path)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !learner   ? "learner"
                        : !rollout ? "rollout"
                                   : "path");
    if (!path[0]) return xph_fail(error, EXPHIL_E_INVALID, "path is empty");
    XPH_TRY(xph_context_check(learner->context, error));
    if (world) XPH_TRY(XPH_TAKE(exphil_world, known, world, error));
    if (!xph_busy_enter(&learner->busy)) return xph_busy_error("learner", error);
    if (xph_busy_enter(&rollout->busy)) return EXPHIL_OK;
    xph_busy_leave(&learner->busy);
    return xph_busy_error("rollout", error);
}

static exphil_status leave(saved *s, exphil_status status)
{
    drop(s);
    xph_busy_leave(&s->r->busy);
    xph_busy_leave(&s->l->busy);
    return status;
}

exphil_status exphil_learner_save(const exphil_learner *learner, const exphil_rollout *rollout,
                                  const exphil_world *world, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_world known = {.struct_size = sizeof known};
    saved s = {.l = (exphil_learner *)(uintptr_t)learner, /* only its flag changes */
               .r = (exphil_rollout *)(uintptr_t)rollout,
               .world = world ? &known : NULL};
    XPH_TRY(enter(s.l, s.r, world, path, &known, error));
    return leave(&s, save(&s, path, error));
}

exphil_status exphil_learner_resume(exphil_learner *learner, exphil_rollout *rollout,
                                    const exphil_world *world, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_world known = {.struct_size = sizeof known};
    saved s = {.l = learner, .r = rollout, .world = world ? &known : NULL};
    XPH_TRY(enter(learner, rollout, world, path, &known, error));
    return leave(&s, resume(&s, path, error));
}
