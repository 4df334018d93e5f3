// Tests of the C# binding: ExphilTest.exe TRACE-FOLDER [REPLAYS]; ExphilTest.exe layout ASSEMBLY prints C assertions that hold when
// the structures have the layout of the header.

using System;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;
using System.Threading;
using Exphil;

static class ExphilTest
{
    static int failed;

    static void Test(string name, Action work)
    {
        try
        {
            work();
        }
        catch (Exception e)
        {
            failed++;
            Console.Error.WriteLine("FAILED: " + name + "\n" + e);
        }
    }

    static void Demand(bool holds, string what)
    {
        if (!holds) throw new Exception("does not hold: " + what);
    }

    static void Fails(string status, string word, Action work)
    {
        try
        {
            work();
        }
        catch (ExphilException e)
        {
            Demand(e.StatusName == status && e.Message.Contains(word), e.StatusName + " " + e.Message + ", wanted " + status + " " + word);
            return;
        }
        throw new Exception("should have failed: " + word);
    }

    static void Throws<T>(Action work) where T : Exception
    {
        try
        {
            work();
        }
        catch (T)
        {
            return;
        }
        throw new Exception("should have thrown " + typeof(T));
    }

    // The call must throw this, and what it says must hold the word, which names an argument or an object.
    static void Throws<T>(string word, Action work) where T : Exception
    {
        try
        {
            work();
        }
        catch (T e)
        {
            Demand(e.Message.Contains(word), e.Message + ", wanted " + word);
            return;
        }
        throw new Exception("should have thrown " + typeof(T));
    }

    static Spec PongSpec()
    {
        return new Spec("pong", "pad", 3).Id("side", 2, 4).Head("stick", HeadKind.Categorical, 3, 1).Head("buttons", HeadKind.Bernoulli, 2);
    }

    static Model Pong(Context context)
    {
        return Model.Create(context, new ModelOptions { Spec = PongSpec(), Blocks = "gru mlp", Hidden = 16, HeadWidth = 16, Seed = 7 });
    }

    static Dataset Games(Context context)
    {
        var dataset = new Dataset(context, PongSpec());
        for (int game = 0; game < 3; game++)
        {
            var floats = new float[600];
            var actions = new int[400];
            for (int t = 0; t < 200; t++)
            {
                float swing = ((t + game) % 20 - 10) / 10f;
                floats[3 * t] = swing;
                floats[3 * t + 1] = 1 - swing;
                floats[3 * t + 2] = 0.5f;
                actions[2 * t] = swing < -0.3f ? 0 : swing > 0.3f ? 2 : 1;
            }
            dataset.AddRows((ulong)game, floats, new int[200], actions);
        }
        return dataset;
    }

    static Trainer Train(Context context)
    {
        return new Trainer(Pong(context), Games(context), new TrainerOptions { Batch = 4, Time = 20, Seed = 3, Rate = 1e-2 });
    }

    static void Training()
    {
        string path = Path.GetTempFileName();
        using (var context = new Context(threads: 1))
        using (var straight = Train(context))
        using (var second = Train(context))
        {
            var losses = straight.Updates(20).Select(metrics => metrics.Loss).ToList();
            straight.Save(path);
            losses.AddRange(straight.Updates(20).Select(metrics => metrics.Loss));
            Demand(losses[39] < 0.6 * losses[0], "the loss falls");
            second.Resume(path);
            Demand(second.Updates(20).Last().Update == 40, "the run goes on");
            Demand(second.Model().Info.WeightsHash == straight.Model().Info.WeightsHash, "to the last bit");
            var report = straight.Evaluate(Games(context));
            Demand(report.Frames == 600 && report.ExactAccuracy > report.ExactMajority, "the policy is better than a constant");
        }
        File.Delete(path);
        File.Delete(path + ".optimizer");
    }

    static int[][] Play(Session session)
    {
        return Enumerable.Range(0, 50).Select(t =>
        {
            session.Floats[0] = t / 50f;
            return (int[])session.StepRow().Clone();
        }).ToArray();
    }

    static bool Same(int[][] a, int[][] b) { return a.Zip(b, (x, y) => x.SequenceEqual(y)).All(same => same); }

