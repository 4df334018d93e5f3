//! Losses of the host's own, imitation weighted by outcomes, rewards of Melee, and new weights for a session at play.

mod play;
mod pong;

use exphil::*;
use play::{fails, Catch};

fn batch(past: &[i32]) -> Batch<'_> {
    Batch {
        batch: 2,
        time: 2,
        floats: &[0.5, 0.1, 0.0, -0.5, 0.1, 0.2, 0.3, 0.3, 0.3, 0.0, -0.2, 0.9],
        past,
        actions: &[0, 1, 2, 1],
        mask: &[1.0; 4],
        reset: &[1, 0, 1, 0],
        ..Default::default()
    }
}

/// Mean negative log-likelihood of the actions, and its gradient.
fn cross_entropy(logits: &[f32], actions: &[i32]) -> (f64, Vec<f32>) {
    let (mut loss, mut gradient) = (0.0, Vec::new());
    for (row, &action) in logits.chunks(3).zip(actions) {
        let sum: f32 = row.iter().map(|logit| logit.exp()).sum();
        for (class, logit) in row.iter().enumerate() {
            gradient.push((logit.exp() / sum - f32::from(u8::from(class == action as usize))) / actions.len() as f32);
        }
        loss -= f64::from((row[action as usize].exp() / sum).ln()) / actions.len() as f64;
    }
    (loss, gradient)
}

#[test]
fn a_loss_of_ones_own_is_followed() {
    let context = Context::new().unwrap();
    let policy = play::model(&context, &Catch::spec(), 16);
    let mut trainer = play::trainer(&policy, 100);
    let mut losses = Vec::new();
    for update in 1..=40 {
        let half = trainer.forward(&batch(&[]), None).unwrap();
        let (loss, gradient) = cross_entropy(half.logits().unwrap(), batch(&[]).actions);
        assert_eq!((half.rows(), half.values::<f32>().unwrap().unwrap().len()), (4, 4));
        let metrics = half.backward(&gradient, Some(&[0.0; 4]), loss).unwrap();
        assert_eq!((metrics.update, metrics.loss, metrics.frames), (update, loss, 4 * update));
        losses.push(loss);
    }
    assert!(losses[39] < losses[0] / 2.0, "{:?}", losses);
    // What is dropped, abandoned or refused is no update.
    let hash = |trainer: &Trainer| trainer.model(Weights::Latest).unwrap().info().unwrap().weights_hash;
    let before = hash(&trainer);
    drop(trainer.forward(&batch(&[]), None).unwrap());
    trainer.forward(&batch(&[]), None).unwrap().abandon();
    let dlogits = [1.0f32; 12];
    fn half(trainer: &mut Trainer) -> Half<'_> {
        trainer.forward(&batch(&[]), None).unwrap()
    }
    let trainer = &mut trainer;
    fails(half(trainer).backward(&dlogits[..11], None, 0.0), Status::Invalid, "dlogits: has 11 elements, must have 12");
    fails(half(trainer).backward(&dlogits, Some(&[0.0]), 0.0), Status::Invalid, "dvalues");
    fails(half(trainer).backward(&[f32::NAN; 12], None, 0.0), Status::Numeric, "dlogits");
    fails(half(trainer).backward(&[1.0f64; 12], None, 0.0), Status::Mismatch, "F32");
    fails(half(trainer).logits::<f64>(), Status::Mismatch, "F64");
    assert_eq!(hash(trainer), before);
    fails(trainer.forward(&Batch { mask: &[1.0; 3], ..batch(&[]) }, None), Status::Invalid, "mask");
    fails(trainer.forward(&batch(&[]), Some(&[1; 7])), Status::Invalid, "");
}

