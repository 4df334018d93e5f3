/* Memory of the emulated GPU: blocks in one range of addresses that nothing else has. What lies between them is a file
 * without content, so that it cannot be touched even where one mprotect has opened the whole range. A freed block becomes
 * such a gap, and its addresses do not come again while others are in use.
 */
#include "device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

struct block {
    char *map, *data;
    size_t bytes, map_bytes; /* map lies between two pages more, which are the block's too */
    int device;
    bool live;
};
block *blocks; /* by address */
size_t block_count, block_capacity, live_count, live_bytes;

char *range, *range_top, *range_end;
int nothing = -1; /* the file */
bool is_protected, is_hidden, fills = true;
struct sigaction former; /* of SIGSEGV */

struct pinned {
    pinned *next;
    char *data;
    size_t bytes;
};
pinned *all_pinned;
int64_t pinned_count;

/* As many addresses as the system gives away. */
void make_range()
{
    if (range) return;
    nothing = memfd_create("emulated GPU", MFD_CLOEXEC);
    if (nothing < 0) abort();
    for (size_t bytes = size_t(1) << 38; bytes >= size_t(1) << 30; bytes /= 2) {
        void *map = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, nothing, 0);
        if (map == MAP_FAILED) continue;
        range = range_top = static_cast<char *>(map);
        range_end = range + bytes;
        return;
    }
    abort();
}

/* Neighbouring gaps are one mapping. */
void make_gap(char *from, size_t bytes)
{
    if (bytes && mmap(from, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, nothing,
                      from - range) == MAP_FAILED)
        abort();
}

size_t whole_pages(size_t bytes)
{
    size_t page = emu::page_bytes();
    return (bytes + page - 1) / page * page;
}

/* From its start again, once nothing is left and much of it was used. */
char *next_address(size_t bytes)
{
    if (!live_count && range_top - range > (range_end - range) / 2) {
        range_top = range;
        block_count = 0;
    }
    if (static_cast<size_t>(range_end - range_top) < bytes) return nullptr;
    char *at = range_top;
    range_top += bytes;
    return at;
}

bool grow_blocks()
{
    if (block_count < block_capacity) return true;
    size_t capacity = block_capacity ? 2 * block_capacity : 256;
    block *more = static_cast<block *>(realloc(blocks, capacity * sizeof *more));
    if (!more) return false;
    blocks = more;
    block_capacity = capacity;
    return true;
}

/* The last that begins, with the page before it, at or before the address. */
block *block_near(const void *address)
{
    const char *at = static_cast<const char *>(address);
    size_t from = 0, to = block_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (blocks[middle].map - emu::page_bytes() <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? &blocks[from - 1] : nullptr;
}

const pinned *pinned_at(const char *address)
{
    for (const pinned *p = all_pinned; p; p = p->next)
        if (address >= p->data && address < p->data + p->bytes) return p;
    return nullptr;
}

char *placed(char *pages, size_t page_bytes, size_t bytes, size_t alignment)
{
    size_t padded = (bytes + alignment - 1) / alignment * alignment;
    return pages + (emu::schedule == EMU_REVERSE ? 0 : page_bytes - padded);
}

}  // namespace

size_t emu::page_bytes()
{
    static size_t bytes;
    if (!bytes) bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

/* ---- for shared arrays ---- */

emu::guarded emu::guarded_map(size_t bytes, size_t alignment)
{
    size_t page = page_bytes(), rounded = whole_pages(bytes), all = rounded + 2 * page;
    void *map = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return {nullptr, nullptr, 0};
    char *base = static_cast<char *>(map);
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + rounded, page, PROT_NONE);
    return {base, placed(base + page, rounded, bytes, alignment), all};
}

/* NaN in the data, and what lies on its pages beside it out of bounds. */
void emu::guarded_fill(const guarded *g, size_t bytes)
{
    size_t page = page_bytes();
    memset(g->map + page, 0xff, g->map_bytes - 2 * page);
#ifdef EMU_ASAN
    ASAN_POISON_MEMORY_REGION(g->map + page, g->map_bytes - 2 * page);
    ASAN_UNPOISON_MEMORY_REGION(g->data, bytes);
#else
    (void)bytes;
#endif
}

void emu::fill_memory(bool on)
{
    fills = on;
}

void emu::guarded_unmap(void *map, size_t bytes)
{
#ifdef EMU_ASAN
    ASAN_UNPOISON_MEMORY_REGION(map, bytes);
#endif
    munmap(map, bytes);
}

/* ---- of the device ---- */

