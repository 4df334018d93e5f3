defmodule LibExphil.Bang do
  @moduledoc false
  # bang load(Context.t(), Path.t()) :: t() makes load!/2: the same, but it gives the bare result and raises LibExphil.Error.

  defmacro bang({:"::", _, [{name, _, types}, result]}) do
    args = Macro.generate_arguments(length(types), __MODULE__)
    banged = :"#{name}!"

    quote do
      @doc "Like `#{unquote(name)}/#{unquote(length(types))}`, but raises `LibExphil.Error`."
      @spec unquote(banged)(unquote_splicing(types)) :: unquote(result)
      def unquote(banged)(unquote_splicing(args)) do
        LibExphil.Bang.unwrap(unquote(name)(unquote_splicing(args)))
      end
    end
  end

  @doc false
  def unwrap({:ok, value}), do: value
  def unwrap({:error, %LibExphil.Error{} = error}), do: raise(error)
  def unwrap(other), do: other
end
