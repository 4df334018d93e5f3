/* What was measured: rows with a floor and a bar, as a table, as JSON and as a picture. */
#ifndef EXPHIL_BENCH_REPORT_H
#define EXPHIL_BENCH_REPORT_H

#include "floors.h"
#include "harness.h"

#include <jansson.h>

typedef struct bench_row {
    char subject[48]; /* "linear forward" */
    char what[72];    /* "M=3840 K=256 N=1024" */
    char how[56];     /* which candidate, model, peer */
    bench_stats time;
    double floor_ns;   /* 0: none */
    char floor_of[40]; /* "f32 multiply-adds", "reading 1.2 MB" */
    double bar_ns;     /* at most; 0: none */
    char bar[40];      /* "1.10 x floor", "2.5 us" */
    double floor_tail; /* p99.9 / p50 of the floor, sampled call by call as well; 0: not so sampled */
    double bar_tail;   /* p99.9 at most so many times the median; 0: none */
    double items;      /* that one call works on; 0: does not apply */
    const char *item;  /* "flop", "byte", "frame", "element" */
} bench_row;

typedef struct bench_report {
    json_t *root; /* machine, floors, options, rows */
    json_t *rows;
    bool quiet; /* rows are not printed while they come */
    int64_t count, met, missed;
    char last[48]; /* subject of the last printed row */
} bench_report;

/* subject is what is measured: "kernels", "step". */
bool bench_report_begin(bench_report *report, const char *subject, bool quiet, const bench_place *place);
void bench_report_floors(bench_report *report, const bench_floors *floors);
void bench_report_row(bench_report *report, const bench_row *row);
/* A single number beside the rows: {name: value} in "facts". */
void bench_report_fact(bench_report *report, const char *name, double value, const char *unit);
void bench_report_note(bench_report *report, const char *text);
/* Machine and versions: no name of the host, no folder. */
json_t *bench_machine(const bench_place *place);
/* First line of a small file of the system; "" when it is not there. */
const char *bench_line_of(const char *path, char *line, size_t bytes);
/* Bars of the shares of the floor; false with a message on stderr. */
bool bench_chart(const json_t *root, const char *path);
/* flags: of json_dumps. */
bool bench_write_json(const json_t *root, const char *path, size_t flags);

#endif
