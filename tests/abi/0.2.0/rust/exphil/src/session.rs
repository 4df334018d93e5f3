//! Sessions: a model plays, one frame at a time. The calls marked "hot" in the header neither allocate here nor there;
//! only a failure does, for its message.

use crate::failure::{call, count, expect_length, numbers, object, Handle};
use crate::melee::{Frame, Pad};
use crate::shapes::{pointer, size, Row};
use crate::told;
use crate::{Context, Error, Mode, Model, Result, Spec};
use exphil_sys as sys;
use std::fmt;
use std::mem;
use std::ptr;

object!(exphil_session, exphil_session_destroy);

numbers! {
    /// Which action a step returns.
    Deliver {
        /// The one that is due on this frame, decided d frames ago.
        #[default]
        Due = EXPHIL_DELIVER_DUE,
        /// The one just decided, for a game that itself delays it by d.
        Decided = EXPHIL_DELIVER_DECIDED,
    }
}

/// How one head decides.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct HeadPlay {
    /// 0 is 1.
    pub temperature: f32,
    /// The most likely value.
    pub deterministic: bool,
    /// Deterministic bits switch on above this; 0 is 0.5.
    pub press: f32,
    /// Deterministic bits switch off below this; 0 is 0.5.
    pub release: f32,
}

/// How a session plays.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// One for each head of the model; empty: all defaults.
    pub heads: Vec<HeadPlay>,
    /// What the host will give and take, checked against the model.
    pub spec: Option<Spec>,
    /// What the host will run with, checked against the model; of a model with several delays, the one that holds.
    pub delay_frames: Option<i32>,
    /// Likewise.
    pub mode: Option<Mode>,
    /// Of the sampling noise.
    pub seed: u64,
    /// Players at once, at most 4096; 0 is 1.
    pub streams: usize,
    /// Slower steps are counted; 0 is a sixtieth of a second.
    pub deadline_ns: i64,
    /// The most likely values, in all heads.
    pub deterministic: bool,
    /// Which action a step returns.
    pub deliver: Deliver,
    /// What all streams play as, one value for each condition of the model; empty: nothing is known.
    pub conditions: Vec<i32>,
    /// [`Session::adopt`] gives it new weights between two steps.
    pub adoptable: bool,
}

impl SessionConfig {
    /// Lends the configuration to one call.
    pub(crate) fn with<T>(
        &self,
        model: &Model,
        work: impl FnOnce(*const sys::exphil_session_config) -> Result<T>,
    ) -> Result<T> {
        if !self.heads.is_empty() {
            expect_length("heads", self.heads.len(), model.shape().row.heads)?;
        }
        let heads: Vec<_> = self.heads.iter().map(HeadPlay::lend).collect();
        let spec = self.spec.as_ref().map(Spec::lend).transpose()?;
        let mode = self.mode.map(|mode| mode as i32);
        let mut raw = sys::init::<sys::exphil_session_config>();
        raw.heads = if heads.is_empty() { ptr::null() } else { heads.as_ptr() };
        raw.spec = pointer(&spec);
        raw.delay_frames = self.delay_frames.as_ref().map_or(ptr::null(), |delay| delay as *const i32);
        raw.mode = mode.as_ref().map_or(ptr::null(), |mode| mode as *const i32);
        raw.seed = self.seed;
        raw.streams = count(self.streams);
        raw.deadline_ns = self.deadline_ns;
        raw.deterministic = i32::from(self.deterministic);
        raw.deliver = self.deliver as i32;
        raw.conditions = told::numbers(&self.conditions);
        raw.condition_count = count(self.conditions.len());
        raw.adoptable = i32::from(self.adoptable);
        work(&raw)
    }
}

/// A model at play: streams of frames in, actions out. May move to another thread; only one uses it at a time.
pub struct Session {
    handle: Handle<sys::exphil_session>,
    model: Model,
    /// What played before `model` was adopted, and plays again after a restore.
    kept: Option<Model>,
    row: Row,
    logits: usize,
    streams: usize,
}

// "No thread affinity"; not Sync: "one thread at a time".
unsafe impl Send for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("streams", &self.streams).field("row", &self.row).finish_non_exhaustive()
    }
}

impl Session {
    /// Starts a session; a stream starts with a zero state and neutral actions.
    pub fn new(model: &Model, config: &SessionConfig) -> Result<Session> {
        let handle = config.with(model, |raw| {
            Handle::create(|out, error| unsafe { sys::exphil_session_create(model.as_raw(), raw, out, error) })
        })?;
        Ok(Session::of(handle, model, config.streams))
    }

    pub(crate) fn of(handle: Handle<sys::exphil_session>, model: &Model, streams: usize) -> Session {
        let (row, logits) = (model.shape().row, model.shape().logits);
        Session { handle, model: model.clone(), kept: None, row, logits, streams: streams.max(1) }
    }

    /// A second session with the same model, configuration and state.
    pub fn try_clone(&self) -> Result<Session> {
        let handle = Handle::create(|out, error| unsafe { sys::exphil_session_clone(self.handle.raw(), out, error) })?;
        Ok(Session { handle, model: self.model.clone(), kept: self.kept.clone(), ..*self })
    }

