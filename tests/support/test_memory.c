/* The counting and failing allocator, and contexts. */
#include "test.h"

#include <stdlib.h>

#define MAGIC 0x65787068696C6D21u

/* Written in front of each piece, align bytes before it. */
typedef struct header {
    uint64_t magic;
    size_t bytes, align;
} header;

static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    test_memory *memory = user;
    long long call = atomic_fetch_add(&memory->calls, 1) + 1;
    if (memory->fail_at && (call == memory->fail_at || (memory->fail_on && call > memory->fail_at)))
        return NULL;
    if (!bytes || align < sizeof(header) || (align & (align - 1))) {
        atomic_fetch_add(&memory->wrong, 1);
        return NULL;
    }
    if (memory->limit_bytes && (long long)bytes > memory->limit_bytes - atomic_load(&memory->live_bytes))
        return NULL;
    char *raw = test_aligned(align, bytes + align);
    if (!raw) return NULL;
    header head = {MAGIC, bytes, align};
    memcpy(raw + align - sizeof head, &head, sizeof head);
    memset(raw + align, 0xA5, bytes);
    atomic_fetch_add(&memory->live, 1);
    atomic_fetch_add(&memory->live_bytes, (long long)bytes);
    return raw + align;
}

static void counted_free(void *user, void *pointer, size_t bytes)
{
    test_memory *memory = user;
    header head;
    memcpy(&head, (char *)pointer - sizeof head, sizeof head);
    if (head.magic != MAGIC || head.bytes != bytes) {
        atomic_fetch_add(&memory->wrong, 1);
        return;
    }
    memset(pointer, 0x5A, bytes);
    atomic_fetch_sub(&memory->live, 1);
    atomic_fetch_sub(&memory->live_bytes, (long long)bytes);
    test_aligned_free((char *)pointer - head.align);
}

void test_memory_init(test_memory *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->hook = (exphil_allocator){sizeof memory->hook, memory, counted_alloc, counted_free};
}

exphil_context *test_context(test_memory *memory, test_io *io, int32_t threads)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    if (memory) config.allocator = &memory->hook;
    if (io) config.io = &io->hook;
    config.threads = threads;
    config.device = getenv("EXPHIL_TEST_DEVICE");
    config.backend_path = getenv("EXPHIL_TEST_BACKEND");
    if (exphil_context_create(&config, &context, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return context;
}
