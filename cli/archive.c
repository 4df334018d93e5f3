/* libarchive (2-clause BSD) is loaded when the first archive is met, so that the program is one file for systems with it and
 * without. Of it only reading is used, only formats and compressions that it knows by itself, and no file is ever written.
 * What an archive may cost is bounded: bytes of an entry, entries, bytes of all entries by the size of the archive. */
#include "archive.h"

#include "system.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_MOST   ((size_t)64 << 20) /* bytes, as of any replay */
#define ENTRIES_MOST 10000000
/* Real replays shrink to a fifth, idle ones to a fiftieth. */
#define RATIO_MOST   100
#define TOTAL_ALWAYS ((uint64_t)1 << 30)

/* libarchive's numbers (archive.h, archive_entry.h), which are part of its stable interface. */
enum {
    END = 1,
    OK = 0,
    WARN = -20,
    FORMAT_BASE = 0xff0000,
    FORMAT_TAR = 0x30000,
    FORMAT_ZIP = 0x50000,
    FORMAT_RAW = 0x90000,
    TYPE_MASK = 0170000,
    TYPE_REGULAR = 0100000
};

struct archive;
struct archive_entry;

static struct {
    struct archive *(*make)(void);
    int (*free)(struct archive *);
    int (*open)(struct archive *, const void *, size_t); /* of a path as system_archive_path has it */
    int (*next)(struct archive *, struct archive_entry **);
    ssize_t (*read)(struct archive *, void *, size_t);
    const char *(*error)(struct archive *);
    int (*format)(struct archive *);
    int (*filters)(struct archive *);
    int (*encrypted)(struct archive *);
    const char *(*name)(struct archive_entry *);
    const char *(*name_utf8)(struct archive_entry *);
    unsigned (*type)(struct archive_entry *);
    int (*entry_encrypted)(struct archive_entry *);
    int (*support[8])(struct archive *);
} lib;

/* ---- loading ------------------------------------------------------------------------------------------- */

/* Functions come as data. */
static bool find(void *library, const char *name, void *to)
{
    void *symbol = system_symbol(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Compressions that this build of it leaves to other programs are not used. */
static void drop_foreign_filters(int count)
{
    struct archive *trial = lib.make();
    for (int i = 0; trial && i < count; i++)
        if (lib.support[i](trial) != OK) lib.support[i] = NULL;
    if (trial) lib.free(trial);
}

static bool find_all(void *library)
{
    static const char *const supports[] = {
        "archive_read_support_filter_gzip", "archive_read_support_filter_bzip2",
        "archive_read_support_filter_xz",   "archive_read_support_filter_zstd",
        "archive_read_support_format_zip",  "archive_read_support_format_7zip",
        "archive_read_support_format_tar",  "archive_read_support_format_raw"};
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"archive_read_new", &lib.make},
                     {"archive_read_free", &lib.free},
                     {system_archive_opens, &lib.open},
                     {"archive_read_next_header", &lib.next},
                     {"archive_read_data", &lib.read},
                     {"archive_error_string", &lib.error},
                     {"archive_format", &lib.format},
                     {"archive_filter_count", &lib.filters},
                     {"archive_read_has_encrypted_entries", &lib.encrypted},
                     {"archive_entry_pathname", &lib.name},
                     {"archive_entry_pathname_utf8", &lib.name_utf8},
                     {"archive_entry_filetype", &lib.type},
                     {"archive_entry_is_encrypted", &lib.entry_encrypted}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!find(library, functions[i].name, functions[i].to)) return false;
    for (size_t i = 0; i < sizeof supports / sizeof supports[0]; i++)
        if (!find(library, supports[i], &lib.support[i])) return false;
    drop_foreign_filters(4);
    return true;
}

/* Of names with '|' between them the first that is there. */
static void *load_any(const char *names)
{
    char name[SYSTEM_PATH];
    void *library = NULL;
    for (size_t length; !library && *names; names += length + (names[length] == '|')) {
        length = strcspn(names, "|");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, names);
        library = system_library(name, false);
    }
    return library;
}

/* NULL: it is there. Else why it is not, in words. */
static const char *load(void)
{
    static const char *problem;
    static bool tried;
    if (tried) return problem;
    tried = true;
    void *library = load_any(EXPHIL_LIBARCHIVE);
    if (!EXPHIL_LIBARCHIVE[0])
        problem = "this program was built without archives (CMake's EXPHIL_LIBARCHIVE)";
    else if (!library)
        problem = "archives are read with " EXPHIL_LIBARCHIVE
                  ", which is not installed (" EXPHIL_LIBARCHIVE_HINT ")";
    else if (!find_all(library))
        problem = EXPHIL_LIBARCHIVE " is of a version without what reading archives needs";
    return problem;
}

/* ---- names --------------------------------------------------------------------------------------------- */

