defmodule LibExphil.Trainer do
  @moduledoc """
  Updates of a copy of a model's weights, one call each. `LibExphil.Training` runs many of them on a thread of its own.

      trainer = LibExphil.Trainer.create!(model, optimizer, prefetcher)
      metrics = LibExphil.Trainer.step!(trainer)
      trained = LibExphil.Trainer.model!(trainer)
  """

  import LibExphil.Bang

  alias LibExphil.{Dataset, Error, Model, Nif, Optimizer, Prefetcher}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc "Of one update: `update`, `epoch`, `frames`, `loss`, `head_loss`, `gradient_norm`, `rate`, `time_ns` and so on."
  @type metrics :: map()
  @type which :: :weights | :averaged

  @doc """
  Options are the fields of `exphil_trainer_config`: `:losses` (a list with one map for each head: `:weight`, `:smoothing`,
  `:focal_gamma`, `:positive_weight`), `:accumulate`, `:precision`, `:fake_quantize`, `:activations`, `:checkpoint_blocks`, `:as_played`. The prefetcher may be nil
  when only `step_batch/2` is used.
  """
  @spec create(Model.t(), Optimizer.t(), Prefetcher.t() | nil, LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(model, optimizer, prefetcher, options \\ [])

  def create(%Model{} = model, %Optimizer{} = optimizer, nil, options), do: create_of(model, optimizer, nil, options)

  def create(%Model{} = model, %Optimizer{} = optimizer, %Prefetcher{ref: ref}, options),
    do: create_of(model, optimizer, ref, options)

  defp create_of(model, optimizer, prefetcher, options) do
    LibExphil.wrap(Nif.trainer_create(model.ref, optimizer.ref, prefetcher, LibExphil.options(options)), __MODULE__)
  end

  @doc "One update from the prefetcher."
  @spec step(t()) :: {:ok, metrics()} | {:error, Error.t()}
  def step(%__MODULE__{ref: ref}), do: Nif.trainer_step(ref)

  @doc "One update from a batch of your own: a map as `t:LibExphil.Prefetcher.batch/0`."
  @spec step_batch(t(), Prefetcher.batch()) :: {:ok, metrics()} | {:error, Error.t()}
  def step_batch(%__MODULE__{ref: ref}, batch), do: Nif.trainer_step_batch(ref, batch)

  @doc """
  The first half of an update whose loss is yours: the weights as they are over one batch. `logits` and `values` (nil: the model has
  no value head) are binaries of the model's type, `{rows, logit_count}` and `{rows}`. Then `backward/4` or `abandon/1` must follow. Options:
  `:states`, where each lane begins: what `LibExphil.Session.save_state/2` gave of its streams, one after the other; nil: the carried
  state.
  """
  @spec forward(t(), Prefetcher.batch(), LibExphil.options()) ::
          {:ok, %{rows: pos_integer(), logits: binary(), values: binary() | nil}} | {:error, Error.t()}
  def forward(%__MODULE__{ref: ref}, batch, options \\ []) do
    with {:ok, states} <- LibExphil.only_option(options, "forward", :states, nil),
         do: Nif.trainer_forward(ref, batch, states)
  end

  @doc """
  The second half: gradients of your loss by what `forward/3` gave (`dvalues` may be nil), not divided by anything; then clipping and
  AdamW. `loss` is what the metrics tell. `:numeric`: a number is not finite, also in the gradient of the weights, which are then as
  before.
  """
  @spec backward(t(), binary(), binary() | nil, number()) :: {:ok, metrics()} | {:error, Error.t()}
  def backward(%__MODULE__{ref: ref}, dlogits, dvalues, loss), do: Nif.trainer_backward(ref, dlogits, dvalues, loss)

  @doc "No update after `forward/3`: all is as before it."
  @spec abandon(t()) :: :ok | {:error, Error.t()}
  def abandon(%__MODULE__{ref: ref}), do: Nif.trainer_abandon(ref)

  @doc """
  One update from the prefetcher in which rows count by how much better than expected they went, and the value is learnt beside;
  `LibExphil.Dataset.put_rewards/4` says what came of them. Options are the fields of `exphil_outcome_config`: `:beta`, `:cap`, `:warm_up`,
  `:imitation`, `:value`, `:shuffle`, `:seed`.
  """
  @spec step_outcome(t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def step_outcome(%__MODULE__{ref: ref}, options \\ []), do: Nif.trainer_step_outcome(ref, LibExphil.options(options))

  @doc "A new model with the weights as they are now, or averaged."
  @spec model(t(), which()) :: {:ok, Model.t()} | {:error, Error.t()}
  def model(%__MODULE__{ref: ref}, which \\ :weights), do: LibExphil.wrap(Nif.trainer_model(ref, which), Model)

  @doc "Writes the weights to `path`, and all that `resume/2` needs to `path <> \".optimizer\"`."
  @spec save(t(), Path.t()) :: :ok | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, path), do: Nif.trainer_save(ref, IO.chardata_to_string(path))

  @doc "Goes on where `save/2` was, to the last bit."
  @spec resume(t(), Path.t()) :: :ok | {:error, Error.t()}
  def resume(%__MODULE__{ref: ref}, path), do: Nif.trainer_resume(ref, IO.chardata_to_string(path))

  @doc "How well the weights as they are now predict a dataset. Options: `:which`, `:frequencies` (a dataset)."
  @spec evaluate(t(), Dataset.t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def evaluate(%__MODULE__{ref: ref}, %Dataset{ref: dataset}, options \\ []) do
    {which, options} = Map.pop(LibExphil.options(options), :which, :weights)
    {frequencies, options} = Map.pop(options, :frequencies)

    with [] <- Map.keys(options),
         {:ok, frequencies} <- LibExphil.dataset_ref(frequencies, "evaluate: frequencies") do
      Nif.trainer_evaluate(ref, which, dataset, frequencies)
    else
      [key | _] -> {:error, %Error{status: :invalid, message: "evaluate: there is no #{inspect(key)}"}}
      error -> error
    end
  end

  bang create(Model.t(), Optimizer.t(), Prefetcher.t() | nil) :: t()
  bang create(Model.t(), Optimizer.t(), Prefetcher.t() | nil, LibExphil.options()) :: t()
  bang step(t()) :: metrics()
  bang step_batch(t(), Prefetcher.batch()) :: metrics()
  bang forward(t(), Prefetcher.batch()) :: map()
  bang forward(t(), Prefetcher.batch(), LibExphil.options()) :: map()
  bang backward(t(), binary(), binary() | nil, number()) :: metrics()
  bang abandon(t()) :: :ok
  bang step_outcome(t()) :: map()
  bang step_outcome(t(), LibExphil.options()) :: map()
  bang model(t()) :: Model.t()
  bang model(t(), which()) :: Model.t()
  bang save(t(), Path.t()) :: :ok
  bang resume(t(), Path.t()) :: :ok
  bang evaluate(t(), Dataset.t()) :: map()
  bang evaluate(t(), Dataset.t(), LibExphil.options()) :: map()
end
