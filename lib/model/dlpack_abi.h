/* The structs of DLPack 1.1 that are exchanged, written from its specification (dmlc.github.io/dlpack). The
 * two managed structs have the tags that exphil.h declares; a program that includes dlpack.h itself sees its
 * own, with the same layout. Private. */
#ifndef XPH_MODEL_DLPACK_ABI_H
#define XPH_MODEL_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { XPH_DLPACK_MAJOR = 1, XPH_DLPACK_MINOR = 1 };
enum { XPH_DLPACK_CPU = 1, XPH_DLPACK_CUDA = 2, XPH_DLPACK_CUDA_HOST = 3 };
enum { XPH_DLPACK_FLOAT = 2 };
#define XPH_DLPACK_READ_ONLY ((uint64_t)1)

typedef struct xph_dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape;
    int64_t *strides;      /* in elements; NULL: row-major without gaps */
    uint64_t offset_bytes; /* of the first element behind data */
} xph_dlpack_tensor;

struct DLManagedTensor {
    xph_dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    xph_dlpack_tensor tensor;
};

#endif
