/* Which players of which games are imitated: an exphil_selection with its lists understood, and what it says of a player by
 * the index alone. */
#include "games/format.h"

#include <stdio.h>

#define TYPE_HUMAN 0
#define CHARACTERS 256 /* numbers that a game start event can hold */
#define STAGES     65536

struct xph_selector {
    exphil_context *context;
    exphil_selection selection; /* without its texts */
    bool any_stage, any_character, any_opponent;
    uint8_t characters[CHARACTERS / 8], opponents[CHARACTERS / 8], stages[STAGES / 8]; /* sets of bits */
};

const char *exphil_refused_name(int32_t reason)
{
    static const char *const names[EXPHIL_REFUSED_REASONS] = {
        "stage",     "too short", "too long",      "too early",  "too late",       "recorder version",
        "teams",     "items",     "players",       "incomplete", "computer plays", "no human",
        "character", "port",      "result",        "damage",     "stocks",         "self-destructs",
        "input",     "opponent",  "opponent port", "no rows",    "duplicate",      "unknown"};
    return reason >= 0 && reason < EXPHIL_REFUSED_REASONS ? names[reason] : NULL;
}

/* ---- lists ------------------------------------------------------------------------------------------------- */

/* A list of names or numbers, and what it becomes. */
typedef struct list {
    const char *field, *kind, *text;
    int32_t (*find)(const char *name);
    void (*alike)(const char *name, char *text, size_t bytes);
    int32_t numbers; /* they are 0..numbers - 1 */
    uint8_t *set;
} list;

/* Longest word that is looked at: no name has so many signs. */
enum { WORD = 64 };

static bool separates(char c)
{
    return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_number(const char *word)
{
    return word[strspn(word, "0123456789")] == '\0';
}

static exphil_status add_word(const list *l, const char *word, exphil_error *error)
{
    int32_t number = -1;
    if (!is_number(word)) {
        char alike[120] = "";
        number = l->find(word);
        if (number < 0) l->alike(word, alike, sizeof alike);
        if (number < 0)
            return xph_fail(error, EXPHIL_E_INVALID, "%s: %s \"%s\" is unknown%s", l->field, l->kind, word,
                            alike);
    } else {
        for (number = 0; *word && number < l->numbers; word++) number = 10 * number + (*word - '0');
        if (number >= l->numbers)
            return xph_fail(error, EXPHIL_E_INVALID, "%s: a %s is a name or a number of 0..%d", l->field,
                            l->kind, (int)l->numbers - 1);
    }
    l->set[number / 8] |= (uint8_t)(1 << number % 8);
    return EXPHIL_OK;
}

static exphil_status read_list(const list *l, bool *any, exphil_error *error)
{
    int32_t words = 0;
    *any = !l->text;
    for (const char *at = l->text; at && *at;) {
        char word[WORD];
        size_t length = 0;
        if (separates(*at)) {
            at++;
            continue;
        }
        while (at[length] && !separates(at[length])) length++;
        snprintf(word, sizeof word, "%.*s", (int)(length < WORD ? length : WORD), at);
        if (length >= WORD)
            return xph_fail(error, EXPHIL_E_INVALID, "%s: %s \"%s...\" is unknown", l->field, l->kind, word);
        XPH_TRY(add_word(l, word, error));
        at += length;
        words++;
    }
    if (l->text && !words)
        return xph_fail(error, EXPHIL_E_INVALID, "%s names no %s; NULL is any", l->field, l->kind);
    return EXPHIL_OK;
}

static exphil_status read_lists(xph_selector *s, exphil_error *error)
{
    exphil_selection *given = &s->selection;
    const list stages = {"stages", "stage",  given->stages, xph_melee_stage_find, xph_melee_stage_alike,
                         STAGES,   s->stages};
    list characters = {
        "characters", "character",  given->characters, xph_melee_character_find, xph_melee_character_alike,
        CHARACTERS,   s->characters};
    XPH_TRY(read_list(&stages, &s->any_stage, error));
    XPH_TRY(read_list(&characters, &s->any_character, error));
    characters.field = "opponents";
    characters.text = given->opponents;
    characters.set = s->opponents;
    XPH_TRY(read_list(&characters, &s->any_opponent, error));
    given->stages = given->characters = given->opponents = NULL; /* the caller's */
    return EXPHIL_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------- */

static exphil_status check_ranges(const exphil_selection *s, exphil_error *error)
{
    const struct {
        const char *name;
        int64_t value, most;
    } fields[] = {{"least_frames", s->least_frames, INT64_MAX},
                  {"most_frames", s->most_frames, INT64_MAX},
                  {"first_day", s->first_day, INT32_MAX},
                  {"last_day", s->last_day, INT32_MAX},
                  {"least_version", s->least_version, 0xFFFFFF},
                  {"teams", s->teams, EXPHIL_WITH},
                  {"items", s->items, EXPHIL_WITH},
                  {"players", s->players, EXPHIL_SLP_PORTS},
                  {"complete", s->complete, 1},
                  {"humans", s->humans, 1},
                  {"port", s->port, EXPHIL_SLP_PORTS},
                  {"result", s->result, EXPHIL_RESULT_LOST},
                  {"least_damage", s->least_damage, INT32_MAX},
                  {"least_stocks", s->least_stocks, INT32_MAX},
                  {"self_destructs_below", s->self_destructs_below, INT32_MAX},
                  {"reserved", s->reserved, 0},
                  {"opponent_port", s->opponent_port, EXPHIL_SLP_PORTS},
                  {"duplicates", s->duplicates, 1}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].value >= 0 && fields[i].value <= fields[i].most) continue;
        return xph_fail(error, EXPHIL_E_INVALID, "%s is %lld, must be 0..%lld", fields[i].name,
                        (long long)fields[i].value, (long long)fields[i].most);
    }
    if (s->least_input >= 0 && s->least_input <= 1) return EXPHIL_OK;
    char text[XPH_DOUBLE_TEXT];
    return xph_fail(error, EXPHIL_E_INVALID, "least_input is %s, must be 0..1",
                    xph_format_double(text, s->least_input, 6));
}