    static void Rollback()
    {
        var session = new Session(Pong(new Context()), new SessionOptions { Seed = 5 });
        Play(session);
        byte[] state = session.SaveState();
        var twin = session.Clone();
        var once = Play(session);
        session.RestoreState(0, state);
        Demand(Same(Play(session), once) && Same(Play(twin), once), "restored and cloned sessions go on alike");
        Demand(session.Info.Steps == 150, "steps are counted");
        state[9] ^= 255;
        Fails("EXPHIL_E_MISMATCH", "", () => session.RestoreState(0, state));
    }

    static void WrongRows()
    {
        var session = new Session(Pong(new Context()), new SessionOptions { Deterministic = true });
        Fails("EXPHIL_E_INVALID", "floats: has 2 elements, must have 3", () => session.StepRow(new float[2], new int[1], new int[2]));
        Fails("EXPHIL_E_INVALID", "ids", () => session.StepRow(new float[3], new int[2], new int[2]));
        Fails("EXPHIL_E_INVALID", "actions", () => session.StepRow(new float[3], new int[1], new int[3]));
        Fails("EXPHIL_E_INVALID", "noise", () => session.StepRow(new float[3], new int[1], new int[2], new float[4]));
        Fails("EXPHIL_E_INVALID", "logits", () => session.Logits(0, new float[4]));
        Fails("EXPHIL_E_INVALID", "stream", () => session.Logits(5, new float[5]));
        Fails("EXPHIL_E_INVALID", "stream", () => session.Reset(long.MaxValue));
        Fails("EXPHIL_E_INVALID", "action", () => session.Override(0, new int[1]));
        Fails("EXPHIL_E_INVALID", "state", () => session.RestoreState(0, new byte[3]));
        Fails("EXPHIL_E_NUMERIC", "", () => session.StepRow(new[] { 0, float.NaN, 0 }, new int[1], new int[2]));
        session.StepRow(new float[3], new int[1], new int[2], Enumerable.Repeat(0.5f, 5).ToArray());
        var logits = new float[session.LogitCount];
        session.Logits(0, logits);
        Demand(logits.All(logit => !float.IsNaN(logit)), "logits are numbers");
    }

    static void WrongFiles()
    {
        var context = new Context();
        string path = Path.GetTempFileName();
        File.WriteAllBytes(path, Enumerable.Repeat((byte)255, 4096).ToArray());
        Fails("EXPHIL_E_FORMAT", "", () => Model.Load(context, path));
        Fails("EXPHIL_E_FORMAT", "", () => Model.Load(context, new byte[9]));
        Fails("EXPHIL_E_FORMAT", "", () => Dataset.Open(context, path));
        Fails("EXPHIL_E_FORMAT", "", () => new Dataset(context).AddReplay(path));
        File.Delete(path);
        Fails("EXPHIL_E_IO", "/nowhere", () => Model.Load(context, "/nowhere"));
        Fails("EXPHIL_E_IO", "/nowhere", () => Train(context).Resume("/nowhere"));
        Throws<ArgumentException>(() => Model.Load(context, "a\0b"));
        Fails("EXPHIL_E_INVALID", "blocks", () => Model.Create(context, new ModelOptions { Blocks = "gru (" }));
        Fails("EXPHIL_E_INVALID", "hidden", () => Model.Create(context, new ModelOptions { Hidden = long.MaxValue }));
        Fails("EXPHIL_E_INVALID", "device", () => new Context("abacus"));
        var model = Pong(context);
        Fails("EXPHIL_E_INVALID", "streams", () => new Session(model, new SessionOptions { Streams = -1 }));
        Fails("EXPHIL_E_MISMATCH", "delay", () => new Session(model, new SessionOptions { DelayFrames = 3 }));
        Fails("EXPHIL_E_MISMATCH", "", () => new Session(model, new SessionOptions { Spec = PongSpec().Id("more", 2) }));
        Fails("EXPHIL_E_UNSUPPORTED", "", () => model.Quantize(NumberType.F16));
        Demand(model.Quantize(NumberType.I8).Info.Weights == NumberType.I8, "weights are rounded");
        Fails("EXPHIL_E_INVALID", "sample", () => new Trainer(model, new Dataset(context)));
        Fails("EXPHIL_E_INVALID", "given are 3 floats, 0 ids and 3 actions; each frame has 3, 1 and 2", () => Games(context).AddRows(9, new float[3], null, new int[3]));
    }

