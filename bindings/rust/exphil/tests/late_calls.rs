//! Destructors of thread-locals may call the library: they run when part of the thread's storage is gone, also that of
//! this crate. What would abort here, or unwind through C, ends the test program. Not on Windows: there they run under the
//! loader's lock, which a thread that starts or ends must have, so that nothing there may wait for a thread.
#![cfg(not(windows))]

mod pong;

use exphil::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::mpsc::{channel, Sender};
use std::thread;

type Last = Box<dyn FnOnce()>;

/// Runs what it holds when it is dropped.
struct Late(Option<Last>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.take().unwrap()();
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// On a thread of its own, runs what `prepare` returns when the storage of that thread goes away. The slot is taken before
/// the library is called first: what is set up later goes first.
fn at_the_end_of_a_thread<T: Send + 'static>(prepare: impl FnOnce(Sender<T>) -> Last + Send + 'static) -> T {
    let (sender, receiver) = channel();
    thread::spawn(|| {
        LATE.with(|late| *late.borrow_mut() = Some(Late(Some(prepare(sender)))));
    })
    .join()
    .unwrap();
    receiver.recv().unwrap()
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("exphil-{}-{}", std::process::id(), name))
}

#[test]
fn a_model_is_saved() {
    let path = scratch("late.safetensors");
    let file = path.clone();
    at_the_end_of_a_thread(|sender| {
        let model = pong::model(&pong::context());
        Box::new(move || sender.send(model.save(file)).unwrap())
    })
    .unwrap();
    Model::load(&pong::context(), &path).unwrap();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn objects_are_made_and_fail() {
    let failed = at_the_end_of_a_thread(|sender| {
        let context = pong::context();
        Box::new(move || {
            pong::trainer(&context).step().unwrap();
            sender.send(Model::load(&context, "/nowhere/at/all").unwrap_err()).unwrap()
        })
    });
    assert_eq!(failed.status(), Status::Io);
}

/// A payload that panics when it is dropped, but for one that unwinds by itself.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("the payload breaks")
        }
    }
}

/// What the first step of a trainer panics with, whose cancel hook panics each time, and what it can still do.
fn panic_of_a_late_step(cancel: fn() -> bool) -> (Box<dyn Any + Send>, Result<OptimizerInfo>) {
    at_the_end_of_a_thread(move |sender| {
        let context = Context::builder().threads(1).cancel(cancel).build().unwrap();
        let model = pong::model(&context);
        let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
        let source = pong::prefetcher(&model, &pong::dataset(&context));
        let mut trainer = Trainer::new(&model, &optimizer, Some(source), &TrainerConfig::default()).unwrap();
        Box::new(move || {
            let first = catch_unwind(AssertUnwindSafe(|| trainer.step())).unwrap_err();
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| trainer.step())).unwrap_err());
            sender.send((first, optimizer.info())).unwrap()
        })
    })
}

#[test]
fn a_panic_of_cancel_goes_on() {
    let (panic, info) = panic_of_a_late_step(|| panic!("the hook breaks"));
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the hook breaks"));
    assert_eq!(info.unwrap().updates, 0);
}

#[test]
fn a_panic_goes_on_whatever_it_carries() {
    let (panic, info) = panic_of_a_late_step(|| std::panic::panic_any(Bomb));
    assert!(panic.is::<Bomb>());
    std::mem::forget(panic);
    assert_eq!(info.unwrap().updates, 0);
}
