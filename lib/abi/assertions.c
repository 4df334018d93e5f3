/* The interface of release 0.2.0, as the compiler sees it: a change that would break a program built
 * against that release does not compile. Written by `tools/abi release`; doc/abi.md says when. No code, no data. */
#include <exphil/blocks.h>
#include <exphil/conditions.h>
#include <exphil/examine.h>
#include <exphil/games.h>
#include <exphil/learn.h>
#include <exphil/live.h>
#include <exphil/match.h>
#include <exphil/notes.h>
#include <exphil/ops.h>
#include <exphil/plan.h>
#include <exphil/ranks.h>
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
LEAST(exphil_io, 120);
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
FIELD(exphil_io, list, 112,
      int32_t (*(*))(void *user, const char *folder, int32_t (*name)(void *to, const char *name), void *to));
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
LEAST(exphil_memory_info, 80);
ALIGN(exphil_memory_info, 8);
FIELD(exphil_memory_info, struct_size, 0, size_t(*));
FIELD(exphil_memory_info, host_used_bytes, 8, uint64_t(*));
FIELD(exphil_memory_info, host_peak_bytes, 16, uint64_t(*));
FIELD(exphil_memory_info, host_allocations, 24, uint64_t(*));
FIELD(exphil_memory_info, device_used_bytes, 32, uint64_t(*));
FIELD(exphil_memory_info, device_peak_bytes, 40, uint64_t(*));
FIELD(exphil_memory_info, device_requests, 48, uint64_t(*));
FIELD(exphil_memory_info, device_reused, 56, uint64_t(*));
FIELD(exphil_memory_info, pinned_used_bytes, 64, uint64_t(*));
FIELD(exphil_memory_info, pinned_peak_bytes, 72, uint64_t(*));
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
SIZE(exphil_condition_spec, 24);
ALIGN(exphil_condition_spec, 8);
FIELD(exphil_condition_spec, name, 0, const char *(*));
FIELD(exphil_condition_spec, values, 8, int32_t(*));
FIELD(exphil_condition_spec, width, 12, int32_t(*));
FIELD(exphil_condition_spec, mask, 16, double(*));
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
LEAST(exphil_model_config, 240);
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
FIELD(exphil_model_config, neutral_start, 144, int32_t(*));
FIELD(exphil_model_config, reserved_2, 148, int32_t(*));
FIELD(exphil_model_config, conditions, 152, const exphil_condition_spec *(*));
FIELD(exphil_model_config, delays, 160, const int32_t *(*));
FIELD(exphil_model_config, condition_count, 168, int64_t(*));
FIELD(exphil_model_config, delay_count, 176, int64_t(*));
FIELD(exphil_model_config, value, 184, int32_t(*));
FIELD(exphil_model_config, reserved_3, 188, int32_t(*));
FIELD(exphil_model_config, norm_epsilon, 192, double(*));
FIELD(exphil_model_config, head_units, 200, int64_t(*));
FIELD(exphil_model_config, no_final_norm, 208, int32_t(*));
FIELD(exphil_model_config, head_layers, 212, int32_t(*));
FIELD(exphil_model_config, head_activation, 216, int32_t(*));
FIELD(exphil_model_config, head_last, 220, int32_t(*));
FIELD(exphil_model_config, no_head_past, 224, int32_t(*));
FIELD(exphil_model_config, no_head_trunk, 228, int32_t(*));
FIELD(exphil_model_config, input_width, 232, int64_t(*));
LEAST(exphil_model_info, 544);
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
FIELD(exphil_model_info, neutral_start, 464, int32_t(*));
FIELD(exphil_model_info, reserved_2, 468, int32_t(*));
FIELD(exphil_model_info, condition_count, 472, int64_t(*));
FIELD(exphil_model_info, delay_count, 480, int64_t(*));
FIELD(exphil_model_info, value, 488, int32_t(*));
FIELD(exphil_model_info, reserved_3, 492, int32_t(*));
FIELD(exphil_model_info, norm_epsilon, 496, double(*));
FIELD(exphil_model_info, head_units, 504, int64_t(*));
FIELD(exphil_model_info, no_final_norm, 512, int32_t(*));
FIELD(exphil_model_info, head_layers, 516, int32_t(*));
FIELD(exphil_model_info, head_activation, 520, int32_t(*));
FIELD(exphil_model_info, head_last, 524, int32_t(*));
FIELD(exphil_model_info, no_head_past, 528, int32_t(*));
FIELD(exphil_model_info, no_head_trunk, 532, int32_t(*));
FIELD(exphil_model_info, input_width, 536, int64_t(*));
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
LEAST(exphil_episode_info, 64);
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
FIELD(exphil_episode_info, group, 56, uint64_t(*));
LEAST(exphil_split_config, 32);
ALIGN(exphil_split_config, 8);
FIELD(exphil_split_config, struct_size, 0, size_t(*));
FIELD(exphil_split_config, held_out, 8, double(*));
FIELD(exphil_split_config, seed, 16, uint64_t(*));
FIELD(exphil_split_config, by, 24, int32_t(*));
FIELD(exphil_split_config, reserved, 28, int32_t(*));
LEAST(exphil_sampling, 192);
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
FIELD(exphil_sampling, neutral_start, 72, int32_t(*));
FIELD(exphil_sampling, reserved, 76, int32_t(*));
FIELD(exphil_sampling, shuffle_frames, 80, int64_t(*));
FIELD(exphil_sampling, memory_bytes, 88, int64_t(*));
FIELD(exphil_sampling, workers, 96, int32_t(*));
FIELD(exphil_sampling, reserved_2, 100, int32_t(*));
FIELD(exphil_sampling, drop_past, 104, double(*));
FIELD(exphil_sampling, mirror, 112, double(*));
FIELD(exphil_sampling, conditions, 120, const exphil_condition_spec *(*));
FIELD(exphil_sampling, delays, 128, const int32_t *(*));
FIELD(exphil_sampling, condition_count, 136, int64_t(*));
FIELD(exphil_sampling, delay_count, 144, int64_t(*));
FIELD(exphil_sampling, balance_character, 152, double(*));
FIELD(exphil_sampling, balance_action, 160, double(*));
FIELD(exphil_sampling, balance_change, 168, double(*));
FIELD(exphil_sampling, first_lane, 176, int64_t(*));
FIELD(exphil_sampling, lane_count, 184, int64_t(*));
LEAST(exphil_batch, 128);
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
FIELD(exphil_batch, dropped, 96, const uint8_t *(*));
FIELD(exphil_batch, conditions, 104, const int32_t *(*));
FIELD(exphil_batch, rows, 112, const int64_t *(*));
FIELD(exphil_batch, returns, 120, const float *(*));
LEAST(exphil_prefetcher_info, 64);
ALIGN(exphil_prefetcher_info, 8);
FIELD(exphil_prefetcher_info, struct_size, 0, size_t(*));
FIELD(exphil_prefetcher_info, batches_per_epoch, 8, int64_t(*));
FIELD(exphil_prefetcher_info, frames_per_epoch, 16, int64_t(*));
FIELD(exphil_prefetcher_info, delivered, 24, int64_t(*));
FIELD(exphil_prefetcher_info, waited_ns, 32, int64_t(*));
FIELD(exphil_prefetcher_info, worked_ns, 40, int64_t(*));
FIELD(exphil_prefetcher_info, waits, 48, int64_t(*));
FIELD(exphil_prefetcher_info, effective_share, 56, double(*));
LEAST(exphil_optimizer_config, 120);
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
FIELD(exphil_optimizer_config, resume_new_total, 112, int32_t(*));
FIELD(exphil_optimizer_config, reserved_2, 116, int32_t(*));
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
LEAST(exphil_trainer_config, 104);
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
FIELD(exphil_trainer_config, own_past, 56, double(*));
FIELD(exphil_trainer_config, own_past_ramp_updates, 64, int64_t(*));
FIELD(exphil_trainer_config, own_past_seed, 72, uint64_t(*));
FIELD(exphil_trainer_config, saved_weights, 80, int32_t(*));
FIELD(exphil_trainer_config, as_played, 84, int32_t(*));
FIELD(exphil_trainer_config, reduction, 88, int32_t(*));
FIELD(exphil_trainer_config, shards, 92, int32_t(*));
FIELD(exphil_trainer_config, device_communicator, 96, const struct exphil_device_communicator *(*));
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
LEAST(exphil_report, 1192);
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
FIELD(exphil_report, alone_most_frames, 1120, int64_t(*));
FIELD(exphil_report, alone_frames, 1128, int64_t(*));
FIELD(exphil_report, alone_change_frames, 1136, int64_t(*));
FIELD(exphil_report, alone_nll, 1144, double(*));
FIELD(exphil_report, alone_accuracy, 1152, double(*));
FIELD(exphil_report, alone_change_accuracy, 1160, double(*));
FIELD(exphil_report, value_frames, 1168, int64_t(*));
FIELD(exphil_report, value_loss, 1176, double(*));
FIELD(exphil_report, unexplained, 1184, double(*));
SIZE(exphil_head_play, 16);
ALIGN(exphil_head_play, 4);
FIELD(exphil_head_play, temperature, 0, float(*));
FIELD(exphil_head_play, deterministic, 4, int32_t(*));
FIELD(exphil_head_play, press, 8, float(*));
FIELD(exphil_head_play, release, 12, float(*));
LEAST(exphil_session_config, 96);
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
FIELD(exphil_session_config, conditions, 72, const int32_t *(*));
FIELD(exphil_session_config, condition_count, 80, int64_t(*));
FIELD(exphil_session_config, adoptable, 88, int32_t(*));
FIELD(exphil_session_config, reserved, 92, int32_t(*));
LEAST(exphil_session_info, 632);
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
FIELD(exphil_session_info, adoptions, 616, uint64_t(*));
FIELD(exphil_session_info, weights_hash, 624, uint64_t(*));
LEAST(exphil_melee_reward_config, 64);
ALIGN(exphil_melee_reward_config, 8);
FIELD(exphil_melee_reward_config, struct_size, 0, size_t(*));
FIELD(exphil_melee_reward_config, stock, 8, double(*));
FIELD(exphil_melee_reward_config, damage, 16, double(*));
FIELD(exphil_melee_reward_config, follower, 24, double(*));
FIELD(exphil_melee_reward_config, ledge, 32, double(*));
FIELD(exphil_melee_reward_config, stalling, 40, double(*));
FIELD(exphil_melee_reward_config, stalling_distance, 48, double(*));
FIELD(exphil_melee_reward_config, approach, 56, double(*));
LEAST(exphil_outcome_config, 64);
ALIGN(exphil_outcome_config, 8);
FIELD(exphil_outcome_config, struct_size, 0, size_t(*));
FIELD(exphil_outcome_config, imitation, 8, double(*));
FIELD(exphil_outcome_config, value, 16, double(*));
FIELD(exphil_outcome_config, beta, 24, double(*));
FIELD(exphil_outcome_config, cap, 32, double(*));
FIELD(exphil_outcome_config, warm_up, 40, int64_t(*));
FIELD(exphil_outcome_config, seed, 48, uint64_t(*));
FIELD(exphil_outcome_config, shuffle, 56, int32_t(*));
FIELD(exphil_outcome_config, reserved, 60, int32_t(*));
LEAST(exphil_outcome_metrics, 88);
ALIGN(exphil_outcome_metrics, 8);
FIELD(exphil_outcome_metrics, struct_size, 0, size_t(*));
FIELD(exphil_outcome_metrics, update, 8, int64_t(*));
FIELD(exphil_outcome_metrics, frames, 16, int64_t(*));
FIELD(exphil_outcome_metrics, known, 24, int64_t(*));
FIELD(exphil_outcome_metrics, loss, 32, double(*));
FIELD(exphil_outcome_metrics, nll, 40, double(*));
FIELD(exphil_outcome_metrics, value_loss, 48, double(*));
FIELD(exphil_outcome_metrics, gradient_norm, 56, double(*));
FIELD(exphil_outcome_metrics, unexplained, 64, double(*));
FIELD(exphil_outcome_metrics, effective, 72, double(*));
FIELD(exphil_outcome_metrics, clipped, 80, double(*));
LEAST(exphil_forward, 40);
ALIGN(exphil_forward, 8);
FIELD(exphil_forward, struct_size, 0, size_t(*));
FIELD(exphil_forward, rows, 8, int64_t(*));
FIELD(exphil_forward, logit_count, 16, int64_t(*));
FIELD(exphil_forward, logits, 24, const void *(*));
FIELD(exphil_forward, values, 32, const void *(*));
LEAST(exphil_world, 88);
ALIGN(exphil_world, 8);
FIELD(exphil_world, struct_size, 0, size_t(*));
FIELD(exphil_world, user, 8, void *(*));
FIELD(exphil_world, spec, 16, const exphil_spec *(*));
FIELD(exphil_world, lanes, 24, int64_t(*));
FIELD(exphil_world, seats, 32, int64_t(*));
FIELD(exphil_world, state_bytes, 40, size_t(*));
FIELD(exphil_world, reset, 48,
      int32_t (*(*))(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids));
