defmodule LibExphil.Rollout do
  @moduledoc """
  A session that records what it plays, in chunks, for `LibExphil.Learner`.

      rollout = LibExphil.Rollout.create!(model, streams: 16, time: 64, seed: 1)
      :ok = LibExphil.Rollout.run!(rollout, world)

  The process of a game of your own plays by itself:

      actions = LibExphil.Rollout.step!(rollout, floats, ids)
      # the game runs a frame
      LibExphil.Rollout.reward!(rollout, reward, ending, floats, ids)    # :more, or :full when the chunk is full

  Both run where `LibExphil.Session.step_row/4` of this model would run; `run/2` and blocks on dirty schedulers.

  ## Blocks

  Players and a learner may be other processes, nodes or machines: a player runs a chunk and sends `block_save/1`, the learner takes it with
  `block_take/3` until it says `:full`, updates, and sends the weights (`LibExphil.Model.save/2`) for `adopt/2`. What is learnt has the
  bits of what one process would have learnt.
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Model, Nif, Session, World}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc """
  Options are those of `LibExphil.Session.create/2`, and `:time` (rows of a chunk; 0: 64) and `:episode_seed` (of the episodes of a world;
  default: the seed). The model has a value head (`:value`); actions must be drawn, so that deterministic ones are refused.
  """
  @spec create(Model.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Model{ref: ref}, options \\ []) do
    {own, session} = Map.split(LibExphil.options(options), [:time, :episode_seed])
    {seed, own} = Map.pop(own, :episode_seed, Map.get(session, :seed, 0))
    LibExphil.wrap(Nif.rollout_create(ref, session, Map.put(own, :seed, seed)), __MODULE__)
  end

  @doc """
  Its session, for `LibExphil.Session.logits/2`, `value/2`, `info/1`, `save_state/2`, `override/3` and `clone/1`. Steps, resets, restores and
  adoptions of it are `:state`; closing it closes the rollout.
  """
  @spec session(t()) :: Session.t()
  def session(%__MODULE__{ref: ref}), do: %Session{ref: ref}

  @doc "`LibExphil.Session.step_row/4`, recorded. `:state`: the chunk is full, or the frame before has no reward yet."
  @spec step(t(), binary(), binary()) :: {:ok, binary()} | {:error, Error.t()}
  def step(%__MODULE__{ref: ref}, floats, ids \\ <<>>), do: Nif.rollout_step(ref, floats, ids)

  @doc """
  What came of the last step: `reward` (`:f32`) and `ending` (`:u8`: 0 goes on, 1 over, 2 cut off) of each stream. `:full`: the chunk is.
  `floats` and `ids` are the rows that show what came of it, also of a stream that was cut off; nil where they are not read: with
  a delay, or unless a stream is cut off or the chunk becomes full. After an end the next row is another episode's.
  """
  @spec reward(t(), binary(), binary(), binary() | nil, binary() | nil) :: {:ok, :more | :full} | {:error, Error.t()}
  def reward(%__MODULE__{ref: ref}, reward, ending, floats \\ nil, ids \\ <<>>) do
    Nif.rollout_reward(ref, reward, ending, floats, if(floats == nil, do: nil, else: ids))
  end

  @doc """
  Plays a world until the chunk is full; its streams are this rollout's. The first call starts its episodes, which go on from chunk
  to chunk.
  """
  @spec run(t(), World.t()) :: :ok | {:error, Error.t()}
  def run(%__MODULE__{ref: ref}, %World{ref: world}), do: Nif.rollout_run(ref, world)

  @doc """
  Between two chunks: drops the one that is there, plays these weights from here on (nil: those that it has), and begins the next.
  `LibExphil.Learner.update/2` does so by itself.
  """
  @spec adopt(t(), Model.t() | nil) :: :ok | {:error, Error.t()}
  def adopt(rollout, model \\ nil)
  def adopt(%__MODULE__{ref: ref}, nil), do: Nif.rollout_adopt(ref, nil)
  def adopt(%__MODULE__{ref: ref}, %Model{ref: model}), do: Nif.rollout_adopt(ref, model)

  @doc "A full chunk as a binary, for the learner of another process. `:state`: it is not full."
  @spec block_save(t()) :: {:ok, binary()} | {:error, Error.t()}
  def block_save(%__MODULE__{ref: ref}), do: Nif.block_save(ref)

  @doc """
  The streams of a block become streams of this chunk instead of playing. `:full`: the chunk is. The block may come from anybody: all
  of it is checked before anything counts. Options: `:first_stream` (default 0), and `:weights`: `:current` (default) or `:any` of the same
  configuration may have played it.
  """
  @spec block_take(t(), binary(), LibExphil.options()) :: {:ok, :more | :full} | {:error, Error.t()}
  def block_take(%__MODULE__{ref: ref}, block, options \\ []) do
    {first, options} = Map.pop(LibExphil.options(options), :first_stream, 0)

    with {:ok, weights} <- LibExphil.only_option(options, "block", :weights, :current),
         do: Nif.block_take(ref, first, weights, block)
  end

  @doc "What a block says of itself: `streams`, `time`, `spec_hash`, `weights_hash`, `delay_frames`."
  @spec block_info(binary()) :: {:ok, map()} | {:error, Error.t()}
  def block_info(block), do: Nif.block_info(block)

  bang create(Model.t()) :: t()
  bang create(Model.t(), LibExphil.options()) :: t()
  bang step(t(), binary()) :: binary()
  bang step(t(), binary(), binary()) :: binary()
  bang reward(t(), binary(), binary()) :: :more | :full
  bang reward(t(), binary(), binary(), binary() | nil) :: :more | :full
  bang reward(t(), binary(), binary(), binary() | nil, binary() | nil) :: :more | :full
  bang run(t(), World.t()) :: :ok
  bang adopt(t()) :: :ok
  bang adopt(t(), Model.t() | nil) :: :ok
  bang block_save(t()) :: binary()
  bang block_take(t(), binary()) :: :more | :full
  bang block_take(t(), binary(), LibExphil.options()) :: :more | :full
  bang block_info(binary()) :: map()
end
