//! What the Rust package of an earlier release gets from a library: one line a result, the same from every library.
//! old REPLAY

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
    let sum = Sum::new().and(sampling).and(batch).and(still(own.step_batch(&batch)?));
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
    eprintln!("exphil {} on {}", env!("CARGO_PKG_VERSION"), version_string());
    Ok(())
}
