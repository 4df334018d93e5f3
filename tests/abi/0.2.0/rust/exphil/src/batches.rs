//! Prefetchers: a thread of the library's own fills batches ahead.

use crate::failure::{call, count, mirror, object, Handle};
use crate::shapes::{size, slice, Row};
use crate::told::{self, Condition};
use crate::{Context, Dataset, Mode, Result};
use exphil_sys as sys;
use std::fmt;

object!(exphil_prefetcher, exphil_prefetcher_destroy);

/// How frames become batches. [`Model::sampling`](crate::Model::sampling) fills mode, delay and slots as a model needs them.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sampling {
    /// B lanes, of all ranks together; 0 is 16.
    pub batch: usize,
    /// T frames a chunk; 0 is 60, or the model's window.
    pub time: usize,
    /// [`Mode::Window`]: frames between starts; 0 is 1.
    pub stride: usize,
    /// [`Mode::Carry`]: cut episodes into pieces of at most this many frames; 0: whole episodes in a ring.
    pub segment_frames: usize,
    /// Of the order.
    pub seed: u64,
    /// How the model sees time.
    pub mode: Mode,
    /// d: the target of row t is the action of frame t + d.
    pub delay_frames: i32,
    /// Past actions given, newest first.
    pub action_slots: i32,
    /// No shuffling.
    pub in_order: bool,
    /// [`Mode::Window`]: loss on the last frame of each window only.
    pub last_only: bool,
    /// Prefetched batches; 0 is 2.
    pub buffers: i32,
    /// The rule of the model, as in [`crate::ModelConfig`].
    pub neutral_start: bool,
    /// [`Mode::Window`]: shuffle the windows of so many frames at a time, 1024 or more; 0: all together.
    pub shuffle_frames: usize,
    /// Probability that a stretch of 256 frames has the past actions of another one.
    pub drop_past: f64,
    /// Share of the games, 0 to 1, that an epoch shows with left and right exchanged (Melee only).
    pub mirror: f64,
    /// Rows of corpora of games: what batches and decoded games may take; 0: what they need.
    pub memory_bytes: usize,
    /// Threads that fill, 1..64; 0 is the library's choice. They change no batch.
    pub workers: i32,
    /// Columns of [`Batch::conditions`], from the dataset's values of these names.
    pub conditions: Vec<Condition>,
    /// d is drawn from them for each episode and epoch; empty: `delay_frames` is the only one.
    pub delays: Vec<i32>,
    /// Share of the weight, 0 to 1, that the imitated characters get evenly.
    pub balance_character: f64,
    /// The same for frequent and rare values of the target.
    pub balance_action: f64,
    /// The same for targets that differ from the action before them, and those that repeat it.
    pub balance_change: f64,
    /// One of several ranks fills lanes `first_lane..first_lane + lane_count` of the `batch` alone ([`rank_lanes`]).
    pub first_lane: usize,
    /// 0: all lanes.
    pub lane_count: usize,
}

/// First lane and number of lanes of one of several ranks, numbered from 0, which train on one joint batch together.
///
/// ```
/// assert_eq!(exphil::rank_lanes(7, 1, 2)?, (3, 4));
/// # Ok::<(), exphil::Error>(())
/// ```
pub fn rank_lanes(batch: usize, rank: i32, ranks: i32) -> Result<(usize, usize)> {
    let (mut first, mut lanes) = (0, 0);
    call(|error| unsafe { sys::exphil_rank_lanes(count(batch), rank, ranks, &mut first, &mut lanes, error) })?;
    Ok((size(first)?, size(lanes)?))
}

