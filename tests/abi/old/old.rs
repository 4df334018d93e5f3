//! What the Rust package of an earlier release gets from a library: one line a result, the same from every library.
//! old REPLAY

// Set by tests/hosts/old.sh for packages that have what 0.2 added.
#![allow(unknown_lints, unexpected_cfgs)]

use exphil::*;
use std::fmt::Debug;

/// FNV-1a over results as Rust writes them; floats are written so that they read back to the same bits.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Sum {
    fn new() -> Sum {
        Sum(14695981039346656037)
    }

    fn and(self, value: impl Debug) -> Sum {
        Sum(format!("{:?}", value)
            .bytes()
            .fold(self.0, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(1099511628211)))
    }

    fn say(self, what: &str) {
        println!("{:12} {:016x}", what, self.0);
    }
}

/// Adds all gradients of one rank up.
struct Alone(f64);

impl Communicator for Alone {
    fn rank(&self) -> i32 {
        0
    }

    fn ranks(&self) -> i32 {
        1
    }

    fn all_reduce(&mut self, numbers: Numbers<'_>) -> std::result::Result<(), i32> {
        if let Numbers::F32(values) = numbers {
            self.0 += values.iter().map(|&value| f64::from(value)).sum::<f64>();
        }
        Ok(())
    }
}

fn spec() -> Spec {
    Spec::new("old", "old")
        .floats(2)
        .id("kind", 4, 0)
        .head(HeadSpec::categorical("move", 3).neutral(1))
        .head(HeadSpec::bernoulli("button", 2))
}

/// A ball and the paddle that follows it, in numbers that are exact.
fn rows(game: usize) -> (Vec<f32>, Vec<i32>, Vec<i32>) {
    let (mut floats, mut ids, mut actions, mut paddle) = (Vec::new(), Vec::new(), Vec::new(), 0.0f32);
    for t in 0..100 {
        let ball = ((t * 3 + game * 5) % 17) as f32 / 8.0 - 1.0;
        let way = if ball < paddle {
            0
        } else if ball > paddle {
            2
        } else {
            1
        };
        floats.extend_from_slice(&[ball, paddle]);
        ids.push(game as i32 % 4);
        actions.extend_from_slice(&[way, t as i32 & 3]);
        paddle += 0.125 * (way - 1) as f32;
    }
    (floats, ids, actions)
}

fn still(mut metrics: Metrics) -> Metrics {
    metrics.time_ns = 0;
    metrics.waited_ns = 0;
    metrics
}

/// Rows, training by hand and from the prefetcher.
fn train(context: &Context) -> Result<(Model, Dataset)> {
    let mut data = Dataset::new(context, Some(&spec()))?;
    for game in 0..8 {
        let (floats, ids, actions) = rows(game);
        data.add_rows(game as u64, &floats, &ids, &actions)?;
    }
    let (kept, held) = data.split(Held::Games(0.25, 3))?;
    Sum::new().and(data.info()?).and(data.spec()?).and(kept.info()?).and(data.episode(5)?).say("dataset");
    let blocks = Some("gru".to_string());
    let config = ModelConfig { spec: Some(spec()), blocks, hidden: 16, head_width: 16, seed: 1, ..Default::default() };
    let model = Model::create(context, &config)?;
    let sampling = Sampling { batch: 4, time: 20, ..model.sampling()? };
    let rates = OptimizerConfig { rate: 1e-2, ..Default::default() };

    let mut source = Prefetcher::new(&kept, &sampling)?;
    let optimizer = Optimizer::new(&model, &rates)?;
    let mut own = Trainer::new(&model, &optimizer, None, &TrainerConfig::default())?;
    let batch = source.next_batch()?.expect("a batch");
    let sum = Sum::new().and(&sampling).and(batch).and(still(own.step_batch(&batch)?));
    sum.and(source.info()?.batches_per_epoch).say("by hand");

    let optimizer = Optimizer::new(&model, &rates)?;
    let losses = vec![HeadLoss { smoothing: 0.1, ..Default::default() }, HeadLoss::default()];
    let how = TrainerConfig { losses, ..Default::default() };
    let mut trainer =
        Trainer::with_communicator(&model, &optimizer, Some(Prefetcher::new(&kept, &sampling)?), &how, Alone(0.0))?;
    let mut sum = Sum::new();
    for _ in 0..30 {
        sum = sum.and(still(trainer.step()?));
    }
    sum.and(trainer.evaluate(Weights::Latest, &held, Some(&kept))?).and(optimizer.info()?).say("trained");
    Ok((trainer.model(Weights::Latest)?, held))
}

