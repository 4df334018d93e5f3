defmodule LibExphil.AgentTest do
  # The agent: its queue is that of the library, its rollback forgets what was wrong, its ticks ask and press.
  use ExUnit.Case, async: true

  import LibExphil.Test

  alias LibExphil.{Agent, Error, Melee, Model, Session}

  setup_all do
    %{model: Model.create!(context(), blocks: "gru", hidden: 32, delay_frames: 3)}
  end

  test "the queue gives what the library's own would", %{model: model} do
    {:ok, agent} = Agent.start_link(model: model, session: [seed: 7])
    session = Session.create!(model, seed: 7)
    assert {:ok, neutral} = Agent.frame(agent, 10, frame(10))
    assert neutral == %Melee.Pad{}
    Session.step!(session, frame(10))

    for t <- 11..80 do
      {:ok, pad} = Agent.frame(agent, t, frame(t))
      assert pad == Session.step!(session, frame(t))
      assert Agent.pad(agent, t) == pad
      assert %Melee.Pad{} = Agent.pad(agent, t + 3)
      assert Agent.pad(agent, t + 4) == nil
    end

    assert Agent.info(agent).steps == 71
    :ok = Agent.reset(agent)
    assert Agent.frame(agent, -123, frame(0)) == {:ok, %Melee.Pad{}}
  end

  test "rollback: as if only the corrected frames had been", %{model: model} do
    [a, b] = for _ <- 1..2, do: elem(Agent.start_link(model: model, rollback: 8, session: [seed: 7]), 1)
    wrong = fn t -> put_in(frame(t).players[2].x, -40.0) end
    for t <- 0..20, do: {:ok, _} = Agent.frame(a, t, frame(t))

    for t <- 0..40 do
      guess = if t > 20 and rem(t, 5) != 0, do: wrong.(t), else: frame(t)
      {:ok, _} = Agent.frame(b, t, guess)
      if t > 20 and rem(t, 5) == 0, do: for(back <- (t - 4)..t, do: {:ok, _} = Agent.frame(b, back, frame(back)))
    end

    for t <- 21..40, do: {:ok, _} = Agent.frame(a, t, frame(t))
    for t <- 34..43, do: assert(Agent.pad(a, t) == Agent.pad(b, t))
    for t <- 41..60, do: assert(Agent.frame(a, t, frame(t)) == Agent.frame(b, t, frame(t)))
  end

  test "frames that cannot be", %{model: model} do
    {:ok, agent} = Agent.start_link(model: model, rollback: 4, session: [seed: 1])
    for t <- 0..9, do: {:ok, _} = Agent.frame(agent, t, frame(t))
    assert {:error, %Error{status: :state, message: "frame 11 came, 10 is next"}} = Agent.frame(agent, 11, frame(11))

    assert {:error, %Error{status: :state, message: "frame 5 is more than 4 frames back"}} =
             Agent.frame(agent, 5, frame(5))

    assert {:error, %Error{status: :invalid}} = Agent.frame(agent, 8, %{frame(8) | own_port: 4})
    assert {:error, %Error{message: "frame 10 came, 8 is next"}} = Agent.frame(agent, 10, frame(10))
    assert {:ok, _} = Agent.frame(agent, 8, frame(8))
    Process.flag(:trap_exit, true)
    assert {:error, %Error{status: :mismatch}} = Agent.start_link(model: model, session: [delay_frames: 9])
  end

  test "any game: rows in, actions out, delay and rollback as ever" do
    context = context()
    model = model(context, delay_frames: 2)
    row = fn t -> {floats([rem(t, 7) / 7, 1, -1, 0.5]), ints([rem(t, 3)])} end
    {:ok, agent} = Agent.start_link(model: model, session: [seed: 7])
    session = Session.create!(model, seed: 7)

    for t <- 0..40 do
      {floats, ids} = row.(t)
      assert {:ok, actions} = Agent.frame(agent, t, row.(t))
      assert actions == Session.step_row!(session, floats, ids)
      if t < 2, do: assert(actions == ints([0, 2]))
    end

    before = Agent.pad(agent, 40)
    assert {:ok, _} = Agent.frame(agent, 36, {floats([9, 9, 9, 9]), ints([0])})
    for t <- 36..40, do: assert({:ok, _} = Agent.frame(agent, t, row.(t)))
    assert Agent.pad(agent, 40) == before

    assert {:error, %Error{status: :invalid, message: "frame: the policy plays test/test: {floats, ids} or" <> _}} =
             Agent.frame(agent, 41, frame(41))

    me = self()
    {:ok, _} = Agent.start_link(model: model, source: row, sink: &send(me, {&1, &2}), hz: 200)
    neutral = ints([0, 2])
    assert_receive {0, ^neutral}, 300_000
    assert_receive {9, <<_::64>>}, 300_000
  end

  test "options that do not exist, or do not fit, start nothing", %{model: model} do
    for {options, words} <- [
          {[model: model, rolback: 3], "there is no :rolback"},
          {[rollback: 3], ":model is missing"},
          {[model: nil], ":model cannot be nil"},
          {[model: model, rollback: -1], ":rollback cannot be -1"},
          {[model: model, hz: 0], ":hz cannot be 0"},
          {[model: model, session: 5], ":session cannot be 5"},
          {[model: model, sink: &Function.identity/1], ":sink cannot be"}
        ] do
      assert {:error, %Error{status: :invalid, message: "agent: " <> said}} = Agent.start_link(options)
      assert String.starts_with?(said, words)
    end

    assert {:ok, _} = Agent.start_link(model: model, name: :an_agent, hibernate_after: 1000)
  end

  test "ticks ask for frames and press what is due", %{model: model} do
    me = self()
    source = fn number -> if number < 20, do: frame(number) end

    {:ok, agent} =
      Agent.start_link(model: model, source: source, sink: &send(me, {&1, &2}), hz: 200, session: [seed: 7])

    session = Session.create!(model, seed: 7)

    for t <- 0..19 do
      expected = Session.step!(session, frame(t))
      assert_receive {^t, ^expected}, 300_000
    end

    assert eventually(fn -> Agent.info(agent).ticks > 25 end)
    refute_received {20, _}
  end
end
