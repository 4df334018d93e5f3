/* JSON as text and tables of HTML. */
#include "report.h"

#include "plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void report_name(FILE *f, const char *name)
{
    char *text = strdup(name);
    for (char *at = text; at && *at; at++)
        if (*at == '_') *at = ' ';
    if (text) write_escaped(f, text);
    free(text);
}

/* ---- facts --------------------------------------------------------------------------------------------- */

static void write_value(FILE *f, json_t *value)
{
    size_t i;
    json_t *member;
    if (json_is_string(value))
        write_escaped(f, json_string_value(value));
    else if (json_is_integer(value))
        fprintf(f, "%lld", json_integer_value(value));
    else if (json_is_real(value))
        fprintf(f, "%.4g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", f);
    json_array_foreach(value, i, member)
    {
        if (i) fputs(", ", f);
        write_value(f, member);
    }
}

void report_facts(FILE *f, json_t *object)
{
    const char *name;
    json_t *value;
    fprintf(f, "<dl>\n");
    json_object_foreach(object, name, value)
    {
        if (json_is_object(value) || json_is_null(value)) continue;
        fprintf(f, "<div><dt>");
        report_name(f, name);
        fprintf(f, "</dt><dd>");
        write_value(f, value);
        fprintf(f, "</dd></div>\n");
    }
    fprintf(f, "</dl>\n");
}

/* ---- tables -------------------------------------------------------------------------------------------- */

typedef struct table {
    FILE *f;
    const report_column *columns;
    size_t count;
    bool *shown;
    size_t rows;
    double most; /* of all rates */
} table;

static void note_row(table *t, json_t *row)
{
    t->rows += json_is_object(row);
    for (size_t c = 0; c < t->count; c++) {
        json_t *value = json_object_get(row, t->columns[c].name);
        if (!json_is_number(value)) continue;
        t->shown[c] = true;
        if (t->columns[c].kind == REPORT_RATE) t->most = fmax(t->most, json_number_value(value));
    }
}

static void write_cell(const table *t, json_t *value, enum report_kind kind)
{
    bool rate = kind == REPORT_RATE;
    double number = json_number_value(value), full = rate && t->most > 0.0 ? t->most : 1.0;
    if (!json_is_number(value)) {
        fprintf(t->f, "<td class=\"n\">-</td>");
    } else if (kind == REPORT_NUMBER || number < 0.0 || number > 1.0) {
        fprintf(t->f, "<td class=\"n\">");
        if (json_is_real(value) && fabs(number) < 1e6)
            fprintf(t->f, "%.4f", number);
        else
            write_value(t->f, value);
        fprintf(t->f, "</td>");
    } else {
        fprintf(t->f, "<td class=\"n s\" style=\"--s:%.3f\">%.*f %%</td>",
                fmin(fmax(number / full, 0.0), 1.0), rate ? 2 : 1, 100.0 * number);
    }
}

static void write_row(const table *t, const char *name, json_t *row)
{
    if (!json_is_object(row)) return;
    fprintf(t->f, "<tr><th>");
    report_name(t->f, name);
    fprintf(t->f, "</th>");
    for (size_t c = 0; c < t->count; c++)
        if (t->shown[c]) write_cell(t, json_object_get(row, t->columns[c].name), t->columns[c].kind);
    fprintf(t->f, "</tr>\n");
}

void report_table(FILE *f, json_t *rows, const report_column *columns, size_t count)
{
    bool shown[16] = {false};
    table t = {.f = f, .columns = columns, .count = count, .shown = shown};
    const char *name;
    json_t *row;
    json_object_foreach(rows, name, row) note_row(&t, row);
    if (!t.rows) return;
    fprintf(f, "<div class=\"wide\"><table>\n<tr><th></th>");
    for (size_t c = 0; c < count; c++)
        if (shown[c]) fprintf(f, "<th class=\"n\">%s</th>", columns[c].title);
    fprintf(f, "</tr>\n");
    json_object_foreach(rows, name, row) write_row(&t, name, row);
    fprintf(f, "</table></div>\n");
}
