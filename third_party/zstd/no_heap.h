/* The decoder works in memory that its caller gives (ZSTD_initStaticDCtx): what asks for more gets none, and the library
 * needs no malloc. */
#include <stdlib.h>
#define malloc(bytes)        NULL
#define calloc(count, bytes) NULL
#define free(pointer)        ((void)(pointer))
