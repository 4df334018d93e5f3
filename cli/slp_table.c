/* Many replays: a table with a line for each, and what they are together. */
#include "slp_report.h"
#include "slp_words.h"

#include "commands.h"
#include "tally.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DATE, LENGTH, FRAMES, STAGE, PLAYERS, WINNER, BY, NOTE, FILE_NAME, COLUMNS };
static const char *const heads[COLUMNS] = {"date",   "length", "frames", "stage", "players",
                                           "winner", "by",     "note",   "file"};

struct slp_table {
    char *(*row)[COLUMNS];
    size_t rows, capacity;
    int64_t frames, clock_frames, unreadable;
    tally characters, stages, results, recorders, findings, reasons;
};

/* ---- rows ---------------------------------------------------------------------------------------------- */

slp_table *slp_table_make(void)
{
    return calloc(1, sizeof(slp_table));
}

void slp_table_free(slp_table *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->rows; i++)
        for (int c = 0; c < COLUMNS; c++) free(t->row[i][c]);
    free(t->row);
    tally *const all[] = {&t->characters, &t->stages, &t->results, &t->recorders, &t->findings, &t->reasons};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tally_free(all[i]);
    free(t);
}

static bool take_row(slp_table *t, char *const cells[COLUMNS])
{
    if (t->rows == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        void *wider = realloc(t->row, capacity * sizeof *t->row);
        if (!wider) return false;
        t->row = wider;
        t->capacity = capacity;
    }
    memcpy(t->row[t->rows++], cells, COLUMNS * sizeof cells[0]);
    return true;
}

/* "P1 fox, P2 marth", with teams "P1 fox (red), ...". */
static char *players_of(const exphil_slp_info *info)
{
    char text[512] = "", player[WORDS_SHORT];
    size_t at = 0;
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        if (info->ports[i].type == 3) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                               words_player(player, info, i));
        if (info->teams)
            at += (size_t)snprintf(text + at, sizeof text - at, " (%s)", words_team(info->ports[i].team));
    }
    if (at > 44) memcpy(text + 41, "...", 4); /* teams of four would widen all lines */
    return strdup(text);
}

/* "P2", "P1+P3", "-". */
static char *winner_of(const exphil_slp_result *result)
{
    char text[WORDS_SHORT] = "-";
    size_t at = 0;
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (result->winners >> i & 1)
            at += (size_t)snprintf(text + at, sizeof text - at, "%sP%d", at ? "+" : "", i + 1);
    return strdup(text);
}

static const char *reason_of(int32_t reason)
{
    static const char *const words[] = {"not known",  "stocks", "stocks at time", "percent at time", "quit",
                                        "placements", "tie",    "no contest",     "unfinished",      "alone"};
    return words[reason];
}

static bool count_game(slp_table *t, const exphil_slp_info *info, const exphil_slp_result *result)
{
    char text[WORDS_SHORT];
    const char *finding = words_finding_kind(info);
    bool fine = tally_word(&t->stages, words_stage(text, info->stage)) &&
                tally_word(&t->results, reason_of(result->reason)) &&
                tally_word(&t->recorders, words_recorder(text, info)) &&
                (!finding || tally_word(&t->findings, finding));
    for (int i = 0; fine && i < EXPHIL_SLP_PORTS; i++)
        if (info->ports[i].type != 3)
            fine = tally_word(&t->characters, words_character(text, info->ports[i].character));
    t->frames += info->frame_count;
    t->clock_frames += words_clock_frames(info);
    return fine;
}

bool slp_table_add(slp_table *t, const char *name, const exphil_slp *slp)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    char date[WORDS_SHORT], length[WORDS_SHORT], frames[WORDS_SHORT], stage[WORDS_SHORT], plain[4096];
    if (exphil_slp_query(slp, &info, NULL) < 0 || exphil_slp_result_get(slp, &result, NULL) < 0) return false;
    bool dated = strlen(info.started_at) >= 10;
    const char *finding = words_finding_kind(&info);
    snprintf(date, sizeof date, "%.10s", dated ? info.started_at : "-");
    snprintf(frames, sizeof frames, "%" PRId64, info.frame_count);
    char *cells[COLUMNS] = {strdup(date),
                            strdup(words_time(length, words_clock_frames(&info))),
                            strdup(frames),
                            strdup(words_stage(stage, info.stage)),
                            players_of(&info),
                            winner_of(&result),
                            strdup(reason_of(result.reason)),
                            strdup(finding ? finding : "-"),
                            strdup(words_plain(plain, sizeof plain, name))};
    bool fine = true;
    for (int c = 0; c < COLUMNS; c++) fine = fine && cells[c];
    fine = fine && count_game(t, &info, &result) && take_row(t, cells);
    for (int c = 0; !fine && c < COLUMNS; c++) free(cells[c]);
    return fine;
}

bool slp_table_refuse(slp_table *t, const char *reason)
{
    t->unreadable++;
    return tally_reason(&t->reasons, reason, NULL);
}

/* ---- printing ------------------------------------------------------------------------------------------ */

/* Columns of UTF-8: what goes on does not count. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_line(FILE *out, char *const cells[COLUMNS], const int *width)
{
    for (int c = 0; c + 1 < COLUMNS; c++) {
        int left = width[c] - width_of(cells[c]);
        bool number = c == LENGTH || c == FRAMES;
        fprintf(out, "%*s%s%*s  ", number ? left : 0, "", cells[c], number ? 0 : left, "");
    }
    fprintf(out, "%s\n", cells[FILE_NAME]);
}

static void print_rows(FILE *out, const slp_table *t)
{
    int width[COLUMNS] = {0};
    char *first[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        first[c] = (char *)(uintptr_t)heads[c];
        width[c] = width_of(heads[c]);
        for (size_t i = 0; i < t->rows; i++)
            if (width_of(t->row[i][c]) > width[c]) width[c] = width_of(t->row[i][c]);
    }
    print_line(out, first, width);
    for (size_t i = 0; i < t->rows; i++) print_line(out, t->row[i], width);
    fprintf(out, "\n");
}

static void print_tally(FILE *out, const char *what, tally *t)
{
    tally_sort(t);
    if (t->count) fprintf(out, "%-11s", what);
    for (size_t i = 0; i < t->count; i++)
        fprintf(out, "%s%" PRId64 " %s", i ? ", " : "", t->of[i].count, t->of[i].word);
    if (t->count) fprintf(out, "\n");
}

static void print_reasons(FILE *out, slp_table *t, bool verbose)
{
    tally_sort(&t->reasons);
    fprintf(out, "cannot be read: %" PRId64 "%s\n", t->unreadable, verbose ? "" : " (--verbose names them)");
    for (size_t i = 0; i < t->reasons.count; i++)
        fprintf(out, "%8" PRId64 "  %s\n", t->reasons.of[i].count, t->reasons.of[i].word);
}

void slp_table_print(FILE *out, slp_table *t, int64_t files, bool verbose)
{
    char text[WORDS_SHORT];
    int64_t games = (int64_t)t->rows;
    if (t->rows) print_rows(out, t);
    fprintf(out, "%" PRId64 " file%s: %" PRId64 " game%s, %s on the clock, %" PRId64 " frames\n", files,
            plural(files), games, plural(games), words_time(text, t->clock_frames), t->frames);
    print_tally(out, "characters", &t->characters);
    print_tally(out, "stages", &t->stages);
    print_tally(out, "decided by", &t->results);
    print_tally(out, "recorder", &t->recorders);
    print_tally(out, "findings", &t->findings);
    if (t->unreadable) print_reasons(out, t, verbose);
}