/// Weights, fewer bits, play and rollback.
fn play(context: &Context, trained: &Model, held: &Dataset) -> Result<()> {
    let mut sum = Sum::new().and(trained.info()?).and(trained.spec()?);
    for tensor in trained.tensors()? {
        sum = sum.and(&tensor).and(trained.tensor::<f32>(&tensor.name)?);
    }
    sum.say("weights");
    let mut small = trained.quantize(Type::I8)?;
    let comparison = compare(trained, &small, held, 0)?;
    small.set_calibration(&comparison)?;
    Sum::new().and(&comparison).and(small.calibration()?).and(evaluate(trained, held, None, &[], 0)?).say("quantised");
    let heads = vec![HeadPlay { temperature: 0.5, ..Default::default() }, HeadPlay::default()];
    let how = SessionConfig {
        heads,
        spec: Some(spec()),
        delay_frames: Some(0),
        mode: Some(Mode::Carry),
        seed: 5,
        streams: 2,
        ..Default::default()
    };
    let mut session = Session::new(trained, &how)?;
    let (floats, ids, _) = rows(9);
    let (mut actions, mut logits, mut sum) = ([0; 4], [0.0; 5], Sum::new());
    for (row, id) in floats.chunks(2).zip(ids) {
        session.step_row(&[row[0], row[1], row[1], row[0]], &[id, id], &mut actions)?;
        session.logits(1, &mut logits)?;
        sum = sum.and(actions).and(logits);
    }
    let mut state = vec![0; session.state_size()];
    session.save_state(1, &mut state)?;
    let info = session.info()?;
    sum.and(state).and((info.steps, info.float_count, info.logit_count)).say("played");
    let error = Model::load(context, "nowhere.safetensors").unwrap_err();
    Sum::new().and(error.status()).and(error.to_string()).say("refused");
    Ok(())
}

/// The layout, a replay whole and as a stream, rows of it, and play.
fn melee(context: &Context, path: &str) -> std::result::Result<(), Box<dyn std::error::Error>> {
    Sum::new().and(melee::spec(None, None)?).and(melee::fields(None)?).say("layout");
    let bytes = std::fs::read(path)?;
    let replay = Replay::open(context, path, Rollback::First)?;
    let mut sum = Sum::new().and(replay.info()?);
    let mut frames = Vec::new();
    for at in (0..replay.len()).step_by(7) {
        frames.push(replay.melee_frame(at, 1, 2)?);
    }
    let spec = melee::spec(None, None)?;
    let (mut floats, mut ids) = (vec![0.0; spec.float_count], vec![0; spec.ids.len()]);
    melee::Encoder::new(None, None)?.frame(&frames[9], &mut floats, &mut ids)?;
    sum = sum.and(&frames).and(floats).and(ids);
    sum.say("replay");
    let (mut stream, mut at, mut sum) = (SlpStream::new(context)?, 0, Sum::new());
    while let Push::Frame(used) = stream.push(&bytes[at..])? {
        at += used;
        sum = sum.and(stream.melee_frame(1, 0)?);
    }
    sum.and(stream.info()?).say("stream");
    let mut data = Dataset::new(context, None)?;
    let added = data.add_replay(path, &ReplayConfig { port: 1, ..Default::default() })?;
    Sum::new().and(added).and(data.info()?).and(data.episode(0)?).say("imported");
    let config = ModelConfig { blocks: Some("mlp".to_string()), hidden: 8, head_width: 8, ..Default::default() };
    let model = Model::create(context, &config)?;
    let mut session = Session::new(&model, &SessionConfig { streams: 2, deterministic: true, ..Default::default() })?;
    let (mut pads, mut sum) = ([melee::Pad::default(); 2], Sum::new());
    for frame in &frames[9..20] {
        let mut other = *frame;
        other.player[0].x += 20.0;
        session.step(&[*frame, other], &mut pads)?;
        sum = sum.and(pads);
    }
    sum.say("pads");
    Ok(())
}

/// What the packages of 0.2 added.
#[cfg(exphil_0_2)]
mod since_0_2 {
    use super::*;
    use std::path::Path;

    type Done = std::result::Result<(), Box<dyn std::error::Error>>;

