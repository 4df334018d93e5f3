/* A libexphil_mpi without any MPI, for tests/mpi/lossy.py: sums are made by a process that all ranks reach by a socket, and that
 * says when one of them is gone. So a rank can be lost at any sum, and the others go on without it.
 *
 * LOSSY_SOCKET names the socket, LOSSY_RANK and LOSSY_RANKS the place. A request is three 64-bit numbers: what ('s' sum, 'h'
 * shrink, 'e' end), bytes of each number, count; then the data. The answer is three: 0 or why not, as all_reduce
 * returns it, and of a shrink the new place, rank and ranks; of a sum the data. */
#include <exphil/exphil.h>
#define EXPHIL_MPI_WITHOUT_MPI_H
#include "exphil_mpi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct exphil_mpi {
    int64_t rank, ranks;
    const char *why;
};

static int hub = -1;

static bool move(bool out, void *data, size_t bytes)
{
    char *at = data;
    while (bytes) {
        ssize_t moved = out ? write(hub, at, bytes) : read(hub, at, bytes);
        if (moved <= 0) return false;
        at += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

static bool ask(int64_t what, int64_t each, int64_t count, void *data, int64_t answer[3])
{
    int64_t request[3] = {what, each, count};
    const size_t bytes = (size_t)(each * count);
    if (!move(true, request, sizeof request) || !move(true, data, bytes)) return false;
    return move(false, answer, 3 * sizeof *answer) && (answer[0] || move(false, data, bytes));
}

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    exphil_mpi *mpi = user;
    int64_t answer[3] = {1, 0, 0};
    if (*mpi->why) return EXPHIL_MPI_ELSEWHERE;
    if (ask('s', type == EXPHIL_TYPE_F64 ? 8 : 4, count, data, answer) && !answer[0]) return 0;
    mpi->why = "a rank is lost";
    return (int32_t)answer[0];
}

static exphil_mpi *make(int64_t rank, int64_t ranks)
{
    exphil_mpi *made = malloc(sizeof *made);
    if (!made) abort();
    *made = (exphil_mpi){rank, ranks, ""};
    return made;
}

exphil_status exphil_mpi_open_world(int *argc, char ***argv, const exphil_mpi_config *config,
                                    exphil_mpi **mpi, exphil_error *error)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int64_t rank = strtol(getenv("LOSSY_RANK"), NULL, 10);
    (void)argc, (void)argv, (void)config, (void)error;
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("LOSSY_SOCKET"));
    hub = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (hub < 0 || connect(hub, (struct sockaddr *)&to, sizeof to) != 0 || !move(true, &rank, sizeof rank))
        abort();
    *mpi = make(rank, strtol(getenv("LOSSY_RANKS"), NULL, 10));
    return EXPHIL_OK;
}

exphil_status exphil_mpi_communicator(exphil_mpi *mpi, exphil_communicator *out, exphil_error *error)
{
    (void)error;
    out->user = mpi;
    out->all_reduce = all_reduce;
    out->rank = (int32_t)mpi->rank;
    out->ranks = (int32_t)mpi->ranks;
    return EXPHIL_OK;
}

exphil_status exphil_mpi_local(const exphil_mpi *mpi, int32_t *rank, int32_t *ranks, exphil_error *error)
{
    (void)error;
    *rank = (int32_t)mpi->rank;
    *ranks = (int32_t)mpi->ranks;
    return EXPHIL_OK;
}

const char *exphil_mpi_why(const exphil_mpi *mpi)
{
    return mpi->why;
}

exphil_status exphil_mpi_shrink(exphil_mpi *mpi, exphil_mpi **smaller, exphil_error *error)
{
    int64_t answer[3];
    (void)mpi, (void)error;
    if (!ask('h', 0, 0, NULL, answer)) abort();
    *smaller = make(answer[1], answer[2]);
    return EXPHIL_OK;
}

void exphil_mpi_abort(exphil_mpi *mpi, int32_t code)
{
    (void)mpi;
    _exit(code);
}

exphil_status exphil_mpi_close(exphil_mpi *mpi)
{
    int64_t answer[3];
    (void)mpi;
    return ask('e', 0, 0, NULL, answer) && !answer[0] ? EXPHIL_OK : EXPHIL_E_IO;
}