    static void Nulls()
    {
        var context = new Context();
        var model = Pong(context);
        var dataset = Games(context);
        var session = new Session(model);
        Throws<ArgumentNullException>("context", () => Model.Create(null, new ModelOptions()));
        Throws<ArgumentNullException>("options", () => Model.Create(context, null));
        Throws<ArgumentNullException>("context", () => Model.Load(null, "x"));
        Throws<ArgumentNullException>("context", () => Model.Load(null, new byte[9]));
        Throws<ArgumentNullException>("path", () => Model.Load(context, (string)null));
        Throws<ArgumentNullException>("weights", () => Model.Load(context, (byte[])null));
        Throws<ArgumentNullException>("model", () => new Session(null));
        Throws<ArgumentNullException>("floats", () => session.StepRow(null, new int[1], new int[2]));
        Throws<ArgumentNullException>("ids", () => session.StepRow(new float[3], null, new int[2]));
        Throws<ArgumentNullException>("actions", () => session.StepRow(new float[3], new int[1], null));
        Throws<ArgumentNullException>("logits", () => session.Logits(0, null));
        Throws<ArgumentNullException>("action", () => session.Override(0, null));
        Throws<ArgumentNullException>("state", () => session.SaveState(0, null));
        Throws<ArgumentNullException>("state", () => session.RestoreState(0, null));
        Throws<ArgumentNullException>("context", () => new Dataset(null));
        Throws<ArgumentNullException>("context", () => Dataset.Open(null, "x"));
        Throws<ArgumentNullException>("actions", () => dataset.AddRows(9, new float[3], new int[1], null));
        Throws<ArgumentNullException>("model", () => new Trainer(null, dataset));
        Throws<ArgumentNullException>("dataset", () => new Trainer(model, null));
        Throws<ArgumentNullException>("dataset", () => Train(context).Evaluate(null));
    }

    static void Disposal()
    {
        var context = new Context();
        var model = Pong(context);
        var dataset = Games(context);
        var trainer = Train(context);
        var session = new Session(model);
        context.Dispose();
        model.Dispose();
        model.Dispose();
        dataset.Dispose();
        session.StepRow();
        trainer.Step();
        session.Dispose();
        trainer.Dispose();
        Throws<ObjectDisposedException>("Session", () => session.StepRow());
        Throws<ObjectDisposedException>("Session", () => session.Clone());
        Throws<ObjectDisposedException>("Model", () => Console.Write(model.Info));
        Throws<ObjectDisposedException>("Model", () => new Session(model));
        Throws<ObjectDisposedException>("Dataset", () => Console.Write(dataset.Info));
        Throws<ObjectDisposedException>("Trainer", () => trainer.Step());
        Throws<ObjectDisposedException>("Context", () => Model.Load(context, "x"));
    }

    struct MemoryInfo { public UIntPtr Size; public ulong Used, Peak, Allocations, DeviceUsed, DevicePeak, Requests, Reused; }

    [DllImport("libexphil.so.0")] static extern int exphil_context_memory(SafeHandle context, ref MemoryInfo info, IntPtr error);

    // Bytes that a context and all that lives on it hold.
    static ulong Used(Context context)
    {
        var handle = (SafeHandle)typeof(Context).GetProperty("handle", BindingFlags.Instance | BindingFlags.NonPublic).GetValue(context);
        var info = new MemoryInfo { Size = (UIntPtr)Marshal.SizeOf(typeof(MemoryInfo)) };
        Demand(exphil_context_memory(handle, ref info, IntPtr.Zero) == 0, "memory is told");
        return info.Used;
    }

    // What happens on another thread. A minute ends what would never come.
    static bool Eventually(Func<bool> happened, Action meanwhile)
    {
        var watch = System.Diagnostics.Stopwatch.StartNew();
        while (!happened() && watch.Elapsed.TotalSeconds < 60)
        {
            meanwhile();
            Thread.Sleep(1);
        }
        return happened();
    }

    // Makes some objects on a thread that ends, so that its stack holds none, and lets the collector end them.
    static void Abandon(Func<IDisposable> make, Func<bool> gone, string what)
    {
        var thread = new Thread(() => { for (int i = 0; i < 5; i++) make(); });
        thread.Start();
        thread.Join();
        Action collect = () => { GC.Collect(); GC.WaitForPendingFinalizers(); };
        Demand(Eventually(gone, collect), what + " that nobody has are ended");
    }

    static void Returned(Context context, string what, Func<IDisposable> make)
    {
        make().Dispose(); // what is made once and kept
        ulong before = Used(context);
        using (make()) Demand(Used(context) > before, what + " have memory");
        Demand(Used(context) == before, what + " that are disposed of keep nothing");
        Abandon(make, () => Used(context) == before, what);
    }

