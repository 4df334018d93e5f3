//! Every setting of learning reaches the library at its own place: a value that cannot be is refused by the setting's name.

mod play;

use exphil::*;
use play::{model, trainer, Catch, Parts};

/// A setting's name, and how to spoil it.
type Spoil<T> = (&'static str, fn(&mut T));

#[track_caller]
fn each<T: Default>(settings: &[Spoil<T>], mut call: impl FnMut(T) -> Option<Error>) {
    for (name, spoil) in settings {
        let mut config = T::default();
        spoil(&mut config);
        let error = call(config).unwrap_or_else(|| panic!("{} may be anything", name));
        let words: Vec<_> = error.message().split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        assert!(words.contains(name), "of {}: {}", name, error);
    }
}

#[test]
fn of_a_learner() {
    let context = Context::new().unwrap();
    let policy = model(&context, &Catch::spec(), 16);
    let settings: [Spoil<LearnerConfig>; 15] = [
        ("surrogate", |c| c.surrogate = f64::NAN),
        ("clip", |c| c.clip = f64::NAN),
        ("value", |c| c.value = f64::NAN),
        ("to_old", |c| c.to_old = f64::NAN),
        ("to_teacher", |c| c.to_teacher = f64::NAN),
        ("from_teacher", |c| c.from_teacher = f64::NAN),
        ("entropy", |c| c.entropy = f64::NAN),
        ("imitation", |c| c.imitation = -1.0),
        ("half_life_frames", |c| c.half_life_frames = f64::NAN),
        ("lambda", |c| c.lambda = f64::NAN),
        ("most_kl", |c| c.most_kl = f64::NAN),
        ("reward_scale", |c| c.reward_scale = f64::NAN),
        ("epochs", |c| c.epochs = usize::MAX),
        ("batches", |c| c.batches = usize::MAX),
        ("burn_in", |c| c.burn_in = usize::MAX),
    ];
    each(&settings, |config| {
        let made = Learner::new(trainer(&policy, 1), None, &config);
        made.and_then(|mut learner| {
            // What depends on the chunks is known with the first one.
            let session = SessionConfig::default();
            let mut rollout = Rollout::new(&policy, &session, &RolloutConfig { time: 8, seed: 1 })?;
            rollout.run(&mut play::catch(&context, 1))?;
            learner.update(&mut rollout)
        })
        .err()
    });
}

#[test]
fn of_outcomes_matches_and_rewards() {
    let context = Context::new().unwrap();
    let policy = model(&context, &Catch::spec(), 16);
    let outcomes: [Spoil<OutcomeConfig>; 4] = [
        ("imitation", |c| c.imitation = f64::NAN),
        ("value", |c| c.value = f64::NAN),
        ("beta", |c| c.beta = f64::NAN),
        ("cap", |c| c.cap = f64::NAN),
    ];
    let mut dataset = Dataset::new(&context, Some(&Catch::spec())).unwrap();
    dataset.add_rows(0, &[0.5; 300], &[], &[1; 100]).unwrap();
    let prefetcher = Prefetcher::new(&dataset, &policy.sampling().unwrap()).unwrap();
    let optimizer = Optimizer::new(&policy, &OptimizerConfig::default()).unwrap();
    let mut learns = Trainer::new(&policy, &optimizer, Some(prefetcher), &TrainerConfig::default()).unwrap();
    each(&outcomes, |config| learns.step_outcome(&config).err());

    let matches: [Spoil<MatchConfig>; 3] = [
        ("games", |c| c.games = usize::MAX),
        ("most_frames", |c| c.most_frames = usize::MAX),
        ("points", |c| c.points = f64::NAN),
    ];
    let mut pong = World::create(&context, "pong-two", 1).unwrap();
    let player = model(&context, pong.spec(), 16);
    each(&matches, |config| match_policies(&player, &player, &mut pong, &config).err());

    let rewards: [Spoil<melee::RewardConfig>; 7] = [
        ("stock", |c| c.stock = f64::NAN),
        ("damage", |c| c.damage = f64::NAN),
        ("follower", |c| c.follower = f64::NAN),
        ("ledge", |c| c.ledge = f64::NAN),
        ("stalling", |c| c.stalling = f64::NAN),
        ("stalling_distance", |c| c.stalling_distance = f64::NAN),
        ("approach", |c| c.approach = f64::NAN),
    ];
    let frame = melee::Frame::new(0, 32, 1);
    each(&rewards, |config| melee::reward(&config, &frame, &frame).err());
}

#[test]
fn what_may_be_anything_makes_a_difference() {
    let run = |episodes, draws, config: LearnerConfig| {
        let mut parts = Parts::catch(4, 32);
        let session = SessionConfig { streams: 4, seed: draws, ..Default::default() };
        parts.rollout = Rollout::new(&parts.weights(), &session, &RolloutConfig { time: 32, seed: episodes }).unwrap();
        let config = LearnerConfig { batches: 2, ..config };
        parts.learner = Learner::new(parts.learner.into_trainer(), None, &config).unwrap();
        parts.chunks(4);
        parts.hash()
    };
    let plain = LearnerConfig::default();
    let all = [
        run(1, 1, plain),
        run(2, 1, plain),
        run(1, 2, plain),
        run(1, 1, LearnerConfig { seed: 2, ..plain }),
        run(1, 1, LearnerConfig { value_only: 3, ..plain }),
        run(1, 1, LearnerConfig { normalise: Normalise::Never, ..plain }),
    ];
    assert_eq!(all[0], run(1, 1, LearnerConfig { normalise: Normalise::Always, ..plain }));
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "{:?}", all);
    }
    let context = Context::new().unwrap();
    let policy = model(&context, &Catch::spec(), 16);
    let with = |seed| policy.with_value(Value::Shared, seed).unwrap().info().unwrap().weights_hash;
    assert!(with(1) == with(1) && with(1) != with(2));
}