    /// A ball and a player; where they meet is a point. Twelve frames.
    #[derive(Default)]
    struct Catch {
        ball: f32,
        own: f32,
        frame: u32,
    }

    fn catch_spec() -> Spec {
        Spec::new("catch", "catch").floats(2).head(HeadSpec::categorical("move", 3).neutral(1))
    }

    impl Game for Catch {
        fn reset(&mut self, seed: u64, floats: &mut [f32], _: &mut [i32]) -> Played<()> {
            self.ball = (seed % 17) as f32 / 8.0 - 1.0;
            self.own = (seed % 9) as f32 / 4.0 - 1.0;
            self.frame = 0;
            floats.copy_from_slice(&[self.ball, self.own]);
            Ok(())
        }

        fn step(&mut self, actions: &[i32], floats: &mut [f32], _: &mut [i32], reward: &mut [f32]) -> Played<End> {
            self.own += 0.125 * (actions[0] - 1) as f32;
            self.frame += 1;
            reward[0] = f32::from(u8::from((self.ball - self.own).abs() < 0.25));
            floats.copy_from_slice(&[self.ball, self.own]);
            Ok(if self.frame < 12 { End::GoesOn } else { End::Over })
        }

        fn state_bytes(&self) -> usize {
            12
        }

        fn save(&self, state: &mut [u8]) -> Played<()> {
            for (to, bits) in state.chunks_mut(4).zip([self.ball.to_bits(), self.own.to_bits(), self.frame]) {
                to.copy_from_slice(&bits.to_le_bytes());
            }
            Ok(())
        }

        fn load(&mut self, state: &[u8]) -> Played<()> {
            let bits = |at: usize| u32::from_le_bytes([state[at], state[at + 1], state[at + 2], state[at + 3]]);
            self.ball = f32::from_bits(bits(0));
            self.own = f32::from_bits(bits(4));
            self.frame = bits(8);
            Ok(())
        }
    }

    fn learnable(context: &Context, spec: &Spec, seed: u64) -> Result<Model> {
        let config = ModelConfig {
            spec: Some(spec.clone()),
            blocks: Some("gru".to_string()),
            hidden: 8,
            head_width: 8,
            no_previous_action: true,
            neutral_start: true,
            value: Value::Shared,
            seed,
            ..Default::default()
        };
        Model::create(context, &config)
    }

    fn rates() -> OptimizerConfig {
        OptimizerConfig { rate: 1e-2, ..Default::default() }
    }

    fn data(context: &Context) -> Result<Dataset> {
        let mut data = Dataset::new(context, Some(&spec()))?;
        for game in 0..4 {
            let (floats, ids, actions) = rows(game);
            data.add_rows(game as u64, &floats, &ids, &actions)?;
        }
        Ok(data)
    }

    /// Conditions and several delays: training, evaluation and play.
    fn told(context: &Context) -> Done {
        let mut data = data(context)?;
        for game in 0..4 {
            data.condition("rank", game, 0, game as i32 % 4)?;
        }
        data.condition_episodes("style", 1..3, 2)?;
        let condition = |name: &str, values, mask| Condition { name: name.to_string(), values, width: 0, mask };
        let config = ModelConfig {
            spec: Some(spec()),
            blocks: Some("gru".to_string()),
            hidden: 8,
            head_width: 8,
            neutral_start: true,
            conditions: vec![condition("rank", 3, 0.25), condition("style", 2, 0.0)],
            delays: vec![0, 2],
            ..Default::default()
        };
        let model = Model::create(context, &config)?;
        let sampling = Sampling { batch: 4, time: 20, drop_past: 0.25, ..model.sampling()? };
        let how = TrainerConfig { own_past: 0.5, ..Default::default() };
        let optimizer = Optimizer::new(&model, &rates())?;
        let mut trainer = Trainer::new(&model, &optimizer, Some(Prefetcher::new(&data, &sampling)?), &how)?;
        let mut sum = Sum::new();
        for _ in 0..8 {
            sum = sum.and(still(trainer.step()?));
        }
        let trained = trainer.model(Weights::Latest)?;
        let how = Evaluation { conditions: Some(&[3, 1]), delay_frames: Some(2), alone: 50, ..Default::default() };
        let config =
            SessionConfig { seed: 5, delay_frames: Some(2), conditions: vec![1, 0], ..SessionConfig::default() };
        sum.and(trained.info()?).and(evaluate_as(&trained, &data, &how)?).say("told");
        let (mut session, mut actions, mut sum) = (Session::new(&trained, &config)?, [0; 2], Sum::new());
        let (floats, ids, _) = rows(9);
        for (t, (row, id)) in floats.chunks(2).zip(ids).enumerate() {
            if t == 50 {
                session.set_conditions_all(&[0, 2])?;
            }
            session.step_row(row, &[id], &mut actions)?;
            sum = sum.and(actions);
        }
        sum.say("told play");
        Ok(())
    }

