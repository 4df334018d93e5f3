defmodule LibExphil.Prefetcher do
  @moduledoc """
  Batches, filled ahead by a thread of the library. What is to feed a trainer takes its options from the model:

      sampling = Map.merge(LibExphil.Model.sampling!(model), %{batch: 32, time: 60})
      prefetcher = LibExphil.Prefetcher.create!(dataset, sampling)
  """

  import LibExphil.Bang

  alias LibExphil.{Dataset, Error, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}
  @typedoc """
  One batch of `rows = batch * time` rows: `floats`, `ids`, `past`, `actions`, `mask` and `reset` are binaries (shapes in `LibExphil`),
  `epoch`, `index` and `frames` numbers. Where rewards were given there is also `returns`: discounted rewards to come, NaN where they are not known.
  """
  @type batch :: map()

  @doc "Options are the fields of `exphil_sampling`: `:batch`, `:time`, `:seed`, `:in_order` and so on."
  @spec create(Dataset.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Dataset{ref: ref}, options \\ []) do
    LibExphil.wrap(Nif.prefetcher_create(ref, LibExphil.options(options)), __MODULE__)
  end

  @doc "Waits for the next batch. `:end` after the last of an epoch; the call after that begins the next."
  @spec next(t()) :: {:ok, batch()} | :end | {:error, Error.t()}
  def next(%__MODULE__{ref: ref}), do: Nif.prefetcher_next(ref)

  @doc "The next batch will be this one of this epoch."
  @spec seek(t(), integer(), integer()) :: :ok | {:error, Error.t()}
  def seek(%__MODULE__{ref: ref}, epoch, index), do: Nif.prefetcher_seek(ref, epoch, index)

  @doc "Batches and frames of an epoch, and how long anybody waited."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.prefetcher_info(ref)

  bang create(Dataset.t()) :: t()
  bang create(Dataset.t(), LibExphil.options()) :: t()
  bang next(t()) :: batch() | :end
  bang seek(t(), integer(), integer()) :: :ok
  bang info(t()) :: map()
end
