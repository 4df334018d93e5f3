/* Kernels on the emulated GPU (emu.h). One cluster of blocks at a time lives in `cluster`, without clusters a single block; its
 * threads are fibers on stacks that are kept from launch to launch. The scheduler runs on the stack of the caller: it resumes
 * a lane, which runs until it ends, waits or fails, and goes on with the next of its warp; when none is ready it comes back. What
 * is wrong is seen when no lane can go on, or by the handler of SIGSEGV.
 */
#include "cluster.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef EMU_ASAN
#  include <sanitizer/common_interface_defs.h>
#endif
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

emu::cluster_state emu::cluster;
emu::fiber *emu::running;
pthread_mutex_t emu::lock = PTHREAD_MUTEX_INITIALIZER;
bool emu::failed;
int emu::schedule;

namespace
{

using namespace emu;

thread_local bool on_device; /* this thread of the host runs a kernel */
#ifdef EMU_UCONTEXT
ucontext_t scheduler_context;
#else
void *scheduler_stack_pointer;
#endif
char *stacks;
unsigned stack_count;
uint64_t chance = 1;
char fault[4096];

uint64_t draw()
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    return chance ^= chance << 17;
}

unsigned lowest(unsigned bits)
{
    return static_cast<unsigned>(__builtin_ctz(bits));
}
unsigned highest(unsigned bits)
{
    return 31u - static_cast<unsigned>(__builtin_clz(bits));
}
unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* ---- fibers ---- */

size_t stack_stride()
{
    return STACK_BYTES + page_bytes();
}
char *stack_of(unsigned thread)
{
    return stacks + thread * stack_stride() + page_bytes();
}

/* For lanes of the cluster, whose fibers are made anew when there were fewer. */
void make_stacks(unsigned lanes)
{
    const unsigned count = lanes > MOST_THREADS ? MOST_LANES : MOST_THREADS;
    if (count <= stack_count) return;
    if (stacks) munmap(stacks, stack_count * stack_stride());
    size_t bytes = count * stack_stride();
    void *map =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) abort();
    stacks = static_cast<char *>(map);
    stack_count = count;
    cluster.made = 0;
    for (unsigned i = 0; i < count; i++) mprotect(stacks + i * stack_stride(), page_bytes(), PROT_NONE);
}

/* emu_switch(save, to) keeps what the calling convention says a call keeps, on the stack that it leaves at *save, and
 * returns on the stack `to`. The floating-point modes are the same on all of them. */
#ifndef EMU_UCONTEXT
extern "C" void emu_switch(void **save, void *to);
#  if defined(__x86_64__)
__asm__(".text\n"
        ".globl emu_switch\n"
        ".hidden emu_switch\n"
        ".type emu_switch,@function\n"
        "emu_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  popq %rcx\n"
        "  jmpq *%rcx\n" /* a return would never be foreseen */
        ".size emu_switch, . - emu_switch\n");
enum { SAVED_WORDS = 8, RETURN_WORD = 6 }; /* as after a call: a word above the address to return to */
#  else
__asm__(".text\n"
        ".globl emu_switch\n"
        ".hidden emu_switch\n"
        ".type emu_switch,%function\n"
        "emu_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size emu_switch, . - emu_switch\n");
enum { SAVED_WORDS = 20, RETURN_WORD = 11 };
#  endif
#endif

#ifdef EMU_ASAN
const void *scheduler_stack;
size_t scheduler_stack_bytes;
#endif

/* ---- which lane is next ---- */

unsigned pick(unsigned ready)
{
    if (schedule == EMU_FORWARD) return lowest(ready);
    if (schedule == EMU_REVERSE) return highest(ready);
    unsigned turn = static_cast<unsigned>(draw() % WARP);
    unsigned above = ready >> turn << turn;
    return lowest(above ? above : ready);
}

