/* A program that knows nothing of MPI and finds libexphil_mpi when it runs, as plugins are found: it initialises MPI, sums, tells
 * its place on its node, and finalises MPI.
 *   world LIBRARY [abort CODE]   with abort: rank 0 ends all ranks */
#define EXPHIL_MPI_WITHOUT_MPI_H
#include "exphil_mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                        \
      _exit(1);                                                                                              \
    }                                                                                                        \
  } while (0)

static struct functions {
    __typeof__(exphil_mpi_open_world) *open_world;
    __typeof__(exphil_mpi_communicator) *communicator;
    __typeof__(exphil_mpi_local) *local;
    __typeof__(exphil_mpi_time) *time;
    __typeof__(exphil_mpi_why) *why;
    __typeof__(exphil_mpi_abort) *abort;
    __typeof__(exphil_mpi_close) *close;
} mpi;

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
#define FIND(name) CHECK(*(void **)&mpi.name = dlsym(library, "exphil_mpi_" #name))
    FIND(open_world);
    FIND(communicator);
    FIND(local);
    FIND(time);
    FIND(why);
    FIND(abort);
    FIND(close);
}

int main(int argc, char **argv)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_mpi *all = NULL;
    exphil_communicator with = {sizeof with, NULL, NULL, 0, 0};
    int32_t local = -1, locals = -1;
    int64_t ns = -1, calls = -1;
    float data[3] = {1.0f, 2.0f, 0.0f};
    CHECK(argc > 1);
    load(argv[1]);
    if (mpi.open_world(&argc, &argv, NULL, &all, &error) < 0) fprintf(stderr, "%s\n", error.message);
    CHECK(all && !*mpi.why(all));
    CHECK(mpi.communicator(all, &with, &error) == EXPHIL_OK);
    data[2] = (float)with.rank;
    CHECK(with.all_reduce(with.user, data, 3, EXPHIL_TYPE_F32) == 0);
    CHECK(data[0] == (float)with.ranks && data[1] == 2.0f * (float)with.ranks);
    CHECK(data[2] == (float)(with.ranks * (with.ranks - 1) / 2));
    CHECK(mpi.local(all, &local, &locals, &error) == EXPHIL_OK && local == with.rank && locals == with.ranks);
    CHECK(mpi.time(all, &ns, &calls, &error) == EXPHIL_OK && calls == 1 && ns >= 0);
    if (argc > 3) {
        if (with.rank == 0) mpi.abort(all, atoi(argv[3]));
        for (;;) pause();
    }
    if (with.rank == 0) printf("%d ranks, rank %d of %d on this node\n", with.ranks, local, locals);
    CHECK(mpi.close(all) == EXPHIL_OK);
    return 0;
}
