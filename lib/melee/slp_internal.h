/* What the files of the replay reader share: the container, the payload table, the event walker and the
 * decoding of single events. The walker knows neither storage nor files, so that whole files and live streams
 * use the same one. */
#ifndef XPH_MELEE_SLP_INTERNAL_H
#define XPH_MELEE_SLP_INTERNAL_H

#include <exphil/slp.h>

#include "base/base.h"

/* command bytes */
enum {
    XPH_SLP_SPLITTER = 0x10,
    XPH_SLP_PAYLOADS = 0x35,
    XPH_SLP_GAME_START = 0x36,
    XPH_SLP_PRE = 0x37,
    XPH_SLP_POST = 0x38,
    XPH_SLP_GAME_END = 0x39,
    XPH_SLP_FRAME_START = 0x3A,
    XPH_SLP_ITEM = 0x3B,
    XPH_SLP_BOOKEND = 0x3C,
    XPH_SLP_GECKO = 0x3D,
    XPH_SLP_FOUNTAIN = 0x3F,
    XPH_SLP_WHISPY = 0x40,
    XPH_SLP_STADIUM = 0x41
};

/* what the walker does with a command byte */
enum {
    XPH_SLP_NO_SIZE = 0, /* not in the payload table */
    XPH_SLP_USE,         /* known, and long enough */
    XPH_SLP_SKIP,        /* known, and nothing in it is of use */
    XPH_SLP_SHORT,       /* known, declared too short */
    XPH_SLP_UNKNOWN      /* of a later recorder, or damage */
};

#define XPH_SLP_SLOTS    (2 * EXPHIL_SLP_PORTS)
#define XPH_SLP_HEADER   15                 /* bytes of the container before the event stream */
#define XPH_SLP_LIMIT    ((size_t)64 << 20) /* bytes of a replay, unless the caller says otherwise */
#define XPH_SLP_DEPTH    32                 /* nesting of metadata */
#define XPH_SLP_EVENT    65536              /* longest event, command byte included */
#define XPH_SLP_NO_FRAME INT32_MIN

/* ---- bytes: big-endian, unaligned ---------------------------------------------------------------------- */

static inline uint16_t xph_slp_u16(const uint8_t *p)
{
    return (uint16_t)((uint32_t)p[0] << 8 | (uint32_t)p[1]);
}

static inline uint32_t xph_slp_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

