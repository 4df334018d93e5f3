defmodule LibExphil.LoadTest do
  # Eight agents play at 60 Hz with the default policy, for 10 seconds, or a minute with EXPHIL_LONG=1.
  #
  # The VM reports every process that held a scheduler for a millisecond. On a machine that others use too it will: a thread
  # that the system has put aside holds its scheduler all the same. So steps are tracked: ours is one that gives the
  # processor away, one that nothing interrupted and that took a millisecond of processor time, one that nothing
  # interrupted and that missed its deadline. A virtual machine counts time that its host took as processor time, so one
  # step in two hundred may take that long; were it the library, which costs the same on every frame, it would be most.
  use ExUnit.Case, async: false

  import LibExphil.Test

  alias LibExphil.{Agent, Model}

  @agents 8
  @seconds if System.get_env("EXPHIL_LONG") == "1", do: 60, else: 10

  @tag timeout: 120_000
  test "eight agents at 60 Hz hold no scheduler and miss no deadline" do
    model = Model.create!(context(), delay_frames: 2)
    assert Model.info!(model).blocks == "mamba*2"
    collector = self()

    agents =
      for n <- 1..@agents do
        sink = fn number, pad -> number == 60 and send(collector, {:pressed, n, pad}) end
        options = [session: [track: true, seed: n], source: &frame/1, sink: sink]
        {:ok, agent} = Agent.start_link([model: model] ++ options)
        agent
      end

    :erlang.system_monitor(self(), [{:long_schedule, 1}])
    Process.sleep(@seconds * 1000)
    :erlang.system_monitor(:undefined)
    infos = Enum.map(agents, &Agent.info/1)
    for n <- 1..@agents, do: assert_received({:pressed, ^n, %LibExphil.Melee.Pad{}})
    report(infos, long_schedules(agents, {0, 0, 0}))

    # On a busy machine a session may be taken for slow when it is created; not all of them.
    assert Enum.any?(infos, &(not &1.dirty))
    assert 200 * Enum.sum(for i <- infos, do: i.long_steps) <= Enum.sum(for i <- infos, do: i.steps)

    for info <- infos do
      assert info.waits == 0
      assert info.missed <= info.preempted
      assert_in_delta info.ticks, @seconds * 60, 60
      assert info.steps + info.late >= info.ticks - 1
    end
  end

  defp long_schedules(agents, {ours, others, longest}) do
    receive do
      {:monitor, pid, :long_schedule, info} ->
        longest = max(longest, info[:timeout])
        counts = if pid in agents, do: {ours + 1, others, longest}, else: {ours, others + 1, longest}
        long_schedules(agents, counts)
    after
      0 -> {ours, others, longest}
    end
  end

  defp report(infos, {in_agents, others, longest}) do
    sum = fn key -> infos |> Enum.map(& &1[key]) |> Enum.sum() end
    most = fn key -> infos |> Enum.map(& &1[key]) |> Enum.max() |> Kernel./(1.0e6) |> Float.round(3) end

    IO.puts(
      "elixir: #{@agents} agents (#{Enum.count(infos, & &1.dirty)} dirty), #{@seconds} s: #{sum.(:steps)} steps, #{sum.(:missed)} deadlines missed, " <>
        "#{sum.(:waits)} waits, #{sum.(:preempted)} steps preempted (longest #{most.(:max_ns)} ms), of the others " <>
        "#{sum.(:long_steps)} over 1 ms (longest #{most.(:max_cpu_ns)} ms of processor time); schedules over 1 ms: #{in_agents} in agents, " <>
        "#{others} elsewhere, longest #{longest} ms; #{sum.(:late)} ticks late"
    )
  end
end
