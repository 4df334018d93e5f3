/* Starts a program of Windows and, once a file is there, does to its console what Ctrl-C or Ctrl-Break do. Prints the status
 * that the program ends with.
 *   interrupt.exe FILE c|break -- COMMAND... */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static BOOL WINAPI ignore(DWORD event)
{
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

static bool there(const char *path)
{
    wchar_t wide[1024];
    return MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 1024) &&
           GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

int main(int argc, char **argv)
{
    STARTUPINFOW start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION child;
    DWORD status = 0;
    wchar_t *command = wcsstr(GetCommandLineW(), L" -- ");
    if (argc < 5 || !command) return fprintf(stderr, "interrupt FILE c|break -- COMMAND...\n"), 2;
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    (void)FreeConsole(); /* an own console, whose events are nobody else's */
    (void)AllocConsole();
    if (!CreateProcessW(NULL, command + 4, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child))
        return fprintf(stderr, "interrupt: the command does not start: error %lu\n", GetLastError()), 2;
    (void)SetConsoleCtrlHandler(ignore, TRUE);
    while (!there(argv[1]) && WaitForSingleObject(child.hProcess, 50) == WAIT_TIMEOUT) continue;
    if (!GenerateConsoleCtrlEvent(strcmp(argv[2], "break") == 0 ? CTRL_BREAK_EVENT : CTRL_C_EVENT, 0)) {
        fprintf(stderr, "interrupt: no event: error %lu\n", GetLastError());
        (void)TerminateProcess(child.hProcess, 2);
        return 2;
    }
    (void)WaitForSingleObject(child.hProcess, INFINITE);
    (void)GetExitCodeProcess(child.hProcess, &status);
    printf("status %lu\n", status);
    return 0;
}
