/* The text that a model carries with it. */
#include "model/tensor_table.h"

#include <exphil/notes.h>

/* A text is read no further than it may be long. */
static exphil_status check(const char *text, exphil_error *error)
{
    size_t at = 0;
    while (text && text[at] && at < EXPHIL_NOTES_MOST) {
        size_t left = 1;
        while (left < 4 && text[at + left]) left++;
        size_t length = xph_utf8_length(text + at, left);
        if (!length) return xph_fail(error, EXPHIL_E_INVALID, "notes: byte %zu is not UTF-8", at);
        at += length;
    }
    if (!text || (at <= EXPHIL_NOTES_MOST && !text[at])) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "notes: longer than %d bytes", EXPHIL_NOTES_MOST);
}

void xph_notes_free(exphil_context *context, xph_notes *notes)
{
    xph_free(context, notes->text, notes->bytes);
    *notes = (xph_notes){.text = NULL};
}

exphil_status xph_notes_take(exphil_context *context, const char *text, xph_notes *notes, exphil_error *error)
{
    xph_notes made = {.text = NULL};
    XPH_TRY(check(text, error));
    if (text && text[0]) {
        made.bytes = strlen(text) + 1;
        made.text = xph_alloc(context, made.bytes);
        if (!made.text) return xph_no_memory(made.bytes, error);
        memcpy(made.text, text, made.bytes);
    }
    xph_notes_free(context, notes);
    *notes = made;
    return EXPHIL_OK;
}
