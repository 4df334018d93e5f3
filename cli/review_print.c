/* A review for people, and whole as JSON. */
#include "review.h"

#include "examine.h"
#include "seat.h"
#include "slp_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COLUMNS = 72, ROWS = 9, WIDE = 96, LINES = 2, PAD_TEXT = 48 };

/* ---- what is pressed ------------------------------------------------------------------------------------- */

/* Which of eight directions, or the middle. */
static const char *direction(float x, float y)
{
    static const char *const names[] = {"right", "up-right",  "up",   "up-left",
                                        "left",  "down-left", "down", "down-right"};
    const double right = (double)x, up = (double)y;
    return right * right + up * up < 0.28 * 0.28 ? "" : names[stick_eighth(right, up)];
}

static void append(char *to, const char *text)
{
    size_t used = strlen(to);
    if (text[0]) snprintf(to + used, PAD_TEXT - used, "%s%s", used ? "+" : "", text);
}

/* "down-left+B", "rest". */
static const char *pad_words(const exphil_pad *pad, char to[PAD_TEXT])
{
    static const struct {
        uint32_t bit;
        const char *name;
    } buttons[] = {{EXPHIL_PAD_A, "A"}, {EXPHIL_PAD_B, "B"}, {EXPHIL_PAD_X, "X"}, {EXPHIL_PAD_Y, "Y"},
                   {EXPHIL_PAD_Z, "Z"}, {EXPHIL_PAD_L, "L"}, {EXPHIL_PAD_R, "R"}, {EXPHIL_PAD_D_UP, "taunt"}};
    char c[24];
    to[0] = 0;
    append(to, direction(pad->main_x, pad->main_y));
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        if (pad->buttons & buttons[i].bit) append(to, buttons[i].name);
    snprintf(c, sizeof c, "C-%s", direction(pad->c_x, pad->c_y));
    if (c[2]) append(to, c);
    if (pad->trigger > 0.3f && !(pad->buttons & (EXPHIL_PAD_L | EXPHIL_PAD_R | EXPHIL_PAD_Z)))
        append(to, "shield");
    if (!to[0]) append(to, "rest");
    return to;
}

static const exphil_pad *pad_of(const review *r, int64_t at, bool policy)
{
    return policy ? &r->frame[at].policy : &r->frame[at].pressed;
}

/* The inputs of a swing, one behind the other with the frames that each is held, in two lines at most. */
static void print_inputs(const review *r, const review_swing *s, bool policy)
{
    char word[PAD_TEXT], next[PAD_TEXT], part[PAD_TEXT + 16];
    int column = printf("     %-8s", policy ? "policy" : "pressed"), lines = 1;
    const int margin = column;
    const int64_t end = s->inputs + REVIEW_WINDOW;
    for (int64_t i = s->inputs, held; i < end; i += held) {
        pad_words(pad_of(r, i, policy), word);
        for (held = 1; i + held < end; held++)
            if (strcmp(word, pad_words(pad_of(r, i + held, policy), next)) != 0) break;
        if (!r->frame[i].known) continue;
        int length = snprintf(part, sizeof part, " %s %" PRId64 "%s", word, held, i + held < end ? "," : "");
        if (column + length > WIDE && lines++ == LINES) {
            printf(" ...");
            break;
        }
        if (column + length > WIDE) column = printf("\n%*s", margin, "") - 1;
        column += printf("%s", part);
    }
    printf("\n");
}

/* ---- the curve ------------------------------------------------------------------------------------------- */

/* Mean of a column's frames; NaN: nothing is said of them. */
static double column_mean(const review *r, int column)
{
    int64_t first = r->count * column / COLUMNS, end = r->count * (column + 1) / COLUMNS, known = 0;
    double sum = 0.0;
    for (int64_t i = first; i < end; i++) {
        if (!r->frame[i].known) continue;
        sum += r->frame[i].value;
        known++;
    }
    return known ? sum / (double)known : NAN;
}

/* The heights of the axis: all means and 0, to tenths. */
static void range_of(const review *r, double *low, double *high)
{
    *low = *high = 0.0;
    for (int c = 0; c < COLUMNS; c++) {
        *low = fmin(*low, column_mean(r, c));
        *high = fmax(*high, column_mean(r, c));
    }
    *low = floor(*low * 10.0) / 10.0;
    *high = ceil(fmax(*high, *low + 0.1) * 10.0) / 10.0;
}

