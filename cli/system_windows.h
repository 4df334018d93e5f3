/* What the files for Windows share: the library's text and paths of Windows. See system.h. */
#ifndef EXPHIL_CLI_SYSTEM_WINDOWS_H
#define EXPHIL_CLI_SYSTEM_WINDOWS_H

#include "base/wide_windows.h"

/* The path as CreateFileW takes it, however long, for xph_wide_free; NULL: errno says why. */
wchar_t *wide_path(const char *path);
/* errno of what GetLastError says. Returns false. */
bool wide_failed(void);
/* A handle with all sharing, so that others may replace and remove the file; INVALID_HANDLE_VALUE: errno says why. */
HANDLE wide_open(const char *path, DWORD access, DWORD creation, DWORD flags);
/* UTF-8 of a text, to be freed. NULL: errno is EILSEQ where it is no UTF-16, or ENOMEM. */
char *narrow_text(const wchar_t *text);

#endif
