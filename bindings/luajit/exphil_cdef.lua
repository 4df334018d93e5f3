-- Made by `tools/abi bindings` from include/exphil: do not edit.
return {
    version = { 0, 2, 0 },
    -- What a structure that the library filled tells.
    told = {
        exphil_model_info = {
            counts = "parameter_count tensor_count float_count id_count head_count logit_count hidden window_frames state_bytes trained_updates trained_frames delay_frames action_slots mode heads type weights calibrated neutral_start condition_count delay_count value norm_epsilon head_units no_final_norm head_layers head_activation head_last no_head_past no_head_trunk input_width",
            hashes = "spec_hash weights_hash",
            texts = "layout codec blocks",
        },
        exphil_replay_result = {
            counts = "episodes frames frames_masked truncated",
            hashes = "",
            texts = "",
        },
        exphil_dataset_info = {
            counts = "frames episodes games float_count id_count head_count constant_floats recovered",
            hashes = "spec_hash content_hash",
            texts = "layout codec",
        },
        exphil_metrics = {
            counts = "update epoch frames loss gradient_norm rate time_ns waited_ns skipped",
            hashes = "",
            texts = "",
        },
        exphil_report = {
            counts = "frames change_frames loss nll frequency_nll exact_accuracy exact_change_accuracy exact_majority exact_majority_change exact_copy heads alone_most_frames alone_frames alone_change_frames alone_nll alone_accuracy alone_change_accuracy value_frames value_loss unexplained",
            hashes = "",
            texts = "",
        },
        exphil_session_info = {
            counts = "steps missed last_ns max_ns p50_ns p99_ns streams float_count id_count head_count logit_count state_bytes adoptions weights_hash",
            hashes = "",
            texts = "",
        },
    },
    declarations = [[
uint32_t exphil_version(void);
const char *exphil_version_string(void);
typedef int32_t exphil_status;
enum { EXPHIL_OK = 0, EXPHIL_END = 1, EXPHIL_AGAIN = 2, EXPHIL_E_INVALID = -1, EXPHIL_E_MEMORY = -2, EXPHIL_E_IO = -3, EXPHIL_E_FORMAT = -4, EXPHIL_E_UNSUPPORTED = -5, EXPHIL_E_DEVICE = -6, EXPHIL_E_STATE = -7, EXPHIL_E_BUSY = -8, EXPHIL_E_VERSION = -9, EXPHIL_E_CANCELLED = -10, EXPHIL_E_NUMERIC = -11, EXPHIL_E_MISMATCH = -12, EXPHIL_E_INTERNAL = -13 };
const char *exphil_status_name(exphil_status status);
typedef struct exphil_error { size_t struct_size; exphil_status status; int32_t native_code; char message[240]; } exphil_error;
typedef struct exphil_allocator { size_t struct_size; void *user; void *(*alloc)(void *user, size_t size_bytes, size_t align_bytes); void (*free)(void *user, void *pointer, size_t size_bytes); } exphil_allocator;
enum { EXPHIL_IO_READ = 1, EXPHIL_IO_CREATE = 2 };
enum { EXPHIL_IO_ABSENT = 0, EXPHIL_IO_FILE = 1, EXPHIL_IO_FOLDER = 2, EXPHIL_IO_OTHER = 3 };
typedef struct exphil_io { size_t struct_size; void *user; int32_t (*kind)(void *user, const char *path, int32_t *kind); int32_t (*open)(void *user, const char *path, int32_t mode, void **file); int32_t (*size)(void *user, void *file, uint64_t *size_bytes); int32_t (*read)(void *user, void *file, uint64_t offset_bytes, void *data, size_t size_bytes, size_t *done_bytes); int32_t (*write)(void *user, void *file, const void *data, size_t size_bytes, size_t *done_bytes); int32_t (*sync)(void *user, void *file); int32_t (*close)(void *user, void *file); int32_t (*rename)(void *user, const char *from, const char *to); int32_t (*remove)(void *user, const char *path); int32_t (*sync_folder)(void *user, const char *path_of_file); int32_t (*map)(void *user, void *file, size_t size_bytes, const void **data); int32_t (*unmap)(void *user, const void *data, size_t size_bytes); int32_t (*list)(void *user, const char *folder, int32_t (*name)(void *to, const char *name), void *to); } exphil_io;
typedef int32_t exphil_log_level;
enum { EXPHIL_LOG_ERROR = 1, EXPHIL_LOG_WARNING = 2, EXPHIL_LOG_INFO = 3, EXPHIL_LOG_DEBUG = 4 };
typedef void (*exphil_log_fn)(void *user, exphil_log_level level, const char *message);
typedef struct exphil_executor { size_t struct_size; void *user; int32_t workers; uint32_t flags; void (*parallel_for)(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count); } exphil_executor;
typedef int32_t (*exphil_cancel_fn)(void *user);
typedef struct exphil_context exphil_context;
typedef struct exphil_context_config { size_t struct_size; const exphil_allocator *allocator; const exphil_io *io; const exphil_executor *executor; exphil_log_fn log; void *log_user; exphil_cancel_fn cancel; void *cancel_user; const char *device; const char *cpu_isa; const char *backend_path; size_t memory_limit_bytes; int32_t threads; exphil_log_level log_level; } exphil_context_config;
exphil_status exphil_context_create(const exphil_context_config *config, exphil_context **context, exphil_error *error);
void exphil_context_destroy(exphil_context *context);
typedef struct exphil_device_info { size_t struct_size; int64_t memory_bytes; int32_t index; int32_t workers; char id[32]; char name[128]; char isa[32]; } exphil_device_info;
int64_t exphil_device_count(void);
exphil_status exphil_device_get(int64_t index, exphil_device_info *info, exphil_error *error);
exphil_status exphil_context_device(const exphil_context *context, exphil_device_info *info, exphil_error *error);
typedef struct exphil_memory_info { size_t struct_size; uint64_t host_used_bytes; uint64_t host_peak_bytes; uint64_t host_allocations; uint64_t device_used_bytes; uint64_t device_peak_bytes; uint64_t device_requests; uint64_t device_reused; uint64_t pinned_used_bytes, pinned_peak_bytes; } exphil_memory_info;
exphil_status exphil_context_memory(const exphil_context *context, exphil_memory_info *info, exphil_error *error);
typedef struct exphil_id_spec { const char *name; int32_t entries; int32_t width; } exphil_id_spec;
enum { EXPHIL_BERNOULLI = 0, EXPHIL_CATEGORICAL = 1 };
typedef struct exphil_head_spec { const char *name; int32_t kind; int32_t count; int32_t neutral; int32_t reserved; } exphil_head_spec;
typedef struct exphil_condition_spec { const char *name; int32_t values; int32_t width; double mask; } exphil_condition_spec;
typedef struct exphil_spec { size_t struct_size; const char *layout; const char *codec; int64_t float_count; int64_t id_count; const exphil_id_spec *ids; int64_t head_count; const exphil_head_spec *heads; uint64_t layout_hash; } exphil_spec;
uint64_t exphil_spec_hash(const exphil_spec *spec);
exphil_status exphil_melee_spec(const char *layout, const char *codec, exphil_spec *spec, exphil_error *error);
typedef struct exphil_melee_field { size_t struct_size; int64_t offset; int64_t count; double scale, low, high; int32_t is_id; int32_t reserved; char name[64]; char source[64]; } exphil_melee_field;
int64_t exphil_melee_field_count(const char *layout);
exphil_status exphil_melee_field_get(const char *layout, int64_t index, exphil_melee_field *field, exphil_error *error);
const char *exphil_melee_character_name(int32_t external);
const char *exphil_melee_stage_name(int32_t external);
enum { EXPHIL_MELEE_HAS_AGE = 1, EXPHIL_MELEE_HAS_FLAGS = 2, EXPHIL_MELEE_HAS_HURTBOX = 4, EXPHIL_MELEE_HAS_SPEED = 8, EXPHIL_MELEE_HAS_HITLAG = 16, EXPHIL_MELEE_HAS_ALL = 31 };
typedef struct exphil_melee_character { int32_t present; uint32_t known; float x, y, facing, percent, shield, state_age, misc; float speed_air_x, speed_y, speed_attack_x, speed_attack_y, speed_ground_x, hitlag; uint16_t action_state, ground; uint8_t character; uint8_t stocks, last_attack, combo, last_hit_by, airborne, jumps, l_cancel, hurtbox; uint8_t flags[5]; uint8_t reserved[2]; } exphil_melee_character;
typedef struct exphil_melee_item { float facing, speed_x, speed_y, x, y, timer; uint32_t spawn_id; uint16_t type, damage; uint8_t state, misc[4]; int8_t owner; uint8_t reserved[2]; } exphil_melee_item;
typedef struct exphil_melee_frame { size_t struct_size; int32_t frame; int32_t stage; int32_t own_port, opponent_port; exphil_melee_character player[4]; exphil_melee_character follower[4]; float platform_left, platform_right; int32_t wind; int32_t stadium_kind, stadium_event; int32_t item_count; exphil_melee_item item[15]; } exphil_melee_frame;
enum { EXPHIL_PAD_D_LEFT = 0x0001, EXPHIL_PAD_D_RIGHT = 0x0002, EXPHIL_PAD_D_DOWN = 0x0004, EXPHIL_PAD_D_UP = 0x0008, EXPHIL_PAD_Z = 0x0010, EXPHIL_PAD_R = 0x0020, EXPHIL_PAD_L = 0x0040, EXPHIL_PAD_A = 0x0100, EXPHIL_PAD_B = 0x0200, EXPHIL_PAD_X = 0x0400, EXPHIL_PAD_Y = 0x0800, EXPHIL_PAD_START = 0x1000 };
typedef struct exphil_pad { uint32_t buttons; float main_x, main_y, c_x, c_y, trigger; } exphil_pad;
exphil_status exphil_melee_encode(const char *layout, const exphil_melee_frame *frame, float *floats, int32_t *ids, exphil_error *error);
exphil_status exphil_melee_pad_encode(const char *codec, const exphil_pad *pad, int32_t *action, exphil_error *error);
exphil_status exphil_melee_pad_decode(const char *codec, const int32_t *action, exphil_pad *pad, exphil_error *error);
typedef struct exphil_model exphil_model;
enum { EXPHIL_MODE_CARRY = 0, EXPHIL_MODE_WINDOW = 1 };
enum { EXPHIL_HEADS_INDEPENDENT = 0, EXPHIL_HEADS_AUTOREGRESSIVE = 1 };
enum { EXPHIL_TYPE_F32 = 0, EXPHIL_TYPE_F64 = 1, EXPHIL_TYPE_BF16 = 2, EXPHIL_TYPE_I8 = 3, EXPHIL_TYPE_F16 = 4 };
enum { EXPHIL_VALUE_NONE = 0, EXPHIL_VALUE_DETACHED = 1, EXPHIL_VALUE_SHARED = 2 };
enum { EXPHIL_ACTIVATION_SILU = 0, EXPHIL_ACTIVATION_RELU = 1, EXPHIL_ACTIVATION_GELU_TANH = 2 };
typedef struct exphil_model_config { size_t struct_size; const exphil_spec *spec; const char *blocks; uint64_t seed; int64_t hidden; int64_t head_width; int64_t mamba_states; int64_t mamba_expand; int64_t mamba_taps; int64_t mamba_rank; int64_t attention_heads; int64_t attention_dim; int64_t attention_window_frames; int64_t ffn_expand; int64_t window_frames; int32_t delay_frames; int32_t no_previous_action; int32_t mode; int32_t heads; int32_t type; int32_t reserved; int32_t neutral_start; int32_t reserved_2; const exphil_condition_spec *conditions; const int32_t *delays; int64_t condition_count; int64_t delay_count; int32_t value; int32_t reserved_3; double norm_epsilon; int64_t head_units; int32_t no_final_norm; int32_t head_layers; int32_t head_activation; int32_t head_last; int32_t no_head_past; int32_t no_head_trunk; int64_t input_width; } exphil_model_config;
exphil_status exphil_model_create(exphil_context *context, const exphil_model_config *config, exphil_model **model, exphil_error *error);
exphil_status exphil_model_load(exphil_context *context, const char *path, exphil_model **model, exphil_error *error);
exphil_status exphil_model_load_memory(exphil_context *context, const void *data, size_t size_bytes, exphil_model **model, exphil_error *error);
exphil_status exphil_model_save(const exphil_model *model, const char *path, exphil_error *error);
void exphil_model_destroy(exphil_model *model);
typedef struct exphil_model_info { size_t struct_size; uint64_t spec_hash; uint64_t weights_hash; int64_t parameter_count; int64_t tensor_count; int64_t float_count, id_count, head_count, logit_count; int64_t hidden; int64_t window_frames; uint64_t state_bytes; uint64_t trained_updates, trained_frames; int32_t delay_frames; int32_t action_slots; int32_t mode, heads, type, reserved; char layout[32], codec[32]; char blocks[256]; int32_t weights; int32_t calibrated; int32_t neutral_start; int32_t reserved_2; int64_t condition_count, delay_count; int32_t value; int32_t reserved_3; double norm_epsilon; int64_t head_units; int32_t no_final_norm, head_layers, head_activation, head_last, no_head_past, no_head_trunk; int64_t input_width; } exphil_model_info;
exphil_status exphil_model_query(const exphil_model *model, exphil_model_info *info, exphil_error *error);
exphil_status exphil_model_spec(const exphil_model *model, exphil_spec *spec, exphil_error *error);
typedef struct exphil_tensor_info { size_t struct_size; int64_t dim[4]; uint64_t size_bytes; int32_t rank; int32_t type; char name[128]; } exphil_tensor_info;
exphil_status exphil_model_tensor_info(const exphil_model *model, int64_t index, exphil_tensor_info *info, exphil_error *error);
exphil_status exphil_model_tensor_get(const exphil_model *model, const char *name, void *data, size_t size_bytes, exphil_error *error);
exphil_status exphil_model_tensor_set(exphil_model *model, const char *name, const void *data, size_t size_bytes, exphil_error *error);
struct DLManagedTensor;
struct DLManagedTensorVersioned;
exphil_status exphil_model_tensor_to_dlpack(const exphil_model *model, const char *name, struct DLManagedTensor **tensor, exphil_error *error);
exphil_status exphil_model_tensor_to_dlpack_versioned(const exphil_model *model, const char *name, struct DLManagedTensorVersioned **tensor, exphil_error *error);
exphil_status exphil_model_tensor_from_dlpack(exphil_model *model, const char *name, const struct DLManagedTensor *tensor, exphil_error *error);
exphil_status exphil_model_quantize(const exphil_model *model, int32_t type, exphil_model **quantized, exphil_error *error);
typedef struct exphil_head_comparison { double max_error, rms_error; double kl; double agreement; } exphil_head_comparison;
typedef struct exphil_comparison { size_t struct_size; uint64_t reference_hash; uint64_t content_hash; int64_t frames; double max_error, rms_error; double kl; double agreement; int64_t heads; exphil_head_comparison head[16]; } exphil_comparison;
exphil_status exphil_model_calibration_set(exphil_model *model, const exphil_comparison *comparison, exphil_error *error);
exphil_status exphil_model_calibration_get(const exphil_model *model, exphil_comparison *comparison, exphil_error *error);
exphil_status exphil_model_export_onnx(const exphil_model *model, const char *path, exphil_error *error);
typedef struct exphil_dataset exphil_dataset;
typedef struct exphil_dataset_config { size_t struct_size; const exphil_spec *spec; } exphil_dataset_config;
exphil_status exphil_dataset_create(exphil_context *context, const exphil_dataset_config *config, exphil_dataset **dataset, exphil_error *error);
exphil_status exphil_dataset_open(exphil_context *context, const char *path, exphil_dataset **dataset, exphil_error *error);
exphil_status exphil_dataset_save(const exphil_dataset *dataset, const char *path, exphil_error *error);
exphil_status exphil_dataset_verify(const exphil_dataset *dataset, exphil_error *error);
void exphil_dataset_destroy(exphil_dataset *dataset);
typedef struct exphil_replay_config { size_t struct_size; const char *character; int32_t port; int32_t opponent_port; int32_t first_frame; int32_t last_frame; } exphil_replay_config;
typedef struct exphil_replay_result { size_t struct_size; int64_t episodes, frames; int64_t frames_masked; int32_t truncated; int32_t reserved; } exphil_replay_result;
exphil_status exphil_dataset_add_replay(exphil_dataset *dataset, const char *path, const exphil_replay_config *config, exphil_replay_result *result, exphil_error *error);
exphil_status exphil_dataset_add_replay_memory(exphil_dataset *dataset, const void *data, size_t size_bytes, const exphil_replay_config *config, exphil_replay_result *result, exphil_error *error);
exphil_status exphil_dataset_add_rows(exphil_dataset *dataset, uint64_t game, int64_t frames, const float *floats, const int32_t *ids, const int32_t *actions, exphil_error *error);
typedef struct exphil_dataset_info { size_t struct_size; uint64_t spec_hash; uint64_t content_hash; int64_t frames, episodes, games; int64_t float_count, id_count, head_count; int64_t constant_floats; int32_t recovered; int32_t reserved; char layout[32], codec[32]; } exphil_dataset_info;
exphil_status exphil_dataset_query(const exphil_dataset *dataset, exphil_dataset_info *info, exphil_error *error);
exphil_status exphil_dataset_spec(const exphil_dataset *dataset, exphil_spec *spec, exphil_error *error);
typedef struct exphil_episode_info { size_t struct_size; uint64_t game; int64_t first; int64_t frames; int32_t first_game_frame; int32_t port, opponent_port, stage; int32_t character, opponent_character; uint64_t group; } exphil_episode_info;
exphil_status exphil_dataset_episode(const exphil_dataset *dataset, int64_t index, exphil_episode_info *info, exphil_error *error);
exphil_status exphil_dataset_frame(const exphil_dataset *dataset, int64_t index, float *floats, int32_t *ids, int32_t *action, exphil_error *error);
exphil_status exphil_dataset_rows(const exphil_dataset *dataset, int64_t first, int64_t count, float *floats, int32_t *ids, int32_t *actions, int64_t *episodes, exphil_error *error);
exphil_status exphil_dataset_weight(exphil_dataset *dataset, uint64_t game, int32_t port, int32_t first_frame, int32_t last_frame, double weight, exphil_error *error);
enum { EXPHIL_SPLIT_GAME = 0, EXPHIL_SPLIT_TIME = 1, EXPHIL_SPLIT_STABLE = 2 };
typedef struct exphil_split_config { size_t struct_size; double held_out; uint64_t seed; int32_t by; int32_t reserved; } exphil_split_config;
exphil_status exphil_dataset_split(const exphil_dataset *dataset, const exphil_split_config *config, exphil_dataset **kept, exphil_dataset **held_out, exphil_error *error);
typedef struct exphil_prefetcher exphil_prefetcher;
typedef struct exphil_sampling { size_t struct_size; int64_t batch; int64_t time; int64_t stride; int64_t segment_frames; uint64_t seed; int32_t mode; int32_t delay_frames; int32_t action_slots; int32_t in_order; int32_t last_only; int32_t buffers; int32_t neutral_start; int32_t reserved; int64_t shuffle_frames; int64_t memory_bytes; int32_t workers; int32_t reserved_2; double drop_past; double mirror; const exphil_condition_spec *conditions; const int32_t *delays; int64_t condition_count, delay_count; double balance_character; double balance_action; double balance_change; int64_t first_lane, lane_count; } exphil_sampling;
exphil_status exphil_model_sampling(const exphil_model *model, exphil_sampling *sampling, exphil_error *error);
typedef struct exphil_batch { size_t struct_size; int64_t batch, time; int64_t epoch, index; int64_t frames; const float *floats; const int32_t *ids; const int32_t *past; const int32_t *actions; const float *mask; const uint8_t *reset; const uint8_t *dropped; const int32_t *conditions; const int64_t *rows; const float *returns; } exphil_batch;
exphil_status exphil_prefetcher_create(const exphil_dataset *dataset, const exphil_sampling *sampling, exphil_prefetcher **prefetcher, exphil_error *error);
exphil_status exphil_prefetcher_next(exphil_prefetcher *prefetcher, exphil_batch *batch, exphil_error *error);
exphil_status exphil_prefetcher_seek(exphil_prefetcher *prefetcher, int64_t epoch, int64_t index, exphil_error *error);
typedef struct exphil_prefetcher_info { size_t struct_size; int64_t batches_per_epoch; int64_t frames_per_epoch; int64_t delivered; int64_t waited_ns; int64_t worked_ns; int64_t waits; double effective_share; } exphil_prefetcher_info;
exphil_status exphil_prefetcher_query(exphil_prefetcher *prefetcher, exphil_prefetcher_info *info, exphil_error *error);
void exphil_prefetcher_destroy(exphil_prefetcher *prefetcher);
typedef struct exphil_optimizer exphil_optimizer;
enum { EXPHIL_SCHEDULE_CONSTANT = 0, EXPHIL_SCHEDULE_COSINE = 1, EXPHIL_SCHEDULE_RESTARTS = 2 };
typedef struct exphil_optimizer_config { size_t struct_size; double rate; double beta1, beta2; double epsilon; double decay; double clip_norm; double ema_decay; double low_ratio; double restart_factor; int64_t warmup_updates; int64_t total_updates; int64_t restart_updates; int32_t schedule; int32_t reserved; int32_t resume_new_total; int32_t reserved_2; } exphil_optimizer_config;
exphil_status exphil_optimizer_create(const exphil_model *model, const exphil_optimizer_config *config, exphil_optimizer **optimizer, exphil_error *error);
typedef struct exphil_optimizer_info { size_t struct_size; int64_t updates; double rate; uint64_t state_bytes; } exphil_optimizer_info;
exphil_status exphil_optimizer_query(const exphil_optimizer *optimizer, exphil_optimizer_info *info, exphil_error *error);
void exphil_optimizer_destroy(exphil_optimizer *optimizer);
typedef struct exphil_head_loss { double weight; double smoothing; double focal_gamma; const float *positive_weight; } exphil_head_loss;
typedef struct exphil_trainer exphil_trainer;
typedef struct exphil_communicator { size_t struct_size; void *user; int32_t (*all_reduce)(void *user, void *data, int64_t count, int32_t type); int32_t rank, ranks; } exphil_communicator;
struct exphil_device_communicator;
enum { EXPHIL_REDUCTION_MEANS = 0, EXPHIL_REDUCTION_SUMS = 1 };
enum { EXPHIL_PRECISION_F32 = 0, EXPHIL_PRECISION_TF32 = 1, EXPHIL_PRECISION_BF16 = 2, EXPHIL_PRECISION_F16 = 3 };
typedef struct exphil_trainer_config { size_t struct_size; const exphil_head_loss *losses; const exphil_communicator *communicator; double loss_scale; int64_t accumulate; int32_t precision; int32_t activations; int32_t fake_quantize; int32_t checkpoint_blocks; double own_past; int64_t own_past_ramp_updates; uint64_t own_past_seed; int32_t saved_weights; int32_t as_played; int32_t reduction; int32_t shards; const struct exphil_device_communicator *device_communicator; } exphil_trainer_config;
exphil_status exphil_trainer_create(const exphil_model *model, exphil_optimizer *optimizer, exphil_prefetcher *prefetcher, const exphil_trainer_config *config, exphil_trainer **trainer, exphil_error *error);
typedef struct exphil_metrics { size_t struct_size; int64_t update; int64_t epoch; int64_t frames; double loss; double head_loss[16]; double gradient_norm; double rate; double loss_scale; int64_t time_ns; int64_t waited_ns; int64_t skipped; } exphil_metrics;
exphil_status exphil_trainer_step(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error);
exphil_status exphil_trainer_step_batch(exphil_trainer *trainer, const exphil_batch *batch, exphil_metrics *metrics, exphil_error *error);
exphil_status exphil_trainer_wait(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error);
enum { EXPHIL_WEIGHTS = 0, EXPHIL_WEIGHTS_AVERAGED = 1 };
exphil_status exphil_trainer_model(const exphil_trainer *trainer, int32_t which, exphil_model **model, exphil_error *error);
exphil_status exphil_trainer_save(const exphil_trainer *trainer, const char *path, exphil_error *error);
exphil_status exphil_trainer_resume(exphil_trainer *trainer, const char *path, exphil_error *error);
void exphil_trainer_destroy(exphil_trainer *trainer);
typedef struct exphil_head_report { double loss; double nll; double accuracy; double top3; double change_accuracy; double majority_accuracy; double copy_accuracy; double frequency_nll; } exphil_head_report;
typedef struct exphil_report { size_t struct_size; int64_t frames; int64_t change_frames; double loss; double nll, frequency_nll; double exact_accuracy; double exact_change_accuracy; double exact_majority; double exact_majority_change; double exact_copy; int64_t heads; exphil_head_report head[16]; int64_t alone_most_frames; int64_t alone_frames; int64_t alone_change_frames; double alone_nll; double alone_accuracy; double alone_change_accuracy; int64_t value_frames; double value_loss; double unexplained; } exphil_report;
exphil_status exphil_evaluate(const exphil_model *model, const exphil_dataset *dataset, const exphil_dataset *frequencies, const exphil_head_loss *losses, int64_t batch, exphil_report *report, exphil_error *error);
exphil_status exphil_trainer_evaluate(const exphil_trainer *trainer, int32_t which, const exphil_dataset *dataset, const exphil_dataset *frequencies, exphil_report *report, exphil_error *error);
exphil_status exphil_model_compare(const exphil_model *reference, const exphil_model *model, const exphil_dataset *dataset, int64_t batch, exphil_comparison *comparison, exphil_error *error);
typedef struct exphil_session exphil_session;
typedef struct exphil_head_play { float temperature; int32_t deterministic; float press, release; } exphil_head_play;
enum { EXPHIL_DELIVER_DUE = 0, EXPHIL_DELIVER_DECIDED = 1 };
typedef struct exphil_session_config { size_t struct_size; const exphil_head_play *heads; const exphil_spec *spec; const int32_t *delay_frames; const int32_t *mode; uint64_t seed; int64_t streams; int64_t deadline_ns; int32_t deterministic; int32_t deliver; const int32_t *conditions; int64_t condition_count; int32_t adoptable; int32_t reserved; } exphil_session_config;
exphil_status exphil_session_create(const exphil_model *model, const exphil_session_config *config, exphil_session **session, exphil_error *error);
exphil_status exphil_session_clone(const exphil_session *session, exphil_session **clone, exphil_error *error);
void exphil_session_destroy(exphil_session *session);
exphil_status exphil_session_step(exphil_session *session, const exphil_melee_frame *frames, exphil_pad *pads);
exphil_status exphil_session_step_row(exphil_session *session, const float *floats, const int32_t *ids, const float *noise, int32_t *actions);
exphil_status exphil_session_logits(const exphil_session *session, int64_t stream, float *logits, int64_t count);
exphil_status exphil_session_reset(exphil_session *session, int64_t stream);
exphil_status exphil_session_override(exphil_session *session, int64_t stream, const int32_t *action);
size_t exphil_session_state_size(const exphil_session *session);
exphil_status exphil_session_state_save(const exphil_session *session, int64_t stream, void *state, size_t size_bytes);
exphil_status exphil_session_state_restore(exphil_session *session, int64_t stream, const void *state, size_t size_bytes);
typedef struct exphil_session_info { size_t struct_size; uint64_t steps; uint64_t missed; uint64_t latency[64]; int64_t last_ns, max_ns, p50_ns, p99_ns; int64_t streams; int64_t float_count, id_count, head_count, logit_count; uint64_t state_bytes; uint64_t adoptions; uint64_t weights_hash; } exphil_session_info;
exphil_status exphil_session_query(const exphil_session *session, exphil_session_info *info, exphil_error *error);
exphil_status exphil_session_error(const exphil_session *session, exphil_error *error);
]],
}
