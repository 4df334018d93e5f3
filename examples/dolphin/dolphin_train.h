/* The training half of the bot. */
#ifndef EXPHIL_DOLPHIN_TRAIN_H
#define EXPHIL_DOLPHIN_TRAIN_H

#include <exphil/exphil.h>

/* From a corpus to weights; prints how it goes. The corpus must have the spec (EXPHIL_E_MISMATCH). */
exphil_status dolphin_train(exphil_context *context, const exphil_spec *spec, const char *corpus,
                            const char *weights, exphil_error *error);

#endif
