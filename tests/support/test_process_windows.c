/* Processes of Windows. */
#define WIN32_LEAN_AND_MEAN
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
/* after windows.h */
#include <psapi.h>

enum { COMMAND = 4096, KILLED_WITH = 0x4B494C4C };

bool test_emulated(void)
{
    const char *emulator = getenv("EXPHIL_EMULATOR");
    return emulator && *emulator;
}

/* Programs of Windows start each other: no emulator is needed again. Arguments of tests have no quotes in them. */
test_process test_start_self(const char *const *arguments)
{
    wchar_t command[COMMAND], self[COMMAND];
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION made;
    DWORD length = GetModuleFileNameW(NULL, self, COMMAND);
    assert_true(length > 0 && length < COMMAND - 2);
    int used = swprintf(command, COMMAND, L"\"%ls\"", self);
    for (int i = 0; used > 0 && arguments[i]; i++) {
        wchar_t wide[COMMAND];
        assert_null(strchr(arguments[i], '"'));
        assert_true(MultiByteToWideChar(CP_UTF8, 0, arguments[i], -1, wide, COMMAND) > 0);
        int more = swprintf(command + used, (size_t)(COMMAND - used), L" \"%ls\"", wide);
        used = more < 0 ? -1 : used + more;
    }
    assert_true(used > 0);
    /* wine, not Windows, at times has an internal error where another process is just ending. */
    for (int tries = 0; !CreateProcessW(self, command, NULL, NULL, FALSE, 0, NULL, NULL, &start, &made);
         tries++) {
        if (GetLastError() != ERROR_INTERNAL_ERROR || tries == 20)
            fail_msg("CreateProcess: error %lu", GetLastError());
        Sleep(50);
    }
    CloseHandle(made.hThread);
    return (test_process)made.hProcess;
}

int test_wait(test_process process)
{
    HANDLE handle = (HANDLE)process;
    DWORD code = 0;
    assert_int_equal(WaitForSingleObject(handle, INFINITE), WAIT_OBJECT_0);
    assert_true(GetExitCodeProcess(handle, &code));
    CloseHandle(handle);
    return code < TEST_KILLED ? (int)code : TEST_KILLED; /* what crashed has a large number, too */
}

void test_kill(test_process process)
{
    assert_true(TerminateProcess((HANDLE)process, KILLED_WITH));
}

void test_die(void)
{
    TerminateProcess(GetCurrentProcess(), KILLED_WITH);
}

int test_in_copy(int (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
    print_message("SKIPPED: Windows does not copy processes (fork)\n");
    skip();
    return -1;
}

/* The C library's, which reads what the system gave it once. */
void test_setenv(const char *name, const char *value)
{
    assert_int_equal(_putenv_s(name, value ? value : ""), 0);
}

static DWORD WINAPI end_after(void *seconds)
{
    Sleep((DWORD)(uintptr_t)seconds * 1000);
    fprintf(stderr, "this hangs\n");
    return (DWORD)TerminateProcess(GetCurrentProcess(), KILLED_WITH);
}

void test_end_after(int seconds)
{
    HANDLE made = CreateThread(NULL, 0, end_after, (void *)(uintptr_t)seconds, 0, NULL);
    if (made) CloseHandle(made);
}

int64_t test_resident_bytes(void)
{
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    assert_true(K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory));
    return (int64_t)memory.WorkingSetSize;
}

bool test_limit_memory(size_t more_bytes)
{
    (void)more_bytes;
    return false;
}

int64_t test_clock_ns(void)
{
    LARGE_INTEGER ticks, each;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&each);
    return ticks.QuadPart / each.QuadPart * 1000000000 +
           ticks.QuadPart % each.QuadPart * 1000000000 / each.QuadPart;
}

static int64_t ns_of(FILETIME time)
{
    return (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * 100;
}

int64_t test_processor_ns(void)
{
    FILETIME begun, ended, system, user;
    assert_true(GetProcessTimes(GetCurrentProcess(), &begun, &ended, &system, &user));
    return ns_of(system) + ns_of(user);
}

bool test_signals_open(void)
{
    return false;
}

bool test_has_signals(void)
{
    return false;
}
