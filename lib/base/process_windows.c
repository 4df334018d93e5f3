/* The process, on Windows: memory and the environment. Nothing forks. */
#include "base/wide_windows.h"

#include <malloc.h>

void *xph_pages_alloc(size_t bytes, size_t align)
{
    return _aligned_malloc(bytes, align);
}

void xph_pages_free(void *pointer)
{
    _aligned_free(pointer);
}

const volatile unsigned char *xph_birth_mark(void)
{
    return NULL;
}

void xph_birth_mark_free(const volatile unsigned char *mark)
{
    (void)mark;
}

int64_t xph_process_number(void)
{
    return 0;
}

int64_t xph_environment(const char *name, char *value, size_t bytes)
{
    int32_t rc = 0;
    int64_t length = -1;
    wchar_t *wide = xph_wide(name, &rc);
    const DWORD room = wide ? GetEnvironmentVariableW(wide, NULL, 0) : 0;
    wchar_t *text = room ? HeapAlloc(GetProcessHeap(), 0, room * sizeof *text) : NULL;
    if (text) {
        text[0] = L'\0';
        SetLastError(ERROR_SUCCESS); /* of an empty value 0 comes back too */
    }
    /* Another thread may have changed it since, or taken it away. */
    const DWORD got = text ? GetEnvironmentVariableW(wide, text, room) : 0;
    if (text && got < room && (got > 0 || GetLastError() == ERROR_SUCCESS)) {
        length = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL) - 1;
        if (!xph_narrow(text, value, bytes)) value[0] = '\0';
    }
    xph_wide_free(text);
    xph_wide_free(wide);
    return length;
}
