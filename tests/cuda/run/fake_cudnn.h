/* What tests ask of the stand-in for cuDNN, and what it tells them. */
#ifndef EXPHIL_FAKE_CUDNN_H
#define EXPHIL_FAKE_CUDNN_H

#include <stdatomic.h>
#include <stddef.h>

/* Where graphs are refused. */
enum {
    FAKE_DNN_NOWHERE,
    FAKE_DNN_AT_START,
    FAKE_DNN_AT_QUERY,
    FAKE_DNN_AT_PLAN,
    FAKE_DNN_AT_RUN,
    FAKE_DNN_IN_CAPTURE
};
/* Beside cudnnStatus_t, at query: it finds no engine; it finds one that adds in no fixed order. */
enum { FAKE_DNN_NO_ENGINE = -1, FAKE_DNN_UNORDERED = -2 };

typedef struct fake_cudnn {
    /* the device (emu_control.h) */
    int (*call)(void *stream, void (*function)(const void *), const void *data, size_t bytes);
    int (*capturing)(void *stream);
    void (*spoil)(void *stream);
    /* given */
    int where, status;
    int spoils;                                     /* a refusal in a capture ends it */
    size_t wants /* workspace; 0: 4096 */, version; /* 0: 91900 */
    /* told; handles of several devices are used at once */
    atomic_int runs, alive, plans, refusals;
    atomic_int wrong;    /* calls that the real one would have refused, other than where it was to */
    atomic_int together; /* calls with a handle that another thread was in a call with */
} fake_cudnn;

#endif
