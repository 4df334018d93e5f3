/* A controller as eight buttons, four axes and a trigger, each axis of 17 classes and the trigger of five, or of 33 and
 * eleven.
 *
 * exphil81 rounds to the nearest class, halves away from the centre, so that left and right mirror each other
 * and a full stick and a full trigger can be expressed. exphil81-floor is what ExPhil trains on: rounded
 * down, the last class of an axis and of the trigger never used (a full stick becomes 0.875, a full trigger
 * 0.75), for its checkpoints. slippi (17 and 5 classes) and slippi-fine (33 and 11) are what slippi-ai trains on
 * (slippi_ai/jax/embed.py): each button is a head of its own, which later ones can depend on, and halves are
 * rounded up.
 *
 * Buttons are the physical ones. Start and the d-pad directions left, right and down cannot be expressed:
 * encoding drops them and decoding never sets them. The trigger is the processed value, whatever buttons are
 * down: L or R make the game read 1 and Z without them 0.35, so beside these buttons the class carries
 * nothing new. */
#include "melee/codec.h"

#include <math.h>

#define BUTTONS       8
#define CENTRE        8 /* class of an axis at rest; also classes on each side of it */
#define TRIGGERS      4 /* classes above 0 */
#define FINE_CENTRE   16
#define FINE_TRIGGERS 10

const exphil_head_spec xph_melee_heads[XPH_MELEE_HEADS] = {
    {"buttons", EXPHIL_BERNOULLI, BUTTONS, 0, 0},
    {"main_x", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"main_y", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"c_x", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"c_y", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"shoulder", EXPHIL_CATEGORICAL, TRIGGERS + 1, 0, 0},
};

#define SLIPPI_BUTTONS                                                                                       \
  {"a", EXPHIL_BERNOULLI, 1, 0, 0}, {"b", EXPHIL_BERNOULLI, 1, 0, 0}, {"x", EXPHIL_BERNOULLI, 1, 0, 0},      \
      {"y", EXPHIL_BERNOULLI, 1, 0, 0}, {"z", EXPHIL_BERNOULLI, 1, 0, 0}, {"l", EXPHIL_BERNOULLI, 1, 0, 0},  \
      {"r", EXPHIL_BERNOULLI, 1, 0, 0},                                                                      \
  {                                                                                                          \
    "d_up", EXPHIL_BERNOULLI, 1, 0, 0                                                                        \
  }
#define SLIPPI_STICK(x, y, centre)                                                                           \
  {x, EXPHIL_CATEGORICAL, 2 * (centre) + 1, centre, 0},                                                      \
  {                                                                                                          \
    y, EXPHIL_CATEGORICAL, 2 * (centre) + 1, centre, 0                                                       \
  }

static const exphil_head_spec slippi_heads[XPH_SLIPPI_HEADS] = {
    SLIPPI_BUTTONS,
    SLIPPI_STICK("main_x", "main_y", CENTRE),
    SLIPPI_STICK("c_x", "c_y", CENTRE),
    {"shoulder", EXPHIL_CATEGORICAL, TRIGGERS + 1, 0, 0},
};
static const exphil_head_spec fine_heads[XPH_SLIPPI_HEADS] = {
    SLIPPI_BUTTONS,
    SLIPPI_STICK("main_x", "main_y", FINE_CENTRE),
    SLIPPI_STICK("c_x", "c_y", FINE_CENTRE),
    {"shoulder", EXPHIL_CATEGORICAL, FINE_TRIGGERS + 1, 0, 0},
};

#define TROUBLE(head) "action head " head " is out of range"
static const char *const head_trouble[XPH_MELEE_HEADS] = {
    TROUBLE("buttons"), TROUBLE("main_x"), TROUBLE("main_y"),
    TROUBLE("c_x"),     TROUBLE("c_y"),    TROUBLE("shoulder"),
};
static const char *const button_trouble[BUTTONS] = {
    TROUBLE("a"), TROUBLE("b"), TROUBLE("x"), TROUBLE("y"),
    TROUBLE("z"), TROUBLE("l"), TROUBLE("r"), TROUBLE("d_up"),
};

