/* What the tests of the emulated GPU's runtime share: two streams, an event, and memory of both kinds. */
#ifndef EXPHIL_RUNTIME_BED_H
#define EXPHIL_RUNTIME_BED_H

#include "test.h"

#include "emu_control.h"
#include "queued.h"

enum { COUNT = 100, SEEDS = 20 };
#define BYTES    (COUNT * sizeof(float))
#define OK(call) assert_int_equal(call, cudaSuccess)

/* Two streams, an event, memory of both kinds. */
typedef struct bed {
    cudaStream_t a, b;
    cudaEvent_t event;
    float *x, *y;  /* of the device */
    float *pinned; /* its first half goes up, the second comes down */
    float host[COUNT];
} bed;

void bed_open(bed *t, int timing, uint64_t seed);
/* Nothing is left. */
void bed_close(bed *t);

/* COUNT numbers from this value on, one more each. */
void bed_fill(float *to, float value);
bool bed_holds(const float *at, float value);
/* From memory of the host that is overwritten at once. */
void bed_upload(float *to, float value, cudaStream_t stream);
bool bed_device_holds(bed *t, const float *at, float value);

/* to = from * by + plus, with arguments that are overwritten at once. */
void bed_scale(const float *from, float *to, float by, float plus, cudaStream_t stream);
/* The graph is destroyed. */
cudaGraphExec_t bed_instance(cudaGraph_t graph);

#endif
