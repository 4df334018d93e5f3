/* Learning while the game is played: a button says who plays now, the person or the policy, and the policy learns from what the
 * person does. Training runs in a thread of the library's; what was learnt is saved beside the game. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#define ROLLBACK_FRAMES 120 /* that rewind, run-ahead and netplay may take back without a gap */
#define PACE_FRAMES     120 /* after which a paced game waits */

/* ---- who plays ---- */

static const struct {
    const char *name;
    unsigned id;
} buttons[] = {{"select", RETRO_DEVICE_ID_JOYPAD_SELECT},
               {"l", RETRO_DEVICE_ID_JOYPAD_L},
               {"r", RETRO_DEVICE_ID_JOYPAD_R},
               {"l2", RETRO_DEVICE_ID_JOYPAD_L2},
               {"r2", RETRO_DEVICE_ID_JOYPAD_R2},
               {"l3", RETRO_DEVICE_ID_JOYPAD_L3},
               {"r3", RETRO_DEVICE_ID_JOYPAD_R3},
               {"x", RETRO_DEVICE_ID_JOYPAD_X},
               {"y", RETRO_DEVICE_ID_JOYPAD_Y}};

/* -1: told. */
static int choose_button(void)
{
    const char *name = plugin_setting("EXPHIL_TAKE_OVER", "exphil_take_over");
    if (!name) name = "select";
    for (size_t i = 0; i < sizeof buttons / sizeof *buttons; i++) {
        if (strcmp(buttons[i].name, name) != 0) continue;
        plugin.learn.button = (uint16_t)(1u << buttons[i].id);
        if (!(plugin.owned_buttons & plugin.learn.button)) return 0;
        plugin_tell("button '%s' is one that the policy presses: choose another one to take over", name);
        return -1;
    }
    plugin_tell("button '%.40s' to take over is none of select, l, r, l2, r2, l3, r3, x, y", name);
    return -1;
}

/* The pad of this frame, before the core asks for it. */
static void look_at_pad(struct game_press *held)
{
    struct plugin_learn *learn = &plugin.learn;
    if (plugin.poll) plugin.poll();
    plugin_pad(held);
    if (held->buttons & learn->button && !learn->held) {
        learn->person = !learn->person;
        plugin_note(learn->person ? "you play, the policy learns" : "the policy plays");
    }
    learn->held = (held->buttons & learn->button) != 0;
    held->buttons &= (uint16_t)~learn->button;
}

/* What the person does in this frame; 0: in action. A teacher is a person who decides by itself when to play. */
static int person_acts(void)
{
    struct game_press held = {0, {0}, 15};
    if (plugin.teacher.act) return plugin_teacher_act();
    if (!plugin.input) return -1;
    look_at_pad(&held);
    if (!plugin.learn.person) return -1;
    game_map_action(&plugin.map, &held, plugin.action);
    return 0;
}

/* ---- frames ---- */

static void tell_failure(const exphil_live_info *info)
{
    struct plugin_learn *learn = &plugin.learn;
    if (info->failed && !learn->failure_told)
        plugin_tell("learning stops: %s", info->message), learn->failure_told = 1;
    if (info->unsaved && !info->failed && !learn->unsaved_told)
        plugin_tell("what was learnt cannot be saved: %s", info->message), learn->unsaved_told = 1;
    if (!info->unsaved) learn->unsaved_told = 0;
}

int plugin_learn_step(void)
{
    struct plugin_player *player = &plugin.player;
    exphil_live *live = plugin.learn.live;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_live_info info = EXPHIL_LIVE_INFO_INIT;
    int32_t person[EXPHIL_HEADS_MAX];
    int plays = person_acts() == 0;
    if (plays) memcpy(person, plugin.action, sizeof person);
    if (plugin.learn.paced && plugin.game.frames % PACE_FRAMES == 0 && exphil_live_settle(live, NULL) < 0)
        plugin.learn.paced = 0; /* learning has ended, which is told here: */
    if (plugin.game.frames % 60 == 0 && exphil_live_query(live, &info, NULL) >= 0) tell_failure(&info);
    int64_t start = plugin_now();
    if ((plugin.begun && exphil_live_reward(live, 0, EXPHIL_OVER, NULL, NULL) < 0) ||
        exphil_live_step_row(live, plugin.floats, plugin.ids, plays ? person : NULL, plugin.action) < 0) {
        exphil_session_error(player->session, &error);
        plugin_tell("the policy stops: %s", error.message);
        player->failed = 1;
        return -1;
    }
    plugin.step_ns[player->rows % PLUGIN_TIMES] = (int32_t)(plugin_now() - start);
    return 0;
}

/* ---- a game begins and ends ---- */

