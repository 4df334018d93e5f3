/* `exphil plot`: training logs to one SVG picture, or with --text to a picture in letters. */
#include "commands.h"
#include "files.h"
#include "options.h"
#include "plot.h"

#include <stdio.h>
#include <string.h>

typedef struct plot_options {
    const char *out, *field, *tensorboard;
    int64_t smooth;
    bool text, linear, json, force;
} plot_options;

/* A picture is replaced as its log grows; any other file only with --force. */
bool plot_may_write(const char *option, const char *path, bool force)
{
    char begin[4] = {0};
    if (file_kind_of(path) != FILE_OTHER) return output_free(option, path, OUTPUT_IN_PLACE, force);
    FILE *file = file_open(path);
    bool drawing =
        file && fread(begin, 1, sizeof begin, file) == sizeof begin && memcmp(begin, "<svg", 4) == 0;
    if (file) fclose(file);
    return output_free(option, path, OUTPUT_IN_PLACE, force || drawing);
}

static bool draw(picture *p, const plot_options *o, int count, char **paths)
{
    char name[4096];
    plot_begin(p, o->field, o->linear);
    for (int i = 0; i < count; i++)
        if (!plot_read(p, paths[i])) return false;
    plot_smooth(p, (long)o->smooth);
    bool any = plot_fit(p);
    if (!any && p->logarithmic) { /* nothing above 0 */
        p->logarithmic = false;
        any = plot_fit(p);
    }
    if (p->too_large)
        fprintf(stderr, "exphil: left out: %zu point%s with numbers beyond %g\n", p->too_large,
                plural((int64_t)p->too_large), PLOT_MOST);
    if (p->too_small)
        fprintf(stderr, "exphil: left out: %zu point%s below %g: the height is logarithmic; see --linear\n",
                p->too_small, plural((int64_t)p->too_small), PLOT_LEAST);
    if (!any) {
        fprintf(stderr, "exphil: no %s in these logs\n", o->field);
        plot_list_fields(paths[0]);
        return false;
    }
    if (o->text) {
        plot_text(p);
        return true;
    }
    (void)snprintf(name, sizeof name, "%s.svg", paths[0]);
    const char *out = o->out ? o->out : name;
    for (int i = 0; i < count; i++)
        if (!output_spares("out", out, paths[i])) return false;
    if (!plot_may_write("out", out, o->force) || !plot_svg(p, out)) return false;
    if (o->json) return print_json(json_pack("{s:o}", "svg", path_json(out))) == 0;
    printf("%s\n", out);
    return true;
}

/* Each of these is all that is made. */
static bool check_together(const plot_options *o)
{
    if (o->text && (o->json || o->out))
        fprintf(
            stderr,
            "exphil: --text and --%s: the picture in letters is all that is printed, no file is written\n",
            o->json ? "json" : "out");
    else if (o->tensorboard && (o->text || o->json || o->out))
        fprintf(stderr, "exphil: --tensorboard and --%s: give one of them\n",
                o->text   ? "text"
                : o->json ? "json"
                          : "out");
    else
        return true;
    return false;
}

int plot_command(int argc, char **argv)
{
    plot_options o = {.field = "loss", .smooth = -1};
    const option_entry entries[] = {
        {"out", OPTION_TEXT, &o.out, "FILE", "the SVG to write (default: the first log's name + .svg)"},
        {"force", OPTION_FLAG, &o.force, NULL, "replace OUT if it is no picture (default: refuse)"},
        {"field", OPTION_TEXT, &o.field, "NAME",
         "what to draw: loss (default), gradient_norm, rate, frames_per_second, heads/buttons, ...; of "
         "scores "
         "also nll, exact_accuracy, heads/buttons/accuracy, ..."},
        {"smooth", OPTION_INT, &o.smooth, "N",
         "each point is the mean of 2N+1 updates; 0: as logged (default: 1/100 of the run)"},
        {"linear", OPTION_FLAG, &o.linear, NULL,
         "linear height (default: logarithmic but for accuracies and what falls below 0)"},
        {"text", OPTION_FLAG, &o.text, NULL,
         "print the first log in letters, without --out and --json (default: write an SVG)"},
        {"tensorboard", OPTION_TEXT, &o.tensorboard, "DIR",
         "write all numbers of the logs as event files of TensorBoard instead, of several in folders in DIR"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: the SVG's name)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "plot [OPTIONS] LOG...",
        .about =
            "Draws how a number of training runs goes from update to update, as one SVG "
            "picture.\n"
            "LOG: what exphil train --log wrote; each run gets a colour of its own. A "
            "thin line is the number as it\n"
            "was in training; dots are scores, of held-out data (train --held-out, "
            "--eval-every), rings those of the\n"
            "training data at the end. Beside scores stand those of no skill, as dashes: always the "
            "commonest action\n"
            "(majority), always the last one again (copy). With --text o are scores of held-out data, and * "
            "all else.\n"
            "What the fields of a log mean: doc/file-format.md, \"Training logs\".",
        .entry = entries};
    static picture p;
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0 || count > LOGS_MOST) {
        fprintf(stderr, "exphil: plot wants 1 to %d logs; see exphil plot --help\n", LOGS_MOST);
        return 2;
    }
    if (!check_together(&o)) return 2;
    if (o.tensorboard) return plot_events(o.tensorboard, o.force, count, argv + 1) ? 0 : 1;
    status = draw(&p, &o, count, argv + 1) ? 0 : 1;
    plot_free(&p);
    return status;
}
