/*
 * libexphil - plan.h: the memory that a training will take, before any of it is taken.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. The plan is made by the code that makes a training, on a device that gives addresses and no
 * memory: what it says of model, optimizer and trainer is what they will allocate. What threads of a prefetcher allocate
 * while they run (games that lanes enter) is told as it is when every lane has entered one.
 */
#ifndef EXPHIL_PLAN_H
#define EXPHIL_PLAN_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is for. Those from EXPHIL_PLAN_SAVING on are held for a while only, beside all the others. */
enum {
    EXPHIL_PLAN_WEIGHTS =
        0, /* of the trainer, rounded too with fake_quantize; of the model, where it is made */
    EXPHIL_PLAN_GRADIENTS = 1,   /* with a communicator also in host memory */
    EXPHIL_PLAN_MOMENTS = 2,     /* of AdamW: two for each weight */
    EXPHIL_PLAN_AVERAGE = 3,     /* averaged weights, with ema_decay */
    EXPHIL_PLAN_PACKED = 4,      /* weights in the order in which kernels read them */
    EXPHIL_PLAN_ACTIVATIONS = 5, /* what forward leaves for backward */
    EXPHIL_PLAN_WORKSPACE = 6,   /* gradients of activations, scratch, losses; the pass of own_past */
    EXPHIL_PLAN_STATE = 7,       /* carried from chunk to chunk */
    EXPHIL_PLAN_BATCHES = 8,     /* that the prefetcher fills, and on a GPU those that are uploaded */
    EXPHIL_PLAN_GAMES = 9,       /* decoded games of a corpus, and what decodes them */
    EXPHIL_PLAN_ORDER = 10,      /* the order of an epoch, values of conditions, weights of rows */
    EXPHIL_PLAN_OTHER = 11,      /* lists of operations, objects, what a device rounds up */
    EXPHIL_PLAN_SAVING = 12,     /* exphil_trainer_save: copies in host memory */
    EXPHIL_PLAN_EVALUATION = 13, /* exphil_trainer_evaluate: teacher-forced */
    EXPHIL_PLAN_ALONE = 14,  /* exphil_trainer_evaluate: the policy alone (exphil_report.alone_most_frames) */
    EXPHIL_PLAN_UPDATES = 15 /* no purpose: what is held all the time */
};
#define EXPHIL_PLAN_PURPOSES 16

/* A training that is planned: what its calls will be given. */
typedef struct exphil_plan_config {
    size_t struct_size;
    /* one of the two. A model is there already: its own weights are not counted. A configuration's are */
    const exphil_model *model;
    const exphil_model_config *model_config;
    const exphil_optimizer_config *optimizer; /* NULL: all defaults */
    /* batch and time are planned for; mode, delays, slots, window and conditions must be the model's. With lane_count it is
     * the memory of the process that has those lanes. NULL: what exphil_model_sampling gives */
    const exphil_sampling *sampling;
    const exphil_trainer_config *trainer; /* NULL: all defaults */
    /* what the prefetcher is made of; NULL: rows in memory, whose order costs nothing. Read during the call; of it and of
     * the next two the context must be that of the call */
    const exphil_dataset *dataset;
    const exphil_dataset *scored;      /* what exphil_trainer_evaluate is given; NULL: it is not called */
    const exphil_dataset *frequencies; /* likewise; NULL: scored */
    int64_t alone_most_frames;         /* as in exphil_report; below 0 is EXPHIL_E_INVALID */
    int64_t most_batch;                /* the largest batch that is looked for, 1..4096; 0 = 4096 */
    /* memory that the training may take beside what is taken now; 0: what is free, the limit of the control group counted
     * (Linux), and on a GPU what the driver has left. device: of a GPU; the CPU's memory is host memory */
    uint64_t host_limit_bytes, device_limit_bytes;
    int32_t by_hand;       /* 1: no prefetcher, exphil_trainer_step_batch is called */
    int32_t no_checkpoint; /* 1: exphil_trainer_save is not called */
} exphil_plan_config;
/* clang-format off */
#define EXPHIL_PLAN_CONFIG_INIT { sizeof(exphil_plan_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* What it takes. host: of the allocator and, on a GPU, of the driver (exphil_memory_info's host and pinned); device: of a
 * GPU, as the driver rounds it up; 0 on the CPU. Not in it: stacks of threads, and what a driver takes for itself. */
typedef struct exphil_plan {
    size_t struct_size;
    int64_t batch, time; /* planned for; of own lanes (exphil_sampling.lane_count) their number */
    /* lanes that fit in all limits, at most most_batch; 0: not even one does. With own lanes so many of them, in a joint
     * batch that grows in proportion, up to 4096 */
    int64_t largest_batch;
    int64_t parameter_count;
    uint64_t host_bytes[EXPHIL_PLAN_PURPOSES]; /* by purpose */
    uint64_t device_bytes[EXPHIL_PLAN_PURPOSES];
    uint64_t host_steady_bytes, device_steady_bytes; /* from WEIGHTS to OTHER: while updates are made */
    uint64_t host_peak_bytes,
        device_peak_bytes; /* with the greatest of the others, and the making of it all */
    uint64_t host_room_bytes, device_room_bytes; /* what these are compared with; UINT64_MAX: not known */
    /* part of the peak that exphil_context_config.memory_limit_bytes counts, and what that leaves; UINT64_MAX: no limit */
    uint64_t limited_peak_bytes, limited_room_bytes;
    /* of the two files of exphil_trainer_save; model and settings in their headers are some kilobytes more */
    uint64_t weights_file_bytes, checkpoint_file_bytes;
    int32_t host_peak_purpose,
        device_peak_purpose; /* in which of them the peak is; EXPHIL_PLAN_UPDATES: in none */
    int32_t fits;            /* 1: batch does */
    int32_t reserved;
} exphil_plan;
/* clang-format off */
#define EXPHIL_PLAN_INIT \
    { sizeof(exphil_plan), 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Plans a training of this context (NULL: the model's). Takes some kilobytes and, for a search, some milliseconds; trains
 * and keeps nothing.
 * EXPHIL_E_INVALID, EXPHIL_E_MISMATCH, EXPHIL_E_UNSUPPORTED: as the calls that are planned say it. EXPHIL_E_MEMORY: a
 * batch of this shape has no size. What does not fit is no error: fits is 0. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_plan(exphil_context *context,
                                                              const exphil_plan_config *config,
                                                              exphil_plan *plan, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