/* A lane that ends or waits is not ready any more. */
void count_stopped(const fiber *f)
{
    warp *w = &cluster.warps[f->warp];
    block_state *b = &cluster.blocks[f->rank];
    const unsigned bit = 1u << f->lane;
    w->ready &= ~bit;
    if (f->state == ENDED) b->ended++, cluster.ended++;
    if (f->state == IN_BARRIER) b->in_barrier++;
    if (f->state == IN_CLUSTER) cluster.in_cluster++;
    if (f->state == IN_MEETING) w->waiting |= bit;
}

void make_running(fiber *f)
{
    running = f;
    threadIdx = f->index;
    blockIdx = cluster.blocks[f->rank].index;
}

/* From a fiber to the lane that the scheduler would resume next, which takes half as long as by way of it, or to the scheduler
 * when none of the warp is ready; returns when it is resumed. */
void give_way()
{
    fiber *me = running;
    count_stopped(me);
#ifdef EMU_ASAN
    __sanitizer_start_switch_fiber(&me->fake_stack, scheduler_stack, scheduler_stack_bytes);
#endif
#ifdef EMU_UCONTEXT
    swapcontext(&me->context, &scheduler_context);
#else
    void *to = scheduler_stack_pointer;
#  ifndef EMU_ASAN
    const unsigned ready = cluster.warps[me->warp].ready;
    if (ready && !failed) {
        fiber *next = &cluster.lanes[me->warp * WARP + pick(ready)];
        make_running(next);
        to = next->stack_pointer;
    }
#  endif
    emu_switch(&me->stack_pointer, to);
#endif
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(me->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

/* A fiber runs its thread of one block after another. */
void begin_fiber()
{
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        cluster.body(cluster.closure);
        running->state = ENDED;
        give_way();
    }
}

#ifndef EMU_UCONTEXT
/* Stacks that all ended at the same place of a page would share few lines of the processor's cache. */
size_t stagger(unsigned thread)
{
    return thread * 5 % 32 * 128;
}
#endif

void make_fiber(unsigned thread)
{
    fiber *f = &cluster.lanes[thread];
    char *stack = stack_of(thread);
#ifdef EMU_UCONTEXT
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, begin_fiber, 0);
#else
    void **top = reinterpret_cast<void **>(stack + STACK_BYTES - stagger(thread)) - SAVED_WORDS;
    memset(top, 0, SAVED_WORDS * sizeof *top);
    top[RETURN_WORD] = reinterpret_cast<void *>(begin_fiber);
    f->stack_pointer = top;
#endif
    f->fake_stack = nullptr;
}

void resume(fiber *f)
{
    make_running(f);
#ifdef EMU_ASAN
    void *fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack_of(f->warp * WARP + f->lane), STACK_BYTES);
#endif
#ifdef EMU_UCONTEXT
    swapcontext(&scheduler_context, &f->context);
#else
    emu_switch(&scheduler_stack_pointer, f->stack_pointer);
#endif
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
    running = nullptr;
}

/* ---- addresses that cannot be touched ---- */

/* Where a lane goes on that did. */
[[noreturn]] void after_trap()
{
#ifdef EMU_ASAN
    __asan_handle_no_return();
#endif
    end_fiber();
}

/* What an address that could not be touched is near to. */
void add_neighbour(const char *address)
{
    for (const emu::shared_array *a = all_shared; a; a = a->next)
        for (unsigned rank = 0; rank < emu::MOST_CLUSTER; rank++) {
            const emu::shared_copy &c = a->copy[rank];
            const char *begin = static_cast<const char *>(c.map);
            if (!c.map || address < begin || address >= begin + c.map_bytes) continue;
            add_to_fault(", byte %td of a shared array of %zu", address - static_cast<const char *>(c.data),
                         a->bytes);
            if (c.closed) add_to_fault(", of block %u of the cluster, which has ended", rank);
            return;
        }
    emu::add_place(address);
}

void report_trap(const siginfo_t *info)
{
    const char *address = static_cast<const char *>(info->si_addr);
    bool overflow = address >= stacks && address < stacks + stack_count * stack_stride();
    if (!begin_fault(overflow ? "stack overflow" : "address out of bounds")) return;
    add_to_fault(", thread (%u,%u,%u), address %p", threadIdx.x, threadIdx.y, threadIdx.z, info->si_addr);
    if (!overflow) add_neighbour(address);
}

