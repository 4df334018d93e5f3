defmodule LibExphil.Live do
  @moduledoc """
  A game while it is played: the bytes of its event stream in, as they come from a socket, each frame out as soon as it is complete.

      def handle_info({:tcp, _socket, data}, state) do
        {:ok, state} = LibExphil.Live.each(state.live, data, state, fn state ->
          {:ok, frame} = LibExphil.Live.melee_frame(state.live, 1)
          {:ok, pad} = LibExphil.Session.step(state.session, frame)
          press(state, pad)
        end)
        {:noreply, state}
      end

  A frame number that comes again is a correction (rollback).
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Error, Melee, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc "A stream for one game at a time."
  @spec create(Context.t()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Context{ref: ref}), do: LibExphil.wrap(Nif.live_create(ref), __MODULE__)

  @doc """
  Takes bytes up to the next whole frame: `{:frame, rest}` when one is ready (push the rest after it was read), `:again` when all were
  taken, `{:end, rest}` when the game is over.
  """
  @spec push(t(), binary()) :: {:frame, binary()} | :again | {:end, binary()} | {:error, Error.t()}
  def push(%__MODULE__{ref: ref} = live, data) do
    case Nif.live_push(ref, data) do
      {:more, rest} -> push(live, rest)
      answer -> answer
    end
  end

  @doc """
  Pushes all of data and calls `fun` with the accumulator after each frame. `{:ok, acc}` when all was taken, `{:end, acc, rest}` when the game is
  over.
  """
  @spec each(t(), binary(), acc, (acc -> acc)) :: {:ok, acc} | {:end, acc, binary()} | {:error, Error.t()}
        when acc: term()
  def each(%__MODULE__{} = live, data, acc, fun) do
    case push(live, data) do
      {:frame, rest} -> each(live, rest, fun.(acc), fun)
      :again -> {:ok, acc}
      {:end, rest} -> {:end, acc, rest}
      {:error, _} = error -> error
    end
  end

  @doc "Forgets the game; the next bytes are the start of another."
  @spec reset(t()) :: :ok | {:error, Error.t()}
  def reset(%__MODULE__{ref: ref}), do: Nif.live_reset(ref)

  @doc "What is known of the game so far, as `LibExphil.Replay.info/1`."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.live_info(ref)

  @doc "The frame that is ready: stage and items."
  @spec frame(t()) :: {:ok, map()} | {:error, Error.t()}
  def frame(%__MODULE__{ref: ref}), do: Nif.live_frame(ref)

  @doc "A character in the frame that is ready, nil when it is not there."
  @spec player(t(), 1..4, boolean()) :: {:ok, map() | nil} | {:error, Error.t()}
  def player(%__MODULE__{ref: ref}, port, follower \\ false), do: Nif.live_player(ref, port, follower)

  @doc "What a policy that plays `own_port` knows now."
  @spec melee_frame(t(), 1..4, 0..4) :: {:ok, Melee.Frame.t()} | {:error, Error.t()}
  def melee_frame(%__MODULE__{ref: ref}, own_port, opponent_port \\ 0) do
    Nif.live_melee_frame(ref, own_port, opponent_port)
  end

  bang create(Context.t()) :: t()
  bang push(t(), binary()) :: {:frame, binary()} | :again | {:end, binary()}
  bang reset(t()) :: :ok
  bang info(t()) :: map()
  bang frame(t()) :: map()
  bang player(t(), 1..4) :: map() | nil
  bang player(t(), 1..4, boolean()) :: map() | nil
  bang melee_frame(t(), 1..4) :: Melee.Frame.t()
  bang melee_frame(t(), 1..4, 0..4) :: Melee.Frame.t()
end
