/* Corpus files: every dataset comes back as it was, cut files give their whole episodes, any changed bit is
 * noticed, and neither lack of memory nor a failing disk does harm. */
#include "data_case.h"

#include "data/corpus.h"

#include <stdio.h>
#include <stdlib.h>

static exphil_dataset *open_at(exphil_context *context, const char *path)
{
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_open(context, path, &dataset, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return dataset;
}

static void save_at(const exphil_dataset *dataset, const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_save(dataset, path, &error) != EXPHIL_OK) fail_msg("%s", error.message);
}

/* Contexts whose file "content" is what open_bytes was given. */
static test_io bytes_io;

static exphil_context *bytes_context(void)
{
    test_io_init(&bytes_io);
    return test_context(NULL, &bytes_io, 1);
}

/* Opens bytes as if they were a file, which they are as long as the dataset lives; thousands of real ones would take a
 * minute. */
static exphil_status open_bytes(exphil_context *context, const void *data, size_t bytes,
                                exphil_dataset **dataset, exphil_error *error)
{
    bytes_io.content = data;
    bytes_io.content_bytes = bytes;
    return exphil_dataset_open(context, "content", dataset, error);
}

/* Opens and looks at every row. */
static exphil_status open_verified(exphil_context *context, const void *data, size_t bytes,
                                   exphil_error *error)
{
    exphil_dataset *dataset = NULL;
    exphil_status status = open_bytes(context, data, bytes, &dataset, error);
    if (status == EXPHIL_OK) status = exphil_dataset_verify(dataset, error);
    exphil_dataset_destroy(dataset);
    return status;
}

static void test_round_trip(void **state)
{
    const bool over_itself = test_replaces_open();
    if (!over_itself) print_message("SKIPPED: no file takes the place of one that is open here\n");
    static const int64_t shapes[][4] = {{0}, {1}, {1, 1, 1, 1}, {64, 63, 65, 7}, {1000, 3, 0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            exphil_context *context = test_context(NULL, NULL, threads);
            int64_t count = 0;
            while (count < 4 && shapes[i][count]) count++;
            exphil_dataset *dataset = data_make(context, shapes[i], count);
            save_at(dataset, test_path("a"));
            exphil_dataset *back = open_at(context, test_path("a"));
            data_same(dataset, back);
            assert_int_equal(data_info(back).recovered, 0);
            /* Saved again: the same file. */
            save_at(back, test_path("b"));
            size_t a_bytes = 0, b_bytes = 0;
            char *a = test_read(test_path("a"), &a_bytes), *b = test_read(test_path("b"), &b_bytes);
            assert_int_equal(a_bytes, b_bytes);
            assert_memory_equal(a, b, a_bytes);
            /* Over itself, while it is open. */
            if (over_itself) save_at(back, test_path("a"));
            data_same(dataset, back);
            free(a);
            free(b);
            exphil_dataset_destroy(back);
            exphil_dataset_destroy(dataset);
            exphil_context_destroy(context);
        }
    }
}

/* Parts of episodes of a file, added rows beside them, the file's owner gone first: it stays open until the last. */
static void test_mixed(void **state)
{
    test_io io;
    test_io_init(&io);
    exphil_context *context = test_context(NULL, &io, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){40, 30, 20}, 3), *kept, *held;
    save_at(dataset, test_path("mixed"));
    exphil_dataset *opened = open_at(context, test_path("mixed"));
    assert_int_equal(atomic_load(&io.open_files), 1);
    exphil_split_config config = {sizeof config, 0.3, 0, EXPHIL_SPLIT_TIME, 0};
    assert_int_equal(exphil_dataset_split(opened, &config, &kept, &held, NULL), EXPHIL_OK);
    assert_int_equal(data_add(opened, 7, 11, NULL), EXPHIL_OK);
    exphil_dataset_destroy(opened);
    save_at(held, test_path("held"));
    exphil_dataset *back = open_at(context, test_path("held"));
    data_same(held, back);
    assert_int_equal(data_info(back).frames, 12 + 9 + 6);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(kept);
    assert_int_equal(atomic_load(&io.open_files), 1);
    exphil_dataset_destroy(held);
    assert_int_equal(atomic_load(&io.open_files), 0);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static int32_t no_map(void *user, void *file, size_t bytes, const void **data)
{
    fail_msg("a file was mapped");
    return 1;
}