    /// The model that it was made with, or adopted last.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Players at once.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Hot. Melee: one frame for each stream in, one controller for each out. On failure no stream has moved.
    #[inline]
    pub fn step(&mut self, frames: &[Frame], pads: &mut [Pad]) -> Result<()> {
        expect_length("frames", frames.len(), self.streams)?;
        expect_length("pads", pads.len(), self.streams)?;
        self.done(unsafe {
            sys::exphil_session_step(self.handle.raw(), frames.as_ptr().cast(), pads.as_mut_ptr().cast())
        })
    }

    /// Hot. Any game: floats `[B, F]`, ids `[B, K]` in, actions `[B, A]` out, with noise of the session's own stream.
    #[inline]
    pub fn step_row(&mut self, floats: &[f32], ids: &[i32], actions: &mut [i32]) -> Result<()> {
        self.step_rows(floats, ids, ptr::null(), actions)
    }

    /// Hot. The same with noise of the host's: `[B, L]`, uniform in (0, 1).
    #[inline]
    pub fn step_row_with(&mut self, floats: &[f32], ids: &[i32], noise: &[f32], actions: &mut [i32]) -> Result<()> {
        expect_length("noise", noise.len(), self.streams * self.logits)?;
        self.step_rows(floats, ids, noise.as_ptr(), actions)
    }

    #[inline]
    fn step_rows(&mut self, floats: &[f32], ids: &[i32], noise: *const f32, actions: &mut [i32]) -> Result<()> {
        expect_length("floats", floats.len(), self.streams * self.row.floats)?;
        expect_length("ids", ids.len(), self.streams * self.row.ids)?;
        expect_length("actions", actions.len(), self.streams * self.row.heads)?;
        let (floats, ids, actions) = (floats.as_ptr(), ids.as_ptr(), actions.as_mut_ptr());
        self.done(unsafe { sys::exphil_session_step_row(self.handle.raw(), floats, ids, noise, actions) })
    }

    /// Hot. Logits `[L]` of the last step of a stream, heads in order.
    #[inline]
    pub fn logits(&self, stream: usize, logits: &mut [f32]) -> Result<()> {
        expect_length("logits", logits.len(), self.logits)?;
        let (out, length) = (logits.as_mut_ptr(), count(logits.len()));
        self.done(unsafe { sys::exphil_session_logits(self.handle.raw(), count(stream), out, length) })
    }

    /// Hot. What the value head said in the last step of a stream: the discounted rewards that it expects, in the units of
    /// those that it was trained on. [`Status::State`](crate::Status::State): the model has none.
    #[inline]
    pub fn value(&self, stream: usize) -> Result<f32> {
        let mut value = 0.0;
        self.done(unsafe { sys::exphil_session_value(self.handle.raw(), count(stream), &mut value) })?;
        Ok(value)
    }

    /// Hot. The next steps play the weights of this model ([`Model::prepare`]), with state, queue and random streams as they
    /// are. A stream that is restored to a frame before plays the weights of that frame, and meets these where it met them
    /// first. Gives what the session has no more use for. [`Status::State`](crate::Status::State): the session is not
    /// adoptable, or the model was not prepared; [`Status::Mismatch`](crate::Status::Mismatch): its configuration is another.
    pub fn adopt(&mut self, model: &Model) -> Result<Option<Replaced>> {
        let mut before = ptr::null_mut();
        self.done(unsafe { sys::exphil_session_adopt(self.handle.raw(), model.as_raw(), &mut before) })?;
        let kept = self.kept.replace(mem::replace(&mut self.model, model.clone()));
        // A reference of the caller's own, which this becomes.
        let handle = unsafe { Handle::from_raw(before) };
        Ok(handle.map(|handle| Replaced { handle, _kept: kept, context: self.model.context().clone() }))
    }

    /// Hot. A stream starts an episode: zero state, neutral queue. The random stream goes on.
    #[inline]
    pub fn reset(&mut self, stream: usize) -> Result<()> {
        self.done(unsafe { sys::exphil_session_reset(self.handle.raw(), count(stream)) })
    }

    /// Hot. All streams start an episode.
    #[inline]
    pub fn reset_all(&mut self) -> Result<()> {
        self.done(unsafe { sys::exphil_session_reset(self.handle.raw(), -1) })
    }

    /// Hot. What a stream plays as from the next step on, one value for each condition of the model.
    #[inline]
    pub fn set_conditions(&mut self, stream: usize, values: &[i32]) -> Result<()> {
        self.conditions_set(count(stream), values)
    }

    /// Hot. The same for all streams.
    #[inline]
    pub fn set_conditions_all(&mut self, values: &[i32]) -> Result<()> {
        self.conditions_set(-1, values)
    }

    #[inline]
    fn conditions_set(&mut self, stream: i64, values: &[i32]) -> Result<()> {
        expect_length("values", values.len(), self.model.shape().conditions)?;
        let (pointer, length) = (values.as_ptr(), count(values.len()));
        self.done(unsafe { sys::exphil_session_conditions_set(self.handle.raw(), stream, pointer, length) })
    }

