/* Programs of other people as judges: the Python package that defines the safetensors format. */
#include "test.h"
#include "test_places.h"

#include <stdio.h>
#include <stdlib.h>

/* Made by tools/deps test. */
#define PRIVATE_PYTHON EXPHIL_SOURCE_DIR "/build/python/bin/python3"
#define SCRIPT         EXPHIL_SOURCE_DIR "/tests/support/safetensors_check.py"

static const char *python(void)
{
    const char *given = getenv("EXPHIL_PYTHON");
    if (given && *given) return given;
    return test_exists(PRIVATE_PYTHON) ? PRIVATE_PYTHON : "python3";
}

bool test_safetensors_rewrite(const char *from, const char *to, char *said, size_t size)
{
    char command[4096];
    snprintf(command, sizeof command, "\"%s\" \"%s\" probe 2>" TEST_NOWHERE, python(), SCRIPT);
    if (!test_exists(python()) && !test_has_command(python())) command[0] = 0;
    if (!command[0] || system(command) != 0) {
        printf("SKIPPED: %s has no safetensors and numpy packages; set EXPHIL_PYTHON to one that has\n",
               python());
        return false;
    }
    snprintf(command, sizeof command, "\"%s\" \"%s\" \"%s\" \"%s\"", python(), SCRIPT, from, to);
    FILE *pipe = test_command(command);
    size_t bytes = pipe ? fread(said, 1, size - 1, pipe) : 0;
    said[bytes] = '\0';
    if (!pipe || test_command_end(pipe) != 0) fail_msg("%s failed", command);
    return true;
}
