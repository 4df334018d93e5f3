//! Models: made, loaded, saved, asked, quantised.

use crate::failure::{c_path, c_text, call, count, numbers, object, text, Handle};
use crate::shapes::{pointer, size, Row};
use crate::told::{self, Condition};
use crate::{Comparison, Context, Error, Result, Sampling, Spec, Status, Type};
use exphil_sys as sys;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

object!(exphil_model, exphil_model_destroy);

numbers! {
    /// How a model sees time.
    Mode {
        /// Trained on consecutive chunks with the state carried; a step moves the state by one frame.
        #[default]
        Carry = EXPHIL_MODE_CARRY,
        /// Trained on independent windows; a step computes the window that ends at this frame.
        Window = EXPHIL_MODE_WINDOW,
    }
}

numbers! {
    /// Whether heads see one another's values.
    HeadsKind {
        /// Each head decides by itself.
        #[default]
        Independent = EXPHIL_HEADS_INDEPENDENT,
        /// Each head sees the values of those before it.
        Autoregressive = EXPHIL_HEADS_AUTOREGRESSIVE,
    }
}

numbers! {
    /// Whether a model estimates the return that is still to come.
    Value {
        /// It does not.
        #[default]
        None = EXPHIL_VALUE_NONE,
        /// It does; its blocks do not learn from that.
        Detached = EXPHIL_VALUE_DETACHED,
        /// It does, and its blocks learn from that too.
        Shared = EXPHIL_VALUE_SHARED,
    }
}

numbers! {
    /// What follows a hidden layer of a head.
    Activation {
        /// x sigmoid(x).
        #[default]
        Silu = EXPHIL_ACTIVATION_SILU,
        /// max(x, 0).
        Relu = EXPHIL_ACTIVATION_RELU,
        /// GELU in its form with tanh.
        GeluTanh = EXPHIL_ACTIVATION_GELU_TANH,
    }
}

/// How a model is made. Zero means the library's default, which the header names.
#[derive(Clone, Debug, Default)]
pub struct ModelConfig {
    /// Rows and actions; none: Melee's `melee2` with `exphil81`.
    pub spec: Option<Spec>,
    /// `"(mamba mamba attention)*2"`; none: `"mamba*2"`.
    pub blocks: Option<String>,
    /// Of the initial weights.
    pub seed: u64,
    /// Width; 0 is 256.
    pub hidden: usize,
    /// Trunk of the heads; 0 is 128.
    pub head_width: usize,
    /// States of a channel of mamba; 0 is 16.
    pub mamba_states: usize,
    /// Inner width of mamba over `hidden`; 0 is 2.
    pub mamba_expand: usize,
    /// Taps of mamba's convolution; 0 is 4.
    pub mamba_taps: usize,
    /// Rank of mamba's dt; 0 is `max(hidden / 16, 1)`.
    pub mamba_rank: usize,
    /// 0 is 4.
    pub attention_heads: usize,
    /// Width of a head of attention; 0 is 64.
    pub attention_dim: usize,
    /// 0 is 60.
    pub attention_window_frames: usize,
    /// Inner width of ffn over `hidden`; 0 is 2.
    pub ffn_expand: usize,
    /// Length in [`Mode::Window`]; 0 is 60.
    pub window_frames: usize,
    /// The action decided on frame t acts on frame t + d; 0..64.
    pub delay_frames: i32,
    /// Past actions are no inputs, but for those that are queued. Where they are, a policy may learn no more than to repeat
    /// them, with fine scores in an evaluation and idle hands in play.
    pub no_previous_action: bool,
    /// How it sees time.
    pub mode: Mode,
    /// Whether heads see one another.
    pub heads: HeadsKind,
    /// [`Type::F32`], or [`Type::F64`], the reference in double.
    pub kind: Type,
    /// Past actions that act in an episode's first d frames are neutral in training as they are in play; otherwise training has
    /// the recorded ones, as in 0.1.
    pub neutral_start: bool,
    /// What it is told beside the frame; names differ.
    pub conditions: Vec<Condition>,
    /// One policy for several delays, ascending; `delay_frames` is 0 or the longest of them.
    pub delays: Vec<i32>,
    /// A value head, which learning from play needs.
    pub value: Value,
    /// What every LayerNorm adds to the variance; 0 is 1e-5.
    pub norm_epsilon: f64,
    /// Width of the heads' hidden layers; 0 is `head_width`. Needs `head_layers`, as do `head_activation`, `head_last` and
    /// `no_head_trunk`.
    pub head_units: usize,
    /// No LayerNorm behind the last block.
    pub no_final_norm: bool,
    /// Hidden layers of each head, 1..4; 0: one trunk for all, its SiLU, a linear.
    pub head_layers: i32,
    /// What follows them.
    pub head_activation: Activation,
    /// The first of them sees the head's own value in the newest past action, too.
    pub head_last: bool,
    /// Past actions are inputs of the network only, no term of the logits.
    pub no_head_past: bool,
    /// The first layer sees what the last LayerNorm gives.
    pub no_head_trunk: bool,
    /// Width of x before the first of lstm_only, gru_only and dense; 0 is `hidden`.
    pub input_width: usize,
}

