/* The headers of a corpus are read through a window, so that small records do not cost a call each. */
#include "data/corpus.h"

enum { LEAST = 4096 }; /* that is read at once */

exphil_status xph_window_make(xph_window *window, const xph_shared_file *corpus, exphil_error *error)
{
    *window = (xph_window){.corpus = corpus, .memory = xph_alloc(corpus->context, XPH_WINDOW)};
    return window->memory ? EXPHIL_OK : xph_no_memory(XPH_WINDOW, error);
}

void xph_window_free(xph_window *window)
{
    xph_free(window->corpus->context, window->memory, XPH_WINDOW);
}

exphil_status xph_window_look(xph_window *window, uint64_t at, size_t bytes, const uint8_t **data,
                              exphil_error *error)
{
    uint64_t skip = at - window->at, left = window->corpus->file.bytes - at;
    if (skip > window->bytes ||
        bytes > window->bytes - skip) { /* skip is huge when at is before the window */
        size_t more = bytes < LEAST ? LEAST : bytes;
        if (more > left) more = (size_t)left;
        window->bytes = 0;
        XPH_TRY(xph_shared_read(window->corpus, at, window->memory, more, error));
        window->at = at;
        window->bytes = more;
        skip = 0;
    }
    *data = window->memory + skip;
    return EXPHIL_OK;
}

exphil_status xph_window_copy(xph_window *window, uint64_t at, void *to, size_t bytes, exphil_error *error)
{
    const uint8_t *data;
    if (bytes > XPH_WINDOW) return xph_shared_read(window->corpus, at, to, bytes, error);
    XPH_TRY(xph_window_look(window, at, bytes, &data, error));
    if (bytes) memcpy(to, data, bytes);
    return EXPHIL_OK;
}

bool xph_all_zero(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    return !bytes || (!at[0] && memcmp(at, at + 1, bytes - 1) == 0);
}

exphil_status xph_window_zero(xph_window *window, uint64_t at, bool *zero, exphil_error *error)
{
    const xph_shared_file *corpus = window->corpus;
    bool still = true;
    for (; still && at < corpus->file.bytes; at += XPH_WINDOW) {
        uint64_t left = corpus->file.bytes - at;
        size_t bytes = left < XPH_WINDOW ? (size_t)left : XPH_WINDOW;
        const uint8_t *data;
        if (xph_cancelled(corpus->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(xph_window_look(window, at, bytes, &data, error));
        still = xph_all_zero(data, bytes);
    }
    *zero = still;
    return EXPHIL_OK;
}
