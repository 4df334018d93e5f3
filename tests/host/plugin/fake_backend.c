/* A device backend with two devices and no operations, built in several ways: as it should be, from other sources
 * (FAKE_OLD), unwilling (FAKE_SHY), and without its entry (FAKE_EMPTY). Like a real one it needs nothing of libexphil. */
#include "device/backend.h"

#include <stdio.h>

typedef struct fake_device {
    xph_device head;
    xph_host host;
    char piece[100];
} fake_device;

static int32_t device_count(void)
{
    return 2;
}

static exphil_status device_info(int32_t ordinal, exphil_device_info *info)
{
    snprintf(info->id, sizeof info->id, "cuda:%d", (int)ordinal);
    snprintf(info->name, sizeof info->name, "fake device");
    snprintf(info->isa, sizeof info->isa, "sm_0");
    return EXPHIL_OK;
}

static exphil_status device_open(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error);

static void device_close(xph_device *device)
{
    fake_device *fake = (fake_device *)device;
    xph_host host = fake->host;
    host.log(host.context, EXPHIL_LOG_WARNING, "fake device closed");
    host.free(host.context, fake, sizeof *fake);
}

static void memory_info(xph_device *device, exphil_memory_info *info)
{
    (void)device;
    info->device_used_bytes = sizeof(fake_device);
}

static const xph_backend backend = {
    .struct_size = sizeof backend,
    .abi = XPH_BACKEND_ABI,
    .core_version = EXPHIL_VERSION,
    .name = "fake",
#ifdef FAKE_OLD
    .build_id = "0123456789abcdef",
#else
    .build_id = XPH_BUILD_ID,
#endif
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .memory_info = memory_info,
};

static exphil_status device_open(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error)
{
    if (ordinal >= 2) {
        if (error) {
            error->status = EXPHIL_E_UNSUPPORTED;
            snprintf(error->message, sizeof error->message, "cuda:%d is not one of 2 CUDA devices",
                     (int)ordinal);
        }
        return EXPHIL_E_UNSUPPORTED;
    }
    fake_device *fake = host->alloc(host->context, sizeof *fake);
    if (!fake) {
        if (error) {
            error->status = EXPHIL_E_MEMORY;
            snprintf(error->message, sizeof error->message, "fake device has no memory");
        }
        return EXPHIL_E_MEMORY;
    }
    fake->head.backend = &backend;
    fake->host = *host;
    *device = &fake->head;
    return EXPHIL_OK;
}

#ifndef FAKE_EMPTY
__attribute__((visibility("default"))) const xph_backend *xph_backend_query(uint32_t abi,
                                                                            const xph_host *host);

const xph_backend *xph_backend_query(uint32_t abi, const xph_host *host)
{
#  ifdef FAKE_SHY
    (void)abi;
    (void)host;
    return NULL;
#  else
    return abi == XPH_BACKEND_ABI && host->struct_size == sizeof *host ? &backend : NULL;
#  endif
}
#endif
