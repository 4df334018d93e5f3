defmodule LibExphil.Optimizer do
  @moduledoc "AdamW with its schedule, for one trainer."

  import LibExphil.Bang

  alias LibExphil.{Error, Model, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc """
  State for the weights of a model. Options are the fields of `exphil_optimizer_config`: `:rate`, `:schedule` (`:constant`, `:cosine`,
  `:restarts`), `:total_updates`, `:warmup_updates`, `:decay`, `:clip_norm`, `:ema_decay` and so on.
  """
  @spec create(Model.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(%Model{ref: ref}, options \\ []) do
    LibExphil.wrap(Nif.optimizer_create(ref, LibExphil.options(options)), __MODULE__)
  end

  @doc "Updates done and the rate of the next, also while its trainer works."
  @spec info(t()) :: {:ok, map()} | {:error, Error.t()}
  def info(%__MODULE__{ref: ref}), do: Nif.optimizer_info(ref)

  bang create(Model.t()) :: t()
  bang create(Model.t(), LibExphil.options()) :: t()
  bang info(t()) :: map()
end
