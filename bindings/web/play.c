/* What exphil_play.js calls. A handle is a pointer; 0 is none, and then, as after a status below 0, play_failure says why.
 * Sizes, counts and places are 32 bits wide, seeds are doubles: no BigInt is made on the way. exphil_play.js has looked at
 * handles and lengths; what is in an array, a file or a configuration is the library's to check. */
#include "play.h"

#include "drill_game.h"

#include <stdlib.h>
#include <string.h>

#define PLAY(name) __attribute__((export_name("play_" #name))) play_##name

static exphil_error failure = EXPHIL_ERROR_INIT;

/* The object, or NULL where the call failed. */
#define MADE(call, made)                                                                                     \
  do {                                                                                                       \
    exphil_status made_status = (call);                                                                      \
    return made_status < 0 ? NULL : (made);                                                                  \
  } while (0)

void *PLAY(alloc)(uint32_t bytes)
{
    return bytes > INT32_MAX ? NULL : aligned_alloc(64, (bytes + 64) & ~63u);
}
void PLAY(free)(void *memory)
{
    free(memory);
}

const exphil_error *PLAY(failure)(void)
{
    return &failure;
}
const char *PLAY(status_name)(exphil_status status)
{
    return exphil_status_name(status);
}
const char *PLAY(version)(void)
{
    return exphil_version_string();
}
const struct table *PLAY(tables)(void)
{
    return play_structs;
}
/* which: 0 buttons, 1 known. */
const struct constant *PLAY(constants)(uint32_t which)
{
    return which ? play_known : play_buttons;
}

/* ---- files in memory ------------------------------------------------------------------------------------- */

exphil_status PLAY(file_put)(const char *name, const void *data, uint32_t bytes)
{
    void *file;
    size_t done;
    int32_t code = play_files.open(NULL, name, EXPHIL_IO_CREATE, &file);
    return code || play_files.write(NULL, file, data, bytes, &done) ? EXPHIL_E_MEMORY : EXPHIL_OK;
}
/* Its size; 0: there is none. */
uint32_t PLAY(file_size)(const char *name)
{
    void *file;
    uint64_t size = 0;
    if (play_files.open(NULL, name, EXPHIL_IO_READ, &file) == 0) play_files.size(NULL, file, &size);
    return (uint32_t)size;
}
void PLAY(file_get)(const char *name, void *data, uint32_t bytes)
{
    void *file;
    size_t done;
    if (play_files.open(NULL, name, EXPHIL_IO_READ, &file) == 0)
        play_files.read(NULL, file, 0, data, bytes, &done);
}
void PLAY(file_remove)(const char *name)
{
    play_files.remove(NULL, name);
}

/* ---- context, model -------------------------------------------------------------------------------------- */

exphil_context *PLAY(context_create)(exphil_context_config *config)
{
    exphil_context *context = NULL;
    config->io = &play_files;
    config->threads = 1;
    MADE(exphil_context_create(config, &context, &failure), context);
}
void PLAY(context_destroy)(exphil_context *context)
{
    exphil_context_destroy(context);
}
exphil_status PLAY(context_memory)(const exphil_context *context, exphil_memory_info *info)
{
    return exphil_context_memory(context, info, &failure);
}

exphil_model *PLAY(model_create)(exphil_context *context, const exphil_model_config *config)
{
    exphil_model *model = NULL;
    MADE(exphil_model_create(context, config, &model, &failure), model);
}
exphil_model *PLAY(model_load)(exphil_context *context, const void *data, uint32_t bytes)
{
    exphil_model *model = NULL;
    MADE(exphil_model_load_memory(context, data, bytes, &model, &failure), model);
}
exphil_status PLAY(model_save)(const exphil_model *model, const char *name)
{
    return exphil_model_save(model, name, &failure);
}
exphil_model *PLAY(model_quantize)(const exphil_model *model, int32_t type)
{
    exphil_model *quantized = NULL;
    MADE(exphil_model_quantize(model, type, &quantized, &failure), quantized);
}
exphil_model *PLAY(model_with_value)(const exphil_model *model, int32_t value, double seed)
{
    exphil_model *with = NULL;
    MADE(exphil_model_with_value(model, value, (uint64_t)seed, &with, &failure), with);
}
exphil_status PLAY(model_query)(const exphil_model *model, exphil_model_info *info)
{
    return exphil_model_query(model, info, &failure);
}
exphil_status PLAY(model_spec)(const exphil_model *model, exphil_spec *spec)
{
    return exphil_model_spec(model, spec, &failure);
}
void PLAY(model_destroy)(exphil_model *model)
{
    exphil_model_destroy(model);
}

