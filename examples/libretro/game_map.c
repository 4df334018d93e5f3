/* From a game's memory to a policy's row, and from a policy's action to buttons and back. */
#include "game_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory -> values ---- */

static double digits_of(const struct game_field *field, const uint8_t *bytes)
{
    double value = 0;
    for (int i = 0; i < field->bytes; i++)
        value = field->form == 'd' ? value * 10 + (bytes[i] & 15)
                                   : value * 100 + (bytes[i] >> 4) * 10 + (bytes[i] & 15);
    return value;
}

static double value_of(const struct game_field *field, const uint8_t *bytes)
{
    uint32_t bits = 0;
    if (field->form == 'b' || field->form == 'd') return digits_of(field, bytes);
    for (int i = 0; i < field->bytes; i++) bits = bits << 8 | bytes[field->big ? i : field->bytes - 1 - i];
    if (field->form == 'f') {
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    if (field->mask) return (double)((bits & field->mask) / (field->mask & (~field->mask + 1)));
    uint32_t sign = 1u << (8 * field->bytes - 1);
    if (field->form == 's' && (bits & sign)) return (double)bits - 2.0 * (double)sign;
    return (double)bits;
}

int game_map_read(const struct game_map *map, game_memory_fn memory, void *user, double *values, int *missing)
{
    for (int i = 0; i < map->fields; i++) {
        const uint8_t *bytes = memory(user, map->field[i].address, (uint32_t)map->field[i].bytes);
        *missing = i;
        if (!bytes) return -1;
        values[i] = value_of(&map->field[i], bytes);
    }
    return 0;
}

static int holds(const struct game_condition *condition, double value)
{
    switch (condition->same) {
    case 0:
        return value != condition->value;
    case 1:
        return value == condition->value;
    case 2:
        return value < condition->value;
    default:
        return value > condition->value;
    }
}

enum { ALL_HOLD = -2, NO_MAGIC = -1 };

/* The index of the first condition that does not hold, or one of the two above. */
static int first_unmet(const struct game_map *map, game_memory_fn memory, void *user, const double *values)
{
    if (map->magic_bytes) {
        const uint8_t *bytes = memory(user, map->magic_address, (uint32_t)map->magic_bytes);
        if (!bytes || memcmp(bytes, map->magic, (size_t)map->magic_bytes) != 0) return NO_MAGIC;
    }
    for (int i = 0; i < map->conditions; i++)
        if (!holds(&map->condition[i], values[map->condition[i].field])) return i;
    return ALL_HOLD;
}

int game_map_ready(const struct game_map *map, game_memory_fn memory, void *user, const double *values)
{
    return first_unmet(map, memory, user, values) == ALL_HOLD;
}

void game_map_unready(const struct game_map *map, game_memory_fn memory, void *user, const double *values,
                      char *why, size_t why_bytes)
{
    static const char *const signs[] = {"!=", "=", "<", ">"};
    int unmet = first_unmet(map, memory, user, values);
    const struct game_condition *condition = &map->condition[unmet >= 0 ? unmet : 0];
    if (unmet >= 0)
        snprintf(why, why_bytes, "%.600s:%d: 'when %s %s %g' does not hold", map->path, condition->line,
                 map->field[condition->field].name, signs[condition->same], condition->value);
    else if (unmet == NO_MAGIC)
        snprintf(why, why_bytes,
                 "%.600s:%d: the bytes at 0x%04lX are not %s: another game, or another 'memory'?", map->path,
                 map->magic_line, (unsigned long)map->magic_address, map->magic_text);
    else
        *why = 0;
}

int game_map_over(const struct game_map *map, const double *values)
{
    const struct game_condition *over = map->goals.over;
    for (int i = 0; i < map->goals.overs; i++)
        if (holds(&over[i], values[over[i].field])) return 1;
    return 0;
}

int game_map_row(const struct game_map *map, const double *values, float *floats, int32_t *ids, int *wrong)
{
    for (int i = 0; i < map->fields; i++) {
        const struct game_field *field = &map->field[i];
        *wrong = i;
        if (field->kind == FIELD_FLOAT) {
            *floats = (float)(values[i] * field->scale + field->offset);
            if (!isfinite(*floats++)) return -1;
        } else if (field->kind == FIELD_ID) {
            if (!(values[i] >= 0 && values[i] < field->entries)) return -1;
            *ids++ = (int32_t)values[i];
        }
    }
    return 0;
}

int64_t game_map_points(double value, double *before)
{
    double gain = value >= *before ? value - *before : value;
    if (!(fabs(gain) <= 4294967296.0)) return 0;
    *before = value;
    return (int64_t)gain;
}

/* ---- actions <-> presses ---- */

static void add_press(struct game_press *press, const struct game_press *more)
{
    press->buttons |= more->buttons;
    press->given |= more->given;
    for (int i = 0; i < GAME_MAP_AXES; i++)
        if (more->given & 1u << i) press->axis[i] = more->axis[i];
}

void game_map_press(const struct game_map *map, const int32_t *action, struct game_press *press)
{
    memset(press, 0, sizeof *press);
    for (int h = 0; h < map->heads; h++) {
        const struct game_head *head = &map->head[h];
        if (head->kind == EXPHIL_CATEGORICAL) {
            add_press(press, &head->press[action[h]]);
            continue;
        }
        for (int bit = 0; bit < head->count; bit++)
            if (action[h] & 1 << bit) add_press(press, &head->press[bit]);
    }
}

/* How far what is held lies from a press, in what the head answers for: 1 for a button, and for an axis from end to end. */
static double distance(const struct game_head *head, const struct game_press *press,
                       const struct game_press *held)
{
    double sum = 0;
    unsigned other = (unsigned)((press->buttons ^ held->buttons) & head->buttons);
    for (; other; other &= other - 1) sum++;
    for (int i = 0; i < GAME_MAP_AXES; i++) {
        if (!(head->axes & 1u << i)) continue;
        double off = (press->axis[i] - held->axis[i]) / 65534.0;
        sum += off * off;
    }
    return sum;
}

/* The nearest class; of equals the lowest. */
static int32_t class_of(const struct game_head *head, const struct game_press *held)
{
    int32_t best = 0;
    for (int32_t i = 1; i < head->count; i++)
        if (distance(head, &head->press[i], held) < distance(head, &head->press[best], held)) best = i;
    return best;
}

/* A bit is set when all of its buttons are held and each of its axes is at least half as far out. */
static int bit_held(const struct game_press *press, const struct game_press *held)
{
    if ((press->buttons & held->buttons) != press->buttons || !(press->buttons || press->given)) return 0;
    for (int i = 0; i < GAME_MAP_AXES; i++) {
        if (!(press->given & 1u << i)) continue;
        if (press->axis[i] * held->axis[i] <= 0 || abs(held->axis[i]) * 2 < abs(press->axis[i])) return 0;
    }
    return 1;
}

void game_map_action(const struct game_map *map, const struct game_press *held, int32_t *action)
{
    for (int h = 0; h < map->heads; h++) {
        const struct game_head *head = &map->head[h];
        action[h] = head->kind == EXPHIL_CATEGORICAL ? class_of(head, held) : 0;
        for (int bit = 0; head->kind == EXPHIL_BERNOULLI && bit < head->count; bit++)
            if (bit_held(&head->press[bit], held)) action[h] |= 1 << bit;
    }
}

void game_map_owned(const struct game_map *map, uint16_t *buttons, uint8_t *axes)
{
    *buttons = 0;
    *axes = 0;
    for (int h = 0; h < map->heads; h++) {
        *buttons |= map->head[h].buttons;
        *axes |= map->head[h].axes;
    }
}
