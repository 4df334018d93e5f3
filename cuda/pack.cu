/* Packed forms of weights for matrix units: a narrow copy of a matrix, made once per update, for rows of
 * float16 or bfloat16, followed by a narrow copy of the bias. Rows of floats are multiplied with the weights
 * themselves. All of a net, with the rates of its scans, are one launch (packs). */
#include "scan.cuh"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t BIAS_ALIGN = 64; /* bytes */

/* count numbers of w, then `more` of bias. */
template <class Stored>
__global__ void __launch_bounds__(THREADS)
    pack(const float *w, const float *bias, Stored *to, Stored *to_bias, int64_t count, int64_t more)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        store(to + i, load(w + i));
    else if (i < count + more)
        store(to_bias + i - count, load(bias + i - count));
}

bool accepts(const void *args)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    return !a->weights && is_stored(a->type);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    const int64_t count = a->in * a->out, more = a->bias ? a->out : 0;
    const dim3 grid(as_grid(blocks_of(count + more, THREADS)));
    const float *w = static_cast<const float *>(a->w), *bias = static_cast<const float *>(a->bias);
    char *const to = static_cast<char *>(a->packed);
    if (!count || a->type == XPH_F32) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        using Stored = decltype(zero);
        XPH_LAUNCH((pack<Stored>), grid, dim3(THREADS), 0, stream, w, bias, reinterpret_cast<Stored *>(to),
                   reinterpret_cast<Stored *>(to + xph_packed_bias_at(a->in, a->out)), count, more);
    });
    return cudaGetLastError();
}

/* ---- those of a net ---- */

/* Arrays that a launch goes over: array k has the blocks from its first on, those of the next one follow. */
constexpr int MOST_ARRAYS = 96, EACH = 4;
constexpr int64_t ITEM = THREADS * EACH;
struct pack_array {
    const float *from;
    void *to;
    int64_t count;
    int32_t first, rates; /* rates: those of a scan, as floats; else numbers of Stored */
};
struct pack_arrays {
    pack_array of[MOST_ARRAYS];
    int32_t count, blocks;
};

template <class To, class Each> __device__ inline void convert(const pack_array &array, int64_t first, Each f)
{
    const int64_t i = first + threadIdx.x * EACH;
    To *const to = static_cast<To *>(array.to) + i;
    const float *const from = array.from + i;
    const bool groups = reinterpret_cast<uintptr_t>(array.from) % sizeof(stored_group<float, EACH>) == 0 &&
                        reinterpret_cast<uintptr_t>(array.to) % sizeof(stored_group<To, EACH>) == 0;
    float x[EACH];
    if (groups && i + EACH <= array.count) {
        load_group(from, x);
        XPH_UNROLL
        for (int k = 0; k < EACH; k++) x[k] = f(x[k]);
        store_group(to, x);
        return;
    }
    for (int k = 0; k < EACH; k++)
        if (i + k < array.count) store(to + k, f(load(from + k)));
}

template <class Stored> __global__ void __launch_bounds__(THREADS) packs(const pack_arrays arrays)
{
    XPH_ENTER();
    const int32_t block = static_cast<int32_t>(blockIdx.x);
    int k = arrays.count - 1;
    while (arrays.of[k].first > block) k--;
    const pack_array &array = arrays.of[k];
    const int64_t first = (block - array.first) * ITEM;
    if (array.rates)
        convert<float>(array, first, [](float a_log) { return scan_rate_of(a_log); });
    else
        convert<Stored>(array, first, [](float x) { return x; });
}

template <class Stored> void send(pack_arrays *arrays, cudaStream_t stream)
{
    if (arrays->count)
        XPH_LAUNCH((packs<Stored>), dim3(static_cast<unsigned>(arrays->blocks)), dim3(THREADS), 0, stream,
                   *arrays);
    arrays->count = arrays->blocks = 0;
}

template <class Stored>
void add(pack_arrays *arrays, const void *from, void *to, int64_t count, bool rates, cudaStream_t stream)
{
    if (!from || !count) return;
    if (arrays->count == MOST_ARRAYS) send<Stored>(arrays, stream);
    arrays->of[arrays->count++] = {static_cast<const float *>(from), to, count, arrays->blocks, rates};
    arrays->blocks += static_cast<int32_t>(blocks_of(count, ITEM));
}

