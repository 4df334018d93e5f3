/* Shuffling and sorting. Own functions, because the C library's sort allocates outside the host's allocator,
 * and its order of equal keys differs between systems. */
#include "data/order.h"

#define LOOK_EVERY 65536 /* steps between looks at stop: well below a millisecond */
#define ITEM_MOST  16

bool xph_shuffle(xph_rng *rng, void *items, int64_t count, size_t item_bytes, const atomic_bool *stop)
{
    uint8_t *base = items, kept[ITEM_MOST];
    for (int64_t i = count - 1; i > 0; i--) {
        if (stop && i % LOOK_EVERY == 0 && atomic_load_explicit(stop, memory_order_relaxed)) return false;
        uint8_t *one = base + (size_t)i * item_bytes;
        uint8_t *other = base + (size_t)xph_rng_below(rng, (uint64_t)i + 1) * item_bytes;
        memcpy(kept, one, item_bytes);
        memmove(one, other, item_bytes); /* they may be the same */
        memcpy(other, kept, item_bytes);
    }
    return true;
}

/* Moves the key at i down until it is not smaller than what is below it. */
static void sift(uint64_t *keys, int64_t i, int64_t count)
{
    uint64_t key = keys[i];
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && keys[child + 1] > keys[child]) child++;
        if (keys[child] <= key) break;
        keys[i] = keys[child];
    }
    keys[i] = key;
}

void xph_sort(uint64_t *keys, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;) sift(keys, i, count);
    for (int64_t last = count - 1; last > 0; last--) {
        uint64_t largest = keys[0];
        keys[0] = keys[last];
        keys[last] = largest;
        sift(keys, 0, last);
    }
}
