defmodule LibExphil.ModelTest do
  # Contexts and models: what is created, kept in files, looked into and rounded.
  use ExUnit.Case, async: true

  import LibExphil.Test

  alias LibExphil.{Context, Dataset, Error, Melee, Model}

  setup do
    %{context: context()}
  end

  test "versions of the package, the library and the header agree" do
    {version, text} = LibExphil.version()
    assert to_string(version) == to_string(Application.spec(:libexphil, :vsn))
    assert String.starts_with?(text, to_string(version))
    header = Path.join([System.get_env("EXPHIL_SOURCE", "../.."), "include/exphil/exphil.h"])

    if File.exists?(header) do
      numbers = Regex.scan(~r/define EXPHIL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)/, File.read!(header))
      assert Enum.map_join(numbers, ".", &List.last/1) == Mix.Project.config()[:version]
    end
  end

  test "devices and memory", %{context: context} do
    assert [%{id: "cpu", index: 0} | _] = LibExphil.devices!()
    assert %{id: "cpu"} = Context.device!(context)
    before = Context.memory!(context).host_used_bytes
    model = model(context)
    assert Context.memory!(context).host_used_bytes > before
    assert Model.info!(model).parameter_count > 0
  end

  test "errors carry status, number and the library's text", %{context: context} do
    assert {:error, %Error{status: :io, native_code: 2, message: text}} = Model.load(context, "/nonexistent/x")
    assert text =~ "/nonexistent/x"
    assert {:error, %Error{status: :unsupported}} = Context.create(cpu_isa: "z80") |> unsupported()
    assert_raise Error, ~r/io: .*nonexistent/, fn -> Model.load!(context, "/nonexistent/x") end
  end

  # An unknown instruction set is refused as a wrong argument or as one that cannot be had.
  defp unsupported({:error, %Error{status: status} = error}) when status in [:invalid, :unsupported],
    do: {:error, %{error | status: :unsupported}}

  test "log lines are messages" do
    # A folder without a plugin: "auto" falls back to the CPU and says so.
    folder = folder()
    {:ok, _} = Context.create(device: "auto", backend_path: folder, log: self(), threads: 1)
    assert_receive {:libexphil_log, :warning, "running on the CPU: " <> _}, 300_000
    {:ok, _} = Context.create(device: "auto", backend_path: folder, log: self(), log_level: :error, threads: 1)
    refute_receive {:libexphil_log, _, _}, 50
    # Nobody listens any more.
    dead = spawn(fn -> :ok end)
    assert {:ok, _} = Context.create(device: "auto", backend_path: folder, log: dead, threads: 1)
    assert {:error, %Error{status: :invalid}} = Context.create(log: :someone)
    assert {:error, %Error{status: :invalid, message: text}} = Context.create(log_level: :loud)
    assert text =~ "log_level: not one of :default, :error"
  end

  test "files and bytes give the same weights", %{context: context} do
    path = Path.join(folder(), "m.safetensors")
    model = model(context)
    :ok = Model.save!(model, path)
    assert Model.info!(Model.load!(context, path)) == Model.info!(model)
    assert Model.info!(Model.load_memory!(context, File.read!(path))) == Model.info!(model)
    assert Model.info!(Model.load!(context, [Path.dirname(path), ?/, "m.safetensors"])) == Model.info!(model)
  end

  test "specs come back as they went in", %{context: context} do
    model = model(context)
    got = Model.spec!(model)
    assert Map.drop(got, [:layout_hash]) == spec()
    assert Model.info!(Model.create!(context, spec: got)).spec_hash == Model.info!(model).spec_hash
    assert Model.spec!(Model.create!(context, hidden: 32)) == Melee.spec!()
    assert Model.info!(Model.create!(context, spec: {"exphil288", nil}, hidden: 32)).layout == "exphil288"
    assert Dataset.spec!(Dataset.create!(context, got)) == got
  end

  test "tensors are copied out and in", %{context: context} do
    model = model(context)
    tensors = Model.tensors!(model)
    assert length(tensors) == Model.info!(model).tensor_count

    for %{name: name, shape: shape, size_bytes: bytes, type: :f32} <- tensors do
      assert %{data: data, shape: ^shape} = Model.tensor!(model, name)
      assert byte_size(data) == bytes
      assert Tuple.product(shape) * 4 == bytes
    end

    %{name: name, size_bytes: bytes} = hd(tensors)
    :ok = Model.put_tensor!(model, name, :binary.copy(<<0.5::float-32-native>>, div(bytes, 4)))
    assert <<0.5::float-32-native, _::binary>> = Model.tensor!(model, name).data
    assert {:error, %Error{status: :invalid}} = Model.put_tensor(model, name, <<0>>)
    assert {:error, %Error{status: :invalid, message: message}} = Model.tensor(model, "no.such")
    assert message =~ "no.such"
    LibExphil.Session.create!(model)
    nan = <<0, 0, 0xC0, 0x7F>>
    assert {:error, %Error{}} = Model.put_tensor(model, name, :binary.copy(nan, div(bytes, 4)))
  end

  test "fewer bits, compared and calibrated", %{context: context} do
    model = model(context)
    dataset = dataset(context)
    small = Model.quantize!(model, :i8)
    assert Model.info!(small).weights == :i8
    comparison = Model.compare!(model, small, dataset)
    assert comparison.frames == 1600 and length(comparison.heads) == 2
    assert comparison.agreement > 0.9
    assert {:error, %Error{status: :state}} = Model.calibration(small)
    :ok = Model.put_calibration!(small, comparison)
    assert Model.calibration!(small) == comparison
    assert {:error, %Error{status: :state}} = Model.put_calibration(model, comparison)
    assert {:error, %Error{status: :state}} = Model.quantize(small, :i8)
    assert {:error, %Error{status: :invalid}} = Model.quantize(model, :i3)
  end

  test "evaluation, with losses for each head", %{context: context} do
    {model, dataset} = {model(context), dataset(context)}
    report = Model.evaluate!(model, dataset, batch: 4)
    assert report.frames == 1600
    assert [%{nll: _}, %{accuracy: accuracy}] = report.heads
    assert accuracy >= 0 and accuracy <= 1
    losses = [%{weight: 2.0, positive_weight: [1.0, 2.0, 3.0]}, %{smoothing: 0.1}]
    assert Model.evaluate!(model, dataset, losses: losses, frequencies: dataset).loss != report.loss
    assert {:error, %Error{message: message}} = Model.evaluate(model, dataset, losses: [%{}])
    assert message =~ "losses: has 1 elements, not 2"

    assert {:error, %Error{message: message}} = Model.evaluate(model, dataset, losses: [%{positive_weight: [1.0]}, %{}])

    assert message =~ "positive_weight: has 1 elements, not 3"
  end

  test "a step as ONNX", %{context: context} do
    path = Path.join(folder(), "m.onnx")
    assert :ok = Model.export_onnx(model(context), path)
    assert File.read!(path) =~ "exphil.model"
    assert {:error, %Error{status: :io}} = Model.export_onnx(model(context), "/nowhere/at/all")
  end

  test "Melee: presets, columns, encoder, names" do
    spec = Melee.spec!()
    assert %{layout: "melee2", codec: "exphil81", heads: heads} = spec
    assert Enum.sum(for h <- heads, do: h.count) == 81
    assert Enum.any?(Melee.fields!(), &(&1.name == "own.percent" and &1.source =~ "f32"))
    assert {floats, ids} = Melee.encode!(frame())
    assert {byte_size(floats), byte_size(ids)} == {4 * spec.floats, 4 * length(spec.ids)}
    assert Melee.encode!(Melee.unpack!(Melee.pack!(frame()))) == {floats, ids}
    assert {:error, %Error{status: :numeric, message: text}} = Melee.encode(put_in(frame().players[1].x, nil))
    assert text =~ "x"
    assert {:error, %Error{status: :invalid}} = Melee.encode(%{frame() | own_port: 3})
    assert {:error, %Error{status: :invalid}} = Melee.fields("melee1")
    assert {Melee.character_name(2), Melee.stage_name(32)} == {"fox", "final_destination"}
    assert {Melee.character_name(-5), Melee.stage_name(9999)} == {nil, nil}
  end

  test "controllers go through the codec" do
    alias Melee.Pad
    pad = %Pad{buttons: Pad.bits([:a, :l]), main_x: 0.5, trigger: 0.25}
    near = pad |> Melee.encode_pad!() |> Melee.decode_pad!()
    assert Pad.pressed(near) == [:l, :a]
    assert Pad.pressed?(near, :a) and not Pad.pressed?(near, :b)
    assert_in_delta near.main_x, 0.5, 0.1
    assert Melee.decode_pad!(Melee.encode_pad!(near)) == near
    assert {:error, %Error{status: :invalid}} = Melee.decode_pad(<<1, 2, 3>>)
  end
end