/* ---- session --------------------------------------------------------------------------------------------- */

/* Why a hot call failed. */
static exphil_status told(exphil_session *session, exphil_status status)
{
    if (status < 0 && exphil_session_error(session, &failure) != status)
        failure = (exphil_error){.struct_size = sizeof failure, .status = status};
    return status;
}

exphil_session *PLAY(session_create)(const exphil_model *model, const exphil_session_config *config)
{
    exphil_session *session = NULL;
    MADE(exphil_session_create(model, config, &session, &failure), session);
}
exphil_session *PLAY(session_clone)(const exphil_session *session)
{
    exphil_session *clone = NULL;
    MADE(exphil_session_clone(session, &clone, &failure), clone);
}
exphil_status PLAY(session_step)(exphil_session *session, const exphil_melee_frame *frames, exphil_pad *pads)
{
    return told(session, exphil_session_step(session, frames, pads));
}
exphil_status PLAY(session_step_row)(exphil_session *session, const float *floats, const int32_t *ids,
                                     const float *noise, int32_t *actions)
{
    return told(session, exphil_session_step_row(session, floats, ids, noise, actions));
}
exphil_status PLAY(session_logits)(exphil_session *session, int32_t stream, float *logits, int32_t count)
{
    return told(session, exphil_session_logits(session, stream, logits, count));
}
exphil_status PLAY(session_value)(exphil_session *session, int32_t stream, float *value)
{
    return told(session, exphil_session_value(session, stream, value));
}
exphil_status PLAY(session_reset)(exphil_session *session, int32_t stream)
{
    return told(session, exphil_session_reset(session, stream));
}
exphil_status PLAY(session_override)(exphil_session *session, int32_t stream, const int32_t *action)
{
    return told(session, exphil_session_override(session, stream, action));
}
exphil_status PLAY(session_save)(exphil_session *session, int32_t stream, void *state, uint32_t bytes)
{
    return told(session, exphil_session_state_save(session, stream, state, bytes));
}
exphil_status PLAY(session_restore)(exphil_session *session, int32_t stream, const void *state,
                                    uint32_t bytes)
{
    return told(session, exphil_session_state_restore(session, stream, state, bytes));
}
/* The weights whose place these take are freed here: no step waits for that, for it is not one. */
exphil_status PLAY(session_adopt)(exphil_session *session, const exphil_model *model)
{
    exphil_model *before = NULL;
    exphil_status status = exphil_model_prepare(model, &failure);
    if (status < 0) return status;
    status = told(session, exphil_session_adopt(session, model, &before));
    exphil_model_destroy(before);
    return status;
}
exphil_status PLAY(session_query)(const exphil_session *session, exphil_session_info *info)
{
    return exphil_session_query(session, info, &failure);
}
void PLAY(session_destroy)(exphil_session *session)
{
    exphil_session_destroy(session);
}

/* ---- Melee ----------------------------------------------------------------------------------------------- */

exphil_status PLAY(melee_spec)(const char *layout, const char *codec, exphil_spec *spec)
{
    return exphil_melee_spec(layout, codec, spec, &failure);
}
exphil_status PLAY(melee_encode)(const char *layout, const exphil_melee_frame *frame, float *floats,
                                 int32_t *ids)
{
    return exphil_melee_encode(layout, frame, floats, ids, &failure);
}
exphil_status PLAY(melee_pad_encode)(const char *codec, const exphil_pad *pad, int32_t *action)
{
    return exphil_melee_pad_encode(codec, pad, action, &failure);
}
exphil_status PLAY(melee_pad_decode)(const char *codec, const int32_t *action, exphil_pad *pad)
{
    return exphil_melee_pad_decode(codec, action, pad, &failure);
}

