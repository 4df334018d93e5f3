/* Copies between an array of any strides and its place in the workspace. */
#include "ops/ops.h"

enum { TILE = 16, FRAMES = 64, ALONE = 1 << 15 }; /* elements below which other threads do not pay */

typedef struct side {
    unsigned char *data;
    const int64_t *stride;
} side;

typedef struct moving {
    const xph_array *array; /* counts, element */
    side to, from;
    int64_t pieces; /* of FRAMES frames, of a batch entry */
} moving;

/* Columns of which one side's lie apart: in tiles, so that the lines of both stay in the cache. */
#define SCATTER(name, type)                                                                                  \
  static void name(side to, side from, int64_t frames, int64_t columns)                                      \
  {                                                                                                          \
    for (int64_t f = 0; f < frames; f += TILE)                                                               \
      for (int64_t c = 0; c < columns; c += TILE)                                                            \
        for (int64_t i = f; i < frames && i < f + TILE; i++)                                                 \
          for (int64_t k = c; k < columns && k < c + TILE; k++)                                              \
            ((type *)(void *)to.data)[i * to.stride[1] + k * to.stride[2]] =                                 \
                ((const type *)(const void *)from.data)[i * from.stride[1] + k * from.stride[2]];            \
  }
SCATTER(scatter1, uint8_t)
SCATTER(scatter4, uint32_t)
SCATTER(scatter8, uint64_t)

static bool together(const int64_t *stride, int64_t columns)
{
    return columns <= 1 || stride[2] == 1;
}

static void move_rows(side to, side from, int64_t frames, int64_t columns, int64_t element)
{
    const int64_t ahead = to.stride[1] * element, behind = from.stride[1] * element;
    if (frames > 1 && to.stride[1] == columns && from.stride[1] == columns) columns *= frames, frames = 1;
    for (int64_t f = 0; f < frames; f++)
        memcpy(to.data + f * ahead, from.data + f * behind, (size_t)(columns * element));
}

static side shifted(side of, int64_t batch, int64_t frame, int64_t element)
{
    return (side){of.data + (batch * of.stride[0] + frame * of.stride[1]) * element, of.stride};
}

static void move_piece(void *arg, int64_t i, int32_t worker)
{
    const moving *m = arg;
    (void)worker;
    const int64_t element = m->array->element, first = i % m->pieces * FRAMES, columns = m->array->count[2];
    const int64_t left = m->array->count[1] - first, frames = left < FRAMES ? left : FRAMES;
    side to = shifted(m->to, i / m->pieces, first, element),
         from = shifted(m->from, i / m->pieces, first, element);
    if (together(to.stride, columns) && together(from.stride, columns))
        move_rows(to, from, frames, columns, element);
    else if (element == 1)
        scatter1(to, from, frames, columns);
    else if (element == 4)
        scatter4(to, from, frames, columns);
    else
        scatter8(to, from, frames, columns);
}

static void move_in_memory(const xph_call *call, moving *m)
{
    const int64_t *count = m->array->count, all = count[0] * count[1] * count[2];
    m->pieces = (count[1] + FRAMES - 1) / FRAMES;
    if (!call->ops->alone && all >= ALONE) {
        xph_parallel(call->ops->context, move_piece, m, count[0] * m->pieces);
        return;
    }
    for (int64_t i = 0; i < count[0] * m->pieces; i++) move_piece(m, i, 0);
}

/* Row by row, on the stream of a device whose memory is its own. */
static exphil_status move_on_device(xph_stream *stream, const moving *m)
{
    const int64_t *count = m->array->count, element = m->array->element;
    int64_t frames = count[1], columns = count[2];
    if (frames > 1 && m->to.stride[1] == columns && m->from.stride[1] == columns)
        columns *= frames, frames = 1;
    for (int64_t b = 0; b < count[0]; b++)
        for (int64_t f = 0; f < frames; f++)
            XPH_TRY(stream->device->backend->copy(stream, shifted(m->to, b, f, element).data,
                                                  shifted(m->from, b, f, element).data,
                                                  (size_t)(columns * element)));
    return EXPHIL_OK;
}

exphil_status xph_move(const xph_call *call, xph_stream *stream, const xph_array *array,
                       const xph_moved *moved, bool back)
{
    const side outside = {array->data, array->stride}, inside = {moved->data, moved->stride};
    moving m = {.array = array, .to = back ? outside : inside, .from = back ? inside : outside};
    if (!stream->device->backend->host_memory) return move_on_device(stream, &m);
    move_in_memory(call, &m);
    return EXPHIL_OK;
}
