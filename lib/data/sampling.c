/* Defaults and limits of exphil_sampling. */
#include "data/filling.h"

#define BATCH_MOST   4096
#define TIME_MOST    65536
#define DELAY_MOST   64
#define SLOTS_MOST   (DELAY_MOST + 1)
#define BUFFERS_MOST 64
#define WORKERS_MOST 64

/* Frames of a span: what is shuffled holds at least one. */
#define SHUFFLE_LEAST 1024

static exphil_status check_range(int64_t value, int64_t low, int64_t high, const char *field,
                                 exphil_error *error)
{
    if (value >= low && value <= high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.%s is %lld, must be %lld..%lld", field,
                    (long long)value, (long long)low, (long long)high);
}

/* Fields that mean nothing in the mode are refused, not ignored. */
static exphil_status check_mode(const exphil_sampling *how, exphil_error *error)
{
    if (how->mode == EXPHIL_MODE_WINDOW) {
        if (how->segment_frames)
            return xph_fail(error, EXPHIL_E_INVALID, "sampling.segment_frames is for EXPHIL_MODE_CARRY");
        if (how->shuffle_frames && how->in_order)
            return xph_fail(error, EXPHIL_E_INVALID,
                            "sampling.shuffle_frames is for shuffled windows, in_order is 1");
        return EXPHIL_OK;
    }
    if (how->mode != EXPHIL_MODE_CARRY)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.mode is %d, which is no mode", (int)how->mode);
    if (how->last_only)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.last_only is for EXPHIL_MODE_WINDOW");
    if (how->stride != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.stride is for EXPHIL_MODE_WINDOW");
    if (how->shuffle_frames)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is for EXPHIL_MODE_WINDOW");
    return EXPHIL_OK;
}

/* What shuffle_frames 0 means for a dataset: here, all windows together, as in 0.1. The only place where a kind of
 * dataset chooses; neither its size nor a limit of memory may. */
static int64_t usual_shuffle_frames(const exphil_dataset *dataset)
{
    return dataset && dataset->of_games ? 65536 : 0;
}

/* Rows that are there are copied faster than they are used. */
static int32_t usual_workers(const exphil_dataset *dataset)
{
    int32_t workers = dataset && dataset->of_games ? xph_cpu_count() / 4 : 1;
    return workers < 1 ? 1 : workers > 4 ? 4 : workers;
}

static exphil_status check_share(double share, const char *field, exphil_error *error)
{
    char text[XPH_DOUBLE_TEXT];
    if (share >= 0 && share <= 1) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.%s is %s, must be 0..1", field,
                    xph_format_double(text, share, 6));
}

static exphil_status check_shuffle(const exphil_sampling *how, exphil_error *error)
{
    int64_t frames = how->shuffle_frames;
    if (!frames || (frames >= SHUFFLE_LEAST && frames <= XPH_ORDERED_MAX)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is %lld, must be 0 or %d..%lld",
                    (long long)frames, SHUFFLE_LEAST, (long long)XPH_ORDERED_MAX);
}

/* lane_count 0 means all lanes. */
static exphil_status take_lanes(exphil_sampling *how, exphil_error *error)
{
    if (!how->lane_count && how->first_lane)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.first_lane is %lld, but lane_count is 0, which means all lanes",
                        (long long)how->first_lane);
    if (!how->lane_count) how->lane_count = how->batch;
    XPH_TRY(check_range(how->first_lane, 0, how->batch - 1, "first_lane", error));
    return check_range(how->lane_count, 1, how->batch - how->first_lane, "lane_count", error);
}

static exphil_status check_drop(const exphil_sampling *how, exphil_error *error)
{
    char text[XPH_DOUBLE_TEXT];
    XPH_TRY(check_share(how->drop_past, "drop_past", error));
    if (how->drop_past > 0.0 && how->action_slots == 0)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.drop_past is %s, but action_slots is 0: there are no past actions",
                        xph_format_double(text, how->drop_past, 6));
    return EXPHIL_OK;
}

exphil_status xph_sampling_resolve(const exphil_dataset *dataset, const exphil_sampling *given,
                                   exphil_sampling *how, xph_told *told, exphil_error *error)
{
    exphil_sampling known = EXPHIL_SAMPLING_INIT;
    XPH_TRY(XPH_TAKE(exphil_sampling, &known, given, error));
    if (!known.batch) known.batch = 16;
    if (!known.time) known.time = 60;
    if (!known.stride) known.stride = 1;
    if (!known.buffers) known.buffers = 2;
    if (!known.workers) known.workers = usual_workers(dataset);
    if (!known.shuffle_frames && known.mode == EXPHIL_MODE_WINDOW && !known.in_order)
        known.shuffle_frames = usual_shuffle_frames(dataset);
    XPH_TRY(check_mode(&known, error));
    XPH_TRY(check_range(known.batch, 1, BATCH_MOST, "batch", error));
    XPH_TRY(take_lanes(&known, error));
    XPH_TRY(check_range(known.time, 1, TIME_MOST, "time", error));
    XPH_TRY(check_range(known.stride, 1, XPH_FRAMES_MAX, "stride", error));
    XPH_TRY(check_range(known.segment_frames, 0, INT64_MAX, "segment_frames", error));
    XPH_TRY(check_shuffle(&known, error));
    XPH_TRY(check_range(known.delay_frames, 0, DELAY_MOST, "delay_frames", error));
    XPH_TRY(xph_told_take(told, known.conditions, known.condition_count, known.delays, known.delay_count,
                          &known.delay_frames, "sampling", error));
    known.conditions = told->conditions ? told->condition : NULL;
    known.delays = told->delays ? told->delay : NULL;
    XPH_TRY(check_range(known.action_slots, 0, SLOTS_MOST, "action_slots", error));
    XPH_TRY(check_range(known.memory_bytes, 0, INT64_MAX, "memory_bytes", error));
    XPH_TRY(check_range(known.workers, 1, WORKERS_MOST, "workers", error));
    XPH_TRY(check_range(known.in_order, 0, 1, "in_order", error));
    XPH_TRY(check_range(known.last_only, 0, 1, "last_only", error));
    XPH_TRY(check_range(known.buffers, 1, BUFFERS_MOST, "buffers", error));
    XPH_TRY(check_range(known.neutral_start, 0, 1, "neutral_start", error));
    XPH_TRY(check_range(known.reserved, 0, 0, "reserved", error));
    XPH_TRY(check_range(known.reserved_2, 0, 0, "reserved_2", error));
    XPH_TRY(check_drop(&known, error));
    XPH_TRY(check_share(known.mirror, "mirror", error));
    XPH_TRY(check_share(known.balance_character, "balance_character", error));
    XPH_TRY(check_share(known.balance_action, "balance_action", error));
    XPH_TRY(check_share(known.balance_change, "balance_change", error));
    if (known.segment_frames > XPH_FRAMES_MAX) known.segment_frames = XPH_FRAMES_MAX; /* never cuts */
    *how = known;
    return EXPHIL_OK;
}
