// Replays a trace that a C program recorded, or times a step; tests/hosts/trace.h has the format.
//   ExphilTrace.exe check MODEL TRACE      every action and every bit of every logit must be the same
//   ExphilTrace.exe bench MODEL [STEPS]    median nanoseconds of one StepRow, as one JSON object

using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using Exphil;

static class ExphilTrace
{
    static void Fill(BinaryReader reader, Array values)
    {
        var bytes = reader.ReadBytes(Buffer.ByteLength(values));
        if (bytes.Length != Buffer.ByteLength(values)) throw new Exception("the trace ends within a frame");
        Buffer.BlockCopy(bytes, 0, values, 0, bytes.Length);
    }

    static bool SameBits(Array a, Array b)
    {
        return Enumerable.Range(0, Buffer.ByteLength(a)).All(i => Buffer.GetByte(a, i) == Buffer.GetByte(b, i));
    }

    static void Check(Model model, string path)
    {
        using (var reader = new BinaryReader(File.OpenRead(path)))
        {
            if (new string(reader.ReadChars(8)) != "exphtrc1") throw new Exception("this is no trace");
            var shape = new int[6];
            Fill(reader, shape);
            var options = new SessionOptions { Seed = reader.ReadUInt64(), Deterministic = shape[4] != 0 };
            long frames = reader.ReadInt64();
            var session = new Session(model, options);
            var own = new[] { session.Floats.Length, session.Ids.Length, session.HeadCount, session.LogitCount };
            if (!own.SequenceEqual(shape.Take(4))) throw new Exception("the trace is of another model");
            var actions = new int[own[2]];
            float[] logits = new float[own[3]], wanted = new float[own[3]];
            for (long frame = 0; frame < frames; frame++)
            {
                if (reader.ReadInt32() != 0) session.Reset();
                Fill(reader, session.Floats);
                Fill(reader, session.Ids);
                Fill(reader, actions);
                Fill(reader, wanted);
                session.StepRow();
                session.Logits(0, logits);
                if (!session.Actions.SequenceEqual(actions) || !SameBits(logits, wanted))
                    throw new Exception("frame " + frame + " differs");
            }
            Console.WriteLine("csharp: " + frames + " frames identical");
        }
    }

    // Each call is timed alone; the clock's own cost is measured the same way and told, not taken off.
    static long Median(int steps, Action work)
    {
        var took = new long[steps];
        for (int i = 0; i < steps; i++)
        {
            long start = Stopwatch.GetTimestamp();
            work();
            took[i] = Stopwatch.GetTimestamp() - start;
        }
        Array.Sort(took);
        return took[steps / 2] * (1000000000 / Stopwatch.Frequency);
    }

    static void Bench(Model model, int steps)
    {
        var session = new Session(model, new SessionOptions { Seed = 1, Deterministic = true });
        long clock = Median(steps, () => { });
        long call = Median(steps, () => session.StepRow());
        Console.WriteLine("{{\"host\":\"csharp\",\"median_ns\":{0},\"clock_ns\":{1},\"steps\":{2}}}", call, clock, steps);
    }

    static int Main(string[] arguments)
    {
        try
        {
            if (arguments.Length < 2) throw new Exception("ExphilTrace check MODEL TRACE | bench MODEL [STEPS]");
            using (var model = Model.Load(new Context(), arguments[1]))
                if (arguments[0] == "check") Check(model, arguments[2]);
                else Bench(model, arguments.Length > 2 ? int.Parse(arguments[2]) : 100000);
            return 0;
        }
        catch (Exception e)
        {
            Console.Error.WriteLine(e.Message);
            return 1;
        }
    }
}
