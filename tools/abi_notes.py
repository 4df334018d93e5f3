"""What the C types of include/exphil do not say, once for all languages; `tools/abi bindings` reads it.

A field that does not stand here is what its type says. Hooks, pointers and struct_size are told by their types, reserved fields
by their names.
"""

FLAG = "flag"      # an int32_t that is 0 or 1
HASH = "hash"      # 64 bits that are no count: never a float
HIDDEN = "hidden"  # must be 0
# Anything else is the name of an enumeration below.
FIELDS = {
    "exphil_context_config": {"log_level": "LogLevel"},
    "exphil_head_spec": {"kind": "HeadKind"},
    "exphil_spec": {"layout_hash": HASH},
    "exphil_melee_field": {"is_id": FLAG},
    "exphil_model_config": {
        "no_previous_action": FLAG, "neutral_start": FLAG, "mode": "Mode", "heads": "Heads", "type": "DataType",
        "value": "Value", "no_final_norm": FLAG, "head_activation": "Activation", "head_last": FLAG, "no_head_past": FLAG,
        "no_head_trunk": FLAG},
    "exphil_model_info": {
        "spec_hash": HASH, "weights_hash": HASH, "mode": "Mode", "heads": "Heads", "type": "DataType",
        "weights": "DataType", "calibrated": FLAG, "neutral_start": FLAG, "value": "Value",
        "no_final_norm": FLAG, "head_activation": "Activation", "head_last": FLAG, "no_head_past": FLAG,
        "no_head_trunk": FLAG},
    "exphil_tensor_info": {"type": "DataType"},
    "exphil_comparison": {"reference_hash": HASH, "content_hash": HASH},
    "exphil_replay_result": {"truncated": FLAG},
    "exphil_dataset_info": {"spec_hash": HASH, "content_hash": HASH, "recovered": FLAG},
    "exphil_episode_info": {"game": HASH},
    "exphil_split_config": {"by": "Split"},
    "exphil_sampling": {"mode": "Mode", "in_order": FLAG, "last_only": FLAG, "neutral_start": FLAG},
    "exphil_optimizer_config": {"schedule": "Schedule", "resume_new_total": FLAG},
    "exphil_trainer_config": {
        "precision": "Precision", "activations": "DataType", "fake_quantize": "DataType", "saved_weights": "Weights",
        "as_played": FLAG, "reduction": "Reduction"},
    "exphil_head_play": {"deterministic": FLAG},
    "exphil_session_config": {"mode": "Mode", "deterministic": FLAG, "deliver": "Deliver", "adoptable": FLAG},
    "exphil_slp_config": {"rollback": "Rollback", "flags": HIDDEN},
    "exphil_slp_info": {
        "container": "Container", "stop": "Stop", "truncated": FLAG, "rollback": "Rollback", "metadata": "Metadata"},
    "exphil_slp_result": {"reason": "SlpResult"},
    "exphil_games_config": {"stored": FLAG},
    "exphil_games_info": {"hash": HASH, "recovered": FLAG},
    "exphil_games_added": {"content_hash": HASH, "source_hash": HASH, "duplicate": FLAG, "truncated": FLAG},
    "exphil_game_info": {"content_hash": HASH, "source_hash": HASH, "finite": FLAG},
    "exphil_selection": {
        "teams": "Presence", "items": "Presence", "complete": FLAG, "humans": FLAG, "result": "GameResult", "duplicates": FLAG},
    "exphil_plan_config": {"by_hand": FLAG, "no_checkpoint": FLAG},
    "exphil_plan": {"host_peak_purpose": "PlanPurpose", "device_peak_purpose": "PlanPurpose", "fits": FLAG},
    "exphil_outcome_config": {"shuffle": FLAG},
    "exphil_learner_metrics": {"taken_back": FLAG},
    "exphil_match_config": {"deterministic": FLAG},
    "exphil_live_config": {"way": "LiveWay", "paced": FLAG},
}

