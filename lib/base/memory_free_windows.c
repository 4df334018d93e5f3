/* Memory that this process could still take, on Windows: what is free of the machine's, or of what the system has promised to
 * keep (the page file counted), whichever is less. */
#include "base/wide_windows.h"

int64_t xph_memory_free(const char *root)
{
    (void)root;
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status)) return 0;
    const uint64_t least =
        status.ullAvailPhys < status.ullAvailPageFile ? status.ullAvailPhys : status.ullAvailPageFile;
    return least < INT64_MAX ? (int64_t)least : INT64_MAX;
}
