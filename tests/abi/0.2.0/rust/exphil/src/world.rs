//! Worlds: games that can be stepped, many at once. The library has some; any [`Game`] of the host's may be one.

use crate::failure::{c_text, call, count, expect_length, mirror};
use crate::hooks;
use crate::shapes::{size, Lent, Row};
use crate::{Context, Dataset, Error, HeadKind, Model, Result, Spec, Status};
use exphil_sys as sys;
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// What a game of the host's fails with; any error, or a text by `"...".into()`.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the calls of a game give.
pub type Played<T> = std::result::Result<T, Failure>;

/// How an episode stands after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum End {
    /// It goes on.
    #[default]
    GoesOn = sys::EXPHIL_GOES_ON as u8,
    /// Nothing comes any more.
    Over = sys::EXPHIL_OVER as u8,
    /// It would have gone on (a limit of time), so that what it leaves still has a value.
    CutOff = sys::EXPHIL_CUT_OFF as u8,
}

impl End {
    fn of(number: u8) -> Option<End> {
        [End::GoesOn, End::Over, End::CutOff].iter().copied().find(|&end| end as u8 == number)
    }
}

/// One game that can be stepped: a lane of a [`World`], with `seats` players. Arrays hold the players one after the other,
/// and are zero before a game writes them.
///
/// What fails, fails the call that plays: it ends with [`Status::Io`] and these words. A panic does not unwind through the
/// library: it goes on where that call returns, and the world is failed for good.
pub trait Game: Send {
    /// A new episode, which follows from `seed` alone: floats `[seats, F]`, ids `[seats, K]` of its first row.
    fn reset(&mut self, seed: u64, floats: &mut [f32], ids: &mut [i32]) -> Played<()>;

    /// One frame: actions `[seats, A]` act; floats and ids are then the rows that show what came of it, `reward` has one number
    /// for each player. A game that has ended is reset before it is stepped again.
    fn step(&mut self, actions: &[i32], floats: &mut [f32], ids: &mut [i32], reward: &mut [f32]) -> Played<End>;

    /// Bytes of what [`Game::save`] writes, the same for all games of a world and for ever; 0: it cannot be saved.
    fn state_bytes(&self) -> usize {
        0
    }

    /// The game as a flat block, which the game of any lane can load.
    fn save(&self, state: &mut [u8]) -> Played<()> {
        let _ = state;
        Err("the game cannot be saved".into())
    }

    /// Back to what was saved.
    fn load(&mut self, state: &[u8]) -> Played<()> {
        let _ = state;
        Err("the game cannot be loaded".into())
    }
}

/// Any number but 0 ends the library's call; what is kept says the rest.
const FAILED: i32 = 5;

/// What a game did in the place of playing.
enum Wrong {
    Failed(Failure),
    Panicked(Box<dyn Any + Send>),
}

/// Between the game and the return of the call that plays it; the library may have called from another thread.
#[derive(Default)]
struct Trouble {
    first: Option<Wrong>,
    /// A game has panicked: it may be in no state to be played.
    dead: bool,
}

type Kept = Arc<Mutex<Trouble>>;

/// What the library's calls reach. Lanes are stepped by several threads at once at most, never one lane by two.
struct Lanes<G> {
    games: Vec<UnsafeCell<G>>,
    row: Row,
    seats: usize,
    state_bytes: usize,
    trouble: Kept,
}

impl<G: Game> Lanes<G> {
    /// Runs a game; nothing unwinds out of here.
    fn guarded(&self, play: impl FnOnce() -> Played<()>) -> i32 {
        // A panic of a hook that is kept for this thread is none of the game's.
        hooks::guarded(FAILED, || {
            let trouble = || self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            if trouble().dead {
                return FAILED;
            }
            let wrong = match catch_unwind(AssertUnwindSafe(play)) {
                Ok(Ok(())) => return 0,
                Ok(Err(failure)) => Wrong::Failed(failure),
                Err(panic) => Wrong::Panicked(panic),
            };
            let mut kept = trouble();
            kept.dead |= matches!(wrong, Wrong::Panicked(_));
            let late = match kept.first {
                None => kept.first.replace(wrong),
                Some(_) => Some(wrong),
            };
            drop(kept);
            if let Some(Wrong::Panicked(panic)) = late {
                hooks::drop_quietly(panic);
            }
            FAILED
        })
    }

