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

  test "ticks ask for frames and press what is due", %{model: model} do
    me = self()
    source = fn number -> if number < 20, do: frame(number) end

    {:ok, agent} =
      Agent.start_link(model: model, source: source, sink: &send(me, {&1, &2}), hz: 200, session: [seed: 7])

    session = Session.create!(model, seed: 7)

    for t <- 0..19 do
      expected = Session.step!(session, frame(t))
      assert_receive {^t, ^expected}, 2000
    end

    refute_receive {20, _}, 50
    assert Agent.info(agent).ticks > 20
  end
end
