/* A policy at a live game: frames in, controllers out, with the two things that netplay adds.
 *
 * Corrections. A frame that comes again (rollback) replaces what the policy knew: its session goes back before that frame
 * and steps it again. What was pressed then cannot be taken back any more, so the new step's decision is replaced by the
 * one that was made (exphil_session_override); only what comes next follows from the corrected past.
 *
 * Delay. A policy trained with delay d decides on frame t what acts on frame t + d. Part of that may be the game's own
 * delay (online: 2 by default); the player holds back the rest. For a frame that was left out, or had values that are not finite,
 * nothing was decided: what was due before it stays. */
#ifndef PLAYER_H
#define PLAYER_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frames that can be corrected; netplay takes back 7 at most. */
#define PLAYER_PAST 16

typedef struct player player;

typedef struct player_stats {
    uint64_t frames, corrections; /* stepped, and stepped again */
    uint64_t lost;                /* corrections of frames too long ago, which were passed over */
} player_stats;

/* game_delay_frames: what the game itself delays inputs by; at most the model's delay, else EXPHIL_E_MISMATCH. A model for
 * another game than Melee is EXPHIL_E_INVALID. All memory is taken here. */
exphil_status player_create(const exphil_model *model, const exphil_session_config *config,
                            int32_t game_delay_frames, player **created, exphil_error *error);
void player_destroy(player *p);
/* A game begins. */
exphil_status player_reset(player *p);
/* One frame. 1: a new one, *pad is what to hold from now on. 0: one that came again; *pad is untouched.
 * Negative: the exphil_status that the session gave, whose words exphil_session_error(player_session(p)) has. */
int player_frame(player *p, const exphil_melee_frame *frame, exphil_pad *pad);
const exphil_session *player_session(const player *p);
void player_query(const player *p, player_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
