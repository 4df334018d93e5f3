/* A player inside a rollback host: 60 frames a second, a deadline, and once a second the last 7 frames again, because the
 * remote player's inputs came late. The policy is part of the game's state, as a CPU player is: saved and restored with
 * it, it decides anew. Nothing is allocated once the game runs.
 *   bot [-n FRAMES] [--fast] [--straight] WEIGHTS [GAME.slp]
 * --fast does not wait for the clock; --straight has no late inputs: the same hash of all actions is printed. The game
 * is a little world of two walking Foxes, or what happened in GAME.slp, seen from its first player. */
#define _POSIX_C_SOURCE 200809L
#include "system.h"

#include <exphil/slp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_NS 16666667
enum { LATE = 7, RING = LATE + 1, SECOND = 60 };

struct world {
    float own_x, own_speed, other_x;
};

struct bot {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_slp *slp; /* NULL: the little world */
    int32_t port;    /* whom to play in slp, 1..4 */
    struct world world;
    struct world worlds[RING]; /* before each of the last frames ... */
    unsigned char *states;     /* ... and the session, [RING] blocks */
    size_t state_bytes;
    exphil_pad *pads; /* [frames] decided, in their last version */
};

/* What the policy sees on frame t when the remote player is known up to frame `known`: later, the guess is that nothing
 * changes. 0: the own player is not in the game just now. */
static int observe(const struct bot *b, int64_t t, int64_t known, exphil_melee_frame *frame)
{
    *frame = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
    if (b->slp) {
        exphil_melee_frame old = EXPHIL_MELEE_FRAME_INIT;
        if (exphil_slp_melee_frame(b->slp, t, b->port, 0, frame, NULL) < 0) return 0;
        if (known < t && exphil_slp_melee_frame(b->slp, known, b->port, 0, &old, NULL) >= 0)
            for (int p = 0; p < 4; p++)
                frame->player[p] = p + 1 == b->port ? frame->player[p] : old.player[p];
        return 1;
    }
    frame->frame = (int32_t)t, frame->stage = 32, frame->own_port = 1; /* Final Destination */
    for (int p = 0; p < 2; p++) frame->player[p].present = 1, frame->player[p].known = EXPHIL_MELEE_HAS_ALL;
    frame->player[0].x = b->world.own_x, frame->player[0].speed_ground_x = b->world.own_speed;
    frame->player[1].x = b->world.other_x;
    return 1;
}

/* One frame: snapshot, step, and the game moves on. */
static exphil_status play(struct bot *b, int64_t t, int64_t known)
{
    exphil_melee_frame frame;
    unsigned char *state = b->states + (size_t)(t % RING) * b->state_bytes;
    exphil_status status = exphil_session_state_save(b->session, 0, state, b->state_bytes);
    struct world *w = &b->world;
    float remote = (t < known ? t : known) % 7 > 2 ? 0.5f : -1.0f;
    b->worlds[t % RING] = *w;
    b->pads[t] = (exphil_pad){0, 0, 0, 0, 0, 0};
    if (status >= 0 && observe(b, t, known, &frame))
        status = exphil_session_step(b->session, &frame, &b->pads[t]);
    w->own_speed = 0.8f * w->own_speed + 0.4f * b->pads[t].main_x;
    w->own_x = w->own_x > 80 || w->own_x < -80 ? 0 : w->own_x + w->own_speed;
    w->other_x = w->other_x > 80 || w->other_x < -80 ? 30 : w->other_x + remote;
    return status;
}

