/* The decoder works in memory that its caller gives (ZSTD_initStaticDCtx): what asks for more gets none, and the library
 * needs no malloc. It exports nothing. Its only global variable, which nothing writes, is constant. */
#include <stdlib.h>
#define malloc(bytes)        NULL
#define calloc(count, bytes) NULL
#define free(pointer)        ((void)(pointer))
#define ZSTDLIB_VISIBLE
#define ZSTDERRORLIB_VISIBLE
#define g_debuglevel const g_debuglevel
