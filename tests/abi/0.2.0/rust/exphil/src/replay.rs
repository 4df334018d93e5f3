//! Slippi replays: whole files, and the live stream of a game that is being played.

use crate::failure::{c_path, call, count, numbers, object, Handle};
use crate::melee::{self, Frame, Pad};
use crate::shapes::slice;
use crate::{Context, ReplayConfig, Result};
use exphil_sys as sys;
use std::convert::TryFrom;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

object!(exphil_slp, exphil_slp_destroy);
object!(exphil_slp_stream, exphil_slp_stream_destroy);

/// What a replay is: the record of the header, field by field.
pub type ReplayInfo = sys::exphil_slp_info;
/// One character in one frame: inputs that act in it, state that results.
pub type SlpPlayer = sys::exphil_slp_player;
/// An item in one frame.
pub type SlpItem = sys::exphil_slp_item;

numbers! {
    /// Which simulation of a frame counts: rollback netplay simulates frames again when an input arrives late.
    Rollback {
        /// The last complete one: what really happened.
        #[default]
        Last = EXPHIL_SLP_LAST,
        /// The first complete one: what the local player saw.
        First = EXPHIL_SLP_FIRST,
        /// All complete ones in the order of the file.
        All = EXPHIL_SLP_ALL,
    }
}

/// A whole replay. Never changes: threads may share it, clones are the same replay.
#[derive(Clone)]
pub struct Replay {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Handle<sys::exphil_slp>,
    _context: Context,
}

// "An exphil_slp never changes: shared freely."
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("frames", &self.len()).finish_non_exhaustive()
    }
}

/// One simulated frame; its fields are those of the header's record.
#[derive(Clone, Copy, Debug)]
pub struct ReplayFrame<'a>(&'a sys::exphil_slp_frame);

impl<'a> ReplayFrame<'a> {
    /// Items on the stage, in the order of the file.
    pub fn items(&self) -> &'a [SlpItem] {
        // They live as long as what the frame was borrowed from.
        unsafe { slice(self.0.items, usize::try_from(self.0.item_count).unwrap_or(0)) }
    }
}

impl Deref for ReplayFrame<'_> {
    type Target = sys::exphil_slp_frame;

    fn deref(&self) -> &sys::exphil_slp_frame {
        self.0
    }
}

impl Replay {
    /// Reads a whole file. One that was cut gives all complete frames; [`Replay::info`] says why reading stopped.
    pub fn open(context: &Context, path: impl AsRef<Path>, rollback: Rollback) -> Result<Replay> {
        let path = c_path(path.as_ref())?;
        Replay::of(context, rollback, |config, out, error| unsafe {
            sys::exphil_slp_open(context.as_raw(), path.as_ptr(), config, out, error)
        })
    }

    /// The same from memory.
    pub fn read(context: &Context, data: &[u8], rollback: Rollback) -> Result<Replay> {
        Replay::of(context, rollback, |config, out, error| unsafe {
            sys::exphil_slp_read(context.as_raw(), data.as_ptr().cast(), data.len(), config, out, error)
        })
    }

    fn of(
        context: &Context,
        rollback: Rollback,
        work: impl FnOnce(*const sys::exphil_slp_config, *mut *mut sys::exphil_slp, *mut sys::exphil_error) -> i32,
    ) -> Result<Replay> {
        let mut config = sys::init::<sys::exphil_slp_config>();
        config.rollback = rollback as i32;
        let handle = Handle::create(|out, error| work(&config, out, error))?;
        Ok(Replay::of_handle(handle, context))
    }

    pub(crate) fn of_handle(handle: Handle<sys::exphil_slp>, context: &Context) -> Replay {
        Replay { inner: Arc::new(Inner { handle, _context: context.clone() }) }
    }

    fn raw(&self) -> *mut sys::exphil_slp {
        self.inner.handle.raw()
    }

