//! Datasets: frames in memory or in a corpus file, grouped in episodes.

use crate::failure::{c_path, c_text, call, count, expect_length, mirror, object, text, Handle};
use crate::shapes::{pointer, size, Row};
use crate::{Added, Context, Error, Files, Games, Result, Selection, SelectionReport, Spec, Status};
use exphil_sys as sys;
use std::ffi::CString;
use std::fmt;
use std::ops::Range;
use std::path::Path;

object!(exphil_dataset, exphil_dataset_destroy);

/// Frames of one game, grouped in episodes. Row t holds what is known before the action of frame t acts, and that action.
/// May move to another thread; only one uses it at a time.
pub struct Dataset {
    handle: Handle<sys::exphil_dataset>,
    context: Context,
    row: Row,
}

// "No thread affinity"; not Sync: "one thread at a time".
unsafe impl Send for Dataset {}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset").field("row", &self.row).finish_non_exhaustive()
    }
}

/// Which frames of a replay are taken. The default is every human player, from the start of the clock to the end.
#[derive(Clone, Debug, Default)]
pub struct ReplayConfig {
    /// Imitate only this character: `"fox"`.
    pub character: Option<String>,
    /// Imitate 1..4; 0: every human player.
    pub port: i32,
    /// 0: the first other player.
    pub opponent_port: i32,
    /// Of the game.
    pub first_frame: i32,
    /// Inclusive; 0: to the end.
    pub last_frame: i32,
}

mirror! {
    /// What a replay added.
    ReplayResult of exphil_replay_result {
        /// Added.
        episodes: i64,
        /// Added.
        frames: i64,
        /// Left out: a character absent, a value not finite.
        frames_masked: i64,
        /// 1: the replay ends early; what there is was used.
        truncated: i32,
    }
}

impl ReplayConfig {
    /// For one call: the text must live as long.
    pub(crate) fn lend(&self) -> Result<(sys::exphil_replay_config, Option<CString>)> {
        let character = self.character.as_deref().map(|name| c_text("character", name)).transpose()?;
        let mut raw = sys::init::<sys::exphil_replay_config>();
        raw.character = character.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        raw.port = self.port;
        raw.opponent_port = self.opponent_port;
        raw.first_frame = self.first_frame;
        raw.last_frame = self.last_frame;
        Ok((raw, character))
    }
}

/// Frames as arrays, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// `[T, F]`.
    pub floats: Vec<f32>,
    /// `[T, K]`.
    pub ids: Vec<i32>,
    /// `[T, A]`.
    pub actions: Vec<i32>,
    /// `[T]`: the index of each frame's episode.
    pub episodes: Vec<i64>,
}

/// How a dataset is split in two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// This share of whole games, drawn at random from the seed.
    Games(f64, u64),
    /// The last part of every episode, of this share.
    Time(f64),
    /// Whole games, each with this probability by a draw of the seed and the game alone: games that are added later
    /// change nothing for those that are there.
    Stable(f64, u64),
}

impl Dataset {
    /// An empty dataset; without a spec, of Melee's default.
    pub fn new(context: &Context, spec: Option<&Spec>) -> Result<Dataset> {
        let lent = spec.map(Spec::lend).transpose()?;
        let mut raw = sys::init::<sys::exphil_dataset_config>();
        raw.spec = pointer(&lent);
        let handle =
            Handle::create(|out, error| unsafe { sys::exphil_dataset_create(context.as_raw(), &raw, out, error) })?;
        Dataset::of(handle, context)
    }

    /// Opens a corpus file that [`Dataset::save`] wrote. It stays open, and its rows are read when they are
    /// needed. Saving to the same path is fine, it puts a new file there.
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Dataset> {
        let path = c_path(path.as_ref())?;
        let raw = context.as_raw();
        let handle = Handle::create(|out, error| unsafe { sys::exphil_dataset_open(raw, path.as_ptr(), out, error) })?;
        Dataset::of(handle, context)
    }

