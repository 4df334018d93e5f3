/* Pictures of curves in letters, for a terminal. */
#include "plot.h"

#include <string.h>

enum { COLUMNS = 72, ROWS = 10 };

static void draw_letters(const picture *p, const log_series *c, char letter, char grid[ROWS][COLUMNS + 1])
{
    for (size_t i = 0; i < c->count; i++) {
        if (!plot_drawn(p, c->at[i].y)) continue;
        int row = (int)((1.0 - plot_height(p, c->at[i].y)) * (ROWS - 1) + 0.5);
        int column = (int)((c->at[i].x - p->x0) / (p->x1 - p->x0) * (COLUMNS - 1) + 0.5);
        if (row >= 0 && row < ROWS && column >= 0 && column < COLUMNS) grid[row][column] = letter;
    }
}

void plot_text(const picture *p)
{
    char grid[ROWS][COLUMNS + 1];
    memset(grid, ' ', sizeof grid);
    for (int r = 0; r < ROWS; r++) grid[r][COLUMNS] = 0;
    printf("%s%s%s\n", p->field, plot_manner(p), p->curves[LOG_HELD].count ? "; o: held out" : "");
    draw_letters(p, &p->curves[LOG_SCORED], '*', grid);
    draw_letters(p, &p->curves[LOG_TRAIN], '*', grid);
    draw_letters(p, &p->curves[LOG_HELD], 'o', grid);
    for (int r = 0; r < ROWS; r++) {
        if (r == 0 || r == ROWS - 1)
            printf("%11.*g |%s\n", plot_digits(p), r == 0 ? p->y1 : p->y0, grid[r]);
        else
            printf("%11s |%s\n", "", grid[r]);
    }
    printf("%11s +", "");
    for (int i = 0; i < COLUMNS; i++) putchar('-');
    printf("\n%13s%-10.0f%*.0f updates\n", "", p->x0, COLUMNS - 10, p->x1);
}
