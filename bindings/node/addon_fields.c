/* Made by `tools/abi bindings` from include/exphil: do not edit.
 * Which field of a C struct is which property of an object, in the order of the headers. */
#include "addon.h"

/* clang-format off */
const struct field context_fields[] = {
    FIELD(exphil_context_config, F_NAME, device),
    FIELD(exphil_context_config, F_NAME, cpu_isa),
    FIELD(exphil_context_config, F_NAME, backend_path),
    FIELD(exphil_context_config, F_U64, memory_limit_bytes),
    FIELD(exphil_context_config, F_I32, threads),
    FIELDS_END
};

const struct field memory_fields[] = {
    FIELD(exphil_memory_info, F_I64, host_used_bytes),
    FIELD(exphil_memory_info, F_I64, host_peak_bytes),
    FIELD(exphil_memory_info, F_I64, host_allocations),
    FIELD(exphil_memory_info, F_I64, device_used_bytes),
    FIELD(exphil_memory_info, F_I64, device_peak_bytes),
    FIELD(exphil_memory_info, F_I64, device_requests),
    FIELD(exphil_memory_info, F_I64, device_reused),
    FIELD(exphil_memory_info, F_I64, pinned_used_bytes),
    FIELD(exphil_memory_info, F_I64, pinned_peak_bytes),
    FIELDS_END
};

const struct field id_fields[] = {
    FIELD(exphil_id_spec, F_NAME, name),
    FIELD(exphil_id_spec, F_I32, entries),
    FIELD(exphil_id_spec, F_I32, width),
    FIELDS_END
};

const struct field head_fields[] = {
    FIELD(exphil_head_spec, F_NAME, name),
    FIELD(exphil_head_spec, F_I32, kind),
    FIELD(exphil_head_spec, F_I32, count),
    FIELD(exphil_head_spec, F_I32, neutral),
    FIELDS_END
};

const struct field spec_fields[] = {
    FIELD(exphil_spec, F_NAME, layout),
    FIELD(exphil_spec, F_NAME, codec),
    FIELD(exphil_spec, F_I64, float_count),
    FIELD(exphil_spec, F_U64, layout_hash),
    FIELDS_END
};

const struct field pad_fields[] = {
    FIELD(exphil_pad, F_U32, buttons),
    FIELD(exphil_pad, F_F32, main_x),
    FIELD(exphil_pad, F_F32, main_y),
    FIELD(exphil_pad, F_F32, c_x),
    FIELD(exphil_pad, F_F32, c_y),
    FIELD(exphil_pad, F_F32, trigger),
    FIELDS_END
};

const struct field model_fields[] = {
    FIELD(exphil_model_config, F_NAME, blocks),
    FIELD(exphil_model_config, F_U64, seed),
    FIELD(exphil_model_config, F_I64, hidden),
    FIELD(exphil_model_config, F_I64, head_width),
    FIELD(exphil_model_config, F_I64, mamba_states),
    FIELD(exphil_model_config, F_I64, mamba_expand),
    FIELD(exphil_model_config, F_I64, mamba_taps),
    FIELD(exphil_model_config, F_I64, mamba_rank),
    FIELD(exphil_model_config, F_I64, attention_heads),
    FIELD(exphil_model_config, F_I64, attention_dim),
    FIELD(exphil_model_config, F_I64, attention_window_frames),
    FIELD(exphil_model_config, F_I64, ffn_expand),
    FIELD(exphil_model_config, F_I64, window_frames),
    FIELD(exphil_model_config, F_I32, delay_frames),
    FIELD(exphil_model_config, F_FLAG, no_previous_action),
    FIELD(exphil_model_config, F_I32, mode),
    FIELD(exphil_model_config, F_I32, heads),
    FIELD(exphil_model_config, F_I32, type),
    FIELD(exphil_model_config, F_FLAG, neutral_start),
    FIELD(exphil_model_config, F_I32, value),
    FIELD(exphil_model_config, F_F64, norm_epsilon),
    FIELD(exphil_model_config, F_I64, head_units),
    FIELD(exphil_model_config, F_FLAG, no_final_norm),
    FIELD(exphil_model_config, F_I32, head_layers),
    FIELD(exphil_model_config, F_I32, head_activation),
    FIELD(exphil_model_config, F_FLAG, head_last),
    FIELD(exphil_model_config, F_FLAG, no_head_past),
    FIELD(exphil_model_config, F_FLAG, no_head_trunk),
    FIELD(exphil_model_config, F_I64, input_width),
    FIELDS_END
};

