/* The old program, many replays: who won, what a frame is worth, corpora of games as a file and as a folder, rows of them. */
#include "old.h"

#if EXPHIL_VERSION >= 200
#  include "slp_writer.h"

#  define FILE_OF_ALL "one.games"
enum { ROWS_MOST = 256, SAMPLES = 6, STANDS = 14 };

static exphil_slp *open_replay(exphil_context *context)
{
    exphil_slp *slp = NULL;
    DONE(exphil_slp_open(context, REPLAY, NULL, &slp, error));
    return slp;
}

/* Seen from the other side a reward has the other sign. In the replay both are dead, which approach nobody. */
static void rewards(const exphil_slp *slp)
{
    exphil_melee_reward_config *config = EDGE(exphil_melee_reward_config, EXPHIL_MELEE_REWARD_CONFIG_INIT);
    exphil_melee_frame *frame[2][2];
    float reward[2];
    int came = 0;
    config->approach = 0.1;
    config->stalling = 1;
    for (int i = 0; i < 4; i++) frame[i / 2][i % 2] = EDGE(exphil_melee_frame, EXPHIL_MELEE_FRAME_INIT);
    for (int64_t at = 0; at + 1 < exphil_slp_frame_count(slp); at++) {
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < 2; i++) {
                DONE(exphil_slp_melee_frame(slp, at + i, 1 + side, 2 - side, frame[side][i], error));
                for (int port = 0; port < 2; port++) frame[side][i]->player[port].action_state = STANDS;
            }
            DONE(exphil_melee_reward(config, frame[side][0], frame[side][1], &reward[side], error));
        }
        CHECK(reward[0] == -reward[1]);
        came += reward[0] != 0;
        digest(reward, sizeof reward);
    }
    CHECK(came > 0);
    digest_end("rewards");
}

static void rows(const exphil_slp *slp)
{
    static float floats[ROWS_MOST * 512];
    static int32_t frames[ROWS_MOST], ids[ROWS_MOST * EXPHIL_IDS_MAX], actions[ROWS_MOST * EXPHIL_HEADS_MAX];
    exphil_replay_config *config = EDGE(exphil_replay_config, EXPHIL_REPLAY_CONFIG_INIT);
    exphil_slp_result *result = EDGE(exphil_slp_result, EXPHIL_SLP_RESULT_INIT);
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    int64_t count = 0;
    DONE(exphil_slp_result_get(slp, result, error));
    CHECK(result->reason == EXPHIL_SLP_RESULT_UNFINISHED && !result->winner && result->stocks[0] == 4);
    digest(&result->reason, sizeof result->reason);
    digest(result->stocks, sizeof result->stocks);
    DONE(exphil_melee_spec(NULL, NULL, spec, error));
    CHECK(spec->float_count <= 512);
    config->port = 2;
    DONE(exphil_slp_melee_rows(slp, NULL, NULL, config, ROWS_MOST, frames, floats, ids, actions, &count,
                               error));
    CHECK(count > 1 && count < ROWS_MOST && frames[1] == frames[0] + 1);
    digest(frames, (size_t)count * sizeof *frames);
    digest(floats, (size_t)(count * spec->float_count) * sizeof *floats);
    digest(ids, (size_t)(count * spec->id_count) * sizeof *ids);
    digest(actions, (size_t)(count * spec->head_count) * sizeof *actions);
    digest_end("rows");
}

static exphil_games_writer *make_writer(exphil_context *context, const char *path)
{
    exphil_games_config *config = EDGE(exphil_games_config, EXPHIL_GAMES_CONFIG_INIT);
    exphil_games_writer *writer = NULL;
    config->stored = 1; /* the same bytes with any libzstd, and without */
    config->shard_bytes = 1;
    DONE(exphil_games_create(context, path, config, &writer, error));
    return writer;
}

static exphil_games *finish(exphil_context *context, exphil_games_writer *writer, const char *path)
{
    exphil_games_info *info = EDGE(exphil_games_info, EXPHIL_GAMES_INFO_INIT), *same = EDGE_OF(*info);
    exphil_games *corpus = NULL;
    DONE(exphil_games_finish(writer, info, error));
    exphil_games_writer_destroy(writer);
    DONE(exphil_games_open(context, path, &corpus, error));
    DONE(exphil_games_query(corpus, same, error));
    CHECK(info->games == same->games && info->frames == same->frames && info->hash == same->hash);
    DIGEST(info);
    DIGEST(same);
    DONE(exphil_games_verify(corpus, error));
    return corpus;
}

