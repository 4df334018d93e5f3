defmodule LibExphil.TrainingTest do
  # Data, updates, and training on a thread of its own: messages, cancellation, owners that die.
  use ExUnit.Case, async: true

  import LibExphil.Test

  alias LibExphil.{Dataset, Error, Model, Optimizer, Prefetcher, Trainer, Training}

  setup do
    %{context: context()}
  end

  test "rows, episodes, splits and files", %{context: context} do
    dataset = dataset(context)
    assert %{frames: 1600, episodes: 4, games: 4, float_count: 4} = Dataset.info!(dataset)
    assert %{frames: 400, first: 400, game: 2} = Dataset.episode!(dataset, 1)
    assert {<<_::128>>, <<_::32>>, <<_::64>>} = Dataset.frame!(dataset, 1599)
    assert {:error, %Error{status: :invalid}} = Dataset.frame(dataset, 1600)
    {kept, held_out} = Dataset.split!(dataset, held_out: 0.25, by: :time)
    assert Dataset.info!(kept).frames + Dataset.info!(held_out).frames == 1600
    path = Path.join(folder(), "rows")
    :ok = Dataset.save!(dataset, path)
    opened = Dataset.open!(context, path)
    :ok = Dataset.verify!(opened)
    assert Dataset.info!(opened).content_hash == Dataset.info!(dataset).content_hash
  end

  test "batches come in order and start again", %{context: context} do
    model = model(context)
    prefetcher = prefetcher(model, dataset(context))
    info = Prefetcher.info!(prefetcher)
    {:ok, first} = Prefetcher.next(prefetcher)
    assert %{batch: 4, time: 20, epoch: 0, index: 0} = first
    rows = 80
    assert byte_size(first.floats) == rows * 16 and byte_size(first.mask) == rows * 4 and byte_size(first.reset) == rows
    assert byte_size(first.past) == rows * Model.info!(model).action_slots * 8
    for _ <- 2..info.batches_per_epoch, do: {:ok, _} = Prefetcher.next(prefetcher)
    assert Prefetcher.next(prefetcher) == :end
    :ok = Prefetcher.seek!(prefetcher, 0, 0)
    assert Prefetcher.next!(prefetcher) == first
  end

  test "updates lower the loss, are saved, and go on to the last bit", %{context: context} do
    trainer = trainer(context)
    first = Trainer.step!(trainer)
    assert length(first.head_loss) == 2
    for _ <- 2..30, do: Trainer.step!(trainer)
    path = Path.join(folder(), "t.safetensors")
    :ok = Trainer.save!(trainer, path)
    last = Trainer.step!(trainer)
    assert last.update == 31 and last.loss < first.loss
    again = trainer(context)
    :ok = Trainer.resume!(again, path)
    assert Trainer.step!(again).loss == last.loss
    assert Model.info!(Trainer.model!(again)).weights_hash == Model.info!(Trainer.model!(trainer)).weights_hash
    assert Trainer.evaluate!(trainer, dataset(context)).frames == 1600
    assert {:error, %Error{status: :invalid}} = Trainer.evaluate(trainer, dataset(context), wich: :averaged)
  end

  test "batches of the host's own", %{context: context} do
    model = model(context)
    batch = Prefetcher.next!(prefetcher(model, dataset(context)))
    trainer = Trainer.create!(model, Optimizer.create!(model), nil)
    assert %{update: 1} = Trainer.step_batch!(trainer, batch)
    assert {:error, %Error{message: text}} = Trainer.step_batch(trainer, %{batch | floats: <<1, 2, 3>>})
    assert text =~ "floats: has 3 bytes"
    assert {:error, %Error{message: "batch: mask is missing"}} = Trainer.step_batch(trainer, Map.delete(batch, :mask))
    nan = :binary.copy(<<0, 0, 0xC0, 0x7F>>, div(byte_size(batch.floats), 4))
    assert {:error, %Error{status: :numeric}} = Trainer.step_batch(trainer, %{batch | floats: nan})
    assert {:error, %Error{}} = Trainer.step(trainer)
  end

  test "a thread trains, tells, saves and evaluates; the trainer is free at the end", %{context: context} do
    trainer = trainer(context)
    path = Path.join(folder(), "t.safetensors")

    {:ok, training} =
      Training.start(trainer,
        updates: 20,
        progress_every: 5,
        save: path,
        save_every: 10,
        evaluate: dataset(context),
        evaluate_every: 20
      )

    tag = training.tag
    assert_receive {:libexphil_training, ^tag, {:progress, %{update: 5, loss: loss}}} when is_float(loss), 300_000
    assert_receive {:libexphil_training, ^tag, {:saved, ^path}}, 300_000
    assert_receive {:libexphil_training, ^tag, {:report, %{frames: 1600}}}, 300_000
    assert_receive {:libexphil_training, ^tag, {:saved, ^path}}, 300_000
    assert {:ok, %{update: 20}} = Training.await(training, 300_000)
    refute_received {:libexphil_training, ^tag, _}
    assert {:ok, %{update: 21}} = Trainer.step(trainer)
    assert Model.info!(Model.load!(context, path)).trained_updates == 20
  end

  test "cancelled at once; busy until then; can go on", %{context: context} do
    trainer = trainer(context)
    {:ok, training} = Training.start(trainer, progress_every: 0)
    assert {:error, %Error{status: :busy}} = Trainer.step(trainer)
    assert {:error, %Error{status: :busy}} = Training.start(trainer)
    assert Training.await(training, 30) == :timeout
    :ok = Training.cancel(training)
    assert {:cancelled, %{update: done}} = Training.await(training, 300_000)
    {:ok, more} = Training.start(trainer, updates: 1)
    assert {:ok, %{update: next}} = Training.await(more, 300_000)
    assert next == done + 1
    :ok = LibExphil.close(training)
  end

  test "cancelled in the middle of an update, which then never was", %{context: context} do
    # One update of so many batches takes minutes.
    trainer = trainer(context, accumulate: 1_000_000)
    {:ok, training} = Training.start(trainer)
    Process.sleep(50)
    :ok = Training.cancel(training)
    assert {:cancelled, %{update: 0}} = Training.await(training, 300_000)
    assert Model.info!(Trainer.model!(trainer)).weights_hash == Model.info!(model(context)).weights_hash
  end

  test "the death of the owner ends it", %{context: context} do
    trainer = trainer(context)
    owner = spawn(fn -> Process.sleep(:infinity) end)
    {:ok, _} = Training.start(trainer, owner: owner)
    assert {:error, %Error{status: :busy}} = Trainer.step(trainer)
    Process.exit(owner, :kill)
    assert eventually(fn -> match?({:ok, _}, Trainer.step(trainer)) end)
    # One that is dead already.
    {:ok, _} = Training.start(trainer, owner: owner)
    assert eventually(fn -> match?({:ok, _}, Trainer.step(trainer)) end)
  end

  test "a failure is the last message", %{context: context} do
    model = model(context)
    trainer = Trainer.create!(model, Optimizer.create!(model), nil)
    {:ok, training} = Training.start(trainer, updates: 3)
    assert {:error, %Error{}} = Training.await(training, 300_000)
    ok = trainer(context)
    {:ok, training} = Training.start(ok, updates: 1, save: "/nonexistent/x")
    assert {:error, %Error{status: :io}} = Training.await(training, 300_000)
    assert {:error, %Error{status: :invalid}} = Training.start(ok, updates: -1)
    assert {:error, %Error{status: :invalid}} = Training.start(ok, owner: :nobody)
    assert {:error, %Error{status: :invalid}} = Training.start(ok, evry: 1)
    assert {:ok, _} = Trainer.step(ok)
  end

  test "a long call ends when its process is killed", %{context: context} do
    # One update of so many batches takes minutes. What ended before its time never was.
    trainer = trainer(context, accumulate: 1_000_000)
    hash = fn -> Model.info!(Trainer.model!(trainer)).weights_hash end
    before = hash.()
    worker = spawn(fn -> Trainer.step(trainer) end)
    assert eventually(fn -> match?({:error, %Error{status: :busy}}, Trainer.model(trainer)) end)
    Process.exit(worker, :kill)
    assert eventually(fn -> match?({:ok, _}, Trainer.model(trainer)) end)
    assert hash.() == before
  end

  test "mismatches are told", %{context: context} do
    model = model(context)
    other = Model.create!(context, hidden: 16)
    assert {:error, %Error{status: :mismatch}} = Model.evaluate(other, dataset(context))
    assert {:error, %Error{}} = Trainer.create(other, Optimizer.create!(model), prefetcher(model, dataset(context)))
  end
end