/* ---- training -------------------------------------------------------------------------------------------- */

/* The optimizer lives as long as its trainer. */
exphil_trainer *PLAY(trainer_create)(const exphil_model *model, const exphil_optimizer_config *adam,
                                     const exphil_trainer_config *config)
{
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    if (exphil_optimizer_create(model, adam, &optimizer, &failure) < 0) return NULL;
    exphil_status status = exphil_trainer_create(model, optimizer, NULL, config, &trainer, &failure);
    exphil_optimizer_destroy(optimizer);
    MADE(status, trainer);
}
exphil_status PLAY(trainer_step_batch)(exphil_trainer *trainer, const exphil_batch *batch,
                                       exphil_metrics *metrics)
{
    return exphil_trainer_step_batch(trainer, batch, metrics, &failure);
}
exphil_model *PLAY(trainer_model)(const exphil_trainer *trainer, int32_t which)
{
    exphil_model *model = NULL;
    MADE(exphil_trainer_model(trainer, which, &model, &failure), model);
}
exphil_status PLAY(trainer_save)(const exphil_trainer *trainer, const char *name)
{
    return exphil_trainer_save(trainer, name, &failure);
}
exphil_status PLAY(trainer_resume)(exphil_trainer *trainer, const char *name)
{
    return exphil_trainer_resume(trainer, name, &failure);
}
void PLAY(trainer_destroy)(exphil_trainer *trainer)
{
    exphil_trainer_destroy(trainer);
}

/* ---- worlds ---------------------------------------------------------------------------------------------- */

static exphil_world *keep(const exphil_world *world)
{
    exphil_world *kept = malloc(sizeof *kept);
    if (kept) *kept = *world;
    return kept;
}

static exphil_world *refuse(exphil_status status, const char *message)
{
    failure = (exphil_error){.struct_size = sizeof failure, .status = status};
    strncpy(failure.message, message, sizeof failure.message - 1);
    return NULL;
}

exphil_world *PLAY(world_create)(exphil_context *context, const char *name, int32_t lanes)
{
    exphil_world world = {.struct_size = sizeof world};
    if (strcmp(name, "drill") == 0) {
        if (lanes < 1 || lanes > 4096) return refuse(EXPHIL_E_INVALID, "lanes must be 1..4096");
        if (drill_game_open(lanes, &world, &failure) < 0) return NULL;
    } else if (exphil_world_create(context, name, lanes, &world, &failure) < 0) {
        return NULL;
    }
    return keep(&world);
}
exphil_world *PLAY(world_against)(exphil_context *context, const exphil_world *world,
                                  const exphil_model *const *opponents, int32_t count, double seed)
{
    exphil_world against = {.struct_size = sizeof against};
    exphil_status status =
        exphil_world_against(context, world, opponents, count, (uint64_t)seed, &against, &failure);
    return status < 0 ? NULL : keep(&against);
}
exphil_status PLAY(world_opponent)(const exphil_world *against, int32_t index, const exphil_model *model,
                                   exphil_record *record)
{
    return exphil_world_opponent(against, index, model, record, &failure);
}

