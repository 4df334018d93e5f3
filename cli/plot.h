/* Curves from training logs, and their pictures. */
#ifndef EXPHIL_CLI_PLOT_H
#define EXPHIL_CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct point {
    double x, y;
} point;

typedef struct curve {
    char label[112];
    point *at;
    size_t count, capacity;
    bool dots;
} curve;

/* Of each log: what training said, the scores on the held-out part, and those on the training data. */
enum { PLOT_TRAIN, PLOT_HELD, PLOT_SCORED, PLOT_KINDS, LOGS_MOST = 8, CURVES_MOST = LOGS_MOST * PLOT_KINDS };

typedef struct picture {
    const char *field;
    curve curves[CURVES_MOST];
    size_t count;
    size_t too_large, too_small; /* points that are left out: beyond PLOT_MOST, below a logarithmic axis */
    double x0, x1, y0, y1;
    bool logarithmic, smoothed;
} picture;

/* Sums, differences and ratios of what is drawn stay numbers. */
#define PLOT_MOST  1e150
#define PLOT_LEAST 1e-150

/* Adds the curves of one log; says why not and returns false. */
bool plot_read(picture *p, const char *path);
/* What this log has to draw, on stderr. */
void plot_list_fields(const char *path);
/* Smooths what training said over 2 * half + 1 updates; -1: a hundredth of the run. */
void plot_smooth(picture *p, long half);
/* Fits the axes and counts what is too small for them; false: there is nothing to draw. */
bool plot_fit(picture *p);
bool plot_drawn(const picture *p, double y);
double plot_height(const picture *p, double y); /* 0 at the foot of the axis, 1 at its top */
/* Digits that tell this axis' labels apart. */
int plot_digits(const picture *p);
bool plot_svg(const picture *p, const char *path);
/* The first log's curves in letters, on stdout. */
void plot_text(const picture *p);
void plot_free(picture *p);

#endif
