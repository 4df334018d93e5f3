// Melee's own records: the state of the game, which a host fills, the controller, which a policy answers, and the encoder between
// them and rows. Names, units and ranges are those of exphil_melee_frame and exphil_pad in the C header.

using System;
using System.Globalization;
using static Exphil.Native;

namespace Exphil
{
    /// <summary>One character at the end of a frame, in the units of a replay's post-frame event. Of a new one all is known.</summary>
    public unsafe struct MeleeCharacter
    {
        /// <summary>0: absent, all else is ignored.</summary>
        public int Present;
        internal MeleeHas unknown; // in the place of known, so that the zeros of a new one say that all is
        public float X, Y, Facing, Percent, Shield, StateAge, Misc;
        public float SpeedAirX, SpeedY, SpeedAttackX, SpeedAttackY, SpeedGroundX, Hitlag;
        public ushort ActionState, Ground;
        /// <summary>The internal id: of Fox 1.</summary>
        public byte Character;
        public byte Stocks, LastAttack, Combo, LastHitBy, Airborne, Jumps, LCancel, Hurtbox;
        public byte Flags1, Flags2, Flags3, Flags4, Flags5;

        /// <summary>All, unless it is set: only an old replay knows less.</summary>
        public MeleeHas Known
        {
            get { return MeleeHas.All ^ unknown; }
            set { unknown = MeleeHas.All ^ value; }
        }

        internal void Write(MeleeCharacter* raw)
        {
            *raw = this;
            raw->unknown = Known;
        }
    }

    /// <summary>A new one is nobody's.</summary>
    public unsafe struct MeleeItem
    {
        public float Facing, SpeedX, SpeedY, X, Y, Timer;
        public uint SpawnId;
        public ushort Type, Damage;
        public byte State, Misc1, Misc2, Misc3, Misc4;
        internal sbyte notOwner; // in the place of owner, so that the zeros of a new one say -1

        /// <summary>Port - 1, or -1, unless it is set: nobody's.</summary>
        public sbyte Owner
        {
            get { return (sbyte)~notOwner; }
            set { notOwner = (sbyte)~value; }
        }

        internal void Write(MeleeItem* raw)
        {
            *raw = this;
            raw->notOwner = Owner;
        }
    }

    /// <summary>The state of a game at the end of a frame. A new one has nobody in it; it may be filled again and again.</summary>
    public sealed unsafe class MeleeFrame
    {
        /// <summary>-123 is the first of a game; the clock starts at 0.</summary>
        public int Frame;
        /// <summary>The external id.</summary>
        public int Stage;
        /// <summary>1 to 4; opponent 0: the first other one.</summary>
        public int OwnPort, OpponentPort;
        /// <summary>Fountain of Dreams; a new frame has what stands before the first event.</summary>
        public float PlatformLeft = 20, PlatformRight = 28;
        public int Wind, StadiumKind, StadiumEvent;
        /// <summary>How many of Item there are.</summary>
        public int ItemCount;
        /// <summary>By port - 1; a follower is Nana.</summary>
        public MeleeCharacter[] Player { get; } = new MeleeCharacter[4];
        public MeleeCharacter[] Follower { get; } = new MeleeCharacter[4];
        public MeleeItem[] Item { get; } = new MeleeItem[15];

        internal void Write(exphil_melee_frame* raw)
        {
            raw->struct_size = (UIntPtr)sizeof(exphil_melee_frame);
            raw->frame = Frame;
            raw->stage = Stage;
            raw->own_port = OwnPort;
            raw->opponent_port = OpponentPort;
            raw->platform_left = PlatformLeft;
            raw->platform_right = PlatformRight;
            raw->wind = Wind;
            raw->stadium_kind = StadiumKind;
            raw->stadium_event = StadiumEvent;
            raw->item_count = ItemCount;
            for (int i = 0; i < Player.Length; i++)
            {
                Player[i].Write((MeleeCharacter*)raw->player + i);
                Follower[i].Write((MeleeCharacter*)raw->follower + i);
            }
            for (int i = 0; i < Item.Length; i++) Item[i].Write((MeleeItem*)raw->item + i);
        }
    }

    /// <summary>The controller of one player: sticks -1 to 1, trigger 0 to 1.</summary>
    public struct Pad
    {
        public PadButtons Buttons;
        public float MainX, MainY, CX, CY, Trigger;

        /// <summary>"A, B main -1 0.5 c 0 0 trigger 0", in every locale; without buttons "none main ...".</summary>
        public override string ToString()
        {
            return string.Format(CultureInfo.InvariantCulture, "{0} main {1} {2} c {3} {4} trigger {5}",
                Buttons == 0 ? "none" : Buttons.ToString(), MainX, MainY, CX, CY, Trigger);
        }
    }

    /// <summary>The encoder: live frames and pads to rows, as a dataset and StepRow take them. A layout or codec of null is the
    /// default: "melee2", "exphil81".</summary>
    public static unsafe class Melee
    {
        /// <summary>What is known after this frame, as one row.</summary>
        public static void Encode(string layout, MeleeFrame frame, out float[] floats, out int[] ids)
        {
            Given(frame, "frame");
            var spec = Spec(layout, null);
            var newFloats = new float[spec.float_count];
            var newIds = new int[spec.id_count];
            var error = NoError();
            exphil_melee_frame raw;
            frame.Write(&raw);
            fixed (float* f = newFloats)
            fixed (int* i = newIds)
                Check(exphil_melee_encode(Name("layout", layout), &raw, f, i, &error), &error);
            floats = newFloats;
            ids = newIds;
        }

        /// <summary>A pad as the nearest action that the codec can say.</summary>
        public static int[] EncodePad(string codec, Pad pad)
        {
            var action = new int[Spec(null, codec).head_count];
            var error = NoError();
            fixed (int* a = action) Check(exphil_melee_pad_encode(Name("codec", codec), &pad, a, &error), &error);
            return action;
        }

        public static Pad DecodePad(string codec, int[] action)
        {
            Session.Expect("action", action, (int)Spec(null, codec).head_count);
            Pad pad;
            var error = NoError();
            fixed (int* a = action) Check(exphil_melee_pad_decode(Name("codec", codec), a, &pad, &error), &error);
            return pad;
        }

        static byte[] Name(string what, string name) { return name == null ? null : Utf8(what, name); }

        static exphil_spec Spec(string layout, string codec)
        {
            Loaded(); // may be the first call of all
            var error = NoError();
            var spec = new exphil_spec { struct_size = (UIntPtr)sizeof(exphil_spec) };
            Check(exphil_melee_spec(Name("layout", layout), Name("codec", codec), &spec, &error), &error);
            return spec;
        }
    }
}
