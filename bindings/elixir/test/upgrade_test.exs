defmodule LibExphil.UpgradeTest do
  # Hot upgrades, as a release does them: a second folder of the application comes first in the code path, and the module with
  # the NIF is loaded again. Handles of the old code go on in the new.
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog
  import LibExphil.Test

  alias LibExphil.{Session, Trainer, Training}

  setup do
    home = Application.app_dir(:libexphil)

    on_exit(fn ->
      true = :code.replace_path(:libexphil, to_charlist(Path.join(home, "ebin")))
      load()
    end)

    %{home: home}
  end

  defp load do
    :code.purge(LibExphil.Nif)
    :code.load_file(LibExphil.Nif)
  end

  # A folder like that of the application, with a NIF built with these flags.
  defp folder_of(home, name, flags) do
    folder = Path.join(folder(), "libexphil-#{name}")
    File.mkdir_p!(Path.join(folder, "priv"))
    File.cp_r!(Path.join(home, "ebin"), Path.join(folder, "ebin"))
    erts = {"ERTS_INCLUDE_DIR", "#{:code.root_dir()}/usr/include"}
    args = ["-s", "MIX_APP_PATH=#{folder}", "CFLAGS=-O0" | flags]
    {output, status} = System.cmd("make", args, env: [erts], stderr_to_stdout: true)
    assert status == 0, output
    folder
  end

  defp load_from(folder) do
    true = :code.replace_path(:libexphil, to_charlist(Path.join(folder, "ebin")))
    load()
  end

  defp play(session, n \\ 5) do
    for t <- 1..n, do: Session.step_row!(session, floats([t, 1, 2, 3]), ints([0]))
  end

  test "the same code, again and again" do
    session = Session.create!(model(context()), seed: 5)
    other = Session.clone!(session)

    for _ <- 1..5 do
      assert {:module, LibExphil.Nif} = load()
      assert play(session) == play(other)
    end
  end

  test "another build takes handles over, training threads too", %{home: home} do
    session = Session.create!(model(context()), seed: 5)
    other = Session.clone!(session)
    trainer = trainer(context())
    {:ok, training} = Training.start(trainer, progress_every: 0)
    folder = folder_of(home, "9.9.8", [])
    assert {:module, LibExphil.Nif} = load_from(folder)
    assert to_string(:code.priv_dir(:libexphil)) == Path.join(folder, "priv")
    assert play(session) == play(other)
    :code.purge(LibExphil.Nif)
    :ok = Training.cancel(training)
    assert {:cancelled, _} = Training.await(training, 300_000)
    assert {:ok, _} = Trainer.step(trainer)
    :ok = LibExphil.close(session)
    assert {:error, %{status: :state}} = Session.info(session)
  end

  test "other handles or another library: refused, and the old code goes on", %{home: home} do
    session = Session.create!(model(context()), seed: 5)
    other = Session.clone!(session)
    static = Path.join([System.get_env("EXPHIL_PREFIX", "/usr"), "lib", "libexphil.a"])
    builds = [{"CPPFLAGS=-DNIF_LAYOUT=1", "handles of the old code look different"}]
    library = {"LIBS=#{static} -lm -ldl", "uses another libexphil than the old"}

    for {flags, text} <- if(File.exists?(static), do: [library | builds], else: builds) do
      folder = folder_of(home, "9.9.9", [flags])

      # The code server tells why from a process of its own.
      :ok = :logger.add_handler(__MODULE__, __MODULE__, %{config: self()})

      capture_log(fn ->
        assert {:error, :on_load_failure} = load_from(folder)
        assert eventually(fn -> told?(text) end)
      end)

      :ok = :logger.remove_handler(__MODULE__)
      assert play(session) == play(other)
    end
  end

  @doc "A handler of `:logger`."
  def log(event, %{config: test}),
    do: send(test, {:told, inspect(event.msg, limit: :infinity, printable_limit: :infinity)})

  defp told?(text) do
    receive do
      {:told, words} -> words =~ text or told?(text)
    after
      0 -> false
    end
  end
end
