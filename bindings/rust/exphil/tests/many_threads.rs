//! Which types threads may share and which they may only hand over, as the header says; compile_fail has the reverse.

mod pong;

use exphil::*;

fn shared<T: Send + Sync>() {}
fn handed_over<T: Send>() {}

#[test]
fn types_are_shared_as_the_header_says() {
    shared::<Context>();
    shared::<Model>();
    shared::<Replay>();
    shared::<Optimizer>();
    shared::<Error>();
    shared::<Spec>();
    shared::<Replaced>();
    handed_over::<Session>();
    handed_over::<Dataset>();
    handed_over::<Prefetcher>();
    handed_over::<Trainer>();
    handed_over::<SlpStream>();
    handed_over::<World>();
    handed_over::<Rollout>();
    handed_over::<Learner>();
}

fn play(model: &Model) -> Vec<i32> {
    let mut session = Session::new(model, &SessionConfig { seed: 2, ..Default::default() }).unwrap();
    let mut all = Vec::new();
    for t in 0..300 {
        let (floats, ids, _) = pong::row(t);
        let mut actions = [0; 2];
        session.step_row(&floats, &ids, &mut actions).unwrap();
        all.extend_from_slice(&actions);
    }
    all
}

#[test]
fn threads_play_one_model() {
    let model = pong::model(&pong::context());
    let alone = play(&model);
    std::thread::scope(|scope| {
        let played: Vec<_> = (0..4).map(|_| scope.spawn(|| play(&model))).collect();
        played.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), alone));
    });
}

#[test]
fn a_trainer_works_elsewhere_while_its_optimizer_is_asked() {
    let context = pong::context();
    let model = pong::model(&context);
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let source = pong::prefetcher(&model, &pong::dataset(&context));
    let mut trainer = Trainer::new(&model, &optimizer, Some(source), &TrainerConfig::default()).unwrap();
    std::thread::scope(|scope| {
        let work = scope.spawn(move || trainer.updates(30).map(|metrics| metrics.unwrap().update).max());
        let mut last = 0;
        while !work.is_finished() {
            let now = optimizer.info().unwrap().updates;
            assert!(now >= last);
            last = now;
        }
        assert_eq!(work.join().unwrap(), Some(30));
    });
    assert_eq!(optimizer.info().unwrap().updates, 30);
}

/// All handles of a training and playing program, dropped by a number that picks the next one.
#[test]
fn handles_are_dropped_in_any_order() {
    for seed in 0..40usize {
        let context = pong::context();
        let model = pong::model(&context);
        let dataset = pong::dataset(&context);
        let (kept, held) = dataset.split(Held::Time(0.2)).unwrap();
        let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
        let source = pong::prefetcher(&model, &kept);
        let mut trainer = Trainer::new(&model, &optimizer, Some(source), &TrainerConfig::default()).unwrap();
        trainer.step().unwrap();
        let trained = trainer.model(Weights::Latest).unwrap();
        let session = Session::new(&trained, &SessionConfig::default()).unwrap();
        let twin = session.try_clone().unwrap();
        let spare = pong::prefetcher(&trained, &held);
        let stream = SlpStream::new(&context).unwrap();
        let mut handles: Vec<Box<dyn Send>> = vec![
            Box::new(context),
            Box::new(model),
            Box::new(dataset),
            Box::new(kept),
            Box::new(held),
            Box::new(optimizer),
            Box::new(trainer),
            Box::new(trained),
            Box::new(session),
            Box::new(twin),
            Box::new(spare),
            Box::new(stream),
        ];
        let mut draw = seed * 2_654_435_761 + 1;
        while !handles.is_empty() {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            drop(handles.swap_remove((draw >> 33) % handles.len()));
        }
    }
}
