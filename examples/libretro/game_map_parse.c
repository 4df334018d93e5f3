/* Reads the text of a game map: one statement a line, words between spaces, '#' begins a comment. Every complaint names the
 * file, the line and the word. Numbers are read the same in every locale. */
#include "game_map.h"

#include "system.h"

#include <errno.h>
#include <libretro-common/libretro.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 48
#define LINE_MOST 1022 /* characters, without the end */

struct reader {
    struct game_map *map;
    const char *path;
    int line;
    char *word[WORDS_MAX];
    int words;
    unsigned seen; /* statements that may stand once: bits by their place in the table */
    char *message;
    size_t message_bytes;
};

static int complain(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int complain(struct reader *reader, const char *format, ...)
{
    va_list list;
    int used = snprintf(reader->message, reader->message_bytes, "%s:%d: ", reader->path, reader->line);
    if (used < 0 || (size_t)used >= reader->message_bytes) return -1;
    va_start(list, format);
    vsnprintf(reader->message + used, reader->message_bytes - (size_t)used, format, list);
    va_end(list);
    return -1;
}

/* ---- words -> values ---- */

static int take_name(struct reader *reader, const char *word, char *name)
{
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    if (length == 0 || word[length] || length >= GAME_MAP_NAME)
        return complain(reader, "name '%.40s' is not 1 to 31 of a-z 0-9 _ .", word);
    memcpy(name, word, length + 1);
    return 0;
}

static int take_unsigned(struct reader *reader, const char *what, const char *word, uint32_t most,
                         uint32_t *value)
{
    char *end;
    errno = 0;
    int hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    unsigned long long number = strtoull(word, &end, hex ? 16 : 10);
    if (word[0] < '0' || word[0] > '9' || *end || errno || number > most)
        return complain(reader, "%s '%.40s' is not a number from 0 to %lu", what, word, (unsigned long)most);
    *value = (uint32_t)number;
    return 0;
}

/* [-]digits[.digits], at most 15 of them. Returns what follows, NULL when it is none. */
static const char *read_decimal(const char *text, double *value)
{
    double whole = 0, unit = 1;
    int digits = 0, negative = *text == '-', fraction = 0;
    if (negative) text++;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = 1;
            continue;
        }
        if (++digits > 15) return NULL;
        whole = whole * 10 + (*text - '0');
        if (fraction) unit *= 10;
    }
    *value = (negative ? -whole : whole) / unit;
    return digits ? text : NULL;
}

/* 0.5, -3, 1/160 */
static int take_number(struct reader *reader, const char *what, const char *word, double *value)
{
    double below = 1;
    const char *rest = read_decimal(word, value);
    if (rest && *rest == '/') rest = read_decimal(rest + 1, &below);
    if (!rest || *rest || below == 0)
        return complain(reader, "%s '%.40s' is not a number like 0.5, -3 or 1/160", what, word);
    *value /= below;
    return 0;
}

static int find_field(const struct game_map *map, const char *name)
{
    for (int i = 0; i < map->fields; i++)
        if (!strcmp(map->field[i].name, name)) return i;
    return -1;
}

static int take_field(struct reader *reader, const char *word, int *field)
{
    *field = find_field(reader->map, word);
    return *field < 0 ? complain(reader, "no field '%.40s' above this line", word) : 0;
}

static int want(struct reader *reader, int least, int most, const char *form)
{
    if (reader->words >= least && reader->words <= most) return 0;
    return complain(reader, "'%.20s' is written: %s", reader->word[0], form);
}

/* ---- fields ---- */

static int take_type(struct reader *reader, const char *word, struct game_field *field)
{
    static const struct {
        const char *name;
        int bytes;
        char form;
        int big;
    } types[] = {
        {"u8", 1, 'u', 0},      {"s8", 1, 's', 0},      {"u16le", 2, 'u', 0},   {"u16be", 2, 'u', 1},
        {"s16le", 2, 's', 0},   {"s16be", 2, 's', 1},   {"u32le", 4, 'u', 0},   {"u32be", 4, 'u', 1},
        {"s32le", 4, 's', 0},   {"s32be", 4, 's', 1},   {"f32le", 4, 'f', 0},   {"f32be", 4, 'f', 1},
        {"bcd1", 1, 'b', 1},    {"bcd2", 2, 'b', 1},    {"bcd3", 3, 'b', 1},    {"bcd4", 4, 'b', 1},
        {"digits2", 2, 'd', 1}, {"digits3", 3, 'd', 1}, {"digits4", 4, 'd', 1}, {"digits6", 6, 'd', 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(word, types[i].name)) continue;
        field->bytes = types[i].bytes;
        field->form = types[i].form;
        field->big = types[i].big;
        return 0;
    }
    return complain(
        reader,
        "type '%.20s' is none of u8 s8 u16le u16be s16le s16be u32le u32be s32le s32be f32le f32be "
        "bcd1..bcd4 digits2 digits3 digits4 digits6",
        word);
}