# What a host fills in; all else is told by the library.
GIVEN = [
    "exphil_context_config", "exphil_id_spec", "exphil_head_spec", "exphil_spec", "exphil_melee_character",
    "exphil_melee_item", "exphil_melee_frame", "exphil_pad", "exphil_model_config", "exphil_dataset_config",
    "exphil_replay_config", "exphil_split_config", "exphil_sampling", "exphil_optimizer_config", "exphil_head_loss",
    "exphil_trainer_config", "exphil_head_play", "exphil_session_config", "exphil_slp_config", "exphil_selection",
    "exphil_plan_config", "exphil_examination", "exphil_rollout_config", "exphil_learner_config", "exphil_match_config",
    "exphil_outcome_config", "exphil_melee_reward_config", "exphil_live_config"]

# Which EXPHIL_MELEE_HAS_... tells that a field of a character is known.
KNOWN = {
    "AGE": "state_age", "FLAGS": "misc ground airborne jumps l_cancel flags", "HURTBOX": "hurtbox",
    "SPEED": "speed_air_x speed_y speed_attack_x speed_attack_y speed_ground_x", "HITLAG": "hitlag"}

# Enumerations: the first name in the header, what stands before a member's word, members of another word, the word of a
# zero that the header does not name, and the docstring, where users see the enumeration by name. Those whose
# members are bits have BITS.
BITS = "bits"
ENUMS = {
    "LogLevel": {"first": "EXPHIL_LOG_ERROR", "prefix": "EXPHIL_LOG_", "zero": "default",
                 "doc": "How much a context tells; 0 stands for WARNING."},
    "HeadKind": {"first": "EXPHIL_BERNOULLI", "prefix": "EXPHIL_",
                 "doc": "What the value of a head is: bits, each on or off, or one of several classes."},
    "Mode": {"first": "EXPHIL_MODE_CARRY", "prefix": "EXPHIL_MODE_",
             "doc": "CARRY: state is carried from frame to frame. WINDOW: every step computes a window that ends at its frame."},
    "Heads": {"first": "EXPHIL_HEADS_INDEPENDENT", "prefix": "EXPHIL_HEADS_",
              "doc": "Whether a head sees the values of the heads before it."},
    "Value": {"first": "EXPHIL_VALUE_NONE", "prefix": "EXPHIL_VALUE_",
              "doc": "Whether a model estimates the return that is still to come, and whether its blocks learn from that."},
    "Activation": {"first": "EXPHIL_ACTIVATION_SILU", "prefix": "EXPHIL_ACTIVATION_",
                   "doc": "What follows a hidden layer of a head."},
    "DataType": {"first": "EXPHIL_TYPE_F32", "prefix": "EXPHIL_TYPE_", "doc": "Types of numbers."},
    "Split": {"first": "EXPHIL_SPLIT_GAME", "prefix": "EXPHIL_SPLIT_",
              "doc": "GAME: whole games are held out, drawn at random. TIME: the last part of every episode is. STABLE: whole "
                     "games, whose side stays when others are added."},
    "Schedule": {"first": "EXPHIL_SCHEDULE_CONSTANT", "prefix": "EXPHIL_SCHEDULE_",
                 "doc": "How the rate goes on after the warm-up."},
    "Precision": {"first": "EXPHIL_PRECISION_F32", "prefix": "EXPHIL_PRECISION_",
                  "doc": "Arithmetic of training; weights and moments stay F32."},
    "Weights": {"first": "EXPHIL_WEIGHTS", "prefix": "EXPHIL_WEIGHTS_", "words": {"EXPHIL_WEIGHTS": "NOW"},
                "doc": "Which weights of a trainer: as they are, or the running average."},
    "Reduction": {"first": "EXPHIL_REDUCTION_MEANS", "prefix": "EXPHIL_REDUCTION_",
                  "doc": "How gradients of ranks are joined. MEANS: the mean of what each has. SUMS: as of one joint batch."},
    "Sums": {"first": "EXPHIL_SUMS_ORDERED", "prefix": "EXPHIL_SUMS_",
             "doc": "Order in which GPUs add up: of the ranks, as a tree, or as NCCL does."},
    "Deliver": {"first": "EXPHIL_DELIVER_DUE", "prefix": "EXPHIL_DELIVER_",
                "doc": "DUE: a step gives the action that is due on this frame. DECIDED: the one just decided."},
    "End": {"first": "EXPHIL_GOES_ON", "prefix": "EXPHIL_",
            "doc": "How an episode stands after a frame. OVER: nothing comes any more. CUT_OFF: it would have gone on."},
    "BlockWeights": {"first": "EXPHIL_BLOCK_CURRENT", "prefix": "EXPHIL_BLOCK_",
                     "doc": "Which weights may have played a block. CURRENT: those that the rollout has. ANY: others too."},
    "LiveWay": {"first": "EXPHIL_LIVE_IMITATE", "prefix": "EXPHIL_LIVE_",
                "doc": "What a policy learns from behind its game. IMITATE: a person who takes over. REINFORCE: rewards."},
    "Rollback": {"first": "EXPHIL_SLP_LAST", "prefix": "EXPHIL_SLP_",
                 "doc": "Which simulation of a frame a replay gives: the last complete one, the first, or all of them."},
    "Dump": {"first": "EXPHIL_SLP_DUMP_STATE", "prefix": "EXPHIL_SLP_DUMP_",
             "doc": "Kinds of canonical dumps of a replay."},
    "Stop": {"first": "EXPHIL_SLP_STOP_COMPLETE", "prefix": "EXPHIL_SLP_STOP_",
             "doc": "Why the events of a replay ended."},
    "Container": {"first": "EXPHIL_SLP_CONTAINER", "prefix": "EXPHIL_SLP_"},
    "Metadata": {"first": "EXPHIL_SLP_METADATA_ABSENT", "prefix": "EXPHIL_SLP_METADATA_"},
    "SlpResult": {"first": "EXPHIL_SLP_RESULT_UNKNOWN", "prefix": "EXPHIL_SLP_RESULT_",
                  "doc": "Why the winner of a replay's game is known, or why there is none."},
    "GameResult": {"first": "EXPHIL_RESULT_ANY", "prefix": "EXPHIL_RESULT_",
                   "doc": "Who won, of whom rows are made."},
    "Presence": {"first": "EXPHIL_WITH_OR_WITHOUT", "prefix": "EXPHIL_",
                 "doc": "Which games are taken: any, only those without, or only those with."},
    "PlanPurpose": {"first": "EXPHIL_PLAN_WEIGHTS", "prefix": "EXPHIL_PLAN_",
                    "doc": "What the memory of a training is for; those from SAVING to ALONE are held for a while only."},
    "Refused": {"first": "EXPHIL_REFUSED_STAGE", "prefix": "EXPHIL_REFUSED_",
                "doc": "Why a player of a game was not taken: where it counts in SelectionReport.refused."},
    "Button": {"kind": BITS, "first": "EXPHIL_PAD_D_LEFT", "prefix": "EXPHIL_PAD_", "doc": "Buttons of a pad."},
    "Known": {"kind": BITS, "first": "EXPHIL_MELEE_HAS_AGE", "prefix": "EXPHIL_MELEE_HAS_",
              "doc": "Which of the later fields of a character are known; a live host sets ALL."},
    "SlpHas": {"kind": BITS, "first": "EXPHIL_SLP_HAS_STATE_AGE", "prefix": "EXPHIL_SLP_HAS_",
               "doc": "What a replay records (bits of SlpInfo.fields)."},
    "SlpProblem": {"kind": BITS, "first": "EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH", "prefix": "EXPHIL_SLP_PROBLEM_",
                   "doc": "Oddities met in a replay (bits of SlpInfo.problems); none of them stops reading."},
}