/* The lane is led to after_trap on the top of its stack, which it will not use any more. Outside of kernels, and where
 * registers have other names, the signal does what it did before. */
void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = static_cast<ucontext_t *>(context);
    if (!on_device || !running) {
        signal(number, SIG_DFL);
        return;
    }
    report_trap(info);
    uintptr_t top =
        reinterpret_cast<uintptr_t>(stack_of(running->warp * WARP + running->lane)) + STACK_BYTES - 64;
#if defined(__x86_64__)
    at->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
    at->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(after_trap));
#elif defined(__aarch64__)
    at->uc_mcontext.sp = top;
    at->uc_mcontext.pc = reinterpret_cast<uintptr_t>(after_trap);
#else
    (void)at, (void)top;
    fprintf(stderr, "%s\n", fault);
    abort();
#endif
}

struct sigaction former_segv, former_bus;

void catch_traps()
{
    static char *stack; /* that of the lane may be what overflowed */
    if (!stack) stack = static_cast<char *>(malloc(STACK_BYTES));
    stack_t here = {};
    here.ss_sp = stack;
    here.ss_size = STACK_BYTES;
    stack_t now;
    if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE)) sigaltstack(&here, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &former_segv);
    sigaction(SIGBUS, &action, &former_bus);
}

void release_traps()
{
    sigaction(SIGSEGV, &former_segv, nullptr);
    sigaction(SIGBUS, &former_bus, nullptr);
}

/* ---- lanes that meet ---- */

bool same_place(const emu::place &a, const emu::place &b)
{
    return a.line == b.line && (a.what == b.what || strcmp(a.what, b.what) == 0) &&
           (a.file == b.file || strcmp(a.file, b.file) == 0);
}

/* All lanes of mask wait at the place of its lowest one, with the same mask. */
bool all_met(const warp *w, const fiber *lanes, unsigned mask)
{
    if ((w->waiting & mask) != mask) return false;
    const fiber *first = &lanes[lowest(mask)];
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const fiber *f = &lanes[lowest(rest)];
        if (f->mask != mask || !same_place(f->at, first->at)) return false;
    }
    return true;
}

void exchange(warp *w, fiber *lanes, unsigned mask)
{
    uint64_t votes = 0;
    for (unsigned rest = mask; rest; rest &= rest - 1)
        if (lanes[lowest(rest)].value) votes |= uint64_t(1) << lowest(rest);
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        fiber *f = &lanes[lowest(rest)];
        bool named = f->source < WARP && (mask >> f->source & 1);
        if (f->kind == emu::SHUFFLE && !named &&
            begin_fault("shuffle from a lane that its mask does not name"))
            add_to_fault(", lane %u of warp %u from %u, mask %08x, %s:%d", f->lane, f->warp, f->source, mask,
                         f->at.file, f->at.line);
        f->result = f->kind == emu::BALLOT ? votes : named ? lanes[f->source].value : 0;
        f->state = READY;
    }
    w->waiting &= ~mask;
    w->ready |= mask;
}

/* Lets go every group of lanes that is complete. */
bool release_meetings(warp *w, fiber *lanes)
{
    bool any = false;
    for (unsigned rest = w->waiting; rest; rest &= rest - 1) {
        unsigned mask = lanes[lowest(rest)].mask;
        if (!(w->waiting >> lowest(rest) & 1) || !all_met(w, lanes, mask)) continue;
        exchange(w, lanes, mask);
        any = true;
    }
    return any;
}

/* f(lane) for every thread of a block of the cluster. */
template <class Each> void each_lane(unsigned rank, Each f)
{
    for (unsigned i = 0; i < cluster.threads; i++) f(&cluster.lanes[rank * cluster.warp_count * WARP + i]);
}

void let_go(unsigned rank)
{
    each_lane(rank, [](fiber *f) {
        f->state = READY;
        cluster.warps[f->warp].ready |= 1u << f->lane;
    });
}

