/* Writes are overlapped, one at a time: what the reader's buffer has no room for waits in the queue of the pipe, whole, and a
 * reader gets it with what is before it. As long as one waits the pipe is full. */
#include "pipe.h"

#include "controller.h"
#include "wide.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
/* after windows.h */
#include <winternl.h>

#define PIPES "\\\\.\\pipe\\"

const char pipe_wanted[] = "no pipe; Dolphin's are named \\\\.\\pipe\\slippibot1 to \\\\.\\pipe\\slippibot4";
const char pipe_no_reader[] = "nobody reads it; Dolphin makes slippibot1 to slippibot4 as it starts";

struct pipe_end {
    wchar_t *path;
    HANDLE file; /* INVALID_HANDLE_VALUE: no reader so far */
    OVERLAPPED under_way;
    int waiting; /* under_way is a write that was not done at once */
    char text[CONTROLLER_TEXT_MAX];
};

enum { LAST_MS = 200 }; /* for the reader to take what still waits when we go: some frames of the game */

/* FILE_PIPE_LOCAL_INFORMATION of [MS-FSCC] and of the driver kit's ntifs.h: the number of the class, and one of the states. */
enum { PIPE_LOCAL_INFORMATION = 24, PIPE_CONNECTED = 3 };
struct pipe_information {
    ULONG type, configuration, most, now, inbound, to_read, outbound, to_write, state, end;
};

int pipe_is_name(const char *path)
{
    size_t before = sizeof PIPES - 1;
    return _strnicmp(path, PIPES, before) == 0 && path[before] && !strchr(path + before, '\\');
}

pipe_end *pipe_create(const char *path)
{
    if (!pipe_is_name(path)) return errno = EINVAL, NULL;
    pipe_end *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->file = INVALID_HANDLE_VALUE;
    made->path = wide_of(path);
    made->under_way.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (made->path && made->under_way.hEvent) return made;
    int why = made->path ? ENOMEM : EINVAL; /* not in UTF-8 */
    pipe_destroy(made);
    errno = why;
    return NULL;
}

static int status_of(DWORD error)
{
    switch (error) {
    case ERROR_FILE_NOT_FOUND: /* the game does not run */
    case ERROR_NO_DATA:        /* it has closed the pipe, */
    case ERROR_BROKEN_PIPE:
    case ERROR_PIPE_NOT_CONNECTED: /* or the connection */
        return CONTROLLER_NO_READER;
    case ERROR_PIPE_BUSY: /* its one place is taken */
        return -EBUSY;
    case ERROR_ACCESS_DENIED:
        return -EACCES;
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
        return -EINVAL;
    default:
        return -EIO;
    }
}

/* The other side is not to act in our name, whoever made the pipe. */
int pipe_open(pipe_end *pipe, int *opened)
{
    if (pipe->file != INVALID_HANDLE_VALUE) return CONTROLLER_OK;
    *opened = 1;
    pipe->file = CreateFileW(pipe->path, GENERIC_WRITE | FILE_READ_ATTRIBUTES, 0, NULL, OPEN_EXISTING,
                             FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_ANONYMOUS, NULL);
    return pipe->file == INVALID_HANDLE_VALUE ? status_of(GetLastError()) : CONTROLLER_OK;
}

int pipe_is_open(const pipe_end *pipe)
{
    return pipe->file != INVALID_HANDLE_VALUE;
}

/* A write of nothing would tell it, too, but a reader may take that for the end. */
int pipe_lost_reader(pipe_end *pipe)
{
    struct pipe_information now = {0};
    IO_STATUS_BLOCK status;
    NTSTATUS result = NtQueryInformationFile(pipe->file, &status, &now, sizeof now,
                                             (FILE_INFORMATION_CLASS)PIPE_LOCAL_INFORMATION);
    return result != 0 || now.state != PIPE_CONNECTED;
}

/* What waited has been read, or never will be. */
static int finish(pipe_end *pipe)
{
    DWORD done;
    if (!pipe->waiting) return CONTROLLER_OK;
    if (GetOverlappedResult(pipe->file, &pipe->under_way, &done, FALSE))
        return pipe->waiting = 0, CONTROLLER_OK;
    if (GetLastError() == ERROR_IO_INCOMPLETE) return CONTROLLER_FULL;
    pipe->waiting = 0;
    return status_of(GetLastError());
}

int pipe_write(pipe_end *pipe, const char *text, size_t bytes)
{
    int status = finish(pipe);
    if (status != CONTROLLER_OK) return status;
    if (bytes > sizeof pipe->text) return -EINVAL;
    memcpy(pipe->text, text, bytes);
    if (WriteFile(pipe->file, pipe->text, (DWORD)bytes, NULL, &pipe->under_way)) return CONTROLLER_OK;
    if (GetLastError() != ERROR_IO_PENDING) return status_of(GetLastError());
    pipe->waiting = 1;
    status = finish(pipe);
    return status == CONTROLLER_FULL ? CONTROLLER_OK : status;
}

/* A write that still waits is taken back: its text would be gone with us. */
void pipe_close(pipe_end *pipe)
{
    DWORD done;
    if (pipe->file == INVALID_HANDLE_VALUE) return;
    if (pipe->waiting && CancelIoEx(pipe->file, &pipe->under_way))
        GetOverlappedResult(pipe->file, &pipe->under_way, &done, TRUE);
    CloseHandle(pipe->file);
    pipe->file = INVALID_HANDLE_VALUE;
    pipe->waiting = 0;
}

void pipe_destroy(pipe_end *pipe)
{
    if (!pipe) return;
    if (pipe->waiting) WaitForSingleObject(pipe->under_way.hEvent, LAST_MS);
    pipe_close(pipe);
    if (pipe->under_way.hEvent) CloseHandle(pipe->under_way.hEvent);
    free(pipe->path);
    free(pipe);
}
