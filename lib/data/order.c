/* The plan of an epoch: what lanes (order_lanes.c) and windows (order_window.c) have in common. */
#include "data/order.h"

void xph_order_free(xph_order *order)
{
    xph_lanes_free(order);
    xph_windows_free(order);
    *order = (xph_order){.context = NULL};
}

static bool has_targets(const exphil_dataset *dataset, const exphil_sampling *sampling)
{
    for (int64_t i = 0; i < dataset->episode_count; i++)
        if (xph_usable_frames(&dataset->episodes[i], sampling->delay_frames)) return true;
    return false;
}

static exphil_status check_targets(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                   exphil_error *error)
{
    if (has_targets(dataset, sampling)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID,
                    "nothing to sample: no episode is longer than delay_frames, which is %d",
                    (int)sampling->delay_frames);
}

exphil_status xph_order_count(const exphil_dataset *dataset, const exphil_sampling *sampling,
                              xph_order *order, exphil_error *error)
{
    XPH_TRY(check_targets(dataset, sampling, error));
    *order = (xph_order){.context = dataset->context, .dataset = dataset, .sampling = sampling};
    return sampling->mode == EXPHIL_MODE_WINDOW ? xph_windows_count(order, error)
                                                : xph_lanes_count(order, error);
}

size_t xph_order_bytes(const xph_order *order)
{
    return order->sampling->mode == EXPHIL_MODE_WINDOW ? xph_windows_bytes(order) : xph_lanes_bytes(order);
}

exphil_status xph_order_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                               xph_order *order, exphil_error *error)
{
    XPH_TRY(check_targets(dataset, sampling, error));
    xph_order made = {.context = dataset->context, .dataset = dataset, .sampling = sampling};
    bool windows = sampling->mode == EXPHIL_MODE_WINDOW;
    exphil_status status = windows ? xph_windows_create(&made, error) : xph_lanes_create(&made, error);
    if (status < 0) {
        xph_order_free(&made);
        return status;
    }
    *order = made;
    return EXPHIL_OK;
}

bool xph_order_plan(xph_order *order, int64_t epoch, const atomic_bool *stop)
{
    /* A stream of its own for each epoch; the low byte is what the numbers are for. */
    xph_rng rng = {.seed = order->sampling->seed, .stream = XPH_RNG_SHUFFLE | (uint64_t)epoch << 8};
    return order->sampling->mode == EXPHIL_MODE_WINDOW ? xph_windows_plan(order, &rng, epoch, stop)
                                                       : xph_lanes_plan(order, &rng, stop);
}
