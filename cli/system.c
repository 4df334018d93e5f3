/* The program on POSIX. See system.h. */
#include "system.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#  include <mach-o/dyld.h>
#endif

/* ---- the program --------------------------------------------------------------------------------------- */

static bool own_path(char path[PATH_MAX])
{
#ifdef __APPLE__
    char started[PATH_MAX];
    uint32_t bytes = sizeof started;
    return _NSGetExecutablePath(started, &bytes) == 0 && realpath(started, path);
#else
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length > 0) path[length] = 0;
    return length > 0;
#endif
}

/* The prefix may have moved since the build, and the library inside looks only where it was built for: the plugin that was
 * installed with this program is named to it, where the user names none. */
static void name_plugin(void)
{
    char program[PATH_MAX], guess[2 * PATH_MAX], folder[PATH_MAX];
    if (!own_path(program) || getenv("EXPHIL_BACKEND_DIR")) return;
    *strrchr(program, '/') = 0;
    (void)snprintf(guess, sizeof guess, "%s/%s", program, EXPHIL_LIBDIR_FROM_BINDIR);
    if (realpath(guess, folder) && strcmp(folder, EXPHIL_LIBDIR) != 0)
        setenv("EXPHIL_BACKEND_DIR", folder, 0);
}

/* Files that are opened later must not get the numbers of closed standard streams: results would go into them. What
 * stands there instead refuses as a closed stream does. */
static void hold_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

void system_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    hold_streams();
    name_plugin();
    /* Names in archives are converted by way of the locale, and that of a program that asks for none has ASCII alone. The second
     * name is macOS's. */
    if (!setlocale(LC_CTYPE, "C.UTF-8")) (void)setlocale(LC_CTYPE, "UTF-8");
}

void system_path(char *text)
{
    (void)text;
}

size_t system_drive(const char *path)
{
    (void)path;
    return 0;
}

#ifdef __APPLE__
const char system_library_end[] = ".dylib";
#else
const char system_library_end[] = ".so";
#endif

void *system_library(const char *path, bool everywhere)
{
    return dlopen(path, RTLD_NOW | (everywhere ? RTLD_GLOBAL : RTLD_LOCAL));
}

void *system_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

const char *system_library_why(void)
{
    return dlerror();
}

const char *system_worlds(void)
{
    const char *named = getenv("EXPHIL_WORLDS");
    return named && *named ? named : EXPHIL_LIBDIR "/exphil";
}

const char system_archive_opens[] = "archive_read_open_filename";

const void *system_archive_path(const char *path)
{
    return path;
}

bool system_terminal(FILE *stream)
{
    return isatty(fileno(stream)) == 1;
}

/* Systems without the call do not say which. */
int64_t system_processors(void *set, size_t bytes)
{
#ifdef __linux__
    if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, (cpu_set_t *)set);
#endif
    (void)set, (void)bytes;
    return 0;
}

/* ---- time ---------------------------------------------------------------------------------------------- */

int64_t system_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool system_date(int64_t seconds, bool utc, struct tm *date)
{
    const time_t time = (time_t)seconds;
    return (utc ? gmtime_r(&time, date) : localtime_r(&time, date)) != NULL;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static system_facts facts_of(const struct stat *of)
{
    return (system_facts){.regular = S_ISREG(of->st_mode),
                          .folder = S_ISDIR(of->st_mode),
                          .pipe = S_ISFIFO(of->st_mode),
                          .other = !S_ISREG(of->st_mode) && !S_ISDIR(of->st_mode),
                          .device = (uint64_t)of->st_dev,
                          .number = (uint64_t)of->st_ino,
                          .bytes = (uint64_t)of->st_size,
                          .modified = (int64_t)of->st_mtime};
}

bool system_same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool system_look(const char *path, system_facts *facts)
{
    struct stat of;
    bool there = stat(path, &of) == 0;
    *facts = there ? facts_of(&of) : (system_facts){.regular = false};
    return there;
}

bool system_there(const char *path)
{
    return access(path, F_OK) == 0;
}

bool system_taken(const char *path)
{
    struct stat of;
    return lstat(path, &of) == 0;
}

bool system_link(const char *path)
{
    struct stat of;
    return lstat(path, &of) == 0 && S_ISLNK(of.st_mode);
}

bool system_writable(const char *path)
{
    return access(path, W_OK) == 0;
}

bool system_writable_folder(const char *path)
{
    return access(path, W_OK | X_OK) == 0;
}

bool system_replaceable(const char *path)
{
    (void)path;
    return true;
}

bool system_stdout_is(const system_facts *facts)
{
    struct stat results;
    return fstat(STDOUT_FILENO, &results) == 0 && (uint64_t)results.st_dev == facts->device &&
           (uint64_t)results.st_ino == facts->number;
}

FILE *system_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

static FILE *stream_of(int descriptor, const char *mode)
{
    FILE *file = descriptor >= 0 ? fdopen(descriptor, mode) : NULL;
    if (descriptor >= 0 && !file) close(descriptor);
    return file;
}

FILE *system_create(const char *path)
{
    return stream_of(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666), "wb");
}

