//! Learning behind a game: a session that plays one stream, and a thread of the library's own that trains beside it.

use crate::failure::{c_path, call, count, expect_length, numbers, object, text, Handle};
use crate::hooks::Hooks;
use crate::melee::{Frame, Pad};
use crate::report::Losses;
use crate::shapes::Row;
use crate::told::Lent;
use crate::{
    Context, ContextBuilder, Dataset, End, Error, LearnerConfig, Model, OptimizerConfig, Result, Sampling, Session,
    SessionConfig, Status, TrainerConfig,
};
use exphil_sys as sys;
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

object!(exphil_live, exphil_live_destroy);

numbers! {
    /// From what is learnt.
    LiveWay {
        /// From a person who takes over.
        #[default]
        Imitate = EXPHIL_LIVE_IMITATE,
        /// From rewards, by PPO.
        Reinforce = EXPHIL_LIVE_REINFORCE,
    }
}

/// How it plays and learns. Zero means the library's default, which the header `live.h` names; what the other way alone has a
/// use for is refused.
#[derive(Default)]
pub struct LiveConfig<'a> {
    /// From what is learnt.
    pub way: LiveWay,
    /// Imitation: what the policy was taught by before, of the model's spec; none but what the person does.
    pub dataset: Option<&'a Dataset>,
    /// Reinforcement: a policy that stays as it is.
    pub teacher: Option<&'a Model>,
    /// Of what plays, with one stream; it is made adoptable.
    pub session: SessionConfig,
    /// Of what learns.
    pub optimizer: OptimizerConfig,
    /// Of what learns. For reinforcement `as_played` is set.
    pub trainer: TrainerConfig,
    /// Imitation: [`Model::sampling`] with another batch, time, `drop_past` and so on; its seed is 0.
    pub sampling: Option<Sampling>,
    /// Reinforcement: the loss.
    pub learner: Option<LearnerConfig>,
    /// Of what learns; none: the CPU, one thread. Its log is heard on the thread that learns, where a panic of it is lost; a
    /// cancel hook is refused.
    pub context: Option<ContextBuilder>,
    /// Imitation: of the weight in a batch's loss, the share of the person's frames beside those of `dataset`, below 1; 0 is 0.5.
    pub share: f64,
    /// Imitation: what a frame weighs in which the person let the policy play, `0..=1`.
    pub approved: f64,
    /// Imitation: frames after which they are learnt from, fewer at an episode's end; 0 is 120.
    pub piece_frames: usize,
    /// Imitation: of a piece; 0 is 32.
    pub updates: usize,
    /// Reinforcement: rows of a chunk, at most 4096; 0 is 256.
    pub time: usize,
    /// That may wait to be learnt from; 0 is 3600. Reinforcement: chunks, 0 is 4.
    pub ring_frames: usize,
    /// Imitation: so many of the latest frames may be taken back by [`Live::restore_state`], at most 600.
    pub rollback_frames: usize,
    /// Where the thread saves by itself, as [`Live::save`] does, but without what came since the last whole piece.
    pub path: Option<PathBuf>,
    /// After so many pieces, or chunks, again; 0 is 16.
    pub save_pieces: usize,
    /// Of the order in which is learnt.
    pub seed: u64,
    /// New weights enter in [`Live::settle`] alone, so that what is played and learnt is a function of what was given and of where
    /// that was called, to the last bit.
    pub paced: bool,
}

impl LiveConfig<'_> {
    /// Lends the configuration to one call; what its hooks are lives as long as what is made.
    fn with<T>(
        mut self,
        model: &Model,
        work: impl FnOnce(*const sys::exphil_live_config) -> Result<T>,
    ) -> Result<(T, Option<Arc<Hooks>>)> {
        let path = self.path.as_deref().map(c_path).transpose()?;
        let learner = self.learner.as_ref().map(LearnerConfig::lend);
        let told = self.sampling.as_ref().map(|sampling| Lent::new(&sampling.conditions)).transpose()?;
        let sampling = self.sampling.as_ref().zip(told.as_ref()).map(|(sampling, told)| sampling.lend(told));
        let (optimizer, losses) = (self.optimizer.lend(), Losses::new(&self.trainer.losses, &model.spec()?)?);
        let trainer = self.trainer.lend(&losses);
        let mut raw = sys::init::<sys::exphil_live_config>();
        raw.optimizer = &optimizer;
        raw.trainer = &trainer;
        raw.sampling = sampling.as_ref().map_or(ptr::null(), |sampling| sampling as *const _);
        raw.dataset = self.dataset.map_or(ptr::null(), |dataset| dataset.as_raw() as *const _);
        raw.learner = learner.as_ref().map_or(ptr::null(), |learner| learner as *const _);
        raw.teacher = self.teacher.map_or(ptr::null(), |teacher| teacher.as_raw() as *const _);
        raw.share = self.share;
        raw.approved = self.approved;
        raw.piece_frames = count(self.piece_frames);
        raw.updates = count(self.updates);
        raw.time = count(self.time);
        raw.ring_frames = count(self.ring_frames);
        raw.rollback_frames = count(self.rollback_frames);
        raw.path = path.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        raw.save_pieces = count(self.save_pieces);
        raw.seed = self.seed;
        raw.way = self.way as i32;
        raw.paced = i32::from(self.paced);
        let context = self.context.take();
        self.session.with(model, |session| {
            raw.session = session;
            match context {
                None => Ok((work(&raw)?, None)),
                Some(context) => {
                    let (made, hooks) = context.behind(|context| {
                        raw.context = context;
                        work(&raw)
                    })?;
                    Ok((made, Some(hooks)))
                }
            }
        })
    }
}