impl ModelConfig {
    fn lend(&self, raw: &mut sys::exphil_model_config) {
        raw.seed = self.seed;
        raw.hidden = count(self.hidden);
        raw.head_width = count(self.head_width);
        raw.mamba_states = count(self.mamba_states);
        raw.mamba_expand = count(self.mamba_expand);
        raw.mamba_taps = count(self.mamba_taps);
        raw.mamba_rank = count(self.mamba_rank);
        raw.attention_heads = count(self.attention_heads);
        raw.attention_dim = count(self.attention_dim);
        raw.attention_window_frames = count(self.attention_window_frames);
        raw.ffn_expand = count(self.ffn_expand);
        raw.window_frames = count(self.window_frames);
        raw.delay_frames = self.delay_frames;
        raw.no_previous_action = i32::from(self.no_previous_action);
        raw.mode = self.mode as i32;
        raw.heads = self.heads as i32;
        raw.type_ = self.kind as i32;
        raw.neutral_start = i32::from(self.neutral_start);
        raw.delays = told::numbers(&self.delays);
        raw.delay_count = count(self.delays.len());
        raw.value = self.value as i32;
        raw.norm_epsilon = self.norm_epsilon;
        raw.head_units = count(self.head_units);
        raw.no_final_norm = i32::from(self.no_final_norm);
        raw.head_layers = self.head_layers;
        raw.head_activation = self.head_activation as i32;
        raw.head_last = i32::from(self.head_last);
        raw.no_head_past = i32::from(self.no_head_past);
        raw.no_head_trunk = i32::from(self.no_head_trunk);
        raw.input_width = count(self.input_width);
    }
}

/// A policy's weights. Clones are the same model; threads may share it.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    handle: Handle<sys::exphil_model>,
    context: Context,
    pub(crate) row: Row,
    pub(crate) logits: usize,
    pub(crate) slots: usize,
    pub(crate) conditions: usize,
    pub(crate) told: usize,
    pub(crate) kind: Type,
}

// "exphil_context, exphil_model: shared freely".
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("row", &self.inner.row).finish_non_exhaustive()
    }
}

impl Model {
    /// A model with random weights.
    pub fn create(context: &Context, config: &ModelConfig) -> Result<Model> {
        let spec = config.spec.as_ref().map(Spec::lend).transpose()?;
        let blocks = config.blocks.as_deref().map(|blocks| c_text("blocks", blocks)).transpose()?;
        let mut raw = sys::init::<sys::exphil_model_config>();
        let conditions = told::Lent::new(&config.conditions)?;
        config.lend(&mut raw);
        raw.conditions = conditions.pointer();
        raw.condition_count = conditions.count();
        raw.spec = pointer(&spec);
        raw.blocks = blocks.as_ref().map_or(std::ptr::null(), |blocks| blocks.as_ptr());
        Model::made(context, |model, error| unsafe { sys::exphil_model_create(context.as_raw(), &raw, model, error) })
    }

