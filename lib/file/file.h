/* Door of lib/file: JSON text, safetensors files, Zstandard frames; Protocol Buffers are only written. Input is not trusted: every
 * byte is checked before it is used, allocations stay in proportion to the input, and messages name the byte or the field. */
#ifndef XPH_FILE_FILE_H
#define XPH_FILE_FILE_H

#include "base/base.h"

#define XPH_JSON_MOST_BYTES  ((size_t)1 << 20)
#define XPH_JSON_MOST_VALUES 65536
#define XPH_JSON_MOST_DEPTH  16

/* ---- reading JSON -------------------------------------------------------------------------------------- */

/* A parsed document (RFC 8259, with an object or array at the top; no name twice, no \u0000). Values are
 * numbers from 0, the top, in the order of the text; -1 is none. Texts live as long as the document. */
typedef struct xph_json xph_json;
enum {
    XPH_JSON_NULL = 0,
    XPH_JSON_BOOL = 1,
    XPH_JSON_NUMBER = 2,
    XPH_JSON_TEXT = 3,
    XPH_JSON_ARRAY = 4,
    XPH_JSON_OBJECT = 5
};

/* label stands in front of messages; it is not copied. base is what is added to byte offsets in messages.
 * The text itself is not needed any more afterwards. EXPHIL_E_FORMAT, EXPHIL_E_MEMORY. */
exphil_status xph_json_parse(exphil_context *context, const char *text, size_t bytes, const char *label,
                             size_t base, xph_json **json, exphil_error *error);
void xph_json_free(xph_json *json);
int32_t xph_json_kind(const xph_json *json, int32_t at);
int32_t xph_json_count(const xph_json *json, int32_t at); /* of items or members; 0 for others */
int32_t xph_json_first(const xph_json *json, int32_t at); /* item or member, -1 */
int32_t xph_json_next(const xph_json *json, int32_t at);  /* of the same array or object, -1 */
const char *xph_json_label(const xph_json *json);
int32_t xph_json_parent(const xph_json *json, int32_t at);   /* -1 */
const char *xph_json_name(const xph_json *json, int32_t at); /* of a member; NULL for items */
const char *xph_json_text(const xph_json *json,
                          int32_t at); /* of a text, or a number as it was written; else NULL */
bool xph_json_true(const xph_json *json, int32_t at);
int32_t xph_json_find(const xph_json *json, int32_t object, const char *name); /* -1: there is none */

/* Members that must be there, else EXPHIL_E_FORMAT with the whole name ("heads[3].count") and what is
 * wrong. */
exphil_status xph_json_get(const xph_json *json, int32_t object, const char *name, int32_t kind, int32_t *at,
                           exphil_error *error);
exphil_status xph_json_get_text(const xph_json *json, int32_t object, const char *name, const char **text,
                                exphil_error *error);
exphil_status xph_json_get_int(const xph_json *json, int32_t object, const char *name, int64_t low,
                               int64_t high, int64_t *value, exphil_error *error);
exphil_status xph_json_get_double(const xph_json *json, int32_t object, const char *name, double *value,
                                  exphil_error *error);
/* A text of 16 lower-case hexadecimal digits: what JSON numbers cannot carry. */
exphil_status xph_json_get_hex(const xph_json *json, int32_t object, const char *name, uint64_t *value,
                               exphil_error *error);
/* An integer that is an item of an array. */
exphil_status xph_json_int_at(const xph_json *json, int32_t at, int64_t low, int64_t high, int64_t *value,
                              exphil_error *error);
/* EXPHIL_E_FORMAT about this value: "label: heads[3].count <what>". */
exphil_status xph_json_refuse(const xph_json *json, int32_t at, const char *what, exphil_error *error);

/* Bytes of the well-formed UTF-8 sequence at the start of text (Unicode 15, table 3-7), 0 when there is
 * none. left is at least 1. */
size_t xph_utf8_length(const void *text, size_t left);

#define XPH_HEX_TEXT 17
const char *xph_hex_text(char *text, uint64_t value); /* into text[XPH_HEX_TEXT]; returns text */
bool xph_hex_value(const char *text, uint64_t *value);

/* ---- writing JSON -------------------------------------------------------------------------------------- */

