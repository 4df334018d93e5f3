/* What is exchanged with XLA's foreign function interface, API 0.3, as far as handlers here use it, written from its documentation
 * (openxla.org/xla/custom_call) and headers. Later versions 0.x only append fields and functions. The package's tests compare
 * sizes, offsets and numbers with the header that comes with jaxlib. Private. */
#ifndef EXPHIL_XLA_ABI_H
#define EXPHIL_XLA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0, XLA_MINOR = 3 };
/* Types of a buffer's elements; of a scalar attribute, too. */
enum { XLA_PRED = 1, XLA_I32 = 4, XLA_I64 = 5, XLA_U8 = 6, XLA_F32 = 11, XLA_F64 = 12 };
enum { XLA_STAGE_EXECUTE = 3 };
enum { XLA_EXTENSION_METADATA = 1 };
enum { XLA_ATTRIBUTE_SCALAR = 3 };
/* The handler always starts the same work, so that it may be recorded and replayed. */
enum { XLA_TRAIT_RECORDABLE = 1 };
enum {
    XLA_ERROR_CANCELLED = 1,
    XLA_ERROR_INVALID = 3,
    XLA_ERROR_MEMORY = 8,
    XLA_ERROR_PRECONDITION = 9,
    XLA_ERROR_UNIMPLEMENTED = 12,
    XLA_ERROR_INTERNAL = 13
};

typedef struct xla_error xla_error;     /* XLA's own */
typedef struct xla_context xla_context; /* of one execution, XLA's own */

typedef struct xla_extension {
    size_t struct_size;
    int32_t type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t struct_size;
    xla_extension *extensions;
    int32_t major, minor;
} xla_version;

/* What XLA asks of a handler when it is registered: a call with this extension, which runs nothing. */
typedef struct xla_metadata {
    size_t struct_size;
    xla_version version;
    uint32_t traits;
} xla_metadata;
typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

/* Row-major, without gaps. */
typedef struct xla_buffer {
    size_t struct_size;
    xla_extension *extensions;
    int32_t type;
    void *data;
    int64_t rank;
    int64_t *sizes;
} xla_buffer;

typedef struct xla_buffers {
    size_t struct_size;
    xla_extension *extensions;
    int64_t count;
    int32_t *kinds; /* 1: a buffer */
    xla_buffer **buffer;
} xla_buffers;

typedef struct xla_text {
    const char *start;
    size_t length;
} xla_text;
typedef struct xla_scalar {
    int32_t type;
    void *value;
} xla_scalar;
/* Sorted by name. */
typedef struct xla_attributes {
    size_t struct_size;
    xla_extension *extensions;
    int64_t count;
    int32_t *kinds;
    xla_text **names;
    void **attribute; /* xla_scalar where kinds says so */
} xla_attributes;

typedef struct xla_error_create {
    size_t struct_size;
    xla_extension *extensions;
    const char *message;
    int32_t code;
} xla_error_create;
typedef struct xla_error_destroy {
    size_t struct_size;
    xla_extension *extensions;
    xla_error *error;
} xla_error_destroy;
typedef struct xla_stream_get {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    void *stream; /* out: cudaStream_t */
} xla_stream_get;

typedef struct xla_device_get {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    int32_t device; /* out */
} xla_device_get;

typedef struct xla_api {
    size_t struct_size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_create *args);
    void *error_message;
    void (*error_destroy)(xla_error_destroy *args);
    void *handler_register;
    xla_error *(*stream_get)(xla_stream_get *args);
    void *not_called[12];
    xla_error *(*device_get)(xla_device_get *args); /* there if struct_size says so */
} xla_api;

typedef struct xla_call {
    size_t struct_size;
    xla_extension *extensions;
    const xla_api *api;
    xla_context *context;
    int32_t stage;
    xla_buffers inputs, outputs;
    xla_attributes attributes;
} xla_call;

#endif
