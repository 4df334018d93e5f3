/* Made by `tools/abi bindings` from include/exphil: do not edit.
 * Which field of a C struct is which key of an Elixir map, in the order of the headers. */
#include "nif.h"

/* clang-format off */
const char *const log_level_names[] = {"default", "error", "warning", "info", "debug", NULL};
const char *const mode_names[] = {"carry", "window", NULL};
static const char *const heads_names[] = {"independent", "autoregressive", NULL};
static const char *const value_names[] = {"none", "detached", "shared", NULL};
static const char *const activation_names[] = {"silu", "relu", "gelu_tanh", NULL};
const char *const type_names[] = {"f32", "f64", "bf16", "i8", "f16", NULL};
static const char *const split_names[] = {"game", "time", "stable", NULL};
static const char *const schedule_names[] = {"constant", "cosine", "restarts", NULL};
static const char *const precision_names[] = {"f32", "tf32", "bf16", "f16", NULL};
static const char *const weights_names[] = {"now", "averaged", NULL};
static const char *const reduction_names[] = {"means", "sums", NULL};
static const char *const deliver_names[] = {"due", "decided", NULL};
static const char *const live_way_names[] = {"imitate", "reinforce", NULL};
static const char *const rollback_names[] = {"last", "first", "all", NULL};
static const char *const stop_names[] = {"complete", "end_of_file", "metadata", "truncated", "unknown_code", NULL};
static const char *const container_names[] = {"container", "bare", "games", NULL};
static const char *const metadata_names[] = {"absent", "ok", "unreadable", NULL};
static const char *const game_result_names[] = {"any", "won", "lost", NULL};
static const char *const presence_names[] = {"with_or_without", "without", "with", NULL};

