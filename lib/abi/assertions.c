/* The interface of release 0.1.0, as the compiler sees it: a change that would break a program built
 * against that release does not compile. Written by `tools/abi release`; doc/abi.md says when. No code, no data. */
#include <exphil/slp.h>

/* Systems of 32 bits have other layouts: there the library is linked into what it was built with. */
#if UINTPTR_MAX > 0xffffffff
#  define SIZE(type, bytes)  _Static_assert(sizeof(type) == (bytes), "the size of " #  type " was released")
#  define LEAST(type, bytes) _Static_assert(sizeof(type) >= (bytes), "fields of " #  type " were released")
#  define ALIGN(type, bytes)                                                                                 \
    _Static_assert(_Alignof(type) == (bytes), "the alignment of " #type " was released")
#  define FIELD(type, field, offset, pointer)                                                                \
    _Static_assert(offsetof(type, field) == (offset) &&                                                      \
                       _Generic(&((type *)0)->field, pointer : 1, default : 0),                              \
                   #type "." #field " was released at another offset or with another type")
#  define VALUE(name, value) _Static_assert((name) == (value), #  name " was released with another value")
#  define TYPE(name, type)                                                                                   \
    _Static_assert(_Generic((name)0, type : 1, default : 0), #name " was released as another type")
#  define FUNCTION(name, type)                                                                               \
    _Static_assert(_Generic(&name, type : 1, default : 0),                                                   \
                   #name " was released with other parameters or result")

LEAST(exphil_error, 256);
ALIGN(exphil_error, 8);
FIELD(exphil_error, struct_size, 0, size_t(*));
FIELD(exphil_error, status, 8, exphil_status(*));
FIELD(exphil_error, native_code, 12, int32_t(*));
FIELD(exphil_error, message, 16, char (*)[240]);
LEAST(exphil_allocator, 32);
ALIGN(exphil_allocator, 8);
FIELD(exphil_allocator, struct_size, 0, size_t(*));
FIELD(exphil_allocator, user, 8, void *(*));
FIELD(exphil_allocator, alloc, 16, void *(*(*))(void *user, size_t size_bytes, size_t align_bytes));
FIELD(exphil_allocator, free, 24, void (*(*))(void *user, void *pointer, size_t size_bytes));
LEAST(exphil_io, 112);
ALIGN(exphil_io, 8);
FIELD(exphil_io, struct_size, 0, size_t(*));
FIELD(exphil_io, user, 8, void *(*));
FIELD(exphil_io, kind, 16, int32_t (*(*))(void *user, const char *path, int32_t *kind));
FIELD(exphil_io, open, 24, int32_t (*(*))(void *user, const char *path, int32_t mode, void **file));
FIELD(exphil_io, size, 32, int32_t (*(*))(void *user, void *file, uint64_t *size_bytes));
FIELD(exphil_io, read, 40,
      int32_t (*(*))(void *user, void *file, uint64_t offset_bytes, void *data, size_t size_bytes,
                     size_t *done_bytes));
FIELD(exphil_io, write, 48,
      int32_t (*(*))(void *user, void *file, const void *data, size_t size_bytes, size_t *done_bytes));
FIELD(exphil_io, sync, 56, int32_t (*(*))(void *user, void *file));
FIELD(exphil_io, close, 64, int32_t (*(*))(void *user, void *file));
FIELD(exphil_io, rename, 72, int32_t (*(*))(void *user, const char *from, const char *to));
FIELD(exphil_io, remove, 80, int32_t (*(*))(void *user, const char *path));
FIELD(exphil_io, sync_folder, 88, int32_t (*(*))(void *user, const char *path_of_file));
FIELD(exphil_io, map, 96, int32_t (*(*))(void *user, void *file, size_t size_bytes, const void **data));
FIELD(exphil_io, unmap, 104, int32_t (*(*))(void *user, const void *data, size_t size_bytes));
LEAST(exphil_executor, 32);
ALIGN(exphil_executor, 8);
FIELD(exphil_executor, struct_size, 0, size_t(*));
FIELD(exphil_executor, user, 8, void *(*));
FIELD(exphil_executor, workers, 16, int32_t(*));
FIELD(exphil_executor, flags, 20, uint32_t(*));
FIELD(exphil_executor, parallel_for, 24,
      void (*(*))(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count));
LEAST(exphil_context_config, 104);
ALIGN(exphil_context_config, 8);
FIELD(exphil_context_config, struct_size, 0, size_t(*));
FIELD(exphil_context_config, allocator, 8, const exphil_allocator *(*));
FIELD(exphil_context_config, io, 16, const exphil_io *(*));
FIELD(exphil_context_config, executor, 24, const exphil_executor *(*));
FIELD(exphil_context_config, log, 32, exphil_log_fn(*));
FIELD(exphil_context_config, log_user, 40, void *(*));
FIELD(exphil_context_config, cancel, 48, exphil_cancel_fn(*));
FIELD(exphil_context_config, cancel_user, 56, void *(*));
FIELD(exphil_context_config, device, 64, const char *(*));
FIELD(exphil_context_config, cpu_isa, 72, const char *(*));
FIELD(exphil_context_config, backend_path, 80, const char *(*));
FIELD(exphil_context_config, memory_limit_bytes, 88, size_t(*));
FIELD(exphil_context_config, threads, 96, int32_t(*));
FIELD(exphil_context_config, log_level, 100, exphil_log_level(*));
LEAST(exphil_device_info, 216);
ALIGN(exphil_device_info, 8);
FIELD(exphil_device_info, struct_size, 0, size_t(*));
FIELD(exphil_device_info, memory_bytes, 8, int64_t(*));
FIELD(exphil_device_info, index, 16, int32_t(*));
FIELD(exphil_device_info, workers, 20, int32_t(*));
FIELD(exphil_device_info, id, 24, char (*)[32]);
FIELD(exphil_device_info, name, 56, char (*)[128]);
FIELD(exphil_device_info, isa, 184, char (*)[32]);
LEAST(exphil_memory_info, 64);
ALIGN(exphil_memory_info, 8);
FIELD(exphil_memory_info, struct_size, 0, size_t(*));
FIELD(exphil_memory_info, host_used_bytes, 8, uint64_t(*));
FIELD(exphil_memory_info, host_peak_bytes, 16, uint64_t(*));
FIELD(exphil_memory_info, host_allocations, 24, uint64_t(*));
FIELD(exphil_memory_info, device_used_bytes, 32, uint64_t(*));
FIELD(exphil_memory_info, device_peak_bytes, 40, uint64_t(*));
FIELD(exphil_memory_info, device_requests, 48, uint64_t(*));
FIELD(exphil_memory_info, device_reused, 56, uint64_t(*));
SIZE(exphil_id_spec, 16);
ALIGN(exphil_id_spec, 8);
FIELD(exphil_id_spec, name, 0, const char *(*));
FIELD(exphil_id_spec, entries, 8, int32_t(*));
FIELD(exphil_id_spec, width, 12, int32_t(*));
SIZE(exphil_head_spec, 24);
ALIGN(exphil_head_spec, 8);
FIELD(exphil_head_spec, name, 0, const char *(*));
FIELD(exphil_head_spec, kind, 8, int32_t(*));
FIELD(exphil_head_spec, count, 12, int32_t(*));
FIELD(exphil_head_spec, neutral, 16, int32_t(*));
FIELD(exphil_head_spec, reserved, 20, int32_t(*));
LEAST(exphil_spec, 72);
ALIGN(exphil_spec, 8);
FIELD(exphil_spec, struct_size, 0, size_t(*));
FIELD(exphil_spec, layout, 8, const char *(*));
FIELD(exphil_spec, codec, 16, const char *(*));
FIELD(exphil_spec, float_count, 24, int64_t(*));
FIELD(exphil_spec, id_count, 32, int64_t(*));
FIELD(exphil_spec, ids, 40, const exphil_id_spec *(*));
FIELD(exphil_spec, head_count, 48, int64_t(*));
FIELD(exphil_spec, heads, 56, const exphil_head_spec *(*));
FIELD(exphil_spec, layout_hash, 64, uint64_t(*));
LEAST(exphil_melee_field, 184);
ALIGN(exphil_melee_field, 8);
FIELD(exphil_melee_field, struct_size, 0, size_t(*));
FIELD(exphil_melee_field, offset, 8, int64_t(*));
FIELD(exphil_melee_field, count, 16, int64_t(*));
FIELD(exphil_melee_field, scale, 24, double(*));
FIELD(exphil_melee_field, low, 32, double(*));
FIELD(exphil_melee_field, high, 40, double(*));
FIELD(exphil_melee_field, is_id, 48, int32_t(*));
FIELD(exphil_melee_field, reserved, 52, int32_t(*));
FIELD(exphil_melee_field, name, 56, char (*)[64]);
FIELD(exphil_melee_field, source, 120, char (*)[64]);
SIZE(exphil_melee_character, 80);
ALIGN(exphil_melee_character, 4);
FIELD(exphil_melee_character, present, 0, int32_t(*));
FIELD(exphil_melee_character, known, 4, uint32_t(*));
FIELD(exphil_melee_character, x, 8, float(*));
FIELD(exphil_melee_character, y, 12, float(*));
FIELD(exphil_melee_character, facing, 16, float(*));
FIELD(exphil_melee_character, percent, 20, float(*));
FIELD(exphil_melee_character, shield, 24, float(*));
FIELD(exphil_melee_character, state_age, 28, float(*));
FIELD(exphil_melee_character, misc, 32, float(*));
FIELD(exphil_melee_character, speed_air_x, 36, float(*));
FIELD(exphil_melee_character, speed_y, 40, float(*));
FIELD(exphil_melee_character, speed_attack_x, 44, float(*));
FIELD(exphil_melee_character, speed_attack_y, 48, float(*));
FIELD(exphil_melee_character, speed_ground_x, 52, float(*));
FIELD(exphil_melee_character, hitlag, 56, float(*));
FIELD(exphil_melee_character, action_state, 60, uint16_t(*));
FIELD(exphil_melee_character, ground, 62, uint16_t(*));
FIELD(exphil_melee_character, character, 64, uint8_t(*));
FIELD(exphil_melee_character, stocks, 65, uint8_t(*));
FIELD(exphil_melee_character, last_attack, 66, uint8_t(*));
FIELD(exphil_melee_character, combo, 67, uint8_t(*));
FIELD(exphil_melee_character, last_hit_by, 68, uint8_t(*));
FIELD(exphil_melee_character, airborne, 69, uint8_t(*));
FIELD(exphil_melee_character, jumps, 70, uint8_t(*));
FIELD(exphil_melee_character, l_cancel, 71, uint8_t(*));
FIELD(exphil_melee_character, hurtbox, 72, uint8_t(*));
FIELD(exphil_melee_character, flags, 73, uint8_t (*)[5]);
FIELD(exphil_melee_character, reserved, 78, uint8_t (*)[2]);
SIZE(exphil_melee_item, 40);
ALIGN(exphil_melee_item, 4);
FIELD(exphil_melee_item, facing, 0, float(*));
FIELD(exphil_melee_item, speed_x, 4, float(*));
FIELD(exphil_melee_item, speed_y, 8, float(*));
FIELD(exphil_melee_item, x, 12, float(*));
FIELD(exphil_melee_item, y, 16, float(*));
FIELD(exphil_melee_item, timer, 20, float(*));
FIELD(exphil_melee_item, spawn_id, 24, uint32_t(*));
FIELD(exphil_melee_item, type, 28, uint16_t(*));
FIELD(exphil_melee_item, damage, 30, uint16_t(*));
FIELD(exphil_melee_item, state, 32, uint8_t(*));
FIELD(exphil_melee_item, misc, 33, uint8_t (*)[4]);
FIELD(exphil_melee_item, owner, 37, int8_t(*));
FIELD(exphil_melee_item, reserved, 38, uint8_t (*)[2]);
LEAST(exphil_melee_frame, 1288);
ALIGN(exphil_melee_frame, 8);
FIELD(exphil_melee_frame, struct_size, 0, size_t(*));
FIELD(exphil_melee_frame, frame, 8, int32_t(*));
FIELD(exphil_melee_frame, stage, 12, int32_t(*));
FIELD(exphil_melee_frame, own_port, 16, int32_t(*));
FIELD(exphil_melee_frame, opponent_port, 20, int32_t(*));
FIELD(exphil_melee_frame, player, 24, exphil_melee_character (*)[4]);
FIELD(exphil_melee_frame, follower, 344, exphil_melee_character (*)[4]);
FIELD(exphil_melee_frame, platform_left, 664, float(*));
FIELD(exphil_melee_frame, platform_right, 668, float(*));
FIELD(exphil_melee_frame, wind, 672, int32_t(*));
FIELD(exphil_melee_frame, stadium_kind, 676, int32_t(*));
FIELD(exphil_melee_frame, stadium_event, 680, int32_t(*));
FIELD(exphil_melee_frame, item_count, 684, int32_t(*));
FIELD(exphil_melee_frame, item, 688, exphil_melee_item (*)[15]);
SIZE(exphil_pad, 24);
ALIGN(exphil_pad, 4);
FIELD(exphil_pad, buttons, 0, uint32_t(*));
FIELD(exphil_pad, main_x, 4, float(*));
FIELD(exphil_pad, main_y, 8, float(*));
FIELD(exphil_pad, c_x, 12, float(*));
FIELD(exphil_pad, c_y, 16, float(*));
FIELD(exphil_pad, trigger, 20, float(*));
LEAST(exphil_model_config, 144);
ALIGN(exphil_model_config, 8);
FIELD(exphil_model_config, struct_size, 0, size_t(*));
FIELD(exphil_model_config, spec, 8, const exphil_spec *(*));
FIELD(exphil_model_config, blocks, 16, const char *(*));
FIELD(exphil_model_config, seed, 24, uint64_t(*));
FIELD(exphil_model_config, hidden, 32, int64_t(*));
FIELD(exphil_model_config, head_width, 40, int64_t(*));
FIELD(exphil_model_config, mamba_states, 48, int64_t(*));
FIELD(exphil_model_config, mamba_expand, 56, int64_t(*));
FIELD(exphil_model_config, mamba_taps, 64, int64_t(*));
FIELD(exphil_model_config, mamba_rank, 72, int64_t(*));
FIELD(exphil_model_config, attention_heads, 80, int64_t(*));
FIELD(exphil_model_config, attention_dim, 88, int64_t(*));
FIELD(exphil_model_config, attention_window_frames, 96, int64_t(*));
FIELD(exphil_model_config, ffn_expand, 104, int64_t(*));
FIELD(exphil_model_config, window_frames, 112, int64_t(*));
FIELD(exphil_model_config, delay_frames, 120, int32_t(*));
FIELD(exphil_model_config, no_previous_action, 124, int32_t(*));
FIELD(exphil_model_config, mode, 128, int32_t(*));
FIELD(exphil_model_config, heads, 132, int32_t(*));
FIELD(exphil_model_config, type, 136, int32_t(*));
FIELD(exphil_model_config, reserved, 140, int32_t(*));
LEAST(exphil_model_info, 464);
ALIGN(exphil_model_info, 8);
FIELD(exphil_model_info, struct_size, 0, size_t(*));
FIELD(exphil_model_info, spec_hash, 8, uint64_t(*));
FIELD(exphil_model_info, weights_hash, 16, uint64_t(*));
FIELD(exphil_model_info, parameter_count, 24, int64_t(*));
FIELD(exphil_model_info, tensor_count, 32, int64_t(*));
FIELD(exphil_model_info, float_count, 40, int64_t(*));
FIELD(exphil_model_info, id_count, 48, int64_t(*));
FIELD(exphil_model_info, head_count, 56, int64_t(*));
FIELD(exphil_model_info, logit_count, 64, int64_t(*));
FIELD(exphil_model_info, hidden, 72, int64_t(*));
FIELD(exphil_model_info, window_frames, 80, int64_t(*));
FIELD(exphil_model_info, state_bytes, 88, uint64_t(*));
FIELD(exphil_model_info, trained_updates, 96, uint64_t(*));
FIELD(exphil_model_info, trained_frames, 104, uint64_t(*));
FIELD(exphil_model_info, delay_frames, 112, int32_t(*));
FIELD(exphil_model_info, action_slots, 116, int32_t(*));
FIELD(exphil_model_info, mode, 120, int32_t(*));
FIELD(exphil_model_info, heads, 124, int32_t(*));
FIELD(exphil_model_info, type, 128, int32_t(*));
FIELD(exphil_model_info, reserved, 132, int32_t(*));
FIELD(exphil_model_info, layout, 136, char (*)[32]);
FIELD(exphil_model_info, codec, 168, char (*)[32]);
FIELD(exphil_model_info, blocks, 200, char (*)[256]);
FIELD(exphil_model_info, weights, 456, int32_t(*));
FIELD(exphil_model_info, calibrated, 460, int32_t(*));
LEAST(exphil_tensor_info, 184);
ALIGN(exphil_tensor_info, 8);
FIELD(exphil_tensor_info, struct_size, 0, size_t(*));
FIELD(exphil_tensor_info, dim, 8, int64_t (*)[4]);
FIELD(exphil_tensor_info, size_bytes, 40, uint64_t(*));
FIELD(exphil_tensor_info, rank, 48, int32_t(*));
FIELD(exphil_tensor_info, type, 52, int32_t(*));
FIELD(exphil_tensor_info, name, 56, char (*)[128]);
SIZE(exphil_head_comparison, 32);
ALIGN(exphil_head_comparison, 8);
FIELD(exphil_head_comparison, max_error, 0, double(*));
FIELD(exphil_head_comparison, rms_error, 8, double(*));
FIELD(exphil_head_comparison, kl, 16, double(*));
FIELD(exphil_head_comparison, agreement, 24, double(*));
LEAST(exphil_comparison, 584);
ALIGN(exphil_comparison, 8);
FIELD(exphil_comparison, struct_size, 0, size_t(*));
FIELD(exphil_comparison, reference_hash, 8, uint64_t(*));
FIELD(exphil_comparison, content_hash, 16, uint64_t(*));
FIELD(exphil_comparison, frames, 24, int64_t(*));
FIELD(exphil_comparison, max_error, 32, double(*));
FIELD(exphil_comparison, rms_error, 40, double(*));
FIELD(exphil_comparison, kl, 48, double(*));
FIELD(exphil_comparison, agreement, 56, double(*));
FIELD(exphil_comparison, heads, 64, int64_t(*));
FIELD(exphil_comparison, head, 72, exphil_head_comparison (*)[16]);
LEAST(exphil_dataset_config, 16);
ALIGN(exphil_dataset_config, 8);
FIELD(exphil_dataset_config, struct_size, 0, size_t(*));
FIELD(exphil_dataset_config, spec, 8, const exphil_spec *(*));
LEAST(exphil_replay_config, 32);
ALIGN(exphil_replay_config, 8);
FIELD(exphil_replay_config, struct_size, 0, size_t(*));
FIELD(exphil_replay_config, character, 8, const char *(*));
FIELD(exphil_replay_config, port, 16, int32_t(*));
FIELD(exphil_replay_config, opponent_port, 20, int32_t(*));
FIELD(exphil_replay_config, first_frame, 24, int32_t(*));
FIELD(exphil_replay_config, last_frame, 28, int32_t(*));
LEAST(exphil_replay_result, 40);
ALIGN(exphil_replay_result, 8);
FIELD(exphil_replay_result, struct_size, 0, size_t(*));
FIELD(exphil_replay_result, episodes, 8, int64_t(*));
FIELD(exphil_replay_result, frames, 16, int64_t(*));
FIELD(exphil_replay_result, frames_masked, 24, int64_t(*));
FIELD(exphil_replay_result, truncated, 32, int32_t(*));
FIELD(exphil_replay_result, reserved, 36, int32_t(*));
LEAST(exphil_dataset_info, 152);
ALIGN(exphil_dataset_info, 8);
FIELD(exphil_dataset_info, struct_size, 0, size_t(*));
FIELD(exphil_dataset_info, spec_hash, 8, uint64_t(*));
FIELD(exphil_dataset_info, content_hash, 16, uint64_t(*));
FIELD(exphil_dataset_info, frames, 24, int64_t(*));
FIELD(exphil_dataset_info, episodes, 32, int64_t(*));
FIELD(exphil_dataset_info, games, 40, int64_t(*));
FIELD(exphil_dataset_info, float_count, 48, int64_t(*));
FIELD(exphil_dataset_info, id_count, 56, int64_t(*));
FIELD(exphil_dataset_info, head_count, 64, int64_t(*));
FIELD(exphil_dataset_info, constant_floats, 72, int64_t(*));
FIELD(exphil_dataset_info, recovered, 80, int32_t(*));
FIELD(exphil_dataset_info, reserved, 84, int32_t(*));
FIELD(exphil_dataset_info, layout, 88, char (*)[32]);
FIELD(exphil_dataset_info, codec, 120, char (*)[32]);
LEAST(exphil_episode_info, 56);
ALIGN(exphil_episode_info, 8);
FIELD(exphil_episode_info, struct_size, 0, size_t(*));
FIELD(exphil_episode_info, game, 8, uint64_t(*));
FIELD(exphil_episode_info, first, 16, int64_t(*));
FIELD(exphil_episode_info, frames, 24, int64_t(*));
FIELD(exphil_episode_info, first_game_frame, 32, int32_t(*));
FIELD(exphil_episode_info, port, 36, int32_t(*));
FIELD(exphil_episode_info, opponent_port, 40, int32_t(*));
FIELD(exphil_episode_info, stage, 44, int32_t(*));
FIELD(exphil_episode_info, character, 48, int32_t(*));
FIELD(exphil_episode_info, opponent_character, 52, int32_t(*));
LEAST(exphil_split_config, 32);
ALIGN(exphil_split_config, 8);
FIELD(exphil_split_config, struct_size, 0, size_t(*));
FIELD(exphil_split_config, held_out, 8, double(*));
FIELD(exphil_split_config, seed, 16, uint64_t(*));
FIELD(exphil_split_config, by, 24, int32_t(*));
FIELD(exphil_split_config, reserved, 28, int32_t(*));
LEAST(exphil_sampling, 72);
ALIGN(exphil_sampling, 8);
FIELD(exphil_sampling, struct_size, 0, size_t(*));
FIELD(exphil_sampling, batch, 8, int64_t(*));
FIELD(exphil_sampling, time, 16, int64_t(*));
FIELD(exphil_sampling, stride, 24, int64_t(*));
FIELD(exphil_sampling, segment_frames, 32, int64_t(*));
FIELD(exphil_sampling, seed, 40, uint64_t(*));
FIELD(exphil_sampling, mode, 48, int32_t(*));
FIELD(exphil_sampling, delay_frames, 52, int32_t(*));
FIELD(exphil_sampling, action_slots, 56, int32_t(*));
FIELD(exphil_sampling, in_order, 60, int32_t(*));
FIELD(exphil_sampling, last_only, 64, int32_t(*));
FIELD(exphil_sampling, buffers, 68, int32_t(*));
LEAST(exphil_batch, 96);
ALIGN(exphil_batch, 8);
FIELD(exphil_batch, struct_size, 0, size_t(*));
FIELD(exphil_batch, batch, 8, int64_t(*));
FIELD(exphil_batch, time, 16, int64_t(*));
FIELD(exphil_batch, epoch, 24, int64_t(*));
FIELD(exphil_batch, index, 32, int64_t(*));
FIELD(exphil_batch, frames, 40, int64_t(*));
FIELD(exphil_batch, floats, 48, const float *(*));
FIELD(exphil_batch, ids, 56, const int32_t *(*));
FIELD(exphil_batch, past, 64, const int32_t *(*));
FIELD(exphil_batch, actions, 72, const int32_t *(*));
FIELD(exphil_batch, mask, 80, const float *(*));
FIELD(exphil_batch, reset, 88, const uint8_t *(*));
LEAST(exphil_prefetcher_info, 56);
ALIGN(exphil_prefetcher_info, 8);
FIELD(exphil_prefetcher_info, struct_size, 0, size_t(*));
FIELD(exphil_prefetcher_info, batches_per_epoch, 8, int64_t(*));
FIELD(exphil_prefetcher_info, frames_per_epoch, 16, int64_t(*));
FIELD(exphil_prefetcher_info, delivered, 24, int64_t(*));
FIELD(exphil_prefetcher_info, waited_ns, 32, int64_t(*));
FIELD(exphil_prefetcher_info, worked_ns, 40, int64_t(*));
FIELD(exphil_prefetcher_info, waits, 48, int64_t(*));
LEAST(exphil_optimizer_config, 112);
ALIGN(exphil_optimizer_config, 8);
FIELD(exphil_optimizer_config, struct_size, 0, size_t(*));
FIELD(exphil_optimizer_config, rate, 8, double(*));
FIELD(exphil_optimizer_config, beta1, 16, double(*));
FIELD(exphil_optimizer_config, beta2, 24, double(*));
FIELD(exphil_optimizer_config, epsilon, 32, double(*));
FIELD(exphil_optimizer_config, decay, 40, double(*));
FIELD(exphil_optimizer_config, clip_norm, 48, double(*));
FIELD(exphil_optimizer_config, ema_decay, 56, double(*));
FIELD(exphil_optimizer_config, low_ratio, 64, double(*));
FIELD(exphil_optimizer_config, restart_factor, 72, double(*));
FIELD(exphil_optimizer_config, warmup_updates, 80, int64_t(*));
FIELD(exphil_optimizer_config, total_updates, 88, int64_t(*));
FIELD(exphil_optimizer_config, restart_updates, 96, int64_t(*));
FIELD(exphil_optimizer_config, schedule, 104, int32_t(*));
FIELD(exphil_optimizer_config, reserved, 108, int32_t(*));
LEAST(exphil_optimizer_info, 32);
ALIGN(exphil_optimizer_info, 8);
FIELD(exphil_optimizer_info, struct_size, 0, size_t(*));
FIELD(exphil_optimizer_info, updates, 8, int64_t(*));
FIELD(exphil_optimizer_info, rate, 16, double(*));
FIELD(exphil_optimizer_info, state_bytes, 24, uint64_t(*));
SIZE(exphil_head_loss, 32);
ALIGN(exphil_head_loss, 8);
FIELD(exphil_head_loss, weight, 0, double(*));
FIELD(exphil_head_loss, smoothing, 8, double(*));
FIELD(exphil_head_loss, focal_gamma, 16, double(*));
FIELD(exphil_head_loss, positive_weight, 24, const float *(*));
LEAST(exphil_communicator, 32);
ALIGN(exphil_communicator, 8);
FIELD(exphil_communicator, struct_size, 0, size_t(*));
FIELD(exphil_communicator, user, 8, void *(*));
FIELD(exphil_communicator, all_reduce, 16,
      int32_t (*(*))(void *user, void *data, int64_t count, int32_t type));
FIELD(exphil_communicator, rank, 24, int32_t(*));
FIELD(exphil_communicator, ranks, 28, int32_t(*));
LEAST(exphil_trainer_config, 56);
ALIGN(exphil_trainer_config, 8);
FIELD(exphil_trainer_config, struct_size, 0, size_t(*));
FIELD(exphil_trainer_config, losses, 8, const exphil_head_loss *(*));
FIELD(exphil_trainer_config, communicator, 16, const exphil_communicator *(*));
FIELD(exphil_trainer_config, loss_scale, 24, double(*));
FIELD(exphil_trainer_config, accumulate, 32, int64_t(*));
FIELD(exphil_trainer_config, precision, 40, int32_t(*));
FIELD(exphil_trainer_config, activations, 44, int32_t(*));
FIELD(exphil_trainer_config, fake_quantize, 48, int32_t(*));
FIELD(exphil_trainer_config, checkpoint_blocks, 52, int32_t(*));
LEAST(exphil_metrics, 216);
ALIGN(exphil_metrics, 8);
FIELD(exphil_metrics, struct_size, 0, size_t(*));
FIELD(exphil_metrics, update, 8, int64_t(*));
FIELD(exphil_metrics, epoch, 16, int64_t(*));
FIELD(exphil_metrics, frames, 24, int64_t(*));
FIELD(exphil_metrics, loss, 32, double(*));
FIELD(exphil_metrics, head_loss, 40, double (*)[16]);
FIELD(exphil_metrics, gradient_norm, 168, double(*));
FIELD(exphil_metrics, rate, 176, double(*));
FIELD(exphil_metrics, loss_scale, 184, double(*));
FIELD(exphil_metrics, time_ns, 192, int64_t(*));
FIELD(exphil_metrics, waited_ns, 200, int64_t(*));
FIELD(exphil_metrics, skipped, 208, int64_t(*));
SIZE(exphil_head_report, 64);
ALIGN(exphil_head_report, 8);
FIELD(exphil_head_report, loss, 0, double(*));
FIELD(exphil_head_report, nll, 8, double(*));
FIELD(exphil_head_report, accuracy, 16, double(*));
FIELD(exphil_head_report, top3, 24, double(*));
FIELD(exphil_head_report, change_accuracy, 32, double(*));
FIELD(exphil_head_report, majority_accuracy, 40, double(*));
FIELD(exphil_head_report, copy_accuracy, 48, double(*));
FIELD(exphil_head_report, frequency_nll, 56, double(*));
LEAST(exphil_report, 1120);
ALIGN(exphil_report, 8);
FIELD(exphil_report, struct_size, 0, size_t(*));
FIELD(exphil_report, frames, 8, int64_t(*));
FIELD(exphil_report, change_frames, 16, int64_t(*));
FIELD(exphil_report, loss, 24, double(*));
FIELD(exphil_report, nll, 32, double(*));
FIELD(exphil_report, frequency_nll, 40, double(*));
FIELD(exphil_report, exact_accuracy, 48, double(*));
FIELD(exphil_report, exact_change_accuracy, 56, double(*));
FIELD(exphil_report, exact_majority, 64, double(*));
FIELD(exphil_report, exact_majority_change, 72, double(*));
FIELD(exphil_report, exact_copy, 80, double(*));
FIELD(exphil_report, heads, 88, int64_t(*));
FIELD(exphil_report, head, 96, exphil_head_report (*)[16]);
SIZE(exphil_head_play, 16);
ALIGN(exphil_head_play, 4);
FIELD(exphil_head_play, temperature, 0, float(*));
FIELD(exphil_head_play, deterministic, 4, int32_t(*));
FIELD(exphil_head_play, press, 8, float(*));
FIELD(exphil_head_play, release, 12, float(*));
LEAST(exphil_session_config, 72);
ALIGN(exphil_session_config, 8);
FIELD(exphil_session_config, struct_size, 0, size_t(*));
FIELD(exphil_session_config, heads, 8, const exphil_head_play *(*));
FIELD(exphil_session_config, spec, 16, const exphil_spec *(*));
FIELD(exphil_session_config, delay_frames, 24, const int32_t *(*));
FIELD(exphil_session_config, mode, 32, const int32_t *(*));
FIELD(exphil_session_config, seed, 40, uint64_t(*));
FIELD(exphil_session_config, streams, 48, int64_t(*));
FIELD(exphil_session_config, deadline_ns, 56, int64_t(*));
FIELD(exphil_session_config, deterministic, 64, int32_t(*));
FIELD(exphil_session_config, deliver, 68, int32_t(*));
LEAST(exphil_session_info, 616);
ALIGN(exphil_session_info, 8);
FIELD(exphil_session_info, struct_size, 0, size_t(*));
FIELD(exphil_session_info, steps, 8, uint64_t(*));
FIELD(exphil_session_info, missed, 16, uint64_t(*));
FIELD(exphil_session_info, latency, 24, uint64_t (*)[64]);
FIELD(exphil_session_info, last_ns, 536, int64_t(*));
FIELD(exphil_session_info, max_ns, 544, int64_t(*));
FIELD(exphil_session_info, p50_ns, 552, int64_t(*));
FIELD(exphil_session_info, p99_ns, 560, int64_t(*));
FIELD(exphil_session_info, streams, 568, int64_t(*));
FIELD(exphil_session_info, float_count, 576, int64_t(*));
FIELD(exphil_session_info, id_count, 584, int64_t(*));
FIELD(exphil_session_info, head_count, 592, int64_t(*));
FIELD(exphil_session_info, logit_count, 600, int64_t(*));
FIELD(exphil_session_info, state_bytes, 608, uint64_t(*));
LEAST(exphil_slp_config, 24);
ALIGN(exphil_slp_config, 8);
FIELD(exphil_slp_config, struct_size, 0, size_t(*));
FIELD(exphil_slp_config, limit_bytes, 8, size_t(*));
FIELD(exphil_slp_config, rollback, 16, int32_t(*));
FIELD(exphil_slp_config, flags, 20, uint32_t(*));
SIZE(exphil_slp_port, 36);
ALIGN(exphil_slp_port, 4);
FIELD(exphil_slp_port, dashback_fix, 0, uint32_t(*));
FIELD(exphil_slp_port, shield_drop_fix, 4, uint32_t(*));
FIELD(exphil_slp_port, offence_ratio, 8, float(*));
FIELD(exphil_slp_port, defence_ratio, 12, float(*));
FIELD(exphil_slp_port, model_scale, 16, float(*));
FIELD(exphil_slp_port, start_damage, 20, uint16_t(*));
FIELD(exphil_slp_port, respawn_damage, 22, uint16_t(*));
FIELD(exphil_slp_port, character, 24, uint8_t(*));
FIELD(exphil_slp_port, type, 25, uint8_t(*));
FIELD(exphil_slp_port, stocks, 26, uint8_t(*));
FIELD(exphil_slp_port, costume, 27, uint8_t(*));
FIELD(exphil_slp_port, team_shade, 28, uint8_t(*));
FIELD(exphil_slp_port, handicap, 29, uint8_t(*));
FIELD(exphil_slp_port, team, 30, uint8_t(*));
FIELD(exphil_slp_port, flags, 31, uint8_t(*));
FIELD(exphil_slp_port, cpu_level, 32, uint8_t(*));
FIELD(exphil_slp_port, port, 33, uint8_t(*));
FIELD(exphil_slp_port, reserved, 34, uint8_t (*)[2]);
LEAST(exphil_slp_info, 344);
ALIGN(exphil_slp_info, 8);
FIELD(exphil_slp_info, struct_size, 0, size_t(*));
FIELD(exphil_slp_info, input_bytes, 8, uint64_t(*));
FIELD(exphil_slp_info, stop_offset, 16, uint64_t(*));
FIELD(exphil_slp_info, frame_count, 24, int64_t(*));
FIELD(exphil_slp_info, instance_count, 32, int64_t(*));
FIELD(exphil_slp_info, incomplete_count, 40, int64_t(*));
FIELD(exphil_slp_info, item_count, 48, int64_t(*));
FIELD(exphil_slp_info, unknown_event_count, 56, int64_t(*));
FIELD(exphil_slp_info, problem_count, 64, int64_t(*));
FIELD(exphil_slp_info, problems, 72, uint32_t(*));
FIELD(exphil_slp_info, fields, 76, uint32_t(*));
FIELD(exphil_slp_info, container, 80, int32_t(*));
FIELD(exphil_slp_info, raw_declared_bytes, 84, int32_t(*));
FIELD(exphil_slp_info, stop, 88, int32_t(*));
FIELD(exphil_slp_info, truncated, 92, int32_t(*));
FIELD(exphil_slp_info, rollback, 96, int32_t(*));
FIELD(exphil_slp_info, first_frame, 100, int32_t(*));
FIELD(exphil_slp_info, last_frame, 104, int32_t(*));
FIELD(exphil_slp_info, metadata, 108, int32_t(*));
FIELD(exphil_slp_info, metadata_last_frame, 112, int32_t(*));
FIELD(exphil_slp_info, end_count, 116, int32_t(*));
FIELD(exphil_slp_info, seed, 120, uint32_t(*));
FIELD(exphil_slp_info, timer_seconds, 124, uint32_t(*));
FIELD(exphil_slp_info, game_number, 128, uint32_t(*));
FIELD(exphil_slp_info, tiebreak_number, 132, uint32_t(*));
FIELD(exphil_slp_info, damage_ratio, 136, float(*));
FIELD(exphil_slp_info, stage, 140, uint16_t(*));
FIELD(exphil_slp_info, version, 142, uint8_t (*)[4]);
FIELD(exphil_slp_info, game_mode, 146, uint8_t(*));
FIELD(exphil_slp_info, timer_kind, 147, uint8_t(*));
FIELD(exphil_slp_info, teams, 148, uint8_t(*));
FIELD(exphil_slp_info, friendly_fire, 149, uint8_t(*));
FIELD(exphil_slp_info, pal, 150, uint8_t(*));
FIELD(exphil_slp_info, frozen, 151, uint8_t(*));
FIELD(exphil_slp_info, minor_scene, 152, uint8_t(*));
FIELD(exphil_slp_info, major_scene, 153, uint8_t(*));
FIELD(exphil_slp_info, language, 154, uint8_t(*));
FIELD(exphil_slp_info, player_count, 155, uint8_t(*));
FIELD(exphil_slp_info, item_spawn, 156, int8_t(*));
FIELD(exphil_slp_info, self_destruct, 157, int8_t(*));
FIELD(exphil_slp_info, end_method, 158, uint8_t(*));
FIELD(exphil_slp_info, end_lras, 159, int8_t(*));
FIELD(exphil_slp_info, placements, 160, int8_t (*)[4]);
FIELD(exphil_slp_info, reserved, 164, uint8_t (*)[4]);
FIELD(exphil_slp_info, played_on, 168, char (*)[32]);
FIELD(exphil_slp_info, ports, 200, exphil_slp_port (*)[4]);
SIZE(exphil_slp_item, 40);
ALIGN(exphil_slp_item, 4);
FIELD(exphil_slp_item, facing, 0, float(*));
FIELD(exphil_slp_item, vel_x, 4, float(*));
FIELD(exphil_slp_item, vel_y, 8, float(*));
FIELD(exphil_slp_item, x, 12, float(*));
FIELD(exphil_slp_item, y, 16, float(*));
FIELD(exphil_slp_item, timer, 20, float(*));
FIELD(exphil_slp_item, spawn_id, 24, uint32_t(*));
FIELD(exphil_slp_item, type, 28, uint16_t(*));
FIELD(exphil_slp_item, damage, 30, uint16_t(*));
FIELD(exphil_slp_item, instance_id, 32, uint16_t(*));
FIELD(exphil_slp_item, state, 34, uint8_t(*));
FIELD(exphil_slp_item, misc, 35, uint8_t (*)[4]);
FIELD(exphil_slp_item, owner, 39, int8_t(*));
SIZE(exphil_slp_frame, 48);
ALIGN(exphil_slp_frame, 8);
FIELD(exphil_slp_frame, items, 0, const exphil_slp_item *(*));
FIELD(exphil_slp_frame, item_count, 8, int32_t(*));
FIELD(exphil_slp_frame, frame, 12, int32_t(*));
FIELD(exphil_slp_frame, instance, 16, int32_t(*));
FIELD(exphil_slp_frame, seed, 20, uint32_t(*));
FIELD(exphil_slp_frame, scene_counter, 24, uint32_t(*));
FIELD(exphil_slp_frame, latest_final, 28, int32_t(*));
FIELD(exphil_slp_frame, fountain_left, 32, float(*));
FIELD(exphil_slp_frame, fountain_right, 36, float(*));
FIELD(exphil_slp_frame, stadium_event, 40, uint16_t(*));
FIELD(exphil_slp_frame, stadium_kind, 42, uint16_t(*));
FIELD(exphil_slp_frame, whispy, 44, uint8_t(*));
FIELD(exphil_slp_frame, slots, 45, uint8_t(*));
FIELD(exphil_slp_frame, changed, 46, uint8_t(*));
FIELD(exphil_slp_frame, reserved, 47, uint8_t(*));
SIZE(exphil_slp_player, 144);
ALIGN(exphil_slp_player, 4);
FIELD(exphil_slp_player, frame, 0, int32_t(*));
FIELD(exphil_slp_player, pre_seed, 4, uint32_t(*));
FIELD(exphil_slp_player, pre_x, 8, float(*));
FIELD(exphil_slp_player, pre_y, 12, float(*));
FIELD(exphil_slp_player, pre_facing, 16, float(*));
FIELD(exphil_slp_player, pre_percent, 20, float(*));
FIELD(exphil_slp_player, joy_x, 24, float(*));
FIELD(exphil_slp_player, joy_y, 28, float(*));
FIELD(exphil_slp_player, c_x, 32, float(*));
FIELD(exphil_slp_player, c_y, 36, float(*));
FIELD(exphil_slp_player, trigger, 40, float(*));
FIELD(exphil_slp_player, physical_l, 44, float(*));
FIELD(exphil_slp_player, physical_r, 48, float(*));
FIELD(exphil_slp_player, buttons, 52, uint32_t(*));
FIELD(exphil_slp_player, x, 56, float(*));
FIELD(exphil_slp_player, y, 60, float(*));
FIELD(exphil_slp_player, facing, 64, float(*));
FIELD(exphil_slp_player, percent, 68, float(*));
FIELD(exphil_slp_player, shield, 72, float(*));
FIELD(exphil_slp_player, state_age, 76, float(*));
FIELD(exphil_slp_player, misc, 80, float(*));
FIELD(exphil_slp_player, vel_air_x, 84, float(*));
FIELD(exphil_slp_player, vel_y, 88, float(*));
FIELD(exphil_slp_player, vel_kb_x, 92, float(*));
FIELD(exphil_slp_player, vel_kb_y, 96, float(*));
FIELD(exphil_slp_player, vel_ground_x, 100, float(*));
FIELD(exphil_slp_player, hitlag, 104, float(*));
FIELD(exphil_slp_player, animation, 108, uint32_t(*));
FIELD(exphil_slp_player, physical_buttons, 112, uint16_t(*));
FIELD(exphil_slp_player, pre_action_state, 114, uint16_t(*));
FIELD(exphil_slp_player, action_state, 116, uint16_t(*));
FIELD(exphil_slp_player, ground_id, 118, uint16_t(*));
FIELD(exphil_slp_player, instance_hit_by, 120, uint16_t(*));
FIELD(exphil_slp_player, instance_id, 122, uint16_t(*));
FIELD(exphil_slp_player, raw_joy_x, 124, int8_t(*));
FIELD(exphil_slp_player, raw_joy_y, 125, int8_t(*));
FIELD(exphil_slp_player, raw_c_x, 126, int8_t(*));
FIELD(exphil_slp_player, raw_c_y, 127, int8_t(*));
FIELD(exphil_slp_player, port, 128, uint8_t(*));
FIELD(exphil_slp_player, follower, 129, uint8_t(*));
FIELD(exphil_slp_player, character, 130, uint8_t(*));
FIELD(exphil_slp_player, last_attack, 131, uint8_t(*));
FIELD(exphil_slp_player, combo, 132, uint8_t(*));
FIELD(exphil_slp_player, last_hit_by, 133, uint8_t(*));
FIELD(exphil_slp_player, stocks, 134, uint8_t(*));
FIELD(exphil_slp_player, flags, 135, uint8_t (*)[5]);
FIELD(exphil_slp_player, airborne, 140, uint8_t(*));
FIELD(exphil_slp_player, jumps, 141, uint8_t(*));
FIELD(exphil_slp_player, l_cancel, 142, uint8_t(*));
FIELD(exphil_slp_player, hurtbox, 143, uint8_t(*));
SIZE(exphil_slp_slot, 32);
ALIGN(exphil_slp_slot, 8);
FIELD(exphil_slp_slot, records, 0, const exphil_slp_player *(*));
FIELD(exphil_slp_slot, record_count, 8, int64_t(*));
FIELD(exphil_slp_slot, first_frame, 16, int32_t(*));
FIELD(exphil_slp_slot, last_frame, 20, int32_t(*));
FIELD(exphil_slp_slot, port, 24, int32_t(*));
FIELD(exphil_slp_slot, follower, 28, int32_t(*));

VALUE(EXPHIL_OK, 0);
VALUE(EXPHIL_END, 1);
VALUE(EXPHIL_AGAIN, 2);
VALUE(EXPHIL_E_INVALID, -1);
VALUE(EXPHIL_E_MEMORY, -2);
VALUE(EXPHIL_E_IO, -3);
VALUE(EXPHIL_E_FORMAT, -4);
VALUE(EXPHIL_E_UNSUPPORTED, -5);
VALUE(EXPHIL_E_DEVICE, -6);
VALUE(EXPHIL_E_STATE, -7);
VALUE(EXPHIL_E_BUSY, -8);
VALUE(EXPHIL_E_VERSION, -9);
VALUE(EXPHIL_E_CANCELLED, -10);
VALUE(EXPHIL_E_NUMERIC, -11);
VALUE(EXPHIL_E_MISMATCH, -12);
VALUE(EXPHIL_E_INTERNAL, -13);
VALUE(EXPHIL_IO_READ, 1);
VALUE(EXPHIL_IO_CREATE, 2);
VALUE(EXPHIL_IO_ABSENT, 0);
VALUE(EXPHIL_IO_FILE, 1);
VALUE(EXPHIL_IO_FOLDER, 2);
VALUE(EXPHIL_IO_OTHER, 3);
VALUE(EXPHIL_LOG_ERROR, 1);
VALUE(EXPHIL_LOG_WARNING, 2);
VALUE(EXPHIL_LOG_INFO, 3);
VALUE(EXPHIL_LOG_DEBUG, 4);
VALUE(EXPHIL_BERNOULLI, 0);
VALUE(EXPHIL_CATEGORICAL, 1);
VALUE(EXPHIL_MELEE_HAS_AGE, 1);
VALUE(EXPHIL_MELEE_HAS_FLAGS, 2);
VALUE(EXPHIL_MELEE_HAS_HURTBOX, 4);
VALUE(EXPHIL_MELEE_HAS_SPEED, 8);
VALUE(EXPHIL_MELEE_HAS_HITLAG, 16);
VALUE(EXPHIL_MELEE_HAS_ALL, 31);
VALUE(EXPHIL_PAD_D_LEFT, 1);
VALUE(EXPHIL_PAD_D_RIGHT, 2);
VALUE(EXPHIL_PAD_D_DOWN, 4);
VALUE(EXPHIL_PAD_D_UP, 8);
VALUE(EXPHIL_PAD_Z, 16);
VALUE(EXPHIL_PAD_R, 32);
VALUE(EXPHIL_PAD_L, 64);
VALUE(EXPHIL_PAD_A, 256);
VALUE(EXPHIL_PAD_B, 512);
VALUE(EXPHIL_PAD_X, 1024);
VALUE(EXPHIL_PAD_Y, 2048);
VALUE(EXPHIL_PAD_START, 4096);
VALUE(EXPHIL_MODE_CARRY, 0);
VALUE(EXPHIL_MODE_WINDOW, 1);
VALUE(EXPHIL_HEADS_INDEPENDENT, 0);
VALUE(EXPHIL_HEADS_AUTOREGRESSIVE, 1);
VALUE(EXPHIL_TYPE_F32, 0);
VALUE(EXPHIL_TYPE_F64, 1);
VALUE(EXPHIL_TYPE_BF16, 2);
VALUE(EXPHIL_TYPE_I8, 3);
VALUE(EXPHIL_TYPE_F16, 4);
VALUE(EXPHIL_SPLIT_GAME, 0);
VALUE(EXPHIL_SPLIT_TIME, 1);
VALUE(EXPHIL_SCHEDULE_CONSTANT, 0);
VALUE(EXPHIL_SCHEDULE_COSINE, 1);
VALUE(EXPHIL_SCHEDULE_RESTARTS, 2);
VALUE(EXPHIL_PRECISION_F32, 0);
VALUE(EXPHIL_PRECISION_TF32, 1);
VALUE(EXPHIL_PRECISION_BF16, 2);
VALUE(EXPHIL_PRECISION_F16, 3);
VALUE(EXPHIL_WEIGHTS, 0);
VALUE(EXPHIL_WEIGHTS_AVERAGED, 1);
VALUE(EXPHIL_DELIVER_DUE, 0);
VALUE(EXPHIL_DELIVER_DECIDED, 1);
VALUE(EXPHIL_SLP_LAST, 0);
VALUE(EXPHIL_SLP_FIRST, 1);
VALUE(EXPHIL_SLP_ALL, 2);
VALUE(EXPHIL_SLP_CONTAINER, 0);
VALUE(EXPHIL_SLP_BARE, 1);
VALUE(EXPHIL_SLP_STOP_COMPLETE, 0);
VALUE(EXPHIL_SLP_STOP_END_OF_FILE, 1);
VALUE(EXPHIL_SLP_STOP_METADATA, 2);
VALUE(EXPHIL_SLP_STOP_TRUNCATED, 3);
VALUE(EXPHIL_SLP_STOP_UNKNOWN_CODE, 4);
VALUE(EXPHIL_SLP_METADATA_ABSENT, 0);
VALUE(EXPHIL_SLP_METADATA_OK, 1);
VALUE(EXPHIL_SLP_METADATA_UNREADABLE, 2);
VALUE(EXPHIL_SLP_HAS_STATE_AGE, 1);
VALUE(EXPHIL_SLP_HAS_RAW_JOY_X, 2);
VALUE(EXPHIL_SLP_HAS_PRE_PERCENT, 4);
VALUE(EXPHIL_SLP_HAS_FLAGS, 8);
VALUE(EXPHIL_SLP_HAS_LRAS, 16);
VALUE(EXPHIL_SLP_HAS_HURTBOX, 32);
VALUE(EXPHIL_SLP_HAS_FRAME_SEED, 64);
VALUE(EXPHIL_SLP_HAS_BOOKEND, 128);
VALUE(EXPHIL_SLP_HAS_ITEMS, 256);
VALUE(EXPHIL_SLP_HAS_ITEM_MISC, 512);
VALUE(EXPHIL_SLP_HAS_VELOCITY, 1024);
VALUE(EXPHIL_SLP_HAS_ITEM_OWNER, 2048);
VALUE(EXPHIL_SLP_HAS_LATEST_FINAL, 4096);
VALUE(EXPHIL_SLP_HAS_HITLAG, 8192);
VALUE(EXPHIL_SLP_HAS_SCENE_COUNTER, 16384);
VALUE(EXPHIL_SLP_HAS_ANIMATION, 32768);
VALUE(EXPHIL_SLP_HAS_PLACEMENTS, 65536);
VALUE(EXPHIL_SLP_HAS_RAW_JOY_Y, 131072);
VALUE(EXPHIL_SLP_HAS_INSTANCE, 262144);
VALUE(EXPHIL_SLP_HAS_ITEM_INSTANCE, 524288);
VALUE(EXPHIL_SLP_HAS_RAW_C, 1048576);
VALUE(EXPHIL_SLP_HAS_FOUNTAIN, 2097152);
VALUE(EXPHIL_SLP_HAS_WHISPY, 4194304);
VALUE(EXPHIL_SLP_HAS_STADIUM, 8388608);
VALUE(EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH, 1);
VALUE(EXPHIL_SLP_PROBLEM_LENGTH, 2);
VALUE(EXPHIL_SLP_PROBLEM_SHORT_EVENT, 4);
VALUE(EXPHIL_SLP_PROBLEM_SECOND_START, 8);
VALUE(EXPHIL_SLP_PROBLEM_PORT, 16);
VALUE(EXPHIL_SLP_PROBLEM_FRAME_START, 32);
VALUE(EXPHIL_SLP_PROBLEM_ITEM, 64);
VALUE(EXPHIL_SLP_PROBLEM_BOOKEND, 128);
VALUE(EXPHIL_SLP_PROBLEM_FRAME_LIMIT, 256);
VALUE(EXPHIL_SLP_PROBLEM_METADATA, 512);
VALUE(EXPHIL_SLP_PROBLEM_ITEM_LIMIT, 1024);
VALUE(EXPHIL_SLP_DUMP_STATE, 0);
VALUE(EXPHIL_SLP_DUMP_INPUT, 1);
VALUE(EXPHIL_SLP_DUMP_AUX, 2);
VALUE(EXPHIL_SLP_DUMP_ITEMS, 3);
VALUE(EXPHIL_IDS_MAX, 64);
VALUE(EXPHIL_HEADS_MAX, 16);
VALUE(EXPHIL_MELEE_ITEMS_MAX, 15);
VALUE(EXPHIL_LATENCY_BUCKETS, 64);
VALUE(EXPHIL_SLP_FIRST_FRAME, -123);
VALUE(EXPHIL_SLP_FIRST_PLAYABLE, -39);
VALUE(EXPHIL_SLP_FRAME_LIMIT, 1000000);
VALUE(EXPHIL_SLP_PORTS, 4);
VALUE(EXPHIL_SLP_STREAM_ITEMS, 64);

TYPE(exphil_status, int32_t);
TYPE(exphil_log_level, int32_t);
TYPE(exphil_log_fn, void (*)(void *user, exphil_log_level level, const char *message));
TYPE(exphil_cancel_fn, int32_t (*)(void *user));

FUNCTION(exphil_version, uint32_t (*)(void));
FUNCTION(exphil_version_string, const char *(*)(void));
FUNCTION(exphil_status_name, const char *(*)(exphil_status status));
FUNCTION(exphil_context_create, exphil_status (*)(const exphil_context_config *config,
                                                  exphil_context **context, exphil_error *error));
FUNCTION(exphil_context_destroy, void (*)(exphil_context *context));
FUNCTION(exphil_device_count, int64_t (*)(void));
FUNCTION(exphil_device_get, exphil_status (*)(int64_t index, exphil_device_info *info, exphil_error *error));
FUNCTION(exphil_context_device,
         exphil_status (*)(const exphil_context *context, exphil_device_info *info, exphil_error *error));
FUNCTION(exphil_context_memory,
         exphil_status (*)(const exphil_context *context, exphil_memory_info *info, exphil_error *error));
FUNCTION(exphil_spec_hash, uint64_t (*)(const exphil_spec *spec));
FUNCTION(exphil_melee_spec,
         exphil_status (*)(const char *layout, const char *codec, exphil_spec *spec, exphil_error *error));
FUNCTION(exphil_melee_field_count, int64_t (*)(const char *layout));
FUNCTION(exphil_melee_field_get, exphil_status (*)(const char *layout, int64_t index,
                                                   exphil_melee_field *field, exphil_error *error));
FUNCTION(exphil_melee_character_name, const char *(*)(int32_t external));
FUNCTION(exphil_melee_stage_name, const char *(*)(int32_t external));
FUNCTION(exphil_melee_encode, exphil_status (*)(const char *layout, const exphil_melee_frame *frame,
                                                float *floats, int32_t *ids, exphil_error *error));
FUNCTION(exphil_melee_pad_encode,
         exphil_status (*)(const char *codec, const exphil_pad *pad, int32_t *action, exphil_error *error));
FUNCTION(exphil_melee_pad_decode,
         exphil_status (*)(const char *codec, const int32_t *action, exphil_pad *pad, exphil_error *error));
FUNCTION(exphil_model_create, exphil_status (*)(exphil_context *context, const exphil_model_config *config,
                                                exphil_model **model, exphil_error *error));
FUNCTION(exphil_model_load, exphil_status (*)(exphil_context *context, const char *path, exphil_model **model,
                                              exphil_error *error));
FUNCTION(exphil_model_load_memory,
         exphil_status (*)(exphil_context *context, const void *data, size_t size_bytes, exphil_model **model,
                           exphil_error *error));
FUNCTION(exphil_model_save,
         exphil_status (*)(const exphil_model *model, const char *path, exphil_error *error));
FUNCTION(exphil_model_destroy, void (*)(exphil_model *model));
FUNCTION(exphil_model_query,
         exphil_status (*)(const exphil_model *model, exphil_model_info *info, exphil_error *error));
FUNCTION(exphil_model_spec,
         exphil_status (*)(const exphil_model *model, exphil_spec *spec, exphil_error *error));
FUNCTION(exphil_model_tensor_info, exphil_status (*)(const exphil_model *model, int64_t index,
                                                     exphil_tensor_info *info, exphil_error *error));
FUNCTION(exphil_model_tensor_get, exphil_status (*)(const exphil_model *model, const char *name, void *data,
                                                    size_t size_bytes, exphil_error *error));
FUNCTION(exphil_model_tensor_set, exphil_status (*)(exphil_model *model, const char *name, const void *data,
                                                    size_t size_bytes, exphil_error *error));
FUNCTION(exphil_model_tensor_to_dlpack,
         exphil_status (*)(const exphil_model *model, const char *name, struct DLManagedTensor **tensor,
                           exphil_error *error));
FUNCTION(exphil_model_tensor_to_dlpack_versioned,
         exphil_status (*)(const exphil_model *model, const char *name,
                           struct DLManagedTensorVersioned **tensor, exphil_error *error));
FUNCTION(exphil_model_tensor_from_dlpack,
         exphil_status (*)(exphil_model *model, const char *name, const struct DLManagedTensor *tensor,
                           exphil_error *error));
FUNCTION(exphil_model_quantize, exphil_status (*)(const exphil_model *model, int32_t type,
                                                  exphil_model **quantized, exphil_error *error));
FUNCTION(exphil_model_calibration_set,
         exphil_status (*)(exphil_model *model, const exphil_comparison *comparison, exphil_error *error));
FUNCTION(exphil_model_calibration_get,
         exphil_status (*)(const exphil_model *model, exphil_comparison *comparison, exphil_error *error));
FUNCTION(exphil_model_export_onnx,
         exphil_status (*)(const exphil_model *model, const char *path, exphil_error *error));
FUNCTION(exphil_dataset_create,
         exphil_status (*)(exphil_context *context, const exphil_dataset_config *config,
                           exphil_dataset **dataset, exphil_error *error));
FUNCTION(exphil_dataset_open, exphil_status (*)(exphil_context *context, const char *path,
                                                exphil_dataset **dataset, exphil_error *error));
FUNCTION(exphil_dataset_save,
         exphil_status (*)(const exphil_dataset *dataset, const char *path, exphil_error *error));
FUNCTION(exphil_dataset_verify, exphil_status (*)(const exphil_dataset *dataset, exphil_error *error));
FUNCTION(exphil_dataset_destroy, void (*)(exphil_dataset *dataset));
FUNCTION(exphil_dataset_add_replay,
         exphil_status (*)(exphil_dataset *dataset, const char *path, const exphil_replay_config *config,
                           exphil_replay_result *result, exphil_error *error));
FUNCTION(exphil_dataset_add_replay_memory,
         exphil_status (*)(exphil_dataset *dataset, const void *data, size_t size_bytes,
                           const exphil_replay_config *config, exphil_replay_result *result,
                           exphil_error *error));
FUNCTION(exphil_dataset_add_rows,
         exphil_status (*)(exphil_dataset *dataset, uint64_t game, int64_t frames, const float *floats,
                           const int32_t *ids, const int32_t *actions, exphil_error *error));
FUNCTION(exphil_dataset_query,
         exphil_status (*)(const exphil_dataset *dataset, exphil_dataset_info *info, exphil_error *error));
FUNCTION(exphil_dataset_spec,
         exphil_status (*)(const exphil_dataset *dataset, exphil_spec *spec, exphil_error *error));
FUNCTION(exphil_dataset_episode, exphil_status (*)(const exphil_dataset *dataset, int64_t index,
                                                   exphil_episode_info *info, exphil_error *error));
FUNCTION(exphil_dataset_frame, exphil_status (*)(const exphil_dataset *dataset, int64_t index, float *floats,
                                                 int32_t *ids, int32_t *action, exphil_error *error));
FUNCTION(exphil_dataset_split,
         exphil_status (*)(const exphil_dataset *dataset, const exphil_split_config *config,
                           exphil_dataset **kept, exphil_dataset **held_out, exphil_error *error));
FUNCTION(exphil_model_sampling,
         exphil_status (*)(const exphil_model *model, exphil_sampling *sampling, exphil_error *error));
FUNCTION(exphil_prefetcher_create,
         exphil_status (*)(const exphil_dataset *dataset, const exphil_sampling *sampling,
                           exphil_prefetcher **prefetcher, exphil_error *error));
FUNCTION(exphil_prefetcher_next,
         exphil_status (*)(exphil_prefetcher *prefetcher, exphil_batch *batch, exphil_error *error));
FUNCTION(exphil_prefetcher_seek,
         exphil_status (*)(exphil_prefetcher *prefetcher, int64_t epoch, int64_t index, exphil_error *error));
FUNCTION(exphil_prefetcher_query,
         exphil_status (*)(exphil_prefetcher *prefetcher, exphil_prefetcher_info *info, exphil_error *error));
FUNCTION(exphil_prefetcher_destroy, void (*)(exphil_prefetcher *prefetcher));
FUNCTION(exphil_optimizer_create,
         exphil_status (*)(const exphil_model *model, const exphil_optimizer_config *config,
                           exphil_optimizer **optimizer, exphil_error *error));
FUNCTION(exphil_optimizer_query, exphil_status (*)(const exphil_optimizer *optimizer,
                                                   exphil_optimizer_info *info, exphil_error *error));
FUNCTION(exphil_optimizer_destroy, void (*)(exphil_optimizer *optimizer));
FUNCTION(exphil_trainer_create,
         exphil_status (*)(const exphil_model *model, exphil_optimizer *optimizer,
                           exphil_prefetcher *prefetcher, const exphil_trainer_config *config,
                           exphil_trainer **trainer, exphil_error *error));
FUNCTION(exphil_trainer_step,
         exphil_status (*)(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error));
FUNCTION(exphil_trainer_step_batch, exphil_status (*)(exphil_trainer *trainer, const exphil_batch *batch,
                                                      exphil_metrics *metrics, exphil_error *error));
FUNCTION(exphil_trainer_model, exphil_status (*)(const exphil_trainer *trainer, int32_t which,
                                                 exphil_model **model, exphil_error *error));
FUNCTION(exphil_trainer_save,
         exphil_status (*)(const exphil_trainer *trainer, const char *path, exphil_error *error));
FUNCTION(exphil_trainer_resume,
         exphil_status (*)(exphil_trainer *trainer, const char *path, exphil_error *error));
FUNCTION(exphil_trainer_destroy, void (*)(exphil_trainer *trainer));
FUNCTION(exphil_evaluate, exphil_status (*)(const exphil_model *model, const exphil_dataset *dataset,
                                            const exphil_dataset *frequencies, const exphil_head_loss *losses,
                                            int64_t batch, exphil_report *report, exphil_error *error));
FUNCTION(exphil_trainer_evaluate,
         exphil_status (*)(const exphil_trainer *trainer, int32_t which, const exphil_dataset *dataset,
                           const exphil_dataset *frequencies, exphil_report *report, exphil_error *error));
FUNCTION(exphil_model_compare, exphil_status (*)(const exphil_model *reference, const exphil_model *model,
                                                 const exphil_dataset *dataset, int64_t batch,
                                                 exphil_comparison *comparison, exphil_error *error));
FUNCTION(exphil_session_create,
         exphil_status (*)(const exphil_model *model, const exphil_session_config *config,
                           exphil_session **session, exphil_error *error));
FUNCTION(exphil_session_clone,
         exphil_status (*)(const exphil_session *session, exphil_session **clone, exphil_error *error));
FUNCTION(exphil_session_destroy, void (*)(exphil_session *session));
FUNCTION(exphil_session_step,
         exphil_status (*)(exphil_session *session, const exphil_melee_frame *frames, exphil_pad *pads));
FUNCTION(exphil_session_step_row,
         exphil_status (*)(exphil_session *session, const float *floats, const int32_t *ids,
                           const float *noise, int32_t *actions));
FUNCTION(exphil_session_logits,
         exphil_status (*)(const exphil_session *session, int64_t stream, float *logits, int64_t count));
FUNCTION(exphil_session_reset, exphil_status (*)(exphil_session *session, int64_t stream));
FUNCTION(exphil_session_override,
         exphil_status (*)(exphil_session *session, int64_t stream, const int32_t *action));
FUNCTION(exphil_session_state_size, size_t (*)(const exphil_session *session));
FUNCTION(exphil_session_state_save,
         exphil_status (*)(const exphil_session *session, int64_t stream, void *state, size_t size_bytes));
FUNCTION(exphil_session_state_restore,
         exphil_status (*)(exphil_session *session, int64_t stream, const void *state, size_t size_bytes));
FUNCTION(exphil_session_query,
         exphil_status (*)(const exphil_session *session, exphil_session_info *info, exphil_error *error));
FUNCTION(exphil_session_error, exphil_status (*)(const exphil_session *session, exphil_error *error));
FUNCTION(exphil_slp_open,
         exphil_status (*)(exphil_context *context, const char *path, const exphil_slp_config *config,
                           exphil_slp **slp, exphil_error *error));
FUNCTION(exphil_slp_read,
         exphil_status (*)(exphil_context *context, const void *data, size_t size_bytes,
                           const exphil_slp_config *config, exphil_slp **slp, exphil_error *error));
FUNCTION(exphil_slp_destroy, void (*)(exphil_slp *slp));
FUNCTION(exphil_slp_query,
         exphil_status (*)(const exphil_slp *slp, exphil_slp_info *info, exphil_error *error));
FUNCTION(exphil_slp_frame_count, int64_t (*)(const exphil_slp *slp));
FUNCTION(exphil_slp_frame_at, const exphil_slp_frame *(*)(const exphil_slp *slp, int64_t position));
FUNCTION(exphil_slp_position, int64_t (*)(const exphil_slp *slp, int32_t frame));
FUNCTION(exphil_slp_slot_count, int32_t (*)(const exphil_slp *slp));
FUNCTION(exphil_slp_slot_at, const exphil_slp_slot *(*)(const exphil_slp *slp, int32_t index));
FUNCTION(exphil_slp_player_at, const exphil_slp_player *(*)(const exphil_slp *slp, int64_t position,
                                                            int32_t port_index, int32_t follower));
FUNCTION(exphil_slp_stream_create,
         exphil_status (*)(exphil_context *context, exphil_slp_stream **stream, exphil_error *error));
FUNCTION(exphil_slp_stream_destroy, void (*)(exphil_slp_stream *stream));
FUNCTION(exphil_slp_stream_push,
         exphil_status (*)(exphil_slp_stream *stream, const void *data, size_t size_bytes, size_t *used_bytes,
                           exphil_error *error));
FUNCTION(exphil_slp_stream_reset, exphil_status (*)(exphil_slp_stream *stream, exphil_error *error));
FUNCTION(exphil_slp_stream_query,
         exphil_status (*)(exphil_slp_stream *stream, exphil_slp_info *info, exphil_error *error));
FUNCTION(exphil_slp_stream_frame, const exphil_slp_frame *(*)(const exphil_slp_stream *stream));
FUNCTION(exphil_slp_stream_player,
         const exphil_slp_player *(*)(const exphil_slp_stream *stream, int32_t port_index, int32_t follower));
FUNCTION(exphil_slp_dump_bytes, size_t (*)(const exphil_slp *slp, int32_t kind, int32_t slot));
FUNCTION(exphil_slp_dump, exphil_status (*)(const exphil_slp *slp, int32_t kind, int32_t slot, void *buffer,
                                            size_t buffer_bytes, exphil_error *error));
FUNCTION(exphil_slp_melee_frame,
         exphil_status (*)(const exphil_slp *slp, int64_t position, int32_t own_port, int32_t opponent_port,
                           exphil_melee_frame *frame, exphil_error *error));
FUNCTION(exphil_slp_stream_melee_frame,
         exphil_status (*)(exphil_slp_stream *stream, int32_t own_port, int32_t opponent_port,
                           exphil_melee_frame *frame, exphil_error *error));
FUNCTION(exphil_slp_melee_pad, exphil_status (*)(const exphil_slp *slp, int64_t position, int32_t port,
                                                 exphil_pad *pad, exphil_error *error));
#endif
