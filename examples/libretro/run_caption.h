/* The line under a picture: who plays, and the points. */
#ifndef EXPHIL_RUN_CAPTION_H
#define EXPHIL_RUN_CAPTION_H

#include <stdint.h>

#define RUN_CAPTION_HEIGHT 11

/* One name at each end, the points in the middle: points [RUN_CAPTION_HEIGHT * width], a byte each as in run_picture.h.
 * Letters become capitals; what is no letter, digit or one of - . : ' becomes a gap. A name too long is cut. */
void run_caption_draw(uint8_t *points, unsigned width, const char *own, const char *other,
                      const int64_t *score);

#endif
