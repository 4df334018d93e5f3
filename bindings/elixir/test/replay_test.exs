defmodule LibExphil.ReplayTest do
  # Slippi replays: files, bytes, and the same bytes as a live stream.
  use ExUnit.Case, async: true

  import LibExphil.Test

  alias LibExphil.{Dataset, Error, Live, Melee, Model, Replay, Session}

  setup do
    %{context: context()}
  end

  test "garbage is an error with a place, never more", %{context: context} do
    assert {:error, %Error{status: :io}} = Replay.open(context, "/nonexistent.slp")
    assert {:error, %Error{status: :format}} = Replay.read(context, <<>>)
    assert {:error, %Error{status: :invalid}} = Replay.read(context, <<1>>, rollback: :never)
    assert {:error, %Error{status: :invalid}} = Replay.read(context, :bytes)
    assert {:error, %Error{status: :invalid}} = Replay.open(context, "a\0b")
    :rand.seed(:exsss, {1, 2, 3})
    live = Live.create!(context)

    for _ <- 1..50 do
      bytes = :rand.bytes(2000)
      assert {:error, %Error{status: :format}} = Replay.read(context, bytes)
      assert {:error, %Error{status: :format}} = LibExphil.Model.load_memory(context, bytes)
      assert {:error, %Error{}} = Dataset.add_replay_memory(Dataset.create!(context), bytes)

      case Live.push(live, <<0x35>> <> bytes) do
        {:error, %Error{}} -> :ok
        :again -> :ok
        {:end, _} -> :ok
      end

      :ok = Live.reset(live)
    end

    assert {:error, %Error{status: :state}} = Live.info(live)
    assert {:error, %Error{status: :state}} = Live.frame(live)
  end

  @tag :replays
  test "what a replay holds", %{context: context} do
    replay = Replay.open!(context, replay("formats/v3.18.slp"))
    info = Replay.info!(replay)
    assert %{version: [3, 18 | _], container: :container, stop: :complete, truncated: false, first_frame: -123} = info
    assert length(info.ports) == 4
    position = Replay.position!(replay, -123)
    assert position == 0
    assert %{frame: -123, items: items} = Replay.frame!(replay, 0)
    assert is_list(items)
    assert {:error, %Error{message: text}} = Replay.frame(replay, info.frame_count)
    assert text =~ "outside the replay"
    assert {:error, %Error{}} = Replay.frame(replay, -1)
    assert {:error, %Error{}} = Replay.position(replay, 999_999)
    assert [%{port: port, first_frame: -123, follower: false, records: records} | _] = Replay.slots!(replay)
    assert %{frame: -123, x: x, flags: [_, _, _, _, _]} = Replay.player!(replay, 0, port)
    assert is_float(x)
    assert Replay.player!(replay, 0, port, true) == nil or is_map(Replay.player!(replay, 0, port, true))
    assert byte_size(Replay.dump!(replay, :state)) == 24 * records
    assert {:error, %Error{}} = Replay.dump(replay, :state, 9)
    assert %Melee.Pad{} = Replay.melee_pad!(replay, 200, port)
    assert %Melee.Frame{own_port: ^port, players: players} = Replay.melee_frame!(replay, 200, port)
    assert map_size(players) >= 2
  end

  # This game is on Fountain of Dreams, where platforms have moved by its end. (stadium_kind is 5 at first, which encodes as 0 does.)
  @tag :replays
  test "the first frame of a replay holds what a new frame does", %{context: context} do
    replay = Replay.open!(context, replay("formats/v3.18.slp"))
    %{frame_count: count} = Replay.info!(replay)
    [%{port: port} | _] = Replay.slots!(replay)
    same = [:platform_left, :platform_right, :wind, :stadium_event, :items, :followers]
    assert %Melee.Frame{stage: 2} = first = Replay.melee_frame!(replay, 0, port)
    assert Map.take(first, same) == Map.take(%Melee.Frame{}, same)
    assert first.players[port].known == %Melee.Character{}.known
    refute Map.take(Replay.melee_frame!(replay, count - 1, port), same) == Map.take(first, same)
  end

  @tag :replays
  test "a policy plays along, the same from a file and live", %{context: context} do
    path = replay("formats/v3.18.slp")
    data = File.read!(path)
    replay = Replay.read!(context, data)
    [%{port: port} | _] = Replay.slots!(replay)
    model = Model.create!(context, blocks: "gru", hidden: 32)
    [a, b] = for _ <- 1..2, do: Session.create!(model, seed: 3)
    live = Live.create!(context)
    chunks = for <<chunk::binary-size(1000) <- data>>, do: chunk

    pads =
      Enum.reduce(Enum.take(chunks, 300), [], fn chunk, pads ->
        each =
          Live.each(live, chunk, pads, fn pads ->
            frame = Live.melee_frame!(live, port)
            %{frame: number} = Live.frame!(live)
            assert frame.frame == number and is_map(Live.player!(live, port))
            [{number, Session.step!(a, frame)} | pads]
          end)

        case each do
          {:ok, pads} -> pads
          {:end, pads, _} -> pads
        end
      end)

    assert length(pads) > 100
    assert %{first_frame: -123} = Live.info!(live)

    for {number, pad} <- Enum.reverse(pads) do
      position = Replay.position!(replay, number)
      assert Session.step!(b, Replay.melee_frame!(replay, position, port)) == pad
    end
  end

  @tag :replays
  test "replays become data", %{context: context} do
    dataset = Dataset.create!(context)
    path = replay("training/fox_multishine_closed.slp")
    result = Dataset.add_replay!(dataset, path, character: "fox")
    assert result.frames > 100 and not result.truncated
    assert Dataset.add_replay_memory!(dataset, File.read!(path), character: "fox") == result
    assert {:error, %Error{status: :invalid, message: text}} = Dataset.add_replay(dataset, path, character: "pichu")
    assert text =~ "fox"
    assert %{character: 2, stage: stage} = Dataset.episode!(dataset, 0)
    assert is_binary(Melee.stage_name(stage))
    model = Model.create!(context, blocks: "mlp", hidden: 32)
    assert Model.evaluate!(model, dataset).frames > 100
  end

  @tag :replays
  test "cut replays give what there is", %{context: context} do
    data = File.read!(replay("formats/v3.18.slp"))
    cut = Replay.read!(context, binary_part(data, 0, div(byte_size(data), 2)))
    assert %{truncated: true, frame_count: frames} = Replay.info!(cut)
    assert frames > 0
  end
end