    /// Rewards, outcome-weighted imitation, new weights at play.
    fn outcome(context: &Context) -> Done {
        let mut data = data(context)?;
        for game in 0..4 {
            let rewards: Vec<f32> = rows(game).2.chunks(2).map(|action| (action[0] - 1) as f32).collect();
            data.rewards_set(game as u64, 0, 0, &rewards, true, 10.0)?;
        }
        let model = learnable(context, &spec(), 1)?;
        let sampling = Sampling { batch: 4, time: 20, ..model.sampling()? };
        let optimizer = Optimizer::new(&model, &rates())?;
        let source = Some(Prefetcher::new(&data, &sampling)?);
        let mut trainer = Trainer::new(&model, &optimizer, source, &TrainerConfig::default())?;
        let mut sum = Sum::new();
        for _ in 0..6 {
            let metrics = trainer.step_outcome(&OutcomeConfig { beta: 0.5, warm_up: 2, ..Default::default() })?;
            assert!(metrics.known > 0, "{:?}", metrics);
            sum = sum.and(metrics);
        }
        let then = trainer.model(Weights::Latest)?;
        sum.and(trainer.evaluate(Weights::Latest, &data, None)?).and(then.info()?).say("outcome");
        then.prepare()?;
        let mut session = Session::new(&model, &SessionConfig { adoptable: true, ..Default::default() })?;
        let (floats, ids, _) = rows(9);
        let (mut actions, mut sum) = ([0; 2], Sum::new());
        for (t, (row, id)) in floats.chunks(2).zip(ids).enumerate() {
            if t == 50 {
                session.adopt(&then)?;
            }
            session.step_row(row, &[id], &mut actions)?;
            sum = sum.and(actions).and(session.value(0)?);
        }
        sum.and(session.info()?.adoptions).say("adopted");
        Ok(())
    }

    fn parts(context: &Context) -> Result<(World, Rollout, Learner)> {
        let games = (0..4).map(|_| Catch::default()).collect();
        let model = learnable(context, &catch_spec(), 1)?;
        let how = TrainerConfig { as_played: true, ..Default::default() };
        let trainer = Trainer::new(&model, &Optimizer::new(&model, &rates())?, None, &how)?;
        let session = SessionConfig { streams: 4, seed: 6, ..Default::default() };
        let rollout = Rollout::new(&model, &session, &RolloutConfig { time: 24, seed: 7 })?;
        let config = LearnerConfig { to_teacher: 0.05, epochs: 2, half_life_frames: 8.0, ..Default::default() };
        let learner = Learner::new(trainer, Some(&model), &config)?;
        Ok((World::of(context, &catch_spec(), 1, games)?, rollout, learner))
    }

    /// A learner and its checkpoint, a block, a match, a world with opponents.
    fn learn(context: &Context, folder: &Path) -> Done {
        let path = folder.join("old.learnt");
        let (mut world, mut rollout, mut learner) = parts(context)?;
        let mut told = Vec::new();
        for chunk in 0..4 {
            rollout.run(&mut world)?;
            told.push(learner.update(&mut rollout)?);
            if chunk == 1 {
                learner.save(&rollout, Some(&world), &path)?;
            }
        }
        assert!(told[3].chunks == 4 && told[3].recomputed == 0.0);
        Sum::new().and(&told).and(learner.trainer().model(Weights::Latest)?.info()?).say("learnt");
        let (mut again, mut other, mut pupil) = parts(context)?;
        pupil.resume(&mut other, Some(&mut again), &path)?;
        for metrics in &told[2..] {
            other.run(&mut again)?;
            assert_eq!(&pupil.update(&mut other)?, metrics);
        }
        rollout.run(&mut world)?;
        let mut block = vec![0; rollout.block_size()];
        rollout.block_save(&mut block)?;
        assert!(other.block_take(0, BlockWeights::Current, &block)?);
        Sum::new().and(BlockInfo::query(&block)?).and(pupil.update(&mut other)?).say("blocks");
        let mut pong = World::create(context, "pong-two", 4)?;
        let (a, b) = (learnable(context, pong.spec(), 1)?, learnable(context, pong.spec(), 2)?);
        let config = MatchConfig { games: 4, points: 1.0, most_frames: 400, seed: 8, ..Default::default() };
        Sum::new().and(match_policies(&a, &b, &mut pong, &config)?).say("match");
        let mut against = pong.against(&[&a, &b], 9)?;
        let session = SessionConfig { streams: 4, ..Default::default() };
        let mut rollout = Rollout::new(&a, &session, &RolloutConfig { time: 64, seed: 1 })?;
        rollout.run(&mut against)?;
        let mut block = vec![0; rollout.block_size()];
        rollout.block_save(&mut block)?;
        Sum::new().and(block).and(against.opponent(0, None)?).and(against.opponent(1, Some(&a))?).say("against");
        Ok(())
    }