    fn lanes(&self, first: i64, length: i64) -> Played<std::ops::Range<usize>> {
        let (first, length) = (size(first)?, size(length)?);
        match first.checked_add(length).filter(|&end| end <= self.games.len()) {
            Some(end) => Ok(first..end),
            None => Err(format!("there is no lane {}", first).into()),
        }
    }
}

/// Arrays of the library for one call, zeroed: what a game leaves out is no memory of somebody else's.
unsafe fn zeroed<'a, T: Copy>(pointer: *mut T, length: usize) -> &'a mut [T] {
    if length == 0 {
        return &mut [];
    }
    unsafe {
        ptr::write_bytes(pointer, 0, length);
        std::slice::from_raw_parts_mut(pointer, length)
    }
}

unsafe extern "C" fn reset<G: Game>(user: *mut c_void, lane: i64, seed: u64, floats: *mut f32, ids: *mut i32) -> i32 {
    let of = unsafe { &*(user as *const Lanes<G>) };
    of.guarded(|| {
        let lane = of.lanes(lane, 1)?.start;
        let floats = unsafe { zeroed(floats, of.seats * of.row.floats) };
        let ids = unsafe { zeroed(ids, of.seats * of.row.ids) };
        unsafe { &mut *of.games[lane].get() }.reset(seed, floats, ids)
    })
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn step<G: Game>(
    user: *mut c_void,
    first: i64,
    length: i64,
    actions: *const i32,
    floats: *mut f32,
    ids: *mut i32,
    reward: *mut f32,
    end: *mut u8,
) -> i32 {
    let of = unsafe { &*(user as *const Lanes<G>) };
    of.guarded(|| {
        for (place, lane) in of.lanes(first, length)?.enumerate() {
            let (row, at) = (of.row, place * of.seats);
            // The arrays begin with the first lane.
            unsafe {
                let actions = crate::shapes::slice(actions.add(at * row.heads), of.seats * row.heads);
                let floats = zeroed(floats.add(at * row.floats), of.seats * row.floats);
                let ids = zeroed(ids.add(at * row.ids), of.seats * row.ids);
                let reward = zeroed(reward.add(at), of.seats);
                *end.add(place) = (*of.games[lane].get()).step(actions, floats, ids, reward)? as u8;
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn save<G: Game>(user: *mut c_void, lane: i64, state: *mut c_void) -> i32 {
    let of = unsafe { &*(user as *const Lanes<G>) };
    of.guarded(|| {
        let lane = of.lanes(lane, 1)?.start;
        unsafe { &*of.games[lane].get() }.save(unsafe { zeroed(state.cast(), of.state_bytes) })
    })
}

unsafe extern "C" fn load<G: Game>(user: *mut c_void, lane: i64, state: *const c_void) -> i32 {
    let of = unsafe { &*(user as *const Lanes<G>) };
    of.guarded(|| {
        let lane = of.lanes(lane, 1)?.start;
        unsafe { &mut *of.games[lane].get() }.load(unsafe { crate::shapes::slice(state.cast(), of.state_bytes) })
    })
}

unsafe extern "C" fn destroy<G: Game>(user: *mut c_void) {
    hooks::guarded((), || drop(unsafe { Box::from_raw(user as *mut Lanes<G>) }));
}

/// The library's struct, at an address that stays, and its end.
struct Held(Box<sys::exphil_world>);

impl Drop for Held {
    fn drop(&mut self) {
        unsafe { sys::exphil_world_destroy(&mut *self.0) };
        hooks::discard();
    }
}

/// A game that can be stepped, in lanes: so many games at once, each with `seats` players. A stream is one player: lane l, seat
/// s is stream `l * seats + s`. May move to another thread; only one uses it at a time.
///
/// ```
/// # fn main() -> exphil::Result<()> {
/// let mut world = exphil::World::create(&exphil::Context::new()?, "cartpole", 1)?;
/// let (mut floats, mut reward, mut end) = ([0.0; 4], [0.0], [exphil::End::GoesOn]);
/// world.reset(0, 7, &mut floats, &mut [])?;
/// while end[0] == exphil::End::GoesOn {
///     let left = i32::from(floats[2] > 0.0);
///     world.step(&[left], &mut floats, &mut [], &mut reward, &mut end)?;
/// }
/// # Ok(()) }
/// ```
pub struct World {
    held: Held,
    /// What the world beneath plays with must live as long.
    _beneath: Option<Box<World>>,
    _spec: Option<Box<Lent>>,
    context: Context,
    spec: Spec,
    row: Row,
    trouble: Kept,
    ends: Vec<u8>,
}

// Games are Send; what the library holds has no thread affinity. Not Sync: "played by one call at a time".
unsafe impl Send for World {}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lanes, seats) = (self.lanes(), self.seats());
        f.debug_struct("World").field("lanes", &lanes).field("seats", &seats).finish_non_exhaustive()
    }
}

impl World {
    /// One of the library's own by its name: `"cartpole"`, `"cartpole-blind"`, `"pong"`, `"pong-two"`. The header `learn.h`
    /// says what they are.
    pub fn create(context: &Context, name: &str, lanes: usize) -> Result<World> {
        let name = c_text("name", name)?;
        let mut held = Held(Box::new(sys::init()));
        let raw: *mut sys::exphil_world = &mut *held.0;
        let context_raw = context.as_raw();
        call(|error| unsafe { sys::exphil_world_create(context_raw, name.as_ptr(), count(lanes), raw, error) })?;
        World::open(held, context, None, None, Kept::default())
    }

    /// Games of the host's own, one for each lane, 1 to 4096, each with 1 to 8 seats. Rows and actions are those of `spec`, the
    /// same for all seats.
    pub fn of<G: Game + 'static>(context: &Context, spec: &Spec, seats: usize, games: Vec<G>) -> Result<World> {
        Dataset::new(context, Some(spec))?; // which says what is wrong with a spec
        if !(1..=4096).contains(&games.len()) {
            return Err(Error::invalid(format!("games: has {}, must have 1..4096", games.len())));
        }
        if !(1..=8).contains(&seats) {
            return Err(Error::invalid(format!("seats: is {}, must be 1..8", seats)));
        }
        let state_bytes = games[0].state_bytes();
        if games.iter().any(|game| game.state_bytes() != state_bytes) {
            return Err(Error::invalid("games: their state_bytes differ"));
        }
        let (lent, trouble) = (Box::new(spec.lend()?), Kept::default());
        let row = Row { floats: spec.float_count, ids: spec.ids.len(), heads: spec.heads.len() };
        let mut raw = sys::init::<sys::exphil_world>();
        raw.spec = &lent.raw;
        raw.lanes = count(games.len());
        raw.seats = count(seats);
        raw.state_bytes = state_bytes;
        raw.reset = Some(reset::<G>);
        raw.step = Some(step::<G>);
        if state_bytes > 0 {
            raw.save = Some(save::<G>);
            raw.load = Some(load::<G>);
        }
        raw.destroy = Some(destroy::<G>);
        let games = games.into_iter().map(UnsafeCell::new).collect();
        raw.user = Box::into_raw(Box::new(Lanes { games, row, seats, state_bytes, trouble: trouble.clone() }))
            .cast::<c_void>();
        World::open(Held(Box::new(raw)), context, None, Some(lent), trouble)
    }

    fn open(
        held: Held,
        context: &Context,
        beneath: Option<Box<World>>,
        lent: Option<Box<Lent>>,
        trouble: Kept,
    ) -> Result<World> {
        // The world's own, which lives as long.
        let spec = unsafe { Spec::of(&*held.0.spec) }?;
        let row = Row { floats: spec.float_count, ids: spec.ids.len(), heads: spec.heads.len() };
        let ends = vec![0; size(held.0.lanes)?];
        Ok(World { held, _beneath: beneath, _spec: lent, context: context.clone(), spec, row, trouble, ends })
    }

    /// The same lanes with one seat: the other of two is played by policies that do not learn. Lane l is played against
    /// `opponents[l % n]`, in the first seat where `l / n` is even and in the second elsewhere. `seed`: of their draws. The
    /// games are those of this world, which is given away.
    pub fn against(self, opponents: &[&Model], seed: u64) -> Result<World> {
        let raw: Vec<_> = opponents.iter().map(|model| model.as_raw() as *const sys::exphil_model).collect();
        let mut held = Held(Box::new(sys::init()));
        let (made, beneath): (*mut sys::exphil_world, *const sys::exphil_world) = (&mut *held.0, self.raw());
        let (context, length) = (self.context.clone(), count(raw.len()));
        call(|error| unsafe {
            sys::exphil_world_against(context.as_raw(), beneath, raw.as_ptr(), length, seed, made, error)
        })?;
        let trouble = self.trouble.clone();
        World::open(held, &context, Some(Box::new(self)), None, trouble)
    }

    /// In a world that [`World::against`] made: what came of the episodes against an opponent since the last call. A model takes
    /// its place, between two frames, and goes on with the state that there is.
    pub fn opponent(&mut self, index: usize, model: Option<&Model>) -> Result<Record> {
        let mut record = sys::init();
        let model = model.map_or(ptr::null_mut(), Model::as_raw);
        let raw = self.raw();
        call(|error| unsafe { sys::exphil_world_opponent(raw, count(index), model, &mut record, error) })?;
        Ok(Record::of(&record))
    }

    /// A new episode, for a host that plays by itself: floats `[seats, F]`, ids `[seats, K]` of its first row.
    pub fn reset(&mut self, lane: usize, seed: u64, floats: &mut [f32], ids: &mut [i32]) -> Result<()> {
        self.expect_lane(lane)?;
        expect_length("floats", floats.len(), self.seats() * self.row.floats)?;
        expect_length("ids", ids.len(), self.seats() * self.row.ids)?;
        self.ask("reset", |raw| {
            let reset = raw.reset?;
            Some(unsafe { reset(raw.user, count(lane), seed, floats.as_mut_ptr(), ids.as_mut_ptr()) })
        })
    }

    /// A frame of all lanes: actions `[streams, A]` in; floats `[streams, F]`, ids `[streams, K]`, reward `[streams]` and end
    /// `[lanes]` out. A lane that has ended is reset before it is stepped again.
    pub fn step(
        &mut self,
        actions: &[i32],
        floats: &mut [f32],
        ids: &mut [i32],
        reward: &mut [f32],
        end: &mut [End],
    ) -> Result<()> {
        let streams = self.streams();
        expect_length("actions", actions.len(), streams * self.row.heads)?;
        expect_length("floats", floats.len(), streams * self.row.floats)?;
        expect_length("ids", ids.len(), streams * self.row.ids)?;
        expect_length("reward", reward.len(), streams)?;
        expect_length("end", end.len(), self.lanes())?;
        self.expect_values(actions)?;
        let mut ends = std::mem::take(&mut self.ends);
        let played = self.ask("step", |raw| {
            let step = raw.step?;
            let (floats, ids, reward) = (floats.as_mut_ptr(), ids.as_mut_ptr(), reward.as_mut_ptr());
            Some(unsafe { step(raw.user, 0, raw.lanes, actions.as_ptr(), floats, ids, reward, ends.as_mut_ptr()) })
        });
        let told = end.iter_mut().zip(&ends).all(|(to, &number)| End::of(number).map(|end| *to = end).is_some());
        self.ends = ends;
        played?;
        if told {
            return Ok(());
        }
        Err(Error::invalid("end: the world gave one that is none"))
    }

    /// The game of a lane as a flat block of [`World::state_bytes`].
    pub fn save(&self, lane: usize, state: &mut [u8]) -> Result<()> {
        self.expect_state(lane, state.len())?;
        self.ask("save", |raw| Some(unsafe { (raw.save?)(raw.user, count(lane), state.as_mut_ptr().cast()) }))
    }

    /// Back to what was saved, of any lane.
    pub fn load(&mut self, lane: usize, state: &[u8]) -> Result<()> {
        self.expect_state(lane, state.len())?;
        self.ask("load", |raw| Some(unsafe { (raw.load?)(raw.user, count(lane), state.as_ptr().cast()) }))
    }

    /// What a row and an action are.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Games at once.
    pub fn lanes(&self) -> usize {
        usize::try_from(self.held.0.lanes).unwrap_or(0)
    }

    /// Players of a game.
    pub fn seats(&self) -> usize {
        usize::try_from(self.held.0.seats).unwrap_or(0)
    }

    /// Players of all games: what [`SessionConfig::streams`](crate::SessionConfig::streams) of a rollout is.
    pub fn streams(&self) -> usize {
        self.lanes() * self.seats()
    }

    /// Bytes of a saved game; 0: it cannot be saved.
    pub fn state_bytes(&self) -> usize {
        self.held.0.state_bytes
    }

    pub(crate) fn raw(&self) -> *const sys::exphil_world {
        &*self.held.0
    }

    /// Makes a call that plays this world. What a game failed with is the call's error; its panic goes on.
    pub(crate) fn play(
        &self,
        work: impl FnOnce(*const sys::exphil_world, *mut sys::exphil_error) -> i32,
    ) -> Result<i32> {
        let raw = self.raw();
        self.after(call(|error| work(raw, error)))
    }

    fn after<T>(&self, result: Result<T>) -> Result<T> {
        let mut kept = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, dead) = (kept.first.take(), kept.dead);
        drop(kept);
        match (first, result) {
            (Some(Wrong::Panicked(panic)), _) => std::panic::resume_unwind(panic),
            (Some(Wrong::Failed(failure)), Err(error)) => {
                Err(Error::new(error.status(), format!("{}: {}", error.message(), failure)))
            }
            (None, Err(error)) if dead && error.status() == Status::Io => {
                Err(Error::new(error.status(), format!("{}: a game panicked before", error.message())))
            }
            (_, result) => result,
        }
    }

    /// Calls one of the world's own functions.
    fn ask(&self, what: &str, work: impl FnOnce(&sys::exphil_world) -> Option<i32>) -> Result<()> {
        let code = work(&self.held.0);
        hooks::go_on();
        self.after(match code {
            Some(0) => Ok(()),
            Some(code) => Err(Error::new(Status::Io, format!("the world's {} failed with {}", what, code))),
            None => Err(Error::new(Status::Unsupported, format!("the world has no {}", what))),
        })
    }

    fn expect_lane(&self, lane: usize) -> Result<()> {
        if lane < self.lanes() {
            return Ok(());
        }
        Err(Error::invalid(format!("lane: is {}, must be below {}", lane, self.lanes())))
    }

    fn expect_state(&self, lane: usize, length: usize) -> Result<()> {
        self.expect_lane(lane)?;
        if self.state_bytes() == 0 {
            return Err(Error::new(Status::Unsupported, "the world cannot be saved: it has no state_bytes"));
        }
        expect_length("state", length, self.state_bytes())
    }

    /// Worlds trust the library to draw values that there are.
    fn expect_values(&self, actions: &[i32]) -> Result<()> {
        for (index, (&value, head)) in actions.iter().zip(self.spec.heads.iter().cycle()).enumerate() {
            let limit = if head.kind == HeadKind::Bernoulli { 1i64 << head.count } else { i64::from(head.count) };
            if !(0..limit).contains(&i64::from(value)) {
                return Err(Error::invalid(format!(
                    "actions: element {} is {}, which {} has not",
                    index, value, head.name
                )));
            }
        }
        Ok(())
    }
}

mirror! {
    /// Episodes that ended against an opponent, of whoever plays the world's seat; by the sum of an episode's rewards.
    Record of exphil_record {
        /// All.
        episodes: i64,
        /// Above 0.
        won: i64,
        /// Below 0.
        lost: i64,
    }
}
