/*
 * libexphil - policies for 60 Hz games: train by behaviour cloning, play in process.
 * SPDX-License-Identifier: MIT
 *
 * Read this header from top to bottom. Beside it are slp.h (the replay reader), games.h (replays in large numbers),
 * conditions.h (what a policy is told beside the frame), plan.h (the memory that a training will take), notes.h (what a
 * policy carries of its history), examine.h (what it says to each frame), learn.h (how it becomes better), ranks.h
 * (training by several processes together) and ops.h (the kernels alone, on arrays of your own).
 *
 *   1 linkage, version        4 context, devices          7 model                    10 session (play)
 *   2 status and errors       5 observations, actions     8 dataset, prefetcher
 *   3 hooks                   6 Melee                     9 optimizer, trainer
 *
 * Rules that hold everywhere unless a declaration says otherwise
 *   Ownership   *_create and *_load give the caller one reference; drop it with the matching *_destroy.
 *               Children keep their parents alive, so handles may be destroyed in any order. *_destroy(NULL)
 *               does nothing.
 *   Borrowing   Pointers passed in are read during the call only. Pointers returned belong to the object they
 *               came from and are valid until it is next modified or destroyed.
 *   Outputs     On failure output parameters are left untouched and nothing needs to be cleaned up.
 *   Structs     Every struct starts with struct_size; the *_INIT macro sets it and zeroes the rest
 *               (structs of hooks have none: set struct_size = sizeof and every function). Zero means "the
 *               default". Fields are only ever appended. A longer struct from a newer program is accepted
 *               if the part that this library does not know is all zero, else EXPHIL_E_VERSION. A NULL
 *               configuration means all defaults where the declaration allows it. Output structs: set
 *               struct_size, and the library fills at most that much. A struct shorter than in its first
 *               release is EXPHIL_E_INVALID. Where pointers have 4 bytes, link statically a library that
 *               was built with this same header: nothing is promised between releases there.
 *   Threads     exphil_context, exphil_model: shared freely. Everything else: one thread at a time; a second
 *               concurrent caller gets EXPHIL_E_BUSY. No thread affinity, no thread-local state.
 *   Units       Sizes are in bytes (size_t, *_bytes), counts and dimensions in elements (int64_t), times in
 *               nanoseconds (*_ns) or game frames (*_frames, 1/60 s). Text is UTF-8. Numbers in text use '.'
 *               in any locale.
 *   Host        No global state, no static constructors, no signal handlers, no stdout/stderr, no exit or
 *               abort. The caller's floating-point mode and locale stay as they were. A stack of 64 KiB is
 *               enough on any thread.
 *   Files       A file is written to a temporary beside the target, synced and renamed, and the folder is
 *               synced: the target is the old file or the new one, never half of it. Every byte that is read
 *               from a file is checked before it is used. Two writers of one target: the second gets
 *               EXPHIL_E_BUSY, but not under WASI, which has no locks. On Windows paths are UTF-8 of any
 *               length with / or \; names of devices and streams (NUL, file:stream), names that end in a
 *               dot or a space, read-only targets, and targets that others hold without sharing them are
 *               EXPHIL_E_IO. What each system keeps over a loss of power stands in doc/abi.md.
 *   Bits        On the CPU the same calls with the same inputs give the same bits: with every instruction set and
 *               number of threads, built by any compiler, on every system; weights, actions, logits, losses,
 *               reports, states, and the bytes of files. Excepted are times and what is measured of memory, and
 *               the bits of a NaN.
 *   Fork        Objects made before fork() must not be used in the child (EXPHIL_E_STATE); make new ones
 *               there.
 *   Letters     B streams or sequences, T frames, F floats and K ids of an observation, A heads of an
 *               action, L logits (the sum of the heads' counts).
 */
#ifndef EXPHIL_EXPHIL_H
#define EXPHIL_EXPHIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 linkage and version ---------------------------------------------------------------------------- */

/* On Windows a program that uses the DLL may define EXPHIL_SHARED: its calls go there without a jump between. It must
 * not where it links the static library. The DLL exports by a list, so that the same objects serve both; nothing is
 * defined to build them. On other systems EXPHIL_SHARED says nothing.
 */
#if defined(_WIN32) && defined(EXPHIL_SHARED)
#  define EXPHIL_API __declspec(dllimport)
#elif defined(__GNUC__)
#  define EXPHIL_API __attribute__((visibility("default")))
#else
#  define EXPHIL_API
#endif

#if defined(__GNUC__)
#  define EXPHIL_NODISCARD __attribute__((warn_unused_result))
#else
#  define EXPHIL_NODISCARD
#endif

#define EXPHIL_VERSION_MAJOR 0
#define EXPHIL_VERSION_MINOR 2
#define EXPHIL_VERSION_PATCH 0

#define EXPHIL_VERSION (EXPHIL_VERSION_MAJOR * 10000 + EXPHIL_VERSION_MINOR * 100 + EXPHIL_VERSION_PATCH)

/* Version of the loaded library, in the form of EXPHIL_VERSION. */
EXPHIL_API uint32_t exphil_version(void);
/* "0.2.0 cpu:ref,avx2,avx512", static storage. */
EXPHIL_API const char *exphil_version_string(void);

/* ---- 2 status and errors ------------------------------------------------------------------------------ */

/* Zero: done. Positive: not an error, but not the usual result. Negative: failed. Values never change. */
typedef int32_t exphil_status;
/* Values of exphil_status. */
enum {
    EXPHIL_OK = 0,
    EXPHIL_END = 1,            /* no more items in this epoch or file */
    EXPHIL_AGAIN = 2,          /* not ready yet; call again */
    EXPHIL_E_INVALID = -1,     /* an argument or configuration is wrong */
    EXPHIL_E_MEMORY = -2,      /* no host or device memory left, or a limit on it reached */
    EXPHIL_E_IO = -3,          /* the operating system refused a file operation */
    EXPHIL_E_FORMAT = -4,      /* file content is damaged or has an unknown version */
    EXPHIL_E_UNSUPPORTED = -5, /* valid, but not on this device, with this type or this shape */
    EXPHIL_E_DEVICE = -6,      /* the device or its driver failed; the context's device is lost */
    EXPHIL_E_STATE = -7,       /* call made in the wrong order, or after fork() */
    EXPHIL_E_BUSY = -8,        /* object is in use on another thread */
    EXPHIL_E_VERSION = -9,     /* versions of caller, library and plugin do not fit together */
    EXPHIL_E_CANCELLED = -10,  /* the cancel hook stopped the call */
    EXPHIL_E_NUMERIC = -11,    /* NaN or infinity in an input, a gradient or a result */
    EXPHIL_E_MISMATCH = -12,   /* two objects do not fit together: layout, codec, delay or mode differ */
    EXPHIL_E_INTERNAL = -13    /* a bug in libexphil; please report */
};

/* "EXPHIL_OK", "EXPHIL_E_FORMAT", ...; "EXPHIL_UNKNOWN" for any other number. Static storage. */
EXPHIL_API const char *exphil_status_name(exphil_status status);

/* Where a call says why it failed. Owned by the caller; pass NULL if not wanted. Written only on failure. */
typedef struct exphil_error {
    size_t struct_size;
    exphil_status status;
    int32_t native_code; /* errno, cudaError_t, ...; 0 when there is none */
    char message[240];   /* one line, always NUL-terminated; names the field, argument or byte offset */
} exphil_error;
/* clang-format off */
#define EXPHIL_ERROR_INIT { sizeof(exphil_error), 0, 0, { 0 } }
/* clang-format on */

/* ---- 3 hooks ------------------------------------------------------------------------------------------ */

/* All host memory of a context and its children. Both functions are called from any thread. align_bytes is a
 * power of two, at most 4096; size_bytes is never 0. free receives the size that alloc was given. */
typedef struct exphil_allocator {
    size_t struct_size;
    void *user;
    void *(*alloc)(void *user, size_t size_bytes, size_t align_bytes);
    void (*free)(void *user, void *pointer, size_t size_bytes);
} exphil_allocator;

/* Modes of exphil_io.open. */
enum { EXPHIL_IO_READ = 1, EXPHIL_IO_CREATE = 2 };
/* What exphil_io.kind finds at a path. */
enum { EXPHIL_IO_ABSENT = 0, EXPHIL_IO_FILE = 1, EXPHIL_IO_FOLDER = 2, EXPHIL_IO_OTHER = 3 };

/* All file access of a context. Each function returns 0 or an errno value. It is called from any thread,
 * but never twice at a time for one file. read may ask for any offset, and a file may stay open for long:
 * a corpus is read while it is in use. Set all functions or none. map and unmap, with which 0.1 mapped a
 * corpus, are no longer called: set both or neither. */
typedef struct exphil_io {
    size_t struct_size;
    void *user;
    int32_t (*kind)(void *user, const char *path, int32_t *kind); /* EXPHIL_IO_ABSENT, ... */
    /* EXPHIL_IO_CREATE: empty, locked against other creators; EBUSY if it is locked already */
    int32_t (*open)(void *user, const char *path, int32_t mode, void **file);
    int32_t (*size)(void *user, void *file, uint64_t *size_bytes);
    int32_t (*read)(void *user, void *file, uint64_t offset_bytes, void *data, size_t size_bytes,
                    size_t *done_bytes);
    /* appends */
    int32_t (*write)(void *user, void *file, const void *data, size_t size_bytes, size_t *done_bytes);
    int32_t (*sync)(void *user, void *file);
    int32_t (*close)(void *user, void *file); /* releases file even when it fails */
    int32_t (*rename)(void *user, const char *from, const char *to);
    int32_t (*remove)(void *user, const char *path);
    int32_t (*sync_folder)(void *user, const char *path_of_file); /* the folder that holds this file */
    int32_t (*map)(void *user, void *file, size_t size_bytes, const void **data); /* not called */
    int32_t (*unmap)(void *user, const void *data, size_t size_bytes);
    /* calls name(to, NAME) for each entry of a folder, in any order, and ends with its result when that is not
     * 0; NULL: corpora of games that are folders cannot be opened (EXPHIL_E_UNSUPPORTED) */
    int32_t (*list)(void *user, const char *folder, int32_t (*name)(void *to, const char *name), void *to);
} exphil_io;

/* How important a message of the log is. */
typedef int32_t exphil_log_level;
/* Values of exphil_log_level; a higher one logs more. */
enum { EXPHIL_LOG_ERROR = 1, EXPHIL_LOG_WARNING = 2, EXPHIL_LOG_INFO = 3, EXPHIL_LOG_DEBUG = 4 };
/* message is one complete line without a newline; user is exphil_context_config.log_user. Called from the
 * thread that called the library, with no lock held, never from inside exphil_session_step. */
typedef void (*exphil_log_fn)(void *user, exphil_log_level level, const char *message);

/* The host's own threads. parallel_for runs fn(arg, i, worker) for every i in [0, count) and returns when
 * all calls are done. 0 <= worker < workers, and each worker number runs on one thread at a time. The
 * library never nests calls. */
typedef struct exphil_executor {
    size_t struct_size;
    void *user;
    int32_t workers;
    uint32_t flags; /* must be 0 */
    void (*parallel_for)(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg,
                         int64_t count);
} exphil_executor;

