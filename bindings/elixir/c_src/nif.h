/* What the files of the NIF library share: calls, handles, records.
 *
 *   call     one call from Elixir (or the work of one training thread). It collects the first failure, holds handles,
 *            owns short-lived memory, and ends with finish(), which gives all of that back and makes the answer.
 *   handle   a resource of the VM around one object of the library. Any number of users at once for objects that the
 *            library lets threads share, one at a time for all others: a second one gets EXPHIL_E_BUSY.
 *   record   a table that says how a C struct and an Elixir map correspond. */
#ifndef LIBEXPHIL_NIF_H
#define LIBEXPHIL_NIF_H

#include <erl_nif.h>
#include <exphil/blocks.h>
#include <exphil/exphil.h>
#include <exphil/games.h>
#include <exphil/learn.h>
#include <exphil/live.h>
#include <exphil/match.h>
#include <exphil/slp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Number of the layout of struct handle and what hangs on it: an upgrade from another layout is refused. */
#ifndef NIF_LAYOUT
#  define NIF_LAYOUT 3
#endif

enum kind {
    CONTEXT,
    MODEL,
    DATASET,
    PREFETCHER,
    OPTIMIZER,
    TRAINER,
    TRAINING,
    SESSION,
    REPLAY,
    STREAM,
    GAMES,
    WORLD,
    ROLLOUT,
    LEARNER,
    LIVE_LEARNER,
    KINDS
};

struct grave;
typedef struct handle {
    _Atomic uint32_t state; /* users, and CLOSED */
    int32_t kind;
    void *object; /* exphil_...; TRAINING: struct run; WORLD: struct world; LIVE_LEARNER: struct live */
    /* CONTEXT: struct home; PREFETCHER, TRAINER: struct widths; SESSION, ROLLOUT, LIVE_LEARNER: struct play */
    void *extra;
    struct handle *context; /* kept alive: its hooks serve all its children. NULL in a context */
    struct grave *grave;    /* where the object goes; made beforehand so that destruction needs no memory */
} handle;

/* What a context knows for itself and its children. */
struct home {
    ErlNifPid pid; /* hears the log, if listening */
    bool listening;
    bool cpu; /* the device is the CPU */
};

#define OPPONENTS_MAX 64
#define HELD_MAX      (OPPONENTS_MAX + 2) /* and their world */
typedef struct call {
    ErlNifEnv *env; /* NULL: a thread of our own */
    struct call *outer;
    const atomic_bool *stop; /* of a training thread; NULL: the life of the calling process decides */
    struct chunk *chunks;    /* memory until finish() */
    const exphil_spec *spec; /* whose heads lists in a configuration must fit */
    int held_count;
    handle *held[HELD_MAX];
    exphil_error error; /* the first failure; status 0: none so far */
} call;

#define NIF(name) ERL_NIF_TERM name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])

/* ---- calls (nif_call.c) ---------------------------------------------------------------------------------- */

void call_begin(call *c, ErlNifEnv *env);
void call_end(call *c);
/* The call that this thread is in, for hooks of the library. */
call *call_current(void);

static inline bool failed(const call *c)
{
    return c->error.status < 0;
}
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
bool fail(call *c, exphil_status status, const char *format, ...); /* says false */
/* Takes a status of the library, whose text is in c->error if the call had room for one. True unless it failed. */
bool done(call *c, exphil_status status);
/* Zeroed memory until finish(); NULL after a failure. */
void *chunk(call *c, size_t bytes);

/* Ends the call: {:error, %LibExphil.Error{}} after a failure, else value as it is; 0 is :ok. */
ERL_NIF_TERM finish(call *c, ERL_NIF_TERM value);
ERL_NIF_TERM finish_ok(call *c, ERL_NIF_TERM value); /* {:ok, value} */
ERL_NIF_TERM error_term(ErlNifEnv *env, const exphil_error *error);
ERL_NIF_TERM status_atom(ErlNifEnv *env, exphil_status status); /* EXPHIL_E_INVALID is :invalid */

/* ---- handles (nif_handle.c) ------------------------------------------------------------------------------ */

bool handles_open(ErlNifEnv *env, ErlNifResourceFlags flags);
/* The handle behind term, in use by this call until finish(). NULL after a failure, which it notes. */
handle *hold(call *c, ERL_NIF_TERM term, enum kind kind);
void leave(handle *h);
/* A term that owns object and extra (enif_alloc; may be NULL). relative: a handle of the same context, NULL for a
 * context itself. On failure object and extra are gone. */
ERL_NIF_TERM make_handle(call *c, enum kind kind, void *object, void *extra, handle *relative);
/* The resource of a fresh TRAINING term, which the caller keeps. */
handle *handle_of(ErlNifEnv *env, ERL_NIF_TERM term, enum kind kind);
int monitor_owner(handle *training, ErlNifEnv *env, const ErlNifPid *owner);
/* Leaves a handle that was kept in use beyond its call, and drops the reference that kept it. */
void give_back(handle *h);
/* Joins a thread of ours that is at its end and drops its reference to the handle, on the reaper's thread. */
struct grave *grave_for_thread(void);
void bury_thread(struct grave *grave, ErlNifTid thread, handle *kept);

