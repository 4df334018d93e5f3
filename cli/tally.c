/* Counting words: what many files have in common, and why some were refused. */
#include "tally.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool tally_word(tally *t, const char *word)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->of[i].word, word) != 0) continue;
        t->of[i].count++;
        return true;
    }
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct counted *wider = realloc(t->of, capacity * sizeof *wider);
        if (!wider) return false;
        t->of = wider;
        t->capacity = capacity;
    }
    t->of[t->count] = (struct counted){strdup(word), 1};
    return t->of[t->count].word && ++t->count;
}

bool tally_reason(tally *t, const char *reason)
{
    char text[256];
    size_t at = 0;
    bool quoted = false;
    const char *stop = strstr(reason, ": byte ");
    if (!stop) stop = strstr(reason, " at offset ");
    if (!stop) stop = reason + strlen(reason);
    for (const char *from = reason; from < stop && at + 2 < sizeof text; from++) {
        bool digit = isdigit((unsigned char)*from) != 0, quote = *from == '"';
        if (quote && !quoted && at && text[at - 1] == ' ') at--;
        quoted = quoted != quote;
        if (quoted || quote) continue;
        if (!digit)
            text[at++] = *from;
        else if (at == 0 || text[at - 1] != 'N')
            text[at++] = 'N';
    }
    text[at] = 0;
    return tally_word(t, text);
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
    for (size_t i = 0; i < t->count; i++) free(t->of[i].word);
    free(t->of);
    *t = (tally){.of = NULL};
}
