/* Tensors of a model by name, and DLPack both ways. */
#include "context_case.h"
#include "model_case.h"

#include "model/dlpack_abi.h"

#include <math.h>
#include <stdlib.h>

static exphil_model *make(int32_t type)
{
    exphil_model_config config = model_case_config("mamba attention", type);
    return model_case_create(context, &config);
}

#define MATRIX "blocks.0.in_proj.weight"

static exphil_tensor_info find(const exphil_model *model, const char *name)
{
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
        if (strcmp(info.name, name) == 0) return info;
    }
    fail_msg("no tensor %s", name);
    return info;
}

static uint64_t weights_hash(const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_int_equal(exphil_model_query(model, &info, NULL), EXPHIL_OK);
    return info.weights_hash;
}

static void all_are_listed(void **state)
{
    exphil_model *model = make(EXPHIL_TYPE_F32);
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_tensor_info tensor = EXPHIL_TENSOR_INFO_INIT;
    int64_t parameters = 0;
    assert_int_equal(exphil_model_query(model, &info, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < info.tensor_count; i++) {
        assert_int_equal(exphil_model_tensor_info(model, i, &tensor, &error), EXPHIL_OK);
        int64_t count = tensor.dim[0] * tensor.dim[1] * tensor.dim[2] * tensor.dim[3];
        assert_int_equal(tensor.size_bytes, (uint64_t)count * 4);
        assert_int_equal(tensor.type, EXPHIL_TYPE_F32);
        for (int32_t d = tensor.rank; d < 4; d++) assert_int_equal(tensor.dim[d], 1);
        parameters += count;
    }
    assert_int_equal(parameters, info.parameter_count);
    assert_int_equal(exphil_model_tensor_info(model, -1, &tensor, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_info(model, info.tensor_count, &tensor, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_info(model, 0, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_info(NULL, 0, &tensor, &error), EXPHIL_E_INVALID);
    exphil_model_destroy(model);
}

static void values_out_and_in(void **state)
{
    for (int32_t type = EXPHIL_TYPE_F32; type <= EXPHIL_TYPE_F64; type++) {
        exphil_model *model = make(type);
        exphil_tensor_info info = find(model, MATRIX);
        uint64_t before = weights_hash(model);
        unsigned char *values = malloc(info.size_bytes), *again = malloc(info.size_bytes);
        assert_int_equal(exphil_model_tensor_get(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
        values[0] ^= 1;
        assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
        assert_int_equal(exphil_model_tensor_get(model, MATRIX, again, info.size_bytes, NULL), EXPHIL_OK);
        assert_memory_equal(values, again, info.size_bytes);
        assert_true(weights_hash(model) != before);
        values[0] ^= 1;
        assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
        assert_true(weights_hash(model) == before);
        free(values);
        free(again);
        exphil_model_destroy(model);
    }
}

static void refusals(void **state)
{
    exphil_model *model = make(EXPHIL_TYPE_F32);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_tensor_info info = find(model, MATRIX);
    uint64_t before = weights_hash(model);
    float *values = malloc(info.size_bytes);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, values, info.size_bytes - 1, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, NULL, info.size_bytes, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_get(model, "nothing", values, info.size_bytes, &error),
                     EXPHIL_E_INVALID);
    assert_string_equal(error.message, "the model has no tensor \"nothing\"");
    assert_int_equal(exphil_model_tensor_get(model, NULL, values, info.size_bytes, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, values, info.size_bytes, &error), EXPHIL_OK);
    values[5] = (float)NAN;
    assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, &error),
                     EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "tensor \"" MATRIX "\" would not be finite at element 5");
    values[5] = 0;
    exphil_model *child = xph_model_retain(model);
    assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, &error), EXPHIL_E_STATE);
    xph_model_release(child);
    assert_true(weights_hash(model) == before);
    assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, &error), EXPHIL_OK);
    free(values);
    exphil_model_destroy(model);
}

