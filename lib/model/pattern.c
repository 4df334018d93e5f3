/* Reads the list of blocks: words separated by blanks, groups in parentheses, each with an optional "*count":
 *   sequence = item { item }      item = ( word | "(" sequence ")" ) [ "*" number ]
 * One pass with a stack of its own; nothing is ever longer than XPH_BLOCKS_MOST, whatever the text says. */
#include "model/layer.h"

#define DEPTH_MOST 16 /* parentheses inside each other */

typedef struct reader {
    const char *text;
    int64_t at; /* column - 1 */
    xph_block_kind *kinds;
    int64_t count;
    int64_t open[DEPTH_MOST];   /* blocks before each open parenthesis ... */
    int64_t column[DEPTH_MOST]; /* ... and where it stands */
    int64_t depth;
    exphil_error *error;
} reader;

static exphil_status complain(const reader *r, int64_t at, const char *what)
{
    return xph_fail(r->error, EXPHIL_E_INVALID, "blocks, column %lld: %s", (long long)at + 1, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_blanks(reader *r)
{
    while (is_blank(r->text[r->at])) r->at++;
}

/* "*count" after what was read last, which made the blocks from `from` on. at: where that stands, for the
 * message. */
static exphil_status repeat(reader *r, int64_t from, int64_t at)
{
    int64_t times = 1, length = r->count - from;
    skip_blanks(r);
    if (r->text[r->at] == '*') {
        r->at++;
        skip_blanks(r);
        int64_t digits = r->at;
        for (times = 0; r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
            times = times > XPH_BLOCKS_MOST ? times : times * 10 + (r->text[r->at] - '0');
        if (r->at == digits) return complain(r, digits, "a number must follow \"*\"");
        if (times == 0) return complain(r, digits, "the count must be 1 or more");
    }
    if (from + length * times > XPH_BLOCKS_MOST) return complain(r, at, "this makes more than 64 blocks");
    for (int64_t i = length; i < length * times; i++) r->kinds[from + i] = r->kinds[from + i - length];
    r->count = from + length * times;
    return EXPHIL_OK;
}

#define ALSO(NAME, name) ", " #name
static const char words[] = XPH_BLOCKS(ALSO); /* behind the first comma: all there are */

static exphil_status read_word(reader *r)
{
    int64_t at = r->at;
    while (is_word(r->text[r->at])) r->at++;
    size_t length = (size_t)(r->at - at);
    if (length == 0) return complain(r, at, "expected a block, \"(\" or \")\"");
    xph_block_kind kind = 0;
    const char *word;
    while ((word = xph_block_word(kind)) != NULL) {
        if (strlen(word) == length && memcmp(word, r->text + at, length) == 0) break;
        kind++;
    }
    if (!word)
        return xph_fail(r->error, EXPHIL_E_INVALID, "blocks, column %lld: \"%.*s\" is no block (%s)",
                        (long long)at + 1, (int)(length < 40 ? length : 40), r->text + at, words + 2);
    if (r->count == XPH_BLOCKS_MOST) return complain(r, at, "this makes more than 64 blocks");
    r->kinds[r->count++] = kind;
    return repeat(r, r->count - 1, at);
}

static exphil_status open_group(reader *r)
{
    if (r->depth == DEPTH_MOST) return complain(r, r->at, "more than 16 parentheses inside each other");
    r->open[r->depth] = r->count;
    r->column[r->depth++] = r->at++;
    return EXPHIL_OK;
}

static exphil_status close_group(reader *r)
{
    if (r->depth == 0) return complain(r, r->at, "\")\" without \"(\"");
    int64_t from = r->open[--r->depth];
    if (from == r->count) return complain(r, r->at, "nothing between the parentheses");
    r->at++;
    return repeat(r, from, r->column[r->depth]);
}

exphil_status xph_pattern_read(const char *text, xph_block_kind *kinds, int64_t *count, exphil_error *error)
{
    reader r = {.text = text, .kinds = kinds, .error = error};
    if (!memchr(text, 0, XPH_BLOCKS_TEXT))
        return complain(&r, XPH_BLOCKS_TEXT - 1, "the text is longer than 255 characters");
    for (skip_blanks(&r); text[r.at]; skip_blanks(&r)) {
        if (text[r.at] == '(')
            XPH_TRY(open_group(&r));
        else if (text[r.at] == ')')
            XPH_TRY(close_group(&r));
        else
            XPH_TRY(read_word(&r));
    }
    if (r.depth) return complain(&r, r.column[r.depth - 1], "\"(\" without \")\"");
    if (r.count == 0) return complain(&r, 0, "there is no block");
    *count = r.count;
    return EXPHIL_OK;
}
