/* The player against its meaning: while frames come again, changed, one to many of them at any time, the logits of every new frame
 * have the bits of a session that began anew and knew everything, and was told what had been pressed.
 *   player_check WEIGHTS GAME.slp OTHER
 * OTHER is written: weights for another game, which no player is made of. */
#include "../system.h"
#include "player.h"

#include <exphil/slp.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 300, LOGITS = 4096 };

static exphil_melee_frame frames[FRAMES];
static int32_t pressed[FRAMES][EXPHIL_HEADS_MAX];
static uint64_t state = 5;

static int fail(const char *what, const char *more)
{
    fprintf(stderr, "player_check: %s: %s\n", what, more);
    return 1;
}

/* xorshift64*: Vigna 2016. */
static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1Du) >> 32) % below;
}

/* What the session of a player that always knew frames 0..last computes for the last of them. */
static int expect(const exphil_model *model, int last, float *logits, int64_t count, exphil_pad *pad)
{
    exphil_session *session;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    config.seed = 3;
    int failed = exphil_session_create(model, &config, &session, NULL) < 0;
    for (int i = 0; i <= last && !failed; i++) {
        failed = exphil_session_step(session, &frames[i], pad) < 0;
        if (i < last && !failed) failed = exphil_session_override(session, 0, pressed[i]) < 0;
    }
    failed = failed || exphil_session_logits(session, 0, logits, count) < 0;
    exphil_session_destroy(session);
    return failed;
}

/* Frames first..newest again, the opponent elsewhere. */
static int correct(player *p, int first, int newest)
{
    exphil_pad pad;
    for (int i = first; i <= newest; i++) {
        frames[i].player[1].x += (float)draw(40) - 20.0f;
        if (player_frame(p, &frames[i], &pad) != 0) return fail("a correction", "passes for a new frame");
    }
    return 0;
}

static int check(player *p, const exphil_model *model, const exphil_model_info *info)
{
    static float want[LOGITS], got[LOGITS];
    int64_t corrections = 0;
    for (int i = 0; i < FRAMES; i++) {
        exphil_pad pad, decided;
        if (player_frame(p, &frames[i], &pad) != 1) return fail("a new frame", "is not taken");
        if (expect(model, i, want, info->logit_count, &decided) ||
            exphil_session_logits(player_session(p), 0, got, info->logit_count) < 0 ||
            exphil_melee_pad_encode(info->codec, &decided, pressed[i], NULL) < 0)
            return fail("the reference", "does not step");
        if (memcmp(want, got, (size_t)info->logit_count * sizeof *want) != 0)
            return fprintf(stderr, "player_check: frame %d after %lld corrections: other logits\n", i,
                           (long long)corrections);
        if (info->delay_frames == 0 && memcmp(&pad, &decided, sizeof pad) != 0)
            return fail("a frame", "another pad");
        if (i > PLAYER_PAST && draw(5) == 0) {
            int deep = 1 + (int)draw(PLAYER_PAST),
                short_of = (int)draw(4) == 0 ? (int)draw((uint32_t)deep) : 0;
            corrections += deep - short_of; /* the last ones are not always sent again */
            if (correct(p, i + 1 - deep, i - short_of)) return 1;
        }
    }
    player_stats stats;
    player_query(p, &stats);
    if (corrections < 100 || stats.frames != FRAMES || stats.lost != 0) return fail("figures", "are others");
    printf("player: %d frames, %lld corrections, logits bit-equal\n", FRAMES, (long long)corrections);
    return 0;
}

/* A frame from too long ago changes nothing; a player of a game that delays more than it knows is not made. */
static int check_limits(player *p, const exphil_model *model, const exphil_model_info *info)
{
    player *other;
    player_stats stats;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_pad pad;
    if (player_frame(p, &frames[FRAMES - 1 - PLAYER_PAST], &pad) != 0)
        return fail("an old frame", "is taken");
    player_query(p, &stats);
    if (stats.lost != 1) return fail("an old frame", "is not told");
    if (player_create(model, NULL, info->delay_frames + 1, &other, &error) != EXPHIL_E_MISMATCH ||
        !error.message[0])
        return fail("a longer delay", "is taken");
    player_destroy(NULL);
    return 0;
}

