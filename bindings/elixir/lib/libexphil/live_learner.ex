defmodule LibExphil.LiveLearner do
  @moduledoc """
  A policy that learns behind the game that it plays: a session of one stream, and a thread of the library's own that trains beside it.
  The game never waits for it; new weights enter between two frames. (`LibExphil.Live` is something else: the event stream of Slippi.)

      live = LibExphil.LiveLearner.create!(model, optimizer: [rate: 1.0e-3])
      # sixty times a second: what a person presses who has taken over, or nil
      actions = LibExphil.LiveLearner.step_row!(live, floats, ids, person)
      # where an episode ends
      :ok = LibExphil.LiveLearner.reward!(live, 0.0, :over)

  With `way: :imitate`, the default, what the person does is learnt from, beside a dataset if there is one. With `way: :reinforce` the host says
  what came of each frame, and chunks of play are learnt from by PPO. `step_row/4`, `step/3` and `reward/5` run where
  `LibExphil.Session.step_row/4` of this model would run; all else on dirty schedulers. A killed process leaves a call that waits for
  the thread (`settle/1`, `save/2`, `resume/2`) when it is done. The header `live.h` has the exact rules.
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Melee, Model, Nif, Session}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc "What came of the last step's frame for its episode."
  @type ending :: :goes_on | :over | :cut_off

  @groups [:session, :optimizer, :trainer, :sampling, :learner, :context]

  @doc """
  The model plays first and is the start of what is learnt; it stays as it is. Options are the fields of `exphil_live_config`: `:way`,
  `:share`, `:approved`, `:piece_frames`, `:updates`, `:time`, `:ring_frames`, `:rollback_frames`, `:path`, `:save_pieces`, `:seed`, `:paced`; `:dataset`, what
  the policy was taught by before; `:teacher`, a model that stays as it is; and groups of options: `:session` as of
  `LibExphil.Session.create/2` (its `:dirty` and `:direct_ns` say where steps run), `:optimizer` of `LibExphil.Optimizer.create/2`, `:trainer`
  of `LibExphil.Trainer.create/4`, `:sampling` of `LibExphil.Prefetcher.create/2` (what is left out is the model's own), `:learner` of
  `LibExphil.Learner.create/3`, and `:context` of `LibExphil.Context.create/1` without `:log`, for what learns (default: the CPU, one
  thread). What the other way alone has a use for is refused.
  """
  @spec create(Model.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Model{ref: ref}, options \\ []) do
    {groups, options} = Map.split(LibExphil.options(options), @groups)
    {dataset, options} = Map.pop(options, :dataset)
    {teacher, options} = Map.pop(options, :teacher)
    [session, optimizer, trainer | others] = for name <- @groups, do: group(groups[name])
    all = List.to_tuple([session || %{}, optimizer || %{}, trainer || %{} | others])

    with {:ok, data} <- LibExphil.dataset_ref(dataset, "live: dataset"),
         {:ok, taught} <- teacher_ref(teacher),
         do: LibExphil.wrap(Nif.live_learner_create(ref, options, all, data, taught), __MODULE__)
  end

  defp group(options) when is_list(options), do: if(Keyword.keyword?(options), do: Map.new(options), else: options)
  defp group(options), do: options

  defp teacher_ref(nil), do: {:ok, nil}
  defp teacher_ref(%Model{ref: ref}), do: {:ok, ref}
  defp teacher_ref(_other), do: {:error, %Error{status: :invalid, message: "live: teacher: not a model"}}

  @doc """
  Its session, for `LibExphil.Session.logits/2`, `value/2`, `info/1`, `clone/1` and `save_state/2`; with `rollback_frames:`, `restore_state/3` of it
  takes frames back. Steps, resets and adoptions of it are `:state`; closing it closes this.
  """
  @spec session(t()) :: Session.t()
  def session(%__MODULE__{ref: ref}), do: %Session{ref: ref}

  @doc """
  A frame of any game: floats and ids of its row in, the actions that are to be pressed out. `person`: nil, then the policy plays; else
  what a person presses, which acts and is given back. `:invalid`: a value of it is out of range; after this and other failures
  nothing has moved.
  """
  @spec step_row(t(), binary(), binary(), binary() | nil) :: {:ok, binary()} | {:error, Error.t()}
  def step_row(%__MODULE__{ref: ref}, floats, ids \\ <<>>, person \\ nil) do
    Nif.live_learner_step_row(ref, floats, ids, person)
  end

  @doc """
  A frame of Melee, and the pad for it. What a person's pad presses is learnt from as the codec expresses it, and given back as it is.
  """
  @spec step(t(), Session.frame(), Melee.Pad.t() | map() | nil) :: {:ok, Melee.Pad.t()} | {:error, Error.t()}
  def step(%__MODULE__{ref: ref}, frame, person \\ nil) do
    # The library names a function of its own there.
    with {:error, %Error{status: :state} = error} <- Nif.live_learner_step(ref, frame, person),
         do: {:error, %{error | message: String.replace(error.message, "exphil_live_step_row", "step_row")}}
  end

  @doc """
  What came of the last step; after an end the next row is another episode's. Imitation: to be called where an episode ends, and only
  `ending` counts. Reinforcement: after every step, with the row that shows what came of it, nil where it is not read, as in
  `LibExphil.Rollout.reward/5`. A full chunk goes to the thread, and the next one begins.
  """
  @spec reward(t(), number(), ending(), binary() | nil, binary() | nil) :: :ok | {:error, Error.t()}
  def reward(%__MODULE__{ref: ref}, reward, ending, floats \\ nil, ids \\ <<>>) do
    Nif.live_learner_reward(ref, reward, ending, floats, if(floats == nil, do: nil, else: ids))
  end

  @doc """
  What was played and learnt so far: `frames`, `person`, `dropped`, `taken_back`, `pieces`, `learnt`, `updates`, `adopted`, `loss`, `reward`,
  `skipped`, `saved` as in `exphil_live_info`; `failed`, the status that ended learning, and `unsaved`, what the thread's last save failed
  with, nil where all is well; `message`, of `failed`, else of `unsaved`.
  """
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.live_learner_info(ref)

  @doc """
  Waits until all that was given is learnt from, and plays the newest weights; fails with what ended learning. With `paced: true` this is
  where new weights enter, and nowhere else.
  """
  @spec settle(t()) :: :ok | {:error, Error.t()}
  def settle(%__MODULE__{ref: ref}), do: Nif.live_learner_settle(ref)

  @doc "A model of the newest weights."
  @spec model(t()) :: {:ok, Model.t()} | {:error, Error.t()}
  def model(%__MODULE__{ref: ref}), do: LibExphil.wrap(Nif.live_learner_model(ref), Model)

  @doc """
  Settles; then writes the weights to `path`, and to `path` with `.optimizer` all that `resume/2` needs, the person's frames among it. The
  dataset, the game, and the state of the session are yours to keep.
  """
  @spec save(t(), Path.t()) :: :ok | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, path), do: Nif.live_learner_save(ref, IO.chardata_to_string(path))

  @doc """
  Before the first step: goes on where `save/2` was called, with the same options, model and dataset. After a failure nothing has
  changed.
  """
  @spec resume(t(), Path.t()) :: :ok | {:error, Error.t()}
  def resume(%__MODULE__{ref: ref}, path), do: Nif.live_learner_resume(ref, IO.chardata_to_string(path))

  bang create(Model.t()) :: t()
  bang create(Model.t(), LibExphil.options()) :: t()
  bang step_row(t(), binary()) :: binary()
  bang step_row(t(), binary(), binary()) :: binary()
  bang step_row(t(), binary(), binary(), binary() | nil) :: binary()
  bang step(t(), Session.frame()) :: Melee.Pad.t()
  bang step(t(), Session.frame(), Melee.Pad.t() | map() | nil) :: Melee.Pad.t()
  bang reward(t(), number(), ending()) :: :ok
  bang reward(t(), number(), ending(), binary() | nil) :: :ok
  bang reward(t(), number(), ending(), binary() | nil, binary() | nil) :: :ok
  bang info(t()) :: map()
  bang settle(t()) :: :ok
  bang model(t()) :: Model.t()
  bang save(t(), Path.t()) :: :ok
  bang resume(t(), Path.t()) :: :ok
end
