/* Pong on the Game Boy. Two people share its one pad: the cross moves the left paddle, B (up) and A (down) the right one.
 * Two rows of text stand above the field, which fills the rest of the screen. */
#include "../pong.h"
#include "../pong_tiles.h"

#define REGISTER(address) (*(volatile uint8_t *)(address))
#define PAD               REGISTER(0xFF00)
#define LCD_CONTROL       REGISTER(0xFF40)
#define LCD_LINE          REGISTER(0xFF44)
#define TILES             ((volatile uint8_t *)0x8000)
#define BACKGROUND        ((volatile uint8_t *)0x9800)
#define SPRITES           ((volatile uint8_t *)0xFE00)
#define ROW               2
#define LINES             144 /* of the screen; after them the machine rests for ten more */

static void load_tiles(void)
{
    volatile uint8_t *to = TILES;
    uint16_t i;
    for (i = 0; i < TILE_COUNT * 8; i++) { /* low and high bit of every line: the darkest shade */
        *to++ = pong_tiles[i];
        *to++ = pong_tiles[i];
    }
}

static void draw_background(void)
{
    uint16_t i;
    for (i = 0; i < 1024; i++) BACKGROUND[i] = TILE_EMPTY;
    for (i = 0; i < 20; i++) BACKGROUND[(ROW - 1) * 32 + i] = TILE_ABOVE;
    for (i = 0; i < 16; i++) BACKGROUND[(ROW + i) * 32 + 9] = TILE_MIDDLE;
    for (i = 0; i < 160; i++) SPRITES[i] = 0;
}

static void draw_score(uint8_t player)
{
    uint8_t tens = 0, ones = pong.score[player];
    volatile uint8_t *to = BACKGROUND + (player ? 13 : 5);
    while (ones >= 10) ones -= 10, tens++;
    to[0] = tens ? (uint8_t)(TILE_ZERO + tens) : TILE_EMPTY;
    to[1] = (uint8_t)(TILE_ZERO + ones);
}

/* The machine counts a sprite's place from (-8, -16). */
static void draw_sprite(uint8_t index, uint8_t tile, uint8_t x, uint8_t y)
{
    volatile uint8_t *sprite = SPRITES + (uint8_t)(index << 2);
    sprite[0] = (uint8_t)(y + ROW * 8 + 16);
    sprite[1] = (uint8_t)(x + 8);
    sprite[2] = tile;
    sprite[3] = 0;
}

static void draw_sprites(void)
{
    uint8_t piece;
    draw_sprite(0, TILE_BALL, pong.ball_x, pong.ball_y);
    for (piece = 0; piece < PONG_PADDLE; piece += 8) {
        draw_sprite((uint8_t)(1 + (piece >> 2)), TILE_LEFT, 0, (uint8_t)(pong.paddle[0] + piece));
        draw_sprite((uint8_t)(2 + (piece >> 2)), TILE_RIGHT, PONG_RIGHT, (uint8_t)(pong.paddle[1] + piece));
    }
}

/* select: 0x20 shows the cross (right, left, up, down), 0x10 the buttons (A, B, Select, Start), pressed is 0. The lines
 * need a moment: read twice. */
static uint8_t read_lines(uint8_t select)
{
    uint8_t lines;
    PAD = select;
    lines = PAD;
    lines = PAD;
    PAD = 0x30;
    return (uint8_t)~lines;
}

static void read_pad(void)
{
    uint8_t cross = read_lines(0x20), keys = read_lines(0x10);
    pong.buttons[0] = (uint8_t)(((cross & 4u) ? PONG_UP : 0) | ((cross & 8u) ? PONG_DOWN : 0));
    pong.buttons[1] = (uint8_t)(((keys & 2u) ? PONG_UP : 0) | ((keys & 1u) ? PONG_DOWN : 0));
}

void main(void)
{
    while (LCD_LINE != LINES) {
    }
    LCD_CONTROL = 0; /* off: its memory is ours */
    REGISTER(0xFF42) = 0;
    REGISTER(0xFF43) = 0;
    REGISTER(0xFF47) = 0xE4; /* shades of background and sprites */
    REGISTER(0xFF48) = 0xE4;
    load_tiles();
    draw_background();
    pong_start();
    LCD_CONTROL = 0x93; /* on: background and sprites, tiles from 0x8000 */
    for (;;) {
        while (LCD_LINE == LINES) {
        }
        while (LCD_LINE != LINES) {
        }
        draw_sprites();
        draw_score(0);
        draw_score(1);
        read_pad();
        pong_step();
    }
}