/* O_NONBLOCK: opening a pipe that nobody writes to must not hang. */
FILE *system_open_regular(const char *path, system_facts *facts)
{
    struct stat of;
    *facts = (system_facts){.regular = false};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return NULL;
    bool known = fstat(descriptor, &of) == 0;
    if (known) *facts = facts_of(&of);
    if (known && facts->regular) return stream_of(descriptor, "rb");
    close(descriptor);
    return NULL;
}

FILE *system_open_anew(const char *path)
{
    return stream_of(open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666), "wb");
}

bool system_sync(FILE *file)
{
    return fflush(file) == 0 && fsync(fileno(file)) == 0;
}

void system_sync_folder(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)fsync(descriptor);
    close(descriptor);
}

bool system_rename(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool system_remove(const char *path)
{
    return unlink(path) == 0;
}

char *system_real(const char *path)
{
    return realpath(path, NULL);
}

ptrdiff_t system_line(char **line, size_t *room, FILE *file)
{
    return getline(line, room, file);
}

intptr_t system_raw_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

intptr_t system_raw_unnamed(const char *folder)
{
    char path[SYSTEM_PATH];
    if (snprintf(path, sizeof path, "%s/exphil-XXXXXX", folder) >= (int)sizeof path) return -1;
    int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0) (void)unlink(path);
    return descriptor;
}

intptr_t system_raw_again(intptr_t file)
{
    return fcntl((int)file, F_DUPFD_CLOEXEC, 3);
}

bool system_raw_look(intptr_t file, system_facts *facts)
{
    struct stat of;
    if (fstat((int)file, &of) != 0) return false;
    *facts = facts_of(&of);
    return true;
}

ptrdiff_t system_raw_read(intptr_t file, uint64_t offset, void *to, size_t bytes)
{
    return pread((int)file, to, bytes, (off_t)offset);
}

ptrdiff_t system_raw_append(intptr_t file, const void *from, size_t bytes)
{
    return write((int)file, from, bytes);
}

bool system_raw_close(intptr_t file)
{
    return close((int)file) == 0;
}

/* ---- folders ------------------------------------------------------------------------------------------- */

bool system_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

system_folder *system_folder_open(const char *path)
{
    return (system_folder *)opendir(path);
}

const char *system_folder_next(system_folder *folder)
{
    const struct dirent *entry = readdir((DIR *)folder);
    return entry ? entry->d_name : NULL;
}

void system_folder_close(system_folder *folder)
{
    (void)closedir((DIR *)folder);
}

/* nftw hands nothing on to its visitor. */
static int (*visiting)(const char *path, const system_facts *facts);

static int visit_one(const char *path, const struct stat *of, int kind, struct FTW *where)
{
    (void)where;
    if (kind == FTW_NS || kind == FTW_SLN) return 0;
    const system_facts facts = facts_of(of);
    return visiting(path, &facts);
}

int system_walk(const char *path, int (*visit)(const char *path, const system_facts *facts))
{
    visiting = visit;
    return nftw(path, visit_one, 32, 0);
}

const char system_temporary_variable[] = "TMPDIR";

const char *system_temporary(int which)
{
    static const char *const folders[] = {"/var/tmp", "/tmp", NULL};
    const char *asked = getenv(system_temporary_variable);
    if (asked && *asked) return which ? NULL : asked;
    return folders[which];
}

bool system_match(const char *pattern, const char *path)
{
    return fnmatch(pattern, path, 0) == 0;
}
