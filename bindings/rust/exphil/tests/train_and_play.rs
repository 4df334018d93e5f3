//! A policy is trained, judged, saved, resumed, quantised and played.

mod pong;

use exphil::*;
use pong::{context, Scratch};
use std::sync::mpsc::{channel, Receiver, Sender};

#[test]
fn training_lowers_the_loss() {
    let context = context();
    let mut trainer = pong::trainer(&context);
    let losses: Vec<f64> = trainer.updates(60).map(|metrics| metrics.unwrap().loss).collect();
    assert_eq!(losses.len(), 60);
    assert!(losses[59] < 0.5 * losses[0], "{:?}", losses);
    let held = pong::dataset(&context);
    let report = trainer.evaluate(Weights::Averaged, &held, None).unwrap();
    assert_eq!(report.heads.len(), 2);
    assert!(report.exact_accuracy > report.exact_majority, "{:?}", report);
    let trained = trainer.model(Weights::Latest).unwrap();
    assert_eq!(trained.info().unwrap().trained_updates, 60);
    assert!(trainer.prefetcher().unwrap().info().unwrap().delivered >= 60);
    let judged = evaluate(&trained, &held, None, &[], 0).unwrap();
    assert_eq!(judged.nll, trainer.evaluate(Weights::Latest, &held, None).unwrap().nll);
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let (context, file) = (context(), Scratch::new("resume"));
    let mut straight = pong::trainer(&context);
    straight.updates(10).for_each(|metrics| assert!(metrics.unwrap().loss > 0.0));
    let mut first = pong::trainer(&context);
    first.updates(5).for_each(|metrics| assert!(metrics.unwrap().loss > 0.0));
    first.save(file.path()).unwrap();
    let mut second = pong::trainer(&context);
    second.resume(file.path()).unwrap();
    second.updates(5).for_each(|metrics| assert!(metrics.unwrap().loss > 0.0));
    let hash = |trainer: &Trainer| trainer.model(Weights::Latest).unwrap().info().unwrap().weights_hash;
    assert_eq!(hash(&straight), hash(&second));
    assert_ne!(hash(&straight), hash(&first));
}

#[test]
fn batches_of_the_host_train_the_same() {
    let context = context();
    let model = pong::model(&context);
    let mut source = pong::prefetcher(&model, &pong::dataset(&context));
    let optimizer =
        Optimizer::new(&model, &OptimizerConfig { rate: 1e-2, ema_decay: 0.9, ..Default::default() }).unwrap();
    let mut own = Trainer::new(&model, &optimizer, None, &TrainerConfig::default()).unwrap();
    let mut other = pong::trainer(&context);
    for _ in 0..5 {
        let batch = source.next_batch().unwrap().unwrap();
        assert_eq!(batch.floats.len(), batch.batch * batch.time * 3);
        assert_eq!(own.step_batch(&batch).unwrap().loss, other.step().unwrap().loss);
    }
    assert_eq!(optimizer.info().unwrap().updates, 5);
    assert_eq!(own.step().unwrap_err().status(), Status::State);
}

#[test]
fn rollback_is_a_copy() {
    let model = pong::model(&context());
    let mut session = Session::new(&model, &SessionConfig { seed: 5, ..Default::default() }).unwrap();
    let mut actions = [0; 2];
    let mut play = |session: &mut Session, from: usize| -> Vec<[i32; 2]> {
        let step = |t| {
            let (floats, ids, _) = pong::row(t);
            session.step_row(&floats, &ids, &mut actions).unwrap();
            actions
        };
        (from..from + 50).map(step).collect()
    };
    play(&mut session, 0);
    let mut state = vec![0; session.state_size()];
    session.save_state(0, &mut state).unwrap();
    let mut twin = session.try_clone().unwrap();
    let once = play(&mut session, 50);
    session.restore_state(0, &state).unwrap();
    assert_eq!(once, play(&mut session, 50));
    assert_eq!(once, play(&mut twin, 50));
    assert_eq!(session.info().unwrap().steps, 150);
    state[9] ^= 0xff;
    assert!(session.restore_state(0, &state).is_err());
}

#[test]
fn streams_play_side_by_side() {
    let model = pong::model(&context());
    let config = SessionConfig { streams: 3, deterministic: true, ..Default::default() };
    let mut three = Session::new(&model, &config).unwrap();
    let mut one = Session::new(&model, &SessionConfig { streams: 1, ..config }).unwrap();
    let (mut actions, mut alone) = ([0; 6], [0; 2]);
    for t in 0..20 {
        let (floats, ids, _) = pong::row(t);
        three.step_row(&floats.repeat(3), &ids.repeat(3), &mut actions).unwrap();
        one.step_row(&floats, &ids, &mut alone).unwrap();
        assert!(actions.chunks(2).all(|action| action == alone));
    }
    three.override_action(2, &[1, 0]).unwrap();
    three.reset(1).unwrap();
    let (mut logits, noise) = ([0.0; 5], [0.5; 15]);
    three.logits(2, &mut logits).unwrap();
    assert!(logits.iter().all(|logit| logit.is_finite()));
    three.step_row_with(&[0.0; 9], &[0; 3], &noise, &mut actions).unwrap();
}

