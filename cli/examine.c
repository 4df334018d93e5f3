/* Counts what an examination shows. */
#include "examine.h"
#include "commands.h"

#include "base/double.h" /* what is counted stands in files, with the same bits everywhere */

#include <exphil/examine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 60, PHASE_FRAMES = 600 }; /* of mistakes; first and last ten seconds */

/* ---- heads --------------------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    return x >= 0 ? 1.0 / (1.0 + xph_exp_of(-x)) : xph_exp_of(x) / (1.0 + xph_exp_of(x));
}

static double plogp(double p)
{
    return p > 0.0 ? -p * xph_log_of(p) : 0.0;
}

static void confide(exam_head *head, double confidence, bool right)
{
    int bin = (int)(confidence * EXAM_BINS);
    if (bin >= EXAM_BINS) bin = EXAM_BINS - 1;
    head->bin[bin].count++;
    head->bin[bin].right += right;
    head->bin[bin].confidence += confidence;
}

static void count_bits(exam_head *head, int32_t count, const double *logit, int32_t recorded, int32_t likely)
{
    for (int32_t i = 0; i < count; i++) {
        double p = sigmoid(logit[i]);
        bool was = recorded >> i & 1, is = likely >> i & 1;
        head->bit[i].probability += p;
        head->bit[i].decided += is;
        head->bit[i].recorded += was;
        head->entropy += plogp(p) + plogp(1.0 - p);
        confide(head, is ? p : 1.0 - p, is == was);
    }
}

static void count_classes(exam_head *head, int32_t count, const double *logit, int32_t recorded,
                          int32_t likely)
{
    double most = logit[0], sum = 0.0, spread = 0.0;
    for (int32_t k = 1; k < count; k++) most = logit[k] > most ? logit[k] : most;
    for (int32_t k = 0; k < count; k++) sum += xph_exp_of(logit[k] - most);
    for (int32_t k = 0; k < count; k++) spread += xph_exp_of(logit[k] - most) / sum * (logit[k] - most);
    head->entropy += xph_log_of(sum) - spread;
    const int32_t places = (int32_t)(sizeof head->classes / sizeof head->classes[0]);
    head->classes[likely < places ? likely : places - 1]++;
    confide(head, xph_exp_of(logit[likely] - most) / sum, likely == recorded);
}

/* ---- the stick ----------------------------------------------------------------------------------------- */

int stick_eighth(double right, double up)
{
    const double tan_22_5 = 0.41421356237309503; /* half an eighth */
    const double across = fabs(right), along = fabs(up);
    if (along <= tan_22_5 * across) return right < 0 ? 4 : 0;
    if (across <= tan_22_5 * along) return up < 0 ? 6 : 2;
    return right > 0 ? (up > 0 ? 1 : 7) : up > 0 ? 3 : 5;
}

/* Inside the game's dead zone of an axis a stick is at rest. */
static int sector(float x, float y)
{
    const double dead = 0.2875;
    double right = fabs((double)x) < dead ? 0.0 : (double)x, up = fabs((double)y) < dead ? 0.0 : (double)y;
    if (right == 0.0 && up == 0.0) return 0;
    return 1 + stick_eighth(right, up);
}

