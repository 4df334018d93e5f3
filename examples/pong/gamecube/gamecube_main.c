/* Pong on the GameCube, on the bare machine: NTSC, one step of the game a field, 59.94 a second. The picture is 160 by 240 points,
 * stretched to four times its width by the video interface and shown in both fields: an emulator copies it on every field, and of
 * 640 by 480 points that takes ten times as long as all the rest.
 * Two controllers, a paddle each: stick or cross. START begins a new game; the left trigger, held with it, seeds its random
 * numbers, so that a host can have the same game again. The game's bytes lie at 0x80300000 (PONG_ADDRESS). */
#include "../pong.h"
#include "../pong_tiles.h"

#define WORD(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define HALF(address) (*(volatile uint16_t *)(uintptr_t)(address))
#define FRAMES        WORD(0x80300040u) /* steps that are whole; hosts wait for it */
#define RETRACES      WORD(0x80300080u) /* counted by gamecube_start.s */
#define VIDEO         0xCC002000u
#define INTERRUPTS    0xCC003000u
#define SERIAL        0xCC006400u
#define PICTURE       0x00400000u /* two bytes a point; written past the cache */
#define LINES         240u
#define LINE_BYTES    (PONG_WIDTH * 2u)
#define TOP           36u     /* lines above the field */
#define BLACK         0x1080u /* brightness, no colour */
#define GREY          0x5080u
#define WHITE         0xEB80u

extern const uint32_t retrace_vector[], retrace_vector_end[];

/* ---- picture ---- */

/* Two pixels of the game are three lines. */
static uint32_t line_of(int y)
{
    return (0xC0000000u | PICTURE) + (uint32_t)((int)TOP + y * 3 / 2) * LINE_BYTES;
}

/* In pixels of the game; y counts from the upper edge of the field. */
static void fill(int x, int y, int width, int height, uint16_t colour)
{
    for (uint32_t line = line_of(y) + (uint32_t)x * 2; line < line_of(y + height); line += LINE_BYTES)
        for (uint32_t point = 0; point < (uint32_t)width * 2; point += 2) HALF(line + point) = colour;
}

static void draw_score(int player)
{
    const uint8_t *tile = pong_tiles + 8 * TILE_ZERO, *digit;
    for (int place = 0; place < 2; place++) {
        int value = place ? pong.score[player] % 10 : pong.score[player] / 10;
        digit = tile + 8 * value;
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                fill((player ? 104 : 40) + place * 8 + x, y - 14, 1, 1,
                     digit[y] & (0x80 >> x) ? WHITE : BLACK);
    }
}

struct drawn {
    int ball_x, ball_y, paddle[2], score[2];
};

/* What has moved is wiped out and drawn anew; the line in the middle is drawn again in case that the ball was over it. */
static void draw(struct drawn *old)
{
    fill(old->ball_x, old->ball_y, PONG_BALL, PONG_BALL, BLACK);
    for (int y = 2; y < PONG_HEIGHT; y += 8) fill(PONG_WIDTH / 2, y, 1, 4, GREY);
    old->ball_x = pong.ball_x;
    old->ball_y = pong.ball_y;
    for (int player = 0; player < 2; player++) {
        int x = player ? PONG_RIGHT : PONG_LEFT - 4;
        fill(x, old->paddle[player], 4, PONG_PADDLE, BLACK);
        old->paddle[player] = pong.paddle[player];
        fill(x, old->paddle[player], 4, PONG_PADDLE, WHITE);
        if (old->score[player] == pong.score[player]) continue;
        old->score[player] = pong.score[player];
        draw_score(player);
    }
    fill(old->ball_x, old->ball_y, PONG_BALL, PONG_BALL, WHITE);
}

