/* Private to lib/device: a device that has addresses and no memory. */
#ifndef XPH_DEVICE_MEASURE_H
#define XPH_DEVICE_MEASURE_H

#include "device/device.h"

/* Stands for real, which it asks for kernels and scratch; its own structs are context's. real must outlive it. */
exphil_status xph_measure_open(exphil_context *context, xph_device *real, xph_device **device,
                               exphil_error *error);
/* What it would hold now: bytes of the device, and of pinned memory. */
void xph_measure_bytes(const xph_device *device, uint64_t *of_device, uint64_t *pinned);

#endif