static int32_t no_unmap(void *user, const void *data, size_t bytes)
{
    return 1;
}

/* A few bytes at a time, from a host of 0.1 that gives map and unmap. */
static void test_short_reads(void **state)
{
    test_io io;
    test_io_init(&io);
    io.hook.map = no_map;
    io.hook.unmap = no_unmap;
    io.most_bytes = 100;
    exphil_context *context = test_context(NULL, &io, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){5, 6}, 2);
    save_at(dataset, test_path("short"));
    exphil_dataset *back = open_at(context, test_path("short"));
    data_same(dataset, back);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- damage ------------------------------------------------------------------------------------------ */

/* Rows of up to XPH_PIECE frames lie so far behind the beginning of their record: its header, one hash, padding. */
enum { ROWS_AT = sizeof(xph_corpus_record) + 64 };

/* A small file and where its parts begin. */
typedef struct small {
    exphil_context *context;
    exphil_dataset *dataset;
    uint8_t *data;
    size_t bytes, record[3], footer;
} small;

static int set_up(void **state)
{
    static small s;
    s.context = bytes_context();
    s.dataset = data_make(s.context, (const int64_t[]){3, 2, 4}, 3);
    save_at(s.dataset, test_path("small"));
    s.data = (uint8_t *)test_read(test_path("small"), &s.bytes);
    xph_corpus_header header;
    memcpy(&header, s.data, sizeof header);
    size_t at = sizeof header + (size_t)header.spec_bytes;
    for (int i = 0; i < 3; i++) {
        xph_corpus_record record;
        s.record[i] = at;
        memcpy(&record, s.data + at, sizeof record);
        at = (at + ROWS_AT + (size_t)record.rows_bytes + 63) / 64 * 64;
    }
    s.footer = at;
    assert_int_equal(s.bytes, at + 128);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    small *s = *state;
    free(s->data);
    exphil_dataset_destroy(s->dataset);
    exphil_context_destroy(s->context);
    return 0;
}

/* A file that ends early has its whole episodes; from nothing to the last byte. */
static void test_torn_at_every_byte(void **state)
{
    small *s = *state;
    for (size_t bytes = 0; bytes < s->bytes; bytes++) {
        exphil_dataset *dataset = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_status status = open_bytes(s->context, s->data, bytes, &dataset, &error);
        if (bytes < s->record[0]) {
            assert_int_equal(status, EXPHIL_E_FORMAT);
            assert_non_null(strstr(error.message, "ends within"));
            continue;
        }
        assert_int_equal(status, EXPHIL_OK);
        int64_t whole = 0;
        for (int i = 0; i < 3; i++) {
            xph_corpus_record record;
            memcpy(&record, s->data + s->record[i], sizeof record);
            whole += bytes >= s->record[i] + ROWS_AT + record.rows_bytes;
        }
        exphil_dataset *want = data_make(s->context, (const int64_t[]){3, 2, 4}, whole);
        data_same(dataset, want);
        /* All but the padding at the very end is missed. */
        assert_int_equal(data_info(dataset).recovered, 1);
        exphil_dataset_destroy(want);
        exphil_dataset_destroy(dataset);
    }
}

/* Zeros where the rest of the file should be, as after a loss of power. */
static void test_zeroed_tail(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    for (int i = 0; i < 3; i++) {
        memcpy(copy, s->data, s->bytes);
        memset(copy + s->record[i], 0, s->bytes - s->record[i]);
        exphil_dataset *dataset = NULL;
        assert_int_equal(open_bytes(s->context, copy, s->bytes, &dataset, NULL), EXPHIL_OK);
        assert_int_equal(data_info(dataset).episodes, i);
        assert_int_equal(data_info(dataset).recovered, 1);
        exphil_dataset_destroy(dataset);
    }
    free(copy);
}

static void keep_line(void *user, exphil_log_level level, const char *message)
{
    if (level == EXPHIL_LOG_WARNING) snprintf(user, 200, "%s", message);
}

