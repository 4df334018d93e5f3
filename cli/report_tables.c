/* JSON as text and tables of HTML. */
#include "report.h"

#include "plot.h"

#include <math.h>
#include <string.h>

/* Numbers between 0 and 1 of these names are shares. */
static bool is_share(const char *name, double number)
{
    static const char *const words[] = {"accuracy", "exact",  "share",   "rate",       "top3",
                                        "majority", "copy",   "press",   "confidence", "above",
                                        "recorded", "policy", "expected"};
    if (number < 0.0 || number > 1.0 || strcmp(name, "rate") == 0) return false; /* of learning */
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

/* Spaces for what joins words in names. */
static void write_name(FILE *f, const char *name)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%s", name);
    for (char *at = text; *at; at++)
        if (*at == '_') *at = ' ';
    write_escaped(f, text);
}

static void write_number(FILE *f, const char *name, json_t *value)
{
    char text[32];
    double number = json_number_value(value);
    if (json_is_integer(value) && fabs(number) < 1e15)
        (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (is_share(name, number))
        (void)snprintf(text, sizeof text, "%.1f %%", 100.0 * number);
    else
        (void)snprintf(text, sizeof text, "%.4g", number);
    fputs(text, f);
}

static void write_members(FILE *f, json_t *value)
{
    const char *name, *comma = "";
    json_t *member;
    size_t i;
    json_object_foreach(value, name, member)
    {
        if (json_is_null(member) || json_is_false(member)) continue;
        fputs(comma, f);
        write_name(f, name);
        if (!json_is_true(member)) fputc(' ', f);
        if (!json_is_true(member)) report_value(f, name, member);
        comma = ", ";
    }
    json_array_foreach(value, i, member)
    {
        fputs(comma, f);
        report_value(f, "", member);
        comma = ", ";
    }
}

void report_value(FILE *f, const char *name, json_t *value)
{
    if (json_is_string(value))
        write_escaped(f, json_string_value(value));
    else if (json_is_number(value))
        write_number(f, name, value);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", f);
    else if (json_is_object(value) || json_is_array(value))
        write_members(f, value);
    else
        fputs("-", f);
}

void report_facts(FILE *f, json_t *object)
{
    const char *name;
    json_t *value;
    fprintf(f, "<dl>\n");
    json_object_foreach(object, name, value)
    {
        if (json_is_object(value) || (json_is_array(value) && report_are_rows(value))) continue;
        if (json_is_null(value)) continue;
        fprintf(f, "<div><dt>");
        write_name(f, name);
        fprintf(f, "</dt><dd>");
        report_value(f, name, value);
        fprintf(f, "</dd></div>\n");
    }
    fprintf(f, "</dl>\n");
}

bool report_are_rows(json_t *value)
{
    const char *name;
    json_t *member;
    size_t i, objects = 0, others = 0;
    json_array_foreach(value, i, member) json_is_object(member) ? objects++ : others++;
    json_object_foreach(value, name, member) json_is_object(member) ? objects++ : others++;
    return objects > 0 && others == 0;
}

/* ---- tables -------------------------------------------------------------------------------------------- */

/* All names of the rows, in the order in which they come first; true: numbers. */
static void note_columns(json_t *columns, json_t *row)
{
    const char *name;
    json_t *value;
    json_object_foreach(row, name, value) if (!json_object_get(columns, name))
        json_object_set_new(columns, name, json_boolean(json_is_number(value)));
}

/* A share has a bar of its length below it. */
static void write_cell(FILE *f, const char *name, json_t *value)
{
    bool number = json_is_number(value) || !value || json_is_null(value),
         share = json_is_real(value) && is_share(name, json_number_value(value));
    if (share)
        fprintf(f, "<td class=\"n s\" style=\"--s:%.1f%%\">", 100.0 * json_number_value(value));
    else
        fprintf(f, "<td%s>", number ? " class=\"n\"" : "");
    report_value(f, name, value);
    fprintf(f, "</td>");
}

/* A part that never changes has no accuracy on changes. */
static json_t *shown(json_t *row, const char *name)
{
    double copy = json_number_value(json_object_get(row, "copy_accuracy"));
    return strcmp(name, "change_accuracy") == 0 && copy >= 1.0 ? NULL : json_object_get(row, name);
}

static void write_row(FILE *f, json_t *columns, const char *head, json_t *row)
{
    const char *name;
    json_t *ignored;
    fprintf(f, "<tr>");
    if (head) {
        fprintf(f, "<th>");
        write_name(f, head);
        fprintf(f, "</th>");
    }
    json_object_foreach(columns, name, ignored) write_cell(f, name, shown(row, name));
    fprintf(f, "</tr>\n");
}

void report_rows(FILE *f, json_t *rows)
{
    json_t *columns = json_object(), *all = rows, *row;
    const char *name;
    size_t i;
    json_array_foreach(all, i, row) note_columns(columns, row);
    json_object_foreach(all, name, row) note_columns(columns, row);
    fprintf(f, "<div class=\"wide\"><table>\n<tr>%s", json_is_object(rows) ? "<th></th>" : "");
    json_object_foreach(columns, name, row)
    {
        fprintf(f, "<th%s>", json_is_true(row) ? " class=\"n\"" : "");
        write_name(f, name);
        fprintf(f, "</th>");
    }
    fprintf(f, "</tr>\n");
    json_array_foreach(all, i, row) write_row(f, columns, NULL, row);
    json_object_foreach(all, name, row) write_row(f, columns, name, row);
    fprintf(f, "</table></div>\n");
    json_decref(columns);
}
