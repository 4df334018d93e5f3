/* Zstandard frames (RFC 8878). What reads them is in the library, under names of its own (third_party/zstd), so
 * that every build reads what any other wrote. What writes them is the system's libzstd, loaded when it is
 * needed, or in the library too (XPH_ZSTD_BUNDLED, CMake's EXPHIL_ZSTD). */
#include "base/system.h"
#include "file/file.h"

/* ---- reading ------------------------------------------------------------------------------------------ */

/* As third_party/zstd/zstddeclib.c declares them, with the prefix of names.h. */
size_t xph_ZSTD_estimateDCtxSize(void);
void *xph_ZSTD_initStaticDCtx(void *workspace, size_t bytes);
size_t xph_ZSTD_decompressDCtx(void *decoder, void *to, size_t capacity, const void *from, size_t bytes);
unsigned xph_ZSTD_isError(size_t code);
unsigned xph_ZSTD_getDictID_fromFrame(const void *from, size_t bytes);
unsigned long long xph_ZSTD_getFrameContentSize(const void *from, size_t bytes);
size_t xph_ZSTD_findFrameCompressedSize(const void *from, size_t bytes);

struct xph_zstd_decoder {
    exphil_context *context;
    void *decoder; /* in the memory behind this struct */
    size_t bytes;
};

/* Of the struct in front of zstd's own. */
static size_t head_bytes(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t xph_zstd_decoder_bytes(void)
{
    return head_bytes(sizeof(xph_zstd_decoder)) + xph_ZSTD_estimateDCtxSize();
}

exphil_status xph_zstd_decoder_create(exphil_context *context, xph_zstd_decoder **decoder,
                                      exphil_error *error)
{
    size_t head = head_bytes(sizeof **decoder), bytes = xph_zstd_decoder_bytes();
    xph_zstd_decoder *made = xph_alloc(context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    void *inner = xph_ZSTD_initStaticDCtx((uint8_t *)made + head, bytes - head);
    if (!inner) {
        xph_free(context, made, bytes);
        return xph_fail(error, EXPHIL_E_INTERNAL, "the decoder of Zstandard does not start");
    }
    *made = (xph_zstd_decoder){.context = context, .decoder = inner, .bytes = bytes};
    *decoder = made;
    return EXPHIL_OK;
}

void xph_zstd_decoder_destroy(xph_zstd_decoder *decoder)
{
    if (decoder) xph_free(decoder->context, decoder, decoder->bytes);
}

const char *xph_zstd_decode(xph_zstd_decoder *decoder, const uint8_t *stored, size_t stored_bytes,
                            uint8_t *to, size_t bytes)
{
    static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    if (stored_bytes < sizeof magic || memcmp(stored, magic, sizeof magic) != 0) return "no Zstandard frame";
    if (xph_ZSTD_getFrameContentSize(stored, stored_bytes) != bytes)
        return "the Zstandard frame declares another size";
    if (xph_ZSTD_getDictID_fromFrame(stored, stored_bytes)) return "the Zstandard frame wants a dictionary";
    if (xph_ZSTD_findFrameCompressedSize(stored, stored_bytes) != stored_bytes)
        return "the Zstandard frame has another length";
    size_t made = xph_ZSTD_decompressDCtx(decoder->decoder, to, bytes, stored, stored_bytes);
    return !xph_ZSTD_isError(made) && made == bytes ? NULL : "the Zstandard frame is damaged";
}

/* ---- writing ------------------------------------------------------------------------------------------ */

/* The functions that are used: stable since 1.0. */
struct xph_zstd_encoder {
    exphil_context *context;
    size_t bytes; /* of this struct, and of what follows it */
    int level;
    void *library, *encoder;
    size_t (*free)(void *encoder);
    size_t (*compress)(void *encoder, void *to, size_t capacity, const void *from, size_t bytes, int level);
    unsigned (*is_error)(size_t code);
};

#ifdef XPH_ZSTD_BUNDLED

/* As third_party/zstd/zstdenclib.c declares them, with the prefix of names.h. */
typedef struct parameters {
    unsigned window_log, chain_log, hash_log, search_log, min_match, target_length;
    int strategy;
} parameters;
parameters xph_ZSTD_getCParams(int level, unsigned long long bytes, size_t dictionary_bytes);
size_t xph_ZSTD_estimateCCtxSize_usingCParams(parameters with);
void *xph_ZSTD_initStaticCCtx(void *workspace, size_t bytes);
size_t xph_ZSTD_compressCCtx(void *encoder, void *to, size_t capacity, const void *from, size_t bytes,
                             int level);

/* What any number of bytes up to `most` wants. zstd has a table for each of these sizes, and within a table more
 * bytes want no less memory. */
static size_t encoder_bytes(int level, size_t most)
{
    static const size_t tables[] = {(size_t)16 << 10, (size_t)128 << 10, (size_t)256 << 10, SIZE_MAX};
    size_t bytes = 0, previous = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && previous < most; previous = tables[i++]) {
        size_t here = tables[i] < most ? tables[i] : most;
        size_t wants = xph_ZSTD_estimateCCtxSize_usingCParams(xph_ZSTD_getCParams(level, here, 0));
        if (wants > bytes) bytes = wants;
    }
    return head_bytes(sizeof(xph_zstd_encoder)) + bytes;
}

static exphil_status start_encoder(xph_zstd_encoder *encoder, exphil_error *error)
{
    size_t head = head_bytes(sizeof *encoder);
    encoder->encoder = xph_ZSTD_initStaticCCtx((uint8_t *)encoder + head, encoder->bytes - head);
    encoder->compress = xph_ZSTD_compressCCtx;
    encoder->is_error = xph_ZSTD_isError;
    return encoder->encoder ? EXPHIL_OK
                            : xph_fail(error, EXPHIL_E_INTERNAL, "the encoder of Zstandard does not start");
}

#else

static size_t encoder_bytes(int level, size_t most)
{
    (void)level, (void)most;
    return sizeof(xph_zstd_encoder);
}

static exphil_status start_encoder(xph_zstd_encoder *encoder, exphil_error *error)
{
    void *(*create)(void);
    char reason[256];
    encoder->library = xph_library_open(XPH_LIBZSTD, reason, sizeof reason);
    if (!encoder->library)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "compressing needs " XPH_LIBZSTD XPH_LIBZSTD_FROM ": %s",
                        reason);
    if (!xph_library_find(encoder->library, "ZSTD_createCCtx", &create) ||
        !xph_library_find(encoder->library, "ZSTD_freeCCtx", &encoder->free) ||
        !xph_library_find(encoder->library, "ZSTD_compressCCtx", &encoder->compress) ||
        !xph_library_find(encoder->library, "ZSTD_isError", &encoder->is_error))
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, XPH_LIBZSTD " lacks a function");
    encoder->encoder = create();
    return encoder->encoder ? EXPHIL_OK : xph_fail(error, EXPHIL_E_MEMORY, "libzstd has no memory");
}