static int take_mask(struct reader *reader, const char *word, struct game_field *field)
{
    uint32_t most = field->bytes >= 4 ? UINT32_MAX : (1u << (8 * field->bytes)) - 1;
    if (field->form != 'u') return complain(reader, "mask needs an unsigned type");
    if (take_unsigned(reader, "mask", word, most, &field->mask)) return -1;
    return field->mask ? 0 : complain(reader, "mask 0 leaves nothing");
}

/* After address and type: pairs of a word and its value. */
static int take_extra(struct reader *reader, const char *name, const char *value, struct game_field *field)
{
    uint32_t number = 0;
    if (!strcmp(name, "mask")) return take_mask(reader, value, field);
    if (field->kind == FIELD_FLOAT && !strcmp(name, "scale"))
        return take_number(reader, name, value, &field->scale);
    if (field->kind == FIELD_FLOAT && !strcmp(name, "offset"))
        return take_number(reader, name, value, &field->offset);
    if (field->kind == FIELD_ID && (!strcmp(name, "entries") || !strcmp(name, "width"))) {
        if (take_unsigned(reader, name, value, *name == 'e' ? 65536 : 256, &number)) return -1;
        *(*name == 'e' ? &field->entries : &field->width) = (int32_t)number;
        return 0;
    }
    return complain(reader, "'%.20s' is nothing that a %s has", name, reader->word[0]);
}

static int read_field(struct reader *reader, int kind)
{
    struct game_map *map = reader->map;
    struct game_field *field = &map->field[map->fields];
    const char *form = kind == FIELD_FLOAT
                           ? "float NAME ADDRESS TYPE [mask BITS] [scale NUMBER] [offset NUMBER]"
                       : kind == FIELD_ID ? "id NAME ADDRESS TYPE entries COUNT [width COUNT] [mask BITS]"
                                          : "raw NAME ADDRESS TYPE [mask BITS]";
    if (want(reader, 4, 10, form)) return -1;
    if (reader->words % 2) return complain(reader, "'%.20s' has no value", reader->word[reader->words - 1]);
    if (map->fields == GAME_MAP_FIELDS) return complain(reader, "more than %d fields", GAME_MAP_FIELDS);
    memset(field, 0, sizeof *field);
    field->kind = kind;
    field->line = reader->line;
    field->scale = 1;
    if (take_name(reader, reader->word[1], field->name) ||
        take_unsigned(reader, "address", reader->word[2], UINT32_MAX, &field->address) ||
        take_type(reader, reader->word[3], field))
        return -1;
    if (find_field(map, field->name) >= 0)
        return complain(reader, "field '%s' is there already", field->name);
    for (int i = 4; i < reader->words; i += 2)
        if (take_extra(reader, reader->word[i], reader->word[i + 1], field)) return -1;
    if (kind == FIELD_ID && field->entries < 1) return complain(reader, "id '%s' needs entries", field->name);
    if (kind == FIELD_ID && map->ids == EXPHIL_IDS_MAX)
        return complain(reader, "more than %d ids", EXPHIL_IDS_MAX);
    map->fields++;
    map->floats += kind == FIELD_FLOAT;
    map->ids += kind == FIELD_ID;
    return 0;
}

/* ---- heads and what they press ---- */

