/* Medians of a step of the default policy with the library of this machine, one thread: `step FRAMES` prints "f32 MS" and
 * "int8 MS". step.mjs measures the same in V8. */
#define _POSIX_C_SOURCE 199309L
#include <exphil/exphil.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static exphil_error error = EXPHIL_ERROR_INIT;

static void must(exphil_status status)
{
    if (status < 0) fprintf(stderr, "step: %s\n", error.message), exit(1);
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, const exphil_model *model, int frames)
{
    exphil_session *session = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    must(exphil_session_create(model, NULL, &session, &error));
    must(exphil_model_query(model, &info, &error));
    float *floats = calloc((size_t)info.float_count + 1, sizeof *floats);
    int32_t *ids = calloc((size_t)info.id_count + 1, sizeof *ids),
            *actions = calloc((size_t)info.head_count, sizeof *actions);
    double *times = calloc((size_t)frames, sizeof *times);
    if (!floats || !ids || !actions || !times) exit(1);
    for (int t = -60; t < frames; t++) {
        const double began = now();
        must(exphil_session_step_row(session, floats, ids, NULL, actions));
        if (t >= 0) times[t] = now() - began;
        floats[(t + 60) % info.float_count] = (float)(t % 7) / 7.0f;
    }
    qsort(times, (size_t)frames, sizeof *times, ascending);
    printf("%s %.6f\n", name, times[frames / 2]);
    free(floats);
    free(ids);
    free(actions);
    free(times);
    exphil_session_destroy(session);
}

int main(int argc, char **argv)
{
    exphil_context_config one = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL, *small = NULL;
    const int frames = argc > 1 ? atoi(argv[1]) : 600;
    if (frames < 1) return fprintf(stderr, "usage: step FRAMES\n"), 2;
    one.threads = 1;
    config.blocks = "mamba*2";
    config.hidden = 256;
    config.seed = 1;
    must(exphil_context_create(&one, &context, &error));
    must(exphil_model_create(context, &config, &model, &error));
    measure("f32", model, frames);
    must(exphil_model_quantize(model, EXPHIL_TYPE_I8, &small, &error));
    measure("int8", small, frames);
    exphil_model_destroy(small);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
