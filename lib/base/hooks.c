/* Making and ending a context: references, the copy of the hooks, the check for forked children. */
#include "base/hooks.h"

#include <string.h>

/* ---- hooks of the configuration ------------------------------------------------------------------------ */

static void *plain_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    return xph_pages_alloc(bytes, align);
}

static void plain_free(void *user, void *pointer, size_t bytes)
{
    (void)user;
    (void)bytes;
    xph_pages_free(pointer);
}

static exphil_status take_allocator(const exphil_allocator *given, exphil_allocator *taken,
                                    exphil_error *error)
{
    *taken = (exphil_allocator){.struct_size = sizeof *taken, .alloc = plain_alloc, .free = plain_free};
    if (!given) return EXPHIL_OK;
    exphil_allocator hook = {0};
    XPH_TRY(XPH_TAKE(exphil_allocator, &hook, given, error));
    if (!hook.alloc || !hook.free) {
        return xph_fail(error, EXPHIL_E_INVALID, "allocator needs both alloc and free");
    }
    *taken = hook;
    return EXPHIL_OK;
}

static exphil_status take_io(const exphil_io *given, exphil_io *taken, exphil_error *error)
{
    *taken = xph_system_io;
    if (!given) return EXPHIL_OK;
    exphil_io io = {0};
    XPH_TRY(XPH_TAKE(exphil_io, &io, given, error));
    bool whole = io.kind && io.open && io.size && io.read && io.write && io.sync && io.close && io.rename &&
                 io.remove && io.sync_folder;
    if (!whole)
        return xph_fail(error, EXPHIL_E_INVALID, "io lacks a function; only map, unmap and list may be NULL");
    if (!io.map != !io.unmap) return xph_fail(error, EXPHIL_E_INVALID, "io has only one of map and unmap");
    *taken = io;
    return EXPHIL_OK;
}

static exphil_status take_executor(const exphil_executor *given, exphil_executor *taken, exphil_error *error)
{
    *taken = (exphil_executor){0};
    if (!given) return EXPHIL_OK;
    exphil_executor hook = {0};
    XPH_TRY(XPH_TAKE(exphil_executor, &hook, given, error));
    if (!hook.parallel_for) return xph_fail(error, EXPHIL_E_INVALID, "executor.parallel_for is NULL");
    if (hook.workers < 1 || hook.workers > XPH_MOST_WORKERS) {
        return xph_fail(error, EXPHIL_E_INVALID, "executor.workers is %d, must be in [1, %d]",
                        (int)hook.workers, XPH_MOST_WORKERS);
    }
    if (hook.flags)
        return xph_fail(error, EXPHIL_E_INVALID, "executor.flags is %u, must be 0", (unsigned)hook.flags);
    *taken = hook;
    return EXPHIL_OK;
}

#define LEVELS "ref, avx2, avx2vnni, avx512, avx512vnni, avx512bf16, neon, neondot, simd128 or relaxed"

static bool isa_of(const char *name, xph_isa *isa)
{
    for (xph_isa level = XPH_ISA_REF; level < XPH_ISA_COUNT; level++) {
        if (strcmp(name, xph_isa_name(level)) == 0) {
            *isa = level;
            return true;
        }
    }
    return false;
}

/* What the configuration asks for must be there; the environment only caps it, for finding faults. */
static exphil_status take_isa(const char *asked, xph_isa *isa, exphil_error *error)
{
    xph_isa best = xph_cpu_detect(), level = best;
    if (asked && !isa_of(asked, &level)) {
        return xph_fail(error, EXPHIL_E_INVALID, "cpu_isa is \"%s\", must be " LEVELS, asked);
    }
    if (!xph_cpu_has(level)) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "cpu_isa is \"%s\", but this processor and system offer \"%s\"", asked,
                        xph_isa_name(best));
    }
    char cap[64];
    xph_isa most = level;
    if (xph_environment("EXPHIL_CPU_ISA", cap, sizeof cap) > 0 && !isa_of(cap, &most)) {
        return xph_fail(error, EXPHIL_E_INVALID, "EXPHIL_CPU_ISA is \"%s\", must be " LEVELS, cap);
    }
    while (!xph_cpu_has(level) || !xph_isa_within(level, most)) level--;
    *isa = level;
    return EXPHIL_OK;
}