bool at_one_place(unsigned rank, const fiber *first)
{
    bool same = true;
    each_lane(rank, [&](const fiber *f) { same = same && same_place(f->at, first->at); });
    return same;
}

/* Every thread of a block is in its barrier, at one place. */
bool release_barrier(unsigned rank)
{
    if (cluster.blocks[rank].in_barrier != cluster.threads) return false;
    if (!at_one_place(rank, &cluster.lanes[rank * cluster.warp_count * WARP])) return false;
    cluster.blocks[rank].in_barrier = 0;
    let_go(rank);
    return true;
}

/* Every thread of the cluster is in the cluster's barrier, at one place. */
bool release_cluster()
{
    if (cluster.in_cluster != cluster.threads * cluster.size) return false;
    for (unsigned rank = 0; rank < cluster.size; rank++)
        if (!at_one_place(rank, &cluster.lanes[0])) return false;
    cluster.in_cluster = 0;
    cluster.barriers++;
    for (unsigned rank = 0; rank < cluster.size; rank++) let_go(rank);
    return true;
}

/* Who waits where, threads in a row together. */
void report_block(unsigned rank)
{
    const fiber *lanes = &cluster.lanes[rank * cluster.warp_count * WARP];
    for (unsigned i = 0, first = 0; i < cluster.threads; i++) {
        const fiber *f = &lanes[i], *next = f + 1;
        bool ended = f->state == ENDED;
        if (i + 1 < cluster.threads && next->state == f->state && next->mask == f->mask &&
            (ended || same_place(next->at, f->at)))
            continue;
        add_to_fault("; threads %u-%u ", first, i);
        if (cluster.size > 1) add_to_fault("of block %u ", rank);
        if (ended)
            add_to_fault("have ended");
        else
            add_to_fault("in %s mask %08x, %s:%d", f->at.what, f->mask, f->at.file, f->at.line);
        first = i + 1;
    }
}

/* Nothing can go on. */
void report_stuck()
{
    bool meeting = false;
    for (unsigned rank = 0; rank < cluster.size; rank++)
        each_lane(rank, [&](const fiber *f) { meeting = meeting || f->state == IN_MEETING; });
    if (!begin_fault(meeting              ? "lanes that a mask names do not come"
                     : cluster.in_cluster ? "threads do not come to a barrier of their cluster"
                                          : "threads do not come to a barrier"))
        return;
    for (unsigned rank = 0; rank < cluster.size; rank++) report_block(rank);
}

/* What a block of a cluster had in shared memory may not be touched by the others when it has ended. */
void close_shared(unsigned rank)
{
    for (emu::shared_array *a = all_shared; a; a = a->next) {
        emu::shared_copy &c = a->copy[rank];
        if (c.serial != cluster.serial || c.closed) continue;
        c.closed = mprotect(c.map, c.map_bytes, PROT_NONE) == 0;
    }
}

/* ---- the scheduler ---- */

/* Until its lanes wait for other warps, or in the random schedule for no reason. */
bool run_warp(unsigned index)
{
    warp *w = &cluster.warps[index];
    fiber *lanes = &cluster.lanes[index * WARP];
    const block_state *b = &cluster.blocks[index / cluster.warp_count];
    bool moved = false;
    do {
        while (w->ready && !failed) {
            resume(&lanes[pick(w->ready)]);
            moved = true;
        }
        if (cluster.size > 1 && b->ended == cluster.threads) close_shared(index / cluster.warp_count);
        if (failed || !release_meetings(w, lanes)) return moved;
        moved = true;
    } while (schedule != EMU_RANDOM || draw() % 2);
    return moved;
}

/* Fibers are kept from launch to launch, unless a fault left some of them in the middle. */
void make_lanes()
{
    const unsigned lanes = cluster.size * cluster.warp_count * WARP;
    for (unsigned rank = 0; rank < cluster.size; rank++)
        for (unsigned i = 0; i < cluster.threads; i++) {
            fiber *f = &cluster.lanes[rank * cluster.warp_count * WARP + i];
            f->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
            f->lane = i % WARP;
            f->warp = rank * cluster.warp_count + i / WARP;
            f->rank = rank;
            f->at = {"", "", 0};
        }
    for (; cluster.made < lanes; cluster.made++) make_fiber(cluster.made);
}