    /// What the replay is.
    pub fn info(&self) -> Result<ReplayInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_slp_query(self.raw(), &mut info, error) })?;
        Ok(info)
    }

    /// Frames.
    pub fn len(&self) -> usize {
        usize::try_from(unsafe { sys::exphil_slp_frame_count(self.raw()) }).unwrap_or(0)
    }

    /// No frame at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame at a position.
    pub fn frame(&self, position: usize) -> Option<ReplayFrame<'_>> {
        unsafe { sys::exphil_slp_frame_at(self.raw(), count(position)).as_ref() }.map(ReplayFrame)
    }

    /// All frames in order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = ReplayFrame<'_>> + DoubleEndedIterator + '_ {
        let first = unsafe { sys::exphil_slp_frame_at(self.raw(), 0) };
        // "All frames lie in one array: position 0 is its start."
        unsafe { slice(first, self.len()) }.iter().map(ReplayFrame)
    }

    /// Position of a game frame; -123 is the first of a game.
    pub fn position(&self, frame: i32) -> Option<usize> {
        usize::try_from(unsafe { sys::exphil_slp_position(self.raw(), frame) }).ok()
    }

    /// One character at a position; none when it is not there. `port` is 1..4, `follower` is Nana.
    pub fn player(&self, position: usize, port: i32, follower: bool) -> Option<&SlpPlayer> {
        let index = port.checked_sub(1)?;
        unsafe { sys::exphil_slp_player_at(self.raw(), count(position), index, i32::from(follower)).as_ref() }
    }

    /// What a policy that plays `own_port` knows after the frame at this position; `opponent_port` 0: the first other.
    pub fn melee_frame(&self, position: usize, own_port: i32, opponent_port: i32) -> Result<Frame> {
        let mut frame = Frame::default();
        let raw = frame.as_raw();
        call(|error| unsafe {
            sys::exphil_slp_melee_frame(self.raw(), count(position), own_port, opponent_port, raw, error)
        })?;
        Ok(frame)
    }

    /// What the player of a port did on the frame at this position.
    pub fn melee_pad(&self, position: usize, port: i32) -> Result<Pad> {
        let mut pad = Pad::default();
        let raw: *mut Pad = &mut pad;
        call(|error| unsafe { sys::exphil_slp_melee_pad(self.raw(), count(position), port, raw.cast(), error) })?;
        Ok(pad)
    }

    /// All that a policy learns of one player in one call: what [`Dataset::add_replay`](crate::Dataset::add_replay) would add
    /// of `config`, whose port must be 1..4. What it leaves out has no row. Layout and codec as in [`melee::spec`].
    pub fn rows(&self, layout: Option<&str>, codec: Option<&str>, config: &ReplayConfig) -> Result<ReplayRows> {
        let (spec, names, most) = (melee::spec(layout, codec)?, melee::Names::new(layout, codec)?, self.len());
        let (raw, _character) = config.lend()?;
        let mut rows = ReplayRows {
            frames: vec![0; most],
            floats: vec![0.0; most * spec.float_count],
            ids: vec![0; most * spec.ids.len()],
            actions: vec![0; most * spec.heads.len()],
        };
        let (frames, floats) = (rows.frames.as_mut_ptr(), rows.floats.as_mut_ptr());
        let (ids, actions, mut made) = (rows.ids.as_mut_ptr(), rows.actions.as_mut_ptr(), 0);
        let (layout, codec) = (names.layout(), names.codec());
        call(|error| unsafe {
            let slp = self.raw();
            let (most, made) = (count(most), &mut made);
            sys::exphil_slp_melee_rows(slp, layout, codec, &raw, most, frames, floats, ids, actions, made, error)
        })?;
        let made = usize::try_from(made).unwrap_or(0);
        rows.frames.truncate(made);
        rows.floats.truncate(made * spec.float_count);
        rows.ids.truncate(made * spec.ids.len());
        rows.actions.truncate(made * spec.heads.len());
        Ok(rows)
    }
}

/// Rows of one player, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayRows {
    /// `[T]`: the game frame that each row's action acts in.
    pub frames: Vec<i32>,
    /// `[T, F]`.
    pub floats: Vec<f32>,
    /// `[T, K]`.
    pub ids: Vec<i32>,
    /// `[T, A]`.
    pub actions: Vec<i32>,
}

/// What a push came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// A frame is ready; so many bytes were taken, push the rest again.
    Frame(usize),
    /// All bytes were taken, more are needed.
    More,
    /// The game is over; so many bytes were taken.
    End(usize),
}

/// The bytes of one game as they come. May move to another thread; only one uses it at a time.
pub struct SlpStream {
    handle: Handle<sys::exphil_slp_stream>,
    _context: Context,
}

// "An exphil_slp_stream: one thread at a time."
unsafe impl Send for SlpStream {}

impl fmt::Debug for SlpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlpStream").finish_non_exhaustive()
    }
}

impl SlpStream {
    /// All memory is taken here.
    pub fn new(context: &Context) -> Result<SlpStream> {
        let raw = context.as_raw();
        let handle = Handle::create(|out, error| unsafe { sys::exphil_slp_stream_create(raw, out, error) })?;
        Ok(SlpStream { handle, _context: context.clone() })
    }

    /// Takes bytes up to the next complete frame.
    pub fn push(&mut self, data: &[u8]) -> Result<Push> {
        let mut used = 0;
        let (bytes, stream) = (data.as_ptr().cast(), self.handle.raw());
        let status = call(|error| unsafe { sys::exphil_slp_stream_push(stream, bytes, data.len(), &mut used, error) })?;
        Ok(match status {
            sys::EXPHIL_AGAIN => Push::More,
            sys::EXPHIL_END => Push::End(used),
            _ => Push::Frame(used),
        })
    }

    /// Forgets the game; the next bytes are the start of another one.
    pub fn reset(&mut self) -> Result<()> {
        call(|error| unsafe { sys::exphil_slp_stream_reset(self.handle.raw(), error) })?;
        Ok(())
    }

    /// What is known so far.
    pub fn info(&self) -> Result<ReplayInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_slp_stream_query(self.handle.raw(), &mut info, error) })?;
        Ok(info)
    }

    /// The frame that the last push made ready.
    pub fn frame(&self) -> Option<ReplayFrame<'_>> {
        unsafe { sys::exphil_slp_stream_frame(self.handle.raw()).as_ref() }.map(ReplayFrame)
    }

    /// One character of that frame; `port` is 1..4, `follower` is Nana.
    pub fn player(&self, port: i32, follower: bool) -> Option<&SlpPlayer> {
        let index = port.checked_sub(1)?;
        unsafe { sys::exphil_slp_stream_player(self.handle.raw(), index, i32::from(follower)).as_ref() }
    }

    /// That frame as a policy knows it: the bits that the finished replay will give.
    pub fn melee_frame(&self, own_port: i32, opponent_port: i32) -> Result<Frame> {
        let mut frame = Frame::default();
        let (stream, raw) = (self.handle.raw(), frame.as_raw());
        call(|error| unsafe { sys::exphil_slp_stream_melee_frame(stream, own_port, opponent_port, raw, error) })?;
        Ok(frame)
    }
}
