/* What the parts of the old program share. */
#ifndef EXPHIL_TESTS_OLD_H
#define EXPHIL_TESTS_OLD_H

#include <exphil/slp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern exphil_error *error;

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error->message);                    \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)
#define DONE(call) CHECK((call) == EXPHIL_OK)

/* A copy of these bytes whose last one is the last of its page; behind it nothing may be read or written. So a library that
 * takes a struct of this program for as long as its own ends it. Never freed. */
void *edge(const void *bytes, size_t size);
#define EDGE(type, init) ((type *)edge(&(type)init, sizeof(type)))
#define EDGE_OF(object)  edge(&(object), sizeof(object))

/* What the library answered, as one number: lines of the program's output that another library must print, too. */
void digest(const void *bytes, size_t size);
void digest_end(const char *what);
/* All of a struct without pointers but its struct_size. */
#define DIGEST(pointer) digest((const char *)(pointer) + sizeof(size_t), sizeof *(pointer) - sizeof(size_t))

exphil_context *host_context(void);                              /* every hook is this program's */
void host_file(const char *path, const void *data, size_t size); /* a file that the io hook has */
void host_end(void);                                             /* nothing is left of what the hooks gave */

void any_game(exphil_context *context);
void melee(exphil_context *context);

#endif