FIELD(exphil_world, step, 56,
      int32_t (*(*))(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                     int32_t *ids, float *reward, uint8_t *end));
FIELD(exphil_world, save, 64, int32_t (*(*))(void *user, int64_t lane, void *state));
FIELD(exphil_world, load, 72, int32_t (*(*))(void *user, int64_t lane, const void *state));
FIELD(exphil_world, destroy, 80, void (*(*))(void *user));
LEAST(exphil_rollout_config, 24);
ALIGN(exphil_rollout_config, 8);
FIELD(exphil_rollout_config, struct_size, 0, size_t(*));
FIELD(exphil_rollout_config, time, 8, int64_t(*));
FIELD(exphil_rollout_config, seed, 16, uint64_t(*));
LEAST(exphil_learner_config, 152);
ALIGN(exphil_learner_config, 8);
FIELD(exphil_learner_config, struct_size, 0, size_t(*));
FIELD(exphil_learner_config, surrogate, 8, double(*));
FIELD(exphil_learner_config, clip, 16, double(*));
FIELD(exphil_learner_config, value, 24, double(*));
FIELD(exphil_learner_config, to_old, 32, double(*));
FIELD(exphil_learner_config, to_teacher, 40, double(*));
FIELD(exphil_learner_config, from_teacher, 48, double(*));
FIELD(exphil_learner_config, entropy, 56, double(*));
FIELD(exphil_learner_config, imitation, 64, double(*));
FIELD(exphil_learner_config, half_life_frames, 72, double(*));
FIELD(exphil_learner_config, lambda, 80, double(*));
FIELD(exphil_learner_config, most_kl, 88, double(*));
FIELD(exphil_learner_config, reward_scale, 96, double(*));
FIELD(exphil_learner_config, epochs, 104, int64_t(*));
FIELD(exphil_learner_config, batches, 112, int64_t(*));
FIELD(exphil_learner_config, burn_in, 120, int64_t(*));
FIELD(exphil_learner_config, value_only, 128, int64_t(*));
FIELD(exphil_learner_config, seed, 136, uint64_t(*));
FIELD(exphil_learner_config, normalise, 144, int32_t(*));
FIELD(exphil_learner_config, reserved, 148, int32_t(*));
LEAST(exphil_learner_metrics, 176);
ALIGN(exphil_learner_metrics, 8);
FIELD(exphil_learner_metrics, struct_size, 0, size_t(*));
FIELD(exphil_learner_metrics, chunks, 8, int64_t(*));
FIELD(exphil_learner_metrics, updates, 16, int64_t(*));
FIELD(exphil_learner_metrics, rows, 24, int64_t(*));
FIELD(exphil_learner_metrics, imitated, 32, int64_t(*));
FIELD(exphil_learner_metrics, episodes, 40, int64_t(*));
FIELD(exphil_learner_metrics, episode_return, 48, double(*));
FIELD(exphil_learner_metrics, episode_frames, 56, double(*));
FIELD(exphil_learner_metrics, reward, 64, double(*));
FIELD(exphil_learner_metrics, kl_old, 72, double(*));
FIELD(exphil_learner_metrics, kl_to_teacher, 80, double(*));
FIELD(exphil_learner_metrics, kl_from_teacher, 88, double(*));
FIELD(exphil_learner_metrics, entropy, 96, double(*));
FIELD(exphil_learner_metrics, ratio, 104, double(*));
FIELD(exphil_learner_metrics, clipped, 112, double(*));
FIELD(exphil_learner_metrics, nll, 120, double(*));
FIELD(exphil_learner_metrics, value_loss, 128, double(*));
FIELD(exphil_learner_metrics, unexplained, 136, double(*));
FIELD(exphil_learner_metrics, loss, 144, double(*));
FIELD(exphil_learner_metrics, gradient_norm, 152, double(*));
FIELD(exphil_learner_metrics, recomputed, 160, double(*));
FIELD(exphil_learner_metrics, taken_back, 168, int32_t(*));
FIELD(exphil_learner_metrics, reserved, 172, int32_t(*));
LEAST(exphil_block_info, 48);
ALIGN(exphil_block_info, 8);
FIELD(exphil_block_info, struct_size, 0, size_t(*));
FIELD(exphil_block_info, streams, 8, int64_t(*));
FIELD(exphil_block_info, time, 16, int64_t(*));
FIELD(exphil_block_info, spec_hash, 24, uint64_t(*));
FIELD(exphil_block_info, weights_hash, 32, uint64_t(*));
FIELD(exphil_block_info, delay_frames, 40, int32_t(*));
FIELD(exphil_block_info, reserved, 44, int32_t(*));
LEAST(exphil_evaluation, 56);
ALIGN(exphil_evaluation, 8);
FIELD(exphil_evaluation, struct_size, 0, size_t(*));
FIELD(exphil_evaluation, frequencies, 8, const exphil_dataset *(*));
FIELD(exphil_evaluation, losses, 16, const exphil_head_loss *(*));
FIELD(exphil_evaluation, conditions, 24, const int32_t *(*));
FIELD(exphil_evaluation, delay_frames, 32, const int32_t *(*));
FIELD(exphil_evaluation, condition_count, 40, int64_t(*));
FIELD(exphil_evaluation, batch, 48, int64_t(*));
LEAST(exphil_examined, 96);
ALIGN(exphil_examined, 8);
FIELD(exphil_examined, struct_size, 0, size_t(*));
FIELD(exphil_examined, frame, 8, int64_t(*));
FIELD(exphil_examined, episode, 16, int64_t(*));
FIELD(exphil_examined, row, 24, int64_t(*));
FIELD(exphil_examined, floats, 32, const float *(*));
FIELD(exphil_examined, ids, 40, const int32_t *(*));
FIELD(exphil_examined, recorded, 48, const int32_t *(*));
FIELD(exphil_examined, before, 56, const int32_t *(*));
FIELD(exphil_examined, likely, 64, const int32_t *(*));
FIELD(exphil_examined, log_probability, 72, const double *(*));
FIELD(exphil_examined, logits, 80, const double *(*));
FIELD(exphil_examined, delay_frames, 88, int32_t(*));
FIELD(exphil_examined, reserved, 92, int32_t(*));
LEAST(exphil_examination, 64);
ALIGN(exphil_examination, 8);
FIELD(exphil_examination, struct_size, 0, size_t(*));
FIELD(exphil_examination, see, 8, exphil_examine_fn(*));
FIELD(exphil_examination, user, 16, void *(*));
FIELD(exphil_examination, conditions, 24, const int32_t *(*));
FIELD(exphil_examination, delay_frames, 32, const int32_t *(*));
FIELD(exphil_examination, condition_count, 40, int64_t(*));
FIELD(exphil_examination, batch, 48, int64_t(*));
FIELD(exphil_examination, alone_most_frames, 56, int64_t(*));
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
LEAST(exphil_slp_info, 376);
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
FIELD(exphil_slp_info, started_at, 344, char (*)[32]);
LEAST(exphil_slp_result, 56);
ALIGN(exphil_slp_result, 8);
FIELD(exphil_slp_result, struct_size, 0, size_t(*));
FIELD(exphil_slp_result, reason, 8, int32_t(*));
FIELD(exphil_slp_result, winner, 12, int32_t(*));
FIELD(exphil_slp_result, winners, 16, int32_t(*));
FIELD(exphil_slp_result, quitter, 20, int32_t(*));
FIELD(exphil_slp_result, stocks, 24, int32_t (*)[4]);
FIELD(exphil_slp_result, percent, 40, float (*)[4]);
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
LEAST(exphil_games_info, 48);
ALIGN(exphil_games_info, 8);
FIELD(exphil_games_info, struct_size, 0, size_t(*));
FIELD(exphil_games_info, games, 8, int64_t(*));
FIELD(exphil_games_info, frames, 16, int64_t(*));
FIELD(exphil_games_info, bytes, 24, uint64_t(*));
FIELD(exphil_games_info, hash, 32, uint64_t(*));
FIELD(exphil_games_info, recovered, 40, int32_t(*));
FIELD(exphil_games_info, reserved, 44, int32_t(*));
SIZE(exphil_game_player, 24);
ALIGN(exphil_game_player, 4);
FIELD(exphil_game_player, damage_dealt, 0, int32_t(*));
FIELD(exphil_game_player, damage_taken, 4, int32_t(*));
FIELD(exphil_game_player, stocks_taken, 8, int32_t(*));
FIELD(exphil_game_player, self_destructs, 12, int32_t(*));
FIELD(exphil_game_player, end_stocks, 16, int32_t(*));
FIELD(exphil_game_player, input_frames, 20, int32_t(*));
LEAST(exphil_game_info, 144);
ALIGN(exphil_game_info, 8);
FIELD(exphil_game_info, struct_size, 0, size_t(*));
FIELD(exphil_game_info, content_hash, 8, uint64_t(*));
FIELD(exphil_game_info, source_hash, 16, uint64_t(*));
FIELD(exphil_game_info, match_tag, 24, int32_t(*));
FIELD(exphil_game_info, day, 28, int32_t(*));
FIELD(exphil_game_info, winner, 32, int32_t(*));
FIELD(exphil_game_info, certain_end, 36, int32_t(*));
FIELD(exphil_game_info, finite, 40, int32_t(*));
FIELD(exphil_game_info, reserved, 44, int32_t(*));
FIELD(exphil_game_info, player, 48, exphil_game_player (*)[4]);
LEAST(exphil_games_config, 24);
ALIGN(exphil_games_config, 8);
FIELD(exphil_games_config, struct_size, 0, size_t(*));
FIELD(exphil_games_config, shard_bytes, 8, int64_t(*));
FIELD(exphil_games_config, level, 16, int32_t(*));
FIELD(exphil_games_config, stored, 20, int32_t(*));
LEAST(exphil_games_added, 40);
ALIGN(exphil_games_added, 8);
FIELD(exphil_games_added, struct_size, 0, size_t(*));
FIELD(exphil_games_added, content_hash, 8, uint64_t(*));
FIELD(exphil_games_added, source_hash, 16, uint64_t(*));
FIELD(exphil_games_added, frames, 24, int64_t(*));
FIELD(exphil_games_added, duplicate, 32, int32_t(*));
FIELD(exphil_games_added, truncated, 36, int32_t(*));
LEAST(exphil_selection, 128);
ALIGN(exphil_selection, 8);
FIELD(exphil_selection, struct_size, 0, size_t(*));
FIELD(exphil_selection, stages, 8, const char *(*));
FIELD(exphil_selection, least_frames, 16, int64_t(*));
FIELD(exphil_selection, most_frames, 24, int64_t(*));
FIELD(exphil_selection, first_day, 32, int32_t(*));
FIELD(exphil_selection, last_day, 36, int32_t(*));
FIELD(exphil_selection, least_version, 40, int32_t(*));
FIELD(exphil_selection, teams, 44, int32_t(*));
FIELD(exphil_selection, items, 48, int32_t(*));
FIELD(exphil_selection, players, 52, int32_t(*));
FIELD(exphil_selection, complete, 56, int32_t(*));
FIELD(exphil_selection, humans, 60, int32_t(*));
FIELD(exphil_selection, characters, 64, const char *(*));
FIELD(exphil_selection, port, 72, int32_t(*));
FIELD(exphil_selection, result, 76, int32_t(*));
FIELD(exphil_selection, least_damage, 80, int32_t(*));
FIELD(exphil_selection, least_stocks, 84, int32_t(*));
FIELD(exphil_selection, self_destructs_below, 88, int32_t(*));
FIELD(exphil_selection, reserved, 92, int32_t(*));
FIELD(exphil_selection, least_input, 96, double(*));
FIELD(exphil_selection, opponents, 104, const char *(*));
FIELD(exphil_selection, opponent_port, 112, int32_t(*));
FIELD(exphil_selection, first_frame, 116, int32_t(*));
FIELD(exphil_selection, last_frame, 120, int32_t(*));
FIELD(exphil_selection, duplicates, 124, int32_t(*));
LEAST(exphil_selection_report, 312);
ALIGN(exphil_selection_report, 8);
FIELD(exphil_selection_report, struct_size, 0, size_t(*));
FIELD(exphil_selection_report, games, 8, int64_t(*));
FIELD(exphil_selection_report, players, 16, int64_t(*));
FIELD(exphil_selection_report, taken, 24, int64_t(*));
FIELD(exphil_selection_report, episodes, 32, int64_t(*));
FIELD(exphil_selection_report, frames, 40, int64_t(*));
FIELD(exphil_selection_report, frames_masked, 48, int64_t(*));
FIELD(exphil_selection_report, refused, 56, int64_t (*)[32]);
LEAST(exphil_live_config, 160);
ALIGN(exphil_live_config, 8);
FIELD(exphil_live_config, struct_size, 0, size_t(*));
FIELD(exphil_live_config, session, 8, const exphil_session_config *(*));
FIELD(exphil_live_config, context, 16, const exphil_context_config *(*));
FIELD(exphil_live_config, optimizer, 24, const exphil_optimizer_config *(*));
FIELD(exphil_live_config, trainer, 32, const exphil_trainer_config *(*));
FIELD(exphil_live_config, sampling, 40, const exphil_sampling *(*));
FIELD(exphil_live_config, dataset, 48, const exphil_dataset *(*));
FIELD(exphil_live_config, learner, 56, const exphil_learner_config *(*));
FIELD(exphil_live_config, teacher, 64, const exphil_model *(*));
FIELD(exphil_live_config, share, 72, double(*));
FIELD(exphil_live_config, approved, 80, double(*));
FIELD(exphil_live_config, piece_frames, 88, int64_t(*));
FIELD(exphil_live_config, updates, 96, int64_t(*));
FIELD(exphil_live_config, time, 104, int64_t(*));
FIELD(exphil_live_config, ring_frames, 112, int64_t(*));
FIELD(exphil_live_config, rollback_frames, 120, int64_t(*));
FIELD(exphil_live_config, path, 128, const char *(*));
FIELD(exphil_live_config, save_pieces, 136, int64_t(*));
FIELD(exphil_live_config, seed, 144, uint64_t(*));
FIELD(exphil_live_config, way, 152, int32_t(*));
FIELD(exphil_live_config, paced, 156, int32_t(*));
LEAST(exphil_live_info, 352);
ALIGN(exphil_live_info, 8);
FIELD(exphil_live_info, struct_size, 0, size_t(*));
FIELD(exphil_live_info, frames, 8, int64_t(*));
FIELD(exphil_live_info, person, 16, int64_t(*));
FIELD(exphil_live_info, dropped, 24, int64_t(*));
FIELD(exphil_live_info, taken_back, 32, int64_t(*));
FIELD(exphil_live_info, pieces, 40, int64_t(*));
FIELD(exphil_live_info, learnt, 48, int64_t(*));
FIELD(exphil_live_info, updates, 56, int64_t(*));
FIELD(exphil_live_info, adopted, 64, int64_t(*));
FIELD(exphil_live_info, loss, 72, double(*));
FIELD(exphil_live_info, reward, 80, double(*));
FIELD(exphil_live_info, skipped, 88, int64_t(*));
FIELD(exphil_live_info, saved, 96, int64_t(*));
FIELD(exphil_live_info, failed, 104, exphil_status(*));
FIELD(exphil_live_info, unsaved, 108, exphil_status(*));
FIELD(exphil_live_info, message, 112, char (*)[240]);
LEAST(exphil_match_config, 48);
ALIGN(exphil_match_config, 8);
FIELD(exphil_match_config, struct_size, 0, size_t(*));
FIELD(exphil_match_config, games, 8, int64_t(*));
FIELD(exphil_match_config, most_frames, 16, int64_t(*));
FIELD(exphil_match_config, points, 24, double(*));
FIELD(exphil_match_config, seed, 32, uint64_t(*));
FIELD(exphil_match_config, deterministic, 40, int32_t(*));
FIELD(exphil_match_config, reserved, 44, int32_t(*));
LEAST(exphil_match_result, 88);
ALIGN(exphil_match_result, 8);
FIELD(exphil_match_result, struct_size, 0, size_t(*));
FIELD(exphil_match_result, games, 8, int64_t(*));
FIELD(exphil_match_result, won, 16, int64_t(*));
FIELD(exphil_match_result, lost, 24, int64_t(*));
FIELD(exphil_match_result, drawn, 32, int64_t(*));
FIELD(exphil_match_result, score, 40, double(*));
FIELD(exphil_match_result, low, 48, double(*));
FIELD(exphil_match_result, high, 56, double(*));
FIELD(exphil_match_result, points, 64, double(*));
FIELD(exphil_match_result, points_against, 72, double(*));
FIELD(exphil_match_result, frames, 80, double(*));
LEAST(exphil_record, 32);
ALIGN(exphil_record, 8);
FIELD(exphil_record, struct_size, 0, size_t(*));
FIELD(exphil_record, episodes, 8, int64_t(*));
FIELD(exphil_record, won, 16, int64_t(*));
FIELD(exphil_record, lost, 24, int64_t(*));
SIZE(exphil_input, 32);
ALIGN(exphil_input, 8);
FIELD(exphil_input, data, 0, const void *(*));
FIELD(exphil_input, batch_stride, 8, int64_t(*));
FIELD(exphil_input, frame_stride, 16, int64_t(*));
FIELD(exphil_input, column_stride, 24, int64_t(*));
SIZE(exphil_output, 32);
ALIGN(exphil_output, 8);
FIELD(exphil_output, data, 0, void *(*));
FIELD(exphil_output, batch_stride, 8, int64_t(*));
FIELD(exphil_output, frame_stride, 16, int64_t(*));
FIELD(exphil_output, column_stride, 24, int64_t(*));
LEAST(exphil_scan_args, 824);
ALIGN(exphil_scan_args, 8);
FIELD(exphil_scan_args, struct_size, 0, size_t(*));
FIELD(exphil_scan_args, op, 8, int32_t(*));
FIELD(exphil_scan_args, type, 12, int32_t(*));
FIELD(exphil_scan_args, batch, 16, int64_t(*));
FIELD(exphil_scan_args, frames, 24, int64_t(*));
FIELD(exphil_scan_args, width, 32, int64_t(*));
FIELD(exphil_scan_args, states, 40, int64_t(*));
FIELD(exphil_scan_args, delta_plain, 48, int32_t(*));
FIELD(exphil_scan_args, reserved, 52, int32_t(*));
FIELD(exphil_scan_args, u, 56, exphil_input(*));
FIELD(exphil_scan_args, delta, 88, exphil_input(*));
FIELD(exphil_scan_args, delta_bias, 120, exphil_input(*));
FIELD(exphil_scan_args, a_log, 152, exphil_input(*));
FIELD(exphil_scan_args, a, 184, exphil_input(*));
FIELD(exphil_scan_args, b, 216, exphil_input(*));
FIELD(exphil_scan_args, c, 248, exphil_input(*));
FIELD(exphil_scan_args, skip, 280, exphil_input(*));
FIELD(exphil_scan_args, z, 312, exphil_input(*));
FIELD(exphil_scan_args, reset, 344, exphil_input(*));
FIELD(exphil_scan_args, state_in, 376, exphil_input(*));
FIELD(exphil_scan_args, state_out, 408, exphil_output(*));
FIELD(exphil_scan_args, y, 440, exphil_output(*));
FIELD(exphil_scan_args, dy, 472, exphil_input(*));
FIELD(exphil_scan_args, dstate_out, 504, exphil_input(*));
FIELD(exphil_scan_args, du, 536, exphil_output(*));
FIELD(exphil_scan_args, ddelta, 568, exphil_output(*));
FIELD(exphil_scan_args, ddelta_bias, 600, exphil_output(*));
FIELD(exphil_scan_args, da, 632, exphil_output(*));
FIELD(exphil_scan_args, db, 664, exphil_output(*));
FIELD(exphil_scan_args, dc, 696, exphil_output(*));
FIELD(exphil_scan_args, dskip, 728, exphil_output(*));
FIELD(exphil_scan_args, dz, 760, exphil_output(*));
FIELD(exphil_scan_args, dstate_in, 792, exphil_output(*));
LEAST(exphil_attention_args, 496);
ALIGN(exphil_attention_args, 8);
FIELD(exphil_attention_args, struct_size, 0, size_t(*));
FIELD(exphil_attention_args, op, 8, int32_t(*));
FIELD(exphil_attention_args, type, 12, int32_t(*));
FIELD(exphil_attention_args, batch, 16, int64_t(*));
FIELD(exphil_attention_args, frames, 24, int64_t(*));
FIELD(exphil_attention_args, heads, 32, int64_t(*));
FIELD(exphil_attention_args, dim, 40, int64_t(*));
FIELD(exphil_attention_args, window, 48, int64_t(*));
FIELD(exphil_attention_args, method, 56, int32_t(*));
FIELD(exphil_attention_args, reserved, 60, int32_t(*));
FIELD(exphil_attention_args, q, 64, exphil_input(*));
FIELD(exphil_attention_args, k, 96, exphil_input(*));
FIELD(exphil_attention_args, v, 128, exphil_input(*));
FIELD(exphil_attention_args, bias, 160, exphil_input(*));
FIELD(exphil_attention_args, reset, 192, exphil_input(*));
FIELD(exphil_attention_args, state_in, 224, exphil_input(*));
FIELD(exphil_attention_args, state_out, 256, exphil_output(*));
FIELD(exphil_attention_args, y, 288, exphil_output(*));
FIELD(exphil_attention_args, saved, 320, void *(*));
FIELD(exphil_attention_args, saved_bytes, 328, size_t(*));
FIELD(exphil_attention_args, dy, 336, exphil_input(*));
FIELD(exphil_attention_args, dq, 368, exphil_output(*));
FIELD(exphil_attention_args, dk, 400, exphil_output(*));
FIELD(exphil_attention_args, dv, 432, exphil_output(*));
FIELD(exphil_attention_args, dbias, 464, exphil_output(*));
LEAST(exphil_rnn_args, 600);
ALIGN(exphil_rnn_args, 8);
FIELD(exphil_rnn_args, struct_size, 0, size_t(*));
FIELD(exphil_rnn_args, op, 8, int32_t(*));
FIELD(exphil_rnn_args, type, 12, int32_t(*));
FIELD(exphil_rnn_args, batch, 16, int64_t(*));
FIELD(exphil_rnn_args, frames, 24, int64_t(*));
FIELD(exphil_rnn_args, hidden, 32, int64_t(*));
FIELD(exphil_rnn_args, gates, 40, exphil_input(*));
FIELD(exphil_rnn_args, weight, 72, exphil_input(*));
FIELD(exphil_rnn_args, bias, 104, exphil_input(*));
FIELD(exphil_rnn_args, reset, 136, exphil_input(*));
FIELD(exphil_rnn_args, h_in, 168, exphil_input(*));
FIELD(exphil_rnn_args, c_in, 200, exphil_input(*));
FIELD(exphil_rnn_args, h_out, 232, exphil_output(*));
FIELD(exphil_rnn_args, c_out, 264, exphil_output(*));
FIELD(exphil_rnn_args, y, 296, exphil_output(*));
FIELD(exphil_rnn_args, saved, 328, void *(*));
FIELD(exphil_rnn_args, saved_bytes, 336, size_t(*));
FIELD(exphil_rnn_args, dy, 344, exphil_input(*));
FIELD(exphil_rnn_args, dh_out, 376, exphil_input(*));
FIELD(exphil_rnn_args, dc_out, 408, exphil_input(*));
FIELD(exphil_rnn_args, dgates, 440, exphil_output(*));
FIELD(exphil_rnn_args, dweight, 472, exphil_output(*));
FIELD(exphil_rnn_args, dbias, 504, exphil_output(*));
FIELD(exphil_rnn_args, dh_in, 536, exphil_output(*));
FIELD(exphil_rnn_args, dc_in, 568, exphil_output(*));
LEAST(exphil_norm_args, 328);
ALIGN(exphil_norm_args, 8);
FIELD(exphil_norm_args, struct_size, 0, size_t(*));
FIELD(exphil_norm_args, op, 8, int32_t(*));
FIELD(exphil_norm_args, type, 12, int32_t(*));
FIELD(exphil_norm_args, batch, 16, int64_t(*));
FIELD(exphil_norm_args, frames, 24, int64_t(*));
FIELD(exphil_norm_args, width, 32, int64_t(*));
FIELD(exphil_norm_args, epsilon, 40, double(*));
FIELD(exphil_norm_args, silu, 48, int32_t(*));
FIELD(exphil_norm_args, reserved, 52, int32_t(*));
FIELD(exphil_norm_args, x, 56, exphil_input(*));
FIELD(exphil_norm_args, gain, 88, exphil_input(*));
FIELD(exphil_norm_args, shift, 120, exphil_input(*));
FIELD(exphil_norm_args, y, 152, exphil_output(*));
FIELD(exphil_norm_args, saved, 184, void *(*));
FIELD(exphil_norm_args, saved_bytes, 192, size_t(*));
FIELD(exphil_norm_args, dy, 200, exphil_input(*));
FIELD(exphil_norm_args, dx, 232, exphil_output(*));
FIELD(exphil_norm_args, dgain, 264, exphil_output(*));
FIELD(exphil_norm_args, dshift, 296, exphil_output(*));
LEAST(exphil_conv_args, 464);
ALIGN(exphil_conv_args, 8);
FIELD(exphil_conv_args, struct_size, 0, size_t(*));
FIELD(exphil_conv_args, op, 8, int32_t(*));
FIELD(exphil_conv_args, type, 12, int32_t(*));
FIELD(exphil_conv_args, batch, 16, int64_t(*));
FIELD(exphil_conv_args, frames, 24, int64_t(*));
FIELD(exphil_conv_args, width, 32, int64_t(*));
FIELD(exphil_conv_args, taps, 40, int64_t(*));
FIELD(exphil_conv_args, x, 48, exphil_input(*));
FIELD(exphil_conv_args, weight, 80, exphil_input(*));
FIELD(exphil_conv_args, bias, 112, exphil_input(*));
FIELD(exphil_conv_args, reset, 144, exphil_input(*));
FIELD(exphil_conv_args, state_in, 176, exphil_input(*));
FIELD(exphil_conv_args, state_out, 208, exphil_output(*));
FIELD(exphil_conv_args, y, 240, exphil_output(*));
FIELD(exphil_conv_args, dy, 272, exphil_input(*));
FIELD(exphil_conv_args, dstate_out, 304, exphil_input(*));
FIELD(exphil_conv_args, dx, 336, exphil_output(*));
FIELD(exphil_conv_args, dweight, 368, exphil_output(*));
FIELD(exphil_conv_args, dbias, 400, exphil_output(*));
FIELD(exphil_conv_args, dstate_in, 432, exphil_output(*));
LEAST(exphil_adamw_args, 248);
ALIGN(exphil_adamw_args, 8);
FIELD(exphil_adamw_args, struct_size, 0, size_t(*));
FIELD(exphil_adamw_args, op, 8, int32_t(*));
FIELD(exphil_adamw_args, type, 12, int32_t(*));
FIELD(exphil_adamw_args, count, 16, int64_t(*));
FIELD(exphil_adamw_args, step, 24, int64_t(*));
FIELD(exphil_adamw_args, rate, 32, double(*));
FIELD(exphil_adamw_args, beta1, 40, double(*));
FIELD(exphil_adamw_args, beta2, 48, double(*));
FIELD(exphil_adamw_args, epsilon, 56, double(*));
FIELD(exphil_adamw_args, decay, 64, double(*));
FIELD(exphil_adamw_args, grad_scale, 72, double(*));
FIELD(exphil_adamw_args, average_decay, 80, double(*));
FIELD(exphil_adamw_args, p, 88, exphil_output(*));
FIELD(exphil_adamw_args, m, 120, exphil_output(*));
FIELD(exphil_adamw_args, v, 152, exphil_output(*));
FIELD(exphil_adamw_args, grad, 184, exphil_input(*));
FIELD(exphil_adamw_args, average, 216, exphil_output(*));
LEAST(exphil_ops_config, 16);
ALIGN(exphil_ops_config, 8);
FIELD(exphil_ops_config, struct_size, 0, size_t(*));
FIELD(exphil_ops_config, threads, 8, int32_t(*));
FIELD(exphil_ops_config, reserved, 12, int32_t(*));
LEAST(exphil_op_info, 40);
ALIGN(exphil_op_info, 8);
FIELD(exphil_op_info, struct_size, 0, size_t(*));
FIELD(exphil_op_info, workspace_bytes, 8, size_t(*));
FIELD(exphil_op_info, saved_bytes, 16, size_t(*));
FIELD(exphil_op_info, copies, 24, int64_t(*));
FIELD(exphil_op_info, kernel, 32, const char *(*));
LEAST(exphil_plan_config, 112);
ALIGN(exphil_plan_config, 8);
FIELD(exphil_plan_config, struct_size, 0, size_t(*));
FIELD(exphil_plan_config, model, 8, const exphil_model *(*));
FIELD(exphil_plan_config, model_config, 16, const exphil_model_config *(*));
FIELD(exphil_plan_config, optimizer, 24, const exphil_optimizer_config *(*));
FIELD(exphil_plan_config, sampling, 32, const exphil_sampling *(*));
FIELD(exphil_plan_config, trainer, 40, const exphil_trainer_config *(*));
FIELD(exphil_plan_config, dataset, 48, const exphil_dataset *(*));
FIELD(exphil_plan_config, scored, 56, const exphil_dataset *(*));
FIELD(exphil_plan_config, frequencies, 64, const exphil_dataset *(*));
FIELD(exphil_plan_config, alone_most_frames, 72, int64_t(*));
FIELD(exphil_plan_config, most_batch, 80, int64_t(*));
FIELD(exphil_plan_config, host_limit_bytes, 88, uint64_t(*));
FIELD(exphil_plan_config, device_limit_bytes, 96, uint64_t(*));
FIELD(exphil_plan_config, by_hand, 104, int32_t(*));
FIELD(exphil_plan_config, no_checkpoint, 108, int32_t(*));
LEAST(exphil_plan, 392);
ALIGN(exphil_plan, 8);
FIELD(exphil_plan, struct_size, 0, size_t(*));
FIELD(exphil_plan, batch, 8, int64_t(*));
FIELD(exphil_plan, time, 16, int64_t(*));
FIELD(exphil_plan, largest_batch, 24, int64_t(*));
FIELD(exphil_plan, parameter_count, 32, int64_t(*));
FIELD(exphil_plan, host_bytes, 40, uint64_t (*)[16]);
FIELD(exphil_plan, device_bytes, 168, uint64_t (*)[16]);
FIELD(exphil_plan, host_steady_bytes, 296, uint64_t(*));
FIELD(exphil_plan, device_steady_bytes, 304, uint64_t(*));
FIELD(exphil_plan, host_peak_bytes, 312, uint64_t(*));
FIELD(exphil_plan, device_peak_bytes, 320, uint64_t(*));
FIELD(exphil_plan, host_room_bytes, 328, uint64_t(*));
FIELD(exphil_plan, device_room_bytes, 336, uint64_t(*));
FIELD(exphil_plan, limited_peak_bytes, 344, uint64_t(*));
FIELD(exphil_plan, limited_room_bytes, 352, uint64_t(*));
FIELD(exphil_plan, weights_file_bytes, 360, uint64_t(*));
FIELD(exphil_plan, checkpoint_file_bytes, 368, uint64_t(*));
FIELD(exphil_plan, host_peak_purpose, 376, int32_t(*));
FIELD(exphil_plan, device_peak_purpose, 380, int32_t(*));
FIELD(exphil_plan, fits, 384, int32_t(*));
FIELD(exphil_plan, reserved, 388, int32_t(*));
LEAST(exphil_device_communicator, 56);
ALIGN(exphil_device_communicator, 8);
FIELD(exphil_device_communicator, struct_size, 0, size_t(*));
FIELD(exphil_device_communicator, user, 8, void *(*));
FIELD(exphil_device_communicator, all_reduce, 16,
      int32_t (*(*))(void *user, void *data, int64_t count, int32_t type, void *stream));
