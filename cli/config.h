/* Options of a command in a JSON file: what is asked for, and what a run had. */
#ifndef EXPHIL_CLI_CONFIG_H
#define EXPHIL_CLI_CONFIG_H

#include "options.h"

#include <jansson.h>

#define CONFIG_HELP                                                                                          \
  "options and \"files\" as one JSON object, as OUT.run.json of an earlier run; the command line wins "      \
  "(default: none)"

/* Reads a configuration after the command line, so that what stands there wins: where files do (*count of them, *files), its
 * files and lists of files are not taken, else *count and *files are its own. What it asks for counts as given; what it keeps
 * of earlier defaults does not. Texts and names stay until the program ends. False: said on stderr what is wrong, with its
 * name and line. */
bool config_read(const option_command *command, const char *path, int *count, char ***files);

/* What a configuration that was read says of a whole number, also where the command line won; otherwise: nothing. */
int64_t config_whole(const char *path, const char *name, int64_t otherwise);

/* Which run it was, beside its options. */
typedef struct config_facts {
    int count; /* of the files */
    char **files;
    json_t *chosen; /* what the program chose where nothing was asked for; the reference is taken */
} config_facts;

/* Writes every option's value and these facts, in the place of a file of that name; config, preset, resume and force, which say how
 * this start was made, are left out. False: said on stderr why not. */
bool config_write(const option_command *command, const char *path, const config_facts *facts);

#endif
