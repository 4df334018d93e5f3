// The play path of libexphil in the browser and in Node: policies, sessions, training by batches, worlds and learners, as classes
// over a module of WebAssembly. One load() is one module with a memory of its own; a Worker loads its own. What fails throws an
// ExphilError. Objects may be closed early and in any order; else the collector ends them.

import { ExphilError, Memory, gone, invalid, named, object } from './exphil_memory.js';
import { Melee } from './exphil_melee.js';

export { ExphilError };

/** The modules; the first that this machine can run is taken. */
const modules = [
  ['relaxed', 'exphil_play_relaxed.wasm'],
  ['simd', 'exphil_play.wasm'],
];
// A module of one function (f32, f32, f32) -> f32, exported as "f": first lanes of vectors.
const probe = (body) => Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 125, 125, 125, 1, 125, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0,
  10, body.length + 4, 1, body.length + 2, 0, ...body, 11);
const [argument, lane] = [(i) => [32, i, 253, 19], [253, 31, 0]]; // f32x4.splat, f32x4.extract_lane 0
const probes = {
  relaxed: probe([...argument(0), ...argument(1), ...argument(2), 253, 0x85, 2, ...lane]), // f32x4.relaxed_madd
  simd: probe([...argument(0), ...lane]),
};
// A processor may round the product of a relaxed multiply-add before it adds; kernels that rely on it are then of no use.
const fuses = (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.f(1 + 2 ** -12, 1 + 2 ** -12, -1 - 2 ** -11) === 2 ** -24;
/** Which of the modules this machine runs best: "relaxed", "simd", or undefined. */
export function supported() {
  return modules.map(([name]) => name).find((name) => WebAssembly.validate(probes[name]) && (name !== 'relaxed' || fuses(probes[name])));
}

async function fetched(url) {
  try {
    if (url.protocol === 'file:') return await WebAssembly.compile(await (await import('node:fs/promises')).readFile(url));
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    return await WebAssembly.compile(await answer.arrayBuffer());
  } catch (error) {
    throw new ExphilError(`${url}: ${error.message}`, 'EXPHIL_E_IO', -3);
  }
}

/**
 * Loads a module: by `module` ("relaxed", "simd"; else the best that runs here), from beside this file, or one that was compiled
 * already (WebAssembly.Module). memory_limit_bytes: of all objects together.
 */
export async function load(options) {
  const { module = supported(), memory_limit_bytes, ...rest } = object(options, 'options');
  for (const name in rest) throw invalid(`${name}: there is no such option`);
  if (module === undefined) throw new ExphilError('this machine runs no WebAssembly with SIMD', 'EXPHIL_E_UNSUPPORTED', -5);
  if (module instanceof WebAssembly.Module) return new Play(await Memory.make(module), undefined, memory_limit_bytes);
  const file = new Map(modules).get(module);
  if (!file) throw invalid(`module: ${String(module)} is none of ${modules.map(([name]) => name).join(', ')}`);
  return new Play(await Memory.make(await fetched(new URL(file, import.meta.url))), module, memory_limit_bytes);
}

// What only this file may do.
const key = Symbol('made by the library');

/** An object of one module. */
class Handle {
  #at;
  #end;
  #home;
  static #registry = new FinalizationRegistry((end) => end());
  constructor(made, home, at, destroy) {
    if (made !== key) throw invalid(`${new.target.name}: is made by load() and by other objects`);
    [this.#home, this.#at] = [home, at];
    this.#end = (() => {
      let open = true;
      return () => {
        if (open) destroy();
        open = false;
      };
    })();
    Handle.#registry.register(this, this.#end, this);
  }
  /** Its address, for whoever lives in the same module. */
  static at(handle, Class, home, what = Class.name.toLowerCase()) {
    if (!(handle instanceof Class && #at in handle)) throw invalid(`${what}: is no ${Class.name}`);
    if (handle.#at === 0) throw gone(`${what}: is closed`);
    if (home && handle.#home !== home) throw new ExphilError(`${what}: is of another module`, 'EXPHIL_E_MISMATCH', -12);
    return handle.#at;
  }
  /** Frees it now; closing it again does nothing. */
  close() {
    this.#at = 0;
    Handle.#registry.unregister(this);
    this.#end();
  }
}

const at = Handle.at;

/** A typed array of exactly so many elements. */
function array(value, Type, count, what) {
  if (!(value instanceof Type)) throw invalid(`${what}: must be a ${Type.name}`);
  if (value.length !== count) throw invalid(`${what}: has ${value.length} elements, must have ${count}`);
  return count ? value : new Type(0); // what was given away has none, and can be copied from no more
}
function whole(value, low, high, what) {
  if (!Number.isInteger(value) || value < low || value > high) throw invalid(`${what}: is ${String(value)}, must be a whole number from ${low} to ${high}`);
  return value;
}
const seedOf = (value) => whole(value, 0, Number.MAX_SAFE_INTEGER, 'seed');

// exphil_spec to an object as Model.create takes it, and back.
const headKinds = ['bernoulli', 'categorical'];
function toldSpec(memory, place) {
  const { fields } = memory.structs.spec;
  const list = (pointer, count, name) => {
    const { size } = memory.structs[name];
    const number = Number(memory.views.data.getBigInt64(place + fields.get(count).offset, true));
    const first = memory.u32(place + fields.get(pointer).offset);
    return Array.from({ length: number }, (_, i) => memory.told(first + i * size, memory.structs[name]));
  };
  const { layout, codec, float_count: floats, layout_hash } = memory.told(place, memory.structs.spec);
  const heads = list('heads', 'head_count', 'head_spec').map((head) => ({ ...head, kind: headKinds[head.kind] }));
  return { layout, codec, floats, ids: list('ids', 'id_count', 'id_spec'), heads, layout_hash };
}
/** Lengths of arrays are checked by it: it stays as it is. A copy may be changed: structuredClone(model.spec). */
function frozen(spec) {
  for (const list of [spec.ids, spec.heads]) Object.freeze(list).forEach(Object.freeze);
  return Object.freeze(spec);
}
function putSpec(memory, room, spec) {
  if (spec === undefined || spec === null) return 0;
  const { ids = [], heads, floats, ...fields } = object(spec, 'spec');
  const list = (values, name, what) => {
    if (!Array.isArray(values)) throw invalid(`spec.${what}: must be an array`);
    const { size } = memory.structs[name];
    const first = memory.struct(room, name, {}, {}, values.length);
    values.forEach((value, i) => memory.fill(room, first + i * size, memory.structs[name], value, `spec.${what}[${i}]`));
    return first;
  };
  const kinds = Array.isArray(heads) ? heads.map((head, i) => {
    const kind = headKinds.indexOf(object(head, `spec.heads[${i}]`).kind);
    if (kind < 0) throw invalid(`spec.heads[${i}].kind: ${String(head?.kind)} is neither bernoulli nor categorical`);
    return { ...head, kind };
  }) : heads;
  const pointers = { ids: list(ids, 'id_spec', 'ids'), heads: list(kinds, 'head_spec', 'heads') };
  return memory.struct(room, 'spec', { ...fields, float_count: floats, id_count: ids.length, head_count: heads.length }, pointers);
}
const sizesOf = ({ floats, ids, heads }) => [floats, ids.length, heads.length];

/** A module with a memory of its own. */
class Play extends Handle {
  #memory;
  #context;
  constructor(memory, module, memory_limit_bytes) {
    const context = memory.within((room) => memory.make('context_create', memory.struct(room, 'context_config', { memory_limit_bytes })));
    super(key, memory, context, () => memory.end('context_destroy', context));
    this.#memory = memory;
    this.#context = context;
    /** "relaxed" or "simd"; undefined where the module was given. */
    this.module = module;
    /** "0.2.0 cpu:..." */
    this.version = memory.text(memory.call('version'));
    /** Frames, pads, rows and presets of Melee. */
    this.melee = new Melee(memory, (place) => toldSpec(memory, place), sizesOf);
  }
  /** A policy from the bytes of a weights file. */
  load(bytes) {
    at(this, Play);
    if (bytes instanceof ArrayBuffer) bytes = bytes.byteLength ? new Uint8Array(bytes) : new Uint8Array(0); // none of what was given away
    if (!(bytes instanceof Uint8Array)) throw invalid('bytes: must be a Uint8Array or an ArrayBuffer');
    const memory = this.#memory;
    return memory.within((room) => new Model(key, memory, memory.make('model_load', this.#context, memory.put(room, bytes, 'weights'), bytes.length)));
  }
  /** A new policy. options: fields of exphil_model_config, spec as an object; none: Melee's. */
  create(options) {
    at(this, Play);
    const memory = this.#memory;
    const { spec, ...fields } = object(options, 'options');
    return memory.within((room) => {
      const config = memory.struct(room, 'model_config', fields, { spec: putSpec(memory, room, spec) });
      return new Model(key, memory, memory.make('model_create', this.#context, config));
    });
  }
  /** A world of the library: "drill", "pong", "pong-two", "cartpole", "cartpole-blind". */
  world(name, lanes = 1) {
    at(this, Play);
    const memory = this.#memory;
    if (typeof name !== 'string') throw invalid('name: must be a text');
    whole(lanes, 1, 4096, 'lanes');
    return memory.within((room) => new World(key, memory, memory.make('world_create', this.#context, memory.name(room, name, 'name'), lanes), []));
  }
  /** A world of two seats as one of one: the other is played by these policies, which do not learn. */
  against(world, opponents, seed = 0) {
    at(this, Play);
    const memory = this.#memory;
    if (!Array.isArray(opponents)) throw invalid('opponents: must be an array');
    const places = Uint32Array.from(opponents, (model) => at(model, Model, memory, 'opponent'));
    const [inner, draws] = [World.place(world, memory), seedOf(seed)];
    return memory.within((room) => new World(key, memory, memory.make('world_against', this.#context, inner, memory.put(room, places), places.length, draws), [world]));
  }
  /** The lanes of one world, then those of another one. */
  beside(one, other) {
    at(this, Play);
    const memory = this.#memory;
    return new World(key, memory, memory.make('world_beside', World.place(one, memory), World.place(other, memory)), [one, other]);
  }
  /** Memory of all objects. */
  info() {
    const place = at(this, Play);
    const memory = this.#memory;
    return memory.within((room) => {
      const info = memory.struct(room, 'memory_info');
      memory.check('context_memory', place, info);
      return memory.told(info, memory.structs.memory_info);
    });
  }
}

/** What save writes into a file in the module's memory, as bytes. */
function saved(memory, name, save) {
  return memory.within((room) => {
    const path = memory.put(room, name);
    try {
      save(path);
      const file = memory.put(room, `${name}${save.rest ?? ''}`);
      const bytes = memory.call('file_size', file);
      const place = room(bytes, 'a file');
      memory.call('file_get', file, place, bytes);
      return memory.views.u8.slice(place, place + bytes);
    } finally {
      memory.call('file_remove', path);
      memory.call('file_remove', memory.put(room, `${name}.optimizer`));
    }
  });
}

class Model extends Handle {
  #memory;
  #spec;
  constructor(made, memory, place) {
    super(made, memory, place, () => memory.end('model_destroy', place));
    this.#memory = memory;
  }
  info() {
    const [memory, place] = [this.#memory, at(this, Model)];
    return memory.within((room) => {
      const info = memory.struct(room, 'model_info');
      memory.check('model_query', place, info);
      return memory.told(info, memory.structs.model_info);
    });
  }
  /** What its rows and actions are, as create() takes it. */
  get spec() {
    const [memory, place] = [this.#memory, at(this, Model)];
    return (this.#spec ??= memory.within((room) => {
      const spec = memory.struct(room, 'spec');
      memory.check('model_spec', place, spec);
      return frozen(toldSpec(memory, spec));
    }));
  }
  /** The bytes of its weights file: safetensors, as `exphil play` and every other host read it. */
  save() {
    const place = at(this, Model);
    return saved(this.#memory, 'weights', (path) => this.#memory.check('model_save', place, path));
  }
  /** kind: "int8" or "bf16". */
  quantize(kind) {
    const [memory, place] = [this.#memory, at(this, Model)];
    return new Model(key, memory, memory.make('model_quantize', place, whole(named('type', kind), 0, 100, 'kind')));
  }
  /** A copy with a new value head, "detached" or "shared", whose value is 0. */
  withValue(value, seed = 0) {
    const [memory, place] = [this.#memory, at(this, Model)];
    return new Model(key, memory, memory.make('model_with_value', place, whole(named('value', value), 0, 100, 'value'), seedOf(seed)));
  }
  /** options: fields of exphil_session_config; heads as a list of { temperature, deterministic, press, release }. */
  session(options) {
    const [memory, place] = [this.#memory, at(this, Model)];
    const made = memory.within((room) => memory.make('session_create', place, sessionConfig(memory, room, options, this.spec.heads.length)));
    return new Session(key, memory, made, this.spec);
  }
  /** Trains a copy of it by batches. options: { optimizer, trainer }, fields of exphil_optimizer_config and exphil_trainer_config. */
  trainer(options) {
    const [memory, place] = [this.#memory, at(this, Model)];
    const { optimizer, trainer, ...rest } = object(options, 'options');
    for (const name in rest) throw invalid(`${name}: there is no such option; those of a trainer stand in optimizer or trainer`);
    const made = memory.within((room) =>
      memory.make('trainer_create', place, memory.struct(room, 'optimizer_config', optimizer), memory.struct(room, 'trainer_config', trainer)));
    return new Trainer(key, memory, made, this.spec);
  }
}

function sessionConfig(memory, room, options, count) {
  const { spec, heads, delay_frames: delay, mode, ...fields } = object(options, 'options');
  const number = (value, what) => {
    if (value === undefined) return 0;
    return memory.put(room, Int32Array.of(whole(named(what, value), -(2 ** 31), 2 ** 31 - 1, what)));
  };
  let list = 0;
  if (heads !== undefined) {
    if (!Array.isArray(heads) || heads.length !== count) throw invalid(`heads: must be an array of ${count}`);
    list = memory.struct(room, 'head_play', {}, {}, count);
    const kind = memory.structs.head_play;
    heads.forEach((head, i) => memory.fill(room, list + i * kind.size, kind, head, `heads[${i}]`));
  }
  return memory.struct(room, 'session_config', fields,
    { spec: putSpec(memory, room, spec), heads: list, delay_frames: number(delay, 'delay_frames'), mode: number(mode, 'mode') });
}

class Session extends Handle {
  #memory;
  #spec;
  #place;
  #room; // [floats, ids, actions, noise or logits, state], in the module's memory
  constructor(made, memory, place, spec) {
    const own = { room: [], close: () => own.room.forEach((one) => memory.free(one)) };
    super(made, memory, place, () => {
      own.close();
      memory.end('session_destroy', place);
    });
    this.#memory = memory;
    this.#spec = spec;
    this.#place = place;
    const info = this.info();
    const read = (name, value) => Object.defineProperty(this, name, { enumerable: true, value });
    read('streams', info.streams);
    read('floatCount', info.float_count);
    read('idCount', info.id_count);
    read('headCount', info.head_count);
    read('logitCount', info.logit_count);
    read('stateBytes', Number(info.state_bytes));
    for (const bytes of [this.streams * this.floatCount * 4, this.streams * this.idCount * 4, this.streams * this.headCount * 4,
      this.streams * this.logitCount * 4, this.stateBytes]) own.room.push(memory.alloc(bytes, 'a session'));
    this.#room = own.room;
  }
  /**
   * A frame of rows: floats [B,F] and ids [B,K] in, actions [B,A] out. Without floats, or without ids, the model has none. noise
   * [B,L]: the draws, uniform in (0,1).
   */
  stepRow(floats, ids, actions = new Int32Array(this.streams * this.headCount), noise = undefined) {
    const place = at(this, Session);
    const memory = this.#memory;
    const [floatsAt, idsAt, actionsAt, noiseAt] = this.#room;
    const { f32, i32 } = memory.views;
    if (this.floatCount || floats) f32.set(array(floats, Float32Array, this.streams * this.floatCount, 'floats'), floatsAt >> 2);
    if (this.idCount || ids) i32.set(array(ids, Int32Array, this.streams * this.idCount, 'ids'), idsAt >> 2);
    array(actions, Int32Array, this.streams * this.headCount, 'actions');
    if (noise) f32.set(array(noise, Float32Array, this.streams * this.logitCount, 'noise'), noiseAt >> 2);
    memory.check('session_step_row', place, floatsAt, idsAt, noise ? noiseAt : 0, actionsAt);
    actions.set(memory.views.i32.subarray(actionsAt >> 2, (actionsAt >> 2) + actions.length));
    return actions;
  }
  /** Melee: a frame in, a pad out; of several streams a list of frames, and of pads. */
  step(frames) {
    const place = at(this, Session);
    const memory = this.#memory;
    const list = Array.isArray(frames) ? frames : [frames];
    if (list.length !== this.streams) throw invalid(`frames: are ${list.length}, the session has ${this.streams} streams`);
    const [frame, pad] = [memory.structs.melee_frame, memory.structs.pad];
    return memory.within((room) => {
      const first = memory.struct(room, 'melee_frame', {}, {}, list.length);
      const pads = memory.struct(room, 'pad', {}, {}, list.length);
      list.forEach((one, i) => Melee.put(memory, first + i * frame.size, one, list === frames ? `frames[${i}]` : 'frame'));
      memory.check('session_step', place, first, pads);
      const told = list.map((_, i) => memory.told(pads + i * pad.size, pad));
      return list === frames ? told : told[0];
    });
  }
  /** Logits of the last step of a stream. */
  logits(stream = 0) {
    const [memory, place, there] = [this.#memory, at(this, Session), this.#room[3]];
    memory.check('session_logits', place, this.#stream(stream), there, this.logitCount);
    return memory.views.f32.slice(there >> 2, (there >> 2) + this.logitCount);
  }
  /** What the value head said in the last step. */
  value(stream = 0) {
    const [memory, place, there] = [this.#memory, at(this, Session), this.#room[3]];
    memory.check('session_value', place, this.#stream(stream), there);
    return memory.views.f32[there >> 2];
  }
  #stream(stream) {
    return whole(stream, 0, this.streams - 1, 'stream');
  }
  /** A stream begins an episode; without a number, all do. */
  reset(stream = -1) {
    this.#memory.check('session_reset', at(this, Session), stream === -1 ? -1 : this.#stream(stream));
  }
  /** What was really done instead of the newest decided action. */
  override(stream, action) {
    const [memory, place] = [this.#memory, at(this, Session)];
    memory.views.i32.set(array(action, Int32Array, this.headCount, 'action'), this.#room[2] >> 2);
    memory.check('session_override', place, this.#stream(stream), this.#room[2]);
  }
  /** All that a stream's next step depends on, as bytes. */
  saveState(stream = 0) {
    const [memory, place, there] = [this.#memory, at(this, Session), this.#room[4]];
    memory.check('session_save', place, this.#stream(stream), there, this.stateBytes);
    return memory.views.u8.slice(there, there + this.stateBytes);
  }
  restoreState(stream, state) {
    const [memory, place] = [this.#memory, at(this, Session)];
    memory.views.u8.set(array(state, Uint8Array, this.stateBytes, 'state'), this.#room[4]);
    memory.check('session_restore', place, this.#stream(stream), this.#room[4], this.stateBytes);
  }
  /** A second session with the same model, configuration and state. */
  clone() {
    const [memory, place] = [this.#memory, at(this, Session)];
    return new Session(key, memory, memory.make('session_clone', place), this.#spec);
  }
  /** The steps from here on play the weights of this model, with the state as it is; the session was made with adoptable: true. */
  adopt(model) {
    const [memory, place] = [this.#memory, at(this, Session)];
    memory.check('session_adopt', place, at(model, Model, memory));
  }
  /** Latency and dimensions. */
  info() {
    const [memory, place] = [this.#memory, at(this, Session)];
    return memory.within((room) => {
      const info = memory.struct(room, 'session_info');
      memory.check('session_query', place, info);
      return memory.told(info, memory.structs.session_info);
    });
  }
}

class Trainer extends Handle {
  #memory;
  #spec;
  #slots;
  constructor(made, memory, place, spec) {
    super(made, memory, place, () => memory.end('trainer_destroy', place));
    this.#memory = memory;
    this.#spec = spec;
  }
  /**
   * One update by a batch: batch B and time T, floats [B*T,F], ids [B*T,K], past [B*T,slots,A] where the model sees past actions,
   * actions [B*T,A], and where they are not all 1 and 0 mask and reset [B*T]: the weight of a row, and 1 where an episode begins.
   */
  stepBatch(given) {
    const { batch, time, floats, ids, past, actions, mask, reset, ...rest } = object(given, 'batch');
    const [memory, place] = [this.#memory, at(this, Trainer)];
    for (const name in rest) throw invalid(`${name}: a batch has no such field`);
    const rows = whole(batch, 1, 65536, 'batch') * whole(time, 1, 65536, 'time');
    const [F, K, A] = sizesOf(this.#spec);
    this.#slots ??= this.#use((model) => model.info().action_slots);
    const needed = (value, Type, width, what) => (width || value ? array(value, Type, rows * width, what) : new Type(0));
    const arrays = {
      floats: needed(floats, Float32Array, F, 'floats'),
      ids: needed(ids, Int32Array, K, 'ids'),
      past: needed(past, Int32Array, this.#slots * A, 'past'),
      actions: needed(actions, Int32Array, A, 'actions'),
      mask: mask === undefined ? new Float32Array(rows).fill(1) : needed(mask, Float32Array, 1, 'mask'),
      reset: reset === undefined ? new Uint8Array(rows) : needed(reset, Uint8Array, 1, 'reset'),
    };
    const frames = arrays.mask.reduce((sum, weight) => sum + (weight > 0), 0);
    return memory.within((room) => {
      const pointers = Object.fromEntries(Object.entries(arrays).map(([name, value]) => [name, memory.put(room, value, name)]));
      const told = memory.struct(room, 'metrics');
      memory.check('trainer_step_batch', place, memory.struct(room, 'batch', { batch, time, frames }, pointers), told);
      return memory.told(told, memory.structs.metrics);
    });
  }
  #use(body) {
    const model = this.model();
    try {
      return body(model);
    } finally {
      model.close();
    }
  }
  /** The weights as they are now, as a new model. */
  model(options = {}) {
    const { averaged = false } = object(options, 'options');
    const [memory, place] = [this.#memory, at(this, Trainer)];
    return new Model(key, memory, memory.make('trainer_model', place, averaged ? 1 : 0));
  }
  /** All that training goes on from, as bytes; resume() of a trainer that was made alike goes on from there, bit for bit. */
  save() {
    const place = at(this, Trainer);
    const save = (path) => this.#memory.check('trainer_save', place, path);
    return saved(this.#memory, 'trainer', Object.assign(save, { rest: '.optimizer' }));
  }
  resume(bytes) {
    const [memory, place] = [this.#memory, at(this, Trainer)];
    if (!(bytes instanceof Uint8Array)) throw invalid('bytes: must be a Uint8Array');
    memory.within((room) => {
      const file = memory.put(room, 'trainer.optimizer');
      try {
        memory.check('file_put', file, memory.put(room, bytes, 'a checkpoint'), bytes.length);
        memory.check('trainer_resume', place, memory.put(room, 'trainer'));
      } finally {
        memory.call('file_remove', file);
      }
    });
  }
  /** What improves by playing a world, by PPO: options { teacher, session, rollout, learner }. The trainer is then the learner's. */
  learner(world, options) {
    const [memory, place] = [this.#memory, at(this, Trainer)];
    const { teacher, session, rollout, learner, ...rest } = object(options, 'options');
    for (const name in rest) throw invalid(`${name}: there is no such option; there are teacher, session, rollout and learner`);
    World.place(world, memory);
    const teacherAt = teacher === undefined ? 0 : at(teacher, Model, memory, 'teacher');
    return this.#use((model) => memory.within((room) => {
      const streams = world.lanes * world.seats;
      const config = sessionConfig(memory, room, { ...object(session, 'session'), streams }, this.#spec.heads.length);
      const made = memory.make('rollout_create', at(model, Model), config, memory.struct(room, 'rollout_config', rollout));
      try {
        const place2 = memory.make('learner_create', place, teacherAt, memory.struct(room, 'learner_config', learner));
        return new Learner(key, memory, place2, made, world);
      } catch (error) {
        memory.end('rollout_destroy', made);
        throw error;
      }
    }));
  }
}

class Learner extends Handle {
  #memory;
  #rollout;
  #world;
  constructor(made, memory, place, rollout, world) {
    super(made, memory, place, () => {
      memory.end('learner_destroy', place);
      memory.end('rollout_destroy', rollout);
    });
    [this.#memory, this.#rollout, this.#world] = [memory, rollout, world];
  }
  /** Plays a chunk and learns from it; what came of it. */
  update() {
    const [memory, place] = [this.#memory, at(this, Learner)];
    memory.check('rollout_run', this.#rollout, World.place(this.#world));
    return memory.within((room) => {
      const told = memory.struct(room, 'learner_metrics');
      memory.check('learner_update', place, this.#rollout, told);
      return memory.told(told, memory.structs.learner_metrics);
    });
  }
}

class World extends Handle {
  #memory;
  #room;
  #sizes;
  #inner;
  constructor(made, memory, place, inner) {
    const own = { room: [] };
    super(made, memory, place, () => {
      own.room.forEach((one) => memory.free(one));
      memory.end('world_destroy', place);
    });
    this.#memory = memory;
    this.#inner = inner; // they must live as long
    const read = (name, value) => Object.defineProperty(this, name, { enumerable: true, value });
    read('spec', frozen(toldSpec(memory, memory.call('world_spec', place))));
    const [F, K, A] = sizesOf(this.spec);
    const [lanes, seats, bytes] = [0, 1, 2].map((which) => memory.call('world_count', place, which));
    read('lanes', lanes);
    read('seats', seats);
    /** Of a game that is saved; 0: games cannot be saved. */
    read('stateBytes', bytes);
    const streams = lanes * seats;
    for (const size of [streams * F * 4, streams * K * 4, streams * A * 4, streams * 4, lanes, bytes]) own.room.push(memory.alloc(size, 'a world'));
    this.#room = own.room;
    /** What is known after the latest frame, of all lanes and seats; reward and end are of that frame. */
    read('floats', new Float32Array(streams * F));
    read('ids', new Int32Array(streams * K));
    read('reward', new Float32Array(streams));
    read('end', new Uint8Array(lanes));
    this.#sizes = [streams * F, streams * K, streams * lanes];
  }
  /** Its address, where all worlds of which it is made are still there. */
  static place(world, memory = undefined, what = 'world') {
    const place = at(world, World, memory, what);
    world.#inner.forEach((one) => World.place(one, memory, 'a world of which this one is made'));
    return place;
  }
  /** Of a call: its arrays are there, too, and not given away to a Worker. */
  #place() {
    if (this.floats.length !== this.#sizes[0] || this.ids.length !== this.#sizes[1] || this.reward.length * this.end.length !== this.#sizes[2])
      throw gone('world: its arrays were given away; give away copies');
    return World.place(this);
  }
  #done(code, what) {
    if (code) throw new ExphilError(`the world's ${what} failed with ${code}`, 'EXPHIL_E_IO', -3);
  }
  #lane(lane) {
    return whole(lane, 0, this.lanes - 1, 'lane');
  }
  #take(array, which, first, count) {
    const { f32, i32, u8 } = this.#memory.views;
    const [view, shift] = array instanceof Float32Array ? [f32, 2] : array instanceof Int32Array ? [i32, 2] : [u8, 0];
    array.set(view.subarray((this.#room[which] >> shift) + first, (this.#room[which] >> shift) + first + count), first);
  }
  /** Begins an episode, which is a function of the seed; without a lane, in all of them, with seeds one after the other. */
  reset(lane = undefined, seed = 0) {
    const place = this.#place();
    if (lane === undefined) {
      for (let one = 0; one < this.lanes; one++) this.reset(one, seed + one);
      return this;
    }
    const [F, K] = [(this.floats.length / this.lanes), (this.ids.length / this.lanes)];
    const [floats, ids] = this.#room;
    this.#lane(lane);
    this.#done(this.#memory.call('world_reset', place, lane, seedOf(seed), floats + lane * F * 4, ids + lane * K * 4), 'reset');
    this.#take(this.floats, 0, lane * F, F);
    this.#take(this.ids, 1, lane * K, K);
    return this;
  }
  /** One frame of all lanes: actions [lanes * seats, A]. A lane that has ended is reset before it is stepped again. */
  step(actions) {
    const [memory, place] = [this.#memory, this.#place()];
    const [floats, ids, room, reward, end] = this.#room;
    const [, , A] = sizesOf(this.spec);
    array(actions, Int32Array, this.lanes * this.seats * A, 'actions');
    this.#check(actions);
    memory.views.i32.set(actions, room >> 2);
    this.#done(memory.call('world_step', place, room, floats, ids, reward, end), 'step');
    [this.floats, this.ids, undefined, this.reward, this.end].forEach((array, i) => array && this.#take(array, i, 0, array.length));
    return this;
  }
  #check(actions) {
    const { heads } = this.spec;
    for (let i = 0; i < actions.length; i++) {
      const { name, kind, count } = heads[i % heads.length];
      const most = kind === 'categorical' ? count - 1 : 2 ** count - 1;
      if (actions[i] < 0 || actions[i] > most) throw invalid(`actions[${i}]: ${name} is ${actions[i]}, must be 0..${most}`);
    }
  }
  /** The game of a lane as bytes, and back. */
  save(lane = 0) {
    const [memory, place, there] = [this.#memory, this.#place(), this.#room[5]];
    if (!this.stateBytes) throw new ExphilError('games of this world cannot be saved', 'EXPHIL_E_UNSUPPORTED', -5);
    this.#done(memory.call('world_save', place, this.#lane(lane), there), 'save');
    return memory.views.u8.slice(there, there + this.stateBytes);
  }
  restore(lane, state) {
    const [memory, place, there] = [this.#memory, this.#place(), this.#room[5]];
    if (!this.stateBytes) throw new ExphilError('games of this world cannot be saved', 'EXPHIL_E_UNSUPPORTED', -5);
    memory.views.u8.set(array(state, Uint8Array, this.stateBytes, 'state'), there);
    this.#done(memory.call('world_load', place, this.#lane(lane), there), 'load');
  }
  /** Of against(): another policy in the place of an opponent (none: it stays), and what came of its episodes since the last call. */
  opponent(index, model = undefined) {
    const [memory, place] = [this.#memory, this.#place()];
    const modelAt = model === undefined ? 0 : at(model, Model, memory);
    return memory.within((room) => {
      const record = memory.struct(room, 'record');
      memory.check('world_opponent', place, whole(index, 0, 63, 'index'), modelAt, record);
      return memory.told(record, memory.structs.record);
    });
  }
  /** Of the drill: the frame after the latest step, and what its teacher presses next: { frame, teacher }. */
  drill(lane = 0) {
    const [memory, place] = [this.#memory, this.#place()];
    return memory.within((room) => {
      const [frame, pad] = [memory.struct(room, 'melee_frame'), memory.struct(room, 'pad')];
      if (memory.call('world_drill', place, this.#lane(lane), frame, pad)) throw invalid('this world is not the drill');
      return { frame: memory.told(frame, memory.structs.melee_frame), teacher: memory.told(pad, memory.structs.pad) };
    });
  }
}

export { Learner, Model, Play, Session, Trainer, World };