    static void Memory()
    {
        var context = new Context(threads: 1);
        var model = Pong(context);
        var session = new Session(model);
        var dataset = Games(context);
        var options = new TrainerOptions { Batch = 4, Time = 20 };
        Returned(context, "models", () => Pong(context));
        Returned(context, "sessions", () => new Session(model));
        Returned(context, "clones", () => session.Clone());
        Returned(context, "datasets", () => Games(context));
        Returned(context, "trainers", () => new Trainer(model, dataset, options));
        // A trainer that cannot be made keeps nothing of what was made for it.
        ulong before = Used(context);
        var other = new Dataset(context, new Spec("other", "pad", 3).Head("stick", HeadKind.Categorical, 3, 1));
        other.AddRows(1, new float[3 * 200], null, new int[200]);
        ulong filled = Used(context);
        Fails("EXPHIL_E_MISMATCH", "", () => new Trainer(model, other, options));
        Demand(Used(context) == filled, "parts of a trainer are disposed of");
        other.Dispose();
        Demand(Used(context) == before, "rows are disposed of");
        GC.KeepAlive(session);
    }

    static int ThreadCount() { return Directory.GetDirectories("/proc/self/task").Length; }

    // A context whose threads have begun; of a context itself nothing else can be told from outside.
    static Context Working()
    {
        var context = new Context(threads: 40);
        Model.Create(context, new ModelOptions { Blocks = "mamba", Hidden = 64 }).Dispose();
        return context;
    }

    static void Contexts()
    {
        int before = ThreadCount(); // the runtime's own come and go
        Action wait = () => { };
        using (Working()) Demand(Eventually(() => ThreadCount() > before + 30, wait), "a context starts its threads");
        Demand(Eventually(() => ThreadCount() < before + 10, wait), "a context that is disposed of ends its threads");
        Abandon(Working, () => ThreadCount() < before + 10, "contexts");
    }

    // Some 360 MB of models that nobody ends or looks for; what there is at once stays far below.
    static void Crowd()
    {
        var context = new Context(threads: 1);
        string path = Path.GetTempFileName();
        using (var model = Model.Create(context, new ModelOptions { Blocks = "gru", Hidden = 256 })) model.Save(path);
        var weights = File.ReadAllBytes(path);
        File.Delete(path);
        ulong most = 0;
        for (int i = 0; i < 140; i++)
        {
            Model.Load(context, weights);
            most = Math.Max(most, Used(context));
        }
        Demand(most < 200 << 20, "140 models take " + (most >> 20) + " MB at once");
    }

    static void MeleeFrames()
    {
        var context = new Context(threads: 1);
        var model = Model.Create(context, new ModelOptions { Blocks = "gru", Hidden = 16, HeadWidth = 16 });
        Session one = new Session(model), two = new Session(model, new SessionOptions { Streams = 2 });
        var frame = new MeleeFrame { Stage = 31, OwnPort = 1 };
        for (int port = 0; port < 2; port++) frame.Player[port] = new MeleeCharacter { Present = 1 };
        var pads = new Pad[2];
        one.Step(frame);
        two.Step(new[] { frame, frame }, pads);
        Demand(one.Info.Steps == 1 && two.Info.Steps == 1, "frames are played");
        Throws<ArgumentNullException>(() => one.Step(null));
        Throws<ArgumentNullException>(() => two.Step(new[] { frame, null }, pads));
        Fails("EXPHIL_E_INVALID", "frame: is one, must be an array of 2", () => two.Step(frame));
        Fails("EXPHIL_E_INVALID", "frames: has 1 elements, must have 2", () => two.Step(new[] { frame }, pads));
        Throws<ArgumentNullException>("frames", () => two.Step(null, pads));
        Fails("EXPHIL_E_INVALID", "pads: has 1 elements, must have 2", () => two.Step(new[] { frame, frame }, new Pad[1]));
        Fails("EXPHIL_E_INVALID", "codec", () => Melee.EncodePad("abacus", pads[0]));
        Fails("EXPHIL_E_NUMERIC", "main_x", () => Melee.EncodePad(null, new Pad { MainX = float.NaN }));
        Fails("EXPHIL_E_INVALID", "action: has 2 elements, must have 6", () => Melee.DecodePad(null, new int[2]));
        Fails("EXPHIL_E_INVALID", "", () => Melee.DecodePad(null, new[] { 0, 99, 0, 0, 0, 0 }));
        float[] floats;
        int[] ids;
        Fails("EXPHIL_E_INVALID", "layout", () => Melee.Encode("abacus", frame, out floats, out ids));
        Throws<ArgumentNullException>(() => Melee.Encode(null, null, out floats, out ids));
        frame.Player[1].X = float.NaN;
        Fails("EXPHIL_E_NUMERIC", "x", () => Melee.Encode(null, frame, out floats, out ids));
        Fails("EXPHIL_E_NUMERIC", "x", () => one.Step(frame));
        frame.Player[1].X = 0;
        frame.ItemCount = 16;
        Fails("EXPHIL_E_INVALID", "item_count", () => one.Step(frame));
        frame.ItemCount = 0;
        frame.OwnPort = 3;
        Fails("EXPHIL_E_INVALID", "own_port", () => one.Step(frame));
        Fails("EXPHIL_E_STATE", "", () => new Session(Pong(context)).Step(frame));
    }

