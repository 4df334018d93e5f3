/* `exphil launch --gpus`: which GPUs there are, one for each rank. See launch.h. */
#include "launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ; /* not every system declares it */

/* As CUDA reads it: a number, or the begin of what nvidia-smi -L calls a GPU or a part of one. */
static bool is_gpu(const char *name)
{
    return (name[0] && strspn(name, "0123456789") == strlen(name)) || strncmp(name, "GPU-", 4) == 0 ||
           strncmp(name, "MIG-", 4) == 0;
}

/* The names between commas. With whole all of them must be GPUs; else the first that is none ends them, as for CUDA. */
static bool read_list(const char *text, bool whole, char (*gpu)[LAUNCH_NAME], int *count)
{
    *count = 0;
    for (const char *at = text, *end;; at = end + 1) {
        char name[LAUNCH_NAME] = "";
        end = at + strcspn(at, ",");
        if (end - at < LAUNCH_NAME) memcpy(name, at, (size_t)(end - at));
        if (!is_gpu(name)) {
            if (!whole) return true;
            fprintf(stderr,
                    "exphil: --gpus: \"%.*s\" is no GPU: a number as 0, GPU-... or MIG-... is wanted\n",
                    (int)(end - at), at);
            return false;
        }
        for (int i = 0; i < *count; i++) {
            if (strcmp(gpu[i], name) != 0) continue;
            fprintf(stderr, "exphil: --gpus: %s is named twice\n", name);
            return false;
        }
        if (*count == LAUNCH_RANKS_MOST) {
            fprintf(stderr, "exphil: --gpus: more than %d GPUs\n", LAUNCH_RANKS_MOST);
            return false;
        }
        memcpy(gpu[(*count)++], name, sizeof name);
        if (!*end) return true;
    }
}

/* Runs nvidia-smi -L; what it says is read from the descriptor. */
static bool run_smi(pid_t *process, int *from)
{
    static char name[] = "nvidia-smi", list[] = "-L", *words[] = {name, list, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (!launch_pipe(ends)) return false;
    bool ready = posix_spawn_file_actions_init(&actions) == 0;
    bool begun = ready && posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0 &&
                 posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                 posix_spawnp(process, name, &actions, NULL, words, environ) == 0;
    if (ready) (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (!begun) (void)close(ends[0]);
    *from = ends[0];
    return begun;
}

/* GPUs of the machine, by nvidia-smi, which shows those that this process may use; -1: there is no such program, or it
 * failed. */
static int count_smi(void)
{
    char line[512];
    int count = 0, from, status = 1;
    pid_t process;
    if (!run_smi(&process, &from)) return -1;
    FILE *lines = fdopen(from, "r");
    while (lines && fgets(line, sizeof line, lines))
        if (strncmp(line, "GPU ", 4) == 0) count++;
    if (lines)
        (void)fclose(lines);
    else
        (void)close(from);
    return waitpid(process, &status, 0) == process && status == 0 ? count : -1;
}

/* By the driver. */
static int count_driver(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/driver/nvidia/gpus");
    for (const struct dirent *one; folder && (one = readdir(folder));)
        if (one->d_name[0] != '.') count++;
    if (folder) (void)closedir(folder);
    return count;
}

static bool find_all(char (*gpu)[LAUNCH_NAME], int *count)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !read_list(visible, false, gpu, count)) return false;
    if (!visible) {
        int found = count_smi();
        if (found < 0) found = count_driver();
        *count = found < LAUNCH_RANKS_MOST ? found : LAUNCH_RANKS_MOST;
        for (int i = 0; i < *count; i++) (void)snprintf(gpu[i], LAUNCH_NAME, "%d", i);
    }
    if (*count > 0) return true;
    if (visible)
        fprintf(stderr, "exphil: --gpus all: CUDA_VISIBLE_DEVICES is \"%s\": that shows none\n", visible);
    else
        fprintf(stderr, "exphil: --gpus all: neither nvidia-smi -L nor /proc/driver/nvidia/gpus shows one\n");
    return false;
}

bool launch_gpus(const char *text, char (*gpu)[LAUNCH_NAME], int *count)
{
    return strcmp(text, "all") == 0 ? find_all(gpu, count) : read_list(text, true, gpu, count);
}