/* Of two fields, what nothing can fulfil. */
static exphil_status check_pairs(const exphil_selection *s, exphil_error *error)
{
    if (s->most_frames && s->most_frames < s->least_frames)
        return xph_fail(error, EXPHIL_E_INVALID, "most_frames %lld is less than least_frames %lld",
                        (long long)s->most_frames, (long long)s->least_frames);
    if (s->last_day && s->last_day < s->first_day)
        return xph_fail(error, EXPHIL_E_INVALID, "last_day %d is before first_day %d", (int)s->last_day,
                        (int)s->first_day);
    if (s->port && s->port == s->opponent_port)
        return xph_fail(error, EXPHIL_E_INVALID, "port and opponent_port are both %d", (int)s->port);
    if (s->last_frame && s->last_frame < s->first_frame)
        return xph_fail(error, EXPHIL_E_INVALID, "last_frame %d is before first_frame %d", (int)s->last_frame,
                        (int)s->first_frame);
    return EXPHIL_OK;
}

exphil_status xph_selector_create(exphil_context *context, const exphil_selection *selection,
                                  xph_selector **selector, exphil_error *error)
{
    xph_selector *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    made->selection = (exphil_selection)EXPHIL_SELECTION_INIT;
    exphil_status status = XPH_TAKE(exphil_selection, &made->selection, selection, error);
    if (status == EXPHIL_OK) status = check_ranges(&made->selection, error);
    if (status == EXPHIL_OK) status = check_pairs(&made->selection, error);
    if (status == EXPHIL_OK) status = read_lists(made, error);
    if (status < 0)
        xph_selector_free(made);
    else
        *selector = made;
    return status;
}

void xph_selector_free(xph_selector *selector)
{
    if (selector) xph_free(selector->context, selector, sizeof *selector);
}

const exphil_selection *xph_selector_of(const xph_selector *selector)
{
    return &selector->selection;
}

/* ---- a player of a game -------------------------------------------------------------------------------------- */

enum { TAKEN = -1 };

static bool in_set(const uint8_t *set, int32_t number)
{
    return set[number / 8] >> number % 8 & 1;
}

/* Does a filter of EXPHIL_WITH... want what is (or is not) there? */
static bool wants(int32_t filter, bool there)
{
    return filter == EXPHIL_WITH_OR_WITHOUT || (filter == EXPHIL_WITH) == there;
}

static bool out_of_days(const exphil_selection *s, const xph_game_entry *entry, int32_t *reason)
{
    bool asked = s->first_day || s->last_day;
    *reason = asked && !entry->day                      ? EXPHIL_REFUSED_UNKNOWN
              : entry->day < s->first_day               ? EXPHIL_REFUSED_EARLY
              : s->last_day && entry->day > s->last_day ? EXPHIL_REFUSED_LATE
                                                        : TAKEN;
    return *reason != TAKEN;
}