/* What sessions use is made anew after a change. */
static void packed_form_follows(void **state)
{
    exphil_model *model = make(EXPHIL_TYPE_F32);
    exphil_tensor_info info = find(model, MATRIX);
    size_t bytes = xph_model_shape_of(model)->packed_bytes;
    const void *packed = NULL;
    assert_true(bytes > 0);
    assert_int_equal(xph_model_packed(model, &packed, NULL), EXPHIL_OK);
    unsigned char *old = malloc(bytes);
    memcpy(old, packed, bytes);
    float *values = malloc(info.size_bytes);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
    values[0] += 1.0f;
    assert_int_equal(exphil_model_tensor_set(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
    assert_int_equal(xph_model_packed(model, &packed, NULL), EXPHIL_OK);
    assert_memory_not_equal(old, packed, bytes);
    free(old);
    free(values);
    exphil_model_destroy(model);
}

/* ---- DLPack -------------------------------------------------------------------------------------------- */

static void check_export(const exphil_model *model, const xph_dlpack_tensor *tensor, int32_t type)
{
    exphil_tensor_info info = find(model, MATRIX);
    unsigned char *values = malloc(info.size_bytes);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, values, info.size_bytes, NULL), EXPHIL_OK);
    assert_memory_equal((const char *)tensor->data + tensor->offset_bytes, values, info.size_bytes);
    assert_int_equal(tensor->device_type, 1);
    assert_int_equal(tensor->device_id, 0);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->type_code, 2);
    assert_int_equal(tensor->type_bits, type == EXPHIL_TYPE_F64 ? 64 : 32);
    assert_int_equal(tensor->type_lanes, 1);
    assert_memory_equal(tensor->shape, info.dim, 2 * sizeof(int64_t));
    assert_int_equal(tensor->strides[0], info.dim[1]);
    assert_int_equal(tensor->strides[1], 1);
    assert_int_equal((uintptr_t)tensor->data % 64, 0);
    free(values);
}

