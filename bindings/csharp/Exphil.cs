// libexphil for C#: contexts, models and sessions. What fails throws an ExphilException with the library's own sentence; what
// was disposed of throws ObjectDisposedException. Options are the fields of the C header's structures; the header is the
// manual. Contexts and models may be shared by threads; all else is used by one at a time. Any order of disposal is fine.

using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using static Exphil.Native;

namespace Exphil
{
    /// <summary>Why a call failed: the status of exphil.h, its name, and a sentence that names the argument.</summary>
    public sealed class ExphilException : Exception
    {
        public int Status { get; }
        public int NativeCode { get; }
        public unsafe string StatusName { get { return Text((byte*)exphil_status_name(Status)); } }

        internal ExphilException(int status, string message, int nativeCode) : base(message)
        {
            Status = status;
            NativeCode = nativeCode;
        }

        internal static ExphilException Invalid(string message) { return new ExphilException(-1, message, 0); }
    }

    public static unsafe class Library
    {
        /// <summary>The version that this assembly was written for.</summary>
        public const int Major = 0, Minor = 2, Patch = 0;
        /// <summary>"0.2.0 cpu:ref,avx2,avx512"</summary>
        public static string Version
        {
            get
            {
                Loaded();
                return Text((byte*)exphil_version_string());
            }
        }
    }

    /// <summary>The device, threads and memory that all other objects live on.</summary>
    public sealed unsafe class Context : IDisposable
    {
        readonly ContextHandle own;
        internal ContextHandle handle { get { return own.Open(this); } }

        public Context(string device = null, int threads = 0, string cpuIsa = null)
        {
            if (Loaded() / 100 < Library.Major * 100 + Library.Minor)
                throw new ExphilException(-9, "libexphil " + Library.Version + " is loaded, this assembly was written for " +
                    Library.Major + "." + Library.Minor, 0);
            var error = NoError();
            using (var pins = new Pins())
            {
                var config = new exphil_context_config { struct_size = (UIntPtr)sizeof(exphil_context_config), threads = threads };
                config.device = pins.Text("device", device);
                config.cpu_isa = pins.Text("cpuIsa", cpuIsa);
                Check(exphil_context_create(&config, out own, &error), &error);
            }
        }

        public void Dispose() { own.Dispose(); }
    }

    /// <summary>What a frame of a game looks like: floats and ids in, heads out.</summary>
    public sealed class Spec
    {
        readonly List<KeyValuePair<string, int[]>> ids = new List<KeyValuePair<string, int[]>>();
        readonly List<KeyValuePair<string, int[]>> heads = new List<KeyValuePair<string, int[]>>();
        public string Layout { get; }
        public string Codec { get; }
        public long Floats { get; }

        public Spec(string layout, string codec, long floats)
        {
            Layout = layout;
            Codec = codec;
            Floats = floats;
        }

        public Spec Id(string name, int entries, int width = 0)
        {
            ids.Add(new KeyValuePair<string, int[]>(name, new[] { entries, width }));
            return this;
        }

        public Spec Head(string name, HeadKind kind, int count, int neutral = 0)
        {
            heads.Add(new KeyValuePair<string, int[]>(name, new[] { (int)kind, count, neutral }));
            return this;
        }

        /// <summary>As the library reads it, while the pins live.</summary>
        internal unsafe IntPtr Lend(Pins pins)
        {
            var rawIds = new exphil_id_spec[ids.Count];
            for (int i = 0; i < rawIds.Length; i++)
                rawIds[i] = new exphil_id_spec
                {
                    name = pins.Text("id", ids[i].Key), entries = ids[i].Value[0], width = ids[i].Value[1]
                };
            var rawHeads = new exphil_head_spec[heads.Count];
            for (int i = 0; i < rawHeads.Length; i++)
                rawHeads[i] = new exphil_head_spec
                {
                    name = pins.Text("head", heads[i].Key), kind = heads[i].Value[0], count = heads[i].Value[1],
                    neutral = heads[i].Value[2]
                };
            return pins.Add(new exphil_spec
            {
                struct_size = (UIntPtr)sizeof(exphil_spec), layout = pins.Text("layout", Layout), codec = pins.Text("codec", Codec),
                float_count = Floats, id_count = rawIds.Length, ids = pins.Add(rawIds), head_count = rawHeads.Length,
                heads = pins.Add(rawHeads)
            });
        }
    }