void enter_block(unsigned rank)
{
    cluster.blocks[rank].ended = cluster.blocks[rank].in_barrier = cluster.blocks[rank].entered = 0;
    cluster.blocks[rank].shared_bytes = 0;
    for (unsigned i = 0; i < cluster.warp_count; i++) {
        unsigned count = least(WARP, cluster.threads - i * WARP);
        cluster.warps[rank * cluster.warp_count + i] = {count == WARP ? ~0u : (1u << count) - 1, 0};
    }
    each_lane(rank, [](fiber *f) {
        f->state = READY;
        f->mask = 0;
    });
}

void check_entered()
{
    for (unsigned rank = 0; rank < cluster.size && !failed; rank++) {
        const unsigned missing = cluster.threads - cluster.blocks[rank].entered;
        if (missing && begin_fault("threads that do not begin with XPH_ENTER"))
            add_to_fault(", %u of %u", missing, cluster.threads);
    }
}

/* Until its threads have ended or wait for other blocks, so that whatever it reads of those without a meeting is not there
 * yet; in the random schedule until chance stops it between barriers of its own. */
bool run_block(unsigned rank)
{
    const unsigned warps = cluster.warp_count;
    bool moved = false, again;
    do {
        const unsigned turn = schedule == EMU_RANDOM ? static_cast<unsigned>(draw() % warps) : 0;
        again = false;
        for (unsigned i = 0; i < warps && !failed; i++) {
            const unsigned index = (i + turn) % warps;
            again |= run_warp(rank * warps + (schedule == EMU_REVERSE ? warps - 1 - index : index));
        }
        again |= !failed && release_barrier(rank);
        moved |= again;
    } while (again && !failed && (schedule != EMU_RANDOM || draw() % 4));
    return moved;
}

/* blocks[].index is set. */
void run_cluster()
{
    cluster.serial++;
    cluster.ended = cluster.in_cluster = cluster.barriers = 0;
    for (unsigned rank = 0; rank < cluster.size; rank++) enter_block(rank);
    while (cluster.ended < cluster.threads * cluster.size && !failed) {
        bool moved = false;
        const unsigned turn = schedule == EMU_RANDOM ? static_cast<unsigned>(draw() % cluster.size) : 0;
        for (unsigned i = 0; i < cluster.size && !failed; i++) {
            const unsigned rank = (i + turn) % cluster.size;
            moved |= run_block(schedule == EMU_REVERSE ? cluster.size - 1 - rank : rank);
        }
        moved |= !failed && release_cluster();
        if (!moved && !failed) report_stuck();
    }
    if (!failed) check_entered();
}

/* Of n blocks: the i-th to run. In the random schedule a walk that comes to each of them once. */
uint64_t block_at(uint64_t i, uint64_t n, uint64_t step, uint64_t first)
{
    if (schedule == EMU_REVERSE) return n - 1 - i;
    return schedule == EMU_RANDOM ? (first + i * step) % n : i;
}

uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Blocks of a cluster are neighbours along x. */
void run_grid()
{
    const uint64_t across = gridDim.x / cluster.size, n = across * gridDim.y * gridDim.z;
    uint64_t first = draw() % n, step = 1 + draw() % n;
    while (common_divisor(step, n) != 1) step = step % n + 1;
    for (uint64_t i = 0; i < n && !failed; i++) {
        const uint64_t at = block_at(i, n, step, first);
        for (unsigned rank = 0; rank < cluster.size; rank++)
            cluster.blocks[rank].index = {static_cast<unsigned>(at % across * cluster.size + rank),
                                          static_cast<unsigned>(at / across % gridDim.y),
                                          static_cast<unsigned>(at / across / gridDim.y)};
        run_cluster();
    }
}

}  // namespace

/* ---- faults ---- */

