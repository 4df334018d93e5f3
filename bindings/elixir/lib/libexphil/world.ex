defmodule LibExphil.World do
  @moduledoc """
  Games that can be stepped, many at once: `lanes` games, each with `seats` players. A stream is one player: lane l, seat s is
  stream `l * seats + s`.

      world = LibExphil.World.create!(context, "cartpole", lanes: 16)

  Worlds are the library's own, by name: `"cartpole"`, `"cartpole-blind"`, `"pong"`, `"pong-two"` (the header `learn.h` says what they
  are). `LibExphil.Rollout.run/2` plays them without asking the VM.

  A game of your own is no world: the library would have to call Elixir in the middle of its work, and no scheduler may wait
  for a process. The process of the game plays it by itself, with `LibExphil.Rollout.step/3` and `LibExphil.Rollout.reward/5`.
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Error, Model, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc "Binaries of a frame: `floats`, `ids`, `reward` (`:f32`) of all streams; `end` (`:u8`) of all lanes: 0 goes on, 1 over, 2 cut off."
  @type frame :: %{floats: binary(), ids: binary(), reward: binary(), end: binary()}

  @doc "One of the library's own. Options: `:lanes`, 1 to 4096, default 1."
  @spec create(Context.t(), String.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Context{ref: ref}, name, options \\ []) do
    with {:ok, lanes} <- LibExphil.only_option(options, "world", :lanes, 1),
         do: LibExphil.wrap(Nif.world_create(ref, name, lanes), __MODULE__)
  end

  @doc """
  The same lanes with one seat: the other of two is played by policies that do not learn. Lane l is played against the model
  `rem(l, n)` of the list, in the first seat where `div(l, n)` is even and in the second elsewhere. Options: `:seed` of their draws. The
  world beneath is in use for as long as this one lives.
  """
  @spec against(t(), [Model.t()], LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def against(%__MODULE__{ref: ref}, opponents, options \\ []) when is_list(opponents) do
    with {:ok, seed} <- LibExphil.only_option(options, "world", :seed, 0),
         do:
           LibExphil.wrap(
             Nif.world_against(ref, Enum.map(opponents, fn %Model{ref: model} -> model end), seed),
             __MODULE__
           )
  end

  @doc """
  Of opponent `index` of a world that `against/3` made: the `episodes` since the last call, and how many of them whoever plays the
  world's seat `won` and `lost`. A model takes its place, between two frames.
  """
  @spec opponent(t(), integer(), Model.t() | nil) :: {:ok, map()} | {:error, Error.t()}
  def opponent(world, index, model \\ nil)
  def opponent(%__MODULE__{ref: ref}, index, nil), do: Nif.world_opponent(ref, index, nil)
  def opponent(%__MODULE__{ref: ref}, index, %Model{ref: model}), do: Nif.world_opponent(ref, index, model)

  @doc "`lanes`, `seats`, `streams`, `state_bytes` (0: it cannot be saved) and `spec`, which `LibExphil.Model.create/2` takes."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.world_info(ref)

  @doc "A new episode of a lane, for a process that plays by itself: `{floats, ids}` of its players' first row."
  @spec reset(t(), integer(), integer()) :: {:ok, {binary(), binary()}} | {:error, Error.t()}
  def reset(%__MODULE__{ref: ref}, lane, seed), do: Nif.world_reset(ref, lane, seed)

  @doc "A frame of all lanes. A lane that has ended is reset before it is stepped again."
  @spec step(t(), binary()) :: {:ok, frame()} | {:error, Error.t()}
  def step(%__MODULE__{ref: ref}, actions), do: Nif.world_step(ref, actions)

  @doc "The game of a lane as a binary, and `load/3` back, on any lane."
  @spec save(t(), integer()) :: {:ok, binary()} | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, lane), do: Nif.world_save(ref, lane)

  @doc "Puts it back."
  @spec load(t(), integer(), binary()) :: :ok | {:error, Error.t()}
  def load(%__MODULE__{ref: ref}, lane, state), do: Nif.world_load(ref, lane, state)

  bang create(Context.t(), String.t()) :: t()
  bang create(Context.t(), String.t(), LibExphil.options()) :: t()
  bang against(t(), [Model.t()]) :: t()
  bang against(t(), [Model.t()], LibExphil.options()) :: t()
  bang opponent(t(), integer()) :: map()
  bang opponent(t(), integer(), Model.t() | nil) :: map()
  bang info(t()) :: map()
  bang reset(t(), integer(), integer()) :: {binary(), binary()}
  bang step(t(), binary()) :: frame()
  bang save(t(), integer()) :: binary()
  bang load(t(), integer(), binary()) :: :ok
end
