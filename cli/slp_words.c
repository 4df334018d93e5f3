/* Codes, sentinels and port indices of replays in plain words. Ports count from 1. */
#include "slp_words.h"

#include <inttypes.h>
#include <string.h>

enum { TARGETS_FIRST = 33, TARGETS_LAST = 58 };

/* The library's name with spaces, as --character takes it too. */
static const char *spaced(char *to, const char *name, const char *kind, int32_t number)
{
    if (!name) {
        snprintf(to, WORDS_SHORT, "%s %d", kind, (int)number);
        return to;
    }
    snprintf(to, WORDS_SHORT, "%s", name);
    for (char *at = to; *at; at++)
        if (*at == '_') *at = ' ';
    return to;
}

const char *words_character(char *to, int32_t character)
{
    return spaced(to, exphil_melee_character_name(character), "character", character);
}

const char *words_stage(char *to, int32_t stage)
{
    bool targets = stage >= TARGETS_FIRST && stage <= TARGETS_LAST;
    return spaced(to, exphil_melee_stage_name(stage), targets ? "target test" : "stage", stage);
}

const char *words_player(char *to, const exphil_slp_info *info, int32_t index)
{
    char name[WORDS_SHORT];
    snprintf(to, WORDS_SHORT, "P%d %.40s", (int)index + 1,
             words_character(name, info->ports[index].character));
    return to;
}

const char *words_team(int32_t team)
{
    static const char *const names[] = {"red", "blue", "green"};
    return team >= 0 && team < 3 ? names[team] : "of an unknown colour";
}

const char *words_side(char *to, const exphil_slp_info *info, int32_t ports)
{
    size_t at = 0;
    to[0] = 0;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        char player[WORDS_SHORT];
        if (!(ports >> i & 1)) continue;
        if (at == 0 && info->teams)
            at += (size_t)snprintf(to, WORDS_LONG, "team %s: ", words_team(info->ports[i].team));
        else if (at)
            at += (size_t)snprintf(to + at, WORDS_LONG - at, " and ");
        at += (size_t)snprintf(to + at, WORDS_LONG - at, "%s", words_player(player, info, i));
    }
    return to;
}

const char *words_reason(int32_t reason)
{
    static const char *const names[] = {"unknown",    "stocks", "time_stocks", "time_percent", "quit",
                                        "placements", "tie",    "no_contest",  "unfinished",   "alone"};
    return reason >= 0 && reason < (int32_t)(sizeof names / sizeof names[0]) ? names[reason] : "unknown";
}

/* Behind a winner, or alone where there is none. */
static const char *why(char *to, const exphil_slp_info *info, const exphil_slp_result *result)
{
    static const char *const texts[] = {
        [EXPHIL_SLP_RESULT_UNKNOWN] = "not known: nothing that was recorded tells",
        [EXPHIL_SLP_RESULT_STOCKS] = "nobody else has stocks left",
        [EXPHIL_SLP_RESULT_TIME_STOCKS] = "most stocks when time ran out",
        [EXPHIL_SLP_RESULT_TIME_PERCENT] =
            "least percent at equal stocks when time ran out, as tournaments rule",
        [EXPHIL_SLP_RESULT_PLACEMENTS] = "the recorder says who came first",
        [EXPHIL_SLP_RESULT_TIE] = "nobody, it is a tie",
        [EXPHIL_SLP_RESULT_UNFINISHED] = "not known: the recording ends before the game does",
        [EXPHIL_SLP_RESULT_ALONE] = "nobody, only one side plays"};
    char player[WORDS_SHORT];
    if (result->quitter) words_player(player, info, result->quitter - 1);
    if (result->reason == EXPHIL_SLP_RESULT_QUIT)
        snprintf(to, WORDS_LONG, "%s quit", player);
    else if (result->reason == EXPHIL_SLP_RESULT_NO_CONTEST && result->quitter)
        snprintf(to, WORDS_LONG, "not known: %s quit, and more than one side was left", player);
    else if (result->reason == EXPHIL_SLP_RESULT_NO_CONTEST)
        snprintf(to, WORDS_LONG, "not known: the game was broken off, and by whom is not recorded");
    else
        snprintf(to, WORDS_LONG, "%s", texts[result->reason]);
    return to;
}

const char *words_result(char *to, const exphil_slp_info *info, const exphil_slp_result *result)
{
    char side[WORDS_LONG], reason[WORDS_LONG];
    if (!result->winner) return why(to, info, result);
    snprintf(to, WORDS_LONG, "%.120s (%.120s)", words_side(side, info, result->winners),
             why(reason, info, result));
    return to;
}

