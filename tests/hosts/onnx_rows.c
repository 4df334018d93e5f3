/* Draws frames of Melee and encodes them by the installed library, in every layout:
 *   onnx_rows FOLDER FRAMES      frames: a line of JSON each, the fields of exphil_melee_frame; LAYOUT.rows: of each frame the
 *                                floats, then the ids; LAYOUT.onnx: a policy of this layout */
#include <inttypes.h>
#include <string.h>

#define PROGRAM "onnx_rows"
#include "../data/policy_draw.h"

static const char *const layouts[] = {"melee2", "exphil288", "slippi", "slippi-nana"};
enum { LAYOUTS = 4, YOSHIS = 8, CLOUD_PERIOD = 1200, CLOUD_STRAIGHT = 416 };

static int32_t below(int32_t limit)
{
    return (int32_t)(draw() % (uint32_t)limit);
}

/* ---- a frame --------------------------------------------------------------------------------------------- */

/* All numbers that some table knows, and a few beyond. */
static void draw_character(exphil_melee_character *c, int32_t present)
{
    float *const numbers[] = {
        &c->x,           &c->y,       &c->percent,        &c->shield,         &c->misc,          &c->hitlag,
        &c->speed_air_x, &c->speed_y, &c->speed_attack_x, &c->speed_attack_y, &c->speed_ground_x};
    c->present = present;
    c->known = below(3) ? EXPHIL_MELEE_HAS_ALL : (uint32_t)below(32);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = draw_float(150.0f);
    c->facing = (float)(below(3) - 1);
    c->state_age = draw_float(80.0f) / (float)(1 + below(20));
    c->action_state = (uint16_t)(below(3) ? below(420) : 197 + below(6));
    c->character = (uint8_t)below(40);
    c->stocks = (uint8_t)below(6);
    c->last_attack = (uint8_t)below(70);
    c->combo = (uint8_t)below(30);
    c->airborne = (uint8_t)below(2);
    c->jumps = (uint8_t)below(10);
    c->l_cancel = (uint8_t)below(4);
    c->hurtbox = (uint8_t)below(5);
    for (int i = 0; i < 5; i++) c->flags[i] = (uint8_t)below(256);
}

static void draw_item(exphil_melee_item *item, uint32_t spawn)
{
    float *const numbers[] = {&item->x, &item->y, &item->speed_x, &item->speed_y, &item->timer};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = draw_float(120.0f);
    item->facing = (float)(below(3) - 1);
    item->spawn_id = spawn;
    item->type = (uint16_t)below(300);
    item->damage = (uint16_t)below(200);
    item->state = (uint8_t)below(50);
    item->owner = (int8_t)(below(5) - 1);
}

/* On Yoshi's Story while the cloud is below the stage, where a line says its place. */
static void draw_frame(exphil_melee_frame *f)
{
    static const int32_t stages[] = {2, 3, 8, 28, 31, 32, 3, 28, 4, 0, 33, -1, 127, 300};
    f->stage = stages[below(sizeof stages / sizeof *stages)];
    f->frame = below(30000) - 123;
    if (f->stage == YOSHIS) f->frame = CLOUD_PERIOD * below(20) + below(CLOUD_STRAIGHT);
    f->own_port = 1 + below(4);
    f->opponent_port = 1 + (f->own_port + below(3)) % 4;
    for (int32_t i = 0; i < 4; i++) {
        draw_character(&f->player[i], i + 1 == f->own_port || below(4) != 0);
        draw_character(&f->follower[i], below(2));
    }
    f->platform_left = draw_float(80.0f);
    f->platform_right = draw_float(80.0f);
    f->wind = below(4);
    f->stadium_kind = below(12) - 1;
    f->stadium_event = below(9) - 1;
    f->item_count = below(8);
    for (int32_t i = 0; i < f->item_count; i++) draw_item(&f->item[i], (uint32_t)i);
}

/* ---- as JSON --------------------------------------------------------------------------------------------- */

static void put_character(FILE *file, const exphil_melee_character *c)
{
    fprintf(file, "{\"present\":%d,\"known\":%u,\"x\":%.17g,\"y\":%.17g,\"facing\":%.17g,\"percent\":%.17g,",
            c->present, c->known, (double)c->x, (double)c->y, (double)c->facing, (double)c->percent);
    fprintf(file, "\"shield\":%.17g,\"state_age\":%.17g,\"misc\":%.17g,\"hitlag\":%.17g,", (double)c->shield,
            (double)c->state_age, (double)c->misc, (double)c->hitlag);
    fprintf(file, "\"speed_air_x\":%.17g,\"speed_y\":%.17g,\"speed_attack_x\":%.17g,", (double)c->speed_air_x,
            (double)c->speed_y, (double)c->speed_attack_x);
    fprintf(file, "\"speed_attack_y\":%.17g,\"speed_ground_x\":%.17g,", (double)c->speed_attack_y,
            (double)c->speed_ground_x);
    fprintf(file, "\"state\":%d,\"character\":%d,\"stocks\":%d,\"last_attack\":%d,\"combo\":%d,",
            c->action_state, c->character, c->stocks, c->last_attack, c->combo);
    fprintf(file, "\"airborne\":%d,\"jumps\":%d,\"l_cancel\":%d,\"hurtbox\":%d,\"flags\":[%d,%d,%d,%d,%d]}",
            c->airborne, c->jumps, c->l_cancel, c->hurtbox, c->flags[0], c->flags[1], c->flags[2],
            c->flags[3], c->flags[4]);
}

