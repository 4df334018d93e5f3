/* Made by `tools/abi bindings` from include/exphil: do not edit.
 * Which field of a C struct is which property of an object, in the order of the headers. */
#include "play.h"

/* clang-format off */
static const struct field context_config[] = {
    {"memory_limit_bytes", offsetof(exphil_context_config, memory_limit_bytes), F_U32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field memory_info[] = {
    {"host_used_bytes", offsetof(exphil_memory_info, host_used_bytes), F_I64, 1, 0, NULL},
    {"host_peak_bytes", offsetof(exphil_memory_info, host_peak_bytes), F_I64, 1, 0, NULL},
    {"host_allocations", offsetof(exphil_memory_info, host_allocations), F_I64, 1, 0, NULL},
    {"device_used_bytes", offsetof(exphil_memory_info, device_used_bytes), F_I64, 1, 0, NULL},
    {"device_peak_bytes", offsetof(exphil_memory_info, device_peak_bytes), F_I64, 1, 0, NULL},
    {"device_requests", offsetof(exphil_memory_info, device_requests), F_I64, 1, 0, NULL},
    {"device_reused", offsetof(exphil_memory_info, device_reused), F_I64, 1, 0, NULL},
    {"pinned_used_bytes", offsetof(exphil_memory_info, pinned_used_bytes), F_I64, 1, 0, NULL},
    {"pinned_peak_bytes", offsetof(exphil_memory_info, pinned_peak_bytes), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field id_spec[] = {
    {"name", offsetof(exphil_id_spec, name), F_NAME, 1, 0, NULL},
    {"entries", offsetof(exphil_id_spec, entries), F_I32, 1, 0, NULL},
    {"width", offsetof(exphil_id_spec, width), F_I32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field head_spec[] = {
    {"name", offsetof(exphil_head_spec, name), F_NAME, 1, 0, NULL},
    {"kind", offsetof(exphil_head_spec, kind), F_I32, 1, 0, NULL},
    {"count", offsetof(exphil_head_spec, count), F_I32, 1, 0, NULL},
    {"neutral", offsetof(exphil_head_spec, neutral), F_I32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field spec[] = {
    {"layout", offsetof(exphil_spec, layout), F_NAME, 1, 0, NULL},
    {"codec", offsetof(exphil_spec, codec), F_NAME, 1, 0, NULL},
    {"float_count", offsetof(exphil_spec, float_count), F_I64, 1, 0, NULL},
    {"id_count", offsetof(exphil_spec, id_count), F_I64, 1, 0, NULL},
    {"ids", offsetof(exphil_spec, ids), F_POINTER, 1, 0, NULL},
    {"head_count", offsetof(exphil_spec, head_count), F_I64, 1, 0, NULL},
    {"heads", offsetof(exphil_spec, heads), F_POINTER, 1, 0, NULL},
    {"layout_hash", offsetof(exphil_spec, layout_hash), F_U64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field melee_character[] = {
    {"present", offsetof(exphil_melee_character, present), F_I32, 1, 0, NULL},
    {"known", offsetof(exphil_melee_character, known), F_U32, 1, 0, NULL},
    {"x", offsetof(exphil_melee_character, x), F_F32, 1, 0, NULL},
    {"y", offsetof(exphil_melee_character, y), F_F32, 1, 0, NULL},
    {"facing", offsetof(exphil_melee_character, facing), F_F32, 1, 0, NULL},
    {"percent", offsetof(exphil_melee_character, percent), F_F32, 1, 0, NULL},
    {"shield", offsetof(exphil_melee_character, shield), F_F32, 1, 0, NULL},
    {"state_age", offsetof(exphil_melee_character, state_age), F_F32, 1, EXPHIL_MELEE_HAS_AGE, NULL},
    {"misc", offsetof(exphil_melee_character, misc), F_F32, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"speed_air_x", offsetof(exphil_melee_character, speed_air_x), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_y", offsetof(exphil_melee_character, speed_y), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_attack_x", offsetof(exphil_melee_character, speed_attack_x), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_attack_y", offsetof(exphil_melee_character, speed_attack_y), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"speed_ground_x", offsetof(exphil_melee_character, speed_ground_x), F_F32, 1, EXPHIL_MELEE_HAS_SPEED, NULL},
    {"hitlag", offsetof(exphil_melee_character, hitlag), F_F32, 1, EXPHIL_MELEE_HAS_HITLAG, NULL},
    {"action_state", offsetof(exphil_melee_character, action_state), F_U16, 1, 0, NULL},
    {"ground", offsetof(exphil_melee_character, ground), F_U16, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"character", offsetof(exphil_melee_character, character), F_U8, 1, 0, NULL},
    {"stocks", offsetof(exphil_melee_character, stocks), F_U8, 1, 0, NULL},
    {"last_attack", offsetof(exphil_melee_character, last_attack), F_U8, 1, 0, NULL},
    {"combo", offsetof(exphil_melee_character, combo), F_U8, 1, 0, NULL},
    {"last_hit_by", offsetof(exphil_melee_character, last_hit_by), F_U8, 1, 0, NULL},
    {"airborne", offsetof(exphil_melee_character, airborne), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"jumps", offsetof(exphil_melee_character, jumps), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"l_cancel", offsetof(exphil_melee_character, l_cancel), F_U8, 1, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {"hurtbox", offsetof(exphil_melee_character, hurtbox), F_U8, 1, EXPHIL_MELEE_HAS_HURTBOX, NULL},
    {"flags", offsetof(exphil_melee_character, flags), F_U8, 5, EXPHIL_MELEE_HAS_FLAGS, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field melee_item[] = {
    {"facing", offsetof(exphil_melee_item, facing), F_F32, 1, 0, NULL},
    {"speed_x", offsetof(exphil_melee_item, speed_x), F_F32, 1, 0, NULL},
    {"speed_y", offsetof(exphil_melee_item, speed_y), F_F32, 1, 0, NULL},
    {"x", offsetof(exphil_melee_item, x), F_F32, 1, 0, NULL},
    {"y", offsetof(exphil_melee_item, y), F_F32, 1, 0, NULL},
    {"timer", offsetof(exphil_melee_item, timer), F_F32, 1, 0, NULL},
    {"spawn_id", offsetof(exphil_melee_item, spawn_id), F_U32, 1, 0, NULL},
    {"type", offsetof(exphil_melee_item, type), F_U16, 1, 0, NULL},
    {"damage", offsetof(exphil_melee_item, damage), F_U16, 1, 0, NULL},
    {"state", offsetof(exphil_melee_item, state), F_U8, 1, 0, NULL},
    {"misc", offsetof(exphil_melee_item, misc), F_U8, 4, 0, NULL},
    {"owner", offsetof(exphil_melee_item, owner), F_I8, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field melee_frame[] = {
    {"frame", offsetof(exphil_melee_frame, frame), F_I32, 1, 0, NULL},
    {"stage", offsetof(exphil_melee_frame, stage), F_I32, 1, 0, NULL},
    {"own_port", offsetof(exphil_melee_frame, own_port), F_I32, 1, 0, NULL},
    {"opponent_port", offsetof(exphil_melee_frame, opponent_port), F_I32, 1, 0, NULL},
    {"player", offsetof(exphil_melee_frame, player), F_STRUCT, 4, 0, melee_character},
    {"follower", offsetof(exphil_melee_frame, follower), F_STRUCT, 4, 0, melee_character},
    {"platform_left", offsetof(exphil_melee_frame, platform_left), F_F32, 1, 0, NULL},
    {"platform_right", offsetof(exphil_melee_frame, platform_right), F_F32, 1, 0, NULL},
    {"wind", offsetof(exphil_melee_frame, wind), F_I32, 1, 0, NULL},
    {"stadium_kind", offsetof(exphil_melee_frame, stadium_kind), F_I32, 1, 0, NULL},
    {"stadium_event", offsetof(exphil_melee_frame, stadium_event), F_I32, 1, 0, NULL},
    {"item_count", offsetof(exphil_melee_frame, item_count), F_I32, 1, 0, NULL},
    {"item", offsetof(exphil_melee_frame, item), F_STRUCT, 15, 0, melee_item},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field pad[] = {
    {"buttons", offsetof(exphil_pad, buttons), F_U32, 1, 0, NULL},
    {"main_x", offsetof(exphil_pad, main_x), F_F32, 1, 0, NULL},
    {"main_y", offsetof(exphil_pad, main_y), F_F32, 1, 0, NULL},
    {"c_x", offsetof(exphil_pad, c_x), F_F32, 1, 0, NULL},
    {"c_y", offsetof(exphil_pad, c_y), F_F32, 1, 0, NULL},
    {"trigger", offsetof(exphil_pad, trigger), F_F32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field model_config[] = {
    {"spec", offsetof(exphil_model_config, spec), F_POINTER, 1, 0, NULL},
    {"blocks", offsetof(exphil_model_config, blocks), F_NAME, 1, 0, NULL},
    {"seed", offsetof(exphil_model_config, seed), F_U64, 1, 0, NULL},
    {"hidden", offsetof(exphil_model_config, hidden), F_I64, 1, 0, NULL},
    {"head_width", offsetof(exphil_model_config, head_width), F_I64, 1, 0, NULL},
    {"mamba_states", offsetof(exphil_model_config, mamba_states), F_I64, 1, 0, NULL},
    {"mamba_expand", offsetof(exphil_model_config, mamba_expand), F_I64, 1, 0, NULL},
    {"mamba_taps", offsetof(exphil_model_config, mamba_taps), F_I64, 1, 0, NULL},
    {"mamba_rank", offsetof(exphil_model_config, mamba_rank), F_I64, 1, 0, NULL},
    {"attention_heads", offsetof(exphil_model_config, attention_heads), F_I64, 1, 0, NULL},
    {"attention_dim", offsetof(exphil_model_config, attention_dim), F_I64, 1, 0, NULL},
    {"attention_window_frames", offsetof(exphil_model_config, attention_window_frames), F_I64, 1, 0, NULL},
    {"ffn_expand", offsetof(exphil_model_config, ffn_expand), F_I64, 1, 0, NULL},
    {"window_frames", offsetof(exphil_model_config, window_frames), F_I64, 1, 0, NULL},
    {"delay_frames", offsetof(exphil_model_config, delay_frames), F_I32, 1, 0, NULL},
    {"no_previous_action", offsetof(exphil_model_config, no_previous_action), F_FLAG, 1, 0, NULL},
    {"mode", offsetof(exphil_model_config, mode), F_I32, 1, 0, NULL},
    {"heads", offsetof(exphil_model_config, heads), F_I32, 1, 0, NULL},
    {"type", offsetof(exphil_model_config, type), F_I32, 1, 0, NULL},
    {"neutral_start", offsetof(exphil_model_config, neutral_start), F_FLAG, 1, 0, NULL},
    {"conditions", offsetof(exphil_model_config, conditions), F_POINTER, 1, 0, NULL},
    {"delays", offsetof(exphil_model_config, delays), F_POINTER, 1, 0, NULL},
    {"condition_count", offsetof(exphil_model_config, condition_count), F_I64, 1, 0, NULL},
    {"delay_count", offsetof(exphil_model_config, delay_count), F_I64, 1, 0, NULL},
    {"value", offsetof(exphil_model_config, value), F_I32, 1, 0, NULL},
    {"norm_epsilon", offsetof(exphil_model_config, norm_epsilon), F_F64, 1, 0, NULL},
    {"head_units", offsetof(exphil_model_config, head_units), F_I64, 1, 0, NULL},
    {"no_final_norm", offsetof(exphil_model_config, no_final_norm), F_FLAG, 1, 0, NULL},
    {"head_layers", offsetof(exphil_model_config, head_layers), F_I32, 1, 0, NULL},
    {"head_activation", offsetof(exphil_model_config, head_activation), F_I32, 1, 0, NULL},
    {"head_last", offsetof(exphil_model_config, head_last), F_FLAG, 1, 0, NULL},
    {"no_head_past", offsetof(exphil_model_config, no_head_past), F_FLAG, 1, 0, NULL},
    {"no_head_trunk", offsetof(exphil_model_config, no_head_trunk), F_FLAG, 1, 0, NULL},
    {"input_width", offsetof(exphil_model_config, input_width), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field model_info[] = {
    {"spec_hash", offsetof(exphil_model_info, spec_hash), F_U64, 1, 0, NULL},
    {"weights_hash", offsetof(exphil_model_info, weights_hash), F_U64, 1, 0, NULL},
    {"parameter_count", offsetof(exphil_model_info, parameter_count), F_I64, 1, 0, NULL},
    {"tensor_count", offsetof(exphil_model_info, tensor_count), F_I64, 1, 0, NULL},
    {"float_count", offsetof(exphil_model_info, float_count), F_I64, 1, 0, NULL},
    {"id_count", offsetof(exphil_model_info, id_count), F_I64, 1, 0, NULL},
    {"head_count", offsetof(exphil_model_info, head_count), F_I64, 1, 0, NULL},
    {"logit_count", offsetof(exphil_model_info, logit_count), F_I64, 1, 0, NULL},
    {"hidden", offsetof(exphil_model_info, hidden), F_I64, 1, 0, NULL},
    {"window_frames", offsetof(exphil_model_info, window_frames), F_I64, 1, 0, NULL},
    {"state_bytes", offsetof(exphil_model_info, state_bytes), F_I64, 1, 0, NULL},
    {"trained_updates", offsetof(exphil_model_info, trained_updates), F_I64, 1, 0, NULL},
    {"trained_frames", offsetof(exphil_model_info, trained_frames), F_I64, 1, 0, NULL},
    {"delay_frames", offsetof(exphil_model_info, delay_frames), F_I32, 1, 0, NULL},
    {"action_slots", offsetof(exphil_model_info, action_slots), F_I32, 1, 0, NULL},
    {"mode", offsetof(exphil_model_info, mode), F_I32, 1, 0, NULL},
    {"heads", offsetof(exphil_model_info, heads), F_I32, 1, 0, NULL},
    {"type", offsetof(exphil_model_info, type), F_I32, 1, 0, NULL},
    {"layout", offsetof(exphil_model_info, layout), F_TEXT, 1, 0, NULL},
    {"codec", offsetof(exphil_model_info, codec), F_TEXT, 1, 0, NULL},
    {"blocks", offsetof(exphil_model_info, blocks), F_TEXT, 1, 0, NULL},
    {"weights", offsetof(exphil_model_info, weights), F_I32, 1, 0, NULL},
    {"calibrated", offsetof(exphil_model_info, calibrated), F_FLAG, 1, 0, NULL},
    {"neutral_start", offsetof(exphil_model_info, neutral_start), F_FLAG, 1, 0, NULL},
    {"condition_count", offsetof(exphil_model_info, condition_count), F_I64, 1, 0, NULL},
    {"delay_count", offsetof(exphil_model_info, delay_count), F_I64, 1, 0, NULL},
    {"value", offsetof(exphil_model_info, value), F_I32, 1, 0, NULL},
    {"norm_epsilon", offsetof(exphil_model_info, norm_epsilon), F_F64, 1, 0, NULL},
    {"head_units", offsetof(exphil_model_info, head_units), F_I64, 1, 0, NULL},
    {"no_final_norm", offsetof(exphil_model_info, no_final_norm), F_FLAG, 1, 0, NULL},
    {"head_layers", offsetof(exphil_model_info, head_layers), F_I32, 1, 0, NULL},
    {"head_activation", offsetof(exphil_model_info, head_activation), F_I32, 1, 0, NULL},
    {"head_last", offsetof(exphil_model_info, head_last), F_FLAG, 1, 0, NULL},
    {"no_head_past", offsetof(exphil_model_info, no_head_past), F_FLAG, 1, 0, NULL},
    {"no_head_trunk", offsetof(exphil_model_info, no_head_trunk), F_FLAG, 1, 0, NULL},
    {"input_width", offsetof(exphil_model_info, input_width), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field optimizer_config[] = {
    {"rate", offsetof(exphil_optimizer_config, rate), F_F64, 1, 0, NULL},
    {"beta1", offsetof(exphil_optimizer_config, beta1), F_F64, 1, 0, NULL},
    {"beta2", offsetof(exphil_optimizer_config, beta2), F_F64, 1, 0, NULL},
    {"epsilon", offsetof(exphil_optimizer_config, epsilon), F_F64, 1, 0, NULL},
    {"decay", offsetof(exphil_optimizer_config, decay), F_F64, 1, 0, NULL},
    {"clip_norm", offsetof(exphil_optimizer_config, clip_norm), F_F64, 1, 0, NULL},
    {"ema_decay", offsetof(exphil_optimizer_config, ema_decay), F_F64, 1, 0, NULL},
    {"low_ratio", offsetof(exphil_optimizer_config, low_ratio), F_F64, 1, 0, NULL},
    {"restart_factor", offsetof(exphil_optimizer_config, restart_factor), F_F64, 1, 0, NULL},
    {"warmup_updates", offsetof(exphil_optimizer_config, warmup_updates), F_I64, 1, 0, NULL},
    {"total_updates", offsetof(exphil_optimizer_config, total_updates), F_I64, 1, 0, NULL},
    {"restart_updates", offsetof(exphil_optimizer_config, restart_updates), F_I64, 1, 0, NULL},
    {"schedule", offsetof(exphil_optimizer_config, schedule), F_I32, 1, 0, NULL},
    {"resume_new_total", offsetof(exphil_optimizer_config, resume_new_total), F_FLAG, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field head_loss[] = {
    {"weight", offsetof(exphil_head_loss, weight), F_F64, 1, 0, NULL},
    {"smoothing", offsetof(exphil_head_loss, smoothing), F_F64, 1, 0, NULL},
    {"focal_gamma", offsetof(exphil_head_loss, focal_gamma), F_F64, 1, 0, NULL},
    {"positive_weight", offsetof(exphil_head_loss, positive_weight), F_POINTER, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field trainer_config[] = {
    {"losses", offsetof(exphil_trainer_config, losses), F_POINTER, 1, 0, NULL},
    {"loss_scale", offsetof(exphil_trainer_config, loss_scale), F_F64, 1, 0, NULL},
    {"accumulate", offsetof(exphil_trainer_config, accumulate), F_I64, 1, 0, NULL},
    {"precision", offsetof(exphil_trainer_config, precision), F_I32, 1, 0, NULL},
    {"activations", offsetof(exphil_trainer_config, activations), F_I32, 1, 0, NULL},
    {"fake_quantize", offsetof(exphil_trainer_config, fake_quantize), F_I32, 1, 0, NULL},
    {"checkpoint_blocks", offsetof(exphil_trainer_config, checkpoint_blocks), F_I32, 1, 0, NULL},
    {"own_past", offsetof(exphil_trainer_config, own_past), F_F64, 1, 0, NULL},
    {"own_past_ramp_updates", offsetof(exphil_trainer_config, own_past_ramp_updates), F_I64, 1, 0, NULL},
    {"own_past_seed", offsetof(exphil_trainer_config, own_past_seed), F_U64, 1, 0, NULL},
    {"saved_weights", offsetof(exphil_trainer_config, saved_weights), F_I32, 1, 0, NULL},
    {"as_played", offsetof(exphil_trainer_config, as_played), F_FLAG, 1, 0, NULL},
    {"reduction", offsetof(exphil_trainer_config, reduction), F_I32, 1, 0, NULL},
    {"shards", offsetof(exphil_trainer_config, shards), F_I32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field metrics[] = {
    {"update", offsetof(exphil_metrics, update), F_I64, 1, 0, NULL},
    {"epoch", offsetof(exphil_metrics, epoch), F_I64, 1, 0, NULL},
    {"frames", offsetof(exphil_metrics, frames), F_I64, 1, 0, NULL},
    {"loss", offsetof(exphil_metrics, loss), F_F64, 1, 0, NULL},
    {"head_loss", offsetof(exphil_metrics, head_loss), F_F64, 16, 0, NULL},
    {"gradient_norm", offsetof(exphil_metrics, gradient_norm), F_F64, 1, 0, NULL},
    {"rate", offsetof(exphil_metrics, rate), F_F64, 1, 0, NULL},
    {"loss_scale", offsetof(exphil_metrics, loss_scale), F_F64, 1, 0, NULL},
    {"time_ns", offsetof(exphil_metrics, time_ns), F_I64, 1, 0, NULL},
    {"waited_ns", offsetof(exphil_metrics, waited_ns), F_I64, 1, 0, NULL},
    {"skipped", offsetof(exphil_metrics, skipped), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field batch[] = {
    {"batch", offsetof(exphil_batch, batch), F_I64, 1, 0, NULL},
    {"time", offsetof(exphil_batch, time), F_I64, 1, 0, NULL},
    {"epoch", offsetof(exphil_batch, epoch), F_I64, 1, 0, NULL},
    {"index", offsetof(exphil_batch, index), F_I64, 1, 0, NULL},
    {"frames", offsetof(exphil_batch, frames), F_I64, 1, 0, NULL},
    {"floats", offsetof(exphil_batch, floats), F_POINTER, 1, 0, NULL},
    {"ids", offsetof(exphil_batch, ids), F_POINTER, 1, 0, NULL},
    {"past", offsetof(exphil_batch, past), F_POINTER, 1, 0, NULL},
    {"actions", offsetof(exphil_batch, actions), F_POINTER, 1, 0, NULL},
    {"mask", offsetof(exphil_batch, mask), F_POINTER, 1, 0, NULL},
    {"reset", offsetof(exphil_batch, reset), F_POINTER, 1, 0, NULL},
    {"dropped", offsetof(exphil_batch, dropped), F_POINTER, 1, 0, NULL},
    {"conditions", offsetof(exphil_batch, conditions), F_POINTER, 1, 0, NULL},
    {"rows", offsetof(exphil_batch, rows), F_POINTER, 1, 0, NULL},
    {"returns", offsetof(exphil_batch, returns), F_POINTER, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field head_play[] = {
    {"temperature", offsetof(exphil_head_play, temperature), F_F32, 1, 0, NULL},
    {"deterministic", offsetof(exphil_head_play, deterministic), F_FLAG, 1, 0, NULL},
    {"press", offsetof(exphil_head_play, press), F_F32, 1, 0, NULL},
    {"release", offsetof(exphil_head_play, release), F_F32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field session_config[] = {
    {"heads", offsetof(exphil_session_config, heads), F_POINTER, 1, 0, NULL},
    {"spec", offsetof(exphil_session_config, spec), F_POINTER, 1, 0, NULL},
    {"delay_frames", offsetof(exphil_session_config, delay_frames), F_POINTER, 1, 0, NULL},
    {"mode", offsetof(exphil_session_config, mode), F_POINTER, 1, 0, NULL},
    {"seed", offsetof(exphil_session_config, seed), F_U64, 1, 0, NULL},
    {"streams", offsetof(exphil_session_config, streams), F_I64, 1, 0, NULL},
    {"deadline_ns", offsetof(exphil_session_config, deadline_ns), F_I64, 1, 0, NULL},
    {"deterministic", offsetof(exphil_session_config, deterministic), F_FLAG, 1, 0, NULL},
    {"deliver", offsetof(exphil_session_config, deliver), F_I32, 1, 0, NULL},
    {"conditions", offsetof(exphil_session_config, conditions), F_POINTER, 1, 0, NULL},
    {"condition_count", offsetof(exphil_session_config, condition_count), F_I64, 1, 0, NULL},
    {"adoptable", offsetof(exphil_session_config, adoptable), F_FLAG, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field session_info[] = {
    {"steps", offsetof(exphil_session_info, steps), F_I64, 1, 0, NULL},
    {"missed", offsetof(exphil_session_info, missed), F_I64, 1, 0, NULL},
    {"latency", offsetof(exphil_session_info, latency), F_I64, 64, 0, NULL},
    {"last_ns", offsetof(exphil_session_info, last_ns), F_I64, 1, 0, NULL},
    {"max_ns", offsetof(exphil_session_info, max_ns), F_I64, 1, 0, NULL},
    {"p50_ns", offsetof(exphil_session_info, p50_ns), F_I64, 1, 0, NULL},
    {"p99_ns", offsetof(exphil_session_info, p99_ns), F_I64, 1, 0, NULL},
    {"streams", offsetof(exphil_session_info, streams), F_I64, 1, 0, NULL},
    {"float_count", offsetof(exphil_session_info, float_count), F_I64, 1, 0, NULL},
    {"id_count", offsetof(exphil_session_info, id_count), F_I64, 1, 0, NULL},
    {"head_count", offsetof(exphil_session_info, head_count), F_I64, 1, 0, NULL},
    {"logit_count", offsetof(exphil_session_info, logit_count), F_I64, 1, 0, NULL},
    {"state_bytes", offsetof(exphil_session_info, state_bytes), F_I64, 1, 0, NULL},
    {"adoptions", offsetof(exphil_session_info, adoptions), F_I64, 1, 0, NULL},
    {"weights_hash", offsetof(exphil_session_info, weights_hash), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field rollout_config[] = {
    {"time", offsetof(exphil_rollout_config, time), F_I64, 1, 0, NULL},
    {"seed", offsetof(exphil_rollout_config, seed), F_U64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field learner_config[] = {
    {"surrogate", offsetof(exphil_learner_config, surrogate), F_F64, 1, 0, NULL},
    {"clip", offsetof(exphil_learner_config, clip), F_F64, 1, 0, NULL},
    {"value", offsetof(exphil_learner_config, value), F_F64, 1, 0, NULL},
    {"to_old", offsetof(exphil_learner_config, to_old), F_F64, 1, 0, NULL},
    {"to_teacher", offsetof(exphil_learner_config, to_teacher), F_F64, 1, 0, NULL},
    {"from_teacher", offsetof(exphil_learner_config, from_teacher), F_F64, 1, 0, NULL},
    {"entropy", offsetof(exphil_learner_config, entropy), F_F64, 1, 0, NULL},
    {"imitation", offsetof(exphil_learner_config, imitation), F_F64, 1, 0, NULL},
    {"half_life_frames", offsetof(exphil_learner_config, half_life_frames), F_F64, 1, 0, NULL},
    {"lambda", offsetof(exphil_learner_config, lambda), F_F64, 1, 0, NULL},
    {"most_kl", offsetof(exphil_learner_config, most_kl), F_F64, 1, 0, NULL},
    {"reward_scale", offsetof(exphil_learner_config, reward_scale), F_F64, 1, 0, NULL},
    {"epochs", offsetof(exphil_learner_config, epochs), F_I64, 1, 0, NULL},
    {"batches", offsetof(exphil_learner_config, batches), F_I64, 1, 0, NULL},
    {"burn_in", offsetof(exphil_learner_config, burn_in), F_I64, 1, 0, NULL},
    {"value_only", offsetof(exphil_learner_config, value_only), F_I64, 1, 0, NULL},
    {"seed", offsetof(exphil_learner_config, seed), F_U64, 1, 0, NULL},
    {"normalise", offsetof(exphil_learner_config, normalise), F_I32, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field learner_metrics[] = {
    {"chunks", offsetof(exphil_learner_metrics, chunks), F_I64, 1, 0, NULL},
    {"updates", offsetof(exphil_learner_metrics, updates), F_I64, 1, 0, NULL},
    {"rows", offsetof(exphil_learner_metrics, rows), F_I64, 1, 0, NULL},
    {"imitated", offsetof(exphil_learner_metrics, imitated), F_I64, 1, 0, NULL},
    {"episodes", offsetof(exphil_learner_metrics, episodes), F_I64, 1, 0, NULL},
    {"episode_return", offsetof(exphil_learner_metrics, episode_return), F_F64, 1, 0, NULL},
    {"episode_frames", offsetof(exphil_learner_metrics, episode_frames), F_F64, 1, 0, NULL},
    {"reward", offsetof(exphil_learner_metrics, reward), F_F64, 1, 0, NULL},
    {"kl_old", offsetof(exphil_learner_metrics, kl_old), F_F64, 1, 0, NULL},
    {"kl_to_teacher", offsetof(exphil_learner_metrics, kl_to_teacher), F_F64, 1, 0, NULL},
    {"kl_from_teacher", offsetof(exphil_learner_metrics, kl_from_teacher), F_F64, 1, 0, NULL},
    {"entropy", offsetof(exphil_learner_metrics, entropy), F_F64, 1, 0, NULL},
    {"ratio", offsetof(exphil_learner_metrics, ratio), F_F64, 1, 0, NULL},
    {"clipped", offsetof(exphil_learner_metrics, clipped), F_F64, 1, 0, NULL},
    {"nll", offsetof(exphil_learner_metrics, nll), F_F64, 1, 0, NULL},
    {"value_loss", offsetof(exphil_learner_metrics, value_loss), F_F64, 1, 0, NULL},
    {"unexplained", offsetof(exphil_learner_metrics, unexplained), F_F64, 1, 0, NULL},
    {"loss", offsetof(exphil_learner_metrics, loss), F_F64, 1, 0, NULL},
    {"gradient_norm", offsetof(exphil_learner_metrics, gradient_norm), F_F64, 1, 0, NULL},
    {"recomputed", offsetof(exphil_learner_metrics, recomputed), F_F64, 1, 0, NULL},
    {"taken_back", offsetof(exphil_learner_metrics, taken_back), F_FLAG, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

static const struct field record[] = {
    {"episodes", offsetof(exphil_record, episodes), F_I64, 1, 0, NULL},
    {"won", offsetof(exphil_record, won), F_I64, 1, 0, NULL},
    {"lost", offsetof(exphil_record, lost), F_I64, 1, 0, NULL},
    {NULL, 0, F_I32, 0, 0, NULL}
};

const struct table play_structs[] = {
    {"context_config", sizeof(exphil_context_config), 1, context_config},
    {"memory_info", sizeof(exphil_memory_info), 1, memory_info},
    {"id_spec", sizeof(exphil_id_spec), 0, id_spec},
    {"head_spec", sizeof(exphil_head_spec), 0, head_spec},
    {"spec", sizeof(exphil_spec), 1, spec},
    {"melee_character", sizeof(exphil_melee_character), 0, melee_character},
    {"melee_item", sizeof(exphil_melee_item), 0, melee_item},
    {"melee_frame", sizeof(exphil_melee_frame), 1, melee_frame},
    {"pad", sizeof(exphil_pad), 0, pad},
    {"model_config", sizeof(exphil_model_config), 1, model_config},
    {"model_info", sizeof(exphil_model_info), 1, model_info},
    {"optimizer_config", sizeof(exphil_optimizer_config), 1, optimizer_config},
    {"head_loss", sizeof(exphil_head_loss), 0, head_loss},
    {"trainer_config", sizeof(exphil_trainer_config), 1, trainer_config},
    {"metrics", sizeof(exphil_metrics), 1, metrics},
    {"batch", sizeof(exphil_batch), 1, batch},
    {"head_play", sizeof(exphil_head_play), 0, head_play},
    {"session_config", sizeof(exphil_session_config), 1, session_config},
    {"session_info", sizeof(exphil_session_info), 1, session_info},
    {"rollout_config", sizeof(exphil_rollout_config), 1, rollout_config},
    {"learner_config", sizeof(exphil_learner_config), 1, learner_config},
    {"learner_metrics", sizeof(exphil_learner_metrics), 1, learner_metrics},
    {"record", sizeof(exphil_record), 1, record},
    {NULL, 0, 0, NULL}
};

const struct constant play_buttons[] = {
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

const struct constant play_known[] = {
    {"AGE", EXPHIL_MELEE_HAS_AGE},
    {"FLAGS", EXPHIL_MELEE_HAS_FLAGS},
    {"HURTBOX", EXPHIL_MELEE_HAS_HURTBOX},
    {"SPEED", EXPHIL_MELEE_HAS_SPEED},
    {"HITLAG", EXPHIL_MELEE_HAS_HITLAG},
    {"ALL", EXPHIL_MELEE_HAS_ALL},
    {NULL, 0}
};
