// Types of the package. Options are the fields of the C header's structures, which is the manual; 0 and what is left out are its
// defaults. What fails throws ExphilError.

// Made by `tools/abi bindings` from include/exphil: do not edit.
export interface ModelOptions {
  spec?: Spec;
  blocks?: string;
  seed?: number | bigint;
  hidden?: number;
  head_width?: number;
  mamba_states?: number;
  mamba_expand?: number;
  mamba_taps?: number;
  mamba_rank?: number;
  attention_heads?: number;
  attention_dim?: number;
  attention_window_frames?: number;
  ffn_expand?: number;
  window_frames?: number;
  delay_frames?: number;
  no_previous_action?: number | boolean;
  mode?: Mode;
  heads?: number | 'independent' | 'autoregressive';
  type?: number | 'f32' | 'f64';
  neutral_start?: number | boolean;
  value?: number | 'none' | 'detached' | 'shared';
  norm_epsilon?: number;
  head_units?: number;
  no_final_norm?: number | boolean;
  head_layers?: number;
  head_activation?: number | 'silu' | 'relu' | 'gelu_tanh';
  head_last?: number | boolean;
  no_head_past?: number | boolean;
  no_head_trunk?: number | boolean;
  input_width?: number;
}

export interface SessionOptions {
  heads?: { temperature?: number; deterministic?: number | boolean; press?: number; release?: number }[];
  spec?: Spec;
  delay_frames?: number;
  mode?: Mode;
  seed?: number | bigint;
  streams?: number;
  deadline_ns?: number;
  deterministic?: number | boolean;
  deliver?: number | 'due' | 'decided';
  adoptable?: number | boolean;
}

export interface TrainerOptions {
  optimizer?: {
    rate?: number;
    beta1?: number;
    beta2?: number;
    epsilon?: number;
    decay?: number;
    clip_norm?: number;
    ema_decay?: number;
    low_ratio?: number;
    restart_factor?: number;
    warmup_updates?: number;
    total_updates?: number;
    restart_updates?: number;
    schedule?: number | 'constant' | 'cosine' | 'restarts';
    resume_new_total?: number | boolean;
  };
  trainer?: {
    loss_scale?: number;
    accumulate?: number;
    precision?: number | 'f32' | 'tf32' | 'bf16' | 'f16';
    activations?: number | 'f32' | 'bf16';
    fake_quantize?: number | 'int8' | 'bf16';
    checkpoint_blocks?: number;
    own_past?: number;
    own_past_ramp_updates?: number;
    own_past_seed?: number | bigint;
    saved_weights?: number | 'now' | 'averaged';
    as_played?: number | boolean;
    reduction?: number | 'means' | 'sums';
    shards?: number;
  };
}

export interface RolloutOptions {
  time?: number;
  seed?: number | bigint;
}

export interface LearnerConfig {
  surrogate?: number;
  clip?: number;
  value?: number;
  to_old?: number;
  to_teacher?: number;
  from_teacher?: number;
  entropy?: number;
  imitation?: number;
  half_life_frames?: number;
  lambda?: number;
  most_kl?: number;
  reward_scale?: number;
  epochs?: number;
  batches?: number;
  burn_in?: number;
  value_only?: number;
  seed?: number | bigint;
  normalise?: number;
}

/** Fields of the header's structures: 64-bit hashes are bigint. */
export type Info<Numbers extends string, Hashes extends string = never, Texts extends string = never> = {
  [field in Numbers]: number;
} & { [field in Hashes]: bigint } & { [field in Texts]: string };

export type MemoryInfo = Info<
  'host_used_bytes' | 'host_peak_bytes' | 'host_allocations' | 'device_used_bytes' | 'device_peak_bytes'
  | 'device_requests' | 'device_reused' | 'pinned_used_bytes' | 'pinned_peak_bytes'
>;
export type Metrics = Info<
  'update' | 'epoch' | 'frames' | 'loss' | 'gradient_norm' | 'rate' | 'time_ns' | 'waited_ns' | 'skipped'
>;
export type ModelInfo = Info<
  'parameter_count' | 'tensor_count' | 'float_count' | 'id_count' | 'head_count' | 'logit_count' | 'hidden'
  | 'window_frames' | 'trained_updates' | 'trained_frames' | 'delay_frames' | 'mode' | 'heads' | 'type' | 'weights'
  | 'neutral_start' | 'condition_count' | 'delay_count' | 'value' | 'norm_epsilon' | 'head_units' | 'no_final_norm'
  | 'head_layers' | 'head_activation' | 'head_last' | 'no_head_past' | 'no_head_trunk' | 'input_width',
  'spec_hash' | 'weights_hash',
  'layout' | 'codec' | 'blocks'
>;
export type SessionInfo = Info<
  'steps' | 'missed' | 'last_ns' | 'max_ns' | 'p50_ns' | 'p99_ns' | 'streams' | 'float_count' | 'id_count' | 'head_count'
  | 'logit_count' | 'state_bytes' | 'adoptions' | 'weights_hash'
