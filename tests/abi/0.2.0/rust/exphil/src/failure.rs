//! How calls fail: the library's status, code and sentence as one error; and the handle that every object is held by.

use crate::hooks;
use exphil_sys as sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::NonNull;

/// What every call that can fail returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed, as `exphil_status` counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// An argument or configuration is wrong.
    Invalid,
    /// Host or device memory could not be had.
    Memory,
    /// The operating system refused a file operation.
    Io,
    /// File content is damaged or of an unknown version.
    Format,
    /// The right request, but not on this device, type or shape.
    Unsupported,
    /// The device or its driver failed.
    Device,
    /// A call made in the wrong order, or after `fork()`.
    State,
    /// The object is in use on another thread.
    Busy,
    /// Caller, library or plugin are too far apart.
    Version,
    /// The cancel hook said so.
    Cancelled,
    /// NaN or infinity in an input, a gradient or a result.
    Numeric,
    /// Two objects do not belong together.
    Mismatch,
    /// A bug in libexphil; please report.
    Internal,
    /// A number that this version does not know.
    Other(i32),
}

const STATUSES: [(Status, i32); 13] = [
    (Status::Invalid, sys::EXPHIL_E_INVALID),
    (Status::Memory, sys::EXPHIL_E_MEMORY),
    (Status::Io, sys::EXPHIL_E_IO),
    (Status::Format, sys::EXPHIL_E_FORMAT),
    (Status::Unsupported, sys::EXPHIL_E_UNSUPPORTED),
    (Status::Device, sys::EXPHIL_E_DEVICE),
    (Status::State, sys::EXPHIL_E_STATE),
    (Status::Busy, sys::EXPHIL_E_BUSY),
    (Status::Version, sys::EXPHIL_E_VERSION),
    (Status::Cancelled, sys::EXPHIL_E_CANCELLED),
    (Status::Numeric, sys::EXPHIL_E_NUMERIC),
    (Status::Mismatch, sys::EXPHIL_E_MISMATCH),
    (Status::Internal, sys::EXPHIL_E_INTERNAL),
];

impl Status {
    /// The status of a number that the library returned.
    pub fn from_code(code: i32) -> Status {
        STATUSES.iter().find(|known| known.1 == code).map_or(Status::Other(code), |known| known.0)
    }

    /// The number of `exphil_status`.
    pub fn code(self) -> i32 {
        match self {
            Status::Other(code) => code,
            _ => STATUSES.iter().find(|known| known.0 == self).map_or(0, |known| known.1),
        }
    }

    /// `"EXPHIL_E_FORMAT"`; `"EXPHIL_UNKNOWN"` for a number that the library does not know.
    pub fn name(self) -> &'static str {
        // Static storage, ASCII.
        unsafe { CStr::from_ptr(sys::exphil_status_name(self.code())) }.to_str().unwrap_or("EXPHIL_UNKNOWN")
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    native_code: i32,
    message: Box<str>,
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, native_code: 0, message: message.into().into_boxed_str() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(Status::Invalid, message)
    }

    /// The status is the call's own: what a step failed with is told later, by another call.
    #[cold]
    pub(crate) fn of(status: i32, raw: &sys::exphil_error) -> Error {
        Error {
            status: Status::from_code(status),
            native_code: raw.native_code,
            message: text(&raw.message).into_boxed_str(),
        }
    }

    /// The same with other words for some.
    pub(crate) fn saying(mut self, words: &str, others: &str) -> Error {
        self.message = self.message.replace(words, others).into_boxed_str();
        self
    }

    /// What kind of failure it is.
    pub fn status(&self) -> Status {
        self.status
    }

    /// `errno`, `cudaError_t`, ...; 0 when there is none.
    pub fn native_code(&self) -> i32 {
        self.native_code
    }

    /// One line that names the field, argument or byte offset.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// Makes a call that takes an error, and lets a hook's panic go on. Statuses above zero are no failures.
pub(crate) fn call(work: impl FnOnce(*mut sys::exphil_error) -> i32) -> Result<i32> {
    let mut error = sys::init::<sys::exphil_error>();
    let status = work(&mut error);
    hooks::go_on();
    if status < 0 {
        return Err(Error::of(status, &error));
    }
    Ok(status)
}

/// An object of the library and how it ends.
///
/// # Safety
/// `destroy` must be the function that the header names for it.
pub(crate) unsafe trait Object {
    /// The `*_destroy` of the header.
    unsafe fn destroy(raw: *mut Self);
}

/// One reference to an object. Neither `Send` nor `Sync` by itself: each type of the crate says what the header allows.
pub(crate) struct Handle<T: Object>(NonNull<T>);

impl<T: Object> Handle<T> {
    /// Makes an object; it is dropped again when a hook panicked meanwhile.
    pub(crate) fn create(work: impl FnOnce(*mut *mut T, *mut sys::exphil_error) -> i32) -> Result<Handle<T>> {
        let (made, _) = Handle::create_two(|raw, _, error| work(raw, error))?;
        Ok(made)
    }

