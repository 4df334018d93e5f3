/* What came of a run, in a word, with the figure that it rests on and one piece of advice. All words about how a policy turned
 * out are here. */
#ifndef EXPHIL_CLI_VERDICT_H
#define EXPHIL_CLI_VERDICT_H

#include "examine.h"
#include "history.h"

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

typedef enum verdict_word {
    VERDICT_GOOD,
    VERDICT_TOO_SHORT,
    VERDICT_OVERFITTED,
    VERDICT_DIVERGED,
    VERDICT_COPIES,
    VERDICT_NEVER_PRESSES,
    VERDICT_FEW_DATA,
    VERDICT_ONE_CLASS
} verdict_word;

/* What is known of a run; what was not measured is 0 or false. Shares are 0..1. */
typedef struct verdict_case {
    bool run;                    /* there is a history of training; false in eval and play */
    bool held;                   /* what was scored was held out */
    bool measured_alone;         /* alone holds */
    int64_t updates, refused;    /* refused: whose loss or gradient was not finite */
    int64_t frames, games;       /* of the training data */
    int64_t held_games;          /* that are held out */
    double passes;               /* over them */
    double first, peak;          /* training loss: of the first update, of any */
    double middle, end, least;   /* means of it: halfway, at last, least of a tenth of the run */
    int64_t best_update, points; /* of the held-out curve: the best, how many points */
    double best_nll, last_nll;   /* its nll */
    bool by_alone;               /* all nll but train_nll are alone: the best is chosen by that */
    double fell,
        to_come;       /* of the nll: in the last quarter; what it would still fall, going on as it slows */
    double train_loss; /* of all training data, at the end */
    double train_nll, nll, frequency; /* nll of training data, of what was scored, and there by frequencies */
    double forced, alone, majority, copy; /* exact */
    double alone_nll;
    int64_t slots, delay;              /* past actions that are inputs; frames */
    double rate, decay, button_weight; /* options; rate 0: not given */
    bool unclipped, uncopied;          /* --clip is off; there is --drop-past or --own-past */
    double recorded_presses, decided_presses,
        drawn_presses; /* a frame, over all buttons; drawn: by its probabilities */
    double commonest;  /* share of the frames with the commonest decision, of the head that varies most */
} verdict_case;

enum { VERDICT_TEXT = 256 };
typedef struct verdict {
    verdict_word word;
    const char *name;
    char figure[VERDICT_TEXT], advice[VERDICT_TEXT]; /* advice: "" where there is nothing to do */
} verdict;

/* By rules that stand in doc/data.md. */
void verdict_of(const verdict_case *c, verdict *v);
/* What is known of a policy; all but scored and policy may be NULL. */
typedef struct verdict_facts {
    const exphil_model_info *policy;
    const json_t *options; /* what its run was asked for (notes_options): the advice follows from it */
    const exphil_report *scored, *train;
    const exam *seen;
    const history *of;
} verdict_facts;
void verdict_measure(const verdict_facts *facts, verdict_case *c);
json_t *verdict_json(const verdict *v);
json_t *verdict_case_json(const verdict_case *c);
/* "too short: ... " as a paragraph on stdout. */
void verdict_print(const verdict *v);
/* What can be said of a policy without its run; nothing where nothing is wrong. */
void verdict_print_scored(const verdict_facts *facts);

#endif
