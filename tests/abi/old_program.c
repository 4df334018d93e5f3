/* A program of an earlier release: compiled with the headers that release had (tests/abi/<version>), linked to the library
 * of today. It goes the whole way once: rows, training, a file, play, rollback, a replay that is none. */
#include <exphil/slp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES         400
#define FLOATS         3
#define NAME           "old_program_" TEXT(EXPHIL_VERSION_MAJOR) "_" TEXT(EXPHIL_VERSION_MINOR) ".safetensors"
#define TEXT(macro)    TEXT_OF(macro)
#define TEXT_OF(macro) #macro

static exphil_error error = EXPHIL_ERROR_INIT;

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error.message);                     \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

/* The stick follows the sign of the first float; a policy learns it in a few updates. */
static void fill_rows(float *floats, int32_t *actions)
{
    uint32_t state = 7;
    for (int t = 0; t < FRAMES; t++) {
        for (int i = 0; i < FLOATS; i++) {
            state = state * 1664525u + 1013904223u;
            floats[t * FLOATS + i] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        actions[t] = floats[t * FLOATS] > 0;
    }
}

static exphil_dataset *make_data(exphil_context *context, const exphil_spec *spec)
{
    static float floats[FRAMES * FLOATS];
    static int32_t actions[FRAMES];
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = spec;
    fill_rows(floats, actions);
    CHECK(exphil_dataset_create(context, &config, &dataset, &error) == EXPHIL_OK);
    CHECK(exphil_dataset_add_rows(dataset, 1, FRAMES, floats, NULL, actions, &error) == EXPHIL_OK);
    return dataset;
}

/* Trains a model and leaves the weights in a file. */
static void train(exphil_context *context, const exphil_spec *spec)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config rates = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_model *model = NULL, *trained = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_dataset *dataset = make_data(context, spec);
    config.spec = spec;
    config.blocks = "gru";
    config.hidden = 16;
    config.head_width = 16;
    rates.rate = 0.02;
    CHECK(exphil_model_create(context, &config, &model, &error) == EXPHIL_OK);
    CHECK(exphil_model_sampling(model, &sampling, &error) == EXPHIL_OK);
    sampling.batch = 4;
    sampling.time = 20;
    CHECK(exphil_prefetcher_create(dataset, &sampling, &prefetcher, &error) == EXPHIL_OK);
    CHECK(exphil_optimizer_create(model, &rates, &optimizer, &error) == EXPHIL_OK);
    CHECK(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, &error) == EXPHIL_OK);
    double first = 0;
    for (int update = 0; update < 60; update++) {
        CHECK(exphil_trainer_step(trainer, &metrics, &error) == EXPHIL_OK);
        if (!update) first = metrics.loss;
    }
    CHECK(metrics.update == 60 && metrics.loss < first / 2);
    CHECK(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, &error) == EXPHIL_OK);
    CHECK(exphil_evaluate(trained, dataset, NULL, NULL, 0, &report, &error) == EXPHIL_OK);
    CHECK(report.frames == FRAMES && report.heads == 1 && report.head[0].accuracy > 0.9);
    CHECK(exphil_model_save(trained, NAME, &error) == EXPHIL_OK);
    exphil_dataset_destroy(dataset);
    exphil_model_destroy(model);
    exphil_model_destroy(trained);
    exphil_prefetcher_destroy(prefetcher);
    exphil_optimizer_destroy(optimizer);
    exphil_trainer_destroy(trainer);
}

/* Plays the file; after a rollback the same frames give the same actions and logits. */
static void play(exphil_context *context)
{
    static float floats[FRAMES * FLOATS];
    static int32_t wanted[FRAMES], action[2][FRAMES];
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    float logits[2][2];
    int right = 0;
    config.deterministic = 1;
    fill_rows(floats, wanted);
    CHECK(exphil_model_load(context, NAME, &model, &error) == EXPHIL_OK);
    CHECK(exphil_session_create(model, &config, &session, &error) == EXPHIL_OK);
    size_t size = exphil_session_state_size(session);
    void *state = malloc(size);
    CHECK(state && exphil_session_state_save(session, 0, state, size) == EXPHIL_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < FRAMES; t++)
            CHECK(exphil_session_step_row(session, floats + t * FLOATS, NULL, NULL, &action[pass][t]) ==
                  EXPHIL_OK);
        CHECK(exphil_session_logits(session, 0, logits[pass], 2) == EXPHIL_OK);
        CHECK(exphil_session_state_restore(session, 0, state, size) == EXPHIL_OK);
    }
    for (int t = 0; t < FRAMES; t++) right += action[0][t] == wanted[t];
    CHECK(right > FRAMES * 9 / 10);
    CHECK(memcmp(action[0], action[1], sizeof action[0]) == 0 &&
          memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
    CHECK(exphil_session_query(session, &info, &error) == EXPHIL_OK);
    CHECK(info.steps == 2 * FRAMES && info.float_count == FLOATS && info.state_bytes == size);
    free(state);
    exphil_model_destroy(model);
    exphil_session_destroy(session);
}

static void refuse(exphil_context *context)
{
    exphil_slp *slp = NULL;
    exphil_model *model = NULL;
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    static float floats[4096];
    int32_t ids[EXPHIL_IDS_MAX];
    CHECK(exphil_slp_read(context, "not a replay", 12, NULL, &slp, &error) == EXPHIL_E_FORMAT && !slp);
    CHECK(error.status == EXPHIL_E_FORMAT && error.message[0]);
    CHECK(exphil_model_load(context, "there-is-none.safetensors", &model, &error) == EXPHIL_E_IO && !model);
    CHECK(exphil_melee_spec(NULL, NULL, &spec, &error) == EXPHIL_OK && spec.float_count > 0 &&
          spec.float_count <= 4096);
    frame.own_port = 5;
    CHECK(exphil_melee_encode(NULL, &frame, floats, ids, &error) == EXPHIL_E_INVALID);
}

int main(void)
{
    static const exphil_head_spec heads[] = {{"stick", EXPHIL_CATEGORICAL, 2, 0, 0}};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_context *context = NULL;
    config.threads = 1;
    spec.layout = "old", spec.codec = "old", spec.float_count = FLOATS, spec.head_count = 1,
    spec.heads = heads;
    CHECK(exphil_version() >= EXPHIL_VERSION);
    CHECK(exphil_context_create(&config, &context, &error) == EXPHIL_OK);
    train(context, &spec);
    play(context);
    refuse(context);
    remove(NAME);
    exphil_context_destroy(context);
    printf("a program of %d.%d.%d on %s\n", EXPHIL_VERSION_MAJOR, EXPHIL_VERSION_MINOR, EXPHIL_VERSION_PATCH,
           exphil_version_string());
    return 0;
}