    fn of(handle: Handle<sys::exphil_dataset>, context: &Context) -> Result<Dataset> {
        let mut info = sys::init::<sys::exphil_dataset_info>();
        call(|error| unsafe { sys::exphil_dataset_query(handle.raw(), &mut info, error) })?;
        let row = Row { floats: size(info.float_count)?, ids: size(info.id_count)?, heads: size(info.head_count)? };
        Ok(Dataset { handle, context: context.clone(), row })
    }

    /// Writes a corpus file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_dataset_save(self.as_raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// Checks all rows of a corpus file now, on all workers.
    pub fn verify(&self) -> Result<()> {
        call(|error| unsafe { sys::exphil_dataset_verify(self.as_raw(), error) })?;
        Ok(())
    }

    /// Adds the frames of a replay file.
    pub fn add_replay(&mut self, path: impl AsRef<Path>, config: &ReplayConfig) -> Result<ReplayResult> {
        let path = c_path(path.as_ref())?;
        self.add(config, |dataset, config, result, error| unsafe {
            sys::exphil_dataset_add_replay(dataset, path.as_ptr(), config, result, error)
        })
    }

    /// Adds the frames of a replay that was read.
    pub fn add_replay_memory(&mut self, data: &[u8], config: &ReplayConfig) -> Result<ReplayResult> {
        self.add(config, |dataset, config, result, error| unsafe {
            let (data, bytes) = (data.as_ptr().cast(), data.len());
            sys::exphil_dataset_add_replay_memory(dataset, data, bytes, config, result, error)
        })
    }

    fn add(
        &mut self,
        config: &ReplayConfig,
        work: impl FnOnce(
            *mut sys::exphil_dataset,
            *const sys::exphil_replay_config,
            *mut sys::exphil_replay_result,
            *mut sys::exphil_error,
        ) -> i32,
    ) -> Result<ReplayResult> {
        let (raw, _character) = config.lend()?;
        let mut result = sys::init();
        call(|error| work(self.as_raw(), &raw, &mut result, error))?;
        Ok(ReplayResult::of(&result))
    }

