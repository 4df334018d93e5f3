/* Any bytes as the file that a run is resumed from: as they are (byte 0 odd), or laid over a good checkpoint (at the place of
 * bytes 1 and 2, cut to the length of bytes 3 and 4). Refused, or the run goes on; no crash, no leak. */
#include "train_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { CAPACITY = 1 << 17 };

/* One file in memory, which is whatever is opened or written. */
typedef struct disk {
    uint8_t data[CAPACITY];
    size_t bytes;
} disk;

static void need(bool what, const char *says)
{
    if (what) return;
    (void)fprintf(stderr, "%s\n", says);
    abort();
}

static int32_t disk_kind(void *user, const char *path, int32_t *kind)
{
    *kind = EXPHIL_IO_ABSENT;
    return 0;
}

static int32_t disk_open(void *user, const char *path, int32_t mode, void **file)
{
    disk *d = user;
    bool wanted = strstr(path, ".optimizer") != NULL;
    static disk elsewhere;
    if (!wanted) d = &elsewhere;
    if (mode == EXPHIL_IO_CREATE) d->bytes = 0;
    *file = d;
    return 0;
}

static int32_t disk_size(void *user, void *file, uint64_t *bytes)
{
    *bytes = ((disk *)file)->bytes;
    return 0;
}

static int32_t disk_read(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    const disk *d = file;
    size_t left = offset < d->bytes ? d->bytes - (size_t)offset : 0;
    *done = bytes < left ? bytes : left;
    memcpy(data, d->data + (left ? offset : 0), *done);
    return 0;
}

static int32_t disk_write(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    disk *d = file;
    if (bytes > CAPACITY - d->bytes) return ENOSPC;
    memcpy(d->data + d->bytes, data, bytes);
    d->bytes += bytes;
    *done = bytes;
    return 0;
}

static int32_t disk_file(void *user, void *file)
{
    return 0;
}

static int32_t disk_rename(void *user, const char *from, const char *to)
{
    return 0;
}

static int32_t disk_path(void *user, const char *path)
{
    return 0;
}

static exphil_trainer *make(disk *d)
{
    static exphil_io io;
    io = (exphil_io){.struct_size = sizeof io,
                     .user = d,
                     .kind = disk_kind,
                     .open = disk_open,
                     .size = disk_size,
                     .read = disk_read,
                     .write = disk_write,
                     .sync = disk_file,
                     .close = disk_file,
                     .rename = disk_rename,
                     .remove = disk_path,
                     .sync_folder = disk_path};
    exphil_context_config how = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    how.io = &io;
    how.threads = 1;
    adam.ema_decay = 0.9;
    exphil_model_config config = model_case_config("gru attention", EXPHIL_TYPE_F32);
    config.hidden = 2;
    config.head_width = 1;
    config.attention_dim = 1;
    need(exphil_context_create(&how, &context, NULL) == EXPHIL_OK, "no context");
    need(exphil_model_create(context, &config, &model, NULL) == EXPHIL_OK, "no model");
    need(exphil_optimizer_create(model, &adam, &optimizer, NULL) == EXPHIL_OK, "no optimizer");
    need(exphil_trainer_create(model, optimizer, NULL, NULL, &trainer, NULL) == EXPHIL_OK, "no trainer");
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return trainer;
}

static void lay_over(disk *d, const disk *good, const uint8_t *data, size_t bytes)
{
    *d = *good;
    if (bytes < 5) return;
    size_t at = (size_t)(data[1] | data[2] << 8) % good->bytes, cut = (size_t)(data[3] | data[4] << 8);
    for (size_t i = 5; i < bytes && at < good->bytes; i++, at++) d->data[at] = data[i];
    if (cut && cut < good->bytes) d->bytes = cut;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static disk d, good;
    static exphil_trainer *trainer;
    static exphil_batch batch;
    if (!trainer) {
        trainer = make(&d);
        batch = train_batch(trainer->model, 1, 3, 0);
        need(exphil_trainer_step_batch(trainer, &batch, NULL, NULL) == EXPHIL_OK, "no step");
        need(exphil_trainer_save(trainer, "net", NULL) == EXPHIL_OK, "no save");
        good = d;
    }
    if (bytes > CAPACITY) return 0;
    if (bytes && data[0] % 2) {
        memcpy(d.data, data + 1, bytes - 1);
        d.bytes = bytes - 1;
    } else {
        lay_over(&d, &good, data, bytes);
    }
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_trainer_resume(trainer, "net", &error);
    need(status == EXPHIL_OK || status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH ||
             status == EXPHIL_E_IO,
         "another status");
    need(status == EXPHIL_OK || error.message[0] != 0, "no message");
    if (status == EXPHIL_OK) {
        status = exphil_trainer_step_batch(trainer, &batch, NULL, NULL);
        need(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC, "a step neither went well nor overflowed");
    }
    return 0;
}
