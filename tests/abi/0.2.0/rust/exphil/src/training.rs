//! Optimizers and trainers: one update at a time.

use crate::failure::{c_path, call, count, expect_length, mirror, numbers, object, Handle};
use crate::hooks;
use crate::report::Losses;
use crate::{Batch, Context, Dataset, Error, Model, Prefetcher, Report, Result, Type};
use exphil_sys as sys;
use std::fmt;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

object!(exphil_optimizer, exphil_optimizer_destroy);
object!(exphil_trainer, exphil_trainer_destroy);

numbers! {
    /// How the rate goes on after the warm-up.
    Schedule {
        /// Stays.
        #[default]
        Constant = EXPHIL_SCHEDULE_CONSTANT,
        /// Falls along a cosine until `total_updates`.
        Cosine = EXPHIL_SCHEDULE_COSINE,
        /// The same again and again, over periods of `restart_updates`.
        Restarts = EXPHIL_SCHEDULE_RESTARTS,
    }
}

numbers! {
    /// Arithmetic of training; weights and moments stay F32.
    Precision {
        /// 32 bits.
        #[default]
        F32 = EXPHIL_PRECISION_F32,
        /// NVIDIA's 19 bits.
        Tf32 = EXPHIL_PRECISION_TF32,
        /// bfloat16.
        Bf16 = EXPHIL_PRECISION_BF16,
        /// IEEE half, with a scaled loss.
        F16 = EXPHIL_PRECISION_F16,
    }
}

numbers! {
    /// Which weights of a trainer.
    Weights {
        /// As they are now.
        #[default]
        Latest = EXPHIL_WEIGHTS,
        /// Averaged over updates; needs [`OptimizerConfig::ema_decay`].
        Averaged = EXPHIL_WEIGHTS_AVERAGED,
    }
}

numbers! {
    /// How gradients of ranks are joined.
    Reduction {
        /// The mean of what each rank has of its own batch.
        #[default]
        Means = EXPHIL_REDUCTION_MEANS,
        /// The update is that of the joint batch: every rank has the same dataset and takes its lanes of one batch
        /// ([`rank_lanes`](crate::rank_lanes)). Making the trainer, updates, saving, resuming and agreeing are then calls that
        /// all ranks make, in the same order.
        Sums = EXPHIL_REDUCTION_SUMS,
    }
}

/// AdamW. Zero means the library's default, which the header names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OptimizerConfig {
    /// 0 is 1e-3.
    pub rate: f64,
    /// 0 is 0.9.
    pub beta1: f64,
    /// 0 is 0.999.
    pub beta2: f64,
    /// 0 is 1e-8.
    pub epsilon: f64,
    /// Decoupled, on matrices only; 0 is none.
    pub decay: f64,
    /// Of the whole gradient; 0 is 1, negative: no clipping.
    pub clip_norm: f64,
    /// Of the averaged weights; 0 is none.
    pub ema_decay: f64,
    /// Lowest rate of the schedule over `rate`.
    pub low_ratio: f64,
    /// Each period over the last; 0 is 1.
    pub restart_factor: f64,
    /// Updates in which the rate rises from near 0.
    pub warmup_updates: usize,
    /// [`Schedule::Cosine`] needs it.
    pub total_updates: usize,
    /// [`Schedule::Restarts`] needs it.
    pub restart_updates: usize,
    /// How the rate goes on after the warm-up.
    pub schedule: Schedule,
    /// [`Trainer::resume`] takes a checkpoint of another `total_updates` too: the run gets another end.
    pub resume_new_total: bool,
}

impl OptimizerConfig {
    pub(crate) fn lend(&self) -> sys::exphil_optimizer_config {
        let mut raw = sys::init::<sys::exphil_optimizer_config>();
        raw.rate = self.rate;
        raw.beta1 = self.beta1;
        raw.beta2 = self.beta2;
        raw.epsilon = self.epsilon;
        raw.decay = self.decay;
        raw.clip_norm = self.clip_norm;
        raw.ema_decay = self.ema_decay;
        raw.low_ratio = self.low_ratio;
        raw.restart_factor = self.restart_factor;
        raw.warmup_updates = count(self.warmup_updates);
        raw.total_updates = count(self.total_updates);
        raw.restart_updates = count(self.restart_updates);
        raw.schedule = self.schedule as i32;
        raw.resume_new_total = self.resume_new_total as i32;
        raw
    }
}