static int read_head(struct reader *reader)
{
    struct game_map *map = reader->map;
    struct game_head *head = &map->head[map->heads];
    uint32_t count = 0, neutral = 0;
    if (want(reader, 4, 6, "head NAME bits|classes COUNT [neutral VALUE]")) return -1;
    if (map->heads == EXPHIL_HEADS_MAX) return complain(reader, "more than %d heads", EXPHIL_HEADS_MAX);
    int bits = !strcmp(reader->word[2], "bits");
    if (!bits && strcmp(reader->word[2], "classes"))
        return complain(reader, "a head has bits or classes, not '%.20s'", reader->word[2]);
    if (reader->words == 5 || (reader->words == 6 && strcmp(reader->word[4], "neutral")))
        return complain(reader, "after the count stands: neutral VALUE");
    char name[GAME_MAP_NAME];
    if (take_name(reader, reader->word[1], name) ||
        take_unsigned(reader, "count", reader->word[3], bits ? 31 : 1024, &count))
        return -1;
    if (count < (bits ? 1u : 2u)) return complain(reader, "a head has at least 1 bit or 2 classes");
    if (reader->words == 6 &&
        take_unsigned(reader, "neutral", reader->word[5], bits ? (1u << count) - 1 : count - 1, &neutral))
        return -1;
    for (int i = 0; i < map->heads; i++)
        if (!strcmp(map->head[i].name, name)) return complain(reader, "head '%s' is there already", name);
    memset(head, 0, sizeof *head);
    memcpy(head->name, name, sizeof name);
    head->kind = bits ? EXPHIL_BERNOULLI : EXPHIL_CATEGORICAL;
    head->count = (int32_t)count;
    head->neutral = (int32_t)neutral;
    head->press = calloc(count, sizeof *head->press);
    if (!head->press) return complain(reader, "no memory");
    map->heads++;
    return 0;
}

static int take_axis(struct reader *reader, const char *word, struct game_press *press)
{
    static const char *const names[GAME_MAP_AXES] = {"lx", "ly", "rx", "ry"};
    double value;
    for (int i = 0; i < GAME_MAP_AXES; i++) {
        if (strncmp(word, names[i], 2) != 0 || word[2] != '=') continue;
        if (take_number(reader, names[i], word + 3, &value)) return -1;
        if (value < -1 || value > 1)
            return complain(reader, "%s is from -1 to 1, not '%.20s'", names[i], word + 3);
        press->axis[i] = (int16_t)(value * 32767);
        press->given = (uint8_t)(press->given | 1u << i);
        return 0;
    }
    return complain(
        reader,
        "'%.20s' is no button (up down left right a b x y l r l2 r2 l3 r3 start select) and no axis "
        "(lx=-1 ly=0.5 rx=1 ry=0)",
        word);
}

static int take_press(struct reader *reader, const char *word, struct game_press *press)
{
    static const char *const names[16] = {"b", "y", "select", "start", "up", "down", "left", "right",
                                          "a", "x", "l",      "r",     "l2", "r2",   "l3",   "r3"};
    for (int i = 0; i < 16; i++) { /* in the order of RETRO_DEVICE_ID_JOYPAD_B .. _R3 */
        if (strcmp(word, names[i])) continue;
        press->buttons = (uint16_t)(press->buttons | 1u << i);
        return 0;
    }
    return take_axis(reader, word, press);
}

static int read_press(struct reader *reader)
{
    struct game_map *map = reader->map;
    struct game_head *head = NULL;
    uint32_t value = 0;
    if (want(reader, 4, WORDS_MAX, "press HEAD VALUE BUTTON|AXIS=NUMBER ...")) return -1;
    for (int i = 0; i < map->heads; i++)
        if (!strcmp(map->head[i].name, reader->word[1])) head = &map->head[i];
    if (!head) return complain(reader, "no head '%.40s' above this line", reader->word[1]);
    if (take_unsigned(reader, "value", reader->word[2], (uint32_t)head->count - 1, &value)) return -1;
    struct game_press *press = &head->press[value];
    if (press->buttons || press->given)
        return complain(reader, "value %u of '%s' has its press already", value, head->name);
    for (int i = 3; i < reader->words; i++)
        if (take_press(reader, reader->word[i], press)) return -1;
    head->buttons |= press->buttons;
    head->axes |= press->given;
    return 0;
}

/* ---- single statements ---- */

static const struct {
    const char *name;
    int id;
} memories[] = {{"system", RETRO_MEMORY_SYSTEM_RAM},
                {"save", RETRO_MEMORY_SAVE_RAM},
                {"video", RETRO_MEMORY_VIDEO_RAM},
                {"rtc", RETRO_MEMORY_RTC},
                {"bus", GAME_MAP_BUS}};
#define MEMORIES (sizeof memories / sizeof *memories)

const char *game_map_memory_name(int id)
{
    for (size_t i = 0; i < MEMORIES; i++)
        if (memories[i].id == id) return memories[i].name;
    return NULL;
}

static int read_memory(struct reader *reader)
{
    uint32_t id = 0;
    if (want(reader, 2, 2, "memory system|save|video|rtc|bus|NUMBER")) return -1;
    for (size_t i = 0; i < MEMORIES; i++) {
        if (strcmp(reader->word[1], memories[i].name)) continue;
        reader->map->memory = memories[i].id;
        return 0;
    }
    if (take_unsigned(reader, "memory", reader->word[1], 0xFFFF, &id))
        return complain(reader, "memory '%.40s' is none of system save video rtc bus, nor a number to 65535",
                        reader->word[1]);
    reader->map->memory = (int)id;
    return 0;
}

