/* The settings that a run must keep when it is resumed, as members of a checkpoint's metadata. */
#ifndef XPH_TRAIN_SETTINGS_H
#define XPH_TRAIN_SETTINGS_H

#include "file/file.h"
#include "train/train.h"

/* Adds the member "settings". */
void xph_settings_write(const exphil_trainer *trainer, xph_json_out *out);
/* All of them as numbers, in an order of their own; returns how many. */
enum { XPH_SETTINGS_MOST = 64 };
int64_t xph_settings_values(const exphil_trainer *trainer, uint64_t value[XPH_SETTINGS_MOST]);
/* The name of setting i. */
const char *xph_settings_name(const exphil_trainer *trainer, int64_t i);
/* EXPHIL_E_MISMATCH: what one rank has of setting i, and what rank 0 has. */
exphil_status xph_settings_differ(const exphil_trainer *trainer, int64_t i, uint64_t value, uint64_t first,
                                  int32_t rank, exphil_error *error);
/* EXPHIL_E_MISMATCH names what differs: "checkpoint was made with NAME BEFORE, this run has NOW", then for each other
 * setting "; NAME BEFORE, now NOW", without values "; NAME" where a message does not hold all, or of a hash; at last
 * "; and N more". */
exphil_status xph_settings_check(const exphil_trainer *trainer, const xph_json *json, exphil_error *error);

#endif
