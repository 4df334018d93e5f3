/* Table B: CPU kernels per instruction set. A set is one `static const` table made by compiling
 * lib/cpu/kernels (and, for a level that has better code, its own folder) with that level's flags; XPH_SET
 * names it. All sets of one type give the same bits: sums run in one fixed order, multiply-adds are explicit
 * fma, no libm.
 *
 * For every operation of table A a set has an ordered list of candidates, of which the last accepts
 * everything (except more than 256 states of a scan or 256 taps of a convolution, which lie on the stack, and
 * except weights of fewer bits, which have candidates in single precision only). A candidate is a chain of
 * phases; the items of one phase are independent and may run on any thread in any order, phases run one after
 * the other. Tests and benchmarks walk the same lists.
 *
 * The thread may have a stack of 64 KiB in all: no function takes 32 (a warning of the compiler says which
 * does). Larger arrays lie in scratch, which has as many slots as the phase has items; a call takes the slot
 * of its first item. */
#ifndef XPH_CPU_KERNELS_H
#define XPH_CPU_KERNELS_H

#include "device/backend.h"

#include <stdbool.h>

#define XPH_PHASES 6

typedef struct xph_phase {
    int64_t (*items)(const void *args);                        /* how many independent pieces of work */
    void (*run)(const void *args, int64_t begin, int64_t end); /* items [begin, end) */
} xph_phase;

typedef struct xph_candidate {
    const char *name;
    bool (*accepts)(const void *args);         /* NULL: everything */
    size_t (*scratch_bytes)(const void *args); /* NULL: none; shared by all items of the op */
    xph_phase phase[XPH_PHASES];               /* ends at the first without run */
} xph_candidate;

typedef struct xph_kernel_set {
    const char *name; /* "f32_avx2" */
    xph_type type;
    int32_t isa;                           /* XPH_ISA_* */
    const xph_candidate *op[XPH_OP_COUNT]; /* lists, each ended by a candidate without name */
    /* Before a candidate's accepts is called: puts the kernels that it calls into args. */
    void (*compose)(xph_op op, void *args);
} xph_kernel_set;

/* The sets of this build, the only list; levels ascend within a type. f64_avx2 is the reference with the
 * processor's fma, where libm's is a function. */
#ifdef XPH_HAVE_X86_SETS
#  define XPH_SETS(each)                                                                                     \
    each(f64_ref) each(f32_ref) each(f64_avx2) each(f32_avx2) each(f32_avx2vnni) each(f32_avx512)            \
        each(f32_avx512vnni) each(f32_avx512bf16)
#elif defined(XPH_HAVE_ARM_SETS)
#  define XPH_SETS(each) each(f64_ref) each(f32_ref) each(f32_neon) each(f32_neondot)
#elif defined(XPH_HAVE_RELAXED_SET)
#  define XPH_SETS(each) each(f64_ref) each(f32_ref) each(f32_simd128) each(f32_relaxed)
#elif defined(XPH_HAVE_SIMD128_SET)
#  define XPH_SETS(each) each(f64_ref) each(f32_ref) each(f32_simd128)
#else
#  define XPH_SETS(each) each(f64_ref) each(f32_ref)
#endif
#define XPH_DECLARE_SET(name) extern const xph_kernel_set xph_kernels_##name;
XPH_SETS(XPH_DECLARE_SET)
#undef XPH_DECLARE_SET

/* Packed weights: panels of XPH_PANEL outputs, each [in][XPH_PANEL], so that one column of a panel lies
 * together; the last panel is filled up with zeros. All sets share the format. */
enum { XPH_PANEL = 64 };
/* Weights of fewer bits fill up so many (format: kernels/linear_narrow.h). */
enum { XPH_NARROW_PANEL = 16 };
/* Bytes of packed for the operations that have it (linear, linear_pack, rnn), else 0. */
size_t xph_kernels_packed_bytes(xph_op op, const void *args);

/* Best set of a type whose level is at most isa. */
const xph_kernel_set *xph_kernels_pick(xph_type type, int32_t isa);
/* Composes, then the first candidate that accepts; NULL where there is none. */
const xph_candidate *xph_kernels_choose(const xph_kernel_set *set, xph_op op, void *args);
/* The first of a list that accepts, or NULL. */
const xph_candidate *xph_kernels_first(const xph_candidate *list, const void *args);

#endif
