/* Counts that exphil_dataset_add_games reports, for tests of what the program prints of them.
 *   select_count CORPUS [FIELD=VALUE]...     fields of exphil_selection; lines "count, players, result, reason" */
#include <exphil/games.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_field(exphil_selection *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        int32_t *number;
    } fields[] = {{"stages", &s->stages, NULL},
                  {"characters", &s->characters, NULL},
                  {"opponents", &s->opponents, NULL},
                  {"first_day", NULL, &s->first_day},
                  {"last_day", NULL, &s->last_day},
                  {"least_version", NULL, &s->least_version},
                  {"teams", NULL, &s->teams},
                  {"items", NULL, &s->items},
                  {"players", NULL, &s->players},
                  {"complete", NULL, &s->complete},
                  {"humans", NULL, &s->humans},
                  {"port", NULL, &s->port},
                  {"result", NULL, &s->result},
                  {"least_damage", NULL, &s->least_damage},
                  {"least_stocks", NULL, &s->least_stocks},
                  {"self_destructs_below", NULL, &s->self_destructs_below},
                  {"opponent_port", NULL, &s->opponent_port},
                  {"first_frame", NULL, &s->first_frame},
                  {"duplicates", NULL, &s->duplicates}};
    if (strcmp(name, "least_frames") == 0) return s->least_frames = strtoll(value, NULL, 0), 1;
    if (strcmp(name, "most_frames") == 0) return s->most_frames = strtoll(value, NULL, 0), 1;
    if (strcmp(name, "least_input") == 0) return s->least_input = strtod(value, NULL), 1;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        if (fields[i].text) *fields[i].text = value;
        if (fields[i].number) *fields[i].number = (int32_t)strtol(value, NULL, 0);
        return 1;
    }
    return 0;
}

static int count(const char *path, const exphil_selection *selection)
{
    exphil_context *context = NULL;
    exphil_games *games = NULL;
    exphil_dataset *dataset = NULL;
    exphil_selection_report report = EXPHIL_SELECTION_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int fine = exphil_context_create(NULL, &context, &error) >= 0 &&
               exphil_games_open(context, path, &games, &error) >= 0 &&
               exphil_dataset_create(context, NULL, &dataset, &error) >= 0 &&
               exphil_dataset_add_games(dataset, games, selection, &report, &error) >= 0;
    if (fine) printf("%" PRId64 "\tplayers\ttaken\t\n", report.taken);
    for (int32_t i = 0; fine && i < EXPHIL_REFUSED_REASONS; i++)
        if (report.refused[i])
            printf("%" PRId64 "\tplayers\trefused\t%s\n", report.refused[i], exphil_refused_name(i));
    if (!fine) fprintf(stderr, "%s\n", error.message);
    exphil_dataset_destroy(dataset);
    exphil_games_destroy(games);
    exphil_context_destroy(context);
    return fine ? 0 : 1;
}

int main(int argc, char **argv)
{
    exphil_selection selection = EXPHIL_SELECTION_INIT;
    for (int i = 2; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals) *equals = 0;
        if (equals && set_field(&selection, argv[i], equals + 1)) continue;
        fprintf(stderr, "select_count: no field %s\n", argv[i]);
        return 2;
    }
    return argc < 2 ? 2 : count(argv[1], &selection);
}
