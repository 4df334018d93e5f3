/* Plain words for what a replay holds as codes. Each writes into a text of WORDS_SHORT or WORDS_LONG bytes and returns it. */
#ifndef EXPHIL_CLI_SLP_WORDS_H
#define EXPHIL_CLI_SLP_WORDS_H

#include <exphil/slp.h>

#include <stdbool.h>
#include <stdio.h>

enum { WORDS_SHORT = 64, WORDS_LONG = 256 };

/* "fox", "captain falcon", "character 33". */
const char *words_character(char *to, int32_t character);
const char *words_stage(char *to, int32_t stage);
/* "P1 fox"; index 0..3. */
const char *words_player(char *to, const exphil_slp_info *info, int32_t index);
/* "P2 marth", "team green: P2 fox and P4 marth"; long. ports: bits as in exphil_slp_result.winners. */
const char *words_side(char *to, const exphil_slp_info *info, int32_t ports);
const char *words_team(int32_t team);
/* "stocks", "time_percent": the word of a reason in JSON. */
const char *words_reason(int32_t reason);
/* "P2 marth: nobody else has stocks left"; long. */
const char *words_result(char *to, const exphil_slp_info *info, const exphil_slp_result *result);
/* "Dolphin", "a console (Nintendont)", ... */
const char *words_recorder(char *to, const exphil_slp_info *info);
/* "2018-06-22 07:52:59 UTC". */
const char *words_date(char *to, const exphil_slp_info *info);
/* Frames from where the clock starts. */
int64_t words_clock_frames(const exphil_slp_info *info);
/* "2:15", "1:02:15". */
const char *words_time(char *to, int64_t frames);
/* What is wrong with the file, in one sentence; long. False: nothing. */
bool words_finding(char *to, const exphil_slp_info *info);
/* The kind of it, for counting: "cut off", ...; NULL: nothing. */
const char *words_finding_kind(const exphil_slp_info *info);
/* A name for the terminal: control characters become '?'. Returns to. */
const char *words_plain(char *to, size_t bytes, const char *name);

#endif
