defmodule LibExphil.Model do
  @moduledoc """
  Weights and the shape of a policy. A model never changes while something uses it, so any number of processes share it.

      {:ok, model} = LibExphil.Model.load(context, "fox.safetensors")
      LibExphil.Model.info!(model).blocks
      #=> "mamba*2"
  """

  import LibExphil.Bang

  alias LibExphil.{Context, Dataset, Error, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc "One tensor: `Nx.from_binary(t.data, t.type) |> Nx.reshape(t.shape)`."
  @type tensor :: %{
          required(:name) => String.t(),
          required(:type) => atom(),
          required(:shape) => tuple(),
          required(:size_bytes) => non_neg_integer(),
          optional(:data) => binary()
        }
  @typedoc "How far apart two models decide; `heads` has the same numbers for each head."
  @type comparison :: map()

  @doc """
  A new model with random weights. Options are the fields of `exphil_model_config`: `:spec` (`t:LibExphil.spec/0`), `:blocks`
  ("mamba*2"), `:hidden`, `:delay_frames`, `:mode` (`:carry`, `:window`), `:heads` (`:independent`, `:autoregressive`), `:seed` and so on.
  """
  @spec create(Context.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Context{ref: ref}, options \\ []) do
    LibExphil.wrap(Nif.model_create(ref, LibExphil.options(options)), __MODULE__)
  end

  @doc "Reads a safetensors file that the library wrote."
  @spec load(Context.t(), Path.t()) :: {:ok, t()} | {:error, Error.t()}
  def load(%Context{ref: ref}, path) do
    LibExphil.wrap(Nif.model_load(ref, IO.chardata_to_string(path)), __MODULE__)
  end

  @doc "Reads the bytes of such a file."
  @spec load_memory(Context.t(), binary()) :: {:ok, t()} | {:error, Error.t()}
  def load_memory(%Context{ref: ref}, data), do: LibExphil.wrap(Nif.model_load_memory(ref, data), __MODULE__)

  @doc "Writes the weights: the old file or the new one, never half."
  @spec save(t(), Path.t()) :: :ok | {:error, Error.t()}
  def save(%__MODULE__{ref: ref}, path), do: Nif.model_save(ref, IO.chardata_to_string(path))

  @doc "What the model is."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.model_info(ref)

  @doc "The spec that it was made with, as a map that `create/2` and `LibExphil.Dataset.create/2` take."
  @spec spec(t()) :: {:ok, map()} | {:error, Error.t()}
  def spec(%__MODULE__{ref: ref}), do: Nif.model_spec(ref)

  @doc "How frames must be sampled to train it: options for `LibExphil.Prefetcher.create/2`."
  @spec sampling(t()) :: {:ok, map()} | {:error, Error.t()}
  def sampling(%__MODULE__{ref: ref}), do: Nif.model_sampling(ref)

  @doc "All tensors, without their data."
  @spec tensors(t()) :: {:ok, [tensor()]} | {:error, Error.t()}
  def tensors(%__MODULE__{ref: ref}), do: Nif.model_tensors(ref)

  @doc "One tensor with a copy of its data."
  @spec tensor(t(), String.t()) :: {:ok, tensor()} | {:error, Error.t()}
  def tensor(%__MODULE__{ref: ref}, name), do: Nif.model_tensor(ref, name)

  @doc "Sets a tensor of a model that nothing uses yet."
  @spec put_tensor(t(), String.t(), binary()) :: :ok | {:error, Error.t()}
  def put_tensor(%__MODULE__{ref: ref}, name, data), do: Nif.model_put_tensor(ref, name, data)

  @doc "A new model with weights of fewer bits: `:i8` or `:bf16`."
  @spec quantize(t(), :i8 | :bf16) :: {:ok, t()} | {:error, Error.t()}
  def quantize(%__MODULE__{ref: ref}, type), do: LibExphil.wrap(Nif.model_quantize(ref, type), __MODULE__)

  @doc """
  A copy with a new value head, `:detached` or `:shared`, in the place of one that there may be: it decides as this model does, and its
  value is 0. The weights below the value are drawn from the seed.
  """
  @spec with_value(t(), :detached | :shared, integer()) :: {:ok, t()} | {:error, Error.t()}
  def with_value(%__MODULE__{ref: ref}, value \\ :detached, seed \\ 0) do
    LibExphil.wrap(Nif.model_with_value(ref, value, seed), __MODULE__)
  end

  @doc "Makes what a session wants of a model beside its weights, so that `LibExphil.Session.adopt/2` finds it there."
  @spec prepare(t()) :: :ok | {:error, Error.t()}
  def prepare(%__MODULE__{ref: ref}), do: Nif.model_prepare(ref)

  @doc "How differently `model` decides than `reference`, over the frames of a dataset."
  @spec compare(t(), t(), Dataset.t(), integer()) :: {:ok, comparison()} | {:error, Error.t()}
  def compare(%__MODULE__{ref: reference}, %__MODULE__{ref: model}, %Dataset{ref: dataset}, batch \\ 0) do
    Nif.model_compare(reference, model, dataset, batch)
  end

  @doc "The comparison that a quantised model carries."
  @spec calibration(t()) :: {:ok, comparison()} | {:error, Error.t()}
  def calibration(%__MODULE__{ref: ref}), do: Nif.model_calibration(ref)

  @doc "Keeps a comparison in a quantised model; `save/2` writes it."
  @spec put_calibration(t(), comparison()) :: :ok | {:error, Error.t()}
  def put_calibration(%__MODULE__{ref: ref}, comparison), do: Nif.model_put_calibration(ref, comparison)

  @doc """
  How well the model predicts a dataset. Options: `:losses` (a list with one map for each head), `:batch` (lanes at a time),
  `:frequencies` (the dataset that baselines are taken from).
  """
  @spec evaluate(t(), Dataset.t(), LibExphil.options()) :: {:ok, map()} | {:error, Error.t()}
  def evaluate(%__MODULE__{ref: ref}, %Dataset{ref: dataset}, options \\ []) do
    {frequencies, options} = Map.pop(LibExphil.options(options), :frequencies)

    with {:ok, frequencies} <- LibExphil.dataset_ref(frequencies, "evaluate: frequencies") do
      Nif.evaluate(ref, dataset, frequencies, options)
    end
  end

  @doc "Writes the one-frame step as ONNX; `:unsupported` names what has no form there."
  @spec export_onnx(t(), Path.t()) :: :ok | {:error, Error.t()}
  def export_onnx(%__MODULE__{ref: ref}, path), do: Nif.model_export_onnx(ref, IO.chardata_to_string(path))

  bang create(Context.t()) :: t()
  bang create(Context.t(), LibExphil.options()) :: t()
  bang load(Context.t(), Path.t()) :: t()
  bang load_memory(Context.t(), binary()) :: t()
  bang save(t(), Path.t()) :: :ok
  bang info(t()) :: map()
  bang spec(t()) :: map()
  bang sampling(t()) :: map()
  bang tensors(t()) :: [tensor()]
  bang tensor(t(), String.t()) :: tensor()
  bang put_tensor(t(), String.t(), binary()) :: :ok
  bang quantize(t(), :i8 | :bf16) :: t()
  bang with_value(t()) :: t()
  bang with_value(t(), :detached | :shared) :: t()
  bang with_value(t(), :detached | :shared, integer()) :: t()
  bang prepare(t()) :: :ok
  bang compare(t(), t(), Dataset.t()) :: comparison()
  bang compare(t(), t(), Dataset.t(), integer()) :: comparison()
  bang calibration(t()) :: comparison()
  bang put_calibration(t(), comparison()) :: :ok
  bang evaluate(t(), Dataset.t()) :: map()
  bang evaluate(t(), Dataset.t(), LibExphil.options()) :: map()
  bang export_onnx(t(), Path.t()) :: :ok
end
