/* What a training run leaves of itself beside its weights. */
#include "config.h"
#include "train_run.h"

bool train_record(const train_state *r, int count, char **paths)
{
    config_facts facts = {.count = count, .files = paths};
    facts.chosen = json_pack("{s:I,s:I}", "updates", (json_int_t)r->updates, "batch", (json_int_t)r->batch);
    if (r->options->preset) json_object_set_new(facts.chosen, "preset", json_string(r->options->preset));
    return config_write(r->options->command, r->options->record, &facts);
}
