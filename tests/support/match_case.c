/* See match_case.h. */
#include "match_case.h"

#include <string.h>

const match_made match_usual = {.seed = 7,
                                .frames = 100,
                                .characters = {2, 20},
                                .stage = 31,
                                .item_spawn = -1,
                                .ended = true,
                                .day = "2024-05-06",
                                .place = {0, 1},
                                .method = 2,
                                .quit = -1};

/* Port 3 takes 10 percent every frame, and dies every 20. */
static void put_frame(slp_writer *w, const match_made *m, int32_t frame)
{
    const float percent = (float)(10 * ((frame + 123) % 20));
    uint32_t bits;
    memcpy(&bits, &percent, sizeof bits);
    slp_event(w, 0x3A, frame, 0);
    for (uint32_t slot = 0; slot < 8; slot += 4) {
        uint8_t *pre = slp_event(w, 0x37, frame, slot);
        memset(pre + 7, 0, w->size[0x37] - 6u);
        pre[0x32] = slot || !m->idle;
    }
    for (uint32_t slot = 0; slot < 8; slot += 4) {
        uint8_t *post = slp_event(w, 0x38, frame, slot);
        memset(post + 7, 0, w->size[0x38] - 6u);
        for (int i = 0; slot && i < 4; i++) post[0x16 + i] = (uint8_t)(bits >> (24 - 8 * i));
        post[0x20] = slot ? m->hitter : 6;
        post[0x21] = (uint8_t)(slot ? 200 - (frame + 123) / 20 : 4);
    }
    uint8_t *bookend = slp_event(w, 0x3C, frame, 0);
    memcpy(bookend + 5, bookend + 1, 4);
}

void match_make(slp_writer *w, const match_made *m)
{
    const slp_layout *layout = &slp_layouts[SLP_NEWEST];
    slp_begin(w, layout, false);
    slp_head(w, layout);
    uint8_t *start = w->data + w->bytes - 1 - w->size[0x36];
    memset(start + 0x2BE, 0, 51);
    for (int i = 0; i < 4; i++) start[0x13D + i] = (uint8_t)(m->seed >> (24 - 8 * i));
    start[0x0D] = m->team_game;
    start[0x10] = (uint8_t)m->item_spawn;
    start[0x13] = 0;
    start[0x14] = m->stage;
    for (int port = 0; port < 4; port++) {
        start[0x65 + 0x24 * port] = m->characters[port / 2];
        start[0x66 + 0x24 * port] = port % 2 ? 3 : m->types[port / 2];
        start[0x6E + 0x24 * port] = m->teams[port / 2];
    }
    for (int32_t i = 0; i < m->frames; i++) put_frame(w, m, i - 123);
    if (m->ended) {
        slp_game_end(w, m->method);
        uint8_t *end = w->data + w->bytes - 1 - w->size[0x39];
        end[2] = (uint8_t)m->quit;
        end[3] = (uint8_t)m->place[0];
        end[4] = 0xFF;
        end[5] = (uint8_t)m->place[1];
    }
    slp_length(w, (int32_t)(w->bytes - 15));
    slp_put(w, "U\x08metadata{U\x07startAtSU\x0A", 23);
    slp_put(w, m->day, 10);
    slp_put(w, "}}", 2);
}
