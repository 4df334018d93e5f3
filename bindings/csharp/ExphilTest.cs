// Tests of the C# binding: ExphilTest.exe TRACE-FOLDER [REPLAYS]; ExphilTest.exe layout ASSEMBLY prints C assertions that hold when
// the structures have the layout of the header.

using System;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
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
        Fails("EXPHIL_E_INVALID", "ids", () => session.StepRow(new float[3], null, new int[2]));
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
        Throws<ArgumentNullException>(() => Model.Load(context, (string)null));
        Throws<ArgumentNullException>(() => Model.Load(context, (byte[])null));
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
        Throws<ArgumentNullException>(() => Games(context).AddRows(9, new float[3], new int[1], null));
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
        Throws<ObjectDisposedException>(() => session.StepRow());
        Throws<ObjectDisposedException>(() => session.Clone());
        Throws<ObjectDisposedException>(() => Console.Write(model.Info));
        Throws<ObjectDisposedException>(() => Console.Write(dataset.Info));
        Throws<ObjectDisposedException>(() => Model.Load(context, "x"));
        for (int i = 0; i < 50; i++) new Session(Pong(new Context(threads: 1))).StepRow();
        GC.Collect();
        GC.WaitForPendingFinalizers();
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
        Console.WriteLine("_Static_assert(EXPHIL_VERSION == {0}, \"version\");", Library.Major * 10000 + Library.Minor * 100 + Library.Patch);
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
        Test("what is disposed of is refused, in any order", Disposal);
        Test("threads share a model", Threads);
        Test("models of a file", () => Files(arguments[0]));
        if (arguments.Length > 1) Test("replays are learnt", () => Replays(arguments[1]));
        return failed == 0 ? 0 : 1;
    }
}
