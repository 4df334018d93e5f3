//! Losses of the host's own: forward, then any loss, then backward; and imitation weighted by what came of it.

use crate::failure::{call, count, expect_length, mirror};
use crate::shapes::{size, slice};
use crate::{Batch, Element, Error, Metrics, Result, Status, Trainer};
use exphil_sys as sys;
use std::fmt;
use std::ptr;

/// The first half of an update, between [`Trainer::forward`] and [`Half::backward`]. Dropped, it is no update: weights and
/// moments are as before it, and the carried state is where the batch began.
#[must_use]
pub struct Half<'a> {
    trainer: &'a mut Trainer,
    forward: sys::exphil_forward,
    /// Whose arrays the borrow of the batch keeps.
    _batch: Box<sys::exphil_batch>,
    open: bool,
}

impl fmt::Debug for Half<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Half").field("rows", &self.forward.rows).finish_non_exhaustive()
    }
}

impl Trainer {
    /// The first half of an update whose loss is the host's: the weights as they are over one batch, which stays borrowed, as
    /// the trainer does. `mask` only counts frames. `states`: where each lane begins, what
    /// [`Session::save_state`](crate::Session::save_state) gave of B streams, one after the other; none: the carried state.
    ///
    /// ```
    /// # fn main() -> exphil::Result<()> {
    /// # use exphil::*;
    /// # let spec = Spec::new("one", "one").floats(1).head(HeadSpec::categorical("move", 2));
    /// # let config = ModelConfig { spec: Some(spec), no_previous_action: true, hidden: 8, ..Default::default() };
    /// # let model = Model::create(&Context::new()?, &config)?;
    /// # let optimizer = Optimizer::new(&model, &OptimizerConfig::default())?;
    /// # let mut trainer = Trainer::new(&model, &optimizer, None, &TrainerConfig::default())?;
    /// let batch = Batch {
    ///     batch: 1, time: 2, floats: &[0.5, 0.25], actions: &[0, 1], mask: &[1.0; 2], reset: &[1, 0], ..Default::default()
    /// };
    /// let half = trainer.forward(&batch, None)?;
    /// // Half the squares of the logits, whose gradient is the logits.
    /// let logits = half.logits::<f32>()?.to_vec();
    /// let loss: f32 = logits.iter().map(|logit| logit * logit / 2.0).sum();
    /// half.backward(&logits, None, loss.into())?;
    /// # Ok(()) }
    /// ```
    pub fn forward<'a>(&'a mut self, batch: &Batch<'a>, states: Option<&[u8]>) -> Result<Half<'a>> {
        let given = Box::new(self.lend(batch)?);
        let mut forward = sys::init::<sys::exphil_forward>();
        let (blocks, bytes) = states.map_or((ptr::null(), 0), |states| (states.as_ptr().cast(), states.len()));
        let raw = self.raw();
        call(|error| unsafe { sys::exphil_trainer_forward(raw, &*given, blocks, bytes, &mut forward, error) })?;
        Ok(Half { trainer: self, forward, _batch: given, open: true })
    }

    /// One update from the prefetcher in which rows count by how much better than expected they went, and the value is learnt
    /// beside; `exphil_trainer_step_outcome` in the header has the loss. The model has a value head, and
    /// [`Dataset::rewards_set`](crate::Dataset::rewards_set) says what came of the rows.
    pub fn step_outcome(&mut self, config: &OutcomeConfig) -> Result<OutcomeMetrics> {
        let given = config.lend();
        let mut metrics = sys::init();
        let raw = self.raw();
        call(|error| unsafe { sys::exphil_trainer_step_outcome(raw, &given, &mut metrics, error) })?;
        Ok(OutcomeMetrics::of(&metrics))
    }
}