FIELD(exphil_device_communicator, state, 24, int32_t (*(*))(void *user));
FIELD(exphil_device_communicator, abort, 32, void (*(*))(void *user));
FIELD(exphil_device_communicator, rank, 40, int32_t(*));
FIELD(exphil_device_communicator, ranks, 44, int32_t(*));
FIELD(exphil_device_communicator, timeout_ms, 48, int32_t(*));
FIELD(exphil_device_communicator, flags, 52, int32_t(*));
LEAST(exphil_ranks_config, 56);
ALIGN(exphil_ranks_config, 8);
FIELD(exphil_ranks_config, struct_size, 0, size_t(*));
FIELD(exphil_ranks_config, id, 8, const uint8_t *(*));
FIELD(exphil_ranks_config, context, 16, exphil_context *(*));
FIELD(exphil_ranks_config, piece_bytes, 24, int64_t(*));
FIELD(exphil_ranks_config, rank, 32, int32_t(*));
FIELD(exphil_ranks_config, ranks, 36, int32_t(*));
FIELD(exphil_ranks_config, sums, 40, int32_t(*));
FIELD(exphil_ranks_config, start_ms, 44, int32_t(*));
FIELD(exphil_ranks_config, timeout_ms, 48, int32_t(*));
FIELD(exphil_ranks_config, reserved, 52, int32_t(*));

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
VALUE(EXPHIL_VALUE_NONE, 0);
VALUE(EXPHIL_VALUE_DETACHED, 1);
VALUE(EXPHIL_VALUE_SHARED, 2);
VALUE(EXPHIL_ACTIVATION_SILU, 0);
VALUE(EXPHIL_ACTIVATION_RELU, 1);
VALUE(EXPHIL_ACTIVATION_GELU_TANH, 2);
VALUE(EXPHIL_SPLIT_GAME, 0);
VALUE(EXPHIL_SPLIT_TIME, 1);
VALUE(EXPHIL_SPLIT_STABLE, 2);
VALUE(EXPHIL_SCHEDULE_CONSTANT, 0);
VALUE(EXPHIL_SCHEDULE_COSINE, 1);
VALUE(EXPHIL_SCHEDULE_RESTARTS, 2);
VALUE(EXPHIL_REDUCTION_MEANS, 0);
VALUE(EXPHIL_REDUCTION_SUMS, 1);
VALUE(EXPHIL_PRECISION_F32, 0);
VALUE(EXPHIL_PRECISION_TF32, 1);
VALUE(EXPHIL_PRECISION_BF16, 2);
VALUE(EXPHIL_PRECISION_F16, 3);
VALUE(EXPHIL_WEIGHTS, 0);
VALUE(EXPHIL_WEIGHTS_AVERAGED, 1);
VALUE(EXPHIL_DELIVER_DUE, 0);
VALUE(EXPHIL_DELIVER_DECIDED, 1);
VALUE(EXPHIL_GOES_ON, 0);
VALUE(EXPHIL_OVER, 1);
VALUE(EXPHIL_CUT_OFF, 2);
VALUE(EXPHIL_BLOCK_CURRENT, 0);
VALUE(EXPHIL_BLOCK_ANY, 1);
VALUE(EXPHIL_SLP_LAST, 0);
VALUE(EXPHIL_SLP_FIRST, 1);
VALUE(EXPHIL_SLP_ALL, 2);
VALUE(EXPHIL_SLP_CONTAINER, 0);
VALUE(EXPHIL_SLP_BARE, 1);
VALUE(EXPHIL_SLP_GAMES, 2);
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
VALUE(EXPHIL_SLP_RESULT_UNKNOWN, 0);
VALUE(EXPHIL_SLP_RESULT_STOCKS, 1);
VALUE(EXPHIL_SLP_RESULT_TIME_STOCKS, 2);
VALUE(EXPHIL_SLP_RESULT_TIME_PERCENT, 3);
VALUE(EXPHIL_SLP_RESULT_QUIT, 4);
VALUE(EXPHIL_SLP_RESULT_PLACEMENTS, 5);
VALUE(EXPHIL_SLP_RESULT_TIE, 6);
VALUE(EXPHIL_SLP_RESULT_NO_CONTEST, 7);
VALUE(EXPHIL_SLP_RESULT_UNFINISHED, 8);
VALUE(EXPHIL_SLP_RESULT_ALONE, 9);
VALUE(EXPHIL_SLP_DUMP_STATE, 0);
VALUE(EXPHIL_SLP_DUMP_INPUT, 1);
VALUE(EXPHIL_SLP_DUMP_AUX, 2);
VALUE(EXPHIL_SLP_DUMP_ITEMS, 3);
VALUE(EXPHIL_RESULT_ANY, 0);
VALUE(EXPHIL_RESULT_WON, 1);
VALUE(EXPHIL_RESULT_LOST, 2);
VALUE(EXPHIL_WITH_OR_WITHOUT, 0);
VALUE(EXPHIL_WITHOUT, 1);
VALUE(EXPHIL_WITH, 2);
VALUE(EXPHIL_REFUSED_STAGE, 0);
VALUE(EXPHIL_REFUSED_SHORT, 1);
VALUE(EXPHIL_REFUSED_LONG, 2);
VALUE(EXPHIL_REFUSED_EARLY, 3);
VALUE(EXPHIL_REFUSED_LATE, 4);
VALUE(EXPHIL_REFUSED_VERSION, 5);
VALUE(EXPHIL_REFUSED_TEAMS, 6);
VALUE(EXPHIL_REFUSED_ITEMS, 7);
VALUE(EXPHIL_REFUSED_PLAYERS, 8);
VALUE(EXPHIL_REFUSED_INCOMPLETE, 9);
VALUE(EXPHIL_REFUSED_COMPUTER_GAME, 10);
VALUE(EXPHIL_REFUSED_COMPUTER, 11);
VALUE(EXPHIL_REFUSED_CHARACTER, 12);
VALUE(EXPHIL_REFUSED_PORT, 13);
VALUE(EXPHIL_REFUSED_RESULT, 14);
VALUE(EXPHIL_REFUSED_DAMAGE, 15);
VALUE(EXPHIL_REFUSED_STOCKS, 16);
VALUE(EXPHIL_REFUSED_SELF_DESTRUCTS, 17);
VALUE(EXPHIL_REFUSED_INPUT, 18);
VALUE(EXPHIL_REFUSED_OPPONENT, 19);
VALUE(EXPHIL_REFUSED_OPPONENT_PORT, 20);
VALUE(EXPHIL_REFUSED_EMPTY, 21);
VALUE(EXPHIL_REFUSED_DUPLICATE, 22);
VALUE(EXPHIL_REFUSED_UNKNOWN, 23);
VALUE(EXPHIL_REFUSED_REASONS, 24);
VALUE(EXPHIL_LIVE_IMITATE, 0);
VALUE(EXPHIL_LIVE_REINFORCE, 1);
VALUE(EXPHIL_OP_SCAN, 1);
VALUE(EXPHIL_OP_SCAN_GRAD, 2);
VALUE(EXPHIL_OP_ATTENTION, 3);
VALUE(EXPHIL_OP_ATTENTION_GRAD, 4);
VALUE(EXPHIL_OP_LSTM, 5);
VALUE(EXPHIL_OP_LSTM_GRAD, 6);
VALUE(EXPHIL_OP_GRU, 7);
VALUE(EXPHIL_OP_GRU_GRAD, 8);
VALUE(EXPHIL_OP_NORM, 9);
VALUE(EXPHIL_OP_NORM_GRAD, 10);
VALUE(EXPHIL_OP_CONV, 11);
VALUE(EXPHIL_OP_CONV_GRAD, 12);
VALUE(EXPHIL_OP_ADAMW, 13);
VALUE(EXPHIL_OPS_F32, 0);
VALUE(EXPHIL_OPS_F64, 1);
VALUE(EXPHIL_ATTENTION_AUTO, 0);
VALUE(EXPHIL_ATTENTION_PLAIN, 1);
VALUE(EXPHIL_ATTENTION_CHUNKED, 2);
VALUE(EXPHIL_PLAN_WEIGHTS, 0);
VALUE(EXPHIL_PLAN_GRADIENTS, 1);
VALUE(EXPHIL_PLAN_MOMENTS, 2);
VALUE(EXPHIL_PLAN_AVERAGE, 3);
VALUE(EXPHIL_PLAN_PACKED, 4);
VALUE(EXPHIL_PLAN_ACTIVATIONS, 5);
VALUE(EXPHIL_PLAN_WORKSPACE, 6);
VALUE(EXPHIL_PLAN_STATE, 7);
VALUE(EXPHIL_PLAN_BATCHES, 8);
VALUE(EXPHIL_PLAN_GAMES, 9);
VALUE(EXPHIL_PLAN_ORDER, 10);
VALUE(EXPHIL_PLAN_OTHER, 11);
VALUE(EXPHIL_PLAN_SAVING, 12);
VALUE(EXPHIL_PLAN_EVALUATION, 13);
VALUE(EXPHIL_PLAN_ALONE, 14);
VALUE(EXPHIL_PLAN_UPDATES, 15);
VALUE(EXPHIL_RANKS_OK, 0);
VALUE(EXPHIL_RANKS_FAILED, 1);
VALUE(EXPHIL_RANKS_CAPTURABLE, 1);
VALUE(EXPHIL_RANKS_ORDERED, 2);
VALUE(EXPHIL_SUMS_ORDERED, 0);
VALUE(EXPHIL_SUMS_TREE, 1);
VALUE(EXPHIL_SUMS_PLAIN, 2);
VALUE(EXPHIL_IDS_MAX, 64);
VALUE(EXPHIL_HEADS_MAX, 16);
VALUE(EXPHIL_CONDITIONS_MAX, 8);
VALUE(EXPHIL_DELAYS_MAX, 16);
VALUE(EXPHIL_MELEE_ITEMS_MAX, 15);
VALUE(EXPHIL_LATENCY_BUCKETS, 64);
VALUE(EXPHIL_SLP_FIRST_FRAME, -123);
VALUE(EXPHIL_SLP_FIRST_PLAYABLE, -39);
VALUE(EXPHIL_SLP_FRAME_LIMIT, 1000000);
VALUE(EXPHIL_SLP_PORTS, 4);
VALUE(EXPHIL_SLP_STREAM_ITEMS, 64);
VALUE(EXPHIL_PLAN_PURPOSES, 16);
VALUE(EXPHIL_NOTES_MOST, 65536);
VALUE(EXPHIL_AGREE_MOST, 16);
VALUE(EXPHIL_RANKS_ID_BYTES, 128);

