/* What the parts of the plugin share. libretro has no handles: one loaded core is one game, so there is one struct plugin.
 *
 *   plugin.c         the 25 functions of a core          plugin_host.c    the frontend: messages, options, files
 *   plugin_frame.c   what happens around one frame       plugin_state.c   save states
 *   plugin_player.c  the policy, steps -> trace          plugin_record.c  episodes -> corpus
 *   plugin_teacher.c the scripted player                 plugin_watch.c   what keeps them waiting
 *   plugin_fit.c     map and weights                     plugin_learn.c   a person takes over, the policy learns */
#ifndef EXPHIL_PLUGIN_H
#define EXPHIL_PLUGIN_H

#include "core_library.h"
#include "core_memory.h"
#include "game_map.h"

#include <exphil/live.h>
#include <stdint.h>
#include <stdio.h>

#define PLUGIN_MESSAGE      1024
#define PLUGIN_PATH         4096
#define PLUGIN_LEAST_FRAMES 30    /* a shorter episode is none */
#define PLUGIN_TIMES        65536 /* latest frames whose cost is kept */

enum plugin_mode { MODE_OFF, MODE_RECORD, MODE_PLAY, MODE_LEARN };

/* A scripted player: fills action [heads] for the bytes that the map calls state, player from 1. Anything but 0: it leaves
 * this frame to the person at the pad. */
typedef int32_t (*plugin_teacher_fn)(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action);

struct plugin_player {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_session_info info;
    uint64_t weights; /* hash */
    int64_t rows;     /* that the session has stepped since the game was loaded */
    int failed;       /* a step failed, or the weights could not be had: it has been told, the person plays */
    int likeliest;
    char path[PLUGIN_PATH]; /* of the weights, "": nobody knows where they are */
    FILE *trace;
    int64_t trace_rows, trace_most;
};

struct plugin_teacher {
    int missing; /* asked for, and not to be had as asked: it has been told, nothing is recorded */
    void *library;
    plugin_teacher_fn act;
    double disturb; /* share of frames in which something else is pressed than the teacher says */
    uint64_t random;
    int32_t disturbed_frames; /* left of a disturbance */
};

struct plugin_record {
    exphil_context *context;
    exphil_dataset *dataset; /* what the file held, and finished episodes */
    char path[PLUGIN_PATH];
    float *floats; /* [room,F] of the episode under way */
    int32_t *ids, *actions;
    int64_t frames, room, unsaved, total, most;
    int64_t added; /* to the dataset */
    int failed;    /* it has been told */
    int locked;    /* 1: lock is the open file that keeps others from recording to path */
    intptr_t lock;
    uint64_t games, inode; /* inode and bytes: of path when the game was loaded; 0: no file was there */
    int64_t bytes;
};

struct plugin_learn {
    exphil_live *live;
    int person;      /* 1: the person plays, 0: the policy */
    int held;        /* the button that says so was down in the frame before */
    uint16_t button; /* a bit */
    int failure_told, unsaved_told;
    int paced;              /* the game waits for it now and then, so that a run is a function of its seeds */
    char path[PLUGIN_PATH]; /* of what was learnt */
};

/* What has been seen of this game so far, and said. */
struct plugin_watch {
    int begun;           /* it was once as the map wants it */
    int64_t waited, ran; /* frames in which it was not, before; and was */
    int asked;           /* the core has asked for our port */
    int row_told;
};

/* Where the game stands: part of a save state. */
struct plugin_game {
    int32_t running; /* an episode is under way */
    int32_t reserved;
    double episode; /* value of the map's episode field in the frame before */
    double points[2];
    int64_t score[2];
    int64_t frames; /* since the game was loaded */
};

struct plugin {
    struct core_library core;
    int core_tried;
    char core_message[PLUGIN_MESSAGE];
    retro_environment_t environment;
    retro_input_state_t input;
    retro_input_poll_t poll;
    retro_log_printf_t log;
    int bitmasks, options_told, options_changed, foreign_told;
    int failed; /* something was told as an error since the game was loaded */

    char game_path[PLUGIN_PATH]; /* "": not known */
    struct core_memory memory;
    struct game_map map;
    int has_map;
    unsigned port; /* that we play, from 0 */
    enum plugin_mode mode;
    struct plugin_player player;
    struct plugin_teacher teacher;
    struct plugin_record record;
    struct plugin_learn learn;
    struct plugin_game game;
    struct plugin_watch watch;

