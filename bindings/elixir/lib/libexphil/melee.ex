defmodule LibExphil.Melee do
  @moduledoc """
  Melee: frames, controllers, and the one encoder that replays, live games and simulators pass through.

      frame = %LibExphil.Melee.Frame{
        frame: 100,
        stage: 32,
        own_port: 1,
        players: %{1 => %LibExphil.Melee.Character{x: -30.0}, 2 => %LibExphil.Melee.Character{x: 30.0}}
      }
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Nif}
  alias LibExphil.Melee.{Frame, Pad}

  @doc "A preset: layout \"melee2\" (nil), \"exphil288\", \"slippi\" or \"slippi-nana\", codec \"exphil81\" (nil), \"exphil81-floor\", \"slippi\" or \"slippi-fine\"."
  @spec spec(String.t() | nil, String.t() | nil) :: {:ok, map()} | {:error, Error.t()}
  def spec(layout \\ nil, codec \\ nil), do: Nif.melee_spec(layout, codec)

  @doc "Every column of a layout: which number stands where, and how it was scaled."
  @spec fields(String.t() | nil) :: {:ok, [map()]} | {:error, Error.t()}
  def fields(layout \\ nil), do: Nif.melee_fields(layout)

  @doc "A frame as a row: `{floats, ids}`."
  @spec encode(Frame.t() | map(), String.t() | nil) :: {:ok, {binary(), binary()}} | {:error, Error.t()}
  def encode(frame, layout \\ nil), do: Nif.melee_encode(layout, frame)

  @doc "A frame as bytes, the C struct itself: for those who step it more than once or send it elsewhere on this machine."
  @spec pack(Frame.t() | map()) :: {:ok, binary()} | {:error, Error.t()}
  def pack(frame), do: Nif.melee_pack(frame)

  @doc "And back."
  @spec unpack(binary()) :: {:ok, Frame.t()} | {:error, Error.t()}
  def unpack(packed), do: Nif.melee_unpack(packed)

  @doc "A controller as the values of the heads."
  @spec encode_pad(Pad.t() | map(), String.t() | nil) :: {:ok, binary()} | {:error, Error.t()}
  def encode_pad(pad, codec \\ nil), do: Nif.melee_pad_encode(codec, pad)

  @doc "And back: the nearest controller that the codec can say."
  @spec decode_pad(binary(), String.t() | nil) :: {:ok, Pad.t()} | {:error, Error.t()}
  def decode_pad(action, codec \\ nil), do: Nif.melee_pad_decode(codec, action)

  @doc """
  What a frame is worth to a player, by what the player and the opponent went through in it: two frames as one player sees them; 0.0
  where they do not follow each other. Options are the fields of `exphil_melee_reward_config`: `:stock`, `:damage`, `:follower`, `:ledge`,
  `:stalling`, `:stalling_distance`, `:approach`.
  """
  @spec reward(Frame.t() | map(), Frame.t() | map(), LibExphil.options()) :: {:ok, float()} | {:error, Error.t()}
  def reward(before, now, options \\ []), do: Nif.melee_reward(LibExphil.options(options), before, now)

  @doc "Name of an external character id (\"fox\"), nil when unknown."
  @spec character_name(integer()) :: String.t() | nil
  def character_name(id), do: Nif.melee_character_name(id)

  @doc "Name of an external stage id (\"battlefield\"), nil when unknown."
  @spec stage_name(integer()) :: String.t() | nil
  def stage_name(id), do: Nif.melee_stage_name(id)

  bang spec() :: map()
  bang spec(String.t() | nil, String.t() | nil) :: map()
  bang fields() :: [map()]
  bang fields(String.t() | nil) :: [map()]
  bang encode(Frame.t() | map()) :: {binary(), binary()}
  bang encode(Frame.t() | map(), String.t() | nil) :: {binary(), binary()}
  bang reward(Frame.t() | map(), Frame.t() | map()) :: float()
  bang reward(Frame.t() | map(), Frame.t() | map(), LibExphil.options()) :: float()
  bang pack(Frame.t() | map()) :: binary()
  bang unpack(binary()) :: Frame.t()
  bang encode_pad(Pad.t() | map()) :: binary()
  bang encode_pad(Pad.t() | map(), String.t() | nil) :: binary()
  bang decode_pad(binary()) :: Pad.t()
  bang decode_pad(binary(), String.t() | nil) :: Pad.t()
end

defmodule LibExphil.Melee.Character do
  @moduledoc """
  One character at the end of a frame, in the units of the replay's post-frame event. `known` says which of the later fields are known
  (31: all of them, as a live host has them); `character` is the internal id.
  """

  defstruct known: 31,
            x: 0.0,
            y: 0.0,
            facing: 1.0,
            percent: 0.0,
            shield: 60.0,
            state_age: 0.0,
            misc: 0.0,
            speed_air_x: 0.0,
            speed_y: 0.0,
            speed_attack_x: 0.0,
            speed_attack_y: 0.0,
            speed_ground_x: 0.0,
            hitlag: 0.0,
            action_state: 14,
            ground: 0,
            character: 0,
            stocks: 4,
            last_attack: 0,
            combo: 0,
            last_hit_by: 6,
            airborne: 0,
            jumps: 2,
            l_cancel: 0,
            hurtbox: 0,
            flags: [0, 0, 0, 0, 0]

  @type t :: %__MODULE__{}
end

defmodule LibExphil.Melee.Item do
  @moduledoc "One item of a frame. `owner` is a port index 0..3, or -1."

  defstruct facing: 1.0,
            speed_x: 0.0,
            speed_y: 0.0,
            x: 0.0,
            y: 0.0,
            timer: 0.0,
            spawn_id: 0,
            type: 0,
            damage: 0,
            state: 0,
            misc: [0, 0, 0, 0],
            owner: -1

  @type t :: %__MODULE__{}
end

defmodule LibExphil.Melee.Frame do
  @moduledoc """
  What is known at the end of a frame. `players` and `followers` (Nana) are maps from port (1..4) to character; who is not there
  has no key. Ports are 1..4; `opponent_port` 0 is the first other port.

  A plain map with some of these keys is a frame too: what is left out is as in the struct, but characters and items made of plain
  maps start from zero (`known` from 31, `owner` from -1).
  """

  alias LibExphil.Melee.{Character, Item}

  defstruct frame: 0,
            stage: 0,
            own_port: 1,
            opponent_port: 0,
            players: %{},
            followers: %{},
            platform_left: 20.0,
            platform_right: 28.0,
            wind: 0,
            stadium_kind: 0,
            stadium_event: 0,
            items: []

  @type t :: %__MODULE__{
          frame: integer(),
          stage: integer(),
          own_port: integer(),
          opponent_port: integer(),
          players: %{optional(1..4) => Character.t() | map()},
          followers: %{optional(1..4) => Character.t() | map()},
          platform_left: number(),
          platform_right: number(),
          wind: integer(),
          stadium_kind: integer(),
          stadium_event: integer(),
          items: [Item.t() | map()]
        }
end

defmodule LibExphil.Melee.Pad do
  @moduledoc "A controller: `buttons` as bits, sticks -1..1, one value 0..1 for both triggers."

  import Bitwise

  @bits [
    d_left: 0x0001,
    d_right: 0x0002,
    d_down: 0x0004,
    d_up: 0x0008,
    z: 0x0010,
    r: 0x0020,
    l: 0x0040,
    a: 0x0100,
    b: 0x0200,
    x: 0x0400,
    y: 0x0800,
    start: 0x1000
  ]

  defstruct buttons: 0, main_x: 0.0, main_y: 0.0, c_x: 0.0, c_y: 0.0, trigger: 0.0

  @type button :: :d_left | :d_right | :d_down | :d_up | :z | :r | :l | :a | :b | :x | :y | :start
  @type t :: %__MODULE__{
          buttons: non_neg_integer(),
          main_x: float(),
          main_y: float(),
          c_x: float(),
          c_y: float(),
          trigger: float()
        }

  @doc "Whether a button is down."
  @spec pressed?(t(), button()) :: boolean()
  def pressed?(%__MODULE__{buttons: buttons}, button), do: (buttons &&& Keyword.fetch!(@bits, button)) != 0

  @doc "The buttons that are down."
  @spec pressed(t()) :: [button()]
  def pressed(%__MODULE__{buttons: buttons}), do: for({name, bit} <- @bits, (buttons &&& bit) != 0, do: name)

  @doc "The bits of some buttons."
  @spec bits([button()]) :: non_neg_integer()
  def bits(names), do: Enum.reduce(names, 0, fn name, bits -> bits ||| Keyword.fetch!(@bits, name) end)
end
