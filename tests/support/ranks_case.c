#include "ranks_case.h"

#include <exphil/ranks.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

train_plan ranks_case_plan(const train_plan *plan, thread_rank *rank)
{
    train_plan own = *plan;
    own.trainer.communicator = &rank->communicator;
    own.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    if (!own.by_hand)
        assert_ok(exphil_rank_lanes(own.sampling.batch, rank->rank, rank->ranks, &own.sampling.first_lane,
                                    &own.sampling.lane_count, NULL));
    return own;
}

static void keep(ranks_case *c, int32_t rank, exphil_status status, const exphil_error *error)
{
    if (c->status[rank] < 0) return;
    c->status[rank] = status;
    c->error[rank] = *error;
}

static void train(ranks_case *c, int32_t rank, train_run *run)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    char path[512];
    if (c->resumed) {
        snprintf(path, sizeof path, "%s", rank ? "/nowhere/at/all" : test_path(c->resumed));
        exphil_status status = exphil_trainer_resume(run->trainer, path, &error);
        if (status < 0) keep(c, rank, status, &error);
    }
    int64_t again = c->again;
    for (int64_t u = 0; u < c->updates && (c->status[rank] >= 0 || c->again); u++) {
        exphil_status status = exphil_trainer_step(run->trainer, &c->metrics[rank], &error);
        if (status < 0) keep(c, rank, status, &error);
        if (status < 0 && again-- > 0) u--;
    }
    if (c->saved) {
        snprintf(path, sizeof path, "%s", rank ? "/nowhere/at/all" : test_path(c->saved));
        exphil_status status = exphil_trainer_save(run->trainer, path, &error);
        if (status < 0) keep(c, rank, status, &error);
    }
    size_t bytes = 0;
    c->weights[rank] = train_snapshot(run->trainer, &bytes); /* which begins with them */
    if (rank == 0) c->weights_bytes = run->trainer->arena_bytes;
    c->epoch[rank] = run->trainer->epoch;
    c->index[rank] = run->trainer->index;
}

static void one_rank(thread_rank *rank)
{
    ranks_case *c = rank->user;
    train_plan own = ranks_case_plan(&c->plan, rank);
    train_run run = train_begin(&own);
    rank->calls = 0;
    rank->armed = true;
    train(c, rank->rank, &run);
    if (rank->rank == 0) c->calls = rank->calls;
    train_end(&run);
}

void ranks_case_run(ranks_case *c)
{
    void *user[THREAD_RANKS_MOST];
    for (int i = 0; i < THREAD_RANKS_MOST; i++) {
        c->metrics[i] = (exphil_metrics)EXPHIL_METRICS_INIT;
        c->status[i] = EXPHIL_OK;
        c->weights[i] = NULL;
        user[i] = c;
    }
    if (c->ranks) {
        thread_ranks_run(c->ranks, one_rank, user, c->how);
        return;
    }
    train_run run = train_begin(&c->plan);
    train(c, 0, &run);
    train_end(&run);
}

void ranks_case_free(ranks_case *c)
{
    for (int i = 0; i < THREAD_RANKS_MOST; i++) free(c->weights[i]);
}

void ranks_case_agree(const ranks_case *c)
{
    for (int r = 0; r < (c->ranks ? c->ranks : 1); r++) {
        const exphil_metrics *own = &c->metrics[r], *first = &c->metrics[0];
        if (c->status[r] < 0) fail_msg("rank %d of %d: %s", r, c->ranks, c->error[r].message);
        assert_memory_equal(c->weights[r], c->weights[0], c->weights_bytes);
        assert_int_equal(own->update, first->update);
        assert_int_equal(own->epoch, first->epoch);
        assert_int_equal(own->frames, first->frames);
        assert_memory_equal(&own->loss, &first->loss, sizeof own->loss);
        assert_memory_equal(own->head_loss, first->head_loss, sizeof own->head_loss);
        assert_memory_equal(&own->gradient_norm, &first->gradient_norm, sizeof own->gradient_norm);
        assert_int_equal(c->epoch[r], c->epoch[0]);
        assert_int_equal(c->index[r], c->index[0]);
    }
}

void ranks_case_heard(const exphil_error *heard, const char *words, const exphil_error *own)
{
    char expected[2 * sizeof own->message];
    snprintf(expected, sizeof expected, "%s: %s", words, own->message);
    expected[sizeof own->message - 1] = 0;
    assert_string_equal(heard->message, expected);
}

static double at(const ranks_case *c, size_t i)
{
    return c->plan.model.type == EXPHIL_TYPE_F64 ? ((const double *)c->weights[0])[i]
                                                 : (double)((const float *)c->weights[0])[i];
}

double ranks_case_distance(const ranks_case *a, const ranks_case *b)
{
    size_t count =
        a->weights_bytes / (a->plan.model.type == EXPHIL_TYPE_F64 ? sizeof(double) : sizeof(float));
    double apart = 0.0, all = 0.0;
    for (size_t i = 0; i < count; i++) {
        apart += (at(a, i) - at(b, i)) * (at(a, i) - at(b, i));
        all += at(b, i) * at(b, i);
    }
    return sqrt(apart / all);
}
