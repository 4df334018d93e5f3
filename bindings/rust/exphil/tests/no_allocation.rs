//! A step allocates nothing in Rust either. An allocator that counts, so this test has a program of its own. Not for Windows' gnu
//! target, where a thread-local is allocated when it is first asked for: the allocator would call itself.
#![cfg(not(all(windows, target_env = "gnu")))]
#![deny(unsafe_op_in_unsafe_fn)]

mod pong;

use exphil::{
    End, Live, LiveConfig, LiveWay, Model, ModelConfig, Rollout, RolloutConfig, Session, SessionConfig, Value,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls() -> usize {
    CALLS.with(|calls| calls.get())
}

#[test]
fn hot_calls_allocate_nothing() {
    let model = pong::model(&pong::context());
    let mut session = Session::new(&model, &SessionConfig::default()).unwrap();
    let (mut actions, mut logits) = ([0; 2], [0.0; 5]);
    let mut state = vec![0; session.state_size()];
    let before = calls();
    assert!(before > 0);
    for t in 0..1000 {
        let (floats, ids, _) = pong::row(t);
        session.step_row(&floats, &ids, &mut actions).unwrap();
        session.step_row_with(&floats, &ids, &[0.5; 5], &mut actions).unwrap();
        session.logits(0, &mut logits).unwrap();
        session.save_state(0, &mut state).unwrap();
        session.restore_state(0, &state).unwrap();
        session.override_action(0, &actions).unwrap();
        session.reset(0).unwrap();
    }
    assert_eq!(calls(), before);
    assert!(session.step_row(&[], &[], &mut actions).is_err());
    assert!(calls() > before, "a failure's sentence is allocated, so the counter works");
}

#[test]
fn hot_calls_of_learning_allocate_nothing() {
    let (context, config) = (pong::context(), ModelConfig { value: Value::Shared, ..pong::config() });
    let models = [1, 2, 3].map(|seed| Model::create(&context, &ModelConfig { seed, ..config.clone() }).unwrap());
    models.iter().for_each(|model| model.prepare().unwrap());
    let mut session = Session::new(&models[0], &SessionConfig { adoptable: true, ..Default::default() }).unwrap();
    let mut rollout =
        Rollout::new(&models[0], &SessionConfig::default(), &RolloutConfig { time: 1000, seed: 1 }).unwrap();
    let mut actions = [0; 2];
    let before = calls();
    for t in 0..900 {
        let (floats, ids, _) = pong::row(t);
        session.step_row(&floats, &ids, &mut actions).unwrap();
        session.value(0).unwrap();
        let replaced = session.adopt(&models[t % 3]).unwrap();
        assert_eq!(replaced.is_some(), t > 0);
        rollout.step(&floats, &ids, &mut actions).unwrap();
        rollout.override_action(0, &actions).unwrap();
        assert!(!rollout.reward(&[0.5], &[End::Over], &[], &[]).unwrap());
    }
    assert_eq!(calls(), before);
}

#[test]
fn hot_calls_behind_which_is_learnt_allocate_nothing() {
    let model = Model::create(&pong::context(), &ModelConfig { value: Value::Shared, ..pong::config() }).unwrap();
    let imitates = LiveConfig { rollback_frames: 1, piece_frames: 20, updates: 1, ..Default::default() };
    let rewarded = LiveConfig { way: LiveWay::Reinforce, time: 20, ..Default::default() };
    for config in [imitates, rewarded] {
        let way = config.way;
        let mut live = Live::new(&model, config).unwrap();
        let (mut actions, mut state, mut adopted) = ([0; 2], vec![0; live.session().state_size()], 0);
        for round in 0..20 {
            let before = calls();
            for t in 0..50 {
                let (floats, ids, person) = pong::row(t);
                let presses = if t % 3 == 0 { Some(&person[..]) } else { None };
                live.step_row(&floats, &ids, presses, &mut actions).unwrap();
                live.reward(0.5, if t % 10 == 9 { End::Over } else { End::GoesOn }, &floats, &ids).unwrap();
                if way == LiveWay::Imitate {
                    live.session().save_state(0, &mut state).unwrap();
                    live.restore_state(&state).unwrap();
                }
            }
            assert_eq!(calls(), before, "round {}", round);
            live.settle().unwrap();
            adopted = live.info().unwrap().adopted;
        }
        assert!(adopted > 0, "new weights came");
    }
}