static void exported_tensors_keep_the_model(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    for (int32_t type = EXPHIL_TYPE_F32; type <= EXPHIL_TYPE_F64; type++) {
        exphil_context *own = test_context(&memory, NULL, 1);
        exphil_model_config config = model_case_config("mamba attention", type);
        exphil_model *model = model_case_create(own, &config);
        struct DLManagedTensor *plain = NULL;
        struct DLManagedTensorVersioned *versioned = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        assert_int_equal(exphil_model_tensor_to_dlpack(model, MATRIX, &plain, &error), EXPHIL_OK);
        assert_int_equal(exphil_model_tensor_to_dlpack_versioned(model, MATRIX, &versioned, &error),
                         EXPHIL_OK);
        check_export(model, &plain->tensor, type);
        check_export(model, &versioned->tensor, type);
        assert_ptr_equal(plain->tensor.data, versioned->tensor.data); /* no copies */
        assert_int_equal(versioned->major, 1);
        assert_int_equal(versioned->flags, 1);
        double zero[2] = {0, 0};
        assert_int_equal(exphil_model_tensor_set(model, "norm.bias", zero, 1, &error), EXPHIL_E_INVALID);
        exphil_tensor_info info = find(model, "norm.bias");
        void *values = calloc(1, info.size_bytes);
        assert_int_equal(exphil_model_tensor_set(model, "norm.bias", values, info.size_bytes, &error),
                         EXPHIL_E_STATE);
        free(values);
        exphil_model_destroy(model);
        exphil_context_destroy(own); /* all still there: */
        plain->deleter(plain);
        const volatile unsigned char *first = versioned->tensor.data;
        assert_true(*first == *first);
        versioned->deleter(versioned);
        assert_memory_clean(&memory);
    }
    exphil_model *model = make(EXPHIL_TYPE_F32);
    struct DLManagedTensor *plain = NULL;
    assert_int_equal(exphil_model_tensor_to_dlpack(model, "x", &plain, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_to_dlpack(model, MATRIX, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_tensor_to_dlpack_versioned(model, MATRIX, NULL, NULL), EXPHIL_E_INVALID);
    assert_null(plain);
    exphil_model_destroy(model);
}

/* A tensor of the shape of MATRIX over values, which the caller frees. */
static struct DLManagedTensor lend(const exphil_tensor_info *info, void *values, uint8_t bits, int64_t *shape,
                                   int64_t *strides)
{
    shape[0] = info->dim[0];
    shape[1] = info->dim[1];
    return (struct DLManagedTensor){.tensor = {.data = values,
                                               .device_type = 1,
                                               .rank = 2,
                                               .type_code = 2,
                                               .type_bits = bits,
                                               .type_lanes = 1,
                                               .shape = shape,
                                               .strides = strides}};
}

static void with_any_strides(void **state)
{
    exphil_model *model = make(EXPHIL_TYPE_F32);
    exphil_tensor_info info = find(model, MATRIX);
    int64_t rows = info.dim[0], columns = info.dim[1], count = rows * columns, shape[2],
            strides[2] = {1, rows};
    double *wide = malloc((size_t)count * sizeof *wide);
    float *single = malloc((size_t)count * sizeof *single), *got = malloc(info.size_bytes);
    for (int64_t i = 0; i < count; i++) {
        single[i] = (float)i;
        wide[i] = (double)i;
    }
    /* row-major, then transposed, then backwards */
    struct DLManagedTensor tensor = lend(&info, single, 32, shape, NULL);
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &tensor, NULL), EXPHIL_OK);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, got, info.size_bytes, NULL), EXPHIL_OK);
    assert_memory_equal(got, single, info.size_bytes);
    tensor = lend(&info, wide, 64, shape, strides);
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &tensor, NULL), EXPHIL_OK);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, got, info.size_bytes, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < count; i++) assert_true(got[i] == (float)(i / columns + i % columns * rows));
    strides[0] = -columns;
    strides[1] = -1;
    tensor = lend(&info, single, 32, shape, strides);
    tensor.tensor.offset_bytes = (uint64_t)(count - 1) * sizeof *single;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &tensor, NULL), EXPHIL_OK);
    assert_int_equal(exphil_model_tensor_get(model, MATRIX, got, info.size_bytes, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < count; i++) assert_true(got[i] == (float)(count - 1 - i));
    free(wide);
    free(single);
    free(got);
    exphil_model_destroy(model);
}

static void imports_are_checked(void **state)
{
    exphil_model *model = make(EXPHIL_TYPE_F32);
    exphil_tensor_info info = find(model, MATRIX);
    exphil_error error = EXPHIL_ERROR_INIT;
    uint64_t before = weights_hash(model);
    int64_t shape[2];
    double *wide = calloc((size_t)(info.dim[0] * info.dim[1]), sizeof *wide);
    struct DLManagedTensor good = lend(&info, wide, 64, shape, NULL), bad = good;
    bad.tensor.device_type = 2;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_UNSUPPORTED);
    bad = good;
    bad.tensor.type_code = 0;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_UNSUPPORTED);
    bad = good;
    bad.tensor.type_bits = 16;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_UNSUPPORTED);
    bad = good;
    bad.tensor.rank = 1;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_INVALID);
    bad = good;
    bad.tensor.data = NULL;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_INVALID);
    bad = good;
    bad.tensor.shape = NULL;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &bad, &error), EXPHIL_E_INVALID);
    shape[1]++;
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &good, &error), EXPHIL_E_INVALID);
    shape[1]--;
    wide[7] = 1e39; /* more than a float holds */
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, &good, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "tensor \"" MATRIX "\" would not be finite at element 7");
    assert_int_equal(exphil_model_tensor_from_dlpack(model, MATRIX, NULL, &error), EXPHIL_E_INVALID);
    assert_true(weights_hash(model) == before);
    free(wide);
    exphil_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_listed),
        cmocka_unit_test(values_out_and_in),
        cmocka_unit_test(refusals),
        cmocka_unit_test(packed_form_follows),
        cmocka_unit_test(exported_tensors_keep_the_model),
        cmocka_unit_test(with_any_strides),
        cmocka_unit_test(imports_are_checked),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
