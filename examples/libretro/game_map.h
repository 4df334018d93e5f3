/* A game map tells where a game keeps what a policy sees, and what the policy's actions press. It is a text file; the
 * README beside this file is its manual. This reader knows nothing of libretro but the numbers of the pad's buttons. */
#ifndef EXPHIL_GAME_MAP_H
#define EXPHIL_GAME_MAP_H

#include <exphil/exphil.h>
#include <stddef.h>
#include <stdint.h>

#define GAME_MAP_NAME   32 /* bytes of a name with its end */
#define GAME_MAP_FIELDS 256
#define GAME_MAP_PATH   1024
#define GAME_MAP_AXES   4 /* left x, left y, right x, right y; -32767..32767, down and right are positive */

/* Where addresses count from: the console's bus, or one of the core's memories (RETRO_MEMORY_...). */
enum { GAME_MAP_BUS = -1 };

enum { FIELD_FLOAT, FIELD_ID, FIELD_RAW };

struct game_field {
    char name[GAME_MAP_NAME];
    uint32_t address;
    int line;             /* of the file */
    int kind;             /* FIELD_... */
    int bytes;            /* 1, 2, 4 */
    char form;            /* 'u' unsigned, 's' signed, 'f' float, 'b' two decimal digits a byte, 'd' one */
    int big;              /* 1: the highest byte first */
    uint32_t mask;        /* of an integer; the result is shifted down to bit 0. 0: all of it */
    double scale, offset; /* float = value * scale + offset */
    int32_t entries, width;
};

struct game_press {
    uint16_t buttons; /* 1 << RETRO_DEVICE_ID_JOYPAD_... */
    int16_t axis[GAME_MAP_AXES];
    uint8_t given; /* bit per axis that was named */
};

struct game_head {
    char name[GAME_MAP_NAME];
    int32_t kind, count, neutral;
    struct game_press *press; /* [count]: of a class, or of a bit */
    uint16_t buttons;         /* all that the head answers for */
    uint8_t axes;
};

struct game_condition {
    int field; /* index into raw values */
    int same;  /* 1: "=", 0: "!=", 2: "<", 3: ">" */
    int line;  /* of the file */
    double value;
};

#define GAME_MAP_CONDITIONS 16

struct game_reward {
    int field;
    double factor; /* of what the field has grown by */
};

/* What learning by play wants to know of a game beside its rows. */
struct game_goals {
    struct game_condition over[GAME_MAP_CONDITIONS]; /* one that holds ends an episode */
    int overs;
    struct game_reward reward[GAME_MAP_CONDITIONS];
    int rewards;             /* 0: what score says */
    int64_t most_frames;     /* after which an episode is cut off; 0: never */
    int32_t idle;            /* most frames that an episode waits before it is played */
    int chance;              /* the field whose byte is drawn anew for each episode; -1: none */
    int32_t chance_range[2]; /* least and most */
};

struct game_map {
    char path[GAME_MAP_PATH]; /* of the file, for complaints */
    char layout[GAME_MAP_NAME], codec[GAME_MAP_NAME];
    int memory;           /* RETRO_MEMORY_... or GAME_MAP_BUS */
    int32_t port, player; /* from 1 */
    uint8_t magic[32];
    uint32_t magic_address;
    int magic_bytes; /* 0: none */
    int magic_line;
    char magic_text[72];                 /* as it is written */
    uint32_t state_address, state_bytes; /* what a teacher is shown; 0 bytes: nothing */
    int state_line;
    int episode;  /* index of the field whose change starts an episode, -1: none */
    int score[2]; /* fields that count points, -1: none */
    struct game_field field[GAME_MAP_FIELDS];
    int fields, floats, ids;
    struct game_condition condition[GAME_MAP_CONDITIONS];
    int conditions;
    struct game_goals goals;
    struct game_head head[EXPHIL_HEADS_MAX];
    int heads;
    exphil_id_spec id_spec[EXPHIL_IDS_MAX];
    exphil_head_spec head_spec[EXPHIL_HEADS_MAX];
    exphil_spec spec; /* points into this struct: do not copy it */
};

/* Bytes at an address of the game, or NULL where there are none; asked anew for every row. */
typedef const uint8_t *(*game_memory_fn)(void *user, uint32_t address, uint32_t bytes);

/* Reads a map. On failure returns -1 and says file, line and field in message. */
int game_map_load(struct game_map *map, const char *path, char *message, size_t message_bytes);
void game_map_free(struct game_map *map);
/* What a map calls a memory: "system"; NULL: it has no name but its number. */
const char *game_map_memory_name(int id);

/* Values of all fields as they stand in memory, before scaling. -1: the memory is not there; *missing is the field. */
int game_map_read(const struct game_map *map, game_memory_fn memory, void *user, double *values,
                  int *missing);
/* Whether the magic is there and all conditions hold. */
int game_map_ready(const struct game_map *map, game_memory_fn memory, void *user, const double *values);
/* The first line of the map that keeps the game from being ready, and what of it; values as read. "" when it is ready. */
void game_map_unready(const struct game_map *map, game_memory_fn memory, void *user, const double *values,
                      char *why, size_t why_bytes);
/* Scales: floats [floats], ids [ids]. -1: a float is not finite or an id out of its range; *wrong is the field. */
int game_map_row(const struct game_map *map, const double *values, float *floats, int32_t *ids, int *wrong);

/* Whether a condition of the goals ends the episode. */
int game_map_over(const struct game_map *map, const double *values);
/* Points by which a score field has grown since before, which becomes value; a field that falls began anew from 0. More than
 * 32 bits of points in a frame, or no number, are none: then 0, and before stays. */
int64_t game_map_points(double value, double *before);

/* What an action [heads] presses, and the action whose presses are nearest to what is held. */
void game_map_press(const struct game_map *map, const int32_t *action, struct game_press *press);
void game_map_action(const struct game_map *map, const struct game_press *held, int32_t *action);
/* All buttons and axes that some head answers for; the others stay the person's. */
void game_map_owned(const struct game_map *map, uint16_t *buttons, uint8_t *axes);

#endif
