defmodule LibExphil.Training do
  @moduledoc """
  Training on a thread of its own, which occupies no scheduler. Its owner gets messages `{:libexphil_training, tag, event}`:

    * `{:progress, metrics}` every `:progress_every` updates
    * `{:report, report}` after an evaluation, `{:saved, path}` after a checkpoint
    * `{:skipped, error}` for an update that NaN or infinity made void (only with `:skip_limit`)
    * one last: `{:done, metrics}`, `{:cancelled, metrics}` or `{:error, error}`

  It stops at its end, by `cancel/1` (in the middle of an update, which then never was), and when its owner dies. Until then
  the trainer is `:busy`; at the last message it is free, and the training can be started again to go on.

      {:ok, training} = LibExphil.Training.start(trainer, updates: 1000, save: "fox.safetensors", save_every: 100)
      {:ok, metrics} = LibExphil.Training.await(training)
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Nif, Trainer}

  @enforce_keys [:ref, :tag]
  defstruct [:ref, :tag]

  @type t :: %__MODULE__{ref: reference(), tag: reference()}

  @doc """
  Starts. Options:

    * `:updates` - how many; 0, the default: until cancelled
    * `:owner` - who gets the messages, and whose death ends the training; default the caller
    * `:progress_every` - updates between messages; default 1, 0: none
    * `:save`, `:save_every` - path of a checkpoint. It is also written at the end and after `cancel/1`
    * `:evaluate`, `:evaluate_every` - a dataset. It is held for as long as the training runs
    * `:skip_limit` - how many updates in a row may be void by NaN or infinity; default 0
  """
  @spec start(Trainer.t(), LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def start(%Trainer{ref: ref}, options \\ []) do
    {owner, options} = Map.pop(LibExphil.options(options), :owner, self())
    {dataset, options} = Map.pop(options, :evaluate)
    tag = make_ref()

    with {:ok, dataset} <- LibExphil.dataset_ref(dataset, "training: evaluate"),
         {:ok, training} <- Nif.training_start(ref, dataset, {owner, tag}, options) do
      {:ok, %__MODULE__{ref: training, tag: tag}}
    end
  end

  @doc "Stops it; the last message tells when it has. Any process may."
  @spec cancel(t()) :: :ok
  def cancel(%__MODULE__{ref: ref}), do: Nif.training_cancel(ref)

  @doc """
  Waits, in the owner, for the last message, and drops those before it. `{:ok, metrics}` at the end, `{:cancelled, metrics}`,
  `{:error, error}`, or `:timeout`.
  """
  @spec await(t(), timeout()) ::
          {:ok, Trainer.metrics()} | {:cancelled, Trainer.metrics()} | {:error, Error.t()} | :timeout
  def await(%__MODULE__{tag: tag} = training, timeout \\ :infinity) do
    receive do
      {:libexphil_training, ^tag, {:done, metrics}} -> {:ok, metrics}
      {:libexphil_training, ^tag, {kind, value}} when kind in [:cancelled, :error] -> {kind, value}
      {:libexphil_training, ^tag, _} -> await(training, timeout)
    after
      timeout -> :timeout
    end
  end

  bang start(Trainer.t()) :: t()
  bang start(Trainer.t(), LibExphil.options()) :: t()
end