TYPE(exphil_status, int32_t);
TYPE(exphil_log_level, int32_t);
TYPE(exphil_log_fn, void (*)(void *user, exphil_log_level level, const char *message));
TYPE(exphil_cancel_fn, int32_t (*)(void *user));
TYPE(exphil_world_open_fn, exphil_status (*)(const char *arguments, int64_t lanes, int64_t seats,
                                             exphil_world *world, exphil_error *error));
TYPE(exphil_examine_fn, int32_t (*)(void *user, const exphil_examined *frame));

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
FUNCTION(exphil_dataset_rows,
         exphil_status (*)(const exphil_dataset *dataset, int64_t first, int64_t count, float *floats,
                           int32_t *ids, int32_t *actions, int64_t *episodes, exphil_error *error));
FUNCTION(exphil_dataset_weight,
         exphil_status (*)(exphil_dataset *dataset, uint64_t game, int32_t port, int32_t first_frame,
                           int32_t last_frame, double weight, exphil_error *error));
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
FUNCTION(exphil_trainer_wait,
         exphil_status (*)(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error));
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
FUNCTION(exphil_session_value,
         exphil_status (*)(const exphil_session *session, int64_t stream, float *value));
FUNCTION(exphil_model_with_value, exphil_status (*)(const exphil_model *model, int32_t value, uint64_t seed,
                                                    exphil_model **with, exphil_error *error));
