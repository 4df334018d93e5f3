/* Many hours of play at once: EXPHIL_SOAK_FRAMES frames (200,000; `tools/test soak` asks for 10,000,000, which are 46 hours
 * at 60 Hz) are streamed without an allocation, a lock or a system call, memory does not grow, and a run that is cut into
 * ten by saving, ending the session and restoring gives the same bits. */
#include "play_case.h"
#include "traps.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(EXPHIL_TEST_FEWER) && !defined(EXPHIL_SANITIZE)
enum { FRAMES = 20000 };
#else
enum { FRAMES = 200000 };
#endif
enum { HEADS = 3, LOGITS = 12, CUTS = 10, GROWTH = 64 * 1024 };

static int64_t frames_wanted(void)
{
    const char *given = getenv("EXPHIL_SOAK_FRAMES");
    long long frames = given ? strtoll(given, NULL, 10) : 0;
    return frames >= CUTS ? frames : FRAMES;
}

typedef struct soak {
    test_memory memory;
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    play_frames *f;
    xph_hasher hasher;
} soak;

static void soak_make(soak *s)
{
    *s = (soak){.session = NULL};
    test_memory_init(&s->memory);
    s->context = test_context(&s->memory, NULL, 1);
    exphil_model_config config = model_case_config("mamba attention lstm", EXPHIL_TYPE_F32);
    config.hidden = 16;
    s->model = play_model(s->context, &config, 0.1);
    s->f = play_frames_make(s->model, 1, 4096, 3);
    xph_hash_begin(&s->hasher);
}

static void soak_end(soak *s)
{
    exphil_session_destroy(s->session);
    play_frames_free(s->f);
    exphil_model_destroy(s->model);
    exphil_context_destroy(s->context);
    assert_memory_clean(&s->memory);
}

static void begin(soak *s)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.seed = 5;
    s->session = play_session(s->model, &how);
}

/* Nothing of cmocka in here: there may be no system calls. */
static bool stream(soak *s, int64_t first, int64_t end)
{
    bool fine = true;
    int32_t action[HEADS];
    float logits[LOGITS];
    for (int64_t t = first; t < end; t++) {
        int64_t row = t % 4096;
        fine &= exphil_session_step_row(s->session, s->f->floats + row * 13, s->f->ids + row * 2, NULL,
                                        action) == EXPHIL_OK;
        fine &= exphil_session_logits(s->session, 0, logits, LOGITS) == EXPHIL_OK;
        xph_hash_add(&s->hasher, action, sizeof action);
        xph_hash_add(&s->hasher, logits, sizeof logits);
    }
    return fine;
}

static uint64_t digest_of(const soak *s)
{
    return xph_hash_end(&s->hasher);
}

static void one_long_run(uint64_t *digest)
{
    soak s;
    int64_t frames = frames_wanted();
    soak_make(&s);
    begin(&s);
    assert_true(stream(&s, 0, frames / 100));
    (void)test_resident_bytes(); /* its own buffers are there from here on */
    int64_t resident = test_resident_bytes();
    long long before[] = {atomic_load(&s.memory.calls), atomic_load(&trap_locks), atomic_load(&trap_mallocs)};
    bool fine = stream(&s, frames / 100, frames);
    long long after[] = {atomic_load(&s.memory.calls), atomic_load(&trap_locks), atomic_load(&trap_mallocs)};
    long grown = (long)(test_resident_bytes() - resident);
    assert_true(fine);
    for (int i = 0; i < 3; i++) assert_int_equal(after[i], before[i]);
#ifndef EXPHIL_SANITIZE /* whose own tables grow */
    assert_true(resident > 0);
    if (grown > GROWTH) fail_msg("%ld bytes more after %lld frames", grown, (long long)frames);
#endif
    *digest = digest_of(&s);
    print_message("%lld frames, %ld bytes more, digest %016llx\n", (long long)frames, grown,
                  (unsigned long long)*digest);
    soak_end(&s);
}

static void cut_into_ten(uint64_t *digest)
{
    soak s;
    int64_t frames = frames_wanted();
    soak_make(&s);
    begin(&s);
    size_t bytes = exphil_session_state_size(s.session);
    void *block = malloc(bytes);
    for (int64_t cut = 0; cut < CUTS; cut++) {
        assert_true(stream(&s, frames * cut / CUTS, frames * (cut + 1) / CUTS));
        assert_int_equal(exphil_session_state_save(s.session, 0, block, bytes), EXPHIL_OK);
        exphil_session_destroy(s.session);
        begin(&s);
        assert_int_equal(exphil_session_state_restore(s.session, 0, block, bytes), EXPHIL_OK);
    }
    free(block);
    *digest = digest_of(&s);
    soak_end(&s);
}

static void memory_stays_and_cuts_do_not_show(void **state)
{
    uint64_t one = 0, cut = 1;
    one_long_run(&one);
    cut_into_ten(&cut);
    assert_true(one == cut);
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

static int live(void *unused)
{
    soak s;
    soak_make(&s);
    begin(&s);
    bool fine = stream(&s, 0, 100);
    if (!traps_give_up_system_calls()) return TRAPS_NO_FILTER;
    fine &= stream(&s, 100, frames_wanted());
    return fine ? TRAPS_FINE : TRAPS_WRONG;
}

static void the_system_is_never_called(void **state)
{
    assert_quiet_life(live, NULL);
}

#endif

int main(void)
{
    traps_watch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_stays_and_cuts_do_not_show),
#ifndef EXPHIL_SANITIZE
        cmocka_unit_test(the_system_is_never_called),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