static exphil_status take_hooks(const exphil_context_config *config, exphil_context *context,
                                exphil_error *error)
{
    XPH_TRY(take_allocator(config->allocator, &context->allocator, error));
    XPH_TRY(take_io(config->io, &context->io, error));
    XPH_TRY(take_executor(config->executor, &context->executor, error));
    XPH_TRY(take_isa(config->cpu_isa, &context->isa, error));
    if (config->threads < 0 || config->threads > XPH_MOST_WORKERS) {
        return xph_fail(error, EXPHIL_E_INVALID, "threads is %d, must be in [0, %d]", (int)config->threads,
                        XPH_MOST_WORKERS);
    }
    if (config->log_level < 0 || config->log_level > EXPHIL_LOG_DEBUG) {
        return xph_fail(error, EXPHIL_E_INVALID, "log_level is %d, must be in [0, %d]",
                        (int)config->log_level, EXPHIL_LOG_DEBUG);
    }
    context->threads = config->threads ? config->threads : xph_cpu_count();
    if (context->threads > XPH_MOST_WORKERS) context->threads = XPH_MOST_WORKERS;
    context->log = config->log;
    context->log_user = config->log_user;
    context->log_level = config->log_level ? config->log_level : EXPHIL_LOG_WARNING;
    context->cancel = config->cancel;
    context->cancel_user = config->cancel_user;
    return EXPHIL_OK;
}

/* ---- fork ------------------------------------------------------------------------------------------------ */

bool xph_forked(const exphil_context *context)
{
    if (context->birth) return *context->birth == 0;
    return xph_process_number() != context->pid;
}

exphil_status xph_context_check(const exphil_context *context, exphil_error *error)
{
    if (!context) return xph_fail(error, EXPHIL_E_INVALID, "context is NULL");
    if (xph_forked(context)) {
        return xph_fail(error, EXPHIL_E_STATE,
                        "the context was made before fork(); make a new one in the child");
    }
    return EXPHIL_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static exphil_status make(const exphil_context *draft, exphil_context **context, exphil_error *error)
{
    exphil_context *made = draft->allocator.alloc(draft->allocator.user, sizeof *made, 64);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = *draft;
    made->references = 1;
    made->used = made->peak = sizeof *made;
    made->allocations = 1;
    made->pid = xph_process_number();
    made->birth = xph_birth_mark();
    if (xph_lock_begin(&made->pool_lock) != 0 || xph_lock_begin(&made->queue.lock) != 0) {
        draft->allocator.free(draft->allocator.user, made, sizeof *made);
        return xph_fail(error, EXPHIL_E_MEMORY, "could not make a lock");
    }
    *context = made;
    return EXPHIL_OK;
}

exphil_status xph_context_make(const exphil_context_config *config, exphil_context **context,
                               exphil_error *error)
{
    exphil_context draft = {.references = 1};
    XPH_TRY(take_hooks(config, &draft, error));
    return make(&draft, context, error);
}

exphil_status xph_context_like(const exphil_context *of, exphil_context **context, exphil_error *error)
{
    const exphil_context draft = {.allocator = of->allocator,
                                  .io = of->io,
                                  .executor = of->executor,
                                  .threads = of->threads,
                                  .isa = of->isa,
                                  .log_level = of->log_level};
    return make(&draft, context, error);
}

void xph_context_hooks(const exphil_context *context, exphil_allocator *allocator, exphil_io *io)
{
    *allocator = context->allocator;
    *io = context->io;
}

void xph_context_attach(exphil_context *context, void *attached, void (*close)(void *attached))
{
    context->attached = attached;
    context->close = close;
}

void *xph_context_attached(const exphil_context *context)
{
    return context->attached;
}

exphil_context *xph_context_retain(exphil_context *context)
{
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

/* In a forked child there is nothing to end: the threads and the driver live in the parent only, and their locks may
 * be held for ever. The memory stays. */
void xph_context_release(exphil_context *context)
{
    if (!context || xph_forked(context)) return;
    if (atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1) return;
    xph_pool_destroy(context);
    if (context->close) context->close(context->attached);
    xph_log_flush(context);
    xph_lock_end(&context->pool_lock);
    xph_lock_end(&context->queue.lock);
    xph_birth_mark_free(context->birth);
    exphil_allocator allocator = context->allocator;
    allocator.free(allocator.user, context, sizeof *context);
}

xph_isa xph_context_isa(const exphil_context *context)
{
    return context->isa;
}

bool xph_cancelled(exphil_context *context)
{
    return context->cancel && context->cancel(context->cancel_user);
}
