// Types of the addon's classes. Options are the fields of the C header's structures, which is the manual; 0 and what is left
// out are its defaults. What fails throws ExphilError.

export class ExphilError extends Error {
  /** "EXPHIL_E_INVALID" */
  code: string;
  status: number;
  nativeCode: number;
}

export interface Spec {
  layout: string;
  codec: string;
  floats?: number;
  /** The header's names of floats and of the lengths of the lists: the same numbers, or refused. */
  float_count?: number;
  id_count?: number;
  head_count?: number;
  ids?: { name: string; entries: number; width?: number }[];
  heads: { name: string; kind: 'bernoulli' | 'categorical'; count: number; neutral?: number }[];
  layout_hash?: number | bigint;
}

/** The header's enumerations are taken by name or number. */
export type Mode = number | 'carry' | 'window';

// Made by `tools/abi bindings` from include/exphil: do not edit.
export interface ContextOptions {
  device?: string;
  cpu_isa?: string;
  backend_path?: string;
  memory_limit_bytes?: number | bigint;
  threads?: number;
}

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

export interface ReplayOptions {
  character?: string;
  port?: number;
  opponent_port?: number;
  first_frame?: number;
  last_frame?: number;
}

export interface TrainerOptions {
  sampling?: {
    batch?: number;
    time?: number;
    stride?: number;
    segment_frames?: number;
    seed?: number | bigint;
    in_order?: number | boolean;
    last_only?: number | boolean;
    buffers?: number;
    shuffle_frames?: number;
    memory_bytes?: number;
    workers?: number;
    drop_past?: number;
    mirror?: number;
    balance_character?: number;
    balance_action?: number;
    balance_change?: number;
    first_lane?: number;
    lane_count?: number;
  };
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
export type ReplayResult = Info<
  'episodes' | 'frames' | 'frames_masked' | 'truncated'
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
export type DatasetInfo = Info<
  'frames' | 'episodes' | 'games' | 'float_count' | 'id_count' | 'head_count' | 'constant_floats',
  'spec_hash' | 'content_hash',
  'layout' | 'codec'
>;
export type Report = Info<
  'frames' | 'change_frames' | 'loss' | 'nll' | 'frequency_nll' | 'exact_accuracy' | 'exact_change_accuracy'
  | 'exact_majority' | 'exact_majority_change' | 'exact_copy' | 'alone_most_frames' | 'alone_frames' | 'alone_change_frames'
  | 'alone_nll' | 'alone_accuracy' | 'alone_change_accuracy' | 'value_frames' | 'value_loss' | 'unexplained'
>;
// Written by hand from here on.

/**
 * One character at the end of a frame, in the units of Slippi's post-frame event. Who is described is present. Without known,
 * those of the later fields that are given are known: each group of them is given whole, or not at all (melee.known).
 */
export interface MeleeCharacter {
  present?: number | boolean;
  known?: number;
  x?: number;
  y?: number;
  facing?: number;
  percent?: number;
  shield?: number;
  state_age?: number;
  misc?: number;
  speed_air_x?: number;
  speed_y?: number;
  speed_attack_x?: number;
  speed_attack_y?: number;
  speed_ground_x?: number;
  hitlag?: number;
  action_state?: number;
  ground?: number;
  /** The internal id. */
  character?: number;
  stocks?: number;
  last_attack?: number;
  combo?: number;
  last_hit_by?: number;
  airborne?: number | boolean;
  jumps?: number;
  l_cancel?: number;
  hurtbox?: number;
  /** State bit flags 1..5. */
  flags?: number[] | Uint8Array;
}

export interface MeleeItem {
  facing?: number;
  speed_x?: number;
  speed_y?: number;
  x?: number;
  y?: number;
  timer?: number;
  spawn_id?: number;
  type?: number;
  damage?: number;
  state?: number;
  misc?: number[] | Uint8Array;
  /** Port index 0..3; -1, as when left out: none. */
  owner?: number;
}

/** The fields of exphil_melee_frame; what is left out is 0, or what the header says is so before the first event. */
export interface MeleeFrame {
  frame?: number;
  /** The external id. */
  stage?: number;
  own_port: 1 | 2 | 3 | 4;
  /** 0, as when left out: the first other one that is present. */
  opponent_port?: 0 | 1 | 2 | 3 | 4;
  /** By port - 1; null or undefined: absent. */
  player: (MeleeCharacter | null | undefined)[];
  /** Nana. */
  follower?: (MeleeCharacter | null | undefined)[];
  platform_left?: number;
  platform_right?: number;
  wind?: number;
  stadium_kind?: number;
  stadium_event?: number;
  /** The length of item, if it is given. */
  item_count?: number;
  item?: MeleeItem[];
}

export interface Pad {
  /** Bits of melee.buttons. */
  buttons: number;
  main_x: number;
  main_y: number;
  c_x: number;
  c_y: number;
  trigger: number;
}

declare class Handle {
  /** Ends the object early; otherwise the collector does. */
  close(): void;
}

export class Context extends Handle {
  constructor(options?: ContextOptions);
  memory(): MemoryInfo;
}

export class Model extends Handle {
  private constructor();
  static load(context: Context, source: string | Uint8Array): Model;
  static create(context: Context, options?: ModelOptions): Model;
  info(): ModelInfo;
  save(path: string): void;
  quantize(kind: 'int8' | 'bf16'): Model;
  session(options?: SessionOptions): Session;
}

export class Session extends Handle {
  private constructor();
  readonly floats: Float32Array;
  readonly ids: Int32Array;
  readonly actions: Int32Array;
  readonly streams: number;
  readonly logitCount: number;
  readonly stateBytes: number;
  step(frame: MeleeFrame): Pad;
  step(frames: MeleeFrame[]): Pad[];
  /** Without floats and ids: the session's own. One of them alone is refused where a frame has both. */
  stepRow(floats?: Float32Array, ids?: Int32Array, actions?: Int32Array, noise?: Float32Array): Int32Array;
  logits(stream?: number, logits?: Float32Array): Float32Array;
  reset(stream?: number): void;
  override(stream: number, action: Int32Array): void;
  saveState(stream?: number, state?: Uint8Array): Uint8Array;
  restoreState(stream: number, state: Uint8Array): void;
  clone(): Session;
  info(): SessionInfo;
}

export class Dataset extends Handle {
  private constructor();
  static create(context: Context, spec?: Spec): Dataset;
  static open(context: Context, path: string): Dataset;
  save(path: string): void;
  addReplay(path: string, options?: ReplayOptions): ReplayResult;
  addRows(game: number | bigint, floats: Float32Array | undefined, ids: Int32Array | undefined, actions: Int32Array): void;
  info(): DatasetInfo;
}

export class Trainer extends Handle {
  private constructor();
  static create(model: Model, dataset: Dataset, options?: TrainerOptions): Trainer;
  step(): Metrics;
  /** What onProgress throws ends the run, and the promise rejects with it. */
  train(updates: number, onProgress?: (metrics: Metrics) => void): Promise<Metrics>;
  stop(): void;
  model(options?: { averaged?: boolean }): Model;
  save(path: string): void;
  resume(path: string): void;
  evaluate(dataset: Dataset): Report;
}

export const melee: {
  /** The row of a layout: "melee2" (undefined), "exphil288", "slippi" or "slippi-nana". */
  encode(layout: string | undefined, frame: MeleeFrame): { floats: Float32Array; ids: Int32Array };
  /** codec: "exphil81" (undefined), "exphil81-floor", "slippi" or "slippi-fine". */
  padEncode(codec: string | undefined, pad: Partial<Pad>): Int32Array;
  padDecode(codec: string | undefined, action: Int32Array): Pad;
  /** A preset as Model.create and Dataset.create take it. */
  spec(layout?: string, codec?: string): Spec;
  readonly buttons: Readonly<
    Record<'D_LEFT' | 'D_RIGHT' | 'D_DOWN' | 'D_UP' | 'Z' | 'R' | 'L' | 'A' | 'B' | 'X' | 'Y' | 'START', number>
  >;
  /** Groups of later fields of a character. */
  readonly known: Readonly<Record<'AGE' | 'FLAGS' | 'HURTBOX' | 'SPEED' | 'HITLAG' | 'ALL', number>>;
};

export function version(): string;
