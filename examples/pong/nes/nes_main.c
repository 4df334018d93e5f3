/* Pong on the NES: two pads, paddles and ball as sprites, score and edges as background. The field stands in the middle of
 * the screen, at tile (6, 8). */
#include "../pong.h"
#include "../pong_tiles.h"

#define REGISTER(address) (*(volatile uint8_t *)(address))
#define PPU_CONTROL       REGISTER(0x2000)
#define PPU_MASK          REGISTER(0x2001)
#define PPU_SCROLL        REGISTER(0x2005)
#define PPU_ADDRESS       REGISTER(0x2006)
#define PPU_DATA          REGISTER(0x2007)
#define PAD(player)       REGISTER(0x4016 + (player))
#define SPRITES           ((volatile uint8_t *)0x0200)
#define COLUMN            6
#define ROW               8

extern volatile uint8_t picture_done;
#pragma zpsym("picture_done")

static uint8_t shown[2];

static void go_to(uint16_t address)
{
    PPU_ADDRESS = (uint8_t)(address >> 8);
    PPU_ADDRESS = (uint8_t)address;
}

static void fill(uint16_t address, uint8_t tile, uint8_t count)
{
    go_to(address);
    while (count--) PPU_DATA = tile;
}

/* A tile is a plane of low bits and a plane of high bits; ours have the low one only. */
static void load_tiles(void)
{
    uint16_t i;
    uint8_t line;
    go_to(0);
    for (i = 0; i < TILE_COUNT * 8; i += 8) {
        for (line = 0; line < 8; line++) PPU_DATA = pong_tiles[i + line];
        for (line = 0; line < 8; line++) PPU_DATA = 0;
    }
}

static void draw_background(void)
{
    uint8_t row;
    for (row = 0; row < 32; row++)
        fill(0x2000 + row * 32, TILE_EMPTY, 32); /* names, then colours of the table */
    fill(0x2000 + (ROW - 1) * 32 + COLUMN, TILE_ABOVE, 20);
    fill(0x2000 + (ROW + 16) * 32 + COLUMN, TILE_BELOW, 20);
    for (row = 0; row < 16; row++) fill(0x2000 + (ROW + row) * 32 + COLUMN + 9, TILE_MIDDLE, 1);
    for (row = 0; row < 32; row += 4) { /* white on dark blue, sprites in yellow */
        go_to(0x3F00 + row);
        PPU_DATA = 0x01;
        PPU_DATA = row < 16 ? 0x30 : 0x38;
    }
    shown[0] = 255;
    shown[1] = 255;
}

static void draw_score(uint8_t player)
{
    uint8_t tens = 0, ones = pong.score[player];
    if (ones == shown[player]) return;
    shown[player] = ones;
    while (ones >= 10) ones -= 10, tens++;
    go_to(0x2000 + (ROW - 3) * 32 + COLUMN + (player ? 13 : 5));
    PPU_DATA = tens ? TILE_ZERO + tens : TILE_EMPTY;
    PPU_DATA = TILE_ZERO + ones;
}

/* The machine shows a sprite one line below its y. */
static void draw_sprite(uint8_t index, uint8_t tile, uint8_t x, uint8_t y)
{
    volatile uint8_t *sprite = SPRITES + (uint8_t)(index << 2);
    sprite[0] = y + ROW * 8 - 1;
    sprite[1] = tile;
    sprite[2] = 0;
    sprite[3] = x + COLUMN * 8;
}

static void draw_sprites(void)
{
    uint8_t piece;
    draw_sprite(0, TILE_BALL, pong.ball_x, pong.ball_y);
    for (piece = 0; piece < PONG_PADDLE; piece += 8) {
        draw_sprite(1 + (piece >> 2), TILE_LEFT, 0, pong.paddle[0] + piece);
        draw_sprite(2 + (piece >> 2), TILE_RIGHT, PONG_RIGHT, pong.paddle[1] + piece);
    }
}

/* Eight bits one after the other: A, B, Select, Start, up, down, left, right. */
static uint8_t read_pad(uint8_t player)
{
    uint8_t bit, buttons = 0;
    for (bit = 0; bit < 8; bit++) {
        if (!(PAD(player) & 3)) continue;
        if (bit == 4) buttons |= PONG_UP;
        if (bit == 5) buttons |= PONG_DOWN;
    }
    return buttons;
}

void main(void)
{
    load_tiles();
    draw_background();
    pong_start();
    PPU_CONTROL = 0x80; /* an interrupt after each picture */
    for (;;) {
        picture_done = 0;
        while (!picture_done) {
        }
        draw_score(0);
        draw_score(1);
        PPU_SCROLL = 0;
        PPU_SCROLL = 0;
        PPU_MASK = 0x1E; /* background and sprites, up to the edges */
        PAD(0) = 1;      /* both pads remember their buttons now */
        PAD(0) = 0;
        pong.buttons[0] = read_pad(0);
        pong.buttons[1] = read_pad(1);
        pong_step();
        draw_sprites();
    }
}
