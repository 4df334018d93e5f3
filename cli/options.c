/* Reading of command lines by table: --name value, --name=value, --flag, --help, -- ends options. */
#include "options.h"

#include "commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_help(const option_command *command)
{
    printf("usage: exphil %s\n\n%s\n", command->usage, command->about);
    if (command->entry[0].name) printf("\n");
    for (const option_entry *e = command->entry; e->help; e++) {
        char left[64];
        if (!e->name) {
            printf("\n%s\n", e->help);
            continue;
        }
        snprintf(left, sizeof left, "--%s%s%s", e->name, e->argument ? " " : "",
                 e->argument ? e->argument : "");
        printf("  %-26s %s\n", left, e->help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static const option_entry *find(const option_command *command, const char *name, size_t length)
{
    for (const option_entry *e = command->entry; e->help; e++)
        if (e->name && strlen(e->name) == length && strncmp(e->name, name, length) == 0) return e;
    return NULL;
}

/* What numbers may be: an option means the same in every command. Limits are the library's where it has one, else what
 * nobody needs more of. Whole numbers that are not here go into 32 bits. */
typedef struct number_range {
    const char *name;
    double least, most;
    bool below; /* most itself is too much */
} number_range;

#define COUNT_MOST 1e9
static const number_range ranges[] = {
    {"mistakes", 0, 10000, false},
    {"port", 1, 4, false},
    {"opponent", 1, 4, false},
    {"least-frames", 0, COUNT_MOST, false},
    {"most-frames", 1, COUNT_MOST, false},
    {"players", 1, 4, false},
    {"least-damage", 0, COUNT_MOST, false},
    {"least-stocks", 0, COUNT_MOST, false},
    {"self-destructs-below", 1, COUNT_MOST, false},
    {"least-input", 0, 1, false},
    {"held-out", 0, 1, true},
    {"mirror", 0, 1, false},
    {"balance-character", 0, 1, false},
    {"balance-action", 0, 1, false},
    {"balance-change", 0, 1, false},
    {"hidden", 1, 8192, false},
    {"head-width", 1, 8192, false},
    {"head-layers", 1, 4, false},
    {"head-units", 1, 8192, false},
    {"input-width", 1, 8192, false},
    {"norm-epsilon", 1e-12, 0.1, false},
    {"attention-window", 1, 4096, false},
    {"delay", 0, 64, false},
    {"lag", 0, 64, false},
    {"window", 1, 4096, false},
    {"epochs", 1, COUNT_MOST, false},
    {"updates", 1, COUNT_MOST, false},
    {"most-updates", 1, COUNT_MOST, false},
    {"batch", 1, 4096, false},
    {"time", 1, 65536, false},
    {"segment", 0, COUNT_MOST, false},
    {"stride", 1, COUNT_MOST, false},
    {"shuffle-frames", 1024, UINT32_MAX, false},
    {"drop-past", 0, 1, false},
    {"own-past", 0, 1, false},
    {"own-past-ramp", 0, COUNT_MOST, false},
    {"alone", 0, COUNT_MOST, false},
    {"score-frames", 0, 1e15, false},
    {"large-frames", 1, 1e12, false},
    {"accumulate", 1, 1000000, false},
    {"shards", 1, 1024, false},
    {"checkpoint-blocks", 0, 1000, false},
    {"rate", 1e-12, 1000000, true},
    {"warmup", 0, COUNT_MOST, false},
    {"restart", 1, COUNT_MOST, false},
    {"low-ratio", 0, 1, false},
    {"decay", 0, 1000000, true},
    {"clip", -COUNT_MOST, COUNT_MOST, false},
    {"ema", 0, 1, true},
    {"smoothing", 0, 1, true},
    {"focal", 0, 100, false},
    {"condition-mask", 0, 1, false},
    {"button-weight", 1e-6, 1000000, false},
    {"log-every", 0, COUNT_MOST, false},
    {"eval-every", 0, COUNT_MOST, false},
    {"save-every", 0, COUNT_MOST, false},
    {"save-minutes", 0, 1000000, false},
    {"keep", 0, 1000, false},
    {"patience", 0, COUNT_MOST, false},
    {"least-gain", 0, 1, true},
    {"ranks-timeout", 1, 1000000, false},
    {"threads", 0, 1024, false},
    {"workers", 1, 64, false},
    {"least", 0, 1, false},
    {"frames", 1, 1e12, false},
    {"lanes", 1, 4096, false},
    {"batches", 1, 4096, false},
    {"half-life", 0, 1e6, false},
    {"reward-stock", 0, 1e6, false},
    {"reward-damage", 0, 1e6, false},
    {"reward-ledge", 0, 1e6, false},
    {"reward-stalling", 0, 1e6, false},
    {"reward-approach", 0, 1e6, false},
    {"value-weight", 1e-6, 1e6, false},
    {"value-warmup", 0, COUNT_MOST, false},
    {"outcome-beta", 0, 1e9, false},
    {"outcome-cap", 1e-6, 1e9, false},
    {"swings", 0, 1000, false},
    {"ratio-clip", 0, 10, false},
    {"entropy", 0, 1e6, false},
    {"reward-scale", 0, 1e9, false},
    {"to-teacher", 0, 1e6, false},
    {"most-kl", 0, 1e6, false},
    {"game", 0, COUNT_MOST, false},
    {"repeat", 1, 60, false},
    {"scores", 0, 10000, false},
    {"value-only", 0, COUNT_MOST, false},
    {"games", 2, 1000000, false},
    {"points", -1, COUNT_MOST, false},
    {"level", 1, 19, false},
    {"show", 0, COUNT_MOST, false},
    {"smooth", 0, 1000000, false},
    {"ranks", 1, 256, false},
    {"max-restarts", 0, 1000, false},
    {"grace", 0, 86400, false},
    {"seed", -0x1p63, 0x1p63, false},
};

/* A number that is none (NaN) is not in any. */
static bool within(const number_range *range, double value)
{
    return value >= range->least && (range->below ? value < range->most : value <= range->most);
}

static number_range range_of(const option_entry *entry)
{
    number_range whole = {entry->name, INT32_MIN, INT32_MAX, false},
                 any = {entry->name, -1e300, 1e300, false};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strcmp(ranges[i].name, entry->name) == 0) return ranges[i];
    return entry->kind == OPTION_INT || entry->kind == OPTION_AUTO ? whole : any;
}

bool options_allows(const option_entry *entry, double value)
{
    number_range range = range_of(entry);
    return within(&range, value);
}

/* Says on stderr what is allowed. */
static bool in_range(const option_entry *entry, double value, const char *text, const char *where)
{
    number_range range = range_of(entry);
    if (within(&range, value)) return true;
    fprintf(stderr, "exphil: %s wants %.10g %s %.10g, not %s\n", where, range.least,
            range.below ? "or more, below" : "to", range.most, text);
    return false;
}

/* Why this is no number of bytes; NULL: it is one. */
static const char *read_bytes(const char *text, uint64_t *bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    static const char too_much[] = "that is more than 63 bits hold";
    char *unit;
    if (text[0] == '-') return "it cannot be negative";
    if (text[0] < '0' || text[0] > '9') return "it begins with a digit";
    errno = 0;
    unsigned long long number = strtoull(text, &unit, 10);
    if (unit[0] == '.') return "it must be whole; take the next smaller unit";
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i]) != 0) continue;
        if (number == 0) return "nothing can be done in it; without a limit, leave the option out";
        *bytes = (uint64_t)number << 10 * i;
        return errno || number > (uint64_t)INT64_MAX >> 10 * i || *bytes > SIZE_MAX ? too_much : NULL;
    }
    return "units are KiB, MiB, GiB and TiB";
}