    /// Hot. Replaces the newest decided action of a stream by what was really done.
    #[inline]
    pub fn override_action(&mut self, stream: usize, action: &[i32]) -> Result<()> {
        expect_length("action", action.len(), self.row.heads)?;
        self.done(unsafe { sys::exphil_session_override(self.handle.raw(), count(stream), action.as_ptr()) })
    }

    /// Bytes of [`Session::save_state`].
    pub fn state_size(&self) -> usize {
        unsafe { sys::exphil_session_state_size(self.handle.raw()) }
    }

    /// Hot. All that a step of this stream depends on, as one flat block of [`Session::state_size`] bytes.
    #[inline]
    pub fn save_state(&self, stream: usize, state: &mut [u8]) -> Result<()> {
        let (data, bytes) = (state.as_mut_ptr().cast(), state.len());
        self.done(unsafe { sys::exphil_session_state_save(self.handle.raw(), count(stream), data, bytes) })
    }

    /// Hot. Puts a stream back to where it was saved: rollback is a copy.
    #[inline]
    pub fn restore_state(&mut self, stream: usize, state: &[u8]) -> Result<()> {
        let (data, bytes) = (state.as_ptr().cast(), state.len());
        self.done(unsafe { sys::exphil_session_state_restore(self.handle.raw(), count(stream), data, bytes) })
    }

    /// Steps and how long they took.
    pub fn info(&self) -> Result<SessionInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_session_query(self.handle.raw(), &mut raw, error) })?;
        SessionInfo::of(&raw)
    }

    #[inline]
    pub(crate) fn done(&self, status: i32) -> Result<()> {
        if status >= 0 {
            return Ok(());
        }
        Err(self.failed(status))
    }

    pub(crate) fn playing(&mut self, model: &Model) {
        self.model = model.clone();
    }

    /// Lets the library's session go without its end, for that of a rollout.
    pub(crate) fn forget(self) {
        mem::forget(self.handle);
    }

    #[cold]
    fn failed(&self, status: i32) -> Error {
        let mut error = sys::init();
        unsafe { sys::exphil_session_error(self.handle.raw(), &mut error) };
        // The library names its own function.
        Error::of(status, &error).saying("exphil_session_step_row", "step_row")
    }
}

/// Weights whose place others have taken. Dropping them may free their memory: do it when there is time, on any thread.
#[must_use]
pub struct Replaced {
    handle: Handle<sys::exphil_model>,
    _kept: Option<Model>,
    context: Context,
}

// "exphil_context, exphil_model: shared freely".
unsafe impl Send for Replaced {}
unsafe impl Sync for Replaced {}

impl fmt::Debug for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replaced").finish_non_exhaustive()
    }
}

impl Replaced {
    /// The model that these weights are.
    pub fn into_model(self) -> Result<Model> {
        Model::of(self.handle, &self.context)
    }
}

impl HeadPlay {
    fn lend(&self) -> sys::exphil_head_play {
        sys::exphil_head_play {
            temperature: self.temperature,
            deterministic: i32::from(self.deterministic),
            press: self.press,
            release: self.release,
        }
    }
}

/// Steps of a session and how long they took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Steps so far.
    pub steps: u64,
    /// Steps over the deadline.
    pub missed: u64,
    /// Steps with 2^(i/2) <= nanoseconds / 64 < 2^((i+1)/2).
    pub latency: [u64; sys::EXPHIL_LATENCY_BUCKETS as usize],
    /// Of the last step.
    pub last_ns: i64,
    /// Of the slowest step.
    pub max_ns: i64,
    /// Median, within a factor of the square root of 2 above.
    pub p50_ns: i64,
    /// Likewise, 99 of 100.
    pub p99_ns: i64,
    /// B.
    pub streams: usize,
    /// F.
    pub float_count: usize,
    /// K.
    pub id_count: usize,
    /// A.
    pub head_count: usize,
    /// L.
    pub logit_count: usize,
    /// [`Session::state_size`].
    pub state_bytes: u64,
    /// How often it adopted weights.
    pub adoptions: u64,
    /// [`ModelInfo::weights_hash`](crate::ModelInfo::weights_hash) of the weights that play.
    pub weights_hash: u64,
}

impl SessionInfo {
    fn of(raw: &sys::exphil_session_info) -> Result<SessionInfo> {
        Ok(SessionInfo {
            steps: raw.steps,
            missed: raw.missed,
            latency: raw.latency,
            last_ns: raw.last_ns,
            max_ns: raw.max_ns,
            p50_ns: raw.p50_ns,
            p99_ns: raw.p99_ns,
            streams: size(raw.streams)?,
            float_count: size(raw.float_count)?,
            id_count: size(raw.id_count)?,
            head_count: size(raw.head_count)?,
            logit_count: size(raw.logit_count)?,
            state_bytes: raw.state_bytes,
            adoptions: raw.adoptions,
            weights_hash: raw.weights_hash,
        })
    }
}
