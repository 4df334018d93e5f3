/* Plays a recorded game to spectators as Slippi Dolphin does while it is played: for tests, and to try a bot without the game.
 *   serve_slp [OPTIONS] GAME.slp
 * Events go out as they stand in the file, frames that netplay simulated again included, in messages that end where
 * Slippi's end: at the game start, at each part of a split message, at each frame's bookend, at the game end. Recorders
 * before 3.0.0 have no bookend; their servers sent each event by itself, and so does this one. */
#include "spectator_message.h"
#include "system.h"

#include <enet/enet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT = 0x10, TABLE = 0x35, START, PRE, POST, END, BOOKEND = 0x3C, FOUNTAIN = 0x3F, STADIUM = 0x41 };
enum { HEADER = 15, SPECTATORS = 8, ROLLBACK = 7, IN_FLIGHT = 10, PLAYER_MIN = 0x1D };
enum { FIRST_CURSOR = 1000 }; /* as if games had been played before */

struct options {
    const char *path;
    double speed; /* of the game; 0: as fast as possible */
    int64_t inject, cut;
    uint16_t port;
    int once;
};

/* One message: its text, and how many frames of the game have gone by when it is sent. */
struct line {
    char *text;
    int64_t frame;
};

struct server {
    struct options options;
    uint8_t *file;
    size_t begin, end;  /* of the event stream in file */
    size_t declared;    /* bytes of it that the file tells; 0: it does not, as while it is written */
    uint32_t size[256]; /* whole events, code included; 0: not in the table */
    struct line *lines;
    size_t line_count, line_room;
    ENetHost *host;
    size_t sent[SPECTATORS]; /* lines, by place of the peer; SIZE_MAX: has not greeted */
    int served, was_cut;
    int64_t start_ns; /* 0: waits for the first spectator */
};

static volatile sig_atomic_t stopped;

static void stop(void)
{
    stopped = 1;
}