/* Who dies where, and the number of each swing below its column; of two in one column the larger. */
static void print_places(const review *r)
{
    char line[COLUMNS + 1];
    int64_t deaths = 0;
    memset(line, ' ', COLUMNS);
    line[COLUMNS] = 0;
    for (int64_t i = 0; i < r->count; i++)
        for (int other = 0; other < (r->other ? 2 : 1); other++) {
            if (!review_dies(r, other ? r->other : r->port, (int32_t)(r->first + i))) continue;
            line[i * COLUMNS / r->count] = other ? 'o' : 'x';
            deaths++;
        }
    if (deaths && r->other)
        printf("%7s |%s x P%d, o P%d\n", "dies", line, (int)r->port, (int)r->other);
    else if (deaths)
        printf("%7s |%s\n", "dies", line);
    memset(line, ' ', COLUMNS);
    for (int64_t i = r->swings < 9 ? r->swings : 9; i-- > 0;)
        line[(r->swing[i].at + REVIEW_WINDOW / 2) * COLUMNS / r->count] = (char)('1' + i);
    if (r->swings) printf("%7s |%s\n", "swing", line);
}
static void print_curve(const review *r)
{
    double low, high, mean[COLUMNS];
    char end[WORDS_SHORT], label[16];
    range_of(r, &low, &high);
    const double step = (high - low) / (ROWS - 1);
    const int zero = (int)lround(high / step);
    for (int c = 0; c < COLUMNS; c++) mean[c] = column_mean(r, c);
    for (int row = 0; row < ROWS; row++) {
        label[0] = 0;
        if (row == 0 || row == zero || row == ROWS - 1)
            snprintf(label, sizeof label, "%+.1f", row == zero ? 0.0 : high - step * row);
        printf("%7s |", label);
        for (int c = 0; c < COLUMNS; c++) {
            bool here = !isnan(mean[c]) && (int)lround((high - mean[c]) / step) == row;
            putchar(here ? '*' : row == zero ? '-' : ' ');
        }
        putchar('\n');
    }
    print_places(r);
    printf("%7s  %-8s%*s\n", "", "0:00", COLUMNS - 8, words_time(end, r->count));
}

/* ---- text ------------------------------------------------------------------------------------------------ */

static void print_head(const review *r)
{
    char own[WORDS_SHORT], other[WORDS_SHORT], stage[WORDS_SHORT], time[WORDS_SHORT], end[WORDS_LONG];
    words_player(own, &r->game, r->port - 1);
    printf("%s", own);
    if (r->other) printf(" against %s", words_player(other, &r->game, r->other - 1));
    printf(" on %s, %s\nwinner: %s\n\n", words_stage(stage, r->game.stage), words_time(time, r->count),
           words_result(end, &r->game, &r->result));
    print_paragraph(
        "Value: what %s is to gain from there on, less what it is to lose, as the policy sees it. A stock is "
        "%.3g, a percent %.3g; what comes %g s later counts half.%s",
        own,
        r->worth.of.stock < 0.0    ? 0.0
        : r->worth.of.stock == 0.0 ? 1.0
                                   : r->worth.of.stock,
        r->worth.of.damage < 0.0    ? 0.0
        : r->worth.of.damage == 0.0 ? 0.01
                                    : r->worth.of.damage,
        r->worth.half_life,
        r->worth_told ? "" : " (The weights do not say what they were trained on: that is assumed.)");
    if (r->returns && r->unexplained < 1.0)
        print_paragraph("Of the differences in what came in this game it foresaw %.0f %%.",
                        100.0 * (1.0 - r->unexplained));
    else if (r->returns)
        print_paragraph(
            "It foresaw nothing of the differences in what came in this game: the mean would have done "
            "better. Its swings say little.");
    else
        print_paragraph("How right it was is not known: the game was cut off too early.");
    printf("\n");
}

static void print_swing(const review *r, int64_t number)
{
    const review_swing *s = &r->swing[number];
    const int32_t frame = (int32_t)(r->first + s->at);
    char time[WORDS_SHORT], left[WORDS_SHORT], what[512], clock[WORDS_SHORT + 16] = "";
    if (review_clock(r, frame) >= 0)
        snprintf(clock, sizeof clock, ", clock %.40s", words_time(left, review_clock(r, frame)));
    printf("\n%2" PRId64 ".  %s%s (frame %d)   %+.2f: expected %+.2f, came %+.2f, then expects %+.2f\n",
           number + 1, words_time(time, frame), clock, (int)frame, s->swing, s->before, s->came, s->after);
    printf("     %s\n", review_happened(r, s, what, sizeof what));
    printf("     from frame %d on\n", (int)(r->first + s->inputs));
    print_inputs(r, s, false);
    print_inputs(r, s, true);
}

