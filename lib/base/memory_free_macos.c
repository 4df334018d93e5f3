/* Memory that this process could still take, on macOS: pages that are free, and those that nobody needs now. */
#include "base/base.h"

#include <mach/mach.h>
#include <mach/vm_page_size.h>

int64_t xph_memory_free(const char *root)
{
    (void)root;
    vm_statistics64_data_t pages;
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    const mach_port_t host = mach_host_self();
    const kern_return_t rc = host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&pages, &count);
    mach_port_deallocate(mach_task_self(), host);
    if (rc != KERN_SUCCESS) return 0;
    /* The kernel's pages: under Rosetta the program's own are smaller. */
    return ((int64_t)pages.free_count + (int64_t)pages.inactive_count) * (int64_t)vm_kernel_page_size;
}
