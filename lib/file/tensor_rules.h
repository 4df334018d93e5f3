/* What the reader and the writer of safetensors files agree on. Private to lib/file. */
#ifndef XPH_FILE_TENSOR_RULES_H
#define XPH_FILE_TENSOR_RULES_H

#include "file/file.h"

#define XPH_TENSORS_ALIGN 64

/* -1: not a type of the format. */
int32_t xph_dtype_find(const char *name);
/* 1..127 printable ASCII characters. */
bool xph_tensor_name_good(const char *name);
/* Bytes that the shape and type stand for; false: more than a size_t counts, or not whole bytes. */
bool xph_tensor_bytes(int32_t dtype, int32_t rank, const int64_t *dim, size_t *bytes);

/* Heap sort: no recursion, no memory. */
typedef bool (*xph_tensor_less)(const xph_array *a, const xph_array *b);
void xph_tensor_sort(xph_array *tensor, int64_t count, xph_tensor_less less);

#endif
