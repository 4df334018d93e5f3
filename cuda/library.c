/* Libraries that are opened by name. A loader opens whatever it is given: it waits for ever at a pipe, and what a file that was
 * cut no longer has ends the process when it is touched. So a path is looked at first; a name without a folder is for the
 * loader to find. */
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_all(int file, void *to, size_t bytes, off_t from)
{
    return pread(file, to, bytes, from) == (ssize_t)bytes;
}

/* Whether the file has all that its header says is to be in memory. What is no library the loader tells in its own words. */
static bool is_whole(int file, uint64_t bytes)
{
    ElfW(Ehdr) head;
    if (!read_all(file, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof(ElfW(Phdr)))
        return true;
    for (uint64_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        const uint64_t at = head.e_phoff + i * sizeof part;
        if (at > bytes || bytes - at < sizeof part || !read_all(file, &part, sizeof part, (off_t)at))
            return false;
        if (part.p_type != PT_LOAD || part.p_filesz == 0) continue;
        if (part.p_offset > bytes || part.p_filesz > bytes - part.p_offset) return false;
    }
    return true;
}

/* NULL: nothing is wrong with it as a file. */
static const char *odd_file(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0) return strerror(errno);
    if (!S_ISREG(about.st_mode)) return "it is no regular file";
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return strerror(errno);
    const bool told = fstat(file, &about) == 0, whole = !told || is_whole(file, (uint64_t)about.st_size);
    close(file);
    if (!told) return "the system does not tell its size";
    return whole ? NULL : "it was cut: its header tells of more than it has";
}

void *xph_cuda_library(const char *name, const char **why)
{
    *why = strchr(name, '/') ? odd_file(name) : NULL;
    if (*why) return NULL;
    void *at = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!at) *why = dlerror();
    return at;
}
