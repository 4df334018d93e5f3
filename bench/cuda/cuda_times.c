/* How long every operation of an update and of a step takes on a device, between two events, for tools/cuda-gate, which counts the
 * same (cost_cases.h) without a card and takes what was measured in place of its estimates.
 *
 *   cuda_times [--device cuda:0] [--backend FOLDER] [--json] [--smoke] [CASE]...
 *   cuda_times --cases                 what is timed where no case is named
 *
 * --json: a line for each operation of a case in the order in which they run: {"subject": "launch", "case": ..., "kernel": the name
 * of the candidate, "launch": which it is, from 0, "us": the median}. A long piece of work runs ahead of each update and step, so
 * that no operation waits for the host. --smoke: small sizes, once. Exit status 77: no such device. */
#include "card_program.h"
#include "cost_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 4, TIMED = 15, CALLS_MOST = 1024, AHEAD = 4 };

static const char *const cases[] = {"update-f32",  "update-tf32", "update-bf16", "learn-tf32",   "learn-bf16",
                                    "melee2-tf32", "melee2-bf16", "lstm-f32",    "lstm-tf32",    "lstm-bf16",
                                    "step-1",      "step-16",     "step-256",    "melee2-step-1"};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct call {
    xph_event *begin, *end;
    const char *name;
    double us[TIMED];
} call;

static struct {
    const char *of; /* the case */
    xph_device *device;
    const xph_backend *real;
    call calls[CALLS_MOST];
    int64_t warm, round;
    int count, known; /* of this round, of the first that is timed */
    bool on;
    void *ahead; /* memory that is cleared ahead */
    size_t ahead_bytes;
} look;

static void fails(const char *what)
{
    fprintf(stderr, "cuda_times: %s: %s\n", look.of, what);
    exit(1);
}

static void begin(int64_t round)
{
    look.on = round >= look.warm;
    look.round = round - look.warm;
    look.count = 0;
}

static exphil_status furnish(call *c)
{
    exphil_status status = EXPHIL_OK;
    if (!c->begin) status = look.real->event_create(look.device, XPH_EVENT_TIMED, &c->begin);
    if (status >= 0 && !c->end) status = look.real->event_create(look.device, XPH_EVENT_TIMED, &c->end);
    return status;
}

static exphil_status run(const xph_backend *real, xph_stream *stream, const char *name,
                         exphil_status (*work)(void *arg), void *arg)
{
    if (!look.on) return work(arg);
    if (look.count == CALLS_MOST) fails("too many operations");
    call *c = &look.calls[look.count];
    for (int i = 0; look.count == 0 && i < AHEAD; i++)
        card_must("work ahead", real->zero(stream, look.ahead, look.ahead_bytes), NULL);
    card_must("an event", furnish(c), NULL);
    card_must("an event", real->event_mark(c->begin, stream), NULL);
    const exphil_status status = work(arg);
    if (status < 0) return status; /* refused: the next candidate is asked */
    card_must("an event", real->event_mark(c->end, stream), NULL);
    if (look.round && (look.count >= look.known || strcmp(c->name, name) != 0))
        fails("other operations than the time before");
    c->name = name;
    look.count++;
    return status;
}

static void end(int64_t round)
{
    if (round < look.warm) return;
    look.on = false;
    if (!look.count || (look.round && look.count != look.known))
        fails("other operations than the time before");
    look.known = look.count;
    for (int i = 0; i < look.count; i++) {
        call *c = &look.calls[i];
        double ns = 0;
        card_must("an event", look.real->event_wait(c->end), NULL);
        card_must("an event", look.real->event_elapsed(c->begin, c->end, &ns), NULL);
        c->us[look.round] = ns * 1e-3;
    }
}

static void give(const card_options *o, int64_t rounds)
{
    double sum = 0;
    for (int i = 0; i < look.known; i++) {
        call *c = &look.calls[i];
        const double us = card_median(c->us, rounds);
        sum += us;
        card_row(o, json_pack("{s:s, s:s, s:s, s:i, s:f}", "subject", "launch", "case", look.of, "kernel",
                              c->name, "launch", i, "us", us));
        look.real->event_destroy(c->begin);
        look.real->event_destroy(c->end);
    }
    printf("%s: %d operations, %.1f us\n", look.of, look.known, sum);
    memset(look.calls, 0, sizeof look.calls);
}

static void time_case(const card_options *o, const char *name)
{
    const int64_t rounds = o->smoke ? 1 : TIMED;
    exphil_context *context = card_open(o, 0);
    look.of = name;
    look.warm = WARM;
    look.device = xph_context_backend(context);
    look.real = look.device->backend;
    look.ahead_bytes = (size_t)(o->smoke ? 16 : 512 << 20);
    card_must("memory", look.real->alloc(look.device, look.ahead_bytes, &look.ahead), NULL);
    const cost_watch watch = {
        .rounds = WARM + rounds, .small = o->smoke, .begin = begin, .end = end, .run = run};
    if (!cost_case_run(context, name, &watch)) fails("there is no such case");
    give(o, rounds);
    look.real->free(look.device, look.ahead, look.ahead_bytes);
    exphil_context_destroy(context);
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--cases") == 0) {
        for (int i = 0; i < CASES; i++) puts(cases[i]);
        return 0;
    }
    const card_options o = card_options_of(count, words);
    for (int i = 0; i < o.count; i++) time_case(&o, o.words[i]);
    for (int i = 0; !o.count && i < CASES; i++) time_case(&o, cases[i]);
    return 0;
}