const struct field info_fields[] = {
    FIELD(exphil_model_info, F_U64, spec_hash),
    FIELD(exphil_model_info, F_U64, weights_hash),
    FIELD(exphil_model_info, F_I64, parameter_count),
    FIELD(exphil_model_info, F_I64, tensor_count),
    FIELD(exphil_model_info, F_I64, float_count),
    FIELD(exphil_model_info, F_I64, id_count),
    FIELD(exphil_model_info, F_I64, head_count),
    FIELD(exphil_model_info, F_I64, logit_count),
    FIELD(exphil_model_info, F_I64, hidden),
    FIELD(exphil_model_info, F_I64, window_frames),
    FIELD(exphil_model_info, F_I64, trained_updates),
    FIELD(exphil_model_info, F_I64, trained_frames),
    FIELD(exphil_model_info, F_I32, delay_frames),
    FIELD(exphil_model_info, F_I32, mode),
    FIELD(exphil_model_info, F_I32, heads),
    FIELD(exphil_model_info, F_I32, type),
    FIELD(exphil_model_info, F_TEXT, layout),
    FIELD(exphil_model_info, F_TEXT, codec),
    FIELD(exphil_model_info, F_TEXT, blocks),
    FIELD(exphil_model_info, F_I32, weights),
    FIELD(exphil_model_info, F_FLAG, neutral_start),
    FIELD(exphil_model_info, F_I64, condition_count),
    FIELD(exphil_model_info, F_I64, delay_count),
    FIELD(exphil_model_info, F_I32, value),
    FIELD(exphil_model_info, F_F64, norm_epsilon),
    FIELD(exphil_model_info, F_I64, head_units),
    FIELD(exphil_model_info, F_FLAG, no_final_norm),
    FIELD(exphil_model_info, F_I32, head_layers),
    FIELD(exphil_model_info, F_I32, head_activation),
    FIELD(exphil_model_info, F_FLAG, head_last),
    FIELD(exphil_model_info, F_FLAG, no_head_past),
    FIELD(exphil_model_info, F_FLAG, no_head_trunk),
    FIELD(exphil_model_info, F_I64, input_width),
    FIELDS_END
};

const struct field replay_fields[] = {
    FIELD(exphil_replay_config, F_NAME, character),
    FIELD(exphil_replay_config, F_I32, port),
    FIELD(exphil_replay_config, F_I32, opponent_port),
    FIELD(exphil_replay_config, F_I32, first_frame),
    FIELD(exphil_replay_config, F_I32, last_frame),
    FIELDS_END
};

const struct field result_fields[] = {
    FIELD(exphil_replay_result, F_I64, episodes),
    FIELD(exphil_replay_result, F_I64, frames),
    FIELD(exphil_replay_result, F_I64, frames_masked),
    FIELD(exphil_replay_result, F_FLAG, truncated),
    FIELDS_END
};

const struct field dataset_info_fields[] = {
    FIELD(exphil_dataset_info, F_U64, spec_hash),
    FIELD(exphil_dataset_info, F_U64, content_hash),
    FIELD(exphil_dataset_info, F_I64, frames),
    FIELD(exphil_dataset_info, F_I64, episodes),
    FIELD(exphil_dataset_info, F_I64, games),
    FIELD(exphil_dataset_info, F_I64, float_count),
    FIELD(exphil_dataset_info, F_I64, id_count),
    FIELD(exphil_dataset_info, F_I64, head_count),
    FIELD(exphil_dataset_info, F_I64, constant_floats),
    FIELD(exphil_dataset_info, F_TEXT, layout),
    FIELD(exphil_dataset_info, F_TEXT, codec),
    FIELDS_END
};