>;
export type LearnerMetrics = Info<
  'chunks' | 'updates' | 'rows' | 'imitated' | 'episodes' | 'episode_return' | 'episode_frames' | 'reward' | 'kl_old'
  | 'kl_to_teacher' | 'kl_from_teacher' | 'entropy' | 'ratio' | 'clipped' | 'nll' | 'value_loss' | 'unexplained' | 'loss'
  | 'gradient_norm' | 'recomputed' | 'taken_back'
>;
export type OpponentRecord = Info<
  'episodes' | 'won' | 'lost'
>;
// Written by hand from here on.

/** What failed. */
export class ExphilError extends Error {
  /** "EXPHIL_E_INVALID" */
  code: string;
  status: number;
}

export interface Spec {
  layout: string;
  codec: string;
  floats: number;
  ids?: { name: string; entries: number; width?: number }[];
  heads: { name: string; kind: 'bernoulli' | 'categorical'; count: number; neutral?: number }[];
  layout_hash?: number | bigint;
}

/** The header's enumerations are taken by name or number. */
export type Mode = number | 'carry' | 'window';

/** Fields of exphil_melee_frame: players by port - 1; what is left out is not known. */
export type Frame = { [field: string]: unknown };
/** Fields of exphil_pad. */
export interface Pad {
  buttons: number;
  main_x: number;
  main_y: number;
  c_x: number;
  c_y: number;
  trigger: number;
}

export interface LoadOptions {
  /** "relaxed", "simd", or a module that was compiled already; else what supported() says. */
  module?: 'relaxed' | 'simd' | WebAssembly.Module;
  memory_limit_bytes?: number;
}
/** Which module this machine runs best. */
export function supported(): 'relaxed' | 'simd' | undefined;
export function load(options?: LoadOptions): Promise<Play>;

declare class Handle {
  /** Frees it now. */
  close(): void;
}

export class Play extends Handle {
  private constructor();
  readonly module: 'relaxed' | 'simd' | undefined;
  readonly version: string;
  readonly melee: Melee;
  load(bytes: Uint8Array | ArrayBuffer): Model;
  create(options?: ModelOptions): Model;
  world(name: 'drill' | 'pong' | 'pong-two' | 'cartpole' | 'cartpole-blind', lanes?: number): World;
  against(world: World, opponents: Model[], seed?: number): World;
  beside(one: World, other: World): World;
  info(): MemoryInfo;
}

export interface Melee {
  readonly buttons: { readonly [name: string]: number };
  readonly known: { readonly [name: string]: number };
  spec(layout?: string, codec?: string): Spec;
  encode(layout: string | undefined, frame: Frame): { floats: Float32Array; ids: Int32Array };
  padEncode(codec: string | undefined, pad: Partial<Pad>): Int32Array;
  padDecode(codec: string | undefined, action: Int32Array): Pad;
}

export class Model extends Handle {
  private constructor();
  get spec(): Spec;
  info(): ModelInfo;
  save(): Uint8Array;
  quantize(kind: 'int8' | 'bf16'): Model;
  withValue(value: 'detached' | 'shared', seed?: number): Model;
  session(options?: SessionOptions): Session;
  trainer(options?: TrainerOptions): Trainer;
}

export class Session extends Handle {
  private constructor();
  readonly streams: number;
  readonly floatCount: number;
  readonly idCount: number;
  readonly headCount: number;
  readonly logitCount: number;
  readonly stateBytes: number;
  /** floats [B,F], ids [B,K] in, actions [B,A] out; noise [B,L]. */
  stepRow(floats?: Float32Array, ids?: Int32Array, actions?: Int32Array, noise?: Float32Array): Int32Array;
  step(frame: Frame): Pad;
  step(frames: Frame[]): Pad[];
  logits(stream?: number): Float32Array;
  value(stream?: number): number;
  reset(stream?: number): void;
  override(stream: number, action: Int32Array): void;
  saveState(stream?: number): Uint8Array;
  restoreState(stream: number, state: Uint8Array): void;
  clone(): Session;
  adopt(model: Model): void;
  info(): SessionInfo & { latency: number[] };
}

export interface Batch {
  batch: number;
  time: number;
  floats?: Float32Array;
  ids?: Int32Array;
  past?: Int32Array;
  actions: Int32Array;
  mask?: Float32Array;
  reset?: Uint8Array;
}

export class Trainer extends Handle {
  private constructor();
  stepBatch(batch: Batch): Metrics & { head_loss: number[] };
  model(options?: { averaged?: boolean }): Model;
  save(): Uint8Array;
  resume(bytes: Uint8Array): void;
  learner(world: World, options?: { teacher?: Model; session?: SessionOptions; rollout?: RolloutOptions; learner?: LearnerConfig }): Learner;
}

export class Learner extends Handle {
  private constructor();
  update(): LearnerMetrics;
}

export class World extends Handle {
  private constructor();
  readonly spec: Spec;
  readonly lanes: number;
  readonly seats: number;
  readonly stateBytes: number;
  readonly floats: Float32Array;
  readonly ids: Int32Array;
  readonly reward: Float32Array;
  readonly end: Uint8Array;
  reset(lane?: number, seed?: number): this;
  step(actions: Int32Array): this;
  save(lane?: number): Uint8Array;
  restore(lane: number, state: Uint8Array): void;
  opponent(index: number, model?: Model): OpponentRecord;
  drill(lane?: number): { frame: Frame; teacher: Pad };
}
