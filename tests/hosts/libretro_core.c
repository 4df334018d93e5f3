/* A libretro core without a console: 64 bytes of memory that count frames and show what was read from the pads. For the
 * tests of the plugin alone. FAKE_MEMORY: "none" shows no memory, "bus" shows it at 0xA000 of a bus, "null" and "hollow" show a
 * bus that points nowhere, else it is the system's.
 * It is a teacher as well: exphil_teacher presses by the frame's number. FAKE_TEACHER=wild: from frame 200 on what no map has. */
#include <libretro-common/libretro.h>
#include <stdlib.h>
#include <string.h>

static uint8_t ram[64];
static retro_environment_t environment;
static retro_input_state_t input;
static retro_input_poll_t poll_pads;

RETRO_API int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action);

static int asked(const char *variable, const char *kind)
{
    const char *value = getenv(variable);
    return value && !strcmp(value, kind);
}

static int memory_is(const char *kind)
{
    return asked("FAKE_MEMORY", kind);
}

static void put16(int at, int value)
{
    ram[at] = (uint8_t)value;
    ram[at + 1] = (uint8_t)(value >> 8);
}

int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action)
{
    int frame = bytes > 5 ? state[4] << 8 | state[5] : 0;
    if (player != 1 || frame % 50 == 49) return 1; /* leaves it to the person */
    action[0] = frame >= 200 && asked("FAKE_TEACHER", "wild") ? 99 : frame & 7;
    action[1] = frame % 5;
    return 0;
}

static void count_frame(void)
{
    int frame = (ram[4] << 8 | ram[5]) + 1;
    float wave = (float)frame / 8;
    memcpy(ram, "FAKE", 4);
    ram[4] = (uint8_t)(frame >> 8);
    ram[5] = (uint8_t)frame;
    put16(6, -frame);
    ram[8] = (uint8_t)(frame / 10 % 10 << 4 | frame % 10);
    ram[9] = (uint8_t)(frame / 10 % 10);
    ram[10] = (uint8_t)(frame % 10);
    ram[11] = (uint8_t)frame;
    memcpy(ram + 12, &wave, 4);
    ram[16] = (uint8_t)(frame / 100);
}

void retro_run(void)
{
    int buttons = 0;
    poll_pads();
    for (unsigned id = 0; id < 16; id++)
        if (input(0, RETRO_DEVICE_JOYPAD, 0, id)) buttons |= 1 << id;
    put16(32, buttons);
    put16(34, input(0, RETRO_DEVICE_JOYPAD, 0, RETRO_DEVICE_ID_JOYPAD_MASK));
    for (unsigned axis = 0; axis < 4; axis++)
        put16(36 + 2 * (int)axis, input(0, RETRO_DEVICE_ANALOG, axis / 2, axis % 2));
    put16(44, input(0, RETRO_DEVICE_ANALOG, RETRO_DEVICE_INDEX_ANALOG_BUTTON, RETRO_DEVICE_ID_JOYPAD_A));
    put16(46, input(1, RETRO_DEVICE_JOYPAD, 0, RETRO_DEVICE_ID_JOYPAD_MASK));
    count_frame();
}

void retro_set_environment(retro_environment_t callback)
{
    environment = callback;
}

bool retro_load_game(const struct retro_game_info *game)
{
    static struct retro_memory_descriptor part = {.ptr = ram, .start = 0xA000, .len = sizeof ram};
    struct retro_memory_map map = {&part, 1};
    memset(ram, 0, sizeof ram);
    if (memory_is("bus")) environment(RETRO_ENVIRONMENT_SET_MEMORY_MAPS, &map);
    if (memory_is("null")) environment(RETRO_ENVIRONMENT_SET_MEMORY_MAPS, NULL);
    map = (struct retro_memory_map){NULL, 5};
    if (memory_is("hollow")) environment(RETRO_ENVIRONMENT_SET_MEMORY_MAPS, &map);
    return game != NULL;
}

void *retro_get_memory_data(unsigned id)
{
    return id == RETRO_MEMORY_SYSTEM_RAM && !getenv("FAKE_MEMORY") ? ram : NULL;
}

size_t retro_get_memory_size(unsigned id)
{
    return retro_get_memory_data(id) ? sizeof ram : 0;
}

size_t retro_serialize_size(void)
{
    return sizeof ram;
}

bool retro_serialize(void *data, size_t size)
{
    if (size < sizeof ram) return false;
    memcpy(data, ram, sizeof ram);
    return true;
}

/* Of exactly its own size, as strict cores want it. */
bool retro_unserialize(const void *data, size_t size)
{
    if (size != sizeof ram) return false;
    memcpy(ram, data, sizeof ram);
    return true;
}

void retro_get_system_info(struct retro_system_info *info)
{
    memset(info, 0, sizeof *info);
    info->library_name = "fake";
    info->library_version = "1";
    info->valid_extensions = "fake";
}

void retro_get_system_av_info(struct retro_system_av_info *info)
{
    memset(info, 0, sizeof *info);
    info->timing.fps = 60;
    info->timing.sample_rate = 48000;
}

void retro_set_input_state(retro_input_state_t callback)
{
    input = callback;
}

void retro_set_input_poll(retro_input_poll_t callback)
{
    poll_pads = callback;
}

void retro_set_video_refresh(retro_video_refresh_t callback)
{
    (void)callback;
}

void retro_set_audio_sample(retro_audio_sample_t callback)
{
    (void)callback;
}

void retro_set_audio_sample_batch(retro_audio_sample_batch_t callback)
{
    (void)callback;
}

void retro_set_controller_port_device(unsigned port, unsigned device)
{
    (void)port, (void)device;
}

void retro_cheat_set(unsigned index, bool enabled, const char *code)
{
    (void)index, (void)enabled, (void)code;
}

bool retro_load_game_special(unsigned type, const struct retro_game_info *game, size_t count)
{
    (void)type, (void)game, (void)count;
    return false;
}

unsigned retro_api_version(void)
{
    return RETRO_API_VERSION;
}

unsigned retro_get_region(void)
{
    return RETRO_REGION_NTSC;
}

void retro_init(void) {}
void retro_deinit(void) {}
void retro_reset(void) {}
void retro_cheat_reset(void) {}
void retro_unload_game(void) {}