const struct field sampling_fields[] = {
    FIELD(exphil_sampling, F_I64, batch),
    FIELD(exphil_sampling, F_I64, time),
    FIELD(exphil_sampling, F_I64, stride),
    FIELD(exphil_sampling, F_I64, segment_frames),
    FIELD(exphil_sampling, F_U64, seed),
    FIELD(exphil_sampling, F_FLAG, in_order),
    FIELD(exphil_sampling, F_FLAG, last_only),
    FIELD(exphil_sampling, F_I32, buffers),
    FIELD(exphil_sampling, F_I64, shuffle_frames),
    FIELD(exphil_sampling, F_I64, memory_bytes),
    FIELD(exphil_sampling, F_I32, workers),
    FIELD(exphil_sampling, F_F64, drop_past),
    FIELD(exphil_sampling, F_F64, mirror),
    FIELD(exphil_sampling, F_F64, balance_character),
    FIELD(exphil_sampling, F_F64, balance_action),
    FIELD(exphil_sampling, F_F64, balance_change),
    FIELD(exphil_sampling, F_I64, first_lane),
    FIELD(exphil_sampling, F_I64, lane_count),
    FIELDS_END
};

const struct field optimizer_fields[] = {
    FIELD(exphil_optimizer_config, F_F64, rate),
    FIELD(exphil_optimizer_config, F_F64, beta1),
    FIELD(exphil_optimizer_config, F_F64, beta2),
    FIELD(exphil_optimizer_config, F_F64, epsilon),
    FIELD(exphil_optimizer_config, F_F64, decay),
    FIELD(exphil_optimizer_config, F_F64, clip_norm),
    FIELD(exphil_optimizer_config, F_F64, ema_decay),
    FIELD(exphil_optimizer_config, F_F64, low_ratio),
    FIELD(exphil_optimizer_config, F_F64, restart_factor),
    FIELD(exphil_optimizer_config, F_I64, warmup_updates),
    FIELD(exphil_optimizer_config, F_I64, total_updates),
    FIELD(exphil_optimizer_config, F_I64, restart_updates),
    FIELD(exphil_optimizer_config, F_I32, schedule),
    FIELD(exphil_optimizer_config, F_FLAG, resume_new_total),
    FIELDS_END
};

const struct field trainer_fields[] = {
    FIELD(exphil_trainer_config, F_F64, loss_scale),
    FIELD(exphil_trainer_config, F_I64, accumulate),
    FIELD(exphil_trainer_config, F_I32, precision),
    FIELD(exphil_trainer_config, F_I32, activations),
    FIELD(exphil_trainer_config, F_I32, fake_quantize),
    FIELD(exphil_trainer_config, F_I32, checkpoint_blocks),
    FIELD(exphil_trainer_config, F_F64, own_past),
    FIELD(exphil_trainer_config, F_I64, own_past_ramp_updates),
    FIELD(exphil_trainer_config, F_U64, own_past_seed),
    FIELD(exphil_trainer_config, F_I32, saved_weights),
    FIELD(exphil_trainer_config, F_FLAG, as_played),
    FIELD(exphil_trainer_config, F_I32, reduction),
    FIELD(exphil_trainer_config, F_I32, shards),
    FIELDS_END
};

const struct field metrics_fields[] = {
    FIELD(exphil_metrics, F_I64, update),
    FIELD(exphil_metrics, F_I64, epoch),
    FIELD(exphil_metrics, F_I64, frames),
    FIELD(exphil_metrics, F_F64, loss),
    FIELD(exphil_metrics, F_F64, gradient_norm),
    FIELD(exphil_metrics, F_F64, rate),
    FIELD(exphil_metrics, F_I64, time_ns),
    FIELD(exphil_metrics, F_I64, waited_ns),
    FIELD(exphil_metrics, F_I64, skipped),
    FIELDS_END
};

const struct field report_fields[] = {
    FIELD(exphil_report, F_I64, frames),
    FIELD(exphil_report, F_I64, change_frames),
    FIELD(exphil_report, F_F64, loss),
    FIELD(exphil_report, F_F64, nll),
    FIELD(exphil_report, F_F64, frequency_nll),
    FIELD(exphil_report, F_F64, exact_accuracy),
    FIELD(exphil_report, F_F64, exact_change_accuracy),
    FIELD(exphil_report, F_F64, exact_majority),
    FIELD(exphil_report, F_F64, exact_majority_change),
    FIELD(exphil_report, F_F64, exact_copy),
    FIELD(exphil_report, F_I64, alone_most_frames),
    FIELD(exphil_report, F_I64, alone_frames),
    FIELD(exphil_report, F_I64, alone_change_frames),
    FIELD(exphil_report, F_F64, alone_nll),
    FIELD(exphil_report, F_F64, alone_accuracy),
    FIELD(exphil_report, F_F64, alone_change_accuracy),
    FIELD(exphil_report, F_I64, value_frames),
    FIELD(exphil_report, F_F64, value_loss),
    FIELD(exphil_report, F_F64, unexplained),
    FIELDS_END
};