    /// A person takes over, and is learnt from behind the game; new weights enter where it settles.
    fn live(context: &Context) -> Done {
        let model = learnable(context, &spec(), 1)?;
        let sampling = Sampling { batch: 4, time: 20, ..model.sampling()? };
        let optimizer = rates();
        let config = LiveConfig {
            piece_frames: 40,
            updates: 4,
            seed: 7,
            paced: true,
            optimizer,
            sampling: Some(sampling),
            ..Default::default()
        };
        let mut live = Live::new(&model, config)?;
        let (floats, ids, actions) = rows(5);
        let (mut pressed, mut sum) = ([0; 2], Sum::new());
        for t in 0..100 {
            let person = if t % 40 < 20 { Some(&actions[2 * t..2 * t + 2]) } else { None };
            live.step_row(&floats[2 * t..2 * t + 2], &ids[t..t + 1], person, &mut pressed)?;
            sum = sum.and(pressed);
            if t % 50 == 49 {
                live.settle()?;
            }
        }
        let info = live.info()?;
        assert!(info.person == 60 && info.updates > 0 && info.dropped == 0, "{:?}", info);
        sum.and(info).and(live.model()?.info()?).say("live");
        Ok(())
    }

    /// A corpus of games: written, read, rows of it; what a frame is worth.
    fn games(context: &Context, replay: &str, folder: &Path) -> Done {
        let path = folder.join("old.games");
        let mut writer = GamesWriter::create(context, &path, &GamesConfig { stored: true, ..Default::default() })?;
        let added = writer.add(replay)?;
        let info = writer.finish()?;
        let games = Games::open(context, &path)?;
        games.verify()?;
        let mut data = Dataset::new(context, None)?;
        let report = data.add_games(&games, &Selection { port: 1, ..Default::default() })?;
        assert_eq!(report.taken, 1);
        let sum = Sum::new().and(added).and(info).and(games.info()?).and(games.game(0)?).and(report).and(data.info()?);
        sum.and(games.read(0)?.info()?).say("games");
        let replay = Replay::open(context, replay, Rollback::Last)?;
        let rows = replay.rows(None, None, &ReplayConfig { port: 1, ..Default::default() })?;
        let mut sum = Sum::new().and(replay.info()?).and(rows.floats).and(rows.actions);
        let config = melee::RewardConfig { approach: 0.1, ..Default::default() };
        for at in 200..240 {
            let (before, now) = (replay.melee_frame(at, 1, 2)?, replay.melee_frame(at + 1, 1, 2)?);
            sum = sum.and(melee::reward(&config, &before, &now)?);
        }
        sum.say("worth");
        Ok(())
    }

    pub fn all(context: &Context, replay: &str) -> Done {
        let folder = std::env::temp_dir().join(format!("exphil-old-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        told(context)?;
        outcome(context)?;
        learn(context, &folder)?;
        live(context)?;
        games(context, replay, &folder)?;
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("old REPLAY")?;
    let context = Context::builder()
        .threads(1)
        .log(LogLevel::Debug, |_, line| assert!(!line.is_empty()))
        .cancel(|| false)
        .build()?;
    context.memory()?;
    Sum::new().and(context.device()?).and(devices()?.first()).say("device");
    let (trained, held) = train(&context)?;
    play(&context, &trained, &held)?;
    melee(&context, &path)?;
    #[cfg(exphil_0_2)]
    since_0_2::all(&context, &path)?;
    eprintln!("exphil {} on {}", env!("CARGO_PKG_VERSION"), version_string());
    Ok(())
}
