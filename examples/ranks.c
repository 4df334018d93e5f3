/* Several processes train one policy: each has rows of its own, gradients are averaged over all of them, and all have the same
 * weights, to the last bit. Here a pursuer learns to walk to a target, each rank from other walks.
 *
 *     cc ranks.c $(pkg-config --cflags --libs exphil_mpi) -o ranks && mpirun -n 4 ./ranks pursuer.safetensors
 *
 * exphil_mpi.pc comes with libexphil_mpi, which is built with the MPI of this machine (mpi/CMakeLists.txt). */
#include <exphil_mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { FRAMES = 3000, UPDATES = 200, LEFT = 0, STAY, RIGHT };

static const exphil_head_spec head = {"move", EXPHIL_CATEGORICAL, 3, STAY, 0};
static const exphil_spec spec = {sizeof spec, "walk", "step", 1, 0, NULL, 1, &head, 0};

static exphil_error error = EXPHIL_ERROR_INIT;
static exphil_mpi *mpi; /* NULL before it is open */

/* A rank that cannot go on ends all: the others would wait for it, up to timeout_ms. */
static void must(exphil_status status)
{
    if (status >= 0) return;
    fprintf(stderr, "ranks: %s: %s; %s\n", exphil_status_name(status), error.message, exphil_mpi_why(mpi));
    exphil_mpi_abort(mpi, 1);
}

/* The walks of one rank. */
static void walk(exphil_dataset *dataset, uint32_t seed)
{
    static float distance[FRAMES];
    static int32_t move[FRAMES];
    int place = 0, target = 0;
    for (int t = 0; t < FRAMES; t++) {
        if (place == target) target = (int)((seed = seed * 1664525u + 1013904223u) >> 16) % 41 - 20;
        distance[t] = (float)(target - place) / 20.0f;
        move[t] = target < place ? LEFT : target > place ? RIGHT : STAY;
        place += move[t] - STAY;
    }
    must(exphil_dataset_add_rows(dataset, seed, FRAMES, distance, NULL, move, &error));
}

int main(int argc, char **argv)
{
    exphil_communicator ranks = {sizeof ranks, NULL, NULL, 0, 0};
    exphil_context_config one = {sizeof one, .threads = 1};
    exphil_dataset_config rows = {sizeof rows, .spec = &spec};
    exphil_model_config shape = {sizeof shape, .spec = &spec, .hidden = 32,
                                 .seed = 1}; /* all begin with the same weights */
    exphil_trainer_config how = {sizeof how, .communicator = &ranks};
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    int64_t reduced_ns, reductions;
    must(exphil_mpi_open_world(&argc, &argv, NULL, &mpi, &error));
    must(exphil_mpi_communicator(mpi, &ranks, &error));
    must(exphil_context_create(&one, &context, &error));
    must(exphil_dataset_create(context, &rows, &dataset, &error));
    walk(dataset, 1 + (uint32_t)ranks.rank);
    must(exphil_model_create(context, &shape, &model, &error));
    must(exphil_model_sampling(model, &sampling, &error));
    must(exphil_prefetcher_create(dataset, &sampling, &prefetcher, &error));
    must(exphil_optimizer_create(model, NULL, &optimizer, &error));
    must(exphil_trainer_create(model, optimizer, prefetcher, &how, &trainer, &error));
    for (int update = 0; update < UPDATES; update++) must(exphil_trainer_step(trainer, &metrics, &error));
    must(exphil_mpi_time(mpi, &reduced_ns, &reductions, &error));
    if (ranks.rank == 0) {
        if (argc > 1) must(exphil_trainer_save(trainer, argv[1], &error));
        printf("%d ranks: loss %.4f, %.1f us a reduction\n", ranks.ranks, metrics.loss,
               (double)reduced_ns / 1000.0 / (double)reductions);
    }
    exphil_trainer_destroy(trainer), exphil_optimizer_destroy(optimizer),
        exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model), exphil_dataset_destroy(dataset), exphil_context_destroy(context);
    must(exphil_mpi_close(mpi));
    return 0;
}
