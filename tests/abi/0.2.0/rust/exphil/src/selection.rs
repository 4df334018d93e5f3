//! Which players of a corpus of games are imitated, and why others are not.

use crate::failure::{borrowed_text, c_text, mirror, numbers};
use crate::Result;
use exphil_sys as sys;
use std::ffi::CString;
use std::ptr;

numbers! {
    /// Who won, of whom rows are made.
    GameResult {
        /// Whoever won.
        #[default]
        Any = EXPHIL_RESULT_ANY,
        /// Those who won.
        Won = EXPHIL_RESULT_WON,
        /// Those who lost.
        Lost = EXPHIL_RESULT_LOST,
    }
}

numbers! {
    /// Whether games of a kind are wanted.
    Presence {
        /// As well as others.
        #[default]
        WithOrWithout = EXPHIL_WITH_OR_WITHOUT,
        /// No.
        Without = EXPHIL_WITHOUT,
        /// These alone.
        With = EXPHIL_WITH,
    }
}

/// Which players of which games are imitated; the default is every human player, of recordings of one match from one. Lists
/// are names or numbers with spaces or commas between them. The header says what each filter asks, and in which order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Stages of the game: `"battlefield, final_destination"`.
    pub stages: Option<String>,
    /// Frames of the game: at least.
    pub least_frames: i64,
    /// At most; 0: no limit.
    pub most_frames: i64,
    /// Of the recording, since 1970-01-01: not before; 0: any.
    pub first_day: i32,
    /// Not after; 0: any.
    pub last_day: i32,
    /// Of the recorder, `0x030E00` is 3.14.0: not before; 0: any.
    pub least_version: i32,
    /// Team games.
    pub teams: Presence,
    /// Games in which items may appear.
    pub items: Presence,
    /// Ports that play: exactly; 0: any.
    pub players: i32,
    /// Only games with an end, that were not cut and lack no frame between.
    pub complete: bool,
    /// Only games in which every player is human.
    pub humans: bool,
    /// Of the player that is imitated: `"fox falco"`.
    pub characters: Option<String>,
    /// 1..4; 0: any.
    pub port: i32,
    /// Who won.
    pub result: GameResult,
    /// That the player dealt: at least.
    pub least_damage: i32,
    /// That the player took: at least.
    pub least_stocks: i32,
    /// Less than this; 0: any.
    pub self_destructs_below: i32,
    /// Share of the frames with an input: at least; 0..1.
    pub least_input: f64,
    /// Characters of the opponent.
    pub opponents: Option<String>,
    /// 0: the first other player.
    pub opponent_port: i32,
    /// Frames of the game that become rows: from this one on; 0 is where the clock starts.
    pub first_frame: i32,
    /// Inclusive; 0: to the end.
    pub last_frame: i32,
    /// All recordings of a match are taken, not one.
    pub duplicates: bool,
}

/// A selection lent to the library for one call.
pub(crate) struct Lent {
    pub(crate) raw: sys::exphil_selection,
    _texts: [Option<CString>; 3],
}

fn lent(what: &str, list: &Option<String>) -> Result<Option<CString>> {
    list.as_deref().map(|list| c_text(what, list)).transpose()
}

fn start(text: &Option<CString>) -> *const std::os::raw::c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

impl Selection {
    pub(crate) fn lend(&self) -> Result<Lent> {
        let texts =
            [lent("stages", &self.stages)?, lent("characters", &self.characters)?, lent("opponents", &self.opponents)?];
        let mut raw = sys::init::<sys::exphil_selection>();
        raw.stages = start(&texts[0]);
        raw.characters = start(&texts[1]);
        raw.opponents = start(&texts[2]);
        raw.least_frames = self.least_frames;
        raw.most_frames = self.most_frames;
        raw.first_day = self.first_day;
        raw.last_day = self.last_day;
        raw.least_version = self.least_version;
        raw.teams = self.teams as i32;
        raw.items = self.items as i32;
        raw.players = self.players;
        raw.complete = i32::from(self.complete);
        raw.humans = i32::from(self.humans);
        raw.port = self.port;
        raw.result = self.result as i32;
        raw.least_damage = self.least_damage;
        raw.least_stocks = self.least_stocks;
        raw.self_destructs_below = self.self_destructs_below;
        raw.least_input = self.least_input;
        raw.opponent_port = self.opponent_port;
        raw.first_frame = self.first_frame;
        raw.last_frame = self.last_frame;
        raw.duplicates = i32::from(self.duplicates);
        Ok(Lent { raw, _texts: texts })
    }
}

mirror! {
    /// What a selection took and refused, in players of games: taken and refused together are players.
    SelectionReport of exphil_selection_report {
        /// Of the corpus.
        games: i64,
        /// Ports that play, of all games.
        players: i64,
        /// Players of whom rows were added.
        taken: i64,
        /// Added.
        episodes: i64,
        /// Rows added.
        frames: i64,
        /// Left out of taken players: a character absent, a value not finite.
        frames_masked: i64,
        /// By `exphil_sys::EXPHIL_REFUSED_STAGE` and so on; [`SelectionReport::reasons`] has them in words.
        refused: [i64; 32],
    }
}

impl SelectionReport {
    /// Why players were not taken, and how many: `("too short", 12)`; only what refused somebody.
    pub fn reasons(&self) -> Vec<(String, i64)> {
        let counts = self.refused.iter().enumerate().filter(|(_, &count)| count != 0);
        counts.map(|(reason, &count)| (refused_name(reason as i32), count)).collect()
    }
}

fn refused_name(reason: i32) -> String {
    // Static storage, or NULL.
    unsafe { borrowed_text(sys::exphil_refused_name(reason)) }
}
