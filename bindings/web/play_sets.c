/* Kernels that a module can do without, and that would have to be fetched: those of double precision, which are the reference of
 * tests, and those that a better set of the same module stands before, for exphil_play.js has made sure that the host runs it.
 * Here stand empty sets in their place, of a type that nobody asks for, so that the linker leaves them out. Models in double are
 * refused (EXPHIL_E_UNSUPPORTED). */
#include "cpu/kernels.h"

#define NONE(set) const xph_kernel_set xph_kernels_##set = {.name = "none", .type = XPH_BF16};

NONE(f64_ref)
#ifdef XPH_HAVE_SIMD128_SET
NONE(f32_ref)
#endif
#ifdef XPH_HAVE_RELAXED_SET
NONE(f32_simd128)
#endif