/* Text that grows in context memory. A failure sticks and comes out of end; name is NULL for items and the
 * top. The same calls give the same bytes: no white space, members in the order of the calls. */
typedef struct xph_json_out {
    exphil_context *context;
    char *text; /* ends with 0 */
    size_t bytes, capacity;
    exphil_status status;
} xph_json_out;
void xph_json_begin(xph_json_out *out, exphil_context *context);
void xph_json_open(xph_json_out *out, const char *name, char bracket); /* '{' or '[' */
void xph_json_close(xph_json_out *out, char bracket);                  /* '}' or ']' */
void xph_json_add_text(xph_json_out *out, const char *name, const char *text);
void xph_json_add_int(xph_json_out *out, const char *name, int64_t value);
void xph_json_add_double(xph_json_out *out, const char *name, double value);
void xph_json_add_hex(xph_json_out *out, const char *name, uint64_t value);
void xph_json_pad(xph_json_out *out, size_t base, size_t align); /* spaces until base + bytes is a multiple */
exphil_status xph_json_end(xph_json_out *out, exphil_error *error); /* drops everything when it fails */
void xph_json_drop(xph_json_out *out);

/* ---- writing Protocol Buffers (protobuf.c) ------------------------------------------------------------- */

/* Fields of a message, in context memory. A failure sticks and comes out of end. The same calls give the same
 * bytes. */
typedef struct xph_proto_out {
    exphil_context *context;
    unsigned char *data;
    size_t bytes, capacity;
    exphil_status status;
} xph_proto_out;
void xph_proto_begin(xph_proto_out *out, exphil_context *context);
void xph_proto_add_int(xph_proto_out *out, int32_t field, int64_t value); /* int64, and enumerations */
void xph_proto_add_float(xph_proto_out *out, int32_t field, float value);
void xph_proto_add_bytes(xph_proto_out *out, int32_t field, const void *data, size_t bytes);
void xph_proto_add_text(xph_proto_out *out, int32_t field, const char *text);
void xph_proto_add_length(xph_proto_out *out, int32_t field,
                          size_t bytes); /* so many bytes, which are elsewhere */
/* A message as a field: what is added until close, of which so many bytes more will follow from elsewhere. */
size_t xph_proto_open(xph_proto_out *out, int32_t field);
void xph_proto_close(xph_proto_out *out, size_t mark, size_t elsewhere);
exphil_status xph_proto_end(xph_proto_out *out, exphil_error *error); /* drops everything when it fails */
void xph_proto_drop(xph_proto_out *out);

/* ---- safetensors --------------------------------------------------------------------------------------- */

#define XPH_TENSORS_MOST_BYTES                                                                               \
  (sizeof(size_t) > 4 ? (size_t)((uint64_t)1 << 34) : SIZE_MAX / 2) /* of a file */
#define XPH_TENSORS_MOST     4096
#define XPH_TENSORS_RANK     4
#define XPH_TENSORS_NAME     128 /* with its end */
#define XPH_TENSORS_CHECKSUM "exphil.data_xxh64"

/* The element types of the format. */
enum {
    XPH_DTYPE_F64,
    XPH_DTYPE_F32,
    XPH_DTYPE_F16,
    XPH_DTYPE_BF16,
    XPH_DTYPE_I64,
    XPH_DTYPE_I32,
    XPH_DTYPE_I16,
    XPH_DTYPE_I8,
    XPH_DTYPE_U64,
    XPH_DTYPE_U32,
    XPH_DTYPE_U16,
    XPH_DTYPE_U8,
    XPH_DTYPE_BOOL,
    XPH_DTYPE_C64,
    XPH_DTYPE_F8_E5M2,
    XPH_DTYPE_F8_E4M3,
    XPH_DTYPE_F8_E8M0,
    XPH_DTYPE_F8_E4M3FNUZ,
    XPH_DTYPE_F8_E5M2FNUZ,
    XPH_DTYPE_F6_E2M3,
    XPH_DTYPE_F6_E3M2,
    XPH_DTYPE_F4,
    XPH_DTYPE_COUNT
};
const char *xph_dtype_name(int32_t dtype);

