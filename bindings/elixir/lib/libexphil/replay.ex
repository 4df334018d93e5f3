defmodule LibExphil.Replay do
  @moduledoc """
  A Slippi replay. A replay that was cut is not a failure: all complete frames are there, and `info/1` says where reading stopped.

  Positions count from 0; `position/2` finds that of a game frame (-123 is the first). Ports are 1..4. Fields that a replay does
  not record are nil (floats) or all ones; `info.fields` says which exist.
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Error, Melee, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc "Reads a file. Options: `:limit_bytes`, `:rollback` (`:last`, `:first`, `:all`)."
  @spec open(Context.t(), Path.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def open(%Context{ref: ref}, path, options \\ []) do
    LibExphil.wrap(Nif.replay_open(ref, IO.chardata_to_string(path), LibExphil.options(options)), __MODULE__)
  end

  @doc "Reads the bytes of a file."
  @spec read(Context.t(), binary(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def read(%Context{ref: ref}, data, options \\ []) do
    LibExphil.wrap(Nif.replay_read(ref, data, LibExphil.options(options)), __MODULE__)
  end

  @doc "What the replay is: stage, ports, frames, how it ended and how well it could be read."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.replay_info(ref)

  @doc "Position of a game frame."
  @spec position(t(), integer()) :: {:ok, non_neg_integer()} | {:error, Error.t()}
  def position(%__MODULE__{ref: ref}, frame), do: Nif.replay_position(ref, frame)

  @doc "The frame at a position: stage and items."
  @spec frame(t(), integer()) :: {:ok, map()} | {:error, Error.t()}
  def frame(%__MODULE__{ref: ref}, position), do: Nif.replay_frame(ref, position)

  @doc "Characters with at least one record: port, follower, first and last frame."
  @spec slots(t()) :: {:ok, [map()]} | {:error, Error.t()}
  def slots(%__MODULE__{ref: ref}), do: Nif.replay_slots(ref)

  @doc "What the game recorded of a character at a position; nil when it is not there."
  @spec player(t(), integer(), 1..4, boolean()) :: {:ok, map() | nil} | {:error, Error.t()}
  def player(%__MODULE__{ref: ref}, position, port, follower \\ false) do
    Nif.replay_player(ref, position, port, follower)
  end

  @doc "What a policy that plays `own_port` knows after the frame at a position."
  @spec melee_frame(t(), integer(), 1..4, 0..4) :: {:ok, Melee.Frame.t()} | {:error, Error.t()}
  def melee_frame(%__MODULE__{ref: ref}, position, own_port, opponent_port \\ 0) do
    Nif.replay_melee_frame(ref, position, own_port, opponent_port)
  end

  @doc "What the player of a port did on the frame at a position."
  @spec melee_pad(t(), integer(), 1..4) :: {:ok, Melee.Pad.t()} | {:error, Error.t()}
  def melee_pad(%__MODULE__{ref: ref}, position, port), do: Nif.replay_melee_pad(ref, position, port)

  @doc """
  All that a policy learns of the player of a port, in one call: what `LibExphil.Dataset.add_replay/3` would add with these options.
  Binaries of rows under `:floats`, `:ids` and `:actions`, and under `:frames` the game frame of each (signed, 32 bits). Options:
  `:layout` and `:codec` (as of `LibExphil.Melee.spec/2`), `:character`, `:opponent_port`, `:first_frame`, `:last_frame`.
  """
  @spec rows(t(), 1..4, LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def rows(%__MODULE__{ref: ref}, port, options \\ []) do
    {layout, options} = Map.pop(LibExphil.options(options), :layout)
    {codec, options} = Map.pop(options, :codec)
    Nif.replay_rows(ref, layout, codec, Map.put(options, :port, port))
  end

  @doc "Records of a slot as packed bytes, for comparing readers: `:state`, `:input`, `:aux`, `:items` (layouts in exphil/slp.h)."
  @spec dump(t(), :state | :input | :aux | :items, integer()) :: {:ok, binary()} | {:error, Error.t()}
  def dump(%__MODULE__{ref: ref}, kind, slot \\ 0), do: Nif.replay_dump(ref, kind, slot)

  bang open(Context.t(), Path.t()) :: t()
  bang open(Context.t(), Path.t(), LibExphil.options()) :: t()
  bang read(Context.t(), binary()) :: t()
  bang read(Context.t(), binary(), LibExphil.options()) :: t()
  bang info(t()) :: map()
  bang position(t(), integer()) :: non_neg_integer()
  bang frame(t(), integer()) :: map()
  bang slots(t()) :: [map()]
  bang player(t(), integer(), 1..4) :: map() | nil
  bang player(t(), integer(), 1..4, boolean()) :: map() | nil
  bang melee_frame(t(), integer(), 1..4) :: Melee.Frame.t()
  bang melee_frame(t(), integer(), 1..4, 0..4) :: Melee.Frame.t()
  bang melee_pad(t(), integer(), 1..4) :: Melee.Pad.t()
  bang rows(t(), 1..4) :: map()
  bang rows(t(), 1..4, LibExphil.options()) :: map()
  bang dump(t(), :state | :input | :aux | :items) :: binary()
  bang dump(t(), :state | :input | :aux | :items, integer()) :: binary()
end