static int32_t count_players(const xph_game_entry *entry, bool human)
{
    int32_t count = 0;
    for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++)
        count += human ? entry->port[port - 1].type == TYPE_HUMAN : xph_game_plays(entry, port);
    return count;
}

static int32_t refuses_game(const xph_selector *selector, const xph_game_entry *entry)
{
    const exphil_selection *s = &selector->selection;
    int32_t reason, players = count_players(entry, false),
                    version = entry->version[0] << 16 | entry->version[1] << 8 | entry->version[2];
    if (!selector->any_stage && !in_set(selector->stages, entry->stage)) return EXPHIL_REFUSED_STAGE;
    if (entry->frames < s->least_frames) return EXPHIL_REFUSED_SHORT;
    if (s->most_frames && entry->frames > s->most_frames) return EXPHIL_REFUSED_LONG;
    if (out_of_days(s, entry, &reason)) return reason;
    if (version < s->least_version) return EXPHIL_REFUSED_VERSION;
    if (!wants(s->teams, entry->teams)) return EXPHIL_REFUSED_TEAMS;
    if (!wants(s->items, entry->item_spawn >= 0)) return EXPHIL_REFUSED_ITEMS;
    if (s->players && players != s->players) return EXPHIL_REFUSED_PLAYERS;
    if (s->complete && !xph_game_complete(entry)) return EXPHIL_REFUSED_INCOMPLETE;
    if (s->humans && players != count_players(entry, true)) return EXPHIL_REFUSED_COMPUTER_GAME;
    return TAKEN;
}

/* In team games all of the winner's team have won. */
static bool has_won(const xph_game_entry *entry, int32_t port)
{
    const xph_game_port *winner = &entry->port[entry->winner - 1], *own = &entry->port[port - 1];
    return winner == own || (entry->teams && winner->team == own->team);
}

static int32_t refuses_player(const xph_selector *selector, const xph_game_entry *entry, int32_t port)
{
    const exphil_selection *s = &selector->selection;
    const xph_game_port *own = &entry->port[port - 1];
    if (own->type != TYPE_HUMAN) return EXPHIL_REFUSED_COMPUTER;
    if (!selector->any_character && !in_set(selector->characters, own->character))
        return EXPHIL_REFUSED_CHARACTER;
    if (s->port && s->port != port) return EXPHIL_REFUSED_PORT;
    if (s->result && !entry->winner) return EXPHIL_REFUSED_UNKNOWN;
    if (s->result && has_won(entry, port) != (s->result == EXPHIL_RESULT_WON)) return EXPHIL_REFUSED_RESULT;
    if (own->damage_dealt < s->least_damage) return EXPHIL_REFUSED_DAMAGE;
    if (own->stocks_taken < s->least_stocks) return EXPHIL_REFUSED_STOCKS;
    if (s->self_destructs_below && own->self_destructs >= s->self_destructs_below)
        return EXPHIL_REFUSED_SELF_DESTRUCTS;
    if ((double)own->input_frames / (double)entry->frames < s->least_input) return EXPHIL_REFUSED_INPUT;
    return TAKEN;
}

/* What xph_melee_opponent looks at. */
static int32_t first_opponent(const xph_game_entry *entry, int32_t port)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    info.teams = entry->teams;
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        info.ports[i].type = entry->port[i].type;
        info.ports[i].team = entry->port[i].team;
    }
    return xph_melee_opponent(&info, port);
}

static int32_t refuses_opponent(const xph_selector *selector, const xph_game_entry *entry, int32_t port,
                                int32_t *opponent)
{
    int32_t asked = selector->selection.opponent_port;
    if (asked && (asked == port || !xph_game_plays(entry, asked))) return EXPHIL_REFUSED_OPPONENT_PORT;
    *opponent = asked ? asked : first_opponent(entry, port);
    if (selector->any_opponent) return TAKEN;
    bool fits = *opponent && in_set(selector->opponents, entry->port[*opponent - 1].character);
    return fits ? TAKEN : EXPHIL_REFUSED_OPPONENT;
}

int32_t xph_selector_refuses(const xph_selector *selector, const xph_game_entry *entry, int32_t port,
                             int32_t *opponent)
{
    int32_t reason = refuses_game(selector, entry);
    if (reason == TAKEN) reason = refuses_player(selector, entry, port);
    return reason == TAKEN ? refuses_opponent(selector, entry, port, opponent) : reason;
}
