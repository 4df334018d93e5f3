//! A policy that learns behind its game: from a person, from rewards; paced runs are one, saved ones go on; wrong calls.

mod play;
mod pong;

use exphil::*;
use play::fails;
use pong::{context, Scratch};
use std::sync::{mpsc, Mutex};
use std::thread;

fn follow() -> Spec {
    Spec::new("follow", "follow")
        .floats(2)
        .id("place", 4, 0)
        .head(HeadSpec::categorical("move", 3).neutral(1))
        .head(HeadSpec::bernoulli("press", 2))
}

fn small() -> ModelConfig {
    ModelConfig {
        spec: Some(follow()),
        blocks: Some("gru".into()),
        hidden: 16,
        head_width: 16,
        no_previous_action: true,
        neutral_start: true,
        value: Value::Shared,
        seed: 1,
        ..Default::default()
    }
}

fn policy() -> Model {
    Model::create(&context(), &small()).unwrap()
}

fn usual<'a>() -> LiveConfig<'a> {
    LiveConfig {
        piece_frames: 50,
        updates: 20,
        seed: 7,
        session: SessionConfig { seed: 3, ..Default::default() },
        optimizer: OptimizerConfig { rate: 1e-2, ..Default::default() },
        sampling: Some(Sampling { batch: 4, time: 20, ..policy().sampling().unwrap() }),
        ..Default::default()
    }
}

fn paced<'a>() -> LiveConfig<'a> {
    LiveConfig { paced: true, ..usual() }
}

/// Plays by a rule: moves to where the first float is, presses by the id; and the game that shows these.
struct Person(u64);

