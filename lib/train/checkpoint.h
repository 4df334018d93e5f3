/* What saving and resuming a run share. "<path>" is a weights file for play; "<path>.optimizer" holds all
 * that resume reads, as safetensors: per tensor its weights, moments and average, the carried state of the
 * lanes, and in the metadata the counters and every setting that must be the same for the run to continue bit
 * for bit. */
#ifndef XPH_TRAIN_CHECKPOINT_H
#define XPH_TRAIN_CHECKPOINT_H

#include "file/file.h"
#include "train/train.h"

#define XPH_CHECKPOINT_KEY           "exphil.optimizer"
/* Of that text: the file's own checksum is of the data only. */
#define XPH_CHECKPOINT_SUM_KEY       "exphil.optimizer_xxh64"
/* Notes of the weights (exphil/notes.h), where the trainer was given some, and of them. */
#define XPH_CHECKPOINT_NOTES_KEY     "exphil.notes"
#define XPH_CHECKPOINT_NOTES_SUM_KEY "exphil.notes_xxh64"
#define XPH_CHECKPOINT_SUFFIX        ".optimizer"
#define XPH_CHECKPOINT_BESIDE        "learner" /* tensor of bytes: what a learner keeps there (lib/learn/resume.c) */

/* Weights, both moments, average; and numbers of a run that are taken over. */
enum { XPH_CHECKPOINT_KINDS = 4, XPH_CHECKPOINT_COUNTERS = 7 };

/* Their names in the metadata. */
extern const char *const xph_checkpoint_counter[XPH_CHECKPOINT_COUNTERS];

/* Host copies of everything on the device that a checkpoint holds. */
typedef struct xph_checkpoint {
    exphil_trainer *trainer;
    void *arena[XPH_CHECKPOINT_KINDS], *state;
    xph_array *arrays;
    char (*names)[XPH_TENSORS_NAME];
    int64_t count, kinds;      /* arrays; kinds: 3 without averaged weights */
    int64_t batch, time;       /* of all ranks that meet */
    int64_t first_lane, lanes; /* of this one */
    xph_stream *stream;        /* of its own until the trainer has a net */
    size_t state_bytes, arrays_bytes, names_bytes;
    char *path;
    size_t path_bytes;
    const xph_beside *beside; /* or NULL */
} xph_checkpoint;

/* Bytes of the host copies for a run of so many lanes, with what writing them takes, and of both files but for the
 * settings in their headers. Of a trainer that is on a context that measures too. */
typedef struct xph_checkpoint_sizes {
    size_t copies, file, weights_file;
} xph_checkpoint_sizes;
exphil_status xph_checkpoint_measure(exphil_trainer *trainer, int64_t batch, xph_checkpoint_sizes *sizes,
                                     exphil_error *error);
/* Memory for a run of this shape, all of whose lanes are this rank's; beside is set before, or NULL. Needs
 * xph_checkpoint_free also after a failure. */
exphil_status xph_checkpoint_make(xph_checkpoint *c, exphil_trainer *trainer, int64_t batch, int64_t time,
                                  const char *path, const xph_beside *beside, exphil_error *error);
void xph_checkpoint_free(xph_checkpoint *c);
/* Names, shapes and places of all arrays. */
exphil_status xph_checkpoint_list(xph_checkpoint *c, exphil_error *error);
/* Where the device has weights, moments and average. */
void *xph_checkpoint_arena(const exphil_trainer *trainer, int64_t kind);
xph_stream *xph_checkpoint_stream(const xph_checkpoint *c);
size_t xph_checkpoint_state_bytes(const exphil_trainer *trainer, int64_t batch);

/* The carried state of this rank's lanes lies there in that of all. */
static inline unsigned char *xph_checkpoint_own_state(const xph_checkpoint *c)
{
    return (unsigned char *)c->state + xph_checkpoint_state_bytes(c->trainer, c->first_lane);
}
/* exphil_trainer_save and exphil_trainer_resume where ranks meet: rank 0 writes and reads. */
exphil_status xph_ranks_save(exphil_trainer *trainer, const char *path, exphil_status status, exphil_error *error);
exphil_status xph_ranks_resume(exphil_trainer *trainer, const char *path, exphil_status status,
                               exphil_error *error);

/* A run as a file has it, checked, before anything of the trainer changes. */
typedef struct xph_stored_run {
    xph_checkpoint copies;
    uint64_t counters[XPH_CHECKPOINT_COUNTERS];
    double loss_scale;
    int64_t good; /* updates since the loss scale changed */
    xph_notes notes;
    bool noted;
} xph_stored_run;
/* Reads it into host memory. batch: lanes that it must have; 0: any. Needs xph_run_free also after a failure. */
exphil_status xph_run_read(xph_stored_run *run, exphil_trainer *trainer, const char *path, int64_t batch,
                           xph_beside *beside, exphil_error *error);
/* The trainer goes on from there, with the state of copies.lanes lanes; takes notes and state. */
exphil_status xph_run_install(xph_stored_run *run, exphil_error *error);
void xph_run_free(xph_stored_run *run);
/* Both files of a checkpoint whose copies are there. */
exphil_status xph_checkpoint_write(xph_checkpoint *c, const char *path, exphil_error *error);
/* Copies of what the device has, of this rank's lanes. */
exphil_status xph_checkpoint_fetch(xph_checkpoint *c, exphil_error *error);
/* Lanes and frames of this rank's batches, of which it has seen one or been told by a file; else EXPHIL_E_STATE. */
exphil_status xph_checkpoint_shape(const exphil_trainer *trainer, int64_t *batch, int64_t *time,
                                   exphil_error *error);

#endif