    /// Weights of a file.
    pub fn load(context: &Context, path: impl AsRef<Path>) -> Result<Model> {
        let path = c_path(path.as_ref())?;
        let raw = context.as_raw();
        Model::made(context, |model, error| unsafe { sys::exphil_model_load(raw, path.as_ptr(), model, error) })
    }

    /// Weights of a file that was read, or is part of the program.
    pub fn load_memory(context: &Context, data: &[u8]) -> Result<Model> {
        Model::made(context, |model, error| unsafe {
            sys::exphil_model_load_memory(context.as_raw(), data.as_ptr().cast(), data.len(), model, error)
        })
    }

    /// Wraps what a call made, and notes the lengths that slices must have.
    pub(crate) fn made(
        context: &Context,
        work: impl FnOnce(*mut *mut sys::exphil_model, *mut sys::exphil_error) -> i32,
    ) -> Result<Model> {
        Model::of(Handle::create(work)?, context)
    }

    pub(crate) fn of(handle: Handle<sys::exphil_model>, context: &Context) -> Result<Model> {
        let mut info = sys::init::<sys::exphil_model_info>();
        call(|error| unsafe { sys::exphil_model_query(handle.raw(), &mut info, error) })?;
        let row = Row { floats: size(info.float_count)?, ids: size(info.id_count)?, heads: size(info.head_count)? };
        let (logits, slots) = (size(info.logit_count)?, size(info.action_slots.into())?);
        let conditions = size(info.condition_count)?;
        let told = conditions + usize::from(info.delay_count > 0);
        let (kind, context) = (Type::from_number(info.type_)?, context.clone());
        Ok(Model { inner: Arc::new(Inner { handle, context, row, logits, slots, conditions, told, kind }) })
    }

    /// Writes the weights: the old file stays or the new one is there, never half.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_model_save(self.as_raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// Writes the one-frame step as ONNX; `Status::Unsupported` names what has no form there.
    pub fn export_onnx(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        call(|error| unsafe { sys::exphil_model_export_onnx(self.as_raw(), path.as_ptr(), error) })?;
        Ok(())
    }

    /// What the model is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_model_query(self.as_raw(), &mut raw, error) })?;
        ModelInfo::of(&raw)
    }

    /// The spec it was made with.
    pub fn spec(&self) -> Result<Spec> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_model_spec(self.as_raw(), &mut raw, error) })?;
        // Its pointers live as long as the model.
        unsafe { Spec::of(&raw) }
    }

    /// How a prefetcher must cut data for this model.
    pub fn sampling(&self) -> Result<Sampling> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_model_sampling(self.as_raw(), &mut raw, error) })?;
        Sampling::of(&raw)
    }

    /// A new model that computes with weights of fewer bits, [`Type::Bf16`] or [`Type::I8`]. It plays, saves and loads
    /// like any other, but does not train.
    pub fn quantize(&self, kind: Type) -> Result<Model> {
        Model::made(self.context(), |model, error| unsafe {
            sys::exphil_model_quantize(self.as_raw(), kind as i32, model, error)
        })
    }

    /// A copy with a new value head, in the place of one that there may be: it decides as this model does, and its value is 0.
    /// The weights below the value are drawn from `seed`.
    pub fn with_value(&self, value: Value, seed: u64) -> Result<Model> {
        Model::made(self.context(), |model, error| unsafe {
            sys::exphil_model_with_value(self.as_raw(), value as i32, seed, model, error)
        })
    }

    /// Makes what a session wants of a model beside its weights, so that [`Session::adopt`](crate::Session::adopt) finds it
    /// there. Once for a model, from any thread.
    pub fn prepare(&self) -> Result<()> {
        call(|error| unsafe { sys::exphil_model_prepare(self.as_raw(), error) })?;
        Ok(())
    }

    /// Keeps a comparison with this quantised model, for its file; needs a model that nothing else uses yet.
    pub fn set_calibration(&mut self, comparison: &Comparison) -> Result<()> {
        self.alone()?;
        let raw = comparison.lend()?;
        call(|error| unsafe { sys::exphil_model_calibration_set(self.as_raw(), &raw, error) })?;
        Ok(())
    }

    /// The comparison that a quantised model carries.
    pub fn calibration(&self) -> Result<Comparison> {
        let mut raw = sys::init();
        call(|error| unsafe { sys::exphil_model_calibration_get(self.as_raw(), &mut raw, error) })?;
        Ok(Comparison::of(&raw))
    }

    /// Weights change only while this handle is the only one: clones and children on other threads read them.
    pub(crate) fn alone(&mut self) -> Result<()> {
        if Arc::get_mut(&mut self.inner).is_some() {
            return Ok(());
        }
        let others = Arc::strong_count(&self.inner) - 1;
        let message = format!("model: is used by {} other handles; change it before it is shared", others);
        Err(Error::new(Status::State, message))
    }

    pub(crate) fn shape(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The library's own pointer, for calls of [`exphil_sys`]. Valid while this handle lives.
    #[inline]
    pub fn as_raw(&self) -> *mut sys::exphil_model {
        self.inner.handle.raw()
    }
}

