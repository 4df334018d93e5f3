/* Presets: a preset is a text of options, read as a command line would be, behind what was asked for. */
#include "presets.h"

#include <stdio.h>
#include <string.h>

enum { GIVEN_MOST = 256 };

static const preset *find(const preset *presets, const char *name)
{
    for (int i = 0; presets[i].name; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    fprintf(stderr, "exphil: --preset wants ");
    for (int i = 0; presets[i].name; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : presets[i + 1].name ? ", " : " or ", presets[i].name);
    fprintf(stderr, ", not %s\n", name);
    return NULL;
}

static bool left_out(const char *const *leave, const char *name)
{
    for (; leave && *leave; leave++)
        if (strcmp(*leave, name) == 0) return true;
    return false;
}

/* " --name" or " --name value" behind what is there. */
static void note(char taken[PRESET_TEXT], const char *name, const char *value)
{
    size_t used = strlen(taken);
    (void)snprintf(taken + used, PRESET_TEXT - used, "%s--%s%s%s", used ? " " : "", name, value ? " " : "",
                   value ? value : "");
}

bool preset_take(const option_command *command, const preset *presets, const char *name,
                 const char *const *leave, char taken[PRESET_TEXT])
{
    static char words[PRESET_TEXT]; /* texts of options stay */
    bool asked[GIVEN_MOST] = {false};
    const preset *found = find(presets, name);
    char *rest = words;
    taken[0] = 0;
    if (!found) return false;
    for (int i = 0; command->entry[i].help && i < GIVEN_MOST; i++) asked[i] = command->given[i];
    (void)snprintf(words, sizeof words, "%s", found->options);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const option_entry *entry = options_find(command, word + 2);
        bool flag = entry->kind == OPTION_FLAG;
        const char *value = flag ? NULL : strtok_r(NULL, " ", &rest);
        if (options_outdone(command, asked, entry->name) || left_out(leave, entry->name)) continue;
        if (flag)
            *(bool *)entry->value = true;
        else if (!options_store(entry, value, "--preset"))
            return false;
        command->given[entry - command->entry] = true;
        note(taken, entry->name, value);
    }
    return true;
}