bool archive_name(const char *path)
{
    static const char *const ends[] = {".slp.gz", ".slp.bz2", ".slp.xz", ".slp.zst", ".zip",
                                       ".7z",     ".tar",     ".tar.gz", ".tgz",     ".tar.bz2",
                                       ".tar.xz", ".txz",     ".tar.zst"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (name_ends(path, ends[i])) return true;
    return false;
}

/* As in folders, what begins with a dot is not for people; "." and ".." are no names. */
static bool is_hidden(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (part[0] == '.' && part[1] != '/' && !(part[1] == '.' && part[2] == '/')) return true;
    return false;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

typedef struct reading {
    const file_item *archive;
    const char *inside;
    const file_choice *choice;
    file_visitor visitor;
    void *user;
    struct archive *from;
    struct archive_entry *entry;
    unsigned char *data; /* of one entry */
    size_t capacity;
    uint64_t total, total_most;
    int64_t entries, replays;
    char name[4096];   /* of the entry */
    char text[256];    /* of a problem */
    bool raw, unnamed; /* unnamed: its name is in no known letters */
    bool stop;         /* the visitor said so */
} reading;

/* Words of the library, which may repeat what a file says: one line of letters. */
static const char *words_of(reading *r, const char *before)
{
    const char *error = lib.error(r->from);
    snprintf(r->text, sizeof r->text, "%s%s", before, error ? error : "it is damaged");
    for (char *at = r->text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = ' ';
    return r->text;
}

static void give(reading *r, const void *data, size_t bytes, const char *problem)
{
    char full[sizeof r->name + 4096];
    file_item item = *r->archive;
    item.data = data;
    item.bytes = bytes;
    item.problem = problem;
    item.inside = !r->raw;
    if (item.inside) {
        snprintf(full, sizeof full, "%s:%s", r->archive->path, r->name);
        item.name = full;
        item.named = r->inside != NULL;
    }
    r->replays++;
    r->stop = !r->visitor(r->user, &item);
}

/* What is wrong with the archive itself. */
static void give_archive(reading *r, const char *problem)
{
    file_item item = *r->archive;
    item.problem = problem;
    r->stop = !r->visitor(r->user, &item);
}

static bool reserve(reading *r, size_t bytes)
{
    if (bytes <= r->capacity) return true;
    size_t capacity = r->capacity ? 2 * r->capacity : (size_t)1 << 20;
    while (capacity < bytes) capacity *= 2;
    unsigned char *wider = realloc(r->data, capacity);
    if (!wider) return false;
    r->data = wider;
    r->capacity = capacity;
    return true;
}

/* All of the entry; NULL or its problem. A stored file that claims more is not believed before its bytes are there. */
static const char *read_entry(reading *r, size_t *bytes)
{
    *bytes = 0;
    for (;;) {
        if (!reserve(r, *bytes + 65536)) return "no memory";
        ssize_t got = lib.read(r->from, r->data + *bytes, 65536);
        if (got == 0) return NULL;
        if (got < 0) return words_of(r, "");
        *bytes += (size_t)got;
        r->total += (uint64_t)got;
        if (*bytes > ENTRY_MOST) return "it is longer than 64 MiB";
        if (r->total > r->total_most) return "the archive unpacks to far more than replays do";
    }
}

/* Bytes that nobody wants are counted where they must be unpacked to be passed over. */
static void pass_over(reading *r)
{
    int base = lib.format(r->from) & FORMAT_BASE;
    if (lib.filters(r->from) <= 1 && (base == FORMAT_ZIP || base == FORMAT_TAR))
        return; /* the next header seeks */
    if (!reserve(r, 65536)) return;
    for (ssize_t got = 1; got > 0 && r->total <= r->total_most;) {
        got = lib.read(r->from, r->data, 65536);
        if (got > 0) r->total += (uint64_t)got;
    }
}

static void name_entry(reading *r)
{
    const char *name = lib.name_utf8(r->entry);
    if (!name) name = lib.name(r->entry);
    r->unnamed = !name || !*name;
    if (!r->unnamed)
        snprintf(r->name, sizeof r->name, "%s", name);
    else
        snprintf(r->name, sizeof r->name, "entry %" PRId64, r->entries);
}

static bool is_excluded(const reading *r)
{
    char full[sizeof r->name + 4096];
    snprintf(full, sizeof full, "%s:%s", r->archive->path, r->name);
    return file_excluded(r->choice, full) || file_excluded(r->choice, r->name);
}

static bool is_wanted(const reading *r)
{
    if (r->raw) return true;
    if ((lib.type(r->entry) & TYPE_MASK) != TYPE_REGULAR) return false;
    if (r->inside) return strcmp(r->inside, r->name) == 0;
    if (r->unnamed) return true;
    return (name_ends(r->name, ".slp") || archive_name(r->name)) && !is_hidden(r->name) && !is_excluded(r);
}

static void take_entry(reading *r)
{
    size_t bytes = 0;
    r->raw = (lib.format(r->from) & FORMAT_BASE) == FORMAT_RAW;
    name_entry(r);
    if (!is_wanted(r)) {
        pass_over(r);
        return;
    }
    const char *problem = NULL;
    if (!r->raw && archive_name(r->name))
        problem = "an archive in an archive is not opened";
    else if (lib.entry_encrypted(r->entry))
        problem = "it is encrypted";
    else
        problem = read_entry(r, &bytes);
    give(r, problem ? NULL : r->data, problem ? 0 : bytes, problem);
}

static void read_all(reading *r)
{
    for (;;) {
        int status = lib.next(r->from, &r->entry);
        if (status == END) break;
        if (status < WARN) {
            bool hidden = lib.encrypted(r->from) == 1;
            give_archive(r, hidden ? "it is encrypted" : words_of(r, "the archive is damaged: "));
            return;
        }
        if (r->entries++ == 0 && lib.filters(r->from) > 2) { /* one, and the file itself */
            give_archive(r, "it is compressed more than once");
            return;
        }
        if (r->entries > ENTRIES_MOST) {
            give_archive(r, "it has more than 10 million entries");
            return;
        }
        take_entry(r);
        if (r->stop) return;
        if (r->total > r->total_most) {
            give_archive(r, "it unpacks to far more than replays do; the rest was not read");
            return;
        }
    }
    if (r->replays == 0 && r->inside)
        give_archive(r, "the archive has no such entry");
    else if (r->replays == 0 && r->archive->named)
        give_archive(r, "there is no .slp in this archive");
}

static bool open_reader(reading *r)
{
    system_facts facts;
    if (!system_look(r->archive->path, &facts) || !facts.regular) return false;
    r->total_most = TOTAL_ALWAYS + RATIO_MOST * facts.bytes;
    r->from = lib.make();
    for (size_t i = 0; r->from && i < sizeof lib.support / sizeof lib.support[0]; i++)
        if (lib.support[i]) (void)lib.support[i](r->from);
    return r->from != NULL;
}

bool archive_visit(const file_item *archive, const char *inside, const file_choice *choice,
                   file_visitor visitor, void *user)
{
    reading r = {.archive = archive, .inside = inside, .choice = choice, .visitor = visitor, .user = user};
    const char *missing = load();
    if (missing) {
        give_archive(&r, missing);
    } else if (!open_reader(&r)) {
        give_archive(&r, "it cannot be opened");
    } else if (lib.open(r.from, system_archive_path(archive->path), 65536) < WARN) {
        give_archive(&r, words_of(&r, "it cannot be opened as an archive: "));
    } else {
        read_all(&r);
    }
    if (r.from) lib.free(r.from);
    free(r.data);
    return !r.stop;
}

/* ---- one replay ---------------------------------------------------------------------------------------- */

typedef struct only {
    exphil_context *context;
    const exphil_slp_config *config;
    exphil_slp *slp;
    exphil_error *error;
    int64_t count;
    bool fine;
} only;

static bool refuse(only *o, const char *name, const char *why)
{
    o->error->status = EXPHIL_E_INVALID;
    snprintf(o->error->message, sizeof o->error->message, "%.150s: %.80s", name, why);
    o->fine = false;
    return false;
}

static bool take_only(void *user, const file_item *item)
{
    only *o = user;
    if (o->count++) return refuse(o, item->path, "more than one replay; name one as ARCHIVE:ENTRY");
    if (item->problem) return refuse(o, item->name, item->problem);
    if (item->games) return refuse(o, item->name, "this is a corpus of games, not one replay");
    o->fine = item->data
                  ? exphil_slp_read(o->context, item->data, item->bytes, o->config, &o->slp, o->error) >= 0
                  : exphil_slp_open(o->context, item->path, o->config, &o->slp, o->error) >= 0;
    return o->fine;
}

bool replay_open(exphil_context *context, const char *path, const exphil_slp_config *config, exphil_slp **slp,
                 exphil_error *error)
{
    only o = {.context = context, .config = config, .error = error};
    const file_choice choice = {.from = NULL};
    const file_rules rules = {.any = true};
    char *paths[] = {(char *)(uintptr_t)path};
    file_list list;
    if (file_kind_of(path) == FILE_FOLDER) return refuse(&o, path, "this is a folder; name a replay in it");
    if (!file_list_make(&list, &choice, &rules, 1, paths)) {
        refuse(&o, path, "it cannot be listed");
    } else {
        (void)file_list_visit(&list, &choice, take_only, &o);
    }
    file_list_free(&list);
    if (o.fine)
        *slp = o.slp;
    else
        exphil_slp_destroy(o.slp);
    return o.fine;
}
