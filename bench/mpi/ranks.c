/* What ranks cost: updates of mamba*2 and lstm*2 by one rank and by all, and by one rank in shards, in turns in one run.
 *
 *     mpicc -O2 ranks.c $(pkg-config --cflags --libs exphil_mpi) -o ranks && mpirun -n 2 ./ranks [HIDDEN [UPDATES [ROUNDS]]]
 *
 *   alone         rank 0 by itself, LANES lanes; the others sleep
 *   side by side  every rank by itself, LANES lanes: what the machine costs, without any reduction
 *   weak          all ranks, LANES lanes each
 *   strong        all ranks, LANES lanes together
 *   shards        rank 0 by itself, LANES lanes in 2, 4, 8, 16 shards
 *
 * A turn is UPDATES updates (8) after one that is not counted; its time is that of the slowest rank. Rank 0 prints the best and the
 * median of ROUNDS turns (5), time in reductions by exphil_mpi_time (waiting for the other ranks included), and what a
 * reduction of as many floats takes by itself, by all_reduce and by MPI_Allreduce. */
#include <exphil/ranks.h>
#include <exphil_mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLOATS = 288, LANES = 64, TIME = 60, EPISODES = 128, FRAMES = 600, MOST_ROUNDS = 64, REDUCTIONS = 21 };
enum { ALONE, BESIDE, WEAK, STRONG, SHARDS_2, SHARDS_4, SHARDS_8, SHARDS_16, WAYS };

/* A way to train, with what it took. */
typedef struct way {
    const char *name;
    int32_t ranks;  /* all (1), or each by itself (0) */
    int32_t first;  /* rank 0 alone */
    int32_t shards; /* 0: none */
    int64_t batch;  /* of all ranks */
    exphil_optimizer *optimizer;
    exphil_prefetcher *prefetcher;
    exphil_trainer *trainer;
    double took[MOST_ROUNDS]; /* seconds an update */
    double least,
        most; /* seconds of an update in reductions, sums over the rounds: of the rank with the least, the most */
} way;

/* The communicator of libexphil_mpi, with a count of what is reduced. */
typedef struct counted {
    exphil_communicator with;
    int64_t floats, doubles, calls;
} counted;

static exphil_error error = EXPHIL_ERROR_INIT;
static exphil_mpi *mpi; /* NULL before it is open */
static exphil_communicator all = {sizeof all, NULL, NULL, 0, 0};
static counted count;
static exphil_dataset *dataset;
static int updates = 8, rounds = 5;
static int64_t hidden = 256;

static void must(exphil_status status)
{
    if (status >= 0) return;
    fprintf(stderr, "ranks: %s: %s; %s\n", exphil_status_name(status), error.message, exphil_mpi_why(mpi));
    exphil_mpi_abort(mpi, 1);
}

static int32_t reduce(void *user, void *data, int64_t number, int32_t type)
{
    counted *own = user;
    *(type == EXPHIL_TYPE_F32 ? &own->floats : &own->doubles) += number;
    own->calls++;
    return own->with.all_reduce(own->with.user, data, number, type);
}

/* ---- what is trained ---------------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t *seed)
{
    return (*seed = *seed * 1664525u + 1013904223u) >> 8;
}

/* Numbers a frame, and the heads of Melee's codec. */
static exphil_spec make_spec(void)
{
    exphil_spec melee = EXPHIL_SPEC_INIT, spec = EXPHIL_SPEC_INIT;
    must(exphil_melee_spec(NULL, NULL, &melee, &error));
    spec.layout = "bench";
    spec.codec = "bench";
    spec.float_count = FLOATS;
    spec.head_count = melee.head_count;
    spec.heads = melee.heads;
    return spec;
}

/* The same on all ranks. */
static void fill(const exphil_spec *spec)
{
    static float floats[FRAMES * FLOATS];
    static int32_t actions[FRAMES * EXPHIL_HEADS_MAX];
    uint32_t seed = 1;
    for (int e = 0; e < EPISODES; e++) {
        for (int i = 0; i < FRAMES * FLOATS; i++) floats[i] = (float)draw(&seed) / 8388608.0f - 1.0f;
        for (int i = 0; i < FRAMES * (int)spec->head_count; i++) {
            const exphil_head_spec *head = &spec->heads[i % spec->head_count];
            int32_t values = head->kind == EXPHIL_BERNOULLI ? 1 << head->count : head->count;
            actions[i] = (int32_t)draw(&seed) % values;
        }
        must(exphil_dataset_add_rows(dataset, (uint64_t)e, FRAMES, floats, NULL, actions, &error));
    }
}