void *emu::take_memory(size_t bytes, size_t alignment, int device)
{
    make_range();
    size_t page = page_bytes(), rounded = whole_pages(bytes);
    char *gap = grow_blocks() ? next_address(rounded + 2 * page) : nullptr, *map = gap ? gap + page : nullptr;
    if (!map) return nullptr;
    if (rounded && mmap(map, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                        0) == MAP_FAILED) {
        range_top = gap;
        return nullptr;
    }
    block *b = &blocks[block_count++];
    *b = {map, placed(map, rounded, bytes, alignment), bytes, rounded, device, true};
    guarded whole = {gap, b->data, rounded + 2 * page};
    if (fills) guarded_fill(&whole, bytes);
    if (is_hidden) mprotect(map, rounded, PROT_NONE);
    live_count++;
    live_bytes += bytes;
    return b->data;
}

bool emu::give_memory(void *address)
{
    block *b = block_near(address);
    if (!b || !b->live || b->data != address) return false;
#ifdef EMU_ASAN
    ASAN_UNPOISON_MEMORY_REGION(b->map, b->map_bytes);
#endif
    make_gap(b->map, b->map_bytes);
    b->live = false;
    live_count--;
    live_bytes -= b->bytes;
    return true;
}

int emu::device_of(const void *address)
{
    const block *b = is_of_device(address) ? block_near(address) : nullptr;
    return b ? b->device : -1;
}

size_t emu::memory_taken()
{
    return live_bytes;
}

/* ---- of the host, pinned ---- */

void *emu::take_pinned(size_t bytes)
{
    pinned *p = static_cast<pinned *>(malloc(sizeof *p));
    void *data = nullptr;
    if (!p || posix_memalign(&data, 512, bytes)) {
        free(p);
        return nullptr;
    }
    memset(data, 0xff, bytes);
    *p = {all_pinned, static_cast<char *>(data), bytes};
    all_pinned = p;
    pinned_count++;
    return data;
}

bool emu::give_pinned(void *address)
{
    for (pinned **at = &all_pinned; *at; at = &(*at)->next) {
        pinned *p = *at;
        if (p->data != address) continue;
        *at = p->next;
        free(p->data);
        free(p);
        pinned_count--;
        return true;
    }
    return false;
}

int64_t emu::pinned_blocks()
{
    return pinned_count;
}

/* ---- which ---- */

bool emu::is_of_device(const void *address)
{
    const char *at = static_cast<const char *>(address);
    return range && at >= range && at < range_end;
}

emu::address_kind emu::kind_of(const void *address, size_t bytes)
{
    const char *at = static_cast<const char *>(address);
    if (is_of_device(address)) {
        const block *b = block_near(address);
        bool inside = b && b->live && at >= b->data && bytes <= b->bytes &&
                      static_cast<size_t>(at - b->data) <= b->bytes - bytes;
        return inside ? DEVICE : BROKEN;
    }
    const pinned *p = pinned_at(at);
    if (!p) return address ? PAGEABLE : BROKEN;
    return bytes <= static_cast<size_t>(p->data + p->bytes - at) ? PINNED : BROKEN;
}

void emu::add_place(const void *address)
{
    const char *at = static_cast<const char *>(address);
    const block *b = is_of_device(address) ? block_near(address) : nullptr;
    const pinned *p = pinned_at(at);
    if (b && at < b->map + b->map_bytes + page_bytes())
        add_to_fault(", byte %td of %sdevice memory of %zu", at - b->data, b->live ? "" : "freed ", b->bytes);
    else if (p)
        add_to_fault(", byte %td of pinned memory of %zu", at - p->data, p->bytes);
    else
        add_to_fault(", no memory of the device");
}

/* ---- hidden from the host ---- */

void emu::expose()
{
    if (!is_hidden) return;
    mprotect(range, static_cast<size_t>(range_top - range), PROT_READ | PROT_WRITE);
    is_hidden = false;
}

void emu::hide()
{
    if (!is_protected || is_hidden) return;
    make_range();
    mprotect(range, static_cast<size_t>(range_top - range), PROT_NONE);
    is_hidden = true;
}

/* Says which, and then the signal does what it did before. */
static void on_touch(int number, siginfo_t *info, void *)
{
    if (is_hidden && emu::is_of_device(info->si_addr)) {
        emu::failed = false;
        emu::fail("the host touches memory of the device");
        emu::add_place(info->si_addr);
        fprintf(stderr, "%s\n", emu_fault());
    }
    sigaction(number, &former, nullptr);
}

void emu::protect(bool on)
{
    expose();
    if (on != is_protected) {
        struct sigaction action = {};
        action.sa_sigaction = on_touch;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, on ? &action : &former, on ? &former : nullptr);
    }
    is_protected = on;
    hide();
}
