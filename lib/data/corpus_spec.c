/* Reading the header of a corpus file and its spec. */
#include "data/corpus_reader.h"

#include "melee/melee.h"

exphil_status xph_corpus_damaged(const xph_corpus_reader *r, uint64_t offset, const char *what,
                                 exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu: %s", r->name, (unsigned long long)offset,
                    what);
}

static const char *type_name(uint32_t type)
{
    static const char *const names[] = {"f32", "f64", "bf16", "i8", "f16"};
    return type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

static exphil_status check_header(const xph_corpus_reader *r, const xph_corpus_header *header,
                                  exphil_error *error)
{
    if (memcmp(header->magic, XPH_CORPUS_MAGIC, sizeof header->magic) != 0)
        return xph_corpus_damaged(r, 0, "this is not a corpus file", error);
    if (!xph_hash_equal(xph_hash(header, offsetof(xph_corpus_header, hash)), header->hash))
        return xph_corpus_damaged(r, 0, "the header is damaged", error);
    if (header->version != XPH_CORPUS_VERSION) {
        return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte 8: version %u; this library reads version %d",
                        r->name, (unsigned)header->version, XPH_CORPUS_VERSION);
    }
    if (header->type != EXPHIL_TYPE_F32) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "\"%s\" byte 12: its floats are %s (%u); f32 can be read", r->name,
                        type_name(header->type), (unsigned)header->type);
    }
    if (header->reserved[0] || header->reserved[1])
        return xph_corpus_damaged(r, 40, "reserved is not zero", error);
    return EXPHIL_OK;
}

/* A text of the file: ended within its 32 bytes, zeros behind it. */
static bool text_fine(const char text[32])
{
    size_t length = 0;
    while (length < 32 && text[length]) length++;
    return length < 32 && xph_all_zero(text + length, 32 - length);
}

/* The parts of a spec, so that its texts have a place to be. */
typedef struct parts {
    xph_corpus_spec spec;
    xph_corpus_id ids[EXPHIL_IDS_MAX];
    xph_corpus_head heads[EXPHIL_HEADS_MAX];
    exphil_id_spec id_specs[EXPHIL_IDS_MAX];
    exphil_head_spec head_specs[EXPHIL_HEADS_MAX];
} parts;

