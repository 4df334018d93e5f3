/* Verification of replays against a manifest: tab-separated, the first line names the columns. Columns that
 * this file does not compute (sources, licence, notes) are left alone. */
#include "slp_manifest.h"

#include "digest.h"
#include "files.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 32, TEXT = 1024 };

/* One replay as the library sees it; slp is NULL when it cannot be read. */
struct replay {
    unsigned char *data;
    size_t bytes;
    exphil_slp *slp;
    exphil_slp_info info;
};

const char *slp_stop_name(int32_t stop)
{
    static const char *const names[] = {"complete", "end_of_file", "metadata", "truncated", "unknown_code"};
    return stop >= 0 && stop <= EXPHIL_SLP_STOP_UNKNOWN_CODE ? names[stop] : "?";
}

unsigned char *slp_file_read(const char *path, size_t *bytes)
{
    FILE *file = file_open(path);
    unsigned char *data = NULL;
    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long length = ftell(file);
        if (length >= 0 && fseek(file, 0, SEEK_SET) == 0) data = malloc((size_t)length + 1);
        if (data) *bytes = fread(data, 1, (size_t)length, file);
        if (data) data[*bytes] = 0;
    }
    (void)fclose(file);
    return data;
}

/* ---- columns: each writes what the library says -------------------------------------------------------- */

static void put_frame(char *text, const struct replay *replay, int32_t frame)
{
    if (!replay->slp || replay->info.frame_count == 0)
        (void)snprintf(text, TEXT, "-");
    else
        (void)snprintf(text, TEXT, "%d", (int)frame);
}

static uint32_t dump_crc(const struct replay *replay, int32_t kind, int32_t slot)
{
    size_t bytes = exphil_slp_dump_bytes(replay->slp, kind, slot);
    void *buffer = malloc(bytes + 1);
    uint32_t crc = 0;
    if (buffer && exphil_slp_dump(replay->slp, kind, slot, buffer, bytes, NULL) == EXPHIL_OK)
        crc = digest_crc32(buffer, bytes);
    free(buffer);
    return crc;
}

static void put_slots(char *text, const struct replay *replay)
{
    size_t at = 0;
    for (int32_t i = 0; i < exphil_slp_slot_count(replay->slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(replay->slp, i);
        const exphil_slp_player *last = &slot->records[slot->record_count - 1];
        double percent = last->percent == last->percent ? (double)last->percent : (double)NAN; /* no sign */
        int wrote = snprintf(text + at, TEXT - at, "%sP%d%s:%" PRId64 ":%d..%d:%.4f:%u:%08x:%08x:%08x",
                             i ? ";" : "", (int)slot->port + 1, slot->follower ? "n" : "", slot->record_count,
                             (int)slot->first_frame, (int)slot->last_frame, percent, (unsigned)last->stocks,
                             (unsigned)dump_crc(replay, EXPHIL_SLP_DUMP_STATE, i),
                             (unsigned)dump_crc(replay, EXPHIL_SLP_DUMP_INPUT, i),
                             (unsigned)dump_crc(replay, EXPHIL_SLP_DUMP_AUX, i));
        if (wrote < 0 || (size_t)wrote >= TEXT - at) return;
        at += (size_t)wrote;
    }
    if (at == 0) (void)snprintf(text, TEXT, "-");
}

static void put_end(char *text, const exphil_slp_info *info)
{
    char lras[8] = "-", placements[32] = "-";
    const int8_t *p = info->placements;
    if (info->fields & EXPHIL_SLP_HAS_LRAS) (void)snprintf(lras, sizeof lras, "%d", (int)info->end_lras);
    if (info->fields & EXPHIL_SLP_HAS_PLACEMENTS)
        (void)snprintf(placements, sizeof placements, "%d/%d/%d/%d", (int)p[0], (int)p[1], (int)p[2],
                       (int)p[3]);
    if (info->end_count == 0)
        (void)snprintf(text, TEXT, "none");
    else
        (void)snprintf(text, TEXT, "method=%u,lras=%s,placements=%s", (unsigned)info->end_method, lras,
                       placements);
}

/* Like the manifest's column, the characters' names left out: "P1:(2)human P2:(25)cpu1/team0". */
static void put_players(char *text, const exphil_slp_info *info)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < EXPHIL_SLP_PORTS && at < TEXT - 64; i++) {
        const exphil_slp_port *port = &info->ports[i];
        char type[16] = "human", team[16] = "";
        if (port->type == 3) continue;
        if (port->type == 1) (void)snprintf(type, sizeof type, "cpu%u", (unsigned)port->cpu_level);
        if (port->type >= 2) (void)snprintf(type, sizeof type, "type%u", (unsigned)port->type);
        if (info->teams) (void)snprintf(team, sizeof team, "/team%u", (unsigned)port->team);
        at += (size_t)snprintf(text + at, TEXT - at, "%sP%zu:(%u)%s%s", at ? " " : "", i + 1,
                               (unsigned)port->character, type, team);
    }
}

/* Removes the names between ':' and '('. */
static void without_names(char *text)
{
    char *to = text;
    int in_name = 0;
    for (const char *from = text; *from; from++) {
        if (*from == '(') in_name = 0;
        if (!in_name) *to++ = *from;
        if (*from == ':') in_name = 1;
    }
    *to = 0;
}

