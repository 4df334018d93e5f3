defmodule LibExphil.DocsTest do
  # Every public function has words and a type.
  use ExUnit.Case, async: true

  test "modules and functions are documented and typed" do
    {:ok, modules} = :application.get_key(:libexphil, :modules)

    for module <- modules, {:docs_v1, _, _, _, doc, _, functions} = Code.fetch_docs(module), doc != :hidden do
      assert doc != :none or function_exported?(module, :exception, 1), inspect(module)
      {:ok, specs} = Code.Typespec.fetch_specs(module)
      typed = for {name_arity, _} <- specs, into: MapSet.new(), do: name_arity

      for {{:function, name, arity}, _, _, words, meta} <- functions, words != :hidden do
        callback? = meta[:impl] || name in [:exception, :message, :child_spec, :init, :handle_call, :handle_info]
        assert words != :none or callback?, "#{inspect(module)}.#{name}/#{arity} has no words"

        unless callback? do
          arities = (arity - Map.get(meta, :defaults, 0))..arity
          assert Enum.any?(arities, &({name, &1} in typed)), "#{inspect(module)}.#{name}/#{arity} has no type"
        end
      end
    end
  end
end