/* Called between the frames, batches and layers of long calls, from the calling thread. Nonzero: the call
 * stops with EXPHIL_E_CANCELLED and leaves its object as it was before the call. */
typedef int32_t (*exphil_cancel_fn)(void *user);

/* ---- 4 context and devices ---------------------------------------------------------------------------- */

/* A device, memory and the host's hooks: the parent of every other object. */
typedef struct exphil_context exphil_context;

/* Where a context computes, and which hooks of the host it uses. */
typedef struct exphil_context_config {
    size_t struct_size;
    const exphil_allocator *allocator; /* NULL: aligned malloc */
    const exphil_io *io;               /* NULL: the file system */
    const exphil_executor *executor;   /* NULL: the context's own thread pool, which sleeps when idle */
    exphil_log_fn log;                 /* NULL: silent */
    void *log_user;
    exphil_cancel_fn cancel; /* NULL: never */
    void *cancel_user;
    const char *device; /* "cpu", "cuda", "cuda:0" or "auto", which tries CUDA first; NULL: "cpu" */
    /* highest instruction set to use: "ref", "avx2", "avx512", on AArch64 "neon"; "avx2vnni", "avx512vnni"
     * and "neondot" add products of int8, "avx512bf16" products of bfloat16; in WebAssembly "simd128" and
     * "relaxed". NULL: the best that this processor has. The results have the same bits in all */
    const char *cpu_isa;
    /* folder of libexphil_cuda.so (libexphil_cuda.dylib, exphil_cuda.dll). NULL: $EXPHIL_BACKEND_DIR, then
     * inside or beside this library, then libdir, which Windows has none of */
    const char *backend_path;
    /* upper limit of device memory; 0 = no limit. On the CPU it counts what models, sessions and trainers
     * take, but not data. A refused allocation (EXPHIL_E_MEMORY) is logged */
    size_t memory_limit_bytes;
    int32_t threads; /* of the own pool: 0 = one per core that this process may use; 1 = the caller only */
    exphil_log_level log_level; /* 0 = EXPHIL_LOG_WARNING */
} exphil_context_config;
/* clang-format off */
#define EXPHIL_CONTEXT_CONFIG_INIT { sizeof(exphil_context_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* config may be NULL. The hook structs are copied. EXPHIL_E_INVALID names the bad field.
 * EXPHIL_E_UNSUPPORTED: the requested device or instruction set is not available; the message has every
 * path that was tried. The environment variables EXPHIL_CPU_ISA and EXPHIL_BACKEND_DIR (and
 * EXPHIL_CUBLASLT, by the CUDA plugin) are read once, here. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_context_create(const exphil_context_config *config,
                                                                exphil_context **context,
                                                                exphil_error *error);
EXPHIL_API void exphil_context_destroy(exphil_context *context);

/* Devices on which this process can create a context, the CPU first. Never starts a driver. */
typedef struct exphil_device_info {
    size_t struct_size;
    int64_t memory_bytes; /* 0: not known before the device is opened */
    int32_t index;
    int32_t workers; /* CPU: threads that a context would use; else 0 */
    char id[32];     /* "cpu", "cuda:0": what exphil_context_config.device takes */
    char name[128];  /* as the processor or driver names it */
    char isa[32];    /* "avx512vnni", "sm_90" */
} exphil_device_info;
/* clang-format off */
#define EXPHIL_DEVICE_INFO_INIT { sizeof(exphil_device_info), 0, 0, 0, { 0 }, { 0 }, { 0 } }
/* clang-format on */

/* At least 1. From any thread. */
EXPHIL_API int64_t exphil_device_count(void);
/* index in [0, exphil_device_count()), else EXPHIL_E_INVALID. From any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_device_get(int64_t index, exphil_device_info *info,
                                                            exphil_error *error);
/* The device that this context runs on. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_context_device(const exphil_context *context,
                                                                exphil_device_info *info,
                                                                exphil_error *error);

/* Memory that a context and all its children use. */
typedef struct exphil_memory_info {
    size_t struct_size;
    uint64_t host_used_bytes; /* allocated now, through the allocator */
    uint64_t host_peak_bytes;
    uint64_t host_allocations;  /* calls to alloc since creation */
    uint64_t device_used_bytes; /* 0 on the CPU, whose memory is host memory */
    uint64_t device_peak_bytes;
    uint64_t device_requests; /* allocations asked of the device pool */
    uint64_t device_reused;   /* those met from the pool, without asking the driver */
    /* host memory of the driver, which copies to and from a GPU need not stage: batches, results. It does not go
     * through the allocator; 0 on the CPU */
    uint64_t pinned_used_bytes, pinned_peak_bytes;
} exphil_memory_info;
/* clang-format off */
#define EXPHIL_MEMORY_INFO_INIT { sizeof(exphil_memory_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* From any thread, also while its children work. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_context_memory(const exphil_context *context,
                                                                exphil_memory_info *info,
                                                                exphil_error *error);

/* ---- 5 observations and actions of any game ----------------------------------------------------------- */

/* An id of an observation: an integer in [0, entries) that selects a row of a learned table. */
typedef struct exphil_id_spec { /* fixed layout, never extended */
    const char *name;           /* 1..31 of [a-z0-9_.] */
    int32_t entries;            /* 1..65536 */
    int32_t width;              /* of a table's row, 1..256; 0 = 8 */
} exphil_id_spec;

/* A head of an action. Its value is one int32: bits 0..count-1 (BERNOULLI) or a class in [0, count). */
enum { EXPHIL_BERNOULLI = 0, EXPHIL_CATEGORICAL = 1 };
typedef struct exphil_head_spec { /* fixed layout, never extended */
    const char *name;             /* 1..31 of [a-z0-9_.] */
    int32_t kind;
    int32_t count;    /* bits 1..31, classes 2..1024 */
    int32_t neutral;  /* value of "do nothing"; fills queues, and past actions before an episode's start */
    int32_t reserved; /* must be 0 */
} exphil_head_spec;

#define EXPHIL_IDS_MAX   64
#define EXPHIL_HEADS_MAX 16

#define EXPHIL_CONDITIONS_MAX 8
#define EXPHIL_DELAYS_MAX     16
/* A condition: a small enumerated input of a policy that is no part of the frame, as player, rank or style.
 * It is 1..values, or 0 where it is not known. An episode has one value from its first to its last frame.
 * Values come into a dataset by conditions.h. */
typedef struct exphil_condition_spec { /* fixed layout, never extended */
    const char *name;                  /* 1..31 of [a-z0-9_.] */
    int32_t values;                    /* 1..65535 */
    int32_t width;                     /* of a row of its learned table, 1..256; 0 = 8 */
    double mask; /* share of episodes that training shows with 0, drawn anew every epoch; 0..1 */
} exphil_condition_spec;

/* The form of a game's frames: floats[F] and ids[K] in, heads[A] out. Datasets, models and sessions with
 * different hashes refuse each other (EXPHIL_E_MISMATCH). */
typedef struct exphil_spec {
    size_t struct_size;
    const char *layout;  /* name of the observation layout, 1..31 ASCII, no spaces: "melee2", "pong" */
    const char *codec;   /* name of the action codec: "exphil81" */
    int64_t float_count; /* F, 0..4096 */
    int64_t id_count;    /* K, 0..EXPHIL_IDS_MAX; F + K > 0 */
    const exphil_id_spec *ids;
    int64_t head_count; /* A, 1..EXPHIL_HEADS_MAX */
    const exphil_head_spec *heads;
    /* hash of every field's meaning; 0: computed from the names and sizes given here */
    uint64_t layout_hash;
} exphil_spec;
/* clang-format off */
#define EXPHIL_SPEC_INIT { sizeof(exphil_spec), 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Hash over everything in the spec: equal if and only if rows and actions mean the same. 0 for an invalid
 * spec. */
EXPHIL_API uint64_t exphil_spec_hash(const exphil_spec *spec);

/* ---- 6 Melee ------------------------------------------------------------------------------------------ */

/* Fills spec with a preset; its pointers are static. layout: "melee2" (NULL), "exphil288", "slippi" or
 * "slippi-nana"; codec: "exphil81" (NULL), "exphil81-floor", "slippi" or "slippi-fine". melee2 and exphil81 are the
 * library's own; exphil288 and exphil81-floor are ExPhil's, the others slippi-ai's: what policies that were trained
 * there see and do. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_spec(const char *layout, const char *codec,
                                                            exphil_spec *spec, exphil_error *error);

/* One column of a layout, for people and tests: which value it holds and how that is scaled. */
typedef struct exphil_melee_field {
    size_t struct_size;
    int64_t offset;          /* first float, or the index of the id */
    int64_t count;           /* floats it covers; 1 for an id */
    double scale, low, high; /* clamp(source * scale, low, high); scale 0: flag or one-hot (doc/onnx.md) */
    int32_t is_id;
    int32_t reserved;
    char name[64];   /* "own.percent" */
    char source[64]; /* "post 0x16 f32" */
} exphil_melee_field;
/* clang-format off */
#define EXPHIL_MELEE_FIELD_INIT { sizeof(exphil_melee_field), 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }
/* clang-format on */

EXPHIL_API int64_t exphil_melee_field_count(const char *layout); /* 0 for an unknown layout */
/* index in [0, exphil_melee_field_count(layout)), else EXPHIL_E_INVALID. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_field_get(const char *layout, int64_t index,
                                                                 exphil_melee_field *field,
                                                                 exphil_error *error);

/* Names of external character and stage ids ("fox", "battlefield"), as in exphil_replay_config.character
 * and a replay's start; NULL when unknown. The characters of a frame carry internal ids: Fox is external
 * 2, internal 1. */
EXPHIL_API const char *exphil_melee_character_name(int32_t external);
/* As above, for stages. */
EXPHIL_API const char *exphil_melee_stage_name(int32_t external);

/* Which of the later fields of a character are known. Older replays lack some; a live host sets HAS_ALL,
 * for without it they read as absent. */
enum {
    EXPHIL_MELEE_HAS_AGE = 1,     /* state_age: 0.2.0 */
    EXPHIL_MELEE_HAS_FLAGS = 2,   /* flags, misc, airborne, ground, jumps, l_cancel: 2.0.0 */
    EXPHIL_MELEE_HAS_HURTBOX = 4, /* 2.1.0 */
    EXPHIL_MELEE_HAS_SPEED = 8,   /* the five speeds: 3.5.0 */
    EXPHIL_MELEE_HAS_HITLAG = 16, /* 3.8.0 */
    EXPHIL_MELEE_HAS_ALL = 31
};

/* State of one character at the end of a frame, in the units of the replay's post-frame event. */
typedef struct exphil_melee_character {                   /* fixed layout, never extended */
    int32_t present;                                      /* 0: absent (all else ignored) */
    uint32_t known;                                       /* EXPHIL_MELEE_HAS_... */
    float x, y, facing, percent, shield, state_age, misc; /* misc: remaining hitstun while flags[3] & 2 */
    float speed_air_x, speed_y, speed_attack_x, speed_attack_y, speed_ground_x, hitlag;
    uint16_t action_state, ground;
    uint8_t character; /* internal id */
    uint8_t stocks, last_attack, combo, last_hit_by, airborne, jumps, l_cancel, hurtbox;
    uint8_t flags[5]; /* state bit flags 1..5 */
    uint8_t reserved[2];
} exphil_melee_character;

