//! A policy that is told who plays and how late its actions are: trained, scored and played.

use exphil::*;

const FRAMES: usize = 200;

fn condition() -> Condition {
    Condition { name: "player".into(), values: 2, width: 4, mask: 0.25 }
}

/// Player 1 moves one way, player 2 the other: the frame does not tell.
fn dataset(context: &Context, spec: &Spec) -> Dataset {
    let mut dataset = Dataset::new(context, Some(spec)).unwrap();
    for game in 0..8 {
        let move_ = if game % 2 == 0 { 1 } else { 2 };
        dataset.add_rows(game, &[0.5; FRAMES], &[], &[move_; FRAMES]).unwrap();
        dataset.condition("player", game, 0, move_).unwrap();
    }
    dataset
}

#[test]
fn a_policy_plays_as_it_is_told() {
    let context = Context::new().unwrap();
    let spec = Spec::new("pong", "paddle").floats(1).head(HeadSpec::categorical("move", 3));
    let config = ModelConfig {
        spec: Some(spec.clone()),
        blocks: Some("gru".into()),
        hidden: 16,
        head_width: 16,
        no_previous_action: true,
        neutral_start: true,
        conditions: vec![condition()],
        delays: vec![0, 2],
        ..Default::default()
    };
    let model = Model::create(&context, &config).unwrap();
    let info = model.info().unwrap();
    assert_eq!((info.condition_count, info.delay_count, info.delay_frames), (1, 2, 2));
    let data = dataset(&context, &spec);
    let sampling = Sampling { batch: 4, time: 20, ..model.sampling().unwrap() };
    assert_eq!((&sampling.conditions, &sampling.delays), (&vec![condition()], &vec![0, 2]));
    let mut prefetcher = Prefetcher::new(&data, &sampling).unwrap();
    let batch = prefetcher.next_batch().unwrap().unwrap();
    assert_eq!(batch.conditions.len(), 4 * 20 * 2);
    assert!(batch.conditions.chunks(2).all(|told| (0..=2).contains(&told[0]) && (1..=2).contains(&told[1])));
    prefetcher.seek(0, 0).unwrap();
    let optimizer = Optimizer::new(&model, &OptimizerConfig { rate: 1e-2, ..Default::default() }).unwrap();
    let mut trainer = Trainer::new(&model, &optimizer, Some(prefetcher), &TrainerConfig::default()).unwrap();
    for _ in 0..150 {
        trainer.step().unwrap();
    }
    let trained = trainer.model(Weights::Latest).unwrap();
    let how = Evaluation { delay_frames: Some(2), alone: 100, ..Default::default() };
    let report = evaluate_as(&trained, &data, &how).unwrap();
    assert!(report.exact_accuracy > 0.95 && report.alone_accuracy > 0.9, "{:?}", report);
    let untold = evaluate_as(&trained, &data, &Evaluation { conditions: Some(&[0]), ..how }).unwrap();
    assert!(untold.exact_accuracy < 0.7);
    let wrong = evaluate_as(&trained, &data, &Evaluation { delay_frames: Some(1), ..how }).unwrap_err();
    assert_eq!(wrong.status(), Status::Mismatch);

    let play = SessionConfig {
        delay_frames: Some(2),
        deterministic: true,
        deliver: Deliver::Decided,
        conditions: vec![1],
        ..Default::default()
    };
    let mut session = Session::new(&trained, &play).unwrap();
    let mut action = [0];
    for player in [1, 2] {
        session.reset(0).unwrap(); // what it remembers is of the other player
        session.set_conditions(0, &[player]).unwrap();
        for _ in 0..20 {
            session.step_row(&[0.5], &[], &mut action).unwrap();
        }
        assert_eq!(action, [player]);
    }
    assert!(session.set_conditions_all(&[3]).unwrap_err().to_string().contains("player"));
    assert!(session.set_conditions_all(&[]).is_err());
}