#[test]
fn a_model_in_double_has_numbers_in_double() {
    let context = Context::new().unwrap();
    let config = ModelConfig { spec: Some(Catch::spec()), no_previous_action: true, hidden: 8, ..Default::default() };
    let policy = Model::create(&context, &ModelConfig { kind: Type::F64, ..config }).unwrap();
    let optimizer = Optimizer::new(&policy, &OptimizerConfig::default()).unwrap();
    let mut trainer = Trainer::new(&policy, &optimizer, None, &TrainerConfig::default()).unwrap();
    let half = trainer.forward(&batch(&[]), None).unwrap();
    let logits = half.logits::<f64>().unwrap().to_vec();
    assert!(half.values::<f64>().unwrap().is_none() && logits.len() == 12 && logits.iter().all(|one| one.is_finite()));
    fails(half.logits::<f32>(), Status::Mismatch, "F32");
    assert_eq!(half.backward(&logits, None, 1.0).unwrap().update, 1);
}

#[test]
fn lanes_begin_where_sessions_were() {
    let context = Context::new().unwrap();
    let blocks = Some("gru".to_string());
    let config = ModelConfig { spec: Some(Catch::spec()), blocks, no_previous_action: true, ..Default::default() };
    let policy = Model::create(&context, &ModelConfig { hidden: 16, head_width: 16, ..config }).unwrap();
    let mut session = Session::new(&policy, &SessionConfig { streams: 2, ..Default::default() }).unwrap();
    session.step_row(&[0.5; 6], &[], &mut [0; 2]).unwrap();
    let bytes = session.state_size();
    let mut states = vec![0; 2 * bytes];
    for stream in 0..2 {
        session.save_state(stream, &mut states[stream * bytes..][..bytes]).unwrap();
    }
    let mut trainer = play::trainer(&policy, 4);
    let again = Batch { reset: &[0; 4], ..batch(&[]) };
    let mut logits = |states| trainer.forward(&again, states).unwrap().logits::<f32>().unwrap().to_vec();
    let (cold, warm) = (logits(None), logits(Some(&states)));
    assert_ne!(cold, warm);
    // What play says to the same row from the same state.
    session.step_row(&[0.5, 0.1, 0.0, 0.3, 0.3, 0.3], &[], &mut [0; 2]).unwrap();
    let mut played = [0.0; 3];
    session.logits(0, &mut played).unwrap();
    assert_eq!(played, warm[..3]);
    fails(session.value(0), Status::State, "value");
}

#[test]
fn what_came_of_it_weighs() {
    let context = Context::new().unwrap();
    let mut dataset = Dataset::new(&context, Some(&Catch::spec())).unwrap();
    // Rows that are alike; moves to the left, of the even games, are rewarded.
    for game in 0..8 {
        let action = if game % 2 == 0 { 0 } else { 2 };
        dataset.add_rows(game, &[0.5; 300], &[], &[action; 100]).unwrap();
        let reward = f32::from(u8::from(game % 2 == 0));
        dataset.rewards_set(game, 0, 0, &[reward; 100], true, 1.0).unwrap();
    }
    fails(dataset.rewards_set(0, 0, 0, &[f32::NAN; 100], true, 1.0), Status::Numeric, "rewards");
    fails(dataset.rewards_set(0, 0, 0, &[0.0; 100], true, -1.0), Status::Invalid, "half_life_frames");
    let policy = play::model(&context, &Catch::spec(), 16);
    let sampling = Sampling { batch: 8, time: 20, ..policy.sampling().unwrap() };
    let mut prefetcher = Prefetcher::new(&dataset, &sampling).unwrap();
    let returns = prefetcher.next_batch().unwrap().unwrap().returns.to_vec();
    assert!(returns.len() == 160 && returns.iter().any(|&one| one > 1.5) && returns.contains(&0.0));
    prefetcher.seek(0, 0).unwrap();
    let optimizer = Optimizer::new(&policy, &OptimizerConfig { rate: 1e-2, ..Default::default() }).unwrap();
    let mut trainer = Trainer::new(&policy, &optimizer, Some(prefetcher), &TrainerConfig::default()).unwrap();
    let config = OutcomeConfig { beta: 0.3, warm_up: 5, ..Default::default() };
    let told: Vec<_> = (0..60).map(|_| trainer.step_outcome(&config).unwrap()).collect();
    assert!(told[0].known > 0 && told[0].effective == 1.0 && told[10].effective < 0.9, "{:?}", told[10]);
    let trained = trainer.model(Weights::Latest).unwrap();
    let mut session = Session::new(&trained, &SessionConfig::default()).unwrap();
    session.step_row(&[0.5; 3], &[], &mut [0]).unwrap();
    let mut logits = [0.0; 3];
    session.logits(0, &mut logits).unwrap();
    assert!(logits[0] > logits[2] + 1.0, "{:?}", logits);
    fails(trainer.step_outcome(&OutcomeConfig { cap: -1.0, ..config }), Status::Invalid, "cap");
}

