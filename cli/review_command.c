/* `exphil review`: a recorded game as a value head sees it. */
#include "review.h"

#include "archive.h"
#include "conditions.h"
#include "files.h"
#include "notes.h"
#include "options.h"
#include "plot.h"
#include "seat.h"
#include "train_outcome.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_value(const review *r)
{
    if (r->info.value != EXPHIL_VALUE_NONE) return true;
    fprintf(stderr,
            "exphil: %s: these weights have no value head; exphil train --init %s --value detached "
            "--value-only --out "
            "valued.safetensors FILE... gives them one and leaves the policy as it is\n",
            r->options->weights, r->options->weights);
    return false;
}

static bool load(review *r)
{
    const review_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    r->info = (exphil_model_info)EXPHIL_MODEL_INFO_INIT;
    r->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (!open_context(&o->machine, NULL, &r->context) ||
        !load_weights(r->context, o->weights, "--weights wants weights", &r->model))
        return false;
    if (exphil_model_query(r->model, &r->info, &error) < 0 ||
        exphil_model_spec(r->model, &r->spec, &error) < 0)
        return complain(o->weights, &error) == 0;
    json_t *notes = notes_of(r->model);
    r->worth_told = outcome_rewards(notes_train(notes), &r->worth);
    json_decref(notes);
    return has_value(r);
}

/* Deterministic: what it would press is the likeliest. */
static int open_session(review *r)
{
    const review_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    int32_t values[EXPHIL_CONDITIONS_MAX], delay = (int32_t)o->delay;
    config.deterministic = 1;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    if (!conditions_play_as(r->model, o->play_as, values, &config.condition_count) ||
        !delay_fits(r->model, o->delay))
        return 2;
    if (config.condition_count) config.conditions = values;
    if (o->delay >= 0) {
        config.delay_frames = &delay;
        r->info.delay_frames = delay;
    }
    if (exphil_session_create(r->model, &config, &r->session, &error) >= 0) return 0;
    return complain("session", &error);
}

static bool open_game(review *r)
{
    const review_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t port = o->port;
    r->game = (exphil_slp_info)EXPHIL_SLP_INFO_INIT;
    r->result = (exphil_slp_result)EXPHIL_SLP_RESULT_INIT;
    if (!replay_open(r->context, r->path, NULL, &r->slp, &error)) return complain(r->path, &error) == 0;
    if (exphil_slp_query(r->slp, &r->game, &error) < 0 ||
        exphil_slp_result_get(r->slp, &r->result, &error) < 0)
        return complain(r->path, &error) == 0;
    if (!seat_take(r->model, &r->game, r->path, &port, o->opponent, o->json)) return false;
    r->port = (int32_t)port;
    r->other = o->opponent ? (int32_t)o->opponent : seat_opponent(&r->game, r->port - 1) + 1;
    r->over = rewards_game_over(r->slp);
    return true;
}

static int tell(const review *r)
{
    const review_options *o = r->options;
    if (o->svg && !review_svg(r, o->svg)) return 1;
    if (o->json) return print_json(review_json(r));
    review_print(r);
    if (o->svg) printf("\n%s\n", o->svg);
    return 0;
}

static int run(const review_options *options, const char *path)
{
    review r = {.options = options, .path = path};
    int status = 1;
    if (options->svg &&
        (!output_spares("svg", options->svg, path) || !output_spares("svg", options->svg, options->weights) ||
         !plot_may_write("svg", options->svg, options->force)))
        return 1;
    bool fine = load(&r) && seat_replay(path, "review wants a .slp REPLAY");
    if (fine) status = open_session(&r);
    if (fine && status == 0) status = open_game(&r) && review_walk(&r) && review_find(&r) ? tell(&r) : 1;
    free(r.swing);
    free(r.frame);
    exphil_slp_destroy(r.slp);
    exphil_session_destroy(r.session);
    exphil_model_destroy(r.model);
    exphil_context_destroy(r.context);
    return status;
}

int review_command(int argc, char **argv)
{
    review_options o = {.machine.threads = 1, .delay = -1, .swings = 5};
    const option_entry entries[] = {
        {"weights", OPTION_TEXT, &o.weights, "FILE",
         "a policy with a value head: exphil train --value (no default)"},
        {"port", OPTION_INT, &o.port, "N",
         "review this port's side (default: of the character that it was trained on; where nothing says "
         "which, "
         "1)"},
        {"opponent", OPTION_INT, &o.opponent, "N", "the other port (default: the first other player)"},
        {"swings", OPTION_INT, &o.swings, "N", "show the N largest swings (default 5)"},
        {"play-as", OPTION_TEXT, &o.play_as, "NAME=N", PLAY_AS_HELP},
        {"delay", OPTION_INT, &o.delay, "N", "of a policy with several: this one (no default)"},
        {"svg", OPTION_TEXT, &o.svg, "FILE", "draw the curve, with swings and deaths (default: none)"},
        {"force", OPTION_FLAG, &o.force, NULL,
         "replace the file of --svg if it is no picture (default: refuse)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &o.machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &o.machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object, with the whole curve (default: text)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "review [OPTIONS] --weights FILE REPLAY",
        .about = "Where a recorded game turned. The value head of a policy tells, before each frame, what a "
                 "player is to gain from\n"
                 "there on, less what the player is to lose. The largest swings are told: two seconds in "
                 "which what came, and what\n"
                 "is expected in the half second after them, differ most from what was expected in the half "
                 "second before; what\n"
                 "happened there; and what the policy would have pressed beside what was pressed.\n"
                 "A swing is no proof: it is as good as the value, and the text says how much of this game "
                 "it foresaw.\n"
                 "REPLAY: a .slp file, compressed or not, or one of an archive: ARCHIVE:ENTRY.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 1 || !o.weights) {
        fprintf(stderr, "exphil: review wants %s; see exphil review --help\n",
                o.weights ? "one REPLAY" : "--weights FILE");
        return 2;
    }
    const select_options ports = {.port = o.port, .opponent = o.opponent};
    return select_check(&ports) ? run(&o, argv[1]) : 2;
}