static void put_item(FILE *file, const exphil_melee_item *i)
{
    fprintf(file,
            "{\"x\":%.17g,\"y\":%.17g,\"facing\":%.17g,\"speed_x\":%.17g,\"speed_y\":%.17g,\"timer\":%.17g,",
            (double)i->x, (double)i->y, (double)i->facing, (double)i->speed_x, (double)i->speed_y,
            (double)i->timer);
    fprintf(file, "\"spawn\":%u,\"type\":%d,\"damage\":%d,\"state\":%d,\"owner\":%d}", i->spawn_id, i->type,
            i->damage, i->state, i->owner);
}

static void put_frame(FILE *file, const exphil_melee_frame *f)
{
    fprintf(file, "{\"frame\":%d,\"stage\":%d,\"own_port\":%d,\"opponent_port\":%d,\"platform_left\":%.17g,",
            f->frame, f->stage, f->own_port, f->opponent_port, (double)f->platform_left);
    fprintf(file, "\"platform_right\":%.17g,\"wind\":%d,\"stadium_kind\":%d,\"stadium_event\":%d",
            (double)f->platform_right, f->wind, f->stadium_kind, f->stadium_event);
    for (int follower = 0; follower < 2; follower++) {
        fprintf(file, ",\"%s\":[", follower ? "follower" : "player");
        for (int i = 0; i < 4; i++) {
            if (i) fputc(',', file);
            put_character(file, follower ? &f->follower[i] : &f->player[i]);
        }
        fputc(']', file);
    }
    fprintf(file, ",\"items\":[");
    for (int32_t i = 0; i < f->item_count; i++) {
        if (i) fputc(',', file);
        put_item(file, &f->item[i]);
    }
    fprintf(file, "]}\n");
}

/* ---- files ----------------------------------------------------------------------------------------------- */

static FILE *created(const char *folder, const char *name, const char *end)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    FILE *file = fopen(path, "wb");
    if (!file) exit(1);
    return file;
}

static void write_policy(exphil_context *context, const char *folder, const char *layout)
{
    char path[1024];
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    must(exphil_melee_spec(layout, NULL, &spec, &error), layout);
    config.spec = &spec;
    config.blocks = "mlp";
    config.hidden = 8;
    must(exphil_model_create(context, &config, &model, &error), layout);
    snprintf(path, sizeof path, "%s/%s.onnx", folder, layout);
    must(exphil_model_export_onnx(model, path, &error), path);
    exphil_model_destroy(model);
}

static void write_row(FILE *file, const char *layout, const exphil_melee_frame *frame)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    must(exphil_melee_spec(layout, NULL, &spec, &error), layout);
    float *floats = zeroed(spec.float_count, sizeof *floats);
    int32_t *ids = zeroed(spec.id_count, sizeof *ids);
    must(exphil_melee_encode(layout, frame, floats, ids, &error), layout);
    if (fwrite(floats, sizeof *floats, (size_t)spec.float_count, file) != (size_t)spec.float_count ||
        fwrite(ids, sizeof *ids, (size_t)spec.id_count, file) != (size_t)spec.id_count)
        exit(1);
    free(floats);
    free(ids);
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    FILE *rows[LAYOUTS], *frames;
    if (argc != 3) return 2;
    must(exphil_context_create(NULL, &context, &error), "context");
    frames = created(argv[1], "frames", "");
    for (int i = 0; i < LAYOUTS; i++) {
        write_policy(context, argv[1], layouts[i]);
        rows[i] = created(argv[1], layouts[i], ".rows");
    }
    for (int64_t t = strtoll(argv[2], NULL, 10); t > 0; t--) {
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        draw_frame(&frame);
        put_frame(frames, &frame);
        for (int i = 0; i < LAYOUTS; i++) write_row(rows[i], layouts[i], &frame);
    }
    for (int i = 0; i < LAYOUTS; i++)
        if (fclose(rows[i])) return 1;
    exphil_context_destroy(context);
    return fclose(frames) != 0;
}