FUNCTION(exphil_melee_reward,
         exphil_status (*)(const exphil_melee_reward_config *config, const exphil_melee_frame *before,
                           const exphil_melee_frame *now, float *reward, exphil_error *error));
FUNCTION(exphil_dataset_rewards_set,
         exphil_status (*)(exphil_dataset *dataset, uint64_t game, int32_t port, int32_t first_frame,
                           const float *rewards, int64_t count, int32_t over, double half_life_frames,
                           exphil_error *error));
FUNCTION(exphil_trainer_step_outcome,
         exphil_status (*)(exphil_trainer *trainer, const exphil_outcome_config *config,
                           exphil_outcome_metrics *metrics, exphil_error *error));
FUNCTION(exphil_model_prepare, exphil_status (*)(const exphil_model *model, exphil_error *error));
FUNCTION(exphil_session_adopt,
         exphil_status (*)(exphil_session *session, const exphil_model *model, exphil_model **before));
FUNCTION(exphil_trainer_forward,
         exphil_status (*)(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                           size_t size_bytes, exphil_forward *forward, exphil_error *error));
FUNCTION(exphil_trainer_backward,
         exphil_status (*)(exphil_trainer *trainer, const void *dlogits, const void *dvalues, double loss,
                           exphil_metrics *metrics, exphil_error *error));