    /// Adds many replays. None of them ends it: those of which nothing was taken are in the result, with why. Wrong settings
    /// are an error, as of [`Dataset::add_replay`].
    pub fn add_replays(&mut self, files: &Files<'_>, config: &ReplayConfig) -> Result<Added<ReplayResult>> {
        match self.add_replay_memory(b"no replay", config) {
            Err(error) if error.status() == Status::Format => {} // the settings are fine
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        files.add_all(|path| self.add_replay(path, config))
    }

    /// Adds rows of a corpus of games, which are made when they are needed.
    pub fn add_games(&mut self, games: &Games, selection: &Selection) -> Result<SelectionReport> {
        let lent = selection.lend()?;
        let mut report = sys::init();
        call(|error| unsafe {
            sys::exphil_dataset_add_games(self.as_raw(), games.raw(), &lent.raw, &mut report, error)
        })?;
        Ok(SelectionReport::of(&report))
    }

    /// Adds one episode of any game: floats `[T, F]`, ids `[T, K]`, actions `[T, A]`; T is what the actions have. `game`
    /// groups episodes that a split must keep together.
    pub fn add_rows(&mut self, game: u64, floats: &[f32], ids: &[i32], actions: &[i32]) -> Result<()> {
        let frames = actions.len() / self.row.heads;
        expect_length("actions", actions.len(), frames * self.row.heads)?;
        expect_length("floats", floats.len(), frames * self.row.floats)?;
        expect_length("ids", ids.len(), frames * self.row.ids)?;
        let (floats, ids, actions) = (floats.as_ptr(), ids.as_ptr(), actions.as_ptr());
        call(|error| unsafe {
            sys::exphil_dataset_add_rows(self.as_raw(), game, count(frames), floats, ids, actions, error)
        })?;
        Ok(())
    }

    /// Gives a condition a value in all episodes of a game that are of one port (0: of those that have no value of their
    /// own), whether they are there or come later.
    pub fn condition(&mut self, name: &str, game: u64, port: i32, value: i32) -> Result<()> {
        let name = c_text("name", name)?;
        call(|error| unsafe { sys::exphil_dataset_condition(self.as_raw(), name.as_ptr(), game, port, value, error) })?;
        Ok(())
    }

    /// The same for these episodes, whatever their game. It goes before [`Dataset::condition`].
    pub fn condition_episodes(&mut self, name: &str, episodes: std::ops::Range<usize>, value: i32) -> Result<()> {
        let name = c_text("name", name)?;
        let (first, length) = (count(episodes.start), count(episodes.len()));
        call(|error| unsafe {
            sys::exphil_dataset_condition_episodes(self.as_raw(), name.as_ptr(), first, length, value, error)
        })?;
        Ok(())
    }

    /// How much frames of a game ([`EpisodeInfo::game`]) count in training: 0, or 1e-6 to 1000, in the place of 1; of one
    /// port, or with 0 of all. `i32::MIN..=i32::MAX` is the whole game. A later call replaces earlier ones where both hold.
    pub fn weight(&mut self, game: u64, port: i32, frames: std::ops::RangeInclusive<i32>, weight: f64) -> Result<()> {
        let (first, last) = (*frames.start(), *frames.end());
        call(|error| unsafe { sys::exphil_dataset_weight(self.as_raw(), game, port, first, last, weight, error) })?;
        Ok(())
    }

    /// What came of each frame for one player of a game: rewards of the game's frames `first_frame`, `first_frame + 1`, ...,
    /// each of which answers the action that acts in its frame. `over`: nothing came after the last of them; otherwise the
    /// game was cut off, and frames whose return would lack more than a 64th of its weight are not known. A reward counts
    /// half after `half_life_frames`. Batches of prefetchers that are made afterwards have [`Batch::returns`](crate::Batch::returns).
    pub fn rewards_set(
        &mut self,
        game: u64,
        port: i32,
        first_frame: i32,
        rewards: &[f32],
        over: bool,
        half_life_frames: f64,
    ) -> Result<()> {
        let (data, length, over) = (rewards.as_ptr(), count(rewards.len()), i32::from(over));
        let raw = self.as_raw();
        call(|error| unsafe {
            sys::exphil_dataset_rewards_set(raw, game, port, first_frame, data, length, over, half_life_frames, error)
        })?;
        Ok(())
    }

    /// What it holds.
    pub fn info(&self) -> Result<DatasetInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_dataset_query(self.as_raw(), &mut raw, error) })?;
        DatasetInfo::of(&raw)
    }

    /// Rows and actions.
    pub fn spec(&self) -> Result<Spec> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_dataset_spec(self.as_raw(), &mut raw, error) })?;
        // Its pointers live until the dataset is modified or destroyed.
        unsafe { Spec::of(&raw) }
    }

    /// One player's side of one game.
    pub fn episode(&self, index: usize) -> Result<EpisodeInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_dataset_episode(self.as_raw(), count(index), &mut raw, error) })?;
        Ok(EpisodeInfo::of(&raw))
    }

    /// Copies any frame out: floats `[F]`, ids `[K]`, action `[A]`.
    pub fn frame(&self, index: usize, floats: &mut [f32], ids: &mut [i32], action: &mut [i32]) -> Result<()> {
        expect_length("floats", floats.len(), self.row.floats)?;
        expect_length("ids", ids.len(), self.row.ids)?;
        expect_length("action", action.len(), self.row.heads)?;
        let (floats, ids, action) = (floats.as_mut_ptr(), ids.as_mut_ptr(), action.as_mut_ptr());
        call(|error| unsafe { sys::exphil_dataset_frame(self.as_raw(), count(index), floats, ids, action, error) })?;
        Ok(())
    }

    /// Copies a range of frames out, across episodes, in one call.
    pub fn rows(&self, range: Range<usize>) -> Result<Rows> {
        let frames = range.end.saturating_sub(range.start);
        // What is outside is refused before there is memory for it.
        let (first, length) = (count(range.start), if range.start > range.end { -1 } else { count(frames) });
        let fits = range.start <= range.end && range.end <= self.info()?.frames;
        let frames = if fits { frames } else { 0 };
        let mut rows = Rows {
            floats: vec![0.0; frames * self.row.floats],
            ids: vec![0; frames * self.row.ids],
            actions: vec![0; frames * self.row.heads],
            episodes: vec![0; frames],
        };
        let (floats, ids) = (rows.floats.as_mut_ptr(), rows.ids.as_mut_ptr());
        let (actions, episodes) = (rows.actions.as_mut_ptr(), rows.episodes.as_mut_ptr());
        call(|error| unsafe {
            sys::exphil_dataset_rows(self.as_raw(), first, length, floats, ids, actions, episodes, error)
        })?;
        Ok(rows)
    }

    /// Two new datasets that share the rows: what is kept, and what is held out.
    pub fn split(&self, held: Held) -> Result<(Dataset, Dataset)> {
        let mut raw = sys::init::<sys::exphil_split_config>();
        match held {
            Held::Games(share, seed) => {
                raw.by = sys::EXPHIL_SPLIT_GAME as i32;
                raw.held_out = share;
                raw.seed = seed;
            }
            Held::Time(share) => {
                raw.by = sys::EXPHIL_SPLIT_TIME as i32;
                raw.held_out = share;
            }
            Held::Stable(share, seed) => {
                raw.by = sys::EXPHIL_SPLIT_STABLE as i32;
                raw.held_out = share;
                raw.seed = seed;
            }
        }
        let (first, second) = Handle::create_two(|kept, held, error| unsafe {
            sys::exphil_dataset_split(self.as_raw(), &raw, kept, held, error)
        })?;
        let second = second.ok_or_else(|| Error::invalid("split: gave one half only"))?;
        Ok((Dataset::of(first, &self.context)?, Dataset::of(second, &self.context)?))
    }

    pub(crate) fn row(&self) -> Row {
        self.row
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The library's own pointer, for calls of [`exphil_sys`]. Valid while this handle lives.
    pub fn as_raw(&self) -> *mut sys::exphil_dataset {
        self.handle.raw()
    }
}