/* Reinterprets bits; the conversion of a large unsigned to signed would be left to the compiler. */
static inline int32_t xph_slp_i32(const uint8_t *p)
{
    uint32_t bits = xph_slp_u32(p);
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int8_t xph_slp_i8(const uint8_t *p)
{
    int8_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline float xph_slp_f32(const uint8_t *p)
{
    uint32_t bits = xph_slp_u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- container ----------------------------------------------------------------------------------------- */

struct xph_slp_container {
    size_t begin, end; /* of the event stream; end is never beyond the input */
    int32_t kind;      /* EXPHIL_SLP_CONTAINER or _BARE */
    int32_t declared;  /* length as written, even if negative */
    uint32_t problems; /* EXPHIL_SLP_PROBLEM_* */
    uint32_t open;     /* 1: length never filled in, metadata may follow anywhere */
};

exphil_status xph_slp_container_read(const uint8_t *data, size_t bytes, struct xph_slp_container *container,
                                     exphil_error *error);
/* Checks the first 15 bytes and gives the declared length. */
exphil_status xph_slp_header_read(const uint8_t *data, size_t bytes, int32_t *declared, exphil_error *error);

/* ---- payload table ------------------------------------------------------------------------------------- */

struct xph_slp_table {
    uint16_t size[256]; /* payload bytes, command byte not counted */
    uint8_t use[256];   /* XPH_SLP_NO_SIZE, ... */
    uint8_t has_frame_start, has_bookend;
    uint16_t reserved;
    uint32_t fields; /* EXPHIL_SLP_HAS_* */
};

/* Reads the event at `at`, where the stream must start; *used gets its length. */
exphil_status xph_slp_table_read(const uint8_t *data, size_t at, size_t end, struct xph_slp_table *table,
                                 size_t *used, exphil_error *error);

/* ---- walker -------------------------------------------------------------------------------------------- */

/* One simulation of one frame: a range of bytes in which all its events lie. */
struct xph_slp_instance {
    uint64_t begin, end;
    int32_t frame;
    int32_t ordinal; /* among all instances of the replay */
    int32_t items;
    uint8_t pre, post; /* slots that have the event, as bits */
    uint8_t bookend;
    uint8_t open;
};

/* what an event did */
enum {
    XPH_SLP_TAKEN = 1,  /* it belongs to walk->now and carries values to decode */
    XPH_SLP_OPENED = 2, /* it opened walk->now */
    XPH_SLP_CLOSED = 4, /* it closed walk->before: for good, and the instance is complete */
    XPH_SLP_ENDED = 8   /* it is a game end */
};

struct xph_slp_walk {
    struct xph_slp_table table;
    uint32_t match_tag; /* xph_slp_decode_match */
    struct xph_slp_instance now, before;
    exphil_slp_info info; /* counters and settings, filled as events come */
    uint8_t short_seen[32];
    uint64_t started;
};

void xph_slp_walk_begin(struct xph_slp_walk *walk);
/* Takes one whole event that lies at byte offset `at`; *did gets XPH_SLP_TAKEN, ... The caller has checked
 * that the event has a size and is all there. */
exphil_status xph_slp_walk_event(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at, uint32_t *did,
                                 exphil_error *error);
/* Closes the last instance, which ends at `at`; true when walk->before now holds a complete one. */
bool xph_slp_walk_close(struct xph_slp_walk *walk, uint64_t at);
/* The instance has all that it needs to count, so far. */
bool xph_slp_complete(const struct xph_slp_table *table, const struct xph_slp_instance *instance);

static inline uint8_t xph_slp_slot_of(const uint8_t *event)
{
    return (uint8_t)(2 * event[5] + (event[6] != 0));
}

static inline uint8_t xph_slp_slots(const struct xph_slp_instance *instance)
{
    return (uint8_t)(instance->pre & instance->post);
}

/* ---- decoding: events whose size the table calls usable ------------------------------------------------ */

/* Settings and presence of everything that the game start event tells. */
void xph_slp_decode_start(const uint8_t *event, size_t size, exphil_slp_info *info);
void xph_slp_decode_end(const uint8_t *event, size_t size, exphil_slp_info *info);
/* 24 bits of the XXH64 of match id, game number and tiebreak; 0: not recorded. A corpus of games needs it to find two
 * recordings of one match. */
uint32_t xph_slp_decode_match(const uint8_t *event, size_t size);
/* All optional settings absent, as before a game start event. */
void xph_slp_blank_info(exphil_slp_info *info);
void xph_slp_decode_pre(const uint8_t *event, size_t size, exphil_slp_player *player);
/* What a corpus of games does not keep of a pre-frame event. */
void xph_slp_pre_position_absent(exphil_slp_player *player);
void xph_slp_decode_post(const uint8_t *event, size_t size, exphil_slp_player *player);
void xph_slp_decode_item(const uint8_t *event, size_t size, exphil_slp_item *item);
/* Frame start, bookend and stage events. */
void xph_slp_decode_frame(const uint8_t *event, size_t size, exphil_slp_frame *frame);
/* A frame before its first event; stage values as they are at the start of a game, or absent. */
void xph_slp_blank_frame(const struct xph_slp_table *table, exphil_slp_frame *frame);
/* Prepares the next frame: what belongs to one frame goes, stage values stay. */
void xph_slp_next_frame(exphil_slp_frame *frame, const struct xph_slp_instance *instance);

/* ---- metadata ------------------------------------------------------------------------------------------ */

/* Reads the element at `at` into info->metadata, played_on, started_at and metadata_last_frame. Cannot fail. */
void xph_slp_metadata_read(const uint8_t *data, size_t bytes, size_t at, exphil_slp_info *info);

/* ---- which simulation counts --------------------------------------------------------------------------- */

/* Orders complete instances by frame and keeps one of each index, or all in file order, as rollback says; in
 * place, linear time. *count goes down to what is kept. */
exphil_status xph_slp_select(exphil_context *context, struct xph_slp_instance *instances, size_t *count,
                             int32_t rollback, exphil_error *error);

/* ---- a whole replay ------------------------------------------------------------------------------------ */

struct exphil_slp {
    exphil_context *context;
    exphil_slp_frame *frames;
    exphil_slp_player *records; /* one slot after the other */
    exphil_slp_item *items;
    uint32_t *record_of; /* [frame][slot]: 1 + place in records, 0 = not there */
    size_t frame_count, record_count, item_count;
    size_t slot_count;
    exphil_slp_slot slots[XPH_SLP_SLOTS];
    exphil_slp_player *next[XPH_SLP_SLOTS]; /* while it is filled: of each of slots */
    uint32_t match_tag;
    uint8_t column[XPH_SLP_SLOTS]; /* port and follower -> place in slots, or slot_count */
    exphil_slp_info info;
};

/* Memory for frame_count frames, item_count items and so many records of each [2 * port + follower]. */
exphil_status xph_slp_storage_make(exphil_slp *slp, const int64_t *records, exphil_error *error);
/* The next record of each of the slots goes to the frame at this position; player [XPH_SLP_SLOTS]. */
void xph_slp_next_records(exphil_slp *slp, size_t position, uint8_t slots, exphil_slp_player **player);
/* Counts and limits of info and slots, from frames and records. */
void xph_slp_sum_up(exphil_slp *slp);

#endif