bool emu::begin_fault(const char *what)
{
    if (failed) return false;
    failed = true;
    fault[0] = 0;
    add_to_fault("%s, block (%u,%u,%u): %s", cluster.kernel ? cluster.kernel : "no kernel", blockIdx.x,
                 blockIdx.y, blockIdx.z, what);
    return true;
}

void emu::add_to_fault(const char *format, ...)
{
    size_t used = strlen(fault);
    va_list list;
    va_start(list, format);
    vsnprintf(fault + used, sizeof fault - used, format, list);
    va_end(list);
}

void emu::fail(const char *format, ...)
{
    if (failed) return;
    failed = true;
    va_list list;
    va_start(list, format);
    vsnprintf(fault, sizeof fault, format, list);
    va_end(list);
}

/* ---- what kernels and launches call ---- */

/* Of a lane that a fault ended. */
[[noreturn]] void emu::end_fiber()
{
    running->state = ENDED;
    give_way();
    abort();
}

/* Code for older processors leaves out what kernels of clusters do (launch.cuh). */
void emu::run(const launch_shape &shape, const void *closure)
{
    if (shape.cluster > 1 && code < CLUSTER_CODE) return;
    blockIdx = {0, 0, 0};
    gridDim = shape.grid;
    blockDim = shape.block;
    cluster.kernel = shape.name;
    cluster.body = shape.body;
    cluster.closure = closure;
    cluster.size = shape.cluster;
    cluster.threads = shape.block.x * shape.block.y * shape.block.z;
    cluster.warp_count = (cluster.threads + WARP - 1) / WARP;
    cluster.most_shared =
        emu::most_shared_of(shape.kernel) > MOST_SHARED ? emu::shared_limit() : size_t(MOST_SHARED);
    make_stacks(cluster.size * cluster.warp_count * WARP);
    cluster.dynamic_bytes = shape.shared_bytes;
    make_lanes();
    on_device = true;
    catch_traps();
    run_grid();
    release_traps();
    on_device = false;
    if (failed) cluster.made = 0;
#ifdef EMU_ASAN /* what lanes left on their stacks that were never to go on */
    if (failed) ASAN_UNPOISON_MEMORY_REGION(stacks, stack_count * stack_stride());
#endif
    cluster.kernel = nullptr;
}

unsigned emu::cluster_rank()
{
    return running->rank;
}

unsigned emu::cluster_size()
{
    return cluster.size;
}

void emu::cluster_barrier(place at)
{
    running->mask = 0;
    running->at = at;
    running->state = IN_CLUSTER;
    give_way();
}

void emu::cluster_half(bool arrives, place at)
{
    const bool early = schedule == EMU_RANDOM ? cluster.serial % 2 == 0 : schedule == EMU_FORWARD;
    if (arrives == early) cluster_barrier(at);
}

void emu::enter()
{
    cluster.blocks[running->rank].entered++;
}

void emu::misaligned(const void *address, size_t bytes)
{
    if (begin_fault("misaligned address"))
        add_to_fault(", %zu bytes at %p", bytes, const_cast<void *>(address));
    end_fiber();
}

unsigned emu::lane()
{
    return running->lane;
}

uint64_t emu::meet(unsigned mask, meeting kind, unsigned source, uint64_t value, place at)
{
    fiber *me = running;
    me->mask = mask;
    me->kind = kind;
    me->source = source;
    me->value = value;
    me->at = at;
    if (!(mask >> me->lane & 1) && begin_fault("a lane that its own mask does not name")) {
        add_to_fault(", lane %u of warp %u, mask %08x, %s:%d", me->lane, me->warp, mask, at.file, at.line);
        end_fiber();
    }
    me->state = IN_MEETING;
    give_way();
    return me->result;
}

void emu::barrier(place at)
{
    running->mask = 0;
    running->at = at;
    running->state = IN_BARRIER;
    give_way();
}

/* ---- control ---- */

void emu_schedule(int which)
{
    schedule = which;
    chance = 0x9e3779b97f4a7c15u;
}

const char *emu_fault(void)
{
    return failed ? fault : nullptr;
}