impl Sampling {
    pub(crate) fn of(raw: &sys::exphil_sampling) -> Result<Sampling> {
        Ok(Sampling {
            batch: size(raw.batch)?,
            time: size(raw.time)?,
            stride: size(raw.stride)?,
            segment_frames: size(raw.segment_frames)?,
            seed: raw.seed,
            mode: Mode::from_number(raw.mode)?,
            delay_frames: raw.delay_frames,
            action_slots: raw.action_slots,
            in_order: raw.in_order != 0,
            last_only: raw.last_only != 0,
            buffers: raw.buffers,
            neutral_start: raw.neutral_start != 0,
            shuffle_frames: size(raw.shuffle_frames)?,
            drop_past: raw.drop_past,
            mirror: raw.mirror,
            memory_bytes: size(raw.memory_bytes)?,
            workers: raw.workers,
            // The model that they belong to lives.
            conditions: unsafe { told::conditions_of(raw) },
            delays: unsafe { told::delays_of(raw) },
            balance_character: raw.balance_character,
            balance_action: raw.balance_action,
            balance_change: raw.balance_change,
            first_lane: size(raw.first_lane)?,
            lane_count: size(raw.lane_count)?,
        })
    }

    pub(crate) fn lend(&self, conditions: &told::Lent) -> sys::exphil_sampling {
        let mut raw = sys::init::<sys::exphil_sampling>();
        raw.batch = count(self.batch);
        raw.time = count(self.time);
        raw.stride = count(self.stride);
        raw.segment_frames = count(self.segment_frames);
        raw.seed = self.seed;
        raw.mode = self.mode as i32;
        raw.delay_frames = self.delay_frames;
        raw.action_slots = self.action_slots;
        raw.in_order = i32::from(self.in_order);
        raw.last_only = i32::from(self.last_only);
        raw.buffers = self.buffers;
        raw.neutral_start = i32::from(self.neutral_start);
        raw.shuffle_frames = count(self.shuffle_frames);
        raw.drop_past = self.drop_past;
        raw.mirror = self.mirror;
        raw.memory_bytes = count(self.memory_bytes);
        raw.workers = self.workers;
        raw.conditions = conditions.pointer();
        raw.condition_count = conditions.count();
        raw.delays = told::numbers(&self.delays);
        raw.delay_count = count(self.delays.len());
        raw.balance_character = self.balance_character;
        raw.balance_action = self.balance_action;
        raw.balance_change = self.balance_change;
        raw.first_lane = count(self.first_lane);
        raw.lane_count = count(self.lane_count);
        raw
    }
}

/// One batch, row `b * T + t`. What a prefetcher gives out lives until its next call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch<'a> {
    /// B.
    pub batch: usize,
    /// T.
    pub time: usize,
    /// Of which epoch.
    pub epoch: i64,
    /// Which batch of the epoch.
    pub index: i64,
    /// Rows with a mask above 0.
    pub frames: i64,
    /// `[B*T, F]`.
    pub floats: &'a [f32],
    /// `[B*T, K]`.
    pub ids: &'a [i32],
    /// `[B*T, slots, A]`; neutral before an episode.
    pub past: &'a [i32],
    /// `[B*T, A]` targets.
    pub actions: &'a [i32],
    /// `[B*T]` weight of the row in the loss; 0 is padding, or a row that weighs nothing.
    pub mask: &'a [f32],
    /// `[B*T]`: 1 where an episode, segment or window starts.
    pub reset: &'a [u8],
    /// `[B*T, C]`: values of the conditions, and with several delays one column more: 1 + the index of the row's.
    pub conditions: &'a [i32],
    /// `[B*T]` discounted rewards to come ([`Dataset::rewards_set`]), NaN where they are not known; empty: none were given.
    pub returns: &'a [f32],
}

impl<'a> Batch<'a> {
    /// # Safety
    /// The library filled `raw`, its arrays have these sizes and live for `'a`.
    unsafe fn of(raw: &sys::exphil_batch, row: Row, slots: usize, told: usize) -> Result<Batch<'a>> {
        let (batch, time) = (size(raw.batch)?, size(raw.time)?);
        let rows = batch * time;
        Ok(unsafe {
            Batch {
                batch,
                time,
                epoch: raw.epoch,
                index: raw.index,
                frames: raw.frames,
                floats: slice(raw.floats, rows * row.floats),
                ids: slice(raw.ids, rows * row.ids),
                past: slice(raw.past, rows * slots * row.heads),
                actions: slice(raw.actions, rows * row.heads),
                mask: slice(raw.mask, rows),
                reset: slice(raw.reset, rows),
                conditions: slice(raw.conditions, rows * told),
                returns: slice(raw.returns, rows),
            }
        })
    }
}

