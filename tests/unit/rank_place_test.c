/* Which rank a process is, over tables of environments. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

/* The program's own code is under test here. */
#include "../../cli/rank_place.c"

enum { VARIABLES_MOST = 10 };

/* "NAME=value"; a NULL ends them. */
static const char *const *environment;

static char *look(const char *name)
{
    size_t length = strlen(name);
    for (const char *const *one = environment; *one; one++)
        if (strncmp(*one, name, length) == 0 && (*one)[length] == '=')
            return (char *)(uintptr_t)(*one + length + 1);
    return NULL;
}

#define EXPHIL(rank, ranks, local, locals)                                                                   \
  "EXPHIL_RANK=" #rank, "EXPHIL_RANKS=" #ranks, "EXPHIL_LOCAL_RANK=" #local, "EXPHIL_LOCAL_RANKS=" #locals
#define TORCH(rank, ranks, local, locals)                                                                    \
  "RANK=" #rank, "WORLD_SIZE=" #ranks, "LOCAL_RANK=" #local, "LOCAL_WORLD_SIZE=" #locals
#define OPEN_MPI(rank, ranks, local, locals)                                                                 \
  "OMPI_COMM_WORLD_RANK=" #rank, "OMPI_COMM_WORLD_SIZE=" #ranks, "OMPI_COMM_WORLD_LOCAL_RANK=" #local,       \
      "OMPI_COMM_WORLD_LOCAL_SIZE=" #locals
#define MPICH(rank, ranks, local, locals)                                                                    \
  "PMI_RANK=" #rank, "PMI_SIZE=" #ranks, "MPI_LOCALRANKID=" #local, "MPI_LOCALNRANKS=" #locals
#define JOB(rank, ranks, local) "SLURM_PROCID=" #rank, "SLURM_NTASKS=" #ranks, "SLURM_LOCALID=" #local
#define STEP                    "SLURM_STEP_ID=0"

typedef struct told {
    const char *const set[VARIABLES_MOST];
    rank_place place;
} told;