FUNCTION(exphil_trainer_abandon, exphil_status (*)(exphil_trainer *trainer, exphil_error *error));
FUNCTION(exphil_world_create, exphil_status (*)(exphil_context *context, const char *name, int64_t lanes,
                                                exphil_world *world, exphil_error *error));
FUNCTION(exphil_world_destroy, void (*)(exphil_world *world));
FUNCTION(exphil_rollout_create,
         exphil_status (*)(const exphil_model *model, const exphil_session_config *session,
                           const exphil_rollout_config *config, exphil_rollout **rollout,
                           exphil_error *error));
FUNCTION(exphil_rollout_destroy, void (*)(exphil_rollout *rollout));
FUNCTION(exphil_rollout_session, exphil_session *(*)(exphil_rollout *rollout));
FUNCTION(exphil_rollout_step, exphil_status (*)(exphil_rollout *rollout, const float *floats,
                                                const int32_t *ids, int32_t *actions));
FUNCTION(exphil_rollout_reward,
         exphil_status (*)(exphil_rollout *rollout, const float *reward, const uint8_t *end,
                           const float *floats, const int32_t *ids));
FUNCTION(exphil_rollout_run,
         exphil_status (*)(exphil_rollout *rollout, const exphil_world *world, exphil_error *error));
FUNCTION(exphil_learner_create, exphil_status (*)(exphil_trainer *trainer, const exphil_model *teacher,
                                                  const exphil_learner_config *config,
                                                  exphil_learner **learner, exphil_error *error));