static exphil_games *write_file(exphil_context *context)
{
    exphil_games_added *added = EDGE(exphil_games_added, EXPHIL_GAMES_ADDED_INIT);
    exphil_games_writer *writer = make_writer(context, FILE_OF_ALL);
    DONE(exphil_games_add(writer, REPLAY, added, error));
    CHECK(added->content_hash && added->frames > 0 && !added->duplicate);
    DIGEST(added);
    DONE(exphil_games_add(writer, REPLAY, added, error));
    CHECK(added->duplicate == 1);
    for (int which = 0; which < SAMPLES; which++) {
        slp_writer sample;
        slp_sample(&sample, which);
        exphil_status status = exphil_games_add_memory(writer, sample.data, sample.bytes, added, error);
        CHECK(status == EXPHIL_OK || status == EXPHIL_E_UNSUPPORTED);
        digest(&status, sizeof status);
        if (status == EXPHIL_OK) DIGEST(added);
        slp_free(&sample);
    }
    exphil_games *corpus = finish(context, writer, FILE_OF_ALL);
    digest_end("corpus");
    return corpus;
}

/* Another corpus of the same games, a file each. */
static exphil_games *write_folder(exphil_context *context, const exphil_games *from)
{
    exphil_games_info *all = EDGE(exphil_games_info, EXPHIL_GAMES_INFO_INIT), *copied = EDGE_OF(*all);
    exphil_games_added *added = EDGE(exphil_games_added, EXPHIL_GAMES_ADDED_INIT);
    exphil_games_writer *writer = make_writer(context, FOLDER);
    DONE(exphil_games_query(from, all, error));
    CHECK(all->games > 1);
    for (int64_t i = 0; i < all->games; i++) {
        DONE(exphil_games_copy(writer, from, i, added, error));
        CHECK(!added->duplicate);
        DIGEST(added);
    }
    exphil_games *corpus = finish(context, writer, FOLDER);
    DONE(exphil_games_query(corpus, copied, error));
    CHECK(copied->games == all->games && copied->hash == all->hash);
    digest_end("folder");
    return corpus;
}

static void each_game(const exphil_games *corpus)
{
    exphil_games_info *all = EDGE(exphil_games_info, EXPHIL_GAMES_INFO_INIT);
    exphil_game_info *info = EDGE(exphil_game_info, EXPHIL_GAME_INFO_INIT);
    exphil_slp_info *settings = EDGE(exphil_slp_info, EXPHIL_SLP_INFO_INIT);
    DONE(exphil_games_query(corpus, all, error));
    int64_t frames = 0;
    for (int64_t i = 0; i < all->games; i++) {
        exphil_slp *slp = NULL;
        DONE(exphil_games_game(corpus, i, info, settings, error));
        DONE(exphil_games_read(corpus, i, &slp, error));
        CHECK(info->content_hash && settings->frame_count == exphil_slp_frame_count(slp));
        frames += settings->frame_count;
        DIGEST(info);
        DIGEST(settings);
        exphil_slp_destroy(slp);
    }
    CHECK(frames == all->frames);
    digest_end("games");
}

static void select_rows(exphil_context *context, const exphil_games *corpus)
{
    exphil_selection *selection = EDGE(exphil_selection, EXPHIL_SELECTION_INIT);
    exphil_selection_report *report = EDGE(exphil_selection_report, EXPHIL_SELECTION_REPORT_INIT);
    exphil_dataset_info *info = EDGE(exphil_dataset_info, EXPHIL_DATASET_INFO_INIT);
    exphil_dataset *dataset = NULL;
    DONE(exphil_dataset_create(context, NULL, &dataset, error));
    selection->characters = "fox, falco";
    selection->stages = "battlefield";
    selection->port = 2;
    DONE(exphil_dataset_add_games(dataset, corpus, selection, report, error));
    CHECK(report->taken == 1 && report->refused[EXPHIL_REFUSED_PORT] > 0 && report->frames > 0);
    DIGEST(report);
    DONE(exphil_dataset_query(dataset, info, error));
    CHECK(info->frames == report->frames);
    digest(&info->content_hash, sizeof info->content_hash);
    selection->characters = "nobody";
    CHECK(exphil_dataset_add_games(dataset, corpus, selection, report, error) == EXPHIL_E_INVALID);
    CHECK(strstr(error->message, "characters"));
    digest_end("selected");
    exphil_dataset_destroy(dataset);
}

void games(exphil_context *context)
{
    exphil_slp *slp = open_replay(context);
    rewards(slp);
    rows(slp);
    exphil_slp_destroy(slp);
    exphil_games *one = write_file(context), *many = write_folder(context, one);
    each_game(one);
    each_game(many);
    select_rows(context, many);
    exphil_games_destroy(one);
    exphil_games_destroy(many);
}

#else
typedef int nothing_before_0_2;
#endif