/* Bit i of the head, or head i, is this button. */
static const uint32_t buttons[BUTTONS] = {
    EXPHIL_PAD_A, EXPHIL_PAD_B, EXPHIL_PAD_X, EXPHIL_PAD_Y,
    EXPHIL_PAD_Z, EXPHIL_PAD_L, EXPHIL_PAD_R, EXPHIL_PAD_D_UP,
};

static const xph_melee_codec codecs[] = {
    {"exphil81", XPH_CODEC_NEAREST, 1, XPH_MELEE_HEADS, xph_melee_heads},
    {"exphil81-floor", XPH_CODEC_DOWN, 1, XPH_MELEE_HEADS, xph_melee_heads},
    {"slippi", XPH_CODEC_HALVES_UP, BUTTONS, XPH_SLIPPI_HEADS, slippi_heads},
    {"slippi-fine", XPH_CODEC_HALVES_UP, BUTTONS, XPH_SLIPPI_HEADS, fine_heads},
};

const xph_melee_codec *xph_melee_codec_find(const char *name)
{
    if (!name) return &codecs[0];
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (strcmp(codecs[i].name, name) == 0) return &codecs[i];
    }
    return NULL;
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Classes -n..n around rest, for a value that may lie beyond -1..1. Conversion to an integer cuts towards
 * 0. */
static int32_t nearest(float value, int32_t n)
{
    double at = clamp((double)value, -1, 1) * n;
    return (int32_t)(at < 0 ? at - 0.5 : at + 0.5);
}

/* floor(value * classes) of a value in 0..1, the last class left out. */
static int32_t rounded_down(double value, int32_t classes)
{
    return (int32_t)clamp(value * classes, 0, classes - 1);
}

/* The class of a value in 0..1 whose multiple of 1 / n lies nearest, of two the higher one; in single precision, as
 * slippi-ai has it, where 0.35 of 10 is a half. */
static int32_t halves_up(float value, int32_t n)
{
    float held = value > 0 ? value < 1 ? value : 1 : 0;
    return (int32_t)(held * (float)n + 0.5f);
}

/* count: classes of the head. */
static int32_t encode_axis(const xph_melee_codec *codec, float value, int32_t count)
{
    if (codec->rounding == XPH_CODEC_DOWN) return rounded_down(((double)value + 1) / 2, count - 1);
    if (codec->rounding == XPH_CODEC_HALVES_UP) return halves_up(value / 2 + 0.5f, count - 1);
    return count / 2 + nearest(value, count / 2);
}

static int32_t encode_trigger(const xph_melee_codec *codec, float value, int32_t count)
{
    if (codec->rounding == XPH_CODEC_DOWN) return rounded_down((double)value, count - 1);
    if (codec->rounding == XPH_CODEC_HALVES_UP) return halves_up(value, count - 1);
    return nearest(value < 0 ? 0 : value, count - 1);
}

static const char *pad_trouble(const exphil_pad *pad)
{
    if (!isfinite(pad->main_x)) return "pad.main_x is not finite";
    if (!isfinite(pad->main_y)) return "pad.main_y is not finite";
    if (!isfinite(pad->c_x)) return "pad.c_x is not finite";
    if (!isfinite(pad->c_y)) return "pad.c_y is not finite";
    if (!isfinite(pad->trigger)) return "pad.trigger is not finite";
    return NULL;
}