static void begin(way *w, const exphil_model *model)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_communicator with = {sizeof with, &count, reduce, all.rank, all.ranks};
    optimizer.rate = 1e-4;
    config.shards = w->shards;
    must(exphil_model_sampling(model, &sampling, &error));
    sampling.batch = w->batch;
    sampling.time = TIME;
    if (w->ranks) {
        config.communicator = &with;
        config.reduction = EXPHIL_REDUCTION_SUMS;
        must(exphil_rank_lanes(w->batch, all.rank, all.ranks, &sampling.first_lane, &sampling.lane_count,
                               &error));
    }
    must(exphil_prefetcher_create(dataset, &sampling, &w->prefetcher, &error));
    must(exphil_optimizer_create(model, &optimizer, &w->optimizer, &error));
    must(exphil_trainer_create(model, w->optimizer, w->prefetcher, &config, &w->trainer, &error));
}

static void end(way *w)
{
    exphil_trainer_destroy(w->trainer);
    exphil_optimizer_destroy(w->optimizer);
    exphil_prefetcher_destroy(w->prefetcher);
}

/* ---- turns -------------------------------------------------------------------------------------------------- */

/* All ranks go on from here. One that waits long leaves its processor to others. */
static void together(void)
{
    const struct timespec pause = {0, 200000};
    MPI_Request request;
    int came = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &came, MPI_STATUS_IGNORE);
        if (came) break;
        nanosleep(&pause, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static double of_all(double own, MPI_Op op)
{
    double joint;
    MPI_Allreduce(&own, &joint, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    return joint;
}

static void turn(way *w, int round)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    int64_t before = 0, after = 0, calls;
    double took = 0.0;
    together();
    if (!w->first || all.rank == 0) {
        must(exphil_trainer_step(w->trainer, &metrics, &error));
        must(exphil_mpi_time(mpi, &before, &calls, &error));
        if (w->ranks) count.floats = count.doubles = count.calls = 0;
        took = MPI_Wtime();
        for (int u = 0; u < updates; u++) must(exphil_trainer_step(w->trainer, &metrics, &error));
        took = MPI_Wtime() - took;
        must(exphil_mpi_time(mpi, &after, &calls, &error));
    }
    together();
    w->took[round] = of_all(took, MPI_MAX) / updates;
    w->least += of_all((double)(after - before) * 1e-9 / updates, MPI_MIN);
    w->most += of_all((double)(after - before) * 1e-9 / updates, MPI_MAX);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians, in seconds, of the slowest rank: by all_reduce, and by MPI. */
static void reductions_alone(int64_t number, double median[2])
{
    static double took[2][REDUCTIONS];
    float *data = calloc((size_t)number + 1, sizeof *data);
    if (!data) exphil_mpi_abort(mpi, 1);
    for (int i = -2; i < REDUCTIONS; i++) /* two to warm up */
        for (int by_mpi = 0; by_mpi < 2; by_mpi++) {
            together();
            double own = MPI_Wtime();
            if (by_mpi)
                MPI_Allreduce(MPI_IN_PLACE, data, (int)number, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            else if (all.all_reduce(all.user, data, number, EXPHIL_TYPE_F32))
                must(EXPHIL_E_IO);
            own = of_all(MPI_Wtime() - own, MPI_MAX);
            if (i >= 0) took[by_mpi][i] = own;
        }
    for (int by_mpi = 0; by_mpi < 2; by_mpi++) {
        qsort(took[by_mpi], REDUCTIONS, sizeof(double), by_size);
        median[by_mpi] = took[by_mpi][REDUCTIONS / 2];
    }
    free(data);
}

/* ---- what is printed ---------------------------------------------------------------------------------------- */

/* Best and median efficiency: the same frames of one rank, over all that the ranks spent. */
static void print_efficiency(const way *w, const way *alone)
{
    double share = (double)w->batch / (double)((w->ranks ? all.ranks : 1) * LANES);
    printf(" %.3f | %.3f |", alone->took[0] / w->took[0] * share,
           alone->took[rounds / 2] / w->took[rounds / 2] * share);
}

static void print_way(const way *w, const way *alone)
{
    printf("| %s | %lld | %.2f | %.2f |", w->name, (long long)(w->batch / (w->ranks ? all.ranks : 1)),
           w->took[0] * 1e3, w->took[rounds / 2] * 1e3);
    print_efficiency(w, alone);
    if (w->ranks)
        printf(" %.2f to %.2f |\n", w->least / rounds * 1e3, w->most / rounds * 1e3);
    else
        printf(" - |\n");
}

static void print_all(const char *blocks, int64_t weights, const way *ways, const double median[2])
{
    printf("\n### %s of width %lld, %lld weights\n\n"
           "| | lanes a rank | best, ms | median, ms | efficiency, best | median | in reductions, ms |\n"
           "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
           blocks, (long long)hidden, (long long)weights);
    for (int i = 0; i <= STRONG; i++)
        if (all.ranks > 1 || i == ALONE) print_way(&ways[i], &ways[ALONE]);
    if (all.ranks > 1)
        printf("\nAn update reduces %lld floats and %lld doubles in %lld calls. By itself a reduction of "
               "these floats takes "
               "%.2f ms, by MPI_Allreduce %.2f ms.\n",
               (long long)(count.floats / updates), (long long)(count.doubles / updates),
               (long long)(count.calls / updates), median[0] * 1e3, median[1] * 1e3);
    printf("\n| shards | lanes a shard | best, ms | median, ms | times of none, best | median |\n"
           "| ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = SHARDS_2; i < WAYS; i++)
        printf("| %d | %d | %.2f | %.2f | %.3f | %.3f |\n", (int)ways[i].shards, LANES / (int)ways[i].shards,
               ways[i].took[0] * 1e3, ways[i].took[rounds / 2] * 1e3, ways[i].took[0] / ways[ALONE].took[0],
               ways[i].took[rounds / 2] / ways[ALONE].took[rounds / 2]);
    fflush(stdout);
}

static void measure(exphil_context *context, const exphil_spec *spec, const char *blocks)
{
    way ways[WAYS] = {
        [ALONE] = {"alone", 0, 1, 0, LANES},     [BESIDE] = {"side by side", 0, 0, 0, LANES},
        [WEAK] = {"weak", 1, 0, 0, LANES},       [STRONG] = {"strong", 1, 0, 0, LANES},
        [SHARDS_2] = {"shards", 0, 1, 2, LANES}, [SHARDS_4] = {"shards", 0, 1, 4, LANES},
        [SHARDS_8] = {"shards", 0, 1, 8, LANES}, [SHARDS_16] = {"shards", 0, 1, 16, LANES},
    };
    exphil_model_config shape = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *model;
    double median[2] = {0.0, 0.0};
    shape.spec = spec;
    shape.blocks = blocks;
    shape.hidden = hidden;
    shape.seed = 1;
    shape.no_previous_action = 1;
    ways[WEAK].batch *= all.ranks;
    must(exphil_model_create(context, &shape, &model, &error));
    must(exphil_model_query(model, &info, &error));
    for (int i = 0; i < WAYS; i++) begin(&ways[i], model);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++) turn(&ways[i], round);
    for (int i = 0; i < WAYS; i++) qsort(ways[i].took, (size_t)rounds, sizeof(double), by_size);
    if (all.ranks > 1) reductions_alone(count.floats / updates, median);
    if (all.rank == 0) print_all(blocks, info.parameter_count, ways, median);
    for (int i = 0; i < WAYS; i++) end(&ways[i]);
    exphil_model_destroy(model);
}

static int number(int argc, char **argv, int at, int otherwise, int most)
{
    int given = argc > at ? atoi(argv[at]) : otherwise;
    if (given >= 1 && given <= most) return given;
    fprintf(stderr, "ranks: %s is not 1..%d\n", argv[at], most);
    exphil_mpi_abort(mpi, 2);
    return 0;
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    exphil_context_config one = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_dataset_config rows = EXPHIL_DATASET_CONFIG_INIT;
    exphil_context *context;
    must(exphil_mpi_open_world(&argc, &argv, NULL, &mpi, &error));
    must(exphil_mpi_communicator(mpi, &all, &error));
    count.with = all;
    hidden = number(argc, argv, 1, 256, 4096);
    updates = number(argc, argv, 2, 8, 10000);
    rounds = number(argc, argv, 3, 5, MOST_ROUNDS);
    exphil_spec spec = make_spec();
    one.threads = 1;
    rows.spec = &spec;
    must(exphil_context_create(&one, &context, &error));
    must(exphil_dataset_create(context, &rows, &dataset, &error));
    fill(&spec);
    MPI_Get_library_version(name, &length);
    if (all.rank == 0)
        printf("%.*s, %d ranks of one thread; T %d, %d turns of %d updates\n", (int)strcspn(name, "\n,"),
               name, (int)all.ranks, TIME, rounds, updates);
    measure(context, &spec, "mamba*2");
    measure(context, &spec, "lstm*2");
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    must(exphil_mpi_close(mpi));
    return 0;
}
