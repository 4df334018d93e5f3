/* Reads comma-separated values. */
#include "csv.h"
#include "commands.h"
#include "files.h"
#include "system.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool csv_open(csv *from, const char *option, const char *path)
{
    *from = (csv){.option = option, .path = path, .file = file_open_text(path)};
    return from->file != NULL;
}

void csv_close(csv *from)
{
    if (from->file) fclose(from->file);
    free(from->text);
    *from = (csv){.file = NULL};
}

bool csv_wrong(const csv *from, int64_t column, const char *name, const char *what)
{
    fprintf(stderr, "exphil: --%s: %s:%" PRId64 ": ", from->option, from->path, from->line);
    if (name) fprintf(stderr, "column %" PRId64 " (%s): ", column, name);
    fprintf(stderr, "%s\n", what);
    return false;
}

/* A field in quotes, in its place: doubled quotes are one. NULL: it has no end. Else what is behind it. */
static char *unquote(char *at)
{
    char *to = at;
    for (char *next = at + 1; *next; next++) {
        if (*next == '"' && next[1] != '"') {
            *to = 0;
            return next + 1;
        }
        next += *next == '"';
        *to++ = *next;
    }
    return NULL;
}

static bool cut(csv *from, char *at)
{
    for (from->fields = 0;; at++) {
        if (from->fields == CSV_FIELDS) return csv_wrong(from, 0, NULL, "there are more than 16 columns");
        char *end = *at == '"' ? unquote(at) : at + strcspn(at, ",");
        if (!end) return csv_wrong(from, 0, NULL, "a quote is not closed");
        if (*end && *end != ',') return csv_wrong(from, 0, NULL, "behind a quote there must be a comma");
        from->field[from->fields++] = at;
        bool more = *end == ',';
        *end = 0;
        if (!more) return true;
        at = end;
    }
}

int csv_next(csv *from)
{
    for (;;) {
        ptrdiff_t length = system_line(&from->text, &from->room, from->file);
        if (length < 0 && ferror(from->file)) complain_of_file(from->path);
        if (length < 0) return ferror(from->file) ? -1 : 0;
        from->line++;
        if (strlen(from->text) != (size_t)length) {
            csv_wrong(from, 0, NULL, "it holds a zero byte");
            return -1;
        }
        from->text[strcspn(from->text, "\r\n")] = 0;
        if (from->text[0]) return cut(from, from->text) ? 1 : -1;
    }
}
