/* What is told of the files of a release: lines of results.txt, each a digest of what the library makes of one file. */
#ifndef EXPHIL_KEPT_CASE_H
#define EXPHIL_KEPT_CASE_H

#include "play_case.h"
#include "train_case.h"

enum { KEPT_BEFORE = 7, KEPT_AFTER = 5, KEPT_SEEN = 9, KEPT_PLAYED = 40, KEPT_STREAMS = 2 };

/* What one library makes of the files, a line each. */
typedef struct kept_results {
    char text[16384];
    size_t used;
} kept_results;
void kept_tell(kept_results *to, const char *name, const char *what, uint64_t digest);

/* folder/nameend, until the eighth call from here. */
const char *kept_in(const char *folder, const char *name, const char *end);
uint64_t kept_digest(const char *path);

/* A file of weights; fails the test with its name. */
exphil_model *kept_load(exphil_context *context, const char *path);
/* Of two streams; with conditions and the longest delay where the model has these. */
exphil_session *kept_session(const exphil_model *model);
/* Logits and actions, and values where there are some, of frames [first, end) of the task, drawn with the session's own noise. */
uint64_t kept_play(exphil_session *session, int64_t first, int64_t end);
void kept_tell_model(kept_results *to, exphil_context *context, const char *folder, const char *name);

/* name.state: that of each stream of a session that has played. */
void kept_write_state(exphil_context *context, const char *folder, const char *name);
void kept_tell_state(kept_results *to, exphil_context *context, const char *folder, const char *name);

/* Types of fewer bits, and their files of weights and states: name-bf16.safetensors. */
typedef struct kept_type {
    const char *name;
    int32_t type;
} kept_type;
extern const kept_type kept_narrow[2];
void kept_write_narrow(exphil_context *context, const exphil_dataset *dataset, const char *folder,
                       const char *of);

/* All rows. */
uint64_t kept_frames(const exphil_dataset *dataset, const exphil_dataset_info *info);

/* Kinds of files that 0.2 brought. Nothing is told where the folder has none of them. */
void kept_write_0_2(exphil_context *context, const char *folder);
void kept_tell_0_2(kept_results *to, exphil_context *context, const char *folder);

#endif
