/* Windows alone: its strings are UTF-16, the library's and ours are UTF-8. */
#ifndef SLIPPI_WIDE_H
#define SLIPPI_WIDE_H

#include <wchar.h>

/* NULL: no memory, or text is not in UTF-8. The caller frees. */
wchar_t *wide_of(const char *text);
#endif
