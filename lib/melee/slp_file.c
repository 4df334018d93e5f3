/* Reads a replay from a file: its head is checked before memory is allocated for the rest. */
#include "melee/melee.h"
#include "melee/slp_internal.h"

/* The container's header and the largest payload table. */
enum { HEAD = XPH_SLP_HEADER + 1 + 255 };

static exphil_status check_head(const xph_file *file, exphil_error *error)
{
    uint8_t head[HEAD];
    size_t bytes = file->bytes < HEAD ? (size_t)file->bytes : HEAD, used;
    struct xph_slp_container container;
    struct xph_slp_table table;
    XPH_TRY(xph_file_read(file, 0, head, bytes, error));
    XPH_TRY(xph_slp_container_read(head, bytes, &container, error));
    return xph_slp_table_read(head, container.begin, container.end, &table, &used, error);
}

exphil_status xph_slp_file_read(exphil_context *context, const char *path, size_t limit_bytes,
                                xph_file_data *data, exphil_error *error)
{
    xph_file file;
    XPH_TRY(xph_file_open(context, path, limit_bytes ? limit_bytes : XPH_SLP_LIMIT, &file, error));
    exphil_status status = check_head(&file, error);
    if (status < 0) {
        status = xph_fail_within(error, status, "\"%s\"", path);
    } else {
        status = xph_file_fetch(&file, 0, (size_t)file.bytes, data, error);
    }
    xph_file_close(&file);
    return status;
}
