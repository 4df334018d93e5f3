/* Who won a game, and why that is known. The rules stand in exphil/slp.h; a corpus of games uses the same. */
#include "melee/melee.h"
#include "melee/slp_internal.h"

#include <math.h>

enum {
    MODE_STOCK = 1,
    SCENE_TARGETS = 15,
    SCENE_HOME_RUN = 32,
    TYPE_EMPTY = 3,
    METHOD_UNRESOLVED = 0,
    METHOD_TIME = 1,
    METHOD_NO_CONTEST = 7
};

/* A player, or a team. */
struct side {
    int32_t ports; /* bit i: port index i */
    int32_t team;
    int32_t stocks;  /* together; -1: of one of them nothing is known */
    int32_t percent; /* whole ones, of those who have stocks */
};

struct sides {
    struct side of[EXPHIL_SLP_PORTS];
    int32_t count;
};

/* What the screen shows. Beyond 999 there is none; a damaged file may say anything, NaN included. */
static int32_t whole(float percent)
{
    if (!(percent > 0.0F)) return 0;
    return percent < 999.0F ? (int32_t)percent : 999;
}

static struct side *side_of(struct sides *sides, bool teams, int32_t team)
{
    for (int32_t i = 0; teams && i < sides->count; i++)
        if (sides->of[i].team == team) return &sides->of[i];
    sides->of[sides->count] = (struct side){.team = team};
    return &sides->of[sides->count++];
}

static void list_sides(const exphil_slp_info *info, const exphil_slp_result *result, struct sides *sides)
{
    *sides = (struct sides){.count = 0};
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        if (info->ports[i].type >= TYPE_EMPTY) continue;
        struct side *side = side_of(sides, info->teams != 0, info->ports[i].team);
        int32_t stocks = result->stocks[i];
        side->ports |= 1 << i;
        side->stocks = stocks < 0 || side->stocks < 0 ? -1 : side->stocks + stocks;
        if (stocks > 0) side->percent += whole(result->percent[i]);
    }
}

static void win(exphil_slp_result *result, int32_t reason, const struct side *side)
{
    result->reason = reason;
    result->winners = side->ports;
    result->winner = 1;
    while (!(side->ports >> (result->winner - 1) & 1)) result->winner++;
}

/* Stocks are counted in stock mode only, and every side must have sent some frame. */
static bool stocks_known(const exphil_slp_info *info, const struct sides *sides)
{
    for (int32_t i = 0; i < sides->count; i++)
        if (sides->of[i].stocks < 0) return false;
    return info->game_mode == MODE_STOCK;
}

static int32_t alive(const struct sides *sides, const struct side **last)
{
    int32_t count = 0;
    for (int32_t i = 0; i < sides->count; i++) {
        if (sides->of[i].stocks <= 0) continue;
        *last = &sides->of[i];
        count++;
    }
    return count;
}

/* More stocks, then less percent. */
static int32_t compare(const struct side *a, const struct side *b)
{
    return a->stocks != b->stocks ? a->stocks - b->stocks : b->percent - a->percent;
}

static void judge_time(const struct sides *sides, exphil_slp_result *result)
{
    const struct side *best = &sides->of[0];
    bool by_percent = false, tie = false;
    for (int32_t i = 1; i < sides->count; i++)
        if (compare(&sides->of[i], best) > 0) best = &sides->of[i];
    for (int32_t i = 0; i < sides->count; i++) {
        if (&sides->of[i] == best) continue;
        tie = tie || compare(&sides->of[i], best) == 0;
        by_percent = by_percent || sides->of[i].stocks == best->stocks;
    }
    if (tie)
        result->reason = EXPHIL_SLP_RESULT_TIE;
    else
        win(result, by_percent ? EXPHIL_SLP_RESULT_TIME_PERCENT : EXPHIL_SLP_RESULT_TIME_STOCKS, best);
}

static void judge_quit(const struct sides *sides, exphil_slp_result *result)
{
    result->reason = EXPHIL_SLP_RESULT_NO_CONTEST;
    if (!result->quitter || sides->count != 2) return;
    win(result, EXPHIL_SLP_RESULT_QUIT, &sides->of[sides->of[0].ports >> (result->quitter - 1) & 1]);
}

/* False: no placements, not exactly one first, or a port where nobody plays. */
static bool judge_placements(const exphil_slp_info *info, const struct sides *sides,
                             exphil_slp_result *result)
{
    int32_t first = 0;
    if (!(info->fields & EXPHIL_SLP_HAS_PLACEMENTS)) return false;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (info->placements[i] == 0) first |= 1 << i;
    if (!first || first & (first - 1)) return false;
    for (int32_t i = 0; i < sides->count; i++) {
        if (!(sides->of[i].ports & first)) continue;
        win(result, EXPHIL_SLP_RESULT_PLACEMENTS, &sides->of[i]);
        return true;
    }
    return false;
}

static bool is_alone(const exphil_slp_info *info, const struct sides *sides)
{
    return sides->count < 2 || info->major_scene == SCENE_TARGETS || info->major_scene == SCENE_HOME_RUN;
}

void xph_slp_judge(const exphil_slp_info *info, exphil_slp_result *result)
{
    struct sides sides;
    const struct side *last = NULL;
    list_sides(info, result, &sides);
    const bool known = stocks_known(info, &sides);
    const int32_t left = alive(&sides, &last), lras = (int32_t)info->end_lras;
    result->reason = EXPHIL_SLP_RESULT_UNKNOWN;
    result->winner = result->winners = result->quitter = 0;
    if (info->end_count && lras >= 0 && lras < EXPHIL_SLP_PORTS && info->ports[lras].type < TYPE_EMPTY)
        result->quitter = lras + 1;
    if (is_alone(info, &sides))
        result->reason = EXPHIL_SLP_RESULT_ALONE;
    else if (known && left == 1)
        win(result, EXPHIL_SLP_RESULT_STOCKS, last);
    else if (!info->end_count)
        result->reason = EXPHIL_SLP_RESULT_UNFINISHED;
    else if (known && info->end_method == METHOD_TIME)
        judge_time(&sides, result);
    else if (result->quitter || info->end_method == METHOD_NO_CONTEST ||
             info->end_method == METHOD_UNRESOLVED)
        judge_quit(&sides, result);
    else if (!judge_placements(info, &sides, result) && known && left == 0)
        result->reason = EXPHIL_SLP_RESULT_TIE;
}

/* ---- public -------------------------------------------------------------------------------------------- */

exphil_status exphil_slp_result_get(const exphil_slp *slp, exphil_slp_result *result, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    XPH_TRY(xph_context_check(slp->context, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_slp_result, result, error));
    exphil_slp_result known = EXPHIL_SLP_RESULT_INIT;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        known.stocks[i] = -1;
        known.percent[i] = NAN;
    }
    for (size_t i = 0; i < slp->slot_count; i++) {
        const exphil_slp_slot *slot = &slp->slots[i];
        if (slot->follower) continue;
        known.stocks[slot->port] = slot->records[slot->record_count - 1].stocks;
        known.percent[slot->port] = slot->records[slot->record_count - 1].percent;
    }
    xph_slp_judge(&slp->info, &known);
    return XPH_GIVE(exphil_slp_result, result, &known, error);
}