/* "TEXT", or bytes in hexadecimal: 504f4e47 */
static int read_magic(struct reader *reader)
{
    struct game_map *map = reader->map;
    if (want(reader, 3, 3, "magic ADDRESS \"TEXT\"|HEX")) return -1;
    if (take_unsigned(reader, "address", reader->word[1], UINT32_MAX, &map->magic_address)) return -1;
    const char *text = reader->word[2];
    size_t length = strlen(text);
    map->magic_line = reader->line;
    snprintf(map->magic_text, sizeof map->magic_text, "%s", text);
    if (text[0] == '"') {
        if (length < 3 || length > sizeof map->magic + 2 || text[length - 1] != '"')
            return complain(reader, "magic is 1 to 32 characters between \"\", without spaces");
        memcpy(map->magic, text + 1, length - 2);
        map->magic_bytes = (int)length - 2;
        return 0;
    }
    if (length < 2 || length % 2 || length > 2 * sizeof map->magic ||
        strspn(text, "0123456789abcdefABCDEF") != length)
        return complain(reader, "magic is text between \"\", or an even number of hexadecimal digits");
    for (size_t i = 0; i < length; i += 2) {
        char pair[3] = {text[i], text[i + 1], 0};
        map->magic[i / 2] = (uint8_t)strtoul(pair, NULL, 16);
    }
    map->magic_bytes = (int)(length / 2);
    return 0;
}

/* FIELD =|!=|<|> NUMBER, as one more of the list. */
static int take_condition(struct reader *reader, const char *form, struct game_condition *list, int *count)
{
    static const char *const signs[] = {"!=", "=", "<", ">"};
    if (want(reader, 4, 4, form)) return -1;
    if (*count == GAME_MAP_CONDITIONS) return complain(reader, "more than %d conditions", *count);
    struct game_condition *condition = &list[*count];
    if (take_field(reader, reader->word[1], &condition->field) ||
        take_number(reader, "value", reader->word[3], &condition->value))
        return -1;
    for (condition->same = 0; condition->same < 4; condition->same++)
        if (!strcmp(reader->word[2], signs[condition->same])) break;
    if (condition->same == 4) return complain(reader, "'%.20s' is none of = != < >", reader->word[2]);
    condition->line = reader->line;
    ++*count;
    return 0;
}

static int read_condition(struct reader *reader)
{
    struct game_map *map = reader->map;
    return take_condition(reader, "when FIELD =|!=|<|> NUMBER", map->condition, &map->conditions);
}

/* ---- goals ---- */

static int read_over(struct reader *reader)
{
    struct game_goals *goals = &reader->map->goals;
    return take_condition(reader, "over FIELD =|!=|<|> NUMBER", goals->over, &goals->overs);
}

static int read_reward(struct reader *reader)
{
    struct game_goals *goals = &reader->map->goals;
    if (want(reader, 3, 3, "reward FIELD FACTOR")) return -1;
    if (goals->rewards == GAME_MAP_CONDITIONS)
        return complain(reader, "more than %d rewards", goals->rewards);
    struct game_reward *reward = &goals->reward[goals->rewards];
    if (take_field(reader, reader->word[1], &reward->field) ||
        take_number(reader, "factor", reader->word[2], &reward->factor))
        return -1;
    goals->rewards++;
    return 0;
}

static int read_most_frames(struct reader *reader)
{
    uint32_t frames = 0;
    if (want(reader, 2, 2, "frames NUMBER") ||
        take_unsigned(reader, "frames", reader->word[1], INT32_MAX, &frames))
        return -1;
    reader->map->goals.most_frames = frames;
    return 0;
}

static int read_idle(struct reader *reader)
{
    uint32_t frames = 0;
    if (want(reader, 2, 2, "idle FRAMES") || take_unsigned(reader, "idle", reader->word[1], 3600, &frames))
        return -1;
    reader->map->goals.idle = (int32_t)frames;
    return 0;
}

