/* Tables of conditions as text, and the words of --play-as and --delay. */
#include "conditions.h"
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of the table's conditions. */
typedef struct condition_line {
    replay_line of;
    int32_t value[EXPHIL_CONDITIONS_MAX];
} condition_line;

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool read_head(replay_table *of, const csv *from)
{
    condition_table *t = (condition_table *)of;
    if (from->fields > 2 + EXPHIL_CONDITIONS_MAX)
        return csv_wrong(from, 0, NULL, "there are more than 10 columns");
    if (from->fields < 3 || strcmp(from->field[0], "file") != 0 || strcmp(from->field[1], "port") != 0)
        return csv_wrong(from, 0, NULL,
                         "the first line must be file,port,NAME,... with a name for each condition");
    for (int64_t i = 2; i < from->fields; i++) {
        const char *name = from->field[i];
        size_t length = strlen(name);
        if (length < 1 || length > 31 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != length)
            return csv_wrong(from, 0, NULL, "names of conditions are 1 to 31 of a-z, 0-9, _ and .");
        for (int64_t k = 0; k < t->count; k++)
            if (strcmp(t->name[k], name) == 0)
                return csv_wrong(from, 0, NULL, "two columns have the same name");
        memcpy(t->name[t->count], name, length + 1);
        t->spec[t->count].name = t->name[t->count];
        t->count++;
    }
    return true;
}

static bool read_line(replay_table *of, const csv *from, replay_line *to)
{
    condition_table *t = (condition_table *)of;
    condition_line *line = (condition_line *)to;
    for (int64_t i = 0; i < t->count; i++) {
        const char *text = from->field[2 + i];
        if (text[0] && !whole_number(text, 65535, &line->value[i]))
            return csv_wrong(from, 3 + i, t->name[i], "must be a whole number from 0 to 65535, or empty");
        if (line->value[i] > t->spec[i].values) t->spec[i].values = line->value[i];
    }
    return true;
}

static bool same_replay(const replay_line *a, const replay_line *b)
{
    return a->file && b->file ? strcmp(a->file, b->file) == 0 : !a->file && !b->file && a->game == b->game;
}

/* Of one replay each port has one line: among six there are two of the same. */
static bool check_repeats(const replay_table *t)
{
    for (int64_t i = 1; i < t->count; i++) {
        const replay_line *b = replay_table_line(t, i);
        for (int64_t k = i - 1; k >= 0 && k >= i - 5; k--) {
            const replay_line *a = replay_table_line(t, k);
            if (!same_replay(a, b)) break;
            if (a->port != b->port) continue;
            fprintf(stderr,
                    "exphil: --conditions: %s: lines %" PRId64 " and %" PRId64
                    " are of the same file and port\n",
                    t->path, a->number, b->number);
            return false;
        }
    }
    return true;
}

static exphil_status give(const replay_table *of, const replay_line *line, uint64_t game,
                          exphil_dataset *dataset, exphil_error *error)
{
    const condition_table *t = (const condition_table *)of;
    const int32_t *value = ((const condition_line *)line)->value;
    for (int64_t k = 0; k < t->count; k++) {
        exphil_status status =
            exphil_dataset_condition(dataset, t->name[k], game, line->port, value[k], error);
        if (status < 0) return status;
    }
    return EXPHIL_OK;
}

bool conditions_read(const char *path, double mask, condition_table *table)
{
    static const replay_table_kind kind = {"conditions", sizeof(condition_line), read_head, read_line, give};
    *table = (condition_table){.count = 0};
    if (!replay_table_read(&table->of, &kind, path)) return false;
    for (int64_t i = 0; i < table->count; i++) {
        table->spec[i].mask = mask;
        if (table->spec[i].values) continue;
        fprintf(stderr, "exphil: --conditions: %s: column %" PRId64 " (%s) has no value above 0\n", path,
                i + 3, table->name[i]);
        return false;
    }
    return check_repeats(&table->of);
}

/* ---- words ----------------------------------------------------------------------------------------------- */

static bool play_as_wants(const exphil_sampling *model, const char *text)
{
    if (!model->condition_count) {
        fprintf(stderr, "exphil: --play-as: this policy has no conditions\n");
        return false;
    }
    fprintf(stderr, "exphil: --play-as wants");
    for (int64_t i = 0; i < model->condition_count; i++)
        fprintf(stderr, "%s %s=0..%d", i ? "," : "", model->conditions[i].name, model->conditions[i].values);
    fprintf(stderr, ", not %s\n", text);
    return false;
}

bool conditions_play_as(const exphil_model *model, const char *text, int32_t values[EXPHIL_CONDITIONS_MAX],
                        int64_t *count)
{
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_sampling(model, &told, &error) < 0) return complain("model", &error) == 0;
    memset(values, 0, EXPHIL_CONDITIONS_MAX * sizeof *values);
    *count = told.condition_count;
    for (const char *at = text; at && *at;) {
        size_t length = strcspn(at, ",");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        char *equals = strchr(word, '=');
        int64_t i = 0;
        if (length >= sizeof word || !equals) return play_as_wants(&told, text);
        *equals = 0;
        while (i < told.condition_count && strcmp(told.conditions[i].name, word) != 0) i++;
        if (i == told.condition_count || !whole_number(equals + 1, told.conditions[i].values, &values[i]))
            return play_as_wants(&told, text);
        at += length + (at[length] == ',');
    }
    return true;
}

bool delay_fits(const exphil_model *model, int64_t delay)
{
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_sampling(model, &told, &error) < 0) return complain("model", &error) == 0;
    const int32_t *delays = told.delay_count ? told.delays : &told.delay_frames;
    const int64_t count = told.delay_count ? told.delay_count : 1;
    bool fits = delay < 0 && count == 1;
    for (int64_t i = 0; i < count; i++) fits |= delays[i] == delay;
    if (fits) return true;
    fprintf(stderr, "exphil: this policy wants --delay");
    for (int64_t i = 0; i < count; i++)
        fprintf(stderr, "%s%d", !i ? " " : i == count - 1 ? " or " : ", ", delays[i]);
    if (delay >= 0) fprintf(stderr, ", not %" PRId64, delay);
    fprintf(stderr, "\n");
    return false;
}

bool delays_read(const char *text, int32_t delays[EXPHIL_DELAYS_MAX], int64_t *count)
{
    *count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        bool fine = *count < EXPHIL_DELAYS_MAX && length < sizeof word &&
                    whole_number(word, 64, &delays[*count]) &&
                    (!*count || delays[*count] > delays[*count - 1]);
        if (!fine) {
            fprintf(stderr,
                    "exphil: --delay wants 0 to 64, or up to %d such numbers that ascend, as 0,2,4, not %s\n",
                    EXPHIL_DELAYS_MAX, text);
            return false;
        }
        ++*count;
        if (!at[length]) return true;
        at += length + 1;
    }
}
