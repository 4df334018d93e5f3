/* The past is a ring by frame index: beside each frame the session as it was before, and what was decided. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Policies are trained from the moment the clock starts: what is known before frame 0 is frame -1. */
enum { FIRST_FRAME = -1, HELD_MAX = 64, NO_FRAME = INT32_MIN };

struct player {
    exphil_session *session;
    int32_t hold;   /* frames between decision and pipe */
    int32_t newest; /* frame index */
    char codec[32];
    player_stats stats;
    int32_t corrected; /* the first frame that came again since; INT32_MAX: none */
    size_t state_bytes;
    int32_t frame[PLAYER_PAST]; /* which frame this place of the ring holds */
    exphil_melee_frame known[PLAYER_PAST];
    int32_t action[PLAYER_PAST][EXPHIL_HEADS_MAX];
    exphil_pad held[HELD_MAX + 1];    /* decided, not yet due; place = frame modulo */
    int32_t decided_on[HELD_MAX + 1]; /* which frame that place holds */
    exphil_pad due;                   /* what was due last: what is held where a frame was passed over */
    uint8_t states[];                 /* [PLAYER_PAST] snapshots of state_bytes */
};

static size_t place(int32_t frame, int32_t of)
{
    return (size_t)((frame % of + of) % of);
}

static exphil_status complain(exphil_error *error, exphil_status status, const char *format, int32_t a,
                              int32_t b)
{
    if (!error) return status;
    exphil_error said = EXPHIL_ERROR_INIT;
    said.status = status;
    snprintf(said.message, sizeof said.message, format, (int)a, (int)b);
    *error = said;
    return status;
}

exphil_status player_create(const exphil_model *model, const exphil_session_config *config,
                            int32_t game_delay_frames, player **created, exphil_error *error)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_session_config own = EXPHIL_SESSION_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_session *session;
    exphil_status status = exphil_model_query(model, &info, error);
    if (status < 0) return status;
    if (game_delay_frames < 0 || game_delay_frames > info.delay_frames)
        return complain(error, EXPHIL_E_MISMATCH,
                        "the game delays by %d frames, the policy was trained for %d", game_delay_frames,
                        info.delay_frames);
    if (config) own = *config;
    /* A policy for another game shows here, not in the first frame. */
    status = exphil_melee_spec(info.layout, info.codec, &spec, error);
    if (status < 0) return status;
    if (!own.spec) own.spec = &spec;
    own.streams = 1;
    own.deliver = EXPHIL_DELIVER_DECIDED; /* held back here, so that decisions can be replaced */
    status = exphil_session_create(model, &own, &session, error);
    if (status < 0) return status;
    size_t bytes = exphil_session_state_size(session);
    player *p = calloc(1, sizeof *p + PLAYER_PAST * bytes);
    if (!p) {
        exphil_session_destroy(session);
        return complain(error, EXPHIL_E_MEMORY, "no memory for %d snapshots", PLAYER_PAST, 0);
    }
    p->session = session;
    p->state_bytes = bytes;
    p->hold = info.delay_frames - game_delay_frames;
    memcpy(p->codec, info.codec, sizeof p->codec);
    *created = p;
    return player_reset(p);
}

void player_destroy(player *p)
{
    if (p) exphil_session_destroy(p->session);
    free(p);
}

exphil_status player_reset(player *p)
{
    p->newest = NO_FRAME;
    p->corrected = INT32_MAX;
    for (int i = 0; i < PLAYER_PAST; i++) p->frame[i] = NO_FRAME;
    for (int i = 0; i <= HELD_MAX; i++) p->decided_on[i] = NO_FRAME;
    p->due = (exphil_pad){0, 0, 0, 0, 0, 0};
    return exphil_session_reset(p->session, -1);
}

static exphil_status step(player *p, size_t at, exphil_pad *decided)
{
    uint8_t *state = p->states + at * p->state_bytes;
    exphil_status status = exphil_session_state_save(p->session, 0, state, p->state_bytes);
    return status < 0 ? status : exphil_session_step(p->session, &p->known[at], decided);
}

/* As it was decided then. A frame with values that are not finite is passed over, as it would have been the first time. */
static exphil_status step_again(player *p, size_t at)
{
    exphil_pad decided;
    exphil_status status = step(p, at, &decided);
    if (status >= 0) status = exphil_session_override(p->session, 0, p->action[at]);
    p->stats.corrections++;
    if (status != EXPHIL_E_NUMERIC) return status;
    p->frame[at] = NO_FRAME;
    return EXPHIL_OK;
}

/* Corrections wait for the next new frame, which needs them: then the session goes back to before the first of them. */
static exphil_status correct(player *p)
{
    exphil_status status = EXPHIL_OK;
    for (int32_t frame = p->corrected; frame <= p->newest && status >= 0; frame++) {
        size_t at = place(frame, PLAYER_PAST);
        uint8_t *state = p->states + at * p->state_bytes;
        if (p->frame[at] != frame) continue; /* the player was not in the game */
        if (frame == p->corrected)
            status = exphil_session_state_restore(p->session, 0, state, p->state_bytes);
        if (status >= 0) status = step_again(p, at);
    }
    p->corrected = INT32_MAX;
    return status;
}

static exphil_status play(player *p, size_t at, const exphil_melee_frame *frame, exphil_pad *pad)
{
    exphil_pad decided;
    size_t now = place(frame->frame, HELD_MAX + 1), then = place(frame->frame - p->hold, HELD_MAX + 1);
    exphil_status status = correct(p);
    p->frame[at] = NO_FRAME; /* until it is played */
    p->known[at] = *frame;
    if (status >= 0) status = step(p, at, &decided);
    if (status >= 0) status = exphil_melee_pad_encode(p->codec, &decided, p->action[at], NULL);
    if (status < 0) return status;
    p->frame[at] = frame->frame;
    p->held[now] = decided;
    p->decided_on[now] = frame->frame;
    p->stats.frames++;
    if (p->decided_on[then] == frame->frame - p->hold) p->due = p->held[then];
    *pad = p->due;
    return EXPHIL_OK;
}

int player_frame(player *p, const exphil_melee_frame *frame, exphil_pad *pad)
{
    size_t at = place(frame->frame, PLAYER_PAST);
    exphil_status status = EXPHIL_OK;
    if (frame->frame > p->newest) {
        if (frame->frame < FIRST_FRAME)
            *pad = (exphil_pad){0, 0, 0, 0, 0, 0};
        else
            status = play(p, at, frame, pad);
        p->newest = frame->frame;
        return status < 0 ? status : 1;
    }
    if (frame->frame < FIRST_FRAME) return 0;
    if (p->frame[at] != frame->frame) return p->stats.lost++, 0;
    p->known[at] = *frame;
    if (frame->frame < p->corrected) p->corrected = frame->frame;
    return 0;
}

const exphil_session *player_session(const player *p)
{
    return p->session;
}

void player_query(const player *p, player_stats *stats)
{
    *stats = p->stats;
}
