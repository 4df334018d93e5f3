/* Any game: a policy learns one that the library has never heard of, and plays it. Fruit and bombs fall, one after
 * the other; a hand moves left and right, and closes. Fruit in the closed hand is a point, a bomb costs one. A rule
 * plays and its frames are the training data; then rule, policy and chance play a game that was not trained on. */
#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 12, HEIGHT = 16, DELAY = 2, FRAMES = 4000, GAMES = 8, UPDATES = 400 };
enum { FRUIT, BOMB, LEFT = 0, STAY, RIGHT, RULE = 0, POLICY, CHANCE };

/* A frame is F = 2 floats (about -1..1: nobody scales them) and K = 1 id, an action the values of A = 2 heads.
 * Names and sizes go into the weights' file: a policy for another game is refused. */
static const exphil_id_spec ids[] = {{"thing", 2, 0}};
static const exphil_head_spec heads[] = {{"move", EXPHIL_CATEGORICAL, 3, STAY, 0},
                                         {"close", EXPHIL_BERNOULLI, 1, 0, 0}};
static const exphil_spec spec = {sizeof spec, "falling", "hand", 2, 1, ids, 2, heads, 0};

static exphil_error error = EXPHIL_ERROR_INIT;
static void must(exphil_status status)
{
    if (status < 0) fprintf(stderr, "rows: %s: %s\n", exphil_status_name(status), error.message), exit(1);
}

static uint32_t seed; /* the game, one at a time */
static int32_t hand, x, height, thing, score, fruit;

static int32_t draw(uint32_t *from, uint32_t below)
{
    return (int32_t)(((*from = *from * 1664525u + 1013904223u) >> 16) % below);
}

static void advance(const int32_t action[2])
{
    hand += action[0] - STAY;
    if (--height > 0) return;
    if (hand == x && action[1]) score += thing == FRUIT ? 1 : -1;
    x = draw(&seed, WIDTH), thing = draw(&seed, 2), height = HEIGHT, fruit += thing == FRUIT;
}

/* It lets as many frames pass as the policy will be late. A faster player's actions under way, which the policy
 * sees, would tell it in training what in play it cannot know. */
static void rule(int32_t action[2])
{
    action[0] = thing == BOMB || height > HEIGHT - DELAY || x == hand ? STAY : x < hand ? LEFT : RIGHT;
    action[1] = thing == FRUIT && height < 3;
}

/* Row t is what is known before the action of frame t acts, action t what acts in frame t: recorded and played
 * alike, whatever the delay d. A policy decides on row t what acts in frame t + d: in training the library shifts,
 * in play step_row gives what is due now (at first the neutral values). dataset NULL: the score is printed. */
static void play(int who, uint32_t game, exphil_session *session, exphil_dataset *dataset)
{
    static float floats[FRAMES][2];
    static int32_t id[FRAMES][1], action[FRAMES][2];
    seed = game, hand = WIDTH / 2, x = 1, height = HEIGHT, thing = FRUIT, score = 0, fruit = 1;
    for (int t = 0; t < FRAMES; t++) {
        floats[t][0] = (float)(x - hand) / WIDTH, floats[t][1] = (float)height / HEIGHT, id[t][0] = thing;
        if (who == RULE) rule(action[t]);
        if (who == CHANCE) action[t][0] = draw(&game, 3), action[t][1] = draw(&game, 2);
        if (who == POLICY && exphil_session_step_row(session, floats[t], id[t], NULL, action[t]) < 0)
            must(exphil_session_error(session, &error));
        advance(action[t]);
    }
    if (dataset)
        must(exphil_dataset_add_rows(dataset, game, FRAMES, floats[0], id[0], action[0], &error));
    else
        printf("%s: score %d, %d fruit\n", (const char *[]){"rule", "policy", "chance"}[who], score, fruit);
}

int main(void)
{
    exphil_dataset_config rows = {sizeof rows, .spec = &spec};
    exphil_model_config shape = {sizeof shape, .spec = &spec, .hidden = 32, .delay_frames = DELAY};
    exphil_session_config likeliest = {sizeof likeliest, .deterministic = 1};
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model, *trained;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_session *session;
    must(exphil_context_create(NULL, &context, &error));
    must(exphil_dataset_create(context, &rows, &dataset, &error));
    for (uint32_t game = 1; game <= GAMES; game++) play(RULE, game, NULL, dataset);
    must(exphil_model_create(context, &shape, &model, &error));
    must(exphil_model_sampling(model, &sampling, &error)); /* its delay and past actions */
    must(exphil_prefetcher_create(dataset, &sampling, &prefetcher, &error));
    must(exphil_optimizer_create(model, NULL, &optimizer, &error));
    must(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, &error));
    for (int update = 0; update < UPDATES; update++) must(exphil_trainer_step(trainer, NULL, &error));
    must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, &error));
    must(exphil_session_create(trained, &likeliest, &session, &error));
    for (int who = RULE; who <= CHANCE; who++) play(who, GAMES + 1, session, NULL);
    exphil_session_destroy(session), exphil_model_destroy(trained), exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer), exphil_prefetcher_destroy(prefetcher), exphil_model_destroy(model);
    exphil_dataset_destroy(dataset), exphil_context_destroy(context);
    return 0;
}
