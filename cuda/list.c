/* Lists GPUs without starting the driver: a process that has started it can no longer fork. The driver's
 * kernel module lists its GPUs in /proc; CUDA_VISIBLE_DEVICES hides some, as in CUDA. Without such a list
 * (WSL) no GPU is counted before one was opened. */
#include "device.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "/proc/driver/nvidia/gpus"

/* Of any GPU; "" when they differ, for their order is the driver's. */
static void note_name(const char *folder, char name[128])
{
    char path[512], line[256], model[128];
    snprintf(path, sizeof path, "%s/%s/information", LIST, folder);
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Model: %127[^\n]", model) != 1) continue;
        if (name[0] == 0)
            snprintf(name, 128, "%s", model);
        else if (strcmp(name, model) != 0)
            snprintf(name, 128, "different models");
    }
    fclose(file);
}

static int32_t count_listed(char name[128])
{
    int32_t count = 0;
    DIR *list = opendir(LIST);
    name[0] = 0;
    if (!list) return 0;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        note_name(entry->d_name, name);
        count++;
    }
    closedir(list);
    return count;
}

/* Entries up to the first that is no GPU, as the CUDA programming guide has it. */
static int32_t count_visible(const char *visible, int32_t listed)
{
    int32_t count = 0;
    while (*visible && count < listed) {
        char *end;
        long number = strtol(visible, &end, 10);
        bool named = strncmp(visible, "GPU-", 4) == 0 || strncmp(visible, "MIG-", 4) == 0;
        if (!named && (end == visible || number < 0 || number >= listed)) break;
        count++;
        visible = strchr(visible, ',');
        if (!visible) break;
        visible++;
    }
    return count;
}

int32_t xph_cuda_list(char name[128])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int32_t listed = count_listed(name);
    return visible ? count_visible(visible, listed) : listed;
}
