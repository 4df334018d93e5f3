/* An examination for people, in less than a page, and whole as JSON. */
#include "commands.h"
#include "examine.h"

#include "base/double.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 4 }; /* of a kind of group */

static const char *const sectors[EXAM_SECTORS] = {"rest", "right",     "up-right", "up",        "up-left",
                                                  "left", "down-left", "down",     "down-right"};
static const char *const sector_heads[EXAM_SECTORS] = {"rest", "right", "u-r",  "up", "u-l",
                                                       "left", "d-l",   "down", "d-r"};
static const char *const phases[EXAM_PHASES] = {"first 10 s", "middle", "last stock", "last 10 s"};

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

static double mean(const exam *e, double sum)
{
    return e->frames ? sum / (double)e->frames : 0.0;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static void print_rates(const exam *e, int64_t h)
{
    const exam_head *head = &e->head[h];
    char name[64];
    int32_t count = e->spec.heads[h].count < 10 ? e->spec.heads[h].count : 10;
    printf("%-24s", "pressed, % of frames");
    for (int32_t i = 0; i < count; i++) printf(" %8s", exam_bit_name(e, h, i, name, sizeof name));
    printf("\n%-24s", "  recorded");
    for (int32_t i = 0; i < count; i++) printf(" %8.2f", 100.0 * exam_rate_recorded(e, h, i));
    printf("\n%-24s", "  policy's probability");
    for (int32_t i = 0; i < count; i++) printf(" %8.2f", 100.0 * mean(e, head->bit[i].probability));
    printf("\n%-24s", "  policy's decisions");
    for (int32_t i = 0; i < count; i++) printf(" %8.2f", 100.0 * exam_rate_decided(e, h, i));
    printf("\n");
}

static void print_heads(const exam *e)
{
    printf("%-24s", "of each head");
    for (int64_t h = 0; h < e->spec.head_count; h++) printf(" %8.8s", e->spec.heads[h].name);
    printf("\n%-24s", "  entropy, nats");
    for (int64_t h = 0; h < e->spec.head_count; h++) printf(" %8.4f", mean(e, e->head[h].entropy));
    printf("\n%-24s", "  calibration error, %");
    for (int64_t h = 0; h < e->spec.head_count; h++) printf(" %8.2f", 100.0 * exam_calibration_error(e, h));
    printf("\n");
}

static void print_stick(const exam *e)
{
    printf("main stick: of the frames recorded, %% that the policy moves\n  %-10s", "recorded");
    for (int k = 0; k < EXAM_SECTORS; k++) printf(" %6s", sector_heads[k]);
    printf(" %9s\n", "frames");
    for (int i = 0; i < EXAM_SECTORS; i++) {
        int64_t all = 0;
        for (int k = 0; k < EXAM_SECTORS; k++) all += e->stick[i][k];
        if (!all) continue;
        printf("  %-10s", sectors[i]);
        for (int k = 0; k < EXAM_SECTORS; k++)
            if (e->stick[i][k])
                printf(" %6.1f", 100.0 * share(e->stick[i][k], all));
            else
                printf(" %6s", ".");
        printf(" %9" PRId64 "\n", all);
    }
}

static void print_group(const char *what, const char *name, const exam_group *g)
{
    printf("%-10.10s %-18.18s %9" PRId64 " %8.2f%% ", what, name, g->frames,
           100.0 * share(g->right, g->frames));
    if (g->changes)
        printf("%8.2f%%", 100.0 * share(g->right_changes, g->changes));
    else
        printf("%9s", "-");
    printf(" %9.4f\n", g->frames ? g->nll / (double)g->frames : 0.0);
}

static const char *group_name(char *to, size_t size, bool stage, int id)
{
    const char *name = stage ? exphil_melee_stage_name(id) : exphil_melee_character_name(id);
    if (name)
        snprintf(to, size, "%s", name);
    else if (id == EXAM_GROUPS - 1)
        snprintf(to, size, "others");
    else
        snprintf(to, size, "%s %d", stage ? "stage" : "character", id);
    return to;
}

/* The largest groups; the rest is in JSON. */
static void print_groups(const char *what, const exam_group *groups, bool stage)
{
    bool shown[EXAM_GROUPS] = {false};
    char name[64];
    for (int line = 0; line < LINES; line++) {
        int best = -1;
        for (int i = 0; i < EXAM_GROUPS; i++)
            if (!shown[i] && groups[i].frames && (best < 0 || groups[i].frames > groups[best].frames))
                best = i;
        if (best < 0) return;
        shown[best] = true;
        print_group(line ? "" : what, group_name(name, sizeof name, stage, best), &groups[best]);
    }
}

void exam_print(const exam *e)
{
    printf("\n");
    for (int64_t h = 0; h < e->spec.head_count; h++)
        if (e->spec.heads[h].kind == EXPHIL_BERNOULLI) print_rates(e, h);
    print_heads(e);
    if (e->melee) print_stick(e);
    bool any = false;
    for (int i = 0; i < EXAM_GROUPS; i++) any = any || e->own[i].frames;
    if (!any) return;
    printf("%-29s %9s %9s %9s %9s\n", "", "frames", "exact", "change", "nll");
    print_groups("as", e->own, false);
    print_groups("against", e->other, false);
    print_groups("on", e->stage, true);
    for (int i = 0, line = 0; i < EXAM_PHASES; i++)
        if (e->phase[i].frames) print_group(line++ ? "" : "phase", phases[i], &e->phase[i]);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *group_json(const exam_group *g)
{
    json_t *object = json_pack("{s:I,s:I,s:f,s:f}", "frames", (json_int_t)g->frames, "change_frames",
                               (json_int_t)g->changes, "nll", g->frames ? g->nll / (double)g->frames : 0.0,
                               "exact_accuracy", share(g->right, g->frames));
    if (g->changes)
        json_object_set_new(object, "exact_change_accuracy", json_real(share(g->right_changes, g->changes)));
    return object;
}

static json_t *groups_json(const exam_group *groups, bool stage)
{
    json_t *object = json_object();
    char name[64];
    for (int i = 0; i < EXAM_GROUPS; i++)
        if (groups[i].frames)
            json_object_set_new(object, group_name(name, sizeof name, stage, i), group_json(&groups[i]));
    return object;
}

static json_t *bits_json(const exam *e, int64_t h)
{
    json_t *bits = json_object();
    char name[64];
    for (int32_t i = 0; i < e->spec.heads[h].count; i++)
        json_object_set_new(bits, exam_bit_name(e, h, i, name, sizeof name),
                            json_pack("{s:f,s:f,s:f}", "recorded", exam_rate_recorded(e, h, i), "probability",
                                      mean(e, e->head[h].bit[i].probability), "decided",
                                      exam_rate_decided(e, h, i)));
    return bits;
}

static json_t *bins_json(const exam_head *head)
{
    json_t *bins = json_array();
    for (int i = 0; i < EXAM_BINS; i++) {
        double count = head->bin[i].count ? (double)head->bin[i].count : 1.0;
        json_array_append_new(bins, json_pack("{s:I,s:f,s:f}", "count", (json_int_t)head->bin[i].count,
                                              "confidence", head->bin[i].confidence / count, "accuracy",
                                              (double)head->bin[i].right / count));
    }
    return bins;
}

static json_t *heads_json(const exam *e)
{
    json_t *heads = json_object();
    for (int64_t h = 0; h < e->spec.head_count; h++) {
        json_t *head = json_pack("{s:f,s:f,s:o}", "entropy", mean(e, e->head[h].entropy), "calibration_error",
                                 exam_calibration_error(e, h), "bins", bins_json(&e->head[h]));
        if (e->spec.heads[h].kind == EXPHIL_BERNOULLI) json_object_set_new(head, "bits", bits_json(e, h));
        json_object_set_new(heads, e->spec.heads[h].name, head);
    }
    return heads;
}

static json_t *stick_json(const exam *e)
{
    json_t *rows = json_array(), *names = json_array();
    for (int i = 0; i < EXAM_SECTORS; i++) {
        json_t *row = json_array();
        for (int k = 0; k < EXAM_SECTORS; k++) json_array_append_new(row, json_integer(e->stick[i][k]));
        json_array_append_new(rows, row);
        json_array_append_new(names, json_string(sectors[i]));
    }
    return json_pack("{s:o,s:o}", "sectors", names, "recorded_decided", rows);
}

json_t *exam_json(const exam *e)
{
    json_t *object = json_pack("{s:I,s:o}", "frames", (json_int_t)e->frames, "heads", heads_json(e)),
           *phase = json_object();
    if (e->melee) json_object_set_new(object, "main_stick", stick_json(e));
    json_object_set_new(object, "characters", groups_json(e->own, false));
    json_object_set_new(object, "opponents", groups_json(e->other, false));
    json_object_set_new(object, "stages", groups_json(e->stage, true));
    for (int i = 0; i < EXAM_PHASES; i++)
        if (e->phase[i].frames) json_object_set_new(phase, phases[i], group_json(&e->phase[i]));
    json_object_set_new(object, "phases", phase);
    return object;
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

enum { PAD_TEXT = 96, PLACE_TEXT = 256 };

static void append(char *to, const char *text)
{
    size_t used = strlen(to);
    snprintf(to + used, PAD_TEXT - used, "%s%s", used ? " + " : "", text);
}

static void append_stick(char *to, const char *name, float x, float y)
{
    char text[48];
    if (x == 0.0f && y == 0.0f) return;
    snprintf(text, sizeof text, "%s (%+.2f, %+.2f)", name, (double)x, (double)y);
    append(to, text);
}

/* "A + X + stick (-1.00, +0.00)", "nothing"; of other codecs the values of the heads. */
static const char *action_text(const exam *e, const int32_t *action, char to[PAD_TEXT])
{
    static const struct {
        uint32_t bit;
        const char *name;
    } buttons[] = {{EXPHIL_PAD_A, "A"}, {EXPHIL_PAD_B, "B"},          {EXPHIL_PAD_X, "X"},
                   {EXPHIL_PAD_Y, "Y"}, {EXPHIL_PAD_Z, "Z"},          {EXPHIL_PAD_L, "L"},
                   {EXPHIL_PAD_R, "R"}, {EXPHIL_PAD_D_UP, "D-pad up"}};
    exphil_pad pad;
    char text[64];
    to[0] = 0;
    if (!e->melee || exphil_melee_pad_decode(e->spec.codec, action, &pad, NULL) < 0) {
        for (int64_t h = 0; h < e->spec.head_count; h++) {
            snprintf(text, sizeof text, "%.32s %d", e->spec.heads[h].name, action[h]);
            append(to, text);
        }
        return to;
    }
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        if (pad.buttons & buttons[i].bit) append(to, buttons[i].name);
    append_stick(to, "stick", pad.main_x, pad.main_y);
    append_stick(to, "C", pad.c_x, pad.c_y);
    snprintf(text, sizeof text, "trigger %.2f", (double)pad.trigger);
    if (pad.trigger > 0.0f) append(to, text);
    if (!to[0]) append(to, "nothing");
    return to;
}

/* "fox P1 against marth P2 on battlefield"; "" of rows, which do not tell. */
static const char *match_text(const exphil_episode_info *info, char to[PLACE_TEXT])
{
    char own[64], other[64], stage[64];
    to[0] = 0;
    if (info->character >= 0)
        snprintf(to, PLACE_TEXT, "%s P%d against %s P%d on %s",
                 group_name(own, sizeof own, false, info->character), info->port,
                 group_name(other, sizeof other, false, info->opponent_character), info->opponent_port,
                 group_name(stage, sizeof stage, true, info->stage));
    return to;
}

static void append_place(char to[PLACE_TEXT], const exam *e, const char *who, const float *at)
{
    size_t used = strlen(to);
    used += (size_t)snprintf(to + used, PLACE_TEXT - used, "%s", who);
    if (e->at_own[0] >= 0 && e->at_own[1] >= 0)
        used +=
            (size_t)snprintf(to + used, PLACE_TEXT - used, " at (%.0f, %.0f)", (double)at[0], (double)at[1]);
    if (e->at_own[2] >= 0) used += (size_t)snprintf(to + used, PLACE_TEXT - used, ", %.0f %%", (double)at[2]);
    if (e->at_own[3] >= 0)
        snprintf(to + used, PLACE_TEXT - used, ", %.0f stock%s", (double)at[3], at[3] == 1.0f ? "" : "s");
}

/* "own at (-3, 0), 12 %, 4 stocks; opponent at ..."; "" of a layout that has no places. */
static const char *situation_text(const exam *e, const exam_mistake *m, char to[PLACE_TEXT])
{
    to[0] = 0;
    if (e->at_own[2] < 0 && e->at_own[0] < 0) return to;
    append_place(to, e, "own", m->own);
    append_place(to, e, "; opponent", m->other);
    return to;
}

static int64_t game_frame(const exam *e, const exam_mistake *m)
{
    return e->episode[m->episode].first_game_frame + m->row + m->delay;
}

static void print_mistake(const exam *e, const exam_mistake *m, int64_t number)
{
    const exphil_episode_info *info = &e->episode[m->episode];
    int64_t frame = game_frame(e, m), seconds = frame >= 0 ? frame / 60 : 0;
    char text[PAD_TEXT], place[PLACE_TEXT];
    printf("%2" PRId64 "  %s", number, match_text(info, place));
    printf("%sgame %016" PRIx64 "\n    frame %" PRId64 " (%" PRId64 ":%02" PRId64 ")", place[0] ? ", " : "",
           info->game, frame, seconds / 60, seconds % 60);
    situation_text(e, m, place);
    printf("%s%s\n    recorded  %s", place[0] ? ": " : "", place, action_text(e, m->recorded, text));
    printf("   (probability %.2g %%)", 100.0 * xph_exp_of(-m->nll));
    printf("\n    likeliest %s\n", action_text(e, m->likely, text));
}

void exam_print_mistakes(const exam *e)
{
    int64_t count, *order = exam_mistakes(e, &count);
    printf("\nthe %" PRId64 " frame%s that cost most, at most %" PRId64 " of a game and a second apart\n",
           count, plural(count), e->each);
    for (int64_t i = 0; order && i < count; i++) print_mistake(e, &e->candidates[order[i]], i + 1);
    free(order);
}

static json_t *action_json(const exam *e, const int32_t *action)
{
    json_t *values = json_object();
    char text[PAD_TEXT];
    for (int64_t h = 0; h < e->spec.head_count; h++)
        json_object_set_new(values, e->spec.heads[h].name, json_integer(action[h]));
    return json_pack("{s:s,s:o}", "text", action_text(e, action, text), "heads", values);
}

static json_t *mistake_json(const exam *e, const exam_mistake *m)
{
    const exphil_episode_info *info = &e->episode[m->episode];
    char hash[20], match[PLACE_TEXT], situation[PLACE_TEXT];
    snprintf(hash, sizeof hash, "%016" PRIx64, info->game);
    return json_pack("{s:s,s:s,s:i,s:I,s:I,s:I,s:s,s:f,s:f,s:o,s:o}", "game", hash, "match",
                     match_text(info, match), "port", info->port, "dataset_frame", (json_int_t)m->frame,
                     "episode", (json_int_t)m->episode, "frame", (json_int_t)game_frame(e, m), "situation",
                     situation_text(e, m, situation), "nll", m->nll, "probability", xph_exp_of(-m->nll),
                     "recorded", action_json(e, m->recorded), "likely", action_json(e, m->likely));
}

json_t *exam_mistakes_json(const exam *e)
{
    int64_t count, *order = exam_mistakes(e, &count);
    json_t *list = json_array();
    for (int64_t i = 0; order && i < count; i++)
        json_array_append_new(list, mistake_json(e, &e->candidates[order[i]]));
    free(order);
    return list;
}