/* ---- terms (nif_term.c) ---------------------------------------------------------------------------------- */

bool terms_load(ErlNifEnv *env);
extern ERL_NIF_TERM atom_ok, atom_error, atom_nil, atom_true, atom_false, atom_struct;
ERL_NIF_TERM atom(ErlNifEnv *env, const char *name);

const char *read_text(call *c, ERL_NIF_TERM term, const char *what);        /* UTF-8 without NUL */
const char *read_text_or_nil(call *c, ERL_NIF_TERM term, const char *what); /* NULL for nil */
int64_t read_integer(call *c, ERL_NIF_TERM term, const char *what, int64_t low, int64_t high);
int32_t read_flag(call *c, ERL_NIF_TERM term, const char *what);
double read_number(call *c, ERL_NIF_TERM term, const char *what); /* nil is NaN */
/* An atom of names[] (ends with NULL): its index. */
int32_t read_name(call *c, ERL_NIF_TERM term, const char *what, const char *const *names);
/* A binary of exactly count elements, aligned to them; the bytes live until finish(). */
const void *read_array(call *c, ERL_NIF_TERM term, const char *what, int64_t count, size_t element_bytes);
bool read_binary(call *c, ERL_NIF_TERM term, const char *what, ErlNifBinary *binary);

ERL_NIF_TERM make_text(ErlNifEnv *env, const char *text);
ERL_NIF_TERM make_binary(ErlNifEnv *env, const void *data, size_t bytes);
ERL_NIF_TERM make_number(ErlNifEnv *env, double value); /* NaN is nil, infinities are atoms */
ERL_NIF_TERM make_pair(ErlNifEnv *env, ERL_NIF_TERM a, ERL_NIF_TERM b);

/* ---- records (nif_record.c) ------------------------------------------------------------------------------ */

enum type {
    T_I8,
    T_U8,
    T_I16,
    T_U16,
    T_I32,
    T_U32,
    T_I64,
    T_U64,
    T_F32,
    T_F64,
    T_BOOL,  /* int32_t, as true and false */
    T_ENUM,  /* int32_t, as an atom of names */
    T_CHARS, /* char[count], as text; out only */
    T_TEXT,  /* const char *; in only, nil is NULL */
    T_SPEC,  /* const exphil_spec *; in only */
    T_I32_AT,
    T_ENUM_AT,   /* const int32_t *; in only */
    T_FLOATS_AT, /* const float *, one for each bit of the head; in only */
    T_RECORDS_AT /* const struct *, one for each head; in only */
};

typedef struct record record;
typedef struct field {
    const char *name;
    enum type type;
    int32_t count; /* > 1: array, a list in Elixir; T_CHARS: bytes */
    size_t offset;
    const char *const *names; /* T_ENUM, T_ENUM_AT */
    record *record;           /* T_RECORDS_AT */
} field;

#define TEXT(word) #word
#define FIELD(struct_, member, type, count, names, record_)                                                  \
  {                                                                                                          \
    TEXT(member), type, count, offsetof(struct_, member), names, record_                                     \
  }

#define RECORD_FIELDS 56
struct record {
    const char *name;
    const char *module; /* Elixir struct of what is made, NULL: a map */
    size_t bytes;
    const field *fields;
    size_t field_count;
    ERL_NIF_TERM module_atom;
    ERL_NIF_TERM keys[RECORD_FIELDS + 1];
};

extern record context_config, device_info, memory_info, model_config, model_info, tensor_info,
    comparison_info, head_comparison, sampling_config, replay_config, replay_result, dataset_info,
    episode_info, split_config, prefetcher_info, optimizer_config, optimizer_info, trainer_config,
    metrics_info, report_info, head_report, session_config, session_info, head_play, head_loss, melee_field,
    melee_character, melee_item, melee_pad, slp_config, slp_info, slp_port, slp_frame, slp_item, slp_player,
    games_config, games_info, games_added, game_info, game_player, selection_config, selection_report,
    reward_config, outcome_config, outcome_metrics, rollout_config, learner_config, learner_metrics,
    match_config, match_result, opponent_record, block_info, live_config, live_info;
extern const char *const type_names[], *const mode_names[], *const log_level_names[];
extern record *const all_records[];

/* Fields of the map into the struct at to, which holds the defaults. A field that the record does not have, a value of the
 * wrong type or out of range is EXPHIL_E_INVALID with its name. */
bool read_record(call *c, ERL_NIF_TERM map, const record *r, void *to);
ERL_NIF_TERM make_record(ErlNifEnv *env, const record *r, const void *from);
/* map with one more key. */
ERL_NIF_TERM with_key(ErlNifEnv *env, ERL_NIF_TERM map, const char *key, ERL_NIF_TERM value);
/* {layout, codec} of a Melee preset (either may be nil), or a map of a game's own spec. nil: NULL. */
const exphil_spec *read_spec(call *c, ERL_NIF_TERM term);
ERL_NIF_TERM make_spec(ErlNifEnv *env, const exphil_spec *spec);