const char *words_recorder(char *to, const exphil_slp_info *info)
{
    static const char *const names[][2] = {{"dolphin", "Dolphin"},
                                           {"mainline dolphin", "Dolphin (mainline)"},
                                           {"nintendont", "a console (Nintendont)"},
                                           {"network", "a console, over the network"},
                                           {"", "not recorded"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(info->played_on, names[i][0]) == 0) return names[i][1];
    snprintf(to, WORDS_SHORT, "\"%s\"", info->played_on);
    return to;
}

const char *words_date(char *to, const exphil_slp_info *info)
{
    const char *date = info->started_at;
    size_t length = strlen(date);
    bool usual = length >= 19 && date[10] == 'T';
    if (!length)
        snprintf(to, WORDS_SHORT, "not recorded");
    else if (!usual)
        snprintf(to, WORDS_SHORT, "%s", date);
    else if (strcmp(date + 19, "Z") == 0)
        snprintf(to, WORDS_SHORT, "%.10s %.8s UTC", date, date + 11);
    else
        snprintf(to, WORDS_SHORT, "%.10s %.8s%s%s", date, date + 11,
                 date[19] ? " " : ", by the recorder's clock", date + 19);
    return to;
}

int64_t words_clock_frames(const exphil_slp_info *info)
{
    return info->frame_count && info->last_frame >= 0 ? (int64_t)info->last_frame + 1 : 0;
}

const char *words_time(char *to, int64_t frames)
{
    int64_t seconds = frames / 60;
    if (seconds >= 3600)
        snprintf(to, WORDS_SHORT, "%" PRId64 ":%02d:%02d", seconds / 3600, (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    else
        snprintf(to, WORDS_SHORT, "%" PRId64 ":%02d", seconds / 60, (int)(seconds % 60));
    return to;
}

static bool unfinished(const exphil_slp_info *info)
{
    return info->stop == EXPHIL_SLP_STOP_END_OF_FILE || info->stop == EXPHIL_SLP_STOP_METADATA;
}

const char *words_finding_kind(const exphil_slp_info *info)
{
    if (info->truncated) return "cut off";
    if (info->stop == EXPHIL_SLP_STOP_UNKNOWN_CODE) return "unreadable from some place on";
    if (unfinished(info)) return "never closed by the recorder";
    if (info->end_count == 0) return "without an end of the game";
    if (info->metadata == EXPHIL_SLP_METADATA_UNREADABLE) return "unreadable metadata";
    return info->problem_count ? "irregular events" : NULL;
}

bool words_finding(char *to, const exphil_slp_info *info)
{
    const char *kind = words_finding_kind(info),
               *lost = info->end_count ? "" : ", before the end of the game";
    if (!kind) return false;
    if (info->truncated && info->container == EXPHIL_SLP_GAMES)
        snprintf(to, WORDS_LONG, "the replay was cut off%s; the %" PRId64 " whole frames before it are kept",
                 lost, info->frame_count);
    else if (info->truncated)
        snprintf(to, WORDS_LONG,
                 "it is cut off at byte %" PRIu64 "%s; the %" PRId64 " whole frames before it can be used",
                 info->stop_offset, lost, info->frame_count);
    else if (info->stop == EXPHIL_SLP_STOP_UNKNOWN_CODE)
        snprintf(to, WORDS_LONG,
                 "it cannot be read from byte %" PRIu64 " on%s; the %" PRId64 " frames before it can be used",
                 info->stop_offset, lost, info->frame_count);
    else if (unfinished(info))
        snprintf(to, WORDS_LONG, "the recorder never closed it%s",
                 info->end_count ? "" : ": the recording stops before the end of the game");
    else if (info->end_count == 0)
        snprintf(to, WORDS_LONG, "it is whole, but has no end of the game");
    else if (info->metadata == EXPHIL_SLP_METADATA_UNREADABLE)
        snprintf(to, WORDS_LONG, "its metadata (date, recorder) cannot be read; the game can");
    else
        snprintf(to, WORDS_LONG, "%" PRId64 " of its events %s be; the rest can be used", info->problem_count,
                 info->problem_count == 1 ? "is not as it should" : "are not as they should");
    return true;
}

const char *words_plain(char *to, size_t bytes, const char *name)
{
    snprintf(to, bytes, "%s", name);
    for (char *at = to; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
    return to;
}
