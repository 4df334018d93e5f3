/* What comes of recorded play in training: the value head, and imitation that weighs frames by what came of them. */
#ifndef EXPHIL_CLI_TRAIN_OUTCOME_H
#define EXPHIL_CLI_TRAIN_OUTCOME_H

#include "options.h"
#include "rewards.h"

#include <jansson.h>

struct train_options;
struct train_state;

typedef struct outcome_options {
    const char *value, *rewards; /* NULL: not given */
    double stock, damage, half_life, beta, cap, weight;
    double ledge, stalling, approach;
    int64_t warmup;
    bool shuffled, value_only;
    /* what follows from them (outcome_check) */
    int32_t kind; /* EXPHIL_VALUE_...; NONE: none was asked for; weights to start from may have one */
    bool learns;  /* updates are exphil_trainer_step_outcome */
    rewards_options of;
} outcome_options;

#define OUTCOME_DEFAULTS                                                                                     \
  {                                                                                                          \
    .stock = 1.0, .damage = 0.01, .half_life = 4.0, .cap = 5.0, .weight = 0.5                                \
  }
#define OUTCOME_OPTIONS(o)                                                                                   \
  {"value", OPTION_TEXT, &(o).value, "KIND",                                                                 \
   "a value head, which learns to tell what is to come: none (default); detached, which leaves what the "    \
   "policy has learnt alone; or shared, whose gradients reach its blocks too. exphil review shows what it "  \
   "says"},                                                                                                  \
      {"rewards", OPTION_TEXT, &(o).rewards, "NAME",                                                         \
       "what it learns from: melee, stocks and percent, each player's loss the other's gain (default with "  \
       "--value); none: the head is made and not trained (default without)"},                                \
      {"half-life", OPTION_NUMBER, &(o).half_life, "SECONDS",                                                \
       "after which a reward counts half (default 4)"},                                                      \
      {"reward-stock", OPTION_NUMBER, &(o).stock, "X", "of a stock (default 1)"},                            \
      {"reward-damage", OPTION_NUMBER, &(o).damage, "X", "of a percent (default 0.01)"},                     \
      {"reward-ledge", OPTION_NUMBER, &(o).ledge, "X",                                                       \
       "cost of catching the ledge while the opponent stands nearer to the middle (default 0)"},             \
      {"reward-stalling", OPTION_NUMBER, &(o).stalling, "X",                                                 \
       "cost of a second more than 20 units off the stage (default 0)"},                                     \
      {"reward-approach", OPTION_NUMBER, &(o).approach, "X",                                                 \
       "of a unit of way towards the opponent (default 0)"},                                                 \
      {"value-weight", OPTION_NUMBER, &(o).weight, "X",                                                      \
       "weight of the value's squared error beside the loss of imitation (default 0.5)"},                    \
      {"value-only", OPTION_FLAG, &(o).value_only, NULL,                                                     \
       "learn the value alone: with a detached head the policy stays as it is (default: imitate too)"},      \
      {"outcome-beta", OPTION_NUMBER, &(o).beta, "X",                                                        \
       "imitate what went better than expected more: frames weigh exp(more than expected / X), a stock "     \
       "being --reward-stock (default 0: all the same)"},                                                    \
      {"outcome-cap", OPTION_NUMBER, &(o).cap, "X", "such weights at most (default 5)"},                     \
      {"value-warmup", OPTION_INT, &(o).warmup, "N",                                                         \
       "updates in which all weigh the same while the value is learnt (default 0)"},                         \
  {                                                                                                          \
    "shuffled-weights", OPTION_FLAG, &(o).shuffled, NULL,                                                    \
        "a control: frames of a batch get each other's weights, so that what is gained is not by outcomes "  \
        "(default: their own)"                                                                               \
  }

/* Do they mean something, and go together with the others? Fills in what follows; if not, says on stderr what is wrong. */
bool outcome_check(const option_command *command, struct train_options *o);
/* Gives the model that a run starts from the head that was asked for; false: said why there is none to learn with. */
bool outcome_head(struct train_state *r);
/* One update by what came; metrics as of exphil_trainer_step, without losses of heads. */
exphil_status outcome_step(struct train_state *r, exphil_metrics *metrics, exphil_error *error);
/* What the last update told, into its line of the log, and behind the words of the line of progress. */
void outcome_log(const struct train_state *r, json_t *line);
void outcome_words(const struct train_state *r, char *to, size_t size);
/* For the notes: a new object, NULL without outcomes; and is that of a checkpoint, or NULL, the same? If not, says the option. */
json_t *outcome_notes(const struct train_options *o);
bool outcome_same(const struct train_options *o, const json_t *before);
/* What weights were trained on, by their notes; false: they do not say. */
bool outcome_rewards(const json_t *train, rewards_options *of);

#endif
