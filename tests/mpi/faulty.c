/* One of several ranks goes wrong, at a moment that no one chose: the others get an error, none of them hangs.
 *   faulty KIND SEED FOLDER
 * KIND: absent   the last rank comes to no reduction
 *       early    it does not come to exphil_mpi_open
 *       stopped  it stops (SIGSTOP) at a random moment within reductions
 *       killed   it is killed (SIGKILL) so; where MPI is fault-tolerant the others go on without it
 * Each other rank writes why into FOLDER/RANK; when all have, the first one ends the launch with status 3. Ranks that went on
 * without the killed one end with 0. */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "exphil_mpi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { COUNT = 20000, TIMEOUT_MS = 1000, AFTER = 50 };
static int rank, ranks, fault;

static void must(int condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exphil_mpi_abort(NULL, 1);
}

static void go_wrong(int signal_number)
{
    (void)signal_number;
    kill(getpid(), fault);
}

static void go_wrong_in(long microseconds)
{
    struct itimerval when = {{0, 0}, {microseconds / 1000000, microseconds % 1000000}};
    signal(SIGALRM, go_wrong);
    must(setitimer(ITIMER_REAL, &when, NULL) == 0, "setitimer");
}

static void tell(const char *folder, int32_t code, const char *why)
{
    char path[512], draft[512];
    snprintf(path, sizeof path, "%s/%d", folder, rank);
    snprintf(draft, sizeof draft, "%s/%d.new", folder, rank);
    FILE *file = fopen(draft, "w");
    must(file && fprintf(file, "%d %s\n", code, why) > 0 && fclose(file) == 0 && rename(draft, path) == 0,
         "cannot write");
}

/* The first rank ends all, when the others have told why. */
static void end(exphil_mpi *mpi, const char *folder)
{
    char path[512];
    for (int k = 0; rank == 0 && k < ranks - 1; k++)
        for (snprintf(path, sizeof path, "%s/%d", folder, k); access(path, F_OK) != 0;) usleep(1000);
    if (rank == 0) exphil_mpi_abort(mpi, 3);
    for (;;) pause();
}

/* Sums until one fails, at most `most`; each is right. */
static int32_t reduce(exphil_mpi *mpi, long most)
{
    static float data[COUNT];
    exphil_communicator with = {sizeof with, NULL, NULL, 0, 0};
    must(exphil_mpi_communicator(mpi, &with, NULL) == EXPHIL_OK, "communicator");
    for (long turn = 0; turn < most; turn++) {
        for (int i = 0; i < COUNT; i++) data[i] = (float)(with.rank + i % 7 + turn % 5);
        int32_t code = with.all_reduce(with.user, data, turn % 2 ? COUNT : 10, EXPHIL_TYPE_F32);
        if (code) return code;
        for (int i = 0; i < (turn % 2 ? COUNT : 10); i++) {
            float is = (float)(with.ranks * (with.ranks - 1) / 2 + with.ranks * (int)(i % 7 + turn % 5));
            must(data[i] == is, "a sum is wrong");
        }
    }
    return 0;
}

static int go_on(exphil_mpi *mpi)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *smaller = NULL;
    exphil_communicator with = {sizeof with, NULL, NULL, 0, 0};
    exphil_status status = exphil_mpi_shrink(mpi, &smaller, &error);
    if (status == EXPHIL_E_UNSUPPORTED) return 0;
    must(status == EXPHIL_OK, error.message);
    must(exphil_mpi_communicator(smaller, &with, NULL) == EXPHIL_OK && with.ranks == ranks - 1 &&
             with.rank == rank,
         "survivors");
    must(reduce(smaller, AFTER) == 0, exphil_mpi_why(smaller));
    must(exphil_mpi_close(mpi) == EXPHIL_E_IO, "the broken one is closed");
    must(exphil_mpi_close(smaller) == EXPHIL_OK, "the survivors cannot close");
    return 1;
}

int main(int argc, char **argv)
{
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *mpi = NULL;
    int level;
    if (argc != 4) return 2;
    const char *kind = argv[1], *folder = argv[3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int faulty = rank == ranks - 1;
    config.timeout_ms = config.start_ms = TIMEOUT_MS;
    if (!strcmp(kind, "early")) {
        if (faulty)
            for (;;) pause();
        exphil_status status = exphil_mpi_open(MPI_COMM_WORLD, &config, &mpi, &error);
        must(status == EXPHIL_E_IO && error.native_code == EXPHIL_MPI_TIMED_OUT && !mpi, "it opens");
        tell(folder, error.native_code, error.message);
        end(NULL, folder);
    }
    must(exphil_mpi_open(MPI_COMM_WORLD, &config, &mpi, &error) == EXPHIL_OK, error.message);
    fault = !strcmp(kind, "killed") ? SIGKILL : SIGSTOP;
    if (faulty && !strcmp(kind, "absent"))
        for (;;) pause();
    srand((unsigned)atoi(argv[2]));
    if (faulty) go_wrong_in(1 + rand() % 300000);
    int32_t code = reduce(mpi, 1000000000);
    must(!faulty && code && reduce(mpi, 1) == code, "not broken");
    tell(folder, code, exphil_mpi_why(mpi));
    if (fault == SIGKILL && go_on(mpi)) return 0;
    end(mpi, folder);
}
