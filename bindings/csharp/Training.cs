// Datasets and trainers.

using System;
using System.Collections.Generic;
using static Exphil.Native;

namespace Exphil
{
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
                var raw = new exphil_replay_config { struct_size = (UIntPtr)sizeof(exphil_replay_config) };
                options.Give(ref raw, pins);
                Check(exphil_dataset_add_replay(handle, Utf8("path", path), &raw, &result, &error), &error);
            }
            Grew(result.frames, Info);
            return ReplayResult.Of(result);
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
                return DatasetInfo.Of(raw);
            }
        }

        public void Dispose() { own.Dispose(); }
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
            var rates = new exphil_optimizer_config { struct_size = (UIntPtr)sizeof(exphil_optimizer_config) };
            options.Give(ref sampling);
            options.Give(ref rates);
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

        /// <summary>One update.</summary>
        public Metrics Step()
        {
            var error = NoError();
            var raw = new exphil_metrics { struct_size = (UIntPtr)sizeof(exphil_metrics) };
            Check(exphil_trainer_step(handle, &raw, &error), &error);
            return Metrics.Of(raw);
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
            return Report.Of(raw);
        }

        public void Dispose() { own.Dispose(); }
    }
}