/* Whoever listens hears of it; of a whole file nothing is said. */
static void test_torn_is_told(void **state)
{
    small *s = *state;
    char line[200] = "";
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.io = &bytes_io.hook;
    config.threads = 1, config.log = keep_line, config.log_user = line, config.log_level = EXPHIL_LOG_WARNING;
    exphil_context *context = NULL;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    for (size_t missing = 0; missing <= 128; missing += 128) {
        exphil_dataset *dataset = NULL;
        assert_int_equal(open_bytes(context, s->data, s->bytes - missing, &dataset, NULL), EXPHIL_OK);
        assert_string_equal(line,
                            missing ? "content: its end is missing; the 3 episodes before it are used" : "");
        exphil_dataset_destroy(dataset);
    }
    exphil_context_destroy(context);
}

/* No single changed bit goes by unnoticed, and the message says where. */
static void test_every_bit(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    memcpy(copy, s->data, s->bytes);
    for (size_t bit = 0; bit < s->bytes * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_status status = open_verified(s->context, copy, s->bytes, &error);
        if (status != EXPHIL_E_FORMAT) fail_msg("bit %zu: %s", bit, exphil_status_name(status));
        assert_non_null(strstr(error.message, "byte "));
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(copy);
}

/* Of a long episode only the pieces that are needed are looked at: damage is told when it is met, with its place, each
 * time, and what does not touch it goes on. */
static void test_pieces(void **state)
{
    exphil_context *context = bytes_context();
    exphil_dataset *dataset = data_make(context, (const int64_t[]){3 * XPH_PIECE + 5}, 1), *back = NULL;
    save_at(dataset, test_path("pieces"));
    size_t bytes = 0;
    uint8_t *data = (uint8_t *)test_read(test_path("pieces"), &bytes);
    exphil_dataset_info info = data_info(dataset);
    xph_corpus_header header;
    memcpy(&header, data, sizeof header);
    size_t rows = sizeof header + (size_t)header.spec_bytes + ROWS_AT, row = XPH_PIECE + 7;
    size_t hit = rows + row * (size_t)info.float_count * 4;
    assert_int_equal(open_bytes(context, data, bytes, &back, NULL), EXPHIL_OK);
    data_rows_at_once(back);
    exphil_dataset_destroy(back);
    data[hit] ^= 1;
    assert_int_equal(open_bytes(context, data, bytes, &back, NULL), EXPHIL_OK);
    int32_t action[EXPHIL_HEADS_MAX];
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = 0; i < info.frames; i++) {
        exphil_status status = exphil_dataset_frame(back, i, NULL, NULL, action, &error);
        bool bad = i / XPH_PIECE == 1;
        assert_int_equal(status, bad ? EXPHIL_E_FORMAT : EXPHIL_OK);
        if (bad) assert_non_null(strstr(error.message, "rows 256 to 511"));
    }
    assert_int_equal(exphil_dataset_rows(back, 0, 256, NULL, NULL, NULL, NULL, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_rows(back, 512, 261, NULL, NULL, NULL, NULL, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_rows(back, 255, 2, NULL, NULL, NULL, NULL, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "rows 256 to 511"));
    assert_int_equal(exphil_dataset_save(back, test_path("never"), NULL), EXPHIL_E_FORMAT);
    assert_false(test_exists(test_path("never")));
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 1;
    how.time = 64;
    how.in_order = 1;
    exphil_prefetcher *prefetcher = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    assert_int_equal(exphil_prefetcher_create(back, &how, &prefetcher, NULL), EXPHIL_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, NULL), EXPHIL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, &error), EXPHIL_E_FORMAT);
        assert_non_null(strstr(error.message, "rows 256 to 511"));
    }
    assert_int_equal(exphil_prefetcher_seek(prefetcher, 0, 8, NULL), EXPHIL_OK);
    assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, NULL), EXPHIL_OK);
    assert_int_equal(batch.index, 8);
    exphil_prefetcher_destroy(prefetcher);
    exphil_split_config by_time = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    by_time.by = EXPHIL_SPLIT_TIME;
    by_time.held_out = 0.5;
    assert_int_equal(exphil_dataset_split(back, &by_time, &kept, &held, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "rows 256 to 511"));
    assert_true(!kept && !held);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(dataset);
    free(data);
    exphil_context_destroy(context);
}

