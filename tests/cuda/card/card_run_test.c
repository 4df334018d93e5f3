/* Whole training runs on a card, through the plugin and the public interface: near the CPU's losses, the same bits in every
 * run, whether kernels overlap or not, and after the third update no more memory. The plugin is that of $EXPHIL_BACKEND_DIR.
 *
 *   card_run_test [--case NAME] [--blocks PATTERN] [--runs N] [--updates N]
 *   card_run_test --patterns
 *
 * --case, --blocks: one of them only. --patterns: lists those of --blocks, a line each. --runs: of the same training
 * (default 20). --updates: of each (default 20). Each row is a line of JSON on standard output when it is known. */
#include "play_case.h"
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UPDATES = 100, LONG = 1000, ASIDE = 77 };

/* Those of version 0.1 alone, and the others among each other: a card is lent for minutes. */
static const char *const all_blocks[] = {"mamba",
                                         "lstm",
                                         "gru",
                                         "attention",
                                         "mlp",
                                         "ffn",
                                         "mamba attention (lstm ffn)",
                                         "mamba_exphil lstm_bare ffn_gelu gru_bare",
                                         "norm gru_only relu dense norm lstm_only"};
static const struct {
    const char *name;
    int32_t precision;
    double tolerance; /* of losses against the CPU's */
} precisions[] = {
    {"f32", EXPHIL_PRECISION_F32, 1e-4},
    {"tf32", EXPHIL_PRECISION_TF32, 3e-2},
    {"bf16", EXPHIL_PRECISION_BF16, 3e-2},
};

static struct {
    const char *test, *blocks; /* NULL: all */
    int runs, updates;
} asked = {NULL, NULL, 20, 20};

static bool asked_for(const char *blocks)
{
    return !asked.blocks || strcmp(asked.blocks, blocks) == 0;
}

static void say(void *user, exphil_log_level level, const char *message)
{
    fprintf(stderr, "card_run_test: %s\n", message);
}

static train_plan plan_of(const char *blocks, const char *device, int32_t precision)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.device = device;
    plan.trainer.precision = precision;
    plan.log = say;
    plan.log_level = EXPHIL_LOG_INFO;
    return plan;
}

/* Losses by the number of their update: a device that is behind gives them later. */
static void losses_of(const train_plan *plan, int updates, double losses[MOST_UPDATES + 1])
{
    train_run run = train_begin(plan);
    for (int i = 0; i <= updates; i++) losses[i] = -1;
    for (int i = 0; i <= updates; i++) {
        const exphil_metrics metrics = train_steps(&run, 1);
        if (metrics.update <= updates) losses[metrics.update] = metrics.loss;
    }
    train_end(&run);
}

/* The CPU's losses beside the card's in every precision. */
static void compare(train_plan plan, const char *subject, const char *blocks, int updates)
{
    double cpu[MOST_UPDATES + 1], card[MOST_UPDATES + 1];
    plan.device = "cpu";
    losses_of(&plan, updates, cpu);
    plan.device = "cuda:0";
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        double worst = 0;
        plan.trainer.precision = precisions[p].precision;
        losses_of(&plan, updates, card);
        for (int i = 1; i <= updates; i++) worst = fmax(worst, fabs(card[i] - cpu[i]) / cpu[i]);
        printf("{\"subject\":\"%s\",\"blocks\":\"%s\",\"type\":\"%s\",\"updates\":%d,\"first\":%.6f,"
               "\"last\":%.6f,\"worst\":%.2e,\"bar\":%.0e}\n",
               subject, blocks, precisions[p].name, updates, card[1], card[updates], worst,
               precisions[p].tolerance);
        fflush(stdout);
        if (!(worst <= precisions[p].tolerance)) fail_msg("%s: %g", blocks, worst);
    }
}

static void losses_are_those_of_the_cpu(void **state)
{
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++)
        if (asked_for(all_blocks[b]))
            compare(plan_of(all_blocks[b], "cpu", EXPHIL_PRECISION_F32), "losses", all_blocks[b],
                    asked.updates);
}