# ---- what each language takes of it: structs under its names, and what it leaves to code that is written by hand ----

# Elixir: table, what messages call it, struct, and the Elixir struct that is made of it.
ELIXIR = [
    ("context_config", "context", "exphil_context_config", None),
    ("device_info", "device", "exphil_device_info", None),
    ("memory_info", "memory", "exphil_memory_info", None),
    ("model_config", "model", "exphil_model_config", None),
    ("model_info", "model", "exphil_model_info", None),
    ("tensor_info", "tensor", "exphil_tensor_info", None),
    ("head_comparison", "head", "exphil_head_comparison", None),
    ("comparison_info", "comparison", "exphil_comparison", None),
    ("replay_config", "replay", "exphil_replay_config", None),
    ("replay_result", "replay", "exphil_replay_result", None),
    ("dataset_info", "dataset", "exphil_dataset_info", None),
    ("episode_info", "episode", "exphil_episode_info", None),
    ("split_config", "split", "exphil_split_config", None),
    ("sampling_config", "sampling", "exphil_sampling", None),
    ("prefetcher_info", "prefetcher", "exphil_prefetcher_info", None),
    ("optimizer_config", "optimizer", "exphil_optimizer_config", None),
    ("optimizer_info", "optimizer", "exphil_optimizer_info", None),
    ("head_loss", "loss", "exphil_head_loss", None),
    ("trainer_config", "trainer", "exphil_trainer_config", None),
    ("metrics_info", "metrics", "exphil_metrics", None),
    ("head_report", "head", "exphil_head_report", None),
    ("report_info", "report", "exphil_report", None),
    ("head_play", "head", "exphil_head_play", None),
    ("session_config", "session", "exphil_session_config", None),
    ("session_info", "session", "exphil_session_info", None),
    ("melee_field", "field", "exphil_melee_field", None),
    ("melee_character", "character", "exphil_melee_character", "LibExphil.Melee.Character"),
    ("melee_item", "item", "exphil_melee_item", "LibExphil.Melee.Item"),
    ("melee_pad", "pad", "exphil_pad", "LibExphil.Melee.Pad"),
    ("slp_config", "replay", "exphil_slp_config", None),
    ("slp_port", "port", "exphil_slp_port", None),
    ("slp_info", "replay", "exphil_slp_info", None),
    ("slp_frame", "frame", "exphil_slp_frame", None),
    ("slp_item", "item", "exphil_slp_item", None),
    ("slp_player", "player", "exphil_slp_player", None),
    ("games_config", "games", "exphil_games_config", None),
    ("games_info", "games", "exphil_games_info", None),
    ("games_added", "game", "exphil_games_added", None),
    ("game_info", "game", "exphil_game_info", None),
    ("game_player", "player", "exphil_game_player", None),
    ("selection_config", "selection", "exphil_selection", None),
    ("selection_report", "report", "exphil_selection_report", None),
    ("reward_config", "reward", "exphil_melee_reward_config", None),
    ("outcome_config", "outcome", "exphil_outcome_config", None),
    ("outcome_metrics", "outcome", "exphil_outcome_metrics", None),
    ("rollout_config", "rollout", "exphil_rollout_config", None),
    ("learner_config", "learner", "exphil_learner_config", None),
    ("learner_metrics", "learner", "exphil_learner_metrics", None),
    ("match_config", "match", "exphil_match_config", None),
    ("match_result", "match", "exphil_match_result", None),
    ("opponent_record", "record", "exphil_record", None),
    ("block_info", "block", "exphil_block_info", None),
    ("live_config", "live", "exphil_live_config", None),
    ("live_info", "live", "exphil_live_info", None),
]
# Records of nif_spec.c and its like, which are no structs of the header.
ELIXIR_OWN = ["spec_head", "spec_id", "spec_map", "frame_map", "evaluate_map", "run_map", "option_map", "rewards_map"]
# Lists of names that other files use, too.
ELIXIR_SHARED = ["type", "mode", "log_level"]
# What a policy is told needs lists that go with their lengths: for Python and Rust so far.
TOLD = "conditions delays condition_count delay_count"
ELIXIR_LEAVES = {
    "exphil_model_config": TOLD, "exphil_sampling": TOLD, "exphil_session_config": "conditions condition_count",
    "exphil_tensor_info": "dim rank", "exphil_comparison": "heads", "exphil_report": "heads", "exphil_metrics": "head_loss",
    "exphil_melee_character": "present", "exphil_slp_frame": "item_count", "exphil_selection_report": "refused",
    "exphil_live_config": "session context optimizer trainer sampling dataset learner teacher",
    "exphil_live_info": "failed unsaved"}
