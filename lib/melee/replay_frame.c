/* The public way from a replay to observations and controllers, one frame at a time. */
#include "melee/melee.h"

int64_t exphil_slp_position(const exphil_slp *slp, int32_t frame)
{
    XPH_OWN_FPU;
    int64_t count = exphil_slp_frame_count(slp), low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (exphil_slp_frame_at(slp, middle)->frame < frame)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && exphil_slp_frame_at(slp, low)->frame == frame) return low;
    for (low = 0; low < count; low++) /* under EXPHIL_SLP_ALL frames go back after a rollback */
        if (exphil_slp_frame_at(slp, low)->frame == frame) return low;
    return -1;
}

static exphil_status check_ports(int32_t own, int32_t opponent, exphil_error *error)
{
    if (own < 1 || own > 4) return xph_fail(error, EXPHIL_E_INVALID, "port is %d, outside 1..4", own);
    if (opponent < 0 || opponent > 4)
        return xph_fail(error, EXPHIL_E_INVALID, "opponent_port is %d, outside 0..4", opponent);
    if (own == opponent) return xph_fail(error, EXPHIL_E_INVALID, "port and opponent_port are both %d", own);
    return EXPHIL_OK;
}

static exphil_status check_place(const exphil_slp *slp, int64_t position, exphil_error *error)
{
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    if (position < 0 || position >= exphil_slp_frame_count(slp))
        return xph_fail(error, EXPHIL_E_INVALID, "position is %lld, the replay has %lld frames",
                        (long long)position, (long long)exphil_slp_frame_count(slp));
    return EXPHIL_OK;
}

exphil_status exphil_slp_melee_frame(const exphil_slp *slp, int64_t position, int32_t own_port,
                                     int32_t opponent_port, exphil_melee_frame *frame, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_melee_frame made = {.struct_size = sizeof made};
    if (!frame) return xph_fail(error, EXPHIL_E_INVALID, "frame is NULL");
    XPH_TRY(check_place(slp, position, error));
    XPH_TRY(check_ports(own_port, opponent_port, error));
    if (!xph_melee_game_state(slp, position, own_port, opponent_port, &made))
        return xph_fail(error, EXPHIL_E_INVALID, "port %d has no record at position %lld", own_port,
                        (long long)position);
    return XPH_GIVE(exphil_melee_frame, frame, &made, error);
}

exphil_status exphil_slp_stream_melee_frame(exphil_slp_stream *stream, int32_t own_port,
                                            int32_t opponent_port, exphil_melee_frame *frame,
                                            exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_melee_frame made = {.struct_size = sizeof made};
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    if (!stream || !frame)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", stream ? "frame" : "stream");
    XPH_TRY(check_ports(own_port, opponent_port, error));
    if (!exphil_slp_stream_frame(stream)) return xph_fail(error, EXPHIL_E_STATE, "no frame is ready");
    XPH_TRY(exphil_slp_stream_query(stream, &info, error));
    if (!xph_melee_live_state(stream, &info, own_port, opponent_port, &made))
        return xph_fail(error, EXPHIL_E_INVALID, "port %d has no record in this frame", own_port);
    return XPH_GIVE(exphil_melee_frame, frame, &made, error);
}

exphil_status exphil_slp_melee_pad(const exphil_slp *slp, int64_t position, int32_t port, exphil_pad *pad,
                                   exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_pad made;
    if (!pad) return xph_fail(error, EXPHIL_E_INVALID, "pad is NULL");
    XPH_TRY(check_place(slp, position, error));
    XPH_TRY(check_ports(port, 0, error));
    if (!xph_melee_game_pad(slp, position, port, &made))
        return xph_fail(error, EXPHIL_E_INVALID, "port %d has no record at position %lld", port,
                        (long long)position);
    *pad = made;
    return EXPHIL_OK;
}
