defmodule LibExphil.Agent do
  @moduledoc """
  A process that plays one game: it steps a session once a frame, holds what was decided until it is due, and rolls back when a
  frame comes again.

  Either the game pushes frames:

      {:ok, agent} = LibExphil.Agent.start_link(model: model)
      {:ok, pad} = LibExphil.Agent.frame(agent, number, frame)

  or the agent asks for them, 60 times a second:

      LibExphil.Agent.start_link(model: model, source: &Emulator.frame/1, sink: &Emulator.press/2)

  The model says what a frame is. Of a Melee policy it is what `LibExphil.Session.step/2` takes, and the answer a pad. Of any other
  game it is a row, `{floats, ids}` or just `floats`, as `LibExphil.Session.step_row/3` takes them, and the answer (called pad here) a
  binary with the values of the heads.

  A frame that the library refuses is an error to who pushed it; the same number is expected again. One that the agent had asked for
  ends the agent: its supervisor decides.

  ## Delay

  A policy with delay d decides on frame n what acts on frame n + d. The agent asks the session for what it has just decided and
  keeps the queue itself, by frame: `frame/3` answers with the pad of this very frame (neutral for the first d: no button, or the heads' neutral values), `pad/2` with
  one that is not due yet, for netplay that sends inputs ahead.

  ## Rollback

  Before each step the agent keeps the state of the session, for the last `:rollback` frames. A number that came before takes the
  state of then back, and all later frames are expected anew. The pads are those that a session would have given which had seen
  the corrected frames only.
  """

  use GenServer

  alias LibExphil.{Error, Melee, Model, Session}

  @enforce_keys [:session, :delay, :rollback]
  defstruct [
    :session,
    :game,
    :neutral,
    :delay,
    :rollback,
    :source,
    :sink,
    :first,
    next: nil,
    states: %{},
    queue: %{},
    started: 0,
    ticks: 0,
    late: 0,
    hz: 60
  ]

  @typedoc "A Melee frame, or a row of any other game."
  @type frame :: Session.frame() | {binary(), binary()}
  @typedoc "What to press; of another game than Melee the values of its heads."
  @type pad :: Melee.Pad.t() | binary()

  # A minute: a state is kept for each of the frames.
  @rollback_max 3600

  @own [:model, :session, :rollback, :source, :sink, :hz, :first]
  @genserver [:name, :timeout, :debug, :spawn_opt, :hibernate_after]

  @doc """
  Starts an agent. Options:

    * `:model` - required
    * `:session` - options of `LibExphil.Session.create/2`; `:streams` and `:deliver` are the agent's own
    * `:rollback` - frames that can be taken back, at most 3600; default 8
    * `:source` - `fn number -> frame | nil`, asked on every tick; nil: no frame yet, the same number is asked for again
    * `:sink` - `fn number, pad -> any`, called with what is due
    * `:hz` - ticks a second; default 60
    * `:first` - number of the first frame that is asked for; default 0
    * `:name` and others of `GenServer.start_link/3`

  A name that does not exist and a value that does not fit are `{:error, %LibExphil.Error{status: :invalid}}`, and nothing starts.
  """
  @spec start_link(keyword()) :: GenServer.on_start() | {:error, Error.t()}
  def start_link(options) do
    {own, genserver} = Keyword.split(options, @own)

    case wrong(own, genserver) do
      nil -> GenServer.start_link(__MODULE__, own, genserver)
      words -> {:error, %Error{status: :invalid, message: "agent: " <> words}}
    end
  end

  defp wrong(own, genserver) do
    unknown = Keyword.keys(genserver) -- @genserver
    unfit = Enum.find(own, fn {key, value} -> not fits?(key, value) end)

    cond do
      unknown != [] -> "there is no #{inspect(hd(unknown))}"
      not Keyword.has_key?(own, :model) -> ":model is missing"
      unfit -> "#{inspect(elem(unfit, 0))} cannot be #{inspect(elem(unfit, 1))}"
      true -> nil
    end
  end

  defp fits?(:model, value), do: is_struct(value, Model)
  defp fits?(:session, value), do: is_map(value) or Keyword.keyword?(value)
  defp fits?(:rollback, value), do: is_integer(value) and value in 0..@rollback_max
  defp fits?(:source, value), do: value == nil or is_function(value, 1)
  defp fits?(:sink, value), do: value == nil or is_function(value, 2)
  defp fits?(:hz, value), do: is_integer(value) and value in 1..1000
  defp fits?(:first, value), do: is_integer(value)

  @doc "The frame with this number has ended: what to press on it. Numbers go up by one, or back."
  @spec frame(GenServer.server(), integer(), frame()) :: {:ok, pad()} | {:error, Error.t()}
  def frame(agent, number, frame) when is_integer(number), do: GenServer.call(agent, {:frame, number, frame})

  def frame(_agent, number, _frame) do
    {:error, %Error{status: :invalid, message: "agent: the number of a frame cannot be #{inspect(number)}"}}
  end

  @doc "What is to be pressed on a frame, now or up to the delay later; nil when it is not known."
  @spec pad(GenServer.server(), integer()) :: pad() | nil
  def pad(agent, number), do: GenServer.call(agent, {:pad, number})

  @doc "`LibExphil.Session.info/1` of its session, with `ticks`, and `late`: ticks that came more than a frame too late."
  @spec info(GenServer.server()) :: map()
  def info(agent), do: GenServer.call(agent, :info)

  @doc """
  The agent plays these weights from its next frame on, with state and queue as they are; a frame that comes again plays those of then.
  It needs `session: [adoptable: true]`. What is slow about it is done here, in the calling process.
  """
  @spec adopt(GenServer.server(), Model.t()) :: :ok | {:error, Error.t()}
  def adopt(agent, %Model{} = model) do
    with :ok <- Model.prepare(model), do: GenServer.call(agent, {:adopt, model})
  end

  @doc "A new game: zero state, empty queue."
  @spec reset(GenServer.server()) :: :ok
  def reset(agent), do: GenServer.call(agent, :reset)

  @impl true
  def init(options) do
    model = Keyword.fetch!(options, :model)
    wanted = options |> Keyword.get(:session, []) |> LibExphil.options() |> Map.merge(%{streams: 1, deliver: :decided})

    with {:ok, info} <- Model.info(model),
         {:ok, spec} <- Model.spec(model),
         {:ok, session} <- Session.create(model, wanted) do
      {game, neutral} = game(spec)

      state = %__MODULE__{
        session: session,
        game: game,
        neutral: neutral,
        delay: info.delay_frames,
        rollback: Keyword.get(options, :rollback, 8),
        source: options[:source],
        sink: options[:sink],
        hz: Keyword.get(options, :hz, 60),
        first: Keyword.get(options, :first, 0),
        started: System.monotonic_time(:microsecond)
      }

      if state.source, do: {:ok, schedule(state)}, else: {:ok, state}
    else
      {:error, error} -> {:stop, error}
    end
  end

  # Melee is a spec of the library's, all else rows.
  defp game(spec) do
    if match?({:ok, ^spec}, Melee.spec(spec.layout, spec.codec)),
      do: {:melee, %Melee.Pad{}},
      else:
        {"#{spec.layout}/#{spec.codec}", for(head <- spec.heads, into: <<>>, do: <<head.neutral::signed-32-native>>)}
  end

  @impl true
  def handle_call({:frame, number, frame}, _from, state) do
    case advance(state, number, frame) do
      {:ok, pad, state} -> {:reply, {:ok, pad}, state}
      {:error, error, state} -> {:reply, {:error, error}, state}
    end
  end

  def handle_call({:pad, number}, _from, state), do: {:reply, Map.get(state.queue, number), state}

  def handle_call(:info, _from, state) do
    {:reply, Map.merge(Session.info!(state.session), %{ticks: state.ticks, late: state.late}), state}
  end

  def handle_call({:adopt, model}, _from, state) do
    with {:ok, _before} <- Session.adopt(state.session, model) do
      {:reply, :ok, state}
    else
      {:error, error} -> {:reply, {:error, error}, state}
    end
  end

  def handle_call(:reset, _from, state) do
    Session.reset!(state.session)
    {:reply, :ok, %{state | next: nil, states: %{}, queue: %{}}}
  end

  @impl true
  def handle_info(:tick, state) do
    number = state.next || state.first

    state =
      case state.source.(number) do
        nil -> state
        frame -> played(advance(state, number, frame), number)
      end

    {:noreply, schedule(%{state | ticks: state.ticks + 1})}
  end

  defp played({:ok, pad, state}, number) do
    if state.sink, do: state.sink.(number, pad)
    state
  end

  defp played({:error, error, _state}, _number), do: raise(error)

  # Ticks lie on the grid of the start, so that they do not drift. What lies in the past is left out.
  defp schedule(state) do
    now = System.monotonic_time(:microsecond)
    due = state.started + div((state.ticks + 1) * 1_000_000, state.hz)
    missed = max(0, div((now - due) * state.hz, 1_000_000))
    Process.send_after(self(), :tick, div(due + div(missed * 1_000_000, state.hz) + 999, 1000), abs: true)
    %{state | ticks: state.ticks + missed, late: state.late + missed}
  end

  # A frame that fails leaves the agent where the rollback put it: the same number is expected again.
  defp advance(state, number, frame) do
    case rewind(state, number) do
      {:ok, state} -> decide(state, number, frame)
      {:error, error} -> {:error, error, state}
    end
  end

  defp decide(state, number, frame) do
    with {:ok, block} <- Session.save_state(state.session),
         {:ok, decided} <- step(state, frame) do
      states = state.states |> Map.put(number, block) |> Map.delete(number - state.rollback)
      queue = state.queue |> fill(state, number) |> Map.put(number + state.delay, decided)
      due = Map.fetch!(queue, number)
      queue = Map.delete(queue, number - state.rollback)
      {:ok, due, %{state | next: number + 1, states: states, queue: queue}}
    else
      {:error, error} -> {:error, error, state}
    end
  end

  defp step(%{game: :melee} = state, frame), do: Session.step(state.session, frame)
  defp step(state, {floats, ids}), do: Session.step_row(state.session, floats, ids)
  defp step(state, floats) when is_binary(floats), do: Session.step_row(state.session, floats)

  defp step(%{game: game}, _frame) do
    {:error, %Error{status: :invalid, message: "frame: the policy plays #{game}: {floats, ids} or floats is wanted"}}
  end

  # Before the first decision is due, nothing is pressed.
  defp fill(queue, %{next: nil, delay: delay} = state, number) when delay > 0 do
    Enum.reduce(number..(number + delay - 1)//1, queue, &Map.put(&2, &1, state.neutral))
  end

  defp fill(queue, _state, _number), do: queue

  defp rewind(%{next: next} = state, number) when next == nil or number == next, do: {:ok, state}

  defp rewind(%{next: next} = state, number) when number < next do
    case state.states do
      %{^number => block} ->
        with :ok <- Session.restore_state(state.session, block) do
          {:ok, %{state | next: number, states: Map.reject(state.states, fn {key, _} -> key >= number end)}}
        end

      _ ->
        {:error, %Error{status: :state, message: "frame #{number} is more than #{state.rollback} frames back"}}
    end
  end

  defp rewind(%{next: next}, number) do
    {:error, %Error{status: :state, message: "frame #{number} came, #{next} is next"}}
  end
end