/* Products as large as those of training, for which a library takes other kernels than for small ones. */
static void wide_nets_too(void **state)
{
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++) {
        train_plan plan = plan_of(all_blocks[b], "cpu", EXPHIL_PRECISION_F32);
        const bool few = asked.updates < 20;
        if (!asked_for(all_blocks[b])) continue;
        plan.threads = 0;
        plan.episodes = few ? 5 : 40;
        plan.model.hidden = few ? 48 : 256;
        plan.sampling.batch = few ? 2 : 64;
        plan.sampling.time = few ? 8 : 60;
        plan.adam.rate = 1e-3;
        compare(plan, "losses of wide nets", all_blocks[b], few ? 1 : 4);
    }
}

static unsigned char *run_once(const train_plan *plan, size_t *bytes)
{
    train_run run = train_begin(plan);
    train_steps(&run, asked.updates);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    train_end(&run);
    return all;
}

static void every_run_gives_the_same_bits(void **state)
{
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++) {
        for (size_t p = 0; asked_for(all_blocks[b]) && p < sizeof precisions / sizeof *precisions; p++) {
            const train_plan plan = plan_of(all_blocks[b], "cuda:0", precisions[p].precision);
            size_t bytes, other;
            unsigned char *first = run_once(&plan, &bytes);
            for (int i = 1; i < asked.runs; i++) {
                unsigned char *next = run_once(&plan, &other);
                assert_int_equal(other, bytes);
                if (memcmp(first, next, bytes) != 0)
                    fail_msg("%s in %s: run %d differs", all_blocks[b], precisions[p].name, i + 1);
                free(next);
            }
            free(first);
            printf("{\"subject\":\"equal runs\",\"blocks\":\"%s\",\"type\":\"%s\",\"runs\":%d,\"updates\":%d,"
                   "\"bytes\":%zu}\n",
                   all_blocks[b], precisions[p].name, asked.runs, asked.updates, bytes);
            fflush(stdout);
        }
    }
}

/* Logits of all frames; the session draws by itself. */
static unsigned char *play_once(const char *blocks, size_t *bytes)
{
    enum { STREAMS = 2, FRAMES = 24 };
    exphil_context_config how = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_session_config players = EXPHIL_SESSION_CONFIG_INIT;
    const exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    how.device = "cuda:0";
    how.threads = 1;
    how.log = say;
    how.log_level = EXPHIL_LOG_INFO;
    if (exphil_context_create(&how, &context, &error) < 0) fail_msg("%s", error.message);
    players.streams = STREAMS;
    exphil_model *model = play_model(context, &config, 0.1);
    exphil_session *session = play_session(model, &players);
    play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 5);
    const int64_t width = STREAMS * frames->logits;
    float *logits = calloc((size_t)(FRAMES * width), sizeof *logits);
    int32_t actions[STREAMS * PLAY_HEADS];
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(session, frames, t, true, actions);
        play_logits(session, frames, logits + t * width);
    }
    *bytes = (size_t)(FRAMES * width) * sizeof *logits;
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return (unsigned char *)logits;
}

/* Training in every precision, and play last. */
enum { OVERLAPPING = sizeof precisions / sizeof *precisions + 1 };
static unsigned char *do_once(const char *blocks, size_t way, size_t *bytes)
{
    if (way + 1 == OVERLAPPING) return play_once(blocks, bytes);
    const train_plan plan = plan_of(blocks, "cuda:0", precisions[way].precision);
    return run_once(&plan, bytes);
}

/* Kernels that begin before the one ahead of them has ended read nothing that it has yet to write. Once a process has asked that
 * they do not, none of its do. */