void review_print(const review *r)
{
    print_head(r);
    print_curve(r);
    if (!r->swings) {
        printf("\n%s\n", r->options->swings ? "no swing: the game is too short" : "");
        return;
    }
    printf("\n");
    char many[64] = "The largest swing, within two seconds";
    if (r->swings > 1)
        snprintf(many, sizeof many, "The %" PRId64 " largest swings, each within two seconds", r->swings);
    print_paragraph("%s: what came and is expected after it, less what was expected before. Then, from a "
                    "second and a half "
                    "before what happened first, of a death before the hit, what was pressed and what the "
                    "policy would press, "
                    "with the frames each is held%s.",
                    many, r->info.action_slots ? "; its past actions are what was pressed" : "");
    for (int64_t i = 0; i < r->swings; i++) print_swing(r, i);
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static json_t *events_json(const review_swing *s)
{
    static const char *const words[] = {[REVIEW_HIT] = "hit",
                                        [REVIEW_DEATH] = "death",
                                        [REVIEW_GRABBED] = "grabbed",
                                        [REVIEW_LEDGE] = "ledge",
                                        [REVIEW_SHIELD_BROKEN] = "shield_broken"};
    json_t *events = json_array();
    for (int i = 0; i < s->events; i++) {
        const review_event *e = &s->event[i];
        json_t *one =
            json_pack("{s:s,s:i,s:i}", "kind", words[e->kind], "port", (int)e->port, "frame", (int)e->frame);
        if (e->kind <= REVIEW_DEATH) json_object_set_new(one, "percent", json_real(e->percent));
        if (e->kind == REVIEW_DEATH && e->hit != INT32_MIN)
            json_object_set_new(one, "hit_frame", json_integer(e->hit));
        json_array_append_new(events, one);
    }
    return events;
}

static json_t *swing_json(const review *r, const review_swing *s)
{
    char time[WORDS_SHORT], what[512];
    json_t *inputs = json_array();
    const int32_t frame = (int32_t)(r->first + s->at);
    for (int64_t i = s->inputs; i < s->inputs + REVIEW_WINDOW; i++)
        if (r->frame[i].known)
            json_array_append_new(inputs, json_pack("{s:I,s:o,s:o}", "frame", (json_int_t)r->first + i,
                                                    "pressed", pad_json(&r->frame[i].pressed), "policy",
                                                    pad_json(&r->frame[i].policy)));
    json_t *object =
        json_pack("{s:i,s:i,s:s,s:f,s:f,s:f,s:f,s:s,s:o,s:o}", "frame", (int)frame, "frames",
                  (int)REVIEW_WINDOW, "time", words_time(time, frame), "swing", s->swing, "before", s->before,
                  "came", s->came, "after", s->after, "what", review_happened(r, s, what, sizeof what),
                  "events", events_json(s), "inputs", inputs);
    if (review_clock(r, frame) >= 0)
        json_object_set_new(object, "clock", json_string(words_time(time, review_clock(r, frame))));
    return object;
}

static json_t *name_json(const char *name)
{
    return name ? json_string(name) : json_null();
}

json_t *review_json(const review *r)
{
    json_t *values = json_array(), *rewards = json_array(), *swings = json_array(), *worth = json_object();
    for (int64_t i = 0; i < r->count; i++) {
        json_array_append_new(values, r->frame[i].known ? json_real(r->frame[i].value) : json_null());
        json_array_append_new(rewards, json_real(r->frame[i].reward));
    }
    for (int64_t i = 0; i < r->swings; i++) json_array_append_new(swings, swing_json(r, &r->swing[i]));
    rewards_write(&r->worth, worth);
    return json_pack(
        "{s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:i,s:I,s:i,s:b,s:o,s:b,s:I,s:o,s:o,s:o,s:o}", "replay",
        path_json(r->path), "weights", path_json(r->options->weights), "port", (int)r->port, "opponent",
        r->other ? json_integer(r->other) : json_null(), "character",
        name_json(exphil_melee_character_name(r->game.ports[r->port - 1].character)), "opponent_character",
        r->other ? name_json(exphil_melee_character_name(r->game.ports[r->other - 1].character))
                 : json_null(),
        "stage", name_json(exphil_melee_stage_name(r->game.stage)), "first_frame", (int)r->first, "frames",
        (json_int_t)r->count, "delay_frames", (int)r->info.delay_frames, "over", r->over, "worth", worth,
        "worth_told", r->worth_told, "known_returns", (json_int_t)r->returns, "unexplained",
        r->returns ? json_real(r->unexplained) : json_null(), "value", values, "reward", rewards, "swings",
        swings);
}
