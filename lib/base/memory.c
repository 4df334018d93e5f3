/* Memory of a context: the host's allocator, 64 bytes aligned, counted. */
#include "base/hooks.h"

#include <string.h>

#define ALIGN 64 /* a cache line, and the widest vector */

/* The hook never sees a size of 0. */
static size_t asked(size_t bytes)
{
    return bytes ? bytes : 1;
}

static void count(exphil_context *context, size_t bytes)
{
    uint64_t used = atomic_fetch_add_explicit(&context->used, bytes, memory_order_relaxed) + bytes;
    uint64_t peak = atomic_load_explicit(&context->peak, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak_explicit(
                              &context->peak, &peak, used, memory_order_relaxed, memory_order_relaxed)) {
    }
    atomic_fetch_add_explicit(&context->allocations, 1, memory_order_relaxed);
}

void *xph_alloc(exphil_context *context, size_t bytes)
{
    bytes = asked(bytes);
    if (bytes > PTRDIFF_MAX) return NULL;
    void *pointer = context->allocator.alloc(context->allocator.user, bytes, ALIGN);
    if (pointer) count(context, bytes);
    return pointer;
}

void *xph_calloc(exphil_context *context, size_t count_of, size_t bytes)
{
    size_t total;
    if (!xph_size_mul(count_of, bytes, &total)) return NULL;
    void *pointer = xph_alloc(context, total);
    if (pointer) memset(pointer, 0, total);
    return pointer;
}

void xph_free(exphil_context *context, void *pointer, size_t bytes)
{
    if (!pointer) return;
    atomic_fetch_sub_explicit(&context->used, asked(bytes), memory_order_relaxed);
    context->allocator.free(context->allocator.user, pointer, asked(bytes));
}

void *xph_cut(xph_cutter *cutter, int64_t count, int64_t width, size_t element)
{
    size_t bytes, end;
    const bool fits = (int64_t)(size_t)count == count && (int64_t)(size_t)width == width;
    if (!fits || !xph_size_mul((size_t)count, (size_t)width, &bytes) ||
        !xph_size_mul(bytes, element, &bytes) || !xph_size_align(bytes, ALIGN, &bytes) ||
        !xph_size_add(cutter->at, bytes, &end)) {
        cutter->at = SIZE_MAX;
        return NULL;
    }
    void *part = cutter->base ? cutter->base + cutter->at : NULL;
    cutter->at = end;
    return part;
}

void xph_context_host_memory(const exphil_context *context, exphil_memory_info *info)
{
    info->host_used_bytes = atomic_load(&context->used);
    info->host_peak_bytes = atomic_load(&context->peak);
    info->host_allocations = atomic_load(&context->allocations);
}
