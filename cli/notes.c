/* Notes of a policy as `exphil train` and `exphil learn` write them: what is read of them is not trusted. */
#include "notes.h"
#include "commands.h"

#include <exphil/notes.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *notes_version(void)
{
    static char text[16];
    uint32_t v = exphil_version();
    snprintf(text, sizeof text, "%u.%u.%u", v / 10000 % 100, v / 100 % 100, v % 100);
    return text;
}

/* ---- options ------------------------------------------------------------------------------------------- */

/* What a person calls files and folders is theirs. */
static bool names_a_file(const option_entry *entry, const char *text)
{
    static const char *const files[] = {"FILE", "LIST", "DIR", "FOLDER", "PATH"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (entry->argument && strcmp(entry->argument, files[i]) == 0 &&
            strcmp(entry->name, "characters") != 0 && strcmp(entry->name, "opponents") != 0 &&
            strcmp(entry->name, "stages") != 0)
            return true;
    return strpbrk(text, "/\\") != NULL;
}

json_t *notes_option(const option_entry *entry)
{
    const char *text;
    json_t *value = NULL;
    switch (entry->kind) {
    case OPTION_INT:
        return json_integer(*(const int64_t *)entry->value);
    case OPTION_AUTO:
        if (*(const int64_t *)entry->value < 0) return json_string("auto");
        return json_integer(*(const int64_t *)entry->value);
    case OPTION_NUMBER:
        return json_real(*(const double *)entry->value);
    case OPTION_BYTES:
        return json_integer((json_int_t) * (const uint64_t *)entry->value);
    case OPTION_TEXT:
        text = *(const char *const *)entry->value;
        if (text && !names_a_file(entry, text)) value = json_string(text);
        return value ? value : json_true();
    default:
        return json_true();
    }
}

/* How a run is started, kept, shown and computed changes no bit of the policy. */
static bool changes_nothing(const char *name)
{
    static const char *const names[] = {
        "config",     "preset", "resume",         "force",       "out",   "log",  "save-minutes",
        "save-every", "keep",   "keep-bad-batch", "tensorboard", "quiet", "json", "threads",
        "workers",    "memory", "memory-limit",   "log-every",   "isa",   "mpi",  "ranks-timeout"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

json_t *notes_options(const option_command *command)
{
    json_t *options = json_object();
    for (const option_entry *entry = command->entry; entry->name || entry->help; entry++)
        if (entry->name && command->given[entry - command->entry] && !changes_nothing(entry->name))
            json_object_set_new(options, entry->name, notes_option(entry));
    return options;
}

const char *notes_character(char *to, int32_t character)
{
    const char *name = exphil_melee_character_name(character);
    snprintf(to, 16, "%.15s", name ? name : "");
    if (!name) snprintf(to, 16, "%d", character);
    return to;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

json_t *notes_of(const exphil_model *model)
{
    const char *text = "";
    if (exphil_model_notes(model, &text, NULL) < 0 || !text[0]) return NULL;
    json_t *notes = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(notes)) return notes;
    json_decref(notes);
    return json_string(text);
}

const json_t *notes_train(const json_t *notes)
{
    const json_t *train = json_object_get(notes, "train");
    return json_is_object(train) ? train : NULL;
}

const json_t *notes_learn(const json_t *notes)
{
    const json_t *learn = json_object_get(notes, "learn");
    return json_is_object(learn) ? learn : NULL;
}

static const json_t *character(const json_t *train, int32_t external)
{
    const json_t *list = json_object_get(train, "characters"), *one;
    char name[16];
    size_t i;
    notes_character(name, external);
    json_array_foreach(list, i, one)
    {
        const char *known = json_string_value(json_object_get(one, "character"));
        if (known && strcmp(known, name) == 0) return one;
    }
    return NULL;
}

int64_t notes_frames_of(const json_t *train, int32_t external)
{
    return (int64_t)json_integer_value(json_object_get(character(train, external), "frames"));
}

int64_t notes_frames_at(const json_t *train, int32_t external, int port)
{
    const char name[] = {(char)('0' + port), 0};
    return (int64_t)json_integer_value(
        json_object_get(json_object_get(character(train, external), "ports"), name));
}

unsigned notes_ports(const json_t *train)
{
    const json_t *list = json_object_get(train, "characters"), *one;
    unsigned ports = 0;
    size_t i;
    json_array_foreach(list, i, one) for (int p = 0; p < 4; p++)
    {
        const char name[] = {(char)('1' + p), 0};
        if (json_integer_value(json_object_get(json_object_get(one, "ports"), name)) > 0) ports |= 1u << p;
    }
    return ports;
}

/* ---- in lines ------------------------------------------------------------------------------------------ */

static void put(const char *text)
{
    size_t size = strlen(text) + 1;
    char *shown = malloc(size);
    if (!shown) return;
    foreign_text(text, shown, size);
    fputs(shown, stdout);
    free(shown);
}

static void put_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    put(text ? text : "?");
}

static int64_t whole(const json_t *object, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(object, name));
}

static double real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void print_who(const char *what, const json_t *train)
{
    const json_t *list = json_object_get(train, "characters"), *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const json_t *ports = json_object_get(one, "ports");
        const char *comma = "";
        if (i == 8) {
            printf(" and %zu more", json_array_size(list) - i);
            break;
        }
        fputs(i ? ", " : what, stdout);
        put_text(one, "character");
        printf(" (%" PRId64 " frames, %" PRId64 " side%s, port", whole(one, "frames"), whole(one, "sides"),
               plural(whole(one, "sides")));
        for (const char *port = "1234"; *port; port++) {
            const char name[] = {*port, 0};
            if (!whole(ports, name)) continue;
            printf("%s %c", comma, *port);
            comma = ",";
        }
        putchar(')');
    }
    if (json_array_size(list)) putchar('\n');
}

