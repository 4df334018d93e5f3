defmodule LibExphil.LearnTest do
  # Better by playing: the library's worlds, processes that play by themselves, the learner and what it keeps, matches, opponents,
  # blocks, losses of one's own, outcomes, and new weights for sessions and agents that go on playing.
  use ExUnit.Case, async: true

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{Agent, Dataset, Error, Learner, Match, Melee, Model, Optimizer, Prefetcher, Rollout}
  alias LibExphil.{Session, Trainer, World}

  setup_all do
    %{context: context()}
  end

  defp player(context, spec, options \\ []) do
    small = [blocks: "mlp", hidden: 16, head_width: 16, no_previous_action: true, neutral_start: true, value: :shared]
    Model.create!(context, Keyword.merge([spec: spec, seed: 1] ++ small, options))
  end

  defp by_hand(model, chunks \\ 60) do
    rate = [rate: 1.0e-3, schedule: :cosine, total_updates: chunks * 16, clip_norm: 0.5]
    Trainer.create!(model, Optimizer.create!(model, rate), nil, as_played: true)
  end

  # All that a run is made of.
  defp parts(context, options \\ []) do
    lanes = Keyword.get(options, :lanes, 4)
    world = World.create!(context, Keyword.get(options, :game, "cartpole"), lanes: lanes)
    model = player(context, World.info!(world).spec, Keyword.get(options, :model, []))
    trainer = by_hand(model, Keyword.get(options, :chunks, 60))
    seed = Keyword.get(options, :seed, 1)
    rollout = Rollout.create!(model, streams: lanes, time: Keyword.get(options, :time, 16), seed: seed)
    learner = Learner.create!(trainer, nil, Keyword.get(options, :settings, []))
    %{world: world, model: model, trainer: trainer, rollout: rollout, learner: learner}
  end

  defp chunks(parts, count), do: for(_ <- 1..count, do: Learner.chunk!(parts.learner, parts.rollout, parts.world))
  defp hash(%Model{} = model), do: Model.info!(model).weights_hash
  defp hash(%{trainer: trainer}), do: hash(Trainer.model!(trainer))

  defp mean_return(told) do
    Enum.sum(Enum.map(told, &(&1.episode_return * &1.episodes))) / Enum.sum(Enum.map(told, & &1.episodes))
  end

  test "cartpole is learnt from nothing", %{context: context} do
    parts =
      parts(context,
        lanes: 16,
        time: 64,
        model: [hidden: 64, head_width: 64],
        settings: [half_life_frames: 69, reward_scale: 0.1]
      )

    told = chunks(parts, 60)
    assert Enum.map(told, & &1.chunks) == Enum.to_list(1..60)
    assert Enum.all?(told, &(&1.recomputed == 0.0 and &1.taken_back == false))
    {first, last} = {mean_return(Enum.take(told, 3)), mean_return(Enum.take(told, -10))}
    assert first < 50 and last > 250, "from #{first} to #{last}"
    assert Session.value!(Rollout.session(parts.rollout), 15) > 1.0
  end

  # A game of this process: a ball falls for 20 frames; who stands under it then has a point.
  defp start(seed), do: %{ball: rem(seed * 7919, 21) / 10 - 1, at: rem(seed * 104_729, 21) / 10 - 1, fallen: 0}
  defp row(game), do: floats([game.ball, game.at, game.fallen / 20])

  defp fall(game, move) do
    game = %{game | at: max(-1.0, min(1.0, game.at + 0.1 * (move - 1))), fallen: game.fallen + 1}
    caught = if game.fallen == 20 and abs(game.ball - game.at) < 0.15, do: 1, else: 0
    {game, caught, if(game.fallen == 20, do: 1, else: 0)}
  end

  defp play(rollout, games, episode) do
    actions = Rollout.step!(rollout, for(game <- games, into: <<>>, do: row(game)))
    moves = for <<move::signed-32-native <- actions>>, do: move
    {games, rewards, ends} = Enum.zip(games, moves) |> Enum.map(fn {game, move} -> fall(game, move) end) |> unzip()
    seen = for game <- games, into: <<>>, do: row(game)
    full = Rollout.reward!(rollout, floats(rewards), :binary.list_to_bin(ends), seen)
    next = for {game, i} <- Enum.with_index(games), do: if(game.fallen == 20, do: start(episode * 31 + i), else: game)
    if full == :full, do: {next, episode + 1}, else: play(rollout, next, episode + 1)
  end

  defp unzip(list), do: {for({a, _, _} <- list, do: a), for({_, b, _} <- list, do: b), for({_, _, c} <- list, do: c)}

  test "a game of one's own is learnt by the process that plays it", %{context: context} do
    spec = %{layout: "catch", codec: "catch", floats: 3, heads: [%{name: "move", kind: :categorical, count: 3}]}
    model = player(context, spec)
    trainer = by_hand(model)
    rollout = Rollout.create!(model, streams: 16, time: 64, seed: 1, direct_ns: 1 <<< 62)
    learner = Learner.create!(trainer, nil, half_life_frames: 30)

    {told, _} =
      Enum.map_reduce(1..60, {for(i <- 1..16, do: start(i)), 1}, fn _, {games, episode} ->
        state = play(rollout, games, episode)
        {Learner.update!(learner, rollout), state}
      end)

    assert mean_return(Enum.take(told, 2)) < 0.6 and mean_return(Enum.take(told, -5)) > 0.95
    refute Session.info!(Rollout.session(rollout)).dirty
    dirty = Rollout.create!(Trainer.model!(trainer), streams: 16, dirty: true)
    assert Session.info!(Rollout.session(dirty)).dirty
    rows = :binary.copy(row(start(1)), 16)
    direct = Rollout.create!(Trainer.model!(trainer), streams: 16, direct_ns: 1 <<< 62)
    assert Rollout.step!(dirty, rows) == Rollout.step!(direct, rows)
    rewards = :binary.copy(<<0::32>>, 16)
    assert Rollout.reward!(dirty, rewards, :binary.copy(<<1>>, 16)) == :more
  end

  test "what a rollout refuses", %{context: context} do
    %{rollout: rollout, world: world, learner: learner, model: model} = parts(context, lanes: 2, time: 4)
    goes_on = <<0, 0>>
    assert {:error, %Error{status: :state, message: said}} = Rollout.reward(rollout, floats([0, 0]), goes_on)
    assert said =~ "reward already"
    {first, <<>>} = World.reset!(world, 0, 1)
    {second, <<>>} = World.reset!(world, 1, 2)
    actions = Rollout.step!(rollout, first <> second)
    assert {:error, %Error{status: :state}} = Rollout.step(rollout, first <> second)

    for {reward, ending, floats, status, word} <- [
          {<<0, 0, 0xC0, 0x7F, 0::32>>, goes_on, nil, :numeric, "reward"},
          {floats([0]), goes_on, nil, :invalid, "reward"},
          {floats([0, 0]), <<0>>, nil, :invalid, "end"},
          {floats([0, 0]), <<0, 3>>, nil, :invalid, "end"},
          {floats([0, 0]), <<0, 2>>, nil, :invalid, "floats"},
          {floats([0, 0]), goes_on, first, :invalid, "floats"},
          {nil, goes_on, nil, :invalid, "reward"}
        ] do
      assert {:error, %Error{status: ^status, message: said}} = Rollout.reward(rollout, reward, ending, floats)
      assert said =~ word
    end

    assert %{floats: seen, ids: <<>>, reward: reward, end: ending} = World.step!(world, actions)
    assert Rollout.reward!(rollout, reward, ending, seen) == :more
    assert {:error, %Error{status: :state}} = Learner.update(learner, rollout)
    session = Rollout.session(rollout)
    assert {:error, %Error{status: :state}} = Session.step_row(session, first <> second)
    assert {:error, %Error{status: :state}} = Session.reset(session)
    assert {:error, %Error{status: :state}} = Session.adopt(session, model)
    assert byte_size(Session.logits!(session, 1)) == 8
    assert %{steps: 1} = Session.info!(session)
    assert <<_::64>> = Session.step_row!(Session.clone!(session), first <> second)
    :ok = Session.override!(session, ints([1]), 1)
    assert {:error, %Error{message: "not a handle of a rollout"}} = LibExphil.Nif.rollout_step(model.ref, <<>>, <<>>)

    for {options, status, word} <- [
          {[deterministic: true], :unsupported, "likeliest"},
          {[time: 5000], :invalid, "time"},
          {[tme: 5], :invalid, "tme"},
          {[episode_seed: -1], :invalid, "seed"}
        ] do
      assert {:error, %Error{status: ^status, message: said}} = Rollout.create(model, options)
      assert said =~ word
    end

    assert {:error, %Error{status: :mismatch}} = Rollout.run(Rollout.create!(model, streams: 3), world)
    assert {:error, %Error{}} = Rollout.create(player(context, World.info!(world).spec, value: :none))
  end

  test "worlds of the library", %{context: context} do
    world = World.create!(context, "pong-two", lanes: 2)
    info = World.info!(world)
    assert %{lanes: 2, seats: 2, streams: 4, spec: %{heads: [%{name: head, count: 3}]}} = info
    {floats, ids} = World.reset!(world, 1, 7)
    assert byte_size(floats) == 2 * info.spec.floats * 4 and ids == <<>>
    {^floats, _} = World.reset!(world, 0, 7)
    state = World.save!(world, 0)
    assert byte_size(state) == info.state_bytes
    first = World.step!(world, ints([1, 2, 1, 2]))
    half = div(byte_size(first.floats), 2)
    assert binary_part(first.floats, 0, half) == binary_part(first.floats, half, half)
    :ok = World.load!(world, 1, state)
    second = World.step!(world, ints([0, 0, 1, 2]))
    assert binary_part(second.floats, half, half) == binary_part(first.floats, 0, half)
    assert byte_size(first.reward) == 16 and first.end == <<0, 0>>

    for {call, word} <- [
          {fn -> World.create(context, "chess") end, "chess"},
          {fn -> World.create(context, "pong", lanes: 0) end, "lanes"},
          {fn -> World.create(context, "pong", lane: 1) end, "there is no :lane"},
          {fn -> World.create(context, :pong) end, "name"},
          {fn -> World.reset(world, 2, 1) end, "lane"},
          {fn -> World.reset(world, 0, -1) end, "seed"},
          {fn -> World.step(world, ints([0, 0, 0])) end, "actions"},
          {fn -> World.step(world, ints([0, 3, 0, 0])) end, "element 1 is 3, which #{head} has not"},
          {fn -> World.step(world, ints([0, 0, -1, 0])) end, "element 2 is -1"},
          {fn -> World.load(world, 0, <<0>>) end, "state"},
          {fn -> World.opponent(world, 0) end, "against"}
        ] do
      assert {:error, %Error{status: :invalid, message: said}} = call.()
      assert said =~ word
    end
  end

  test "it goes on where it was saved", %{context: context} do
    path = Path.join(folder(), "learner.safetensors")
    whole = parts(context)
    told = chunks(whole, 5)
    half = parts(context)
    assert {:error, %Error{status: :state}} = Learner.save(half.learner, half.rollout, half.world, path)
    assert chunks(half, 3) == Enum.take(told, 3)
    :ok = Learner.save!(half.learner, half.rollout, half.world, path)
    again = parts(context)
    :ok = Learner.resume!(again.learner, again.rollout, again.world, path)
    assert chunks(again, 2) == Enum.drop(told, 3)
    assert hash(again) == hash(whole)
    assert chunks(parts(context, seed: 2), 5) != told
    # The episodes follow from the session's seed where they have none of their own.
    again = parts(context)

    own = fn seed ->
      %{again | rollout: Rollout.create!(again.model, streams: 4, time: 16, seed: 1, episode_seed: seed)}
    end

    [same, other] = for seed <- [1, 2], do: Rollout.run!(own.(seed).rollout, parts(context).world) && own.(seed)
    assert hd(chunks(same, 1)) == hd(told)
    assert hd(chunks(%{parts(context) | rollout: other.rollout}, 1)) != hd(told)
    other = parts(context, lanes: 8)
    assert {:error, %Error{status: :mismatch}} = Learner.resume(other.learner, other.rollout, other.world, path)
    :ok = Trainer.resume!(half.trainer, path)
    assert {:error, %Error{}} = Learner.save(half.learner, half.rollout, nil, "/nonexistent/x")
  end

  test "a teacher holds", %{context: context} do
    world = World.create!(context, "cartpole", lanes: 4)
    model = player(context, World.info!(world).spec)
    assert {:error, %Error{status: :invalid, message: said}} = Learner.create(by_hand(model), nil, to_teacher: 0.1)
    assert said =~ "teacher"
    rollout = Rollout.create!(model, streams: 4, time: 64)
    metrics = Learner.chunk!(Learner.create!(by_hand(model), model, to_teacher: 0.1, normalise: 1), rollout, world)
    assert metrics.kl_to_teacher > 0 and metrics.kl_to_teacher < 0.1
  end

  # Up and down are the same length; one that always moves up meets fewer balls.
  defp biased(context, spec, class) do
    model = player(context, spec)
    :ok = Model.put_tensor!(model, "heads.logits.bias", floats(for i <- 0..2, do: if(i == class, do: 9, else: 0)))
    model
  end

  test "matches and opponents", %{context: context} do
    world = World.create!(context, "pong-two", lanes: 4)
    spec = World.info!(world).spec
    model = player(context, spec, seed: 3)
    even = Match.play!(model, model, world, games: 8, points: 1)
    assert %{games: 8, score: 0.5, low: 0.5, high: 0.5} = even
    {up, still} = {biased(context, spec, 1), model}
    won = Match.play!(still, up, world, games: 16, points: 1, seed: 2)
    lost = Match.play!(up, still, world, games: 16, points: 1, seed: 2)
    assert won.score > 0.6 and won.games == won.won + won.lost + won.drawn and won.low <= won.score
    assert {won.won, won.lost, won.points} == {lost.lost, lost.won, lost.points_against}
    assert {:error, %Error{status: :invalid, message: said}} = Match.play(up, still, world, games: 3)
    assert said =~ "games"
    cartpole = World.create!(context, "cartpole", lanes: 2)
    assert {:error, %Error{status: :invalid}} = Match.play(up, still, cartpole)
    assert {:error, %Error{status: :mismatch}} = Match.play(up, player(context, World.info!(cartpole).spec), world)

    against = World.against!(world, [up, still], seed: 5)
    assert %{lanes: 4, seats: 1, streams: 4} = World.info!(against)
    assert {:error, %Error{status: :busy}} = World.reset(world, 0, 1)
    rollout = Rollout.create!(still, streams: 4, time: 4096, seed: 1)
    :ok = Rollout.run!(rollout, against)
    record = World.opponent!(against, 0)
    assert record.episodes > 0 and record.won + record.lost <= record.episodes
    assert World.opponent!(against, 0, still) == %{episodes: 0, won: 0, lost: 0}
    assert {:error, %Error{status: :invalid}} = World.opponent(against, 2)
    assert {:error, %Error{status: :mismatch}} = World.opponent(against, 0, player(context, spec, hidden: 24))
    :ok = LibExphil.close(world)
    :ok = Rollout.adopt!(rollout)
    :ok = Rollout.run!(rollout, against)

    world = World.create!(context, "pong-two", lanes: 2)
    assert {:error, %Error{message: said}} = World.against(world, [])
    assert said =~ "count"
    assert {:error, %Error{}} = World.against(world, List.duplicate(up, 3))
    assert {:error, %Error{}} = World.against(world, List.duplicate(up, 65))
    assert {:error, %Error{status: :mismatch}} = World.against(world, [player(context(), spec)])
    assert {_, _} = World.reset!(world, 0, 1)
  end

  test "the world beneath is free again when the other is gone", %{context: context} do
    world = World.create!(context, "pong-two", lanes: 2)
    opponent = player(context, World.info!(world).spec)
    against = World.against!(world, [opponent])
    assert {:error, %Error{status: :busy}} = World.against(world, [opponent])
    :ok = LibExphil.close(against)
    assert eventually(fn -> match?({:ok, _}, World.reset(world, 0, 1)) end)
  end

  test "chunks through blocks are learnt as one's own", %{context: context} do
    [alone, learner] = for _ <- 1..2, do: parts(context, time: 64)
    path = Path.join(folder(), "weights.safetensors")

    me = self()

    # A player of its own context, in a process of its own.
    player =
      Task.async(fn ->
        apart = context()
        mine = parts(apart, time: 64)

        for _ <- 1..3 do
          weights = receive(do: ({:weights, weights} -> weights))
          :ok = Rollout.adopt!(mine.rollout, Model.load_memory!(apart, weights))
          :ok = Rollout.run!(mine.rollout, mine.world)
          send(me, {:block, Rollout.block_save!(mine.rollout)})
        end
      end)

    for metrics <- chunks(alone, 3) do
      :ok = Model.save!(Trainer.model!(learner.trainer), path)
      send(player.pid, {:weights, File.read!(path)})
      assert_receive {:block, block}, 300_000
      assert %{streams: 4, time: 64, delay_frames: 0, weights_hash: hash} = Rollout.block_info!(block)
      assert hash == hash(learner)
      assert Rollout.block_take!(learner.rollout, block) == :full
      assert Learner.update!(learner.learner, learner.rollout) == metrics
    end

    Task.await(player, 300_000)
    assert hash(learner) == hash(alone)
  end

  test "streams of several players, and what is no block", %{context: context} do
    whole = parts(context, lanes: 8, time: 64)
    weights = Trainer.model!(whole.trainer)

    [first, second] =
      for seed <- [1, 2] do
        one = parts(context, seed: seed, time: 64)
        assert {:error, %Error{status: :state, message: said}} = Rollout.block_save(one.rollout)
        assert said =~ "0 of 64 rows"
        :ok = Rollout.adopt!(one.rollout, weights)
        :ok = Rollout.run!(one.rollout, one.world)
        Rollout.block_save!(one.rollout)
      end

    size = byte_size(first) - 1
    <<front::binary-size(size), last>> = first

    for {block, options, status} <- [
          {front <> <<bxor(last, 1)>>, [], :format},
          {front, [], :format},
          {<<>>, [], :format},
          {first, [first_stream: 5], :mismatch},
          {first, [first_stream: 8], :invalid},
          {first, [first_stream: -1], :invalid},
          {first, [weights: :some], :invalid},
          {first, [wights: :any], :invalid},
          {:block, [], :invalid}
        ] do
      assert {:error, %Error{status: ^status}} = Rollout.block_take(whole.rollout, block, options)
    end

    assert {:error, %Error{status: :format}} = Rollout.block_info(front)
    assert Rollout.block_take!(whole.rollout, second, first_stream: 4) == :more
    assert {:error, %Error{status: :state}} = Learner.update(whole.learner, whole.rollout)
    assert {:error, %Error{status: :state}} = Rollout.run(whole.rollout, whole.world)
    assert {:error, %Error{status: :state}} = Rollout.block_take(whole.rollout, first, first_stream: 4)
    assert Rollout.block_take!(whole.rollout, first) == :full
    assert Learner.update!(whole.learner, whole.rollout).recomputed == 0.0
    assert {:error, %Error{status: :mismatch}} = Rollout.block_take(whole.rollout, first)
    assert Rollout.block_take!(whole.rollout, first, weights: :any) == :more
    assert Rollout.block_take!(whole.rollout, second, first_stream: 4, weights: :any) == :full
    assert Learner.update!(whole.learner, whole.rollout).recomputed > 0
  end

  test "a loss of one's own", %{context: context} do
    model = player(context, %{spec() | ids: []})
    trainer = by_hand(model)

    batch = %{
      batch: 2,
      time: 1,
      floats: floats([0.5, 1, -1, 0.5, 0.25, 0, 0, 1]),
      ids: <<>>,
      past: <<>>,
      actions: ints([0, 1, 0, 1]),
      mask: floats([1, 1]),
      reset: <<1, 1>>
    }

    # Half the squares of logits and values, whose gradients they are themselves.
    squares = fn binary -> Enum.sum(for <<x::float-32-native <- binary>>, do: x * x / 2) end

    losses =
      for update <- 1..30 do
        {:ok, %{rows: 2, logits: logits, values: values}} = Trainer.forward(trainer, batch)
        assert byte_size(logits) == 2 * 8 * 4 and byte_size(values) == 8
        loss = squares.(logits) + squares.(values)
        assert %{update: ^update, loss: ^loss} = Trainer.backward!(trainer, logits, values, loss)
        loss
      end

    assert List.last(losses) < hd(losses) / 2
    before = hash(%{trainer: trainer})
    {:ok, %{logits: logits}} = Trainer.forward(trainer, batch)
    assert {:error, %Error{status: :state}} = Trainer.step_batch(trainer, batch)
    assert {:error, %Error{status: :state}} = Trainer.forward(trainer, batch)
    assert {:error, %Error{message: "dlogits: has 4 bytes" <> _}} = Trainer.backward(trainer, <<1, 2, 3, 4>>, nil, 0)
    assert {:error, %Error{message: "loss" <> _}} = Trainer.backward(trainer, logits, nil, :loss)
    nan = :binary.copy(<<0, 0, 0xC0, 0x7F>>, 16)
    assert {:error, %Error{status: :numeric}} = Trainer.backward(trainer, nan, nil, 0)
    assert {:error, %Error{status: :state}} = Trainer.backward(trainer, logits, nil, 0)
    assert {:error, %Error{status: :state}} = Trainer.abandon(trainer)
    {:ok, _} = Trainer.forward(trainer, batch)
    :ok = Trainer.abandon!(trainer)
    assert hash(%{trainer: trainer}) == before
    assert {:error, %Error{message: "states: not a binary"}} = Trainer.forward(trainer, batch, states: 1)
    assert {:error, %Error{}} = Trainer.forward(trainer, batch, states: <<1, 2, 3>>)
    assert {:error, %Error{message: "forward: there is no :sates"}} = Trainer.forward(trainer, batch, sates: nil)
    assert {:error, %Error{message: "batch: mask is missing"}} = Trainer.forward(trainer, Map.delete(batch, :mask))
    # Where play has been: lanes begin with its states.
    session = Session.create!(model, streams: 2)
    states = Session.save_state!(session, 0) <> Session.save_state!(session, 1)
    {:ok, %{logits: logits}} = Trainer.forward(trainer, batch, states: states)
    assert byte_size(logits) == 64
    # In double, and without a value.
    double = by_hand(player(context, %{spec() | ids: []}, type: :f64, value: :none))
    {:ok, %{logits: logits, values: nil}} = Trainer.forward(double, batch)
    assert byte_size(logits) == 128
    assert {:error, %Error{message: "dlogits: has 64 bytes" <> _}} = Trainer.backward(double, <<0::512>>, nil, 0)
    assert %{update: 1} = Trainer.backward!(double, logits, nil, 0.5)
  end

  test "what came of it weighs", %{context: context} do
    spec = %{layout: "one", codec: "one", floats: 1, heads: [%{name: "move", kind: :categorical, count: 2}]}
    dataset = Dataset.create!(context, spec)

    for game <- 0..7 do
      action = rem(game, 2)
      Dataset.add_rows!(dataset, game, 100, floats(List.duplicate(0.5, 100)), <<>>, ints(List.duplicate(action, 100)))
      :ok = Dataset.put_rewards!(dataset, game, floats(List.duplicate(action, 100)), half_life_frames: 1)
    end

    some = floats([1, 2])

    for {rewards, options, word} <- [
          {some, [], "half_life_frames"},
          {some, [half_life_frames: -1], "half_life_frames"},
          {some, [half_life_frames: 1, over: 1], "over"},
          {some, [half_life_frames: 1, prt: 1], "prt"},
          {<<1>>, [half_life_frames: 1], "rewards"},
          {<<0, 0, 0xC0, 0x7F>>, [half_life_frames: 1], "rewards"},
          {[1], [half_life_frames: 1], "rewards"}
        ] do
      assert {:error, %Error{message: said}} = Dataset.put_rewards(dataset, 0, rewards, options)
      assert said =~ word
    end

    model = player(context, spec)
    prefetcher = Prefetcher.create!(dataset, Map.merge(Model.sampling!(model), %{batch: 8, time: 20}))
    returns = Prefetcher.next!(prefetcher).returns
    assert byte_size(returns) == 8 * 20 * 4
    :ok = Prefetcher.seek!(prefetcher, 0, 0)
    trainer = Trainer.create!(model, Optimizer.create!(model, rate: 0.01), prefetcher)
    told = for _ <- 1..60, do: Trainer.step_outcome!(trainer, beta: 0.3, warm_up: 5)
    assert hd(told).known > 0 and hd(told).effective == 1.0 and Enum.at(told, 10).effective < 0.9
    session = Session.create!(Trainer.model!(trainer))
    Session.step_row!(session, floats([0.5]))
    <<no::float-32-native, yes::float-32-native>> = Session.logits!(session)
    assert yes > no + 1
    assert {:error, %Error{message: said}} = Trainer.step_outcome(trainer, shuffle: 1)
    assert said =~ "shuffle"
  end

  test "a frame of Melee is worth something" do
    hit = put_in(frame(11).players[2].percent, 12.5)
    before = put_in(frame(10).players[1].action_state, 20)
    assert Melee.reward!(before, hit) == 0.125
    assert Melee.reward!(%{before | own_port: 2}, %{hit | own_port: 2}) == -0.125
    assert Melee.reward!(before, hit, damage: 0.02) == 0.25
    assert Melee.reward!(before, %{hit | frame: 12}) == 0.0
    assert {:error, %Error{status: :invalid}} = Melee.reward(before, %{hit | own_port: 2})
    assert {:error, %Error{message: said}} = Melee.reward(before, hit, demage: 1)
    assert said =~ "demage"
  end

  test "sessions and agents adopt new weights", %{context: context} do
    [old, new, third] = for seed <- 1..3, do: model(context, seed: seed)
    step = fn session, t -> Session.step_row!(session, floats([t, 1, 2, 3]), ints([0])) && Session.logits!(session) end
    session = Session.create!(old, adoptable: true, seed: 5)
    step.(session, 0)
    assert {:error, %Error{status: :state, message: said}} = Session.adopt(session, new)
    assert said =~ "prepare"
    for model <- [new, third], do: :ok = Model.prepare!(model)
    state = Session.save_state!(session)
    before = step.(session, 1)
    assert Session.adopt!(session, new) == nil
    straight = step.(session, 2)
    assert %{adoptions: 1, weights_hash: playing} = Session.info!(session)
    assert playing == hash(new)
    :ok = Session.restore_state!(session, state)
    assert {step.(session, 1), step.(session, 2)} == {before, straight}
    assert %Model{} = gone = Session.adopt!(session, third)
    assert hash(gone) == hash(old)
    assert {:error, %Error{status: :mismatch}} = Session.adopt(session, model(context, hidden: 24))
    assert {:error, %Error{status: :state}} = Session.adopt(Session.create!(old), new)
    assert {:error, %Error{status: :state}} = Session.value(session)
    assert {:error, %Error{message: "session: adoptable: not a boolean"}} = Session.create(old, adoptable: 1)

    {:ok, agent} = Agent.start_link(model: old, session: [seed: 7, adoptable: true])
    direct = Session.create!(old, seed: 7, adoptable: true)
    row = {floats([1, 1, 2, 3]), ints([0])}
    for t <- 0..4, do: assert(Agent.frame(agent, t, row) == Session.step_row(direct, elem(row, 0), elem(row, 1)))
    :ok = Agent.adopt(agent, new)
    Session.adopt!(direct, new)
    for t <- 5..9, do: assert(Agent.frame(agent, t, row) == Session.step_row(direct, elem(row, 0), elem(row, 1)))
    assert %{adoptions: 1} = Agent.info(agent)
    {:ok, fixed} = Agent.start_link(model: old)
    assert {:error, %Error{status: :state}} = Agent.adopt(fixed, new)
    assert {:ok, _} = Agent.frame(fixed, 0, row)
  end

  test "a copy with another value decides as before", %{context: context} do
    old = model(context)
    assert %{value: :none} = Model.info!(old)
    new = Model.with_value!(old, :shared, 7)
    assert %{value: :shared} = Model.info!(new)
    [a, b] = for model <- [old, new], do: Session.create!(model, seed: 1)
    row = floats([1, 1, 2, 3])
    assert Session.step_row!(a, row, ints([0])) == Session.step_row!(b, row, ints([0]))
    assert Session.value!(b) == 0.0
    assert {:error, %Error{status: :invalid}} = Model.with_value(old, :none)
    assert {:error, %Error{message: "seed" <> _}} = Model.with_value(old, :shared, -1)
    assert {:error, %Error{message: "value" <> _}} = Model.with_value(old, :wide)
  end

  test "a chunk ends when the process that plays it is killed", %{context: context} do
    %{rollout: rollout, world: world} = parts(context, lanes: 64, time: 4096, model: [hidden: 256])
    worker = spawn(fn -> Rollout.run(rollout, world) end)
    assert eventually(fn -> match?({:error, %Error{status: :busy}}, World.info(world)) end)
    Process.exit(worker, :kill)
    assert eventually(fn -> match?({:ok, _}, World.info(world)) end)
    assert {:error, %Error{status: :state}} = Rollout.block_save(rollout)
  end
end
