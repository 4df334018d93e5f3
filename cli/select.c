/* Options that choose players and games: words and dates into the numbers of an exphil_selection. */
#include "select.h"

#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words --------------------------------------------------------------------------------------------- */

/* Small letters and digits of a name; the library compares names by these. */
static void fold(const char *name, char *to, size_t size)
{
    size_t used = 0;
    for (; *name && used + 1 < size; name++) {
        if (*name >= 'A' && *name <= 'Z')
            to[used++] = (char)(*name - 'A' + 'a');
        else if ((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9'))
            to[used++] = *name;
    }
    to[used] = 0;
}

/* Names by number; numbers have gaps. */
typedef struct names {
    const char *(*of)(int32_t number);
    int32_t known, numbers; /* named ones are below known, possible ones below numbers */
} names;
static const names characters = {exphil_melee_character_name, 256, 256},
                   stages = {exphil_melee_stage_name, 256, 65536};

/* As the library writes it; NULL: there is none of this name. */
static const char *known_name(const names *all, const char *name)
{
    char wanted[64], known[64];
    fold(name, wanted, sizeof wanted);
    for (int32_t i = 0; i < all->known; i++) {
        if (!all->of(i)) continue;
        fold(all->of(i), known, sizeof known);
        if (strcmp(wanted, known) == 0) return all->of(i);
    }
    return NULL;
}

static bool refuse_name(const names *all, const char *option, const char *name)
{
    const char *comma = "";
    fprintf(stderr, "exphil: --%s %s is unknown; known are", option, name);
    for (int32_t i = 0; i < all->known; i++) {
        if (!all->of(i)) continue;
        fprintf(stderr, "%s %s", comma, all->of(i));
        comma = ",";
    }
    fprintf(stderr, "\n");
    return false;
}

static bool is_number(const char *word)
{
    return word[strspn(word, "0123456789")] == 0;
}

static bool check_list(const names *all, const char *option, const char *list)
{
    static const char between[] = ", \t\n";
    int words = 0;
    for (const char *at = list; at && *(at += strspn(at, between)); words++) {
        size_t length = strcspn(at, between);
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        bool number = is_number(word) && length < 7 && atoi(word) < all->numbers;
        if (length >= sizeof word || (!number && !known_name(all, word)))
            return refuse_name(all, option, word);
        at += length;
    }
    if (words || !list) return true;
    fprintf(stderr, "exphil: --%s names nobody and nothing\n", option);
    return false;
}

/* 1 or 2, which of two words it is; 0: none was given; -1: another one, which is said. */
static int32_t which(const char *option, const char *text, const char *one, const char *two)
{
    if (!text) return 0;
    if (strcmp(text, one) == 0) return 1;
    if (strcmp(text, two) == 0) return 2;
    fprintf(stderr, "exphil: --%s wants %s or %s, not %s\n", option, one, two, text);
    return -1;
}

/* Reads `count` numbers with a sign between them; all of the text. */
static bool numbers_of(const char *text, char between, int count, int32_t *to)
{
    for (int i = 0; i < count; i++) {
        size_t digits = strspn(text, "0123456789");
        if (!digits || digits > 4) return false;
        to[i] = (int32_t)strtol(text, NULL, 10);
        text += digits;
        if (i + 1 < count && *text++ != between) return false;
    }
    return *text == 0;
}

/* Days from 1970-01-01; -1: no such day. */
static int32_t days_of(const char *text)
{
    static const int32_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int32_t date[3], days = 0;
    if (strlen(text) != 10 || !numbers_of(text, '-', 3, date)) return -1;
    int32_t year = date[0], month = date[1], day = date[2];
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1970 || month < 1 || month > 12) return -1;
    if (day < 1 || day > lengths[month - 1] + (month == 2 && leap)) return -1;
    for (int32_t y = 1970; y < year; y++) days += 365 + ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0);
    for (int32_t m = 1; m < month; m++) days += lengths[m - 1] + (m == 2 && leap);
    return days + day - 1;
}

static bool check_day(const char *option, const char *text)
{
    if (!text || days_of(text) > 0) return true;
    fprintf(stderr, "exphil: --%s wants a day after 1970-01-01, as 2024-05-31, not %s\n", option, text);
    return false;
}

/* 0x030E00 of 3.14 and of 3.14.0; -1: that is none. */
static int32_t version_of(const char *text)
{
    int32_t part[3] = {0};
    if (!numbers_of(text, '.', 3, part) && !numbers_of(text, '.', 2, part)) return -1;
    if (part[0] > 255 || part[1] > 255 || part[2] > 255) return -1;
    return part[0] << 16 | part[1] << 8 | part[2];
}

static bool check_version(const char *text)
{
    if (!text || version_of(text) >= 0) return true;
    fprintf(stderr,
            "exphil: --least-version wants two or three numbers of 0 to 255, as 3.14 or 3.14.0, not %s\n",
            text);
    return false;
}

/* ---- checks -------------------------------------------------------------------------------------------- */

static bool check_words(const select_options *o)
{
    return (!o->character || known_name(&characters, o->character) ||
            refuse_name(&characters, "character", o->character)) &&
           check_list(&characters, "characters", o->characters) &&
           check_list(&characters, "opponents", o->opponents) && check_list(&stages, "stages", o->stages) &&
           check_day("since", o->since) && check_day("until", o->until) && check_version(o->least_version) &&
           which("teams", o->teams, "without", "with") >= 0 &&
           which("items", o->items, "without", "with") >= 0 &&
           which("result", o->result, "won", "lost") >= 0 &&
           which("duplicates", o->duplicates, "keep", "drop") >= 0;
}