static void print_data(const json_t *train)
{
    const json_t *data = json_object_get(train, "data"), *held = json_object_get(train, "held_out");
    printf("learnt from %" PRId64 " frames of %" PRId64 " game%s as ", whole(data, "frames"),
           whole(data, "games"), plural(whole(data, "games")));
    put_text(train, "layout");
    putchar('/');
    put_text(train, "codec");
    fputs(", data ", stdout);
    put_text(data, "hash");
    if (json_is_object(held))
        printf("; held out: %" PRId64 " frames of %" PRId64 " game%s", whole(held, "frames"),
               whole(held, "games"), plural(whole(held, "games")));
    putchar('\n');
}

/* How a run was to be written and shown says nothing of what came of it. */
static bool tells(const char *name)
{
    static const char *const others[] = {"out",  "log",     "force",   "resume", "quiet",
                                         "json", "threads", "workers", "mpi",    "ranks-timeout"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], name) == 0) return false;
    return true;
}

static void print_given(const json_t *options)
{
    const char *name;
    json_t *value;
    char number[32];
    fputs("options", stdout);
    json_object_foreach((json_t *)(uintptr_t)options, name, value)
    {
        if (!tells(name)) continue;
        fputs(" --", stdout);
        put(name);
        number[0] = 0;
        if (json_is_integer(value)) snprintf(number, sizeof number, "%lld", json_integer_value(value));
        if (json_is_real(value)) snprintf(number, sizeof number, "%g", json_real_value(value));
        if (!json_is_true(value)) putchar(' ');
        put(json_is_string(value) ? json_string_value(value) : number);
    }
}

static void print_options(const json_t *train)
{
    print_given(json_object_get(train, "options"));
    printf("; %" PRId64 " update%s of %" PRId64 ", %.3g passes, batch %" PRId64 ", exphil ",
           whole(train, "updates"), plural(whole(train, "updates")), whole(train, "planned_updates"),
           real(train, "passes"), whole(train, "batch"));
    put_text(train, "version");
    putchar('\n');
}

