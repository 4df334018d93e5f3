/* Melee: frames come as rows of numbers, which exphil_melee.js lays out by the tables of members (addon_fields.c); so no
 * name, place or type of exphil_melee_frame stands in it. Numbers of a row stand in the order of the tables, lists and arrays
 * element after element. */
#include "addon.h"

#include <stdio.h>
#include <string.h>

static void name_number(napi_env env, napi_value object, const char *name, uint32_t number)
{
    napi_value value;
    napi_create_uint32(env, number, &value);
    napi_set_named_property(env, object, name, value);
}

static napi_value tell_constants(napi_env env, const struct constant *constants)
{
    napi_value object;
    napi_create_object(env, &object);
    for (; constants->name; constants++) name_number(env, object, constants->name, constants->value);
    return object;
}

/* [{ name, count, known, of }] */
static napi_value tell_members(napi_env env, const struct member *members)
{
    napi_value list, object, value;
    napi_create_array(env, &list);
    for (uint32_t i = 0; members[i].name; i++) {
        napi_create_object(env, &object);
        napi_create_string_utf8(env, members[i].name, NAPI_AUTO_LENGTH, &value);
        napi_set_named_property(env, object, "name", value);
        name_number(env, object, "count", members[i].count);
        name_number(env, object, "known", members[i].known);
        if (members[i].of) napi_set_named_property(env, object, "of", tell_members(env, members[i].of));
        napi_set_element(env, list, i, object);
    }
    return list;
}

/* What a frame consists of, how many bytes a frame and a pad need together, a pad of no input, the header's constants. */
static napi_value melee_shape(napi_env env, napi_callback_info info)
{
    const exphil_pad pad = {0};
    napi_value object;
    (void)info;
    napi_create_object(env, &object);
    napi_set_named_property(env, object, "pad", tell(env, pad_fields, &pad));
    napi_set_named_property(env, object, "members", tell_members(env, frame_members));
    name_number(env, object, "bytes", sizeof(exphil_melee_frame) + sizeof(exphil_pad));
    napi_set_named_property(env, object, "buttons", tell_constants(env, buttons));
    napi_set_named_property(env, object, "known", tell_constants(env, known));
    return object;
}

/* Where a number stands, for a sentence: player[0].flags[4]. */
struct place {
    const struct place *above;
    const struct member *member;
    uint32_t index;
};

static int write_place(const struct place *place, char *text, size_t size)
{
    int length = place->above ? write_place(place->above, text, size) : 0;
    const char *dot = place->above ? "." : "";
    if (place->member->count == 1)
        return length + snprintf(text + length, size - (size_t)length, "%s%s", dot, place->member->name);
    return length + snprintf(text + length, size - (size_t)length, "%s%s[%u]", dot, place->member->name,
                             (unsigned)place->index);
}

static int64_t count_numbers(const struct member *members)
{
    int64_t count = 0;
    for (; members->name; members++) count += members->count * (members->of ? count_numbers(members->of) : 1);
    return count;
}

static bool read_members(napi_env env, const struct place *above, const struct member *members,
                         const double **numbers, char *raw)
{
    char text[96]; /* the longest are near 30 */
    for (const struct member *member = members; member->name; member++)
        for (uint32_t i = 0; i < member->count; i++) {
            struct place here = {above, member, i};
            char *place = raw + member->offset + i * member->size;
            if (member->of == character_members && **numbers == 0) {
                *numbers += count_numbers(character_members); /* absent: all else is ignored */
            } else if (member->of) {
                if (!read_members(env, &here, member->of, numbers, place)) return false;
            } else if (fits(member->kind, **numbers)) {
                store(member->kind, *(*numbers)++, place);
            } else {
                write_place(&here, text, sizeof text);
                return refuse_number(env, text, member->kind, **numbers);
            }
        }
    return true;
}

/* One row after another; numbers is read as far as that. */
static bool read_frames(napi_env env, napi_value value, int64_t count, exphil_melee_frame *frames)
{
    static const struct member one = {.name = "frame", .count = 1}, each = {.name = "frames", .count = 2};
    const exphil_melee_frame blank = EXPHIL_MELEE_FRAME_INIT;
    void *data;
    if (!array(env, value, napi_float64_array, count * count_numbers(frame_members), "frames", &data))
        return false;
    const double *numbers = data;
    for (int64_t i = 0; i < count; i++) {
        struct place here = {NULL, count == 1 ? &one : &each, (uint32_t)i};
        frames[i] = blank;
        if (!read_members(env, &here, frame_members, &numbers, (char *)&frames[i])) return false;
    }
    return true;
}