static int32_t asked(void *user)
{
    return *(bool *)user;
}

static void test_verify_can_be_cancelled(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1), *other = NULL;
    exphil_dataset *dataset = data_make(context, (const int64_t[]){9}, 1), *back = NULL;
    save_at(dataset, test_path("nine"));
    back = open_at(context, test_path("nine"));
    assert_int_equal(exphil_dataset_verify(back, NULL), EXPHIL_OK);
    exphil_dataset_destroy(back);
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    bool cancelled = false;
    config.cancel = asked;
    config.cancel_user = &cancelled;
    assert_int_equal(exphil_context_create(&config, &other, NULL), EXPHIL_OK);
    back = open_at(other, test_path("nine"));
    cancelled = true;
    assert_int_equal(exphil_dataset_verify(back, NULL), EXPHIL_E_CANCELLED);
    assert_int_equal(exphil_dataset_rows(back, 0, 9, NULL, NULL, NULL, NULL, NULL), EXPHIL_E_CANCELLED);
    cancelled = false;
    assert_int_equal(exphil_dataset_verify(back, NULL), EXPHIL_OK);
    exphil_dataset_destroy(back);
    exphil_context_destroy(other);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Another program writes to the file after its rows were checked: ids and actions index tables. */
static void test_changed_after_the_check(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){40}, 1), *back = NULL;
    for (int what = 0; what < 2; what++) {
        save_at(dataset, test_path("changed"));
        back = open_at(context, test_path("changed"));
        assert_int_equal(exphil_dataset_verify(back, NULL), EXPHIL_OK);
        xph_corpus_header header;
        FILE *file = fopen(test_path("changed"), "r+b");
        assert_non_null(file);
        assert_int_equal(fread(&header, sizeof header, 1, file), 1);
        size_t rows = sizeof header + (size_t)header.spec_bytes + ROWS_AT, ids = rows + 40 * DATA_FLOATS * 4;
        size_t actions = ids + 40 * DATA_IDS * 4;
        assert_int_equal(fseek(file, (long)(what ? actions : ids), SEEK_SET), 0);
        for (int i = 0; i < 40 * 7; i++) (void)fputc(0x7f, file);
        assert_int_equal(fclose(file), 0);
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = 1;
        how.time = 8;
        exphil_prefetcher *prefetcher = NULL;
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_error error = EXPHIL_ERROR_INIT;
        int32_t into[40 * DATA_HEADS];
        exphil_status status =
            exphil_dataset_rows(back, 0, 40, NULL, what ? NULL : into, what ? into : NULL, NULL, &error);
        assert_int_equal(status, EXPHIL_E_FORMAT);
        assert_non_null(strstr(error.message, "changed while it was open"));
        assert_int_equal(exphil_prefetcher_create(back, &how, &prefetcher, NULL), EXPHIL_OK);
        assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, &error), EXPHIL_E_FORMAT);
        assert_non_null(strstr(error.message, "changed while it was open"));
        exphil_prefetcher_destroy(prefetcher);
        exphil_dataset_destroy(back);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void test_trailing_bytes(void **state)
{
    small *s = *state;
    uint8_t *copy = calloc(1, s->bytes + 64);
    memcpy(copy, s->data, s->bytes);
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(open_bytes(s->context, copy, s->bytes + 64, &dataset, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "behind the footer"));
    free(copy);
}

/* ---- valid hashes, wrong content --------------------------------------------------------------------- */

/* Puts the hashes of a record right again after its rows or its header were changed. */
static void seal(uint8_t *data, size_t at)
{
    xph_corpus_record record;
    memcpy(&record, data + at, sizeof record);
    uint64_t piece = xph_hash(data + at + ROWS_AT, (size_t)record.rows_bytes);
    memcpy(data + at + sizeof record, &piece, sizeof piece);
    record.rows_hash = xph_hash(&piece, sizeof piece);
    record.hash = xph_hash(&record, offsetof(xph_corpus_record, hash));
    memcpy(data + at, &record, sizeof record);
}

