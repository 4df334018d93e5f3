/* The game as Slippi's Dolphin is on Windows (Source/Core/InputCommon/ControllerInterface/Pipes/Pipes.cpp of
 * project-slippi/Ishiiruka at 18ee3450): it makes the pipe, inbound, of bytes, not waiting, for one client, of 256 bytes; looks
 * what there is, reads that, and when the client is gone lets the next one in. */
#include "peer.h"

#include "../wide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { GAME_ROOM = 256, GAME_READS = 32 };

struct peer {
    HANDLE file;
    int gone; /* whoever wrote last */
};
struct peer_program {
    HANDLE process;
};

const struct peer_refusal peer_refusals[] = {
    {"slippibot1", "a name without its folder passes for a pipe", EINVAL},
    {"NUL", "a device passes for a pipe", EINVAL},
    {"\\\\.\\pipe\\", "the folder of pipes passes for a pipe", EINVAL},
    {"\\\\elsewhere\\pipe\\slippibot1", "a pipe of another machine is taken", EINVAL},
    {NULL, NULL, 0}};

void peer_make(const char *path)
{
    (void)path;
}

peer *peer_open(const char *path, size_t room)
{
    DWORD bytes = (DWORD)(room ? room : GAME_ROOM);
    wchar_t *wide = wide_of(path);
    peer *p = calloc(1, sizeof *p);
    if (!p || !wide) return free(wide), free(p), NULL;
    p->file =
        CreateNamedPipeW(wide, PIPE_ACCESS_INBOUND, PIPE_TYPE_BYTE | PIPE_NOWAIT, 1, bytes, bytes, 0, NULL);
    p->gone = 1;
    free(wide);
    if (p->file == INVALID_HANDLE_VALUE) return free(p), NULL;
    ConnectNamedPipe(p->file, NULL);
    return p;
}

/* One read of the game's, of what there is. */
static DWORD read_some(peer *p, char *text, DWORD room)
{
    DWORD there = 0, done = 0;
    if (!PeekNamedPipe(p->file, NULL, 0, NULL, &there, NULL)) {
        if (GetLastError() != ERROR_BROKEN_PIPE) return 0;
        DisconnectNamedPipe(p->file);
        ConnectNamedPipe(p->file, NULL);
        p->gone = 1;
        return 0;
    }
    p->gone = 0;
    if (!there || !ReadFile(p->file, text, there < room ? there : room, &done, NULL)) return 0;
    return done;
}

size_t peer_read(peer *p, char *text, size_t room)
{
    size_t used = 0;
    while (used + 1 < room) {
        size_t left = room - 1 - used;
        DWORD done = read_some(p, text + used, left < GAME_READS ? (DWORD)left : GAME_READS);
        if (!done) break;
        used += done;
    }
    text[used] = '\0';
    return used;
}

int peer_has_writer(const peer *p)
{
    return !p->gone;
}

void peer_close(peer *p)
{
    if (p) CloseHandle(p->file);
    free(p);
}

void peer_remove(const char *path)
{
    (void)path;
}

int peer_signal_left(void)
{
    return 0;
}

/* As CommandLineToArgvW takes it apart: words in quotes, a quote and the backslashes before it with one more each. */
static wchar_t *quote(wchar_t *to, const wchar_t *word)
{
    size_t slashes = 0;
    *to++ = L'"';
    for (; *word; word++) {
        if (*word == L'"')
            for (slashes++; slashes; slashes--) *to++ = L'\\';
        slashes = *word == L'\\' ? slashes + 1 : 0;
        *to++ = *word;
    }
    for (; slashes; slashes--) *to++ = L'\\';
    *to++ = L'"', *to++ = L' ', *to = 0;
    return to;
}

peer_program *peer_start(char **command)
{
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION made;
    wchar_t line[8192], *end = line;
    peer_program *program = malloc(sizeof *program);
    for (; *command && end - line < 4096; command++) {
        wchar_t *word = wide_of(*command);
        if (word && wcslen(word) < 2000) end = quote(end, word);
        free(word);
    }
    if (!program || !CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made))
        return free(program), NULL;
    CloseHandle(made.hThread);
    program->process = made.hProcess;
    return program;
}

int peer_ended(peer_program *program)
{
    DWORD status;
    if (WaitForSingleObject(program->process, 0) != WAIT_OBJECT_0) return -1;
    if (!GetExitCodeProcess(program->process, &status)) status = 128;
    CloseHandle(program->process);
    free(program);
    return (int)status;
}

void peer_pause(void)
{
    Sleep(1);
}
