/* Learning-rate schedules: warm-up, then constant, cosine or cosine with restarts (Loshchilov & Hutter 2017, SGDR).
 * All arithmetic is + - * / on doubles, so that every system computes the same rates. */
#include "train/train.h"

/* cos(pi x) for x in [0, 1]: by symmetry from [0, 1/2], there the Taylor series to x^22 (error below 1e-16). */
static double cos_pi(double x)
{
    const double pi = 3.14159265358979323846;
    double sign = x > 0.5 ? -1.0 : 1.0;
    double angle = (x > 0.5 ? 1.0 - x : x) * pi, square = angle * angle, sum = 1.0;
    for (int k = 22; k >= 2; k -= 2) sum = 1.0 - sum * square / ((double)k * (double)(k - 1));
    return sign * sum;
}

static double cosine_between(double low, double high, double part)
{
    if (part < 0.0) part = 0.0;
    if (part > 1.0) part = 1.0;
    return low + (high - low) * 0.5 * (1.0 + cos_pi(part));
}

/* Updates before period k: restart_updates * (1 + f + ... + f^(k-1)). */
static double periods_end(const exphil_optimizer_config *config, int64_t k)
{
    double factor = config->restart_factor, period = (double)config->restart_updates;
    if (factor == 1.0) return period * (double)k;
    return period * (xph_whole_power(factor, k) - 1.0) / (factor - 1.0);
}

/* Position within the current period, in [0, 1). Periods do not shrink, so the number of full ones is at most
 * since / restart_updates; it is found by halving. */
static double restart_part(const exphil_optimizer_config *config, double since)
{
    int64_t low = 0, high = (int64_t)(since / (double)config->restart_updates) + 1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (periods_end(config, middle) <= since)
            low = middle;
        else
            high = middle;
    }
    double begin = periods_end(config, low);
    return (since - begin) / ((double)config->restart_updates * xph_whole_power(config->restart_factor, low));
}

double xph_schedule_rate(const exphil_optimizer_config *config, int64_t update)
{
    double rate = config->rate, low = config->rate * config->low_ratio;
    if (update < config->warmup_updates)
        return rate * ((double)update + 1.0) / (double)config->warmup_updates;
    double since = (double)(update - config->warmup_updates);
    if (config->schedule == EXPHIL_SCHEDULE_COSINE)
        return cosine_between(low, rate, since / (double)(config->total_updates - config->warmup_updates));
    if (config->schedule == EXPHIL_SCHEDULE_RESTARTS)
        return cosine_between(low, rate, restart_part(config, since));
    return rate;
}

exphil_status xph_schedule_check(const exphil_optimizer_config *config, exphil_error *error)
{
    if (config->schedule < EXPHIL_SCHEDULE_CONSTANT || config->schedule > EXPHIL_SCHEDULE_RESTARTS)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: schedule %d is unknown",
                        config->schedule);
    if (config->warmup_updates < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: warmup_updates is negative");
    if (config->total_updates < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: total_updates is negative");
    if (config->restart_updates < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: restart_updates is negative");
    if (config->schedule == EXPHIL_SCHEDULE_COSINE && config->total_updates <= config->warmup_updates)
        return xph_fail(
            error, EXPHIL_E_INVALID,
            "optimizer config: total_updates (%lld) must exceed warmup_updates (%lld) for a cosine",
            (long long)config->total_updates, (long long)config->warmup_updates);
    if (config->schedule == EXPHIL_SCHEDULE_RESTARTS && config->restart_updates < 1)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "optimizer config: restart_updates must be at least 1 for restarts");
    if (!(config->restart_factor >= 1.0 && config->restart_factor <= 1000.0))
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: restart_factor must lie in [1, 1000]");
    if (!(config->low_ratio >= 0.0 && config->low_ratio <= 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: low_ratio must lie in [0, 1]");
    return EXPHIL_OK;
}