static void change_footer(uint8_t *copy, size_t at, size_t offset, uint64_t value)
{
    memcpy(copy + at + offset, &value, sizeof value);
    uint64_t hash = xph_hash(copy + at, offsetof(xph_corpus_footer, hash));
    memcpy(copy + at + offsetof(xph_corpus_footer, hash), &hash, sizeof hash);
}

/* The content hash too. */
static void seal_all(const small *s, uint8_t *copy, size_t at)
{
    xph_corpus_header header;
    xph_hasher hasher;
    seal(copy, at);
    memcpy(&header, copy, sizeof header);
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, &header.spec_hash, sizeof header.spec_hash);
    for (int i = 0; i < 3; i++) {
        xph_corpus_record record;
        memcpy(&record, copy + s->record[i], sizeof record);
        xph_hash_add(&hasher, &record.frames, sizeof record.frames);
        xph_hash_add(&hasher, &record.rows_hash, sizeof record.rows_hash);
    }
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, content_hash), xph_hash_end(&hasher));
}

/* Opens the changed copy of the small file and puts the copy right. */
static void refuse(small *s, uint8_t *copy, exphil_status status, const char *text)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(open_verified(s->context, copy, s->bytes, &error), status);
    assert_says(&error, text);
    memcpy(copy, s->data, s->bytes);
}

static void test_bad_rows(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    memcpy(copy, s->data, s->bytes);
    size_t rows = s->record[1] + ROWS_AT; /* 2 rows: 32 bytes of floats, 16 of ids, 14 */
    memcpy(copy + rows + 20, &(uint32_t){0x7F800000}, 4);
    seal_all(s, copy, s->record[1]);
    refuse(s, copy, EXPHIL_E_FORMAT, "row 1: float 1 is not finite");
    memcpy(copy + rows + 32, &(int32_t){-1}, 4);
    seal_all(s, copy, s->record[1]);
    refuse(s, copy, EXPHIL_E_FORMAT, "row 0: id 0 (seven) is -1");
    copy[rows + 48] = 32;
    seal_all(s, copy, s->record[1]);
    refuse(s, copy, EXPHIL_E_FORMAT, "row 0: action head 0 (bits) is 32");
    copy[rows + 48 + 7 + 6] = 0x80; /* highest bit of the 31 */
    seal_all(s, copy, s->record[1]);
    refuse(s, copy, EXPHIL_E_FORMAT, "row 1: action head 2 (many)");
    /* Another valid row: all hashes are fine but that of the content. */
    copy[rows] ^= 1;
    seal(copy, s->record[1]);
    refuse(s, copy, EXPHIL_E_FORMAT, "hash of the content");
    free(copy);
}

static void change_record(uint8_t *copy, size_t at, size_t offset, uint64_t value)
{
    memcpy(copy + at + offset, &value, sizeof value);
    uint64_t hash = xph_hash(copy + at, offsetof(xph_corpus_record, hash));
    memcpy(copy + at + offsetof(xph_corpus_record, hash), &hash, sizeof hash);
}

static void test_bad_records(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    memcpy(copy, s->data, s->bytes);
    static const uint64_t sizes[] = {0, 1, 4, UINT64_MAX, (uint64_t)1 << 63, 0x100000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        change_record(copy, s->record[0], offsetof(xph_corpus_record, frames), sizes[i]);
        refuse(s, copy, EXPHIL_E_FORMAT, "impossible");
        change_record(copy, s->record[0], offsetof(xph_corpus_record, rows_bytes), sizes[i]);
        refuse(s, copy, EXPHIL_E_FORMAT, "impossible");
    }
    change_record(copy, s->record[1], offsetof(xph_corpus_record, index), 0);
    refuse(s, copy, EXPHIL_E_FORMAT, "out of order");
    change_record(copy, s->record[1], offsetof(xph_corpus_record, reserved) + 8, 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "reserved");
    change_record(copy, s->record[1], 0, 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "neither a record nor a footer");
    free(copy);
}