/* State of one item at the end of a frame, in the units of the replay's item event. */
typedef struct exphil_melee_item { /* fixed layout, never extended */
    float facing, speed_x, speed_y, x, y, timer;
    uint32_t spawn_id;
    uint16_t type, damage;
    uint8_t state, misc[4];
    int8_t owner; /* port index 0..3, -1 none */
    uint8_t reserved[2];
} exphil_melee_item;

#define EXPHIL_MELEE_ITEMS_MAX 15
/* A frame at its end, as one player sees it: what an encoder makes a row of. */
typedef struct exphil_melee_frame {
    size_t struct_size;
    int32_t frame;                       /* -123 is the first of a game; the clock starts at 0 */
    int32_t stage;                       /* external id */
    int32_t own_port, opponent_port;     /* 1..4; opponent 0: the first other port that is present */
    exphil_melee_character player[4];    /* by port - 1 */
    exphil_melee_character follower[4];  /* Nana */
    float platform_left, platform_right; /* Fountain of Dreams heights; 20 and 28 before the first event */
    int32_t wind;                        /* Dream Land: 0 none, 1 left, 2 right */
    int32_t stadium_kind, stadium_event; /* Pokemon Stadium, 0 before the first event */
    int32_t item_count;                  /* 0..EXPHIL_MELEE_ITEMS_MAX */
    exphil_melee_item item[EXPHIL_MELEE_ITEMS_MAX];
} exphil_melee_frame;
/* clang-format off */
#define EXPHIL_MELEE_CHARACTER_ZERO \
    { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }
#define EXPHIL_MELEE_ITEM_ZERO { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, { 0 } }
#define EXPHIL_MELEE_FRAME_INIT \
    { sizeof(exphil_melee_frame), 0, 0, 0, 0, { EXPHIL_MELEE_CHARACTER_ZERO }, \
      { EXPHIL_MELEE_CHARACTER_ZERO }, 20, 28, 0, 0, 0, 0, { EXPHIL_MELEE_ITEM_ZERO } }
/* clang-format on */

/* The controller of one player. Sticks as the game processes them, -1..1; trigger 0..1 (one value for
 * both). */
enum {
    EXPHIL_PAD_D_LEFT = 0x0001,
    EXPHIL_PAD_D_RIGHT = 0x0002,
    EXPHIL_PAD_D_DOWN = 0x0004,
    EXPHIL_PAD_D_UP = 0x0008,
    EXPHIL_PAD_Z = 0x0010,
    EXPHIL_PAD_R = 0x0020,
    EXPHIL_PAD_L = 0x0040,
    EXPHIL_PAD_A = 0x0100,
    EXPHIL_PAD_B = 0x0200,
    EXPHIL_PAD_X = 0x0400,
    EXPHIL_PAD_Y = 0x0800,
    EXPHIL_PAD_START = 0x1000
};
typedef struct exphil_pad { /* fixed layout, never extended */
    uint32_t buttons;       /* EXPHIL_PAD_...; codecs cannot express START, D_LEFT, D_RIGHT, D_DOWN */
    float main_x, main_y, c_x, c_y, trigger;
} exphil_pad;

/* The only encoder: replays, live frames and simulators all use it. floats [F], ids [K] of the layout.
 * EXPHIL_E_NUMERIC names a field that is NaN or infinite. EXPHIL_E_INVALID: own_port is not present, or a
 * port or item_count is out of range. Enumerated values of the game (action state, character, stage, item
 * type) are never refused: a value that the layout's table does not have takes the table's last row. An
 * opponent or Nana that is not present is all zeros in melee2, and in the other layouts what a character of zeros is. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_encode(const char *layout,
                                                              const exphil_melee_frame *frame, float *floats,
                                                              int32_t *ids, exphil_error *error);
/* Pad -> head values [A]. decode(encode(pad)) is the nearest pad that the codec can express. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_pad_encode(const char *codec, const exphil_pad *pad,
                                                                  int32_t *action, exphil_error *error);
/* Head values [A] -> pad. A value out of range is EXPHIL_E_INVALID. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_pad_decode(const char *codec, const int32_t *action,
                                                                  exphil_pad *pad, exphil_error *error);

/* ---- 7 model ------------------------------------------------------------------------------------------ */

/* A policy: configuration and weights, on the device of its context. */
typedef struct exphil_model exphil_model;

/* CARRY: trained on consecutive chunks of a game with the state carried; a step moves the state by one frame.
 * WINDOW: trained on independent windows from a zero state; a step computes the window that ends at this
 * frame. */
enum { EXPHIL_MODE_CARRY = 0, EXPHIL_MODE_WINDOW = 1 };
/* AUTOREGRESSIVE: the logits of a head also depend on the values of the heads before it. */
enum { EXPHIL_HEADS_INDEPENDENT = 0, EXPHIL_HEADS_AUTOREGRESSIVE = 1 };
/* Types of numbers. */
enum {
    EXPHIL_TYPE_F32 = 0,
    EXPHIL_TYPE_F64 = 1,
    EXPHIL_TYPE_BF16 = 2,
    EXPHIL_TYPE_I8 = 3,
    EXPHIL_TYPE_F16 = 4
};

/* A value head estimates the return that is still to come, from the same LayerNorm as the heads: linear -> SiLU ->
 * linear, head_width wide, 0 in a new model. DETACHED: its gradient ends there, so that what the blocks compute
 * is the policy's alone; SHARED: it goes on into the blocks. */
enum { EXPHIL_VALUE_NONE = 0, EXPHIL_VALUE_DETACHED = 1, EXPHIL_VALUE_SHARED = 2 };
/* Functions of single numbers: x sigmoid(x); max(x, 0); x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
enum { EXPHIL_ACTIVATION_SILU = 0, EXPHIL_ACTIVATION_RELU = 1, EXPHIL_ACTIVATION_GELU_TANH = 2 };

/* input (floats | id rows | past actions) -> linear -> blocks -> LayerNorm -> heads. Every block is
 * x + f(LayerNorm(x)), but for those that say what else they are.
 *   mamba      selective scan (Gu & Dao 2023): in-projection, causal convolution, scan, SiLU gate,
 *              out-projection
 *   lstm, gru  cuDNN's equations and gate order (i,f,g,o; r,z,n), tensors as PyTorch lays them out
 *   attention  causal sliding window, learned bias per head and distance
 *   mlp, ffn   linear -> LayerNorm+SiLU -> linear; mlp inner width hidden, ffn inner width
 *              ffn_expand * hidden
 *   ffn_gelu   linear -> GELU, in its form with tanh -> linear
 *   mamba_exphil         ExPhil's form of mamba: rates fixed at 1..N, steps within 0.001 and 0.1, no skip
 *   lstm_bare, gru_bare  x + f(x), f being that of lstm and gru
 *   lstm_only, gru_only  f(x) in the place of x
 *   dense, norm, relu    a linear, a LayerNorm, max(x, 0) in the place of x; they carry nothing
 * Every formula, shape and tensor's name: doc/model.md. */