/// Batches of a dataset, filled ahead by a thread of its own, in order. May move to another thread; only one uses it.
pub struct Prefetcher {
    handle: Handle<sys::exphil_prefetcher>,
    _context: Context,
    row: Row,
    slots: usize,
    told: usize,
}

// "No thread affinity"; not Sync: "one thread at a time".
unsafe impl Send for Prefetcher {}

impl fmt::Debug for Prefetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefetcher").field("row", &self.row).field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Prefetcher {
    /// Starts filling. What is to feed a trainer needs the model's own sampling.
    pub fn new(dataset: &Dataset, sampling: &Sampling) -> Result<Prefetcher> {
        let conditions = told::Lent::new(&sampling.conditions)?;
        let raw = sampling.lend(&conditions);
        let handle =
            Handle::create(|out, error| unsafe { sys::exphil_prefetcher_create(dataset.as_raw(), &raw, out, error) })?;
        let slots = size(sampling.action_slots.into())?;
        let told = sampling.conditions.len() + usize::from(!sampling.delays.is_empty());
        Ok(Prefetcher { handle, _context: dataset.context().clone(), row: dataset.row(), slots, told })
    }

    /// The next batch; none after the last of an epoch, and the call after that begins the next epoch.
    ///
    /// ```
    /// # fn main() -> exphil::Result<()> {
    /// # use exphil::*;
    /// # let spec = Spec::new("pong", "paddle").floats(1).head(HeadSpec::categorical("move", 3));
    /// # let mut dataset = Dataset::new(&Context::new()?, Some(&spec))?;
    /// # dataset.add_rows(0, &[0.5; 100], &[], &[1; 100])?;
    /// let mut prefetcher = Prefetcher::new(&dataset, &Sampling { batch: 2, time: 10, ..Default::default() })?;
    /// let mut frames = 0;
    /// while let Some(batch) = prefetcher.next_batch()? {
    ///     frames += batch.frames;
    /// }
    /// assert_eq!(frames, prefetcher.info()?.frames_per_epoch);
    /// # Ok(()) }
    /// ```
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>> {
        let mut raw = sys::init();
        let status = call(|error| unsafe { sys::exphil_prefetcher_next(self.handle.raw(), &mut raw, error) })?;
        if status == sys::EXPHIL_END {
            return Ok(None);
        }
        // "The pointers live until the next call", which borrows this prefetcher anew.
        Ok(Some(unsafe { Batch::of(&raw, self.row, self.slots, self.told) }?))
    }

    /// The next batch will be this one; constant time.
    pub fn seek(&mut self, epoch: usize, index: usize) -> Result<()> {
        let (epoch, index) = (count(epoch), count(index));
        call(|error| unsafe { sys::exphil_prefetcher_seek(self.handle.raw(), epoch, index, error) })?;
        Ok(())
    }

    /// How much there is, and who waited for whom.
    pub fn info(&self) -> Result<PrefetcherInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_prefetcher_query(self.handle.raw(), &mut raw, error) })?;
        Ok(PrefetcherInfo::of(&raw))
    }

    pub(crate) fn as_raw(&self) -> *mut sys::exphil_prefetcher {
        self.handle.raw()
    }
}

mirror! {
    /// How much a prefetcher has to give, and who waited for whom.
    PrefetcherInfo of exphil_prefetcher_info {
        /// Batches of one epoch.
        batches_per_epoch: i64,
        /// Frames of one epoch.
        frames_per_epoch: i64,
        /// Batches handed out.
        delivered: i64,
        /// Time that the host spent waiting.
        waited_ns: i64,
        /// Time that the thread in the background spent filling.
        worked_ns: i64,
        /// How many calls had to wait.
        waits: i64,
        /// The share of rows, weighed alike, that would tell as much as these do.
        effective_share: f64,
    }
}
