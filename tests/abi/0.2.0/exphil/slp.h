/*
 * libexphil - reading Slippi replays (.slp, recorder versions 0.1.0 to 3.19.1) and the live event stream.
 * SPDX-License-Identifier: MIT
 *
 *   1 configuration, open      3 frames, players, items      5 canonical dumps
 *   2 what the replay is       4 live stream                 6 for policies
 *
 * Sections 1 to 5 need only context, status and error of exphil.h. The rules of exphil.h apply, with these
 * additions:
 *   Damage      A replay that was cut, or is still being written, is not a failure: reading succeeds and
 *               gives all complete frames before the cut; exphil_slp_info says where and why reading stopped.
 *               Only bytes without a readable game start are EXPHIL_E_FORMAT; the message names the byte
 *               offset.
 *   Versions    A field exists if it fits into the size that the replay itself declares for the event,
 *               whatever its version number says; exphil_slp_info.fields says which exist. Absent fields hold
 *               NaN (float), all ones (unsigned), -1 (int8_t) or INT32_MIN (int32_t).
 *   Values      Sizes are checked, values are not: any character, stage, state, item or end method is passed
 *               on, and floats are the bits of the file. Check ranges before you train on them.
 *   Threads     An exphil_slp never changes: shared freely. An exphil_slp_stream: one thread at a time.
 *   Privacy     Name tags, display names, connect codes and account ids are never read: they are personal data,
 *               and no policy needs them. Of the match id a corpus of games keeps 24 bits of a hash.
 *   Records     exphil_slp_frame, _player, _item, _slot and _port are plain records without struct_size:
 *               their layout is fixed. New fields of later recorders will come as new records beside them.
 *   Ports       Records and sections 2 to 5 have the file's port index, 0..3; section 6 takes the port
 *               number that players and exphil.h use, 1..4. Index 0 is port 1, "P1".
 */
#ifndef EXPHIL_SLP_H
#define EXPHIL_SLP_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 configuration, open ---------------------------------------------------------------------------- */

/* A replay that has been read. */
typedef struct exphil_slp exphil_slp;

/* Rollback netplay simulates frames again when a remote input arrives late. */
enum {
    EXPHIL_SLP_LAST = 0,  /* the last complete simulation of each frame: what really happened */
    EXPHIL_SLP_FIRST = 1, /* the first complete one: what the local player saw */
    EXPHIL_SLP_ALL = 2    /* all complete ones in the order of the file; frame indices repeat */
};

#define EXPHIL_SLP_FIRST_FRAME    (-123)  /* index of the first simulated frame of every game */
#define EXPHIL_SLP_FIRST_PLAYABLE (-39)   /* earlier inputs are recorded, but the game ignores them */
#define EXPHIL_SLP_FRAME_LIMIT    1000000 /* frames with an index beyond +-this are ignored */
#define EXPHIL_SLP_PORTS          4

/* How a replay is read. */
typedef struct exphil_slp_config {
    size_t struct_size;
    size_t limit_bytes; /* longest input that is read; 0 = 64 MiB, at most 2 GiB - 1 */
    int32_t rollback;   /* EXPHIL_SLP_LAST, ... */
    uint32_t flags;     /* must be 0 */
} exphil_slp_config;
/* clang-format off */
#define EXPHIL_SLP_CONFIG_INIT { sizeof(exphil_slp_config), 0, 0, 0 }
/* clang-format on */

/* Reads a whole file: a .slp container, or a bare event stream, which starts with 0x35. A file that is
 * still growing is read as far as it goes; open it again for more. config may be NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_open(exphil_context *context, const char *path,
                                                          const exphil_slp_config *config, exphil_slp **slp,
                                                          exphil_error *error);
/* The same from memory; data is not needed after the call. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_read(exphil_context *context, const void *data,
                                                          size_t size_bytes, const exphil_slp_config *config,
                                                          exphil_slp **slp, exphil_error *error);
EXPHIL_API void exphil_slp_destroy(exphil_slp *slp);

/* ---- 2 what the replay is ----------------------------------------------------------------------------- */

/* exphil_slp_info.container; GAMES: read out of a corpus of games (exphil/games.h) */
enum { EXPHIL_SLP_CONTAINER = 0, EXPHIL_SLP_BARE = 1, EXPHIL_SLP_GAMES = 2 };