FUNCTION(exphil_learner_destroy, void (*)(exphil_learner *learner));
FUNCTION(exphil_learner_update, exphil_status (*)(exphil_learner *learner, exphil_rollout *rollout,
                                                  exphil_learner_metrics *metrics, exphil_error *error));
FUNCTION(exphil_learner_save,
         exphil_status (*)(const exphil_learner *learner, const exphil_rollout *rollout,
                           const exphil_world *world, const char *path, exphil_error *error));
FUNCTION(exphil_learner_resume,
         exphil_status (*)(exphil_learner *learner, exphil_rollout *rollout, const exphil_world *world,
                           const char *path, exphil_error *error));
FUNCTION(exphil_rollout_block_size, size_t (*)(const exphil_rollout *rollout));
FUNCTION(exphil_rollout_block_save, exphil_status (*)(const exphil_rollout *rollout, void *block,
                                                      size_t size_bytes, exphil_error *error));
FUNCTION(exphil_rollout_block_take,
         exphil_status (*)(exphil_rollout *rollout, int64_t first_stream, int32_t weights, const void *block,
                           size_t size_bytes, exphil_error *error));
FUNCTION(exphil_rollout_adopt,
         exphil_status (*)(exphil_rollout *rollout, const exphil_model *model, exphil_error *error));
FUNCTION(exphil_block_query, exphil_status (*)(const void *block, size_t size_bytes, exphil_block_info *info,
                                               exphil_error *error));
