// Datasets and trainers.

using System;
using System.Collections.Generic;
using static Exphil.Native;

namespace Exphil
{
    /// <summary>Which frames of a replay are taken; the default is every human player.</summary>
    public sealed class ReplayOptions
    {
        public string Character;
        public int Port, OpponentPort, FirstFrame, LastFrame;
    }

    public sealed class ReplayResult
    {
        public long Episodes, Frames, FramesMasked;
        public bool Truncated;
    }

    public sealed class DatasetInfo
    {
        public ulong SpecHash, ContentHash;
        public long Frames, Episodes, Games, FloatCount, IdCount, HeadCount, ConstantFloats;
        public bool Recovered;
        public string Layout, Codec;
    }

    /// <summary>Frames of one game, grouped in episodes. One thread at a time.</summary>
    public sealed unsafe class Dataset : IDisposable
    {
        readonly DatasetHandle own;
        internal DatasetHandle handle { get { return own.Open(this); } }

        /// <summary>An empty one; without a spec, of Melee.</summary>
        public Dataset(Context context, Spec spec = null)
        {
            var error = NoError();
            using (var pins = new Pins())
            {
                var raw = new exphil_dataset_config { struct_size = (UIntPtr)sizeof(exphil_dataset_config) };
                if (spec != null) raw.spec = spec.Lend(pins);
                Check(exphil_dataset_create(Given(context, "context").handle, &raw, out own, &error), &error);
            }
        }

        Dataset(DatasetHandle own) { this.own = own; }

        /// <summary>A corpus file that Save wrote.</summary>
        public static Dataset Open(Context context, string path)
        {
            var error = NoError();
            DatasetHandle made;
            Check(exphil_dataset_open(Given(context, "context").handle, Utf8("path", path), out made, &error), &error);
            return new Dataset(made);
        }

        public void Save(string path)
        {
            var error = NoError();
            Check(exphil_dataset_save(handle, Utf8("path", path), &error), &error);
        }

        public ReplayResult AddReplay(string path, ReplayOptions options = null)
        {
            options = options ?? new ReplayOptions();
            var error = NoError();
            var result = new exphil_replay_result { struct_size = (UIntPtr)sizeof(exphil_replay_result) };
            using (var pins = new Pins())
            {
                var raw = new exphil_replay_config
                {
                    struct_size = (UIntPtr)sizeof(exphil_replay_config), character = pins.Text("Character", options.Character),
                    port = options.Port, opponent_port = options.OpponentPort, first_frame = options.FirstFrame,
                    last_frame = options.LastFrame
                };
                Check(exphil_dataset_add_replay(handle, Utf8("path", path), &raw, &result, &error), &error);
            }
            Grew(result.frames, Info);
            return new ReplayResult
            {
                Episodes = result.episodes, Frames = result.frames, FramesMasked = result.frames_masked,
                Truncated = result.truncated != 0
            };
        }

        /// <summary>One episode: floats [T,F], ids [T,K], actions [T,A]; T is what the actions have.</summary>
        public void AddRows(ulong game, float[] floats, int[] ids, int[] actions)
        {
            Given(actions, "actions");
            var info = Info;
            long frames = actions.Length / info.HeadCount, floatCount = floats == null ? 0 : floats.Length, idCount = ids == null ? 0 : ids.Length;
            if (actions.Length != frames * info.HeadCount || floatCount != frames * info.FloatCount || idCount != frames * info.IdCount)
                throw ExphilException.Invalid("rows: given are " + floatCount + " floats, " + idCount + " ids and " + actions.Length +
                    " actions; each frame has " + info.FloatCount + ", " + info.IdCount + " and " + info.HeadCount);
            var error = NoError();
            fixed (float* f = floats)
            fixed (int* i = ids, a = actions)
                Check(exphil_dataset_add_rows(handle, game, frames, f, i, a, &error), &error);
            Grew(frames, info);
        }

        void Grew(long frames, DatasetInfo info) { own.Weigh(frames * 4 * (info.FloatCount + info.IdCount + info.HeadCount)); }

        public DatasetInfo Info
        {
            get
            {
                var error = NoError();
                var raw = new exphil_dataset_info { struct_size = (UIntPtr)sizeof(exphil_dataset_info) };
                Check(exphil_dataset_query(handle, &raw, &error), &error);
                return new DatasetInfo
                {
                    SpecHash = raw.spec_hash, ContentHash = raw.content_hash, Frames = raw.frames, Episodes = raw.episodes,
                    Games = raw.games, FloatCount = raw.float_count, IdCount = raw.id_count, HeadCount = raw.head_count,
                    ConstantFloats = raw.constant_floats, Recovered = raw.recovered != 0, Layout = Text(raw.layout),
                    Codec = Text(raw.codec)
                };
            }
        }

        public void Dispose() { own.Dispose(); }
    }

    public enum Schedule { Constant = 0, Cosine = 1, Restarts = 2 }

    /// <summary>How data are cut and weights are moved; zero is the library's default.</summary>
    public sealed class TrainerOptions
    {
        public long Batch, Time, Stride, SegmentFrames;
        public ulong Seed;
        public bool InOrder, LastOnly;
        public double Rate, Beta1, Beta2, Epsilon, Decay, ClipNorm, EmaDecay, LowRatio, RestartFactor;
        public long WarmupUpdates, TotalUpdates, RestartUpdates;
        public Schedule Schedule;
    }

