//! Corpora of games: replays in large numbers, kept small, in a file or a folder of files.

use crate::failure::{c_path, call, count, object, Handle};
use crate::replay::{Replay, ReplayInfo};
use crate::{Added, Context, Files, Result};
use exphil_sys as sys;
use std::convert::TryFrom;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

object!(exphil_games, exphil_games_destroy);
object!(exphil_games_writer, exphil_games_writer_destroy);

/// A corpus as a whole: the record of the header, field by field.
pub type GamesInfo = sys::exphil_games_info;
/// What the index says of a game; `player` has one entry for each port, 1 first.
pub type GameInfo = sys::exphil_game_info;
/// What became of a replay that was added.
pub type GamesAdded = sys::exphil_games_added;

/// An open corpus of games. Never changes: threads may share it, clones are the same corpus.
#[derive(Clone)]
pub struct Games {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Handle<sys::exphil_games>,
    context: Context,
}

// "An exphil_games never changes: shared freely."
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl fmt::Debug for Games {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Games").field("games", &self.len()).finish_non_exhaustive()
    }
}

impl Games {
    /// Opens a file or a folder. Only the index is read.
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Games> {
        let path = c_path(path.as_ref())?;
        let handle = Handle::create(|out, error| unsafe {
            sys::exphil_games_open(context.as_raw(), path.as_ptr(), out, error)
        })?;
        Ok(Games { inner: Arc::new(Inner { handle, context: context.clone() }) })
    }

    pub(crate) fn raw(&self) -> *mut sys::exphil_games {
        self.inner.handle.raw()
    }

    /// Counts, bytes and hash.
    pub fn info(&self) -> Result<GamesInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_games_query(self.raw(), &mut info, error) })?;
        Ok(info)
    }

    /// Games.
    pub fn len(&self) -> usize {
        self.info().map_or(0, |info| usize::try_from(info.games).unwrap_or(0))
    }

    /// No game at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One game without its frames: what the index says, and what [`Replay::info`] would.
    pub fn game(&self, index: usize) -> Result<(GameInfo, ReplayInfo)> {
        let (mut info, mut settings) = (sys::init(), sys::init());
        call(|error| unsafe { sys::exphil_games_game(self.raw(), count(index), &mut info, &mut settings, error) })?;
        Ok((info, settings))
    }

    /// A game with its frames. What a corpus does not keep is absent, as in a replay that does not record it.
    pub fn read(&self, index: usize) -> Result<Replay> {
        let handle =
            Handle::create(|out, error| unsafe { sys::exphil_games_read(self.raw(), count(index), out, error) })?;
        Ok(Replay::of_handle(handle, &self.inner.context))
    }

    /// Reads and checks everything; the error names the first damaged game.
    pub fn verify(&self) -> Result<()> {
        call(|error| unsafe { sys::exphil_games_verify(self.raw(), error) })?;
        Ok(())
    }
}

/// How a corpus is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GamesConfig {
    /// In a folder: a file is ended when it has so many bytes; 0 is 1 GiB.
    pub shard_bytes: i64,
    /// Of the compression, 1..19; 0 is 3.
    pub level: i32,
    /// Blocks are not compressed: needs no libzstd, takes ten times the bytes.
    pub stored: bool,
}

/// Writes a corpus of games: a file, or new files in a folder. Dropped before [`GamesWriter::finish`], it writes nothing of
/// what was not whole yet.
pub struct GamesWriter {
    handle: Handle<sys::exphil_games_writer>,
    _context: Context,
}

// "One thread at a time", whichever.
unsafe impl Send for GamesWriter {}

impl fmt::Debug for GamesWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GamesWriter").finish_non_exhaustive()
    }
}

impl GamesWriter {
    /// Begins a corpus: a file, or new files in a folder that exists.
    pub fn create(context: &Context, path: impl AsRef<Path>, config: &GamesConfig) -> Result<GamesWriter> {
        let path = c_path(path.as_ref())?;
        let mut raw = sys::init::<sys::exphil_games_config>();
        raw.shard_bytes = config.shard_bytes;
        raw.level = config.level;
        raw.stored = i32::from(config.stored);
        let handle = Handle::create(|out, error| unsafe {
            sys::exphil_games_create(context.as_raw(), path.as_ptr(), &raw, out, error)
        })?;
        Ok(GamesWriter { handle, _context: context.clone() })
    }

    fn added(
        &mut self,
        work: impl FnOnce(*mut sys::exphil_games_writer, *mut GamesAdded, *mut sys::exphil_error) -> i32,
    ) -> Result<GamesAdded> {
        let mut added = sys::init();
        call(|error| work(self.handle.raw(), &mut added, error))?;
        Ok(added)
    }

    /// Adds a replay file. After a failure nothing was added, and the writer goes on.
    pub fn add(&mut self, path: impl AsRef<Path>) -> Result<GamesAdded> {
        let path = c_path(path.as_ref())?;
        self.added(|writer, added, error| unsafe { sys::exphil_games_add(writer, path.as_ptr(), added, error) })
    }

    /// The same from memory.
    pub fn add_memory(&mut self, data: &[u8]) -> Result<GamesAdded> {
        self.added(|writer, added, error| unsafe {
            sys::exphil_games_add_memory(writer, data.as_ptr().cast(), data.len(), added, error)
        })
    }

    /// Adds many replays. None of them ends it: those that were not added are in the result, with why.
    pub fn add_replays(&mut self, files: &Files<'_>) -> Result<Added<GamesAdded>> {
        files.add_all(|path| self.add(path))
    }

    /// Adds a game of another corpus as it is packed there, after a check.
    pub fn copy(&mut self, from: &Games, index: usize) -> Result<GamesAdded> {
        self.added(|writer, added, error| unsafe {
            sys::exphil_games_copy(writer, from.raw(), count(index), added, error)
        })
    }

    /// Ends the corpus; tells what this writer wrote.
    pub fn finish(self) -> Result<GamesInfo> {
        let mut info = sys::init();
        call(|error| unsafe { sys::exphil_games_finish(self.handle.raw(), &mut info, error) })?;
        Ok(info)
    }
}
