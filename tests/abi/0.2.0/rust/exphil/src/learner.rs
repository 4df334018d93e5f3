//! Learners: policies that improve on what they have played; and matches, which say who is better.

use crate::failure::{c_path, call, count, mirror, object, Handle};
use crate::{Model, Result, Rollout, Trainer, World};
use exphil_sys as sys;
use std::fmt;
use std::path::Path;
use std::ptr;

object!(exphil_learner, exphil_learner_destroy);

/// Whether advantages are normalised to mean 0 and deviation 1 over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(i32)]
pub enum Normalise {
    /// Not with a teacher.
    #[default]
    Alone = 0,
    /// Always.
    Always = 1,
    /// Never.
    Never = -1,
}

/// The loss of a learner and how often it is followed; `exphil_learner_config` in the header has the formula. Zero means the
/// library's default, which the header names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LearnerConfig {
    /// 0 is 1; negative: only the value is learnt.
    pub surrogate: f64,
    /// 0 is 0.2.
    pub clip: f64,
    /// 0 is 0.5.
    pub value: f64,
    /// KL from the policy that played; 0: none.
    pub to_old: f64,
    /// KL to the teacher; 0: none.
    pub to_teacher: f64,
    /// KL from the teacher; 0: none.
    pub from_teacher: f64,
    /// 0: none.
    pub entropy: f64,
    /// Of rows whose action was overridden; 0: none.
    pub imitation: f64,
    /// After which a reward counts half; 0 is 240.
    pub half_life_frames: f64,
    /// 0 is 0.95.
    pub lambda: f64,
    /// Mean KL of a chunk above which its updates are taken back; 0: never.
    pub most_kl: f64,
    /// 0 is 1.
    pub reward_scale: f64,
    /// Passes over a chunk; 0 is 4.
    pub epochs: usize,
    /// Updates of a pass, at most; 0 is 4.
    pub batches: usize,
    /// First rows of a chunk that only warm up the state.
    pub burn_in: usize,
    /// Chunks at the beginning that only the value is learnt from.
    pub value_only: usize,
    /// Of the order of streams.
    pub seed: u64,
    /// Of advantages.
    pub normalise: Normalise,
}

impl LearnerConfig {
    pub(crate) fn lend(&self) -> sys::exphil_learner_config {
        let mut raw = sys::init::<sys::exphil_learner_config>();
        raw.surrogate = self.surrogate;
        raw.clip = self.clip;
        raw.value = self.value;
        raw.to_old = self.to_old;
        raw.to_teacher = self.to_teacher;
        raw.from_teacher = self.from_teacher;
        raw.entropy = self.entropy;
        raw.imitation = self.imitation;
        raw.half_life_frames = self.half_life_frames;
        raw.lambda = self.lambda;
        raw.most_kl = self.most_kl;
        raw.reward_scale = self.reward_scale;
        raw.epochs = count(self.epochs);
        raw.batches = count(self.batches);
        raw.burn_in = count(self.burn_in);
        raw.value_only = count(self.value_only);
        raw.seed = self.seed;
        raw.normalise = self.normalise as i32;
        raw
    }
}

/// Proximal policy optimisation (PPO) on the chunks of a rollout, near a teacher if there is one. May move to another thread;
/// only one uses it at a time.
pub struct Learner {
    handle: Handle<sys::exphil_learner>,
    trainer: Trainer,
    /// Its context's hooks.
    _teacher: Option<Model>,
}

// "No thread affinity"; not Sync: "one thread at a time".
unsafe impl Send for Learner {}

impl fmt::Debug for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learner").field("trainer", &self.trainer).finish_non_exhaustive()
    }
}

impl Learner {
    /// The trainer, of a model with a value head and without a prefetcher, is the learner's from here on; with
    /// [`TrainerConfig::as_played`](crate::TrainerConfig::as_played) it computes the bits of play. `teacher`: a model of the
    /// same spec, delay and past actions, which stays as it is.
    pub fn new(trainer: Trainer, teacher: Option<&Model>, config: &LearnerConfig) -> Result<Learner> {
        let raw = config.lend();
        let taught = teacher.map_or(ptr::null_mut(), Model::as_raw);
        let handle = Handle::create(|out, error| unsafe {
            sys::exphil_learner_create(trainer.raw(), taught, &raw, out, error)
        })?;
        Ok(Learner { handle, trainer, _teacher: teacher.cloned() })
    }

    /// Learns from a full chunk, gives the rollout's session the new weights, and makes room for the next chunk.
    pub fn update(&mut self, rollout: &mut Rollout) -> Result<LearnerMetrics> {
        let mut metrics = sys::init();
        let (raw, played) = (self.handle.raw(), rollout.raw());
        call(|error| unsafe { sys::exphil_learner_update(raw, played, &mut metrics, error) })?;
        Ok(LearnerMetrics::of(&metrics))
    }

