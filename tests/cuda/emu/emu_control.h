/* The emulated GPU as tests written in C see it: its memory, its schedules, what went wrong. */
#ifndef EXPHIL_EMU_CONTROL_H
#define EXPHIL_EMU_CONTROL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Order of blocks, of warps in a block and of lanes in a warp between two places where they meet. */
enum { EMU_FORWARD, EMU_REVERSE, EMU_RANDOM, EMU_SCHEDULES };
void emu_schedule(int schedule);

/* Device memory filled with NaN. It ends at a page that cannot be touched (up to alignment, and 16 bytes at most), in
 * the reverse schedule it begins after one. NULL where there is none left. */
void *emu_alloc(size_t bytes, size_t alignment);
void emu_free(void *address);
size_t emu_allocated(void); /* bytes not freed yet */

/* What went wrong first since emu_clear, in words, or NULL. */
const char *emu_fault(void);
void emu_clear(void);

#ifdef __cplusplus
}
#endif

#endif
