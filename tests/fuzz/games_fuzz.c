/* Corpora of games from anybody: opening never crashes, what opens can be asked, read, checked and copied, what was copied
 * is whole, damage is told with its byte, and memory stays below a bound that follows from the length of the file. */
#include "games/format.h"
#include "memory_io.h"
#include "test_pages.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ---- two files: what is read, and what is written ---- */

typedef struct two_files {
    exphil_io hook;
    memory_io in, out;
    bool swapped; /* what was written is read */
} two_files;

static int32_t open_one(void *user, const char *path, int32_t mode, void **file)
{
    two_files *files = user;
    (void)path;
    if (mode == EXPHIL_IO_CREATE) files->out.bytes = 0;
    *file = mode == EXPHIL_IO_CREATE || files->swapped ? &files->out : &files->in;
    return 0;
}

static int32_t look(void *user, const char *path, int32_t *what)
{
    (void)user;
    (void)path;
    *what = EXPHIL_IO_FILE;
    return 0;
}

/* ---- memory ---- */

/* A block of 56 bytes in front can hold 256 frames, each of 8 characters and 64 items, but a game no more than 64 MiB of
 * events: what they take unpacked, what finds them, the facts that are counted again, and buffers for blocks. */
static long long most_memory(size_t bytes)
{
    const uint64_t frame = sizeof(exphil_slp_frame) + XPH_GAME_SLOTS * (sizeof(exphil_slp_player) + 4) +
                           XPH_GAME_ITEMS * sizeof(exphil_slp_item),
                   blocks = bytes / 56 + 1, buffers = (uint64_t)16 << 20, most = (uint64_t)640 << 20;
    uint64_t need = blocks * XPH_GAME_FRAMES * frame;
    return (long long)(buffers + 4 * bytes + (need < most ? need : most));
}

/* tests/support has one that finds more, which takes too long for blocks of 1 MiB. */
typedef struct limited {
    exphil_allocator hook;
    long long live, most;
} limited;

static void *take(void *user, size_t bytes, size_t align)
{
    limited *memory = user;
    if (memory->live + (long long)bytes > memory->most) return NULL;
    void *made = test_aligned(align, bytes);
    if (!made) return NULL;
    memory->live += (long long)bytes;
    return made;
}

static void give(void *user, void *pointer, size_t bytes)
{
    limited *memory = user;
    memory->live -= (long long)bytes;
    test_aligned_free(pointer);
}

static exphil_context *make_context(two_files *files, limited *memory)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.io = &files->hook;
    config.allocator = &memory->hook;
    config.threads = 1;
    if (exphil_context_create(&config, &context, NULL) < 0) abort();
    return context;
}

/* ---- use ---- */

/* Damage and nothing else; what cannot happen in a file that was checked. */
static void check(exphil_status status, bool fine, const exphil_error *error)
{
    if (status == EXPHIL_OK) return;
    if (fine || status != EXPHIL_E_FORMAT || !strstr(error->message, "byte")) abort();
}

static void read_one(const exphil_games *games, int64_t i, bool fine)
{
    exphil_game_info game = EXPHIL_GAME_INFO_INIT;
    exphil_slp_info settings = EXPHIL_SLP_INFO_INIT, again = EXPHIL_SLP_INFO_INIT;
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    check(exphil_games_game(games, i, &game, &settings, &error), fine, &error);
    exphil_status status = exphil_games_read(games, i, &slp, &error);
    check(status, fine, &error);
    if (status < 0) return;
    if (exphil_slp_query(slp, &again, NULL) < 0 || exphil_slp_frame_count(slp) != settings.frame_count)
        abort();
    for (int64_t t = 0; t < settings.frame_count; t++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, t);
        if (t && frame->frame <= frame[-1].frame) abort();
        for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++) {
            const exphil_slp_player *player = exphil_slp_player_at(slp, t, slot / 2, slot % 2);
            if ((player != NULL) != (frame->slots >> slot & 1) || (player && player->frame != frame->frame))
                abort();
        }
    }
    exphil_slp_destroy(slp);
}

/* Copies all that can be copied; what comes of it is a whole corpus. */
static void copy_all(exphil_context *context, two_files *files, const exphil_games *games, int64_t count,
                     bool fine)
{
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT, again = EXPHIL_GAMES_INFO_INIT;
    exphil_games *copy = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.stored = 1;
    if (exphil_games_create(context, "output", &config, &writer, NULL) < 0) abort();
    for (int64_t i = 0; i < count; i++)
        check(exphil_games_copy(writer, games, i, NULL, &error), fine, &error);
    if (exphil_games_finish(writer, &info, NULL) < 0) abort();
    exphil_games_writer_destroy(writer);
    files->swapped = true;
    if (exphil_games_open(context, "output", &copy, NULL) < 0 || exphil_games_query(copy, &again, NULL) < 0 ||
        again.recovered || again.games != info.games || again.frames != info.frames)
        abort();
    if (fine) check(exphil_games_verify(copy, &error), true, &error);
    exphil_games_destroy(copy);
    files->swapped = false;
}

static void use(exphil_context *context, two_files *files, const exphil_games *games)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_query(games, &info, NULL) < 0) abort();
    exphil_status status = exphil_games_verify(games, &error);
    check(status, false, &error);
    for (int64_t i = 0; i < info.games; i++) read_one(games, i, status == EXPHIL_OK);
    copy_all(context, files, games, info.games, status == EXPHIL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static two_files files;
    limited memory = {.most = most_memory(bytes)};
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    memset(&files, 0, sizeof files);
    memory_io_init(&files.in);
    memory_io_init(&files.out);
    files.hook = files.in.hook;
    files.hook.user = &files;
    files.hook.open = open_one;
    files.hook.kind = look;
    files.in.data = malloc(bytes + 1);
    if (!files.in.data) abort();
    if (bytes) memcpy(files.in.data, data, bytes);
    files.in.bytes = bytes;
    memory.hook = (exphil_allocator){sizeof memory.hook, &memory, take, give};
    exphil_context *context = make_context(&files, &memory);
    exphil_status status = exphil_games_open(context, "input", &games, &error);
    if (status == EXPHIL_OK)
        use(context, &files, games);
    else if (status == EXPHIL_E_MEMORY || !strstr(error.message, "byte"))
        abort();
    exphil_games_destroy(games);
    exphil_context_destroy(context);
    if (memory.live) abort();
    free(files.in.data);
    free(files.out.data);
    return 0;
}
