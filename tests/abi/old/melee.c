/* The old program, Melee: the encoder, a replay that it writes itself, read whole and as a stream, imported and played. */
#include "old.h"
#include "slp_writer.h"

#define STREAMS 2
#define LAST    40

static void put_f32(uint8_t *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(bits >> (24 - 8 * i));
}

/* Two humans, Fox and Falco, on Battlefield; recorder 1.0.0: pre-frame and post-frame events alone. */
static void write_replay(slp_writer *writer)
{
    static const uint8_t characters[4] = {2, 20, 0, 0}, types[4] = {0, 0, 3, 3};
    slp_begin(writer, &slp_layouts[1], false);
    slp_head(writer, &slp_layouts[1]);
    uint8_t *start = writer->data + writer->bytes - 1 - writer->size[0x36];
    start[0x0D] = 0, start[0x13] = 0, start[0x14] = 31;
    for (int port = 0; port < 4; port++) {
        start[0x65 + 0x24 * port] = characters[port];
        start[0x66 + 0x24 * port] = types[port];
    }
    for (int32_t frame = -5; frame <= LAST; frame++) {
        for (uint32_t port = 0; port < 2; port++) {
            uint8_t *pre = slp_event(writer, 0x37, frame, 2 * port);
            memset(pre + 7, 0, writer->size[0x37] - 6u);
            put_f32(pre + 0x19, (float)((frame + 207) % 9 - 4) / 4);
            pre[0x31] = frame % 2 ? 0 : 1;
        }
        for (uint32_t port = 0; port < 2; port++) {
            uint8_t *post = slp_event(writer, 0x38, frame, 2 * port);
            memset(post + 7, 0, writer->size[0x38] - 6u);
            post[7] = 1;
            put_f32(post + 0x0A, (float)frame + 10 * (float)port);
            put_f32(post + 0x12, 1);
            put_f32(post + 0x1A, 60);
            post[0x21] = 4;
        }
    }
    slp_close(writer, LAST);
}

static exphil_spec *melee_spec(void)
{
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    DONE(exphil_melee_spec(NULL, NULL, spec, error));
    uint64_t hash = exphil_spec_hash(spec);
    digest(&hash, sizeof hash);
    for (int64_t i = 0; i < exphil_melee_field_count(NULL); i++) {
        exphil_melee_field *field = EDGE(exphil_melee_field, EXPHIL_MELEE_FIELD_INIT);
        DONE(exphil_melee_field_get(NULL, i, field, error));
        DIGEST(field);
    }
    digest_end("layout");
    return spec;
}

static void encode(const exphil_spec *spec, const exphil_melee_frame *frame)
{
    static float floats[4096];
    static int32_t ids[EXPHIL_IDS_MAX];
    DIGEST(frame);
    DONE(exphil_melee_encode(NULL, frame, floats, ids, error));
    digest(floats, (size_t)spec->float_count * sizeof *floats);
    digest(ids, (size_t)spec->id_count * sizeof *ids);
}

static exphil_melee_frame *read_replay(exphil_context *context, const exphil_spec *spec,
                                       const slp_writer *writer)
{
    exphil_slp_config *config = EDGE(exphil_slp_config, EXPHIL_SLP_CONFIG_INIT);
    exphil_slp_info *info = EDGE(exphil_slp_info, EXPHIL_SLP_INFO_INIT);
    exphil_melee_frame *frame = EDGE(exphil_melee_frame, EXPHIL_MELEE_FRAME_INIT);
    exphil_slp *slp = NULL, *opened = NULL;
    config->rollback = EXPHIL_SLP_FIRST;
    DONE(exphil_slp_read(context, writer->data, writer->bytes, config, &slp, error));
    DONE(exphil_slp_open(context, REPLAY, config, &opened, error));
    DONE(exphil_slp_query(opened, info, error));
    CHECK(info->rollback == EXPHIL_SLP_FIRST && info->frame_count == exphil_slp_frame_count(slp));
    DIGEST(info);
    for (int64_t at = 0; at < info->frame_count; at++) {
        DONE(exphil_slp_melee_frame(slp, at, 1, 2, frame, error));
        encode(spec, frame);
    }
    digest_end("replay");
    exphil_slp_destroy(slp);
    exphil_slp_destroy(opened);
    return frame;
}