/// Moments and averages for the weights of one model; serves one trainer. Any thread may ask how far it is.
pub struct Optimizer {
    handle: Handle<sys::exphil_optimizer>,
    context: Context,
}

// The only call on it is exphil_optimizer_query: "Any thread, also while its trainer works".
unsafe impl Send for Optimizer {}
unsafe impl Sync for Optimizer {}

impl fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimizer").finish_non_exhaustive()
    }
}

impl Optimizer {
    /// Moments are zero, averaged weights equal to the weights.
    pub fn new(model: &Model, config: &OptimizerConfig) -> Result<Optimizer> {
        let raw = config.lend();
        let handle =
            Handle::create(|out, error| unsafe { sys::exphil_optimizer_create(model.as_raw(), &raw, out, error) })?;
        Ok(Optimizer { handle, context: model.context().clone() })
    }

    /// How far it is.
    pub fn info(&self) -> Result<OptimizerInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_optimizer_query(self.handle.raw(), &mut raw, error) })?;
        Ok(OptimizerInfo::of(&raw))
    }
}

mirror! {
    /// How far an optimizer is.
    OptimizerInfo of exphil_optimizer_info {
        /// Done.
        updates: i64,
        /// Of the next update.
        rate: f64,
        /// Moments and averages.
        state_bytes: u64,
    }
}

/// Loss of one head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadLoss {
    /// 0 is 1; negative: the head is not trained.
    pub weight: f64,
    /// Label smoothing of categorical heads, `0..1`.
    pub smoothing: f64,
    /// Factor `(1 - p)^gamma`; 0 is plain.
    pub focal_gamma: f64,
    /// Of each bit of a Bernoulli head, above 0; empty: 1.
    pub positive_weight: Vec<f32>,
}

/// How a trainer works. Zero means the library's default, which the header names.
#[derive(Clone, Debug, Default)]
pub struct TrainerConfig {
    /// One for each head; empty: all defaults.
    pub losses: Vec<HeadLoss>,
    /// First scale of the loss in [`Precision::F16`]; 0 is 65536.
    pub loss_scale: f64,
    /// Batches per update; 0 is 1.
    pub accumulate: usize,
    /// Arithmetic.
    pub precision: Precision,
    /// [`Type::F32`] or [`Type::Bf16`]: how what waits for backward is kept.
    pub activations: Type,
    /// [`Type::Bf16`] or [`Type::I8`]: forward with weights rounded as [`Model::quantize`] would.
    pub fake_quantize: Option<Type>,
    /// Recompute activations, n blocks at a time; 0: keep all.
    pub checkpoint_blocks: i32,
    /// Probability that a past action is the model's own decision.
    pub own_past: f64,
    /// Updates over which `own_past` is reached; 0: at once.
    pub own_past_ramp_updates: usize,
    /// Of its draws.
    pub own_past_seed: u64,
    /// What [`Trainer::save`] writes for play.
    pub saved_weights: Weights,
    /// What is computed over a chunk has the bits of the steps of play, on the CPU, also where blocks are attention.
    pub as_played: bool,
    /// With a communicator.
    pub reduction: Reduction,
    /// A power of two: the same bits for any number of ranks that divides it; 0: the batch is computed at once.
    pub shards: i32,
}

impl TrainerConfig {
    pub(crate) fn lend(&self, losses: &Losses<'_>) -> sys::exphil_trainer_config {
        let mut raw = sys::init::<sys::exphil_trainer_config>();
        raw.losses = losses.pointer();
        raw.loss_scale = self.loss_scale;
        raw.accumulate = count(self.accumulate);
        raw.precision = self.precision as i32;
        raw.activations = self.activations as i32;
        raw.fake_quantize = self.fake_quantize.map_or(0, |kind| kind as i32);
        raw.checkpoint_blocks = self.checkpoint_blocks;
        raw.own_past = self.own_past;
        raw.own_past_ramp_updates = count(self.own_past_ramp_updates);
        raw.own_past_seed = self.own_past_seed;
        raw.saved_weights = self.saved_weights as i32;
        raw.as_played = i32::from(self.as_played);
        raw.reduction = self.reduction as i32;
        raw.shards = self.shards;
        raw
    }
}

