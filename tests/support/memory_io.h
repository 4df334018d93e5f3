/* File hooks that keep the last file written in memory: for fuzz targets, which have no time for a file
 * system. */
#ifndef EXPHIL_MEMORY_IO_H
#define EXPHIL_MEMORY_IO_H

#include <exphil/exphil.h>

typedef struct memory_io {
    exphil_io hook;
    uint8_t *data;
    size_t bytes, capacity;
} memory_io;
void memory_io_init(memory_io *io);
/* The content as it is; the caller frees it. */
uint8_t *memory_io_take(memory_io *io, size_t *bytes);

#endif
