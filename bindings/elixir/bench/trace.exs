# Replays a trace (format: tests/hosts/trace.h) and demands the same actions and the same bits of logits in every frame.
#   mix run bench/trace.exs MODEL TRACE
alias LibExphil.{Context, Model, Session}

defmodule Trace do
  def check(session, data, sizes, frame \\ 0)
  def check(_session, <<>>, _sizes, frame), do: frame

  def check(session, data, {floats, ids, actions, logits} = sizes, frame) do
    <<reset::signed-32-little, f::binary-size(floats), k::binary-size(ids), a::binary-size(actions),
      l::binary-size(logits), rest::binary>> = data

    if reset != 0, do: Session.reset!(session)
    same = Session.step_row!(session, f, k) == a and Session.logits!(session) == l
    unless same, do: raise("frame #{frame} differs")
    check(session, rest, sizes, frame + 1)
  end
end

[model, trace] = System.argv()

<<"exphtrc1", floats::32-little, ids::32-little, heads::32-little, logits::32-little, deterministic::32-little, _::32,
  seed::64-little, frames::64-little, data::binary>> = File.read!(trace)

session = Context.create!() |> Model.load!(model) |> Session.create!(seed: seed, deterministic: deterministic != 0)

^frames = Trace.check(session, data, {4 * floats, 4 * ids, 4 * heads, 4 * logits})
IO.puts("elixir: #{frames} frames identical")
