/* Updates that fail and are called again. */
#include "retry_case.h"

#include <stdio.h>
#include <stdlib.h>

enum { UPDATES = 7, CODE = 7 };

/* Question number `at` (from 1; 0: none) is answered with a failure. */
typedef struct trouble {
    int64_t at, asked;
} trouble;

static bool strikes(trouble *t)
{
    return ++t->asked == t->at;
}

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    return strikes(user) ? CODE : 0;
}

static int32_t cancel(void *user)
{
    return strikes(user);
}

/* One of the two runs, and what it is given where it has no prefetcher. */
typedef struct side {
    trouble trouble;
    exphil_communicator communicator;
    train_run run;
    exphil_batch batch[UPDATES];
} side;

static void side_make(side *s, train_plan plan, retry_cause cause)
{
    *s = (side){.communicator = {sizeof s->communicator, &s->trouble, all_reduce, 0, 1}};
    if (cause == RETRY_REDUCE) plan.trainer.communicator = &s->communicator;
    if (cause == RETRY_CANCEL) {
        plan.cancel = cancel;
        plan.cancel_user = &s->trouble;
    }
    s->run = train_begin(&plan);
    for (int u = 0; plan.by_hand && u < UPDATES; u++) {
        s->batch[u] = train_batch(s->run.model, 3, 6, 2 * u);
        if (u > 0) memset((uint8_t *)(uintptr_t)s->batch[u].reset, 0, 3 * 6); /* the state goes on */
    }
}

static void side_free(side *s)
{
    for (int u = 0; u < UPDATES; u++) train_batch_free(&s->batch[u]);
    train_end(&s->run);
}

static exphil_status update(side *s, int u, int64_t fails_at, exphil_error *error)
{
    s->trouble = (trouble){fails_at, 0};
    exphil_status status = s->run.prefetcher
                               ? exphil_trainer_step(s->run.trainer, NULL, error)
                               : exphil_trainer_step_batch(s->run.trainer, &s->batch[u], NULL, error);
    s->trouble.at = 0;
    return status;
}

static void same_file(const char *one, const char *two)
{
    size_t bytes[2];
    char *data[2] = {test_read(test_path(one), &bytes[0]), test_read(test_path(two), &bytes[1])};
    assert_non_null(data[0]);
    assert_non_null(data[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

static void same_trainer(const side *a, const side *b, int u)
{
    size_t bytes[2];
    unsigned char *all[2] = {train_snapshot(a->run.trainer, &bytes[0]),
                             train_snapshot(b->run.trainer, &bytes[1])};
    assert_int_equal(bytes[0], bytes[1]);
    if (memcmp(all[0], all[1], bytes[0]) != 0) fail_msg("update %d: the trainers differ", u + 1);
    free(all[0]);
    free(all[1]);
}

static void same_save(const side *calm, const side *other)
{
    exphil_status status = exphil_trainer_save(calm->run.trainer, test_path("calm"), NULL);
    assert_int_equal(exphil_trainer_save(other->run.trainer, test_path("other"), NULL), status);
    if (status == EXPHIL_E_STATE) return; /* neither has taken a batch */
    assert_int_equal(status, EXPHIL_OK);
    same_file("calm", "other");
    same_file("calm.optimizer", "other.optimizer");
}

/* Fails at each question until there is none left. */
static void update_with_trouble(side *other, const side *calm, int u, retry_cause cause, bool looks)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_status expected = cause == RETRY_REDUCE ? EXPHIL_E_IO : EXPHIL_E_CANCELLED;
    int64_t at = 1;
    for (;; at++) {
        exphil_status status = update(other, u, at, &error);
        if (status == EXPHIL_OK && other->trouble.asked < at) break;
        if (status != expected)
            fail_msg("update %d: %s: %s", u + 1, exphil_status_name(status), error.message);
        if (!looks) continue;
        same_trainer(calm, other, u);
        same_save(calm, other);
    }
    assert_true(at > 1);
}

void retry_as_never_failed(train_plan plan, retry_cause cause, bool looks)
{
    side calm, other;
    side_make(&calm, plan, cause);
    side_make(&other, plan, cause);
    for (int u = 0; u < UPDATES; u++) {
        update_with_trouble(&other, &calm, u, cause, looks);
        assert_ok(update(&calm, u, 0, NULL));
    }
    same_trainer(&calm, &other, UPDATES);
    same_save(&calm, &other);
    side_free(&calm);
    side_free(&other);
    test_folder_remove();
}
