//! How well a model predicts a dataset, and how far two models are from one another.

use crate::failure::{call, count, expect_length, mirror};
use crate::{Dataset, HeadKind, HeadLoss, Model, Result, Spec};
use exphil_sys as sys;
use std::convert::TryFrom;
use std::ptr;

/// Losses as the library reads them: one for each head, weights of bits behind it.
pub(crate) struct Losses<'a> {
    raw: Vec<sys::exphil_head_loss>,
    _weights: &'a [HeadLoss],
}

impl<'a> Losses<'a> {
    pub(crate) fn new(losses: &'a [HeadLoss], spec: &Spec) -> Result<Losses<'a>> {
        if !losses.is_empty() {
            expect_length("losses", losses.len(), spec.heads.len())?;
        }
        let mut raw = Vec::with_capacity(losses.len());
        for (loss, head) in losses.iter().zip(&spec.heads) {
            let weights = &loss.positive_weight;
            if !weights.is_empty() && head.kind == HeadKind::Bernoulli {
                let what = format!("positive_weight of {}", head.name);
                expect_length(&what, weights.len(), usize::try_from(head.count).unwrap_or(0))?;
            }
            raw.push(sys::exphil_head_loss {
                weight: loss.weight,
                smoothing: loss.smoothing,
                focal_gamma: loss.focal_gamma,
                positive_weight: if weights.is_empty() { ptr::null() } else { weights.as_ptr() },
            });
        }
        Ok(Losses { raw, _weights: losses })
    }

    pub(crate) fn pointer(&self) -> *const sys::exphil_head_loss {
        if self.raw.is_empty() {
            return ptr::null();
        }
        self.raw.as_ptr()
    }
}

mirror! {
    /// How well one head is predicted.
    HeadReport of exphil_head_report {
        /// Training objective of this head.
        loss: f64,
        /// Plain negative log-likelihood, nats per frame.
        nll: f64,
        /// Frames with this head exactly right.
        accuracy: f64,
        /// Categorical: target among the three likeliest.
        top3: f64,
        /// Accuracy on frames where the target differs from the frame before.
        change_accuracy: f64,
        /// Baseline: always the commonest value.
        majority_accuracy: f64,
        /// Baseline: the value of the frame before.
        copy_accuracy: f64,
        /// Baseline: the dataset's own frequencies.
        frequency_nll: f64,
    }
}

/// How well a model predicts a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Looked at.
    pub frames: i64,
    /// Any head differs from the frame before.
    pub change_frames: i64,
    /// Training objective.
    pub loss: f64,
    /// Sum over heads.
    pub nll: f64,
    /// Baseline, sum over heads.
    pub frequency_nll: f64,
    /// All heads right.
    pub exact_accuracy: f64,
    /// All heads right, on change frames.
    pub exact_change_accuracy: f64,
    /// Baseline: the commonest whole action.
    pub exact_majority: f64,
    /// Baseline, on change frames.
    pub exact_majority_change: f64,
    /// Baseline: the action of the frame before.
    pub exact_copy: f64,
    /// One for each head.
    pub heads: Vec<HeadReport>,
    /// Measured with the model's own decisions as past actions; 0: not asked for, and so are the next four.
    pub alone_frames: i64,
    /// Of them, where the recorded action differs from the frame before.
    pub alone_change_frames: i64,
    /// Of the recorded action, sum over heads.
    pub alone_nll: f64,
    /// All heads right.
    pub alone_accuracy: f64,
    /// All heads right, on change frames.
    pub alone_change_accuracy: f64,
    /// Frames whose return is known; 0 without a value head, or without rewards of the dataset.
    pub value_frames: i64,
    /// Mean squared error of the value.
    pub value_loss: f64,
    /// The same, as a share of the variance of returns.
    pub unexplained: f64,
}

impl Report {
    pub(crate) fn of(raw: &sys::exphil_report) -> Report {
        let heads = usize::try_from(raw.heads).unwrap_or(0).min(raw.head.len());
        Report {
            frames: raw.frames,
            change_frames: raw.change_frames,
            loss: raw.loss,
            nll: raw.nll,
            frequency_nll: raw.frequency_nll,
            exact_accuracy: raw.exact_accuracy,
            exact_change_accuracy: raw.exact_change_accuracy,
            exact_majority: raw.exact_majority,
            exact_majority_change: raw.exact_majority_change,
            exact_copy: raw.exact_copy,
            heads: raw.head[..heads].iter().map(HeadReport::of).collect(),
            alone_frames: raw.alone_frames,
            alone_change_frames: raw.alone_change_frames,
            alone_nll: raw.alone_nll,
            alone_accuracy: raw.alone_accuracy,
            alone_change_accuracy: raw.alone_change_accuracy,
            value_frames: raw.value_frames,
            value_loss: raw.value_loss,
            unexplained: raw.unexplained,
        }
    }
}

/// How well a model predicts a dataset it is shown. `losses`: one for each head, or empty; `batch` lanes at a time, 0 is
/// 16; baselines come from `frequencies`, or from the dataset itself.
pub fn evaluate(
    model: &Model,
    dataset: &Dataset,
    frequencies: Option<&Dataset>,
    losses: &[HeadLoss],
    batch: usize,
) -> Result<Report> {
    evaluate_alone(model, dataset, frequencies, losses, batch, 0)
}