impl Person {
    fn draw(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn look(&mut self) -> ([f32; 2], [i32; 1], [i32; 2]) {
        let floats = [2.0 * self.draw() - 1.0, 2.0 * self.draw() - 1.0];
        let place = (4.0 * self.draw()) as i32;
        (floats, [place], [1 + i32::from(floats[0] > 0.3) - i32::from(floats[0] < -0.3), place])
    }
}

/// How frames are played.
struct Game {
    frames: usize,
    /// After so many again; 0: never.
    settle: usize,
    /// Frames of an episode.
    episode: usize,
}

/// What was pressed, frame by frame; of every hundred frames the person has sixty.
fn play(live: &mut Live, person: &mut Person, game: Game) -> Vec<[i32; 2]> {
    let mut pressed = Vec::new();
    for t in 0..game.frames {
        let (floats, ids, action) = person.look();
        let plays = t % 100 < 60;
        let mut actions = [9; 2];
        live.step_row(&floats, &ids, if plays { Some(&action) } else { None }, &mut actions).unwrap();
        assert!(!plays || actions == action);
        pressed.push(actions);
        if (t + 1) % game.episode == 0 {
            live.reward(0.0, End::Over, &[], &[]).unwrap();
        }
        if game.settle > 0 && (t + 1) % game.settle == 0 {
            live.settle().unwrap();
        }
    }
    pressed
}

fn game(frames: usize, settle: usize) -> Game {
    Game { frames, settle, episode: 400 }
}

/// Share of the frames in which a policy alone does what another person of the same rule does.
fn agreement(model: &Model) -> f64 {
    let config = SessionConfig { deterministic: true, ..Default::default() };
    let (mut person, mut session, mut actions) = (Person(99), Session::new(model, &config).unwrap(), [0; 2]);
    let mut right = 0;
    for _ in 0..500 {
        let (floats, ids, action) = person.look();
        session.step_row(&floats, &ids, &mut actions).unwrap();
        right += usize::from(actions == action);
    }
    right as f64 / 500.0
}

fn weights(live: &Live) -> u64 {
    live.model().unwrap().info().unwrap().weights_hash
}

fn likeliest(logits: &[f32]) -> i32 {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as i32
}

#[test]
fn what_a_person_does_is_learnt() {
    let model = policy();
    let mut live = Live::new(&model, usual()).unwrap();
    play(&mut live, &mut Person(1), game(1200, 0));
    live.settle().unwrap();
    let info = live.info().unwrap();
    assert!(agreement(&model) < 0.4 && agreement(&live.model().unwrap()) > 0.9);
    assert_eq!((info.frames, info.person, info.learnt, info.dropped), (1200, 720, 720, 0));
    // A piece is 50 frames: of every hundred the person has all of the first and ten of the second.
    assert_eq!((info.pieces, info.updates, info.failed, info.unsaved), (24, 24 * 20, None, None));
    assert!(info.adopted >= 1 && info.loss > 0.0 && info.loss < 1.0 && info.message.is_empty());
    // The session plays what was learnt, the model that it was made of is as it was.
    let before = policy().info().unwrap().weights_hash;
    assert!(model.info().unwrap().weights_hash == before && weights(&live) != before);
    let (mut person, mut right, mut actions, mut logits) = (Person(98), 0, [0; 2], [0.0; 5]);
    for _ in 0..200 {
        let (floats, ids, action) = person.look();
        live.step_row(&floats, &ids, None, &mut actions).unwrap();
        live.session().logits(0, &mut logits).unwrap();
        right += i32::from(likeliest(&logits[..3]) == action[0]);
    }
    assert!(right > 180, "{}", right);
    // The session's clone goes on alone, also when the live policy is gone.
    let mut clone = live.session().try_clone().unwrap();
    drop(live);
    clone.step_row(&[0.9, 0.0], &[0], &mut actions).unwrap();
}

#[test]
fn two_paced_runs_are_one() {
    let run = |seed, settle| {
        let model = policy();
        let mut live = Live::new(&model, LiveConfig { seed, ..paced() }).unwrap();
        let pressed = play(&mut live, &mut Person(1), game(600, settle));
        let adopted = live.info().unwrap().adopted;
        live.settle().unwrap();
        (pressed, adopted, weights(&live), live.info().unwrap().loss)
    };
    let first = run(7, 130);
    assert_eq!(run(7, 130), first);
    assert_eq!(first.1, 4);
    assert_ne!(run(8, 130).2, first.2);
    assert_ne!(run(7, 70).0, first.0);
}

#[test]
fn new_weights_come_by_themselves_unless_paced() {
    for paced in [false, true] {
        let mut live = Live::new(&policy(), LiveConfig { paced, ..usual() }).unwrap();
        play(&mut live, &mut Person(1), game(60, 0));
        while live.info().unwrap().pieces == 0 {
            thread::yield_now();
        }
        let step = |live: &mut Live| live.step_row(&[0.0; 2], &[0], None, &mut [0; 2]).unwrap();
        while !paced && live.info().unwrap().adopted == 0 {
            step(&mut live);
        }
        (0..1000).for_each(|_| step(&mut live));
        assert_eq!(live.info().unwrap().adopted > 0, !paced);
        live.settle().unwrap();
        assert!(live.info().unwrap().adopted > 0);
    }
}

#[test]
fn saved_runs_go_on() {
    let kept = Scratch::new("live");
    let config = || LiveConfig { rollback_frames: 1, ..paced() };
    let model = policy();
    let (mut live, mut person) = (Live::new(&model, config()).unwrap(), Person(1));
    play(&mut live, &mut person, Game { frames: 500, settle: 90, episode: 1000 });
    live.save(kept.path()).unwrap();
    let (mut again, mut same) = (Live::new(&policy(), config()).unwrap(), Person(person.0));
    again.resume(kept.path()).unwrap();
    assert_eq!(weights(&again), weights(&live));
    let counts = |live: &Live| live.info().map(|info| (info.learnt, info.updates, info.pieces)).unwrap();
    assert_eq!(counts(&again), counts(&live));
    assert!(counts(&live).0 == 300);
    // The session's state is the host's: an episode ends in one, and the other begins with its draws.
    live.reward(0.0, End::Over, &[], &[]).unwrap();
    let mut state = vec![0; live.session().state_size()];
    live.session().save_state(0, &mut state).unwrap();
    again.restore_state(&state).unwrap();
    let more = |live: &mut Live, person: &mut Person| {
        let pressed = play(live, person, game(400, 90));
        live.settle().unwrap();
        (pressed, weights(live))
    };
    assert_eq!(more(&mut again, &mut same), more(&mut live, &mut person));
    assert!(agreement(&Model::load(&context(), kept.path()).unwrap()) > 0.5);
    fails(again.resume(kept.path()), Status::State, "frames were played");
    let mut other = Live::new(&model, LiveConfig { updates: 21, ..config() }).unwrap();
    fails(other.resume(kept.path()), Status::Mismatch, "updates 20, this is 21");
    fails(other.resume("/nonexistent/x"), Status::Io, "");
    assert_eq!(weights(&other), model.info().unwrap().weights_hash);
}

#[test]
fn the_thread_saves_by_itself() {
    let kept = Scratch::new("live-itself");
    let path = || Some(kept.path().to_path_buf());
    let run = |config| {
        let mut live = Live::new(&policy(), config).unwrap();
        play(&mut live, &mut Person(1), game(250, 0));
        live.settle().unwrap();
        live.info().unwrap()
    };
    let told = run(LiveConfig { path: path(), save_pieces: 2, ..usual() });
    assert_eq!((told.pieces, told.saved, told.unsaved), (5, 2, None));
    let mut live = Live::new(&policy(), usual()).unwrap();
    live.resume(kept.path()).unwrap();
    assert_eq!(live.info().unwrap().pieces, 4);
    let told = run(LiveConfig { path: Some("/nonexistent/folder/x".into()), save_pieces: 1, ..usual() });
    assert_eq!((told.saved, told.unsaved, told.failed), (0, Some(Status::Io), None));
    assert!(told.message.contains("/nonexistent/folder"), "{}", told.message);
}

#[test]
fn frames_that_are_taken_back_are_not_learnt() {
    let run = |back: bool| {
        let mut live = Live::new(&policy(), LiveConfig { rollback_frames: 8, ..paced() }).unwrap();
        let (mut person, mut pressed, mut state) = (Person(1), Vec::new(), vec![0; live.session().state_size()]);
        for t in 0..300 {
            if back && t % 37 == 36 {
                live.session().save_state(0, &mut state).unwrap();
                play(&mut live, &mut Person(5), game(t % 8 + 1, 0));
                live.restore_state(&state).unwrap();
            }
            pressed.extend(play(&mut live, &mut person, game(1, 0)));
        }
        live.settle().unwrap();
        let taken_back: usize = if back { (36..300).step_by(37).map(|t| t % 8 + 1).sum() } else { 0 };
        assert_eq!(live.info().unwrap().taken_back, taken_back as i64);
        (pressed, weights(&live))
    };
    assert_eq!(run(true), run(false));
    let mut live = Live::new(&policy(), usual()).unwrap();
    let mut state = vec![0; live.session().state_size()];
    live.session().save_state(0, &mut state).unwrap();
    fails(live.restore_state(&state), Status::State, "");
}

/// How likely the person's move is afterwards, where the data say another.
fn right(share: f64) -> f32 {
    let context = context();
    let mut data = Dataset::new(&context, Some(&follow())).unwrap();
    data.add_rows(0, &[0.5; 800], &[1; 400], &[0; 800]).unwrap();
    let config = LiveConfig { dataset: Some(&data), share, updates: 60, ..paced() };
    // Without a state that would tell the person's frames from the others.
    let model = Model::create(&context, &ModelConfig { blocks: Some("mlp".into()), ..small() }).unwrap();
    let mut live = Live::new(&model, config).unwrap();
    drop((data, context, model));
    let (row, mut actions, mut logits) = ([0.5; 2], [0; 2], [0.0; 5]);
    for _ in 0..100 {
        live.step_row(&row, &[1], Some(&[2, 0]), &mut actions).unwrap();
    }
    live.settle().unwrap();
    live.step_row(&row, &[1], None, &mut actions).unwrap();
    live.session().logits(0, &mut logits).unwrap();
    logits[2].exp() / logits[..3].iter().map(|logit| logit.exp()).sum::<f32>()
}

#[test]
fn data_keep_their_share_and_what_is_let_pass_may_count() {
    let (little, much) = (right(0.1), right(0.9));
    assert!(little < 0.35 && much > 0.65, "{} {}", little, much);
    let learnt_from = |approved| {
        let mut live = Live::new(&policy(), LiveConfig { approved, ..paced() }).unwrap();
        for _ in 0..100 {
            live.step_row(&[0.5; 2], &[1], None, &mut [0; 2]).unwrap();
        }
        live.settle().unwrap();
        live.info().map(|info| (info.updates, info.learnt)).unwrap()
    };
    assert_eq!((learnt_from(0.0), learnt_from(0.5)), ((0, 0), (40, 0)));
}

#[test]
fn melee() {
    let config = ModelConfig { spec: None, blocks: Some("mlp".into()), ..small() };
    let model = Model::create(&context(), &config).unwrap();
    let sampling = Some(Sampling { batch: 4, time: 20, ..model.sampling().unwrap() });
    let mut frame = melee::Frame::new(0, 32, 1);
    frame.player[..2].iter_mut().for_each(|player| player.present = 1);
    let held = melee::Pad { buttons: melee::button::A, main_x: 0.123, ..Default::default() };
    let session = SessionConfig { deterministic: true, ..Default::default() };
    let mut live = Live::new(&model, LiveConfig { session, sampling, ..usual() }).unwrap();
    let mut pad = melee::Pad::default();
    for _ in 0..100 {
        live.step(&frame, Some(&held), &mut pad).unwrap();
        assert_eq!(pad, held);
    }
    live.settle().unwrap();
    live.step(&frame, None, &mut pad).unwrap();
    assert!(pad.buttons == melee::button::A && (pad.main_x - 0.123).abs() < 0.1, "{:?}", pad);
    frame.own_port = 9;
    fails(live.step(&frame, None, &mut pad), Status::Invalid, "own_port");
    assert_eq!(live.info().unwrap().frames, 101);
    let mut live = Live::new(&policy(), usual()).unwrap();
    fails(live.step(&frame, None, &mut pad), Status::State, ": use step_row");
}

#[test]
fn reinforcement_is_that_of_a_learner() {
    let context = context();
    let mut world = World::create(&context, "cartpole", 1).unwrap();
    let config = ModelConfig { spec: Some(world.spec().clone()), ..small() };
    let model = Model::create(&context, &config).unwrap();
    let settings =
        LearnerConfig { half_life_frames: 69.0, reward_scale: 0.1, to_teacher: 0.01, seed: 5, ..Default::default() };
    let rate = OptimizerConfig { rate: 1e-3, ..Default::default() };
    let optimizer = Optimizer::new(&model, &rate).unwrap();
    let trainer = TrainerConfig { as_played: true, ..Default::default() };
    let session = SessionConfig { seed: 5, ..Default::default() };
    let mut rollout = Rollout::new(&model, &session, &RolloutConfig { time: 24, seed: 5 }).unwrap();
    let trainer = Trainer::new(&model, &optimizer, None, &trainer).unwrap();
    let mut learner = Learner::new(trainer, Some(&model), &settings).unwrap();
    let config = LiveConfig {
        way: LiveWay::Reinforce,
        teacher: Some(&model),
        time: 24,
        paced: true,
        session,
        optimizer: rate,
        learner: Some(settings),
        ..Default::default()
    };
    let mut live = Live::new(&model, config).unwrap();
    let (mut row, mut own, mut other) = ([0.0; 4], [0], [0]);
    world.reset(0, 3, &mut row, &mut []).unwrap();
    for chunk in 1..4 {
        loop {
            live.step_row(&row, &[], None, &mut own).unwrap();
            rollout.step(&row, &[], &mut other).unwrap();
            assert_eq!(own, other);
            let (mut reward, mut end) = ([0.0], [End::GoesOn]);
            world.step(&own, &mut row, &mut [], &mut reward, &mut end).unwrap();
            live.reward(reward[0], end[0], &row, &[]).unwrap();
            let full = rollout.reward(&reward, &end, &row, &[]).unwrap();
            if end[0] != End::GoesOn {
                world.reset(0, chunk as u64, &mut row, &mut []).unwrap();
            }
            if full {
                break;
            }
        }
        let metrics = learner.update(&mut rollout).unwrap();
        live.settle().unwrap();
        let info = live.info().unwrap();
        let now = learner.trainer().model(Weights::Latest).unwrap().info().unwrap();
        assert_eq!((weights(&live), info.updates, info.loss), (now.weights_hash, metrics.updates, metrics.loss));
        assert_eq!((info.pieces, info.adopted, info.learnt, info.dropped), (chunk, chunk, 24 * chunk, 0));
        assert_eq!(info.reward, metrics.reward);
    }
}

#[test]
fn a_full_ring_drops_chunks() {
    let config = LiveConfig { way: LiveWay::Reinforce, time: 8, ring_frames: 1, ..Default::default() };
    let mut live = Live::new(&policy(), config).unwrap();
    for _ in 0..400 {
        live.step_row(&[0.0; 2], &[0], None, &mut [0; 2]).unwrap();
        live.reward(1.0, End::GoesOn, &[0.0; 2], &[0]).unwrap();
    }
    live.settle().unwrap();
    let info = live.info().unwrap();
    assert_eq!((info.pieces + info.dropped / 8, info.failed), (50, None));
}

#[test]
fn wrong_steps_move_nothing() {
    let mut live = Live::new(&policy(), usual()).unwrap();
    let mut actions = [7; 2];
    for (person, word) in [(&[3, 0][..], "person"), (&[-1, 0], "person"), (&[0, 4], "person")] {
        fails(live.step_row(&[0.0; 2], &[0], Some(person), &mut actions), Status::Invalid, word);
    }
    fails(live.step_row(&[0.0; 2], &[0], Some(&[0]), &mut actions), Status::Invalid, "person: has 1 elements");
    fails(live.step_row(&[0.0], &[0], None, &mut actions), Status::Invalid, "floats: has 1");
    fails(live.step_row(&[0.0; 2], &[], None, &mut actions), Status::Invalid, "ids: has 0");
    fails(live.step_row(&[0.0; 2], &[0], None, &mut actions[..1]), Status::Invalid, "actions: has 1");
    fails(live.step_row(&[f32::NAN, 0.0], &[0], None, &mut actions), Status::Numeric, "");
    fails(live.step_row(&[0.0; 2], &[4], None, &mut actions), Status::Invalid, "place");
    fails(live.reward(0.0, End::Over, &[0.0], &[]), Status::Invalid, "floats: has 1");
    fails(live.save(""), Status::Invalid, "path is empty");
    fails(live.save("a\0b"), Status::Invalid, "NUL");
    assert_eq!((live.info().unwrap().frames, actions), (0, [7; 2]));
    live.step_row(&[0.0; 2], &[0], Some(&[2, 3]), &mut actions).unwrap();
    assert_eq!(actions, [2, 3]);
    let config = LiveConfig { way: LiveWay::Reinforce, time: 8, ..Default::default() };
    let mut live = Live::new(&policy(), config).unwrap();
    fails(live.reward(0.0, End::Over, &[], &[]), Status::State, "");
    live.step_row(&[0.0; 2], &[0], None, &mut actions).unwrap();
    fails(live.step_row(&[0.0; 2], &[0], None, &mut actions), Status::State, "");
    fails(live.reward(f32::NAN, End::Over, &[], &[]), Status::Numeric, "reward");
}

/// A setting's name, and how to spoil it.
type Spoil = (&'static str, fn(&mut LiveConfig<'_>));

