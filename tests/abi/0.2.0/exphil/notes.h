/*
 * libexphil - notes: what a policy carries of its own history.
 * SPDX-License-Identifier: MIT
 *
 * A model has one text with it, which the library keeps and does not read: by convention a JSON object, so that
 * several programs can each have a member of their own. `exphil train` keeps under "train" what the policy was
 * trained on (doc/file-format.md). Notes stand in the weights file as __metadata__."exphil.notes"; readers that do
 * not know them pass over them. They are no part of exphil_model_info.weights_hash. The rules of exphil.h hold.
 */
#ifndef EXPHIL_NOTES_H
#define EXPHIL_NOTES_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest text, in bytes without its end. */
#define EXPHIL_NOTES_MOST 65536

/* Gives a model notes in the place of earlier ones; copied. NULL or "": none. exphil_model_save writes them,
 * exphil_model_load reads them, exphil_model_quantize and exphil_trainer_model pass them on. Needs a model that nothing
 * else uses yet (no session, trainer or exported tensor), else EXPHIL_E_STATE. EXPHIL_E_INVALID: the text is longer
 * than EXPHIL_NOTES_MOST, or is not UTF-8 (the message has the byte); the model then has what it had. From a file
 * such a text is EXPHIL_E_FORMAT, as is one that is not what was written. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_notes_set(exphil_model *model, const char *notes,
                                                                 exphil_error *error);
/* The model's notes, "" where it has none; valid until they are set or the model is destroyed. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_notes(const exphil_model *model, const char **notes,
                                                             exphil_error *error);
/* What the weights have that this trainer writes or gives from now on (exphil_trainer_save, exphil_trainer_model), in the
 * place of the notes of the model that it was made of; NULL or "": none. they stand in the checkpoint too,
 * and exphil_trainer_resume takes up those of the checkpoint, if there are any. Errors as above. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_notes_set(exphil_trainer *trainer, const char *notes,
                                                                   exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
