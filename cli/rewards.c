/* Rewards of recorded games. See rewards.h. */
#include "rewards.h"

#include "commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_A_SECOND 60.0
#define HALVES          6.0 /* until less than 1/64 is left */

double rewards_masked_seconds(const rewards_options *options)
{
    return HALVES * options->half_life;
}

static bool no_memory(exphil_error *error)
{
    error->status = EXPHIL_E_MEMORY;
    (void)snprintf(error->message, sizeof error->message, "rewards: no memory");
    return false;
}

/* ---- one game -------------------------------------------------------------------------------------------- */

/* Whoever quits takes away what would have come; who lost by that was not beaten in these frames. */
bool rewards_game_over(const exphil_slp *slp)
{
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    if (exphil_slp_result_get(slp, &result, NULL) < 0) return false;
    switch (result.reason) {
    case EXPHIL_SLP_RESULT_STOCKS:
    case EXPHIL_SLP_RESULT_TIME_STOCKS:
    case EXPHIL_SLP_RESULT_TIME_PERCENT:
    case EXPHIL_SLP_RESULT_PLACEMENTS:
    case EXPHIL_SLP_RESULT_TIE:
    case EXPHIL_SLP_RESULT_UNKNOWN: /* it has a game end, and nobody quit */
        return true;
    default:
        return false;
    }
}

float *rewards_of_side(const rewards_options *options, const exphil_slp *slp, int32_t port, int32_t opponent,
                       int32_t *first, int64_t *count, rewards_found *found, exphil_error *error)
{
    exphil_melee_frame state[2] = {EXPHIL_MELEE_FRAME_INIT, EXPHIL_MELEE_FRAME_INIT};
    const int64_t frames = exphil_slp_frame_count(slp);
    bool before = false; /* is the state before known? */
    *first = exphil_slp_frame_at(slp, 0)->frame;
    *count = (int64_t)exphil_slp_frame_at(slp, frames - 1)->frame - *first + 1;
    float *rewards = calloc((size_t)*count, sizeof *rewards);
    if (!rewards) (void)no_memory(error);
    for (int64_t i = 0; rewards && i < frames; i++) {
        exphil_melee_frame *now = &state[i & 1];
        float *to = rewards + (exphil_slp_frame_at(slp, i)->frame - *first);
        bool known = exphil_slp_melee_frame(slp, i, port, opponent, now, NULL) >= 0;
        exphil_status status =
            known && before ? exphil_melee_reward(&options->of, &state[!(i & 1)], now, to, error) : EXPHIL_OK;
        if (status < 0 && status != EXPHIL_E_NUMERIC) {
            free(rewards);
            return NULL;
        }
        if (status < 0) *to = 0.0f;
        found->not_finite += status < 0;
        found->gaps += known && before && now->frame != state[!(i & 1)].frame + 1;
        before = known;
    }
    return rewards;
}

static bool give_side(const rewards_options *options, exphil_dataset *dataset,
                      const exphil_episode_info *side, const exphil_slp *slp, int32_t opponent,
                      rewards_found *found, exphil_error *error)
{
    int32_t first;
    int64_t count;
    const bool over = rewards_game_over(slp);
    const double half_life = options->half_life * FRAMES_A_SECOND;
    float *rewards = rewards_of_side(options, slp, side->port, opponent, &first, &count, found, error);
    bool fine = rewards && exphil_dataset_rewards_set(dataset, side->game, side->port, first, rewards, count,
                                                      over, half_life, error) >= 0;
    free(rewards);
    int64_t masked = over ? 0 : (int64_t)ceil(HALVES * half_life) - 1;
    found->sides++;
    found->cut_off += !over;
    found->known += count > masked ? count - masked : 0;
    return fine;
}

/* ---- which sides ----------------------------------------------------------------------------------------- */

static int by_side(const void *a, const void *b)
{
    const exphil_episode_info *one = a, *two = b;
    if (one->game != two->game) return one->game < two->game ? -1 : 1;
    return (one->port > two->port) - (one->port < two->port);
}

/* The sides of these episodes, each once, in order. Free them. */
static exphil_episode_info *sides_of(const exphil_dataset *dataset, int64_t first, int64_t end,
                                     int64_t *count, exphil_error *error)
{
    exphil_episode_info *sides = malloc((size_t)(end - first + 1) * sizeof *sides);
    int64_t kept = 0;
    *count = 0;
    if (!sides) (void)no_memory(error);
    for (int64_t i = 0; sides && i < end - first; i++) {
        sides[i] = (exphil_episode_info)EXPHIL_EPISODE_INFO_INIT;
        if (exphil_dataset_episode(dataset, first + i, &sides[i], error) >= 0) continue;
        free(sides);
        return NULL;
    }
    if (sides) qsort(sides, (size_t)(end - first), sizeof *sides, by_side);
    for (int64_t i = 0; sides && i < end - first; i++)
        if (!i || by_side(&sides[i], &sides[kept - 1]) != 0) sides[kept++] = sides[i];
    *count = kept;
    return sides;
}