template <class Stored> int launch_packs(const xph_packs_args *a, cudaStream_t stream)
{
    pack_arrays arrays = {};
    for (int64_t i = 0; i < a->matrices && a->type != XPH_F32; i++) {
        const xph_linear_pack_args *m = &a->matrix[i];
        char *const to = static_cast<char *>(m->packed);
        if (!m->in || !m->out) continue;
        add<Stored>(&arrays, m->w, to, m->in * m->out, false, stream);
        add<Stored>(&arrays, m->bias, to + xph_packed_bias_at(m->in, m->out), m->out, false, stream);
    }
    for (int64_t i = 0; i < a->decays; i++)
        add<Stored>(&arrays, a->decay[i].a_log, a->decay[i].decay, a->decay[i].width * a->decay[i].states,
                    true, stream);
    send<Stored>(&arrays, stream);
    return cudaGetLastError();
}

bool accepts_packs(const void *args)
{
    const xph_packs_args *a = static_cast<const xph_packs_args *>(args);
    /* Numbers of an array: the blocks of a launch are counted in 31 bits. */
    constexpr int64_t most = (int64_t(1) << 31) / MOST_ARRAYS * THREADS;
    for (int64_t i = 0; i < a->matrices; i++) {
        const xph_linear_pack_args *m = &a->matrix[i];
        if (!accepts(m) || m->type != a->type || (m->in && m->out > most / m->in)) return false;
    }
    for (int64_t i = 0; i < a->decays; i++)
        if (a->decay[i].states && a->decay[i].width > most / a->decay[i].states) return false;
    return is_stored(a->type);
}

int send_packs(const void *args, cudaStream_t stream)
{
    const xph_packs_args *a = static_cast<const xph_packs_args *>(args);
    return with_stored(a->type, [&](auto zero) { return launch_packs<decltype(zero)>(a, stream); });
}

size_t matrix_bytes(xph_type weights, int64_t in, int64_t out)
{
    if (weights) return xph_narrow_bytes(weights, in, out);
    return xph_packed_bias_at(in, out) + static_cast<size_t>(out) * sizeof(__nv_bfloat16);
}

size_t decay_bytes(int64_t width, int64_t states)
{
    return static_cast<size_t>(width) * static_cast<size_t>(states) * sizeof(float);
}

}  // namespace

size_t xph_packed_bias_at(int64_t in, int64_t out)
{
    const int64_t bytes = in * out * int64_t(sizeof(__nv_bfloat16));
    return static_cast<size_t>(blocks_of(bytes, BIAS_ALIGN) * BIAS_ALIGN);
}

size_t xph_cuda_packed_bytes(xph_op op, const void *args)
{
    const xph_linear_args *linear = static_cast<const xph_linear_args *>(args);
    const xph_linear_pack_args *made = static_cast<const xph_linear_pack_args *>(args);
    const xph_rnn_args *rnn = static_cast<const xph_rnn_args *>(args);
    const xph_scan_args *scan = static_cast<const xph_scan_args *>(args);
    const xph_scan_pack_args *decay = static_cast<const xph_scan_pack_args *>(args);
    switch (op) {
    case XPH_OP_LINEAR:
        return matrix_bytes(linear->weights, linear->in, linear->out);
    case XPH_OP_LINEAR_PACK:
        return matrix_bytes(made->weights, made->in, made->out);
    case XPH_OP_RNN:
        return matrix_bytes(rnn->weights, rnn->hidden, (rnn->kind == XPH_RNN_LSTM ? 4 : 3) * rnn->hidden);
    case XPH_OP_SCAN:
        return decay_bytes(scan->width, scan->states);
    case XPH_OP_SCAN_PACK:
        return decay_bytes(decay->width, decay->states);
    default:
        return 0;
    }
}

const xph_cuda_candidate xph_cuda_linear_pack[] = {
    {"linear_pack", accepts, nullptr, launch},
    {"linear_pack_narrow", xph_narrow_accepts_pack, nullptr, xph_narrow_pack},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_packs[] = {
    {"packs", accepts_packs, nullptr, send_packs},
    {nullptr, nullptr, nullptr, nullptr},
};
