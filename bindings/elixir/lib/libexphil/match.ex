defmodule LibExphil.Match do
  @moduledoc """
  Which of two policies is better, with an interval.

      result = LibExphil.Match.play!(new, old, LibExphil.World.create!(context, "pong-two", lanes: 8), games: 100)
      result.score > 0.5 and result.low > 0.5
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Model, Nif, World}

  @doc """
  Plays `a` against `b` in a world of two seats, whose games are lost. Options: `:games` (even; 0: 200), `:most_frames`, `:points` (who has so
  many first has won; 0: 11, negative: the world's end decides), `:seed`, `:deterministic`. The answer is that of the first: `games`, `won`,
  `lost`, `drawn`, `score`, `low` and `high` (95 % of the scores that other starts would have given), `points`, `points_against`, `frames`.
  """
  @spec play(Model.t(), Model.t(), World.t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def play(%Model{ref: a}, %Model{ref: b}, %World{ref: world}, options \\ []) do
    Nif.match(a, b, world, LibExphil.options(options))
  end

  bang play(Model.t(), Model.t(), World.t()) :: map()
  bang play(Model.t(), Model.t(), World.t(), LibExphil.options()) :: map()
end