exphil_status xph_melee_pad_encode(const xph_melee_codec *codec, const exphil_pad *pad, int32_t *action,
                                   const char **culprit)
{
    const char *trouble = pad_trouble(pad);
    if (trouble) {
        *culprit = trouble;
        return EXPHIL_E_NUMERIC;
    }
    const exphil_head_spec *axis = codec->heads + codec->buttons;
    int32_t *values = action + codec->buttons;
    memset(action, 0, (size_t)codec->buttons * sizeof *action);
    for (int32_t i = 0; i < BUTTONS; i++) {
        int32_t down = (pad->buttons & buttons[i]) != 0;
        if (codec->buttons == 1)
            action[0] |= down << i;
        else
            action[i] = down;
    }
    values[0] = encode_axis(codec, pad->main_x, axis[0].count);
    values[1] = encode_axis(codec, pad->main_y, axis[1].count);
    values[2] = encode_axis(codec, pad->c_x, axis[2].count);
    values[3] = encode_axis(codec, pad->c_y, axis[3].count);
    values[4] = encode_trigger(codec, pad->trigger, axis[4].count);
    return EXPHIL_OK;
}

/* All codecs decode alike: a class is the value it is a multiple of. */
static float decode_axis(int32_t value, int32_t count)
{
    int32_t centre = count / 2;
    return (float)(value - centre) / (float)centre;
}

/* NULL, or which head's value is out of range. */
static const char *action_trouble(const xph_melee_codec *codec, const int32_t *action)
{
    for (int32_t i = 0; i < codec->head_count; i++) {
        const exphil_head_spec *head = &codec->heads[i];
        int32_t limit = head->kind == EXPHIL_BERNOULLI ? 1 << head->count : head->count;
        if (action[i] >= 0 && action[i] < limit) continue;
        if (codec->buttons == 1) return head_trouble[i];
        return i < BUTTONS ? button_trouble[i] : head_trouble[i - BUTTONS + 1];
    }
    return NULL;
}

exphil_status xph_melee_pad_decode(const xph_melee_codec *codec, const int32_t *action, exphil_pad *pad,
                                   const char **culprit)
{
    const char *trouble = action_trouble(codec, action);
    if (trouble) {
        *culprit = trouble;
        return EXPHIL_E_INVALID;
    }
    const exphil_head_spec *axis = codec->heads + codec->buttons;
    const int32_t *values = action + codec->buttons;
    *pad = (exphil_pad){0,
                        decode_axis(values[0], axis[0].count),
                        decode_axis(values[1], axis[1].count),
                        decode_axis(values[2], axis[2].count),
                        decode_axis(values[3], axis[3].count),
                        (float)values[4] / (float)(axis[4].count - 1)};
    for (int32_t i = 0; i < BUTTONS; i++) {
        bool down = codec->buttons == 1 ? (action[0] >> i & 1) != 0 : action[i] != 0;
        if (down) pad->buttons |= buttons[i];
    }
    return EXPHIL_OK;
}

/* ---- public -------------------------------------------------------------------------------------------- */

static exphil_status find(const char *name, const void *pad, const void *action,
                          const xph_melee_codec **codec, exphil_error *error)
{
    *codec = xph_melee_codec_find(name);
    if (!*codec) return xph_fail(error, EXPHIL_E_INVALID, "codec \"%s\" is unknown", name);
    if (!pad) return xph_fail(error, EXPHIL_E_INVALID, "pad is NULL");
    if (!action) return xph_fail(error, EXPHIL_E_INVALID, "action is NULL");
    return EXPHIL_OK;
}

exphil_status exphil_melee_pad_encode(const char *codec, const exphil_pad *pad, int32_t *action,
                                      exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_melee_codec *found;
    XPH_TRY(find(codec, pad, action, &found, error));
    const char *culprit = "";
    exphil_status status = xph_melee_pad_encode(found, pad, action, &culprit);
    return status < 0 ? xph_fail(error, status, "%s", culprit) : status;
}

exphil_status exphil_melee_pad_decode(const char *codec, const int32_t *action, exphil_pad *pad,
                                      exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_melee_codec *found;
    XPH_TRY(find(codec, pad, action, &found, error));
    const char *culprit = "";
    exphil_status status = xph_melee_pad_decode(found, action, pad, &culprit);
    return status < 0 ? xph_fail(error, status, "%s", culprit) : status;
}