    static float[] Row(Action<MeleeFrame> fill)
    {
        var frame = new MeleeFrame { Stage = 2, OwnPort = 1, ItemCount = 2 }; // Fountain of Dreams
        frame.Player[0].Present = frame.Player[1].Present = 1;
        fill(frame);
        float[] floats;
        int[] ids;
        Melee.Encode(null, frame, out floats, out ids);
        return floats;
    }

    static void MeleeDefaults()
    {
        Action<MeleeFrame, sbyte> own = (frame, owner) => { for (int i = 0; i < 2; i++) frame.Item[i].Owner = owner; };
        var plain = Row(frame => { });
        Action<Action<MeleeFrame>> same = fill => Demand(Row(fill).SequenceEqual(plain), "is the default");
        Action<Action<MeleeFrame>> differs = fill => Demand(!Row(fill).SequenceEqual(plain), "makes another row");
        same(frame => own(frame, -1));
        differs(frame => own(frame, 0));
        same(frame => frame.Item[1] = new MeleeItem());
        same(frame => frame.Player[0].Known = MeleeHas.All);
        differs(frame => frame.Player[0].Known = 0);
        same(frame => frame.Player[1] = new MeleeCharacter { Present = 1 });
        differs(frame => frame.Player[1] = new MeleeCharacter { Present = 1, Hitlag = 5 });
        same(frame => { frame.PlatformLeft = 20; frame.PlatformRight = 28; });
        differs(frame => frame.PlatformLeft = 0);
        differs(frame => frame.PlatformRight = 0);
        Demand(new MeleeItem { Owner = 3 }.Owner == 3 && new MeleeItem { Owner = -128 }.Owner == -128, "owners are kept");
        var some = new MeleeCharacter { Known = MeleeHas.Age | MeleeHas.Speed };
        some.Known |= MeleeHas.Flags;
        Demand(some.Known == (MeleeHas)11, "what is known is kept");
        var pad = new Pad { Buttons = PadButtons.A | PadButtons.B, MainX = -1, MainY = 0.5f };
        Demand(pad.ToString() == "A, B main -1 0.5 c 0 0 trigger 0", pad.ToString());
        Demand(new Pad().ToString() == "none main 0 0 c 0 0 trigger 0", new Pad().ToString());
    }

    static void Threads()
    {
        var model = Pong(new Context());
        var alone = Play(new Session(model, new SessionOptions { Seed = 2 }));
        var played = new int[4][][];
        var threads = Enumerable.Range(0, 4).Select(i => new Thread(() => played[i] = Play(new Session(model, new SessionOptions { Seed = 2 })))).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        Demand(played.All(one => one != null && Same(one, alone)), "threads play one model");
    }

    static void Files(string folder)
    {
        var context = new Context();
        string path = Path.Combine(folder, "policy.safetensors");
        var info = Model.Load(context, path).Info;
        Demand(info.Blocks == "mamba gru attention" && info.FloatCount == 23, "models are told");
        Demand(Model.Load(context, File.ReadAllBytes(path)).Info.WeightsHash == info.WeightsHash, "from memory too");
        string copy = Path.GetTempFileName();
        Model.Load(context, path).Save(copy);
        Demand(Model.Load(context, copy).Info.WeightsHash == info.WeightsHash, "saved models are the same");
        File.Delete(copy);
    }