    /* Of this frame. */
    double values[GAME_MAP_FIELDS];
    float *floats;
    int32_t *ids;
    int32_t action[EXPHIL_HEADS_MAX];
    float *logits;
    int pressing, begun; /* the press below is ours; an episode began */
    struct game_press press;
    uint16_t owned_buttons;
    uint8_t owned_axes;

    int32_t decision_ns[PLUGIN_TIMES], step_ns[PLUGIN_TIMES]; /* ring, [player.rows % PLUGIN_TIMES] */
};

extern struct plugin plugin;

/* plugin_host.c */
void plugin_say(enum retro_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plugin_tell(const char *format, ...)
    __attribute__((format(printf, 1, 2))); /* an error: to the log and the screen */
void plugin_warn(const char *format, ...) __attribute__((format(printf, 1, 2))); /* no error, there too */
void plugin_note(const char *text);                                              /* good to know, there too */
bool plugin_environment(unsigned command, void *data);                           /* what the core is given */
void plugin_send_options(void); /* unless the core's brought ours along */
void plugin_poll_options(void);
/* The environment variable, else the core option, else NULL. */
const char *plugin_setting(const char *variable, const char *option);
/* 0: text is a whole number from least to most, and nothing else. */
int plugin_whole(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* The same of an environment variable; where it is not set or empty, value stays. -1: told. */
int plugin_number(const char *variable, uint64_t least, uint64_t most, uint64_t *value);
int plugin_open_core(void); /* 0: it is there. Its path: EXPHIL_CORE, or from this file's own name */
/* The environment variable, else the game's path with this ending if there is such a file or any is 1; -1: neither. */
int plugin_path(const char *variable, const char *ending, int any, char *path);
int64_t plugin_now(void); /* nanoseconds of a clock that only goes forward */

/* plugin_frame.c */
void plugin_begin_game(const char *path); /* of the game; may be NULL */
void plugin_end_game(void);
void plugin_before_frame(void);
void plugin_after_frame(void);
void plugin_new_start(void); /* the console was reset, or a state without our part was loaded */
int16_t plugin_input(unsigned port, unsigned device, unsigned index, unsigned id);
void plugin_pad(struct game_press *held); /* what the person holds */

/* plugin_player.c */
/* There is a session, or it has been told, or there is no file. weights NULL: those of the settings. */
void plugin_player_open(const char *weights);
int plugin_player_step(void); /* -1: told, and the player has failed */
void plugin_player_close(void);
void plugin_trace_end(const char *why);

/* plugin_teacher.c */
void plugin_teacher_open(void);
void plugin_teacher_close(void);
int plugin_teacher_act(void);        /* 0: action is filled */
const int32_t *plugin_disturb(void); /* the action to press instead of the teacher's, or the teacher's */

/* plugin_record.c */
int plugin_record_open(void);
void plugin_record_stop(void); /* what is recorded is kept */
void plugin_record_frame(void);
void plugin_record_end_episode(void);
void plugin_record_close(void);

/* plugin_learn.c */
int plugin_learn_open(void); /* -1: told, nothing is learnt */
int plugin_learn_step(void); /* -1: told, and the player has failed */
int plugin_learn_close(
    void); /* 1: what was learnt is saved, 0: there is none, or it has been told; there is no session then */

/* plugin_watch.c */
void plugin_watch_unready(void);      /* a frame of which the map says that the game does not run */
void plugin_watch_running(void);      /* a frame of the game */
void plugin_watch_missing(int field); /* it cannot be read */
void plugin_watch_wrong(int field);   /* its value is none for a row */
void plugin_watch_empty(void);        /* a recording ends without rows: why */

/* plugin_fit.c: 0: the weights are of the map's rows and actions. Else why has the first difference. */
int plugin_fit(const exphil_spec *weights, char *why, size_t why_bytes);

/* plugin_state.c */
size_t plugin_state_bytes(void); /* that a state has more than the core's; fixed while a game is loaded */
void plugin_state_save(void *part);
size_t plugin_state_find(const void *state,
                         size_t bytes); /* how many at its end are a part of ours; 0: it has none */
void plugin_state_restore(const void *part, size_t bytes); /* 0 bytes: the state is from elsewhere */

#endif
