// Made by `tools/abi bindings` from include/exphil: do not edit.
// Structures as C has them, enumerations, and what is made of both for users.

using System;
using static Exphil.Native;

namespace Exphil
{
    internal static unsafe partial class Native
    {
        internal struct exphil_error
        {
            public UIntPtr struct_size;
            public int status;
            public int native_code;
            public fixed byte message[240];
        }
        internal struct exphil_context_config
        {
            public UIntPtr struct_size;
            public IntPtr allocator;
            public IntPtr io;
            public IntPtr executor;
            public IntPtr log;
            public IntPtr log_user;
            public IntPtr cancel;
            public IntPtr cancel_user;
            public IntPtr device;
            public IntPtr cpu_isa;
            public IntPtr backend_path;
            public UIntPtr memory_limit_bytes;
            public int threads;
            public int log_level;
        }
        internal struct exphil_id_spec
        {
            public IntPtr name;
            public int entries;
            public int width;
        }
        internal struct exphil_head_spec
        {
            public IntPtr name;
            public int kind;
            public int count;
            public int neutral;
            public int reserved;
        }
        internal struct exphil_spec
        {
            public UIntPtr struct_size;
            public IntPtr layout;
            public IntPtr codec;
            public long float_count;
            public long id_count;
            public IntPtr ids;
            public long head_count;
            public IntPtr heads;
            public ulong layout_hash;
        }
        internal struct exphil_melee_frame
        {
            public UIntPtr struct_size;
            public int frame;
            public int stage;
            public int own_port;
            public int opponent_port;
            public fixed byte player[320];
            public fixed byte follower[320];
            public float platform_left;
            public float platform_right;
            public int wind;
            public int stadium_kind;
            public int stadium_event;
            public int item_count;
            public fixed byte item[600];
        }
        internal struct exphil_model_config
        {
            public UIntPtr struct_size;
            public IntPtr spec;
            public IntPtr blocks;
            public ulong seed;
            public long hidden;
            public long head_width;
            public long mamba_states;
            public long mamba_expand;
            public long mamba_taps;
            public long mamba_rank;
            public long attention_heads;
            public long attention_dim;
            public long attention_window_frames;
            public long ffn_expand;
            public long window_frames;
            public int delay_frames;
            public int no_previous_action;
            public int mode;
            public int heads;
            public int type;
            public int reserved;
            public int neutral_start;
            public int reserved_2;
            public IntPtr conditions;
            public IntPtr delays;
            public long condition_count;
            public long delay_count;
            public int value;
            public int reserved_3;
            public double norm_epsilon;
            public long head_units;
            public int no_final_norm;
            public int head_layers;
            public int head_activation;
            public int head_last;
            public int no_head_past;
            public int no_head_trunk;
            public long input_width;
        }
        internal struct exphil_model_info
        {
            public UIntPtr struct_size;
            public ulong spec_hash;
            public ulong weights_hash;
            public long parameter_count;
            public long tensor_count;
            public long float_count;
            public long id_count;
            public long head_count;
            public long logit_count;
            public long hidden;
            public long window_frames;
            public ulong state_bytes;
            public ulong trained_updates;
            public ulong trained_frames;
            public int delay_frames;
            public int action_slots;
            public int mode;
            public int heads;
            public int type;
            public int reserved;
            public fixed byte layout[32];
            public fixed byte codec[32];
            public fixed byte blocks[256];
            public int weights;
            public int calibrated;
            public int neutral_start;
            public int reserved_2;
            public long condition_count;
            public long delay_count;
            public int value;
            public int reserved_3;
            public double norm_epsilon;
            public long head_units;
            public int no_final_norm;
            public int head_layers;
            public int head_activation;
            public int head_last;
            public int no_head_past;
            public int no_head_trunk;
            public long input_width;
        }
        internal struct exphil_dataset_config
        {
            public UIntPtr struct_size;
            public IntPtr spec;
        }
        internal struct exphil_replay_config
        {
            public UIntPtr struct_size;
            public IntPtr character;
            public int port;
            public int opponent_port;
            public int first_frame;
            public int last_frame;
        }
        internal struct exphil_replay_result
        {
            public UIntPtr struct_size;
            public long episodes;
            public long frames;
            public long frames_masked;
            public int truncated;
            public int reserved;
        }
        internal struct exphil_dataset_info
        {
            public UIntPtr struct_size;
            public ulong spec_hash;
            public ulong content_hash;
            public long frames;
            public long episodes;
            public long games;
            public long float_count;
            public long id_count;
            public long head_count;
            public long constant_floats;
            public int recovered;
            public int reserved;
            public fixed byte layout[32];
            public fixed byte codec[32];
        }
        internal struct exphil_sampling
        {
            public UIntPtr struct_size;
            public long batch;
            public long time;
            public long stride;
            public long segment_frames;
            public ulong seed;
            public int mode;
            public int delay_frames;
            public int action_slots;
            public int in_order;
            public int last_only;
            public int buffers;
            public int neutral_start;
            public int reserved;
            public long shuffle_frames;
            public long memory_bytes;
            public int workers;
            public int reserved_2;
            public double drop_past;
            public double mirror;
            public IntPtr conditions;
            public IntPtr delays;
            public long condition_count;
            public long delay_count;
            public double balance_character;
            public double balance_action;
            public double balance_change;
            public long first_lane;
            public long lane_count;
        }
        internal struct exphil_optimizer_config
        {
            public UIntPtr struct_size;
            public double rate;
            public double beta1;
            public double beta2;
            public double epsilon;
            public double decay;
            public double clip_norm;
            public double ema_decay;
            public double low_ratio;
            public double restart_factor;
            public long warmup_updates;
            public long total_updates;
            public long restart_updates;
            public int schedule;
            public int reserved;
            public int resume_new_total;
            public int reserved_2;
        }
        internal struct exphil_metrics
        {
            public UIntPtr struct_size;
            public long update;
            public long epoch;
            public long frames;
            public double loss;
            public fixed double head_loss[16];
            public double gradient_norm;
            public double rate;
            public double loss_scale;
            public long time_ns;
            public long waited_ns;
            public long skipped;
        }
        internal struct exphil_report
        {
            public UIntPtr struct_size;
            public long frames;
            public long change_frames;
            public double loss;
            public double nll;
            public double frequency_nll;
            public double exact_accuracy;
            public double exact_change_accuracy;
            public double exact_majority;
            public double exact_majority_change;
            public double exact_copy;
            public long heads;
            public fixed byte head[1024];
            public long alone_most_frames;
            public long alone_frames;
            public long alone_change_frames;
            public double alone_nll;
            public double alone_accuracy;
            public double alone_change_accuracy;
            public long value_frames;
            public double value_loss;
            public double unexplained;
        }
        internal struct exphil_session_config
        {
            public UIntPtr struct_size;
            public IntPtr heads;
            public IntPtr spec;
            public IntPtr delay_frames;
            public IntPtr mode;
            public ulong seed;
            public long streams;
            public long deadline_ns;
            public int deterministic;
            public int deliver;
            public IntPtr conditions;
            public long condition_count;
            public int adoptable;
            public int reserved;
        }
        internal struct exphil_session_info
        {
            public UIntPtr struct_size;
            public ulong steps;
            public ulong missed;
            public fixed ulong latency[64];
            public long last_ns;
            public long max_ns;
            public long p50_ns;
            public long p99_ns;
            public long streams;
            public long float_count;
            public long id_count;
            public long head_count;
            public long logit_count;
            public ulong state_bytes;
            public ulong adoptions;
            public ulong weights_hash;
        }
    }