#[test]
fn every_setting_reaches_the_library() {
    let model = policy();
    let settings: [Spoil; 17] = [
        ("share", |c| c.share = f64::NAN),
        ("approved", |c| c.approved = f64::NAN),
        ("piece_frames", |c| c.piece_frames = usize::MAX),
        ("updates", |c| c.updates = usize::MAX),
        ("ring_frames", |c| c.ring_frames = usize::MAX),
        ("rollback_frames", |c| c.rollback_frames = usize::MAX),
        ("save_pieces", |c| c.save_pieces = usize::MAX),
        ("time", |c| c.time = 8),
        ("learner", |c| c.learner = Some(LearnerConfig::default())),
        ("path", |c| c.path = Some("".into())),
        ("streams", |c| c.session.streams = 2),
        ("rate", |c| c.optimizer.rate = f64::NAN),
        ("own_past", |c| c.trainer.own_past = f64::NAN),
        ("losses", |c| c.trainer.losses = vec![HeadLoss::default()]),
        ("sampling", |c| c.sampling.as_mut().unwrap().batch = usize::MAX),
        ("abacus", |c| c.context = Some(Context::builder().device("abacus"))),
        ("cancel", |c| c.context = Some(Context::builder().cancel(|| false))),
    ];
    for (name, spoil) in settings {
        let mut config = usual();
        spoil(&mut config);
        let error = Live::new(&model, config).err().unwrap_or_else(|| panic!("{} may be anything", name));
        assert!(error.message().contains(name), "of {}: {}", name, error);
    }
    let reinforce = || LiveConfig { way: LiveWay::Reinforce, ..Default::default() };
    let spoilt: [Spoil; 5] = [
        ("sampling", |c| c.sampling = Some(Sampling::default())),
        ("piece_frames", |c| c.piece_frames = 2),
        ("time", |c| c.time = 5000),
        ("clip", |c| c.learner = Some(LearnerConfig { clip: f64::NAN, ..Default::default() })),
        ("teacher", |c| c.learner = Some(LearnerConfig { to_teacher: 0.1, ..Default::default() })),
    ];
    for (name, spoil) in spoilt {
        let mut config = reinforce();
        spoil(&mut config);
        let error = Live::new(&model, config).err().unwrap_or_else(|| panic!("{} may be anything", name));
        assert!(error.message().contains(name), "of {}: {}", name, error);
    }
    fails(Live::new(&model, LiveConfig { teacher: Some(&model), ..usual() }), Status::Invalid, "teacher is for");
}

