//! Contexts: the device, threads and hooks that all other objects live on; and the devices there are.

use crate::failure::{c_path, c_text, call, count, mirror, object, text, Handle};
use crate::hooks::{self, Hooks};
use crate::{Error, LogLevel, Result, Status};
use exphil_sys as sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

object!(exphil_context, exphil_context_destroy);

/// Version of the library that is loaded: 10000 * major + 100 * minor + patch.
pub fn version() -> u32 {
    unsafe { sys::exphil_version() }
}

/// `"0.2.0 cpu:ref,avx2,avx512"`.
pub fn version_string() -> &'static str {
    // Static storage, ASCII.
    unsafe { CStr::from_ptr(sys::exphil_version_string()) }.to_str().unwrap_or("")
}

/// Later releases of one binary interface fit, and that interface is in the library's file name; earlier ones lack
/// functions. Patches add none.
fn check_version() -> Result<()> {
    if version() / 100 >= sys::EXPHIL_VERSION as u32 / 100 {
        return Ok(());
    }
    let written = (sys::EXPHIL_VERSION_MAJOR, sys::EXPHIL_VERSION_MINOR);
    let message =
        format!("libexphil {} is loaded, this crate was written for {}.{}", version_string(), written.0, written.1);
    Err(Error::new(Status::Version, message))
}

/// The object that all others come from. Clones are the same context; it ends with the last handle that came from it.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

/// The hooks are dropped last: destroying may still log.
struct Inner {
    handle: Handle<sys::exphil_context>,
    /// Shared, not owned: the library holds a pointer to it, which moving an owner would end.
    _hooks: Arc<Hooks>,
}

// "exphil_context, exphil_model: shared freely"; the hooks are Send + Sync by their types.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// The CPU, one thread for each core, silent.
    pub fn new() -> Result<Context> {
        Context::builder().build()
    }

    /// A context of the host's choice.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Takes over a context that was made through [`exphil_sys`], with an allocator, file access or executor of its own.
    ///
    /// # Safety
    /// The caller gives its reference away, and the hooks of the context live until the process ends or the last object
    /// of the context was dropped.
    pub unsafe fn from_raw(raw: *mut sys::exphil_context) -> Result<Context> {
        let handle = unsafe { Handle::from_raw(raw) }.ok_or_else(|| Error::invalid("context: is NULL"))?;
        Ok(Context { inner: Arc::new(Inner { handle, _hooks: Arc::default() }) })
    }

    /// The library's own pointer, for calls of [`exphil_sys`]. Valid while this handle lives.
    pub fn as_raw(&self) -> *mut sys::exphil_context {
        self.inner.handle.raw()
    }

    /// The device that this context runs on.
    pub fn device(&self) -> Result<DeviceInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_context_device(self.as_raw(), &mut info, error) })?;
        Ok(DeviceInfo::of(&info))
    }

    /// How much memory the context and all objects on it hold.
    pub fn memory(&self) -> Result<MemoryInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_context_memory(self.as_raw(), &mut info, error) })?;
        Ok(MemoryInfo::of(&info))
    }
}

/// How a [`Context`] is made.
///
/// ```
/// # fn main() -> exphil::Result<()> {
/// let context = exphil::Context::builder()
///     .threads(1)
///     .log(exphil::LogLevel::Warning, |level, message| eprintln!("{:?}: {}", level, message))
///     .build()?;
/// assert_eq!(context.device()?.id, "cpu");
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use]
pub struct ContextBuilder {
    device: Option<String>,
    cpu_isa: Option<String>,
    backend: Option<CString>,
    failed: Option<Error>,
    memory_limit: usize,
    threads: i32,
    level: i32,
    hooks: Hooks,
}

impl ContextBuilder {
    /// `"cpu"` (the default), `"cuda"`, `"cuda:0"`, or `"auto"`, which tries CUDA first.
    pub fn device(mut self, device: &str) -> Self {
        self.device = Some(device.to_string());
        self
    }

    /// Caps the instruction set: `"ref"`, `"avx2"`, `"avx512"`, `"neon"`. The bits are the same in all.
    pub fn cpu_isa(mut self, isa: &str) -> Self {
        self.cpu_isa = Some(isa.to_string());
        self
    }

    /// The folder of `libexphil_cuda.so`.
    pub fn backend_path(mut self, folder: impl AsRef<Path>) -> Self {
        match c_path(folder.as_ref()) {
            Ok(path) => self.backend = Some(path),
            Err(error) => self.failed = Some(error),
        }
        self
    }

    /// Device memory at most, in bytes; 0 is no limit.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Own threads of the context: 0 is one for each core, 1 the calling thread only.
    pub fn threads(mut self, threads: i32) -> Self {
        self.threads = threads;
        self
    }

