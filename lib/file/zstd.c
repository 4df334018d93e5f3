/* Zstandard frames (RFC 8878). What reads them is in the library, under names of its own (third_party/zstd), so
 * that every build reads what any other wrote. What writes them is the system's libzstd, loaded when it is
 * needed. */
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
static size_t head_bytes(void)
{
    return (sizeof(xph_zstd_decoder) + 63) / 64 * 64;
}

size_t xph_zstd_decoder_bytes(void)
{
    return head_bytes() + xph_ZSTD_estimateDCtxSize();
}

exphil_status xph_zstd_decoder_create(exphil_context *context, xph_zstd_decoder **decoder,
                                      exphil_error *error)
{
    size_t head = head_bytes(), bytes = xph_zstd_decoder_bytes();
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

/* The functions of libzstd that are used: stable since 1.0. */
struct xph_zstd_encoder {
    exphil_context *context;
    void *library, *encoder;
    int level;
    size_t (*free)(void *encoder);
    size_t (*compress)(void *encoder, void *to, size_t capacity, const void *from, size_t bytes, int level);
    unsigned (*is_error)(size_t code);
};

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

exphil_status xph_zstd_encoder_create(exphil_context *context, int level, xph_zstd_encoder **encoder,
                                      exphil_error *error)
{
    xph_zstd_encoder *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = (xph_zstd_encoder){.context = context, .level = level};
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
    if (encoder->encoder) encoder->free(encoder->encoder);
    if (encoder->library) xph_library_close(encoder->library);
    xph_free(encoder->context, encoder, sizeof *encoder);
}

exphil_status xph_zstd_encode(xph_zstd_encoder *encoder, const uint8_t *from, size_t bytes, uint8_t *to,
                              size_t capacity, size_t *stored_bytes, exphil_error *error)
{
    size_t made = encoder->compress(encoder->encoder, to, capacity, from, bytes, encoder->level);
    if (encoder->is_error(made)) return xph_fail(error, EXPHIL_E_INTERNAL, "libzstd failed to compress");
    *stored_bytes = made;
    return EXPHIL_OK;
}
