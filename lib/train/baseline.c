/* Frequencies of a dataset's actions: the majority value of each head and of the whole action, and the
 * negative log-likelihood of always predicting the frequencies (add-one-half smoothing, so that unseen values
 * have a large but finite cost). */
#include "train/baseline.h"

#include "base/double.h"
#include "data/data.h"

/* The commonest of sorted words; of equals the smallest. */
static uint64_t commonest(const uint64_t *word, int64_t count)
{
    uint64_t best = word[0];
    int64_t most = 0;
    for (int64_t i = 0; i < count;) {
        int64_t end = i;
        while (end < count && word[end] == word[i]) end++;
        if (end - i > most) {
            most = end - i;
            best = word[i];
        }
        i = end;
    }
    return best;
}

/* The rows that are counted. */
typedef struct rows {
    const exphil_dataset *dataset;
    int32_t *actions; /* of all of them; NULL: the dataset has them at hand */
    int64_t count, heads;
} rows;

static exphil_status read_action(const rows *from, int64_t i, int32_t *action, exphil_error *error)
{
    if (!from->actions) return exphil_dataset_frame(from->dataset, i, NULL, NULL, action, error);
    memcpy(action, from->actions + i * from->heads, (size_t)from->heads * sizeof *action);
    return EXPHIL_OK;
}

/* Commonest value of one head: values are below 2^31, so they sort as words. */
static exphil_status find_majority(const rows *from, xph_baseline *baseline, uint64_t *word,
                                   exphil_error *error)
{
    int32_t action[EXPHIL_HEADS_MAX];
    int64_t frames = from->count;
    for (int64_t h = 0; h < baseline->spec->head_count; h++) {
        for (int64_t i = 0; i < frames; i++) {
            XPH_TRY(read_action(from, i, action, error));
            word[i] = (uint64_t)(uint32_t)action[h];
        }
        xph_sort(word, frames);
        baseline->majority[h] = (int32_t)commonest(word, frames);
    }
    return EXPHIL_OK;
}

/* Commonest whole action: by hash, then the first frame that has it. */
static exphil_status find_whole(const rows *from, xph_baseline *baseline, uint64_t *word, exphil_error *error)
{
    int32_t action[EXPHIL_HEADS_MAX];
    int64_t frames = from->count;
    size_t bytes = (size_t)baseline->spec->head_count * sizeof(int32_t);
    for (int64_t i = 0; i < frames; i++) {
        XPH_TRY(read_action(from, i, action, error));
        word[i] = xph_hash(action, bytes);
    }
    xph_sort(word, frames);
    uint64_t best = commonest(word, frames);
    for (int64_t i = 0; i < frames; i++) {
        XPH_TRY(read_action(from, i, action, error));
        if (xph_hash(action, bytes) != best) continue;
        memcpy(baseline->whole, action, bytes);
        return EXPHIL_OK;
    }
    return EXPHIL_OK;
}

static exphil_status count_values(const rows *from, xph_baseline *baseline, exphil_error *error)
{
    int32_t action[EXPHIL_HEADS_MAX];
    for (int64_t i = 0; i < from->count; i++) {
        XPH_TRY(read_action(from, i, action, error));
        for (int64_t h = 0; h < baseline->spec->head_count; h++) {
            const exphil_head_spec *head = &baseline->spec->heads[h];
            double *count = baseline->nll + baseline->first[h];
            if (head->kind == EXPHIL_CATEGORICAL)
                count[action[h]] += 1.0;
            else
                for (int32_t bit = 0; bit < head->count; bit++)
                    count[2 * bit + ((action[h] >> bit) & 1)] += 1.0;
        }
    }
    return EXPHIL_OK;
}