    public enum HeadKind { Bernoulli = 0, Categorical = 1 }

    public enum NumberType { F32 = 0, F64 = 1, Bf16 = 2, I8 = 3, F16 = 4 }

    public enum Mode { Carry = 0, Window = 1 }

    public enum Deliver { Due = 0, Decided = 1 }

    public enum Schedule { Constant = 0, Cosine = 1, Restarts = 2 }

    [Flags]
    public enum PadButtons : uint { DLeft = 1, DRight = 2, DDown = 4, DUp = 8, Z = 16, R = 32, L = 64, A = 256, B = 512, X = 1024, Y = 2048, Start = 4096 }

    /// <summary>Which of the later fields of a character are known. Fields that are not read as absent.</summary>
    [Flags]
    public enum MeleeHas : uint { Age = 1, Flags = 2, Hurtbox = 4, Speed = 8, Hitlag = 16, All = 31 }

    /// <summary>How a model is made; zero is the library's default. Spec none: Melee's.</summary>
    public sealed class ModelOptions
    {
        public Spec Spec;
        public string Blocks;
        public ulong Seed;
        public long Hidden, HeadWidth, MambaStates, MambaExpand, MambaTaps, MambaRank, AttentionHeads, AttentionDim,
            AttentionWindowFrames, FfnExpand, WindowFrames, HeadUnits, InputWidth;
        public int DelayFrames, Value, HeadLayers, HeadActivation;
        public bool NoPreviousAction, Autoregressive, NeutralStart, NoFinalNorm, HeadLast, NoHeadPast, NoHeadTrunk;
        public Mode Mode;
        public NumberType Type;
        public double NormEpsilon;

