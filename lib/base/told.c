/* What a policy is told beside the frame, checked and copied in one place, for models, sampling and
 * sessions. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define VALUES_MOST 65535
#define WIDTH_MOST  256
#define WIDTH_USUAL 8
#define DELAY_MOST  64

/* ---- taking -------------------------------------------------------------------------------------------- */

static exphil_status check_condition(const exphil_condition_spec *list, int64_t index, const char *of,
                                     exphil_error *error)
{
    const exphil_condition_spec *c = &list[index];
    if (!xph_name_fine(c->name))
        return xph_fail(error, EXPHIL_E_INVALID, "%s.conditions[%d].name must be 1..31 of [a-z0-9_.]", of,
                        (int)index);
    if (c->values < 1 || c->values > VALUES_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "%s.conditions[%d] %s: values is %d, must be 1..%d", of,
                        (int)index, c->name, (int)c->values, VALUES_MOST);
    if (c->width < 0 || c->width > WIDTH_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "%s.conditions[%d] %s: width is %d, must be 0..%d", of,
                        (int)index, c->name, (int)c->width, WIDTH_MOST);
    if (!(c->mask >= 0.0 && c->mask <= 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "%s.conditions[%d] %s: mask must lie in 0..1", of,
                        (int)index, c->name);
    for (int64_t i = 0; i < index; i++)
        if (strcmp(list[i].name, c->name) == 0)
            return xph_fail(error, EXPHIL_E_INVALID, "%s.conditions[%d] and [%d] are both called %s", of,
                            (int)i, (int)index, c->name);
    return EXPHIL_OK;
}

static exphil_status check_delays(const int32_t *delays, int64_t count, int32_t delay_frames, const char *of,
                                  exphil_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        if (delays[i] < 0 || delays[i] > DELAY_MOST)
            return xph_fail(error, EXPHIL_E_INVALID, "%s.delays[%d] is %d, must be 0..%d", of, (int)i,
                            (int)delays[i], DELAY_MOST);
        if (i && delays[i] <= delays[i - 1])
            return xph_fail(error, EXPHIL_E_INVALID, "%s.delays[%d] is %d after %d: they must ascend", of,
                            (int)i, (int)delays[i], (int)delays[i - 1]);
    }
    if (count && delay_frames && delay_frames != delays[count - 1])
        return xph_fail(error, EXPHIL_E_INVALID,
                        "%s.delay_frames is %d, must be 0 or the longest of delays, %d", of,
                        (int)delay_frames, (int)delays[count - 1]);
    return EXPHIL_OK;
}

static exphil_status check_count(int64_t count, int64_t most, const void *list, const char *field,
                                 const char *of, exphil_error *error)
{
    if (count < 0 || count > most)
        return xph_fail(error, EXPHIL_E_INVALID, "%s.%s_count is %lld, must be 0..%lld", of, field,
                        (long long)count, (long long)most);
    if (count && !list) return xph_fail(error, EXPHIL_E_INVALID, "%s.%ss is NULL", of, field);
    return EXPHIL_OK;
}

exphil_status xph_told_take(xph_told *told, const exphil_condition_spec *conditions, int64_t condition_count,
                            const int32_t *delays, int64_t delay_count, int32_t *delay_frames, const char *of,
                            exphil_error *error)
{
    XPH_TRY(check_count(condition_count, EXPHIL_CONDITIONS_MAX, conditions, "condition", of, error));
    XPH_TRY(check_count(delay_count, EXPHIL_DELAYS_MAX, delays, "delay", of, error));
    for (int64_t i = 0; i < condition_count; i++) XPH_TRY(check_condition(conditions, i, of, error));
    XPH_TRY(check_delays(delays, delay_count, *delay_frames, of, error));
    memset(told, 0, sizeof *told);
    for (int64_t i = 0; i < condition_count; i++) {
        exphil_condition_spec *c = &told->condition[i];
        *c = conditions[i];
        c->name = told->name[i];
        memcpy(told->name[i], conditions[i].name, strlen(conditions[i].name) + 1);
        if (!c->width) c->width = WIDTH_USUAL;
    }
    if (delay_count) memcpy(told->delay, delays, (size_t)delay_count * sizeof *delays);
    if (delay_count) *delay_frames = delays[delay_count - 1];
    told->conditions = condition_count;
    told->delays = delay_count;
    return EXPHIL_OK;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

exphil_status xph_told_check(const xph_told *told, const int32_t *values, int64_t count, const char *of,
                             exphil_error *error)
{
    if (!values && !count) return EXPHIL_OK;
    if (!values) return xph_fail(error, EXPHIL_E_INVALID, "%sconditions is NULL", of);
    if (count != told->conditions)
        return xph_fail(error, EXPHIL_E_INVALID, "%scondition_count is %lld, the model has %lld", of,
                        (long long)count, (long long)told->conditions);
    for (int64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] > told->condition[i].values)
            return xph_fail(error, EXPHIL_E_INVALID, "%sconditions[%d] %s is %d, outside 0..%d", of, (int)i,
                            told->condition[i].name, (int)values[i], (int)told->condition[i].values);
    return EXPHIL_OK;
}

const char *xph_told_delays(const xph_told *told, char text[XPH_DELAYS_TEXT])
{
    size_t at = 0;
    text[0] = 0;
    for (int64_t i = 0; i < told->delays; i++)
        at +=
            (size_t)snprintf(text + at, (size_t)XPH_DELAYS_TEXT - at, i ? ", %d" : "%d", (int)told->delay[i]);
    return text;
}

exphil_status xph_told_delay(const xph_told *told, int32_t delay, int32_t *id, exphil_error *error)
{
    char text[XPH_DELAYS_TEXT];
    for (int64_t i = 0; i < told->delays; i++) {
        if (told->delay[i] != delay) continue;
        *id = (int32_t)i + 1;
        return EXPHIL_OK;
    }
    *id = 0;
    if (!told->delays) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "delay_frames is %d, the model was trained with %s", (int)delay,
                    xph_told_delays(told, text));
}

exphil_status xph_told_same(const xph_told *told, const xph_told *other, const char *whose,
                            const char *others, exphil_error *error)
{
    char own[XPH_DELAYS_TEXT], its[XPH_DELAYS_TEXT];
    if (told->conditions != other->conditions)
        return xph_fail(error, EXPHIL_E_MISMATCH, "%s condition_count is %lld, %s %lld", whose,
                        (long long)told->conditions, others, (long long)other->conditions);
    for (int64_t i = 0; i < told->conditions; i++) {
        const exphil_condition_spec *a = &told->condition[i], *b = &other->condition[i];
        if (strcmp(a->name, b->name) != 0 || a->values != b->values)
            return xph_fail(error, EXPHIL_E_MISMATCH, "%s conditions[%d] is %s with %d values, %s %s with %d",
                            whose, (int)i, a->name, (int)a->values, others, b->name, (int)b->values);
    }
    if (told->delays == other->delays && memcmp(told->delay, other->delay, sizeof told->delay) == 0)
        return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "%s delays are {%s}, %s {%s}", whose,
                    xph_told_delays(told, own), others, xph_told_delays(other, its));
}
