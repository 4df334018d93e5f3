// What the C header declares, as far as Exphil.cs uses it: functions, and the handles that end an object exactly once. Structures
// with the header's names and layout are in Header.cs (the tests compare each field with the C compiler).

using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Exphil
{
    internal static unsafe partial class Native
    {
        // The name that every installation has: libexphil.so is for compilers, and may be missing.
        const string Library = "libexphil.so.0";

        [DllImport(Library)] internal static extern uint exphil_version();
        [DllImport(Library)] internal static extern IntPtr exphil_version_string();
        [DllImport(Library)] internal static extern IntPtr exphil_status_name(int status);

        [DllImport(Library)] internal static extern int exphil_context_create(exphil_context_config* config, out ContextHandle context, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_context_destroy(IntPtr context);

        [DllImport(Library)] internal static extern int exphil_melee_spec(byte[] layout, byte[] codec, exphil_spec* spec, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_melee_encode(byte[] layout, exphil_melee_frame* frame, float* floats, int* ids, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_melee_pad_encode(byte[] codec, Pad* pad, int* action, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_melee_pad_decode(byte[] codec, int* action, Pad* pad, exphil_error* error);

        [DllImport(Library)] internal static extern int exphil_model_create(ContextHandle context, exphil_model_config* config, out ModelHandle model, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_load(ContextHandle context, byte[] path, out ModelHandle model, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_load_memory(ContextHandle context, byte[] data, UIntPtr size_bytes, out ModelHandle model, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_save(ModelHandle model, byte[] path, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_query(ModelHandle model, exphil_model_info* info, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_quantize(ModelHandle model, int type, out ModelHandle quantized, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_model_sampling(ModelHandle model, exphil_sampling* sampling, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_model_destroy(IntPtr model);

        [DllImport(Library)] internal static extern int exphil_session_create(ModelHandle model, exphil_session_config* config, out SessionHandle session, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_session_clone(SessionHandle session, out SessionHandle clone, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_session_step(SessionHandle session, exphil_melee_frame* frames, Pad* pads);
        [DllImport(Library)] internal static extern int exphil_session_step_row(SessionHandle session, float* floats, int* ids, float* noise, int* actions);
        [DllImport(Library)] internal static extern int exphil_session_logits(SessionHandle session, long stream, float* logits, long count);
        [DllImport(Library)] internal static extern int exphil_session_reset(SessionHandle session, long stream);
        [DllImport(Library)] internal static extern int exphil_session_override(SessionHandle session, long stream, int* action);
        [DllImport(Library)] internal static extern int exphil_session_state_save(SessionHandle session, long stream, byte* state, UIntPtr size_bytes);
        [DllImport(Library)] internal static extern int exphil_session_state_restore(SessionHandle session, long stream, byte* state, UIntPtr size_bytes);
        [DllImport(Library)] internal static extern int exphil_session_query(SessionHandle session, exphil_session_info* info, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_session_error(SessionHandle session, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_session_destroy(IntPtr session);

        [DllImport(Library)] internal static extern int exphil_dataset_create(ContextHandle context, exphil_dataset_config* config, out DatasetHandle dataset, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_dataset_open(ContextHandle context, byte[] path, out DatasetHandle dataset, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_dataset_save(DatasetHandle dataset, byte[] path, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_dataset_add_replay(DatasetHandle dataset, byte[] path, exphil_replay_config* config, exphil_replay_result* result, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_dataset_add_rows(DatasetHandle dataset, ulong game, long frames, float* floats, int* ids, int* actions, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_dataset_query(DatasetHandle dataset, exphil_dataset_info* info, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_dataset_destroy(IntPtr dataset);

        [DllImport(Library)] internal static extern int exphil_prefetcher_create(DatasetHandle dataset, exphil_sampling* sampling, out PrefetcherHandle prefetcher, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_prefetcher_destroy(IntPtr prefetcher);
        [DllImport(Library)] internal static extern int exphil_optimizer_create(ModelHandle model, exphil_optimizer_config* config, out OptimizerHandle optimizer, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_optimizer_destroy(IntPtr optimizer);
        [DllImport(Library)] internal static extern int exphil_trainer_create(ModelHandle model, OptimizerHandle optimizer, PrefetcherHandle prefetcher, IntPtr config, out TrainerHandle trainer, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_trainer_step(TrainerHandle trainer, exphil_metrics* metrics, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_trainer_model(TrainerHandle trainer, int which, out ModelHandle model, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_trainer_save(TrainerHandle trainer, byte[] path, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_trainer_resume(TrainerHandle trainer, byte[] path, exphil_error* error);
        [DllImport(Library)] internal static extern int exphil_trainer_evaluate(TrainerHandle trainer, int which, DatasetHandle dataset, IntPtr frequencies, exphil_report* report, exphil_error* error);
        [DllImport(Library)] internal static extern void exphil_trainer_destroy(IntPtr trainer);

        /// <summary>Version of the library. The first call of all, which loads it.</summary>
        internal static uint Loaded()
        {
            try
            {
                return exphil_version();
            }
            catch (DllNotFoundException e)
            {
                throw new DllNotFoundException("libexphil.so.0 cannot be loaded: install libexphil, or set LD_LIBRARY_PATH to the " +
                    "folder of libexphil.so.0 (" + e.Message + ")", e);
            }
        }

        internal static exphil_error NoError() { return new exphil_error { struct_size = (UIntPtr)sizeof(exphil_error) }; }

        internal static string Text(byte* text)
        {
            int length = 0;
            while (text[length] != 0) length++;
            var bytes = new byte[length];
            Marshal.Copy((IntPtr)text, bytes, 0, length);
            return Encoding.UTF8.GetString(bytes);
        }

        /// <summary>Text for the library: UTF-8 with an end.</summary>
        internal static byte[] Utf8(string what, string text)
        {
            if (text == null) throw new ArgumentNullException(what);
            if (text.IndexOf('\0') >= 0) throw new ArgumentException("has a NUL character inside", what);
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        /// <summary>What a call was given, which must not be null.</summary>
        internal static T Given<T>(T value, string what) where T : class
        {
            if (value == null) throw new ArgumentNullException(what);
            return value;
        }

        internal static void Check(int status, exphil_error* error)
        {
            if (status < 0) throw new ExphilException(status, Text(error->message), error->native_code);
        }
    }

    /// <summary>One reference to an object of the library, given back exactly once, never while a call uses it.</summary>
    internal abstract class Handle : SafeHandle
    {
        // The collector sees an object as small as its handle. So we count what was made and not yet given back, and have it look
        // for more each time that comes to this much. (GC.AddMemoryPressure is for this, but Mono's does nothing.)
        const long Much = 64 << 20;
        static readonly object gate = new object();
        static long unseen; // 0..Much
        long weight;

        protected Handle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
        protected abstract void End();

        protected override bool ReleaseHandle()
        {
            End();
            lock (gate) unseen = Math.Max(unseen - weight, 0);
            return true;
        }

        /// <summary>The library's object takes about so many bytes more.</summary>
        internal void Weigh(long bytes)
        {
            bool much;
            lock (gate)
            {
                weight += bytes;
                unseen += bytes;
                much = unseen > Much;
                if (much) unseen = 0;
            }
            if (much) GC.Collect();
        }
    }

    internal static class Handles
    {
        /// <summary>The handle, when it is open still; else an exception that says of what it was.</summary>
        internal static T Open<T>(this T handle, object owner) where T : Handle
        {
            if (handle.IsClosed) throw new ObjectDisposedException(owner.GetType().Name);
            return handle;
        }
    }

    internal sealed class ContextHandle : Handle { protected override void End() { Native.exphil_context_destroy(handle); } }
    internal sealed class ModelHandle : Handle { protected override void End() { Native.exphil_model_destroy(handle); } }
    internal sealed class SessionHandle : Handle { protected override void End() { Native.exphil_session_destroy(handle); } }
    internal sealed class DatasetHandle : Handle { protected override void End() { Native.exphil_dataset_destroy(handle); } }
    internal sealed class PrefetcherHandle : Handle { protected override void End() { Native.exphil_prefetcher_destroy(handle); } }
    internal sealed class OptimizerHandle : Handle { protected override void End() { Native.exphil_optimizer_destroy(handle); } }
    internal sealed class TrainerHandle : Handle { protected override void End() { Native.exphil_trainer_destroy(handle); } }

    /// <summary>Memory that structures of one call point to; pinned until it is disposed of.</summary>
    internal sealed class Pins : IDisposable
    {
        readonly List<GCHandle> pins = new List<GCHandle>();

        internal IntPtr Add(object value)
        {
            if (value == null) return IntPtr.Zero;
            var pin = GCHandle.Alloc(value, GCHandleType.Pinned);
            pins.Add(pin);
            return pin.AddrOfPinnedObject();
        }

        internal IntPtr Text(string what, string text) { return text == null ? IntPtr.Zero : Add(Native.Utf8(what, text)); }

        public void Dispose() { foreach (var pin in pins) pin.Free(); }
    }
}