impl Half<'_> {
    /// B*T.
    pub fn rows(&self) -> usize {
        usize::try_from(self.forward.rows).unwrap_or(0)
    }

    /// `[B*T, L]`: of each head what the policy gives to each class or bit, beside the actions of the batch of the heads before
    /// it where heads are autoregressive. `T` is the model's type.
    pub fn logits<T: Element>(&self) -> Result<&[T]> {
        self.is::<T>()?;
        Ok(unsafe { slice(self.forward.logits.cast(), self.logit_length()?) })
    }

    /// `[B*T]`; none: the model has no value head.
    pub fn values<T: Element>(&self) -> Result<Option<&[T]>> {
        self.is::<T>()?;
        if self.forward.values.is_null() {
            return Ok(None);
        }
        Ok(Some(unsafe { slice(self.forward.values.cast(), self.rows()) }))
    }

    /// The second half: gradients of the host's loss by what forward gave, `[B*T, L]` and `[B*T]` (none: 0), not divided by
    /// anything; then clipping and AdamW. `loss` is what the metrics tell; their head losses are 0.
    /// [`Status::Numeric`](crate::Status::Numeric): a number is not finite, also in the gradient of the weights, which are then
    /// as before. After an error there was no update.
    pub fn backward<T: Element>(mut self, dlogits: &[T], dvalues: Option<&[T]>, loss: f64) -> Result<Metrics> {
        self.is::<T>()?;
        expect_length("dlogits", dlogits.len(), self.logit_length()?)?;
        if let Some(dvalues) = dvalues {
            expect_length("dvalues", dvalues.len(), self.rows())?;
        }
        let dvalues = dvalues.map_or(ptr::null(), |dvalues| dvalues.as_ptr().cast());
        let mut metrics = sys::init();
        self.open = false;
        let raw = self.trainer.raw();
        call(|error| unsafe {
            sys::exphil_trainer_backward(raw, dlogits.as_ptr().cast(), dvalues, loss, &mut metrics, error)
        })?;
        Ok(Metrics::of(&metrics))
    }

    /// No update; the same as to drop it.
    pub fn abandon(self) {}

    fn logit_length(&self) -> Result<usize> {
        Ok(self.rows() * size(self.forward.logit_count)?)
    }

    fn is<T: Element>(&self) -> Result<()> {
        let kind = self.trainer.start().shape().kind;
        if kind == T::TYPE {
            return Ok(());
        }
        Err(Error::new(Status::Mismatch, format!("forward: the model is {:?}, was asked for as {:?}", kind, T::TYPE)))
    }
}

impl Drop for Half<'_> {
    fn drop(&mut self) {
        if self.open {
            let _ = unsafe { sys::exphil_trainer_abandon(self.trainer.raw(), ptr::null_mut()) };
        }
    }
}

/// How outcomes weigh in imitation. Zero means the library's default, which the header names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutcomeConfig {
    /// 0 is 1; negative: only the value is learnt.
    pub imitation: f64,
    /// 0 is 0.5.
    pub value: f64,
    /// In units of the rewards; 0: all rows weigh the same.
    pub beta: f64,
    /// 0 is 5.
    pub cap: f64,
    /// Updates of the trainer in which all rows weigh the same, while the value is learnt.
    pub warm_up: usize,
    /// Of the shuffle.
    pub seed: u64,
    /// A control: the weights of a batch go to rows at random.
    pub shuffle: bool,
}

impl OutcomeConfig {
    fn lend(&self) -> sys::exphil_outcome_config {
        let mut raw = sys::init::<sys::exphil_outcome_config>();
        raw.imitation = self.imitation;
        raw.value = self.value;
        raw.beta = self.beta;
        raw.cap = self.cap;
        raw.warm_up = count(self.warm_up);
        raw.seed = self.seed;
        raw.shuffle = i32::from(self.shuffle);
        raw
    }
}

mirror! {
    /// What came of an update of [`Trainer::step_outcome`].
    OutcomeMetrics of exphil_outcome_metrics {
        /// This was the n-th, from 1.
        update: i64,
        /// Trained so far.
        frames: i64,
        /// Rows of the batch whose return is known.
        known: i64,
        /// Objective of this update, before the step.
        loss: f64,
        /// Of imitation, plain.
        nll: f64,
        /// Mean squared difference of value and return.
        value_loss: f64,
        /// Before clipping.
        gradient_norm: f64,
        /// The same over the variance of the returns; 1 where that is 0.
        unexplained: f64,
        /// The share of the rows that so many of equal weight would be.
        effective: f64,
        /// Share of the known rows at the cap.
        clipped: f64,
    }
}