/* exphil_slp_info.stop: why the events ended */
enum {
    EXPHIL_SLP_STOP_COMPLETE = 0,    /* all declared bytes read */
    EXPHIL_SLP_STOP_END_OF_FILE = 1, /* length never filled in; the file ends between two events */
    EXPHIL_SLP_STOP_METADATA = 2,    /* length never filled in; the metadata follow */
    EXPHIL_SLP_STOP_TRUNCATED = 3,   /* cut inside an event */
    EXPHIL_SLP_STOP_UNKNOWN_CODE = 4 /* stopped at an event for which the replay declares no size */
};

/* exphil_slp_info.metadata */
enum { EXPHIL_SLP_METADATA_ABSENT = 0, EXPHIL_SLP_METADATA_OK = 1, EXPHIL_SLP_METADATA_UNREADABLE = 2 };

/* exphil_slp_info.fields: what this replay records, each with the version that introduced it */
enum {
    EXPHIL_SLP_HAS_STATE_AGE = 1 << 0,      /* 0.2.0 */
    EXPHIL_SLP_HAS_RAW_JOY_X = 1 << 1,      /* 1.2.0 */
    EXPHIL_SLP_HAS_PRE_PERCENT = 1 << 2,    /* 1.4.0 */
    EXPHIL_SLP_HAS_FLAGS = 1 << 3,          /* 2.0.0: flags, misc, airborne, ground_id, jumps, l_cancel */
    EXPHIL_SLP_HAS_LRAS = 1 << 4,           /* 2.0.0 */
    EXPHIL_SLP_HAS_HURTBOX = 1 << 5,        /* 2.1.0 */
    EXPHIL_SLP_HAS_FRAME_SEED = 1 << 6,     /* 2.2.0 */
    EXPHIL_SLP_HAS_BOOKEND = 1 << 7,        /* 3.0.0 */
    EXPHIL_SLP_HAS_ITEMS = 1 << 8,          /* 3.0.0 */
    EXPHIL_SLP_HAS_ITEM_MISC = 1 << 9,      /* 3.2.0 */
    EXPHIL_SLP_HAS_VELOCITY = 1 << 10,      /* 3.5.0 */
    EXPHIL_SLP_HAS_ITEM_OWNER = 1 << 11,    /* 3.6.0 */
    EXPHIL_SLP_HAS_LATEST_FINAL = 1 << 12,  /* 3.7.0 */
    EXPHIL_SLP_HAS_HITLAG = 1 << 13,        /* 3.8.0 */
    EXPHIL_SLP_HAS_SCENE_COUNTER = 1 << 14, /* 3.10.0 */
    EXPHIL_SLP_HAS_ANIMATION = 1 << 15,     /* 3.11.0 */
    EXPHIL_SLP_HAS_PLACEMENTS = 1 << 16,    /* 3.13.0 */
    EXPHIL_SLP_HAS_RAW_JOY_Y = 1 << 17,     /* 3.15.0 */
    EXPHIL_SLP_HAS_INSTANCE = 1 << 18,      /* 3.16.0: instance_hit_by, instance_id of players */
    EXPHIL_SLP_HAS_ITEM_INSTANCE = 1 << 19, /* 3.16.0 */
    EXPHIL_SLP_HAS_RAW_C = 1 << 20,         /* 3.17.0 */
    EXPHIL_SLP_HAS_FOUNTAIN = 1 << 21,      /* 3.18.0 */
    EXPHIL_SLP_HAS_WHISPY = 1 << 22,        /* 3.18.0 */
    EXPHIL_SLP_HAS_STADIUM = 1 << 23        /* 3.18.0 */
};