    /// Plays and learns in turn, so many chunks, as an iterator that ends after an error.
    pub fn train<'a>(&'a mut self, rollout: &'a mut Rollout, world: &'a mut World, chunks: usize) -> Chunks<'a> {
        Chunks { learner: self, rollout, world, left: chunks }
    }

    /// [`Trainer::save`] between two chunks, with all that the next chunk depends on: states of the session, of the teacher, and
    /// the games of the world that the rollout runs ([`Status::Unsupported`](crate::Status::Unsupported): it cannot be saved).
    /// None: the host plays, and keeps its own games.
    pub fn save(&self, rollout: &Rollout, world: Option<&World>, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let (raw, played, path) = (self.handle.raw(), rollout.raw(), path.as_ptr());
        match world {
            None => call(|error| unsafe { sys::exphil_learner_save(raw, played, ptr::null(), path, error) })?,
            Some(world) => {
                world.play(|world, error| unsafe { sys::exphil_learner_save(raw, played, world, path, error) })?
            }
        };
        Ok(())
    }

    /// Goes on to the last bit where it was saved. All objects are made with the same configuration, and the rollout has recorded
    /// nothing yet. [`Trainer::resume`] of such a checkpoint takes the trainer alone.
    pub fn resume(&mut self, rollout: &mut Rollout, world: Option<&mut World>, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let (raw, played, path) = (self.handle.raw(), rollout.raw(), path.as_ptr());
        match world {
            None => call(|error| unsafe { sys::exphil_learner_resume(raw, played, ptr::null(), path, error) })?,
            Some(world) => {
                world.play(|world, error| unsafe { sys::exphil_learner_resume(raw, played, world, path, error) })?
            }
        };
        Ok(())
    }

    /// The trainer: its weights as a model, its scores.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Ends the learner and gives its trainer back.
    pub fn into_trainer(self) -> Trainer {
        self.trainer
    }
}

/// Chunks of a learner, one at a time.
#[derive(Debug)]
pub struct Chunks<'a> {
    learner: &'a mut Learner,
    rollout: &'a mut Rollout,
    world: &'a mut World,
    left: usize,
}

impl Iterator for Chunks<'_> {
    type Item = Result<LearnerMetrics>;

    fn next(&mut self) -> Option<Result<LearnerMetrics>> {
        self.left = self.left.checked_sub(1)?;
        let metrics = self.rollout.run(self.world).and_then(|()| self.learner.update(self.rollout));
        if metrics.is_err() {
            self.left = 0;
        }
        Some(metrics)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.min(1), Some(self.left))
    }
}

mirror! {
    /// What came of a chunk: means over its rows that were learnt from, of the last epoch where they change.
    LearnerMetrics of exphil_learner_metrics {
        /// Since the learner was made.
        chunks: i64,
        /// Since the learner was made.
        updates: i64,
        /// Learnt from that the policy decided.
        rows: i64,
        /// That were overridden.
        imitated: i64,
        /// That ended in the chunk's frames.
        episodes: i64,
        /// Mean of theirs over all streams, unscaled; 0 without any.
        episode_return: f64,
        /// Mean length.
        episode_frames: f64,
        /// Mean of a frame.
        reward: f64,
        /// From the policy that played.
        kl_old: f64,
        /// To the teacher.
        kl_to_teacher: f64,
        /// From the teacher.
        kl_from_teacher: f64,
        /// Of the policy, nats.
        entropy: f64,
        /// New to old probability of the actions.
        ratio: f64,
        /// Share of rows whose surrogate was clipped.
        clipped: f64,
        /// Mean negative log-probability of what was put in the place of the policy's actions.
        nll: f64,
        /// Mean squared difference of value and return.
        value_loss: f64,
        /// The same over the variance of the returns, before the updates: 0 perfect, 1 as good as the mean.
        unexplained: f64,
        /// Objective.
        loss: f64,
        /// Before clipping.
        gradient_norm: f64,
        /// How far a recorded log-probability is from the one that training computes: 0 on the CPU where it is as played.
        recomputed: f64,
        /// 1: `most_kl` was exceeded, weights are as before the chunk.
        taken_back: i32,
    }
}

/// How a match is played. Zero means the library's default, which the header names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchConfig {
    /// Even: each start is played twice, with seats exchanged; 0 is 200.
    pub games: usize,
    /// Of a game, which the leader then wins; 0 is 20000.
    pub most_frames: usize,
    /// Who has made so many first has won; 0 is 11, negative: the world's end decides.
    pub points: f64,
    /// Of starts and draws.
    pub seed: u64,
    /// Both take the likeliest actions.
    pub deterministic: bool,
}

mirror! {
    /// What came of a match, for the first policy.
    MatchResult of exphil_match_result {
        /// Played.
        games: i64,
        /// By the first policy.
        won: i64,
        /// By the first policy.
        lost: i64,
        /// By nobody won.
        drawn: i64,
        /// `(won + drawn / 2) / games`.
        score: f64,
        /// Of the interval that has 95 % of the scores that other starts would have given.
        low: f64,
        /// Likewise.
        high: f64,
        /// Of all games.
        points: f64,
        /// Of all games.
        points_against: f64,
        /// Of all games, until each was decided.
        frames: f64,
    }
}

/// Plays `a` against `b` in a world of two seats, whose games are lost. The draws of a seat follow from seed, start, seat and
/// frame, so that both games of a start meet the same chance.
pub fn match_policies(a: &Model, b: &Model, world: &mut World, config: &MatchConfig) -> Result<MatchResult> {
    let mut given = sys::init::<sys::exphil_match_config>();
    given.games = count(config.games);
    given.most_frames = count(config.most_frames);
    given.points = config.points;
    given.seed = config.seed;
    given.deterministic = i32::from(config.deterministic);
    let mut result = sys::init();
    let (a, b) = (a.as_raw(), b.as_raw());
    world.play(|world, error| unsafe { sys::exphil_match(a, b, world, &given, &mut result, error) })?;
    Ok(MatchResult::of(&result))
}
