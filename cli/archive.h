/* Replays in archives and compressed files, read with libarchive where that is installed. */
#ifndef EXPHIL_CLI_ARCHIVE_H
#define EXPHIL_CLI_ARCHIVE_H

#include "file_list.h"

#include <exphil/slp.h>

/* Does a file of this name, in a folder, hold replays? .slp.gz and the like, .zip, .7z, .tar, .tar.gz, ... */
bool archive_name(const char *path);
/* Gives each replay in this archive, in its order; a compressed file that is no archive is one replay of its own name. What
 * cannot be read is given with its problem, the archive itself too. inside: only this entry; NULL: all. False: the visitor
 * said so. */
bool archive_visit(const file_item *archive, const char *inside, const file_choice *choice,
                   file_visitor visitor, void *user);
/* Opens one replay: a file, a compressed file, an archive of one replay, or ARCHIVE:ENTRY. False: error says why. */
bool replay_open(exphil_context *context, const char *path, const exphil_slp_config *config, exphil_slp **slp,
                 exphil_error *error);

#endif