/// What ranks add up.
#[derive(Debug)]
pub enum Numbers<'a> {
    /// Of an F32 model.
    F32(&'a mut [f32]),
    /// Of an F64 model.
    F64(&'a mut [f64]),
}

/// Joins trainers of several processes or threads into one.
pub trait Communicator: Send {
    /// This one's number, `0..ranks`.
    fn rank(&self) -> i32;
    /// How many there are.
    fn ranks(&self) -> i32;
    /// Replaces the numbers by their sums over all ranks, added in the order of the ranks, so that every rank has the same
    /// bits. A code other than 0 stops the update with [`Status::Io`](crate::Status::Io).
    fn all_reduce(&mut self, numbers: Numbers<'_>) -> std::result::Result<(), i32>;
}

/// Shared with the library, which has a pointer to the lock: moving a single owner would end that. Only one thread ever
/// comes.
type Joined = Arc<Mutex<Box<dyn Communicator>>>;

/// The panic of a communicator stops the update, and goes on when the step returns.
unsafe extern "C" fn all_reduce(user: *mut c_void, data: *mut c_void, length: i64, kind: i32) -> i32 {
    hooks::guarded(-1, || {
        let communicator = unsafe { &*(user as *const Mutex<Box<dyn Communicator>>) };
        // One that panicked may be called again: the host has seen the panic.
        let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
        let length = length as usize;
        let numbers = match Type::from_number(kind) {
            Ok(Type::F32) => Numbers::F32(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) }),
            Ok(Type::F64) => Numbers::F64(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) }),
            _ => return -1,
        };
        match communicator.all_reduce(numbers) {
            Ok(()) => 0,
            Err(0) => -1,
            Err(code) => code,
        }
    })
}

/// Trains a copy of a model's weights. May move to another thread; only one uses it at a time.
pub struct Trainer {
    handle: Handle<sys::exphil_trainer>,
    model: Model,
    prefetcher: Option<Prefetcher>,
    _communicator: Option<Joined>,
    /// The library's trainer keeps its optimizer alive, and so the hooks of that one's context.
    _optimizer: Context,
}

// "No thread affinity"; not Sync: "one thread at a time". Communicators are Send.
unsafe impl Send for Trainer {}

fn join(communicator: Box<dyn Communicator>) -> (sys::exphil_communicator, Joined) {
    let mut raw = sys::init::<sys::exphil_communicator>();
    raw.rank = communicator.rank();
    raw.ranks = communicator.ranks();
    raw.all_reduce = Some(all_reduce);
    let communicator: Joined = Arc::new(Mutex::new(communicator));
    raw.user = Arc::as_ptr(&communicator) as *mut c_void;
    (raw, communicator)
}

impl fmt::Debug for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Trainer {
    /// The model itself stays as it is. Without a prefetcher, only [`Trainer::step_batch`] trains. The prefetcher is the
    /// trainer's from here on: nobody else may move it.
    pub fn new(
        model: &Model,
        optimizer: &Optimizer,
        prefetcher: Option<Prefetcher>,
        config: &TrainerConfig,
    ) -> Result<Trainer> {
        Trainer::joined(model, optimizer, prefetcher, config, None)
    }

    /// One of several trainers that train one model.
    pub fn with_communicator(
        model: &Model,
        optimizer: &Optimizer,
        prefetcher: Option<Prefetcher>,
        config: &TrainerConfig,
        communicator: impl Communicator + 'static,
    ) -> Result<Trainer> {
        Trainer::joined(model, optimizer, prefetcher, config, Some(Box::new(communicator)))
    }

    fn joined(
        model: &Model,
        optimizer: &Optimizer,
        prefetcher: Option<Prefetcher>,
        config: &TrainerConfig,
        communicator: Option<Box<dyn Communicator>>,
    ) -> Result<Trainer> {
        let losses = Losses::new(&config.losses, &model.spec()?)?;
        let joined = communicator.map(join);
        let mut raw = config.lend(&losses);
        raw.communicator = joined.as_ref().map_or(ptr::null(), |(raw, _)| raw as *const _);
        let source = prefetcher.as_ref().map_or(ptr::null_mut(), |prefetcher| prefetcher.as_raw());
        let handle = Handle::create(|out, error| unsafe {
            sys::exphil_trainer_create(model.as_raw(), optimizer.handle.raw(), source, &raw, out, error)
        })?;
        let (model, _optimizer) = (model.clone(), optimizer.context.clone());
        let _communicator = joined.map(|(_, communicator)| communicator);
        Ok(Trainer { handle, model, prefetcher, _communicator, _optimizer })
    }