ELIXIR_LENGTHS = {("exphil_slp_info", "version"): 3}

# Node: table and struct.
NODE = [
    ("context_fields", "exphil_context_config"), ("memory_fields", "exphil_memory_info"), ("id_fields", "exphil_id_spec"),
    ("head_fields", "exphil_head_spec"), ("spec_fields", "exphil_spec"), ("pad_fields", "exphil_pad"),
    ("model_fields", "exphil_model_config"), ("info_fields", "exphil_model_info"), ("replay_fields", "exphil_replay_config"),
    ("result_fields", "exphil_replay_result"), ("dataset_info_fields", "exphil_dataset_info"),
    ("sampling_fields", "exphil_sampling"), ("optimizer_fields", "exphil_optimizer_config"),
    ("trainer_fields", "exphil_trainer_config"), ("metrics_fields", "exphil_metrics"), ("report_fields", "exphil_report"),
    ("play_fields", "exphil_head_play"), ("session_fields", "exphil_session_config"),
    ("session_info_fields", "exphil_session_info"),
]
NODE_MEMBERS = [
    ("character_members", "exphil_melee_character"), ("item_members", "exphil_melee_item"),
    ("frame_members", "exphil_melee_frame")]
NODE_LEAVES = {
    "exphil_model_config": TOLD, "exphil_session_config": "conditions condition_count",
    "exphil_context_config": "log_level", "exphil_spec": "id_count head_count",
    "exphil_model_info": "state_bytes action_slots calibrated", "exphil_dataset_info": "recovered",
    "exphil_sampling": f"mode delay_frames action_slots neutral_start {TOLD}", "exphil_metrics": "loss_scale",
    "exphil_report": "heads", "exphil_trainer_config": "losses"}