/* Counts -> -log((count + 1/2) / (frames + values/2)). */
static void counts_to_nll(xph_baseline *baseline, int64_t frames)
{
    for (int64_t h = 0; h < baseline->spec->head_count; h++) {
        const exphil_head_spec *head = &baseline->spec->heads[h];
        bool classes = head->kind == EXPHIL_CATEGORICAL;
        int32_t values = classes ? head->count : 2, cells = classes ? head->count : 2 * head->count;
        double all = (double)frames + 0.5 * values;
        for (int32_t i = 0; i < cells; i++) {
            double *cell = &baseline->nll[baseline->first[h] + i];
            *cell = -xph_log_of((*cell + 0.5) / all);
        }
    }
}

static size_t place_cells(const exphil_spec *spec, int64_t first[EXPHIL_HEADS_MAX])
{
    int64_t cells = 0;
    for (int64_t h = 0; h < spec->head_count; h++) {
        first[h] = cells;
        cells += (int64_t)spec->heads[h].count * (spec->heads[h].kind == EXPHIL_CATEGORICAL ? 1 : 2);
    }
    return (size_t)cells * sizeof(double);
}

static size_t word_bytes(const rows *from)
{
    return (size_t)from->count * sizeof(uint64_t);
}

static size_t action_bytes(const rows *from)
{
    return (size_t)(from->count * from->heads) * sizeof *from->actions;
}

static rows rows_of(const exphil_dataset *dataset)
{
    return (rows){dataset, NULL, xph_dataset_action_rows(dataset), xph_dataset_spec_of(dataset)->head_count};
}

size_t xph_baseline_bytes(const exphil_dataset *dataset, size_t *temporary)
{
    int64_t first[EXPHIL_HEADS_MAX];
    const rows from = rows_of(dataset);
    *temporary = xph_dataset_reader_bytes(dataset) + word_bytes(&from) +
                 (xph_dataset_copies_actions(dataset) ? action_bytes(&from) : 0);
    return place_cells(xph_dataset_spec_of(dataset), first);
}

exphil_status xph_baseline_make(const exphil_dataset *dataset, xph_baseline *baseline, exphil_error *error)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    XPH_TRY(exphil_dataset_query(dataset, &info, error));
    if (info.frames == 0) return xph_fail(error, EXPHIL_E_INVALID, "the dataset for frequencies is empty");
    xph_baseline made = {.context = xph_dataset_context(dataset), .spec = xph_dataset_spec_of(dataset)};
    made.nll_bytes = place_cells(made.spec, made.first);
    made.nll = xph_calloc(made.context, 1, made.nll_bytes);
    rows from = rows_of(dataset);
    uint64_t *word = xph_alloc(made.context, word_bytes(&from));
    exphil_status status = made.nll && word ? EXPHIL_OK : xph_no_memory(word_bytes(&from), error);
    if (status >= 0) status = xph_dataset_actions(dataset, &from.actions, error);
    if (status >= 0) status = count_values(&from, &made, error);
    if (status >= 0) status = find_majority(&from, &made, word, error);
    if (status >= 0) status = find_whole(&from, &made, word, error);
    xph_free(made.context, from.actions, action_bytes(&from));
    xph_free(made.context, word, word_bytes(&from));
    if (status < 0) {
        xph_baseline_free(&made);
        return status;
    }
    counts_to_nll(&made, from.count);
    *baseline = made;
    return EXPHIL_OK;
}

void xph_baseline_free(xph_baseline *baseline)
{
    if (baseline->nll) xph_free(baseline->context, baseline->nll, baseline->nll_bytes);
    baseline->nll = NULL;
}

double xph_baseline_nll(const xph_baseline *baseline, int64_t head, int32_t value)
{
    const exphil_head_spec *spec = &baseline->spec->heads[head];
    const double *nll = baseline->nll + baseline->first[head];
    if (spec->kind == EXPHIL_CATEGORICAL) return nll[value];
    double sum = 0.0;
    for (int32_t bit = 0; bit < spec->count; bit++) sum += nll[2 * bit + ((value >> bit) & 1)];
    return sum;
}