    /// With [`Reduction::Sums`], a call of all ranks: each number becomes the largest that a rank gives. What a clock or a
    /// signal says on one rank so becomes what all do.
    pub fn agree(&mut self, numbers: &mut [f64]) -> Result<()> {
        call(|error| unsafe {
            sys::exphil_trainer_agree(self.handle.raw(), numbers.as_mut_ptr(), count(numbers.len()), error)
        })?;
        Ok(())
    }

    /// Other ranks, with [`Reduction::Sums`]: a call of all ranks of the new communicator. `prefetcher` has this rank's lanes of
    /// the same data. Carried state goes with its lanes; that of lanes which no rank has starts from zero.
    pub fn set_communicator(
        &mut self,
        communicator: impl Communicator + 'static,
        prefetcher: Prefetcher,
    ) -> Result<()> {
        let (raw, joined) = join(Box::new(communicator));
        call(|error| unsafe {
            sys::exphil_trainer_set_communicator(self.handle.raw(), &raw, prefetcher.as_raw(), error)
        })?;
        self.prefetcher = Some(prefetcher);
        self._communicator = Some(joined);
        Ok(())
    }

    /// As [`Trainer::set_communicator`], but this rank goes on alone: `prefetcher` has all lanes.
    pub fn go_on_alone(&mut self, prefetcher: Prefetcher) -> Result<()> {
        call(|error| unsafe {
            sys::exphil_trainer_set_communicator(self.handle.raw(), ptr::null(), prefetcher.as_raw(), error)
        })?;
        self.prefetcher = Some(prefetcher);
        self._communicator = None;
        Ok(())
    }

    /// One update from the prefetcher; a new epoch begins by itself.
    pub fn step(&mut self) -> Result<Metrics> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_trainer_step(self.handle.raw(), &mut raw, error) })?;
        Ok(Metrics::of(&raw))
    }

    /// Waits for the update that a GPU still works on; where none is under way, the metrics are those of the last one.
    pub fn wait(&mut self) -> Result<Metrics> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_trainer_wait(self.handle.raw(), &mut raw, error) })?;
        Ok(Metrics::of(&raw))
    }

    /// One update from a batch of the host's own; all batches of a trainer have one shape.
    pub fn step_batch(&mut self, batch: &Batch<'_>) -> Result<Metrics> {
        let raw = self.lend(batch)?;
        let mut metrics = sys::init();
        call(|error| unsafe { sys::exphil_trainer_step_batch(self.handle.raw(), &raw, &mut metrics, error) })?;
        Ok(Metrics::of(&metrics))
    }

    pub(crate) fn lend(&self, batch: &Batch<'_>) -> Result<sys::exphil_batch> {
        let mut raw = sys::init::<sys::exphil_batch>();
        let shape = self.model.shape();
        let rows = batch.batch.checked_mul(batch.time).filter(|&rows| rows <= u32::MAX as usize);
        let rows = rows.ok_or_else(|| Error::invalid("batch: has too many rows"))?;
        expect_length("floats", batch.floats.len(), rows * shape.row.floats)?;
        expect_length("ids", batch.ids.len(), rows * shape.row.ids)?;
        expect_length("past", batch.past.len(), rows * shape.slots * shape.row.heads)?;
        expect_length("actions", batch.actions.len(), rows * shape.row.heads)?;
        expect_length("mask", batch.mask.len(), rows)?;
        expect_length("reset", batch.reset.len(), rows)?;
        expect_length("conditions", batch.conditions.len(), rows * shape.told)?;
        if !batch.returns.is_empty() {
            expect_length("returns", batch.returns.len(), rows)?;
            raw.returns = batch.returns.as_ptr();
        }
        raw.batch = count(batch.batch);
        raw.time = count(batch.time);
        raw.epoch = batch.epoch;
        raw.index = batch.index;
        raw.frames = batch.frames;
        raw.floats = batch.floats.as_ptr();
        raw.conditions = batch.conditions.as_ptr();
        raw.ids = batch.ids.as_ptr();
        raw.past = batch.past.as_ptr();
        raw.actions = batch.actions.as_ptr();
        raw.mask = batch.mask.as_ptr();
        raw.reset = batch.reset.as_ptr();
        Ok(raw)
    }

    /// So many updates as an iterator, which ends after an error.
    pub fn updates(&mut self, count: usize) -> Updates<'_> {
        Updates { trainer: self, left: count }
    }

    /// Trains, and scores the weights on a held-out dataset after every so many updates and after the last. All scores are
    /// the result, and each goes to `each` as it comes, which may end the training. Scoring changes no weight; it takes as
    /// long as [`Trainer::evaluate`] does. `frequencies` as there.
    pub fn fit(
        &mut self,
        fit: &Fit,
        held_out: &Dataset,
        frequencies: Option<&Dataset>,
        mut each: impl FnMut(&Score) -> ControlFlow<()>,
    ) -> Result<Vec<Score>> {
        let every = if fit.every > 0 { fit.every } else { (fit.updates + 9) / 10 };
        let mut scores = Vec::new();
        for done in 1..=fit.updates {
            let metrics = self.step()?;
            if done % every != 0 && done != fit.updates {
                continue;
            }
            let report = self.evaluate_alone(fit.which, held_out, frequencies, fit.alone_most_frames)?;
            scores.push(Score { metrics, report });
            if scores.last().map_or(false, |score| each(score).is_break()) {
                break;
            }
        }
        Ok(scores)
    }

    /// A new model with the weights as they are now.
    pub fn model(&self, which: Weights) -> Result<Model> {
        Model::made(self.model.context(), |model, error| unsafe {
            sys::exphil_trainer_model(self.handle.raw(), which as i32, model, error)
        })
    }

    /// Writes weights (`path`) and all that [`Trainer::resume`] reads (`path.optimizer`).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_trainer_save(self.handle.raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// Goes on to the last bit as if nothing had happened; configuration and data must be the same.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_trainer_resume(self.handle.raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// How well the weights as they are now predict a dataset, with the trainer's losses.
    pub fn evaluate(&self, which: Weights, dataset: &Dataset, frequencies: Option<&Dataset>) -> Result<Report> {
        self.evaluate_alone(which, dataset, frequencies, 0)
    }

    /// The same, and what they do with their own decisions as past actions: measured on at least `most` frames, in whole
    /// episodes; 0: not at all.
    pub fn evaluate_alone(
        &self,
        which: Weights,
        dataset: &Dataset,
        frequencies: Option<&Dataset>,
        most: usize,
    ) -> Result<Report> {
        let mut raw = sys::init::<sys::exphil_report>();
        raw.alone_most_frames = count(most);
        let frequencies = frequencies.map_or(ptr::null_mut(), Dataset::as_raw);
        let trainer = self.handle.raw();
        call(|error| unsafe {
            sys::exphil_trainer_evaluate(trainer, which as i32, dataset.as_raw(), frequencies, &mut raw, error)
        })?;
        Ok(Report::of(&raw))
    }

    pub(crate) fn raw(&self) -> *mut sys::exphil_trainer {
        self.handle.raw()
    }

    pub(crate) fn start(&self) -> &Model {
        &self.model
    }

    /// Where the batches come from.
    pub fn prefetcher(&self) -> Option<&Prefetcher> {
        self.prefetcher.as_ref()
    }
}

