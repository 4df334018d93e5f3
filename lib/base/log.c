/* The host's log. Lines of worker threads wait in a queue until a thread that called the library delivers
 * them: a host may hold a lock (Python's, say) that its callback needs, so no other thread may call it. */
#include "base/hooks.h"

#include <stdarg.h>
#include <stdio.h>

static bool heard(const exphil_context *context, exphil_log_level level)
{
    return context->log && level <= context->log_level;
}

void xph_log(exphil_context *context, exphil_log_level level, const char *format, ...)
{
    if (!heard(context, level)) return;
    char line[XPH_LOG_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    context->log(context->log_user, level, line);
}

void xph_log_from_worker(exphil_context *context, exphil_log_level level, const char *format, ...)
{
    if (!heard(context, level)) return;
    char line[XPH_LOG_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    xph_log_queue *queue = &context->queue;
    xph_lock_take(&queue->lock);
    if (queue->count < XPH_LOG_QUEUE) {
        int32_t slot = (queue->first + queue->count++) % XPH_LOG_QUEUE;
        queue->level[slot] = level;
        memcpy(queue->line[slot], line, sizeof line);
    } else {
        queue->dropped++;
    }
    xph_lock_leave(&queue->lock);
}

/* Takes one line out; the callback then runs with no lock held. */
static bool take(xph_log_queue *queue, exphil_log_level *level, char *line)
{
    bool taken = false;
    xph_lock_take(&queue->lock);
    if (queue->count) {
        *level = queue->level[queue->first];
        memcpy(line, queue->line[queue->first], XPH_LOG_LINE);
        queue->first = (queue->first + 1) % XPH_LOG_QUEUE;
        queue->count--;
        taken = true;
    } else if (queue->dropped) {
        *level = EXPHIL_LOG_WARNING;
        snprintf(line, XPH_LOG_LINE, "%llu log lines of worker threads were dropped",
                 (unsigned long long)queue->dropped);
        queue->dropped = 0;
        taken = true;
    }
    xph_lock_leave(&queue->lock);
    return taken;
}

void xph_log_flush(exphil_context *context)
{
    if (!context->log) return;
    exphil_log_level level;
    char line[XPH_LOG_LINE];
    while (take(&context->queue, &level, line)) {
        if (level <= context->log_level) context->log(context->log_user, level, line);
    }
}
