/* Which kernels the heads of a trainer run as, by their names on the emulated GPU: one for heads and loss where it makes the loss
 * itself, matrix units on both sides of a loss that is the host's, and neither in F32. */
#include "emulated.h"
#include "train_case.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, PRECISIONS = EXPHIL_PRECISION_F16 + 1 };
_Static_assert(EXPHIL_PRECISION_F32 == 0, "precisions are counted from it");

/* ---- what ran ---- */

static const char *const kernels[] = {"heads_loss", "heads_logits", "heads_given", "heads_fold",
                                      "heads_rows", "heads_back",   "heads_sums",  "loss_rows"};
enum { LOSS, LOGITS, GIVEN, FOLD, ROWS, BACK, SUMS, APART, KERNELS };
static int ran[KERNELS];

/* Names are those of the source, in parentheses and with template arguments. */
static void watch(const emu_event *e)
{
    if (e->kind != EMU_LAUNCH || !e->name) return;
    const char *name = e->name[0] == '(' ? e->name + 1 : e->name;
    for (int i = 0; i < KERNELS; i++) {
        const size_t length = strlen(kernels[i]);
        if (strncmp(name, kernels[i], length) == 0 && (name[length] == '<' || !name[length])) ran[i]++;
    }
}

static void ran_each(const char *what, int32_t precision, const int want[KERNELS])
{
    for (int i = 0; i < KERNELS; i++)
        if (ran[i] != want[i] * STEPS)
            fail_msg("%s, precision %d: %s ran %d times in %d updates, expected %d each", what,
                     (int)precision, kernels[i], ran[i], STEPS, want[i]);
    memset(ran, 0, sizeof ran);
}

/* ---- trainers ---- */

typedef struct taught {
    const char *what;
    int32_t value;
    bool by_host;
    int want[2][KERNELS]; /* of an update in F32, and else */
} taught;

/* Imitation in one kernel asks nothing of the value head. */
static const taught cases[] = {
    {"imitation",
     EXPHIL_VALUE_NONE,
     false,
     {{[ROWS] = 1, [BACK] = 1, [SUMS] = 1, [APART] = 1}, {[LOSS] = 1, [FOLD] = 1}}},
    {"imitation beside a value head",
     EXPHIL_VALUE_SHARED,
     false,
     {{[ROWS] = 2, [BACK] = 2, [SUMS] = 2, [APART] = 1}, {[LOSS] = 1, [FOLD] = 1}}},
    {"a loss of the host's",
     EXPHIL_VALUE_SHARED,
     true,
     {{[ROWS] = 2, [BACK] = 2, [SUMS] = 2}, {[LOGITS] = 2, [GIVEN] = 2, [FOLD] = 2}}},
};

static void update(exphil_trainer *trainer, const exphil_batch *batch, bool by_host)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_forward forward = EXPHIL_FORWARD_INIT;
    exphil_status status;
    if (by_host) {
        status = exphil_trainer_forward(trainer, batch, NULL, 0, &forward, &error);
        void *zeros = calloc((size_t)(forward.rows * forward.logit_count), sizeof(float));
        if (status >= 0) status = exphil_trainer_backward(trainer, zeros, NULL, 0.0, NULL, &error);
        free(zeros);
    } else
        status = exphil_trainer_step_batch(trainer, batch, NULL, &error);
    if (status < 0) fail_msg("%s", error.message);
}

static void trains(const taught *t, int32_t precision)
{
    train_plan plan = train_plan_of("mamba", EXPHIL_MODE_CARRY);
    plan.model.value = t->value;
    plan.trainer.precision = precision;
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 4, 6, 0);
    emulated_gpu()->dry(watch);
    for (int i = 0; i < STEPS; i++) update(run.trainer, &batch, t->by_host);
    train_end(&run); /* has waited for the last */
    emulated_gpu()->dry(NULL);
    train_batch_free(&batch);
    emulated_clean();
    ran_each(t->what, precision, t->want[precision != EXPHIL_PRECISION_F32]);
}

static void matrix_units_are_taken(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t p = 0; p < PRECISIONS; p++)
            if (!cases[i].by_host || p != EXPHIL_PRECISION_F16) trains(&cases[i], p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrix_units_are_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
