defmodule LibExphil.Dataset do
  @moduledoc """
  Frames in memory, grouped in episodes (one player's side of one game).

      dataset = LibExphil.Dataset.create!(context)
      LibExphil.Dataset.add_replay!(dataset, "game.slp", character: "fox")
      {train, held_out} = LibExphil.Dataset.split!(dataset, held_out: 0.1)
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Error, Games, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc "An empty dataset. The spec is that of the game, Melee's defaults when it is nil."
  @spec create(Context.t(), LibExphil.spec() | nil) :: {:ok, t()} | {:error, Error.t()}
  def create(%Context{ref: ref}, spec \\ nil), do: LibExphil.wrap(Nif.dataset_create(ref, spec), __MODULE__)

  @doc "Opens a file that `save/2` wrote; it stays open, and its rows are read when they are needed."
  @spec open(Context.t(), Path.t()) :: {:ok, t()} | {:error, Error.t()}
  def open(%Context{ref: ref}, path) do
    LibExphil.wrap(Nif.dataset_open(ref, IO.chardata_to_string(path)), __MODULE__)
  end

  @doc "Writes all rows."
  @spec save(t(), Path.t()) :: :ok | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, path), do: Nif.dataset_save(ref, IO.chardata_to_string(path))

  @doc "Checks every row of an opened file now."
  @spec verify(t()) :: :ok | {:error, Error.t()}
  def verify(%__MODULE__{ref: ref}), do: Nif.dataset_verify(ref)

  @doc """
  Adds a replay. Options: `:character` ("fox"), `:port` (1..4), `:opponent_port`, `:first_frame`, `:last_frame`. The answer says what was
  added, and what was left out.
  """
  @spec add_replay(t(), Path.t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def add_replay(%__MODULE__{ref: ref}, path, options \\ []) do
    Nif.dataset_add_replay(ref, IO.chardata_to_string(path), LibExphil.options(options))
  end

  @doc "The same from the bytes of a replay."
  @spec add_replay_memory(t(), binary(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def add_replay_memory(%__MODULE__{ref: ref}, data, options \\ []) do
    Nif.dataset_add_replay_memory(ref, data, LibExphil.options(options))
  end

  @doc """
  Adds rows of a corpus of games, which are made when they are needed: of every human player, or of those that pass. Options: of the
  game `:stages` ("battlefield, final_destination"), `:least_frames`, `:most_frames`, `:first_day`, `:last_day`, `:least_version`,
  `:teams` and `:items` (`:with_or_without`, `:without`, `:with`), `:players`, `:complete`, `:humans`; of the player `:characters`
  ("fox falco"), `:port`, `:result` (`:any`, `:won`, `:lost`), `:least_damage`, `:least_stocks`, `:self_destructs_below`,
  `:least_input`; of its opponent `:opponents`, `:opponent_port`; and `:first_frame`, `:last_frame`, `:duplicates`. The header games.h
  says what each asks. The answer says what was taken, and under `:refused` how many players were not, by the reason in words.
  """
  @spec add_games(t(), Games.t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def add_games(%__MODULE__{ref: ref}, %Games{ref: games}, selection \\ []) do
    Nif.dataset_add_games(ref, games, LibExphil.options(selection))
  end

  @doc "Adds one episode of any game: binaries of `frames` rows. `game` groups episodes that a split must keep together."
  @spec add_rows(t(), non_neg_integer(), pos_integer(), binary(), binary(), binary()) :: :ok | {:error, Error.t()}
  def add_rows(%__MODULE__{ref: ref}, game, frames, floats, ids, actions) do
    Nif.dataset_add_rows(ref, game, frames, floats, ids, actions)
  end

  @doc """
  What came of each frame for one player of a game: a reward (`:f32`) for each of the game's frames from `:first_frame` on, which
  answers the action that acts in it. Options: `:half_life_frames`, after which a reward counts half; `:port` (0 for rows); `:first_frame`;
  `:over` (default true; false: the game was cut off, and frames whose return would lack much are not known). Batches of prefetchers
  that are made afterwards have `returns`.
  """
  @spec put_rewards(t(), non_neg_integer(), binary(), LibExphil.options()) :: :ok | {:error, Error.t()}
  def put_rewards(%__MODULE__{ref: ref}, game, rewards, options) do
    Nif.dataset_put_rewards(ref, game, rewards, LibExphil.options(options))
  end

  @doc "How much there is."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.dataset_info(ref)

  @doc "The spec of its rows."
  @spec spec(t()) :: {:ok, map()} | {:error, Error.t()}
  def spec(%__MODULE__{ref: ref}), do: Nif.dataset_spec(ref)

  @doc "One episode, from 0."
  @spec episode(t(), integer()) :: {:ok, map()} | {:error, Error.t()}
  def episode(%__MODULE__{ref: ref}, index), do: Nif.dataset_episode(ref, index)

  @doc "One frame, from 0: `{floats, ids, action}`."
  @spec frame(t(), integer()) :: {:ok, {binary(), binary(), binary()}} | {:error, Error.t()}
  def frame(%__MODULE__{ref: ref}, index), do: Nif.dataset_frame(ref, index)

  @doc """
  Frames `first`, `first + 1`, ... across episodes, in one call: binaries of `count` rows under `:floats`, `:ids` and `:actions`, and
  under `:episodes` the index of each frame's episode (signed, 64 bits).
  """
  @spec rows(t(), integer(), integer()) :: {:ok, map()} | {:error, Error.t()}
  def rows(%__MODULE__{ref: ref}, first, count), do: Nif.dataset_rows(ref, first, count)

  @doc "Two new datasets that share the rows. Options: `:held_out` (a share), `:seed`, `:by` (`:game`, `:time` or `:stable`)."
  @spec split(t(), LibExphil.options()) :: {:ok, {t(), t()}} | {:error, Error.t()}
  def split(%__MODULE__{ref: ref}, options) do
    with {:ok, {kept, held_out}} <- Nif.dataset_split(ref, LibExphil.options(options)) do
      {:ok, {%__MODULE__{ref: kept}, %__MODULE__{ref: held_out}}}
    end
  end

  bang create(Context.t()) :: t()
  bang create(Context.t(), LibExphil.spec() | nil) :: t()
  bang open(Context.t(), Path.t()) :: t()
  bang save(t(), Path.t()) :: :ok
  bang verify(t()) :: :ok
  bang add_replay(t(), Path.t()) :: map()
  bang add_replay(t(), Path.t(), LibExphil.options()) :: map()
  bang add_replay_memory(t(), binary()) :: map()
  bang add_replay_memory(t(), binary(), LibExphil.options()) :: map()
  bang add_games(t(), Games.t()) :: map()
  bang add_games(t(), Games.t(), LibExphil.options()) :: map()
  bang rows(t(), integer(), integer()) :: map()
  bang add_rows(t(), non_neg_integer(), pos_integer(), binary(), binary(), binary()) :: :ok
  bang put_rewards(t(), non_neg_integer(), binary(), LibExphil.options()) :: :ok
  bang info(t()) :: map()
  bang spec(t()) :: map()
  bang episode(t(), integer()) :: map()
  bang frame(t(), integer()) :: {binary(), binary(), binary()}
  bang split(t(), LibExphil.options()) :: {t(), t()}
end
