/* What libexphil_mpi promises, on the ranks that started this program. Rank 0 prints a hash of all sums, which is the same with
 * every MPI.
 *   ranks sums              sums have the bits of a plain addition in the order of the ranks, or as a tree
 *   ranks misuse            what must be refused is refused; 2 ranks
 *   ranks single            MPI_THREAD_SINGLE is refused
 *   ranks train             the weights of all ranks are those of as many threads */
#include "exphil_mpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int world_rank, world_ranks;

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "rank %d, %s:%d: %s\n", world_rank, __FILE__, __LINE__, #condition);                   \
      exphil_mpi_abort(NULL, 1);                                                                             \
    }                                                                                                        \
  } while (0)

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A rank's number i: of very different sizes and both signs, so that the order of a sum shows. */
static double value(int rank, int64_t i)
{
    uint64_t bits = mix((uint64_t)i * 64 + (uint64_t)rank + 1);
    double size = (double)(1 << bits % 23) / 1024.0;
    return ((double)(bits >> 11) / 4503599627370496.0 - 1.0) * size;
}

static double plus(double a, double b, int32_t type)
{
    return type == EXPHIL_TYPE_F64 ? a + b : (double)((float)a + (float)b);
}

static double given(int rank, int64_t i, int32_t type)
{
    return type == EXPHIL_TYPE_F64 ? value(rank, i) : (double)(float)value(rank, i);
}

/* The sum as the header says. */
static double ordered(int ranks, int64_t i, int32_t type, int tree)
{
    double part[64] = {0};
    for (int k = 0; k < ranks; k++) part[k] = given(k, i, type);
    if (tree)
        for (int step = 1; step < ranks; step *= 2)
            for (int k = 0; k + step < ranks; k += 2 * step) part[k] = plus(part[k], part[k + step], type);
    else
        for (int k = 1; k < ranks; k++) part[0] = plus(part[0], part[k], type);
    return part[0];
}

static void put(void *data, int64_t i, int32_t type, double number)
{
    if (type == EXPHIL_TYPE_F64)
        ((double *)data)[i] = number;
    else
        ((float *)data)[i] = (float)number;
}

static double at(const void *data, int64_t i, int32_t type)
{
    return type == EXPHIL_TYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* One reduction; returns a hash of its bits. */
static uint64_t sum(const exphil_communicator *with, int64_t count, int32_t type, int tree)
{
    int64_t size = type == EXPHIL_TYPE_F64 ? 8 : 4, others = 0;
    uint64_t hash = mix((uint64_t)count + 1);
    void *data = count ? malloc((size_t)(count * size)) : NULL;
    for (int64_t i = 0; i < count; i++) put(data, i, type, given(with->rank, i, type));
    CHECK(with->all_reduce(with->user, data, count, type) == 0);
    for (int64_t i = 0; i < count; i++) {
        double is = at(data, i, type);
        CHECK(is == ordered(with->ranks, i, type, tree));
        others += is != ordered(with->ranks, i, type, !tree);
        uint64_t bits;
        memcpy(&bits, &is, sizeof bits);
        hash = mix(hash ^ bits);
    }
    CHECK(with->ranks < 4 || count < 4096 || others > 0); /* the order does show */
    free(data);
    return hash;
}

static exphil_mpi *opened(MPI_Comm comm, const exphil_mpi_config *config, exphil_communicator *with)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *mpi = NULL;
    with->struct_size = sizeof *with;
    exphil_status status = exphil_mpi_open(comm, config, &mpi, &error);
    if (status < 0) fprintf(stderr, "%d: %s\n", status, error.message);
    CHECK(status == EXPHIL_OK);
    CHECK(exphil_mpi_communicator(mpi, with, NULL) == EXPHIL_OK);
    return mpi;
}

