/* The order of the table is that of libretro's pad: B Y SELECT START UP DOWN LEFT RIGHT A X L R L2 R2 L3 R3. */
#include "gamecube_pad.h"

exphil_pad gamecube_pad(const struct game_press *press)
{
    static const uint32_t button[16] = {EXPHIL_PAD_B,
                                        EXPHIL_PAD_Y,
                                        0,
                                        EXPHIL_PAD_START,
                                        EXPHIL_PAD_D_UP,
                                        EXPHIL_PAD_D_DOWN,
                                        EXPHIL_PAD_D_LEFT,
                                        EXPHIL_PAD_D_RIGHT,
                                        EXPHIL_PAD_A,
                                        EXPHIL_PAD_X,
                                        0,
                                        EXPHIL_PAD_Z,
                                        EXPHIL_PAD_L,
                                        EXPHIL_PAD_R,
                                        0,
                                        0};
    exphil_pad pad = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 16; i++)
        if (press->buttons & 1u << i) pad.buttons |= button[i];
    pad.main_x = (float)press->axis[0] / 32767;
    pad.main_y = -(float)press->axis[1] / 32767;
    pad.c_x = (float)press->axis[2] / 32767;
    pad.c_y = -(float)press->axis[3] / 32767;
    return pad;
}
