/* Action codecs of Melee: between a controller and the values of six heads. */
#ifndef XPH_MELEE_CODEC_H
#define XPH_MELEE_CODEC_H

#include "melee/melee.h"

enum { XPH_MELEE_HEADS = 6, XPH_HEAD_MAIN_X = 1, XPH_HEAD_C_X = 3 };

struct xph_melee_codec {
    const char *name;
    int32_t floor; /* 1: ExPhil's own rounding, down; 0: to the nearest */
};

/* Both codecs have the same heads: buttons, main_x, main_y, c_x, c_y, shoulder. */
extern const exphil_head_spec xph_melee_heads[XPH_MELEE_HEADS];

#endif
