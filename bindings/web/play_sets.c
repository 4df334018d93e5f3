/* Kernels of double precision are the reference of tests, and a quarter of a module that has to be fetched: here stands an empty
 * set in their place, of a type that nobody asks for, so that the linker leaves them out. Models in double are refused
 * (EXPHIL_E_UNSUPPORTED). */
#include "cpu/kernels.h"

const xph_kernel_set xph_kernels_f64_ref = {.name = "none", .type = XPH_BF16};