/* Inputs from frame `first` on are here at last: back to before it, and forward again with what really happened. */
static exphil_status roll_back(struct bot *b, int64_t first, int64_t t)
{
    unsigned char *state = b->states + (size_t)(first % RING) * b->state_bytes;
    exphil_status status = exphil_session_state_restore(b->session, 0, state, b->state_bytes);
    b->world = b->worlds[first % RING];
    for (; first <= t && status >= 0; first++) status = play(b, first, t);
    return status;
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    struct bot b = {.port = 1};
    int fast = 0, straight = 0, arg = 1;
    int64_t frames = 10 * SECOND, missed = 0;
    for (; arg < argc && argv[arg][0] == '-'; arg++) {
        int f = !strcmp(argv[arg], "--fast"), s = !strcmp(argv[arg], "--straight");
        fast |= f, straight |= s;
        if (!f && !s) frames = !strcmp(argv[arg], "-n") && arg + 1 < argc ? atoll(argv[++arg]) : 0;
    }
    if (arg >= argc || argc - arg > 2 || frames < 1)
        return fprintf(stderr, "bot [-n FRAMES] [--fast] [--straight] WEIGHTS [GAME.slp]\n"), 2;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_context_create(NULL, &b.context, &error) < 0 ||
        exphil_model_load(b.context, argv[arg], &b.model, &error) < 0 ||
        exphil_session_create(b.model, NULL, &b.session, &error) < 0 ||
        (arg + 1 < argc && exphil_slp_open(b.context, argv[arg + 1], NULL, &b.slp, &error) < 0))
        return fprintf(stderr, "bot: %s: %s\n", exphil_status_name(error.status), error.message), 1;
    if (b.slp && frames > exphil_slp_frame_count(b.slp)) frames = exphil_slp_frame_count(b.slp);
    if (exphil_slp_slot_count(b.slp)) b.port = exphil_slp_slot_at(b.slp, 0)->port + 1;
    b.state_bytes = exphil_session_state_size(b.session);
    b.states = malloc(RING * b.state_bytes);
    b.pads = malloc((size_t)(frames + 1) * sizeof *b.pads);
    exphil_memory_info before = EXPHIL_MEMORY_INFO_INIT, after = EXPHIL_MEMORY_INFO_INIT;
    if (!b.states || !b.pads || exphil_context_memory(b.context, &before, NULL) < 0) return 1;
    exphil_status status = EXPHIL_OK;
    int64_t next = system_now_ns(), t = 0;
    for (; t < frames && status >= 0; t++, next = fast ? system_now_ns() : next + FRAME_NS) {
        if (!fast) system_wait_until(next);
        int64_t early = SECOND - LATE - t % SECOND, known = straight || early > 0 ? t : t + early - 1;
        status = play(&b, t, known);
        if (status >= 0 && known < t && (t % SECOND == SECOND - 1 || t == frames - 1))
            status = roll_back(&b, known + 1, t);
        missed += system_now_ns() > next + FRAME_NS; /* b.pads[t] goes to the game here */
    }
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    if (status < 0 || exphil_context_memory(b.context, &after, NULL) < 0 ||
        exphil_session_query(b.session, &info, NULL) < 0)
        return exphil_session_error(b.session, &error), fprintf(stderr, "bot: %s\n", error.message), 1;
    uint64_t hash = 14695981039346656037u, allocated = after.host_allocations - before.host_allocations;
    for (size_t i = 0; i < (size_t)frames * sizeof *b.pads; i++) /* FNV-1a */
        hash = (hash ^ ((const unsigned char *)b.pads)[i]) * 1099511628211u;
    printf("actions %016llx of %lld frames, %lld of them late; allocated %llu times\n",
           (unsigned long long)hash, (long long)frames, (long long)missed, (unsigned long long)allocated);
    printf("%llu steps: p50 < %.1f us, p99 < %.1f us, max %.1f us\n", (unsigned long long)info.steps,
           (double)info.p50_ns / 1e3, (double)info.p99_ns / 1e3, (double)info.max_ns / 1e3);
    exphil_slp_destroy(b.slp);
    exphil_session_destroy(b.session);
    exphil_model_destroy(b.model);
    exphil_context_destroy(b.context);
    free(b.states), free(b.pads);
    return allocated != 0;
}
