/* What a policy says of its training: the member "train" of its notes (doc/file-format.md). */
#ifndef EXPHIL_CLI_NOTES_H
#define EXPHIL_CLI_NOTES_H

#include "options.h"

#include <exphil/exphil.h>

#include <jansson.h>

/* The options that were given and matter to the policy, by name: numbers, words, true for a flag, and true in
 * the place of any file's name. */
json_t *notes_options(const option_command *command);
/* Value of an option; the caller's. */
json_t *notes_option(const option_entry *entry);
/* "0.2.0": what files have, which are the same everywhere. exphil_version_string also says what the library was built with. */
const char *notes_version(void);
/* All notes of a model, a new reference: an object, a text where they are no JSON object, NULL where there are none. */
json_t *notes_of(const exphil_model *model);
/* What is said of training: an object, borrowed; NULL: nothing. */
const json_t *notes_train(const json_t *notes);
/* Of learning by playing, likewise. A policy that has both was learnt from what `train` tells of. */
const json_t *notes_learn(const json_t *notes);
/* In a few lines on stdout. */
void notes_print(const json_t *notes);
/* Frames of this character (an external id) among what was imitated, and of them those at a port; 0: none, or not known. */
int64_t notes_frames_of(const json_t *train, int32_t external);
int64_t notes_frames_at(const json_t *train, int32_t external, int port);
/* The ports of all of them: bit 0 is port 1; 0: not known. */
unsigned notes_ports(const json_t *train);
/* "fox", "33": how notes call a character or stage; to has 16 bytes. */
const char *notes_character(char *to, int32_t character);

#endif
