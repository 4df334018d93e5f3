defmodule LibExphil.GamesTest do
  # Rows of datasets and replays in one call, and corpora of games.
  use ExUnit.Case, async: true

  import LibExphil.Test

  alias LibExphil.{Dataset, Error, Games, Replay}

  setup do
    %{context: context()}
  end

  # Each frame of the dataset by itself.
  defp frames(dataset, first, count) do
    for index <- Enum.take(Stream.iterate(first, &(&1 + 1)), count), do: Dataset.frame!(dataset, index)
  end

  defp joined(frames, column), do: for(frame <- frames, into: <<>>, do: elem(frame, column))

  test "rows are the frames", %{context: context} do
    dataset = dataset(context, 300)

    for {first, count} <- [{0, 1}, {0, 1200}, {299, 302}, {1199, 1}, {7, 0}, {1200, 0}] do
      rows = Dataset.rows!(dataset, first, count)
      one_by_one = frames(dataset, first, count)
      assert rows.floats == joined(one_by_one, 0)
      assert rows.ids == joined(one_by_one, 1)
      assert rows.actions == joined(one_by_one, 2)

      assert for(<<e::signed-64-native <- rows.episodes>>, do: e) ==
               for(i <- 0..1200, i >= first, i < first + count, do: div(i, 300))
    end

    for {first, count, says} <- [
          {-1, 1, "first is -1"},
          {0, 1201, "count is 1201"},
          {1201, 0, "first is 1201"},
          {5, -1, "count is -1"},
          {1, 9_223_372_036_854_775_807, "count is 9223372036854775807"},
          {:a, 1, "first"}
        ] do
      assert {:error, %Error{status: :invalid, message: message}} = Dataset.rows(dataset, first, count)
      assert message =~ says
    end
  end

  test "what is no corpus, and no replay", %{context: context} do
    assert {:error, %Error{status: :io}} = Games.open(context, Path.join(folder(), "none"))
    path = Path.join(folder(), "bad.slp")
    File.write!(path, "no replay")
    assert {:error, %Error{status: :format}} = Games.open(context, path)
    corpus = Path.join(folder(), "none.games")
    none = path <> ".none"
    {info, results} = Games.write!(context, corpus, [path, none], stored: true)
    assert %{games: 0, frames: 0} = info
    assert [{^path, {:error, %Error{status: :format}}}, {^none, {:error, %Error{status: :io}}}] = results
    games = Games.open!(context, corpus)
    assert %{games: 0, recovered: false} = Games.info!(games)
    assert {:error, %Error{status: :invalid, message: "index" <> _}} = Games.game(games, 0)
    assert {:error, %Error{message: message}} = Games.write(context, corpus, [path], level: 40, stored: true)
    assert message =~ "level"
    assert {:error, %Error{message: message}} = Games.write(context, corpus, [path], speed: 1)
    assert message =~ "there is no speed"
    assert {:error, %Error{message: message}} = Dataset.add_games(Dataset.create!(context), games, stages: "moon")
    assert message =~ "moon"
    assert {:error, %Error{message: message}} = Dataset.add_games(Dataset.create!(context), games, result: :drawn)
    assert message =~ "result"
    assert :ok = LibExphil.close(games)
    assert {:error, %Error{status: :state}} = Games.info(games)
  end

  @tag :replays
  test "rows of replays and of a corpus of them", %{context: context} do
    path = replay("training/fox_multishine_closed.slp")
    corpus = Path.join(folder(), "all.games")

    {%{games: 1}, [{^path, {:ok, %{duplicate: false}}}, {^path, {:ok, %{duplicate: true}}}]} =
      Games.write!(context, corpus, [path, path], stored: true)

    plain = Dataset.create!(context)
    %{frames: count} = Dataset.add_replay!(plain, path, port: 1)
    rows = Dataset.rows!(plain, 0, count)

    replay = Replay.open!(context, path)
    alone = Replay.rows!(replay, 1)
    assert {alone.floats, alone.ids, alone.actions} == {rows.floats, rows.ids, rows.actions}
    assert for(<<frame::signed-32-native <- alone.frames>>, do: frame) == Enum.to_list(0..(count - 1))
    part = Replay.rows!(replay, 1, first_frame: 10, last_frame: 19, layout: "exphil288", opponent_port: 2)
    assert for(<<frame::signed-32-native <- part.frames>>, do: frame) == Enum.to_list(10..19)
    assert byte_size(part.floats) == 10 * 288 * 4

    assert part.actions ==
             binary_part(alone.actions, 10 * div(byte_size(alone.actions), count), byte_size(part.actions))

    for {port, options, says} <- [
          {0, [], "port is 0"},
          {4, [], "port 4"},
          {1, [layout: "pong"], "pong"},
          {1, [speed: 1], "speed"}
        ] do
      assert {:error, %Error{status: :invalid, message: message}} = Replay.rows(replay, port, options)
      assert message =~ says
    end

    games = Games.open!(context, corpus)
    assert :ok = Games.verify(games)
    {game, settings} = Games.game!(games, 0)
    assert settings.frame_count == Replay.info!(replay).frame_count
    assert [%{end_stocks: _} | _] = game.players
    assert Replay.rows!(Games.read!(games, 0), 1) == alone
    made = Dataset.create!(context)
    report = Dataset.add_games!(made, games, port: 1, characters: "fox", complete: false)
    assert report.taken == 1
    assert report.players == report.taken + Enum.sum(Map.values(report.refused))
    assert Enum.all?(report.refused, fn {reason, players} -> is_binary(reason) and players > 0 end)
    assert Dataset.rows!(made, 0, count) == rows
    assert :ok = LibExphil.close(games)
    assert Dataset.rows!(made, 0, count) == rows
  end
end