/* The lanes of one world, then those of another one: one policy plays both. */
struct beside {
    const exphil_world *part[2];
};
static int32_t beside_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    const struct beside *b = user;
    const int which = lane >= b->part[0]->lanes;
    const exphil_world *world = b->part[which];
    return world->reset(world->user, which ? lane - b->part[0]->lanes : lane, seed, floats, ids);
}
static int32_t beside_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                           int32_t *ids, float *reward, uint8_t *end)
{
    const struct beside *b = user;
    const int64_t border = b->part[0]->lanes, seats = b->part[0]->seats;
    const exphil_spec *spec = b->part[0]->spec;
    if (first < 0 || count < 0 || first + count > border + b->part[1]->lanes) return 1;
    for (int which = 0; which < 2; which++) {
        const exphil_world *world = b->part[which];
        const int64_t from = which ? (first > border ? first : border) : first;
        const int64_t to = which || first + count < border ? first + count : border;
        const int64_t at = from - first, rows = at * seats;
        if (from >= to) continue;
        int32_t code = world->step(world->user, which ? from - border : from, to - from,
                                   actions + rows * spec->head_count, floats + rows * spec->float_count,
                                   ids + rows * spec->id_count, reward + rows, end + at);
        if (code) return code;
    }
    return 0;
}
exphil_world *PLAY(world_beside)(const exphil_world *one, const exphil_world *other)
{
    if (one->seats != other->seats || exphil_spec_hash(one->spec) != exphil_spec_hash(other->spec))
        return refuse(EXPHIL_E_MISMATCH, "the worlds have other rows or seats");
    struct beside *b = malloc(sizeof *b);
    if (!b) return refuse(EXPHIL_E_MEMORY, "no memory for a world");
    *b = (struct beside){{one, other}};
    const exphil_world world = {.struct_size = sizeof world,
                                .user = b,
                                .spec = one->spec,
                                .lanes = one->lanes + other->lanes,
                                .seats = one->seats,
                                .reset = beside_reset,
                                .step = beside_step,
                                .destroy = free};
    return keep(&world);
}

const exphil_spec *PLAY(world_spec)(const exphil_world *world)
{
    return world->spec;
}
/* which: 0 lanes, 1 seats, 2 bytes of a game's state. */
uint32_t PLAY(world_count)(const exphil_world *world, uint32_t which)
{
    return (uint32_t)(which == 0 ? world->lanes : which == 1 ? world->seats : (int64_t)world->state_bytes);
}
int32_t PLAY(world_reset)(const exphil_world *world, int32_t lane, double seed, float *floats, int32_t *ids)
{
    return world->reset(world->user, lane, (uint64_t)seed, floats, ids);
}
int32_t PLAY(world_step)(const exphil_world *world, const int32_t *actions, float *floats, int32_t *ids,
                         float *reward, uint8_t *end)
{
    return world->step(world->user, 0, world->lanes, actions, floats, ids, reward, end);
}
int32_t PLAY(world_save)(const exphil_world *world, int32_t lane, void *state)
{
    return world->save(world->user, lane, state);
}
int32_t PLAY(world_load)(const exphil_world *world, int32_t lane, const void *state)
{
    return world->load(world->user, lane, state);
}
/* Of the drill: what is known after the latest frame, and what its teacher presses next. */
int32_t PLAY(world_drill)(const exphil_world *world, int32_t lane, exphil_melee_frame *frame,
                          exphil_pad *teacher)
{
    return drill_game_look(world, lane, frame, teacher) ? 0 : 1;
}
void PLAY(world_destroy)(exphil_world *world)
{
    exphil_world_destroy(world);
    free(world);
}

/* ---- learning by play ------------------------------------------------------------------------------------ */

exphil_rollout *PLAY(rollout_create)(const exphil_model *model, const exphil_session_config *session,
                                     const exphil_rollout_config *config)
{
    exphil_rollout *rollout = NULL;
    MADE(exphil_rollout_create(model, session, config, &rollout, &failure), rollout);
}
exphil_status PLAY(rollout_run)(exphil_rollout *rollout, const exphil_world *world)
{
    return exphil_rollout_run(rollout, world, &failure);
}
void PLAY(rollout_destroy)(exphil_rollout *rollout)
{
    exphil_rollout_destroy(rollout);
}
exphil_learner *PLAY(learner_create)(exphil_trainer *trainer, const exphil_model *teacher,
                                     const exphil_learner_config *config)
{
    exphil_learner *learner = NULL;
    MADE(exphil_learner_create(trainer, teacher, config, &learner, &failure), learner);
}
exphil_status PLAY(learner_update)(exphil_learner *learner, exphil_rollout *rollout,
                                   exphil_learner_metrics *metrics)
{
    return exphil_learner_update(learner, rollout, metrics, &failure);
}
void PLAY(learner_destroy)(exphil_learner *learner)
{
    exphil_learner_destroy(learner);
}