bool select_check(const select_options *o)
{
    if (!check_words(o)) return false;
    if (o->character && o->characters)
        fprintf(stderr, "exphil: --character and --characters: give one of them\n");
    else if (o->port && o->port == o->opponent)
        fprintf(stderr, "exphil: --port and --opponent are both %d\n", (int)o->port);
    else if (o->last && o->last < o->first)
        fprintf(stderr, "exphil: --last %" PRId64 " is before --first %" PRId64 "\n", o->last, o->first);
    else if (o->most_frames && o->most_frames < o->least_frames)
        fprintf(stderr, "exphil: --most-frames %" PRId64 " is less than --least-frames %" PRId64 "\n",
                o->most_frames, o->least_frames);
    else if (o->since && o->until && days_of(o->until) < days_of(o->since))
        fprintf(stderr, "exphil: --until %s is before --since %s\n", o->until, o->since);
    else
        return true;
    return false;
}

/* ---- what was given ------------------------------------------------------------------------------------ */

static int each(const select_options *o, void (*say)(const char *name))
{
    const struct {
        bool given, filter;
        const char *name;
    } all[] = {
        {o->character != NULL, false, "character"},
        {o->port != 0, false, "port"},
        {o->opponent != 0, false, "opponent"},
        {o->first != 0, false, "first"},
        {o->last != 0, false, "last"},
        {o->characters != NULL, true, "characters"},
        {o->opponents != NULL, true, "opponents"},
        {o->stages != NULL, true, "stages"},
        {o->since != NULL, true, "since"},
        {o->until != NULL, true, "until"},
        {o->least_version != NULL, true, "least-version"},
        {o->teams != NULL, true, "teams"},
        {o->items != NULL, true, "items"},
        {o->result != NULL, true, "result"},
        {o->duplicates != NULL, true, "duplicates"},
        {o->least_frames != 0, true, "least-frames"},
        {o->most_frames != 0, true, "most-frames"},
        {o->players != 0, true, "players"},
        {o->least_damage != 0, true, "least-damage"},
        {o->least_stocks != 0, true, "least-stocks"},
        {o->self_destructs_below != 0, true, "self-destructs-below"},
        {o->least_input > 0.0, true, "least-input"},
        {o->complete, true, "complete"},
        {o->humans, true, "humans"},
    };
    int filters = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        filters += all[i].given && all[i].filter;
        if (say && all[i].given) say(all[i].name);
    }
    return filters;
}

bool select_filters(const select_options *options)
{
    return each(options, NULL) > 0;
}

void select_given(const select_options *options, void (*say)(const char *name))
{
    (void)each(options, say);
}

exphil_selection select_make(const select_options *o)
{
    exphil_selection made = EXPHIL_SELECTION_INIT;
    made.stages = o->stages;
    made.least_frames = o->least_frames;
    made.most_frames = o->most_frames;
    made.first_day = o->since ? days_of(o->since) : 0;
    made.last_day = o->until ? days_of(o->until) : 0;
    made.least_version = o->least_version ? version_of(o->least_version) : 0;
    made.teams = which("teams", o->teams, "without", "with");
    made.items = which("items", o->items, "without", "with");
    made.players = (int32_t)o->players;
    made.complete = o->complete;
    made.humans = o->humans;
    made.characters = o->character ? known_name(&characters, o->character) : o->characters;
    made.port = (int32_t)o->port;
    made.result = which("result", o->result, "won", "lost");
    made.least_damage = (int32_t)o->least_damage;
    made.least_stocks = (int32_t)o->least_stocks;
    made.self_destructs_below = (int32_t)o->self_destructs_below;
    made.least_input = o->least_input;
    made.opponents = o->opponents;
    made.opponent_port = (int32_t)o->opponent;
    made.first_frame = (int32_t)o->first;
    made.last_frame = (int32_t)o->last;
    made.duplicates = which("duplicates", o->duplicates, "keep", "drop") == 1;
    return made;
}

/* ---- what was taken ------------------------------------------------------------------------------------ */

static int by_hash(const void *a, const void *b)
{
    const uint64_t *one = a, *two = b;
    return (*one > *two) - (*one < *two);
}

bool select_games_of(const exphil_dataset *dataset, int64_t first_episode, select_games *games)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
    *games = (select_games){.hash = NULL};
    if (exphil_dataset_query(dataset, &info, NULL) < 0) return false;
    games->hash = malloc((size_t)(info.episodes - first_episode + 1) * sizeof *games->hash);
    if (!games->hash) return false;
    for (int64_t i = first_episode; exphil_dataset_episode(dataset, i, &episode, NULL) >= 0; i++)
        games->hash[games->count++] = episode.game;
    qsort(games->hash, games->count, sizeof *games->hash, by_hash);
    return true;
}

bool select_has(const select_games *games, uint64_t hash)
{
    return games->count && bsearch(&hash, games->hash, games->count, sizeof hash, by_hash);
}

void select_say_refused(FILE *out, const int64_t refused[EXPHIL_REFUSED_REASONS])
{
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++) {
        const char *name = exphil_refused_name(i);
        if (refused[i])
            fprintf(out, "%8" PRId64 "  player%s not taken: %s\n", refused[i], plural(refused[i]),
                    name ? name : "a reason without a name");
    }
}