static void test_bad_footer(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    memcpy(copy, s->data, s->bytes);
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, records), 4);
    refuse(s, copy, EXPHIL_E_FORMAT, "counts other records");
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, frames), 10);
    refuse(s, copy, EXPHIL_E_FORMAT, "counts other records");
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, content_hash), 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "hash of the content");
    memcpy(copy + s->footer + sizeof(xph_corpus_footer), &(uint64_t){64}, 8);
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, offsets_hash),
                  xph_hash(copy + s->footer + sizeof(xph_corpus_footer), 24));
    refuse(s, copy, EXPHIL_E_FORMAT, "offsets");
    copy[s->footer + sizeof(xph_corpus_footer) + 24] ^= 1;
    refuse(s, copy, EXPHIL_E_FORMAT, "columns of the footer");
    change_footer(copy, s->footer, offsetof(xph_corpus_footer, reserved), 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "reserved");
    free(copy);
}

static void change_header(uint8_t *copy, size_t offset, uint32_t value)
{
    memcpy(copy + offset, &value, sizeof value);
    xph_corpus_header header;
    memcpy(&header, copy, sizeof header);
    header.block_hash = xph_hash(copy + sizeof header, (size_t)header.spec_bytes);
    header.hash = xph_hash(&header, offsetof(xph_corpus_header, hash));
    memcpy(copy, &header, sizeof header);
}

static void test_bad_header(void **state)
{
    small *s = *state;
    uint8_t *copy = malloc(s->bytes);
    memcpy(copy, s->data, s->bytes);
    change_header(copy, offsetof(xph_corpus_header, version), 4);
    refuse(s, copy, EXPHIL_E_FORMAT, "version 4");
    change_header(copy, offsetof(xph_corpus_header, type), EXPHIL_TYPE_F16);
    refuse(s, copy, EXPHIL_E_UNSUPPORTED, "f16");
    change_header(copy, offsetof(xph_corpus_header, type), 77);
    refuse(s, copy, EXPHIL_E_UNSUPPORTED, "unknown type");
    change_header(copy, offsetof(xph_corpus_header, reserved), 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "reserved");
    change_header(copy, 64, 5); /* another number of floats than the hash is of */
    refuse(s, copy, EXPHIL_E_FORMAT, "hash of the spec");
    change_header(copy, 64, 4097);
    refuse(s, copy, EXPHIL_E_FORMAT, "float_count");
    change_header(copy, 68, 65);
    refuse(s, copy, EXPHIL_E_FORMAT, "too many ids");
    change_header(copy, 68, 0);
    refuse(s, copy, EXPHIL_E_FORMAT, "length");
    change_header(copy, 68, 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "padding");
    change_header(copy, 76, 1);
    refuse(s, copy, EXPHIL_E_FORMAT, "the spec is damaged");
    change_header(copy, 64 + 32 + 28, 0x61616161); /* no zeros behind the name of the layout */
    refuse(s, copy, EXPHIL_E_FORMAT, "the spec is damaged");
    free(copy);
}

/* A layout with the name of one of the library's own, but other columns. */
static void test_foreign_melee(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec(NULL, NULL, &spec, NULL), EXPHIL_OK);
    for (int kind = 0; kind < 3; kind++) {
        exphil_spec other = spec;
        exphil_head_spec heads[EXPHIL_HEADS_MAX];
        memcpy(heads, spec.heads, (size_t)spec.head_count * sizeof *heads);
        other.heads = heads;
        if (kind == 1) other.layout_hash ^= 1;
        if (kind == 2) heads[1].count++;
        exphil_dataset_config config = {sizeof config, &other};
        exphil_dataset *dataset = NULL, *back = NULL;
        assert_int_equal(exphil_dataset_create(context, &config, &dataset, NULL), EXPHIL_OK);
        save_at(dataset, test_path("melee"));
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_status status = exphil_dataset_open(context, test_path("melee"), &back, &error);
        assert_int_equal(status, kind ? EXPHIL_E_MISMATCH : EXPHIL_OK);
        if (kind) assert_non_null(strstr(error.message, spec.layout));
        exphil_dataset_destroy(back);
        exphil_dataset_destroy(dataset);
    }
    exphil_context_destroy(context);
}