static void sums(void)
{
    static const int64_t counts[] = {0, 1, 7, 4096, 4097, 262144 + 5, 1000003};
    uint64_t hash = 0;
    for (int tree = 0; tree < 2; tree++) {
        exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
        exphil_communicator with = {0};
        MPI_Comm turned;
        int32_t local = -1, locals = -1;
        int64_t ns = -1, calls = -1;
        /* The order is that of the communicator, not of the world. */
        MPI_Comm_split(MPI_COMM_WORLD, 0, tree ? -world_rank : world_rank, &turned);
        config.tree = tree;
        exphil_mpi *mpi = opened(turned, &config, &with);
        MPI_Comm_free(&turned); /* the library's own lives on */
        CHECK(with.ranks == world_ranks && with.rank == (tree ? world_ranks - 1 - world_rank : world_rank));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int wide = 0; wide < 2; wide++)
                hash = mix(hash ^ sum(&with, counts[c], wide ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32, tree));
        CHECK(exphil_mpi_local(mpi, &local, &locals, NULL) == EXPHIL_OK);
        CHECK(local == with.rank && locals == with.ranks); /* one machine */
        CHECK(exphil_mpi_time(mpi, &ns, &calls, NULL) == EXPHIL_OK);
        CHECK(calls == 14 && ns > 0 && !*exphil_mpi_why(mpi));
        CHECK(exphil_mpi_close(mpi) == EXPHIL_OK);
    }
    if (!world_rank) printf("sums of %d ranks: %016llx\n", world_ranks, (unsigned long long)hash);
}

/* ---- misuse ------------------------------------------------------------------------------------------------- */

static void refused_open(MPI_Comm comm, const exphil_mpi_config *config, exphil_status status,
                         const char *word)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *mpi = NULL;
    CHECK(exphil_mpi_open(comm, config, &mpi, &error) == status);
    if (!strstr(error.message, word)) fprintf(stderr, "no %s in: %s\n", word, error.message);
    CHECK(!mpi && error.status == status && strstr(error.message, word));
}

static void *on_thread(void *comm)
{
    int level;
    MPI_Query_thread(&level);
    if (level == MPI_THREAD_FUNNELED)
        refused_open(*(MPI_Comm *)comm, NULL, EXPHIL_E_STATE, "MPI_THREAD_FUNNELED");
    return NULL;
}

static void refused_settings(void)
{
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *mpi = NULL;
    struct {
        exphil_mpi_config known;
        int64_t more;
    } newer = {EXPHIL_MPI_CONFIG_INIT, 1};
    CHECK(exphil_mpi_open(MPI_COMM_WORLD, NULL, NULL, &error) == EXPHIL_E_INVALID &&
          strstr(error.message, "mpi"));
    refused_open(MPI_COMM_NULL, NULL, EXPHIL_E_INVALID, "comm");
    config.tree = 2;
    refused_open(MPI_COMM_WORLD, &config, EXPHIL_E_INVALID, "tree");
    config.tree = 0;
    config.timeout_ms = -1;
    refused_open(MPI_COMM_WORLD, &config, EXPHIL_E_INVALID, "timeout_ms");
    config.timeout_ms = 0;
    config.start_ms = INT64_C(1) << 31;
    refused_open(MPI_COMM_WORLD, &config, EXPHIL_E_INVALID, "start_ms");
    config.struct_size = 8;
    refused_open(MPI_COMM_WORLD, &config, EXPHIL_E_INVALID, "struct_size");
    newer.known.struct_size = sizeof newer;
    refused_open(MPI_COMM_WORLD, &newer.known, EXPHIL_E_VERSION, "byte");
    CHECK(exphil_mpi_open_world(NULL, NULL, NULL, &mpi, &error) == EXPHIL_E_STATE &&
          strstr(error.message, "already"));
    CHECK(exphil_mpi_open_world(NULL, NULL, NULL, NULL, &error) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_close(NULL) == EXPHIL_OK && !*exphil_mpi_why(NULL));
}

/* Both ranks fail, and stay failed. */
static void broken_by(void *data, int64_t count, int32_t type, int32_t code)
{
    exphil_communicator with = {0};
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_mpi *smaller = NULL;
    MPI_Errhandler handler;
    float one = 1.0f;
    config.timeout_ms = config.start_ms = 200;
    exphil_mpi *mpi = opened(MPI_COMM_WORLD, &config, &with);
    CHECK(with.all_reduce(with.user, data, count, type) == code);
    CHECK(*exphil_mpi_why(mpi));
    CHECK(with.all_reduce(with.user, &one, 1, EXPHIL_TYPE_F32) == code);
    CHECK(exphil_mpi_close(mpi) == EXPHIL_E_IO);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL); /* the host's, as before */
    CHECK(exphil_mpi_shrink(NULL, &smaller, NULL) == EXPHIL_E_INVALID);
    if (!getenv("OMPI_MCA_mpi_ft_enable"))
        CHECK(exphil_mpi_shrink(mpi, &smaller, NULL) == EXPHIL_E_UNSUPPORTED);
}

