//! Rollouts: a session that records what it plays, in chunks; and chunks of other processes, as blocks.

use crate::failure::{call, count, expect_length, mirror, numbers, object, Handle};
use crate::shapes::Row;
use crate::{Context, End, Error, Model, Result, Session, SessionConfig, World};
use exphil_sys as sys;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

object!(exphil_rollout, exphil_rollout_destroy);

/// Length of a chunk, and which episodes are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutConfig {
    /// T, rows of a chunk, at most 4096; 0 is 64.
    pub time: usize,
    /// Of the episodes of a world.
    pub seed: u64,
}

numbers! {
    /// Which weights may have played a block that is taken.
    BlockWeights {
        /// Those that the rollout has. What is learnt is then what one process learns.
        #[default]
        Current = EXPHIL_BLOCK_CURRENT,
        /// Any of the same configuration, for players that do not wait.
        Any = EXPHIL_BLOCK_ANY,
    }
}

/// A session that plays and records what it does, in chunks of `time` rows for each of its streams. May move to another
/// thread; only one uses it at a time.
pub struct Rollout {
    handle: Handle<sys::exphil_rollout>,
    /// The rollout's: it ends with it.
    session: ManuallyDrop<Session>,
    row: Row,
    streams: usize,
    /// Whose hooks serve until the handle is gone.
    _context: Context,
}

// "No thread affinity"; not Sync: "one thread at a time".
unsafe impl Send for Rollout {}

impl fmt::Debug for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rollout").field("session", &*self.session).finish_non_exhaustive()
    }
}

impl Drop for Rollout {
    fn drop(&mut self) {
        // Not used again: this is the end.
        unsafe { ManuallyDrop::take(&mut self.session) }.forget();
    }
}

impl Rollout {
    /// The session is made here. The model has a value head. [`Status::Unsupported`](crate::Status::Unsupported): actions that
    /// are not drawn have no probability, so that deterministic sessions and heads are refused; so are quantised models, window
    /// mode and conditions.
    pub fn new(model: &Model, session: &SessionConfig, config: &RolloutConfig) -> Result<Rollout> {
        let mut raw = sys::init::<sys::exphil_rollout_config>();
        raw.time = count(config.time);
        raw.seed = config.seed;
        let handle = session.with(model, |session| {
            Handle::create(|out, error| unsafe {
                sys::exphil_rollout_create(model.as_raw(), session, &raw, out, error)
            })
        })?;
        let played = unsafe { Handle::from_raw(sys::exphil_rollout_session(handle.raw())) };
        let played = played.ok_or_else(|| Error::invalid("rollout: has no session"))?;
        let session = ManuallyDrop::new(Session::of(played, model, session.streams));
        let (row, streams) = (model.shape().row, session.streams());
        Ok(Rollout { handle, session, row, streams, _context: model.context().clone() })
    }

    /// The session that plays, for logits, values, states and latency, and to make a clone of. Its model is the one that the
    /// rollout was made with, or adopted last; [`Learner::update`](crate::Learner::update) gives it newer weights.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Hot. [`Session::step_row`], recorded. [`Status::State`](crate::Status::State): the chunk is full, or the frame before has
    /// no reward yet.
    #[inline]
    pub fn step(&mut self, floats: &[f32], ids: &[i32], actions: &mut [i32]) -> Result<()> {
        expect_length("floats", floats.len(), self.streams * self.row.floats)?;
        expect_length("ids", ids.len(), self.streams * self.row.ids)?;
        expect_length("actions", actions.len(), self.streams * self.row.heads)?;
        let (floats, ids, actions) = (floats.as_ptr(), ids.as_ptr(), actions.as_mut_ptr());
        self.session.done(unsafe { sys::exphil_rollout_step(self.handle.raw(), floats, ids, actions) })
    }