    static void Replays(string folder)
    {
        var context = new Context(threads: 1);
        var dataset = new Dataset(context);
        string path = Path.Combine(folder, "training", "fox_multishine_closed.slp");
        Demand(dataset.AddReplay(path, new ReplayOptions { LastFrame = 600 }).Frames > 100, "replays have frames");
        Fails("EXPHIL_E_INVALID", "nobody", () => dataset.AddReplay(path, new ReplayOptions { Character = "nobody" }));
        var model = Model.Create(context, new ModelOptions { Blocks = "gru", Hidden = 16, HeadWidth = 16 });
        var losses = new Trainer(model, dataset, new TrainerOptions { Batch = 4 }).Updates(8).Select(metrics => metrics.Loss).ToList();
        Demand(losses[7] < losses[0], "the loss falls");
    }

    static void Layout(string assembly)
    {
        Console.WriteLine("#include <exphil/exphil.h>\n#include <stddef.h>\n");
        foreach (var type in Assembly.LoadFrom(assembly).GetType("Exphil.Native").GetNestedTypes(BindingFlags.NonPublic))
        {
            if (!type.Name.StartsWith("exphil_")) continue;
            foreach (var field in type.GetFields())
                Console.WriteLine("_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");", type.Name, field.Name, Marshal.OffsetOf(type, field.Name));
            Console.WriteLine("_Static_assert(sizeof({0}) == {1}, \"{0}\");", type.Name, Marshal.SizeOf(type));
        }
        PublicLayout(typeof(MeleeCharacter), "exphil_melee_character");
        PublicLayout(typeof(MeleeItem), "exphil_melee_item");
        PublicLayout(typeof(Pad), "exphil_pad");
        Numbers(typeof(MeleeHas), "EXPHIL_MELEE_HAS_");
        Numbers(typeof(PadButtons), "EXPHIL_PAD_");
        Console.WriteLine("_Static_assert(EXPHIL_VERSION == {0}, \"version\");", Library.Major * 10000 + Library.Minor * 100 + Library.Patch);
    }

    // SpeedAirX is speed_air_x, Flags2 is flags[1]; two are stored otherwise than C has them, in the same place.
    static string InC(string name)
    {
        if (name == "unknown") return "known";
        if (name == "notOwner") return "owner";
        string words = Regex.Replace(name, "(?<!^)([A-Z])", "_$1").ToLowerInvariant();
        return Regex.Replace(words, "[0-9]$", digit => "[" + (int.Parse(digit.Value) - 1) + "]");
    }

    static void PublicLayout(Type type, string name)
    {
        foreach (var field in type.GetFields(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic))
        {
            Console.WriteLine("_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");", name, InC(field.Name), Marshal.OffsetOf(type, field.Name));
            var kind = field.FieldType.IsEnum ? Enum.GetUnderlyingType(field.FieldType) : field.FieldType;
            Console.WriteLine("_Static_assert(sizeof((({0} *)0)->{1}) == {2}, \"{0}.{1}\");", name, InC(field.Name), Marshal.SizeOf(kind));
        }
        Console.WriteLine("_Static_assert(sizeof({0}) == {1}, \"{0}\");", name, Marshal.SizeOf(type));
    }

    static void Numbers(Type type, string prefix)
    {
        foreach (var value in Enum.GetValues(type))
            Console.WriteLine("_Static_assert({0}{1} == {2}, \"{1}\");", prefix, InC(value.ToString()).ToUpperInvariant(), (uint)value);
    }

    static int Main(string[] arguments)
    {
        if (arguments[0] == "layout")
        {
            Layout(arguments[1]);
            return 0;
        }
        Test("training lowers the loss and resumes", Training);
        Test("rollback is a copy", Rollback);
        Test("wrong rows are refused", WrongRows);
        Test("wrong files and settings are refused", WrongFiles);
        Test("what is null is named", Nulls);
        Test("what is disposed of is refused, in any order", Disposal);
        Test("what is disposed of or left to the collector gives its memory back", Memory);
        if (Directory.Exists("/proc/self/task")) Test("so do contexts, with their threads", Contexts);
        Test("many that are left to the collector do not fill the memory", Crowd);
        Test("Melee frames become controllers and rows", MeleeFrames);
        Test("what a new Melee frame leaves out is what the header says", MeleeDefaults);
        Test("threads share a model", Threads);
        Test("models of a file", () => Files(arguments[0]));
        if (arguments.Length > 1) Test("replays are learnt", () => Replays(arguments[1]));
        return failed == 0 ? 0 : 1;
    }
}