/* What the policy was taught by, if it lies beside the game; it is learnt from, too. NULL: there is none, or it has been told. */
static exphil_dataset *data_beside(void)
{
    char path[PLUGIN_PATH];
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (plugin_path("EXPHIL_RECORD", ".corpus", 0, path) || !system_is_readable(path)) return NULL;
    if (exphil_dataset_open(plugin.player.context, path, &dataset, &error) < 0 ||
        exphil_dataset_query(dataset, &info, &error) < 0) {
        plugin_tell("%s is not learnt from: %s", path, error.message);
    } else if (info.spec_hash != exphil_spec_hash(&plugin.map.spec)) {
        plugin_tell("%s is not learnt from: it was recorded with another map", path);
    } else {
        plugin_say(RETRO_LOG_INFO, "%s is learnt from, too: %lld frames", path, (long long)info.frames);
        return dataset;
    }
    exphil_dataset_destroy(dataset);
    return NULL;
}

/* What was learnt before goes on. -1: it is there, and cannot be gone on with: it has been told, and is left alone. */
static int go_on(exphil_live *live)
{
    char checkpoint[PLUGIN_PATH + 16];
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_live_info info = EXPHIL_LIVE_INFO_INIT;
    snprintf(checkpoint, sizeof checkpoint, "%s.optimizer", plugin.learn.path);
    if (!system_is_there(checkpoint)) return 0;
    if (exphil_live_resume(live, plugin.learn.path, &error) < 0) {
        plugin_tell("%s cannot be gone on with: %s. Move it away to begin anew", checkpoint, error.message);
        return -1;
    }
    if (exphil_live_query(live, &info, NULL) >= 0)
        plugin_say(RETRO_LOG_INFO, "%s goes on: %lld frames learnt from, %lld updates", plugin.learn.path,
                   (long long)info.learnt, (long long)info.updates);
    return 0;
}

static int open_live(exphil_error *error)
{
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_dataset *dataset = data_beside();
    session.spec = &plugin.map.spec;
    session.seed = 1;
    session.deterministic = plugin.player.likeliest;
    config.session = &session;
    config.dataset = dataset;
    config.rollback_frames = ROLLBACK_FRAMES;
    config.path = plugin.learn.path;
    config.paced = plugin.learn.paced;
    int failed = plugin_number("EXPHIL_SEED", 0, UINT64_MAX, &session.seed) ||
                 exphil_live_create(plugin.player.model, &config, &plugin.learn.live, error) < 0;
    exphil_dataset_destroy(dataset);
    return failed ? -1 : 0;
}

/* The session of the live learner takes the place of the one that only plays. */
static int take_session(exphil_error *error)
{
    struct plugin_player *player = &plugin.player;
    exphil_session *session = exphil_live_session(plugin.learn.live);
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    if (exphil_session_query(session, &info, error) < 0) return -1;
    exphil_session_destroy(player->session);
    player->session = session;
    player->info = info;
    return 0;
}

int plugin_learn_open(void)
{
    struct plugin_learn *learn = &plugin.learn;
    exphil_error error = EXPHIL_ERROR_INIT;
    memset(learn, 0, sizeof *learn);
    if (plugin.teacher.missing) {
        plugin_tell("nothing is learnt: the teacher is not to be had as asked");
        return -1;
    }
    uint64_t paced = 0;
    if (choose_button() || plugin_number("EXPHIL_LEARN_PACED", 0, 1, &paced)) return -1;
    learn->paced = (int)paced;
    if (plugin_path("EXPHIL_LEARNED", ".learned.safetensors", 1, learn->path)) {
        plugin_tell("nothing is learnt: where to? Set EXPHIL_LEARNED to a file");
        return -1;
    }
    if (open_live(&error) || go_on(learn->live) || take_session(&error)) {
        if (error.message[0]) plugin_tell("nothing is learnt: %s", error.message);
        exphil_live_destroy(learn->live);
        memset(learn, 0, sizeof *learn);
        return -1;
    }
    return 0;
}

int plugin_learn_close(void)
{
    struct plugin_learn *learn = &plugin.learn;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_live_info info = EXPHIL_LIVE_INFO_INIT;
    if (!learn->live) return 0;
    int fine =
        exphil_live_settle(learn->live, &error) >= 0 && exphil_live_query(learn->live, &info, &error) >= 0;
    int saved = fine && info.updates && exphil_live_save(learn->live, learn->path, &error) >= 0;
    if (saved)
        plugin_say(RETRO_LOG_INFO, "learnt from %lld frames of the person, %lld updates: %s",
                   (long long)info.learnt, (long long)info.updates, learn->path);
    else if (fine && !info.updates)
        plugin_say(RETRO_LOG_INFO, "nobody took over: nothing was learnt");
    else
        plugin_tell("what was learnt is lost but for what %s has: %s", learn->path, error.message);
    plugin.player.session = NULL; /* it goes with the learner */
    exphil_live_destroy(learn->live);
    memset(learn, 0, sizeof *learn);
    return saved;
}
