/* Door of lib/base, the ground floor: all that differs between systems, and what every room needs: errors,
 * memory, threads, files, numbers, the spec of a game. Nothing here knows Melee, models or the content of
 * files. */
#ifndef XPH_BASE_BASE_H
#define XPH_BASE_BASE_H

#include "abi/least_sizes.h"

#include <exphil/exphil.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#if defined(__MINGW32__) && !defined(__clang__) /* else it checks for what msvcrt.dll takes */
#  define XPH_PRINTF(format_at, args_at) __attribute__((format(gnu_printf, format_at, args_at)))
#elif defined(__GNUC__)
#  define XPH_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#  define XPH_PRINTF(format_at, args_at)
#endif

/* ---- checked sizes: true when the result fits, else *out is untouched ---------------------------------- */

static inline bool xph_size_add(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

static inline bool xph_size_mul(size_t a, size_t b, size_t *out)
{
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

/* Rounds up to a multiple of align, a power of two. */
static inline bool xph_size_align(size_t size, size_t align, size_t *out)
{
    size_t padded;
    if (!xph_size_add(size, align - 1, &padded)) return false;
    *out = padded & ~(align - 1);
    return true;
}

/* ---- numbers: looks at the bits, so that nothing is raised whatever the host's floating-point traps ---- */

static inline bool xph_finite(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits >> 52 & 0x7FF) != 0x7FF;
}

double xph_whole_power(double base, int64_t exponent); /* exponent >= 0 (power.c) */

/* ---- errors -------------------------------------------------------------------------------------------- */

/* Fills error; NULL: nothing to fill. Never use %f, %g or %e here (the locale would show); format numbers
 * with xph_format_double. */
void xph_error_fill(exphil_error *error, exphil_status status, const char *format, ...) XPH_PRINTF(3, 4);
/* The same with an errno value; appends ": <text of errno>". */
void xph_error_fill_errno(exphil_error *error, exphil_status status, int32_t code, const char *format, ...)
    XPH_PRINTF(4, 5);
/* The same with a code of whatever failed below. */
void xph_error_fill_native(exphil_error *error, exphil_status status, int32_t code, const char *format, ...)
    XPH_PRINTF(4, 5);
static inline exphil_status xph_status(exphil_status status)
{
    return status;
}
/* They fill error and return status: `return xph_fail(error, EXPHIL_E_INVALID, "...", ...)`. Macros, so that
 * whoever reads a caller alone, a compiler among them, knows the status. It is evaluated twice. */
#define xph_fail(error, status, ...) (xph_error_fill(error, status, __VA_ARGS__), xph_status(status))
#define xph_fail_errno(error, status, code, ...)                                                             \
  (xph_error_fill_errno(error, status, code, __VA_ARGS__), xph_status(status))
/* Puts "prefix: " before the message of a failure that a lower call has reported; returns its status. */
exphil_status xph_fail_within(exphil_error *error, exphil_status status, const char *format, ...)
    XPH_PRINTF(3, 4);
/* Reports a failure that was kept aside; returns its status. */
static inline exphil_status xph_fail_with(exphil_error *error, const exphil_error *kept)
{
    xph_error_fill_native(error, kept->status, kept->native_code, "%s", kept->message);
    return kept->status;
}
/* Nothing failed yet: an error on the stack that callers may leave unread. */
#define XPH_TRY(call)                                                                                        \
  do {                                                                                                       \
    exphil_status xph_try_status = (call);                                                                   \
    if (xph_try_status < 0) return xph_try_status;                                                           \
  } while (0)

#define XPH_DOUBLE_TEXT 32
/* Shortest of up to %.{precision}g with '.' in any locale, into text[XPH_DOUBLE_TEXT]; returns text. precision 1..17. */
const char *xph_format_double(char *text, double value, int precision);
/* Reads a decimal number with '.' in any locale; the whole of text must be used. */
bool xph_parse_double(const char *text, double *value);

/* ---- configuration structs (rule "Structs" of exphil.h) ------------------------------------------------ */

/* No struct will ever be longer: a larger number is a struct_size that was never set. */
#define XPH_STRUCT_MOST 65536

/* Copies a caller's struct of any age over *known (which holds the defaults). NULL given: nothing is
 * copied. */
#define XPH_TAKE(type, known, given, error)                                                                  \
  xph_config_take((1 ? (known) : (type *)0), sizeof(type), (1 ? (given) : (const type *)0), XPH_LEAST(type), \
                  #type, error)
/* Copies a result into a caller's output struct of any age; leaves its struct_size as it was. */
#define XPH_GIVE(type, given, known, error)                                                                  \
  xph_config_give((1 ? (given) : (type *)0), (1 ? (known) : (const type *)0), sizeof(type), XPH_LEAST(type), \
                  #type, error)
/* Would XPH_GIVE take this output struct? Checked before work that must not be lost. NULL is fine. */
#define XPH_CHECK_OUTPUT(type, given, error)                                                                 \
  xph_config_check((1 ? (given) : (const type *)0), XPH_LEAST(type), #type, error)

/* What the macros call. least_bytes: size of the struct's first release; name: the type's name for the
 * message. */
exphil_status xph_config_take(void *known, size_t known_bytes, const void *given, size_t least_bytes,
                              const char *name, exphil_error *error);
exphil_status xph_config_give(void *given, const void *known, size_t known_bytes, size_t least_bytes,
                              const char *name, exphil_error *error);
exphil_status xph_config_check(const void *given, size_t least_bytes, const char *name, exphil_error *error);

/* ---- context ------------------------------------------------------------------------------------------- */

/* An atomic flag for "one thread at a time": enter says false when somebody is inside. */
typedef struct xph_busy {
    atomic_int inside;
} xph_busy;
bool xph_busy_enter(xph_busy *busy);
void xph_busy_leave(xph_busy *busy);
/* EXPHIL_E_BUSY with the object's name */
exphil_status xph_busy_error(const char *object, exphil_error *error);

/* References: children keep their parents. retain returns its argument. */
exphil_context *xph_context_retain(exphil_context *context);
void xph_context_release(exphil_context *context);
/* EXPHIL_E_INVALID for NULL, EXPHIL_E_STATE in a forked child. First line of every public call. */
exphil_status xph_context_check(const exphil_context *context, exphil_error *error);

/* Memory of the context, aligned to 64 bytes. alloc returns NULL when there is none; bytes 0 gives a unique
 * pointer. calloc zeroes. free needs the same size back; NULL is ignored. */
void *xph_alloc(exphil_context *context, size_t bytes);
void *xph_calloc(exphil_context *context, size_t count, size_t bytes);
void xph_free(exphil_context *context, void *pointer, size_t bytes);
static inline exphil_status xph_no_memory(size_t bytes, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_MEMORY, "could not get %zu bytes", bytes);
}

/* Cuts a block of memory into parts that begin at multiples of 64 bytes. A first pass without base only measures: at is then
 * the size of all, or SIZE_MAX where that is too large for a number (and for xph_alloc). */
typedef struct xph_cutter {
    unsigned char *base;
    size_t at;
} xph_cutter;
/* count x width elements; NULL while measuring. */
void *xph_cut(xph_cutter *cutter, int64_t count, int64_t width, size_t element);

/* A line for the host's log. Delivered at once from the calling thread of a public call; from a worker thread
 * it is queued and delivered by the next xph_log_flush (called at the end of public calls that own
 * threads). */
void xph_log(exphil_context *context, exphil_log_level level, const char *format, ...) XPH_PRINTF(3, 4);
void xph_log_from_worker(exphil_context *context, exphil_log_level level, const char *format, ...)
    XPH_PRINTF(3, 4);
void xph_log_flush(exphil_context *context);

bool xph_cancelled(exphil_context *context);

/* Runs fn(arg, i, worker) for i in [0, count) on the executor or the pool; returns when all are done.
 * fn must not call xph_parallel. workers() is the number of worker numbers there can be. */
typedef void (*xph_task_fn)(void *arg, int64_t i, int32_t worker);
void xph_parallel(exphil_context *context, xph_task_fn fn, void *arg, int64_t count);
int32_t xph_workers(const exphil_context *context);
size_t xph_parallel_bytes(const exphil_context *context); /* that the first call will take for the pool */
/* Between these two the pool's threads look for work for a moment before they sleep, because the next comes
 * at once: an update is a hundred short phases, and to wake a thread takes longer than some of them. They
 * nest. */
void xph_parallel_hold(exphil_context *context);
void xph_parallel_release(exphil_context *context);

/* One long-lived thread (prefetcher): explicit stack, all signals blocked. join waits for its end. */
typedef struct xph_thread xph_thread;
exphil_status xph_thread_create(exphil_context *context, void (*fn)(void *arg), void *arg,
                                xph_thread **thread, exphil_error *error);
void xph_thread_join(xph_thread *thread);
/* The calling thread, and all that it starts from now on, give way to others where the system lets them. */
void xph_thread_step_back(void);

typedef struct xph_mutex xph_mutex; /* with one condition variable */
exphil_status xph_mutex_create(exphil_context *context, xph_mutex **mutex, exphil_error *error);
void xph_mutex_destroy(xph_mutex *mutex);
void xph_mutex_lock(xph_mutex *mutex);
void xph_mutex_unlock(xph_mutex *mutex);
void xph_mutex_wait(xph_mutex *mutex);                 /* unlock, sleep until broadcast, lock */
void xph_mutex_wait_for(xph_mutex *mutex, int64_t ns); /* the same, at most so long */
void xph_mutex_broadcast(xph_mutex *mutex);
void xph_sleep(int64_t ns); /* less than a second */

/* ---- CPU ----------------------------------------------------------------------------------------------- */

typedef int32_t xph_isa; /* levels in ascending order */
enum {
    XPH_ISA_REF = 0,
    XPH_ISA_AVX2 = 1,        /* AVX2+FMA+F16C */
    XPH_ISA_AVX2_VNNI = 2,   /* ... and int8 products (AVX-VNNI) */
    XPH_ISA_AVX512 = 3,      /* F+BW+DQ+VL; not all of them have AVX-VNNI */
    XPH_ISA_AVX512_VNNI = 4, /* ... and int8 products */
    XPH_ISA_AVX512_BF16 = 5, /* ... and bfloat16 products */
    XPH_ISA_NEON = 6,        /* AArch64's Advanced SIMD */
    XPH_ISA_NEON_DOT = 7,    /* ... and int8 products (FEAT_DotProd) */
    XPH_ISA_SIMD128 = 8,     /* WebAssembly's vectors */
    XPH_ISA_RELAXED = 9,     /* ... and multiply-adds of relaxed SIMD, where the host fuses them */
    XPH_ISA_COUNT = 10
};
/* Whether a level is at most another: of two kinds of processor only XPH_ISA_REF is. */
static inline bool xph_isa_within(xph_isa level, xph_isa most)
{
    return level == XPH_ISA_REF || (level <= most && (level >= XPH_ISA_NEON) == (most >= XPH_ISA_NEON) &&
                                    (level >= XPH_ISA_SIMD128) == (most >= XPH_ISA_SIMD128));
}
/* What the processor has with the system's consent (CPUID and XGETBV; HWCAP), and the level that is best on it. That
 * is never XPH_ISA_AVX512_BF16 where its products are slower than fused multiply-adds (Intel's). */
bool xph_cpu_has(xph_isa level);
xph_isa xph_cpu_detect(void);
const char *xph_isa_name(xph_isa isa); /* "avx512vnni" */
void xph_cpu_name(char *name, size_t bytes);
int32_t xph_cpu_count(void); /* cores this process may use */
xph_isa xph_context_isa(const exphil_context *context);

/* Rounds to nearest, no flush to zero, no traps, for the time of a call (results must not depend on the
 * host's mode); pop puts the caller's mode back. Every public compute call and every pool thread does
 * this. */
typedef uint32_t xph_fpu;
xph_fpu xph_fpu_push(void);
void xph_fpu_pop(xph_fpu saved);
static inline void xph_fpu_leave(const xph_fpu *saved)
{
    xph_fpu_pop(*saved);
}
/* First in a function: the library's mode until it returns, however it does. Numbers of files and hosts are
 * looked at and converted there, and a signalling NaN must raise nothing where the host has unmasked an
 * exception. */
#define XPH_OWN_FPU __attribute__((cleanup(xph_fpu_leave), unused)) xph_fpu xph_fpu_saved = xph_fpu_push()

/* index of the first infinity or NaN, or -1 */
int64_t xph_find_not_finite(const float *values, int64_t count);
/* The same, and a copy of them all. */
int64_t xph_copy_finite(float *to, const float *from, int64_t count);

int64_t xph_clock_ns(void); /* monotonic */

int64_t xph_memory_total(void); /* of the machine, bytes; 0: not known */
/* What this process could still take without pushing others out, its control group's limit counted: bytes; 0: not known.
 * root: the folder of the system, "" but in tests. */
int64_t xph_memory_free(const char *root);

/* For lib/device/context.c only: a context without a device; then what it opened for the context, which close
 * ends with it. The host's memory figures go into info. */
exphil_status xph_context_make(const exphil_context_config *config, exphil_context **context,
                               exphil_error *error);
/* As many workers, the same instruction set, allocator and files; no log and no cancel hook. */
exphil_status xph_context_like(const exphil_context *of, exphil_context **context, exphil_error *error);
/* Its allocator and files. */
void xph_context_hooks(const exphil_context *context, exphil_allocator *allocator, exphil_io *io);
void xph_context_attach(exphil_context *context, void *attached, void (*close)(void *attached));
void *xph_context_attached(const exphil_context *context);
void xph_context_host_memory(const exphil_context *context, exphil_memory_info *info);

/* ---- random numbers ------------------------------------------------------------------------------------ */

/* Philox4x32-10 (Salmon et al., SC 2011): the n-th number is a pure function of (seed, stream, n). The struct
 * is plain data; copying it copies the stream. */
typedef struct xph_rng {
    uint64_t seed, stream, position;
} xph_rng;
/* streams, so that no two uses of one seed share numbers */
enum {
    XPH_RNG_INIT = 1,
    XPH_RNG_SHUFFLE = 2,
    XPH_RNG_SAMPLE = 3,
    XPH_RNG_SPLIT = 4,
    XPH_RNG_TEST = 5,
    XPH_RNG_GROUP = 6,
    XPH_RNG_STABLE = 7,
    XPH_RNG_MIRROR = 8,
    XPH_RNG_EPISODE = 9,
    XPH_RNG_WORLD = 10, /* inside a game */
    XPH_RNG_GAMES = 11, /* seeds of the episodes of a rollout */
    XPH_RNG_LEARN = 12, /* order of a learner */
    XPH_RNG_MATCH = 13, /* starts of a match, and the interval of its score */
    XPH_RNG_CHANCE = 14 /* draws of a seat in a match */
};
enum { XPH_RNG_DROP = 16, XPH_RNG_OWN = 17 }; /* past actions: dropped, replaced by own decisions */
void xph_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]); /* the bare function */
uint32_t xph_rng_u32(xph_rng *rng);
uint64_t xph_rng_u64(xph_rng *rng);
uint64_t xph_rng_below(xph_rng *rng, uint64_t bound); /* uniform in [0, bound), exactly; bound > 0 */
double xph_rng_double(xph_rng *rng);                  /* uniform in [0, 1), 53 bits */
float xph_rng_float(xph_rng *rng);                    /* uniform in (0, 1): never 0, never 1; 24 bits */
void xph_rng_floats(xph_rng *rng, float *to, int64_t count); /* the same numbers, many at a time */

/* ---- hashes -------------------------------------------------------------------------------------------- */

/* XXH64 with seed 0 (Collet's xxHash specification), one shot and in pieces. */
uint64_t xph_hash(const void *data, size_t bytes);
typedef struct xph_hasher {
    uint64_t lane[4], total;
    uint8_t tail[32];
    uint32_t tail_bytes, reserved;
} xph_hasher;
void xph_hash_begin(xph_hasher *hasher);
void xph_hash_add(xph_hasher *hasher, const void *data, size_t bytes);
uint64_t xph_hash_end(const xph_hasher *hasher);
uint32_t xph_crc32(uint32_t crc, const void *data, size_t bytes); /* zlib's; start with 0 */
/* Verdict on a checksum; always true in fuzzing builds (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION). */
bool xph_hash_equal(uint64_t found, uint64_t expected);

/* Mixes all bits of a key with all others (the end of MurmurHash3, Appleby). */
static inline uint64_t xph_mix(uint64_t key)
{
    key = (key ^ key >> 33) * 0xFF51AFD7ED558CCDu;
    key = (key ^ key >> 33) * 0xC4CEB9FE1A85EC53u;
    return key ^ key >> 33;
}

/* What tables of keys from files mix into them: where a table happens to lie and when it was made, which nobody who
 * writes files knows. Their keys cannot all begin in one place. */
static inline uint64_t xph_salt(const void *table)
{
    return (uint64_t)(uintptr_t)table ^ (uint64_t)xph_clock_ns() << 20;
}

/* A set of 64-bit keys (set.c), the keys 0 and 2^64 / golden ratio being one. */
typedef struct xph_set {
    exphil_context *context;
    uint64_t *keys; /* 0: empty place */
    int64_t count, capacity;
    uint64_t salt; /* of the order in the table, which nothing shows */
} xph_set;
void xph_set_begin(exphil_context *context, xph_set *set);
void xph_set_free(xph_set *set);
exphil_status xph_set_reserve(xph_set *set, int64_t more,
                              exphil_error *error); /* room for so many more keys */
void xph_set_add(xph_set *set, uint64_t value);     /* needs room */
bool xph_set_has(const xph_set *set, uint64_t value);

/* Which of `count` things belong together (join.c), at most 2^32 - 1 of them: those with equal keys, and those that are
 * so joined by others. */
typedef struct xph_join {
    exphil_context *context;
    uint32_t *least; /* [count] of a thing: itself, or a lesser one that it is joined with */
    uint32_t *first; /* [capacity] a table: 1 + the first thing with a key; 0: empty place */
    int64_t count, capacity;
    uint64_t salt; /* of the order in the table, which nothing shows */
} xph_join;
exphil_status xph_join_begin(exphil_context *context, int64_t count, xph_join *join, exphil_error *error);
void xph_join_free(xph_join *join);
/* Joins the things whose keys [count] are equal; the key 0 joins nothing. */
void xph_join_equal(xph_join *join, const uint64_t *keys);
/* The least of all things that thing i is joined with. */
int64_t xph_joined(xph_join *join, int64_t i);

/* ---- files --------------------------------------------------------------------------------------------- */

/* A file that is open for reading, by one thread at a time. path is borrowed, for messages; bytes is the size
 * that it had when it was opened. */
typedef struct xph_file {
    exphil_context *context;
    void *handle;
    const char *path;
    uint64_t bytes;
} xph_file;
/* Fails with EXPHIL_E_IO, and with EXPHIL_E_FORMAT when the file is longer than limit_bytes. */
exphil_status xph_file_open(exphil_context *context, const char *path, uint64_t limit_bytes, xph_file *file,
                            exphil_error *error);
/* All of the bytes, or EXPHIL_E_IO, or EXPHIL_E_FORMAT with the byte where the file ends now. */
exphil_status xph_file_read(const xph_file *file, uint64_t offset, void *to, size_t bytes,
                            exphil_error *error);
/* May several threads read it at once? A host's hooks are not called twice at a time for one file. */
bool xph_file_many(const xph_file *file);
void xph_file_close(xph_file *file); /* closed, or never opened and all zero: nothing */

/* What kind of thing is there: EXPHIL_IO_FILE, ... */
exphil_status xph_path_kind(exphil_context *context, const char *path, int32_t *kind, exphil_error *error);
/* Names in a folder that end in `suffix`, in the order of their bytes; begin with NULL. EXPHIL_E_UNSUPPORTED: the
 * host's io cannot list. */
typedef struct xph_folder {
    exphil_context *context;
    char **names;
    int64_t count, capacity;
} xph_folder;
exphil_status xph_folder_list(exphil_context *context, const char *path, const char *suffix,
                              xph_folder *folder, exphil_error *error);
void xph_folder_free(xph_folder *folder);
/* "folder/name" in context memory of *bytes; NULL: no memory. */
char *xph_path_join(exphil_context *context, const char *folder, const char *name, size_t *bytes);

/* A file that stays open while several objects use it (file_shared.c). It is read when bytes are needed, never
 * mapped: whoever shortens it meanwhile would end the process. */
typedef struct xph_shared_file {
    exphil_context *context;
    atomic_int references;
    xph_file file;
    xph_mutex *lock; /* around a host's read, which is not called twice at a time; NULL: the library's own */
    size_t bytes;    /* of this struct and the name behind it */
    char name[];     /* of the file, for messages */
} xph_shared_file;
exphil_status xph_shared_open(exphil_context *context, const char *path, xph_shared_file **shared,
                              exphil_error *error);          /* with one reference */
xph_shared_file *xph_shared_retain(xph_shared_file *shared); /* the same; NULL: NULL */
void xph_shared_release(xph_shared_file *shared);
/* On any thread. EXPHIL_E_FORMAT with the byte where the file ends now, EXPHIL_E_IO. */
exphil_status xph_shared_read(const xph_shared_file *shared, uint64_t offset, void *to, size_t bytes,
                              exphil_error *error);

/* A part of a file in context memory. Who fetches has looked at the head of the file: a hole costs nobody
 * anything, but memory for it does. The cancel hook is called (EXPHIL_E_CANCELLED). */
typedef struct xph_file_data {
    exphil_context *context;
    uint8_t *data;
    size_t bytes;
} xph_file_data;
exphil_status xph_file_fetch(const xph_file *file, uint64_t offset, size_t bytes, xph_file_data *data,
                             exphil_error *error);
void xph_file_release(xph_file_data *data);

/* Atomic writing: begin makes "<path>.exphil-tmp" (a stale one is removed), add appends, commit syncs,
 * renames, closes and syncs the folder; any failure, or cancel, removes the temporary and leaves the old
 * file. The rename comes before the close, because the close gives up the lock that keeps other writers off.
 * Refuses a target that exists and is not a regular file (symbolic links are not followed). */
typedef struct xph_file_writer {
    exphil_context *context;
    void *file;
    char *path, *temporary;
    size_t path_bytes;
    uint64_t written;
} xph_file_writer;
exphil_status xph_file_begin(exphil_context *context, const char *path, xph_file_writer *writer,
                             exphil_error *error);
exphil_status xph_file_add(xph_file_writer *writer, const void *data, size_t bytes, exphil_error *error);
/* Another name in the same folder, where there is none yet or a regular file, for what was begun. */
exphil_status xph_file_rename(xph_file_writer *writer, const char *path, exphil_error *error);
exphil_status xph_file_commit(xph_file_writer *writer, exphil_error *error);
void xph_file_cancel(xph_file_writer *writer);

/* ---- spec: what a frame of a game looks like (spec.c) -------------------------------------------------- */

/* EXPHIL_E_INVALID names the field. Everything below expects a spec that passed here. */
exphil_status xph_spec_check(const exphil_spec *spec, exphil_error *error);
/* Checks, then copies into one flat block with all texts. Widths of 0 become 8 and a layout_hash of 0 becomes
 * the one made from names and sizes, so a copy can be written to a file as it is; exphil_spec_hash stays the
 * same. */
exphil_status xph_spec_copy(exphil_context *context, const exphil_spec *spec, exphil_spec **copy,
                            exphil_error *error);
void xph_spec_free(exphil_context *context, exphil_spec *spec); /* NULL is ignored */
int64_t xph_spec_logits(const exphil_spec *spec);               /* L: bits and classes of all heads */
/* Every head value of action [A] in range? row goes into the message unless it is negative. */
exphil_status xph_action_check(const exphil_spec *spec, const int32_t *action, int64_t row,
                               exphil_error *error);
bool xph_name_fine(const char *text); /* 1..31 of [a-z0-9_.]; NULL is not */

/* ---- told: what a policy knows beside the frame (told.c) ----------------------------------------------- */

/* Conditions, and with several delays which of them holds, as one more column behind them. The value of a
 * condition is 1..values or 0, not known; that of the delay is 1 + its index. Filled in its place: names
 * point into it. */
typedef struct xph_told {
    exphil_condition_spec condition[EXPHIL_CONDITIONS_MAX];
    char name[EXPHIL_CONDITIONS_MAX][32];
    int32_t delay[EXPHIL_DELAYS_MAX];
    int64_t conditions, delays;
} xph_told;
/* Checks and copies, with widths of 0 written out. delay_frames: 0 or the longest of the delays, and becomes
 * that one where there are any. EXPHIL_E_INVALID names the field, behind `of` ("sampling"). */
exphil_status xph_told_take(xph_told *told, const exphil_condition_spec *conditions, int64_t condition_count,
                            const int32_t *delays, int64_t delay_count, int32_t *delay_frames, const char *of,
                            exphil_error *error);
static inline int64_t xph_told_columns(const xph_told *told)
{
    return told->conditions + (told->delays > 0);
}
/* Values of a column: 0..entries-1. */
static inline int32_t xph_told_entries(const xph_told *told, int64_t column)
{
    return 1 + (column < told->conditions ? told->condition[column].values : (int32_t)told->delays);
}
/* EXPHIL_E_INVALID unless count is that of the conditions and every value is one of theirs; NULL with count 0
 * is fine. */
exphil_status xph_told_check(const xph_told *told, const int32_t *values, int64_t count, const char *of,
                             exphil_error *error);
/* 1 + the index of a delay; 0 if there are no several. EXPHIL_E_MISMATCH lists the delays. */
exphil_status xph_told_delay(const xph_told *told, int32_t delay, int32_t *id, exphil_error *error);
/* Past actions that a policy of several delays sees with one of them: those that a policy of this delay alone sees, the d
 * under way and, if it has a slot for it, the one of the frame before. */
static inline int64_t xph_told_slots(int64_t delay, int64_t longest, int64_t slots)
{
    int64_t seen = delay + (slots > longest ? slots - longest : 0);
    return seen < slots ? seen : slots;
}
/* EXPHIL_E_MISMATCH names the first difference: counts, names, values, delays. Masks and widths are free. */
exphil_status xph_told_same(const xph_told *told, const xph_told *other, const char *whose,
                            const char *others, exphil_error *error);
#define XPH_DELAYS_TEXT (4 * EXPHIL_DELAYS_MAX)
const char *xph_told_delays(const xph_told *told, char text[XPH_DELAYS_TEXT]); /* "0, 2, 4" */

#endif