/* exphil_slp_info.problems: irregularities found; none of them stops reading */
enum {
    EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH = 1 << 0, /* read as 0, "not filled in" */
    EXPHIL_SLP_PROBLEM_LENGTH = 1 << 1,          /* declared length exceeds the file */
    EXPHIL_SLP_PROBLEM_SHORT_EVENT = 1 << 2,     /* an event is declared too short to be used; skipped */
    EXPHIL_SLP_PROBLEM_SECOND_START = 1 << 3,    /* a second game start; ignored */
    EXPHIL_SLP_PROBLEM_PORT = 1 << 4,            /* port index above 3; event ignored */
    EXPHIL_SLP_PROBLEM_FRAME_START = 1 << 5,     /* a frame without its frame start event */
    EXPHIL_SLP_PROBLEM_ITEM = 1 << 6,            /* item outside its frame; ignored */
    EXPHIL_SLP_PROBLEM_BOOKEND = 1 << 7,         /* bookend outside its frame; ignored */
    EXPHIL_SLP_PROBLEM_FRAME_LIMIT = 1 << 8, /* frame index beyond EXPHIL_SLP_FRAME_LIMIT; frame ignored */
    EXPHIL_SLP_PROBLEM_METADATA = 1 << 9,    /* metadata unreadable */
    /* streams only: more than EXPHIL_SLP_STREAM_ITEMS in a frame */
    EXPHIL_SLP_PROBLEM_ITEM_LIMIT = 1 << 10
};

/* Settings of one port at the start of the game. */
typedef struct exphil_slp_port {
    uint32_t dashback_fix; /* 0 off, 1 UCF, 2 Dween or Arduino; 1.0.0 */
    uint32_t shield_drop_fix;
    float offence_ratio;
    float defence_ratio;
    float model_scale;
    uint16_t start_damage;
    uint16_t respawn_damage;
    uint8_t character; /* external id */
    uint8_t type;      /* 0 human or bot, 1 CPU, 2 demo, 3 empty */
    uint8_t stocks;
    uint8_t costume;
    uint8_t team_shade;
    uint8_t handicap;
    uint8_t team;      /* 0 red, 1 blue, 2 green; only when exphil_slp_info.teams */
    uint8_t flags;     /* 01 stamina 02 silent 04 low gravity 08 invisible 20 metal 40 warp-in 80 rumble */
    uint8_t cpu_level; /* meaningful only if type is 1 */
    uint8_t port;      /* its own number, 0..3 */
    uint8_t reserved[2];
} exphil_slp_port;

