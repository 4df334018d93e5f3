//! Trains and plays policies for 60 Hz games in your own process: the safe interface of libexphil.
//!
//! ```
//! # fn main() -> exphil::Result<()> {
//! use exphil::{Context, HeadSpec, Model, ModelConfig, Session, SessionConfig, Spec};
//!
//! let spec = Spec::new("pong", "paddle").floats(4).head(HeadSpec::categorical("move", 3));
//! let model = Model::create(&Context::new()?, &ModelConfig { spec: Some(spec), ..Default::default() })?;
//! let mut session = Session::new(&model, &SessionConfig::default())?;
//! let mut action = [0; 1];
//! session.step_row(&[0.1, 0.2, -1.0, 0.5], &[], &mut action)?;
//! assert!(action[0] < 3);
//! # Ok(()) }
//! ```
//!
//! The order of training: fill a [`Dataset`], make a [`Model`], ask it how it wants to be fed ([`Model::sampling`]), make a
//! [`Prefetcher`], an [`Optimizer`] and a [`Trainer`], and step. [`Trainer::model`] gives the weights as a new model, to be
//! saved or played at once.
//!
//! Learning from play: a [`World`] (the library's own, or a [`Game`] of the host's in lanes), a model with [`Value::Shared`], a
//! [`Trainer`] without a prefetcher, a [`Rollout`] and a [`Learner`]; then [`Learner::train`]. [`match_policies`] says which of
//! two policies is better, [`World::against`] lets others play the second seat.
//!
//! Learning behind a game: [`Live`] plays, and learns from a person who takes over, or from rewards, on a thread of the library's
//! own.
//!
//! # Rules
//!
//! * Errors are [`Error`]: a [`Status`], the operating system's or driver's code, and a sentence that names the argument.
//!   Lengths of slices are checked before the library sees them.
//! * Handles keep what they came from alive and may be dropped in any order.
//! * [`Context`], [`Model`], [`Replay`], [`Games`] and [`Optimizer`] may be shared by threads; the first four clone cheaply,
//!   as one more reference to the same object. All else may move to another thread, but is used by one at a time.
//! * A step of a session allocates nothing here either, unless it fails.
//! * A hook or a game that panics does not unwind through the library: the panic goes on where the call returns.
//! * The custom allocator, file access and thread pool of `exphil_context_config`, and DLPack, are reached through
//!   [`exphil_sys`] and [`Context::from_raw`] alone.

#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![warn(rust_2018_idioms)]

/// The declarations of the C headers.
pub use exphil_sys;

mod batches;
mod context;
mod dataset;
mod failure;
mod files;
mod games;
mod hooks;
mod learner;
mod live;
pub mod melee;
mod own_loss;
mod policy;
mod replay;
mod report;
mod rollout;
mod selection;
mod session;
mod shapes;
mod tensors;
mod told;
mod training;
mod world;

pub use batches::{rank_lanes, Batch, Prefetcher, PrefetcherInfo, Sampling};
pub use context::{devices, version, version_string, Context, ContextBuilder, DeviceInfo, MemoryInfo};
pub use dataset::{Dataset, DatasetInfo, EpisodeInfo, Held, ReplayConfig, ReplayResult, Rows};
pub use failure::{Error, Result, Status};
pub use files::{Added, Files, Refusal};
pub use games::{GameInfo, Games, GamesAdded, GamesConfig, GamesInfo, GamesWriter};
pub use hooks::LogLevel;
pub use learner::{
    match_policies, Chunks, Learner, LearnerConfig, LearnerMetrics, MatchConfig, MatchResult, Normalise,
};
pub use live::{Live, LiveConfig, LiveInfo, LiveWay};
pub use own_loss::{Half, OutcomeConfig, OutcomeMetrics};
pub use policy::{Activation, HeadsKind, Mode, Model, ModelConfig, ModelInfo, Value};
pub use replay::{Push, Replay, ReplayFrame, ReplayInfo, ReplayRows, Rollback, SlpItem, SlpPlayer, SlpStream};
pub use report::{
    compare, evaluate, evaluate_alone, evaluate_as, Comparison, Evaluation, HeadComparison, HeadReport, Report,
};
pub use rollout::{BlockInfo, BlockWeights, Rollout, RolloutConfig};
pub use selection::{GameResult, Presence, Selection, SelectionReport};
pub use session::{Deliver, HeadPlay, Replaced, Session, SessionConfig, SessionInfo};
pub use shapes::{HeadKind, HeadSpec, IdSpec, Spec};
pub use tensors::{Element, TensorInfo, Type};
pub use told::Condition;
pub use training::{
    Communicator, Fit, HeadLoss, Metrics, Numbers, Optimizer, OptimizerConfig, OptimizerInfo, Precision, Reduction,
    Schedule, Score, Trainer, TrainerConfig, Updates, Weights,
};
pub use world::{End, Failure, Game, Played, Record, World};