/* Of one byte, which is all of its field. */
static int read_chance(struct reader *reader)
{
    struct game_goals *goals = &reader->map->goals;
    if (want(reader, 4, 4, "chance FIELD LEAST MOST") || take_field(reader, reader->word[1], &goals->chance))
        return -1;
    const struct game_field *field = &reader->map->field[goals->chance];
    if (field->bytes != 1 || field->form != 'u' || field->mask)
        return complain(reader, "'%s' is no whole u8", field->name);
    for (int i = 0; i < 2; i++) {
        uint32_t value = 0;
        if (take_unsigned(reader, "chance", reader->word[2 + i], 255, &value)) return -1;
        goals->chance_range[i] = (int32_t)value;
    }
    if (goals->chance_range[0] > goals->chance_range[1])
        return complain(reader, "chance from %s to %s is none", reader->word[2], reader->word[3]);
    return 0;
}

static int take_count(struct reader *reader, int32_t *value)
{
    uint32_t number = 0;
    if (want(reader, 2, 2, reader->word[0][1] == 'o' ? "port NUMBER" : "player NUMBER")) return -1;
    if (take_unsigned(reader, reader->word[0], reader->word[1], 16, &number)) return -1;
    if (number < 1) return complain(reader, "%s counts from 1", reader->word[0]);
    *value = (int32_t)number;
    return 0;
}

static int read_port(struct reader *reader)
{
    return take_count(reader, &reader->map->port);
}

static int read_player(struct reader *reader)
{
    return take_count(reader, &reader->map->player);
}

static int read_state(struct reader *reader)
{
    struct game_map *map = reader->map;
    if (want(reader, 3, 3, "state ADDRESS BYTES")) return -1;
    map->state_line = reader->line;
    if (take_unsigned(reader, "address", reader->word[1], UINT32_MAX, &map->state_address) ||
        take_unsigned(reader, "bytes", reader->word[2], 1u << 24, &map->state_bytes))
        return -1;
    return map->state_bytes ? 0 : complain(reader, "state of 0 bytes");
}

static int read_episode(struct reader *reader)
{
    if (want(reader, 2, 2, "episode FIELD")) return -1;
    return take_field(reader, reader->word[1], &reader->map->episode);
}

static int read_score(struct reader *reader)
{
    if (want(reader, 3, 3, "score OWN-FIELD OTHER-FIELD")) return -1;
    if (take_field(reader, reader->word[1], &reader->map->score[0])) return -1;
    return take_field(reader, reader->word[2], &reader->map->score[1]);
}

static int read_layout(struct reader *reader)
{
    return want(reader, 2, 2, "layout NAME") ? -1 : take_name(reader, reader->word[1], reader->map->layout);
}

static int read_codec(struct reader *reader)
{
    return want(reader, 2, 2, "codec NAME") ? -1 : take_name(reader, reader->word[1], reader->map->codec);
}

static int read_float(struct reader *reader)
{
    return read_field(reader, FIELD_FLOAT);
}

static int read_id(struct reader *reader)
{
    return read_field(reader, FIELD_ID);
}

static int read_raw(struct reader *reader)
{
    return read_field(reader, FIELD_RAW);
}

static int read_statement(struct reader *reader)
{
    static const struct {
        const char *name;
        int (*read)(struct reader *);
        int once;
    } table[] = {{"float", read_float, 0},   {"id", read_id, 0},         {"raw", read_raw, 0},
                 {"head", read_head, 0},     {"press", read_press, 0},   {"when", read_condition, 0},
                 {"memory", read_memory, 1}, {"magic", read_magic, 1},   {"state", read_state, 1},
                 {"port", read_port, 1},     {"player", read_player, 1}, {"episode", read_episode, 1},
                 {"score", read_score, 1},   {"layout", read_layout, 1}, {"codec", read_codec, 1},
                 {"over", read_over, 0},     {"reward", read_reward, 0}, {"frames", read_most_frames, 1},
                 {"idle", read_idle, 1},     {"chance", read_chance, 1}};
    const char *what = reader->word[0];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(what, table[i].name)) continue;
        if (table[i].once && reader->seen & 1u << i) return complain(reader, "%s is there already", what);
        reader->seen |= 1u << i;
        return table[i].read(reader);
    }
    return complain(reader, "'%.40s' is no statement of a map", what);
}

/* ---- the file ---- */

static int split_line(struct reader *reader, char *text)
{
    reader->words = 0;
    text[strcspn(text, "#\r")] = 0;
    for (char *at = text; *(at += strspn(at, " \t"));) {
        if (reader->words == WORDS_MAX) return complain(reader, "more than %d words", WORDS_MAX);
        reader->word[reader->words++] = at;
        at += strcspn(at, " \t");
        if (*at) *at++ = 0;
    }
    return 0;
}