/* (session, numbers, room) -> [pad]. room holds the frames and the pads: numbers of eight bytes, so that both lie rightly. */
static napi_value melee_step(napi_env env, napi_callback_info info)
{
    napi_value value[3];
    struct handle *session;
    void *room;
    if (!arguments(env, info, 3, value) || !(session = handle_of(env, value[0], A_SESSION))) return NULL;
    int64_t bytes = session->streams * (int64_t)(sizeof(exphil_melee_frame) + sizeof(exphil_pad));
    if (!array(env, value[2], napi_float64_array, bytes / (int64_t)sizeof(double), "room", &room))
        return NULL;
    exphil_melee_frame *frames = room;
    exphil_pad *pads = (exphil_pad *)(void *)(frames + session->streams);
    if (!read_frames(env, value[1], session->streams, frames)) return NULL;
    exphil_status status = exphil_session_step(session->raw, frames, pads);
    if (status < 0) return session_done(env, session, status);
    return tell_list(env, pad_fields, pads, sizeof *pads, session->streams);
}

/* A name of a preset, or NULL when it is not given. */
static bool preset(napi_env env, napi_value value, const char *what, struct texts *texts, const char **name)
{
    *name = NULL;
    return !is_set(env, value) || (*name = keep_text(env, texts, value, what));
}

/* (layout, codec) -> spec, as exphil.js arranges one */
static napi_value melee_spec(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    const char *layout, *codec;
    bool found = arguments(env, info, 2, value) && preset(env, value[0], "layout", &texts, &layout) &&
                 preset(env, value[1], "codec", &texts, &codec) &&
                 check(env, exphil_melee_spec(layout, codec, &spec, &error), &error);
    drop_texts(&texts);
    return found ? tell_spec(env, &spec) : NULL;
}

/* How much a row of a layout, or an action of a codec, holds. */
struct sizes {
    char name[32]; /* "": of the default, which the library takes by no other name */
    bool known;
    int64_t floats, ids, heads;
};

/* Kept for each thread, for the library hashes a preset whenever it is told: 25 us. Where all are taken, or the name is too
 * long, it is asked every time. kept: of layouts, or of codecs; the other name is NULL. */
#define KEPT 4
static bool sizes_of(napi_env env, const char *layout, const char *codec, struct sizes *kept,
                     struct sizes *sizes)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *name = layout ? layout : codec ? codec : "";
    int i = 0;
    while (i < KEPT && kept[i].known && strcmp(kept[i].name, name)) i++;
    if (i < KEPT && kept[i].known) return *sizes = kept[i], true;
    if (!check(env, exphil_melee_spec(layout, codec, &spec, &error), &error)) return false;
    *sizes = (struct sizes){
        .known = true, .floats = spec.float_count, .ids = spec.id_count, .heads = spec.head_count};
    if (i == KEPT || strlen(name) >= sizeof sizes->name) return true;
    strcpy(sizes->name, name);
    return kept[i] = *sizes, true;
}

static _Thread_local struct sizes layouts[KEPT], codecs[KEPT];

/* (layout, numbers, floats, ids) */
static napi_value melee_encode(napi_env env, napi_callback_info info)
{
    napi_value value[4];
    exphil_melee_frame frame;
    struct sizes sizes;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    const char *layout;
    void *floats, *ids;
    if (arguments(env, info, 4, value) && preset(env, value[0], "layout", &texts, &layout) &&
        sizes_of(env, layout, NULL, layouts, &sizes) &&
        array(env, value[2], napi_float32_array, sizes.floats, "floats", &floats) &&
        array(env, value[3], napi_int32_array, sizes.ids, "ids", &ids) &&
        read_frames(env, value[1], 1, &frame))
        check(env, exphil_melee_encode(layout, &frame, floats, ids, &error), &error);
    drop_texts(&texts);
    return NULL;
}

/* (codec, pad, action): encode writes action, decode reads it and returns the pad. The pad first: its getters may take the
 * action's memory away. */
static napi_value melee_pad(napi_env env, napi_callback_info info, bool encode)
{
    napi_value value[3];
    exphil_pad pad = {0};
    struct sizes sizes;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    const char *codec;
    void *action;
    bool done = arguments(env, info, 3, value) && preset(env, value[0], "codec", &texts, &codec) &&
                fill(env, value[1], pad_fields, &pad, NULL) && sizes_of(env, NULL, codec, codecs, &sizes) &&
                array(env, value[2], napi_int32_array, sizes.heads, "action", &action) &&
                check(env,
                      encode ? exphil_melee_pad_encode(codec, &pad, action, &error)
                             : exphil_melee_pad_decode(codec, action, &pad, &error),
                      &error);
    drop_texts(&texts);
    return done && !encode ? tell(env, pad_fields, &pad) : NULL;
}

static napi_value pad_encode(napi_env env, napi_callback_info info)
{
    return melee_pad(env, info, true);
}

static napi_value pad_decode(napi_env env, napi_callback_info info)
{
    return melee_pad(env, info, false);
}

const struct entry melee_entries[] = {{"meleeShape", melee_shape},
                                      {"meleeStep", melee_step},
                                      {"meleeSpec", melee_spec},
                                      {"meleeEncode", melee_encode},
                                      {"meleePadEncode", pad_encode},
                                      {"meleePadDecode", pad_decode},
                                      {NULL, NULL}};