static void read_stream(exphil_context *context, const slp_writer *writer)
{
    exphil_slp_info *info = EDGE(exphil_slp_info, EXPHIL_SLP_INFO_INIT);
    exphil_melee_frame *frame = EDGE(exphil_melee_frame, EXPHIL_MELEE_FRAME_INIT);
    exphil_slp_stream *stream = NULL;
    size_t at = 0, used = 0;
    exphil_status status = EXPHIL_OK;
    DONE(exphil_slp_stream_create(context, &stream, error));
    while (status == EXPHIL_OK) {
        status = exphil_slp_stream_push(stream, writer->data + at, writer->bytes - at, &used, error);
        at += used;
        if (status != EXPHIL_OK) break;
        DONE(exphil_slp_stream_melee_frame(stream, 2, 0, frame, error));
        DIGEST(frame);
    }
    CHECK(status >= 0 && frame->own_port == 2);
    DONE(exphil_slp_stream_query(stream, info, error));
    DIGEST(info);
    digest_end("stream");
    exphil_slp_stream_destroy(stream);
}

static exphil_dataset *import(exphil_context *context, const slp_writer *writer)
{
    exphil_replay_config *config = EDGE(exphil_replay_config, EXPHIL_REPLAY_CONFIG_INIT);
    exphil_replay_result *result = EDGE(exphil_replay_result, EXPHIL_REPLAY_RESULT_INIT);
    exphil_dataset *dataset = NULL;
    config->character = "falco";
    DONE(exphil_dataset_create(context, NULL, &dataset, error));
    DONE(exphil_dataset_add_replay_memory(dataset, writer->data, writer->bytes, config, result, error));
    CHECK(result->episodes == 1 && result->frames == LAST + 1);
    DIGEST(result);
    DONE(exphil_dataset_add_replay(dataset, REPLAY, config, result, error));
    DIGEST(result);
    digest_end("imported");
    return dataset;
}

static exphil_model *make_model(exphil_context *context, const exphil_dataset *dataset)
{
    exphil_model_config *config = EDGE(exphil_model_config, EXPHIL_MODEL_CONFIG_INIT);
    exphil_report *report = EDGE(exphil_report, EXPHIL_REPORT_INIT);
    exphil_model *model = NULL;
    config->blocks = "mlp";
    config->hidden = 8;
    config->head_width = 8;
    DONE(exphil_model_create(context, config, &model, error));
    DONE(exphil_evaluate(model, dataset, NULL, NULL, 0, report, error));
    DIGEST(report);
    return model;
}

/* An array at the edge: its structs are as long as this program has them. */
static void play(const exphil_model *model, const exphil_melee_frame *frame)
{
    exphil_session_config *config = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_melee_frame two[STREAMS] = {*frame, *frame}, *frames;
    exphil_pad pads[STREAMS];
    exphil_session *session = NULL;
    config->streams = STREAMS;
    config->deterministic = 1;
    two[1].player[0].x += 30;
    frames = EDGE_OF(two);
    DONE(exphil_session_create(model, config, &session, error));
    for (int step = 0; step < 20; step++) {
        frames[0].player[0].x += 1;
        DONE(exphil_session_step(session, frames, pads));
        digest(pads, sizeof pads);
    }
    digest_end("pads");
    exphil_session_destroy(session);
}

void melee(exphil_context *context)
{
    slp_writer writer;
    exphil_spec *spec = melee_spec();
    write_replay(&writer);
    host_file(REPLAY, writer.data, writer.bytes);
    exphil_melee_frame *frame = read_replay(context, spec, &writer);
    read_stream(context, &writer);
    exphil_dataset *dataset = import(context, &writer);
    exphil_model *model = make_model(context, dataset);
    play(model, frame);
    slp_free(&writer);
    exphil_dataset_destroy(dataset);
    exphil_model_destroy(model);
}