const struct field play_fields[] = {
    FIELD(exphil_head_play, F_F32, temperature),
    FIELD(exphil_head_play, F_FLAG, deterministic),
    FIELD(exphil_head_play, F_F32, press),
    FIELD(exphil_head_play, F_F32, release),
    FIELDS_END
};

const struct field session_fields[] = {
    FIELD(exphil_session_config, F_U64, seed),
    FIELD(exphil_session_config, F_I64, streams),
    FIELD(exphil_session_config, F_I64, deadline_ns),
    FIELD(exphil_session_config, F_FLAG, deterministic),
    FIELD(exphil_session_config, F_I32, deliver),
    FIELD(exphil_session_config, F_FLAG, adoptable),
    FIELDS_END
};

const struct field session_info_fields[] = {
    FIELD(exphil_session_info, F_I64, steps),
    FIELD(exphil_session_info, F_I64, missed),
    FIELD(exphil_session_info, F_I64, last_ns),
    FIELD(exphil_session_info, F_I64, max_ns),
    FIELD(exphil_session_info, F_I64, p50_ns),
    FIELD(exphil_session_info, F_I64, p99_ns),
    FIELD(exphil_session_info, F_I64, streams),
    FIELD(exphil_session_info, F_I64, float_count),
    FIELD(exphil_session_info, F_I64, id_count),
    FIELD(exphil_session_info, F_I64, head_count),
    FIELD(exphil_session_info, F_I64, logit_count),
    FIELD(exphil_session_info, F_I64, state_bytes),
    FIELD(exphil_session_info, F_I64, adoptions),
    FIELD(exphil_session_info, F_I64, weights_hash),
    FIELDS_END
};