typedef struct exphil_model_config {
    size_t struct_size;
    const exphil_spec *spec;         /* copied; NULL: melee2 with exphil81 */
    const char *blocks;              /* "mamba*2" (NULL), "(lstm ffn)*3", "(mamba mamba attention)*2" */
    uint64_t seed;                   /* of the initial weights */
    int64_t hidden;                  /* width H; 0 = 256 */
    int64_t head_width;              /* trunk of the heads; 0 = 128 */
    int64_t mamba_states;            /* N; 0 = 16 */
    int64_t mamba_expand;            /* inner width / hidden; 0 = 2 */
    int64_t mamba_taps;              /* of the convolution; 0 = 4 */
    int64_t mamba_rank;              /* of dt; 0 = max(hidden / 16, 1) */
    int64_t attention_heads;         /* 0 = 4 */
    int64_t attention_dim;           /* per head; 0 = 64 */
    int64_t attention_window_frames; /* 0 = 60 */
    int64_t ffn_expand;              /* 0 = 2 */
    int64_t window_frames;           /* EXPHIL_MODE_WINDOW: length; 0 = 60 */
    int32_t delay_frames;            /* d: the action decided on frame t acts on frame t + d; 0..64 */
    /* 0: the d + 1 latest decided actions are inputs; 1: only the d queued ones */
    int32_t no_previous_action;
    int32_t mode;     /* EXPHIL_MODE_... */
    int32_t heads;    /* EXPHIL_HEADS_... */
    int32_t type;     /* EXPHIL_TYPE_F32; F64: the reference in double, CPU only */
    int32_t reserved; /* must be 0 */
    /* the past actions that act in the first d frames of an episode, decided before it began. 1: neutral,
     * in training, evaluation and play alike. 0: as in 0.1, neutral in play but the recorded ones in
     * training and evaluation. Both are the same without delay. New programs set 1, as exphil train does */
    int32_t neutral_start;
    int32_t reserved_2; /* must be 0 */
    /* [condition_count], copied; names differ. With the spec's ids and the delays they are at most
     * EXPHIL_IDS_MAX tables. A policy plays without a value (0) only as well as it was trained to: by
     * exphil_condition_spec.mask, or by episodes whose value is not known */
    const exphil_condition_spec *conditions;
    /* [delay_count], copied, ascending, each 0..64: one policy for several delays, which is told which of
     * them holds. Training draws one for each episode and epoch, a session is made for one. delay_frames
     * must be 0 or the longest of them, and becomes that one: it says how many slots past actions have. With
     * a shorter one the policy sees what a policy of this delay alone sees, and neutral in the other slots */
    const int32_t *delays;
    int64_t condition_count; /* 0..EXPHIL_CONDITIONS_MAX */
    int64_t delay_count;     /* 0..EXPHIL_DELAYS_MAX; 0: delay_frames is the only one */
    int32_t value;           /* EXPHIL_VALUE_...: a value head (learn.h) */
    int32_t reserved_3;      /* must be 0 */
    double norm_epsilon;     /* what every LayerNorm adds to the variance, 1e-12..0.1; 0 = 1e-5 */
    /* Width of the heads' hidden layers; 0 = head_width. Needs head_layers, as do head_activation, head_last and
     * no_head_trunk */
    int64_t head_units;
    int32_t no_final_norm; /* 1: no LayerNorm behind the last block */
    /* 0: one trunk for all heads, its SiLU, a linear. 1..4: every head has so many hidden layers of its own, linear and
     * head_activation, then a linear; the first sees the trunk's output and, with EXPHIL_HEADS_AUTOREGRESSIVE, the values of
     * the heads before it */
    int32_t head_layers;
    int32_t head_activation; /* EXPHIL_ACTIVATION_... */
    int32_t head_last;       /* 1: the first layer sees the head's own value in the newest past action, too */
    int32_t no_head_past;    /* 1: past actions are inputs of the network only, no term of the logits */
    int32_t no_head_trunk;   /* 1: the first layer sees what the last LayerNorm gives, hidden numbers */
    /* Width of x before the first of lstm_only, gru_only and dense, which then reads it; 0 = hidden. Before it only norm and relu
     * may stand. 1..8192 */
    int64_t input_width;
} exphil_model_config;
/* clang-format off */
#define EXPHIL_MODEL_CONFIG_INIT \
    { sizeof(exphil_model_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* config may be NULL. EXPHIL_E_INVALID names the field, for blocks also the column. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_create(exphil_context *context,
                                                              const exphil_model_config *config,
                                                              exphil_model **model, exphil_error *error);
/* Weights are a safetensors file with the tensors that exphil_model_tensor_info lists. The file's header
 * is checked first, against the file's size and the model that it describes, then the data. No part of a
 * model is made from a file that fails. A file without libexphil's metadata is EXPHIL_E_FORMAT. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_load(exphil_context *context, const char *path,
                                                            exphil_model **model, exphil_error *error);
/* The same from memory; data is not needed after the call. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_load_memory(exphil_context *context, const void *data,
                                                                   size_t size_bytes, exphil_model **model,
                                                                   exphil_error *error);
/* Writes such a file, also of a quantised model. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_save(const exphil_model *model, const char *path,
                                                            exphil_error *error);
EXPHIL_API void exphil_model_destroy(exphil_model *model);

/* What a model is, and how long it was trained. */
typedef struct exphil_model_info {
    size_t struct_size;
    uint64_t spec_hash;    /* exphil_spec_hash of its spec */
    uint64_t weights_hash; /* of all weights */
    int64_t parameter_count;
    int64_t tensor_count;
    int64_t float_count, id_count, head_count, logit_count;
    int64_t hidden;
    int64_t window_frames; /* 0 in EXPHIL_MODE_CARRY */
    /* CARRY: recurrent state of one stream, as training and play carry it. WINDOW: state inside one
     * window, which is not kept. The size of a stream's snapshot, with the state or the window's frames in
     * it, is exphil_session_state_size */
    uint64_t state_bytes;
    uint64_t trained_updates, trained_frames; /* updates and frames that the weights were trained for */
    int32_t delay_frames;
    int32_t action_slots; /* past actions that are inputs: d or d + 1 */
    int32_t mode, heads, type, reserved;
    char layout[32], codec[32];
    char blocks[256];
    int32_t weights;       /* EXPHIL_TYPE_... of the stored matrices: type, unless quantised */
    int32_t calibrated;    /* 1: it has a comparison for exphil_model_calibration_get */
    int32_t neutral_start; /* as in exphil_model_config */
    int32_t reserved_2;
    int64_t condition_count, delay_count; /* likewise; exphil_model_sampling has names, values and delays */
    int32_t value;                        /* likewise */
    int32_t reserved_3;
    double norm_epsilon; /* these, too, as in exphil_model_config; head_units is 0 without head_layers */
    int64_t head_units;
    int32_t no_final_norm, head_layers, head_activation, head_last, no_head_past, no_head_trunk;
    int64_t input_width; /* 0: hidden */
} exphil_model_info;
/* clang-format off */
#define EXPHIL_MODEL_INFO_INIT \
    { sizeof(exphil_model_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, \
      { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* From any thread. Each call reads all weights, for weights_hash. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_query(const exphil_model *model,
                                                             exphil_model_info *info, exphil_error *error);
/* The model's spec; its pointers are valid as long as the model. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_spec(const exphil_model *model, exphil_spec *spec,
                                                            exphil_error *error);

/* Name, shape and type of one tensor of a model. */
typedef struct exphil_tensor_info {
    size_t struct_size;
    int64_t dim[4]; /* row-major; unused ones are 1 */
    uint64_t size_bytes;
    int32_t rank;
    int32_t type;   /* EXPHIL_TYPE_... */
    char name[128]; /* "blocks.0.in_proj.weight" */
} exphil_tensor_info;
/* clang-format off */
#define EXPHIL_TENSOR_INFO_INIT { sizeof(exphil_tensor_info), { 0, 0, 0, 0 }, 0, 0, 0, { 0 } }
/* clang-format on */

/* index in [0, exphil_model_info.tensor_count), else EXPHIL_E_INVALID. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_tensor_info(const exphil_model *model, int64_t index,
                                                                   exphil_tensor_info *info,
                                                                   exphil_error *error);
/* Copies a tensor out; size_bytes must be the tensor's. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_tensor_get(const exphil_model *model, const char *name,
                                                                  void *data, size_t size_bytes,
                                                                  exphil_error *error);
/* Copies a tensor in; size_bytes as above. Needs a model that nothing else uses yet (no session, trainer or
 * exported tensor), else EXPHIL_E_STATE; a value that is not finite is EXPHIL_E_NUMERIC. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_tensor_set(exphil_model *model, const char *name,
                                                                  const void *data, size_t size_bytes,
                                                                  exphil_error *error);
struct DLManagedTensor;          /* of DLPack before 1.0 */
struct DLManagedTensorVersioned; /* of DLPack from 1.0 on */
/* Exports a tensor without a copy: it keeps the model alive; treat it as read-only and release it with its
 * deleter. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_tensor_to_dlpack(const exphil_model *model,
                                                                        const char *name,
                                                                        struct DLManagedTensor **tensor,
                                                                        exphil_error *error);
/* As above, for DLPack from 1.0 on. */
EXPHIL_API EXPHIL_NODISCARD exphil_status
exphil_model_tensor_to_dlpack_versioned(const exphil_model *model, const char *name,
                                        struct DLManagedTensorVersioned **tensor, exphil_error *error);
/* Copies a tensor in, under the rules of exphil_model_tensor_set. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_tensor_from_dlpack(
    exphil_model *model, const char *name, const struct DLManagedTensor *tensor, exphil_error *error);
/* A new model that computes with weights of fewer bits. EXPHIL_TYPE_BF16: the inputs of a matrix are rounded
 * to BF16 too. EXPHIL_TYPE_I8: one scale per output row, inputs rounded to 255 levels of the frame's largest
 * input, exact sums. The model plays, saves and loads like any other.
 * The matrices of the blocks are rounded, recurrent ones too. input.weight, heads.trunk.weight and the heads' hidden
 * layers, on which the actions depend most, are rounded to BF16 with either type. All else stays F32: biases, norms,
 * convolutions, scans, tables of ids, heads.past, heads.logits, heads.embed, the heads' last layers and the rows
 * that values take there. The default policy's file
 * shrinks to 55 or 36 percent, a larger policy's to as little as a half or a quarter.
 * Tensors are reported as F32, exactly as rounded. The weights no longer change: setting tensors and
 * quantising again are EXPHIL_E_STATE, training is EXPHIL_E_UNSUPPORTED; train the F32 model with
 * exphil_trainer_config.fake_quantize. EXPHIL_E_UNSUPPORTED also for other types, for a model of
 * EXPHIL_TYPE_F64, and on a device without the kernels. EXPHIL_E_NUMERIC names a weight that is too large
 * for BF16. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_quantize(const exphil_model *model, int32_t type,
                                                                exphil_model **quantized,
                                                                exphil_error *error);

/* How far the decisions of a model are from those of a reference, over the frames of a dataset
 * (exphil_model_compare). */
typedef struct exphil_head_comparison { /* fixed layout, never extended */
    double max_error, rms_error;        /* of the head's logits */
    double kl;        /* mean Kullback-Leibler divergence from the reference, nats per frame (bits: sum) */
    double agreement; /* share of frames with the same most likely value */
} exphil_head_comparison;
/* The same for all heads of a model together. */
typedef struct exphil_comparison {
    size_t struct_size;
    uint64_t reference_hash;     /* exphil_model_info.weights_hash of the reference */
    uint64_t content_hash;       /* of the dataset */
    int64_t frames;              /* compared */
    double max_error, rms_error; /* of all logits */
    double kl;                   /* sum over heads */
    double agreement;            /* share of frames with the same most likely action, all heads */
    int64_t heads;
    exphil_head_comparison head[EXPHIL_HEADS_MAX];
} exphil_comparison;
/* clang-format off */
#define EXPHIL_COMPARISON_INIT { sizeof(exphil_comparison), 0, 0, 0, 0, 0, 0, 0, 0, { { 0, 0, 0, 0 } } }
/* clang-format on */

/* Stores a comparison with a quantised model in place of an earlier one: exphil_model_save writes it to the
 * file, and a loaded model has it. Needs a quantised model that nothing else uses yet, else EXPHIL_E_STATE;
 * EXPHIL_E_INVALID names a field that cannot belong to this model. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_calibration_set(exphil_model *model,
                                                                       const exphil_comparison *comparison,
                                                                       exphil_error *error);
/* The stored comparison; EXPHIL_E_STATE if there is none. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_calibration_get(const exphil_model *model,
                                                                       exphil_comparison *comparison,
                                                                       exphil_error *error);
/* Writes the step of one frame as an ONNX graph (IR 8, opset 17), with its state as inputs and outputs and any number of
 * streams: row, noise and settings of the draw in, logits, action and value out. Every block, head, delay and condition is
 * there, and float weights or those of exphil_model_quantize, which are rounded as in play. What describes rows and
 * controllers is among its metadata; doc/onnx.md has all names. EXPHIL_E_UNSUPPORTED names what has no form there: a model
 * of EXPHIL_TYPE_F64 or EXPHIL_MODE_WINDOW, and a file of 2 GiB or more. From any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_export_onnx(const exphil_model *model,
                                                                   const char *path, exphil_error *error);

/* ---- 8 dataset and prefetcher ------------------------------------------------------------------------- */

/* Episodes in order, in memory or in an open corpus file. */
typedef struct exphil_dataset exphil_dataset;

/* The spec of a new dataset's rows. */
typedef struct exphil_dataset_config {
    size_t struct_size;
    const exphil_spec *spec; /* copied; NULL: melee2 with exphil81 */
} exphil_dataset_config;
/* clang-format off */
#define EXPHIL_DATASET_CONFIG_INIT { sizeof(exphil_dataset_config), 0 }
/* clang-format on */

/* Frames in memory, grouped in episodes (one player's side of one game). Row t holds what is known before
 * the action of frame t acts (the end of frame t-1) and the action that acts in frame t. This holds with a
 * delay too: the library does the shifting. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_create(exphil_context *context,
                                                                const exphil_dataset_config *config,
                                                                exphil_dataset **dataset,
                                                                exphil_error *error);
/* Opens a corpus file that exphil_dataset_save wrote, or a corpus of games (exphil/games.h), a file or a folder, of
 * which rows are then made with the usual spec of every human player; exphil_dataset_add_games chooses. It may be
 * larger than memory: opening reads little, and rows are read when they are needed. The file stays open while any
 * dataset uses it. A save to the same path writes a new file and leaves the open one as it is.
 * Rows are checked in pieces, on first use. Damage found then is EXPHIL_E_FORMAT with the byte offset, from
 * exphil_dataset_frame, exphil_prefetcher_next or any other call that needed the rows; EXPHIL_E_IO if the
 * disk fails. A torn tail costs only the episodes that are not whole: see exphil_dataset_info.recovered.
 * Writing into the open file harms nothing but the data. If it was shortened, reading is EXPHIL_E_FORMAT
 * with the byte where it now ends. Rows changed after the check are used as they are then, and ids or
 * actions that do not exist are EXPHIL_E_FORMAT. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_open(exphil_context *context, const char *path,
                                                              exphil_dataset **dataset, exphil_error *error);
/* Writes all episodes to a corpus file, after a check of all rows. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_save(const exphil_dataset *dataset, const char *path,
                                                              exphil_error *error);
/* Checks all rows now, on all workers. EXPHIL_E_FORMAT names the first damaged place; EXPHIL_E_CANCELLED:
 * the cancel hook stopped it. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_verify(const exphil_dataset *dataset,
                                                                exphil_error *error);
EXPHIL_API void exphil_dataset_destroy(exphil_dataset *dataset);

/* Which players and frames of a replay are added. Frames are game frames from -123. */
typedef struct exphil_replay_config {
    size_t struct_size;
    const char *character; /* imitate only this character: "fox", "mewtwo", ...; NULL: any */
    int32_t port; /* port to imitate, 1..4; 0: every human player (of that character, if one is given) */
    int32_t opponent_port; /* 0: the first other player, of another team in team games */
    int32_t first_frame;   /* of the game; default 0, where the clock starts */
    int32_t last_frame;    /* inclusive; 0: to the end of the game */
} exphil_replay_config;
/* clang-format off */
#define EXPHIL_REPLAY_CONFIG_INIT { sizeof(exphil_replay_config), 0, 0, 0, 0, 0 }
/* clang-format on */

/* What a replay gave: counts of episodes and frames. */
typedef struct exphil_replay_result {
    size_t struct_size;
    int64_t episodes, frames; /* added */
    int64_t frames_masked;    /* left out: a character is absent, or a value is not finite */
    int32_t truncated;        /* 1: the replay ends early; the frames before its end were used */
    int32_t reserved;
} exphil_replay_result;
/* clang-format off */
#define EXPHIL_REPLAY_RESULT_INIT { sizeof(exphil_replay_result), 0, 0, 0, 0, 0 }
/* clang-format on */

/* config and result may be NULL. The dataset must have a Melee spec. EXPHIL_E_INVALID: no player fits (the
 * message lists the players). A gap in a player's frames starts a new episode. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_add_replay(exphil_dataset *dataset, const char *path,
                                                                    const exphil_replay_config *config,
                                                                    exphil_replay_result *result,
                                                                    exphil_error *error);
/* The same from memory; data is not needed after the call. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_add_replay_memory(
    exphil_dataset *dataset, const void *data, size_t size_bytes, const exphil_replay_config *config,
    exphil_replay_result *result, exphil_error *error);
/* One episode of any game: floats [T,F], ids [T,K], actions [T,A]; copied. game identifies the episodes
 * that a split must keep together. NaN, infinity and ids or actions out of range are refused; the message
 * has row and column. An episode has at most 2^32-1 frames, a dataset 2^48-1 in 2^32-1 episodes
 * (EXPHIL_E_UNSUPPORTED). */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_add_rows(exphil_dataset *dataset, uint64_t game,
                                                                  int64_t frames, const float *floats,
                                                                  const int32_t *ids, const int32_t *actions,
                                                                  exphil_error *error);

/* Counts and hashes of a dataset. */
typedef struct exphil_dataset_info {
    size_t struct_size;
    uint64_t spec_hash;
    uint64_t content_hash; /* of all rows in order */
    int64_t frames, episodes, games;
    int64_t float_count, id_count, head_count;
    int64_t constant_floats; /* columns that never change, hence dead inputs; -1: not known, rows of games */
    int32_t recovered;       /* 1: opened from a file with a torn tail */
    int32_t reserved;
    char layout[32], codec[32];
} exphil_dataset_info;
/* clang-format off */
#define EXPHIL_DATASET_INFO_INIT \
    { sizeof(exphil_dataset_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }
/* clang-format on */

/* Reads what was added since the last call, for constant_floats: fails as any call that needs rows. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_query(const exphil_dataset *dataset,
                                                               exphil_dataset_info *info,
                                                               exphil_error *error);
/* The dataset's spec; its pointers are valid as long as the dataset. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_spec(const exphil_dataset *dataset,
                                                              exphil_spec *spec, exphil_error *error);

/* Where an episode lies in its dataset, and what is known of its game. */
typedef struct exphil_episode_info {
    size_t struct_size;
    uint64_t game; /* hash of the replay's content, or the value given to add_rows */
    int64_t first; /* its first frame in the dataset */
    int64_t frames;
    int32_t first_game_frame;              /* of the replay; 0 for rows */
    int32_t port, opponent_port, stage;    /* 0 for rows */
    int32_t character, opponent_character; /* external ids, -1 for rows */
    /* Of a replay: made of seed, stage, mode and players, so equal for recordings of one match; of a replay without a
     * seed made of its first inputs. 0: not known, of rows and of a corpus that version 0.1 saved. */
    uint64_t group;
} exphil_episode_info;
/* clang-format off */
#define EXPHIL_EPISODE_INFO_INIT { sizeof(exphil_episode_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */
/* index in [0, exphil_dataset_info.episodes), else EXPHIL_E_INVALID. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_episode(const exphil_dataset *dataset, int64_t index,
                                                                 exphil_episode_info *info,
                                                                 exphil_error *error);
/* Any frame, in constant time on average over the frames: floats [F], ids [K], action [A]; each may be NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_frame(const exphil_dataset *dataset, int64_t index,
                                                               float *floats, int32_t *ids, int32_t *action,
                                                               exphil_error *error);
/* Frames [first, first + count), across episodes, into the caller's arrays, much faster than one by one: floats
 * [count,F], ids [count,K], actions [count,A], and of each frame the index of its episode, episodes [count]; each
 * may be NULL. 0 <= first, 0 <= count and first + count <= exphil_dataset_info.frames, else EXPHIL_E_INVALID.
 * Rows of corpora and of games are read and checked here; for that the dataset keeps memory for 256 rows and, of
 * games, for two decoded blocks. On failure, EXPHIL_E_CANCELLED included, what the arrays hold is not to be used. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_rows(const exphil_dataset *dataset, int64_t first,
                                                              int64_t count, float *floats, int32_t *ids,
                                                              int32_t *actions, int64_t *episodes,
                                                              exphil_error *error);

/* How much frames count in training: rows of a game (exphil_episode_info.game) weigh `weight` in the loss, 0 or
 * 1e-6..1000, in the place of 1: those of one port, 1..4, or with port 0 all, whose frames are
 * first_frame..last_frame, both included. Frames are those of the replay, of the state that a row shows: its
 * target is d frames later. Of rows of exphil_dataset_add_rows they are numbered from 0, from the first row of
 * the episode as it was added, in each of the game's episodes. INT32_MIN begins with the first frame, INT32_MAX
 * ends with the last.
 * A later call replaces earlier ones where both hold, whatever their ports: 1 takes them back. It holds for
 * episodes that are there and for those that come later. Splits, and prefetchers made afterwards, have what the
 * dataset had when they were made; a corpus file does not have it, and content_hash does not know of it.
 * Batches of prefetchers have it in exphil_batch.mask. A row of weight 0 is like padding to the loss, but goes
 * through the recurrent state. exphil_evaluate and exphil_model_compare count every row once.
 * EXPHIL_E_INVALID names the argument. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_weight(exphil_dataset *dataset, uint64_t game,
                                                                int32_t port, int32_t first_frame,
                                                                int32_t last_frame, double weight,
                                                                exphil_error *error);

/* Recordings of one match count as one game: games with an equal exphil_episode_info.group, and those of one match id,
 * stage and characters. Nothing of them is ever on both sides.
 *   GAME    whole games, drawn at random: as many as make up the part, at least one and not all
 *   TIME    the last part of every episode; of games that count as one, but are several, the rows from one frame of the
 *           game on, the earliest with no more than the part
 *   STABLE  whole games, each held out with probability held_out by a draw of seed and game alone: games that are added
 *           later change nothing for those that are there, and the part is only about as large. A game is its least
 *           group number, or without any its exphil_episode_info.game: only a game that comes in between, of one
 *           match id with games of other groups, can move these */
enum { EXPHIL_SPLIT_GAME = 0, EXPHIL_SPLIT_TIME = 1, EXPHIL_SPLIT_STABLE = 2 };
/* How large a part is held out, and by what. */
typedef struct exphil_split_config {
    size_t struct_size;
    double held_out; /* fraction in (0,1) */
    uint64_t seed;
    int32_t by; /* EXPHIL_SPLIT_... */
    int32_t reserved;
} exphil_split_config;
/* clang-format off */
#define EXPHIL_SPLIT_CONFIG_INIT { sizeof(exphil_split_config), 0, 0, 0, 0 }
/* clang-format on */
/* Two new datasets that share the rows. EXPHIL_E_INVALID if one of them would be empty. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_split(const exphil_dataset *dataset,
                                                               const exphil_split_config *config,
                                                               exphil_dataset **kept,
                                                               exphil_dataset **held_out,
                                                               exphil_error *error);

/* A thread that makes batches of a dataset as it was at creation. */
typedef struct exphil_prefetcher exphil_prefetcher;

/* How frames become batches. exphil_model_sampling fills it for a model: it sets mode, time (WINDOW),
 * delay, slots, neutral_start, conditions and delays, and leaves the rest at the default. Call it first,
 * then set what you want to differ. */
typedef struct exphil_sampling {
    size_t struct_size;
    int64_t batch;  /* B lanes, of all ranks together (lane_count); 0 = 16 */
    int64_t time;   /* T frames a chunk; 0 = 60 (WINDOW: the model's window) */
    int64_t stride; /* WINDOW: frames between starts; 0 = 1 */
    /* CARRY: cuts episodes into segments of at most this many frames, each starting from a zero state; at most
     * 2^32-1 segments (EXPHIL_E_UNSUPPORTED). 0:
     * shuffled whole episodes form a ring, which is opened at a random place and cut into B equal lanes */
    int64_t segment_frames;
    uint64_t seed;
    int32_t mode;         /* EXPHIL_MODE_... */
    int32_t delay_frames; /* d: target of row t is the action of frame t + d */
    int32_t action_slots; /* number of past actions: t+d-1, t+d-2, ..., newest first */
    int32_t in_order;     /* 1: no shuffling */
    int32_t last_only;    /* WINDOW: loss on the last frame of each window only */
    int32_t buffers;      /* prefetched batches; 0 = 2 */
    /* 1: past actions that act in the first d frames of an episode are neutral (see exphil_model_config).
     * What counts is the place in the episode: segments, windows and lanes that begin later have the
     * recorded actions before them */
    int32_t neutral_start;
    int32_t reserved; /* must be 0 */
    /* WINDOW, not in_order: 0: all windows of the dataset are shuffled together, at most 2^32-1 of them; the
     * order takes 4 bytes of memory for each. 1024..2^32-1, say 65536: the order goes by groups. The windows of an
     * episode are cut into spans, whose starts lie within 1024 frames; every epoch shuffles the spans; a group is
     * the next spans of that order, at least one, whose windows need at most shuffle_frames rows, and which are
     * shuffled among themselves.
     * Still every window comes once an epoch, but a batch's rows lie in few places, and the order takes memory in
     * proportion to the spans and shuffle_frames. A run is resumed with the value that it began with.
     * EXPHIL_E_UNSUPPORTED: there are more windows or spans than that */
    int64_t shuffle_frames;
    /* rows of corpora of games: memory that batches, decoded games and rows of a group may take; 0: what they need.
     * With less, games are decoded again and again: slower, the same batches. EXPHIL_E_INVALID names the least */
    int64_t memory_bytes;
    /* threads of a prefetcher, 1..64, which change no batch; 0 = 1, and for rows of games one for each four cores,
     * 1..4 */
    int32_t workers;
    int32_t reserved_2; /* must be 0 */
    /* Training: the probability, 0..1, with which the past actions of a stretch are worth nothing: those of
     * another stretch of the dataset stand in their place, so that a policy learns not to rely on them. (A
     * policy that sees neutral ones there learns what to do when it sees those, and copies the others.) A
     * stretch is 256 frames of an episode, counted from its start, because a policy with memory sees through
     * single rows. Stretches, and what stands in their place, are drawn anew in every epoch. The draw is a
     * function of seed, epoch, game and place, and does not depend on the batch. EXPHIL_E_INVALID where
     * action_slots is 0 */
    double drop_past;
    /* share of the games, 0..1, that an epoch shows with left and right exchanged: positions, speeds, facing and
     * sticks along x, the Fountain's platforms, the wind, action states that name a side. A function of (seed,
     * epoch, game), so that both sides of a game are mirrored together, and a game is now mirrored and now not.
     * For training: a policy is evaluated on games as they are. Needs a Melee spec (EXPHIL_E_INVALID), and not
     * the layouts of slippi-ai, whose states have none, and not exphil81-floor and the codecs of slippi-ai, whose
     * rounding has none (EXPHIL_E_UNSUPPORTED) */
    double mirror;
    /* [condition_count], copied: the columns of exphil_batch.conditions, from the dataset's values of these
     * names. Of a mask share of the episodes the value is 0. What is masked is a function of (seed, epoch,
     * episode), whatever the batch is */
    const exphil_condition_spec *conditions;
    /* [delay_count], copied, ascending: d is drawn from them for each episode, as a function of (seed, epoch,
     * episode). delay_frames must be 0 or the longest, D. The order is that of D, whose last rows have no
     * target: so it does not depend on what is drawn. Of the past actions the newest d + max(action_slots -
     * D, 0) are shown, the other slots are neutral */
    const int32_t *delays;
    int64_t condition_count, delay_count;
    /* Balance, 0..1 each: rows fall into classes; that share of the total weight is given to the classes
     * evenly, the rest as it lies: a row of class k, which has the share p(k) of the weight
     * (exphil_dataset_weight), is multiplied by f = 1 - b + b / (K p(k)), K being the number of classes that
     * occur, 1 / (K p(k)) being held within 0.1..10. The product of the three is held to 10 at most, then scaled
     * so that its mean over the weight is 1. p is counted once when the prefetcher is made, over all rows with a
     * target; of a dataset with rows of games over at most 2^18 of them, in stretches at even distances
     * (characters: over all), with several delays for the longest. So a row's factor depends on nothing but the
     * dataset, its weights, delay_frames and these fields. Evaluation never balances. Classes of
     * balance_character: the characters that are imitated, -1 being one */
    double balance_character;
    /* Classes: the rarest of the target's values, one for each categorical head and one for each bit of the others
     * (pressed or not); of equally rare ones the first */
    double balance_action;
    /* Two classes: the target differs from the action a frame before it (at an episode's start: the neutral one),
     * or repeats it */
    double balance_change;
    /* A process that trains as one of several ranks (ranks.h) fills only lanes first_lane, ..., first_lane + lane_count - 1
     * of the B. The order, the number of batches and all that is drawn are those of B: the batches of ranks whose lanes
     * are 0..B-1 together, put one under the other, are the batch of one rank that fills all, to the last bit. lane_count is
     * then the batch of exphil_batch, of a trainer and of its carried state. lane_count 0: all B, and first_lane must be 0.
     * EXPHIL_E_INVALID: first_lane + lane_count > B, or one is below 0 */
    int64_t first_lane, lane_count;
} exphil_sampling;
/* clang-format off */
#define EXPHIL_SAMPLING_INIT \
    { sizeof(exphil_sampling), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */
/* Fills sampling for a model; from any thread. Its conditions and delays belong to the model. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_sampling(const exphil_model *model,
                                                                exphil_sampling *sampling,
                                                                exphil_error *error);

/* One batch; row b*T + t. Rows with mask 0 are padding, or weigh nothing. reset is 1 where an episode, segment
 * or window starts. Of a prefetcher with own lanes (exphil_sampling.lane_count) B are those here, and row 0 begins
 * first_lane. */
typedef struct exphil_batch {
    size_t struct_size;
    int64_t batch, time;
    int64_t epoch, index;   /* position of the batch; the order is a function of (seed, epoch) */
    int64_t frames;         /* rows with mask > 0; of own lanes alone there may be none */
    const float *floats;    /* [B*T, F] */
    const int32_t *ids;     /* [B*T, K] */
    const int32_t *past;    /* [B*T, slots, A]; neutral before an episode (exphil_sampling.neutral_start) */
    const int32_t *actions; /* [B*T, A] targets */
    const float *mask;      /* [B*T] weight of the row in the loss: exphil_dataset_weight, times balance */
    const uint8_t *reset;   /* [B*T] */
    const uint8_t *dropped; /* [B*T] 1: past is from elsewhere (exphil_sampling.drop_past); NULL: nowhere */
    /* [B*T, C]: values of the conditions, and with exphil_sampling.delays one column more, the last: 1 + the
     * index of the row's delay among them (0 in padding). NULL where there is neither */
    const int32_t *conditions;
    /* [B*T] the frame of the dataset (exphil_dataset_frame), as it was when the prefetcher was made, that each row shows;
     * -1: padding. NULL: not known, in a batch of the host's own */
    const int64_t *rows;
    /* [B*T] discounted rewards from the frame on in which the row's action acts (exphil_dataset_rewards_set, learn.h), NaN where
     * they are not known. NULL: no rewards were given */
    const float *returns;
} exphil_batch;
/* clang-format off */
#define EXPHIL_BATCH_INIT { sizeof(exphil_batch), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* A background thread fills batches ahead of time, in order; none is dropped. sampling may be NULL (all
 * defaults), but a prefetcher for a trainer needs exphil_model_sampling first. EXPHIL_E_INVALID also where no
 * row with a target weighs more than 0. With balance it reads actions: damaged ones are EXPHIL_E_FORMAT, and
 * the host may cancel it (EXPHIL_E_CANCELLED). */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_prefetcher_create(const exphil_dataset *dataset,
                                                                   const exphil_sampling *sampling,
                                                                   exphil_prefetcher **prefetcher,
                                                                   exphil_error *error);
/* Blocks until the next batch is ready. EXPHIL_END after the last batch of an epoch; the call after that
 * begins the next epoch. The pointers are valid until the next call. An error of the background thread is
 * returned in place of the batch that it concerns; the next call tries that batch again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_prefetcher_next(exphil_prefetcher *prefetcher,
                                                                 exphil_batch *batch, exphil_error *error);
/* Makes this the next batch, for resuming. Constant time here; the thread orders another epoch anew, and with
 * shuffle_frames one group. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_prefetcher_seek(exphil_prefetcher *prefetcher, int64_t epoch,
                                                                 int64_t index, exphil_error *error);
/* Counts and times of a prefetcher since its creation. */
typedef struct exphil_prefetcher_info {
    size_t struct_size;
    int64_t batches_per_epoch; /* on every rank the same (exphil_sampling.lane_count) */
    int64_t frames_per_epoch;  /* rows that are no padding, whatever they weigh; of all B lanes */
    int64_t delivered;         /* batches returned */
    int64_t waited_ns;         /* time that next spent waiting */
    int64_t worked_ns;         /* time that the background thread spent filling */
    int64_t waits;             /* calls of next that had to wait */
    /* (sum of w)^2 / (n * sum of w^2) over the n rows that were counted (see balance), w being what they weigh:
     * the share of rows, all alike, that would tell as much (Kish 1965). 1 without weights and balance */
    double effective_share;
} exphil_prefetcher_info;
/* clang-format off */
#define EXPHIL_PREFETCHER_INFO_INIT { sizeof(exphil_prefetcher_info), 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */
/* Fills info; waits for no batch. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_prefetcher_query(exphil_prefetcher *prefetcher,
                                                                  exphil_prefetcher_info *info,
                                                                  exphil_error *error);
EXPHIL_API void exphil_prefetcher_destroy(exphil_prefetcher *prefetcher);

/* ---- 9 optimizer and trainer -------------------------------------------------------------------------- */

/* The order of training; each step needs the results of the ones before:
 *   exphil_dataset_create, _add_replay ...         exphil_model_create, exphil_model_sampling
 *   exphil_prefetcher_create(dataset, sampling)    exphil_optimizer_create(model)
 *   exphil_trainer_create(model, optimizer, prefetcher), exphil_trainer_step until done,
 *   exphil_trainer_model -> exphil_model_save, exphil_session_create ... */

/* AdamW's moments and counters, and the averaged weights. */
typedef struct exphil_optimizer exphil_optimizer;

/* Rate at update u (0-based). During warm-up: rate * (u+1)/warmup_updates.
 * Then, with s = (u - warmup)/(total - warmup):
 *   CONSTANT  rate
 *   COSINE    low + (rate-low)(1+cos(pi s))/2 (SGDR, Loshchilov & Hutter 2017), low = rate * low_ratio
 *   RESTARTS  the same, with s running over periods of restart_updates, each restart_factor times as long
 *             as the last */
enum { EXPHIL_SCHEDULE_CONSTANT = 0, EXPHIL_SCHEDULE_COSINE = 1, EXPHIL_SCHEDULE_RESTARTS = 2 };

/* AdamW (Loshchilov & Hutter 2019): decoupled decay on matrices only (not on biases, norms, A_log, D,
 * relative_bias, heads.past), bias correction, epsilon outside the root. Gradients are clipped to a global
 * norm. */
typedef struct exphil_optimizer_config {
    size_t struct_size;
    double rate;           /* 0 = 1e-3 */
    double beta1, beta2;   /* 0 = 0.9, 0.999 */
    double epsilon;        /* 0 = 1e-8 */
    double decay;          /* 0 = none */
    double clip_norm;      /* 0 = 1; negative: no clipping */
    double ema_decay;      /* of the averaged weights, per update u: min(ema_decay, (u+1)/(u+10)); 0 = none */
    double low_ratio;      /* lowest rate of the schedule / rate */
    double restart_factor; /* 0 = 1 */
    int64_t warmup_updates;
    int64_t total_updates;   /* COSINE needs it: EXPHIL_E_INVALID when 0 */
    int64_t restart_updates; /* RESTARTS needs it */
    int32_t schedule;        /* EXPHIL_SCHEDULE_... */
    int32_t reserved;
    /* 1: exphil_trainer_resume also takes a checkpoint of a run with another total_updates, which makes that
     * run longer or shorter. The rate is a function of the update's number: from the resumed one on it is that
     * of this configuration, whose total_updates the next checkpoint has. 0: total_updates must be the same */
    int32_t resume_new_total;
    int32_t reserved_2; /* must be 0 */
} exphil_optimizer_config;
/* clang-format off */
#define EXPHIL_OPTIMIZER_CONFIG_INIT \
    { sizeof(exphil_optimizer_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* State for the weights of this model: moments are zero, averaged weights equal the weights. config may be
 * NULL. An optimizer serves one trainer. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_optimizer_create(const exphil_model *model,
                                                                  const exphil_optimizer_config *config,
                                                                  exphil_optimizer **optimizer,
                                                                  exphil_error *error);
/* Progress, rate and memory of an optimizer. */
typedef struct exphil_optimizer_info {
    size_t struct_size;
    int64_t updates; /* done */
    double rate;     /* of the next update */
    uint64_t state_bytes;
} exphil_optimizer_info;
/* clang-format off */
#define EXPHIL_OPTIMIZER_INFO_INIT { sizeof(exphil_optimizer_info), 0, 0, 0 }
/* clang-format on */
/* From any thread, also while its trainer works. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_optimizer_query(const exphil_optimizer *optimizer,
                                                                 exphil_optimizer_info *info,
                                                                 exphil_error *error);
EXPHIL_API void exphil_optimizer_destroy(exphil_optimizer *optimizer);

/* Loss of one head. BERNOULLI: mean binary cross-entropy of its bits. CATEGORICAL: cross-entropy. */
typedef struct exphil_head_loss { /* fixed layout, never extended */
    double weight;                /* 0 = 1; negative: the head is not trained */
    double smoothing;             /* label smoothing, categorical heads only, [0,1) */
    double focal_gamma;           /* factor (1-p_t)^gamma (Lin et al. 2017); 0 = plain */
    const float *positive_weight; /* [count] of a Bernoulli head, each > 0; NULL: 1 */
} exphil_head_loss;

/* A model's weights in training, with optimizer, data and carried state. */
typedef struct exphil_trainer exphil_trainer;

/* Several processes or threads train one model, each with its own trainer, data and communicator.
 * all_reduce replaces data[count] (EXPHIL_TYPE_F32 or F64, host memory) by the sum over all ranks, added
 * in rank order so that every rank gets the same bits. It returns 0, or a nonzero code that stops the
 * update with EXPHIL_E_IO; the next call begins the update again (see exphil_trainer_step). It must end, with
 * a failure if need be, when another rank does not come.
 * How gradients are joined says exphil_trainer_config.reduction; ranks.h says how ranks share data and
 * checkpoints. */
typedef struct exphil_communicator {
    size_t struct_size;
    void *user;
    int32_t (*all_reduce)(void *user, void *data, int64_t count, int32_t type);
    int32_t rank, ranks; /* 0 <= rank < ranks */
} exphil_communicator;

struct exphil_device_communicator; /* ranks.h */

/* How the gradients of several ranks are joined. */
enum {
    /* each rank divides by the weight of its own batch, and the mean over the ranks is taken, as in 0.1:
     * exphil_trainer_step calls all_reduce once an update. Ranks know nothing else of each other */
    EXPHIL_REDUCTION_MEANS = 0,
    /* the update is that of the ranks' batches taken as one: sums of gradients over the weight of all of them,
     * whatever each has of it. Making the trainer, updates, saving and resuming are then calls that all ranks
     * make, in the same order (ranks.h) */
    EXPHIL_REDUCTION_SUMS = 1
};

/* Arithmetic of training; weights and moments stay F32. F16 uses dynamic loss scaling. */
enum {
    EXPHIL_PRECISION_F32 = 0,
    EXPHIL_PRECISION_TF32 = 1,
    EXPHIL_PRECISION_BF16 = 2,
    EXPHIL_PRECISION_F16 = 3
};

/* Losses, ranks and arithmetic of training. */
typedef struct exphil_trainer_config {
    size_t struct_size;
    const exphil_head_loss *losses;          /* [A]; NULL: all defaults */
    const exphil_communicator *communicator; /* copied; NULL: one rank */
    double loss_scale;                       /* F16: first value; 0 = 65536 */
    int64_t accumulate;                      /* batches per update; 0 = 1 */
    int32_t precision; /* EXPHIL_PRECISION_...; EXPHIL_E_UNSUPPORTED where the device lacks it */
    /* type in which activations are stored for backward, EXPHIL_TYPE_F32 or BF16. BF16 takes half the
     * memory for them, about a third less in all; with checkpoint_blocks little is stored. Forward is
     * unchanged, gradients are close */
    int32_t activations;
    /* EXPHIL_TYPE_I8 or BF16: forward, and the gradients of all layers below, use weights rounded as
     * exphil_model_quantize rounds them; a weight's own gradient passes straight through the rounding
     * (Bengio et al. 2013). Activations stay F32. 0: off */
    int32_t fake_quantize;
    /* recompute activations in backward, n blocks at a time: the same bits in less memory. 1 takes the
     * least memory, a larger n more; the number of blocks or more saves nothing. 0 = keep all */
    int32_t checkpoint_blocks;
    /* Scheduled sampling (Bengio et al. 2015): the probability, 0..1, with which a past action of a batch is
     * the policy's own decision instead of the recorded one. The decisions are drawn from the current
     * weights' distributions by one more forward pass over the batch with its recorded past (Mihaylova &
     * Martins 2019): an approximation, for they do not see each other. Whether a decision is taken is drawn
     * once, and it stands then wherever it is past in its episode; what acted before the batch began, and
     * rows whose past was dropped (exphil_sampling.drop_past), stay as they are. Targets are as recorded,
     * the loss of an update is that with the mixed past, and the carried state is what that pass leaves. The
     * draw is a function of own_past_seed, the update's number and the row. EXPHIL_E_INVALID: the model has
     * no past actions. On a GPU the host is then not ahead of the device */
    double own_past;
    int64_t own_past_ramp_updates; /* own_past is reached by equal steps over so many updates; 0: at once */
    uint64_t own_past_seed;
    /* which weights exphil_trainer_save writes for play, EXPHIL_WEIGHTS or EXPHIL_WEIGHTS_AVERAGED, which needs
     * ema_decay (EXPHIL_E_INVALID). Its checkpoint has both, whatever this is */
    int32_t saved_weights;
    /* 1: what is computed over a chunk has the bits of the steps of play, on the CPU, also where blocks are attention,
     * of which long chunks are otherwise computed in another order (learn.h) */
    int32_t as_played;
    int32_t reduction; /* with a communicator: EXPHIL_REDUCTION_... */
    /* S, a power of two: the same bits for any number of ranks that divides S, one too. The batch of all ranks is computed in
     * S shards of neighbouring lanes, one after another, and what is summed over it is joined by one binary tree over the
     * shards: ((0 + 1) + (2 + 3)) + ... S divides the batch; more than two ranks need a communicator that adds as this tree
     * does over ranks (probed, EXPHIL_E_UNSUPPORTED). Takes log2 of a rank's shards times the memory of gradients, less
     * activations; and more time the fewer lanes a shard has (doc/scale.md). EXPHIL_E_UNSUPPORTED with accumulate, and from
     * exphil_trainer_forward. 0 and 1: the batch is computed at once */
    int32_t shards;
    /* in the place of communicator, on a GPU, with EXPHIL_REDUCTION_SUMS: gradients stay in its memory (ranks.h);
     * copied; NULL: none */
    const struct exphil_device_communicator *device_communicator;
} exphil_trainer_config;
/* clang-format off */
#define EXPHIL_TRAINER_CONFIG_INIT \
  { sizeof(exphil_trainer_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Trains a copy of the model's weights: the model stays as it is and may be played meanwhile. prefetcher
 * may be NULL if only exphil_trainer_step_batch is used. EXPHIL_E_MISMATCH: the data's spec, mode, delays,
 * slots, neutral_start or conditions (names and values; mask is free) are not the model's.
 * EXPHIL_E_UNSUPPORTED: the model is quantised (also from exphil_optimizer_create). */
EXPHIL_API EXPHIL_NODISCARD exphil_status
exphil_trainer_create(const exphil_model *model, exphil_optimizer *optimizer, exphil_prefetcher *prefetcher,
                      const exphil_trainer_config *config, exphil_trainer **trainer, exphil_error *error);

/* Figures of one update. */
typedef struct exphil_metrics {
    size_t struct_size;
    int64_t update;                     /* number of this update, from 1 */
    int64_t epoch;                      /* epoch of its last batch, from 0 */
    int64_t frames;                     /* trained so far */
    double loss;                        /* objective of this update, before the step */
    double head_loss[EXPHIL_HEADS_MAX]; /* mean per frame, not weighted by head */
    double gradient_norm;               /* before clipping */
    double rate;
    double loss_scale; /* 1 but for F16 */
    int64_t time_ns;   /* of this call */
    int64_t waited_ns; /* part of it spent waiting for data */
    int64_t skipped;   /* updates skipped so far because of NaN or infinity */
} exphil_metrics;
/* clang-format off */
#define EXPHIL_METRICS_INIT { sizeof(exphil_metrics), 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* One update with batches from the prefetcher; a new epoch begins by itself. metrics may be NULL.
 * EXPHIL_E_NUMERIC names the tensor whose gradient is not finite, or the loss. Weights, moments and schedule
 * are then as before and the batch is skipped; the carried state of all lanes, which may hold such values
 * too, starts from zero. After any other failure except EXPHIL_E_DEVICE the trainer is as before the call,
 * with its carried state and place in the data: the next call goes on as if nothing had failed.
 * On a GPU the call returns while the update still runs. metrics and EXPHIL_E_NUMERIC are then those of
 * the update before (metrics.update says which; the first update is waited for), and all other calls wait
 * for the running one. With own_past or a device_communicator the call waits for its own update. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_step(exphil_trainer *trainer,
                                                              exphil_metrics *metrics, exphil_error *error);
/* The same with one batch that the host made (accumulate does not apply); every value is checked. All
 * batches of a trainer have the shape of the first, and the carried state follows the lanes. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_step_batch(exphil_trainer *trainer,
                                                                    const exphil_batch *batch,
                                                                    exphil_metrics *metrics,
                                                                    exphil_error *error);

/* Waits for the update that a GPU still works on; metrics, which may be NULL, and EXPHIL_E_NUMERIC are then those of that one.
 * Where none is under way: those of the last one that this trainer has made, if any, and EXPHIL_OK. A call of this rank alone. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_wait(exphil_trainer *trainer,
                                                              exphil_metrics *metrics, exphil_error *error);

/* Which weights of a trainer: the current ones, or their average (EXPHIL_E_STATE if ema_decay is 0). */
enum { EXPHIL_WEIGHTS = 0, EXPHIL_WEIGHTS_AVERAGED = 1 };
/* A new model with the current weights. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_model(const exphil_trainer *trainer, int32_t which,
                                                               exphil_model **model, exphil_error *error);
/* Writes two files, each replaced whole or not at all and synced: first path + ".optimizer", all that resume
 * reads (weights, moments, averaged weights, carried state, counters, place in the data), then path, the
 * weights for play (safetensors; exphil_trainer_config.saved_weights). A kill or a loss of power between them
 * leaves a checkpoint that is one save newer than the weights, never the other way round. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_save(const exphil_trainer *trainer, const char *path,
                                                              exphil_error *error);
/* Needs objects created with the same configuration and data (EXPHIL_E_MISMATCH names the difference;
 * exphil_optimizer_config.resume_new_total allows one); training then goes on, bit for bit, as if it had not
 * stopped. Without a prefetcher the next batch must have the saved run's shape; memory for it is allocated
 * when it comes, not because a file asks for it. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_resume(exphil_trainer *trainer, const char *path,
                                                                exphil_error *error);
EXPHIL_API void exphil_trainer_destroy(exphil_trainer *trainer);

/* How well a model predicts a dataset, teacher-forced but for alone_...: past actions are the recorded ones,
 * and at an episode's start follow the model's neutral_start; conditions are the dataset's, none masked; of
 * several delays one is drawn for each episode, the same at every call (exphil_evaluate_as in conditions.h
 * chooses). "The frame before" is the one before that of the target. */
typedef struct exphil_head_report { /* fixed layout, never extended */
    double loss;                    /* training objective of this head */
    double nll;               /* plain negative log-likelihood, nats per frame (Bernoulli: sum of bits) */
    double accuracy;          /* fraction of frames with this head exactly right */
    double top3;              /* categorical: target among the three most likely; Bernoulli: as accuracy */
    double change_accuracy;   /* accuracy on frames where this head's target differs from the frame before */
    double majority_accuracy; /* baseline: always the dataset's most common value */
    double copy_accuracy;     /* baseline: the value of the frame before */
    double frequency_nll;     /* baseline: the dataset's own frequencies */
} exphil_head_report;
/* The same for whole actions; head[0..heads) are those of the single heads. */
typedef struct exphil_report {
    size_t struct_size;
    int64_t frames;
    int64_t change_frames;        /* frames where any head differs from the frame before */
    double loss;                  /* training objective */
    double nll, frequency_nll;    /* sums over heads */
    double exact_accuracy;        /* all heads right */
    double exact_change_accuracy; /* all heads right, on change frames */
    double exact_majority;        /* baseline: the most common whole action */
    double exact_majority_change;
    double exact_copy; /* baseline: the action of the frame before (0 on change frames) */
    int64_t heads;
    exphil_head_report head[EXPHIL_HEADS_MAX];
    /* The policy alone: its past actions are its own decisions, the most likely ones, and start neutral; the
     * rest of a row is as recorded. So the figures are those of a session (deterministic 1) that is given
     * the rows of an episode from the first one on: in window mode frames count there that come before the
     * first whole window. A policy that is much better teacher-forced than alone repeats the past actions
     * that it is shown, and in play is shown its own. alone_most_frames is the only field that is read; set
     * it to measure at least so many frames, in whole episodes drawn in a fixed order, or all that there
     * are; 0: alone_... stay 0 and cost nothing. A frame costs about a step of play, divided among the
     * context's workers. A model without past actions has its teacher-forced figures here, of all frames,
     * at no cost. The figures do not depend on batch or threads */
    int64_t alone_most_frames;    /* 0: none; below 0 is EXPHIL_E_INVALID */
    int64_t alone_frames;         /* measured */
    int64_t alone_change_frames;  /* of them, where the recorded action differs from the frame before */
    double alone_nll;             /* of the recorded action, nats per frame, sum over heads */
    double alone_accuracy;        /* all heads right */
    double alone_change_accuracy; /* all heads right, on change frames */
    /* The value head against what came: G is the return of the frame in which the row's action acts, of the dataset's
     * rewards (exphil_dataset_rewards_set in learn.h), V what the head says. 0 where there is no such frame: the model has
     * no value head, the dataset no rewards, or all games were cut off */
    int64_t value_frames; /* whose return is known */
    double value_loss;    /* mean (V - G)^2 */
    double
        unexplained; /* value_loss / variance of G: 0 perfect, 1 as good as the mean; 1 where the variance is 0 */
} exphil_report;
/* clang-format off */
#define EXPHIL_REPORT_INIT \
    { sizeof(exphil_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { { 0, 0, 0, 0, 0, 0, 0, 0 } }, 0, 0, 0, 0, 0, 0, \
      0, 0, 0 }
/* clang-format on */

/* losses as in exphil_trainer_config; may be NULL. batch: lanes at a time, 0 = 16; means are summed lane
 * after lane, so their last digits depend on it. frequencies: the dataset for the baselines (the training
 * data); NULL: dataset itself. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_evaluate(const exphil_model *model,
                                                          const exphil_dataset *dataset,
                                                          const exphil_dataset *frequencies,
                                                          const exphil_head_loss *losses, int64_t batch,
                                                          exphil_report *report, exphil_error *error);
/* The same for the trainer's current weights, with its losses; with fake_quantize, for the weights as
 * rounded. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_evaluate(const exphil_trainer *trainer,
                                                                  int32_t which,
                                                                  const exphil_dataset *dataset,
                                                                  const exphil_dataset *frequencies,
                                                                  exphil_report *report, exphil_error *error);

/* Runs two models over every frame of a dataset as exphil_evaluate does (teacher-forced, state carried
 * through episodes) and compares their logits and most likely values: of a Bernoulli head the bits above
 * one half, of ties the lower class. batch as in exphil_evaluate. EXPHIL_E_MISMATCH names what differs
 * between the models (spec, mode, delays, past actions, neutral_start, window, conditions; blocks and widths
 * are free),
 * or from the dataset. EXPHIL_E_NUMERIC names a head whose logits are not finite. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_compare(const exphil_model *reference,
                                                               const exphil_model *model,
                                                               const exphil_dataset *dataset, int64_t batch,
                                                               exphil_comparison *comparison,
                                                               exphil_error *error);

/* ---- 10 session (play) -------------------------------------------------------------------------------- */

/* A model at play: the state of its streams, and all memory that steps need. */
typedef struct exphil_session exphil_session;

typedef struct exphil_head_play { /* fixed layout, never extended */
    float temperature;            /* 0 = 1 */
    int32_t deterministic;        /* 1: take the most likely value */
    float press, release;         /* deterministic bits: on above press, off below release; 0 = 0.5 */
} exphil_head_play;

/* DUE: step returns the action that is due on this frame (decided d frames ago; neutral for the first d).
 * DECIDED: step returns the action just decided, for a game that itself applies the delay d. */
enum { EXPHIL_DELIVER_DUE = 0, EXPHIL_DELIVER_DECIDED = 1 };

/* Streams, delivery and draw of a session. */
typedef struct exphil_session_config {
    size_t struct_size;
    const exphil_head_play *heads; /* [A]; NULL: all defaults */
    const exphil_spec *spec;       /* the host's spec, checked against the model's; NULL: the model's */
    /* the host's delay, checked against the model's; NULL: the model's. A model of several needs one of
     * them here */
    const int32_t *delay_frames;
    const int32_t *mode;   /* the host's mode, likewise */
    uint64_t seed;         /* of the sampling noise */
    int64_t streams;       /* players at once; 0 = 1, at most 4096 */
    int64_t deadline_ns;   /* slower steps are counted; 0 = 16666667 */
    int32_t deterministic; /* 1: all heads take the most likely value; 0: values are sampled */
    int32_t deliver;       /* EXPHIL_DELIVER_... */
    /* [condition_count] what all streams play as; NULL: 0 for all. exphil_session_conditions_set
     * (conditions.h) changes it */
    const int32_t *conditions;
    int64_t condition_count; /* the model's; 0 without conditions */
    int32_t adoptable;       /* 1: exphil_session_adopt (learn.h) gives it new weights between two steps */
    int32_t reserved;        /* must be 0 */
} exphil_session_config;
/* clang-format off */
#define EXPHIL_SESSION_CONFIG_INIT { sizeof(exphil_session_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* config may be NULL. After creation the calls marked "hot" allocate nothing, take no lock, make no system
 * call, and cost the same on every frame (attention: less until its window is full). On a GPU they ask the
 * driver for one recorded launch and wait for it: creation has run a step on zeros, so that libraries have
 * chosen their algorithms, and recorded it. Hot calls return only a status; exphil_session_error has the
 * text. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_create(const exphil_model *model,
                                                                const exphil_session_config *config,
                                                                exphil_session **session,
                                                                exphil_error *error);
/* A second session with the same model, configuration and state. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_clone(const exphil_session *session,
                                                               exphil_session **clone, exphil_error *error);
EXPHIL_API void exphil_session_destroy(exphil_session *session);

/* Hot. Melee: one frame per stream in, one controller per stream out. The action that acts in frame t
 * (with a delay, t + d) is decided from what is known before: the characters as frame t-1 left them, as in
 * the rows of a dataset. On failure no stream has advanced. Only when finite inputs give logits that are
 * not finite (EXPHIL_E_NUMERIC) are the streams concerned reset. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_step(exphil_session *session,
                                                              const exphil_melee_frame *frames,
                                                              exphil_pad *pads);
/* Hot. Any game: floats [B,F], ids [B,K] in, actions [B,A] out. noise: uniform in (0,1), [B,L] for L
 * logits; NULL: the session's own random streams. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_step_row(exphil_session *session,
                                                                  const float *floats, const int32_t *ids,
                                                                  const float *noise, int32_t *actions);
/* Hot. Logits [L] of the last step of a stream, heads in order; count must be L. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_logits(const exphil_session *session, int64_t stream,
                                                                float *logits, int64_t count);
/* Hot. Starts an episode on a stream, or on all with -1: zero state, neutral queue; the random stream goes
 * on, and conditions stay. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_reset(exphil_session *session, int64_t stream);
/* Hot. Replaces the newest decided action of a stream by the action that was taken instead (a human took
 * over, the game refused). */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_override(exphil_session *session, int64_t stream,
                                                                  const int32_t *action);

/* All that a step of one stream depends on, as one flat block: recurrent state (WINDOW: the frames of the
 * window), queue, random stream, conditions, latest logits. It fits any session with the same weights and
 * configuration, in any process and in any later release of libexphil.so.0; else EXPHIL_E_MISMATCH. That of an adoptable
 * session fits whatever weights such a session has: exphil_session_adopt. */
EXPHIL_API size_t exphil_session_state_size(const exphil_session *session);
/* Hot. size_bytes must be exphil_session_state_size. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_state_save(const exphil_session *session,
                                                                    int64_t stream, void *state,
                                                                    size_t size_bytes);
/* Hot. As above. EXPHIL_E_FORMAT: a damaged block. The stream is then as it was. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_state_restore(exphil_session *session,
                                                                       int64_t stream, const void *state,
                                                                       size_t size_bytes);

#define EXPHIL_LATENCY_BUCKETS 64
/* Latency and dimensions of a session. */
typedef struct exphil_session_info {
    size_t struct_size;
    uint64_t steps;
    uint64_t missed; /* steps over deadline_ns */
    /* steps with 2^(i/2) <= nanoseconds / 64 < 2^((i+1)/2); the first and last bucket take the rest */
    uint64_t latency[EXPHIL_LATENCY_BUCKETS];
    /* last, max: exact. p*: upper edge of the bucket, an upper bound within a factor of sqrt(2) */
    int64_t last_ns, max_ns, p50_ns, p99_ns;
    int64_t streams;
    int64_t float_count, id_count, head_count, logit_count;
    uint64_t state_bytes;  /* exphil_session_state_size */
    uint64_t adoptions;    /* exphil_session_adopt so far */
    uint64_t weights_hash; /* exphil_model_info's, of what the next step plays */
} exphil_session_info;
/* clang-format off */
#define EXPHIL_SESSION_INFO_INIT { sizeof(exphil_session_info), 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */
/* Not hot. Latency is counted since creation. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_query(const exphil_session *session,
                                                               exphil_session_info *info,
                                                               exphil_error *error);
/* Why the last failed call on this session failed. Fills error and returns the status of that call
 * (EXPHIL_OK: none failed). */
EXPHIL_API exphil_status exphil_session_error(const exphil_session *session, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
