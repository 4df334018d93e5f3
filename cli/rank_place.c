/* Which process of several this one is. See rank_place.h. */
#include "rank_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 4, DIGITS_MOST = 7 };

/* Names of rank, ranks, local rank, local ranks; so many of them are plain numbers. */
typedef struct family {
    const char *name, *part[PARTS];
    int numbers;
} family;

static const family families[] = {
    {RANK_PLACE_LAUNCH, {"EXPHIL_RANK", "EXPHIL_RANKS", "EXPHIL_LOCAL_RANK", "EXPHIL_LOCAL_RANKS"}, PARTS},
    {"torchrun", {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, PARTS},
    {"Open MPI",
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     PARTS},
    {"MPICH", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, PARTS},
    {"SLURM", {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}, PARTS - 1},
};
enum { FAMILIES = sizeof families / sizeof families[0], MPICH = FAMILIES - 2, SLURM = FAMILIES - 1 };

/* What a family says; -1: it does not. */
typedef struct saying {
    int32_t part[PARTS];
} saying;

/* A whole number below most. */
static bool read_number(const char *name, const char *text, int32_t least, int32_t most, int32_t *number,
                        char *why)
{
    size_t length = strspn(text, "0123456789");
    long value = length && length <= DIGITS_MOST && !text[length] ? strtol(text, NULL, 10) : -1;
    *number = (int32_t)value;
    if (value >= least && value <= most) return true;
    (void)snprintf(why, RANK_PLACE_WHY, "%s is \"%.40s\": that is no whole number from %d to %d", name, text,
                   (int)least, (int)most);
    return false;
}

/* Is this rank one of so many? */
static bool check_pair(const family *of, const saying *s, int which, char *why)
{
    if (s->part[which] < 0 || s->part[which + 1] < 0 || s->part[which] < s->part[which + 1]) return true;
    (void)snprintf(why, RANK_PLACE_WHY, "%s is %d and %s %d: ranks count from 0", of->part[which],
                   (int)s->part[which], of->part[which + 1], (int)s->part[which + 1]);
    return false;
}

/* What is set of a family; *count: how many variables of it. */
static bool read_family(rank_place_get get, const family *of, saying *s, int *count, char *why)
{
    *count = 0;
    for (int i = 0; i < PARTS; i++) {
        const char *text = i < of->numbers ? get(of->part[i]) : NULL;
        s->part[i] = -1;
        if (!text) continue;
        if (!read_number(of->part[i], text, i % 2, RANK_PLACE_MOST - 1 + i % 2, &s->part[i], why))
            return false;
        ++*count;
    }
    if (!check_pair(of, s, 0, why) || !check_pair(of, s, 2, why)) return false;
    if (s->part[3] <= s->part[1] || s->part[1] < 0) return true;
    (void)snprintf(why, RANK_PLACE_WHY,
                   "%s is %d and %s %d: there are no more ranks on one machine than in all", of->part[3],
                   (int)s->part[3], of->part[1], (int)s->part[1]);
    return false;
}

/* Is all there that it has? PMI_RANK and PMI_SIZE alone are left to others: *partial. */
static bool check_complete(int which, const saying *s, int count, bool *partial, char *why)
{
    const family *of = &families[which];
    int there = 0, absent = 0;
    *partial = which == MPICH && count == 2 && s->part[0] >= 0 && s->part[1] >= 0;
    if (count == 0 || count == of->numbers || *partial) return true;
    for (int i = of->numbers - 1; i >= 0; i--) {
        if (s->part[i] < 0)
            absent = i;
        else
            there = i;
    }
    (void)snprintf(why, RANK_PLACE_WHY, "%s is set and %s is not: %s sets both", of->part[there],
                   of->part[absent], of->name);
    return false;
}

/* Do two families say the same where both say something? */
static bool agree(int first, const saying *a, int second, const saying *b, char *why)
{
    for (int i = 0; i < PARTS; i++) {
        if (a->part[i] < 0 || b->part[i] < 0 || a->part[i] == b->part[i]) continue;
        (void)snprintf(
            why, RANK_PLACE_WHY,
            "%s is %d (%s) and %s is %d (%s): they contradict each other; unset those that are not meant",
            families[first].part[i], (int)a->part[i], families[first].name, families[second].part[i],
            (int)b->part[i], families[second].name);
        return false;
    }
    return true;
}

/* Tasks of this node, from a list as "2(x3),1": three nodes with 2 and one with 1. 0: not said. */
static int32_t tasks_here(rank_place_get get)
{
    const char *text = get("SLURM_STEP_TASKS_PER_NODE"), *node_text = get("SLURM_NODEID");
    long node = node_text ? strtol(node_text, NULL, 10) : -1;
    while (text && *text && node >= 0) {
        char *end;
        long tasks = strtol(text, &end, 10), times = 1;
        if (end == text || tasks < 1 || tasks > RANK_PLACE_MOST) return 0;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtol(end + 2, &end, 10);
            if (times < 1 || *end++ != ')') return 0;
        }
        if (node < times) return (int32_t)tasks;
        node -= times;
        if (*end && *end != ',') return 0;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* SLURM's, which comes last. */
static bool find_slurm(rank_place_get get, saying *s, bool *there, char *why)
{
    int count;
    bool partial;
    *there = false;
    if (!get("SLURM_STEP_ID")) return true;
    if (!read_family(get, &families[SLURM], s, &count, why) ||
        !check_complete(SLURM, s, count, &partial, why))
        return false;
    *there = count > 0;
    s->part[3] = tasks_here(get);
    if (s->part[3] <= s->part[2] || s->part[3] > s->part[1]) s->part[3] = 0;
    return true;
}

bool rank_place_find(rank_place_get get, rank_place *place, char *why)
{
    saying of[FAMILIES];
    int count, taken = -1, half = -1;
    bool partial, slurm;
    *place = (rank_place){.ranks = 1, .local_ranks = 1};
    for (int i = 0; i < SLURM; i++) {
        if (!read_family(get, &families[i], &of[i], &count, why) ||
            !check_complete(i, &of[i], count, &partial, why))
            return false;
        if (count == 0) continue;
        if (taken >= 0 && !agree(taken, &of[taken], i, &of[i], why)) return false;
        if (taken < 0 && !partial) taken = i;
        if (partial) half = i;
    }
    if (taken < 0) {
        if (!find_slurm(get, &of[SLURM], &slurm, why)) return false;
        if (slurm && half >= 0 && !agree(half, &of[half], SLURM, &of[SLURM], why)) return false;
        if (slurm) taken = SLURM;
    }
    if (taken < 0 && half < 0) return true;
    if (taken < 0) {
        (void)snprintf(why, RANK_PLACE_WHY, "%s is set and %s is not: %s sets both", families[half].part[0],
                       families[half].part[2], families[half].name);
        return false;
    }
    const int32_t *part = of[taken].part;
    *place = (rank_place){families[taken].name, part[0], part[1], part[2], part[3]};
    return true;
}

int rank_place_descriptor(rank_place_get get, const char *name)
{
    char why[RANK_PLACE_WHY];
    int32_t number;
    const char *text = get(name);
    return text && read_number(name, text, 0, RANK_PLACE_MOST, &number, why) ? (int)number : -1;
}

void rank_place_forget(void)
{
    for (int i = 0; i < SLURM; i++)
        for (int k = 0; k < PARTS; k++) (void)unsetenv(families[i].part[k]);
}
