/* exphil81 and exphil81-floor: a controller as eight buttons, four axes of 17 classes and a trigger of
 * five.
 *
 * exphil81 rounds to the nearest class, halves away from the centre, so that left and right mirror each other
 * and a full stick and a full trigger can be expressed. exphil81-floor is what ExPhil trains on: rounded
 * down, the last class of an axis and of the trigger never used (a full stick becomes 0.875, a full trigger
 * 0.75), for its checkpoints.
 *
 * Buttons are the physical ones. Start and the d-pad directions left, right and down cannot be expressed:
 * encoding drops them and decoding never sets them. The trigger is the processed value, whatever buttons are
 * down: L or R make the game read 1 and Z without them 0.35, so beside these buttons the class carries
 * nothing new. */
#include "melee/codec.h"

#include <math.h>

#define BUTTONS  8
#define CENTRE   8 /* class of an axis at rest; also classes on each side of it */
#define TRIGGERS 4 /* classes above 0 */

const exphil_head_spec xph_melee_heads[XPH_MELEE_HEADS] = {
    {"buttons", EXPHIL_BERNOULLI, BUTTONS, 0, 0},
    {"main_x", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"main_y", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"c_x", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"c_y", EXPHIL_CATEGORICAL, 2 * CENTRE + 1, CENTRE, 0},
    {"shoulder", EXPHIL_CATEGORICAL, TRIGGERS + 1, 0, 0},
};

static const char *const head_trouble[XPH_MELEE_HEADS] = {
    "action head buttons is out of range", "action head main_x is out of range",
    "action head main_y is out of range",  "action head c_x is out of range",
    "action head c_y is out of range",     "action head shoulder is out of range",
};

/* Bit i of the head is this button. */
static const uint32_t buttons[BUTTONS] = {
    EXPHIL_PAD_A, EXPHIL_PAD_B, EXPHIL_PAD_X, EXPHIL_PAD_Y,
    EXPHIL_PAD_Z, EXPHIL_PAD_L, EXPHIL_PAD_R, EXPHIL_PAD_D_UP,
};

static const xph_melee_codec codecs[] = {{"exphil81", 0}, {"exphil81-floor", 1}};

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

static int32_t encode_axis(const xph_melee_codec *codec, float value)
{
    if (codec->floor) return rounded_down(((double)value + 1) / 2, 2 * CENTRE);
    return CENTRE + nearest(value, CENTRE);
}

static int32_t encode_trigger(const xph_melee_codec *codec, float value)
{
    if (codec->floor) return rounded_down((double)value, TRIGGERS);
    return nearest(value < 0 ? 0 : value, TRIGGERS);
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
    int32_t pressed = 0;
    for (int32_t i = 0; i < BUTTONS; i++) pressed |= (int32_t)((pad->buttons & buttons[i]) != 0) << i;
    action[0] = pressed;
    action[1] = encode_axis(codec, pad->main_x);
    action[2] = encode_axis(codec, pad->main_y);
    action[3] = encode_axis(codec, pad->c_x);
    action[4] = encode_axis(codec, pad->c_y);
    action[5] = encode_trigger(codec, pad->trigger);
    return EXPHIL_OK;
}

/* Both codecs decode alike: a class is the value it is a multiple of. */
static float decode_axis(int32_t value)
{
    return (float)(value - CENTRE) / CENTRE;
}

exphil_status xph_melee_pad_decode(const xph_melee_codec *codec, const int32_t *action, exphil_pad *pad,
                                   const char **culprit)
{
    (void)codec;
    for (int32_t i = 0; i < XPH_MELEE_HEADS; i++) {
        int32_t limit = i ? xph_melee_heads[i].count : 1 << BUTTONS;
        if (action[i] >= 0 && action[i] < limit) continue;
        *culprit = head_trouble[i];
        return EXPHIL_E_INVALID;
    }
    *pad = (exphil_pad){0,
                        decode_axis(action[1]),
                        decode_axis(action[2]),
                        decode_axis(action[3]),
                        decode_axis(action[4]),
                        (float)action[5] / TRIGGERS};
    for (int32_t i = 0; i < BUTTONS; i++) {
        if (action[0] >> i & 1) pad->buttons |= buttons[i];
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