/* One tensor of a file. */
typedef struct xph_array {
    const char *name;
    int32_t dtype, rank;
    int64_t dim[XPH_TENSORS_RANK]; /* unused ones are 1 */
    const void *data;              /* little-endian, row-major; of any alignment when it was read */
    size_t bytes, begin;           /* begin: its place in the data of a file that was read */
} xph_array;

typedef struct xph_pair {
    const char *key, *value;
} xph_pair;

/* A file that was read. Tensors in the order of their data; they point into the memory that was given to parse, or that
 * load made: NULL before. */
typedef struct xph_tensors {
    exphil_context *context;
    xph_json *header;
    xph_array *tensor;
    int64_t count;
    size_t skip, data_bytes; /* the data begins at byte skip */
    xph_file file;           /* of open */
    xph_file_data data;      /* of load */
} xph_tensors;

/* A whole file in memory, which must outlive *tensors. Everything of the format is checked, and the
 * checksum where the metadata has one. label ("weights") stands in front of messages and is not copied. */
exphil_status xph_tensors_parse(exphil_context *context, const void *data, size_t bytes, const char *label,
                                xph_tensors *tensors, exphil_error *error);
/* The same in two steps, of a file: open reads and checks the header against the file's size, for which it takes little
 * memory, whatever the file says; load reads the data and checks the sum. In between the caller looks whether these are the
 * tensors it wants. path must outlive *tensors too. load does nothing where the data is there. */
exphil_status xph_tensors_open(exphil_context *context, const char *path, const char *label,
                               xph_tensors *tensors, exphil_error *error);
exphil_status xph_tensors_load(xph_tensors *tensors, exphil_error *error);
void xph_tensors_free(xph_tensors *tensors);
const xph_array *xph_tensors_find(const xph_tensors *tensors, const char *name); /* NULL: none */
const char *xph_tensors_metadata(const xph_tensors *tensors, const char *key);   /* NULL: none */

/* Begins "path" and adds a whole file, with the checksum among the metadata; the caller commits or
 * cancels. Canonical: the same tensors and pairs in any order give the same bytes. The data begins at a
 * multiple of 64 in the file, and each tensor in it at a multiple of the largest power of two, at most 64,
 * that divides its size. */
exphil_status xph_tensors_write(exphil_context *context, const xph_array *tensors, int64_t count,
                                const xph_pair *pairs, int64_t pair_count, const char *path,
                                xph_file_writer *writer, exphil_error *error);
/* Bytes of the header without metadata, and of the memory that writing takes. Their data is not looked at. */
exphil_status xph_tensors_write_bytes(exphil_context *context, const xph_array *tensors, int64_t count,
                                      size_t *header, size_t *memory, exphil_error *error);

/* ---- Zstandard frames (zstd.c) ------------------------------------------------------------------------ */

/* One thread at a time. */
typedef struct xph_zstd_decoder xph_zstd_decoder;
exphil_status xph_zstd_decoder_create(exphil_context *context, xph_zstd_decoder **decoder,
                                      exphil_error *error);
void xph_zstd_decoder_destroy(xph_zstd_decoder *decoder);
size_t xph_zstd_decoder_bytes(void);
/* One frame without a dictionary that fills stored[0, stored_bytes) and declares exactly `bytes` bytes, into
 * to. Allocates nothing. NULL, or what is wrong, as a static text. */
const char *xph_zstd_decode(xph_zstd_decoder *decoder, const uint8_t *stored, size_t stored_bytes,
                            uint8_t *to, size_t bytes);

/* One thread at a time, of `most` bytes at once. Bundled, it is in the library and its memory is the host's. Else
 * libzstd.so.1 is loaded, and takes its memory from the C library; EXPHIL_E_UNSUPPORTED: there is none. */
typedef struct xph_zstd_encoder xph_zstd_encoder;
exphil_status xph_zstd_encoder_create(exphil_context *context, int level, size_t most,
                                      xph_zstd_encoder **encoder, exphil_error *error);
void xph_zstd_encoder_destroy(xph_zstd_encoder *encoder);
/* capacity: at least bytes + bytes/128 + 512. */
exphil_status xph_zstd_encode(xph_zstd_encoder *encoder, const uint8_t *from, size_t bytes, uint8_t *to,
                              size_t capacity, size_t *stored_bytes, exphil_error *error);

#endif
