# Median time of one step of a small model, each call timed alone, as tests/hosts/trace.c does it in C: one JSON line.
#   mix run bench/step.exs MODEL [STEPS]
alias LibExphil.{Context, Model, Session}

defmodule Bench do
  # The calls are written out: a fun in the loop would be timed too.
  def clock(0, took), do: took

  def clock(n, took) do
    start = :erlang.monotonic_time(:nanosecond)
    clock(n - 1, [:erlang.monotonic_time(:nanosecond) - start | took])
  end

  def steps(0, _session, _floats, took), do: took

  def steps(n, session, floats, took) do
    start = :erlang.monotonic_time(:nanosecond)
    {:ok, _} = Session.step_row(session, floats)
    steps(n - 1, session, floats, [:erlang.monotonic_time(:nanosecond) - start | took])
  end

  def median(times), do: times |> Enum.sort() |> Enum.at(div(length(times), 2))
end

{model, steps} =
  case System.argv() do
    [model] -> {model, 100_000}
    [model, steps] -> {model, String.to_integer(steps)}
  end

loaded = Context.create!() |> Model.load!(model)
session = Session.create!(loaded, seed: 1, deterministic: true)
floats = :binary.copy(<<0::32>>, Model.info!(loaded).float_count)
clock_ns = Bench.median(Bench.clock(steps, []))
Bench.steps(div(steps, 10), session, floats, [])
median_ns = Bench.median(Bench.steps(steps, session, floats, []))
IO.puts(~s({"host":"elixir","median_ns":#{median_ns},"clock_ns":#{clock_ns},"steps":#{steps}}))
