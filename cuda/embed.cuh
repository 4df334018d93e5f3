/* A number of an input row (XPH_OP_EMBED). host has what args keep in host memory: table[i].table and .width of the ids, and
 * head[h].
 */
#ifndef XPH_CUDA_EMBED_CUH
#define XPH_CUDA_EMBED_CUH

#include "element.cuh"

/* What a column holds: -1 of what it is not. */
struct embed_column {
    int64_t input; /* column of the floats */
    int table;     /* id */
    int64_t entry; /* column of its table */
    int64_t slot;  /* past action */
    int head;      /* of the slot, and its class or bit */
    int32_t choice;
};

template <class Host>
__device__ inline embed_column embed_column_of(const xph_embed_args &a, const Host &host, int64_t c)
{
    embed_column to = {-1, -1, 0, -1, -1, 0};
    if (c < a.floats) {
        to.input = c;
        return to;
    }
    c -= a.floats;
    for (int i = 0; i < a.ids; i++) {
        if (c < host.table[i].width) {
            to.table = i;
            to.entry = c;
            return to;
        }
        c -= host.table[i].width;
    }
    to.slot = c / a.logits;
    c %= a.logits;
    for (int h = 0; h < a.heads; h++) {
        const xph_head &head = host.head[h];
        if (c < head.first || c >= head.first + head.count) continue;
        to.head = h;
        to.choice = static_cast<int32_t>(c - head.first);
    }
    return to;
}

template <class Host>
__device__ inline float embed_one_hot(const xph_embed_args &a, const Host &host, embed_column k, int64_t row)
{
    if (k.head < 0 || !a.actions) return 0.0f;
    const int32_t action = a.actions[row * a.lda + k.slot * a.heads + k.head];
    if (host.head[k.head].kind == EXPHIL_BERNOULLI)
        return static_cast<float>(static_cast<uint32_t>(action) >> k.choice & 1u);
    return action == k.choice ? 1.0f : 0.0f;
}

template <class Host>
__device__ inline float embed_number(const xph_embed_args &a, const Host &host, embed_column k, int64_t row)
{
    if (k.input >= 0) return load(a.x + row * a.ldx + k.input);
    if (k.table < 0) return embed_one_hot(a, host, k, row);
    const auto &t = host.table[k.table];
    return load(static_cast<const float *>(t.table) + a.id[row * a.ldid + k.table] * t.width + k.entry);
}

#endif
