/* A set of 64-bit keys as an open-addressing table, at most half full so that looking up is short. */
#include "base/base.h"

/* 0 marks an empty place: the key 0 shares that of one in 2^64 others. */
static uint64_t key_of(uint64_t value)
{
    return value ? value : 0x9E3779B97F4A7C15u;
}

static int64_t place(const xph_set *set, const uint64_t *keys, int64_t capacity, uint64_t key)
{
    uint64_t mask = (uint64_t)capacity - 1, at = xph_mix(key ^ set->salt) & mask;
    while (keys[at] && keys[at] != key) at = (at + 1) & mask;
    return (int64_t)at;
}

void xph_set_begin(exphil_context *context, xph_set *set)
{
    *set = (xph_set){.context = context};
    set->salt = xph_salt(set);
}

void xph_set_free(xph_set *set)
{
    xph_free(set->context, set->keys, (size_t)set->capacity * sizeof *set->keys);
    set->keys = NULL;
}

exphil_status xph_set_reserve(xph_set *set, int64_t more, exphil_error *error)
{
    int64_t capacity = 16;
    while (capacity < 2 * (set->count + more)) capacity *= 2;
    if (capacity <= set->capacity) return EXPHIL_OK;
    uint64_t *keys = xph_calloc(set->context, (size_t)capacity, sizeof *keys);
    if (!keys) return xph_no_memory((size_t)capacity * sizeof *keys, error);
    for (int64_t i = 0; i < set->capacity; i++)
        if (set->keys[i]) keys[place(set, keys, capacity, set->keys[i])] = set->keys[i];
    xph_free(set->context, set->keys, (size_t)set->capacity * sizeof *keys);
    set->keys = keys;
    set->capacity = capacity;
    return EXPHIL_OK;
}

bool xph_set_has(const xph_set *set, uint64_t value)
{
    return set->capacity && set->keys[place(set, set->keys, set->capacity, key_of(value))];
}

void xph_set_add(xph_set *set, uint64_t value)
{
    int64_t at = place(set, set->keys, set->capacity, key_of(value));
    if (set->keys[at]) return;
    set->keys[at] = key_of(value);
    set->count++;
}