    public sealed class Metrics
    {
        public long Update, Epoch, Frames, TimeNs, WaitedNs, Skipped;
        public double Loss, GradientNorm, Rate;
    }

    public sealed class Report
    {
        public long Frames, ChangeFrames;
        public double Loss, Nll, FrequencyNll, ExactAccuracy, ExactChangeAccuracy, ExactMajority, ExactMajorityChange, ExactCopy;
    }

    /// <summary>Trains a copy of a model's weights. One thread at a time; another one than its maker's is fine.</summary>
    public sealed unsafe class Trainer : IDisposable
    {
        readonly TrainerHandle own;
        TrainerHandle handle { get { return own.Open(this); } }

        public Trainer(Model model, Dataset dataset, TrainerOptions options = null)
        {
            options = options ?? new TrainerOptions();
            var error = NoError();
            var sampling = new exphil_sampling { struct_size = (UIntPtr)sizeof(exphil_sampling) };
            Check(exphil_model_sampling(Given(model, "model").handle, &sampling, &error), &error);
            if (options.Batch != 0) sampling.batch = options.Batch;
            if (options.Time != 0) sampling.time = options.Time;
            sampling.stride = options.Stride;
            sampling.segment_frames = options.SegmentFrames;
            sampling.seed = options.Seed;
            sampling.in_order = options.InOrder ? 1 : 0;
            sampling.last_only = options.LastOnly ? 1 : 0;
            var rates = Rates(options);
            PrefetcherHandle source;
            OptimizerHandle optimizer;
            Check(exphil_prefetcher_create(Given(dataset, "dataset").handle, &sampling, out source, &error), &error);
            using (source)
            {
                Check(exphil_optimizer_create(model.handle, &rates, out optimizer, &error), &error);
                using (optimizer) // the trainer keeps both
                    Check(exphil_trainer_create(model.handle, optimizer, source, IntPtr.Zero, out own, &error), &error);
            }
            own.Weigh(32 << 20); // measured with small models: 15 to 78 MB
        }

        static exphil_optimizer_config Rates(TrainerOptions options)
        {
            return new exphil_optimizer_config
            {
                struct_size = (UIntPtr)sizeof(exphil_optimizer_config), rate = options.Rate, beta1 = options.Beta1,
                beta2 = options.Beta2, epsilon = options.Epsilon, decay = options.Decay, clip_norm = options.ClipNorm,
                ema_decay = options.EmaDecay, low_ratio = options.LowRatio, restart_factor = options.RestartFactor,
                warmup_updates = options.WarmupUpdates, total_updates = options.TotalUpdates,
                restart_updates = options.RestartUpdates, schedule = (int)options.Schedule
            };
        }

        /// <summary>One update.</summary>
        public Metrics Step()
        {
            var error = NoError();
            var raw = new exphil_metrics { struct_size = (UIntPtr)sizeof(exphil_metrics) };
            Check(exphil_trainer_step(handle, &raw, &error), &error);
            return new Metrics
            {
                Update = raw.update, Epoch = raw.epoch, Frames = raw.frames, TimeNs = raw.time_ns, WaitedNs = raw.waited_ns,
                Skipped = raw.skipped, Loss = raw.loss, GradientNorm = raw.gradient_norm, Rate = raw.rate
            };
        }

        /// <summary>So many updates, one at a time.</summary>
        public IEnumerable<Metrics> Updates(int count)
        {
            for (int i = 0; i < count; i++) yield return Step();
        }

        /// <summary>The weights as they are now as a new model.</summary>
        public Model Model(bool averaged = false)
        {
            var error = NoError();
            ModelHandle made;
            Check(exphil_trainer_model(handle, averaged ? 1 : 0, out made, &error), &error);
            return new Model(made);
        }

        public void Save(string path)
        {
            var error = NoError();
            Check(exphil_trainer_save(handle, Utf8("path", path), &error), &error);
        }

        /// <summary>Goes on to the last bit as if nothing had happened; options and data must be the same.</summary>
        public void Resume(string path)
        {
            var error = NoError();
            Check(exphil_trainer_resume(handle, Utf8("path", path), &error), &error);
        }

        /// <summary>How well the weights as they are now predict a dataset.</summary>
        public Report Evaluate(Dataset dataset)
        {
            var error = NoError();
            var raw = new exphil_report { struct_size = (UIntPtr)sizeof(exphil_report) };
            Check(exphil_trainer_evaluate(handle, 0, Given(dataset, "dataset").handle, IntPtr.Zero, &raw, &error), &error);
            return new Report
            {
                Frames = raw.frames, ChangeFrames = raw.change_frames, Loss = raw.loss, Nll = raw.nll,
                FrequencyNll = raw.frequency_nll, ExactAccuracy = raw.exact_accuracy,
                ExactChangeAccuracy = raw.exact_change_accuracy, ExactMajority = raw.exact_majority,
                ExactMajorityChange = raw.exact_majority_change, ExactCopy = raw.exact_copy
            };
        }

        public void Dispose() { own.Dispose(); }
    }
}