/* A whole number of more than 64 bits is infinite to its range. */
static bool store_number(const option_entry *entry, const char *text, double *value)
{
    char *end;
    errno = 0;
    if (entry->kind == OPTION_INT || entry->kind == OPTION_AUTO) {
        int64_t whole = strtoll(text, &end, 10);
        *value = errno ? HUGE_VAL : (double)whole;
        *(int64_t *)entry->value = whole;
    } else {
        *value = strtod(text, &end);
        *(double *)entry->value = *value;
    }
    return text[0] && !*end;
}

const char *options_wanted(const option_entry *entry)
{
    switch (entry->kind) {
    case OPTION_BYTES:
        return "a number of bytes, as 2000000000, 512MiB or 8GiB";
    case OPTION_INT:
        return "a whole number";
    case OPTION_AUTO:
        return "a whole number or auto";
    case OPTION_NUMBER:
        return "a number";
    default:
        return entry->argument;
    }
}

static bool append(const option_entry *entry, const char *text, const char *where)
{
    text_list *list = entry->value;
    if (list->count < TEXTS_MOST) {
        list->text[list->count++] = text;
        return true;
    }
    fprintf(stderr, "exphil: %s may be given %d times\n", where, TEXTS_MOST);
    return false;
}

bool options_store(const option_entry *entry, const char *text, const char *where)
{
    const char *why = NULL;
    char shown[256];
    double value;
    if (entry->kind == OPTION_TEXT) {
        *(const char **)entry->value = text;
        return true;
    }
    if (entry->kind == OPTION_TEXTS) return append(entry, text, where);
    if (entry->kind == OPTION_AUTO && strcmp(text, "auto") == 0) {
        *(int64_t *)entry->value = -1;
        return true;
    }
    if (entry->kind == OPTION_BYTES) {
        why = read_bytes(text, entry->value);
        if (!why) return true;
    } else if (store_number(entry, text, &value)) {
        return in_range(entry, value, text, where);
    }
    foreign_text(text, shown, sizeof shown);
    fprintf(stderr, "exphil: %s wants %s, not %s%s%s\n", where, options_wanted(entry), shown, why ? ": " : "",
            why ? why : "");
    return false;
}

