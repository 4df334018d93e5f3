defmodule LibExphil.MixProject do
  # Mix project of the Elixir binding. It needs no package: the NIF is built by the Makefile beside it, against the
  # libexphil that pkg-config finds.
  use Mix.Project

  # That of the library (EXPHIL_VERSION_* in exphil.h); a test compares them.
  @version "0.2.0"

  def project do
    [
      app: :libexphil,
      version: @version,
      elixir: "~> 1.14",
      compilers: [:libexphil_nif] ++ Mix.compilers(),
      start_permanent: Mix.env() == :prod,
      description: "Policies for 60 Hz games: train by behaviour cloning, play in the BEAM",
      package: [licenses: ["MIT"], files: ~w(lib c_src Makefile mix.exs README.md)]
    ]
  end

  def application, do: [extra_applications: [:logger]]
end

defmodule Mix.Tasks.Compile.LibexphilNif do
  @moduledoc "Builds the NIF with make. It does what elixir_make would do, which is a package."
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    check_pkg_config(OptionParser.split(System.get_env("PKG_CONFIG", "pkg-config")))
    check_header("#{:code.root_dir()}/usr/include/erl_nif.h")

    env = [
      {"MIX_APP_PATH", Mix.Project.app_path()},
      {"ERTS_INCLUDE_DIR", "#{:code.root_dir()}/usr/include"}
    ]

    case System.cmd("make", ["--no-print-directory", "-s"], env: env, stderr_to_stdout: true) do
      {_, 0} -> {:ok, []}
      {output, _} -> Mix.raise("the NIF of libexphil could not be built:\n" <> output)
    end
  end

  # What is missing is said here, before a compiler says it in many lines.
  defp check_pkg_config([tool | options]) do
    System.find_executable(tool) || Mix.raise("the NIF of libexphil cannot be built: there is no #{tool}")

    with {words, status} when status != 0 <-
           System.cmd(tool, options ++ ["--exists", "--print-errors", "exphil"], stderr_to_stdout: true) do
      Mix.raise(
        "the NIF of libexphil cannot be built: libexphil is not installed, or PKG_CONFIG_PATH does not name " <>
          "the folder of its exphil.pc\n" <> words
      )
    end
  end

  defp check_header(path) do
    File.exists?(path) ||
      Mix.raise("the NIF of libexphil cannot be built: there is no #{path} (on Debian: apt-get install erlang-dev)")
  end

  @impl true
  def clean, do: File.rm_rf!(Path.join(Mix.Project.app_path(), "obj"))
end