/// What a model is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// [`Spec::hash`] of its spec.
    pub spec_hash: u64,
    /// Of all weights.
    pub weights_hash: u64,
    /// Numbers that training changes.
    pub parameter_count: usize,
    /// Tensors in its file.
    pub tensor_count: usize,
    /// F.
    pub float_count: usize,
    /// K.
    pub id_count: usize,
    /// A.
    pub head_count: usize,
    /// L, of all heads.
    pub logit_count: usize,
    /// Width.
    pub hidden: usize,
    /// 0 in [`Mode::Carry`].
    pub window_frames: usize,
    /// Recurrent state of one stream.
    pub state_bytes: u64,
    /// Updates that the weights have seen.
    pub trained_updates: u64,
    /// Frames that the weights have seen.
    pub trained_frames: u64,
    /// d.
    pub delay_frames: i32,
    /// Conditions that it is told.
    pub condition_count: usize,
    /// Delays that it is made for; 0: `delay_frames` is the only one.
    pub delay_count: usize,
    /// Past actions that are inputs: d or d + 1.
    pub action_slots: i32,
    /// How it sees time.
    pub mode: Mode,
    /// Whether heads see one another.
    pub heads: HeadsKind,
    /// What it computes with.
    pub kind: Type,
    /// What matrices are held in: `kind`, unless quantised.
    pub weights: Type,
    /// [`Model::calibration`] has something to tell.
    pub calibrated: bool,
    /// As in [`ModelConfig`].
    pub neutral_start: bool,
    /// Its value head.
    pub value: Value,
    /// Name of the observation layout.
    pub layout: String,
    /// Name of the action codec.
    pub codec: String,
    /// The blocks, written out.
    pub blocks: String,
}

impl ModelInfo {
    fn of(raw: &sys::exphil_model_info) -> Result<ModelInfo> {
        Ok(ModelInfo {
            spec_hash: raw.spec_hash,
            weights_hash: raw.weights_hash,
            parameter_count: size(raw.parameter_count)?,
            tensor_count: size(raw.tensor_count)?,
            float_count: size(raw.float_count)?,
            id_count: size(raw.id_count)?,
            head_count: size(raw.head_count)?,
            logit_count: size(raw.logit_count)?,
            hidden: size(raw.hidden)?,
            window_frames: size(raw.window_frames)?,
            state_bytes: raw.state_bytes,
            trained_updates: raw.trained_updates,
            trained_frames: raw.trained_frames,
            delay_frames: raw.delay_frames,
            condition_count: size(raw.condition_count)?,
            delay_count: size(raw.delay_count)?,
            action_slots: raw.action_slots,
            mode: Mode::from_number(raw.mode)?,
            heads: HeadsKind::from_number(raw.heads)?,
            kind: Type::from_number(raw.type_)?,
            weights: Type::from_number(raw.weights)?,
            calibrated: raw.calibrated != 0,
            neutral_start: raw.neutral_start != 0,
            value: Value::from_number(raw.value)?,
            layout: text(&raw.layout),
            codec: text(&raw.codec),
            blocks: text(&raw.blocks),
        })
    }
}