    /// Hot. What came of the last step: reward `[B]`, end `[B]`. `true`: the chunk is full. floats `[B, F]` and ids `[B, K]` are
    /// the rows that show what came of it, also of a stream that was cut off; they may be empty where they are not read: with a
    /// delay, or unless a stream is cut off or the chunk becomes full. After an end the next row is another episode's.
    #[inline]
    pub fn reward(&mut self, reward: &[f32], end: &[End], floats: &[f32], ids: &[i32]) -> Result<bool> {
        expect_length("reward", reward.len(), self.streams)?;
        expect_length("end", end.len(), self.streams)?;
        let (mut row, mut id) = (ptr::null(), ptr::null());
        if !floats.is_empty() || self.row.floats == 0 {
            expect_length("floats", floats.len(), self.streams * self.row.floats)?;
            row = floats.as_ptr();
        }
        if !ids.is_empty() || self.row.ids == 0 {
            expect_length("ids", ids.len(), self.streams * self.row.ids)?;
            id = ids.as_ptr();
        }
        let end = end.as_ptr().cast::<u8>(); // its numbers are those of the header
        let status = unsafe { sys::exphil_rollout_reward(self.handle.raw(), reward.as_ptr(), end, row, id) };
        self.session.done(status)?;
        Ok(status == sys::EXPHIL_END)
    }

    /// Hot. [`Session::override_action`]: the frame is recorded with the action that was taken, and not learnt from.
    #[inline]
    pub fn override_action(&mut self, stream: usize, action: &[i32]) -> Result<()> {
        self.session.override_action(stream, action)
    }

    /// Plays a world until the chunk is full; its streams are this rollout's. The first call starts its episodes, which go on
    /// from chunk to chunk. Where a game failed or panicked, what is recorded no longer fits the games: the rollout only refuses.
    pub fn run(&mut self, world: &mut World) -> Result<()> {
        let raw = self.handle.raw();
        world.play(|world, error| unsafe { sys::exphil_rollout_run(raw, world, error) })?;
        Ok(())
    }

    /// Bytes of a block of this rollout; all of its blocks have as many.
    pub fn block_size(&self) -> usize {
        unsafe { sys::exphil_rollout_block_size(self.handle.raw()) }
    }

    /// A full chunk as one flat block of [`Rollout::block_size`] bytes, for the learner of another process.
    /// [`Rollout::adopt`] begins the next chunk. [`Status::State`](crate::Status::State): it is not full.
    pub fn block_save(&self, block: &mut [u8]) -> Result<()> {
        let (raw, data, bytes) = (self.handle.raw(), block.as_mut_ptr().cast(), block.len());
        call(|error| unsafe { sys::exphil_rollout_block_save(raw, data, bytes, error) })?;
        Ok(())
    }

    /// The streams of another process's block become streams of this chunk, from `first_stream` on, instead of playing. `true`:
    /// the chunk is full, for [`Learner::update`](crate::Learner::update). The block is from anybody: all of it is checked
    /// before anything counts, and after a failure nothing has changed.
    pub fn block_take(&mut self, first_stream: usize, weights: BlockWeights, block: &[u8]) -> Result<bool> {
        let (raw, data, bytes) = (self.handle.raw(), block.as_ptr().cast(), block.len());
        let (first, which) = (count(first_stream), weights as i32);
        let status = call(|error| unsafe { sys::exphil_rollout_block_take(raw, first, which, data, bytes, error) })?;
        Ok(status == sys::EXPHIL_END)
    }

    /// Between two chunks: drops the one that is there, plays these weights from here on (none: those that it has), and begins
    /// the next. [`Learner::update`](crate::Learner::update) does so by itself.
    pub fn adopt(&mut self, model: Option<&Model>) -> Result<()> {
        let (raw, given) = (self.handle.raw(), model.map_or(ptr::null_mut(), Model::as_raw));
        call(|error| unsafe { sys::exphil_rollout_adopt(raw, given, error) })?;
        if let Some(model) = model {
            self.session.playing(model);
        }
        Ok(())
    }

    pub(crate) fn raw(&self) -> *mut sys::exphil_rollout {
        self.handle.raw()
    }
}

mirror! {
    /// What a block says of itself.
    BlockInfo of exphil_block_info {
        /// B.
        streams: i64,
        /// T.
        time: i64,
        /// [`Spec::hash`](crate::Spec::hash) of the layout of its rows.
        spec_hash: u64,
        /// [`ModelInfo::weights_hash`](crate::ModelInfo::weights_hash) of the model that played.
        weights_hash: u64,
        /// d.
        delay_frames: i32,
    }
}

impl BlockInfo {
    /// Of what [`Rollout::block_save`] wrote. [`Status::Format`](crate::Status::Format): it is none, or damaged.
    pub fn query(block: &[u8]) -> Result<BlockInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_block_query(block.as_ptr().cast(), block.len(), &mut raw, error) })?;
        Ok(BlockInfo::of(&raw))
    }
}
