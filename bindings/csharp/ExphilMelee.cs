// Draws Melee frames as melee_check.c does, and prints what this binding makes of them: the same lines.
//   ExphilMelee.exe make MODEL           a small policy for Melee with fresh weights
//   ExphilMelee.exe play MODEL FRAMES

using System;
using System.Linq;
using Exphil;

static class ExphilMelee
{
    static uint state = 1;

    static uint Draw(uint below)
    {
        state = unchecked(state * 1664525u + 1013904223u);
        return (state >> 8) % below;
    }

    static float Number(float size) { return (float)((float)((float)Draw(1u << 24) / 8388608.0f - 1.0f) * size); }
    static byte Byte() { return (byte)Draw(Draw(2) != 0 ? 4u : 256u); }

    static MeleeCharacter DrawCharacter()
    {
        return new MeleeCharacter
        {
            Present = Draw(4) != 0 ? 1 : 0, Known = Draw(2) != 0 ? MeleeHas.All : (MeleeHas)Draw(32), X = Number(60), Y = Number(60),
            Facing = Number(60), Percent = Number(60), Shield = Number(60), StateAge = Number(60), Misc = Number(60),
            SpeedAirX = Number(60), SpeedY = Number(60), SpeedAttackX = Number(60), SpeedAttackY = Number(60),
            SpeedGroundX = Number(60), Hitlag = Number(60), ActionState = (ushort)Draw(400), Ground = (ushort)Draw(8),
            Character = Byte(), Stocks = Byte(), LastAttack = Byte(), Combo = Byte(), LastHitBy = Byte(), Airborne = Byte(),
            Jumps = Byte(), LCancel = Byte(), Hurtbox = Byte(), Flags1 = Byte(), Flags2 = Byte(), Flags3 = Byte(),
            Flags4 = Byte(), Flags5 = Byte()
        };
    }

    static MeleeItem DrawItem()
    {
        return new MeleeItem
        {
            Facing = Number(60), SpeedX = Number(60), SpeedY = Number(60), X = Number(60), Y = Number(60), Timer = Number(60),
            SpawnId = Draw(100), Type = (ushort)Draw(240), Damage = (ushort)Draw(60), State = (byte)Draw(8),
            Misc1 = (byte)Draw(256), Misc2 = (byte)Draw(256), Misc3 = (byte)Draw(256), Misc4 = (byte)Draw(256),
            Owner = (sbyte)((int)Draw(5) - 1)
        };
    }

    static void DrawFrame(MeleeFrame frame, int number)
    {
        frame.Frame = number;
        frame.Stage = (int)Draw(33);
        frame.OwnPort = (int)Draw(4) + 1;
        frame.OpponentPort = Draw(4) != 0 ? (frame.OwnPort + (int)Draw(3)) % 4 + 1 : 0; // another one
        for (int i = 0; i < 4; i++)
        {
            frame.Player[i] = DrawCharacter();
            frame.Follower[i] = DrawCharacter();
        }
        frame.Player[frame.OwnPort - 1].Present = 1;
        frame.PlatformLeft = Number(30);
        frame.PlatformRight = Number(30);
        frame.Wind = (int)Draw(3);
        frame.StadiumKind = (int)Draw(10);
        frame.StadiumEvent = (int)Draw(10);
        frame.ItemCount = (int)Draw(16);
        for (int i = 0; i < 15; i++) frame.Item[i] = DrawItem();
    }

    static uint Bits(float value) { return BitConverter.ToUInt32(BitConverter.GetBytes(value), 0); }

    static void Print(string name, Pad pad)
    {
        var axes = new[] { pad.MainX, pad.MainY, pad.CX, pad.CY, pad.Trigger };
        Console.WriteLine(name + " " + ((uint)pad.Buttons).ToString("x") + string.Concat(axes.Select(axis => " " + Bits(axis).ToString("x"))));
    }

    static void PrintRow(string layout, MeleeFrame frame)
    {
        float[] floats;
        int[] ids;
        Melee.Encode(layout, frame, out floats, out ids);
        ulong hash = floats.Select(Bits).Concat(ids.Select(id => (uint)id)).Aggregate(14695981039346656037,
            (sum, word) => unchecked((sum ^ word) * 1099511628211));
        Console.WriteLine((layout ?? "melee2") + " " + floats.Length + " " + ids.Length + " " + hash.ToString("x"));
    }

    // As little as a host must say; the rest is what a new frame has.
    static MeleeFrame PlainFrame()
    {
        var frame = new MeleeFrame { Stage = 2, OwnPort = 1, ItemCount = 2 };
        for (int i = 0; i < 2; i++) frame.Player[i] = new MeleeCharacter { Present = 1, Hitlag = 5 };
        frame.Item[1] = new MeleeItem();
        return frame;
    }

    static void Play(Model model, int count)
    {
        PrintRow(null, PlainFrame());
        PrintRow("exphil288", PlainFrame());
        var one = new Session(model, new SessionOptions { Seed = 5 });
        var two = new Session(model, new SessionOptions { Seed = 5, Streams = 2 });
        var frames = new[] { new MeleeFrame(), new MeleeFrame() };
        var pads = new Pad[2];
        for (int t = 0; t < count; t++)
        {
            foreach (var frame in frames) DrawFrame(frame, t - 123);
            PrintRow(null, frames[0]);
            PrintRow("exphil288", frames[0]);
            Print("one", one.Step(frames[0]));
            two.Step(frames, pads);
            Print("first", pads[0]);
            Print("second", pads[1]);
            var action = Melee.EncodePad("exphil81-floor", pads[1]);
            Console.WriteLine("action " + string.Join(" ", action));
            Print("again", Melee.DecodePad("exphil81-floor", action));
        }
    }

    static int Main(string[] arguments)
    {
        var context = new Context();
        if (arguments[0] == "make")
            Model.Create(context, new ModelOptions { Blocks = "gru", Hidden = 16, HeadWidth = 16, DelayFrames = 2 }).Save(arguments[1]);
        else Play(Model.Load(context, arguments[1]), int.Parse(arguments[2]));
        return 0;
    }
}
