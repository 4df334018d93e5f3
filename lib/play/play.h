/* Door of lib/play: the declarations that its files share. No other room needs them.
 *
 * A session keeps, per stream, recurrent state on the device and a small host part: random stream, decided
 * actions, and in window mode the latest input rows. Everything is allocated at creation. */
#ifndef XPH_PLAY_PLAY_H
#define XPH_PLAY_PLAY_H

#include "base/base.h"
#include "device/device.h"
#include "melee/melee.h"
#include "model/model.h"

/* Host part of one stream; history, in window mode rows of floats, ids and past actions, and the values of
 * the conditions lie behind it. */
typedef struct xph_play_stream {
    xph_rng rng;
    int64_t seen; /* frames since the stream was reset, at most the window */
} xph_play_stream;

/* Steps by duration; edge[i] is the first nanosecond beyond bucket i. */
typedef struct xph_latency {
    int64_t edge[EXPHIL_LATENCY_BUCKETS];
    uint64_t count[EXPHIL_LATENCY_BUCKETS];
    uint64_t steps, missed;
    int64_t last_ns, max_ns, deadline_ns;
} xph_latency;
void xph_latency_init(xph_latency *latency, int64_t deadline_ns);
void xph_latency_add(xph_latency *latency, int64_t ns);
int64_t xph_latency_quantile(const xph_latency *latency, uint64_t percent);

/* Weights that a session plays (adopt.c). */
typedef struct xph_play_weights {
    exphil_model *model;          /* retained; NULL: the slot is empty */
    const void *weights, *packed; /* device: what steps read */
    unsigned char *copy;          /* device memory for both; NULL: they are the model's own */
    uint64_t hash;
    int64_t from; /* the first frame that they play, by the session's clock */
    /* A step, by parity, because a recording holds addresses, and lagging; NULL where the device records
     * nothing. */
    xph_graph *recorded[2][2];
} xph_play_weights;

struct exphil_session {
    exphil_context *context;
    xph_device *device;
    xph_net *net;
    bool adoptable;
    xph_play_weights slot[2];
    int32_t now, newest; /* slots: of the next step; of the weights that were taken last */
    int64_t clock;       /* steps that went well; goes back with a state that is restored */
    int64_t stamps; /* given to steps so far; never goes back, so that a state is known by its last step */
    uint64_t adoptions;
    unsigned char *copies; /* device: of both slots */
    size_t copies_bytes;
    const xph_model_shape *shape;
    const exphil_spec *spec;
    const xph_melee_layout *layout; /* both NULL when the spec is none of Melee's own */
    const xph_melee_codec *codec;
    xph_busy busy;
    bool held;      /* by a rollout or a learner behind it: nobody else steps, resets or restores it */
    bool goes_back; /* although it is held, its states may be restored */
    bool guided;    /* a person's actions come by whoever holds it: overrides are refused */
    exphil_session_config config; /* defaults filled in, pointers cleared */
    xph_sample_head how[EXPHIL_HEADS_MAX];
    bool drawing;                  /* any head needs noise */
    bool draws;                    /* which the device makes */
    bool windowed;                 /* every step computes a whole window from a zero state */
    int64_t streams, rows, frames; /* rows = streams * frames; frames per pass: 1 or the window */
    int64_t history;               /* decided actions kept per stream: max(slots, longest delay + 1) */
    const xph_told *told;
    int64_t seen_slots;      /* past actions that it is shown; the other slots are neutral */
    int32_t delay, delay_id; /* of this session: frames, and what the model is told of it (0: nothing) */
    size_t state_bytes;      /* recurrent state of one stream; 0 in window mode */
    uint64_t play_hash;      /* of all settings that a saved state must share */
    /* host memory, one block */
    unsigned char *host; /* streams x host_bytes: xph_play_stream, history, window rows */
    size_t host_bytes, history_at, floats_at, ids_at, past_at, told_at, clock_at;
    unsigned char *staged; /* what the device takes for a step, in one piece: */
    size_t staged_bytes;
    float *floats;                  /* [rows,F] */
    int32_t *ids, *past, *previous; /* [rows,K + conditions], [rows,slots*A], [streams,A] */
    xph_draw *draw;                 /* [streams] */
    uint8_t *reset;                 /* [rows] */
    size_t every_bytes;             /* so far it is what every step takes; behind it: */
    float *noise;                   /* [streams,L] */
    /* What a step gives, in one piece as the net has it: of the last step that went well, and of the one under way. They
     * change places with the states, so that a recording of either parity knows where its own go. */
    unsigned char *outputs[2];
    size_t outputs_bytes, values_at, logits_at;
    int32_t *actions,
        *fresh_actions;           /* [streams,A] in there, or, in the host's memory, one array beside them */
    float *logits, *fresh;        /* [streams,L] in there */
    float *values, *fresh_values; /* [streams] likewise; NULL: the model has no value head */
    uint8_t *overridden;          /* [streams] the newest action is the host's; cleared by who asks */
    float *melee_floats;          /* [streams,F] rows that the encoder fills */
    int32_t *melee_ids, *decided; /* [streams,K], [streams,A] */
    double *wide;                 /* [streams,L + values] buffer for F64 logits and values, or NULL */
    unsigned char *memory;
    size_t memory_bytes;
    /* device memory, one block */
    /* [streams, state_bytes] each: the state before the step, and what the step makes of it. They are two so
     * that a step that fails has moved nothing; one that went well makes them change places. */
    unsigned char *state[2];
    /* The last thing that wrote to the state was a step that went well: then state[1] is what state[0] was
     * one frame ago, and of a large state (keys and values of attention) the step writes only what is new
     * instead of copying it all. */
    bool lagging;
    /* Weights are read from their end, every other frame: what was read last is still in a cache, and is read
     * first. In one order all the time a model larger than the cache would find nothing there. */
    bool back;
    unsigned char *d_staged; /* staged there, or itself where the device works in the host's memory */
    int32_t *d_actions;
    unsigned char *d_memory;
    size_t d_memory_bytes;
    int32_t parity, reserved; /* of the steps that went well: which half of the memory state[0] is */
    xph_latency latency;
    exphil_error error; /* of the last call that failed */
};

