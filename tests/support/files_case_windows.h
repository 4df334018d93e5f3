/* Files on Windows as tests see them: by Windows' own calls, and as files of a generation that the library saves. */
#ifndef EXPHIL_FILES_CASE_WINDOWS_H
#define EXPHIL_FILES_CASE_WINDOWS_H

#define UNICODE
#define WIN32_LEAN_AND_MEAN
#include "test.h"

#include "base/wide_windows.h"

#include <stdlib.h>

#define TEMPORARY ".exphil-tmp"

enum { PIECES = 6, WORDS = 4096, PATH = 2048 };

extern char folder[PATH];

/* A path for Windows' own calls; good until four more are asked for. */
wchar_t *wide_of(const char *path);
/* A path in the folder of the test; good until eight more are asked for. */
const char *place(const char *name);
const char *temporary_of(const char *path);
bool there(const char *path);
HANDLE hold(const char *path, DWORD access, DWORD share);
/* Makes the folder, under this one or that of temporary files. */
void begin_folder(const char *under);
void remove_all(const wchar_t *path);
exphil_context *context_with(const exphil_io *io);
/* A file of generation n: PIECES times WORDS of the number n. */
exphil_status save(exphil_context *context, const char *path, uint32_t generation, exphil_error *error);
/* Of a whole file; half of one fails the test. */
uint32_t generation_of(exphil_context *context, const char *path);
void assert_generation(const char *path, uint32_t generation);
void assert_saves(const char *path, uint32_t generation);
/* A save that must fail so; what was there stays, and nothing is left beside it. */
void assert_refused(const char *path, exphil_status status, int32_t code, int32_t or_code);

#endif