# Words that JavaScript has otherwise, and the words that an option may be where they are not all.
NODE_WORDS = {"i8": "int8"}
NODE_SOME = {
    ("exphil_model_config", "type"): "f32 f64", ("exphil_trainer_config", "activations"): "f32 bf16",
    ("exphil_trainer_config", "fake_quantize"): "i8 bf16"}
# Types of TypeScript: interfaces of options (a dict: by the group's name), and types of what is told.
NODE_OPTIONS = {
    "ContextOptions": "exphil_context_config", "ModelOptions": "exphil_model_config", "SessionOptions": "exphil_session_config",
    "ReplayOptions": "exphil_replay_config",
    "TrainerOptions": {
        "sampling": "exphil_sampling", "optimizer": "exphil_optimizer_config", "trainer": "exphil_trainer_config"}}
NODE_TOLD = {
    "MemoryInfo": "exphil_memory_info", "Metrics": "exphil_metrics", "ReplayResult": "exphil_replay_result",
    "ModelInfo": "exphil_model_info", "SessionInfo": "exphil_session_info", "DatasetInfo": "exphil_dataset_info",
    "Report": "exphil_report"}

# The web: structures by their tables, those that others hold first; and types of TypeScript as Node's.
WEB = [
    "exphil_context_config", "exphil_memory_info", "exphil_id_spec", "exphil_head_spec", "exphil_spec",
    "exphil_melee_character", "exphil_melee_item", "exphil_melee_frame", "exphil_pad", "exphil_model_config",
    "exphil_model_info", "exphil_optimizer_config", "exphil_head_loss", "exphil_trainer_config", "exphil_metrics", "exphil_batch",
    "exphil_head_play", "exphil_session_config", "exphil_session_info", "exphil_rollout_config", "exphil_learner_config",
    "exphil_learner_metrics", "exphil_record"]
WEB_LEAVES = {"exphil_context_config": "device cpu_isa backend_path threads log_level"}
WEB_OPTIONS = {
    "ModelOptions": "exphil_model_config", "SessionOptions": "exphil_session_config",
    "TrainerOptions": {"optimizer": "exphil_optimizer_config", "trainer": "exphil_trainer_config"},
    "RolloutOptions": "exphil_rollout_config", "LearnerConfig": "exphil_learner_config"}
WEB_TOLD = {
    "MemoryInfo": "exphil_memory_info", "Metrics": "exphil_metrics", "ModelInfo": "exphil_model_info",
    "SessionInfo": "exphil_session_info", "LearnerMetrics": "exphil_learner_metrics", "OpponentRecord": "exphil_record"}

LUAJIT = [
    "exphil_model_info", "exphil_replay_result", "exphil_dataset_info", "exphil_metrics", "exphil_report", "exphil_session_info"]
LUAJIT_LEAVES = {"exphil_metrics": "loss_scale"}

# C#: structures as C has them; public enumerations with their summaries; public classes with the structures that they are made
# of, and their summaries.
CSHARP = [
    "exphil_error", "exphil_context_config", "exphil_id_spec", "exphil_head_spec", "exphil_spec", "exphil_melee_frame",
    "exphil_model_config", "exphil_model_info", "exphil_dataset_config", "exphil_replay_config", "exphil_replay_result",
    "exphil_dataset_info", "exphil_sampling", "exphil_optimizer_config", "exphil_metrics", "exphil_report",
    "exphil_session_config", "exphil_session_info"]