static exphil_status take_parts(const xph_corpus_reader *r, const uint8_t *data, size_t bytes, parts *p,
                                exphil_error *error)
{
    uint64_t at = r->at;
    if (bytes < sizeof p->spec) return xph_corpus_damaged(r, at, "the spec is too short", error);
    memcpy(&p->spec, data, sizeof p->spec);
    if (p->spec.ids > EXPHIL_IDS_MAX || p->spec.heads > EXPHIL_HEADS_MAX)
        return xph_corpus_damaged(r, at, "too many ids or heads", error);
    size_t ids = p->spec.ids * sizeof *p->ids, heads = p->spec.heads * sizeof *p->heads;
    size_t used = sizeof p->spec + ids + heads;
    size_t whole = (used + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
    if (whole != bytes) return xph_corpus_damaged(r, at, "the spec has not the length it should have", error);
    if (!xph_all_zero(data + used, bytes - used))
        return xph_corpus_damaged(r, at + used, "padding is not zero", error);
    memcpy(p->ids, data + sizeof p->spec, ids);
    memcpy(p->heads, data + sizeof p->spec + ids, heads);
    bool fine = text_fine(p->spec.layout) && text_fine(p->spec.codec) && !p->spec.reserved &&
                !p->spec.reserved_too && p->spec.layout_hash;
    for (uint32_t i = 0; i < p->spec.ids; i++) fine = fine && text_fine(p->ids[i].name);
    for (uint32_t i = 0; i < p->spec.heads; i++) fine = fine && text_fine(p->heads[i].name);
    return fine ? EXPHIL_OK : xph_corpus_damaged(r, at, "the spec is damaged", error);
}

static void spec_of(parts *p, exphil_spec *spec)
{
    for (uint32_t i = 0; i < p->spec.ids; i++)
        p->id_specs[i] = (exphil_id_spec){p->ids[i].name, p->ids[i].entries, p->ids[i].width};
    for (uint32_t i = 0; i < p->spec.heads; i++) {
        const xph_corpus_head *head = &p->heads[i];
        p->head_specs[i] =
            (exphil_head_spec){head->name, head->kind, head->count, head->neutral, head->reserved};
    }
    *spec = (exphil_spec){.struct_size = sizeof *spec,
                          .layout = p->spec.layout,
                          .codec = p->spec.codec,
                          .float_count = p->spec.floats,
                          .id_count = p->spec.ids,
                          .ids = p->id_specs,
                          .head_count = p->spec.heads,
                          .heads = p->head_specs,
                          .layout_hash = p->spec.layout_hash};
}

/* A layout that this library knows by name must be the one it knows, or rows mean something else than they
 * seem to. */
static exphil_status check_melee(const xph_corpus_reader *r, const exphil_spec *spec, exphil_error *error)
{
    if (!xph_melee_layout_find(spec->layout)) return EXPHIL_OK;
    exphil_spec own = EXPHIL_SPEC_INIT;
    const char *codec = xph_melee_codec_find(spec->codec) ? spec->codec : NULL;
    XPH_TRY(exphil_melee_spec(spec->layout, codec, &own, error));
    if (own.layout_hash != spec->layout_hash) {
        return xph_fail(
            error, EXPHIL_E_MISMATCH,
            "\"%s\": its layout %s has hash %016llx, this library's %016llx; import the replays again",
            r->name, spec->layout, (unsigned long long)spec->layout_hash,
            (unsigned long long)own.layout_hash);
    }
    uint64_t found = exphil_spec_hash(spec), known = exphil_spec_hash(&own);
    if (codec && found != known) {
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "\"%s\": its spec %s/%s has hash %016llx, this library's %016llx", r->name,
                        spec->layout, spec->codec, (unsigned long long)found, (unsigned long long)known);
    }
    return EXPHIL_OK;
}

/* The longest spec block there can be. */
enum { SPEC_MOST = sizeof(parts) + XPH_CORPUS_ALIGN };
_Static_assert((int)SPEC_MOST <= (int)XPH_WINDOW, "a spec is looked at whole");

exphil_status xph_corpus_read_spec(xph_corpus_reader *r, exphil_error *error)
{
    xph_corpus_header header;
    const uint8_t *data;
    if (xph_corpus_left(r) < sizeof header)
        return xph_corpus_damaged(r, r->bytes, "the file ends within its header", error);
    XPH_TRY(xph_window_copy(&r->window, 0, &header, sizeof header, error));
    XPH_TRY(check_header(r, &header, error));
    r->at = sizeof header;
    if (header.spec_bytes > xph_corpus_left(r))
        return xph_corpus_damaged(r, r->bytes, "the file ends within its spec", error);
    if (header.spec_bytes > SPEC_MOST)
        return xph_corpus_damaged(r, r->at, "the spec has not the length it should have", error);
    size_t bytes = (size_t)header.spec_bytes;
    XPH_TRY(xph_window_look(&r->window, r->at, bytes, &data, error));
    if (!xph_hash_equal(xph_hash(data, bytes), header.block_hash))
        return xph_corpus_damaged(r, r->at, "the spec is damaged", error);
    parts p;
    XPH_TRY(take_parts(r, data, bytes, &p, error));
    exphil_spec spec;
    spec_of(&p, &spec);
    exphil_status status = xph_spec_check(&spec, error);
    if (status < 0)
        return xph_fail_within(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu", r->name,
                               (unsigned long long)r->at);
    if (!xph_hash_equal(exphil_spec_hash(&spec), header.spec_hash))
        return xph_corpus_damaged(r, 24, "the hash of the spec is another", error);
    XPH_TRY(check_melee(r, &spec, error));
    r->at += bytes;
    return xph_dataset_new(r->context, &spec, &r->dataset, error);
}
