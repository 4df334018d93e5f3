/* What the parts of the old program share. */
#ifndef EXPHIL_TESTS_OLD_H
#define EXPHIL_TESTS_OLD_H

#include <exphil/slp.h>
#if EXPHIL_VERSION >= 200
#  include <exphil/blocks.h>
#  include <exphil/conditions.h>
#  include <exphil/examine.h>
#  include <exphil/games.h>
#  include <exphil/learn.h>
#  include <exphil/live.h>
#  include <exphil/match.h>
#  include <exphil/notes.h>
#  include <exphil/ops.h>
#  include <exphil/plan.h>
#  include <exphil/ranks.h>
#endif
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
extern const exphil_io *host_io;                                 /* its files, for another context */
void host_file(const char *path, const void *data, size_t size); /* a file that the io hook has */
void host_end(void);                                             /* nothing is left of what the hooks gave */

void digest_metrics(exphil_metrics *metrics); /* times become 0 */

#define REPLAY "old.slp" /* which melee writes there */
#define FOLDER "old"     /* the only folder */

void any_game(exphil_context *context);
void melee(exphil_context *context);

#if EXPHIL_VERSION >= 200
/* A task that can be learnt in a few updates: a class that follows a float, bits that follow the id of the frame before. */
enum { TASK_FLOATS = 3, TASK_HEADS = 2, TASK_FRAMES = 120, TASK_GAMES = 4 };
exphil_spec *task_spec(void);
void task_row(uint64_t game, int64_t t, float *floats, int32_t *ids, int32_t *actions);
exphil_dataset *task_dataset(exphil_context *context);
exphil_model_config *task_config(void); /* a small model of that spec, which the caller may change */
exphil_model *task_model(exphil_context *context, const exphil_model_config *config);
exphil_optimizer *task_optimizer(const exphil_model *model);
void digest_weights(const exphil_model *model);

void games(exphil_context *context);
void told(exphil_context *context);
void outcome(exphil_context *context);
void learn(exphil_context *context);
void matches(exphil_context *context);
void live(exphil_context *context);
void ranks(exphil_context *context);
void ops(exphil_context *context);
#endif

#endif