static int complain(const char *path, const char *what)
{
    fprintf(stderr, "serve_slp: %s: %s\n", path, what);
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------------------- */

static int load(struct server *s)
{
    FILE *file = system_open(s->options.path, "rb");
    long bytes = 0;
    if (!file) return complain(s->options.path, strerror(errno));
    if (fseek(file, 0, SEEK_END) || (bytes = ftell(file)) < 0 || fseek(file, 0, SEEK_SET)) bytes = 0;
    s->file = malloc((size_t)bytes + 1);
    int whole = s->file && bytes > HEADER + 2 && fread(s->file, (size_t)bytes, 1, file) == 1;
    fclose(file);
    if (!whole) return complain(s->options.path, "cannot be read");
    s->begin = s->file[0] == TABLE ? 0 : HEADER;
    s->end = (size_t)bytes;
    const uint8_t *n = s->file + 11;
    uint32_t declared = (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];
    s->declared = s->begin ? declared : (size_t)bytes;
    if (s->declared && s->declared < s->end - s->begin) s->end = s->begin + s->declared;
    return 1;
}

static int read_table(struct server *s)
{
    const uint8_t *table = s->file + s->begin;
    size_t bytes = table[0] == TABLE ? 1 + (size_t)table[1] : 0;
    if (bytes < 2 || bytes > s->end - s->begin)
        return complain(s->options.path, "does not begin as a .slp does");
    for (size_t i = 2; i + 3 <= bytes; i += 3)
        s->size[table[i]] = 1 + ((uint32_t)table[i + 1] << 8 | table[i + 2]);
    s->size[TABLE] = (uint32_t)bytes;
    if (s->size[PRE] < PLAYER_MIN || s->size[POST] < PLAYER_MIN)
        return complain(s->options.path, "has no events of players");
    return 1;
}

/* Bytes of the event at a place, 0 where events end: at the end, in the middle of a cut one, at what is none. */
static size_t event_bytes(const struct server *s, size_t at)
{
    size_t bytes = at < s->end ? s->size[s->file[at]] : 0;
    return bytes <= s->end - at ? bytes : 0;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static int add_line(struct server *s, spectator_kind kind, const uint8_t *data, size_t bytes, int64_t frame)
{
    if (s->line_count == s->line_room) {
        size_t room = s->line_room ? 2 * s->line_room : 1024;
        struct line *lines = realloc(s->lines, room * sizeof *lines);
        if (!lines) return complain(s->options.path, "no memory");
        s->lines = lines;
        s->line_room = room;
    }
    char *text = spectator_message_write(kind, FIRST_CURSOR + (int64_t)s->line_count, data, bytes);
    if (!text) return complain(s->options.path, "no memory");
    s->lines[s->line_count++] = (struct line){text, frame};
    return 1;
}

static int ends_message(const struct server *s, uint8_t code)
{
    if (!s->size[BOOKEND]) return code != TABLE;
    return code == START || code == SPLIT || code == BOOKEND || code == END;
}

/* A frame as it was guessed: what the remote player (the highest port there is) does and where it stands is wrong. Stage events
 * are left out: they tell changes, and a change that is told twice would not be one. Bytes that are left. */
static size_t falsify(const struct server *s, uint8_t *data, size_t bytes)
{
    uint8_t highest = 0;
    size_t left = 0, size;
    for (size_t at = 0; at < bytes; at += s->size[data[at]])
        if (data[at] == POST && data[at + 5] > highest) highest = data[at + 5];
    for (size_t at = 0; at < bytes; at += size) {
        size = s->size[data[at]];
        if (data[at] >= FOUNTAIN && data[at] <= STADIUM) continue;
        if ((data[at] == POST || data[at] == PRE) && data[at + 5] == highest) {
            uint8_t *x = data + at + (data[at] == POST ? 0x0A : 0x19);
            x[1] ^= 0x20; /* of the fraction: another number, and finite */
            x[2] ^= 0x55;
        }
        memmove(data + left, data + at, size);
        left += size;
    }
    return left;
}

/* Frames from..to of the messages (which are whole frames) as they were guessed, before they come as they were. */
static int inject(struct server *s, const size_t *starts, size_t from, size_t to, int64_t frame)
{
    int fine = 1;
    for (size_t i = from; i < to && fine; i++) {
        size_t bytes = starts[i + 1] - starts[i];
        uint8_t *copy = malloc(bytes);
        if (!copy) return complain(s->options.path, "no memory");
        memcpy(copy, s->file + starts[i], bytes);
        bytes = falsify(s, copy, bytes);
        fine = add_line(s, SPECTATOR_GAME_EVENT, copy, bytes, frame + (int64_t)(i - from));
        free(copy);
    }
    return fine;
}

/* Where each message starts in the file, and after the last of them where it ends. NULL: no memory. */
static size_t *find_messages(const struct server *s, size_t *count)
{
    size_t *starts = malloc((s->end - s->begin + 2) * sizeof *starts), at = s->begin, bytes;
    *count = 0;
    if (!starts) return NULL;
    starts[0] = at;
    while ((bytes = event_bytes(s, at)) > 0) {
        uint8_t code = s->file[at];
        at += bytes;
        if (ends_message(s, code)) starts[++*count] = at;
    }
    return starts;
}

/* A game that was cut is served as far as it goes, and that is told; one without a frame is none. */
static int check_game(const struct server *s, size_t stop, int64_t frames)
{
    if (!frames) return complain(s->options.path, "has no complete frame: damaged, or no game");
    if (stop - s->begin < s->declared)
        fprintf(stderr, "serve_slp: %s: damaged, events end after %zu of %zu bytes; %lld frames are served\n",
                s->options.path, stop - s->begin, s->declared, (long long)frames);
    return 1;
}

static int is_frame(const struct server *s, size_t start, size_t end)
{
    uint8_t last = 0;
    for (size_t at = start; at < end; at += s->size[last]) last = s->file[at];
    return last == BOOKEND;
}

/* Every `inject` frames a rollback of 1 to 7 frames. */
static int write_lines(struct server *s)
{
    size_t count, *starts = find_messages(s, &count);
    int fine = starts && add_line(s, SPECTATOR_START_GAME, NULL, 0, 0);
    int64_t frame = 0, next = s->options.inject;
    for (size_t i = 0; i < count && fine; i++) {
        const uint8_t *data = s->file + starts[i];
        int whole = is_frame(s, starts[i], starts[i + 1]);
        if (s->options.inject && whole && frame == next) {
            size_t last = i, most = 1 + (size_t)(frame / s->options.inject) % ROLLBACK;
            while (last < count && last - i < most && is_frame(s, starts[last], starts[last + 1])) last++;
            fine = inject(s, starts, i, last, frame);
            next += s->options.inject > ROLLBACK ? s->options.inject : ROLLBACK + 1;
        }
        if (fine) fine = add_line(s, SPECTATOR_GAME_EVENT, data, starts[i + 1] - starts[i], frame);
        frame += whole || (!s->size[BOOKEND] && data[0] == POST);
    }
    fine = fine && check_game(s, starts[count], frame);
    free(starts);
    return fine && add_line(s, SPECTATOR_END_GAME, NULL, 0, frame);
}

/* ---- spectators ------------------------------------------------------------------------------------------ */

static size_t place(const struct server *s, const ENetPeer *peer)
{
    return (size_t)(peer - s->host->peers);
}

static void send_text(ENetPeer *peer, const char *text)
{
    ENetPacket *packet = text ? enet_packet_create(text, strlen(text), ENET_PACKET_FLAG_RELIABLE) : NULL;
    if (packet && enet_peer_send(peer, 0, packet) < 0) enet_packet_destroy(packet);
}

static void answer(struct server *s, ENetPeer *peer, int64_t cursor)
{
    static const uint8_t menu[] = {0x3E, 0, 2, 0, 0, 0, 0, 0};
    int64_t from = cursor - FIRST_CURSOR; /* of an earlier game, or of none: from the start of this one */
    if (from < 0 || from > (int64_t)s->line_count) from = 0;
    char *text = spectator_message_write(SPECTATOR_CONNECT_REPLY, FIRST_CURSOR + from, NULL, 0);
    send_text(peer, text);
    free(text);
    if (!s->start_ns) {
        text = spectator_message_write(SPECTATOR_MENU_EVENT, -1, menu, sizeof menu);
        send_text(peer, text);
        free(text);
    }
    s->sent[place(s, peer)] = (size_t)from;
    s->served++;
    if (!s->start_ns) s->start_ns = system_now_ns();
}

static void receive(struct server *s, ENetPeer *peer, const ENetPacket *packet)
{
    static uint8_t payload[SPECTATOR_PAYLOAD_MAX];
    spectator_message message;
    const char *wrong = spectator_message_read(packet->data, packet->dataLength, &message, payload);
    if (wrong)
        complain("a spectator sends", wrong);
    else if (message.kind == SPECTATOR_CONNECT_REQUEST)
        answer(s, peer, message.cursor);
}

/* Lines whose frame has come. */
static size_t lines_due(const struct server *s)
{
    size_t due = 0;
    if (s->options.speed <= 0) return s->line_count;
    double frames = s->start_ns ? (double)(system_now_ns() - s->start_ns) * 60e-9 * s->options.speed : -1;
    while (due < s->line_count && (double)s->lines[due].frame <= frames) due++;
    return due;
}

/* Drops the connection in the middle, once: when what was sent so far has arrived, and more is on its way. */
static void cut(struct server *s, ENetPeer *peer, size_t *sent)
{
    enet_host_flush(s->host);
    if (peer->reliableDataInTransit > 0) return;
    for (size_t end = *sent + IN_FLIGHT; *sent < end && *sent < s->line_count; ++*sent)
        send_text(peer, s->lines[*sent].text);
    enet_host_flush(s->host);
    enet_peer_disconnect_now(peer, 0);
    s->was_cut = 1;
    *sent = SIZE_MAX;
}

/* Whether all has been sent. */
static int send_lines(struct server *s, ENetPeer *peer, size_t due)
{
    size_t *sent = &s->sent[place(s, peer)];
    int cutting = s->options.cut && !s->was_cut;
    if (cutting && due > (size_t)s->options.cut) due = (size_t)s->options.cut;
    for (; *sent < due; ++*sent) send_text(peer, s->lines[*sent].text);
    if (cutting && *sent == (size_t)s->options.cut) {
        cut(s, peer, sent);
        return 0;
    }
    return *sent == s->line_count;
}

static void serve(struct server *s, int *left)
{
    size_t due = lines_due(s);
    *left = 0;
    for (size_t i = 0; i < s->host->peerCount; i++) {
        ENetPeer *peer = &s->host->peers[i];
        if (peer->state != ENET_PEER_STATE_CONNECTED) {
            *left |= peer->state != ENET_PEER_STATE_DISCONNECTED;
            continue;
        }
        *left = 1;
        if (s->sent[i] != SIZE_MAX && send_lines(s, peer, due) && s->options.once) {
            enet_peer_disconnect_later(peer, 0); /* when all has arrived */
            s->sent[i] = SIZE_MAX;
        }
    }
}

static void run(struct server *s)
{
    int left = 0, over = 0;
    while (!stopped && !over) {
        ENetEvent event;
        while (enet_host_service(s->host, &event, 1) > 0) {
            if (event.type == ENET_EVENT_TYPE_RECEIVE) {
                receive(s, event.peer, event.packet);
                enet_packet_destroy(event.packet);
            } else {
                s->sent[place(s, event.peer)] = SIZE_MAX;
            }
        }
        serve(s, &left);
        over = s->options.once && s->served && !left && (!s->options.cut || !s->was_cut || s->served > 1);
    }
}

/* ---- program --------------------------------------------------------------------------------------------- */

static const char usage[] =
    "serve_slp [OPTIONS] GAME.slp\n"
    "  --port N     UDP (51441); 0: any, which is printed\n"
    "  --speed F    of the game (1)\n"
    "  --fast       as fast as spectators take it\n"
    "  --once       end when a spectator has got all of it\n"
    "  --inject N   every N frames a rollback: 1 to 7 frames first with wrong guesses\n"
    "  --cut N      drop the connection once, after message N\n"
    "  --help       this text\n";

/* Options with a value. text NULL: there is none. */
static int take_option(struct options *o, const char *name, const char *text)
{
    static const struct {
        const char *name;
        double low, high;
    } numbers[] = {{"--port", 0, 65535}, {"--speed", 0.01, 1000}, {"--inject", 0, 1e9}, {"--cut", 0, 1e9}};
    size_t i = 0, count = sizeof numbers / sizeof numbers[0];
    while (i < count && strcmp(name, numbers[i].name) != 0) i++;
    if (i == count) return complain(name, "no such option; --help tells all");
    char *end;
    double low = numbers[i].low, high = numbers[i].high, value = text ? strtod(text, &end) : 0;
    int taken = text && end != text && !*end && value >= low && value <= high;
    if (!taken || (i != 1 && value != (double)(int64_t)value))
        return fprintf(stderr, "serve_slp: %s wants a %s from %g to %.0f\n", name,
                       i == 1 ? "number" : "whole number", low, high),
               0;
    if (i == 0) o->port = (uint16_t)value;
    if (i == 1) o->speed = value;
    if (i == 2) o->inject = (int64_t)value;
    if (i == 3) o->cut = (int64_t)value;
    return 1;
}

static int read_options(struct options *o, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--help"))
            exit(fputs(usage, stdout) < 0);
        else if (!strcmp(argv[i], "--fast"))
            o->speed = 0;
        else if (!strcmp(argv[i], "--once"))
            o->once = 1;
        else if (take_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            i++;
        else
            return 0;
    }
    o->path = argv[argc - 1];
    return i == argc - 1 || complain("GAME.slp", "one, after the options; --help tells more");
}

static int open_host(struct server *s)
{
    ENetAddress address = {.host = ENET_HOST_ANY, .port = s->options.port};
    if (enet_initialize()) return complain("ENet", "does not start");
    char port[32];
    snprintf(port, sizeof port, "UDP port %u", (unsigned)s->options.port);
    system_socket_forget();
    s->host = enet_host_create(&address, SPECTATORS, 1, 0, 0);
    if (!s->host) return complain(port, system_socket_why());
    s->host->maximumPacketSize = SPECTATOR_TEXT_MAX;
    for (size_t i = 0; i < SPECTATORS; i++) s->sent[i] = SIZE_MAX;
    printf("port %u\n", (unsigned)s->host->address.port);
    fflush(stdout);
    return 1;
}

int main(int argc, char **argv)
{
    system_hold_streams();
    system_arguments(&argc, &argv);
    static struct server s = {.options = {.speed = 1, .port = 51441}};
    if (!read_options(&s.options, argc, argv)) return 2;
    system_on_stop(stop);
    int fine = load(&s) && read_table(&s);
    if (fine && s.options.inject && !s.size[BOOKEND])
        fine = complain(s.options.path, "has no bookends: --inject needs a recorder of 3.0.0 or later");
    fine = fine && write_lines(&s) && open_host(&s);
    if (fine) run(&s);
    if (s.host) enet_host_destroy(s.host);
    enet_deinitialize();
    for (size_t i = 0; i < s.line_count; i++) free(s.lines[i].text);
    free(s.lines);
    free(s.file);
    return !fine;
}
