defmodule LibExphil.LoadTest do
  # Eight agents play at 60 Hz with the default policy, until each has played a second, or for a minute with EXPHIL_LONG=1.
  #
  # What it takes is told, not judged: that is the machine's, too. The VM reports every process that held a scheduler for a
  # millisecond. On a machine that others use it will: a thread that the system has put aside holds its scheduler all the
  # same. So steps are tracked. Ours would be one that gives the processor away, one that nothing interrupted and that took a
  # millisecond of processor time, one that nothing interrupted and that missed its deadline; a virtual machine counts
  # time that its host took as processor time. That a step waits for nothing is shown without a clock by play.quiet_test.
  use ExUnit.Case, async: false

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{Agent, Model}

  @agents 8
  @seconds if System.get_env("EXPHIL_LONG") == "1", do: 60, else: 1

  test "eight agents at 60 Hz" do
    model = Model.create!(context(), delay_frames: 2)
    assert Model.info!(model).blocks == "mamba*2"
    collector = self()

    agents =
      for n <- 1..@agents do
        sink = fn number, pad -> number == 60 and send(collector, {:pressed, n, pad}) end
        options = [session: [track: true, seed: n, direct_ns: 1 <<< 62], source: &frame/1, sink: sink]
        {:ok, agent} = Agent.start_link([model: model] ++ options)
        agent
      end

    :erlang.system_monitor(self(), [{:long_schedule, 1}])
    Process.sleep(@seconds * 1000)
    for n <- 1..@agents, do: assert_receive({:pressed, ^n, %LibExphil.Melee.Pad{}}, 300_000)
    :erlang.system_monitor(:undefined)
    infos = Enum.map(agents, &Agent.info/1)
    report(infos, long_schedules(agents, {0, 0, 0}))

    for info <- infos do
      assert not info.dirty
      assert info.steps > 60
      assert info.steps + info.late == info.ticks
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
