/* Moving pictures as GIF files: 256 colours (3 bits red, 3 green, 2 blue), one loop, only what changes from frame to
 * frame. */
#ifndef EXPHIL_RUN_PICTURE_H
#define EXPHIL_RUN_PICTURE_H

#include <stdint.h>

struct run_picture;

/* NULL: no memory, or the file cannot be made (errno). */
struct run_picture *run_picture_open(const char *path, unsigned width, unsigned height);
/* points [height * width], a byte each. hundredths: of a second that the frame is shown. */
void run_picture_add(struct run_picture *picture, const uint8_t *points, unsigned hundredths);
/* 0: all of it is in the file. */
int run_picture_close(struct run_picture *picture);

#endif
