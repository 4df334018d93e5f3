/* One replay on a page, for people. */
#include "slp_manifest.h"
#include "slp_report.h"
#include "slp_words.h"

#include <inttypes.h>
#include <math.h>

/* ---- players ------------------------------------------------------------------------------------------- */

static void print_end(FILE *out, const exphil_slp_info *info, const exphil_slp_result *result, int i)
{
    int stocks = (int)result->stocks[i];
    if (stocks < 0) {
        fprintf(out, "%s", info->frame_count ? "; never on the stage" : "");
        return;
    }
    if (info->game_mode == 1 && stocks)
        fprintf(out, "; %d stock%s left", stocks, stocks == 1 ? "" : "s");
    else if (info->game_mode == 1)
        fprintf(out, "; no stocks left");
    if (isfinite(result->percent[i]))
        fprintf(out, "%s %.1f %%", info->game_mode == 1 && stocks ? " at" : "; at the end",
                (double)result->percent[i]);
}

static void print_players(FILE *out, const exphil_slp_info *info, const exphil_slp_result *result)
{
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const exphil_slp_port *port = &info->ports[i];
        char name[WORDS_SHORT];
        if (port->type == 3) continue;
        fprintf(out, "  P%d        %s, ", i + 1, words_character(name, port->character));
        if (port->type == 1)
            fprintf(out, "computer of level %u", (unsigned)port->cpu_level);
        else
            fprintf(out, "%s", port->type == 0 ? "human" : port->type == 2 ? "demo" : "of an unknown kind");
        if (info->teams) fprintf(out, ", team %s", words_team(port->team));
        print_end(out, info, result, i);
        fprintf(out, "\n");
    }
}

/* ---- the game ------------------------------------------------------------------------------------------ */

static void print_length(FILE *out, const exphil_slp_info *info)
{
    char text[WORDS_SHORT];
    int64_t frames = words_clock_frames(info);
    if (!info->frame_count)
        fprintf(out, "  length    not one whole frame\n");
    else
        fprintf(out, "  length    %s, %" PRId64 " frames from the start of the clock (%" PRId64 " in all)\n",
                words_time(text, frames), frames, info->frame_count);
}

static int stocks_at_start(const exphil_slp_info *info)
{
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (info->ports[i].type != 3) return info->ports[i].stocks;
    return 0;
}

static void print_rules(FILE *out, const exphil_slp_info *info)
{
    static const char *const modes[] = {"time", "stock", "coin", "bonus"};
    char text[WORDS_SHORT];
    int stocks = stocks_at_start(info);
    if (info->game_mode == 1)
        fprintf(out, "  rules     %d stock%s", stocks, stocks == 1 ? "" : "s");
    else
        fprintf(out, "  rules     mode %s", info->game_mode < 4 ? modes[info->game_mode] : "unknown");
    if (info->timer_kind == 2 && info->timer_seconds)
        fprintf(out, ", %s", words_time(text, 60 * (int64_t)info->timer_seconds));
    fprintf(out, "%s%s%s%s\n", info->item_spawn == -1 ? ", no items" : ", items",
            info->teams ? ", teams" : "", info->pal == 1 ? ", PAL" : "",
            info->stage == 3 && info->frozen == 1 ? ", frozen" : "");
}

static void print_result(FILE *out, const exphil_slp_info *info, const exphil_slp_result *result)
{
    char text[WORDS_LONG];
    fprintf(out, "  winner    %s\n", words_result(text, info, result));
    if (result->quitter)
        fprintf(out, "  quit      %s\n", words_player(text, info, result->quitter - 1));
    else if (!info->end_count)
        fprintf(out, "  quit      not known, the end of the game is not there\n");
    else
        fprintf(out, "  quit      %s\n",
                info->fields & EXPHIL_SLP_HAS_LRAS ? "nobody"
                                                   : "not recorded (Slippi records it since 2.0.0)");
}

/* ---- what few people want to know ---------------------------------------------------------------------- */

static void print_details(FILE *out, const exphil_slp *slp, const exphil_slp_info *info)
{
    fprintf(out, "  frames    %d to %d; %" PRId64 " simulations, of which %" PRId64 " are incomplete\n",
            info->frame_count ? (int)info->first_frame : 0, info->frame_count ? (int)info->last_frame : 0,
            info->instance_count, info->incomplete_count);
    fprintf(out, "  items     %" PRId64 " in all frames together\n  seed      %08x\n", info->item_count,
            (unsigned)info->seed);
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        fprintf(out, "  slot P%d%s  %" PRId64 " records, frames %d to %d\n", (int)slot->port + 1,
                slot->follower ? "n" : " ", slot->record_count, (int)slot->first_frame,
                (int)slot->last_frame);
    }
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        static const char *const fixes[] = {"off", "UCF", "Dween or Arduino"};
        const exphil_slp_port *port = &info->ports[i];
        if (port->type == 3 || port->dashback_fix > 2 || port->shield_drop_fix > 2) continue;
        fprintf(out, "  P%d fixes  dash back %s, shield drop %s\n", i + 1, fixes[port->dashback_fix],
                fixes[port->shield_drop_fix]);
    }
    fprintf(out, "  events    read to byte %" PRIu64 " of %" PRIu64 " (%s); %" PRId64 " of an unknown kind\n",
            info->stop_offset, info->input_bytes, slp_stop_name(info->stop), info->unknown_event_count);
}

void slp_report_page(FILE *out, const char *name, const exphil_slp *slp, bool verbose)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    char text[4096];
    if (exphil_slp_query(slp, &info, NULL) < 0 || exphil_slp_result_get(slp, &result, NULL) < 0) return;
    fprintf(out, "%s\n", words_plain(text, sizeof text, name));
    fprintf(out, "  date      %s\n", words_date(text, &info));
    fprintf(out, "  stage     %s\n", words_stage(text, info.stage));
    print_length(out, &info);
    print_players(out, &info, &result);
    print_result(out, &info, &result);
    print_rules(out, &info);
    fprintf(out, "  recorder  %s, Slippi %u.%u.%u\n", words_recorder(text, &info), (unsigned)info.version[0],
            (unsigned)info.version[1], (unsigned)info.version[2]);
    if (verbose) print_details(out, slp, &info);
    fprintf(out, "  file      %s\n", words_finding(text, &info) ? text : "nothing is wrong with it");
}
