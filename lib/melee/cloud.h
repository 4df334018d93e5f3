/* Where the cloud of Yoshi's Story is. */
#ifndef XPH_MELEE_CLOUD_H
#define XPH_MELEE_CLOUD_H

#include "base/base.h"

enum { XPH_CLOUD_PERIOD = 1200 }; /* frames in which it goes round once */

/* Its middle, in the units of the game, phase frames after its round began (the frame's number modulo the period). */
void xph_melee_cloud_at(int32_t phase, double *x, double *y);

#endif