        internal void Give(ref exphil_model_config raw, Pins pins)
        {
            if (Spec != null) raw.spec = Spec.Lend(pins);
            if (Blocks != null) raw.blocks = pins.Text("Blocks", Blocks);
            if (Seed != 0) raw.seed = Seed;
            if (Hidden != 0) raw.hidden = Hidden;
            if (HeadWidth != 0) raw.head_width = HeadWidth;
            if (MambaStates != 0) raw.mamba_states = MambaStates;
            if (MambaExpand != 0) raw.mamba_expand = MambaExpand;
            if (MambaTaps != 0) raw.mamba_taps = MambaTaps;
            if (MambaRank != 0) raw.mamba_rank = MambaRank;
            if (AttentionHeads != 0) raw.attention_heads = AttentionHeads;
            if (AttentionDim != 0) raw.attention_dim = AttentionDim;
            if (AttentionWindowFrames != 0) raw.attention_window_frames = AttentionWindowFrames;
            if (FfnExpand != 0) raw.ffn_expand = FfnExpand;
            if (WindowFrames != 0) raw.window_frames = WindowFrames;
            if (DelayFrames != 0) raw.delay_frames = DelayFrames;
            if (NoPreviousAction) raw.no_previous_action = 1;
            if (Mode != 0) raw.mode = (int)Mode;
            if (Autoregressive) raw.heads = 1;
            if (Type != 0) raw.type = (int)Type;
            if (NeutralStart) raw.neutral_start = 1;
            if (Value != 0) raw.value = Value;
            if (NormEpsilon != 0) raw.norm_epsilon = NormEpsilon;
            if (HeadUnits != 0) raw.head_units = HeadUnits;
            if (NoFinalNorm) raw.no_final_norm = 1;
            if (HeadLayers != 0) raw.head_layers = HeadLayers;
            if (HeadActivation != 0) raw.head_activation = HeadActivation;
            if (HeadLast) raw.head_last = 1;
            if (NoHeadPast) raw.no_head_past = 1;
            if (NoHeadTrunk) raw.no_head_trunk = 1;
            if (InputWidth != 0) raw.input_width = InputWidth;
        }
    }

    public sealed class ModelInfo
    {
        public ulong SpecHash, WeightsHash, TrainedUpdates, TrainedFrames;
        public long ParameterCount, TensorCount, FloatCount, IdCount, HeadCount, LogitCount, Hidden, ConditionCount, DelayCount,
            HeadUnits, InputWidth;
        public int DelayFrames, Value, HeadLayers, HeadActivation;
        public Mode Mode;
        public NumberType Type, Weights;
        public string Layout, Codec, Blocks;
        public bool NeutralStart, NoFinalNorm, HeadLast, NoHeadPast, NoHeadTrunk;
        public double NormEpsilon;

        internal static unsafe ModelInfo Of(exphil_model_info raw)
        {
            return new ModelInfo
            {
                SpecHash = raw.spec_hash,
                WeightsHash = raw.weights_hash,
                ParameterCount = raw.parameter_count,
                TensorCount = raw.tensor_count,
                FloatCount = raw.float_count,
                IdCount = raw.id_count,
                HeadCount = raw.head_count,
                LogitCount = raw.logit_count,
                Hidden = raw.hidden,
                TrainedUpdates = raw.trained_updates,
                TrainedFrames = raw.trained_frames,
                DelayFrames = raw.delay_frames,
                Mode = (Mode)raw.mode,
                Type = (NumberType)raw.type,
                Layout = Text(raw.layout),
                Codec = Text(raw.codec),
                Blocks = Text(raw.blocks),
                Weights = (NumberType)raw.weights,
                NeutralStart = raw.neutral_start != 0,
                ConditionCount = raw.condition_count,
                DelayCount = raw.delay_count,
                Value = raw.value,
                NormEpsilon = raw.norm_epsilon,
                HeadUnits = raw.head_units,
                NoFinalNorm = raw.no_final_norm != 0,
                HeadLayers = raw.head_layers,
                HeadActivation = raw.head_activation,
                HeadLast = raw.head_last != 0,
                NoHeadPast = raw.no_head_past != 0,
                NoHeadTrunk = raw.no_head_trunk != 0,
                InputWidth = raw.input_width,
            };
        }
    }

