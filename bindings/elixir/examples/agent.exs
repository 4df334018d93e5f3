# Eight games at once, one agent process each, under a supervisor: frames come at 60 Hz, every fourth of them was a guess that
# is corrected two frames later, as rollback netplay does it.
#   mix run examples/agent.exs [MODEL] [SECONDS]
alias LibExphil.{Agent, Context, Melee, Model}

defmodule Game do
  # A game of two characters that walk towards what they press. It owns its agent and ticks by itself.
  use GenServer

  @rollback 2

  def start_link({model, seed}), do: GenServer.start_link(__MODULE__, {model, seed})

  @impl true
  def init({model, seed}) do
    {:ok, agent} = Agent.start_link(model: model, rollback: 8, session: [seed: seed])
    send(self(), :tick)
    {:ok, %{agent: agent, number: 0, x: -30.0, pressed: 0, corrected: 0}}
  end

  @impl true
  def handle_info(:tick, %{number: number} = game) do
    Process.send_after(self(), :tick, 16)
    guessed? = rem(number, 4) == 3
    game = if rem(number, 4) == 1 and number > 4, do: correct(game), else: game
    {:ok, pad} = Agent.frame(game.agent, number, frame(game, number, if(guessed?, do: 25.0, else: 30.0)))
    pressed = if Melee.Pad.pressed(pad) == [], do: 0, else: 1
    {:noreply, %{game | number: number + 1, x: clamp(game.x + pad.main_x), pressed: game.pressed + pressed}}
  end

  @impl true
  def handle_call(:score, _from, game) do
    {:reply, Map.merge(Map.take(game, [:number, :pressed, :corrected]), Agent.info(game.agent)), game}
  end

  # What the other player really did has arrived: the last frames are played again.
  defp correct(%{number: number} = game) do
    for back <- (number - @rollback)..(number - 1),
        do: {:ok, _} = Agent.frame(game.agent, back, frame(game, back, 30.0))

    %{game | corrected: game.corrected + @rollback}
  end

  defp frame(game, number, other) do
    players = %{1 => %Melee.Character{x: game.x}, 2 => %Melee.Character{x: other, facing: -1.0}}
    %Melee.Frame{frame: number, stage: 32, own_port: 1, players: players}
  end

  defp clamp(x), do: x |> max(-60.0) |> min(60.0)
end

{path, seconds} =
  case System.argv() do
    [] -> {nil, 3}
    [path] -> {path, 3}
    [path, seconds] -> {path, String.to_integer(seconds)}
  end

context = Context.create!(threads: 1)
model = if path, do: Model.load!(context, path), else: Model.create!(context, hidden: 128, delay_frames: 2, seed: 1)
children = for seed <- 1..8, do: Supervisor.child_spec({Game, {model, seed}}, id: seed)
{:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
Process.sleep(seconds * 1000)

for {id, game, _, _} <- Enum.sort(Supervisor.which_children(supervisor)) do
  score = GenServer.call(game, :score)

  IO.puts(
    "game #{id}: #{score.number} frames, #{score.corrected} played again, buttons down in #{score.pressed}, " <>
      "step #{div(score.p50_ns, 1000)} us, #{score.missed} deadlines missed"
  )
end