static void overlap_changes_no_bits(void **state)
{
    static const char *const blocks[] = {"mamba attention (lstm ffn)", "gru"};
    enum { PATTERNS = sizeof blocks / sizeof *blocks };
    unsigned char *with[PATTERNS][OVERLAPPING] = {{NULL}};
    size_t bytes[PATTERNS][OVERLAPPING] = {{0}}, other = 0;
    if (getenv("EXPHIL_CUDA_OVERLAP")) fail_msg("EXPHIL_CUDA_OVERLAP is set");
    for (int b = 0; b < PATTERNS; b++)
        for (size_t way = 0; asked_for(blocks[b]) && way < OVERLAPPING; way++)
            with[b][way] = do_once(blocks[b], way, &bytes[b][way]);
    setenv("EXPHIL_CUDA_OVERLAP", "none", 1);
    for (int b = 0; b < PATTERNS; b++) {
        for (size_t way = 0; asked_for(blocks[b]) && way < OVERLAPPING; way++) {
            const char *what = way + 1 < OVERLAPPING ? precisions[way].name : "play";
            unsigned char *without = do_once(blocks[b], way, &other);
            assert_int_equal(other, bytes[b][way]);
            if (memcmp(with[b][way], without, other) != 0)
                fail_msg("%s, %s: kernels that overlap give other bits", blocks[b], what);
            free(with[b][way]);
            free(without);
            printf(
                "{\"subject\":\"overlap\",\"blocks\":\"%s\",\"type\":\"%s\",\"updates\":%d,\"bytes\":%zu}\n",
                blocks[b], what, asked.updates, other);
            fflush(stdout);
        }
    }
    unsetenv("EXPHIL_CUDA_OVERLAP");
}

static exphil_memory_info memory_of(const train_run *run)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    assert_int_equal(exphil_context_memory(run->context, &info, NULL), EXPHIL_OK);
    return info;
}

/* What is asked of the driver after the third update: nothing. Of all requests 98 in 100 are met by what is there. */
static void memory_is_used_again(void **state)
{
    const int64_t updates = asked.updates < 20 ? 5 : LONG;
    const train_plan plan = plan_of("mamba", "cuda:0", EXPHIL_PRECISION_BF16);
    train_run run = train_begin(&plan);
    train_steps(&run, 3);
    const exphil_memory_info early = memory_of(&run);
    train_steps(&run, updates - 3);
    const exphil_memory_info late = memory_of(&run);
    train_end(&run);
    const uint64_t since = late.device_requests - early.device_requests,
                   again = late.device_reused - early.device_reused;
    printf(
        "{\"subject\":\"memory\",\"updates\":%lld,\"requests\":%llu,\"reused\":%llu,\"peak_bytes\":%llu}\n",
        (long long)updates, (unsigned long long)since, (unsigned long long)again,
        (unsigned long long)late.device_peak_bytes);
    fflush(stdout);
    assert_int_equal(since, again);
    assert_int_equal(late.device_peak_bytes, early.device_peak_bytes);
}

static void look_for_a_card(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    config.device = "cuda:0";
    config.threads = 1;
    config.log = say; /* the first that opens the device hears whose products are taken */
    config.log_level = EXPHIL_LOG_INFO;
    if (exphil_context_create(&config, &context, &error) < 0) {
        printf("SKIPPED: %s\n", error.message);
        exit(ASIDE);
    }
    exphil_context_destroy(context);
}

static int number_of(const char *word, int least, int most)
{
    char *end;
    const long n = strtol(word, &end, 10);
    if (*word && !*end && n >= least && n <= most) return (int)n;
    fprintf(stderr, "card_run_test: %s: must be %d to %d\n", word, least, most);
    exit(2);
}

static void list_patterns(void)
{
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++) puts(all_blocks[b]);
    exit(0);
}

static void take_words(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--patterns") == 0) list_patterns();
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--case") == 0) {
            asked.test = value;
        } else if (strcmp(words[i], "--blocks") == 0) {
            asked.blocks = value;
        } else if (strcmp(words[i], "--runs") == 0) {
            asked.runs = number_of(value, 2, 1000);
        } else if (strcmp(words[i], "--updates") == 0) {
            asked.updates = number_of(value, 1, MOST_UPDATES);
        } else {
            fprintf(stderr, "card_run_test: unknown option %s\n", words[i]);
            exit(2);
        }
    }
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_the_cpu), cmocka_unit_test(wide_nets_too),
        cmocka_unit_test(every_run_gives_the_same_bits), cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(overlap_changes_no_bits)};
    take_words(count, words);
    look_for_a_card();
    if (asked.test) cmocka_set_test_filter(asked.test);
    return cmocka_run_group_tests_name("card_run", tests, NULL, NULL);
}
