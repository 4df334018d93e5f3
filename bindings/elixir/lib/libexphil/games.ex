defmodule LibExphil.Games do
  @moduledoc """
  Corpora of games: replays in large numbers, every frame and player, in a tenth of their bytes; a file, or a folder of files.

      {:ok, {_info, results}} = LibExphil.Games.write(context, "all.games", Path.wildcard("replays/**/*.slp"))
      for {path, {:error, error}} <- results, do: IO.puts("\#{path}: \#{error.message}")
      games = LibExphil.Games.open!(context, "all.games")
      LibExphil.Dataset.add_games!(LibExphil.Dataset.create!(context), games, characters: "fox", result: :won)

  Any number of processes may use one at a time.
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Error, Nif, Replay}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc "Opens a file, or a folder of files whose names end in `.games`. Only the index is read."
  @spec open(Context.t(), Path.t()) :: {:ok, t()} | {:error, Error.t()}
  def open(%Context{ref: ref}, path), do: LibExphil.wrap(Nif.games_open(ref, IO.chardata_to_string(path)), __MODULE__)

  @doc """
  Writes a corpus of these replay files: a file, or new files in a folder that exists, where what is there already is not added
  again. Options: `:shard_bytes`, `:level` (of the compression), `:stored` (true: none; it needs no libzstd).

  The answer has what was written, and what became of each replay, in their order: `{path, {:ok, added}}` or
  `{path, {:error, error}}`. A replay that cannot be read ends nothing.
  """
  @spec write(Context.t(), Path.t(), [Path.t()], LibExphil.options()) ::
          {:ok, {map(), [{String.t(), {:ok, map()} | {:error, Error.t()}}]}} | {:error, Error.t()}
  def write(%Context{ref: ref}, path, replays, options \\ []) do
    replays = Enum.map(replays, &IO.chardata_to_string/1)
    Nif.games_write(ref, IO.chardata_to_string(path), replays, LibExphil.options(options))
  end

  @doc "Counts, bytes and hash."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.games_info(ref)

  @doc "One game, from 0, without its frames: what the index says, and what `LibExphil.Replay.info/1` would."
  @spec game(t(), integer()) :: {:ok, {map(), map()}} | {:error, Error.t()}
  def game(%__MODULE__{ref: ref}, index), do: Nif.games_game(ref, index)

  @doc "A game with its frames. What a corpus does not keep is absent, as in a replay that does not record it."
  @spec read(t(), integer()) :: {:ok, Replay.t()} | {:error, Error.t()}
  def read(%__MODULE__{ref: ref}, index), do: LibExphil.wrap(Nif.games_read(ref, index), Replay)

  @doc "Reads and checks everything; the error names the first damaged game."
  @spec verify(t()) :: :ok | {:error, Error.t()}
  def verify(%__MODULE__{ref: ref}), do: Nif.games_verify(ref)

  bang open(Context.t(), Path.t()) :: t()
  bang write(Context.t(), Path.t(), [Path.t()]) :: {map(), [{String.t(), {:ok, map()} | {:error, Error.t()}}]}

  bang write(Context.t(), Path.t(), [Path.t()], LibExphil.options()) ::
         {map(), [{String.t(), {:ok, map()} | {:error, Error.t()}}]}

  bang info(t()) :: map()
  bang game(t(), integer()) :: {map(), map()}
  bang read(t(), integer()) :: Replay.t()
  bang verify(t()) :: :ok
end
