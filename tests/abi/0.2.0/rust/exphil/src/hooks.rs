//! Closures as hooks of a context. The library calls log and cancel from the thread that called into it, so a panic is
//! caught in the hook, kept for this thread, and goes on when the call has returned: nothing unwinds through C.

use exphil_sys as sys;
use std::any::Any;
use std::cell::Cell;
use std::ffi::CStr;
use std::mem;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::NonNull;

/// How much a message matters; a context passes on what is at least as urgent as its own level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum LogLevel {
    /// Something failed.
    Error = sys::EXPHIL_LOG_ERROR as i32,
    /// Something is not as it should be.
    Warning = sys::EXPHIL_LOG_WARNING as i32,
    /// What goes on.
    Info = sys::EXPHIL_LOG_INFO as i32,
    /// All there is.
    Debug = sys::EXPHIL_LOG_DEBUG as i32,
}

impl LogLevel {
    fn of(level: i32) -> LogLevel {
        match level {
            i32::MIN..=1 => LogLevel::Error,
            2 => LogLevel::Warning,
            3 => LogLevel::Info,
            _ => LogLevel::Debug,
        }
    }
}

pub(crate) type Log = Box<dyn Fn(LogLevel, &str) + Send + Sync>;
pub(crate) type Cancel = Box<dyn Fn() -> bool + Send + Sync>;

/// What the library's user pointers of a context point to. Lives as long as the last handle that came from it.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) log: Option<Log>,
    pub(crate) cancel: Option<Cancel>,
}

/// What a hook panicked with.
type Panic = Box<dyn Any + Send>;

thread_local! {
    /// The panic of a hook, between the hook and the return of the call it happened in. A raw pointer, not a box: what has
    /// no destructor can still be used when the thread's storage goes away, where destructors may call the library.
    static PANIC: Cell<Option<NonNull<dyn Any + Send>>> = const { Cell::new(None) };
}

/// Runs a hook of the host; of several panics in one call the first one counts. The hook may itself make calls and drop
/// objects: these neither see nor forget the panic that is kept already.
pub(crate) fn guarded<T>(otherwise: T, hook: impl FnOnce() -> T) -> T {
    let before = take();
    let result = catch_unwind(AssertUnwindSafe(hook));
    let (value, panic) = match result {
        Ok(value) => (value, None),
        Err(panic) => (otherwise, Some(panic)),
    };
    match (before, panic) {
        (Some(first), Some(second)) => {
            keep(first);
            drop_quietly(second);
        }
        (Some(only), None) | (None, Some(only)) => keep(only),
        (None, None) => {}
    }
    value
}

/// Lets a panic of a hook go on.
pub(crate) fn go_on() {
    if let Some(panic) = take() {
        resume_unwind(panic);
    }
}

/// Forgets a panic of a hook: nothing may unwind out of a destructor.
pub(crate) fn discard() {
    if let Some(panic) = take() {
        drop_quietly(panic);
    }
}

/// The slot is empty: [`guarded`] took out what was there, and nested calls leave nothing behind.
fn keep(panic: Panic) {
    let raw = NonNull::from(Box::leak(panic));
    // Only where threads have no storage of the system's own can it be gone; then the panic is lost, and leaks.
    let _ = PANIC.try_with(|kept| kept.set(Some(raw)));
}

fn take() -> Option<Panic> {
    let raw = PANIC.try_with(Cell::take).ok().flatten()?;
    // The box that keep() took apart; the slot is empty again, so nobody else has it.
    Some(unsafe { Box::from_raw(raw.as_ptr()) })
}

/// What a panic carries may panic again when it is dropped, and so may that: the second one leaks.
pub(crate) fn drop_quietly(panic: Panic) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(again);
    }
}

pub(crate) unsafe extern "C" fn log(user: *mut c_void, level: i32, message: *const c_char) {
    guarded((), || unsafe { hear(user, level, message) });
}

/// Of a thread of the library's own: there is no call that a panic could go on in.
pub(crate) unsafe extern "C" fn log_behind(user: *mut c_void, level: i32, message: *const c_char) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| unsafe { hear(user, level, message) })) {
        drop_quietly(panic);
    }
}

unsafe fn hear(user: *mut c_void, level: i32, message: *const c_char) {
    let hooks = unsafe { &*(user as *const Hooks) };
    if let Some(log) = &hooks.log {
        log(LogLevel::of(level), &unsafe { CStr::from_ptr(message) }.to_string_lossy());
    }
}

pub(crate) unsafe extern "C" fn cancel(user: *mut c_void) -> i32 {
    guarded(1, || {
        let hooks = unsafe { &*(user as *const Hooks) };
        hooks.cancel.as_ref().map_or(0, |cancel| i32::from(cancel()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Panics when it is dropped, with another one of its kind that panics with a text.
    struct Bomb(i32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.0 < 100, "the payload breaks");
            panic_any(Bomb(self.0 + 100))
        }
    }

    /// Hooks whose cancel panics with bombs 1, 2, ...
    fn bombs() -> Hooks {
        let asked = AtomicUsize::new(0);
        let cancel = move || panic_any(Bomb(asked.fetch_add(1, Ordering::Relaxed) as i32 + 1));
        Hooks { log: None, cancel: Some(Box::new(cancel)) }
    }

    /// As the library asks.
    fn ask(hooks: &mut Hooks) -> i32 {
        let user: *mut Hooks = hooks;
        unsafe { cancel(user.cast()) }
    }

    #[test]
    fn the_first_of_several_panics_goes_on_whatever_the_others_carry() {
        let mut hooks = bombs();
        assert_eq!([ask(&mut hooks), ask(&mut hooks), ask(&mut hooks)], [1; 3]);
        let panic = catch_unwind(go_on).unwrap_err();
        assert_eq!(panic.downcast_ref::<Bomb>().unwrap().0, 1);
        mem::forget(panic);
        go_on();
    }

    #[test]
    fn a_panic_is_forgotten_whatever_it_carries() {
        ask(&mut bombs());
        assert_eq!(catch_unwind(discard).map_err(mem::forget), Ok(()));
        go_on();
    }

    #[test]
    fn calls_of_a_hook_leave_an_earlier_panic_alone() {
        let quiet = |_: LogLevel, _: &str| {
            discard();
            go_on();
        };
        let mut hooks = Hooks { log: Some(Box::new(quiet)), cancel: Some(Box::new(|| panic!("the first"))) };
        ask(&mut hooks);
        let user: *mut Hooks = &mut hooks;
        unsafe { log(user.cast(), 1, b"later\0".as_ptr().cast()) };
        let panic = catch_unwind(go_on).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the first"));
    }
}
