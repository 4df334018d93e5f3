/* Door of lib/learn: what its files share. The room stands on lib/train and lib/play, and is where both meet. */
#ifndef XPH_LEARN_LEARN_H
#define XPH_LEARN_LEARN_H

#include "play/play.h"
#include "train/train.h"

#include <exphil/learn.h>

#endif
