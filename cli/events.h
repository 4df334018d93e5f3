/* Event files of TensorBoard: the numbers of a training log as scalars. */
#ifndef EXPHIL_CLI_EVENTS_H
#define EXPHIL_CLI_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct events events;

/* Can a file of events be made in this folder, which need not be there, and does it hold none of an earlier run, or may that
 * be replaced or added to? Makes nothing. Says on stderr why not, naming --tensorboard. */
bool events_free(const char *folder, bool may);
/* Makes the folder and a file in it; replaces: files of earlier runs of this program there are removed. NULL: said why not. */
events *events_open(const char *folder, bool replaces);
/* One line of a log: each number becomes a scalar KIND/NAME at the line's update, as train/loss or
 * held_out/heads/buttons/accuracy, and is in the file when this returns. Where updates are made again, readers are told to
 * forget those of before. Other lines are passed over. time: seconds since 1970. */
void events_write(events *to, json_t *line, double time);
/* Tells readers to forget what files before have of later updates than these. */
void events_resume(events *to, int64_t updates);
/* False: said on stderr that events are missing. NULL is allowed. */
bool events_close(events *to);

#endif
