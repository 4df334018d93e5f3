/* Private to lib/data: what reading a corpus file goes by. */
#ifndef XPH_DATA_CORPUS_READER_H
#define XPH_DATA_CORPUS_READER_H

#include "data/corpus.h"

typedef struct xph_corpus_reader {
    exphil_context *context;
    const char *name; /* of the file, for messages */
    uint64_t bytes, at;
    xph_shared_file *corpus;
    xph_window window;
    exphil_dataset *dataset;
    xph_episode *episodes; /* of the whole records */
    int64_t count, capacity;
    bool torn;
} xph_corpus_reader;

static inline uint64_t xph_corpus_left(const xph_corpus_reader *r)
{
    return r->bytes - r->at;
}

/* EXPHIL_E_FORMAT with the byte. */
exphil_status xph_corpus_damaged(const xph_corpus_reader *r, uint64_t offset, const char *what,
                                 exphil_error *error);

/* The header and the spec, from the first byte on; then there is an empty dataset. */
exphil_status xph_corpus_read_spec(xph_corpus_reader *r, exphil_error *error);

#endif