/* 1: a line is in text, without its end; 0: the file has ended; -1: a complaint. */
static int read_line(struct reader *reader, FILE *file, char *text)
{
    int length = 0, byte = getc(file);
    if (byte == EOF) return 0;
    reader->line++;
    for (; byte != EOF && byte != '\n'; byte = getc(file)) {
        if (byte == 0) return complain(reader, "a byte of 0: a map is text");
        if (length == LINE_MOST) return complain(reader, "a line of more than %d characters", LINE_MOST);
        text[length++] = (char)byte;
    }
    text[length] = 0;
    return 1;
}

static int read_lines(struct reader *reader, FILE *file)
{
    char text[LINE_MOST + 1];
    int got;
    while ((got = read_line(reader, file, text)) > 0) {
        if (split_line(reader, text)) return -1;
        if (reader->line == 1) {
            if (reader->words != 2 || strcmp(reader->word[0], "exphil-map") || strcmp(reader->word[1], "1"))
                return complain(reader, "a map begins with the line: exphil-map 1");
        } else if (reader->words && read_statement(reader)) {
            return -1;
        }
    }
    if (got < 0) return -1;
    if (ferror(file)) return complain(reader, "cannot be read");
    return reader->line ? 0 : complain(reader, "is empty; a map begins with the line: exphil-map 1");
}

/* 64-bit FNV-1a over the names of the columns: columns in another order mean another thing, another address does not. */
static uint64_t hash_of_columns(const struct game_map *map)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int i = 0; i < map->fields; i++) {
        if (map->field[i].kind == FIELD_RAW) continue;
        for (const char *c = map->field[i].name;; c++) {
            hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
            if (!*c) break;
        }
    }
    return hash ? hash : 1;
}

static int finish(struct reader *reader)
{
    struct game_map *map = reader->map;
    int ids = 0;
    if (!map->layout[0] || !map->codec[0])
        return complain(reader, "the map has no %s", map->layout[0] ? "codec" : "layout");
    if (map->floats + map->ids == 0)
        return complain(reader, "the map has no float and no id: a policy would be blind");
    if (map->heads == 0) return complain(reader, "the map has no head: a policy could do nothing");
    for (int i = 0; i < map->fields; i++)
        if (map->field[i].kind == FIELD_ID)
            map->id_spec[ids++] =
                (exphil_id_spec){map->field[i].name, map->field[i].entries, map->field[i].width};
    for (int i = 0; i < map->heads; i++) {
        struct game_head *head = &map->head[i];
        if (!head->buttons && !head->axes)
            return complain(reader, "head '%s' presses nothing: no press line", head->name);
        map->head_spec[i] = (exphil_head_spec){head->name, head->kind, head->count, head->neutral, 0};
    }
    map->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    map->spec.layout = map->layout;
    map->spec.codec = map->codec;
    map->spec.float_count = map->floats;
    map->spec.id_count = map->ids;
    map->spec.ids = map->id_spec;
    map->spec.head_count = map->heads;
    map->spec.heads = map->head_spec;
    map->spec.layout_hash = hash_of_columns(map);
    return exphil_spec_hash(&map->spec) ? 0 : complain(reader, "the library refuses these columns and heads");
}

/* Only what is a file: to open a pipe would wait for whoever writes it. */
static FILE *open_file(const char *path, char *message, size_t message_bytes)
{
    if (system_is_special(path)) {
        snprintf(message, message_bytes, "%s: not a regular file", path);
        return NULL;
    }
    FILE *file = system_open(path, "r");
    if (!file) snprintf(message, message_bytes, "%s: %s", path, strerror(errno));
    return file;
}

int game_map_load(struct game_map *map, const char *path, char *message, size_t message_bytes)
{
    struct reader reader = {.map = map, .path = path, .message = message, .message_bytes = message_bytes};
    memset(map, 0, sizeof *map);
    snprintf(map->path, sizeof map->path, "%s", path);
    map->memory = RETRO_MEMORY_SYSTEM_RAM;
    map->port = map->player = 1;
    map->episode = map->score[0] = map->score[1] = map->goals.chance = -1;
    FILE *file = open_file(path, message, message_bytes);
    if (!file) return -1;
    int failed = read_lines(&reader, file) || finish(&reader);
    fclose(file);
    if (failed) game_map_free(map);
    return failed ? -1 : 0;
}

void game_map_free(struct game_map *map)
{
    for (int i = 0; i < map->heads; i++) free(map->head[i].press);
    map->heads = 0;
}
