//! Policies that become better by playing: worlds of the library and of the host, rollouts, the learner, and what it keeps.

mod play;

use exphil::*;
use play::{catch, fails, mean_return, model, trainer, Catch, Parts};
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn cartpole_is_learnt_from_nothing() {
    let context = Context::new().unwrap();
    let world = World::create(&context, "cartpole", 16).unwrap();
    let policy = model(&context, world.spec(), 64);
    let config = LearnerConfig { half_life_frames: 69.0, reward_scale: 0.1, ..Default::default() };
    let mut parts = Parts::new(world, &policy, 64, 60, &config);
    let told = parts.chunks(60);
    assert_eq!((told[59].chunks, told[59].updates, told[0].rows), (60, 60 * 16, 16 * 64));
    assert!(told.iter().all(|metrics| metrics.recomputed == 0.0 && metrics.taken_back == 0));
    let (first, last) = (mean_return(&told[..3]), mean_return(&told[50..]));
    assert!(first < 50.0 && last > 250.0, "from {} to {}", first, last);
    assert!(parts.rollout.session().value(0).unwrap() > 1.0);
}

#[test]
fn a_game_of_ones_own_is_learnt() {
    let context = Context::new().unwrap();
    let policy = model(&context, &Catch::spec(), 16);
    let config = LearnerConfig { half_life_frames: 30.0, ..Default::default() };
    let mut parts = Parts::new(catch(&context, 16), &policy, 64, 60, &config);
    let told = parts.chunks(60);
    let (first, last) = (mean_return(&told[..2]), mean_return(&told[55..]));
    assert!(first < 0.6 && last > 0.95, "from {} to {}", first, last);
    assert_ne!(parts.hash(), policy.info().unwrap().weights_hash);
}

/// Cartpole through the host's own game.
struct Through(World);

impl Game for Through {
    fn reset(&mut self, seed: u64, floats: &mut [f32], ids: &mut [i32]) -> Played<()> {
        Ok(self.0.reset(0, seed, floats, ids)?)
    }

    fn step(&mut self, actions: &[i32], floats: &mut [f32], ids: &mut [i32], reward: &mut [f32]) -> Played<End> {
        let mut end = [End::GoesOn];
        self.0.step(actions, floats, ids, reward, &mut end)?;
        Ok(end[0])
    }
}

#[test]
fn a_world_through_rust_has_the_bits_of_the_world() {
    let context = Context::new().unwrap();
    let lane = || World::create(&context, "cartpole", 1).unwrap();
    let spec = lane().spec().clone();
    let through = World::of(&context, &spec, 1, (0..4).map(|_| Through(lane())).collect()).unwrap();
    let policy = model(&context, &spec, 16);
    let mut told = [World::create(&context, "cartpole", 4).unwrap(), through].map(|world| {
        let mut parts = Parts::new(world, &policy, 100, 3, &LearnerConfig::default());
        (parts.chunks(3), parts.hash())
    });
    let second = told[1].clone();
    assert_eq!(told[0], second);
    told[0].0.pop();
    assert_ne!(told[0], second);
}

#[test]
fn a_host_plays_by_itself() {
    let context = Context::new().unwrap();
    let mut world = World::create(&context, "cartpole", 2).unwrap();
    let policy = model(&context, world.spec(), 16);
    let session = SessionConfig { streams: 2, seed: 1, ..Default::default() };
    let mut rollout = Rollout::new(&policy, &session, &RolloutConfig { time: 32, seed: 1 }).unwrap();
    let mut learner = Learner::new(trainer(&policy, 4), None, &LearnerConfig::default()).unwrap();
    let (mut floats, mut actions, mut reward, mut end) = ([0.0; 8], [0; 2], [0.0; 2], [End::GoesOn; 2]);
    fails(rollout.reward(&reward, &end, &floats, &[]), Status::State, "reward already");
    for lane in 0..2 {
        world.reset(lane, lane as u64, &mut floats[4 * lane..4 * lane + 4], &mut []).unwrap();
    }
    let mut frames = 0;
    loop {
        frames += 1;
        rollout.step(&floats, &[], &mut actions).unwrap();
        if frames == 1 {
            fails(rollout.step(&floats, &[], &mut actions), Status::State, "no reward yet");
        }
        world.step(&actions, &mut floats, &mut [], &mut reward, &mut end).unwrap();
        let full = rollout.reward(&reward, &end, &floats, &[]).unwrap();
        for lane in (0..2).filter(|&lane| end[lane] != End::GoesOn) {
            world.reset(lane, frames, &mut floats[4 * lane..4 * lane + 4], &mut []).unwrap();
        }
        if full {
            break;
        }
    }
    assert_eq!(frames, 32);
    fails(rollout.step(&floats, &[], &mut actions), Status::State, "full");
    let metrics = learner.update(&mut rollout).unwrap();
    assert_eq!((metrics.rows, metrics.recomputed, metrics.reward), (64, 0.0, 1.0));
    fails(learner.update(&mut rollout), Status::State, "0 of 32");
    fails(learner.save(&rollout, None, "/nowhere/at/all"), Status::Io, "/nowhere");
    // A clone of the rollout's session plays as any other; its own is stepped by it alone.
    let mut clone = rollout.session().try_clone().unwrap();
    clone.step_row(&floats, &[], &mut actions).unwrap();
    rollout.step(&floats, &[], &mut actions).unwrap();
    rollout.override_action(0, &[1]).unwrap();
    fails(rollout.reward(&[0.0; 2], &[End::GoesOn, End::CutOff], &[], &[]), Status::Invalid, "floats");
    fails(rollout.reward(&[f32::NAN, 0.0], &[End::GoesOn; 2], &[], &[]), Status::Numeric, "reward");
    fails(rollout.reward(&[0.0], &[End::GoesOn; 2], &[], &[]), Status::Invalid, "reward: has 1 elements");
    fails(rollout.reward(&[0.0; 2], &[End::GoesOn; 3], &[], &[]), Status::Invalid, "end: has 3 elements");
    fails(rollout.reward(&[0.0; 2], &[End::GoesOn; 2], &floats[..4], &[]), Status::Invalid, "floats: has 4 elements");
    assert!(!rollout.reward(&[0.0; 2], &[End::GoesOn; 2], &[], &[]).unwrap());
}

