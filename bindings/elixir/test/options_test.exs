defmodule LibExphil.OptionsTest do
  # Every option of every call, as the tables of c_src name them: a value of another kind, or one that does not fit, is refused with
  # the name of the option. Nothing is cut, and nothing ends the VM.
  use ExUnit.Case, async: true

  import Bitwise
  import LibExphil.Test

  alias LibExphil.{Agent, Context, Dataset, Error, Games, Live, Melee, Model, Optimizer, Prefetcher, Replay, Session}
  alias LibExphil.{Learner, LiveLearner, Match, Rollout, Trainer, Training, World}

  # Numbers below zero that mean something, or of which the nearest is taken.
  @negative [:clip_norm, :weight, :first_frame, :main_x, :main_y, :c_x, :c_y, :trigger] ++
              [:x, :y, :facing, :percent, :shield, :state_age, :misc, :hitlag, :timer, :owner, :frame, :stage, :wind] ++
              [:stadium_kind, :stadium_event, :own_port, :opponent_port, :platform_left, :platform_right] ++
              [:speed_air_x, :speed_y, :speed_attack_x, :speed_attack_y, :speed_ground_x, :speed_x] ++
              [:surrogate, :normalise, :points, :imitation] ++
              [:stock, :damage, :follower, :ledge, :stalling, :stalling_distance, :approach]

  @junk [nil, :nothing, "1", <<1::3>>, [], [1], %{}, {1, 2}, 3.5, self()]
  @integers %{
    T_I8: {-(1 <<< 7), (1 <<< 7) - 1},
    T_U8: {0, (1 <<< 8) - 1},
    T_U16: {0, (1 <<< 16) - 1},
    T_I32: {-(1 <<< 31), (1 <<< 31) - 1},
    T_I32_AT: {-(1 <<< 31), (1 <<< 31) - 1},
    T_U32: {0, (1 <<< 32) - 1},
    T_I64: {-(1 <<< 63), (1 <<< 63) - 1},
    T_U64: {0, (1 <<< 64) - 1}
  }

  # {option, type} of a struct, from the table of the NIF.
  defp options_of(:run_in), do: scan(~r/\bONE\((\w+), (T_\w+)\)/)
  defp options_of(:rewards_in), do: scan(~r/\bREWARDS\((\w+), (T_\w+)\)/)
  defp options_of(:exphil_melee_frame), do: scan(~r/\bFRAME\((\w+), (T_\w+)\)/)
  defp options_of(struct), do: scan(~r/\b(?:ONE|NAMED|MANY|OF|FIELD)\((?:struct )?#{struct}, (\w+),\s+(T_\w+)/)

  defp scan(pattern),
    do: for([_, name, type] <- Regex.scan(pattern, sources()), do: {String.to_atom(name), String.to_atom(type)})

  defp sources, do: for(path <- Path.wildcard(Path.join(__DIR__, "../c_src/*.c")), into: "", do: File.read!(path))

  # What can be no value of this type, whatever the option.
  defp unfit(type) when is_map_key(@integers, type) do
    {low, high} = @integers[type]
    @junk ++ [true, 1.0, 1.0e300, low - 1, high + 1, 1 <<< 70, -(1 <<< 70), 1 <<< 2000]
  end

  defp unfit(type) when type in [:T_F32, :T_F64], do: (@junk -- [nil, 3.5]) ++ [true, 1 <<< 2000, nil, :infinity]
  defp unfit(:T_BOOL), do: @junk ++ [0, 1, -1, 1 <<< 70]
  defp unfit(type) when type in [:T_ENUM, :T_ENUM_AT], do: @junk ++ [0, 1, -1, 1 <<< 70, true]
  defp unfit(:T_TEXT), do: (@junk -- [nil, "1"]) ++ [0, -1, 1 <<< 70, true, "a\0b"]

  defp unfit(type) when type in [:T_FLOATS_AT, :T_RECORDS_AT],
    do: @junk ++ [0, 1 <<< 70, [:a], [[], []], [1, 2, :a], [1, 2, 3 | 4]]

  defp unfit(:T_SPEC), do: (@junk -- [nil, %{}, {1, 2}]) ++ [0, 1 <<< 70, true]

  # What the library itself refuses, where it means nothing.
  defp negative(:T_I32), do: [-1, -(1 <<< 31)]
  defp negative(:T_I32_AT), do: [-1, -(1 <<< 31)]
  defp negative(:T_I64), do: [-1, -(1 <<< 31), -(1 <<< 63)]
  defp negative(type) when type in [:T_F32, :T_F64], do: [-1, -1.5]
  defp negative(_type), do: []

  # Large, but fitting: it may do or not.
  defp large(type) when type in [:T_I32, :T_I32_AT], do: [(1 <<< 31) - 1]
  defp large(type) when type in [:T_I64, :T_U64], do: [(1 <<< 31) - 1, 1 <<< 62]
  defp large(_type), do: []

  defp refused!(call, option, value) do
    assert {:error, %Error{message: said} = error} = call.(option, value), "#{option} took #{inspect(value)}"
    assert error.status in [:invalid, :numeric, :mismatch, :unsupported], Exception.message(error)
    # Of a list, "losses", it may be one: "loss".
    assert said =~ ~r/\b#{String.replace(to_string(option), ~r/(?<=s)es$|s$/, "")}/ or option == :spec,
           "of #{option}, #{inspect(value)}: #{said}"
  end

  defp harmless!(call, option, value) do
    case call.(option, value) do
      {:ok, %Training{} = training} -> Training.cancel(training)
      {:ok, %_{ref: _} = handle} -> LibExphil.close(handle)
      {:ok, _} -> :ok
      {:error, %Error{message: said}} -> assert said != ""
    end
  end

  # Calls with one option set, by the struct that holds it.
  defp calls do
    context = context()
    model = model(context)
    dataset = dataset(context)
    melee = Dataset.create!(context)
    optimizer = fn -> Optimizer.create!(model) end
    head = fn option, value -> Map.put(%{name: "h", kind: :categorical, count: 4}, option, value) end
    id = fn option, value -> Map.put(%{name: "i", entries: 4}, option, value) end
    own = fn spec -> Model.create(context, spec: spec, blocks: "gru", hidden: 8) end
    corpus = Path.join(folder(), "none.games")
    write = fn options -> Games.write(context, corpus, [], Map.merge(%{stored: true}, options)) end
    {:ok, _} = write.(%{})
    games = Games.open!(context, corpus)
    seer = Model.with_value!(model)
    alone = fn -> Trainer.create!(seer, Optimizer.create!(seer), nil) end
    valued = Trainer.create!(seer, Optimizer.create!(seer), prefetcher(seer, dataset))
    two = World.create!(context, "pong-two", lanes: 2)
    pong = Model.create!(context, spec: World.info!(two).spec, blocks: "mlp", hidden: 8, head_width: 8)
    short = %{games: 2, most_frames: 10}
    reward = fn options -> with :ok <- Dataset.put_rewards(dataset, 1, floats([1]), options), do: {:ok, nil} end
    wide = [spec: spec(), blocks: "mamba attention ffn", hidden: 8, head_width: 8]

    %{
      exphil_context_config: fn option, value -> Context.create(%{option => value}) end,
      exphil_model_config: fn option, value -> Model.create(context, Keyword.put(wide, option, value)) end,
      exphil_replay_config: fn option, value -> Dataset.add_replay_memory(melee, <<>>, %{option => value}) end,
      exphil_split_config: fn option, value ->
        pair(Dataset.split(dataset, Map.put(%{held_out: 0.5}, option, value)))
      end,
      exphil_sampling: fn option, value -> Prefetcher.create(dataset, %{option => value}) end,
      exphil_optimizer_config: fn option, value -> Optimizer.create(model, %{option => value}) end,
      exphil_head_loss: fn option, value -> Model.evaluate(model, dataset, losses: [%{}, %{option => value}]) end,
      exphil_trainer_config: fn option, value -> Trainer.create(model, optimizer.(), nil, %{option => value}) end,
      exphil_head_play: fn option, value -> Session.create(model, heads: [%{option => value}, %{}]) end,
      exphil_session_config: fn option, value -> Session.create(model, %{option => value}) end,
      exphil_melee_reward_config: fn option, value -> Melee.reward(frame(1), frame(2), %{option => value}) end,
      exphil_outcome_config: fn option, value -> Trainer.step_outcome(valued, %{option => value}) end,
      exphil_rollout_config: fn option, value ->
        Rollout.create(seer, %{if(option == :seed, do: :episode_seed, else: option) => value})
      end,
      exphil_learner_config: fn option, value -> Learner.create(alone.(), seer, %{option => value}) end,
      exphil_live_config: fn option, value -> LiveLearner.create(seer, %{option => value}) end,
      exphil_match_config: fn option, value -> Match.play(pong, pong, two, Map.merge(short, %{option => value})) end,
      rewards_in: fn option, value -> reward.(Map.merge(%{half_life_frames: 1}, %{option => value})) end,
      option: fn option, value -> Session.create(model, %{option => value}) end,
      exphil_slp_config: fn option, value -> Replay.read(context, <<>>, %{option => value}) end,
      exphil_games_config: fn option, value -> write.(%{option => value}) end,
      exphil_selection: fn option, value -> Dataset.add_games(melee, games, %{option => value}) end,
      evaluate_in: fn option, value -> Model.evaluate(model, dataset, %{option => value}) end,
      run_in: fn option, value -> Training.start(trainer(context), %{option => value}) end,
      head_in: fn option, value -> own.(%{layout: "l", codec: "c", floats: 1, heads: [head.(option, value)]}) end,
      id_in: fn option, value -> own.(%{spec() | ids: [id.(option, value)]}) end,
      spec_in: fn option, value -> own.(Map.put(spec(), option, value)) end,
      exphil_pad: fn option, value -> Melee.encode_pad(%{option => value}) end,
      exphil_melee_frame: fn option, value -> Melee.encode(with_own(%{}, %{option => value})) end,
      exphil_melee_character: fn option, value -> Melee.encode(with_own(%{option => value}, %{})) end,
      exphil_melee_item: fn option, value -> Melee.encode(with_own(%{}, %{items: [%{option => value}]})) end
    }
  end

  defp with_own(character, more), do: Map.merge(%{own_port: 1, players: %{1 => character}}, more)
  defp pair({:ok, {one, other}}), do: LibExphil.close(one) && {:ok, other}
  defp pair(error), do: error

  test "each is refused by its name where it is of another kind, does not fit, or means nothing" do
    count =
      for {struct, call} <- calls(), {option, type} <- options_of(struct), reduce: 0 do
        count ->
          for value <- unfit(type), not melee_float?(struct, type, value), do: refused!(call, option, value)

          for value <- negative(type),
              option not in @negative,
              do:
                if(struct == :exphil_replay_config,
                  do: harmless!(call, option, value),
                  else: refused!(call, option, value)
                )

          for value <- large(type), do: harmless!(call, option, value)
          count + 1
      end

    assert count > 130, "only #{count} options were found"
  end

  # Of a frame only what a layout shows is looked at.
  defp melee_float?(struct, type, value) do
    struct in [:exphil_melee_frame, :exphil_melee_character, :exphil_melee_item] and type == :T_F32 and
      value in [nil, :infinity]
  end

  test "every struct with options is among them" do
    read = ~r/read_(?:record|one_of)\([^,]+, [^&;]*&(\w+), /
    found = for [_, name] <- Regex.scan(read, sources()), uniq: true, do: name

    known =
      ~w(context_config option_map session_config model_config replay_config split_config sampling_config) ++
        ~w(optimizer_config trainer_config evaluate_map run_map slp_config spec_map spec_head spec_id melee_pad) ++
        ~w(melee_character melee_item frame_map head_comparison comparison_info games_config selection_config) ++
        ~w(rollout_config learner_config live_config match_config outcome_config reward_config rewards_map)

    assert Enum.sort(found) == Enum.sort(known)
    for {struct, _} <- calls(), do: assert(options_of(struct) != [], "#{struct} has no options")
  end

  test "counts of a training" do
    trainer = trainer(context())

    for option <- [:updates, :progress_every, :evaluate_every, :save_every, :skip_limit], value <- [-1, -(1 <<< 63)] do
      assert {:error, %Error{status: :invalid, message: said}} = Training.start(trainer, %{option => value})
      assert said == "training: #{option}: #{value} is below 0"
    end

    assert {:ok, %{update: 1}} = Trainer.step(trainer)
  end

  test "numbers of an agent" do
    model = model(context())

    for {option, values} <- [rollback: [-1, 3601, 1 <<< 70], hz: [0, -1, 1001, 1 <<< 70], first: []],
        value <- values ++ [1.5, 1.0, :a, "1", nil, true] do
      assert {:error, %Error{status: :invalid, message: said}} = Agent.start_link([{:model, model}, {option, value}])
      assert said == "agent: #{inspect(option)} cannot be #{inspect(value)}"
    end

    {:ok, agent} = Agent.start_link(model: model, rollback: 3600, hz: 1000, first: -(1 <<< 70))
    row = {floats([0, 0, 0, 0]), ints([0])}

    for number <- [1.5, 1.0, :a, "1", nil] do
      assert {:error, %Error{status: :invalid, message: said}} = Agent.frame(agent, number, row)
      assert said == "agent: the number of a frame cannot be #{inspect(number)}"
      assert Agent.pad(agent, number) == nil
    end

    assert {:ok, _} = Agent.frame(agent, 1 <<< 70, row)
  end

  test "numbers that are no options" do
    context = context()
    model = model(context)
    dataset = dataset(context)
    session = Session.create!(model)
    prefetcher = prefetcher(model, dataset)
    live = Live.create!(context)
    {floats, ids, actions} = Dataset.frame!(dataset, 0)
    [world, two] = for name <- ["cartpole", "pong-two"], do: World.create!(context, name)
    pong = Model.create!(context, spec: World.info!(two).spec, blocks: "mlp", hidden: 8)
    rollout = Rollout.create!(Model.with_value!(model))
    state = Session.save_state!(session)

    for {name, call} <- [
          game: &Dataset.add_rows(dataset, &1, 1, floats, ids, actions),
          frames: &Dataset.add_rows(dataset, 1, &1, floats, ids, actions),
          index: &Dataset.episode(dataset, &1),
          index: &Dataset.frame(dataset, &1),
          epoch: &Prefetcher.seek(prefetcher, &1, 0),
          index: &Prefetcher.seek(prefetcher, 0, &1),
          batch: &Model.compare(model, model, dataset, &1),
          batch: &Model.evaluate(model, dataset, batch: &1),
          frequencies: &Model.evaluate(model, dataset, frequencies: &1),
          frequencies: &Trainer.evaluate(trainer(context), dataset, frequencies: &1),
          which: &Trainer.evaluate(trainer(context), dataset, which: &1),
          which: &Trainer.model(trainer(context), &1),
          evaluate: &Training.start(trainer(context), evaluate: &1),
          owner: &Training.start(trainer(context), owner: &1),
          log: &Context.create(log: &1),
          type: &Model.quantize(model, &1),
          value: &Model.with_value(model, &1),
          seed: &Model.with_value(model, :shared, &1),
          lanes: &World.create(context, "pong", lanes: &1),
          lane: &World.reset(world, &1, 1),
          seed: &World.reset(world, 0, &1),
          lane: &World.save(world, &1),
          index: &World.opponent(world, &1),
          seed: &World.against(two, [pong], seed: &1),
          first_stream: &Rollout.block_take(rollout, <<>>, first_stream: &1),
          weights: &Rollout.block_take(rollout, <<>>, weights: &1),
          stream: &Session.value(session, &1),
          game: &Dataset.put_rewards(dataset, &1, floats, half_life_frames: 1),
          stream: &Session.reset(session, &1),
          stream: &Session.logits(session, &1),
          stream: &Session.save_state(session, &1),
          stream: &Session.restore_state(session, state, &1),
          stream: &Session.override(session, actions, &1),
          port: &Live.player(live, &1),
          follower: &Live.player(live, 1, &1),
          own_port: &Live.melee_frame(live, &1),
          opponent_port: &Live.melee_frame(live, 1, &1),
          players: &Melee.pack(%{players: %{&1 => %{}}}),
          players: &Melee.pack(%{players: &1}),
          items: &Melee.pack(%{items: &1})
        ],
        value <- [1.5, 1.0, :nothing, "1", {1, 2}, 1 <<< 70, -(1 <<< 70)] do
      refused!(fn _, value -> call.(value) end, name, value)
    end

    for wrong <- [1.5, :a, nil, 1 <<< 40],
        name <- [&Melee.character_name/1, &Melee.stage_name/1],
        do: assert_raise(ArgumentError, fn -> name.(wrong) end)
  end
end
