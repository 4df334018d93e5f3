defmodule LibExphil.LiveLearnerTest do
  # A policy that learns behind its game: from a person, from rewards; paced runs are one, saved ones go on; wrong calls.
  use ExUnit.Case, async: true

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{Dataset, Error, Learner, LiveLearner, Melee, Model, Optimizer, Rollout, Session, Trainer, World}

  @spec_map %{
    layout: "follow",
    codec: "follow",
    floats: 2,
    ids: [%{name: "place", entries: 4}],
    heads: [
      %{name: "move", kind: :categorical, count: 3, neutral: 1},
      %{name: "press", kind: :bernoulli, count: 2, neutral: 0}
    ]
  }
  @usual [
    piece_frames: 50,
    updates: 20,
    seed: 7,
    session: [seed: 3, direct_ns: 1 <<< 62],
    optimizer: [rate: 1.0e-2],
    sampling: [batch: 4, time: 20]
  ]

  defp small(options) do
    small = [blocks: "gru", hidden: 16, head_width: 16, no_previous_action: true, neutral_start: true, value: :shared]
    Keyword.merge([spec: @spec_map, seed: 1] ++ small, options)
  end

  defp policy(options \\ []), do: Model.create!(context(), small(options))
  defp live(options \\ []), do: LiveLearner.create!(policy(), Keyword.merge(@usual, options))

  # Plays by a rule: moves to where the first float is, presses by the id; and the game that shows these.
  defp person(seed), do: :rand.seed_s(:exsss, {seed, 2, 3})

  defp look(person) do
    {x, person} = :rand.uniform_s(person)
    {y, person} = :rand.uniform_s(person)
    {place, person} = :rand.uniform_s(4, person)
    x = 2 * x - 1
    move = if(x > 0.3, do: 2, else: if(x < -0.3, do: 0, else: 1))
    {floats([x, 2 * y - 1]), ints([place - 1]), ints([move, place - 1]), person}
  end

  # What was pressed, frame by frame, and the person after; of every hundred frames the person has sixty.
  defp play(live, person, frames, settle \\ 0, episode \\ 400) do
    Enum.map_reduce(1..frames, person, fn t, person ->
      {floats, ids, action, person} = look(person)
      presses = if rem(t - 1, 100) < 60, do: action
      actions = LiveLearner.step_row!(live, floats, ids, presses)
      assert presses == nil or actions == action
      if rem(t, episode) == 0, do: :ok = LiveLearner.reward!(live, 0.0, :over)
      if settle > 0 and rem(t, settle) == 0, do: :ok = LiveLearner.settle!(live)
      {actions, person}
    end)
  end

  # Share of the frames in which a policy alone does what another person of the same rule does.
  defp agreement(model) do
    session = Session.create!(model, deterministic: true)

    {right, _} =
      Enum.map_reduce(1..500, person(99), fn _, person ->
        {floats, ids, action, person} = look(person)
        {Session.step_row!(session, floats, ids) == action, person}
      end)

    Enum.count(right, & &1) / 500
  end

  defp hash(model), do: Model.info!(model).weights_hash
  defp weights(live), do: hash(LiveLearner.model!(live))

  defp moves(live) do
    logits = for <<logit::float-32-native <- Session.logits!(LiveLearner.session(live))>>, do: logit
    Enum.take(logits, 3)
  end

  test "what a person does is learnt" do
    model = policy()
    live = LiveLearner.create!(model, @usual)
    play(live, person(1), 1200)
    :ok = LiveLearner.settle!(live)
    info = LiveLearner.info!(live)
    assert agreement(model) < 0.4 and agreement(LiveLearner.model!(live)) > 0.9
    assert %{frames: 1200, person: 720, learnt: 720, dropped: 0, failed: nil, unsaved: nil, message: ""} = info
    # A piece is 50 frames: of every hundred the person has all of the first and ten of the second.
    assert {info.pieces, info.updates} == {24, 24 * 20}
    assert info.adopted >= 1 and info.loss > 0 and info.loss < 1
    # The session plays what was learnt, the model that it was made of is as it was.
    assert hash(model) == hash(policy()) and weights(live) != hash(model)

    {right, _} =
      Enum.map_reduce(1..200, person(98), fn _, person ->
        {floats, ids, <<move::signed-32-native, _::32>>, person} = look(person)
        LiveLearner.step_row!(live, floats, ids)
        logits = moves(live)
        {Enum.find_index(logits, &(&1 == Enum.max(logits))) == move, person}
      end)

    assert Enum.count(right, & &1) > 180
    clone = Session.clone!(LiveLearner.session(live))
    :ok = LibExphil.close(live)
    assert <<_::64>> = Session.step_row!(clone, floats([0.5, 0]), ints([0]))
  end

  test "two paced runs are one" do
    run = fn seed, settle ->
      live = live(paced: true, seed: seed)
      {pressed, _} = play(live, person(1), 600, settle)
      adopted = LiveLearner.info!(live).adopted
      :ok = LiveLearner.settle!(live)
      {pressed, adopted, weights(live), LiveLearner.info!(live).loss}
    end

    first = run.(7, 130)
    assert run.(7, 130) == first
    assert elem(first, 1) == 4
    assert elem(run.(8, 130), 2) != elem(first, 2)
    assert elem(run.(7, 70), 0) != elem(first, 0)
  end

  test "new weights come by themselves unless paced" do
    adopted = fn live -> LiveLearner.info!(live).adopted end

    for paced? <- [false, true] do
      live = live(paced: paced?)
      play(live, person(1), 60)
      assert eventually(fn -> LiveLearner.info!(live).pieces > 0 end)
      step = fn -> LiveLearner.step_row!(live, floats([0, 0]), ints([0])) end
      unless paced?, do: assert(eventually(fn -> step.() && adopted.(live) > 0 end))
      for _ <- 1..1000, do: step.()
      assert adopted.(live) > 0 == not paced?
      :ok = LiveLearner.settle!(live)
      assert adopted.(live) > 0
    end
  end

  test "saved runs go on" do
    path = Path.join(folder(), "kept")
    settings = [paced: true, rollback_frames: 1]
    live = live(settings)
    {_, person} = play(live, person(1), 500, 90, 1000)
    :ok = LiveLearner.save!(live, path)
    again = live(settings)
    :ok = LiveLearner.resume!(again, path)
    assert weights(again) == weights(live)
    counts = &Map.take(LiveLearner.info!(&1), [:learnt, :updates, :pieces])
    assert counts.(again) == counts.(live) and counts.(live).learnt == 300
    # The session's state is the host's: an episode ends in one, and the other begins with its draws.
    :ok = LiveLearner.reward!(live, 0, :over)
    :ok = Session.restore_state!(LiveLearner.session(again), Session.save_state!(LiveLearner.session(live)))

    more = fn live ->
      {pressed, _} = play(live, person, 400, 90)
      :ok = LiveLearner.settle!(live)
      {pressed, weights(live)}
    end

    assert more.(again) == more.(live)
    assert agreement(Model.load!(context(), path)) > 0.5
    assert {:error, %Error{status: :state, message: said}} = LiveLearner.resume(again, path)
    assert said =~ "frames were played"
    other = live([updates: 21] ++ settings)
    assert {:error, %Error{status: :mismatch, message: said}} = LiveLearner.resume(other, path)
    assert said =~ "updates 20, this is 21"
    assert {:error, %Error{status: :io}} = LiveLearner.resume(other, path <> ".none")
    assert {:error, %Error{status: :invalid}} = LiveLearner.save(other, "")
    assert weights(other) == hash(policy())
  end

  test "the thread saves by itself" do
    path = Path.join(folder(), "kept")

    run = fn options ->
      live = live(options)
      play(live, person(1), 250)
      :ok = LiveLearner.settle!(live)
      LiveLearner.info!(live)
    end

    assert %{pieces: 5, saved: 2, unsaved: nil} = run.(path: path, save_pieces: 2)
    live = live()
    :ok = LiveLearner.resume!(live, path)
    assert %{pieces: 4} = LiveLearner.info!(live)
    assert %{saved: 0, failed: nil, unsaved: :io, message: said} = run.(path: "/nonexistent/folder/x", save_pieces: 1)
    assert said =~ "/nonexistent/folder"
  end

  test "frames that are taken back are not learnt" do
    run = fn back? ->
      live = live(paced: true, rollback_frames: 8)
      session = LiveLearner.session(live)

      {pressed, _} =
        Enum.map_reduce(0..299, person(1), fn t, person ->
          if back? and rem(t, 37) == 36 do
            state = Session.save_state!(session)
            play(live, person(5), rem(t, 8) + 1)
            :ok = Session.restore_state!(session, state)
          end

          play(live, person, 1)
        end)

      :ok = LiveLearner.settle!(live)
      taken_back = if back?, do: Enum.sum(for t <- 36..299//37, do: rem(t, 8) + 1), else: 0
      assert LiveLearner.info!(live).taken_back == taken_back
      {pressed, weights(live)}
    end

    assert run.(true) == run.(false)
  end

  test "data keep their share, and what is let pass may count" do
    row = {floats([0.5, 0.5]), ints([1])}

    right = fn share ->
      data = Dataset.create!(context(), @spec_map)
      many = &for(_ <- 1..400, into: <<>>, do: &1)
      Dataset.add_rows!(data, 0, 400, many.(elem(row, 0)), many.(elem(row, 1)), many.(ints([0, 0])))
      # Without a state that would tell the person's frames from the others.
      options = Keyword.merge(@usual, dataset: data, share: share, updates: 60, paced: true)
      live = LiveLearner.create!(policy(blocks: "mlp"), options)
      :ok = LibExphil.close(data)
      for _ <- 1..100, do: LiveLearner.step_row!(live, elem(row, 0), elem(row, 1), ints([2, 0]))
      :ok = LiveLearner.settle!(live)
      LiveLearner.step_row!(live, elem(row, 0), elem(row, 1))
      odds = Enum.map(moves(live), &:math.exp/1)
      List.last(odds) / Enum.sum(odds)
    end

    assert right.(0.1) < 0.35 and right.(0.9) > 0.65

    learnt_from = fn options ->
      live = live(options)
      for _ <- 1..100, do: LiveLearner.step_row!(live, elem(row, 0), elem(row, 1))
      :ok = LiveLearner.settle!(live)
      Map.take(LiveLearner.info!(live), [:updates, :learnt])
    end

    assert learnt_from.([]) == %{updates: 0, learnt: 0}
    assert learnt_from.(approved: 0.5) == %{updates: 40, learnt: 0}
  end

  test "Melee: the person's pad comes back as it is, and the policy learns to hold it" do
    model = policy(spec: nil, blocks: "mlp")
    held = %Melee.Pad{buttons: 0x100, main_x: 0.125}
    live = LiveLearner.create!(model, Keyword.merge(@usual, session: [deterministic: true, track: true]))
    for t <- 1..100, do: assert(LiveLearner.step!(live, frame(t), held) == held)
    :ok = LiveLearner.settle!(live)
    pad = LiveLearner.step!(live, frame(3))
    assert pad.buttons == 0x100 and abs(pad.main_x - 0.125) < 0.1, inspect(pad)
    # A frame may be packed, and a pad a map.
    assert LiveLearner.step!(live, Melee.pack!(frame(3)), %{buttons: 0x100}) == %Melee.Pad{buttons: 0x100}
    tracked = Session.info!(LiveLearner.session(live))
    assert is_integer(tracked.max_cpu_ns) and is_integer(tracked.preempted)

    for {frame, person, word} <- [
          {%{frame() | own_port: 3}, nil, "own_port"},
          {<<1>>, nil, "frame"},
          {frame(), 3, "person"},
          {frame(), %{button: 1}, "button"}
        ] do
      assert {:error, %Error{status: :invalid, message: said}} = LiveLearner.step(live, frame, person)
      assert said =~ word
    end

    assert LiveLearner.info!(live).frames == 102
    assert {:error, %Error{status: :state, message: said}} = LiveLearner.step(live(), frame())
    assert said =~ ": use step_row"
  end

  # The game of a process: one lane of a world.
  defp ending(<<0>>), do: :goes_on
  defp ending(<<1>>), do: :over
  defp ending(<<2>>), do: :cut_off

  defp chunk(live, rollout, world, row, number) do
    actions = LiveLearner.step_row!(live, row)
    assert Rollout.step!(rollout, row) == actions
    frame = World.step!(world, actions)
    <<reward::float-32-native>> = frame.reward
    :ok = LiveLearner.reward!(live, reward, ending(frame.end), frame.floats)
    full = Rollout.reward!(rollout, frame.reward, frame.end, frame.floats)
    row = if frame.end == <<0>>, do: frame.floats, else: elem(World.reset!(world, 0, number), 0)
    if full == :full, do: row, else: chunk(live, rollout, world, row, number)
  end

  test "reinforcement is that of a learner" do
    context = context()
    world = World.create!(context, "cartpole")
    model = Model.create!(context, small(spec: World.info!(world).spec))
    settings = [half_life_frames: 69, reward_scale: 0.1, to_teacher: 0.01, seed: 5]
    trainer = Trainer.create!(model, Optimizer.create!(model, rate: 1.0e-3), nil, as_played: true)
    rollout = Rollout.create!(model, time: 24, seed: 5)
    learner = Learner.create!(trainer, model, settings)

    live =
      LiveLearner.create!(model,
        way: :reinforce,
        teacher: model,
        time: 24,
        paced: true,
        session: [seed: 5],
        optimizer: [rate: 1.0e-3],
        learner: settings
      )

    {row, <<>>} = World.reset!(world, 0, 3)

    Enum.reduce(1..3, row, fn number, row ->
      row = chunk(live, rollout, world, row, number)
      metrics = Learner.update!(learner, rollout)
      :ok = LiveLearner.settle!(live)
      assert weights(live) == hash(Trainer.model!(trainer))
      learnt = 24 * number
      assert %{pieces: ^number, adopted: ^number, learnt: ^learnt, dropped: 0} = info = LiveLearner.info!(live)
      assert {info.updates, info.loss, info.reward} == {metrics.updates, metrics.loss, metrics.reward}
      row
    end)
  end

  test "a full ring drops chunks" do
    live = LiveLearner.create!(policy(), way: :reinforce, time: 8, ring_frames: 1)

    for _ <- 1..400 do
      LiveLearner.step_row!(live, floats([0, 0]), ints([0]))
      :ok = LiveLearner.reward!(live, 1.0, :goes_on, floats([0, 0]), ints([0]))
    end

    :ok = LiveLearner.settle!(live)
    info = LiveLearner.info!(live)
    assert info.pieces + div(info.dropped, 8) == 50 and info.failed == nil
  end

  test "where steps run changes nothing" do
    [direct, dirty] =
      for dirty? <- [false, true], do: live(paced: true, session: [seed: 3, dirty: dirty?, direct_ns: 1 <<< 62])

    assert for(live <- [direct, dirty], do: Session.info!(LiveLearner.session(live)).dirty) == [false, true]
    assert play(dirty, person(1), 200, 90, 50) == play(direct, person(1), 200, 90, 50)
  end

  test "wrong steps move nothing" do
    live = live()
    {row, id} = {floats([0, 0]), ints([0])}

    for {args, status, word} <- [
          {[row, id, ints([3, 0])], :invalid, "person"},
          {[row, id, ints([-1, 0])], :invalid, "person"},
          {[row, id, ints([0, 4])], :invalid, "person"},
          {[row, id, ints([0])], :invalid, "person"},
          {[row, id, [0, 0]], :invalid, "person"},
          {[floats([0]), id], :invalid, "floats"},
          {[row], :invalid, "ids"},
          {[row, ints([4])], :invalid, "place"},
          {[<<0, 0, 0xC0, 0x7F, 0::32>>, id], :numeric, ""}
        ] do
      assert {:error, %Error{status: ^status, message: said}} = apply(LiveLearner, :step_row, [live | args])
      assert said =~ word
    end

    for {args, word} <- [
          {[0, 1], "ending"},
          {[0, :never], "ending"},
          {[:a, :over], "reward"},
          {[0, :over, <<1>>], "floats"}
        ] do
      assert {:error, %Error{status: :invalid, message: said}} = apply(LiveLearner, :reward, [live | args])
      assert said =~ word
    end

    assert LiveLearner.info!(live).frames == 0
    assert LiveLearner.step_row!(live, row, id, ints([2, 3])) == ints([2, 3])
    session = LiveLearner.session(live)

    for call <- [&Session.reset/1, &Session.step_row(&1, row, id), &Session.adopt(&1, policy())] do
      assert {:error, %Error{status: :state}} = call.(session)
    end

    assert {:error, %Error{status: :state}} = Session.restore_state(session, Session.save_state!(session))
    live = LiveLearner.create!(policy(), way: :reinforce, time: 8)
    assert {:error, %Error{status: :state}} = LiveLearner.reward(live, 0, :over)
    LiveLearner.step_row!(live, row, id)
    assert {:error, %Error{status: :state}} = LiveLearner.step_row(live, row, id)
    assert {:error, %Error{status: :numeric, message: "reward" <> _}} = LiveLearner.reward(live, nil, :over)
    assert {:error, %Error{message: "not a handle of a live_learner"}} = LibExphil.Nif.live_learner_info(policy().ref)
  end

  test "wrong options are refused by name" do
    for {options, status, word} <- [
          {[way: :guess], :invalid, "way"},
          {[tme: 8], :invalid, "tme"},
          {[time: 8], :invalid, "time is for"},
          {[learner: []], :invalid, "learner is for"},
          {[teacher: policy()], :invalid, "teacher is for"},
          {[way: :reinforce, sampling: [batch: 2]], :invalid, "sampling is for"},
          {[way: :reinforce, piece_frames: 2], :invalid, "piece_frames is for"},
          {[way: :reinforce, learner: [clip: nil]], :invalid, "clip"},
          {[way: :reinforce, learner: [to_teacher: 0.1]], :invalid, "teacher"},
          {[share: 1.0], :invalid, "share"},
          {[approved: -0.5], :invalid, "approved"},
          {[session: [streams: 2]], :invalid, "streams is 2"},
          {[session: [deliver: :decided]], :unsupported, "deliver"},
          {[session: [stream: 1]], :invalid, "stream"},
          {[session: [1]], :invalid, "session"},
          {[optimizer: [rate: -1.0]], :invalid, "rate"},
          {[optimizer: 3], :invalid, "optimizer"},
          {[trainer: [losses: [%{}]]], :invalid, "losses"},
          {[trainer: [own_past: 2.0]], :invalid, "own_past"},
          {[sampling: [seed: 1]], :invalid, "seed"},
          {[sampling: [batches: 1]], :invalid, "batches"},
          {[context: [log: self()]], :invalid, "log"},
          {[context: [device: "abacus"]], :invalid, "abacus"},
          {[path: ""], :invalid, "path is empty"},
          {[path: "a\0b"], :invalid, "path"},
          {[teacher: 3], :invalid, "teacher"},
          {[dataset: 3], :invalid, "dataset"}
        ] do
      assert {:error, %Error{message: said} = error} = LiveLearner.create(policy(), options)
      assert said =~ word and error.status == status, "#{inspect(options)}: #{Exception.message(error)}"
    end
  end

  test "what does not belong together" do
    assert {:error, %Error{status: :mismatch}} = LiveLearner.create(policy(), dataset: dataset(context()))
    assert {:error, %Error{status: :unsupported}} = LiveLearner.create(Model.quantize!(policy(), :bf16))
    assert {:error, %Error{}} = LiveLearner.create(policy(value: :none), way: :reinforce)
  end

  test "it outlives what it was made of; one call at a time" do
    context = context()
    [model, teacher] = for _ <- 1..2, do: Model.create!(context(), small([]))
    world = World.create!(context, "cartpole")
    live = LiveLearner.create!(model, way: :reinforce, teacher: teacher, learner: [to_teacher: 0.1], time: 8)
    for handle <- [model, teacher, context, world], do: :ok = LibExphil.close(handle)
    :erlang.garbage_collect()

    for t <- 1..40 do
      LiveLearner.step_row!(live, floats([t / 40, 0]), ints([0]))
      :ok = LiveLearner.reward!(live, 1, :goes_on, floats([0, 0]), ints([0]))
    end

    :ok = LiveLearner.settle!(live)
    # A call of another process while it settles is told so at once.
    live = live(updates: 20_000)
    play(live, person(1), 60)

    # Which of the two is told so first is the system's choice.
    settle = fn settle ->
      with {:error, %Error{status: :busy}} <- LiveLearner.settle(live), do: settle.(settle)
    end

    task = Task.async(fn -> settle.(settle) end)
    assert eventually(fn -> match?({:error, %Error{status: :busy}}, LiveLearner.info(live)) end)
    :ok = LibExphil.close(live)
    assert {:error, %Error{status: :state, message: "live_learner is closed"}} = LiveLearner.info(live)
    assert Task.await(task, 300_000) == :ok
  end
end
