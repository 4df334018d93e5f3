/* The live path against the file path: every frame that a spectator stream delivers, encoded in both layouts from the view of
 * every player, must have the bits that the opened file gives. A frame that comes again counts as it came last.
 *   live_check PORT GAME.slp [again|lost|menu]...
 * again: frames must have come again; lost: the connection must have been lost, and made again; menu: a menu was seen. */
#include "../system.h"
#include "spectator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYOUTS = 2, FIRST = EXPHIL_SLP_FIRST_FRAME, WAIT_MS = 60000 };
static const char *const layouts[LAYOUTS] = {"melee2", "exphil288"};

/* One row per layout and port: floats, then ids, as bytes. seen: of this frame and port there was a player. */
struct rows {
    size_t floats[LAYOUTS], ids[LAYOUTS], bytes[LAYOUTS], each;
    int64_t frames;
    unsigned char *data;    /* [frames][ports][each] */
    unsigned char *present; /* [frames][ports]: 0 nothing came, 1 came without this player, 2 with */
};

static int fail(const char *what, const char *more)
{
    fprintf(stderr, "live_check: %s: %s\n", what, more);
    return 1;
}

static int open_rows(struct rows *r, int64_t frames)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    r->frames = frames;
    r->each = 0;
    for (int l = 0; l < LAYOUTS; l++) {
        exphil_spec spec = EXPHIL_SPEC_INIT;
        if (exphil_melee_spec(layouts[l], NULL, &spec, &error) < 0) return fail(layouts[l], error.message);
        r->floats[l] = (size_t)spec.float_count * sizeof(float);
        r->ids[l] = (size_t)spec.id_count * sizeof(int32_t);
        r->bytes[l] = r->floats[l] + r->ids[l];
        r->each += r->bytes[l];
    }
    r->data = calloc((size_t)frames * EXPHIL_SLP_PORTS, r->each);
    r->present = calloc((size_t)frames, EXPHIL_SLP_PORTS);
    return r->data && r->present ? 0 : fail("rows", "no memory");
}

static int encode(const struct rows *r, const exphil_melee_frame *frame, unsigned char *row)
{
    static float floats[4096];
    static int32_t ids[EXPHIL_IDS_MAX];
    for (int l = 0; l < LAYOUTS; l++) {
        if (exphil_melee_encode(layouts[l], frame, floats, ids, NULL) < 0) return 0;
        memcpy(row, floats, r->floats[l]);
        memcpy(row + r->floats[l], ids, r->ids[l]);
        row += r->bytes[l];
    }
    return 1;
}

static int keep(struct rows *r, exphil_slp_stream *stream, int64_t *again)
{
    int64_t at = exphil_slp_stream_frame(stream)->frame - FIRST;
    if (at < 0 || at >= r->frames) return fail("a frame", "that the file does not have");
    *again += r->present[at * EXPHIL_SLP_PORTS] != 0;
    for (int port = 0; port < EXPHIL_SLP_PORTS; port++) {
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        size_t row = (size_t)at * EXPHIL_SLP_PORTS + (size_t)port;
        r->present[row] = 1;
        if (exphil_slp_stream_melee_frame(stream, port + 1, 0, &frame, NULL) >= 0 &&
            encode(r, &frame, r->data + row * r->each))
            r->present[row] = 2;
    }
    return 0;
}

static int watch(exphil_context *context, uint16_t port, struct rows *r, int64_t *again, int64_t *menus,
                 spectator_stats *stats)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    spectator_config config = {.port = port, .retry_ms = 50};
    spectator *s = spectator_create(context, &config, &error);
    int failed = 0, over = 0;
    if (!s) return fail("spectator", error.message);
    while (!over && !failed) switch (spectator_poll(s, WAIT_MS)) {
        case SPECTATOR_FRAME:
            failed = keep(r, spectator_stream(s), again);
            break;
        case SPECTATOR_GAME_END:
            over = 1;
            break;
        case SPECTATOR_MENU:
            ++*menus;
            break;
        case SPECTATOR_NOTHING:
            failed = fail("the stream", "nothing comes any more");
            break;
        case SPECTATOR_DAMAGED:
        case SPECTATOR_FAILED:
            failed = fail("the stream", spectator_trouble(s));
            break;
        default:
            break;
        }
    spectator_query(s, stats);
    spectator_destroy(s);
    return failed;
}

static int compare(const struct rows *r, const exphil_slp *slp, int64_t *players)
{
    struct rows one = *r;
    one.data = malloc(r->each);
    if (!one.data) return 1;
    for (int64_t position = 0; position < exphil_slp_frame_count(slp); position++) {
        int32_t index = exphil_slp_frame_at(slp, position)->frame;
        for (int port = 0; port < EXPHIL_SLP_PORTS; port++) {
            exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
            size_t row = (size_t)(index - FIRST) * EXPHIL_SLP_PORTS + (size_t)port;
            int there = exphil_slp_melee_frame(slp, position, port + 1, 0, &frame, NULL) >= 0 &&
                        encode(r, &frame, one.data);
            if (r->present[row] == 0)
                return fprintf(stderr, "live_check: frame %d did not come\n", (int)index);
            if (r->present[row] != (there ? 2 : 1) ||
                (there && memcmp(one.data, r->data + row * r->each, r->each)))
                return fprintf(stderr, "live_check: frame %d differs for port %d\n", (int)index, port + 1);
            *players += there;
        }
    }
    free(one.data);
    return 0;
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    exphil_context *context;
    exphil_slp *slp;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    spectator_stats stats;
    struct rows rows;
    int64_t again = 0, menus = 0, players = 0;
    if (argc < 3) return fail("usage", "live_check PORT GAME.slp [again|lost|menu]...");
    if (exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_slp_open(context, argv[2], NULL, &slp, &error) < 0 || exphil_slp_query(slp, &info, &error) < 0)
        return fail(argv[2], error.message);
    if (info.frame_count < 1 || open_rows(&rows, (int64_t)info.last_frame - FIRST + 1))
        return fail(argv[2], "no frames");
    if (watch(context, (uint16_t)atoi(argv[1]), &rows, &again, &menus, &stats) ||
        compare(&rows, slp, &players))
        return 1;
    if (players == 0) return fail(argv[2], "nobody plays");
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "menu") && menus == 0) return fail("the menu", "was not seen");
        if (!strcmp(argv[i], "again") && again == 0) return fail(argv[2], "no frame came again");
        if (!strcmp(argv[i], "lost") && stats.connections < 2)
            return fail(argv[2], "the connection was never lost");
    }
    printf("live %d.%d.%d: %lld frames of %lld views bit-equal in both layouts; %lld came again, %llu "
           "connections\n",
           info.version[0], info.version[1], info.version[2], (long long)info.frame_count, (long long)players,
           (long long)again, (unsigned long long)stats.connections);
    free(rows.data);
    free(rows.present);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
    return 0;
}
