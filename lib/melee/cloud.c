/* The cloud of Yoshi's Story goes round the stage at one speed, along four straight sides and round four corners. No
 * replay says where it is: it follows from the number of the frame. Numbers are those that libmelee has measured
 * (stages.py randall_position, off by 0.001 at most). */
#include "melee/cloud.h"

#define WIDTH 11.9        /* of the cloud, left to right */
#define SPEED 0.35484     /* a frame, above and below the stage */
#define RISE  0.354839325 /* a frame, beside it */

/* A corner's frames in their order: height, left end. */
typedef struct place {
    float y, left;
} place;
static const place bottom_right[] = {
    {-33.184479f, 89.75264f},  {-33.044704f, 90.078781f}, {-32.90493f, 90.404922f},
    {-32.765152f, 90.731071f}, {-32.492607f, 90.924553f}, {-32.166355f, 91.064377f},
    {-31.840103f, 91.204193f}, {-31.513851f, 91.344017f},
};
static const place top_right[] = {
    {-15.194888f, 91.337135f}, {-14.868743f, 91.197365f}, {-14.542602f, 91.057587f},
    {-14.216456f, 90.917816f}, {-13.967143f, 90.710365f}, {-13.869664f, 90.369179f},
    {-13.772183f, 90.027992f}, {-13.674699f, 89.686806f},
};
static const place top_left[] = {
    {-13.679761f, -101.919678f}, {-13.819535f, -102.245819f}, {-13.959306f, -102.57196f},
    {-14.09909f, -102.898102f},  {-14.320136f, -103.147614f}, {-14.637515f, -103.306305f},
    {-14.954894f, -103.464996f},
};
static const place bottom_left[] = {
    {-31.590042f, -103.554932f}, {-31.907413f, -103.396255f}, {-32.224785f, -103.237564f},
    {-32.542156f, -103.078873f}, {-32.72168f, -102.774399f},  {-32.897751f, -102.466263f},
    {-33.073826f, -102.158142f},
};

static void at(double y, double left, double *x, double *height)
{
    *x = left + WIDTH / 2;
    *height = y;
}

static void at_corner(const place *corner, int32_t frame, double *x, double *y)
{
    at((double)corner[frame].y, (double)corner[frame].left, x, y);
}

void xph_melee_cloud_at(int32_t phase, double *x, double *y)
{
    if (phase < 416) {
        at(-33.2489, -101.850006103516 + SPEED * (125 + phase), x, y);
    } else if (phase < 424) {
        at_corner(bottom_right, phase - 416, x, y);
    } else if (phase < 469) {
        at(-31.160232543945312 + RISE * (phase - 424), 91.35, x, y);
    } else if (phase < 477) {
        at_corner(top_right, phase - 469, x, y);
    } else if (phase < 1016) {
        at(-13.64989, 101.235443115234 - WIDTH - SPEED * (phase - 477), x, y);
    } else if (phase < 1023) {
        at_corner(top_left, phase - 1016, x, y);
    } else if (phase < 1069) {
        at(-15.2778692245483 - RISE * (phase - 1023), -103.6, x, y);
    } else if (phase < 1076) {
        at_corner(bottom_left, phase - 1069, x, y);
    } else {
        at(-33.2489, -101.850006103516 + SPEED * (phase - 1076), x, y);
    }
}