FUNCTION(exphil_dataset_condition, exphil_status (*)(exphil_dataset *dataset, const char *name, uint64_t game,
                                                     int32_t port, int32_t value, exphil_error *error));
FUNCTION(exphil_dataset_condition_episodes,
         exphil_status (*)(exphil_dataset *dataset, const char *name, int64_t first, int64_t count,
                           int32_t value, exphil_error *error));
FUNCTION(exphil_evaluate_as,
         exphil_status (*)(const exphil_model *model, const exphil_dataset *dataset,
                           const exphil_evaluation *how, exphil_report *report, exphil_error *error));
FUNCTION(exphil_session_conditions_set,
         exphil_status (*)(exphil_session *session, int64_t stream, const int32_t *values, int64_t count));
FUNCTION(exphil_examine, exphil_status (*)(const exphil_model *model, const exphil_dataset *dataset,
                                           const exphil_examination *how, exphil_error *error));
FUNCTION(exphil_slp_open,
         exphil_status (*)(exphil_context *context, const char *path, const exphil_slp_config *config,
                           exphil_slp **slp, exphil_error *error));
FUNCTION(exphil_slp_read,
         exphil_status (*)(exphil_context *context, const void *data, size_t size_bytes,
                           const exphil_slp_config *config, exphil_slp **slp, exphil_error *error));
FUNCTION(exphil_slp_destroy, void (*)(exphil_slp *slp));
FUNCTION(exphil_slp_query,
         exphil_status (*)(const exphil_slp *slp, exphil_slp_info *info, exphil_error *error));
FUNCTION(exphil_slp_result_get,
         exphil_status (*)(const exphil_slp *slp, exphil_slp_result *result, exphil_error *error));
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
FUNCTION(exphil_slp_melee_rows,
         exphil_status (*)(const exphil_slp *slp, const char *layout, const char *codec,
                           const exphil_replay_config *config, int64_t capacity, int32_t *frames,
                           float *floats, int32_t *ids, int32_t *actions, int64_t *count,
                           exphil_error *error));
FUNCTION(exphil_games_create,
         exphil_status (*)(exphil_context *context, const char *path, const exphil_games_config *config,
                           exphil_games_writer **writer, exphil_error *error));
FUNCTION(exphil_games_add, exphil_status (*)(exphil_games_writer *writer, const char *path,
                                             exphil_games_added *added, exphil_error *error));
FUNCTION(exphil_games_add_memory,
         exphil_status (*)(exphil_games_writer *writer, const void *data, size_t size_bytes,
                           exphil_games_added *added, exphil_error *error));
FUNCTION(exphil_games_copy, exphil_status (*)(exphil_games_writer *writer, const exphil_games *from,
                                              int64_t index, exphil_games_added *added, exphil_error *error));
FUNCTION(exphil_games_finish,
         exphil_status (*)(exphil_games_writer *writer, exphil_games_info *info, exphil_error *error));
FUNCTION(exphil_games_writer_destroy, void (*)(exphil_games_writer *writer));
FUNCTION(exphil_games_open, exphil_status (*)(exphil_context *context, const char *path, exphil_games **games,
                                              exphil_error *error));
FUNCTION(exphil_games_destroy, void (*)(exphil_games *games));
FUNCTION(exphil_games_query,
         exphil_status (*)(const exphil_games *games, exphil_games_info *info, exphil_error *error));
FUNCTION(exphil_games_game,
         exphil_status (*)(const exphil_games *games, int64_t index, exphil_game_info *info,
                           exphil_slp_info *settings, exphil_error *error));
FUNCTION(exphil_games_read,
         exphil_status (*)(const exphil_games *games, int64_t index, exphil_slp **slp, exphil_error *error));
FUNCTION(exphil_games_verify, exphil_status (*)(const exphil_games *games, exphil_error *error));
FUNCTION(exphil_refused_name, const char *(*)(int32_t reason));
FUNCTION(exphil_dataset_add_games, exphil_status (*)(exphil_dataset *dataset, const exphil_games *games,
                                                     const exphil_selection *selection,
                                                     exphil_selection_report *report, exphil_error *error));
FUNCTION(exphil_live_create, exphil_status (*)(const exphil_model *model, const exphil_live_config *config,
                                               exphil_live **live, exphil_error *error));
FUNCTION(exphil_live_destroy, void (*)(exphil_live *live));
FUNCTION(exphil_live_session, exphil_session *(*)(exphil_live *live));
FUNCTION(exphil_live_step_row, exphil_status (*)(exphil_live *live, const float *floats, const int32_t *ids,
                                                 const int32_t *person, int32_t *actions));
FUNCTION(exphil_live_step, exphil_status (*)(exphil_live *live, const exphil_melee_frame *frame,
                                             const exphil_pad *person, exphil_pad *pad));
FUNCTION(exphil_live_reward, exphil_status (*)(exphil_live *live, float reward, uint8_t end,
                                               const float *floats, const int32_t *ids));
FUNCTION(exphil_live_query,
         exphil_status (*)(const exphil_live *live, exphil_live_info *info, exphil_error *error));
FUNCTION(exphil_live_settle, exphil_status (*)(exphil_live *live, exphil_error *error));
FUNCTION(exphil_live_model, exphil_status (*)(exphil_live *live, exphil_model **model, exphil_error *error));
FUNCTION(exphil_live_save, exphil_status (*)(exphil_live *live, const char *path, exphil_error *error));
FUNCTION(exphil_live_resume, exphil_status (*)(exphil_live *live, const char *path, exphil_error *error));
FUNCTION(exphil_match, exphil_status (*)(const exphil_model *a, const exphil_model *b,
                                         const exphil_world *world, const exphil_match_config *config,
                                         exphil_match_result *result, exphil_error *error));
FUNCTION(exphil_world_against, exphil_status (*)(exphil_context *context, const exphil_world *world,
                                                 const exphil_model *const *opponents, int64_t count,
                                                 uint64_t seed, exphil_world *against, exphil_error *error));
FUNCTION(exphil_world_opponent,
         exphil_status (*)(const exphil_world *against, int64_t index, const exphil_model *model,
                           exphil_record *record, exphil_error *error));
FUNCTION(exphil_model_notes_set,
         exphil_status (*)(exphil_model *model, const char *notes, exphil_error *error));
FUNCTION(exphil_model_notes,
         exphil_status (*)(const exphil_model *model, const char **notes, exphil_error *error));
FUNCTION(exphil_trainer_notes_set,
         exphil_status (*)(exphil_trainer *trainer, const char *notes, exphil_error *error));
FUNCTION(exphil_ops_create, exphil_status (*)(exphil_context *context, const exphil_ops_config *config,
                                              exphil_ops **ops, exphil_error *error));
FUNCTION(exphil_ops_destroy, void (*)(exphil_ops *ops));
FUNCTION(exphil_ops_query,
         exphil_status (*)(exphil_ops *ops, const void *args, exphil_op_info *info, exphil_error *error));
FUNCTION(exphil_ops_run, exphil_status (*)(exphil_ops *ops, const void *args, void *workspace,
                                           size_t workspace_bytes, void *stream, exphil_error *error));
FUNCTION(exphil_op_name, const char *(*)(int32_t op));
FUNCTION(exphil_trainer_plan, exphil_status (*)(exphil_context *context, const exphil_plan_config *config,
                                                exphil_plan *plan, exphil_error *error));
FUNCTION(exphil_rank_lanes, exphil_status (*)(int64_t batch, int32_t rank, int32_t ranks, int64_t *first_lane,
                                              int64_t *lane_count, exphil_error *error));
FUNCTION(exphil_trainer_agree,
         exphil_status (*)(exphil_trainer *trainer, double *numbers, int64_t count, exphil_error *error));
FUNCTION(exphil_trainer_set_communicator,
         exphil_status (*)(exphil_trainer *trainer, const exphil_communicator *communicator,
                           exphil_prefetcher *prefetcher, exphil_error *error));
FUNCTION(exphil_trainer_set_device_communicator,
         exphil_status (*)(exphil_trainer *trainer, const exphil_device_communicator *communicator,
                           exphil_prefetcher *prefetcher, exphil_error *error));
FUNCTION(exphil_ranks_id,
         exphil_status (*)(const exphil_context *context, uint8_t id[128], exphil_error *error));
FUNCTION(exphil_ranks_open,
         exphil_status (*)(const exphil_ranks_config *config, exphil_ranks **ranks, exphil_error *error));
FUNCTION(exphil_ranks_communicator,
         exphil_status (*)(exphil_ranks *ranks, exphil_device_communicator *communicator,
                           exphil_error *error));
FUNCTION(exphil_ranks_host_communicator,
         exphil_status (*)(exphil_ranks *ranks, exphil_communicator *communicator, exphil_error *error));
FUNCTION(exphil_ranks_destroy, void (*)(exphil_ranks *ranks));
#endif