#[test]
fn a_frame_of_melee_is_worth_something() {
    let mut before = melee::Frame::new(10, 32, 1);
    for (place, player) in before.player[..2].iter_mut().enumerate() {
        (player.present, player.known, player.percent) = (1, 31, 10.0);
        player.x = 30.0 * (2.0 * place as f32 - 1.0);
        player.stocks = 4;
        player.action_state = 14;
    }
    let mut now = before;
    now.frame = 11;
    now.player[1].percent = 22.5;
    let config = melee::RewardConfig::default();
    assert_eq!(melee::reward(&config, &before, &now).unwrap(), 0.125);
    let mut theirs = (before, now);
    (theirs.0.own_port, theirs.1.own_port) = (2, 2);
    assert_eq!(melee::reward(&config, &theirs.0, &theirs.1).unwrap(), -0.125);
    let none = melee::RewardConfig { damage: -1.0, ..config };
    assert_eq!(melee::reward(&none, &before, &now).unwrap(), 0.0);
    now.frame = 13;
    assert_eq!(melee::reward(&config, &before, &now).unwrap(), 0.0);
    fails(melee::reward(&config, &before, &theirs.1), Status::Invalid, "");
}

#[test]
fn a_session_adopts_new_weights() {
    let context = pong::context();
    let old = pong::model(&context);
    let new = Model::create(&context, &ModelConfig { seed: 8, ..pong::config() }).unwrap();
    let hash = |model: &Model| model.info().unwrap().weights_hash;
    let config = SessionConfig { adoptable: true, seed: 5, ..Default::default() };
    let mut session = Session::new(&old, &config).unwrap();
    let step = |session: &mut Session, t: usize| {
        let ((floats, ids, _), mut actions, mut logits) = (pong::row(t), [0; 2], [0.0; 5]);
        session.step_row(&floats, &ids, &mut actions).unwrap();
        session.logits(0, &mut logits).unwrap();
        (actions, logits)
    };
    step(&mut session, 0);
    fails(session.adopt(&new), Status::State, "prepare");
    new.prepare().unwrap();
    let mut state = vec![0; session.state_size()];
    session.save_state(0, &mut state).unwrap();
    let before = step(&mut session, 1);
    assert!(session.adopt(&new).unwrap().is_none());
    let straight = step(&mut session, 2);
    let info = session.info().unwrap();
    assert_eq!((info.adoptions, info.weights_hash, hash(session.model())), (1, hash(&new), hash(&new)));
    // Rollback: the old weights on the old frame, the new ones where they were met.
    session.restore_state(0, &state).unwrap();
    assert_eq!((step(&mut session, 1), step(&mut session, 2)), (before, straight));
    // Where the third comes, the first goes; the session keeps what it plays.
    let third = Model::create(&context, &ModelConfig { seed: 9, ..pong::config() }).unwrap();
    third.prepare().unwrap();
    let gone = session.adopt(&third).unwrap().unwrap().into_model().unwrap();
    assert_eq!(hash(&gone), hash(&old));
    let wanted = hash(&third);
    drop((old, new, third, gone));
    step(&mut session, 3);
    let mut clone = session.try_clone().unwrap();
    assert_eq!(step(&mut session, 4), step(&mut clone, 4));
    assert_eq!(clone.info().unwrap().weights_hash, wanted);
    let other = Model::create(&context, &ModelConfig { hidden: 24, ..pong::config() }).unwrap();
    other.prepare().unwrap();
    fails(session.adopt(&other), Status::Mismatch, "configuration");
    let mut fixed = Session::new(&other, &SessionConfig::default()).unwrap();
    fails(fixed.adopt(&other), Status::State, "adoptable");
}