CSHARP_ENUMS = {
    "HeadKind": ("HeadKind", None), "DataType": ("NumberType", None), "Mode": ("Mode", None), "Deliver": ("Deliver", None),
    "Schedule": ("Schedule", None), "Button": ("PadButtons", None),
    "Known": ("MeleeHas", "Which of the later fields of a character are known. Fields that are not read as absent.")}
CSHARP_CLASSES = {
    "ModelOptions": (["exphil_model_config"], "How a model is made; zero is the library's default. Spec none: Melee's."),
    "ModelInfo": (["exphil_model_info"], None),
    "SessionOptions": (["exphil_session_config"], None),
    "SessionInfo": (["exphil_session_info"], None),
    "ReplayOptions": (
        ["exphil_replay_config"], "Which frames of a replay are taken; the default is every human player."),
    "ReplayResult": (["exphil_replay_result"], None),
    "DatasetInfo": (["exphil_dataset_info"], None),
    "TrainerOptions": (
        ["exphil_sampling", "exphil_optimizer_config"],
        "How data are cut and weights are moved; zero is the library's default."),
    "Metrics": (["exphil_metrics"], None),
    "Report": (["exphil_report"], None),
}
CSHARP_LEAVES = {
    "exphil_model_info": "window_frames state_bytes action_slots heads calibrated",
    "exphil_model_config": TOLD, "exphil_session_config": "heads mode conditions condition_count",
    "exphil_session_info": "streams float_count id_count head_count logit_count",
    "exphil_sampling": f"mode delay_frames action_slots buffers neutral_start {TOLD}", "exphil_metrics": "loss_scale",
    "exphil_report": "heads"}
# Enumerations of two members that are told as whether it is the second.
CSHARP_WHETHER = {("exphil_model_config", "heads"): "Autoregressive"}
# Summaries of types of fields, which one line declares.
CSHARP_LINES = {("SessionOptions", "int?"): "What the host will run with, checked against the model."}