#[test]
fn it_goes_on_where_it_was_saved() {
    let path = std::env::temp_dir().join(format!("exphil-learn-{}.safetensors", std::process::id()));
    let (mut whole, mut half) = (Parts::catch(4, 32), Parts::catch(4, 32));
    let told = whole.chunks(5);
    fails(half.learner.save(&half.rollout, Some(&half.world), &path), Status::State, "");
    assert_eq!(half.chunks(3), told[..3]);
    half.learner.save(&half.rollout, Some(&half.world), &path).unwrap();
    let mut again = Parts::catch(4, 32);
    again.learner.resume(&mut again.rollout, Some(&mut again.world), &path).unwrap();
    assert_eq!(again.chunks(2), told[3..]);
    assert_eq!(again.hash(), whole.hash());
    let mut other = Parts::catch(8, 32);
    fails(other.learner.resume(&mut other.rollout, Some(&mut other.world), &path), Status::Mismatch, "");
    // The trainer alone goes on too.
    let mut alone = again.learner.into_trainer();
    alone.resume(&path).unwrap();
    assert_eq!(alone.model(Weights::Latest).unwrap().info().unwrap().trained_updates, 3 * 16);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(format!("{}.optimizer", path.display())).unwrap();
}

#[test]
fn a_teacher_holds() {
    let context = Context::new().unwrap();
    let policy = model(&context, &Catch::spec(), 16);
    let session = SessionConfig { streams: 4, ..Default::default() };
    let mut rollout = Rollout::new(&policy, &session, &RolloutConfig { time: 64, seed: 1 }).unwrap();
    let config = LearnerConfig { to_teacher: 0.1, normalise: Normalise::Always, seed: 1, ..Default::default() };
    fails(Learner::new(trainer(&policy, 4), None, &config), Status::Invalid, "teacher");
    let mut learner = Learner::new(trainer(&policy, 4), Some(&policy), &config).unwrap();
    drop(policy);
    rollout.run(&mut catch(&context, 4)).unwrap();
    let metrics = learner.update(&mut rollout).unwrap();
    assert!(metrics.kl_to_teacher > 0.0 && metrics.kl_to_teacher < 0.1, "{:?}", metrics);
}

/// A world of two lanes, the second of which breaks in its third frame.
fn broken(context: &Context, panics: bool) -> World {
    let mut games = Catch::lanes(2);
    (games[1].breaks, games[1].panics) = (3, panics);
    World::of(context, &Catch::spec(), 1, games).unwrap()
}

#[test]
fn a_game_that_fails_fails_the_call() {
    let context = Context::new().unwrap();
    let mut parts = Parts::catch(2, 16);
    parts.world = broken(&context, false);
    let told = parts.learner.train(&mut parts.rollout, &mut parts.world, 9).collect::<Vec<_>>();
    assert_eq!(told.len(), 1);
    fails(told[0].clone(), Status::Io, "the world's step failed with 5: the cable");
    fails(parts.rollout.run(&mut parts.world), Status::State, "failed before");
    // Who plays by itself hears of it, too; what failed once goes on where the game does.
    let mut world = broken(&context, false);
    let (mut floats, mut reward, mut end) = ([0.0; 6], [0.0; 2], [End::GoesOn; 2]);
    for frame in 0..4 {
        let played = world.step(&[1; 2], &mut floats, &mut [], &mut reward, &mut end);
        match frame {
            2 => fails(played, Status::Io, "the world's step failed with 5: the cable"),
            _ => played.unwrap(),
        }
    }
}

