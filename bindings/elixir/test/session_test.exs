defmodule LibExphil.SessionTest do
  # Play: rows and Melee frames, state blocks, streams, schedulers, and rivals for one session.
  use ExUnit.Case, async: true

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{Error, Melee, Model, Session}

  setup_all do
    context = context()

    %{
      context: context,
      model: model(context),
      melee: Model.create!(context, blocks: "gru", hidden: 32, delay_frames: 2)
    }
  end

  defp row(t), do: {floats([t / 10, 1.0, -t / 20, 0.5]), ints([rem(t, 3)])}

  defp play(session, range) do
    for t <- range do
      {floats, ids} = row(t)
      Session.step_row!(session, floats, ids)
    end
  end

  test "rows: same seed, same actions; state is carried", %{model: model} do
    [a, b] = for _ <- 1..2, do: Session.create!(model, seed: 5)
    actions = play(a, 1..50)
    assert play(b, 1..50) == actions
    assert length(Enum.uniq(actions)) > 1
    assert Session.logits!(a) == Session.logits!(b)
    assert byte_size(Session.logits!(a)) == 8 * 4
    refute play(Session.create!(model, seed: 6), 1..50) == actions
  end

  test "state blocks, clones and resets", %{model: model} do
    session = Session.create!(model, seed: 5)
    play(session, 1..10)
    block = Session.save_state!(session)
    assert byte_size(block) == Session.info!(session).state_bytes
    clone = Session.clone!(session)
    actions = play(session, 11..30)
    assert play(clone, 11..30) == actions
    :ok = Session.restore_state!(session, block)
    assert play(session, 11..30) == actions
    other = Session.create!(model, seed: 9)
    :ok = Session.restore_state!(other, block)
    assert play(other, 11..30) == actions
    assert {:error, %Error{}} = Session.restore_state(session, block <> <<0>>)
    assert {:error, %Error{}} = Session.restore_state(session, :binary.copy(<<7>>, byte_size(block)))
    :ok = Session.reset!(session)
    :ok = Session.reset!(session, 0)
    assert {:error, %Error{status: :invalid}} = Session.reset(session, 7)
    :ok = Session.override!(session, ints([0, 2]))
    assert {:error, %Error{}} = Session.override(session, ints([0, 99]))
  end

  test "misaligned and odd binaries", %{model: model} do
    session = Session.create!(model, seed: 5)
    {floats, ids} = row(3)
    <<_, misaligned::binary>> = <<1, floats::binary>>
    <<_::1, bits::bitstring>> = <<1::1, floats::bitstring>>
    expected = Session.step_row!(Session.clone!(session), floats, ids)
    assert Session.step_row!(Session.clone!(session), misaligned, ids) == expected
    assert Session.step_row!(Session.clone!(session), bits, ids) == expected
    assert {:error, %Error{message: text}} = Session.step_row(session, floats <> <<0>>, ids)
    assert text == "floats: has 17 bytes, 4 elements of 4 are wanted"
    assert {:error, %Error{}} = Session.step_row(session, <<1::3>>, ids)
    assert {:error, %Error{status: :state, message: text}} = Session.step(session, frame())
    assert text == "test/test is not one of the Melee specs: use step_row"
    assert {:error, %Error{}} = Session.step_row(session, floats, <<>>)
    assert {:error, %Error{}} = Session.step_row(session, floats, ids, floats)
    assert {:error, %Error{}} = Session.step_row(session, :floats, ids)
    assert {:error, %Error{status: :invalid}} = Session.step_row(session, floats, ints([3]))
    nan = :binary.copy(<<0, 0, 0xC0, 0x7F>>, 4)
    assert {:error, %Error{status: :numeric, message: text}} = Session.step_row(session, nan, ids)
    assert text =~ "float"
    noise = :binary.copy(<<0.5::float-32-native>>, 8)
    assert {:ok, _} = Session.step_row(session, floats, ids, noise)
  end

  test "Melee frames: structs, maps and packed bytes are one", %{melee: melee} do
    [a, b, c] = for _ <- 1..3, do: Session.create!(melee, seed: 2)

    for t <- 1..30 do
      frame = frame(t)

      plain =
        frame |> Map.from_struct() |> Map.update!(:players, &Map.new(&1, fn {k, v} -> {k, Map.from_struct(v)} end))

      assert %Melee.Pad{} = pad = Session.step!(a, frame)
      assert Session.step!(b, plain) == pad
      assert [^pad] = Session.step!(c, [Melee.pack!(frame) |> Melee.unpack!()])
    end

    assert Session.step!(a, Melee.pack!(frame())) == Session.step!(b, frame())
  end

  # On Fountain of Dreams, whose platform_left of 20 is 1 in melee2.
  test "what is left out of a frame is as in a game that begins" do
    %{offset: offset} = Enum.find(Melee.fields!(), &(&1.name == "stage.platform_left"))
    plain = %{stage: 2, own_port: 1, players: %{1 => %{}, 2 => %{}}, items: [%{}]}

    for given <- [plain, struct(Melee.Frame, %{plain | items: [%Melee.Item{}]})] do
      packed = given |> Melee.pack!() |> Melee.unpack!()
      assert %{platform_left: 20.0, platform_right: 28.0, wind: 0, stadium_kind: 0, stadium_event: 0} = packed
      assert [%{owner: -1}] = packed.items
      assert %{known: 31} = packed.players[1]
      assert {<<_::binary-size(offset * 4), 1.0::float-32-native, _::binary>>, _} = Melee.encode!(given)
    end
  end

  test "what a frame lacks or has too much of is named", %{melee: melee} do
    session = Session.create!(melee)

    for {frame, text} <- [
          {%{frame() | players: %{}}, "own_port"},
          {%{frame() | players: %{5 => %{}}}, "players: 5 is not in 1..4"},
          {%{frame() | players: []}, "players: not a map"},
          {%{frame() | items: List.duplicate(%Melee.Item{}, 16)}, "items: not a list of at most 15"},
          {put_in(frame().players[1].action_state, 70_000), "action_state: 70000 is not in 0..65535"},
          {put_in(frame().players[1].flags, [1, 2]), "flags: has 2 elements, not 5"},
          {put_in(frame().players[1].x, "left"), "players: 1: character: x: not a number"},
          {%{frame() | players: %{1 => %{}, 2 => %{xx: 1}}}, "players: 2: character: there is no xx"},
          {%{frame() | followers: %{3 => 7}}, "followers: 3: character: not a map"},
          {%{frame() | items: [%{}, %{owner: 200}]}, "items: 1: item: owner: 200 is not in -128..127"},
          {%{frame() | items: [%{String.duplicate("x", 500) => 1}]}, "items: 0: item: there is no"},
          {Map.put(frame(), :stagee, 3), "frame: there is no stagee"},
          {:garbage, "frame: not a map"},
          {<<1, 2, 3>>, "frames: 3 bytes"},
          {[], "frames: 0 given"}
        ] do
      assert {:error, %Error{status: :invalid, message: message}} = Session.step(session, frame)
      assert message =~ text
    end

    assert Session.info!(session).steps == 0
    assert {:error, %Error{status: :mismatch}} = Session.create(melee, delay_frames: 3)
    assert {:error, %Error{}} = Session.create(melee, mode: :window)
    assert {:error, %Error{}} = Session.create(melee, streams: 5000)
    assert {:error, %Error{}} = Session.create(melee, heads: [%{}])

    assert {:ok, _} =
             Session.create(melee, delay_frames: 2, mode: :carry, heads: List.duplicate(%{temperature: 0.5}, 6))
  end

  test "streams: lists in, lists out", %{melee: melee} do
    many = Session.create!(melee, streams: 3, seed: 4, deterministic: true)
    one = Session.create!(melee, seed: 4, deterministic: true)

    for t <- 1..10 do
      assert [pad, pad, pad] = Session.step!(many, List.duplicate(frame(t), 3))
      assert Session.step!(one, frame(t)) == pad
    end

    packed = Melee.pack!(frame(11))
    assert [_, _, _] = Session.step!(many, packed <> packed <> packed)
    assert {:error, %Error{message: "frames: 1 given, the session has 3 streams"}} = Session.step(many, frame())
  end

  # How long a step takes is the machine's affair: here the test says how long is too long.
  test "slow steps run on dirty schedulers, with the same answers", %{model: model} do
    plain = Session.create!(model, seed: 5)
    assert %{dirty: dirty, trial_ns: trial, max_cpu_ns: nil} = Session.info!(plain)
    assert dirty == 2 * trial >= 500_000
    direct = Session.create!(model, seed: 5, direct_ns: 1 <<< 62)
    slow = Session.create!(model, seed: 5, direct_ns: 0)
    forced = Session.create!(model, seed: 5, direct_ns: 1 <<< 62, dirty: true)

    for {session, dirty} <- [{direct, false}, {slow, true}, {forced, true}] do
      assert %{dirty: ^dirty} = Session.info!(session)
      assert %{dirty: ^dirty} = Session.info!(Session.clone!(session))
      assert byte_size(Session.save_state!(session)) == Session.info!(session).state_bytes
      assert Session.reset!(session) == :ok
    end

    assert [same, same, same, same] = for(session <- [plain, direct, slow, forced], do: play(session, 1..20))
    tracked = Session.create!(model, track: true)
    play(tracked, 1..20)
    assert %{max_cpu_ns: cpu, preempted: preempted, waits: waits, long_steps: long} = Session.info!(tracked)
    assert cpu > 0 or preempted + waits > 0
    assert long in 0..20
  end

  # A step of attention costs most when the window is full: so long the trial goes on, unless it is clear before.
  test "the trial fills the window", %{context: context} do
    look = [spec: spec(), blocks: "attention", hidden: 8, attention_heads: 1, attention_dim: 8]
    model = &Model.create!(context, look ++ [attention_window_frames: &1])
    steps = &Session.info!(Session.create!(&1, direct_ns: &2)).trial_steps
    assert steps.(model.(20), 1 <<< 62) in 21..44
    assert steps.(model.(2000), 1 <<< 62) in 2001..2024
    assert steps.(model.(2000), 0) in 1..24
  end

  test "rivals for one session: busy, never wrong", %{context: context} do
    big = Model.create!(context, spec: spec(), blocks: "lstm*8", hidden: 256)
    session = Session.create!(big, seed: 5, dirty: true)
    {floats, ids} = row(1)
    met = :counters.new(2, [])

    # Until they have met: when that is, is the system's affair.
    rival = fn rival ->
      case Session.step_row(session, floats, ids) do
        {:ok, <<_::64>>} -> :counters.add(met, 1, 1)
        {:error, %Error{status: :busy, message: "session is in use by another process"}} -> :counters.add(met, 2, 1)
        other -> flunk(inspect(other))
      end

      unless :counters.get(met, 1) > 60 and :counters.get(met, 2) > 0, do: rival.(rival)
    end

    Task.await_many(for(_ <- 1..4, do: Task.async(fn -> rival.(rival) end)), 300_000)
    assert Session.info!(session).steps == :counters.get(met, 1)
  end
end