/// What a dataset holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetInfo {
    /// [`Spec::hash`] of its spec.
    pub spec_hash: u64,
    /// Of all rows in order.
    pub content_hash: u64,
    /// All together.
    pub frames: usize,
    /// All together.
    pub episodes: usize,
    /// All together.
    pub games: usize,
    /// F.
    pub float_count: usize,
    /// K.
    pub id_count: usize,
    /// A.
    pub head_count: usize,
    /// Columns that never change: dead inputs. None: not known, of rows that are made of games.
    pub constant_floats: Option<usize>,
    /// Opened from a file with a torn tail.
    pub recovered: bool,
    /// Name of the observation layout.
    pub layout: String,
    /// Name of the action codec.
    pub codec: String,
}

impl DatasetInfo {
    fn of(raw: &sys::exphil_dataset_info) -> Result<DatasetInfo> {
        Ok(DatasetInfo {
            spec_hash: raw.spec_hash,
            content_hash: raw.content_hash,
            frames: size(raw.frames)?,
            episodes: size(raw.episodes)?,
            games: size(raw.games)?,
            float_count: size(raw.float_count)?,
            id_count: size(raw.id_count)?,
            head_count: size(raw.head_count)?,
            constant_floats: usize::try_from(raw.constant_floats).ok(),
            recovered: raw.recovered != 0,
            layout: text(&raw.layout),
            codec: text(&raw.codec),
        })
    }
}

mirror! {
    /// One player's side of one game.
    EpisodeInfo of exphil_episode_info {
        /// Hash of the replay's content, or what [`Dataset::add_rows`] was given.
        game: u64,
        /// Its first frame in the dataset.
        first: i64,
        /// How many.
        frames: i64,
        /// Of the replay; 0 for rows.
        first_game_frame: i32,
        /// 0 for rows.
        port: i32,
        /// 0 for rows.
        opponent_port: i32,
        /// 0 for rows.
        stage: i32,
        /// External id, -1 for rows.
        character: i32,
        /// External id, -1 for rows.
        opponent_character: i32,
        /// Equal for recordings of one match, which a split keeps together; 0: not known.
        group: u64,
    }
}