#[test]
fn weights_come_out_and_go_in() {
    let (context, file) = (context(), Scratch::new("weights"));
    let mut model = pong::model(&context);
    let info = model.info().unwrap();
    let tensors = model.tensors().unwrap();
    assert_eq!(tensors.len(), info.tensor_count);
    let sum: usize = tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
    assert_eq!(sum, info.parameter_count);
    let name = &tensors[0].name;
    let mut data: Vec<f32> = model.tensor(name).unwrap();
    data[0] += 1.0;
    model.set_tensor(name, &data).unwrap();
    assert_eq!(model.tensor::<f32>(name).unwrap(), data);
    assert_ne!(model.info().unwrap().weights_hash, info.weights_hash);
    model.save(file.path()).unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    let loaded = Model::load_memory(&context, &bytes).unwrap();
    assert_eq!(loaded.info().unwrap(), Model::load(&context, file.path()).unwrap().info().unwrap());
    assert_eq!(loaded.spec().unwrap().hash(), pong::spec().hash());
    assert_eq!(loaded.info().unwrap().blocks, "gru mlp");
}

#[test]
fn quantised_models_carry_their_comparison() {
    let context = context();
    let (model, dataset) = (pong::model(&context), pong::dataset(&context));
    let mut small = model.quantize(Type::I8).unwrap();
    let comparison = compare(&model, &small, &dataset, 0).unwrap();
    assert_eq!((comparison.frames, comparison.heads.len()), (800, 2));
    assert!(comparison.agreement > 0.5 && comparison.max_error > 0.0);
    assert_eq!(small.calibration().unwrap_err().status(), Status::State);
    small.set_calibration(&comparison).unwrap();
    assert_eq!(small.calibration().unwrap(), comparison);
    assert_eq!(small.quantize(Type::Bf16).unwrap_err().status(), Status::State);
}

#[test]
fn corpora_are_saved_opened_and_split() {
    let (context, file) = (context(), Scratch::new("corpus"));
    let dataset = pong::dataset(&context);
    dataset.save(file.path()).unwrap();
    let opened = Dataset::open(&context, file.path()).unwrap();
    opened.verify().unwrap();
    assert_eq!(opened.info().unwrap(), dataset.info().unwrap());
    assert_eq!(opened.spec().unwrap().heads, pong::spec().heads);
    let (mut floats, mut ids, mut action) = ([0.0; 3], [0; 1], [0; 2]);
    opened.frame(203, &mut floats, &mut ids, &mut action).unwrap();
    assert_eq!((floats, ids, action), pong::row(10));
    let (kept, held) = opened.split(Held::Games(0.25, 1)).unwrap();
    assert_eq!((kept.info().unwrap().games, held.info().unwrap().games), (3, 1));
    let (kept, held) = opened.split(Held::Time(0.5)).unwrap();
    assert_eq!(kept.info().unwrap().frames + held.info().unwrap().frames, 800);
    assert_eq!(opened.episode(1).unwrap().first, 200);
}

/// Two ranks in two threads: the first adds both halves up and sends the sum back.
struct Pair {
    rank: i32,
    to: Sender<Vec<f64>>,
    from: Receiver<Vec<f64>>,
}

impl Communicator for Pair {
    fn rank(&self) -> i32 {
        self.rank
    }
    fn ranks(&self) -> i32 {
        2
    }
    fn all_reduce(&mut self, numbers: Numbers<'_>) -> std::result::Result<(), i32> {
        let wide = match &numbers {
            Numbers::F32(own) => own.iter().map(|&number| f64::from(number)).collect(),
            Numbers::F64(own) => own.to_vec(),
        };
        self.to.send(wide).map_err(|_| 2)?;
        let other = self.from.recv().map_err(|_| 3)?;
        // two numbers: the order of ranks does not matter
        match numbers {
            Numbers::F32(own) => own.iter_mut().zip(other).for_each(|(own, other)| *own += other as f32),
            Numbers::F64(own) => own.iter_mut().zip(other).for_each(|(own, other)| *own += other),
        }
        Ok(())
    }
}

fn rank(pair: Pair) -> u64 {
    let context = context();
    let model = pong::model(&context);
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let (first_lane, lane_count) = rank_lanes(5, pair.rank, 2).unwrap();
    let sampling = Sampling { batch: 5, time: 20, first_lane, lane_count, ..model.sampling().unwrap() };
    let prefetcher = Prefetcher::new(&pong::dataset(&context), &sampling).unwrap();
    let config = TrainerConfig { reduction: Reduction::Sums, ..Default::default() };
    let mut agreed = [f64::from(pair.rank), 3.0];
    let mut trainer = Trainer::with_communicator(&model, &optimizer, Some(prefetcher), &config, pair).unwrap();
    trainer.agree(&mut agreed).unwrap();
    assert_eq!(agreed, [1.0, 3.0]);
    trainer.updates(5).for_each(|metrics| assert!(metrics.unwrap().loss > 0.0));
    let hash = trainer.model(Weights::Latest).unwrap().info().unwrap().weights_hash;
    let all = Sampling { first_lane: 0, lane_count: 5, ..sampling };
    trainer.go_on_alone(Prefetcher::new(&pong::dataset(&context), &all).unwrap()).unwrap();
    assert_eq!(trainer.step().unwrap().update, 6);
    hash
}

#[test]
fn ranks_agree_on_every_bit() {
    let ((to, there), (back, from)) = (channel(), channel());
    let other = std::thread::spawn(move || rank(Pair { rank: 1, to: back, from: there }));
    let own = rank(Pair { rank: 0, to, from });
    assert_eq!(own, other.join().unwrap());
}