bool rewards_of_replay(const rewards_options *options, exphil_dataset *dataset, int64_t first, int64_t end,
                       const exphil_slp *slp, int32_t opponent, rewards_found *found, exphil_error *error)
{
    int64_t count;
    exphil_episode_info *sides = sides_of(dataset, first, end, &count, error);
    bool fine = sides != NULL;
    for (int64_t i = 0; fine && i < count; i++)
        fine = give_side(options, dataset, &sides[i], slp, opponent, found, error);
    free(sides);
    return fine;
}

/* Those of one game lie together; the first of them, or count. */
static int64_t find(const exphil_episode_info *sides, int64_t count, uint64_t game)
{
    int64_t low = 0;
    for (int64_t high = count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (sides[middle].game < game)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sides[low].game == game ? low : count;
}

static bool give_game(const rewards_options *options, exphil_dataset *dataset,
                      const exphil_episode_info *sides, int64_t count, const exphil_games *games,
                      int64_t index, int32_t opponent, rewards_found *found, exphil_error *error)
{
    exphil_game_info game = EXPHIL_GAME_INFO_INIT;
    exphil_slp *slp = NULL;
    if (exphil_games_game(games, index, &game, NULL, error) < 0) return false;
    int64_t at = find(sides, count, game.source_hash);
    if (at == count) return true;
    bool fine = exphil_games_read(games, index, &slp, error) >= 0;
    for (; fine && at < count && sides[at].game == game.source_hash; at++)
        fine = give_side(options, dataset, &sides[at], slp, opponent, found, error);
    exphil_slp_destroy(slp);
    return fine;
}

bool rewards_of_games(const rewards_options *options, exphil_dataset *dataset, int64_t first, int64_t end,
                      const exphil_games *games, int32_t opponent, exphil_cancel_fn cancel,
                      rewards_found *found, exphil_error *error)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    int64_t count;
    if (first == end) return true;
    if (exphil_games_query(games, &info, error) < 0) return false;
    exphil_episode_info *sides = sides_of(dataset, first, end, &count, error);
    bool fine = sides != NULL;
    for (int64_t i = 0; fine && i < info.games; i++) {
        if (cancel && cancel(NULL)) error->status = EXPHIL_E_CANCELLED;
        fine = !(cancel && cancel(NULL)) &&
               give_game(options, dataset, sides, count, games, i, opponent, found, error);
    }
    free(sides);
    return fine;
}

/* ---- what is said of it ---------------------------------------------------------------------------------- */

bool rewards_say(const rewards_options *options, const rewards_found *found, bool quiet)
{
    const int64_t lost = found->gaps + found->not_finite;
    if (!found->known && options->optional) return true;
    if (!found->known) {
        fprintf(
            stderr,
            "exphil: --rewards: all of these games were cut off in their last %g s, so that nothing is known "
            "of "
            "what came; take games that were played to their end (--complete), or a shorter --half-life\n",
            rewards_masked_seconds(options));
        return false;
    }
    if (quiet) return true;
    fprintf(stderr, "rewards of %" PRId64 " side%s, half-life %g s", found->sides, plural(found->sides),
            options->half_life);
    if (found->cut_off)
        fprintf(stderr, "; %" PRId64 " of games that were cut off: what came in their last %g s is not known",
                found->cut_off, rewards_masked_seconds(options));
    if (lost)
        fprintf(stderr, "; %" PRId64 " frame%s without a reward, in gaps or with numbers that are none", lost,
                plural(lost));
    fprintf(stderr, "\n");
    return true;
}

/* ---- kept with weights ----------------------------------------------------------------------------------- */

/* An option whose 0 is none, and the field where that is below 0. */
static double told(double field, double usual)
{
    return field < 0.0 ? 0.0 : field == 0.0 ? usual : field;
}

void rewards_write(const rewards_options *options, json_t *to)
{
    const exphil_melee_reward_config *of = &options->of;
    json_object_set_new(to, "rewards", json_string("melee"));
    json_object_set_new(to, "half-life", json_real(options->half_life));
    json_object_set_new(to, "reward-stock", json_real(told(of->stock, 1.0)));
    json_object_set_new(to, "reward-damage", json_real(told(of->damage, 0.01)));
    json_object_set_new(to, "reward-ledge", json_real(of->ledge));
    json_object_set_new(to, "reward-stalling", json_real(of->stalling));
    json_object_set_new(to, "reward-approach", json_real(of->approach));
}

static void take(const json_t *from, const char *name, double least, double most, bool none, double *to)
{
    const json_t *value = json_object_get(from, name);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= least && number <= most)) return;
    *to = none && number == 0.0 ? -1.0 : number;
}

void rewards_read(rewards_options *options, const json_t *from)
{
    exphil_melee_reward_config *of = &options->of;
    take(from, "half-life", 0.01, 1e6, false, &options->half_life);
    take(from, "reward-stock", 0.0, 1e6, true, &of->stock);
    take(from, "reward-damage", 0.0, 1e6, true, &of->damage);
    take(from, "reward-ledge", 0.0, 1e6, false, &of->ledge);
    take(from, "reward-stalling", 0.0, 1e6, false, &of->stalling);
    take(from, "reward-approach", 0.0, 1e6, false, &of->approach);
}
