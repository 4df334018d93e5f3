/* Types, names, sizes and order of tensors in safetensors files (huggingface/safetensors, README and
 * tensor.rs). */
#include "file/tensor_rules.h"

static const struct {
    const char *name;
    size_t bits;
} types[XPH_DTYPE_COUNT] = {
    [XPH_DTYPE_F64] = {"F64", 64},
    [XPH_DTYPE_F32] = {"F32", 32},
    [XPH_DTYPE_F16] = {"F16", 16},
    [XPH_DTYPE_BF16] = {"BF16", 16},
    [XPH_DTYPE_I64] = {"I64", 64},
    [XPH_DTYPE_I32] = {"I32", 32},
    [XPH_DTYPE_I16] = {"I16", 16},
    [XPH_DTYPE_I8] = {"I8", 8},
    [XPH_DTYPE_U64] = {"U64", 64},
    [XPH_DTYPE_U32] = {"U32", 32},
    [XPH_DTYPE_U16] = {"U16", 16},
    [XPH_DTYPE_U8] = {"U8", 8},
    [XPH_DTYPE_BOOL] = {"BOOL", 8},
    [XPH_DTYPE_C64] = {"C64", 64},
    [XPH_DTYPE_F8_E5M2] = {"F8_E5M2", 8},
    [XPH_DTYPE_F8_E4M3] = {"F8_E4M3", 8},
    [XPH_DTYPE_F8_E8M0] = {"F8_E8M0", 8},
    [XPH_DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [XPH_DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [XPH_DTYPE_F6_E2M3] = {"F6_E2M3", 6},
    [XPH_DTYPE_F6_E3M2] = {"F6_E3M2", 6},
    [XPH_DTYPE_F4] = {"F4", 4},
};

const char *xph_dtype_name(int32_t dtype)
{
    return dtype < 0 || dtype >= XPH_DTYPE_COUNT ? "?" : types[dtype].name;
}

int32_t xph_dtype_find(const char *name)
{
    for (int32_t i = 0; i < XPH_DTYPE_COUNT; i++) {
        if (strcmp(name, types[i].name) == 0) return i;
    }
    return -1;
}

bool xph_tensor_name_good(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (name[i] < 0x20 || name[i] > 0x7E) return false;
    }
    return length > 0 && length < XPH_TENSORS_NAME;
}

bool xph_tensor_bytes(int32_t dtype, int32_t rank, const int64_t *dim, size_t *bytes)
{
    size_t count = 1, bits;
    for (int32_t i = 0; i < rank; i++) {
        if (dim[i] < 0 || !xph_size_mul(count, (size_t)dim[i], &count)) return false;
    }
    if (!xph_size_mul(count, types[dtype].bits, &bits) || bits % 8) return false;
    *bytes = bits / 8;
    return true;
}

/* Moves the tensor at root down until no child comes after it. */
static void sift(xph_array *tensor, int64_t root, int64_t count, xph_tensor_less less)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && less(&tensor[child], &tensor[child + 1])) child++;
        if (!less(&tensor[root], &tensor[child])) return;
        xph_array swap = tensor[root];
        tensor[root] = tensor[child];
        tensor[child] = swap;
    }
}

void xph_tensor_sort(xph_array *tensor, int64_t count, xph_tensor_less less)
{
    for (int64_t root = count / 2 - 1; root >= 0; root--) sift(tensor, root, count, less);
    for (int64_t end = count - 1; end > 0; end--) {
        xph_array swap = tensor[0];
        tensor[0] = tensor[end];
        tensor[end] = swap;
        sift(tensor, 0, end, less);
    }
}