#endif

exphil_status xph_zstd_encoder_create(exphil_context *context, int level, size_t most,
                                      xph_zstd_encoder **encoder, exphil_error *error)
{
    size_t bytes = encoder_bytes(level, most);
    xph_zstd_encoder *made = xph_alloc(context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_zstd_encoder){.context = context, .bytes = bytes, .level = level};
    exphil_status status = start_encoder(made, error);
    if (status < 0)
        xph_zstd_encoder_destroy(made);
    else
        *encoder = made;
    return status;
}

void xph_zstd_encoder_destroy(xph_zstd_encoder *encoder)
{
    if (!encoder) return;
    if (encoder->encoder && encoder->free) encoder->free(encoder->encoder);
    if (encoder->library) xph_library_close(encoder->library);
    xph_free(encoder->context, encoder, encoder->bytes);
}

exphil_status xph_zstd_encode(xph_zstd_encoder *encoder, const uint8_t *from, size_t bytes, uint8_t *to,
                              size_t capacity, size_t *stored_bytes, exphil_error *error)
{
    size_t made = encoder->compress(encoder->encoder, to, capacity, from, bytes, encoder->level);
    if (encoder->is_error(made)) return xph_fail(error, EXPHIL_E_INTERNAL, "Zstandard failed to compress");
    *stored_bytes = made;
    return EXPHIL_OK;
}
