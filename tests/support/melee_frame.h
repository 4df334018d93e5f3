/* Frames of Melee with a different value in every place, for tests of encoders. */
#ifndef EXPHIL_TEST_MELEE_FRAME_H
#define EXPHIL_TEST_MELEE_FRAME_H

#include <exphil/exphil.h>

/* Fox (port 2) against Ice Climbers (port 4) with Nana on Pokemon Stadium; seven items. */
exphil_melee_frame melee_frame(void);
/* A standing character at this place, everything known. */
exphil_melee_character melee_character(float x, float y);

#endif