/* What a replay says of itself and its game, and what reading met. */
typedef struct exphil_slp_info {
    size_t struct_size;
    uint64_t input_bytes;
    uint64_t stop_offset; /* byte offset at which reading of events stopped */
    int64_t frame_count;
    int64_t instance_count; /* simulations of frames, complete or not */
    /* of these, cut off, without bookend or beyond the frame limit; never used */
    int64_t incomplete_count;
    int64_t item_count;          /* items of all frames together */
    int64_t unknown_event_count; /* skipped events of unknown kind */
    int64_t problem_count;       /* irregularities of all kinds together */
    uint32_t problems;           /* EXPHIL_SLP_PROBLEM_* */
    uint32_t fields;             /* EXPHIL_SLP_HAS_* */
    int32_t container;           /* EXPHIL_SLP_CONTAINER or _BARE */
    int32_t raw_declared_bytes;  /* length of the event stream that the container declares */
    int32_t stop;                /* EXPHIL_SLP_STOP_* */
    int32_t truncated;           /* 1: the input ends inside an event, or before its declared length */
    int32_t rollback;            /* as configured */
    int32_t first_frame;         /* smallest and largest index; INT32_MIN without frames */
    int32_t last_frame;
    int32_t metadata;            /* EXPHIL_SLP_METADATA_* */
    int32_t metadata_last_frame; /* what the metadata say (it can be wrong); INT32_MIN: nothing */
    int32_t end_count;           /* game end events found; the first one counts */
    uint32_t seed;
    uint32_t timer_seconds;
    uint32_t game_number; /* 3.14.0 */
    uint32_t tiebreak_number;
    float damage_ratio;
    uint16_t stage;        /* external id */
    uint8_t version[4];    /* major, minor, build, unused */
    uint8_t game_mode;     /* 0 time, 1 stock, 2 coin, 3 bonus */
    uint8_t timer_kind;    /* 0 none, 2 down, 3 up */
    uint8_t teams;         /* nonzero: team game */
    uint8_t friendly_fire; /* 0 or 1 */
    uint8_t pal;           /* 1.5.0 */
    uint8_t frozen;        /* frozen Stadium, 2.0.0; not reliable before 3.19 */
    uint8_t minor_scene;   /* 3.7.0: 2 in game */
    uint8_t major_scene;   /* 2 versus, 8 online, 15 target test, 32 home-run */
    uint8_t language;      /* 3.12.0: 0 Japanese, 1 English */
    uint8_t player_count;  /* ports whose type is not 3 */
    int8_t item_spawn;     /* -1 off, 0..4 very low..very high */
    int8_t self_destruct;  /* score of one */
    uint8_t end_method;    /* 255 when there is no game end event */
    int8_t end_lras;       /* port that quit, -1 none; 2.0.0 */
    int8_t placements[4];  /* by port, 0 = first, -1 not in the game; 3.13.0 */
    uint8_t reserved[4];
    char played_on[32]; /* "dolphin", "nintendont", ...; empty when not recorded */
    exphil_slp_port ports[EXPHIL_SLP_PORTS];
    /* when the recording began, as the metadata say: ISO 8601, "2018-06-22T07:52:59Z", of an unknown time zone
     * without the Z; empty when not recorded. Since 0.2 */
    char started_at[32];
} exphil_slp_info;
/* clang-format off */
#define EXPHIL_SLP_PORT_ZERO { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } }
#define EXPHIL_SLP_INFO_INIT \
    { sizeof(exphil_slp_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, { EXPHIL_SLP_PORT_ZERO, \
      EXPHIL_SLP_PORT_ZERO, EXPHIL_SLP_PORT_ZERO, EXPHIL_SLP_PORT_ZERO }, { 0 } }
/* clang-format on */

/* From any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_query(const exphil_slp *slp, exphil_slp_info *info,
                                                           exphil_error *error);

/* exphil_slp_result.reason: why the winner is known, or why there is none */
enum {
    EXPHIL_SLP_RESULT_UNKNOWN = 0,     /* no winner: nothing recorded tells */
    EXPHIL_SLP_RESULT_STOCKS = 1,      /* the only side that has stocks left */
    EXPHIL_SLP_RESULT_TIME_STOCKS = 2, /* time ran out: the side with most stocks */
    EXPHIL_SLP_RESULT_TIME_PERCENT =
        3,                      /* time ran out at equal stocks: the least percent, as tournaments rule */
    EXPHIL_SLP_RESULT_QUIT = 4, /* the other side quit */
    EXPHIL_SLP_RESULT_PLACEMENTS = 5, /* the recorder says who came first; 3.13.0 */
    EXPHIL_SLP_RESULT_TIE = 6,        /* no winner: the best sides are equal */
    EXPHIL_SLP_RESULT_NO_CONTEST = 7, /* no winner: the game was broken off, and who quit decides nothing */
    EXPHIL_SLP_RESULT_UNFINISHED = 8, /* no winner: the recording has no end of the game */
    EXPHIL_SLP_RESULT_ALONE = 9 /* no winner: fewer than two sides, a target test or a home-run contest */
};

/* How a game ended. Ports count from 1 here, as players count them. */
typedef struct exphil_slp_result {
    size_t struct_size;
    int32_t reason;  /* EXPHIL_SLP_RESULT_* */
    int32_t winner;  /* port 1..4, in team games the lowest of the winning team; 0: none is known */
    int32_t winners; /* all of them: bit port - 1; 0: none is known */
    int32_t quitter; /* port 1..4 that quit (L+R+A+Start); 0: nobody, or not recorded (before 2.0.0) */
    /* Of each port's last record, by port index 0..3: -1 and NaN for ports without records. */
    int32_t stocks[EXPHIL_SLP_PORTS];
    float percent[EXPHIL_SLP_PORTS];
} exphil_slp_result;
/* clang-format off */
#define EXPHIL_SLP_RESULT_INIT { sizeof(exphil_slp_result), 0, 0, 0, 0, { 0 }, { 0 } }
/* clang-format on */

/* Who won, from settings, game end and last frames. A side is a player, or in team games a team. In this order:
 *   1 target tests, home-run contests, fewer than two sides: ALONE
 *   2 stock mode, one side has stocks left and no other: STOCKS, even if the file ends before the game end
 *   3 no game end event: UNFINISHED
 *   4 stock mode, time ran out: most stocks of a side together, else the least whole percent of its players who
 *     have stocks, else TIE. The game itself would go on with sudden death, which is a replay of its own.
 *   5 somebody quit: of two sides the other won, whatever the score; of more, NO_CONTEST
 *   6 no contest, or unresolved before 2.0.0: NO_CONTEST
 *   7 placements with one first: PLACEMENTS, with the whole team
 *   8 stock mode, nobody has stocks left: TIE; else UNKNOWN
 * That who quits has lost is netplay's convention: hand-warmers end so too. Placements of a game that was quit, or
 * that ran out of time, do not count: recorders then order ports as they stand. From any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_result_get(const exphil_slp *slp,
                                                                exphil_slp_result *result,
                                                                exphil_error *error);

/* ---- 3 frames, players, items ------------------------------------------------------------------------- */

/* One item in one frame; positions and speeds in units of the game. */
typedef struct exphil_slp_item {
    float facing;
    float vel_x;
    float vel_y;
    float x;
    float y;
    float timer;       /* frames left; may be negative */
    uint32_t spawn_id; /* identifies one item across frames */
    uint16_t type;
    uint16_t damage;
    uint16_t instance_id; /* 3.16.0 */
    uint8_t state;
    uint8_t misc[4]; /* 3.2.0: missile kind, turnip face, shot launched, charge 0..7 */
    int8_t owner;    /* port, -1 none or not recorded; 3.6.0 */
} exphil_slp_item;

/* One simulated frame. Stage values are the last ones sent, up to and including this frame. */
typedef struct exphil_slp_frame {
    const exphil_slp_item *items; /* in the order of the file */
    int32_t item_count;
    int32_t frame;          /* index; -123 is the first of a game */
    int32_t instance;       /* position among all simulations of the replay, complete or not */
    uint32_t seed;          /* 2.2.0 */
    uint32_t scene_counter; /* 3.10.0: goes on during a pause, so a jump means a pause */
    int32_t latest_final;   /* 3.7.0: latest frame that the recorder calls final; a hint at best */
    float fountain_left;    /* heights of the Fountain's platforms: 20 and 28 before the first event */
    float fountain_right;
    uint16_t stadium_event; /* 0 finished 2 init 3 on monitor 4 receding 5 rising 6 finalise; 0 at first */
    uint16_t stadium_kind;  /* 3 fire 4 grass 5 normal 6 rock 9 water; 5 at first */
    uint8_t whispy;         /* 0 none 1 left 2 right; 0 at first */
    uint8_t slots;          /* bit 2 * port + follower: that character is present */
    uint8_t changed;        /* stage events of this frame: 1 Fountain, 2 Whispy, 4 Stadium */
    uint8_t reserved;
} exphil_slp_frame;

/* One character in one frame: the inputs that act in it (pre-frame) and the state that results
 * (post-frame). */
typedef struct exphil_slp_player {
    int32_t frame;
    uint32_t pre_seed; /* -- pre-frame -- */
    float pre_x;
    float pre_y;
    float pre_facing;
    float pre_percent; /* 1.4.0 */
    float joy_x;       /* processed sticks, -1..1 in steps of 1/80 for humans */
    float joy_y;
    float c_x;
    float c_y;
    float trigger;    /* processed, one value for both */
    float physical_l; /* garbage before 1.2.0 */
    float physical_r;
    uint32_t buttons; /* processed: low half as physical, high half stick directions */
    float x;          /* -- post-frame -- */
    float y;
    float facing;
    float percent;
    float shield;
    float state_age; /* 0.2.0 */
    float misc;      /* 2.0.0: hitstun left while flags[3] & 2, else anything, NaN included */
    float vel_air_x; /* 3.5.0 */
    float vel_y;
    float vel_kb_x;
    float vel_kb_y;
    float vel_ground_x;
    float hitlag;       /* 3.8.0 */
    uint32_t animation; /* 3.11.0 */
    /* pre: 0001 left 0002 right 0004 down 0008 up 0010 Z 0020 R 0040 L
     * 0100 A 0200 B 0400 X 0800 Y 1000 Start */
    uint16_t physical_buttons;
    uint16_t pre_action_state; /* pre */
    uint16_t action_state;
    uint16_t ground_id;       /* 2.0.0: 65535 none */
    uint16_t instance_hit_by; /* 3.16.0 */
    uint16_t instance_id;     /* 3.16.0 */
    int8_t raw_joy_x;         /* pre, 1.2.0: not clamped */
    int8_t raw_joy_y;         /* pre, 3.15.0 */
    int8_t raw_c_x;           /* pre, 3.17.0 */
    int8_t raw_c_y;
    uint8_t port;      /* 0..3 */
    uint8_t follower;  /* 1: Nana */
    uint8_t character; /* internal id; changes when Zelda and Sheik swap */
    uint8_t last_attack;
    uint8_t combo;
    uint8_t last_hit_by; /* port, 6 = nobody */
    uint8_t stocks;
    uint8_t flags[5]; /* 2.0.0 */
    uint8_t airborne; /* 2.0.0 */
    uint8_t jumps;    /* 2.0.0: left */
    uint8_t l_cancel; /* 2.0.0: 0 none 1 hit 2 missed */
    uint8_t hurtbox;  /* 2.1.0: 0 vulnerable 1 invulnerable 2 intangible */
} exphil_slp_player;

/* All records of one character, frames ascending (in the order of the file under EXPHIL_SLP_ALL). */
typedef struct exphil_slp_slot {
    const exphil_slp_player *records;
    int64_t record_count; /* at least 1 */
    int32_t first_frame;
    int32_t last_frame;
    int32_t port;
    int32_t follower;
} exphil_slp_slot;

/* 0 for a replay without a complete frame. */
EXPHIL_API int64_t exphil_slp_frame_count(const exphil_slp *slp);
/* Frame at a position in [0, frame count), NULL outside. All frames are in one array that starts at
 * position 0. Game frames ascend with the position, but a damaged file may lack some: exphil_slp_position
 * finds a frame. */
EXPHIL_API const exphil_slp_frame *exphil_slp_frame_at(const exphil_slp *slp, int64_t position);
/* Position of a game frame (-123, ...), by binary search; -1 when the replay does not have it. Under
 * EXPHIL_SLP_ALL: the position of one of its simulations. */
EXPHIL_API int64_t exphil_slp_position(const exphil_slp *slp, int32_t frame);
/* Characters that have at least one record, ordered by port and follower. */
EXPHIL_API int32_t exphil_slp_slot_count(const exphil_slp *slp);
/* index in [0, slot count), NULL outside. */
EXPHIL_API const exphil_slp_slot *exphil_slp_slot_at(const exphil_slp *slp, int32_t index);
/* One character at a frame position, in constant time; NULL when it is not present: dead, asleep, or no
 * such port. A record exists only when both its pre-frame and its post-frame event do. */
EXPHIL_API const exphil_slp_player *exphil_slp_player_at(const exphil_slp *slp, int64_t position,
                                                         int32_t port_index, int32_t follower);

/* ---- 4 live stream ------------------------------------------------------------------------------------ */

#define EXPHIL_SLP_STREAM_ITEMS 64 /* items kept per frame; recorders send at most 15 */

/* Takes the bytes of one game as they arrive, with or without container header, and gives each frame as
 * soon as it is complete: at its bookend, or before 3.0.0 when the next frame starts. A frame index that
 * comes again is a correction and replaces the earlier frame. Memory is allocated at creation only. */
typedef struct exphil_slp_stream exphil_slp_stream;

/* Keeps its context alive. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_stream_create(exphil_context *context,
                                                                   exphil_slp_stream **stream,
                                                                   exphil_error *error);
EXPHIL_API void exphil_slp_stream_destroy(exphil_slp_stream *stream);
/* EXPHIL_OK: a frame is ready; *used_bytes of the data were taken, push the rest again. EXPHIL_AGAIN: all
 * bytes were taken, and more are needed. EXPHIL_END: the game is over, the rest was not taken. After a
 * failure every further push fails the same way until exphil_slp_stream_reset. used_bytes must not be
 * NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_stream_push(exphil_slp_stream *stream, const void *data,
                                                                 size_t size_bytes, size_t *used_bytes,
                                                                 exphil_error *error);
/* Forgets the game; the next bytes are the start of another one. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_stream_reset(exphil_slp_stream *stream,
                                                                  exphil_error *error);
/* What is known so far; EXPHIL_E_STATE before the game start event has arrived. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_stream_query(exphil_slp_stream *stream,
                                                                  exphil_slp_info *info, exphil_error *error);
/* The frame that the last push completed, valid until the next push; NULL when there is none. */
EXPHIL_API const exphil_slp_frame *exphil_slp_stream_frame(const exphil_slp_stream *stream);
/* One character of that frame, valid as long; NULL when it is not present, as for exphil_slp_player_at. */
EXPHIL_API const exphil_slp_player *exphil_slp_stream_player(const exphil_slp_stream *stream,
                                                             int32_t port_index, int32_t follower);

/* ---- 5 canonical dumps -------------------------------------------------------------------------------- */

/* Little-endian, packed bytes of the frames, for comparing readers with one another bit for bit.
 *   STATE  24 bytes a record: i32 frame; f32 x, y, percent, shield, facing (post)
 *   INPUT  30: i32 frame; f32 joy_x, joy_y, c_x, c_y, trigger; u32 buttons; u16 physical buttons
 *   AUX    54: i32 frame; u16 action state; u8 character, stocks, last_attack, combo, last_hit_by, airborne,
 *          jumps, l_cancel, hurtbox, flags[5]; f32 state_age, misc, vel_air_x, vel_y, vel_kb_x, vel_kb_y,
 *          vel_ground_x, hitlag; i8 raw_joy_x, raw_joy_y
 *   ITEMS  of all ports, 6 bytes a frame: i32 frame, u16 count; then 34 an item: u16 type, u8 state, f32
 *          facing, vel_x, vel_y, x, y, u16 damage, f32 timer, u32 spawn_id, i8 owner */
enum {
    EXPHIL_SLP_DUMP_STATE = 0,
    EXPHIL_SLP_DUMP_INPUT = 1,
    EXPHIL_SLP_DUMP_AUX = 2,
    EXPHIL_SLP_DUMP_ITEMS = 3
};

/* Length of a dump in bytes; slot is an index as in exphil_slp_slot_at and ignored for ITEMS. 0 when there
 * is no such slot or kind. */
EXPHIL_API size_t exphil_slp_dump_bytes(const exphil_slp *slp, int32_t kind, int32_t slot);
/* Writes the dump into buffer, whose size must be exactly that length. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_dump(const exphil_slp *slp, int32_t kind, int32_t slot,
                                                          void *buffer, size_t buffer_bytes,
                                                          exphil_error *error);

/* ---- 6 for policies ----------------------------------------------------------------------------------- */

/* Ports are 1..4 from here on. What a policy on own_port knows after the frame at this position: the
 * observation for the action of the next frame. opponent_port 0: the first other player, of another team
 * in team games. EXPHIL_E_INVALID when own_port has no record there. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_melee_frame(const exphil_slp *slp, int64_t position,
                                                                 int32_t own_port, int32_t opponent_port,
                                                                 exphil_melee_frame *frame,
                                                                 exphil_error *error);
/* The same for the frame that the last push completed: the same bits as from the finished replay. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_stream_melee_frame(exphil_slp_stream *stream,
                                                                        int32_t own_port,
                                                                        int32_t opponent_port,
                                                                        exphil_melee_frame *frame,
                                                                        exphil_error *error);
/* What the player of a port did on the frame at this position: processed sticks and trigger, physical
 * buttons. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_melee_pad(const exphil_slp *slp, int64_t position,
                                                               int32_t port, exphil_pad *pad,
                                                               exphil_error *error);
/* The rows of one player in one call: what exphil_dataset_add_replay would add of config, whose port must be
 * 1..4, in ascending order of the frames. What it leaves out, no row has: a frame that does not follow the one
 * before, an absent character, a value that is not finite. layout and codec as in exphil_melee_spec, which tells F,
 * K and A. frames [capacity]: the game frame that the row's action acts in; floats [capacity,F], ids
 * [capacity,K], actions [capacity,A]; each may be NULL. *count becomes how many rows there are, and as many of
 * them as capacity are written: exphil_slp_frame_count always suffices. EXPHIL_E_INVALID names a wrong argument,
 * and lists the players where no human plays on this port or it is not config.character; then nothing is
 * written. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_slp_melee_rows(const exphil_slp *slp, const char *layout,
                                                                const char *codec,
                                                                const exphil_replay_config *config,
                                                                int64_t capacity, int32_t *frames,
                                                                float *floats, int32_t *ids, int32_t *actions,
                                                                int64_t *count, exphil_error *error);

#ifdef __cplusplus
}
#endif

#endif
