/* Runs a fuzz target over stored inputs without libFuzzer: each argument is a file or a folder of files. Cuts of each
 * input at a few places are fed too, since most damage is a file that ends early; not of those behind --whole, which a
 * search found, cuts among them. */
#include "test.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static long inputs;
static size_t cuts = 16;

static void feed(const uint8_t *data, size_t bytes)
{
    /* An exact copy, so that a sanitizer sees the first byte read behind it. */
    uint8_t *copy = calloc(bytes ? bytes : 1, 1);
    if (!copy) exit(2);
    memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
    inputs++;
}

static void feed_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "could not open %s\n", path);
        exit(2);
    }
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(bytes + 1);
    if (!data || fread(data, 1, bytes, file) != bytes) exit(2);
    fclose(file);
    for (size_t part = 1; part <= cuts; part++) feed(data, bytes * part / cuts);
    free(data);
}

static void feed_path(const char *path)
{
    char **names = NULL;
    const int count = test_list(path, &names);
    if (count < 0 && test_exists(path)) feed_file(path);
    for (int i = 0; i < count; i++) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", path, names[i]);
        feed_path(below);
    }
    test_list_free(names, count);
}

int main(int argc, char **argv)
{
    feed((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--whole") == 0)
            cuts = 1;
        else
            feed_path(argv[i]);
    }
    printf("%ld inputs\n", inputs);
    return 0;
}