/* Frames that never come and one that is not finite, to a player that holds decisions back: what it presses was decided exactly
 * that long ago, as a player knows that holds nothing back, or is what was pressed before. */
static int check_gaps(exphil_context *context)
{
    enum { DELAY = 3, LAST = 200 };
    exphil_model_config shape = EXPHIL_MODEL_CONFIG_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_model *model;
    player *late, *prompt;
    exphil_pad decided[LAST], pad, before = {0, 0, 0, 0, 0, 0};
    bool was[LAST] = {false};
    int kept = 0;
    shape.blocks = "gru", shape.hidden = 16, shape.head_width = 16, shape.delay_frames = DELAY;
    config.seed = 7;
    if (exphil_model_create(context, &shape, &model, NULL) < 0 ||
        player_create(model, &config, 0, &late, NULL) < 0 ||
        player_create(model, &config, DELAY, &prompt, NULL) < 0)
        return fail("players", "cannot be made");
    for (int i = 0; i < LAST; i++) {
        exphil_melee_frame frame = frames[i];
        int want = i == 90 ? EXPHIL_E_NUMERIC : 1;
        if (i >= 120 && i < 123) continue;
        if (i == 90) frame.player[0].x = NAN;
        if (player_frame(prompt, &frame, &decided[i]) != want || player_frame(late, &frame, &pad) != want)
            return fail("a frame of a game with gaps", "ends otherwise");
        if (want != 1) continue;
        bool known = i >= DELAY && was[i - DELAY];
        if (memcmp(&pad, known ? &decided[i - DELAY] : &before, sizeof pad) != 0)
            return fail("after a gap", "what is pressed was decided at another time");
        was[i] = true;
        kept += !known && i >= DELAY;
        before = pad;
    }
    player_destroy(late);
    player_destroy(prompt);
    exphil_model_destroy(model);
    return kept == 4 ? 0 : fail("gaps", "are not what they were"); /* 93 and 123..125 */
}

/* A game that is not Melee, and one that calls itself so and has other heads: refused when the player is made. */
static int check_other_game(exphil_context *context, const char *path)
{
    static const exphil_head_spec head = {"move", EXPHIL_CATEGORICAL, 3, 0, 0};
    exphil_spec specs[] = {{sizeof *specs, "falling", "hand", 2, 0, NULL, 1, &head, 0},
                           {sizeof *specs, "melee2", "exphil81", 2, 0, NULL, 1, &head, 0}};
    for (int i = 0; i < 2; i++) {
        player *made;
        exphil_model *model;
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_model_config config = {sizeof config, .spec = &specs[i], .hidden = 16, .head_width = 16};
        if (exphil_model_create(context, &config, &model, &error) < 0 ||
            (i == 0 && exphil_model_save(model, path, &error) < 0))
            return fail("a model of another game", error.message);
        exphil_status status = player_create(model, NULL, 0, &made, &error);
        if (status != (i == 0 ? EXPHIL_E_INVALID : EXPHIL_E_MISMATCH) || !error.message[0])
            return fail("a model of another game", "is played");
        exphil_model_destroy(model);
    }
    return 0;
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context;
    exphil_model *model;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_slp *slp;
    player *p;
    if (argc != 4) return fail("usage", "player_check WEIGHTS GAME.slp OTHER");
    config.seed = 3;
    if (exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_model_load(context, argv[1], &model, &error) < 0 ||
        exphil_model_query(model, &info, &error) < 0 ||
        exphil_slp_open(context, argv[2], NULL, &slp, &error) < 0 ||
        player_create(model, &config, 0, &p, &error) < 0)
        return fail("start", error.message);
    if (info.logit_count > LOGITS) return fail(argv[1], "has too many logits");
    for (int i = 0; i < FRAMES; i++) {
        int64_t at = exphil_slp_position(slp, i - 1);
        frames[i] = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
        if (exphil_slp_melee_frame(slp, at, 1, 0, &frames[i], &error) < 0)
            return fail(argv[2], error.message);
    }
    int failed = check(p, model, &info) || check_limits(p, model, &info) || check_gaps(context) ||
                 check_other_game(context, argv[3]);
    player_destroy(p);
    exphil_slp_destroy(slp);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return failed;
}