static void start_picture(void)
{
    static const uint32_t timing[] = {0x0F060001, 0x476901AD, 0x02EA5140,
                                      0x00030018, /* NTSC: 525 lines of 429 samples, */
                                      0x00020019, 0x410C410C, 0x40ED40ED}; /* 240 to see in each field */
    for (uint32_t at = 0; at < LINES * LINE_BYTES; at += 2) HALF((0xC0000000u | PICTURE) + at) = BLACK;
    fill(0, -2, PONG_WIDTH, 1, GREY);
    fill(0, PONG_HEIGHT + 1, PONG_WIDTH, 1, GREY);
    HALF(VIDEO + 0x00) = (uint16_t)(timing[0] >> 16);
    for (uint32_t i = 1; i < sizeof timing / sizeof *timing; i++) WORD(VIDEO + i * 4) = timing[i];
    WORD(VIDEO + 0x1C) = 0x10000000u | PICTURE >> 5; /* of the first field ... */
    WORD(VIDEO + 0x24) = 0x10000000u | PICTURE >> 5; /* ... and the second */
    WORD(VIDEO + 0x30) = 0x110701AEu;                /* interrupt in line 263, and in line 1 */
    WORD(VIDEO + 0x34) = 0x10010001u;
    HALF(VIDEO + 0x48) = PONG_WIDTH / 16 << 8 | PONG_WIDTH / 16; /* of a line, and from one to the next */
    HALF(VIDEO + 0x4A) = 0x1000 | 256 * PONG_WIDTH / 640;
    HALF(VIDEO + 0x70) = PONG_WIDTH;
    HALF(VIDEO + 0x02) = 0x0001; /* go */
}

/* ---- controllers ---- */

/* Asked for by the serial interface itself, every 60 lines: the answer is at most a millisecond old when a field begins. */
static void start_controllers(void)
{
    for (uint32_t port = 0; port < 2; port++) WORD(SERIAL + port * 12) = 0x00400300u;
    WORD(SERIAL + 0x30) = 60u << 16 | 4u << 8 | 0xC0u;
    WORD(SERIAL + 0x38) = 0x80000000u;
}

/* Returns PONG_ bits; the whole answer in upper (buttons, stick) and lower (second stick, triggers), 0 if nobody is there. */
static uint8_t read_controller(uint32_t port, uint32_t *upper, uint32_t *lower)
{
    uint8_t bits = 0;
    *upper = WORD(SERIAL + port * 12 + 4);
    *lower = WORD(SERIAL + port * 12 + 8);
    if (*upper & 0xC0000000u) *upper = *lower = 0;
    if (*upper == 0) return 0;
    int stick = (int)(*upper & 0xFF) - 128;
    if ((*upper & 0x00080000u) || stick > 40) bits |= PONG_UP;
    if ((*upper & 0x00040000u) || stick < -40) bits |= PONG_DOWN;
    return bits;
}

/* A new game when START is down and was not before. */
static uint32_t maybe_start(uint32_t upper, uint32_t lower, uint32_t held)
{
    uint32_t start = upper & 0x10000000u, seed = lower >> 8 & 0xFF;
    if (start && !held) {
        pong_start();
        if (seed) pong.random = (uint8_t)seed;
    }
    return start;
}

/* ---- machine ---- */

/* Copies the handler to its place; the caches of data and of code do not know of each other. */
static void start_interrupts(void)
{
    volatile uint32_t *vector = (volatile uint32_t *)0x80000500u;
    uint32_t state;
    RETRACES = 0;
    for (int i = 0; retrace_vector + i < retrace_vector_end; i++) vector[i] = retrace_vector[i];
    for (uint32_t line = 0x80000500u; line < 0x80000600u; line += 32)
        __asm__ volatile("dcbst 0,%0; sync; icbi 0,%0" ::"r"(line) : "memory");
    __asm__ volatile("sync; isync" ::: "memory");
    WORD(INTERRUPTS + 4) = 0x100; /* of the video interface only */
    __asm__ volatile("mfmsr %0" : "=r"(state));
    __asm__ volatile("mtmsr %0" ::"r"(state | 0x8000u) : "memory");
}

int main(void)
{
    struct drawn old = {0, 0, {0, 0}, {-1, -1}};
    uint32_t upper, lower, start = 0, seen = 0;
    FRAMES = 0;
    pong_start();
    start_picture();
    start_controllers();
    start_interrupts();
    for (;;) {
        while (RETRACES == seen) {
        }
        seen = RETRACES;
        uint8_t right = read_controller(1, &upper, &lower);
        uint8_t left = read_controller(0, &upper, &lower);
        start = maybe_start(upper, lower, start);
        pong.buttons[0] = left;
        pong.buttons[1] = right;
        pong_step();
        FRAMES++;
        draw(&old);
    }
}
