/* Pictures of eight by eight points, one bit a point, for consoles that draw with tiles. */
#ifndef EXPHIL_PONG_TILES_H
#define EXPHIL_PONG_TILES_H

#include <stdint.h>

enum {
    TILE_EMPTY,
    TILE_BALL,   /* in the upper left corner */
    TILE_LEFT,   /* a piece of the left paddle: points 4 to 7 of each line */
    TILE_RIGHT,  /* of the right one: points 0 to 3 */
    TILE_ABOVE,  /* the edge above the field, on the last line */
    TILE_BELOW,  /* the edge below it, on the first line */
    TILE_MIDDLE, /* a dash of the line between the players */
    TILE_ZERO,   /* ten digits */
    TILE_COUNT = TILE_ZERO + 10
};

extern const uint8_t pong_tiles[TILE_COUNT * 8];

#endif
