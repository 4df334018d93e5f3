/* Command lines: a table of options drives both the reading and the help. */
#ifndef EXPHIL_CLI_OPTIONS_H
#define EXPHIL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,
    OPTION_INT,
    OPTION_AUTO,
    OPTION_NUMBER,
    OPTION_TEXT,
    OPTION_BYTES,
    OPTION_TEXTS
} option_kind;

/* What an option that may be repeated was given. */
enum { TEXTS_MOST = 64 };
typedef struct text_list {
    const char *text[TEXTS_MOST];
    int count;
} text_list;

/* value points to bool, int64_t, double, const char *, text_list (all that a repeated option was given) or uint64_t (bytes:
 * a whole number, with KiB, MiB, GiB or TiB right after it or without, at least 1); a number must lie in the range that
 * options.c has for its name. OPTION_AUTO is a whole number, or -1 for the word auto.
 * An entry without name is a heading; one without help ends. */
typedef struct option_entry {
    const char *name; /* without the dashes */
    option_kind kind;
    void *value;
    const char *argument, *help;
} option_entry;

typedef struct option_command {
    const char *usage, *about;
    const option_entry *entry;
    bool *
        given; /* NULL, or one for each entry: was it asked for, on the command line or by a configuration? */
} option_command;

/* Reads argv[1..]; what is not an option stays, in order, in argv[1..*count]. Returns true to go on; false:
 * *status is what the program should exit with (help was shown: 0; a mistake was named: 2). */
bool options_read(const option_command *command, int argc, char **argv, int *count, int *status);
/* Prints the help of a command. */
void options_help(const option_command *command);
/* Was this option asked for? The command's given must not be NULL. */
bool options_given(const option_command *command, const char *name);

/* ---- for what reads options from elsewhere ------------------------------------------------------------- */

/* Is what stands elsewhere for this option too late, because it was asked for before, or one that it does not go with? asked
 * has a flag for each entry. */
bool options_outdone(const option_command *command, const bool *asked, const char *name);

/* The entry of this name, without the dashes; NULL: there is none. */
const option_entry *options_find(const option_command *command, const char *name);
/* Sets an option that takes a value; text must outlive its use. If it is refused, that is said on stderr, and where names
 * the option there. */
bool options_store(const option_entry *entry, const char *text, const char *where);
/* Does this number lie in the option's range? */
bool options_allows(const option_entry *entry, double value);
/* What belongs behind this option's name, in words. */
const char *options_wanted(const option_entry *entry);

#endif