/// The same, and what it does with its own decisions as past actions: measured on at least `most` frames, in whole
/// episodes; 0: not at all.
pub fn evaluate_alone(
    model: &Model,
    dataset: &Dataset,
    frequencies: Option<&Dataset>,
    losses: &[HeadLoss],
    batch: usize,
    most: usize,
) -> Result<Report> {
    evaluate_as(model, dataset, &Evaluation { frequencies, losses, batch, alone: most, ..Evaluation::default() })
}

/// What an evaluation goes by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evaluation<'a> {
    /// Baselines come from these; none: from the dataset itself.
    pub frequencies: Option<&'a Dataset>,
    /// One for each head, or empty.
    pub losses: &'a [HeadLoss],
    /// Lanes at a time; 0 is 16.
    pub batch: usize,
    /// Frames on which it is measured with its own decisions as past actions; 0: on none.
    pub alone: usize,
    /// Values for all episodes, one for each condition of the model; none: the dataset's.
    pub conditions: Option<&'a [i32]>,
    /// This one of several delays; none: one is drawn for each episode, always the same.
    pub delay_frames: Option<i32>,
}

/// The same with more to choose.
pub fn evaluate_as(model: &Model, dataset: &Dataset, how: &Evaluation<'_>) -> Result<Report> {
    let losses = Losses::new(how.losses, &model.spec()?)?;
    let mut given = sys::init::<sys::exphil_evaluation>();
    given.frequencies = how.frequencies.map_or(ptr::null(), |dataset| dataset.as_raw());
    given.losses = losses.pointer();
    given.conditions = how.conditions.map_or(ptr::null(), <[i32]>::as_ptr);
    given.condition_count = how.conditions.map_or(0, |values| count(values.len()));
    given.delay_frames = how.delay_frames.as_ref().map_or(ptr::null(), |delay| delay as *const i32);
    given.batch = count(how.batch);
    let mut raw = sys::init::<sys::exphil_report>();
    raw.alone_most_frames = count(how.alone);
    call(|error| unsafe { sys::exphil_evaluate_as(model.as_raw(), dataset.as_raw(), &given, &mut raw, error) })?;
    Ok(Report::of(&raw))
}

mirror! {
    /// How far one head is from the reference.
    HeadComparison of exphil_head_comparison {
        /// Of the head's logits.
        max_error: f64,
        /// Of the head's logits.
        rms_error: f64,
        /// Mean divergence from the reference, nats per frame.
        kl: f64,
        /// Share of frames with the same most likely value.
        agreement: f64,
    }
}

/// How far the decisions of a model are from those of a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Weights of the reference.
    pub reference_hash: u64,
    /// Of the dataset.
    pub content_hash: u64,
    /// Compared.
    pub frames: i64,
    /// Of all logits.
    pub max_error: f64,
    /// Of all logits.
    pub rms_error: f64,
    /// Sum over heads.
    pub kl: f64,
    /// Share of frames with the same most likely action, all heads.
    pub agreement: f64,
    /// One for each head.
    pub heads: Vec<HeadComparison>,
}

impl Comparison {
    pub(crate) fn of(raw: &sys::exphil_comparison) -> Comparison {
        let heads = usize::try_from(raw.heads).unwrap_or(0).min(raw.head.len());
        Comparison {
            reference_hash: raw.reference_hash,
            content_hash: raw.content_hash,
            frames: raw.frames,
            max_error: raw.max_error,
            rms_error: raw.rms_error,
            kl: raw.kl,
            agreement: raw.agreement,
            heads: raw.head[..heads].iter().map(HeadComparison::of).collect(),
        }
    }

    pub(crate) fn lend(&self) -> Result<sys::exphil_comparison> {
        let mut raw = sys::init::<sys::exphil_comparison>();
        if self.heads.len() > raw.head.len() {
            expect_length("heads", self.heads.len(), raw.head.len())?;
        }
        raw.reference_hash = self.reference_hash;
        raw.content_hash = self.content_hash;
        raw.frames = self.frames;
        raw.max_error = self.max_error;
        raw.rms_error = self.rms_error;
        raw.kl = self.kl;
        raw.agreement = self.agreement;
        raw.heads = count(self.heads.len());
        for (place, head) in raw.head.iter_mut().zip(&self.heads) {
            place.max_error = head.max_error;
            place.rms_error = head.rms_error;
            place.kl = head.kl;
            place.agreement = head.agreement;
        }
        Ok(raw)
    }
}

/// Runs two models over every frame of a dataset; `batch` as in [`evaluate`].
pub fn compare(reference: &Model, model: &Model, dataset: &Dataset, batch: usize) -> Result<Comparison> {
    let mut raw = sys::init();
    let (first, second) = (reference.as_raw(), model.as_raw());
    call(|error| unsafe { sys::exphil_model_compare(first, second, dataset.as_raw(), count(batch), &mut raw, error) })?;
    Ok(Comparison::of(&raw))
}