#define RECORD(id, text, struct_, module_) \
    _Static_assert(sizeof(id##_fields) / sizeof *(id##_fields) <= RECORD_FIELDS, "RECORD_FIELDS is too small"); \
    record id = {.name = (text), .module = (module_), .bytes = sizeof(struct_), .fields = id##_fields, \
                 .field_count = sizeof(id##_fields) / sizeof *(id##_fields)}

static const field context_config_fields[] = {
    FIELD(exphil_context_config, device, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_context_config, cpu_isa, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_context_config, backend_path, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_context_config, memory_limit_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_context_config, threads, T_I32, 1, NULL, NULL),
    FIELD(exphil_context_config, log_level, T_ENUM, 1, log_level_names, NULL),
};
RECORD(context_config, "context", exphil_context_config, NULL);

static const field device_info_fields[] = {
    FIELD(exphil_device_info, memory_bytes, T_I64, 1, NULL, NULL),
    FIELD(exphil_device_info, index, T_I32, 1, NULL, NULL),
    FIELD(exphil_device_info, workers, T_I32, 1, NULL, NULL),
    FIELD(exphil_device_info, id, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_device_info, name, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_device_info, isa, T_CHARS, 1, NULL, NULL),
};
RECORD(device_info, "device", exphil_device_info, NULL);

static const field memory_info_fields[] = {
    FIELD(exphil_memory_info, host_used_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, host_peak_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, host_allocations, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, device_used_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, device_peak_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, device_requests, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, device_reused, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, pinned_used_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_memory_info, pinned_peak_bytes, T_U64, 1, NULL, NULL),
};
RECORD(memory_info, "memory", exphil_memory_info, NULL);

static const field model_config_fields[] = {
    FIELD(exphil_model_config, spec, T_SPEC, 1, NULL, NULL),
    FIELD(exphil_model_config, blocks, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_model_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_config, hidden, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, head_width, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, mamba_states, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, mamba_expand, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, mamba_taps, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, mamba_rank, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, attention_heads, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, attention_dim, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, attention_window_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, ffn_expand, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, window_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, delay_frames, T_I32, 1, NULL, NULL),
    FIELD(exphil_model_config, no_previous_action, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, mode, T_ENUM, 1, mode_names, NULL),
    FIELD(exphil_model_config, heads, T_ENUM, 1, heads_names, NULL),
    FIELD(exphil_model_config, type, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_model_config, neutral_start, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, value, T_ENUM, 1, value_names, NULL),
    FIELD(exphil_model_config, norm_epsilon, T_F64, 1, NULL, NULL),
    FIELD(exphil_model_config, head_units, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_config, no_final_norm, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, head_layers, T_I32, 1, NULL, NULL),
    FIELD(exphil_model_config, head_activation, T_ENUM, 1, activation_names, NULL),
    FIELD(exphil_model_config, head_last, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, no_head_past, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, no_head_trunk, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_config, input_width, T_I64, 1, NULL, NULL),
};
RECORD(model_config, "model", exphil_model_config, NULL);

static const field model_info_fields[] = {
    FIELD(exphil_model_info, spec_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_info, weights_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_info, parameter_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, tensor_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, float_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, id_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, head_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, logit_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, hidden, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, window_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, state_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_info, trained_updates, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_info, trained_frames, T_U64, 1, NULL, NULL),
    FIELD(exphil_model_info, delay_frames, T_I32, 1, NULL, NULL),
    FIELD(exphil_model_info, action_slots, T_I32, 1, NULL, NULL),
    FIELD(exphil_model_info, mode, T_ENUM, 1, mode_names, NULL),
    FIELD(exphil_model_info, heads, T_ENUM, 1, heads_names, NULL),
    FIELD(exphil_model_info, type, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_model_info, layout, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_model_info, codec, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_model_info, blocks, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_model_info, weights, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_model_info, calibrated, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, neutral_start, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, condition_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, delay_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, value, T_ENUM, 1, value_names, NULL),
    FIELD(exphil_model_info, norm_epsilon, T_F64, 1, NULL, NULL),
    FIELD(exphil_model_info, head_units, T_I64, 1, NULL, NULL),
    FIELD(exphil_model_info, no_final_norm, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, head_layers, T_I32, 1, NULL, NULL),
    FIELD(exphil_model_info, head_activation, T_ENUM, 1, activation_names, NULL),
    FIELD(exphil_model_info, head_last, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, no_head_past, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, no_head_trunk, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_model_info, input_width, T_I64, 1, NULL, NULL),
};
RECORD(model_info, "model", exphil_model_info, NULL);

static const field tensor_info_fields[] = {
    FIELD(exphil_tensor_info, size_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_tensor_info, type, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_tensor_info, name, T_CHARS, 1, NULL, NULL),
};
RECORD(tensor_info, "tensor", exphil_tensor_info, NULL);

static const field head_comparison_fields[] = {
    FIELD(exphil_head_comparison, max_error, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_comparison, rms_error, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_comparison, kl, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_comparison, agreement, T_F64, 1, NULL, NULL),
};
RECORD(head_comparison, "head", exphil_head_comparison, NULL);

static const field comparison_info_fields[] = {
    FIELD(exphil_comparison, reference_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_comparison, content_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_comparison, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_comparison, max_error, T_F64, 1, NULL, NULL),
    FIELD(exphil_comparison, rms_error, T_F64, 1, NULL, NULL),
    FIELD(exphil_comparison, kl, T_F64, 1, NULL, NULL),
    FIELD(exphil_comparison, agreement, T_F64, 1, NULL, NULL),
};
RECORD(comparison_info, "comparison", exphil_comparison, NULL);

static const field replay_config_fields[] = {
    FIELD(exphil_replay_config, character, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_replay_config, port, T_I32, 1, NULL, NULL),
    FIELD(exphil_replay_config, opponent_port, T_I32, 1, NULL, NULL),
    FIELD(exphil_replay_config, first_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_replay_config, last_frame, T_I32, 1, NULL, NULL),
};
RECORD(replay_config, "replay", exphil_replay_config, NULL);

static const field replay_result_fields[] = {
    FIELD(exphil_replay_result, episodes, T_I64, 1, NULL, NULL),
    FIELD(exphil_replay_result, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_replay_result, frames_masked, T_I64, 1, NULL, NULL),
    FIELD(exphil_replay_result, truncated, T_BOOL, 1, NULL, NULL),
};
RECORD(replay_result, "replay", exphil_replay_result, NULL);

static const field dataset_info_fields[] = {
    FIELD(exphil_dataset_info, spec_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, content_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, episodes, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, games, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, float_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, id_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, head_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, constant_floats, T_I64, 1, NULL, NULL),
    FIELD(exphil_dataset_info, recovered, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_dataset_info, layout, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_dataset_info, codec, T_CHARS, 1, NULL, NULL),
};
RECORD(dataset_info, "dataset", exphil_dataset_info, NULL);

static const field episode_info_fields[] = {
    FIELD(exphil_episode_info, game, T_U64, 1, NULL, NULL),
    FIELD(exphil_episode_info, first, T_I64, 1, NULL, NULL),
    FIELD(exphil_episode_info, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_episode_info, first_game_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, port, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, opponent_port, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, stage, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, character, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, opponent_character, T_I32, 1, NULL, NULL),
    FIELD(exphil_episode_info, group, T_U64, 1, NULL, NULL),
};
RECORD(episode_info, "episode", exphil_episode_info, NULL);

static const field split_config_fields[] = {
    FIELD(exphil_split_config, held_out, T_F64, 1, NULL, NULL),
    FIELD(exphil_split_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_split_config, by, T_ENUM, 1, split_names, NULL),
};
RECORD(split_config, "split", exphil_split_config, NULL);

static const field sampling_config_fields[] = {
    FIELD(exphil_sampling, batch, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, time, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, stride, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, segment_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_sampling, mode, T_ENUM, 1, mode_names, NULL),
    FIELD(exphil_sampling, delay_frames, T_I32, 1, NULL, NULL),
    FIELD(exphil_sampling, action_slots, T_I32, 1, NULL, NULL),
    FIELD(exphil_sampling, in_order, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_sampling, last_only, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_sampling, buffers, T_I32, 1, NULL, NULL),
    FIELD(exphil_sampling, neutral_start, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_sampling, shuffle_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, memory_bytes, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, workers, T_I32, 1, NULL, NULL),
    FIELD(exphil_sampling, drop_past, T_F64, 1, NULL, NULL),
    FIELD(exphil_sampling, mirror, T_F64, 1, NULL, NULL),
    FIELD(exphil_sampling, balance_character, T_F64, 1, NULL, NULL),
    FIELD(exphil_sampling, balance_action, T_F64, 1, NULL, NULL),
    FIELD(exphil_sampling, balance_change, T_F64, 1, NULL, NULL),
    FIELD(exphil_sampling, first_lane, T_I64, 1, NULL, NULL),
    FIELD(exphil_sampling, lane_count, T_I64, 1, NULL, NULL),
};
RECORD(sampling_config, "sampling", exphil_sampling, NULL);

static const field prefetcher_info_fields[] = {
    FIELD(exphil_prefetcher_info, batches_per_epoch, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, frames_per_epoch, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, delivered, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, waited_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, worked_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, waits, T_I64, 1, NULL, NULL),
    FIELD(exphil_prefetcher_info, effective_share, T_F64, 1, NULL, NULL),
};
RECORD(prefetcher_info, "prefetcher", exphil_prefetcher_info, NULL);

static const field optimizer_config_fields[] = {
    FIELD(exphil_optimizer_config, rate, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, beta1, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, beta2, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, epsilon, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, decay, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, clip_norm, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, ema_decay, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, low_ratio, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, restart_factor, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, warmup_updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, total_updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, restart_updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_optimizer_config, schedule, T_ENUM, 1, schedule_names, NULL),
    FIELD(exphil_optimizer_config, resume_new_total, T_BOOL, 1, NULL, NULL),
};
RECORD(optimizer_config, "optimizer", exphil_optimizer_config, NULL);

static const field optimizer_info_fields[] = {
    FIELD(exphil_optimizer_info, updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_optimizer_info, rate, T_F64, 1, NULL, NULL),
    FIELD(exphil_optimizer_info, state_bytes, T_U64, 1, NULL, NULL),
};
RECORD(optimizer_info, "optimizer", exphil_optimizer_info, NULL);

static const field head_loss_fields[] = {
    FIELD(exphil_head_loss, weight, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_loss, smoothing, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_loss, focal_gamma, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_loss, positive_weight, T_FLOATS_AT, 1, NULL, NULL),
};
RECORD(head_loss, "loss", exphil_head_loss, NULL);

static const field trainer_config_fields[] = {
    FIELD(exphil_trainer_config, losses, T_RECORDS_AT, 1, NULL, &head_loss),
    FIELD(exphil_trainer_config, loss_scale, T_F64, 1, NULL, NULL),
    FIELD(exphil_trainer_config, accumulate, T_I64, 1, NULL, NULL),
    FIELD(exphil_trainer_config, precision, T_ENUM, 1, precision_names, NULL),
    FIELD(exphil_trainer_config, activations, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_trainer_config, fake_quantize, T_ENUM, 1, type_names, NULL),
    FIELD(exphil_trainer_config, checkpoint_blocks, T_I32, 1, NULL, NULL),
    FIELD(exphil_trainer_config, own_past, T_F64, 1, NULL, NULL),
    FIELD(exphil_trainer_config, own_past_ramp_updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_trainer_config, own_past_seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_trainer_config, saved_weights, T_ENUM, 1, weights_names, NULL),
    FIELD(exphil_trainer_config, as_played, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_trainer_config, reduction, T_ENUM, 1, reduction_names, NULL),
    FIELD(exphil_trainer_config, shards, T_I32, 1, NULL, NULL),
};
RECORD(trainer_config, "trainer", exphil_trainer_config, NULL);

static const field metrics_info_fields[] = {
    FIELD(exphil_metrics, update, T_I64, 1, NULL, NULL),
    FIELD(exphil_metrics, epoch, T_I64, 1, NULL, NULL),
    FIELD(exphil_metrics, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_metrics, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_metrics, gradient_norm, T_F64, 1, NULL, NULL),
    FIELD(exphil_metrics, rate, T_F64, 1, NULL, NULL),
    FIELD(exphil_metrics, loss_scale, T_F64, 1, NULL, NULL),
    FIELD(exphil_metrics, time_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_metrics, waited_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_metrics, skipped, T_I64, 1, NULL, NULL),
};
RECORD(metrics_info, "metrics", exphil_metrics, NULL);

static const field head_report_fields[] = {
    FIELD(exphil_head_report, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, top3, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, change_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, majority_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, copy_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_head_report, frequency_nll, T_F64, 1, NULL, NULL),
};
RECORD(head_report, "head", exphil_head_report, NULL);

static const field report_info_fields[] = {
    FIELD(exphil_report, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, change_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, frequency_nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, exact_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, exact_change_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, exact_majority, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, exact_majority_change, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, exact_copy, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, alone_most_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, alone_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, alone_change_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, alone_nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, alone_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, alone_change_accuracy, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, value_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_report, value_loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_report, unexplained, T_F64, 1, NULL, NULL),
};
RECORD(report_info, "report", exphil_report, NULL);

static const field head_play_fields[] = {
    FIELD(exphil_head_play, temperature, T_F32, 1, NULL, NULL),
    FIELD(exphil_head_play, deterministic, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_head_play, press, T_F32, 1, NULL, NULL),
    FIELD(exphil_head_play, release, T_F32, 1, NULL, NULL),
};
RECORD(head_play, "head", exphil_head_play, NULL);

static const field session_config_fields[] = {
    FIELD(exphil_session_config, heads, T_RECORDS_AT, 1, NULL, &head_play),
    FIELD(exphil_session_config, spec, T_SPEC, 1, NULL, NULL),
    FIELD(exphil_session_config, delay_frames, T_I32_AT, 1, NULL, NULL),
    FIELD(exphil_session_config, mode, T_ENUM_AT, 1, mode_names, NULL),
    FIELD(exphil_session_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_session_config, streams, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_config, deadline_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_config, deterministic, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_session_config, deliver, T_ENUM, 1, deliver_names, NULL),
    FIELD(exphil_session_config, adoptable, T_BOOL, 1, NULL, NULL),
};
RECORD(session_config, "session", exphil_session_config, NULL);

static const field session_info_fields[] = {
    FIELD(exphil_session_info, steps, T_U64, 1, NULL, NULL),
    FIELD(exphil_session_info, missed, T_U64, 1, NULL, NULL),
    FIELD(exphil_session_info, latency, T_U64, 64, NULL, NULL),
    FIELD(exphil_session_info, last_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, max_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, p50_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, p99_ns, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, streams, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, float_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, id_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, head_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, logit_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_session_info, state_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_session_info, adoptions, T_U64, 1, NULL, NULL),
    FIELD(exphil_session_info, weights_hash, T_U64, 1, NULL, NULL),
};
RECORD(session_info, "session", exphil_session_info, NULL);

static const field melee_field_fields[] = {
    FIELD(exphil_melee_field, offset, T_I64, 1, NULL, NULL),
    FIELD(exphil_melee_field, count, T_I64, 1, NULL, NULL),
    FIELD(exphil_melee_field, scale, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_field, low, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_field, high, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_field, is_id, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_melee_field, name, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_melee_field, source, T_CHARS, 1, NULL, NULL),
};
RECORD(melee_field, "field", exphil_melee_field, NULL);

static const field melee_character_fields[] = {
    FIELD(exphil_melee_character, known, T_U32, 1, NULL, NULL),
    FIELD(exphil_melee_character, x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, y, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, facing, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, percent, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, shield, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, state_age, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, misc, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, speed_air_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, speed_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, speed_attack_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, speed_attack_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, speed_ground_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, hitlag, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_character, action_state, T_U16, 1, NULL, NULL),
    FIELD(exphil_melee_character, ground, T_U16, 1, NULL, NULL),
    FIELD(exphil_melee_character, character, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, stocks, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, last_attack, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, combo, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, last_hit_by, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, airborne, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, jumps, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, l_cancel, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, hurtbox, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_character, flags, T_U8, 5, NULL, NULL),
};
RECORD(melee_character, "character", exphil_melee_character, "Elixir.LibExphil.Melee.Character");

static const field melee_item_fields[] = {
    FIELD(exphil_melee_item, facing, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, speed_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, speed_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, x, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, y, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, timer, T_F32, 1, NULL, NULL),
    FIELD(exphil_melee_item, spawn_id, T_U32, 1, NULL, NULL),
    FIELD(exphil_melee_item, type, T_U16, 1, NULL, NULL),
    FIELD(exphil_melee_item, damage, T_U16, 1, NULL, NULL),
    FIELD(exphil_melee_item, state, T_U8, 1, NULL, NULL),
    FIELD(exphil_melee_item, misc, T_U8, 4, NULL, NULL),
    FIELD(exphil_melee_item, owner, T_I8, 1, NULL, NULL),
};
RECORD(melee_item, "item", exphil_melee_item, "Elixir.LibExphil.Melee.Item");

static const field melee_pad_fields[] = {
    FIELD(exphil_pad, buttons, T_U32, 1, NULL, NULL),
    FIELD(exphil_pad, main_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_pad, main_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_pad, c_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_pad, c_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_pad, trigger, T_F32, 1, NULL, NULL),
};
RECORD(melee_pad, "pad", exphil_pad, "Elixir.LibExphil.Melee.Pad");

static const field slp_config_fields[] = {
    FIELD(exphil_slp_config, limit_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_slp_config, rollback, T_ENUM, 1, rollback_names, NULL),
};
RECORD(slp_config, "replay", exphil_slp_config, NULL);

static const field slp_port_fields[] = {
    FIELD(exphil_slp_port, dashback_fix, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_port, shield_drop_fix, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_port, offence_ratio, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_port, defence_ratio, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_port, model_scale, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_port, start_damage, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_port, respawn_damage, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_port, character, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, type, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, stocks, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, costume, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, team_shade, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, handicap, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, team, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, flags, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, cpu_level, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_port, port, T_U8, 1, NULL, NULL),
};
RECORD(slp_port, "port", exphil_slp_port, NULL);

static const field slp_info_fields[] = {
    FIELD(exphil_slp_info, input_bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_slp_info, stop_offset, T_U64, 1, NULL, NULL),
    FIELD(exphil_slp_info, frame_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, instance_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, incomplete_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, item_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, unknown_event_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, problem_count, T_I64, 1, NULL, NULL),
    FIELD(exphil_slp_info, problems, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, fields, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, container, T_ENUM, 1, container_names, NULL),
    FIELD(exphil_slp_info, raw_declared_bytes, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_info, stop, T_ENUM, 1, stop_names, NULL),
    FIELD(exphil_slp_info, truncated, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_slp_info, rollback, T_ENUM, 1, rollback_names, NULL),
    FIELD(exphil_slp_info, first_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_info, last_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_info, metadata, T_ENUM, 1, metadata_names, NULL),
    FIELD(exphil_slp_info, metadata_last_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_info, end_count, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_info, seed, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, timer_seconds, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, game_number, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, tiebreak_number, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_info, damage_ratio, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_info, stage, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_info, version, T_U8, 3, NULL, NULL),
    FIELD(exphil_slp_info, game_mode, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, timer_kind, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, teams, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, friendly_fire, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, pal, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, frozen, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, minor_scene, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, major_scene, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, language, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, player_count, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, item_spawn, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_info, self_destruct, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_info, end_method, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_info, end_lras, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_info, placements, T_I8, 4, NULL, NULL),
    FIELD(exphil_slp_info, played_on, T_CHARS, 1, NULL, NULL),
    FIELD(exphil_slp_info, started_at, T_CHARS, 1, NULL, NULL),
};
RECORD(slp_info, "replay", exphil_slp_info, NULL);

static const field slp_frame_fields[] = {
    FIELD(exphil_slp_frame, frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, instance, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, seed, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, scene_counter, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, latest_final, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, fountain_left, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, fountain_right, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_frame, stadium_event, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_frame, stadium_kind, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_frame, whispy, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_frame, slots, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_frame, changed, T_U8, 1, NULL, NULL),
};
RECORD(slp_frame, "frame", exphil_slp_frame, NULL);

static const field slp_item_fields[] = {
    FIELD(exphil_slp_item, facing, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, vel_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, vel_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, timer, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_item, spawn_id, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_item, type, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_item, damage, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_item, instance_id, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_item, state, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_item, misc, T_U8, 4, NULL, NULL),
    FIELD(exphil_slp_item, owner, T_I8, 1, NULL, NULL),
};
RECORD(slp_item, "item", exphil_slp_item, NULL);

static const field slp_player_fields[] = {
    FIELD(exphil_slp_player, frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_seed, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_facing, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_percent, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, joy_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, joy_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, c_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, c_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, trigger, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, physical_l, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, physical_r, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, buttons, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_player, x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, facing, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, percent, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, shield, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, state_age, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, misc, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, vel_air_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, vel_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, vel_kb_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, vel_kb_y, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, vel_ground_x, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, hitlag, T_F32, 1, NULL, NULL),
    FIELD(exphil_slp_player, animation, T_U32, 1, NULL, NULL),
    FIELD(exphil_slp_player, physical_buttons, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, pre_action_state, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, action_state, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, ground_id, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, instance_hit_by, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, instance_id, T_U16, 1, NULL, NULL),
    FIELD(exphil_slp_player, raw_joy_x, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_player, raw_joy_y, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_player, raw_c_x, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_player, raw_c_y, T_I8, 1, NULL, NULL),
    FIELD(exphil_slp_player, port, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, follower, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, character, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, last_attack, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, combo, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, last_hit_by, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, stocks, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, flags, T_U8, 5, NULL, NULL),
    FIELD(exphil_slp_player, airborne, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, jumps, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, l_cancel, T_U8, 1, NULL, NULL),
    FIELD(exphil_slp_player, hurtbox, T_U8, 1, NULL, NULL),
};
RECORD(slp_player, "player", exphil_slp_player, NULL);

static const field games_config_fields[] = {
    FIELD(exphil_games_config, shard_bytes, T_I64, 1, NULL, NULL),
    FIELD(exphil_games_config, level, T_I32, 1, NULL, NULL),
    FIELD(exphil_games_config, stored, T_BOOL, 1, NULL, NULL),
};
RECORD(games_config, "games", exphil_games_config, NULL);

static const field games_info_fields[] = {
    FIELD(exphil_games_info, games, T_I64, 1, NULL, NULL),
    FIELD(exphil_games_info, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_games_info, bytes, T_U64, 1, NULL, NULL),
    FIELD(exphil_games_info, hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_games_info, recovered, T_BOOL, 1, NULL, NULL),
};
RECORD(games_info, "games", exphil_games_info, NULL);

static const field games_added_fields[] = {
    FIELD(exphil_games_added, content_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_games_added, source_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_games_added, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_games_added, duplicate, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_games_added, truncated, T_BOOL, 1, NULL, NULL),
};
RECORD(games_added, "game", exphil_games_added, NULL);

static const field game_info_fields[] = {
    FIELD(exphil_game_info, content_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_game_info, source_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_game_info, match_tag, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_info, day, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_info, winner, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_info, certain_end, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_info, finite, T_BOOL, 1, NULL, NULL),
};
RECORD(game_info, "game", exphil_game_info, NULL);

static const field game_player_fields[] = {
    FIELD(exphil_game_player, damage_dealt, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_player, damage_taken, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_player, stocks_taken, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_player, self_destructs, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_player, end_stocks, T_I32, 1, NULL, NULL),
    FIELD(exphil_game_player, input_frames, T_I32, 1, NULL, NULL),
};
RECORD(game_player, "player", exphil_game_player, NULL);

static const field selection_config_fields[] = {
    FIELD(exphil_selection, stages, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_selection, least_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection, most_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection, first_day, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, last_day, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, least_version, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, teams, T_ENUM, 1, presence_names, NULL),
    FIELD(exphil_selection, items, T_ENUM, 1, presence_names, NULL),
    FIELD(exphil_selection, players, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, complete, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_selection, humans, T_BOOL, 1, NULL, NULL),
    FIELD(exphil_selection, characters, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_selection, port, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, result, T_ENUM, 1, game_result_names, NULL),
    FIELD(exphil_selection, least_damage, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, least_stocks, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, self_destructs_below, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, least_input, T_F64, 1, NULL, NULL),
    FIELD(exphil_selection, opponents, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_selection, opponent_port, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, first_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, last_frame, T_I32, 1, NULL, NULL),
    FIELD(exphil_selection, duplicates, T_BOOL, 1, NULL, NULL),
};
RECORD(selection_config, "selection", exphil_selection, NULL);

static const field selection_report_fields[] = {
    FIELD(exphil_selection_report, games, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection_report, players, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection_report, taken, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection_report, episodes, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection_report, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_selection_report, frames_masked, T_I64, 1, NULL, NULL),
};
RECORD(selection_report, "report", exphil_selection_report, NULL);

static const field reward_config_fields[] = {
    FIELD(exphil_melee_reward_config, stock, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, damage, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, follower, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, ledge, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, stalling, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, stalling_distance, T_F64, 1, NULL, NULL),
    FIELD(exphil_melee_reward_config, approach, T_F64, 1, NULL, NULL),
};
RECORD(reward_config, "reward", exphil_melee_reward_config, NULL);

static const field outcome_config_fields[] = {
    FIELD(exphil_outcome_config, imitation, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, value, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, beta, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, cap, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, warm_up, T_I64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_outcome_config, shuffle, T_BOOL, 1, NULL, NULL),
};
RECORD(outcome_config, "outcome", exphil_outcome_config, NULL);

static const field outcome_metrics_fields[] = {
    FIELD(exphil_outcome_metrics, update, T_I64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, known, T_I64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, value_loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, gradient_norm, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, unexplained, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, effective, T_F64, 1, NULL, NULL),
    FIELD(exphil_outcome_metrics, clipped, T_F64, 1, NULL, NULL),
};
RECORD(outcome_metrics, "outcome", exphil_outcome_metrics, NULL);

static const field rollout_config_fields[] = {
    FIELD(exphil_rollout_config, time, T_I64, 1, NULL, NULL),
    FIELD(exphil_rollout_config, seed, T_U64, 1, NULL, NULL),
};
RECORD(rollout_config, "rollout", exphil_rollout_config, NULL);

static const field learner_config_fields[] = {
    FIELD(exphil_learner_config, surrogate, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, clip, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, value, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, to_old, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, to_teacher, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, from_teacher, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, entropy, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, imitation, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, half_life_frames, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, lambda, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, most_kl, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, reward_scale, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_config, epochs, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_config, batches, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_config, burn_in, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_config, value_only, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_learner_config, normalise, T_I32, 1, NULL, NULL),
};
RECORD(learner_config, "learner", exphil_learner_config, NULL);

static const field learner_metrics_fields[] = {
    FIELD(exphil_learner_metrics, chunks, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, rows, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, imitated, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, episodes, T_I64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, episode_return, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, episode_frames, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, reward, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, kl_old, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, kl_to_teacher, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, kl_from_teacher, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, entropy, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, ratio, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, clipped, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, nll, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, value_loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, unexplained, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, gradient_norm, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, recomputed, T_F64, 1, NULL, NULL),
    FIELD(exphil_learner_metrics, taken_back, T_BOOL, 1, NULL, NULL),
};
RECORD(learner_metrics, "learner", exphil_learner_metrics, NULL);

static const field match_config_fields[] = {
    FIELD(exphil_match_config, games, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_config, most_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_config, points, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_match_config, deterministic, T_BOOL, 1, NULL, NULL),
};
RECORD(match_config, "match", exphil_match_config, NULL);

static const field match_result_fields[] = {
    FIELD(exphil_match_result, games, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_result, won, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_result, lost, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_result, drawn, T_I64, 1, NULL, NULL),
    FIELD(exphil_match_result, score, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_result, low, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_result, high, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_result, points, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_result, points_against, T_F64, 1, NULL, NULL),
    FIELD(exphil_match_result, frames, T_F64, 1, NULL, NULL),
};
RECORD(match_result, "match", exphil_match_result, NULL);

static const field opponent_record_fields[] = {
    FIELD(exphil_record, episodes, T_I64, 1, NULL, NULL),
    FIELD(exphil_record, won, T_I64, 1, NULL, NULL),
    FIELD(exphil_record, lost, T_I64, 1, NULL, NULL),
};
RECORD(opponent_record, "record", exphil_record, NULL);

static const field block_info_fields[] = {
    FIELD(exphil_block_info, streams, T_I64, 1, NULL, NULL),
    FIELD(exphil_block_info, time, T_I64, 1, NULL, NULL),
    FIELD(exphil_block_info, spec_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_block_info, weights_hash, T_U64, 1, NULL, NULL),
    FIELD(exphil_block_info, delay_frames, T_I32, 1, NULL, NULL),
};
RECORD(block_info, "block", exphil_block_info, NULL);

static const field live_config_fields[] = {
    FIELD(exphil_live_config, share, T_F64, 1, NULL, NULL),
    FIELD(exphil_live_config, approved, T_F64, 1, NULL, NULL),
    FIELD(exphil_live_config, piece_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, time, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, ring_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, rollback_frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, path, T_TEXT, 1, NULL, NULL),
    FIELD(exphil_live_config, save_pieces, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_config, seed, T_U64, 1, NULL, NULL),
    FIELD(exphil_live_config, way, T_ENUM, 1, live_way_names, NULL),
    FIELD(exphil_live_config, paced, T_BOOL, 1, NULL, NULL),
};
RECORD(live_config, "live", exphil_live_config, NULL);

static const field live_info_fields[] = {
    FIELD(exphil_live_info, frames, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, person, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, dropped, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, taken_back, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, pieces, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, learnt, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, updates, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, adopted, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, loss, T_F64, 1, NULL, NULL),
    FIELD(exphil_live_info, reward, T_F64, 1, NULL, NULL),
    FIELD(exphil_live_info, skipped, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, saved, T_I64, 1, NULL, NULL),
    FIELD(exphil_live_info, message, T_CHARS, 1, NULL, NULL),
};
RECORD(live_info, "live", exphil_live_info, NULL);

extern record spec_head, spec_id, spec_map, frame_map, evaluate_map, run_map, option_map, rewards_map;

record *const all_records[] = {
    &context_config,
    &device_info,
    &memory_info,
    &model_config,
    &model_info,
    &tensor_info,
    &head_comparison,
    &comparison_info,
    &replay_config,
    &replay_result,
    &dataset_info,
    &episode_info,
    &split_config,
    &sampling_config,
    &prefetcher_info,
    &optimizer_config,
    &optimizer_info,
    &head_loss,
    &trainer_config,
    &metrics_info,
    &head_report,
    &report_info,
    &head_play,
    &session_config,
    &session_info,
    &melee_field,
    &melee_character,
    &melee_item,
    &melee_pad,
    &slp_config,
    &slp_port,
    &slp_info,
    &slp_frame,
    &slp_item,
    &slp_player,
    &games_config,
    &games_info,
    &games_added,
    &game_info,
    &game_player,
    &selection_config,
    &selection_report,
    &reward_config,
    &outcome_config,
    &outcome_metrics,
    &rollout_config,
    &learner_config,
    &learner_metrics,
    &match_config,
    &match_result,
    &opponent_record,
    &block_info,
    &live_config,
    &live_info,
    &spec_head,
    &spec_id,
    &spec_map,
    &frame_map,
    &evaluate_map,
    &run_map,
    &option_map,
    &rewards_map,
    NULL
};
