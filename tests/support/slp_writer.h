/* Writes tiny replays for tests: every layout, and every kind of oddity that real files show. The payload
 * bytes are a fixed function of event, frame and place, so that a test knows what each field must hold. */
#ifndef EXPHIL_SLP_WRITER_H
#define EXPHIL_SLP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Payload sizes of one recorder version; 0: the event does not exist. */
typedef struct slp_layout {
    uint8_t version[3];
    uint16_t start, pre, post, end, frame_start, item, bookend, stage; /* stage: 1 = 0x3F, 0x40, 0x41 exist */
} slp_layout;

enum { SLP_LAYOUTS = 17, SLP_NEWEST = 15, SLP_ODD = 16, SLP_SAMPLES = 27 };
extern const slp_layout slp_layouts[SLP_LAYOUTS]; /* ascending; the last has sizes that cut fields in half */

typedef struct slp_writer {
    uint8_t *data;
    size_t bytes, capacity;
    uint16_t size[256];
    bool has[256];
    bool bare;     /* no container */
    uint32_t salt; /* changes all payload bytes: another simulation of the same frame */
} slp_writer;

/* Byte at an offset from the command byte, before frame, port and follower are put in. */
uint8_t slp_byte(uint8_t code, int32_t frame, uint32_t slot, uint32_t salt, uint32_t offset);

/* Begins a replay without container, table or events; slp_free ends its life. */
void slp_begin(slp_writer *writer, const slp_layout *layout, bool bare);
void slp_free(slp_writer *writer);
/* One more entry of the payload table; before slp_head. */
void slp_declare(slp_writer *writer, uint8_t code, uint16_t size);
void slp_put(slp_writer *writer, const void *bytes, size_t count);
/* Container header with length 0, payload table, game start. */
void slp_head(slp_writer *writer, const slp_layout *layout);
/* One event of the declared size, whatever the code; its bytes, until the next call. NULL: not in the table.
 */
uint8_t *slp_event(slp_writer *writer, uint8_t code, int32_t frame, uint32_t slot);
/* One frame as recorders write it. slots: bit 2 * port + follower. */
void slp_frame(slp_writer *writer, int32_t frame, uint8_t slots, int items);
/* The same without its bookend or the last post-frame. */
void slp_open_frame(slp_writer *writer, int32_t frame, uint8_t slots, int items);
void slp_game_end(slp_writer *writer, uint8_t method);
/* Fills in the length of the event stream. */
void slp_length(slp_writer *writer, int32_t length);
void slp_metadata(slp_writer *writer, int32_t last_frame);
/* Length, metadata and end. */
void slp_close(slp_writer *writer, int32_t last_frame);

/* Sample replays, each event kind and version class in one of them; which in [0, SLP_SAMPLES). */
void slp_sample(slp_writer *writer, int which);

#endif