    /// Makes two objects in one call. The second may be missing: some calls make one only.
    pub(crate) fn create_two(
        work: impl FnOnce(*mut *mut T, *mut *mut T, *mut sys::exphil_error) -> i32,
    ) -> Result<(Handle<T>, Option<Handle<T>>)> {
        let (mut first, mut second) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut error = sys::init::<sys::exphil_error>();
        let status = work(&mut first, &mut second, &mut error);
        let made = (NonNull::new(first).map(Handle), NonNull::new(second).map(Handle));
        hooks::go_on();
        match made {
            (Some(first), second) if status >= 0 => Ok((first, second)),
            _ => Err(Error::of(status, &error)),
        }
    }

    /// # Safety
    /// `raw` must be a reference of the caller's own, which is given away.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Option<Handle<T>> {
        NonNull::new(raw).map(Handle)
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        unsafe { T::destroy(self.raw()) };
        hooks::discard();
    }
}

/// Says for a type of the library how it is destroyed.
macro_rules! object {
    ($type:ident, $destroy:ident) => {
        unsafe impl crate::failure::Object for exphil_sys::$type {
            unsafe fn destroy(raw: *mut Self) {
                unsafe { exphil_sys::$destroy(raw) }
            }
        }
    };
}
pub(crate) use object;

/// Text of a fixed field of the library; always terminated, UTF-8.
pub(crate) fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Text of the library that lives elsewhere.
///
/// # Safety
/// `pointer` is NULL or terminated text.
pub(crate) unsafe fn borrowed_text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Text for the library, which ends at a NUL.
pub(crate) fn c_text(what: &str, value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error::invalid(format!("{}: has a NUL character inside", what)))
}

/// A file name for the library: UTF-8, no NUL.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    match path.to_str() {
        Some(path) => c_text("path", path),
        None => Err(Error::invalid(format!("path: {} is not UTF-8", path.display()))),
    }
}

/// Refuses a slice of another length, by name.
#[inline]
pub(crate) fn expect_length(what: &str, length: usize, wanted: usize) -> Result<()> {
    if length == wanted {
        return Ok(());
    }
    Err(wrong_length(what, length, wanted))
}

#[cold]
fn wrong_length(what: &str, length: usize, wanted: usize) -> Error {
    Error::invalid(format!("{}: has {} elements, must have {}", what, length, wanted))
}

/// A count of the library: what does not fit is refused there.
pub(crate) fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Defines an enumeration whose variants are numbers of the header.
macro_rules! numbers {
    ($(#[$note:meta])* $name:ident { $($(#[$variant_note:meta])* $variant:ident = $value:ident),* $(,)? }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        #[repr(i32)]
        pub enum $name { $($(#[$variant_note])* $variant = exphil_sys::$value as i32),* }

        impl $name {
            #[allow(dead_code)]
            pub(crate) fn from_number(number: i32) -> crate::Result<$name> {
                $(if number == $name::$variant as i32 {
                    return Ok($name::$variant);
                })*
                let message = format!(concat!(stringify!($name), ": {} is not known to this crate"), number);
                Err(crate::Error::new(crate::Status::Version, message))
            }
        }
    };
}
pub(crate) use numbers;

/// Defines a plain structure whose fields are those of a structure of the header, and copies them over.
macro_rules! mirror {
    ($(#[$note:meta])* $name:ident of $raw:ident { $($(#[$field_note:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$field_note])* pub $field: $type),* }

        impl $name {
            pub(crate) fn of(raw: &exphil_sys::$raw) -> $name {
                $name { $($field: raw.$field as $type),* }
            }
        }
    };
}
pub(crate) use mirror;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Dataset, HeadSpec, Spec};
    use std::panic::{catch_unwind, AssertUnwindSafe};

    /// Two games of 50 frames.
    fn games(context: &Context) -> Dataset {
        let spec = Spec::new("two", "two").floats(1).head(HeadSpec::bernoulli("button", 1));
        let mut games = Dataset::new(context, Some(&spec)).unwrap();
        for game in 0..2 {
            games.add_rows(game, &[0.5; 50], &[], &[1; 50]).unwrap();
        }
        games
    }

    /// As a hook that the library calls while it splits.
    fn split_with(hook: impl FnOnce(), games: &Dataset) -> Result<bool> {
        let mut config = sys::init::<sys::exphil_split_config>();
        config.held_out = 0.5;
        let halves = Handle::create_two(|kept, held, error| {
            let status = unsafe { sys::exphil_dataset_split(games.as_raw(), &config, kept, held, error) };
            hooks::guarded((), hook);
            status
        })?;
        Ok(halves.1.is_some())
    }

    #[test]
    fn a_panic_of_a_hook_drops_both_of_two_objects() {
        let context = Context::builder().threads(1).build().unwrap();
        let games = games(&context);
        let used = || context.memory().unwrap().host_used_bytes;
        let before = used();
        assert_eq!(split_with(|| assert!(used() > before), &games), Ok(true));
        assert_eq!(used(), before);
        let panic = catch_unwind(AssertUnwindSafe(|| split_with(|| panic!("the hook breaks"), &games)));
        assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"the hook breaks"));
        assert_eq!(used(), before);
    }
}
