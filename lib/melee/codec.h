/* Action codecs of Melee: between a controller and the values of heads. */
#ifndef XPH_MELEE_CODEC_H
#define XPH_MELEE_CODEC_H

#include "melee/melee.h"

enum { XPH_MELEE_HEADS = 6, XPH_HEAD_MAIN_X = 1, XPH_HEAD_C_X = 3 }; /* of exphil81 and exphil81-floor */
enum { XPH_SLIPPI_HEADS = 13 };                                      /* of slippi and slippi-fine */

/* How a stick or trigger becomes the number of a class. */
enum {
    XPH_CODEC_NEAREST,  /* halves away from the centre */
    XPH_CODEC_DOWN,     /* ExPhil's: the last class is never used */
    XPH_CODEC_HALVES_UP /* slippi-ai's */
};

struct xph_melee_codec {
    const char *name;
    int32_t rounding; /* XPH_CODEC_... */
    int32_t buttons;  /* heads that buttons take: 1 of eight bits, or 8 of one */
    int32_t head_count;
    const exphil_head_spec *heads; /* buttons, main_x, main_y, c_x, c_y, shoulder */
};

/* Those of exphil81 and exphil81-floor. */
extern const exphil_head_spec xph_melee_heads[XPH_MELEE_HEADS];

#endif