static void print_score(const char *what, const json_t *score)
{
    printf("%s: nll %.4f, %.1f %% exact", what, real(score, "nll"), 100.0 * real(score, "accuracy"));
    if (json_object_get(score, "alone_accuracy"))
        printf(", alone %.1f %%", 100.0 * real(score, "alone_accuracy"));
    if (json_object_get(score, "unexplained")) printf(", value unexplained %.3f", real(score, "unexplained"));
    printf(", after update %" PRId64 "\n", whole(score, "update"));
}

static void print_scores(const json_t *train)
{
    const json_t *scores = json_object_get(train, "held_out_scores"), *last = json_object_get(scores, "last"),
                 *best = json_object_get(scores, "best");
    if (!json_is_object(last)) return;
    print_score("held-out score", last);
    if (json_is_object(best) && whole(best, "update") != whole(last, "update"))
        print_score("the best was", best);
}

static void print_verdict(const json_t *train)
{
    const json_t *said = json_object_get(train, "verdict");
    if (!json_is_object(said)) return;
    fputs("verdict: ", stdout);
    put_text(said, "name");
    fputs(". ", stdout);
    put_text(said, "figure");
    putchar(' ');
    put_text(said, "advice");
    putchar('\n');
}

/* ---- of a policy that learnt by playing ---- */

static void print_played(const json_t *learn)
{
    const int64_t passes = whole(learn, "passes"), updates = whole(learn, "updates");
    fputs("learnt by playing ", stdout);
    put_text(learn, "world");
    fputs(", opponent ", stdout);
    put_text(learn, "opponent");
    printf(": %" PRId64 " frames played", whole(learn, "frames"));
    if (passes) printf(", %" PRId64 " pass%s over each", passes, passes == 1 ? "" : "es");
    printf(", %" PRId64 " update%s\n", updates, plural(updates));
}

static void print_return(const json_t *learn)
{
    const json_t *scores = json_object_get(learn, "scores"), *best = json_object_get(learn, "best");
    const json_t *last = json_array_get(scores, json_array_size(scores) - 1);
    const char *share = json_string_value(json_object_get(learn, "score"));
    const char *what = share && strcmp(share, "won") == 0 ? "games won against its best" : "mean return";
    if (!json_is_object(last)) return;
    printf("%s %.4g (95 %%: %.4g to %.4g) after update %" PRId64, what, real(last, "score"),
           real(last, "low"), real(last, "high"), whole(last, "update"));
    if (json_is_object(best) && whole(best, "update") != whole(last, "update"))
        printf("; the best was %.4g, after update %" PRId64, real(best, "score"), whole(best, "update"));
    putchar('\n');
}

/* What it began with is told in a line: scores and verdict of that policy are none of this one. */
static void print_origin(const json_t *learn, const json_t *train)
{
    const json_t *teacher = json_object_get(learn, "teacher");
    if (json_object_get(learn, "start")) {
        fputs("began with the weights ", stdout);
        put_text(learn, "start");
        putchar('\n');
    }
    print_who("began as a policy that imitates ", train);
    if (json_is_object(teacher)) {
        fputs("stayed near a teacher, the weights ", stdout);
        put_text(teacher, "weights");
        printf(": %g of the divergence from it counts as loss\n", real(teacher, "weight"));
    }
}

static void print_learn(const json_t *learn, const json_t *train)
{
    print_played(learn);
    print_return(learn);
    print_origin(learn, train);
    print_given(json_object_get(learn, "options"));
    fputs("; exphil ", stdout);
    put_text(learn, "version");
    putchar('\n');
}

void notes_print(const json_t *notes)
{
    const json_t *train = notes_train(notes), *learn = notes_learn(notes);
    if (!notes) return;
    if (learn) {
        print_learn(learn, train);
        return;
    }
    if (!train) {
        printf("notes: ");
        if (json_is_string(notes))
            put(json_string_value(notes));
        else
            printf("an object without train and learn; --json shows it");
        putchar('\n');
        return;
    }
    print_who("imitates ", train);
    print_data(train);
    print_options(train);
    print_scores(train);
    print_verdict(train);
}