    /// <summary>A policy's weights. Threads may share it.</summary>
    public sealed unsafe class Model : IDisposable
    {
        readonly ModelHandle own;
        internal ModelHandle handle { get { return own.Open(this); } }

        internal Model(ModelHandle own)
        {
            this.own = own;
            var raw = Query();
            own.Weigh(raw.parameter_count * (raw.type == (int)NumberType.F64 ? 16 : 8)); // its numbers, and as sessions want them
        }

        public static Model Create(Context context, ModelOptions options)
        {
            Given(options, "options");
            var error = NoError();
            ModelHandle made;
            using (var pins = new Pins())
            {
                var raw = new exphil_model_config { struct_size = (UIntPtr)sizeof(exphil_model_config) };
                options.Give(ref raw, pins);
                Check(exphil_model_create(Given(context, "context").handle, &raw, out made, &error), &error);
            }
            return new Model(made);
        }

        public static Model Load(Context context, string path)
        {
            var error = NoError();
            ModelHandle made;
            Check(exphil_model_load(Given(context, "context").handle, Utf8("path", path), out made, &error), &error);
            return new Model(made);
        }

        public static Model Load(Context context, byte[] weights)
        {
            var error = NoError();
            ModelHandle made;
            Check(exphil_model_load_memory(Given(context, "context").handle, Given(weights, "weights"), (UIntPtr)weights.Length, out made, &error), &error);
            return new Model(made);
        }

        public void Save(string path)
        {
            var error = NoError();
            Check(exphil_model_save(handle, Utf8("path", path), &error), &error);
        }

        /// <summary>A new model that computes with weights of fewer bits: Bf16 or I8.</summary>
        public Model Quantize(NumberType type)
        {
            var error = NoError();
            ModelHandle made;
            Check(exphil_model_quantize(handle, (int)type, out made, &error), &error);
            return new Model(made);
        }

        public ModelInfo Info { get { return ModelInfo.Of(Query()); } }

        exphil_model_info Query()
        {
            var error = NoError();
            var raw = new exphil_model_info { struct_size = (UIntPtr)sizeof(exphil_model_info) };
            Check(exphil_model_query(handle, &raw, &error), &error);
            return raw;
        }

        public void Dispose() { own.Dispose(); }
    }

    /// <summary>A model at play. A step allocates nothing; one thread at a time.</summary>
    public sealed unsafe class Session : IDisposable
    {
        readonly SessionHandle own;
        SessionHandle handle { get { return own.Open(this); } }
        readonly int streams, noise, logits, heads;
        readonly ulong state;
        exphil_melee_frame[] frames; // [B] from the first step of Melee's on

        /// <summary>Arrays of the right size, for whoever wants to use them.</summary>
        public float[] Floats { get; }
        public int[] Ids { get; }
        public int[] Actions { get; }
        public int LogitCount { get { return logits; } }
        public int HeadCount { get { return heads; } }

        public Session(Model model, SessionOptions options = null) : this(Made(model, options ?? new SessionOptions())) { }

        Session(SessionHandle own)
        {
            this.own = own;
            var info = Query();
            own.Weigh(100000 + 3 * info.streams * (long)info.state_bytes); // measured: 85 KB to 2.1 MB
            Floats = new float[checked(info.streams * info.float_count)];
            Ids = new int[checked(info.streams * info.id_count)];
            Actions = new int[checked(info.streams * info.head_count)];
            streams = checked((int)info.streams);
            noise = checked((int)(info.streams * info.logit_count));
            logits = checked((int)info.logit_count);
            heads = checked((int)info.head_count);
            state = info.state_bytes;
        }

        static SessionHandle Made(Model model, SessionOptions options)
        {
            var error = NoError();
            SessionHandle made;
            using (var pins = new Pins())
            {
                var raw = new exphil_session_config { struct_size = (UIntPtr)sizeof(exphil_session_config) };
                options.Give(ref raw, pins);
                Check(exphil_session_create(Given(model, "model").handle, &raw, out made, &error), &error);
            }
            return made;
        }

