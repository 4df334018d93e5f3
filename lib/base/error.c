/* Filling the caller's exphil_error: always terminated, one line, cut between characters, no locale. */
#define _GNU_SOURCE
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES sizeof((exphil_error *)0)->message
#define DRAFT         1024 /* formatted here first, so that the cut is made by place() */

/* An error struct that is too short to be one (struct_size not set) is left alone. */
static bool wanted(const exphil_error *error)
{
    return error && error->struct_size >= XPH_LEAST(exphil_error);
}

/* Copies what fits, ends it, never leaves half a UTF-8 character; returns the length. Control characters (from
 * paths, from files) become '?': the text is one line. */
static size_t place(char *to, size_t capacity, const char *from)
{
    size_t length = strnlen(from, capacity);
    if (length == capacity) {
        length = capacity - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) length--;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)from[i];
        to[i] = from[i];
        if (c < 0x20 || c == 0x7F) to[i] = '?';
    }
    to[length] = '\0';
    return length;
}

void xph_error_fill(exphil_error *error, exphil_status status, const char *format, ...)
{
    if (!wanted(error)) return;
    char draft[DRAFT];
    va_list args;
    va_start(args, format);
    vsnprintf(draft, sizeof draft, format, args);
    va_end(args);
    error->status = status;
    error->native_code = 0;
    place(error->message, MESSAGE_BYTES, draft);
}

void xph_error_fill_native(exphil_error *error, exphil_status status, int32_t code, const char *format, ...)
{
    if (!wanted(error)) return;
    char draft[DRAFT];
    va_list args;
    va_start(args, format);
    vsnprintf(draft, sizeof draft, format, args);
    va_end(args);
    error->status = status;
    error->native_code = code;
    place(error->message, MESSAGE_BYTES, draft);
}

/* What files can meet, in the words of glibc, which has all of them. */
static const struct {
    int32_t code;
    const char *text;
} texts[] = {
    {EPERM, "Operation not permitted"},
    {ENOENT, "No such file or directory"},
    {EINTR, "Interrupted system call"},
    {EIO, "Input/output error"},
    {ENXIO, "No such device or address"},
    {EBADF, "Bad file descriptor"},
    {EAGAIN, "Resource temporarily unavailable"},
    {ENOMEM, "Cannot allocate memory"},
    {EACCES, "Permission denied"},
    {EBUSY, "Device or resource busy"},
    {EEXIST, "File exists"},
    {EXDEV, "Invalid cross-device link"},
    {ENOTDIR, "Not a directory"},
    {EISDIR, "Is a directory"},
    {EINVAL, "Invalid argument"},
    {EMFILE, "Too many open files"},
    {ENFILE, "Too many open files in system"},
    {EFBIG, "File too large"},
    {ENOSPC, "No space left on device"},
    {EROFS, "Read-only file system"},
    {ENAMETOOLONG, "File name too long"},
    {ENOTEMPTY, "Directory not empty"},
    {ELOOP, "Too many levels of symbolic links"},
    {EILSEQ, "Invalid or incomplete multibyte or wide character"},
    {EOVERFLOW, "Value too large for defined data type"},
    {ENOTSUP, "Operation not supported"},
};

/* strerror would be translated, and is not safe between threads. */
static void errno_text(int32_t code, char *text, size_t capacity)
{
    const char *known = NULL;
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    known = strerrordesc_np(code);
#endif
    for (size_t i = 0; !known && i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code) known = texts[i].text;
    if (known)
        place(text, capacity, known);
    else
        snprintf(text, capacity, "error %d", (int)code);
}

void xph_error_fill_errno(exphil_error *error, exphil_status status, int32_t code, const char *format, ...)
{
    if (!wanted(error)) return;
    char draft[DRAFT], reason[64];
    va_list args;
    va_start(args, format);
    vsnprintf(draft, sizeof draft, format, args);
    va_end(args);
    errno_text(code, reason, sizeof reason);
    error->status = status;
    error->native_code = code;
    /* The reason must survive a long path. */
    size_t tail = strlen(reason) + 2, length = place(error->message, MESSAGE_BYTES - tail, draft);
    place(error->message + length, MESSAGE_BYTES - length, ": ");
    place(error->message + length + 2, MESSAGE_BYTES - length - 2, reason);
}

exphil_status xph_fail_within(exphil_error *error, exphil_status status, const char *format, ...)
{
    if (!wanted(error)) return status;
    char draft[DRAFT], inner[MESSAGE_BYTES];
    place(inner, sizeof inner, error->message);
    va_list args;
    va_start(args, format);
    vsnprintf(draft, sizeof draft, format, args);
    va_end(args);
    error->status = status;
    size_t length = place(error->message, MESSAGE_BYTES, draft);
    if (length + 2 < MESSAGE_BYTES) {
        place(error->message + length, MESSAGE_BYTES - length, ": ");
        place(error->message + length + 2, MESSAGE_BYTES - length - 2, inner);
    }
    return status;
}