    /// Called with each message that is at least as urgent as `level`, from the thread that calls into the library, never
    /// from a step. What the hook panics with goes on when that call returns; while an object is dropped it is lost.
    pub fn log(mut self, level: LogLevel, log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.level = level as i32;
        self.hooks.log = Some(Box::new(log));
        self
    }

    /// Asked now and then by long calls, from the calling thread; `true` stops them with [`Status::Cancelled`] and leaves
    /// their object as it was.
    pub fn cancel(mut self, cancel: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.hooks.cancel = Some(Box::new(cancel));
        self
    }

    /// Makes the context; refuses a library that is older than what this crate was written for.
    pub fn build(self) -> Result<Context> {
        check_version()?;
        let (handle, hooks) = self.lend(|config| {
            Handle::create(|context, error| unsafe { sys::exphil_context_create(config, context, error) })
        })?;
        Ok(Context { inner: Arc::new(Inner { handle, _hooks: hooks }) })
    }

    /// Lends the configuration of what learns behind a game to one call. The hooks serve until that ends; a thread of the
    /// library's own calls them.
    pub(crate) fn behind<T>(
        self,
        work: impl FnOnce(*const sys::exphil_context_config) -> Result<T>,
    ) -> Result<(T, Arc<Hooks>)> {
        if self.hooks.cancel.is_some() {
            return Err(Error::invalid("context: cancel is not used by what learns behind a game"));
        }
        self.lend(|config| {
            config.log = config.log.map(|_| hooks::log_behind as unsafe extern "C" fn(*mut c_void, i32, *const c_char));
            work(config)
        })
    }

    fn lend<T>(self, work: impl FnOnce(&mut sys::exphil_context_config) -> Result<T>) -> Result<(T, Arc<Hooks>)> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let device = self.device.as_deref().map(|text| c_text("device", text)).transpose()?;
        let isa = self.cpu_isa.as_deref().map(|text| c_text("cpu_isa", text)).transpose()?;
        let hooks = Arc::new(self.hooks);
        let user = Arc::as_ptr(&hooks) as *mut c_void; // read only
        let mut config = sys::init::<sys::exphil_context_config>();
        config.device = pointer(&device);
        config.cpu_isa = pointer(&isa);
        config.backend_path = pointer(&self.backend);
        config.memory_limit_bytes = self.memory_limit;
        config.threads = self.threads;
        config.log_level = self.level;
        config.log = hooks.log.as_ref().map(|_| hooks::log as unsafe extern "C" fn(*mut c_void, i32, *const c_char));
        config.log_user = user;
        config.cancel = hooks.cancel.as_ref().map(|_| hooks::cancel as unsafe extern "C" fn(*mut c_void) -> i32);
        config.cancel_user = user;
        Ok((work(&mut config)?, hooks))
    }
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// A device that a context can be created on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// `"cpu"`, `"cuda:0"`: what [`ContextBuilder::device`] takes.
    pub id: String,
    /// As the processor or driver calls it.
    pub name: String,
    /// `"avx512vnni"`, `"sm_90"`.
    pub isa: String,
    /// 0: not known before the device is opened.
    pub memory_bytes: i64,
    /// Its place among its kind.
    pub index: i32,
    /// CPU: threads that would be used; else 0.
    pub workers: i32,
}

impl DeviceInfo {
    fn of(info: &sys::exphil_device_info) -> DeviceInfo {
        DeviceInfo {
            id: text(&info.id),
            name: text(&info.name),
            isa: text(&info.isa),
            memory_bytes: info.memory_bytes,
            index: info.index,
            workers: info.workers,
        }
    }
}

/// The devices of this machine, the CPU first. Never starts a driver.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let found = unsafe { sys::exphil_device_count() }.max(0) as usize;
    (0..found)
        .map(|index| {
            let mut info = sys::init();
            call(|error| unsafe { sys::exphil_device_get(count(index), &mut info, error) })?;
            Ok(DeviceInfo::of(&info))
        })
        .collect()
}

mirror! {
    /// Memory of a context and its objects.
    MemoryInfo of exphil_memory_info {
        /// Bytes of host memory, now.
        host_used_bytes: u64,
        /// The most there were.
        host_peak_bytes: u64,
        /// Allocations since the context was made.
        host_allocations: u64,
        /// Bytes of device memory; 0 on the CPU.
        device_used_bytes: u64,
        /// The most there were.
        device_peak_bytes: u64,
        /// Requests to the device pool ...
        device_requests: u64,
        /// ... of which so many were met without asking the driver.
        device_reused: u64,
    }
}