/// One stream that is played while a thread of the library's own learns behind it; the game never waits. May move to another
/// thread; only one uses it at a time.
///
/// A frame: [`Live::step_row`] (or [`Live::step`]) with what a person presses, if one plays, and what comes back is pressed. Where an
/// episode ends, or once a frame with [`LiveWay::Reinforce`]: [`Live::reward`].
pub struct Live {
    handle: Handle<sys::exphil_live>,
    /// The live policy's: it ends with it.
    session: ManuallyDrop<Session>,
    row: Row,
    /// Whose hooks serve until the handle is gone: of the model, the data and the teacher, and of what learns.
    _contexts: [Option<Context>; 3],
    _hooks: Option<Arc<Hooks>>,
    model: Model,
}

// "By the thread that steps", whichever that is; not Sync: one at a time. Hooks of what learns are Send + Sync.
unsafe impl Send for Live {}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("session", &*self.session).finish_non_exhaustive()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Not used again: this is the end.
        unsafe { ManuallyDrop::take(&mut self.session) }.forget();
    }
}

impl Live {
    /// `model` plays first, and is the start of what is learnt; it stays as it is. It is not quantised, without conditions and of one
    /// delay, and for [`LiveWay::Reinforce`] has a value head. The thread starts here, and ends where this is dropped; what was not
    /// saved is lost then.
    pub fn new(model: &Model, config: LiveConfig<'_>) -> Result<Live> {
        let contexts = [
            Some(model.context().clone()),
            config.dataset.map(|dataset| dataset.context().clone()),
            config.teacher.map(|teacher| teacher.context().clone()),
        ];
        let (handle, _hooks) = config.with(model, |raw| {
            Handle::create(|out, error| unsafe { sys::exphil_live_create(model.as_raw(), raw, out, error) })
        })?;
        let played = unsafe { Handle::from_raw(sys::exphil_live_session(handle.raw())) };
        let played = played.ok_or_else(|| Error::invalid("live: has no session"))?;
        let session = ManuallyDrop::new(Session::of(played, model, 1));
        Ok(Live { handle, session, row: model.shape().row, _contexts: contexts, _hooks, model: model.clone() })
    }

    /// The session that plays, for logits, values, latency, and states to be saved. Its model is the one that this was made with.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Hot. A frame of any game: floats `[F]` and ids `[K]` in; actions `[A]` out, what is to be pressed. Without a person the policy
    /// plays. Else `[A]`, what the person presses: that acts, and is given back. Takes new weights first, if there are any.
    /// [`Status::Invalid`]: a value of `person` is out of range; after this and other failures nothing has moved.
    #[inline]
    pub fn step_row(&mut self, floats: &[f32], ids: &[i32], person: Option<&[i32]>, actions: &mut [i32]) -> Result<()> {
        expect_length("floats", floats.len(), self.row.floats)?;
        expect_length("ids", ids.len(), self.row.ids)?;
        expect_length("actions", actions.len(), self.row.heads)?;
        if let Some(person) = person {
            expect_length("person", person.len(), self.row.heads)?;
        }
        let presses = person.map_or(ptr::null(), <[i32]>::as_ptr);
        let (floats, ids, actions) = (floats.as_ptr(), ids.as_ptr(), actions.as_mut_ptr());
        self.done(unsafe { sys::exphil_live_step_row(self.handle.raw(), floats, ids, presses, actions) })
    }

    /// Hot. A frame of Melee: one frame in, one controller out. What a person presses is learnt from as the codec expresses it, and
    /// given back as it is.
    #[inline]
    pub fn step(&mut self, frame: &Frame, person: Option<&Pad>, pad: &mut Pad) -> Result<()> {
        let frame = (frame as *const Frame).cast();
        let presses = person.map_or(ptr::null(), |person| (person as *const Pad).cast());
        self.done(unsafe { sys::exphil_live_step(self.handle.raw(), frame, presses, (pad as *mut Pad).cast()) })
    }