    public sealed class SessionOptions
    {
        public Spec Spec;
        /// <summary>What the host will run with, checked against the model.</summary>
        public int? DelayFrames;
        public ulong Seed;
        public long Streams, DeadlineNs;
        public bool Deterministic, Adoptable;
        public Deliver Deliver;

        internal void Give(ref exphil_session_config raw, Pins pins)
        {
            if (Spec != null) raw.spec = Spec.Lend(pins);
            if (DelayFrames != null) raw.delay_frames = pins.Add(DelayFrames);
            if (Seed != 0) raw.seed = Seed;
            if (Streams != 0) raw.streams = Streams;
            if (DeadlineNs != 0) raw.deadline_ns = DeadlineNs;
            if (Deterministic) raw.deterministic = 1;
            if (Deliver != 0) raw.deliver = (int)Deliver;
            if (Adoptable) raw.adoptable = 1;
        }
    }

    public sealed class SessionInfo
    {
        public ulong Steps, Missed, StateBytes, Adoptions, WeightsHash;
        public long LastNs, MaxNs, P50Ns, P99Ns;

        internal static unsafe SessionInfo Of(exphil_session_info raw)
        {
            return new SessionInfo
            {
                Steps = raw.steps,
                Missed = raw.missed,
                LastNs = raw.last_ns,
                MaxNs = raw.max_ns,
                P50Ns = raw.p50_ns,
                P99Ns = raw.p99_ns,
                StateBytes = raw.state_bytes,
                Adoptions = raw.adoptions,
                WeightsHash = raw.weights_hash,
            };
        }
    }

    /// <summary>Which frames of a replay are taken; the default is every human player.</summary>
    public sealed class ReplayOptions
    {
        public string Character;
        public int Port, OpponentPort, FirstFrame, LastFrame;

        internal void Give(ref exphil_replay_config raw, Pins pins)
        {
            if (Character != null) raw.character = pins.Text("Character", Character);
            if (Port != 0) raw.port = Port;
            if (OpponentPort != 0) raw.opponent_port = OpponentPort;
            if (FirstFrame != 0) raw.first_frame = FirstFrame;
            if (LastFrame != 0) raw.last_frame = LastFrame;
        }
    }

    public sealed class ReplayResult
    {
        public long Episodes, Frames, FramesMasked;
        public bool Truncated;

        internal static unsafe ReplayResult Of(exphil_replay_result raw)
        {
            return new ReplayResult
            {
                Episodes = raw.episodes,
                Frames = raw.frames,
                FramesMasked = raw.frames_masked,
                Truncated = raw.truncated != 0,
            };
        }
    }

    public sealed class DatasetInfo
    {
        public ulong SpecHash, ContentHash;
        public long Frames, Episodes, Games, FloatCount, IdCount, HeadCount, ConstantFloats;
        public bool Recovered;
        public string Layout, Codec;

        internal static unsafe DatasetInfo Of(exphil_dataset_info raw)
        {
            return new DatasetInfo
            {
                SpecHash = raw.spec_hash,
                ContentHash = raw.content_hash,
                Frames = raw.frames,
                Episodes = raw.episodes,
                Games = raw.games,
                FloatCount = raw.float_count,
                IdCount = raw.id_count,
                HeadCount = raw.head_count,
                ConstantFloats = raw.constant_floats,
                Recovered = raw.recovered != 0,
                Layout = Text(raw.layout),
                Codec = Text(raw.codec),
            };
        }
    }

    /// <summary>How data are cut and weights are moved; zero is the library's default.</summary>
    public sealed class TrainerOptions
    {
        public long Batch, Time, Stride, SegmentFrames, ShuffleFrames, MemoryBytes, FirstLane, LaneCount, WarmupUpdates,
            TotalUpdates, RestartUpdates;
        public ulong Seed;
        public bool InOrder, LastOnly, ResumeNewTotal;
        public int Workers;
        public double DropPast, Mirror, BalanceCharacter, BalanceAction, BalanceChange, Rate, Beta1, Beta2, Epsilon, Decay,
            ClipNorm, EmaDecay, LowRatio, RestartFactor;
        public Schedule Schedule;

