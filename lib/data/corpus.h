/* Private to lib/data: the corpus file, version 2, as doc/file-format.md describes it. All numbers
 * little-endian; the headers start at multiples of 64, and the padding before them is zero.
 *
 *   file header 64 | spec block | records: header 128, hashes of pieces, rows
 *   | footer: header 64, offsets of the records, columns */
#ifndef XPH_DATA_CORPUS_H
#define XPH_DATA_CORPUS_H

#include "data/dataset.h"

#define XPH_CORPUS_VERSION 2
#define XPH_CORPUS_ALIGN   64

/* Each header ends with the XXH64 of its bytes before that. */
typedef struct xph_corpus_header {
    char magic[8];
    uint32_t version;
    uint32_t type;       /* of the floats: EXPHIL_TYPE_F32 */
    uint64_t spec_bytes; /* of the block behind this header, padding included */
    uint64_t spec_hash;  /* exphil_spec_hash */
    uint64_t block_hash; /* XXH64 of the spec block */
    uint64_t reserved[2];
    uint64_t hash;
} xph_corpus_header;

typedef struct xph_corpus_spec { /* ids and heads follow */
    uint32_t floats, ids, heads, reserved;
    uint64_t layout_hash;
    uint64_t reserved_too;
    char layout[32], codec[32]; /* zeros behind the text */
} xph_corpus_spec;
typedef struct xph_corpus_id {
    char name[32];
    int32_t entries, width;
} xph_corpus_id;
typedef struct xph_corpus_head {
    char name[32];
    int32_t kind, count, neutral, reserved;
} xph_corpus_head;

typedef struct xph_corpus_record {
    char magic[8];
    uint64_t index; /* from 0 */
    uint64_t frames;
    uint64_t rows_bytes; /* frames * (4F + 4K + P) */
    uint64_t rows_hash;  /* XXH64 of the hashes of the pieces, which stand between this header and the rows */
    uint64_t game;
    int32_t first_game_frame, port, opponent_port, stage, character, opponent_character;
    uint64_t group, match; /* xph_episode_facts; version 0.1 wrote 0 */
    uint64_t reserved[4];
    uint64_t hash;
} xph_corpus_record;

/* records uint64_t offsets, F uint32_t and F uint8_t of the columns follow */
typedef struct xph_corpus_footer {
    char magic[8];
    uint64_t records, frames;
    uint64_t content_hash; /* as in exphil_dataset_info */
    uint64_t offsets_hash; /* XXH64 of the offsets */
    uint64_t columns_hash; /* XXH64 of the columns (xph_columns): first, varies */
    uint64_t reserved;
    uint64_t hash;
} xph_corpus_footer;

_Static_assert(sizeof(xph_corpus_header) == 64 && sizeof(xph_corpus_footer) == 64, "as in the file");
_Static_assert(sizeof(xph_corpus_record) == 128 && sizeof(xph_corpus_spec) == 96, "as in the file");
_Static_assert(sizeof(xph_corpus_id) == 40 && sizeof(xph_corpus_head) == 48, "as in the file");

#define XPH_CORPUS_MAGIC "exphilco"
#define XPH_RECORD_MAGIC "episode\n"
#define XPH_FOOTER_MAGIC "endindex"

/* A part of a corpus in memory, of at most so many bytes. */
enum { XPH_WINDOW = 32768 };
typedef struct xph_window {
    const xph_shared_file *corpus;
    uint64_t at;
    size_t bytes;
    uint8_t *memory;
} xph_window;
exphil_status xph_window_make(xph_window *window, const xph_shared_file *corpus, exphil_error *error);
void xph_window_free(xph_window *window);
/* At most XPH_WINDOW bytes, none behind the end of the file; they stand until the next look. */
exphil_status xph_window_look(xph_window *window, uint64_t at, size_t bytes, const uint8_t **data,
                              exphil_error *error);
/* Any number of bytes. */
exphil_status xph_window_copy(xph_window *window, uint64_t at, void *to, size_t bytes, exphil_error *error);
/* Is all zero from here to the end of the file? That may be a hole of any size: the cancel hook is called in
 * between. */
exphil_status xph_window_zero(xph_window *window, uint64_t at, bool *zero, exphil_error *error);
bool xph_all_zero(const void *data, size_t bytes);

#endif
