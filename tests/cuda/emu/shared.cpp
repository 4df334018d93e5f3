/* What launches may have on the emulated GPU, and the shared memory of blocks: between pages that cannot be touched, filled
 * with NaN for every block, and each block of a cluster with its own. */
#include "cluster.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace
{

using namespace emu;

struct allowance {
    allowance *next;
    const void *kernel;
    size_t bytes;
    bool large_clusters;
};
allowance *allowances;

shared_array dynamic;

bool launch_fits(dim3 grid, dim3 threads, size_t shared_bytes, size_t most)
{
    bool grid_fits =
        grid.x && grid.y && grid.z && grid.x < 1u << 31 && grid.y < 1u << 16 && grid.z < 1u << 16;
    bool block_fits = threads.x && threads.y && threads.z && threads.x <= MOST_THREADS &&
                      threads.y <= MOST_THREADS && threads.z <= 64 &&
                      uint64_t(threads.x) * threads.y * threads.z <= MOST_THREADS;
    return grid_fits && block_fits && shared_bytes <= most;
}

const allowance *allowed_to(const void *kernel)
{
    const allowance *a = allowances;
    while (a && a->kernel != kernel) a = a->next;
    return a;
}

allowance *allowance_of(const void *kernel)
{
    allowance *a = const_cast<allowance *>(allowed_to(kernel));
    if (a) return a;
    a = static_cast<allowance *>(malloc(sizeof *a));
    if (!a) return nullptr;
    *a = {allowances, kernel, MOST_SHARED, false};
    return allowances = a;
}

unsigned most_blocks = emu::MOST_CLUSTER; /* of a cluster */
int most_clusters;                        /* at once; 0: as many as there are multiprocessors for */
size_t most_allowed = MOST_ALLOWED;       /* of a block's bytes */

/* More than 8 blocks only where the kernel was allowed it. */
bool cluster_fits(const emu::launch_shape &shape)
{
    const allowance *a = allowed_to(shape.kernel);
    const unsigned most = a && a->large_clusters ? emu::MOST_CLUSTER : emu::MOST_PORTABLE_CLUSTER;
    const unsigned lanes = (shape.block.x * shape.block.y * shape.block.z + WARP - 1) / WARP * WARP;
    return shape.cluster && shape.cluster <= most && shape.cluster <= most_blocks &&
           shape.grid.x % shape.cluster == 0 && (shape.cluster == 1 || shape.cluster * lanes <= MOST_LANES);
}

}  // namespace

emu::shared_array *emu::all_shared;

size_t emu::most_shared_of(const void *kernel)
{
    const allowance *a = allowed_to(kernel);
    return a ? a->bytes : size_t(MOST_SHARED);
}

bool emu::fits(const launch_shape &shape)
{
    return launch_fits(shape.grid, shape.block, shape.shared_bytes, most_shared_of(shape.kernel)) &&
           cluster_fits(shape);
}

bool emu::allow(const void *kernel, cudaFuncAttribute what, int value)
{
    if (what == cudaFuncAttributeMaxDynamicSharedMemorySize &&
        (value < 0 || static_cast<size_t>(value) > most_allowed))
        return false;
    allowance *a = allowance_of(kernel);
    if (!a) return false;
    if (what == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        const size_t bytes = static_cast<size_t>(value > MOST_SHARED ? value : static_cast<int>(MOST_SHARED));
        /* Another thread may be about to launch it with what it was allowed. */
        if (bytes < a->bytes) fail("a kernel is allowed less shared memory than before, %zu bytes", bytes);
        a->bytes = bytes;
    }
    if (what == cudaFuncAttributeNonPortableClusterSizeAllowed) a->large_clusters = value;
    return true;
}

/* A multiprocessor has a block, and where all of them are too few, they have one cluster. */
int emu::cluster_room(const launch_shape &shape)
{
    const guard held;
    if (!fits(shape)) return -1;
    const int own = static_cast<int>(shape.cluster) < multiprocessors
                        ? multiprocessors / static_cast<int>(shape.cluster)
                        : 1;
    return most_clusters && most_clusters < own ? most_clusters : own;
}

size_t emu::shared_limit()
{
    return most_allowed;
}

void emu_clusters(int blocks)
{
    most_blocks = static_cast<unsigned>(blocks);
}

void emu_multiprocessors(int count)
{
    emu::multiprocessors = count ? count : emu::MULTIPROCESSORS;
}

void emu_clusters_at_once(int count)
{
    most_clusters = count;
}

void emu_shared(size_t bytes)
{
    const emu::guard held;
    most_allowed = bytes ? bytes : size_t(emu::MOST_ALLOWED);
    for (allowance *a = allowances; a; a = a->next)
        if (a->bytes > most_allowed) a->bytes = most_allowed;
}

namespace
{

/* Placed anew only where it would lie otherwise. */
void place(emu::shared_array *array, emu::shared_copy *copy, bool front)
{
    if (copy->map && copy->bytes == array->bytes && copy->front == front) {
        if (copy->closed) mprotect(copy->map, copy->map_bytes, PROT_READ | PROT_WRITE);
        copy->closed = false;
        return;
    }
    if (copy->map) emu::guarded_unmap(copy->map, copy->map_bytes);
    emu::guarded memory = emu::guarded_map(array->bytes, 16);
    if (!memory.map) abort();
    guarded_fill(&memory, array->bytes);
    *copy = {memory.map, memory.data, memory.map_bytes, array->bytes, 0, front, false};
}

/* Filled for every block. */
void *shared_of(emu::shared_array *array, unsigned rank)
{
    emu::shared_copy *copy = &array->copy[rank];
    block_state *b = &cluster.blocks[rank];
    if (copy->serial == cluster.serial) return copy->data;
    place(array, copy, schedule == EMU_REVERSE);
    memset(copy->data, 0xff, array->bytes);
    copy->serial = cluster.serial;
    b->shared_bytes += array->bytes;
    if (b->shared_bytes > cluster.most_shared && begin_fault("too much shared memory"))
        add_to_fault(", %zu bytes", b->shared_bytes);
    return copy->data;
}

}  // namespace

void *emu::shared(shared_array *array, size_t bytes)
{
    if (!array->listed) {
        array->listed = true;
        array->next = all_shared, all_shared = array;
    }
    array->bytes = bytes;
    return shared_of(array, running->rank);
}

/* The address in another block of the cluster: its shared memory is there from the first barrier of the cluster on, until it
 * ends. */
void *emu::of_cluster(const void *address, unsigned rank, place at)
{
    const char *own = static_cast<const char *>(address);
    if (rank >= cluster.size || !cluster.barriers) {
        if (begin_fault("shared memory of a block that is not there"))
            add_to_fault(", block %u of a cluster of %u, %s barrier of it, %s:%d", rank, cluster.size,
                         cluster.barriers ? "behind a" : "before the first", at.file, at.line);
        end_fiber();
    }
    for (shared_array *a = all_shared; a; a = a->next) {
        const shared_copy &c = a->copy[running->rank];
        const char *begin = static_cast<const char *>(c.data);
        if (c.serial != cluster.serial || own < begin || own >= begin + a->bytes) continue;
        return static_cast<char *>(shared_of(a, rank)) + (own - begin);
    }
    if (begin_fault("no address of shared memory"))
        add_to_fault(", %p, %s:%d", const_cast<void *>(address), at.file, at.line);
    end_fiber();
}

void *emu::dynamic_shared()
{
    return shared(&dynamic, cluster.dynamic_bytes);
}