/* Reads the option at argv[*i]; moves *i over its value. */
static bool read_one(const option_command *command, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '='), *text = equals ? equals + 1 : NULL;
    const option_entry *entry = find(command, name, equals ? (size_t)(equals - name) : strlen(name));
    char where[64];
    if (!entry) {
        fprintf(stderr, "exphil: unknown option %s; see exphil %.*s --help\n", argv[*i],
                (int)strcspn(command->usage, " "), command->usage);
        return false;
    }
    if (command->given) command->given[entry - command->entry] = true;
    if (entry->kind == OPTION_FLAG) {
        if (text)
            fprintf(stderr, "exphil: --%s takes no value\n", entry->name);
        else
            *(bool *)entry->value = true;
        return !text;
    }
    if (!text && *i + 1 < argc) text = argv[++*i];
    (void)snprintf(where, sizeof where, "--%s", entry->name);
    if (text) return options_store(entry, text, where);
    fprintf(stderr, "exphil: %s wants %s\n", where, options_wanted(entry));
    return false;
}

bool options_read(const option_command *command, int argc, char **argv, int *count, int *status)
{
    int kept = 0;
    bool plain = false;
    *status = 2;
    for (int i = 1; i < argc; i++) {
        if (!plain && strcmp(argv[i], "--") == 0)
            plain = true;
        else if (!plain && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            options_help(command);
            *status = 0;
            return false;
        } else if (!plain && strncmp(argv[i], "--", 2) == 0) {
            if (!read_one(command, argc, argv, &i)) return false;
        } else if (!plain && argv[i][0] == '-' && argv[i][1]) {
            fprintf(stderr,
                    "exphil: unknown option %s: options begin with two dashes; a file of that name is ./%s\n",
                    argv[i], argv[i]);
            return false;
        } else
            argv[++kept] = argv[i];
    }
    *count = kept;
    return true;
}

const option_entry *options_find(const option_command *command, const char *name)
{
    return find(command, name, strlen(name));
}

bool options_given(const option_command *command, const char *name)
{
    const option_entry *entry = options_find(command, name);
    return entry && command->given && command->given[entry - command->entry];
}

/* Of these one is meant. */
static const char *const either[][2] = {{"epochs", "updates"},
                                        {"most-updates", "updates"},
                                        {"no-previous-action", "drop-past"},
                                        {"no-previous-action", "own-past"}};

bool options_outdone(const option_command *command, const bool *asked, const char *name)
{
    if (asked[options_find(command, name) - command->entry]) return true;
    for (size_t i = 0; i < sizeof either / sizeof either[0]; i++)
        for (int k = 0; k < 2; k++) {
            const option_entry *other =
                strcmp(either[i][k], name) == 0 ? options_find(command, either[i][1 - k]) : NULL;
            if (other && asked[other - command->entry]) return true;
        }
    return false;
}