static void put_readable(const char *column, const struct replay *replay, char *text)
{
    const exphil_slp_info *info = &replay->info;
    const uint8_t *v = info->version;
    if (strcmp(column, "version") == 0)
        (void)snprintf(text, TEXT, "%u.%u.%u", (unsigned)v[0], (unsigned)v[1], (unsigned)v[2]);
    else if (strcmp(column, "stage") == 0)
        (void)snprintf(text, TEXT, "%u", (unsigned)info->stage);
    else if (strcmp(column, "stop") == 0)
        (void)snprintf(text, TEXT, "%s", slp_stop_name(info->stop));
    else if (strcmp(column, "end") == 0)
        put_end(text, info);
    else if (strcmp(column, "slots") == 0)
        put_slots(text, replay);
    else if (strcmp(column, "players") == 0)
        put_players(text, info);
    else if (strcmp(column, "played_on") == 0)
        (void)snprintf(text, TEXT, "%s", info->played_on[0] ? info->played_on : "-");
    else if (strcmp(column, "crc_items") == 0)
        (void)snprintf(text, TEXT, "%08x", (unsigned)dump_crc(replay, EXPHIL_SLP_DUMP_ITEMS, 0));
    else
        text[0] = 0;
}

/* The text of one column, "" for a column that is not checked. */
static void put_column(const char *column, const struct replay *replay, char *text)
{
    char sum[65];
    text[0] = 0;
    if (strcmp(column, "bytes") == 0)
        (void)snprintf(text, TEXT, "%zu", replay->bytes);
    else if (strcmp(column, "sha256") == 0) {
        digest_sha256(replay->data, replay->bytes, sum);
        (void)snprintf(text, TEXT, "%s", sum);
    } else if (strcmp(column, "readable") == 0)
        (void)snprintf(text, TEXT, "%s", replay->slp ? "yes" : "no");
    else if (strcmp(column, "first_frame") == 0)
        put_frame(text, replay, replay->info.first_frame);
    else if (strcmp(column, "last_frame") == 0)
        put_frame(text, replay, replay->info.last_frame);
    else if (strcmp(column, "frames") == 0)
        (void)snprintf(text, TEXT, "%" PRId64, replay->info.frame_count);
    else if (strcmp(column, "instances") == 0)
        (void)snprintf(text, TEXT, "%" PRId64, replay->info.instance_count);
    else if (strcmp(column, "items") == 0 && replay->slp)
        (void)snprintf(text, TEXT, "%" PRId64, replay->info.item_count);
    else if (replay->slp)
        put_readable(column, replay, text);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

/* Splits at tabs, in place. */
static size_t split(char *line, char **fields)
{
    size_t count = 0;
    for (char *at = line; at && count < COLUMNS; count++) {
        fields[count] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    return count;
}

static void load(exphil_context *context, const char *path, struct replay *replay)
{
    *replay = (struct replay){.info = EXPHIL_SLP_INFO_INIT};
    replay->data = slp_file_read(path, &replay->bytes);
    if (!replay->data) return;
    if (exphil_slp_read(context, replay->data, replay->bytes, NULL, &replay->slp, NULL) < 0)
        replay->slp = NULL;
    if (replay->slp && exphil_slp_query(replay->slp, &replay->info, NULL) < 0)
        (void)fprintf(stderr, "%s: no information\n", path);
}

/* Prints one result; 1 on a mismatch. */
static int verify_line(exphil_context *context, const char *folder, char **names, char **fields, size_t count,
                       FILE *out)
{
    char path[4096], text[TEXT];
    struct replay replay;
    int wrong = 0;
    (void)snprintf(path, sizeof path, "%s%s", folder, fields[0]);
    load(context, path, &replay);
    (void)fprintf(out, "%-60s ", fields[0]);
    if (!replay.data) (void)fprintf(out, "%s", wrong++ ? "" : "MISMATCH file cannot be read");
    for (size_t i = 1; replay.data && i < count; i++) {
        put_column(names[i], &replay, text);
        if (strcmp(names[i], "players") == 0) without_names(fields[i]);
        if (text[0] == 0 || strcmp(text, fields[i]) == 0) continue;
        (void)fprintf(out, "%s%s", wrong++ ? "," : "MISMATCH ", names[i]);
    }
    (void)fprintf(out, "%s\n", wrong ? "" : "ok");
    exphil_slp_destroy(replay.slp);
    free(replay.data);
    return wrong != 0;
}

/* Cuts the next line off; NULL at the end. Empty lines and comments are passed over. */
static char *next_line(char **rest)
{
    while (*rest && **rest) {
        char *line = *rest, *end = strchr(line, '\n');
        *rest = end ? end + 1 : NULL;
        if (end) *end = 0;
        if (end && end > line && end[-1] == '\r') end[-1] = 0;
        if (line[0] && line[0] != '#') return line;
    }
    return NULL;
}

int slp_manifest_verify(exphil_context *context, const char *path, FILE *out)
{
    char *names[COLUMNS], *fields[COLUMNS], folder[2048] = "";
    size_t bytes;
    char *text = (char *)slp_file_read(path, &bytes), *rest = text, *line = text ? next_line(&rest) : NULL;
    const char *slash = strrchr(path, '/');
    int passed = 0, failed = 0;
    if (!line) {
        (void)fprintf(stderr, "%s: cannot be read, or is empty\n", path);
        free(text);
        return -1;
    }
    if (slash) (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - path), path);
    size_t count = split(line, names);
    while ((line = next_line(&rest)) != NULL) {
        size_t there = split(line, fields);
        if (verify_line(context, folder, names, fields, there < count ? there : count, out))
            failed++;
        else
            passed++;
    }
    (void)fprintf(out, "%d passed, %d failed\n", passed, failed);
    free(text);
    return failed;
}