static void misuse(void)
{
    MPI_Comm self = MPI_COMM_SELF, between;
    exphil_communicator with = {0}, *out = &with;
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    float data[2] = {1.0f, 2.0f};
    int32_t number = 0;
    int64_t wide = 0;
    pthread_t thread;
    CHECK(world_ranks == 2);
    CHECK(!pthread_create(&thread, NULL, on_thread, &self));
    pthread_join(thread, NULL);
    refused_settings();
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - world_rank, 1, &between);
    refused_open(between, NULL, EXPHIL_E_INVALID, "intercommunicator");
    MPI_Comm_free(&between);
    config.tree = world_rank;
    refused_open(MPI_COMM_WORLD, &config, EXPHIL_E_MISMATCH, "tree");

    exphil_mpi *mpi = opened(MPI_COMM_WORLD, NULL, &with);
    with.struct_size = sizeof(size_t);
    CHECK(exphil_mpi_communicator(mpi, out, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_communicator(NULL, out, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_communicator(mpi, NULL, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_local(NULL, &number, &number, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_local(mpi, NULL, &number, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_local(mpi, &number, NULL, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_time(NULL, &wide, &wide, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_time(mpi, NULL, &wide, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_time(mpi, &wide, NULL, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_shrink(mpi, NULL, NULL) == EXPHIL_E_INVALID);
    CHECK(exphil_mpi_close(mpi) == EXPHIL_OK);

    /* Unequal calls: in count, in type, in both so that the bytes are as many. */
    broken_by(data, 1 + world_rank, EXPHIL_TYPE_F32, EXPHIL_MPI_UNEQUAL);
    broken_by(data, world_rank ? 2 : 1, world_rank ? EXPHIL_TYPE_F32 : EXPHIL_TYPE_F64, EXPHIL_MPI_UNEQUAL);
    broken_by(NULL, 1, EXPHIL_TYPE_F32, EXPHIL_MPI_MISUSED);
    broken_by(data, -1, EXPHIL_TYPE_F32, EXPHIL_MPI_MISUSED);
    broken_by(data, 1, EXPHIL_TYPE_I8, EXPHIL_MPI_MISUSED);

    /* MPI is finalised meanwhile. */
    mpi = opened(MPI_COMM_WORLD, NULL, &with);
    exphil_mpi *later = opened(MPI_COMM_WORLD, NULL, &with);
    CHECK(exphil_mpi_communicator(mpi, &with, NULL) == EXPHIL_OK);
    MPI_Finalize();
    CHECK(with.all_reduce(with.user, data, 1, EXPHIL_TYPE_F32) == EXPHIL_MPI_MISUSED);
    CHECK(strstr(exphil_mpi_why(mpi), "finalised") && exphil_mpi_close(mpi) == EXPHIL_E_IO);
    CHECK(exphil_mpi_close(later) == EXPHIL_OK);
    refused_open(MPI_COMM_WORLD, NULL, EXPHIL_E_STATE, "finalised");
    CHECK(exphil_mpi_open_world(NULL, NULL, NULL, &mpi, NULL) == EXPHIL_E_STATE);
}

/* ---- training ----------------------------------------------------------------------------------------------- */

enum { LANES = 2, TIME = 6, FLOATS = 3, UPDATES = 5, ROWS = LANES * TIME };

/* Threads that are ranks: the last one adds. */
typedef struct meeting {
    pthread_barrier_t barrier;
    float *data[8];
    int ranks;
} meeting;
typedef struct place {
    meeting *at;
    exphil_communicator with;
    uint64_t hash;
} place;

static int32_t by_threads(void *user, void *data, int64_t count, int32_t type)
{
    place *own = user;
    meeting *at = own->at;
    CHECK(type == EXPHIL_TYPE_F32);
    at->data[own->with.rank] = data;
    if (pthread_barrier_wait(&at->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        for (int64_t i = 0; i < count; i++) {
            float total = at->data[0][i];
            for (int k = 1; k < at->ranks; k++) total += at->data[k][i];
            for (int k = 0; k < at->ranks; k++) at->data[k][i] = total;
        }
    pthread_barrier_wait(&at->barrier);
    return 0;
}

static void step(exphil_trainer *trainer, int rank, int update)
{
    float floats[ROWS * FLOATS], mask[ROWS];
    int32_t actions[ROWS];
    uint8_t reset[ROWS];
    exphil_batch batch = EXPHIL_BATCH_INIT;
    for (int i = 0; i < ROWS; i++) {
        mask[i] = 1.0f;
        reset[i] = i % TIME == 0;
        actions[i] = (int32_t)(mix((uint64_t)((update * 8 + rank) * ROWS + i)) % 3);
        for (int f = 0; f < FLOATS; f++)
            floats[i * FLOATS + f] = (float)value(rank, (update * ROWS + i) * FLOATS + f) / 4096.0f;
    }
    batch.batch = LANES;
    batch.time = TIME;
    batch.frames = ROWS;
    batch.floats = floats;
    batch.actions = actions;
    batch.mask = mask;
    batch.reset = reset;
    CHECK(exphil_trainer_step_batch(trainer, &batch, NULL, NULL) == EXPHIL_OK);
}

/* The hash of the weights after a training. */
static uint64_t trained(const exphil_communicator *with)
{
    static const exphil_head_spec head = {"way", EXPHIL_CATEGORICAL, 3, 1, 0};
    exphil_context_config one = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL, *after = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    one.threads = 1;
    spec.layout = spec.codec = "ranks";
    spec.float_count = FLOATS;
    spec.head_count = 1;
    spec.heads = &head;
    config.spec = &spec;
    config.blocks = "gru";
    config.hidden = config.head_width = 24;
    how.communicator = with;
    config.no_previous_action = 1;
    CHECK(exphil_context_create(&one, &context, NULL) == EXPHIL_OK);
    CHECK(exphil_model_create(context, &config, &model, NULL) == EXPHIL_OK);
    CHECK(exphil_optimizer_create(model, NULL, &optimizer, NULL) == EXPHIL_OK);
    CHECK(exphil_trainer_create(model, optimizer, NULL, &how, &trainer, NULL) == EXPHIL_OK);
    for (int u = 0; u < UPDATES; u++) step(trainer, with->rank, u);
    CHECK(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &after, NULL) == EXPHIL_OK);
    CHECK(exphil_model_query(after, &info, NULL) == EXPHIL_OK);
    exphil_model_destroy(after);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return info.weights_hash;
}

static void *train_on_thread(void *user)
{
    place *own = user;
    own->hash = trained(&own->with);
    return NULL;
}

static uint64_t trained_by_threads(int ranks)
{
    static meeting at;
    place own[8];
    pthread_t thread[8];
    at.ranks = ranks;
    CHECK(!pthread_barrier_init(&at.barrier, NULL, (unsigned)ranks));
    for (int k = 0; k < ranks; k++) {
        own[k] = (place){&at, {sizeof own[k].with, &own[k], by_threads, k, ranks}, 0};
        CHECK(!pthread_create(&thread[k], NULL, train_on_thread, &own[k]));
    }
    for (int k = 0; k < ranks; k++) pthread_join(thread[k], NULL);
    for (int k = 1; k < ranks; k++) CHECK(own[k].hash == own[0].hash);
    return own[0].hash;
}

static void train(void)
{
    exphil_communicator with = {0};
    exphil_mpi *mpi = opened(MPI_COMM_WORLD, NULL, &with);
    uint64_t hash = trained(&with);
    uint64_t all[8] = {0};
    CHECK(exphil_mpi_close(mpi) == EXPHIL_OK && world_ranks <= 8);
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int k = 0; k < world_ranks; k++) CHECK(all[k] == hash);
    if (!world_rank) {
        CHECK(trained_by_threads(world_ranks) == hash);
        printf("weights of %d ranks: %016llx\n", world_ranks, (unsigned long long)hash);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int level = -1, single = !strcmp(what, "single");
    refused_open(MPI_COMM_WORLD, NULL, EXPHIL_E_STATE, "not initialised");
    MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
    if (single && level != MPI_THREAD_SINGLE)
        printf("SKIPPED: this MPI has no MPI_THREAD_SINGLE\n");
    else if (single)
        refused_open(MPI_COMM_WORLD, NULL, EXPHIL_E_STATE, "MPI_THREAD_SINGLE");
    else if (!strcmp(what, "sums"))
        sums();
    else if (!strcmp(what, "train"))
        train();
    else if (!strcmp(what, "misuse"))
        misuse();
    else
        CHECK(!"ranks sums | misuse | single | train");
    if (strcmp(what, "misuse") != 0) MPI_Finalize();
    return 0;
}
