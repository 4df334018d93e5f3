/* Notes of the weights that a trainer writes. */
#include "train/train.h"

#include <exphil/notes.h>

exphil_status exphil_trainer_notes_set(exphil_trainer *trainer, const char *notes, exphil_error *error)
{
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = xph_notes_take(trainer->context, notes, &trainer->notes, error);
    if (status >= 0) trainer->noted = true;
    xph_trainer_leave(trainer);
    return status;
}
