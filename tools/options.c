/* Reading of command lines by table: --name value, --name=value, --flag, --help, -- ends options. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show_help(const option_command *command)
{
    printf("usage: exphil %s\n\n%s\n", command->usage, command->about);
    for (const option_entry *e = command->entry; e->help; e++) {
        char left[64];
        if (!e->name) {
            printf("\n%s\n", e->help);
            continue;
        }
        snprintf(left, sizeof left, "--%s%s%s", e->name, e->argument ? " " : "",
                 e->argument ? e->argument : "");
        printf("  %-26s %s\n", left, e->help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static const option_entry *find(const option_command *command, const char *name, size_t length)
{
    for (const option_entry *e = command->entry; e->help; e++)
        if (e->name && strlen(e->name) == length && strncmp(e->name, name, length) == 0) return e;
    return NULL;
}

static bool store(const option_entry *entry, const char *text)
{
    char *end;
    errno = 0;
    if (entry->kind == OPTION_TEXT) {
        *(const char **)entry->value = text;
        return true;
    }
    if (entry->kind == OPTION_INT)
        *(int64_t *)entry->value = strtoll(text, &end, 10);
    else
        *(double *)entry->value = strtod(text, &end);
    return text[0] && !*end && !errno;
}

/* Reads the option at argv[*i]; moves *i over its value. */
static bool read_one(const option_command *command, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '='), *text = equals ? equals + 1 : NULL;
    const option_entry *entry = find(command, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!entry) {
        fprintf(stderr, "exphil: unknown option %s; see exphil %.*s --help\n", argv[*i],
                (int)strcspn(command->usage, " "), command->usage);
        return false;
    }
    if (command->given) command->given[entry - command->entry] = true;
    if (entry->kind == OPTION_FLAG) {
        if (text)
            fprintf(stderr, "exphil: --%s takes no value\n", entry->name);
        else
            *(bool *)entry->value = true;
        return !text;
    }
    if (!text && *i + 1 < argc) text = argv[++*i];
    if (text && store(entry, text)) return true;
    fprintf(stderr, "exphil: --%s wants %s%s%s\n", entry->name, entry->argument, text ? ", not " : "",
            text ? text : "");
    return false;
}

bool options_read(const option_command *command, int argc, char **argv, int *count, int *status)
{
    int kept = 0;
    bool plain = false;
    *status = 2;
    for (int i = 1; i < argc; i++) {
        if (!plain && strcmp(argv[i], "--") == 0)
            plain = true;
        else if (!plain && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            show_help(command);
            *status = 0;
            return false;
        } else if (!plain && strncmp(argv[i], "--", 2) == 0) {
            if (!read_one(command, argc, argv, &i)) return false;
        } else
            argv[++kept] = argv[i];
    }
    *count = kept;
    return true;
}

bool options_given(const option_command *command, const char *name)
{
    const option_entry *entry = find(command, name, strlen(name));
    return entry && command->given && command->given[entry - command->entry];
}
