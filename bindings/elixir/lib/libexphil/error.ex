defmodule LibExphil.Error do
  @moduledoc """
  Why a call failed: what `{:error, error}` holds and what functions with `!` raise.

    * `status` - one of `t:status/0`, the library's code in lower case: `EXPHIL_E_MISMATCH` is `:mismatch`
    * `native_code` - `errno` or the driver's number, 0 when there is none
    * `message` - one line that names the field, argument or byte offset
  """

  @typedoc "Codes of failure, as the header explains them."
  @type status ::
          :invalid
          | :memory
          | :io
          | :format
          | :unsupported
          | :device
          | :state
          | :busy
          | :version
          | :cancelled
          | :numeric
          | :mismatch
          | :internal

  @type t :: %__MODULE__{status: status(), native_code: integer(), message: String.t()}

  defexception status: :internal, native_code: 0, message: ""

  @impl true
  def message(%{status: status, message: message}), do: "#{status}: #{message}"
end
