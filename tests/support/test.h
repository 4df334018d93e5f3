/* What tests share: an allocator that counts and fails on order, file hooks that fail on order, a temporary
 * folder, contexts with these, real replays. Includes cmocka in the order it needs. */
#ifndef EXPHIL_TEST_H
#define EXPHIL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"

#include "test_pages.h"
#include "test_process.h"
#include "test_thread.h"

/* What cmocka and the hooks of the interface call takes what they give, and few tests need it all. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- memory: counts, checks the sizes given back, refuses call number fail_at (from 1; 0: none) -------- */

typedef struct test_memory {
    exphil_allocator hook;
    atomic_llong calls, live, live_bytes;
    atomic_llong wrong; /* frees with a wrong size or of a foreign pointer */
    long long fail_at;
    bool fail_on;          /* also refuse every later call */
    long long limit_bytes; /* refuse what would make live_bytes more; 0: no limit */
} test_memory;
void test_memory_init(test_memory *memory);
/* Nothing is left and nothing was given back wrongly. */
#define assert_memory_clean(memory)                                                                          \
  do {                                                                                                       \
    assert_int_equal(atomic_load(&(memory)->live), 0);                                                       \
    assert_int_equal(atomic_load(&(memory)->wrong), 0);                                                      \
  } while (0)

/* ---- files: the real ones and one in memory, with faults ----------------------------------------------- */

typedef struct test_io {
    exphil_io hook;
    atomic_llong calls;
    long long fail_at; /* operation number that fails (from 1; 0: none) */
    bool fail_on;      /* also every later one */
    int32_t code;      /* errno value it fails with */
    size_t most_bytes; /* most that one read or write moves; 0: no limit */
    /* What a file whose name begins with "content" has, which must stay while it is open: these bytes, then a
     * hole up to content_size, if that is more. */
    const void *content;
    size_t content_bytes;
    uint64_t content_size;
    atomic_llong open_files, bytes_read;
    atomic_llong reading, overlaps; /* reads under way of all files; times that one began while another was */
    char log[4096];                 /* "open write sync ...": names of the operations in order */
} test_io;
void test_io_init(test_io *io);

/* ---- errors -------------------------------------------------------------------------------------------- */

/* The message of the error at this address has these words. */
#define assert_says(error, words)                                                                            \
  do {                                                                                                       \
    if (!strstr((error)->message, words)) fail_msg("\"%s\" lacks \"%s\"", (error)->message, words);          \
  } while (0)

/* The case that runs now ends here and is told as left out, with its reason. */
#define test_left_out(reason)                                                                                \
  do {                                                                                                       \
    print_message("SKIPPED: %s\n", reason);                                                                  \
    skip();                                                                                                  \
  } while (0)

/* ---- contexts ------------------------------------------------------------------------------------------ */

/* Any of memory and io may be NULL. threads as in the configuration. On $EXPHIL_TEST_DEVICE (a context's
 * device) of the plugin in $EXPHIL_TEST_BACKEND, where those are set. Fails the test when it cannot be
 * had. */
exphil_context *test_context(test_memory *memory, test_io *io, int32_t threads);

/* ---- folders and files --------------------------------------------------------------------------------- */

/* A new empty folder, the same one until test_folder_remove. */
const char *test_folder(void);
void test_folder_remove(void);
int test_leave(void **state); /* the same, for cmocka to run after a test or a group */
/* "<folder>/name" in one of eight buffers used in turn. */
const char *test_path(const char *name);
void test_write(const char *path, const void *data, size_t bytes);
/* Whole file into malloc'ed memory with a 0 behind it; NULL when it is not there. */
char *test_read(const char *path, size_t *bytes);
/* Where some bytes begin in others; NULL: nowhere. */
void *test_find(const void *in, size_t bytes, const void *wanted, size_t length);
bool test_exists(const char *path);
void test_make_folder(const char *path);
/* The names in a folder but those that begin with a dot, in the order of their bytes; how many, -1: there is no such folder. */
int test_list(const char *path, char ***names);
void test_list_free(char **names, int count);
/* Makes a file so long from outside: cut off, or with zeros behind it. */
void test_resize(const char *path, uint64_t bytes);
/* Another number when another file is there now; 0: none. */
uint64_t test_file_number(const char *path);
/* Does this system put a file in the place of one that is open? (Windows 10 does, wine 8 does not.) */
bool test_replaces_open(void);
/* A symbolic link, a second name of one file, a pipe with a name. False: this system has none, or gives no right to make one. */
bool test_link(const char *to, const char *name);
bool test_second_name(const char *of, const char *name);
bool test_pipe(const char *name);
#if defined(_WIN32)
#  define TEST_NOWHERE "nul"
#else
#  define TEST_NOWHERE "/dev/null"
#endif
bool test_has_command(const char *name);
/* What a command of the shell writes; its end gives 0 when it went well. */
FILE *test_command(const char *command);
int test_command_end(FILE *command);
void assert_same_file(const char *one, const char *two);

/* "<replays>/name", or NULL after saying loudly that the test is skipped. The folder is $EXPHIL_REPLAYS or
 * ../shared/replays beside the source. */
const char *test_replay(const char *name);

/* Has the Python package safetensors read one file and write it to another in its own order and without the
 * checksum; what it says about the first (number of tensors, sum of all bytes of data, metadata keys) goes
 * into said. false, after saying so loudly, when there is no such package. The program is $EXPHIL_PYTHON, the
 * one that tools/deps made, or python3. */
bool test_safetensors_rewrite(const char *from, const char *to, char *said, size_t size);

#endif
