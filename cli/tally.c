/* Counting words: what many files have in common, and why some were refused. */
#include "tally.h"

#include "slp_words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* NULL: no memory. */
static struct counted *count_word(tally *t, const char *word)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->of[i].word, word) != 0) continue;
        t->of[i].count++;
        return &t->of[i];
    }
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct counted *wider = realloc(t->of, capacity * sizeof *wider);
        if (!wider) return NULL;
        t->of = wider;
        t->capacity = capacity;
    }
    t->of[t->count] = (struct counted){.word = strdup(word), .count = 1};
    return t->of[t->count].word ? &t->of[t->count++] : NULL;
}

bool tally_word(tally *t, const char *word)
{
    return count_word(t, word) != NULL;
}

static bool add_name(struct counted *reason, const char *name)
{
    if (!name || reason->count > TALLY_NAMES) return true;
    char **place = &reason->name[reason->count - 1];
    *place = strdup(name);
    return *place != NULL;
}

/* Does this digit belong to a name, as of libarchive.so.13 and libarchive13, and not to a number? */
static bool of_name(const char *text, const char *digit)
{
    while (digit > text && isdigit((unsigned char)digit[-1])) digit--;
    if (digit > text + 1 && digit[-1] == '.') digit--;
    return digit > text && isalpha((unsigned char)digit[-1]);
}

/* Past "word number", where that stands; else NULL. */
static const char *past_number(const char *text, const char *word)
{
    size_t length = strlen(word),
           digits = strncmp(text, word, length) == 0 ? strspn(text + length, "0123456789") : 0;
    return digits ? text + length + digits : NULL;
}

/* Past the file, the game and the byte that a reason begins with. Without a byte: the reason as it is. */
static const char *past_place(const char *reason)
{
    const char *at = reason, *name_end = *at == '"' ? strchr(at + 1, '"') : NULL, *behind;
    if (name_end) at = name_end + 1 + strspn(name_end + 1, ": ");
    behind = past_number(at, "game ");
    if (behind && strncmp(behind, ", ", 2) == 0) at = behind + 2;
    behind = past_number(at, "byte ");
    return behind && strncmp(behind, ": ", 2) == 0 ? behind + 2 : reason;
}

/* Many are no longer this one: "the head of this game" becomes "the head of a game". */
static void generalize(char *text)
{
    char *one = strstr(text, "this ");
    if (!one || (one > text && one[-1] != ' ')) return;
    one[0] = 'a';
    memmove(one + 1, one + 4, strlen(one + 4) + 1);
}

bool tally_reason(tally *t, const char *reason, const char *name)
{
    char text[256];
    size_t at = 0;
    bool quoted = false;
    const char *what = past_place(reason);
    bool placed = what != reason;
    reason = what;
    const char *stop = strstr(reason, ": byte ");
    if (!stop) stop = strstr(reason, " at offset ");
    if (!stop) stop = strstr(reason, "; P");
    if (!stop) stop = reason + strlen(reason);
    for (const char *from = reason; from < stop && at + 2 < sizeof text; from++) {
        bool digit = isdigit((unsigned char)*from) != 0, quote = *from == '"';
        if (quote && !quoted && at && text[at - 1] == ' ') at--;
        quoted = quoted != quote;
        if (quoted || quote) continue;
        if (digit && !of_name(reason, from)) {
            if (at == 0 || text[at - 1] != 'N') text[at++] = 'N';
        } else {
            text[at++] = *from;
        }
    }
    text[at] = 0;
    if (placed) generalize(text);
    struct counted *counted = count_word(t, text);
    return counted && add_name(counted, name);
}

void tally_print(FILE *out, const struct counted *reason)
{
    int64_t more = reason->count - TALLY_NAMES;
    char plain[512];
    fprintf(out, "%s", reason->word);
    for (int i = 0; i < TALLY_NAMES && reason->name[i]; i++)
        fprintf(out, "%s%s", i ? ", " : " (", words_plain(plain, sizeof plain, reason->name[i]));
    if (reason->name[0] && more > 0) fprintf(out, " and %" PRId64 " more", more);
    fprintf(out, reason->name[0] ? ")\n" : "\n");
}

static int by_count(const void *a, const void *b)
{
    const struct counted *one = a, *two = b;
    if (one->count != two->count) return one->count < two->count ? 1 : -1;
    return strcmp(one->word, two->word);
}

void tally_sort(tally *t)
{
    if (t->count) qsort(t->of, t->count, sizeof *t->of, by_count);
}

void tally_free(tally *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->of[i].word);
        for (int k = 0; k < TALLY_NAMES; k++) free(t->of[i].name[k]);
    }
    free(t->of);
    *t = (tally){.of = NULL};
}