/* Actions kept of a stream; where the parts of its host part lie; and its bytes, of a session in carry mode (stream.c). */
int64_t xph_play_history_of(const xph_model_shape *shape);
void xph_play_lay_out(exphil_session *session);
/* logits, fresh and the like, of outputs. */
void xph_play_point(exphil_session *session);
size_t xph_play_host_bytes(const exphil_model *model, bool adoptable);
/* Parts of stream i; part: of its host part, from byte at. */
static inline xph_play_stream *xph_play_at(const exphil_session *session, int64_t i)
{
    return (xph_play_stream *)(void *)(session->host + (size_t)i * session->host_bytes);
}
static inline void *xph_play_part(const exphil_session *session, int64_t i, size_t at)
{
    return session->host + (size_t)i * session->host_bytes + at;
}
/* [history, A], newest first. */
static inline int32_t *xph_play_history(const exphil_session *session, int64_t i)
{
    return xph_play_part(session, i, session->history_at);
}
/* [conditions] */
static inline int32_t *xph_play_told(const exphil_session *session, int64_t i)
{
    return xph_play_part(session, i, session->told_at);
}
/* Of an adoptable session: its clock, and the stamp of its last step, 0: none yet. */
static inline int64_t *xph_play_clock(const exphil_session *session, int64_t i)
{
    return xph_play_part(session, i, session->clock_at);
}
static inline int64_t *xph_play_stamp(const exphil_session *session, int64_t i)
{
    return xph_play_clock(session, i) + 1;
}
/* Device. */
static inline unsigned char *xph_play_recurrent(const exphil_session *session, int64_t i)
{
    return session->state[0] + (size_t)i * session->state_bytes;
}
exphil_status xph_play_reset(exphil_session *session, int64_t i);
/* Runs a step on zeros where the device records, then records all its forms, at creation, so that a step
 * makes nothing and asks no library anything. The state is as before. */
exphil_status xph_play_record(exphil_session *session);
void xph_play_forget(exphil_session *session);

/* Every call on a session begins and ends with these: NULL, a forked child and a second thread are refused.
 * const: the flag and the text of the last failure are no part of a session's value. */
exphil_status xph_play_enter(const exphil_session *session);
void xph_play_leave(const exphil_session *session);
/* As enter, for calls that move streams: EXPHIL_E_STATE where whoever holds it does. */
exphil_status xph_play_enter_free(const exphil_session *session);
exphil_status xph_play_enter_back(const exphil_session *session); /* the same, for states to be restored */
/* exphil_session_step_row and exphil_session_state_restore, of a session that has been entered, whoever holds it. */
exphil_status xph_play_step_row(exphil_session *session, const float *floats, const int32_t *ids,
                                const float *noise, int32_t *actions);
exphil_status xph_play_restore(exphil_session *session, int64_t stream, const void *state, size_t size_bytes);
/* Hot. What a step would compute, in fresh and fresh_values; nothing moves. The session has been entered. */
exphil_status xph_play_peek(exphil_session *session, const float *floats, const int32_t *ids);
/* The weights of a session that is being made, and their recordings; and an end to them. */
exphil_status xph_play_take(exphil_session *session, const exphil_model *model, exphil_error *error);
void xph_play_drop(exphil_session *session);
/* Hot. exphil_session_adopt, of a session that was entered. */
exphil_status xph_play_exchange(exphil_session *session, const exphil_model *model, exphil_model **before);
/* Of a clone: what the other session plays, and what it will. */
exphil_status xph_play_take_both(const exphil_session *from, exphil_session *to, exphil_error *error);
/* New weights in the place of the newest, between two steps; EXPHIL_E_MISMATCH: of another configuration. A failure of the
 * device alone leaves the session with them. */
exphil_status xph_play_adopt(exphil_session *session, const exphil_model *model, exphil_error *error);
/* Hot. What the next step plays; to be asked of before a step: the newest weights begin with their frame. After a restore: the
 * weights of a state with this hash, if they are still there, else the newest. */
const xph_play_weights *xph_play_weights_now(const exphil_session *session);
void xph_play_advance(exphil_session *session);
void xph_play_go_back(exphil_session *session, uint64_t hash);
/* The recurrent state in a block of exphil_session_state_save, of whatever weights. EXPHIL_E_FORMAT, EXPHIL_E_MISMATCH: it
 * is none, or of another model. */
exphil_status xph_play_block_state(const exphil_model *model, const void *block, size_t size_bytes,
                                   const void **state, exphil_error *error);
/* Remembers why a hot call failed. */
void xph_play_remember(const exphil_session *session, exphil_status status, const char *format, ...)
    XPH_PRINTF(3, 4);
/* The same, and returns status, which is evaluated twice (as xph_fail). */
#define xph_play_fail(session, status, ...)                                                                  \
  (xph_play_remember(session, status, __VA_ARGS__), xph_status(status))

#endif
