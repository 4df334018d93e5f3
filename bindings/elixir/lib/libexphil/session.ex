defmodule LibExphil.Session do
  @moduledoc """
  Play: one frame in, one controller out, with the state carried along.

      {:ok, session} = LibExphil.Session.create(model, seed: 1)
      {:ok, pad} = LibExphil.Session.step(session, frame)

  ## Schedulers

  What a step takes is measured when the session is created: the best of 24 steps of a clone, the worst of such while the window of
  attention fills. If twice that (caches are cold at 60 Hz) is less than 0.5 ms, steps run where the process runs, and the VM is told
  what part of its time slice they used. Otherwise, and on a GPU, steps, resets and state blocks move to a dirty scheduler, which
  adds about 10 microseconds.
  `info/1` tells which, and why: `dirty`, and `trial_ns`, measured in `trial_steps` steps. `dirty: true` as an option chooses the
  latter, `direct_ns` another bound than 500,000 ns: 0 is below what any step takes, `1 <<< 62` above.

  ## State

  `save_state/2` gives all that a step of a stream depends on as one binary of `info.state_bytes` bytes; `restore_state/3` puts it back, in
  this or any other session of the same weights and configuration. Rollback is these two calls (`LibExphil.Agent`).
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Melee, Model, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc "A struct, a map with some of its fields, or what `LibExphil.Melee.pack/1` gives."
  @type frame :: Melee.Frame.t() | map() | binary()

  @doc """
  Options are the fields of `exphil_session_config`: `:seed`, `:streams`, `:deterministic`, `:deliver` (`:due`, `:decided`), `:heads` (a list with
  one map for each head: `:temperature`, `:deterministic`, `:press`, `:release`), `:deadline_ns`, `:adoptable`; `:spec`, `:delay_frames` and `:mode` are what
  the host will run with, checked against the model. And three of this binding: `:dirty` and `:direct_ns` (see above), and `:track`, which costs about
  a microsecond a step and lets `info/1` tell the library from a busy machine: `preempted`, steps in which something else took the
  processor; `waits`, how often steps gave it away by themselves; of all others `max_cpu_ns`, the longest in processor time, and
  `long_steps`, how many took a millisecond of it.
  """
  @spec create(Model.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Model{ref: ref}, options \\ []) do
    LibExphil.wrap(Nif.session_create(ref, LibExphil.options(options)), __MODULE__)
  end

  @doc "A second session with the same model, configuration and state."
  @spec clone(t()) :: {:ok, t()} | {:error, Error.t()}
  def clone(%__MODULE__{ref: ref}), do: LibExphil.wrap(Nif.session_clone(ref), __MODULE__)

  @doc """
  Melee: what the end of a frame looks like in, what to press out. With several streams, a list of frames (or their packed binaries in one)
  and a list of pads.
  """
  @spec step(t(), frame() | [frame()]) :: {:ok, Melee.Pad.t() | [Melee.Pad.t()]} | {:error, Error.t()}
  def step(%__MODULE__{ref: ref}, frames) do
    # The library names a function of its own there.
    with {:error, %Error{status: :state} = error} <- Nif.session_step(ref, frames),
         do: {:error, %{error | message: String.replace(error.message, "exphil_session_step_row", "step_row")}}
  end

  @doc """
  Any game: binaries in (shapes in `LibExphil`, with one row for each stream), actions out. `noise`: numbers in (0, 1), one for
  each logit, in place of the session's own.

      {:ok, actions} = LibExphil.Session.step_row(session, Nx.to_binary(floats), Nx.to_binary(ids))
      Nx.from_binary(actions, :s32)
  """
  @spec step_row(t(), binary(), binary(), binary() | nil) :: {:ok, binary()} | {:error, Error.t()}
  def step_row(%__MODULE__{ref: ref}, floats, ids \\ <<>>, noise \\ nil) do
    Nif.session_step_row(ref, floats, ids, noise)
  end

  @doc "Logits of the last step of a stream."
  @spec logits(t(), integer()) :: {:ok, binary()} | {:error, Error.t()}
  def logits(%__MODULE__{ref: ref}, stream \\ 0), do: Nif.session_logits(ref, stream)

  @doc "What the value head said in the last step of a stream: the discounted rewards that it expects. `:state`: the model has none."
  @spec value(t(), integer()) :: {:ok, float()} | {:error, Error.t()}
  def value(%__MODULE__{ref: ref}, stream \\ 0), do: Nif.session_value(ref, stream)

  @doc """
  The next steps play the weights of this model (`LibExphil.Model.prepare/1`), with state, queue and random streams as they are. A stream
  that is restored to a frame before plays the weights of that frame, and meets these where it met them first. The answer is the
  model whose place these have taken, or nil. `:state`: the session was not created `adoptable: true`.
  """
  @spec adopt(t(), Model.t()) :: {:ok, Model.t() | nil} | {:error, Error.t()}
  def adopt(%__MODULE__{ref: ref}, %Model{ref: model}) do
    with {:ok, before} when before != nil <- Nif.session_adopt(ref, model), do: {:ok, %Model{ref: before}}
  end

  @doc "A stream, or `:all`, starts an episode."
  @spec reset(t(), integer() | :all) :: :ok | {:error, Error.t()}
  def reset(%__MODULE__{ref: ref}, stream \\ :all), do: Nif.session_reset(ref, if(stream == :all, do: -1, else: stream))

  @doc "Replaces the newest decided action of a stream by what was really done."
  @spec override(t(), binary(), integer()) :: :ok | {:error, Error.t()}
  def override(%__MODULE__{ref: ref}, action, stream \\ 0), do: Nif.session_override(ref, stream, action)

  @doc "All that a step of a stream depends on."
  @spec save_state(t(), integer()) :: {:ok, binary()} | {:error, Error.t()}
  def save_state(%__MODULE__{ref: ref}, stream \\ 0), do: Nif.session_state_save(ref, stream)

  @doc "Puts it back."
  @spec restore_state(t(), binary(), integer()) :: :ok | {:error, Error.t()}
  def restore_state(%__MODULE__{ref: ref}, state, stream \\ 0), do: Nif.session_state_restore(ref, stream, state)

  @doc "Steps, missed deadlines, latency, sizes, and where steps run."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.session_info(ref)

  bang create(Model.t()) :: t()
  bang create(Model.t(), LibExphil.options()) :: t()
  bang clone(t()) :: t()
  bang step(t(), frame() | [frame()]) :: Melee.Pad.t() | [Melee.Pad.t()]
  bang step_row(t(), binary()) :: binary()
  bang step_row(t(), binary(), binary()) :: binary()
  bang step_row(t(), binary(), binary(), binary() | nil) :: binary()
  bang logits(t()) :: binary()
  bang logits(t(), integer()) :: binary()
  bang value(t()) :: float()
  bang value(t(), integer()) :: float()
  bang adopt(t(), Model.t()) :: Model.t() | nil
  bang reset(t()) :: :ok
  bang reset(t(), integer() | :all) :: :ok
  bang override(t(), binary()) :: :ok
  bang override(t(), binary(), integer()) :: :ok
  bang save_state(t()) :: binary()
  bang save_state(t(), integer()) :: binary()
  bang restore_state(t(), binary()) :: :ok
  bang restore_state(t(), binary(), integer()) :: :ok
  bang info(t()) :: map()
end
