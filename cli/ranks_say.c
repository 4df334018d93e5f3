/* What ranks above 0 write on stderr: rank 0 says what is of all of them, the others what is wrong with them. */
#include "ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __GLIBC__

enum { LINE = 8192 };
static const char begin[] = "exphil: ", warning[] = "exphil: warning: ", status[] = "EXPHIL_E_",
                  of_all[] = ": rank ";

static struct {
    int32_t rank;
    FILE *before;
    size_t held;
    char text[LINE];
} line;

/* Other lines tell of the run, and a line in which the library names a rank is the same on all. */
static bool is_own(void)
{
    const char *error = strstr(line.text, status);
    if (error && strncmp(error + strcspn(error, ":"), of_all, sizeof of_all - 1) == 0) return false;
    return strncmp(line.text, begin, sizeof begin - 1) == 0 &&
           strncmp(line.text, warning, sizeof warning - 1) != 0;
}

static void end_line(void)
{
    char said[LINE + 64];
    line.text[line.held] = 0;
    if (is_own()) {
        int bytes = snprintf(said, sizeof said, "exphil: rank %" PRId32 ": %s\n", line.rank,
                             line.text + sizeof begin - 1);
        if (bytes > 0 && write(STDERR_FILENO, said, (size_t)bytes) < 0) line.held = 0; /* nobody is there */
    }
    line.held = 0;
}

static ssize_t take(void *user, const char *text, size_t bytes)
{
    (void)user;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\n')
            end_line();
        else if (line.held + 1 < sizeof line.text)
            line.text[line.held++] = text[i];
    }
    return (ssize_t)bytes;
}

void ranks_say_begin(int32_t rank)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take});
    if (!stream) return;
    (void)setvbuf(stream, NULL, _IONBF, 0);
    line.rank = rank;
    line.before = stderr;
    stderr = stream;
}

void ranks_say_end(void)
{
    FILE *own = stderr;
    if (!line.before) return;
    stderr = line.before;
    line.before = NULL;
    (void)fclose(own);
}

#else

void ranks_say_begin(int32_t rank)
{
    (void)rank;
}

void ranks_say_end(void) {}

#endif
