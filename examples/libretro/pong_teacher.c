/* The teacher of Pong as the plugin loads one: EXPHIL_TEACHER names a library with this one function. */
#include "../pong/teacher.h"

#include "../pong/pong.h"

#include <libretro-common/libretro.h> /* RETRO_API: what a library shows */

RETRO_API int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action);

/* The map's head "move": 0 nothing, 1 up, 2 down. */
int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action)
{
    if (bytes < PONG_STATE_BYTES || player < 1 || player > 2) return -1;
    int buttons = pong_teacher(state, (unsigned)player - 1);
    action[0] = buttons == PONG_UP ? 1 : buttons == PONG_DOWN ? 2 : 0;
    return 0;
}
