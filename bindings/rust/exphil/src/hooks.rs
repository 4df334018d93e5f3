//! Closures as hooks of a context. The library calls log and cancel from the thread that called into it, so a panic is
//! caught in the hook, kept for this thread, and goes on when the call has returned: nothing unwinds through C.

use exphil_sys as sys;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

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

thread_local! {
    /// The panic of a hook, between the hook and the return of the call it happened in.
    static PANIC: RefCell<Option<Box<dyn Any + Send>>> = RefCell::new(None);
}

/// Runs a hook of the host; of several panics in one call the first one counts.
pub(crate) fn guarded<T>(otherwise: T, hook: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(value) => value,
        Err(panic) => {
            PANIC.with(|kept| {
                kept.borrow_mut().get_or_insert(panic);
            });
            otherwise
        }
    }
}

/// Lets a panic of a hook go on.
pub(crate) fn go_on() {
    if let Some(panic) = PANIC.with(|kept| kept.borrow_mut().take()) {
        resume_unwind(panic);
    }
}

/// Forgets a panic of a hook: nothing may unwind out of a destructor.
pub(crate) fn discard() {
    // A handle that is dropped while the thread's own storage goes away has nothing to forget.
    let _ = PANIC.try_with(|kept| kept.borrow_mut().take());
}

pub(crate) unsafe extern "C" fn log(user: *mut c_void, level: i32, message: *const c_char) {
    guarded((), || {
        let hooks = unsafe { &*(user as *const Hooks) };
        if let Some(log) = &hooks.log {
            log(LogLevel::of(level), &unsafe { CStr::from_ptr(message) }.to_string_lossy());
        }
    });
}

pub(crate) unsafe extern "C" fn cancel(user: *mut c_void) -> i32 {
    guarded(1, || {
        let hooks = unsafe { &*(user as *const Hooks) };
        hooks.cancel.as_ref().map_or(0, |cancel| i32::from(cancel()))
    })
}
