# What the tests share: small models and data of a made-up game, and a Melee frame. EXPHIL_REPLAYS names a folder of real
# replays; without it the tests that need one are left out. EXPHIL_LONG=1 runs the load test for a minute.
defmodule LibExphil.Test do
  alias LibExphil.{Context, Dataset, Melee, Model, Optimizer, Prefetcher, Trainer}

  @spec_map %{
    layout: "test",
    codec: "test",
    floats: 4,
    ids: [%{name: "mood", entries: 3, width: 2}],
    heads: [
      %{name: "keys", kind: :bernoulli, count: 3, neutral: 0},
      %{name: "stick", kind: :categorical, count: 5, neutral: 2}
    ]
  }

  def spec, do: @spec_map

  def context(options \\ []), do: Context.create!(Keyword.merge([threads: 1], options))

  def model(context, options \\ []) do
    Model.create!(context, Keyword.merge([spec: spec(), blocks: "gru", hidden: 16, head_width: 16, seed: 3], options))
  end

  def floats(values), do: for(v <- values, into: <<>>, do: <<v::float-32-native>>)
  def ints(values), do: for(v <- values, into: <<>>, do: <<v::signed-32-native>>)

  # Episodes whose stick follows the first float.
  def dataset(context, frames \\ 400) do
    dataset = Dataset.create!(context, spec())

    for game <- 1..4 do
      levels = for t <- 1..frames, do: rem(div(t * game, 7), 5)
      rows = for level <- levels, v <- [level / 2.0, 1.0, -level / 3.0, 0.5], do: v
      actions = for level <- levels, v <- [rem(level, 2), level], do: v
      ids = for level <- levels, do: rem(level, 3)
      Dataset.add_rows!(dataset, game, frames, floats(rows), ints(ids), ints(actions))
    end

    dataset
  end

  def prefetcher(model, dataset) do
    Prefetcher.create!(dataset, Map.merge(Model.sampling!(model), %{batch: 4, time: 20, seed: 1}))
  end

  def trainer(context, options \\ []) do
    model = model(context)
    optimizer = Optimizer.create!(model, rate: 0.01)
    Trainer.create!(model, optimizer, prefetcher(model, dataset(context)), options)
  end

  def frame(number \\ 0) do
    %Melee.Frame{
      frame: number,
      stage: 32,
      own_port: 1,
      players: %{
        1 => %Melee.Character{x: -30.0 + rem(number, 60), action_state: 20, character: 1},
        2 => %Melee.Character{x: 30.0, facing: -1.0, character: 2}
      }
    }
  end

  def folder do
    path = Path.join(System.tmp_dir!(), "libexphil_elixir_#{System.pid()}_#{System.unique_integer([:positive])}")
    File.mkdir_p!(path)
    ExUnit.Callbacks.on_exit(fn -> File.rm_rf!(path) end)
    path
  end

  def replay(name) do
    path = Path.join([System.get_env("EXPHIL_REPLAYS", "/nonexistent"), name])
    if File.exists?(path), do: path
  end

  # Waits for what happens on another thread: minutes, which only end what would never come.
  def eventually(fun, tries \\ 30_000) do
    cond do
      fun.() -> true
      tries == 0 -> false
      true -> Process.sleep(10) && eventually(fun, tries - 1)
    end
  end
end

replays? = LibExphil.Test.replay("formats/v3.18.slp") != nil
unless replays?, do: IO.puts("elixir: no replays in EXPHIL_REPLAYS, tests with them are left out")
# It ends what would hang, on slow machines too.
ExUnit.start(timeout: 600_000, exclude: if(replays?, do: [], else: [:replays]))
