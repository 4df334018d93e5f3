/* The emulated GPU behind the plugin, for tests that open it as device "cuda:0". */
#ifndef EXPHIL_EMULATED_H
#define EXPHIL_EMULATED_H

#include "emu_control.h"
#include "fake_blaslt.h"
#include "fake_cudnn.h"
#include "fake_nccl.h"
#include "test.h"
#include "test_places.h"

#define EMULATED_FOLDER EXPHIL_BINARY_DIR "/tests/plugin-emulated"
/* For EXPHIL_NCCL. */
#define EMULATED_NCCL   EMULATED_FOLDER "/libfake_nccl.so"
/* For EXPHIL_CUBLASLT, before a device is opened. */
#define EMULATED_BLASLT EMULATED_FOLDER "/libfake_cublasLt.so"

/* For EXPHIL_CUDNN. */
#define EMULATED_CUDNN EMULATED_FOLDER "/libfake_cudnn.so"

/* What of emu_control.h the tests use, found in the plugin that is loaded. */
typedef struct emulated {
    void (*schedule)(int schedule);
    void (*timing)(int timing, uint64_t seed);
    void (*clock)(double (*milliseconds)(void));
    void (*protect)(int on);
    size_t (*allocated)(void);
    const char *(*fault)(void);
    void (*clear)(void);
    void (*devices)(int count, int error);
    void (*memory)(size_t bytes);
    void (*multiprocessors)(int count);
    void (*clusters)(int blocks);
    void (*clusters_at_once)(int count);
    void (*shared)(size_t bytes);
    void (*code)(int processor);
    int (*has_context)(int device);
    void (*exclusive)(int device, int on);
    void (*entries)(int on);
    int (*device)(void);
    void (*fail_allocation)(int64_t n);
    void (*fail_operation)(int64_t n);
    emu_counts (*count)(void);
    void (*counts_clear)(void);
    int (*call)(void *stream, void (*function)(const void *), const void *data, size_t bytes);
    int (*capturing)(void *stream);
    void (*spoil_capture)(void *stream);
    void (*dry)(void (*watch)(const emu_event *event));
} emulated;
const emulated *emulated_gpu(void);

/* Nothing went wrong and nothing is left. */
void emulated_clean(void);

/* log NULL: silent. */
exphil_context_config emulated_config(const char *device, exphil_log_fn log, void *user);
exphil_context *emulated_context(void);

/* A product of drawn numbers on a fresh device, by what the environment names, and its name in the plan; tune_to: where its choice
 * goes, or NULL. */
enum { EMULATED_SIDE = 16, EMULATED_NUMBERS = EMULATED_SIDE * EMULATED_SIDE };
void emulated_product(float y[EMULATED_NUMBERS], char name[64], const char *tune_to);
/* What the last line of a file of choices has of those before it. */
uint64_t emulated_sum(const char *text, size_t bytes);

/* The stand-in for cuBLASLt, at work on this device. */
fake_blaslt *emulated_blaslt(void);
/* The stand-in for cuDNN, likewise. */
fake_cudnn *emulated_cudnn(void);
/* The stand-in for NCCL, over so many devices. */
fake_nccl *emulated_nccl(int devices);

#endif