# Python: class and docstring; and what a class does beside telling its fields.
PYTHON = {
    "exphil_device_info": ("DeviceInfo",
        "A device that a context can run on; id is what Context(device=) takes."),
    "exphil_memory_info": ("MemoryInfo",
        "Memory of a context now, at its peak, and how often it was asked for."),
    "exphil_melee_field": ("MeleeField",
        "One column of a layout: value = clamp(source * scale, low, high); scale 0 is a flag or a one-hot code."),
    "exphil_model_info": ("ModelInfo",
        "Sizes, hashes and settings of a model, and how much training its weights have seen.\n"
        "\n"
        "    type is the arithmetic, weights the type that matrices are held in (different once quantised). state_bytes is the\n"
        "    recurrent state of one stream; action_slots counts the past actions that are inputs.\n"
        "    "),
    "exphil_tensor_info": ("TensorInfo",
        "Name, type and size of a tensor; the first rank entries of dim are its shape."),
    "exphil_head_comparison": ("HeadComparison",
        "How far one head's decisions are from the reference's."),
    "exphil_comparison": ("Comparison",
        "How far a model's decisions are from a reference's over a dataset.\n"
        "\n"
        "    Errors are of logits, kl is in nats per frame, agreement the share of frames with the same most likely action.\n"
        "    "),
    "exphil_replay_result": ("ReplayResult",
        "What a replay added. frames_masked were left out; truncated is 1 when the replay ends early."),
    "exphil_dataset_info": ("DatasetInfo",
        "Size, hashes and layout of a dataset. constant_floats counts columns that never change."),
    "exphil_episode_info": ("EpisodeInfo",
        "One player's side of one game; what only replays have is 0 (characters -1) for rows."),
    "exphil_prefetcher_info": ("PrefetcherInfo",
        "How many batches an epoch has, and who waited for whom: waited_ns is the taker's, worked_ns the filler's.\n"
        "\n"
        "    effective_share is the share of rows, weighed alike, that would tell as much as these do.\n"
        "    "),
    "exphil_optimizer_info": ("OptimizerInfo",
        "Updates done, rate of the next one, and bytes of moments and averaged weights."),
    "exphil_metrics": ("Metrics",
        "One update: loss before the step, one entry of head_loss for each head, norm before clipping.\n"
        "\n"
        "    frames counts all frames trained so far, skipped the updates refused because of a NaN or an infinity.\n"
        "    "),
    "exphil_head_report": ("HeadReport",
        "How well one head is predicted, beside three baselines: commonest value, value before, plain frequencies."),
    "exphil_report": ("Report",
        "How well a model predicts a dataset that it is shown. exact_* ask for all heads at once, change frames are those\n"
        "    where the action differs from the one before."),
    "exphil_session_info": ("SessionInfo",
        "Sizes of a session and the latency of its steps. latency counts steps in buckets half a power of two wide."),
    "exphil_slp_port": ("SlpPort",
        "Settings of one port at the start of a game."),
    "exphil_slp_info": ("SlpInfo",
        "What a replay holds: sizes, where and why reading stopped (Stop), what it records (SlpHas), oddities\n"
        "    (SlpProblem), and the settings of the game. Ports are indices 0..3 here."),
    "exphil_games_info": ("GamesInfo",
        "A corpus of games as a whole; recovered is 1 when the end of a file is missing or damaged."),
    "exphil_game_player": ("GamePlayer",
        "What one player did in a game; exphil/games.h says what counts."),
    "exphil_game_info": ("GameInfo",
        "What the index says of a game; player has one entry for each port index.\n"
        "\n"
        "    match_tag and day are 0 where they are not recorded, winner where it is not known.\n"
        "    "),
    "exphil_games_added": ("GamesAdded",
        "What became of a replay that was added: duplicate is 1 when the same game was there already."),
    "exphil_selection_report": ("SelectionReport",
        "What a selection took and refused, in players of games. refused counts by Refused; refused_name tells it in words."),
    "exphil_plan": ("Plan",
        "The memory that a training will take, in bytes: host_bytes and device_bytes by PlanPurpose, what updates hold\n"
        "    (steady) and the most (peak), what that is compared with (room), and the largest batch that fits."),
    "exphil_slp_result": ("GameEnd",
        "How a game ended: winner and quitter are ports 1..4 or 0, winners has bit port - 1, reason is a SlpResult. Stocks and\n"
        "    percent are those of each port index's last record, -1 and NaN where there is none."),
    "exphil_learner_metrics": ("LearnerMetrics",
        "What came of a chunk: means over its rows that were learnt from, of the last epoch where they change.\n"
        "\n"
        "    That it learns is seen in reward and, where episodes end, in episode_return. recomputed is 0 on the CPU with\n"
        "    as_played. unexplained is 0 for a perfect value, 1 for one as good as the mean. taken_back is 1 where most_kl was\n"
        "    exceeded.\n"
        "    "),
    "exphil_block_info": ("BlockInfo",
        "What a block says of itself: streams and time, hashes of the layout of its rows and of the weights that played it."),
    "exphil_outcome_metrics": ("OutcomeMetrics",
        "What came of an update of outcome-weighted imitation: known rows have a return, effective is the share of the rows that\n"
        "    so many of equal weight would be, clipped the share at the cap."),
    "exphil_match_result": ("MatchResult",
        "What came of a match, for the first policy: score is (won + drawn / 2) / games, low and high are 95 % of the scores that\n"
        "    other starts would have given. points, points_against and frames are those of all games."),
    "exphil_live_info": ("LiveInfo",
        "What was played and learnt behind a game so far.\n"
        "\n"
        "    failed is the status that ended learning, unsaved what the thread's last save came to, 0 where all is well; message\n"
        "    is the text of failed, else of unsaved.\n"
        "    "),
    "exphil_record": ("Record",
        "Episodes that ended against an opponent, of whoever learns: won and lost by the sum of an episode's rewards."),
}
PYTHON_METHODS = {
    "GameInfo": '''
    @property
    def date(self) -> Optional[date]:
        """Day of the recording; None: not recorded."""
        return date(1970, 1, 1) + timedelta(self.day) if self.day else None''',
    "TensorInfo": '''
    @property
    def shape(self) -> Tuple[int, ...]:
        """The dimensions in use."""
        return self.dim[: self.rank]''',
    "SessionInfo": '''
    def histogram(self) -> Tuple[Tuple[float, int], ...]:
        """(lower edge in nanoseconds, steps) of every bucket that holds a step."""
        return tuple((64 * 2 ** (i / 2), steps) for i, steps in enumerate(self.latency) if steps)''',
}