#[test]
fn a_panic_of_a_game_goes_on_and_the_world_is_failed() {
    let context = Context::new().unwrap();
    let mut parts = Parts::catch(2, 16);
    parts.world = broken(&context, true);
    let panic = catch_unwind(AssertUnwindSafe(|| parts.rollout.run(&mut parts.world))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the board breaks"));
    fails(parts.rollout.run(&mut parts.world), Status::State, "failed before");
    fails(parts.world.reset(0, 1, &mut [0.0; 3], &mut []), Status::Io, "a game panicked before");
    // Others go on.
    assert_eq!(Parts::catch(2, 16).chunks(1)[0].rows, 32);
}

/// Breaks in all ways at its end.
struct Mean(bool);

impl Game for Mean {
    fn reset(&mut self, _: u64, _: &mut [f32], _: &mut [i32]) -> Played<()> {
        if self.0 {
            panic!("no start");
        }
        Ok(())
    }

    fn step(&mut self, _: &[i32], floats: &mut [f32], _: &mut [i32], _: &mut [f32]) -> Played<End> {
        assert_eq!(floats, [0.0; 3], "arrays are zero before they are written");
        Ok(End::GoesOn)
    }
}

impl Drop for Mean {
    fn drop(&mut self) {
        panic!("no end");
    }
}

#[test]
fn a_panic_while_a_world_is_dropped_is_lost() {
    let context = Context::new().unwrap();
    let mut world = World::of(&context, &Catch::spec(), 1, vec![Mean(false)]).unwrap();
    world.step(&[0], &mut [7.0; 3], &mut [], &mut [7.0], &mut [End::Over]).unwrap();
    fails(world.save(0, &mut []), Status::Unsupported, "no state_bytes");
    drop(world);
    let mut world = World::of(&context, &Catch::spec(), 1, vec![Mean(true)]).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| world.reset(0, 1, &mut [0.0; 3], &mut []))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"no start"));
    drop(world);
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let context = Context::new().unwrap();
    let spec = Catch::spec();
    fails(World::create(&context, "chess", 1), Status::Invalid, "chess");
    fails(World::create(&context, "pong", 0), Status::Invalid, "lanes");
    fails(World::of(&context, &spec, 1, Catch::lanes(0)), Status::Invalid, "games: has 0");
    fails(World::of(&context, &spec, 9, Catch::lanes(1)), Status::Invalid, "seats: is 9");
    fails(World::of(&context, &spec.clone().floats(1 << 20), 1, Catch::lanes(1)), Status::Invalid, "float");
    let mut world = catch(&context, 2);
    let (mut floats, mut reward, mut end) = ([0.0; 6], [0.0; 2], [End::GoesOn; 2]);
    fails(world.reset(2, 0, &mut floats[..3], &mut []), Status::Invalid, "lane: is 2");
    fails(world.reset(0, 0, &mut floats, &mut []), Status::Invalid, "floats: has 6 elements, must have 3");
    for (value, word) in [(3, "element 1 is 3, which move has not"), (-1, "element 1 is -1")] {
        fails(world.step(&[0, value], &mut floats, &mut [], &mut reward, &mut end), Status::Invalid, word);
    }
    fails(world.step(&[0; 2], &mut floats, &mut [], &mut reward[..1], &mut end), Status::Invalid, "reward");
    fails(world.step(&[0; 2], &mut floats, &mut [], &mut reward, &mut end[..1]), Status::Invalid, "end");
    let mut state = vec![0; world.state_bytes()];
    fails(world.save(0, &mut state[1..]), Status::Invalid, "state: has 11 elements, must have 12");
    world.reset(0, 5, &mut floats[..3], &mut []).unwrap();
    world.save(0, &mut state).unwrap();
    world.load(1, &state).unwrap();
    world.step(&[1; 2], &mut floats, &mut [], &mut reward, &mut end).unwrap();
    assert_eq!(floats[..3], floats[3..]);
    fails(world.opponent(0, None), Status::Invalid, "against");

    let policy = model(&context, &spec, 16);
    let new = |session, time| Rollout::new(&policy, &session, &RolloutConfig { time, seed: 0 });
    fails(new(SessionConfig { deterministic: true, ..Default::default() }, 8), Status::Unsupported, "");
    fails(
        new(SessionConfig { heads: vec![HeadPlay::default(); 2], ..Default::default() }, 8),
        Status::Invalid,
        "heads",
    );
    fails(new(SessionConfig::default(), 5000), Status::Invalid, "time");
    let mut rollout = new(SessionConfig::default(), 8).unwrap();
    fails(rollout.run(&mut world), Status::Mismatch, "2 lanes");
    let plain = policy.with_value(Value::None, 0);
    fails(plain, Status::Invalid, "value");
    let config = LearnerConfig { clip: -1.0, ..Default::default() };
    fails(Learner::new(trainer(&policy, 1), None, &config), Status::Invalid, "clip");
}
