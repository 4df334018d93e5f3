//! Hooks: messages arrive, long calls are stopped, panics go on where the call returns, closures live long enough.

mod pong;

use exphil::*;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Without the CUDA plugin "auto" takes the CPU, and says why.
fn without_plugin() -> ContextBuilder {
    Context::builder().threads(1).device("auto").backend_path("/nowhere")
}

#[test]
fn messages_arrive() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    let log = move |level, text: &str| kept.lock().unwrap().push((level, text.to_string()));
    let context = without_plugin().log(LogLevel::Warning, log).build().unwrap();
    assert_eq!(context.device().unwrap().id, "cpu");
    let heard = heard.lock().unwrap();
    assert_eq!((heard.len(), heard[0].0), (1, LogLevel::Warning));
    assert!(heard[0].1.contains("running on the CPU"), "{:?}", heard);
}

#[test]
fn messages_below_the_level_are_not_heard() {
    without_plugin().log(LogLevel::Error, |_, text| panic!("{}", text)).build().unwrap();
}

#[test]
fn long_calls_are_stopped() {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let context = Context::builder().threads(1).cancel(move || asked.load(Ordering::Relaxed)).build().unwrap();
    let mut trainer = pong::trainer(&context);
    trainer.step().unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(trainer.step().unwrap_err().status(), Status::Cancelled);
    stop.store(false, Ordering::Relaxed);
    assert_eq!(trainer.step().unwrap().update, 2);
    assert_eq!(trainer.wait().unwrap().update, 2);
}

#[test]
fn a_panic_of_cancel_goes_on() {
    let armed = Arc::new(AtomicBool::new(false));
    let asked = armed.clone();
    let cancel = move || {
        assert!(!asked.load(Ordering::Relaxed), "the hook breaks");
        false
    };
    let context = Context::builder().threads(1).cancel(cancel).build().unwrap();
    let mut trainer = pong::trainer(&context);
    armed.store(true, Ordering::Relaxed);
    let panic = catch_unwind(AssertUnwindSafe(|| trainer.step())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the hook breaks"));
    armed.store(false, Ordering::Relaxed);
    assert_eq!(trainer.step().unwrap().update, 1);
}

#[test]
fn a_panic_of_log_goes_on() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let token = Token(dropped.clone());
    let log = move |_, _: &str| {
        let _ = &token;
        panic!("cannot write")
    };
    let made = catch_unwind(AssertUnwindSafe(|| without_plugin().log(LogLevel::Debug, log).build()));
    assert_eq!(made.unwrap_err().downcast_ref::<&str>(), Some(&"cannot write"));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    pong::trainer(&pong::context()).step().unwrap();
}

/// The first of two ranks, whose line is cut in the first exchange: then the other rank has what this one has.
struct Cut(Arc<AtomicUsize>);

impl Communicator for Cut {
    fn rank(&self) -> i32 {
        0
    }
    fn ranks(&self) -> i32 {
        2
    }
    fn all_reduce(&mut self, numbers: Numbers<'_>) -> std::result::Result<(), i32> {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) > 0, "the line is cut");
        match numbers {
            Numbers::F32(own) => own.iter_mut().for_each(|number| *number *= 2.0),
            Numbers::F64(own) => own.iter_mut().for_each(|number| *number *= 2.0),
        }
        Ok(())
    }
}

#[test]
fn a_communicator_that_panicked_is_called_again() {
    let context = pong::context();
    let model = pong::model(&context);
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let source = pong::prefetcher(&model, &pong::dataset(&context));
    let (config, called) = (TrainerConfig::default(), Arc::new(AtomicUsize::new(0)));
    let mut trainer =
        Trainer::with_communicator(&model, &optimizer, Some(source), &config, Cut(called.clone())).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| trainer.step())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the line is cut"));
    assert_eq!((optimizer.info().unwrap().updates, called.load(Ordering::Relaxed)), (0, 1));
    assert_eq!(trainer.step().unwrap().update, 1);
    assert_eq!((optimizer.info().unwrap().updates, called.load(Ordering::Relaxed)), (1, 2));
}

/// Counts itself as dropped.
struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn closures_live_as_long_as_the_last_child() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let token = Token(dropped.clone());
    let cancel = move || {
        let _ = &token;
        false
    };
    let context = Context::builder().threads(1).cancel(cancel).build().unwrap();
    let mut trainer = pong::trainer(&context);
    drop(context);
    trainer.step().unwrap();
    let model = trainer.model(Weights::Latest).unwrap();
    drop(trainer);
    let session = Session::new(&model, &SessionConfig::default()).unwrap();
    drop(model);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(session);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}
