/* The play path as a WebAssembly module: play.c exports functions of numbers and pointers, exphil_play.js calls them. Structures of
 * the headers are filled, and told as objects, by tables of their fields (play_fields.c, which is made of the headers). */
#ifndef EXPHIL_PLAY_H
#define EXPHIL_PLAY_H

#include <exphil/learn.h>
#include <exphil/match.h>

/* F_FLAG is an int32_t that may be given as a boolean, F_NAME a const char *, F_TEXT an array of characters, F_POINTER what
 * exphil_play.js fills itself, F_STRUCT a structure with a table of its own. exphil_memory.js has the same numbers. */
enum field_kind {
    F_I32,
    F_FLAG,
    F_I64,
    F_U64,
    F_F64,
    F_F32,
    F_U32,
    F_U16,
    F_U8,
    F_I8,
    F_NAME,
    F_TEXT,
    F_POINTER,
    F_STRUCT
};

/* count elements, one behind the other. known: which EXPHIL_MELEE_HAS_... it belongs to. A table ends with a name of NULL. */
struct field {
    const char *name;
    uint32_t offset, kind, count, known;
    const struct field *of;
};

/* led: it begins with struct_size. */
struct table {
    const char *name;
    uint32_t size, led;
    const struct field *fields;
};

struct constant {
    const char *name;
    uint32_t value;
};

extern const struct table play_structs[];
extern const struct constant play_buttons[], play_known[];

/* Files in memory, for a context: what saves and resumes writes and reads them by name. */
extern const exphil_io play_files;

#endif
