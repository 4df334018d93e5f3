/* Windows 10 and later, for the files that stand in for POSIX ones. Only functions that take UTF-16 are called. */
#ifndef XPH_BASE_WIDE_WINDOWS_H
#define XPH_BASE_WIDE_WINDOWS_H

#include "base/system.h"

#ifndef UNICODE
#  define UNICODE
#endif
#define WIN32_LEAN_AND_MEAN
#ifdef _WIN32_WINNT
#  undef _WIN32_WINNT
#endif
#define _WIN32_WINNT 0x0A00
#include <windows.h>

int32_t xph_windows_errno(uint32_t code); /* of GetLastError */
/* Fills the pointer to a function at `function` with one of ntdll.dll, which no import library need have; NULL: there is none. */
void xph_ntdll(const char *name, void *function);

/* Memory of the process heap: UTF-16 of a text in UTF-8, *rc an errno value where it is NULL. */
wchar_t *xph_wide(const char *text, int32_t *rc);
/* The same of a path: absolute, with \\?\ before it, so that it may be longer than 260 characters. EINVAL: a name in it means
 * something else to Windows than it says (wide_windows.c). */
wchar_t *xph_wide_path(const char *path, int32_t *rc);
void xph_wide_free(wchar_t *text);
/* UTF-8 of `text` into to[bytes]; false: it does not fit, or is no text. */
bool xph_narrow(const wchar_t *text, char *to, size_t bytes);

#endif
