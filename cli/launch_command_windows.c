/* `exphil launch` where there is none. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

int launch_command(int argc, char **argv)
{
    static const char why[] =
        "launch is not for Windows: it needs the processes and signals of POSIX, and the ranks that it "
        "starts need Linux";
    const bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    fprintf(help ? stdout : stderr, "%s%s\n", help ? "" : "exphil: ", why);
    return help ? 0 : 1;
}
