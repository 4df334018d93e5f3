/* Time of a reduction of floats by libexphil_mpi beside what MPI itself offers, in turns in one run:
 *   exphil     all_reduce of libexphil_mpi: in rank order
 *   alltoallv  the same from MPI_Ialltoallv and MPI_Iallgatherv, without copies and time limits
 *   MPI        MPI_Allreduce: in an order of MPI's own
 *
 *     mpicc -O2 reduce.c $(pkg-config --cflags --libs exphil_mpi) -o reduce && mpirun -n 2 ./reduce
 *
 * Rank 0 prints medians in microseconds, of the slowest rank in each turn. */
#include "exphil_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 3, MOST_TURNS = 400, RANKS_MOST = 64 };
static const int64_t counts[] = {1, 1000, 4000, 10000, 40000, 100000, 400000, 1000000, 4000000};
static int rank, ranks;

/* One after the other, as little as can be done by collectives of MPI for sums in rank order. */
static void by_alltoallv(float *data, float *room, int64_t count)
{
    int sent[RANKS_MOST], to[RANKS_MOST], came[RANKS_MOST], from[RANKS_MOST];
    MPI_Request request;
    int own = (int)(count / ranks + (rank < count % ranks));
    for (int k = 0, at = 0; k < ranks; at += sent[k++]) {
        sent[k] = (int)(count / ranks + (k < count % ranks));
        to[k] = at;
        came[k] = own;
        from[k] = k * own;
    }
    MPI_Ialltoallv(data, sent, to, MPI_FLOAT, room, came, from, MPI_FLOAT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 1; k < ranks; k++)
        for (int i = 0; i < own; i++) room[i] += room[(int64_t)k * own + i];
    MPI_Iallgatherv(room, own, MPI_FLOAT, data, sent, to, MPI_FLOAT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reduce(int way, const exphil_communicator *with, float *data, float *room, int64_t count)
{
    if (way == 0 && with->all_reduce(with->user, data, count, EXPHIL_TYPE_F32)) exphil_mpi_abort(NULL, 1);
    if (way == 1) by_alltoallv(data, room, count);
    if (way == 2) MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const exphil_communicator *with, float *data, float *room, int64_t count)
{
    static double took[WAYS][MOST_TURNS];
    int turns = count >= 400000 ? 30 : MOST_TURNS;
    for (int turn = -3; turn < turns; turn++) /* three to warm up */
        for (int way = 0; way < WAYS; way++) {
            memset(data, 0, (size_t)count * sizeof(float));
            MPI_Barrier(MPI_COMM_WORLD);
            double own = MPI_Wtime(), slowest;
            reduce(way, with, data, room, count);
            own = MPI_Wtime() - own;
            MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (turn >= 0) took[way][turn] = slowest * 1e6;
        }
    for (int way = 0; way < WAYS; way++) qsort(took[way], (size_t)turns, sizeof(double), by_size);
    if (rank == 0)
        printf("| %lld | %.1f | %.1f | %.1f |\n", (long long)count, took[0][turns / 2], took[1][turns / 2],
               took[2][turns / 2]);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int level, length = 0;
    int64_t most = counts[sizeof counts / sizeof *counts - 1];
    exphil_communicator with = {sizeof with, NULL, NULL, 0, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *mpi = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(name, &length);
    if (ranks > RANKS_MOST || exphil_mpi_open(MPI_COMM_WORLD, NULL, &mpi, &error) < 0 ||
        exphil_mpi_communicator(mpi, &with, &error) < 0) {
        fprintf(stderr, "reduce: %s\n", ranks > RANKS_MOST ? "too many ranks" : error.message);
        exphil_mpi_abort(NULL, 1);
    }
    float *data = malloc((size_t)most * sizeof *data), *room = malloc((size_t)(most + ranks) * sizeof *room);
    if (!data || !room) exphil_mpi_abort(NULL, 1);
    if (rank == 0)
        printf("%.*s, %d ranks\n\n| floats | exphil | alltoallv | MPI |\n| --- | --- | --- | --- |\n",
               (int)strcspn(name, "\n,"), name, ranks);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) measure(&with, data, room, counts[c]);
    free(data);
    free(room);
    exphil_mpi_close(mpi);
    MPI_Finalize();
    return 0;
}
