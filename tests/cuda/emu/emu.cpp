/* Kernels on the emulated GPU (emu.h). One block at a time lives in `block`; its threads are fibers on stacks that are kept from
 * launch to launch. The scheduler runs on the stack of the caller: it resumes a lane, which runs until it ends, waits
 * or fails, and so comes back. What is wrong is seen when no lane can go on, or by the handler of SIGSEGV.
 */
#include "device.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef EMU_ASAN
#  include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(EMU_UCONTEXT)
#  define EMU_UCONTEXT
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

pthread_mutex_t emu::lock = PTHREAD_MUTEX_INITIALIZER;
bool emu::failed;
int emu::schedule;

namespace
{

using emu::add_to_fault;
using emu::failed;
using emu::page_bytes;
using emu::schedule;

enum {
    MOST_THREADS = 1024,
    WARP = 32,
    MOST_WARPS = MOST_THREADS / WARP,
    MOST_SHARED = 48 * 1024,   /* of a block, static and dynamic */
    MOST_ALLOWED = 227 * 1024, /* where the kernel was allowed more */
    STACK_BYTES = 256 * 1024
};

enum state_of_lane : uint8_t { READY, IN_BARRIER, IN_MEETING, ENDED };

struct fiber {
    void *stack_pointer;
#ifdef EMU_UCONTEXT
    ucontext_t context;
#endif
    void *fake_stack; /* of the address sanitizer */
    uint3 index;
    unsigned lane, warp;
    state_of_lane state;
    emu::meeting kind;
    unsigned mask, source;
    uint64_t value, result;
    emu::place at;
};

struct warp {
    unsigned ready, waiting; /* bits of lanes: can run; in a meeting */
};

struct block_state {
    fiber lanes[MOST_THREADS];
    warp warps[MOST_WARPS];
    unsigned threads, warp_count, ended, in_barrier;
    unsigned made; /* fibers that wait for a block */
    unsigned entered; /* threads that said XPH_ENTER */
    uint64_t serial;
    size_t shared_bytes, most_shared;
    void (*body)(const void *);
    const void *closure;
    const char *kernel;
};

block_state block;
fiber *running;              /* NULL: the scheduler */
thread_local bool on_device; /* this thread of the host runs a kernel */
#ifdef EMU_UCONTEXT
ucontext_t scheduler_context;
#else
void *scheduler_stack_pointer;
#endif
char *stacks;
emu::shared_array dynamic, *all_shared;
size_t dynamic_bytes;
uint64_t chance = 1;
char fault[4096];

struct allowance {
    allowance *next;
    const void *kernel;
    size_t bytes;
};
allowance *allowances;

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

/* ---- faults ---- */

bool begin_fault(const char *what)
{
    if (failed) return false;
    failed = true;
    fault[0] = 0;
    add_to_fault("%s, block (%u,%u,%u): %s", block.kernel ? block.kernel : "no kernel", blockIdx.x,
                 blockIdx.y, blockIdx.z, what);
    return true;
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

void make_stacks()
{
    if (stacks) return;
    size_t bytes = MOST_THREADS * stack_stride();
    void *map =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) abort();
    stacks = static_cast<char *>(map);
    for (unsigned i = 0; i < MOST_THREADS; i++)
        mprotect(stacks + i * stack_stride(), page_bytes(), PROT_NONE);
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

/* From a fiber to the scheduler; returns when it is resumed. */
void give_way()
{
    fiber *me = running;
#ifdef EMU_ASAN
    __sanitizer_start_switch_fiber(&me->fake_stack, scheduler_stack, scheduler_stack_bytes);
#endif
#ifdef EMU_UCONTEXT
    swapcontext(&me->context, &scheduler_context);
#else
    emu_switch(&me->stack_pointer, scheduler_stack_pointer);
#endif
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(me->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

/* Of a lane that a fault ended. */
[[noreturn]] void end_fiber()
{
    running->state = ENDED;
    give_way();
    abort();
}

/* A fiber runs its thread of one block after another. */
void begin_fiber()
{
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        block.body(block.closure);
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
    fiber *f = &block.lanes[thread];
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
    running = f;
    threadIdx = f->index;
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
    for (const emu::shared_array *a = all_shared; a; a = a->next) {
        const char *begin = static_cast<const char *>(a->map);
        if (address < begin || address >= begin + a->map_bytes) continue;
        add_to_fault(", byte %td of a shared array of %zu", address - static_cast<const char *>(a->data),
                     a->bytes);
        return;
    }
    emu::add_place(address);
}

void report_trap(const siginfo_t *info)
{
    const char *address = static_cast<const char *>(info->si_addr);
    bool overflow = address >= stacks && address < stacks + MOST_THREADS * stack_stride();
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

/* Every thread is in the barrier, at one place. */
bool release_barrier()
{
    if (block.in_barrier != block.threads) return false;
    for (unsigned i = 1; i < block.threads; i++)
        if (!same_place(block.lanes[i].at, block.lanes[0].at)) return false;
    for (unsigned i = 0; i < block.threads; i++) {
        block.lanes[i].state = READY;
        block.warps[i / WARP].ready |= 1u << i % WARP;
    }
    block.in_barrier = 0;
    return true;
}

/* Nothing can go on: who waits where, threads in a row together. */
void report_stuck()
{
    bool meeting = false;
    for (unsigned i = 0; i < block.threads; i++) meeting = meeting || block.lanes[i].state == IN_MEETING;
    if (!begin_fault(meeting ? "lanes that a mask names do not come" : "threads do not come to a barrier"))
        return;
    for (unsigned i = 0, first = 0; i < block.threads; i++) {
        const fiber *f = &block.lanes[i], *next = f + 1;
        bool ended = f->state == ENDED;
        if (i + 1 < block.threads && next->state == f->state && next->mask == f->mask &&
            (ended || same_place(next->at, f->at)))
            continue;
        add_to_fault("; threads %u-%u ", first, i);
        if (ended)
            add_to_fault("have ended");
        else
            add_to_fault("in %s mask %08x, %s:%d", f->at.what, f->mask, f->at.file, f->at.line);
        first = i + 1;
    }
}

/* ---- the scheduler ---- */

unsigned pick(unsigned ready)
{
    if (schedule == EMU_FORWARD) return lowest(ready);
    if (schedule == EMU_REVERSE) return highest(ready);
    unsigned turn = static_cast<unsigned>(draw() % WARP);
    unsigned above = ready >> turn << turn;
    return lowest(above ? above : ready);
}

/* Until its lanes wait for other warps, or in the random schedule for no reason. */
bool run_warp(unsigned index)
{
    warp *w = &block.warps[index];
    fiber *lanes = &block.lanes[index * WARP];
    bool moved = false;
    do {
        while (w->ready && !failed) {
            unsigned lane = pick(w->ready), bit = 1u << lane;
            resume(&lanes[lane]);
            moved = true;
            w->ready &= ~bit;
            if (lanes[lane].state == ENDED) block.ended++;
            if (lanes[lane].state == IN_BARRIER) block.in_barrier++;
            if (lanes[lane].state == IN_MEETING) w->waiting |= bit;
        }
        if (failed || !release_meetings(w, lanes)) return moved;
        moved = true;
    } while (schedule != EMU_RANDOM || draw() % 2);
    return moved;
}

/* Fibers are kept from launch to launch, unless a fault left some of them in the middle. */
void make_lanes()
{
    for (unsigned i = 0; i < block.threads; i++) {
        fiber *f = &block.lanes[i];
        f->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        f->lane = i % WARP;
        f->warp = i / WARP;
        f->at = {"", "", 0};
    }
    for (; block.made < block.threads; block.made++) make_fiber(block.made);
}

void enter_block()
{
    block.serial++;
    block.ended = block.in_barrier = block.entered = 0;
    block.shared_bytes = 0;
    for (unsigned i = 0; i < block.warp_count; i++) {
        unsigned count = least(WARP, block.threads - i * WARP);
        block.warps[i] = {count == WARP ? ~0u : (1u << count) - 1, 0};
    }
    for (unsigned i = 0; i < block.threads; i++) {
        block.lanes[i].state = READY;
        block.lanes[i].mask = 0;
    }
}

void run_block()
{
    enter_block();
    while (block.ended < block.threads && !failed) {
        bool moved = false;
        unsigned turn = schedule == EMU_RANDOM ? static_cast<unsigned>(draw() % block.warp_count) : 0;
        for (unsigned i = 0; i < block.warp_count && !failed; i++) {
            unsigned index = (i + turn) % block.warp_count;
            moved |= run_warp(schedule == EMU_REVERSE ? block.warp_count - 1 - index : index);
        }
        moved |= !failed && release_barrier();
        if (!moved && !failed) report_stuck();
    }
    if (!failed && block.entered != block.threads && begin_fault("threads that do not begin with XPH_ENTER"))
        add_to_fault(", %u of %u", block.threads - block.entered, block.threads);
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

void run_grid()
{
    uint64_t n = uint64_t(gridDim.x) * gridDim.y * gridDim.z, first = draw() % n, step = 1 + draw() % n;
    while (common_divisor(step, n) != 1) step = step % n + 1;
    for (uint64_t i = 0; i < n && !failed; i++) {
        uint64_t at = block_at(i, n, step, first);
        blockIdx = {static_cast<unsigned>(at % gridDim.x), static_cast<unsigned>(at / gridDim.x % gridDim.y),
                    static_cast<unsigned>(at / gridDim.x / gridDim.y)};
        run_block();
    }
}

bool launch_fits(dim3 grid, dim3 threads, size_t shared_bytes, size_t most)
{
    bool grid_fits =
        grid.x && grid.y && grid.z && grid.x < 1u << 31 && grid.y < 1u << 16 && grid.z < 1u << 16;
    bool block_fits = threads.x && threads.y && threads.z && threads.x <= MOST_THREADS &&
                      threads.y <= MOST_THREADS && threads.z <= 64 &&
                      uint64_t(threads.x) * threads.y * threads.z <= MOST_THREADS;
    return grid_fits && block_fits && shared_bytes <= most;
}

size_t most_shared_of(const void *kernel)
{
    for (const allowance *a = allowances; a; a = a->next)
        if (a->kernel == kernel) return a->bytes;
    return MOST_SHARED;
}

}  // namespace

/* ---- faults ---- */

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

bool emu::fits(const launch_shape &shape)
{
    return launch_fits(shape.grid, shape.block, shape.shared_bytes, most_shared_of(shape.kernel));
}

bool emu::allow_shared(const void *kernel, int bytes)
{
    allowance *a = allowances;
    while (a && a->kernel != kernel) a = a->next;
    if (bytes < 0 || bytes > MOST_ALLOWED) return false;
    if (!a) {
        a = static_cast<allowance *>(malloc(sizeof *a));
        if (!a) return false;
        *a = {allowances, kernel, 0};
        allowances = a;
    }
    a->bytes = static_cast<size_t>(bytes > MOST_SHARED ? bytes : static_cast<int>(MOST_SHARED));
    return true;
}

void emu::run(const launch_shape &shape, const void *closure)
{
    make_stacks();
    blockIdx = {0, 0, 0};
    gridDim = shape.grid;
    blockDim = shape.block;
    block.kernel = shape.name;
    block.body = shape.body;
    block.closure = closure;
    block.threads = shape.block.x * shape.block.y * shape.block.z;
    block.warp_count = (block.threads + WARP - 1) / WARP;
    block.most_shared = most_shared_of(shape.kernel) > MOST_SHARED ? MOST_ALLOWED : MOST_SHARED;
    dynamic_bytes = shape.shared_bytes;
    make_lanes();
    on_device = true;
    catch_traps();
    run_grid();
    release_traps();
    on_device = false;
    if (failed) block.made = 0;
#ifdef EMU_ASAN /* what lanes left on their stacks that were never to go on */
    if (failed) ASAN_UNPOISON_MEMORY_REGION(stacks, MOST_THREADS * stack_stride());
#endif
    block.kernel = nullptr;
}

/* Placed anew only where it would lie otherwise, filled for every block. */
void *emu::shared(shared_array *array, size_t bytes)
{
    if (array->block == block.serial) return array->data;
    bool front = schedule == EMU_REVERSE;
    if (!array->map || array->bytes != bytes || array->front != front) {
        if (array->map)
            guarded_unmap(array->map, array->map_bytes);
        else
            array->next = all_shared, all_shared = array;
        guarded memory = guarded_map(bytes, 16);
        if (!memory.map) abort();
        guarded_fill(&memory, bytes);
        *array = {memory.map, memory.data, bytes, memory.map_bytes, 0, front, array->next};
    }
    memset(array->data, 0xff, bytes);
    array->block = block.serial;
    block.shared_bytes += bytes;
    if (block.shared_bytes > block.most_shared && begin_fault("too much shared memory"))
        add_to_fault(", %zu bytes", block.shared_bytes);
    return array->data;
}

void *emu::dynamic_shared()
{
    return shared(&dynamic, dynamic_bytes);
}

void emu::enter()
{
    block.entered++;
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

/* ---- narrow numbers ---- */

__nv_bfloat16 __float2bfloat16(float x)
{
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float(uint32_t(x.bits) << 16);
}

/* Below 2^-14 the unit is 2^-24, and the processor's own addition rounds to it. */
__half __float2half(float x)
{
    uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return {0x7fff};
    if (size >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
    if (size < 0x38800000u) {
        uint32_t tiny = __float_as_uint(__uint_as_float(size) + 0.5f) - __float_as_uint(0.5f);
        return {static_cast<uint16_t>(sign | tiny)};
    }
    uint32_t rounded = size + 0xfffu + (size >> 13 & 1) - (112u << 23);
    return {static_cast<uint16_t>(sign | rounded >> 13)};
}

float __half2float(__half x)
{
    uint32_t sign = (x.bits & 0x8000u) << 16, size = x.bits & 0x7fffu;
    if (size >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    float value = static_cast<float>(size) * 0x1p-24f; /* below 2^-14 */
    if (size >= 0x400u) value = __uint_as_float((size << 13) + (112u << 23));
    return sign ? -value : value;
}
