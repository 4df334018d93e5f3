/* The ring between a game and what learns behind it: one writer, one reader, no lock. */
#include "learn/live.h"

static unsigned char *entry_at(const xph_ring *ring, int64_t i)
{
    return ring->entries + (size_t)(i % ring->capacity) * ring->bytes;
}

unsigned char *xph_ring_room(const xph_ring *ring)
{
    int64_t read = atomic_load_explicit(&ring->read, memory_order_acquire);
    return ring->written - read < ring->capacity ? entry_at(ring, ring->written) : NULL;
}

void xph_ring_written(xph_ring *ring)
{
    ring->written++;
}

void xph_ring_publish(xph_ring *ring, int64_t kept)
{
    int64_t published = atomic_load_explicit(&ring->published, memory_order_relaxed);
    if (ring->written - kept > published)
        atomic_store_explicit(&ring->published, ring->written - kept, memory_order_release);
}

const unsigned char *xph_ring_last(const xph_ring *ring)
{
    return ring->written ? entry_at(ring, ring->written - 1) : NULL;
}

bool xph_ring_take_back(xph_ring *ring)
{
    if (ring->written == atomic_load_explicit(&ring->published, memory_order_relaxed)) return false;
    ring->written--;
    return true;
}

const unsigned char *xph_ring_front(const xph_ring *ring)
{
    int64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    if (read == atomic_load_explicit(&ring->published, memory_order_acquire)) return NULL;
    return entry_at(ring, read);
}

void xph_ring_done(xph_ring *ring)
{
    atomic_fetch_add_explicit(&ring->read, 1, memory_order_release);
}
