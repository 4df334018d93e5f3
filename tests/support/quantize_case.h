/* What the tests of models with weights of fewer bits share. */
#ifndef EXPHIL_QUANTIZE_CASE_H
#define EXPHIL_QUANTIZE_CASE_H

#include "model_case.h"
#include "play_case.h"

/* Of a group of tests: makes the context, and ends it. */
extern exphil_context *quantize_context;
int quantize_begin(void **state);
int quantize_end(void **state);

enum { QUANTIZE_PATTERNS = XPH_BLOCK_KINDS + 1 + MODEL_CASE_ENDS };
extern const int32_t quantize_types[2];
extern const char *const quantize_patterns[QUANTIZE_PATTERNS];

/* A pattern that begins with an end's number and a colon has that end. */
exphil_model *quantize_plain(const char *blocks); /* not rounded */
exphil_model *quantize_rounded(const exphil_model *model, int32_t type);
exphil_model *quantize_load(const char *path);
exphil_model_info quantize_info(const exphil_model *model);
/* The values of a tensor, to be freed. */
float *quantize_values(const exphil_model *model, const char *name, exphil_tensor_info *info);

/* Fails unless this is the status, and the error has these words. */
void quantize_refused(exphil_status got, exphil_status want, const exphil_error *error, const char *says);

#endif