        /// <summary>A second session with the same model, configuration and state.</summary>
        public Session Clone()
        {
            var error = NoError();
            SessionHandle made;
            Check(exphil_session_clone(handle, out made, &error), &error);
            return new Session(made);
        }

        /// <summary>floats [B,F] and ids [B,K] in, actions [B,A] out; noise [B,L], or none.</summary>
        public void StepRow(float[] floats, int[] ids, int[] actions, float[] noise = null)
        {
            Expect("floats", floats, Floats.Length);
            Expect("ids", ids, Ids.Length);
            Expect("actions", actions, Actions.Length);
            if (noise != null) Expect("noise", noise, this.noise);
            fixed (float* f = floats, n = noise)
            fixed (int* i = ids, a = actions)
                Done(exphil_session_step_row(handle, f, i, n, a));
        }

        /// <summary>The same on the session's own arrays; gives its actions.</summary>
        public int[] StepRow()
        {
            StepRow(Floats, Ids, Actions);
            return Actions;
        }

        /// <summary>Melee, one stream: the state of the game as a frame left it in, the controller of the next out.</summary>
        public Pad Step(MeleeFrame frame)
        {
            Given(frame, "frame");
            if (streams != 1) throw ExphilException.Invalid("frame: is one, must be an array of " + streams + ", one for each stream");
            exphil_melee_frame raw;
            Pad pad;
            frame.Write(&raw);
            Done(exphil_session_step(handle, &raw, &pad));
            return pad;
        }

        /// <summary>The same for all streams: frames [B] in, pads [B] out.</summary>
        public void Step(MeleeFrame[] frames, Pad[] pads)
        {
            Expect("frames", frames, streams);
            Expect("pads", pads, streams);
            if (Array.IndexOf(frames, null) >= 0) throw new ArgumentNullException("frames");
            if (this.frames == null) this.frames = new exphil_melee_frame[streams];
            fixed (exphil_melee_frame* raw = this.frames)
            fixed (Pad* done = pads)
            {
                for (int i = 0; i < streams; i++) frames[i].Write(raw + i);
                Done(exphil_session_step(handle, raw, done));
            }
        }

        /// <summary>Logits of the last step of a stream.</summary>
        public void Logits(long stream, float[] values)
        {
            Expect("logits", values, logits);
            fixed (float* v = values) Done(exphil_session_logits(handle, stream, v, logits));
        }

        /// <summary>A stream starts an episode; -1: all do.</summary>
        public void Reset(long stream = -1) { Done(exphil_session_reset(handle, stream)); }

        /// <summary>What was really done instead of the newest decided action.</summary>
        public void Override(long stream, int[] action)
        {
            Expect("action", action, heads);
            fixed (int* a = action) Done(exphil_session_override(handle, stream, a));
        }

        /// <summary>All that a stream's next step depends on, as one block.</summary>
        public byte[] SaveState(long stream = 0)
        {
            var block = new byte[state];
            SaveState(stream, block);
            return block;
        }

        public void SaveState(long stream, byte[] block)
        {
            Expect("state", block, (int)state);
            fixed (byte* b = block) Done(exphil_session_state_save(handle, stream, b, (UIntPtr)block.Length));
        }

        public void RestoreState(long stream, byte[] block)
        {
            Expect("state", block, (int)state);
            fixed (byte* b = block) Done(exphil_session_state_restore(handle, stream, b, (UIntPtr)block.Length));
        }

        public SessionInfo Info { get { return SessionInfo.Of(Query()); } }

        exphil_session_info Query()
        {
            var error = NoError();
            var raw = new exphil_session_info { struct_size = (UIntPtr)sizeof(exphil_session_info) };
            Check(exphil_session_query(handle, &raw, &error), &error);
            return raw;
        }

        internal static void Expect(string what, Array values, int length)
        {
            if (values == null && length == 0) return;
            if (Given(values, what).Length != length)
                throw ExphilException.Invalid(what + ": has " + values.Length + " elements, must have " + length);
        }

        void Done(int status)
        {
            if (status >= 0) return;
            var error = NoError();
            exphil_session_error(handle, &error);
            throw new ExphilException(status, Text(error.message), error.native_code);
        }

        public void Dispose() { own.Dispose(); }
    }
}