        internal void Give(ref exphil_sampling raw)
        {
            if (Batch != 0) raw.batch = Batch;
            if (Time != 0) raw.time = Time;
            if (Stride != 0) raw.stride = Stride;
            if (SegmentFrames != 0) raw.segment_frames = SegmentFrames;
            if (Seed != 0) raw.seed = Seed;
            if (InOrder) raw.in_order = 1;
            if (LastOnly) raw.last_only = 1;
            if (ShuffleFrames != 0) raw.shuffle_frames = ShuffleFrames;
            if (MemoryBytes != 0) raw.memory_bytes = MemoryBytes;
            if (Workers != 0) raw.workers = Workers;
            if (DropPast != 0) raw.drop_past = DropPast;
            if (Mirror != 0) raw.mirror = Mirror;
            if (BalanceCharacter != 0) raw.balance_character = BalanceCharacter;
            if (BalanceAction != 0) raw.balance_action = BalanceAction;
            if (BalanceChange != 0) raw.balance_change = BalanceChange;
            if (FirstLane != 0) raw.first_lane = FirstLane;
            if (LaneCount != 0) raw.lane_count = LaneCount;
        }

        internal void Give(ref exphil_optimizer_config raw)
        {
            if (Rate != 0) raw.rate = Rate;
            if (Beta1 != 0) raw.beta1 = Beta1;
            if (Beta2 != 0) raw.beta2 = Beta2;
            if (Epsilon != 0) raw.epsilon = Epsilon;
            if (Decay != 0) raw.decay = Decay;
            if (ClipNorm != 0) raw.clip_norm = ClipNorm;
            if (EmaDecay != 0) raw.ema_decay = EmaDecay;
            if (LowRatio != 0) raw.low_ratio = LowRatio;
            if (RestartFactor != 0) raw.restart_factor = RestartFactor;
            if (WarmupUpdates != 0) raw.warmup_updates = WarmupUpdates;
            if (TotalUpdates != 0) raw.total_updates = TotalUpdates;
            if (RestartUpdates != 0) raw.restart_updates = RestartUpdates;
            if (Schedule != 0) raw.schedule = (int)Schedule;
            if (ResumeNewTotal) raw.resume_new_total = 1;
        }
    }

    public sealed class Metrics
    {
        public long Update, Epoch, Frames, TimeNs, WaitedNs, Skipped;
        public double Loss, GradientNorm, Rate;

        internal static unsafe Metrics Of(exphil_metrics raw)
        {
            return new Metrics
            {
                Update = raw.update,
                Epoch = raw.epoch,
                Frames = raw.frames,
                Loss = raw.loss,
                GradientNorm = raw.gradient_norm,
                Rate = raw.rate,
                TimeNs = raw.time_ns,
                WaitedNs = raw.waited_ns,
                Skipped = raw.skipped,
            };
        }
    }

    public sealed class Report
    {
        public long Frames, ChangeFrames, AloneMostFrames, AloneFrames, AloneChangeFrames, ValueFrames;
        public double Loss, Nll, FrequencyNll, ExactAccuracy, ExactChangeAccuracy, ExactMajority, ExactMajorityChange, ExactCopy,
            AloneNll, AloneAccuracy, AloneChangeAccuracy, ValueLoss, Unexplained;

        internal static unsafe Report Of(exphil_report raw)
        {
            return new Report
            {
                Frames = raw.frames,
                ChangeFrames = raw.change_frames,
                Loss = raw.loss,
                Nll = raw.nll,
                FrequencyNll = raw.frequency_nll,
                ExactAccuracy = raw.exact_accuracy,
                ExactChangeAccuracy = raw.exact_change_accuracy,
                ExactMajority = raw.exact_majority,
                ExactMajorityChange = raw.exact_majority_change,
                ExactCopy = raw.exact_copy,
                AloneMostFrames = raw.alone_most_frames,
                AloneFrames = raw.alone_frames,
                AloneChangeFrames = raw.alone_change_frames,
                AloneNll = raw.alone_nll,
                AloneAccuracy = raw.alone_accuracy,
                AloneChangeAccuracy = raw.alone_change_accuracy,
                ValueFrames = raw.value_frames,
                ValueLoss = raw.value_loss,
                Unexplained = raw.unexplained,
            };
        }
    }
}