/* ---- Melee (nif_melee.c) --------------------------------------------------------------------------------- */

bool read_frame(call *c, ERL_NIF_TERM term, exphil_melee_frame *frame);
ERL_NIF_TERM make_frame(ErlNifEnv *env, const exphil_melee_frame *frame);

/* ---- replays (nif_replay.c) ------------------------------------------------------------------------------ */

ERL_NIF_TERM make_info(ErlNifEnv *env, const exphil_slp_info *info);

/* ---- sessions and rollouts (nif_session.c) ----------------------------------------------------------------- */

/* Beside the library's session: how to step it, and room for its inputs and outputs. The arrays lie behind it. */
struct play {
    int64_t streams, floats, ids, heads, logits;
    int64_t window;     /* frames until a step costs what it always will */
    int64_t direct_ns;  /* from this cost on steps are dirty */
    int64_t step_ns;    /* measured, */
    int64_t step_count; /* in so many steps */
    size_t state_bytes;
    bool dirty, track;
    int percent; /* of a time slice */
    /* track: */
    int64_t preempted;         /* steps in which something else took the processor */
    int64_t waits;             /* how often steps gave it away by themselves */
    int64_t max_cpu_ns;        /* longest of all others in processor time, */
    int64_t long_steps;        /* and how many of them took a millisecond of it */
    exphil_melee_frame *frame; /* [streams] */
    exphil_pad *pad;           /* [streams] */
};

struct option {
    int32_t dirty, track;
    int64_t direct_ns;
    int64_t window;
};

/* The options of a session of this model: those of this binding into option, the others into config. */
bool read_session(call *c, ERL_NIF_TERM map, const exphil_model *model, exphil_session_config *config,
                  struct option *option);
struct play *play_create(call *c, const handle *context, const exphil_session *session,
                         const struct option *option);
exphil_session *session_of(const handle *h); /* of a session, or of what has one */
/* Takes the status of a hot call; the session keeps the text. */
bool stepped(call *c, const handle *h, exphil_status status);
/* With track: what a step took, from what there was before it. */
struct cost {
    int64_t cpu_ns, waits, preempted;
};
struct cost cost_now(const struct play *play);
void track(struct play *play, struct cost from);

/* A hot call: played is a session or what has one, in use by this call. It runs where its process runs, or on a dirty
 * scheduler, as the measured cost says. */
typedef ERL_NIF_TERM hot(call *c, handle *played, const ERL_NIF_TERM argv[]);
typedef ERL_NIF_TERM nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM run_hot(ErlNifEnv *env, const ERL_NIF_TERM argv[], enum kind kind, hot *fn);
ERL_NIF_TERM route(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[], enum kind kind, const char *name,
                   hot *fn, nif *dirty);
/* What a session's calls take: a session, or in its place what has one. */
enum kind played_kind(ErlNifEnv *env, ERL_NIF_TERM term);

/* The NIF nif_<prefix>_<name> of the hot call <name>. */
#define HOT(prefix, name, kind)                                                                              \
  static NIF(dirty_##prefix##_##name)                                                                        \
  {                                                                                                          \
    (void)argc;                                                                                              \
    return run_hot(env, argv, kind, name);                                                                   \
  }                                                                                                          \
  NIF(nif_##prefix##_##name)                                                                                 \
  {                                                                                                          \
    return route(env, argc, argv, kind, #name, name, dirty_##prefix##_##name);                               \
  }

/* ---- worlds (nif_world.c) ---------------------------------------------------------------------------------- */

struct world {
    exphil_world of;
    exphil_context *context; /* which the world keeps alive */
    handle *beneath;         /* in use for as long as this one lives; NULL: none */
};
void destroy_world(void *object);

/* ---- learning behind a game (nif_live.c) ------------------------------------------------------------------- */

struct live {
    exphil_live *of;
    handle *contexts[2]; /* of data and teacher, whose hooks serve as long; NULL: none */
};
void destroy_live(void *object);

/* ---- results of training (nif_train.c), and training threads (nif_training.c) ------------------------------ */

ERL_NIF_TERM make_metrics(ErlNifEnv *env, const exphil_metrics *metrics, int64_t heads);
ERL_NIF_TERM make_report(ErlNifEnv *env, const exphil_report *report);
ERL_NIF_TERM make_comparison(ErlNifEnv *env, const exphil_comparison *comparison);
bool read_comparison(call *c, ERL_NIF_TERM map, exphil_comparison *comparison);
/* Of a row. Batches and metrics do not tell how wide they are: the extra of PREFETCHER and TRAINER does. */
struct widths {
    int64_t floats, ids, heads, slots;
    /* TRAINER: */
    int64_t logits;
    size_t real_bytes;
    bool values;
    int64_t half_rows; /* between forward and backward; 0 else. The batch's arrays lie behind, aligned */
};

ERL_NIF_TERM key_of(call *c, ERL_NIF_TERM map, const char *key);
/* A batch of the host's own; its arrays live until finish(). */
void read_batch(call *c, ERL_NIF_TERM map, const struct widths *w, exphil_batch *batch);

void training_stop(handle *training);
void training_free(void *object);

#endif