const struct member character_members[] = {
    {"present", offsetof(exphil_melee_character, present), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"known", offsetof(exphil_melee_character, known), sizeof(uint32_t), F_U32, 1, 0, NULL},
    {"x", offsetof(exphil_melee_character, x), sizeof(float), F_F32, 1, 0, NULL},
    {"y", offsetof(exphil_melee_character, y), sizeof(float), F_F32, 1, 0, NULL},
    {"facing", offsetof(exphil_melee_character, facing), sizeof(float), F_F32, 1, 0, NULL},
    {"percent", offsetof(exphil_melee_character, percent), sizeof(float), F_F32, 1, 0, NULL},
    {"shield", offsetof(exphil_melee_character, shield), sizeof(float), F_F32, 1, 0, NULL},
    {"state_age", offsetof(exphil_melee_character, state_age), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_AGE, NULL},
    {"misc", offsetof(exphil_melee_character, misc), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"speed_air_x", offsetof(exphil_melee_character, speed_air_x), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_y", offsetof(exphil_melee_character, speed_y), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_attack_x", offsetof(exphil_melee_character, speed_attack_x), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_attack_y", offsetof(exphil_melee_character, speed_attack_y), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_ground_x", offsetof(exphil_melee_character, speed_ground_x), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"hitlag", offsetof(exphil_melee_character, hitlag), sizeof(float), F_F32, 1, EXPHIL_MELEE_HAS_HITLAG, NULL},
    {"action_state", offsetof(exphil_melee_character, action_state), sizeof(uint16_t), F_U16, 1, 0, NULL},
    {"ground", offsetof(exphil_melee_character, ground), sizeof(uint16_t), F_U16, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"character", offsetof(exphil_melee_character, character), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"stocks", offsetof(exphil_melee_character, stocks), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"last_attack", offsetof(exphil_melee_character, last_attack), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"combo", offsetof(exphil_melee_character, combo), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"last_hit_by", offsetof(exphil_melee_character, last_hit_by), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"airborne", offsetof(exphil_melee_character, airborne), sizeof(uint8_t), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"jumps", offsetof(exphil_melee_character, jumps), sizeof(uint8_t), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"l_cancel", offsetof(exphil_melee_character, l_cancel), sizeof(uint8_t), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"hurtbox", offsetof(exphil_melee_character, hurtbox), sizeof(uint8_t), F_U8, 1, EXPHIL_MELEE_HAS_HURTBOX, NULL},
    {"flags", offsetof(exphil_melee_character, flags), sizeof(uint8_t), F_U8, 5, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {NULL, 0, 0, F_I32, 0, 0, NULL}
};

const struct member item_members[] = {
    {"facing", offsetof(exphil_melee_item, facing), sizeof(float), F_F32, 1, 0, NULL},
    {"speed_x", offsetof(exphil_melee_item, speed_x), sizeof(float), F_F32, 1, 0, NULL},
    {"speed_y", offsetof(exphil_melee_item, speed_y), sizeof(float), F_F32, 1, 0, NULL},
    {"x", offsetof(exphil_melee_item, x), sizeof(float), F_F32, 1, 0, NULL},
    {"y", offsetof(exphil_melee_item, y), sizeof(float), F_F32, 1, 0, NULL},
    {"timer", offsetof(exphil_melee_item, timer), sizeof(float), F_F32, 1, 0, NULL},
    {"spawn_id", offsetof(exphil_melee_item, spawn_id), sizeof(uint32_t), F_U32, 1, 0, NULL},
    {"type", offsetof(exphil_melee_item, type), sizeof(uint16_t), F_U16, 1, 0, NULL},
    {"damage", offsetof(exphil_melee_item, damage), sizeof(uint16_t), F_U16, 1, 0, NULL},
    {"state", offsetof(exphil_melee_item, state), sizeof(uint8_t), F_U8, 1, 0, NULL},
    {"misc", offsetof(exphil_melee_item, misc), sizeof(uint8_t), F_U8, 4, 0, NULL},
    {"owner", offsetof(exphil_melee_item, owner), sizeof(int8_t), F_I8, 1, 0, NULL},
    {NULL, 0, 0, F_I32, 0, 0, NULL}
};

const struct member frame_members[] = {
    {"frame", offsetof(exphil_melee_frame, frame), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"stage", offsetof(exphil_melee_frame, stage), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"own_port", offsetof(exphil_melee_frame, own_port), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"opponent_port", offsetof(exphil_melee_frame, opponent_port), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"player", offsetof(exphil_melee_frame, player), sizeof(exphil_melee_character), F_I32, 4, 0, character_members},
    {"follower", offsetof(exphil_melee_frame, follower), sizeof(exphil_melee_character), F_I32, 4, 0, character_members},
    {"platform_left", offsetof(exphil_melee_frame, platform_left), sizeof(float), F_F32, 1, 0, NULL},
    {"platform_right", offsetof(exphil_melee_frame, platform_right), sizeof(float), F_F32, 1, 0, NULL},
    {"wind", offsetof(exphil_melee_frame, wind), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"stadium_kind", offsetof(exphil_melee_frame, stadium_kind), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"stadium_event", offsetof(exphil_melee_frame, stadium_event), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"item_count", offsetof(exphil_melee_frame, item_count), sizeof(int32_t), F_I32, 1, 0, NULL},
    {"item", offsetof(exphil_melee_frame, item), sizeof(exphil_melee_item), F_I32, 15, 0, item_members},
    {NULL, 0, 0, F_I32, 0, 0, NULL}
};

const struct constant buttons[] = {
    {"D_LEFT", EXPHIL_PAD_D_LEFT},
    {"D_RIGHT", EXPHIL_PAD_D_RIGHT},
    {"D_DOWN", EXPHIL_PAD_D_DOWN},
    {"D_UP", EXPHIL_PAD_D_UP},
    {"Z", EXPHIL_PAD_Z},
    {"R", EXPHIL_PAD_R},
    {"L", EXPHIL_PAD_L},
    {"A", EXPHIL_PAD_A},
    {"B", EXPHIL_PAD_B},
    {"X", EXPHIL_PAD_X},
    {"Y", EXPHIL_PAD_Y},
    {"START", EXPHIL_PAD_START},
    {NULL, 0}
};

const struct constant known[] = {
    {"AGE", EXPHIL_MELEE_HAS_AGE},
    {"FLAGS", EXPHIL_MELEE_HAS_FLAGS},
    {"HURTBOX", EXPHIL_MELEE_HAS_HURTBOX},
    {"SPEED", EXPHIL_MELEE_HAS_SPEED},
    {"HITLAG", EXPHIL_MELEE_HAS_HITLAG},
    {"ALL", EXPHIL_MELEE_HAS_ALL},
    {NULL, 0}
};
