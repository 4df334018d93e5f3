/* Curves from training logs, and their pictures. */
#ifndef EXPHIL_CLI_PLOT_H
#define EXPHIL_CLI_PLOT_H

#include "run_log.h"

#include <stdio.h>

enum { LOGS_MOST = 8, CURVES_MOST = LOGS_MOST * LOG_KINDS, BASELINES = 2, FIELD_MOST = 128 };

/* What a policy of no skill has: always the commonest action, or always the last one again. */
typedef struct baseline {
    const char *word; /* NULL: the log has none */
    double value;
} baseline;

typedef struct picture {
    const char *field, *title; /* title: NULL: the field's name */
    bool logarithmic;
    const char *names[LOGS_MOST];   /* of the logs */
    log_series curves[CURVES_MOST]; /* of log i, what training said and the scores: i * LOG_KINDS + LOG_... */
    baseline baselines[LOGS_MOST][BASELINES];
    size_t count;                /* of curves */
    size_t too_large, too_small; /* points that are left out: beyond PLOT_MOST, below a logarithmic axis */
    double x0, x1, y0, y1;
    bool smoothed;
    char fields[2 + BASELINES][FIELD_MOST]; /* of training, of scores, of the baselines */
} picture;

/* Sums, differences and ratios of what is drawn stay numbers. */
#define PLOT_MOST  1e150
#define PLOT_LEAST 1e-150

/* Losses and rates spread over powers of ten, shares do not. */
void plot_begin(picture *p, const char *field, bool linear);
/* Adds the curves of one log; says why not and returns false. The path must outlive the picture. */
bool plot_read(picture *p, const char *path);
/* What this log has to draw, on stderr. */
void plot_list_fields(const char *path);
/* Smooths what training said over 2 * half + 1 updates; -1: a hundredth of the run. */
void plot_smooth(picture *p, long half);
/* Fits the axes and counts what is too small for them; false: there is nothing to draw. */
bool plot_fit(picture *p);
bool plot_drawn(const picture *p, double y);
double plot_height(const picture *p, double y); /* 0 at the foot of the axis, 1 at its top */
/* " (logarithmic, smoothed)", or less. */
const char *plot_manner(const picture *p);
/* Digits that tell this axis' labels apart. */
int plot_digits(const picture *p);
/* A file of its own, or a part of a page that has the colours: there a smaller one without the names of the logs. Several logs
 * have a line each with their ink, one stands behind the title. */
void plot_draw(const picture *p, FILE *file, bool in_page);
bool plot_svg(const picture *p, const char *path);
/* The first log's curves in letters, on stdout. */
void plot_text(const picture *p);
void plot_free(picture *p);
/* May a picture be written there? Not over another file without force; said. */
bool plot_may_write(const char *option, const char *path, bool force);
/* Writes the logs as event files of TensorBoard instead, into the folder, or of several into folders in it; says where. */
bool plot_events(const char *folder, bool force, int count, char **paths);

/* ---- labels of axes (plot_ticks.c) --------------------------------------------------------------------- */

enum { TICKS_MOST = 12, HEIGHTS = 6, POWERS = 7 };
typedef struct ticks {
    int count;
    double at[TICKS_MOST];
    char text[TICKS_MOST][24];
} ticks;

/* Round numbers from low to high, at most this many and no nearer to each other than least; shares are told in percent. */
void ticks_linear(ticks *t, double low, double high, double least, int most, bool shares);
/* Widens a range to round numbers of ticks_linear, as labels at both ends. */
void ticks_enclose(double *low, double *high, int most);
/* Lowers a logarithmic axis to a label of ticks_logarithmic, so that no point lies below the lowest. */
void ticks_reach(double *low, double high, int most);
/* For a logarithmic axis. */
void ticks_logarithmic(ticks *t, double low, double high, int most);
/* A number as a label has it. */
void number_text(double number, bool share, char text[24]);

/* Text in XML: what is no UTF-8 becomes question marks. */
void write_escaped(FILE *file, const char *text);

#endif