/// How long [`Trainer::fit`] trains, and how it scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// From this call on.
    pub updates: usize,
    /// Updates between scores; 0: a tenth of them, rounded up.
    pub every: usize,
    /// Which are scored.
    pub which: Weights,
    /// Frames on which they are also measured with their own decisions as past actions; 0: none.
    pub alone_most_frames: usize,
}

/// Where training stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Of the last update.
    pub metrics: Metrics,
    /// How well the weights predict what was held out.
    pub report: Report,
}

/// Updates of a trainer, one at a time.
#[derive(Debug)]
pub struct Updates<'a> {
    trainer: &'a mut Trainer,
    left: usize,
}

impl Iterator for Updates<'_> {
    type Item = Result<Metrics>;

    fn next(&mut self) -> Option<Result<Metrics>> {
        self.left = self.left.checked_sub(1)?;
        let metrics = self.trainer.step();
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
    /// What an update was like.
    Metrics of exphil_metrics {
        /// This was the n-th, from 1.
        update: i64,
        /// Of its last batch, from 0.
        epoch: i64,
        /// Trained so far.
        frames: i64,
        /// Objective of this update, before the step.
        loss: f64,
        /// Mean per frame, not weighted by head; the first A count.
        head_loss: [f64; sys::EXPHIL_HEADS_MAX as usize],
        /// Before clipping.
        gradient_norm: f64,
        /// Of this update.
        rate: f64,
        /// 1 but for [`Precision::F16`].
        loss_scale: f64,
        /// Of this call.
        time_ns: i64,
        /// Of that, waiting for data.
        waited_ns: i64,
        /// Updates refused so far because of NaN or infinity.
        skipped: i64,
    }
}
