/* One run at a time writes OUT, on Windows: a file that nobody else can open, which the system removes with the process, however
 * that ends. */
#include "commands.h"
#include "log_write.h"
#include "system.h"
#include "system_windows.h"

#include <errno.h>
#include <stdlib.h>

static HANDLE held = INVALID_HANDLE_VALUE;

bool run_lock(const char *out)
{
    char path[SYSTEM_PATH];
    (void)snprintf(path, sizeof path, "%s.lock", out);
    wchar_t *wide = wide_path(path);
    if (!wide) return complain_of_file(path);
    /* What holds something is a file of somebody's, which closing would remove. */
    WIN32_FILE_ATTRIBUTE_DATA of;
    if (GetFileAttributesExW(wide, GetFileExInfoStandard, &of) && (of.nFileSizeHigh || of.nFileSizeLow)) {
        fprintf(stderr, "exphil: %s is no lock of a run: it holds something; rename it\n", path);
        xph_wide_free(wide);
        return false;
    }
    held = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE, 0, NULL, OPEN_ALWAYS,
                       FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (held == INVALID_HANDLE_VALUE) (void)wide_failed();
    xph_wide_free(wide);
    if (held != INVALID_HANDLE_VALUE) return true;
    if (errno != EBUSY) return complain_of_file(path);
    fprintf(stderr, "exphil: --out %s: another run writes it at this moment\n", out);
    return false;
}

/* Only ranks take over, and there are none. */
bool run_lock_take_over(const char *out)
{
    return run_lock(out);
}

void run_unlock(void)
{
    if (held != INVALID_HANDLE_VALUE) (void)CloseHandle(held);
    held = INVALID_HANDLE_VALUE;
}