/* ---- machines that fail ------------------------------------------------------------------------------ */

static void test_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    for (int threads = 1; threads <= 2; threads++) {
        exphil_context *context = test_context(&memory, NULL, threads);
        exphil_dataset *dataset = data_make(context, (const int64_t[]){5, 6, 7}, 3), *back = NULL;
        exphil_status status = EXPHIL_E_MEMORY;
        long long failures = 0;
        for (; status != EXPHIL_OK; failures++) {
            memory.fail_at = atomic_load(&memory.calls) + failures + 1;
            status = exphil_dataset_save(dataset, test_path("memory"), NULL);
            assert_true(status == EXPHIL_OK || status == EXPHIL_E_MEMORY);
            assert_int_equal(test_exists(test_path("memory")), status == EXPHIL_OK);
        }
        for (failures = 0; !back; failures++) {
            memory.fail_at = atomic_load(&memory.calls) + failures + 1;
            status = exphil_dataset_open(context, test_path("memory"), &back, NULL);
            /* Without memory for its threads the pool makes do with the caller. */
            assert_true(back ? status == EXPHIL_OK : status == EXPHIL_E_MEMORY);
        }
        assert_true(failures > 8);
        memory.fail_at = 0;
        data_same(dataset, back);
        exphil_dataset_destroy(back);
        exphil_dataset_destroy(dataset);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
        remove(test_path("memory"));
    }
}

static void test_disk_failures(void **state)
{
    test_io io;
    test_io_init(&io);
    exphil_context *context = test_context(NULL, &io, 1);
    exphil_dataset *old = data_make(context, (const int64_t[]){4}, 1);
    exphil_dataset *new = data_make(context, (const int64_t[]){5, 6}, 2);
    save_at(old, test_path("disk"));
    long long failures = 0;
    for (exphil_status status = EXPHIL_E_IO; status != EXPHIL_OK; failures++) {
        io.fail_at = atomic_load(&io.calls) + failures + 1;
        status = exphil_dataset_save(new, test_path("disk"), NULL);
        io.fail_at = 0;
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_IO);
        /* The old file or the new one, never anything else. */
        exphil_dataset *back = open_at(context, test_path("disk"));
        data_same(back, data_info(back).episodes == 1 ? old : new);
        exphil_dataset_destroy(back);
        assert_false(test_exists(test_path("disk.exphil-tmp")));
        assert_int_equal(atomic_load(&io.open_files), 0);
    }
    assert_true(failures > 10);
    exphil_dataset *back = NULL;
    for (failures = 0; !back; failures++) {
        io.fail_at = atomic_load(&io.calls) + failures + 1;
        exphil_status status = exphil_dataset_open(context, test_path("disk"), &back, NULL);
        assert_int_equal(status, back ? EXPHIL_OK : EXPHIL_E_IO);
        assert_int_equal(atomic_load(&io.open_files), back ? 1 : 0);
    }
    assert_true(failures > 2);
    io.fail_at = 0;
    data_same(new, back);
    exphil_dataset_destroy(back);
    exphil_dataset_destroy(old);
    exphil_dataset_destroy(new);
    exphil_context_destroy(context);
}

static void test_arguments(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_dataset_open(context, test_path("none"), &dataset, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, 2);
    assert_int_equal(exphil_dataset_open(context, NULL, &dataset, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_open(context, test_path("none"), NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_open(NULL, test_path("none"), &dataset, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_save(NULL, test_path("none"), NULL), EXPHIL_E_INVALID);
    dataset = data_empty(context);
    assert_int_equal(exphil_dataset_save(dataset, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_save(dataset, test_folder(), NULL), EXPHIL_E_IO);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_short_reads),
        cmocka_unit_test_setup_teardown(test_torn_at_every_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_torn_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_zeroed_tail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_bit, set_up, tear_down),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_verify_can_be_cancelled),
        cmocka_unit_test(test_changed_after_the_check),
        cmocka_unit_test_setup_teardown(test_trailing_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_footer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_header, set_up, tear_down),
        cmocka_unit_test(test_foreign_melee),
        cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_disk_failures),
        cmocka_unit_test(test_arguments),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove();
    return failed;
}