#[test]
fn what_does_not_belong_together() {
    let model = policy();
    let data = Dataset::new(&context(), Some(&pong::spec())).unwrap();
    fails(Live::new(&model, LiveConfig { dataset: Some(&data), ..usual() }), Status::Mismatch, "");
    fails(Live::new(&model.quantize(Type::Bf16).unwrap(), usual()), Status::Unsupported, "quantised");
    let of = |config| Model::create(&context(), &config).unwrap();
    fails(Live::new(&of(ModelConfig { delays: vec![0, 2], ..small() }), usual()), Status::Unsupported, "delays");
    let config = LiveConfig { way: LiveWay::Reinforce, ..Default::default() };
    assert!(Live::new(&of(ModelConfig { value: Value::None, ..small() }), config).is_err());
}

#[test]
fn what_learns_logs_from_its_own_thread() {
    let (sender, heard) = mpsc::channel();
    let sender = Mutex::new(sender);
    let log = move |level, message: &str| {
        sender.lock().unwrap().send((thread::current().id(), level, message.to_string())).unwrap();
        panic!("nobody hears this");
    };
    // Where there is no GPU, that is told.
    let auto = || Context::builder().device("auto").threads(1);
    if auto().build().unwrap().device().unwrap().id != "cpu" {
        return;
    }
    let context = Some(auto().log(LogLevel::Warning, log));
    let mut live = Live::new(&policy(), LiveConfig { context, ..usual() }).unwrap();
    play(&mut live, &mut Person(1), game(60, 0));
    live.settle().unwrap();
    assert_eq!(live.info().unwrap().failed, None);
    drop(live);
    let told: Vec<_> = heard.iter().collect(); // ends: the hook is gone
    assert!(!told.is_empty() && told.iter().all(|one| one.0 != thread::current().id()), "{:?}", told);
}

#[test]
fn it_moves_to_another_thread() {
    let mut live = Live::new(&policy(), paced()).unwrap();
    play(&mut live, &mut Person(1), game(60, 0));
    let live = thread::spawn(move || {
        play(&mut live, &mut Person(2), game(60, 0));
        live.settle().unwrap();
        live
    });
    assert_eq!(live.join().unwrap().info().unwrap().frames, 120);
}