    /// Hot. What came of the last step; after an end the next row is another episode's. Imitation: to be called where an episode ends,
    /// and only `end` counts. Reinforcement: after every step, with the row that shows what came of it; `floats` and `ids` may be
    /// empty where they are not read, as in [`Rollout::reward`](crate::Rollout::reward). A full chunk goes to the thread, and the
    /// next one begins.
    #[inline]
    pub fn reward(&mut self, reward: f32, end: End, floats: &[f32], ids: &[i32]) -> Result<()> {
        let (mut row, mut id) = (ptr::null(), ptr::null());
        if !floats.is_empty() || self.row.floats == 0 {
            expect_length("floats", floats.len(), self.row.floats)?;
            row = floats.as_ptr();
        }
        if !ids.is_empty() || self.row.ids == 0 {
            expect_length("ids", ids.len(), self.row.ids)?;
            id = ids.as_ptr();
        }
        self.done(unsafe { sys::exphil_live_reward(self.handle.raw(), reward, end as u8, row, id) })
    }

    /// Hot. Puts the game's stream back to where [`Session::save_state`] of [`Live::session`] (stream 0) saved it: what was played since is
    /// not learnt from, as far back as [`LiveConfig::rollback_frames`]. [`Status::State`]: those are 0.
    #[inline]
    pub fn restore_state(&mut self, state: &[u8]) -> Result<()> {
        self.session.restore_state(0, state)
    }

    /// What was played and learnt so far.
    pub fn info(&self) -> Result<LiveInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_live_query(self.handle.raw(), &mut raw, error) })?;
        Ok(LiveInfo::of(&raw))
    }

    /// Waits until all that was given is learnt from, and plays the newest weights; fails with what ended learning. No cancel hook is
    /// asked, here or in the calls that wait as this one does.
    pub fn settle(&mut self) -> Result<()> {
        call(|error| unsafe { sys::exphil_live_settle(self.handle.raw(), error) })?;
        Ok(())
    }

    /// A model of the newest weights, on the context of the model that this was made with.
    pub fn model(&self) -> Result<Model> {
        let handle = Handle::create(|out, error| unsafe { sys::exphil_live_model(self.handle.raw(), out, error) })?;
        Model::of(handle, self.model.context())
    }

    /// Settles; then writes the weights to `path`, and to `path` + `".optimizer"` all that [`Live::resume`] needs, the person's frames
    /// among it. The dataset, the game, and the state of the session are yours to keep.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_live_save(self.handle.raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// Before the first step: goes on where [`Live::save`] was called, with the same configuration, model and dataset. After a failure
    /// nothing has changed.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_live_resume(self.handle.raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    #[inline]
    fn done(&self, status: i32) -> Result<()> {
        // The library names its own function.
        self.session.done(status).map_err(|error| error.saying("exphil_live_step_row", "step_row"))
    }
}

/// What was played and learnt behind a game so far.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveInfo {
    /// Steps.
    pub frames: i64,
    /// Of them, in which the person played.
    pub person: i64,
    /// Frames that there was no room for; learning was too slow.
    pub dropped: i64,
    /// Frames that a restored state took back.
    pub taken_back: i64,
    /// Pieces, or chunks, that were learnt from.
    pub pieces: i64,
    /// Frames of the person in them; reinforcement: rows.
    pub learnt: i64,
    /// Of the weights.
    pub updates: i64,
    /// Times that the session took new weights.
    pub adopted: i64,
    /// Mean of the last piece's updates; reinforcement: [`LearnerMetrics::loss`](crate::LearnerMetrics::loss).
    pub loss: f64,
    /// Reinforcement: mean of a frame of the last chunk.
    pub reward: f64,
    /// Updates that were refused because of NaN or infinity.
    pub skipped: i64,
    /// Times that the thread saved by itself.
    pub saved: i64,
    /// What ended learning; play goes on.
    pub failed: Option<Status>,
    /// What the thread's last save failed with; it tries again.
    pub unsaved: Option<Status>,
    /// Of `failed`, else of `unsaved`.
    pub message: String,
}

impl LiveInfo {
    fn of(raw: &sys::exphil_live_info) -> LiveInfo {
        let failure = |status: i32| if status < 0 { Some(Status::from_code(status)) } else { None };
        LiveInfo {
            frames: raw.frames,
            person: raw.person,
            dropped: raw.dropped,
            taken_back: raw.taken_back,
            pieces: raw.pieces,
            learnt: raw.learnt,
            updates: raw.updates,
            adopted: raw.adopted,
            loss: raw.loss,
            reward: raw.reward,
            skipped: raw.skipped,
            saved: raw.saved,
            failed: failure(raw.failed),
            unsaved: failure(raw.unsaved),
            message: text(&raw.message),
        }
    }
}
