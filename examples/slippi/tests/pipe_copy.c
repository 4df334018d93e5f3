/* The game's side of the pipe, for anybody to look at: what somebody writes into it, from when it is opened until it is closed.
 *   pipe_copy PIPE FILE
 * Says "reading" when a writer may come. */
#include "../system.h"
#include "peer.h"

#include <stdlib.h>

enum { ROOM = 1 << 20 }; /* a bot that never waits must not run ahead on a busy machine */

int main(int argc, char **argv)
{
    static char text[65536];
    system_arguments(&argc, &argv);
    if (argc != 3) return fprintf(stderr, "pipe_copy PIPE FILE\n"), 2;
    peer_make(argv[1]);
    peer *game = peer_open(argv[1], ROOM);
    FILE *file = system_open(argv[2], "wb");
    if (!game || !file) return fprintf(stderr, "pipe_copy: %s or %s cannot be had\n", argv[1], argv[2]), 1;
    printf("reading\n"), fflush(stdout);
    for (int came = 0;;) {
        size_t bytes = peer_read(game, text, sizeof text);
        if (bytes && fwrite(text, 1, bytes, file) != bytes) return perror(argv[2]), 1;
        came |= bytes > 0;
        if (bytes) continue;
        if (came && !peer_has_writer(game)) break;
        peer_pause();
    }
    peer_close(game);
    return fclose(file) != 0;
}