static void count_stick(exam *e, const int32_t *recorded, const int32_t *likely)
{
    exphil_pad was, is;
    if (exphil_melee_pad_decode(e->spec.codec, recorded, &was, NULL) < 0 ||
        exphil_melee_pad_decode(e->spec.codec, likely, &is, NULL) < 0)
        return;
    e->stick[sector(was.main_x, was.main_y)][sector(is.main_x, is.main_y)]++;
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static exam_group *group_of(exam_group *groups, int32_t id)
{
    return &groups[id >= 0 && id < EXAM_GROUPS - 1 ? id : EXAM_GROUPS - 1];
}

/* The opening, the time of the last stock, the last ten seconds of what is there, and the rest. */
static int phase_of(const exam *e, const exphil_examined *f, const exphil_episode_info *episode)
{
    int64_t game = episode->first_game_frame + f->row + f->delay_frames;
    if (game < PHASE_FRAMES) return 0;
    if (e->at_own[3] >= 0) return (double)f->floats[e->at_own[3]] / e->scale[3] < 1.5 ? 2 : 1;
    return f->row + PHASE_FRAMES >= episode->frames ? 3 : 1;
}

static void count_group(exam_group *group, double nll, bool right, bool change)
{
    group->frames++;
    group->right += right;
    group->changes += change;
    group->right_changes += change && right;
    group->nll += nll;
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

static void note_situation(const exam *e, const exphil_examined *f, exam_mistake *m)
{
    for (int i = 0; i < 4; i++) {
        m->own[i] = e->at_own[i] >= 0 ? (float)((double)f->floats[e->at_own[i]] / e->scale[i]) : 0.0f;
        m->other[i] = e->at_other[i] >= 0 ? (float)((double)f->floats[e->at_other[i]] / e->scale[i]) : 0.0f;
    }
}

static void note(const exam *e, const exphil_examined *f, double nll, exam_mistake *m)
{
    size_t bytes = (size_t)e->spec.head_count * sizeof(int32_t);
    *m = (exam_mistake){
        .frame = f->frame, .episode = f->episode, .row = f->row, .nll = nll, .delay = f->delay_frames};
    memcpy(m->recorded, f->recorded, bytes);
    memcpy(m->likely, f->likely, bytes);
    note_situation(e, f, m);
}

/* Of frames within a second of each other the dearest stands for all; a game gives at most e->each. */
static void consider(exam *e, const exphil_examined *f, double nll)
{
    int64_t game = e->game[f->episode];
    exam_mistake *of = e->candidates + game * e->each, *least = NULL;
    int32_t *count = &e->candidate_count[game];
    for (int32_t i = 0; i < *count; i++) {
        if (of[i].episode == f->episode && llabs(of[i].row - f->row) < NEAR) {
            if (nll > of[i].nll) note(e, f, nll, &of[i]);
            return;
        }
        if (!least || of[i].nll < least->nll) least = &of[i];
    }
    if (*count < e->each)
        note(e, f, nll, &of[(*count)++]);
    else if (least && nll > least->nll)
        note(e, f, nll, least);
}

static int compare_cost(const void *a, const void *b)
{
    const exam_mistake *x = *(exam_mistake *const *)a, *y = *(exam_mistake *const *)b;
    if (x->nll != y->nll) return x->nll > y->nll ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

int64_t *exam_mistakes(const exam *e, int64_t *count)
{
    int64_t all = 0;
    *count = 0;
    for (int64_t g = 0; g < e->games; g++) all += e->candidate_count[g];
    const exam_mistake **order = calloc((size_t)all + 1, sizeof(const exam_mistake *));
    int64_t *result = calloc((size_t)all + 1, sizeof *result);
    for (int64_t g = 0, at = 0; order && g < e->games; g++)
        for (int32_t i = 0; i < e->candidate_count[g]; i++) order[at++] = &e->candidates[g * e->each + i];
    if (order) qsort(order, (size_t)all, sizeof(const exam_mistake *), compare_cost);
    for (int64_t i = 0; order && result && i < all && i < e->wanted; i++)
        result[(*count)++] = order[i] - e->candidates;
    free(order);
    return result;
}

/* ---- the examination ----------------------------------------------------------------------------------- */

static int32_t look(void *user, const exphil_examined *f)
{
    exam *e = user;
    const exphil_episode_info *episode = &e->episode[f->episode];
    double nll = 0.0;
    bool right = true, change = false;
    int64_t first = 0;
    for (int64_t h = 0; h < e->spec.head_count; h++) {
        const exphil_head_spec *spec = &e->spec.heads[h];
        const double *logit = f->logits + first;
        if (spec->kind == EXPHIL_BERNOULLI)
            count_bits(&e->head[h], spec->count, logit, f->recorded[h], f->likely[h]);
        else
            count_classes(&e->head[h], spec->count, logit, f->recorded[h], f->likely[h]);
        nll -= f->log_probability[h];
        right &= f->likely[h] == f->recorded[h];
        change |= f->recorded[h] != f->before[h];
        first += spec->count;
    }
    e->frames++;
    if (e->melee) count_stick(e, f->recorded, f->likely);
    count_group(&e->all, nll, right, change);
    if (episode->character >= 0) {
        count_group(group_of(e->own, episode->character), nll, right, change);
        count_group(group_of(e->other, episode->opponent_character), nll, right, change);
        count_group(group_of(e->stage, episode->stage), nll, right, change);
        count_group(&e->phase[phase_of(e, f, episode)], nll, right, change);
    }
    if (e->wanted) consider(e, f, nll);
    return 0;
}

/* Columns of x, y, percent and stocks, by their names in the layout. */
static void find_columns(exam *e)
{
    static const char *const names[4][2] = {
        {"x", "x"}, {"y", "y"}, {"percent", "percent"}, {"stocks", "stock"}};
    char own[64], other[64];
    for (int i = 0; i < 4; i++) e->at_own[i] = e->at_other[i] = -1;
    for (int64_t k = 0; k < exphil_melee_field_count(e->spec.layout); k++) {
        exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
        if (exphil_melee_field_get(e->spec.layout, k, &field, NULL) < 0 || field.is_id ||
            !(field.scale > 0.0))
            continue;
        for (int i = 0; i < 8; i++) {
            snprintf(own, sizeof own, "own.%s", names[i / 2][i % 2]);
            snprintf(other, sizeof other, "opponent.%s", names[i / 2][i % 2]);
            if (strcmp(field.name, own) == 0) {
                e->at_own[i / 2] = field.offset;
                e->scale[i / 2] = field.scale;
            }
            if (strcmp(field.name, other) == 0) e->at_other[i / 2] = field.offset;
        }
    }
}

static int compare_hash(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers the games in the order of their hashes. */
static bool number_games(exam *e)
{
    uint64_t *hash = calloc((size_t)e->episodes + 1, sizeof *hash);
    if (!hash) return false;
    for (int64_t i = 0; i < e->episodes; i++) hash[i] = e->episode[i].game;
    qsort(hash, (size_t)e->episodes, sizeof *hash, compare_hash);
    for (int64_t i = 0; i < e->episodes; i++)
        if (!i || hash[i] != hash[e->games - 1]) hash[e->games++] = hash[i];
    for (int64_t i = 0; i < e->episodes; i++) {
        const uint64_t *found =
            bsearch(&e->episode[i].game, hash, (size_t)e->games, sizeof *hash, compare_hash);
        e->game[i] = found - hash;
    }
    free(hash);
    return true;
}

static bool make_memory(exam *e, int64_t episodes)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    e->episodes = episodes;
    e->episode = calloc((size_t)episodes + 1, sizeof *e->episode);
    e->game = calloc((size_t)episodes + 1, sizeof *e->game);
    e->head = calloc((size_t)e->spec.head_count, sizeof *e->head);
    if (!e->episode || !e->game || !e->head) return false;
    for (int64_t i = 0; i < episodes; i++) {
        e->episode[i] = (exphil_episode_info)EXPHIL_EPISODE_INFO_INIT;
        if (exphil_dataset_episode(e->dataset, i, &e->episode[i], &error) < 0)
            return complain("examination", &error) == 0;
    }
    if (!number_games(e)) return false;
    e->each = e->games ? (e->wanted + e->games - 1) / e->games : 0;
    if (!e->wanted) return true;
    e->candidates = calloc((size_t)(e->games * e->each) + 1, sizeof *e->candidates);
    e->candidate_count = calloc((size_t)e->games + 1, sizeof *e->candidate_count);
    return e->candidates && e->candidate_count;
}

bool exam_make(const exphil_model *model, const exphil_dataset *dataset, const exam_how *how, exam *e)
{
    exphil_examination config = EXPHIL_EXAMINATION_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec melee = EXPHIL_SPEC_INIT;
    *e = (exam){
        .dataset = dataset, .spec = EXPHIL_SPEC_INIT, .wanted = how->mistakes, .alone = how->alone > 0};
    if (exphil_dataset_query(dataset, &info, &error) < 0 ||
        exphil_dataset_spec(dataset, &e->spec, &error) < 0)
        return complain("examination", &error) == 0;
    e->melee = exphil_melee_spec(NULL, e->spec.codec, &melee, NULL) >= 0;
    find_columns(e);
    if (!make_memory(e, info.episodes)) {
        fprintf(stderr, "exphil: no memory for the examination\n");
        return false;
    }
    config.see = look;
    config.user = e;
    config.conditions = how->conditions;
    config.condition_count = how->condition_count;
    config.delay_frames = how->delay;
    config.batch = how->batch;
    config.alone_most_frames = how->alone;
    if (exphil_examine(model, dataset, &config, &error) >= 0) return true;
    return complain("examination", &error) == 0;
}

void exam_free(exam *e)
{
    free(e->head);
    free(e->game);
    free(e->episode);
    free(e->candidates);
    free(e->candidate_count);
}

/* ---- figures ------------------------------------------------------------------------------------------- */

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

double exam_rate_decided(const exam *e, int64_t head, int32_t bit)
{
    return share(e->head[head].bit[bit].decided, e->frames);
}

double exam_rate_recorded(const exam *e, int64_t head, int32_t bit)
{
    return share(e->head[head].bit[bit].recorded, e->frames);
}

double exam_calibration_error(const exam *e, int64_t head)
{
    double sum = 0.0;
    int64_t all = 0;
    for (int i = 0; i < EXAM_BINS; i++) all += e->head[head].bin[i].count;
    for (int i = 0; i < EXAM_BINS; i++)
        sum += fabs((double)e->head[head].bin[i].right - e->head[head].bin[i].confidence);
    return all ? sum / (double)all : 0.0;
}

const char *exam_bit_name(const exam *e, int64_t head, int32_t bit, char *to, size_t size)
{
    static const char *const buttons[] = {"A", "B", "X", "Y", "Z", "L", "R", "D-pad up"};
    if (e->melee && bit < 8)
        snprintf(to, size, "%s", buttons[bit]);
    else
        snprintf(to, size, "%s %d", e->spec.heads[head].name, bit);
    return to;
}
