/* A disk in memory that can lose its power or be full. What was written and not synced may be there in part; a file made,
 * renamed or removed since its folder was synced may have its old name or the new one: drawn at random, each by itself,
 * which is more than file systems do. */
#ifndef EXPHIL_CRASH_DISK_H
#define EXPHIL_CRASH_DISK_H

#include "test.h"

enum { CRASH_FILES = 64, CRASH_NAME = 64 };

/* Content, with or without a name. */
typedef struct crash_file {
    uint8_t *data;
    size_t bytes, capacity, synced;
} crash_file;

/* A name that was given (file) or taken away (NULL) since the folder was synced. */
typedef struct crash_change {
    char name[CRASH_NAME];
    crash_file *file;
    int32_t operation; /* a rename is two changes, and both happen or none */
} crash_change;

typedef struct crash_disk {
    test_io io; /* for train_plan.io: its hook is this disk */
    crash_file *file[CRASH_FILES * 64];
    int32_t files;
    crash_change durable[CRASH_FILES], pending[CRASH_FILES];
    int32_t names, changes, operations;
    long long calls, power_cut_at; /* operation during which the power goes (from 1; 0: it stays) */
    long long free_bytes;          /* -1: there is always space */
    bool dead;                     /* every operation fails until crash_reboot */
    uint64_t random;
} crash_disk;

void crash_disk_begin(crash_disk *disk, uint64_t seed);
void crash_disk_end(crash_disk *disk);
/* 0 <= the result < below. */
uint64_t crash_random(crash_disk *disk, uint64_t below);
/* Power is back: what survived is all there is, and is durable. */
void crash_reboot(crash_disk *disk);
bool crash_has(const crash_disk *disk, const char *path);

#endif
