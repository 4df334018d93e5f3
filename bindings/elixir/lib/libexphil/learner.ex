defmodule LibExphil.Learner do
  @moduledoc """
  Policies that become better by playing: proximal policy optimisation (PPO) on the chunks of a rollout, near a teacher if there
  is one.

      trainer = LibExphil.Trainer.create!(model, LibExphil.Optimizer.create!(model), nil, as_played: true)
      learner = LibExphil.Learner.create!(trainer, nil, half_life_frames: 69)
      for _ <- 1..80, do: LibExphil.Learner.chunk!(learner, rollout, world)
      better = LibExphil.Trainer.model!(trainer)

  That it learns is seen in `reward` and, where episodes end, in `episode_return`.
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Model, Nif, Rollout, Trainer, World}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc """
  What came of a chunk: `chunks`, `updates`, `rows`, `episodes`, `episode_return`, `episode_frames`, `reward`, `kl_old`, `entropy`, `unexplained`,
  `recomputed`, `taken_back` and so on, as in `exphil_learner_metrics`.
  """
  @type metrics :: map()

  @doc """
  The trainer is of a model with a value head and has no prefetcher; nobody else trains with it meanwhile. The teacher, of the same
  spec, delay and past actions, stays as it is. Options are the fields of `exphil_learner_config`: `:half_life_frames`, `:lambda`, `:clip`,
  `:entropy`, `:imitation`, `:to_teacher`, `:from_teacher`, `:epochs`, `:batches`, `:reward_scale`, `:normalise` (1 always, -1 never, 0 not with a teacher), `:seed`
  and so on.
  """
  @spec create(Trainer.t(), Model.t() | nil, LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(trainer, teacher \\ nil, options \\ [])
  def create(%Trainer{ref: ref}, nil, options), do: create_of(ref, nil, options)
  def create(%Trainer{ref: ref}, %Model{ref: teacher}, options), do: create_of(ref, teacher, options)

  defp create_of(trainer, teacher, options) do
    LibExphil.wrap(Nif.learner_create(trainer, teacher, LibExphil.options(options)), __MODULE__)
  end

  @doc "Learns from a full chunk, gives the rollout's session the new weights, and makes room for the next chunk."
  @spec update(t(), Rollout.t()) :: {:ok, metrics()} | {:error, Error.t()}
  def update(%__MODULE__{ref: ref}, %Rollout{ref: rollout}), do: Nif.learner_update(ref, rollout)

  @doc "One chunk: `LibExphil.Rollout.run/2`, then `update/2`."
  @spec chunk(t(), Rollout.t(), World.t()) :: {:ok, metrics()} | {:error, Error.t()}
  def chunk(%__MODULE__{} = learner, %Rollout{} = rollout, %World{} = world) do
    with :ok <- Rollout.run(rollout, world), do: update(learner, rollout)
  end

  @doc """
  `LibExphil.Trainer.save/2` between two chunks, with all that the next chunk depends on: the states of the session and of the teacher,
  and the games of the world that the rollout runs. nil: your process plays, and keeps its own games.
  """
  @spec save(t(), Rollout.t(), World.t() | nil, Path.t()) :: :ok | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, %Rollout{ref: rollout}, world, path) do
    Nif.learner_save(ref, rollout, world_ref(world), IO.chardata_to_string(path))
  end

  @doc """
  Goes on to the last bit where `save/4` was. All is made with the same options, and the rollout has recorded nothing yet.
  `LibExphil.Trainer.resume/2` of such a checkpoint takes the trainer alone.
  """
  @spec resume(t(), Rollout.t(), World.t() | nil, Path.t()) :: :ok | {:error, Error.t()}
  def resume(%__MODULE__{ref: ref}, %Rollout{ref: rollout}, world, path) do
    Nif.learner_resume(ref, rollout, world_ref(world), IO.chardata_to_string(path))
  end

  defp world_ref(nil), do: nil
  defp world_ref(%World{ref: ref}), do: ref

  bang create(Trainer.t()) :: t()
  bang create(Trainer.t(), Model.t() | nil) :: t()
  bang create(Trainer.t(), Model.t() | nil, LibExphil.options()) :: t()
  bang update(t(), Rollout.t()) :: metrics()
  bang chunk(t(), Rollout.t(), World.t()) :: metrics()
  bang save(t(), Rollout.t(), World.t() | nil, Path.t()) :: :ok
  bang resume(t(), Rollout.t(), World.t() | nil, Path.t()) :: :ok
end
