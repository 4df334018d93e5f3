defmodule LibExphil.MisuseTest do
  # Handles that are wrong, closed, collected in any order, or used by many processes; and memory, which must not grow.
  use ExUnit.Case, async: false

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{
    Context,
    Dataset,
    Error,
    Games,
    Learner,
    Live,
    LiveLearner,
    Model,
    Nif,
    Optimizer,
    Prefetcher,
    Replay,
    Rollout,
    Session,
    Trainer,
    Training,
    World
  }

  # One handle of every kind, made anew.
  defp family do
    context = context()
    model = model(context)
    dataset = dataset(context, 40)
    prefetcher = prefetcher(model, dataset)
    optimizer = Optimizer.create!(model)
    trainer = Trainer.create!(model, optimizer, prefetcher)
    Trainer.step!(trainer)

    %{
      context: context,
      model: model,
      dataset: dataset,
      prefetcher: prefetcher,
      optimizer: optimizer,
      trainer: trainer,
      session: Session.create!(model),
      live: Live.create!(context),
      games: games(context),
      world: World.create!(context, "cartpole"),
      rollout: Rollout.create!(Model.with_value!(model)),
      live_learner: LiveLearner.create!(model)
    }
  end

  # An open corpus without games; its file may go.
  defp games(context) do
    path = Path.join(System.tmp_dir!(), "libexphil_#{System.pid()}_#{System.unique_integer([:positive])}.games")
    {%{games: 0}, []} = Games.write!(context, path, [], stored: true)
    games = Games.open!(context, path)
    File.rm!(path)
    games
  end

  defp use_of(:context, h), do: Context.memory(h)
  defp use_of(:model, h), do: Model.sampling(h)
  defp use_of(:dataset, h), do: Dataset.episode(h, 0)
  defp use_of(:prefetcher, h), do: Prefetcher.info(h)
  defp use_of(:optimizer, h), do: Optimizer.info(h)
  defp use_of(:trainer, h), do: Trainer.step(h)
  defp use_of(:session, h), do: Session.info(h)
  defp use_of(:live, h), do: Live.reset(h)
  defp use_of(:games, h), do: Games.info(h)
  defp use_of(:world, h), do: World.reset(h, 0, 1)
  defp use_of(:rollout, h), do: Session.info(Rollout.session(h))
  defp use_of(:live_learner, h), do: LiveLearner.info(h)

  test "closed in many orders; the others go on; twice is once" do
    :rand.seed(:exsss, {4, 5, 6})
    names = Map.keys(family())

    for round <- 1..25 do
      handles = family()
      order = if round == 1, do: Enum.sort(names), else: Enum.shuffle(names)

      Enum.reduce(order, handles, fn name, left ->
        :ok = LibExphil.close(left[name])
        :ok = LibExphil.close(left[name])
        assert {:error, %Error{status: :state, message: text}} = use_of(name, left[name])
        assert text == "#{name} is closed"
        left = Map.delete(left, name)

        # What is left works on, but for those that the library serves through another handle of ours.
        for {other, handle} <- left, do: refute(match?({:error, _}, use_of(other, handle)))
        left
      end)
    end
  end

  test "collected in any order" do
    :rand.seed(:exsss, {7, 8, 9})

    for _ <- 1..25 do
      # Each handle belongs to a process of its own; they die in random order.
      holders =
        for {_, handle} <- family() do
          spawn(fn -> receive(do: (:die -> handle)) end)
        end

      :erlang.garbage_collect()
      for pid <- Enum.shuffle(holders), do: send(pid, :die)
    end

    :erlang.garbage_collect()
    assert %{trainer: trainer} = family()
    assert {:ok, _} = Trainer.step(trainer)
  end

  test "a learner outlives what it was made of, and is closed like all else" do
    context = context()
    world = World.create!(context, "cartpole", lanes: 2)
    model = Model.create!(context, spec: World.info!(world).spec, blocks: "gru", hidden: 16, value: :shared)
    optimizer = Optimizer.create!(model)
    trainer = Trainer.create!(model, optimizer, nil)
    learner = Learner.create!(trainer, model, to_teacher: 0.1)
    rollout = Rollout.create!(model, streams: 2, time: 8)
    for handle <- [trainer, optimizer, model, context], do: :ok = LibExphil.close(handle)
    assert {:ok, %{chunks: 1}} = Learner.chunk(learner, rollout, world)
    :ok = LibExphil.close(learner)
    assert {:error, %Error{status: :state, message: "learner is closed"}} = Learner.update(learner, rollout)
    :ok = LibExphil.close(Rollout.session(rollout))
    assert {:error, %Error{status: :state, message: "rollout is closed"}} = Rollout.run(rollout, world)
  end

  test "closing what another process is using waits for it" do
    context = context()
    model = model(context, hidden: 128, blocks: "gru*4")
    session = Session.create!(model, streams: 1024, dirty: true)
    floats = :binary.copy(floats([1, 1, 1, 1]), 1024)
    ids = :binary.copy(ints([0]), 1024)
    test = self()

    step = fn step ->
      case Session.step_row(session, floats, ids) do
        {:ok, _} -> send(test, :stepped) && step.(step)
        error -> error
      end
    end

    task = Task.async(fn -> step.(step) end)
    assert_receive :stepped, 300_000
    :ok = LibExphil.close(session)
    assert {:error, %Error{status: :state}} = Task.await(task, 300_000)
    assert {:error, %Error{status: :state}} = Session.step_row(session, floats, ids)
  end

  test "many processes, all handles, all at once" do
    handles = family()

    1..8
    |> Enum.map(fn seed ->
      Task.async(fn ->
        :rand.seed(:exsss, {seed, 1, 1})

        for _ <- 1..300 do
          {name, handle} = Enum.random(handles)

          case use_of(name, handle) do
            {:error, %Error{status: status}} -> assert status == :busy
            _ -> :ok
          end
        end
      end)
    end)
    |> Task.await_many(300_000)
  end

  test "wrong handles and garbage" do
    handles = family()
    assert_raise FunctionClauseError, fn -> Model.info(handles.session) end
    assert_raise FunctionClauseError, fn -> Session.step(nil, frame()) end
    assert_raise FunctionClauseError, fn -> LibExphil.close(:x) end
    assert_raise ArgumentError, fn -> LibExphil.close(%{ref: make_ref()}) end
    # Below the structs: every function with every wrong reference and with atoms, lists, maps, numbers.
    junk = [
      make_ref(),
      nil,
      :a,
      [],
      [1 | 2],
      %{},
      %{a: 1},
      1,
      -1,
      1.5,
      <<>>,
      <<1::3>>,
      "/nonexistent/x",
      {1, 2},
      self(),
      1 <<< 70
    ]

    refs = Enum.map(Map.values(handles), & &1.ref)
    :rand.seed(:exsss, {1, 1, 1})
    skipped = [:__info__, :module_info, :load, :version, :devices]

    for {name, arity} <- Nif.module_info(:exports), name not in skipped, arity > 0, _ <- 1..60 do
      args = for i <- 1..arity, do: Enum.random(if(i == 1, do: refs ++ junk, else: junk ++ refs))
      # Not the handles that the rest of the test needs.
      unless name == :close do
        try do
          apply(Nif, name, args)
        rescue
          ArgumentError -> :ok
        end
      end
    end

    assert {:ok, _} = Model.info(handles.model)
  end

  test "contexts and their threads go with their last child" do
    threads = fn -> length(File.ls!("/proc/self/task")) end

    live = fn ->
      context = context(threads: 3)
      # The pool starts with the first work for it.
      Model.create!(context, spec: spec(), hidden: 64)
      Live.create!(context)
    end

    # What tests before this one left is still ending: half a second without a change.
    settled = fn settled, last, same ->
      Process.sleep(20)
      now = threads.()
      same = if now == last, do: same + 1, else: 0
      if same < 25, do: settled.(settled, now, same), else: now
    end

    before = settled.(settled, 0, 0)
    held = live.()
    assert eventually(fn -> threads.() == before + 2 end)
    assert {:error, %Error{status: :state}} = Live.frame(held)
    Task.await(Task.async(fn -> for(_ <- 1..20, do: live.()) && :ok end))
    assert eventually(fn -> threads.() == before + 2 end)
    :ok = LibExphil.close(held)
    :erlang.garbage_collect()
    assert eventually(fn -> threads.() == before end)
  end

  test "what handles leave is given back, closed or collected" do
    model = model(context())

    run = fn count, fun ->
      task = Task.async(fn -> for(_ <- 1..count, do: fun.(Session.create!(model))) && :ok end)
      :ok = Task.await(task, 300_000)
    end

    for fun <- [&LibExphil.close/1, &Session.info!/1] do
      run.(500, fun)
      before = :erlang.memory(:system)
      run.(1000, fun)
      # The room for a frame alone is a kilobyte for each session. A thread gives it back, in its own time.
      assert eventually(fn -> :erlang.memory(:system) - before < 200_000 end)
    end
  end

  test "memory does not grow" do
    context = context()
    model = model(context)
    data = if path = replay("formats/v0.1.slp"), do: File.read!(path), else: <<>>

    round = fn ->
      handles = family()
      {:ok, _} = Training.start(handles.trainer, updates: 1, progress_every: 0)
      Session.step_row!(Session.create!(model), floats([1, 1, 1, 1]), ints([0]))
      Session.clone!(handles.session)
      Replay.read(context, data)
      Model.create(context, blocks: "mumba")
    end

    run = fn count ->
      Task.async(fn -> Enum.each(1..count, fn _ -> round.() end) end) |> Task.await(300_000)
      :erlang.garbage_collect()
    end

    run.(80)
    before = resident()
    run.(200)
    # A family takes about 2 MB: a leak of one handle in a hundred would show.
    assert eventually(fn -> resident() - before < 8_000 end), "from #{before} to #{resident()} KiB"
    used = Context.memory!(context).host_used_bytes
    run.(20)
    assert eventually(fn -> Context.memory!(context).host_used_bytes <= used end)
  end

  defp resident do
    [_, kib] = Regex.run(~r/VmRSS:\s+(\d+)/, File.read!("/proc/self/status"))
    String.to_integer(kib)
  end
end
