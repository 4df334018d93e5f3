defmodule LibExphil.Context do
  @moduledoc """
  What everything else belongs to: the device, the threads and the log.

  Log lines arrive as messages `{:libexphil_log, level, text}` at the process named by `:log`, with `level` one of `:error`,
  `:warning`, `:info`, `:debug`. Hand them to `Logger`:

      def handle_info({:libexphil_log, level, text}, state) do
        Logger.log(level, text)
        {:noreply, state}
      end
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Nif}

  @enforce_keys [:ref]
  defstruct [:ref]

  @type t :: %__MODULE__{ref: reference()}

  @doc """
  Options: `:device` ("cpu", "cuda", "cuda:1", "auto"), `:cpu_isa`, `:backend_path`, `:threads` (0: one for each core, 1: none of its
  own), `:memory_limit_bytes`, `:log` (a pid), `:log_level`.
  """
  @spec create(LibExphil.options()) :: {:ok, t()} | {:error, Error.t()}
  def create(options \\ []) do
    {log, config} = Map.pop(LibExphil.options(options), :log)
    LibExphil.wrap(Nif.context_create(config, log), __MODULE__)
  end

  @doc "The device that the context runs on."
  @spec device(t()) :: {:ok, map()} | {:error, Error.t()}
  def device(%__MODULE__{ref: ref}), do: Nif.context_device(ref)

  @doc "Memory of the context and all that belongs to it. The VM does not count it."
  @spec memory(t()) :: {:ok, map()} | {:error, Error.t()}
  def memory(%__MODULE__{ref: ref}), do: Nif.context_memory(ref)

  bang create() :: t()
  bang create(LibExphil.options()) :: t()
  bang device(t()) :: map()
  bang memory(t()) :: map()
end