static const told places[] = {
    {{NULL}, {NULL, 0, 1, 0, 1}},
    {{"HOME=/", "RANKS=7", "EXPHIL_RESTART=3"}, {NULL, 0, 1, 0, 1}},
    {{EXPHIL(3, 8, 3, 8)}, {"exphil launch", 3, 8, 3, 8}},
    {{TORCH(9, 16, 1, 8)}, {"torchrun", 9, 16, 1, 8}},
    {{OPEN_MPI(2, 4, 0, 2)}, {"Open MPI", 2, 4, 0, 2}},
    {{MPICH(0, 2, 0, 1)}, {"MPICH", 0, 2, 0, 1}},
    {{MPICH(65535, 65536, 7, 8)}, {"MPICH", 65535, 65536, 7, 8}},
    {{JOB(5, 8, 1), STEP}, {"SLURM", 5, 8, 1, 0}},
    /* as exphil launch sets them */
    {{EXPHIL(1, 2, 1, 2), TORCH(1, 2, 1, 2)}, {"exphil launch", 1, 2, 1, 2}},
    /* the first in order, whatever the environment's is */
    {{OPEN_MPI(1, 2, 1, 2), TORCH(1, 2, 1, 2)}, {"torchrun", 1, 2, 1, 2}},
    {{MPICH(1, 2, 1, 2), OPEN_MPI(1, 2, 1, 2)}, {"Open MPI", 1, 2, 1, 2}},
    /* a job without srun is no rank, and what runs in a job has its variables */
    {{JOB(0, 1, 0)}, {NULL, 0, 1, 0, 1}},
    {{JOB(0, 8, 0)}, {NULL, 0, 1, 0, 1}},
    {{JOB(0, 1, 0), STEP, EXPHIL(1, 4, 1, 4)}, {"exphil launch", 1, 4, 1, 4}},
    {{JOB(1, 2, 0), STEP, OPEN_MPI(7, 8, 3, 4)}, {"Open MPI", 7, 8, 3, 4}},
    {{JOB(1, 2, 0), STEP, TORCH(12, 16, 4, 8)}, {"torchrun", 12, 16, 4, 8}},
    /* srun with PMI-2 */
    {{JOB(5, 8, 1), STEP, "PMI_RANK=5", "PMI_SIZE=8"}, {"SLURM", 5, 8, 1, 0}},
    {{TORCH(1, 2, 1, 2), "PMI_RANK=1", "PMI_SIZE=2"}, {"torchrun", 1, 2, 1, 2}},
    /* local ranks of SLURM */
    {{JOB(5, 8, 1), STEP, "SLURM_STEP_TASKS_PER_NODE=2(x4)", "SLURM_NODEID=2"}, {"SLURM", 5, 8, 1, 2}},
    {{JOB(6, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_NODEID=3"}, {"SLURM", 6, 7, 0, 1}},
    {{JOB(6, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=4,3", "SLURM_NODEID=1"}, {"SLURM", 6, 7, 0, 3}},
    {{JOB(0, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=7", "SLURM_NODEID=0"}, {"SLURM", 0, 7, 0, 7}},
    {{JOB(6, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=4,3", "SLURM_NODEID=2"}, {"SLURM", 6, 7, 0, 0}},
    {{JOB(6, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=4(x", "SLURM_NODEID=0"}, {"SLURM", 6, 7, 0, 0}},
    {{JOB(6, 7, 0), STEP, "SLURM_STEP_TASKS_PER_NODE=x", "SLURM_NODEID=0"}, {"SLURM", 6, 7, 0, 0}},
    {{JOB(6, 7, 5), STEP, "SLURM_STEP_TASKS_PER_NODE=4,3", "SLURM_NODEID=0"}, {"SLURM", 6, 7, 5, 0}},
};

static void places_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        rank_place place;
        char why[RANK_PLACE_WHY] = "";
        const rank_place *wanted = &places[i].place;
        environment = places[i].set;
        if (!rank_place_find(look, &place, why)) fail_msg("environment %zu: %s", i, why);
        if (wanted->family ? !place.family || strcmp(place.family, wanted->family) != 0
                           : place.family != NULL)
            fail_msg("environment %zu: %s", i, place.family ? place.family : "nobody");
        assert_int_equal(place.rank, wanted->rank);
        assert_int_equal(place.ranks, wanted->ranks);
        assert_int_equal(place.local_rank, wanted->local_rank);
        assert_int_equal(place.local_ranks, wanted->local_ranks);
    }
}

typedef struct refused {
    const char *const set[VARIABLES_MOST];
    const char *why;
} refused;

static const refused wrong[] = {
    /* not complete, each variable alone and each alone absent */
    {{"EXPHIL_RANK=0"}, "EXPHIL_RANK is set and EXPHIL_RANKS is not: exphil launch sets both"},
    {{"RANK=0"}, "RANK is set and WORLD_SIZE is not: torchrun sets both"},
    {{"WORLD_SIZE=1"}, "WORLD_SIZE is set and RANK is not: torchrun sets both"},
    {{"LOCAL_RANK=0"}, "LOCAL_RANK is set and RANK is not: torchrun sets both"},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0"},
     "RANK is set and LOCAL_WORLD_SIZE is not: torchrun sets both"},
    {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"},
     "OMPI_COMM_WORLD_RANK is set and OMPI_COMM_WORLD_LOCAL_RANK is not: Open MPI sets both"},
    {{"PMI_RANK=0"}, "PMI_RANK is set and PMI_SIZE is not: MPICH sets both"},
    {{"PMI_RANK=0", "PMI_SIZE=2"}, "PMI_RANK is set and MPI_LOCALRANKID is not: MPICH sets both"},
    {{"PMI_RANK=0", "MPI_LOCALRANKID=0"}, "PMI_RANK is set and PMI_SIZE is not: MPICH sets both"},
    {{STEP, "SLURM_PROCID=0", "SLURM_NTASKS=2"},
     "SLURM_PROCID is set and SLURM_LOCALID is not: SLURM sets both"},
    {{EXPHIL(0, 2, 0, 2), "RANK=0"}, "RANK is set and WORLD_SIZE is not: torchrun sets both"},
    /* no numbers */
    {{EXPHIL(x, 2, 0, 2)}, "EXPHIL_RANK is \"x\": that is no whole number from 0 to 65535"},
    {{EXPHIL(-1, 2, 0, 2)}, "EXPHIL_RANK is \"-1\": that is no whole number from 0 to 65535"},
    {{EXPHIL(0, 0, 0, 1)}, "EXPHIL_RANKS is \"0\": that is no whole number from 1 to 65536"},
    {{EXPHIL(0, 65537, 0, 1)}, "EXPHIL_RANKS is \"65537\": that is no whole number from 1 to 65536"},
    {{TORCH(0, 2, 0x1, 2)}, "LOCAL_RANK is \"0x1\": that is no whole number from 0 to 65535"},
    {{TORCH(0, 2, , 2)}, "LOCAL_RANK is \"\": that is no whole number from 0 to 65535"},
    {{"RANK= 0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2"},
     "RANK is \" 0\": that is no whole number from 0 to 65535"},
    {{OPEN_MPI(0, 2, 0, 99999999999999999999)},
     "OMPI_COMM_WORLD_LOCAL_SIZE is \"99999999999999999999\": that is no whole number from 1 to 65536"},
    {{MPICH(1.0, 2, 0, 2)}, "PMI_RANK is \"1.0\": that is no whole number from 0 to 65535"},
    {{JOB(y, 2, 0), STEP}, "SLURM_PROCID is \"y\": that is no whole number from 0 to 65535"},
    /* ranks that there cannot be */
    {{EXPHIL(2, 2, 0, 2)}, "EXPHIL_RANK is 2 and EXPHIL_RANKS 2: ranks count from 0"},
    {{TORCH(0, 4, 2, 2)}, "LOCAL_RANK is 2 and LOCAL_WORLD_SIZE 2: ranks count from 0"},
    {{MPICH(0, 2, 0, 3)},
     "MPI_LOCALNRANKS is 3 and PMI_SIZE 2: there are no more ranks on one machine than in all"},
    {{JOB(8, 8, 0), STEP}, "SLURM_PROCID is 8 and SLURM_NTASKS 8: ranks count from 0"},
    /* two that say different things */
    {{EXPHIL(0, 2, 0, 2), TORCH(1, 2, 0, 2)}, "EXPHIL_RANK is 0 (exphil launch) and RANK is 1 (torchrun)"},
    {{OPEN_MPI(0, 2, 0, 2), TORCH(0, 4, 0, 2)},
     "WORLD_SIZE is 4 (torchrun) and OMPI_COMM_WORLD_SIZE is 2 (Open MPI)"},
    {{OPEN_MPI(1, 2, 1, 2), MPICH(1, 2, 0, 2)},
     "OMPI_COMM_WORLD_LOCAL_RANK is 1 (Open MPI) and MPI_LOCALRANKID is 0 (MPICH)"},
    {{OPEN_MPI(0, 2, 0, 2), MPICH(0, 2, 0, 1)},
     "OMPI_COMM_WORLD_LOCAL_SIZE is 2 (Open MPI) and MPI_LOCALNRANKS is 1 (MPICH)"},
    {{EXPHIL(0, 2, 0, 2), "PMI_RANK=1", "PMI_SIZE=2"},
     "EXPHIL_RANK is 0 (exphil launch) and PMI_RANK is 1 (MPICH)"},
    {{JOB(0, 2, 0), STEP, "PMI_RANK=1", "PMI_SIZE=2"}, "PMI_RANK is 1 (MPICH) and SLURM_PROCID is 0 (SLURM)"},
};

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rank_place place;
        char why[RANK_PLACE_WHY] = "";
        environment = wrong[i].set;
        bool found = rank_place_find(look, &place, why);
        if (found) fail_msg("environment %zu is taken", i);
        if (strncmp(why, wrong[i].why, strlen(wrong[i].why)) != 0) fail_msg("environment %zu: %s", i, why);
    }
}

/* For children that get another place. */
static void places_are_forgotten(void **state)
{
    (void)state;
    rank_place place;
    char why[RANK_PLACE_WHY] = "";
    static const char *const set[][2] = {{"EXPHIL_RANK", "1"},
                                         {"WORLD_SIZE", "8"},
                                         {"OMPI_COMM_WORLD_RANK", "3"},
                                         {"MPI_LOCALNRANKS", "2"},
                                         {"SLURM_PROCID", "0"}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) test_setenv(set[i][0], set[i][1]);
    assert_false(rank_place_find(getenv, &place, why));
    rank_place_forget();
    test_setenv("SLURM_STEP_ID", NULL);
    assert_true(rank_place_find(getenv, &place, why));
    assert_null(place.family);
    assert_non_null(getenv("SLURM_PROCID"));
}

static void descriptors_are_found(void **state)
{
    static const char *const set[] = {"A=0", "B=17", "C=", "D=-1", "E=3x", "F=99999999999", NULL};
    environment = set;
    assert_int_equal(rank_place_descriptor(look, "A"), 0);
    assert_int_equal(rank_place_descriptor(look, "B"), 17);
    for (const char *const *name = (const char *const[]){"C", "D", "E", "F", "G", NULL}; *name; name++)
        assert_int_equal(rank_place_descriptor(look, *name), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_found),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(places_are_forgotten),
        cmocka_unit_test(descriptors_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
