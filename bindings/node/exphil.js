'use strict';
// libexphil for Node: models, sessions, datasets and trainers as classes over the addon. What fails throws an ExphilError with
// code "EXPHIL_E_...", status, nativeCode and the library's own sentence. Options are the fields of the C header's structures
// under their own names; the header is the manual. Objects may be closed early and in any order; else the collector ends them.

const addon = require('./exphil_addon.js');
const { room, step, melee } = require('./exphil_melee.js');
const { ExphilError, invalid, object, refuse, arrange, number, numbers } = require('./exphil_options.js');

// What the addon made, and nobody else can.
const makers = {
  Model: 'Model.load or Model.create',
  Session: 'session() of a model',
  Dataset: 'Dataset.create or Dataset.open',
  Trainer: 'Trainer.create',
};
class Handle {
  #raw;
  constructor(raw) {
    const Class = { Context, Model, Session, Dataset, Trainer }[addon.kind(raw)];
    if (!Class || !(this instanceof Class)) throw invalid(`${new.target.name}: is made by ${makers[new.target.name]}`);
    this.#raw = raw;
  }
  static raw(handle, Class) {
    if (!(handle instanceof Class && #raw in handle)) throw invalid(`${Class.name.toLowerCase()}: is closed, or is none`);
    return handle.#raw;
  }
  close() {
    addon.close(Handle.raw(this, Handle));
  }
}

const raw = (handle) => Handle.raw(handle, Handle);

/** The device, threads and memory that all other objects live on. Options: device, cpu_isa, backend_path, threads. */
class Context extends Handle {
  constructor(options) {
    super(addon.contextCreate(options));
  }
  /** Memory of this context and of all that lives on it. */
  memory() {
    return addon.contextMemory(raw(this));
  }
}

class Model extends Handle {
  /** source: a path, or the bytes of a weights file as Uint8Array. */
  static load(context, source) {
    return new Model(addon.modelLoad(Handle.raw(context, Context), source));
  }
  /** options: fields of exphil_model_config; spec as an object, type "f32" or "f64". */
  static create(context, options) {
    const { spec, ...fields } = numbers(options, 'options');
    return new Model(addon.modelCreate(Handle.raw(context, Context), fields, arrange(spec)));
  }
  info() {
    return addon.modelInfo(raw(this));
  }
  save(path) {
    addon.modelSave(raw(this), path);
  }
  /** kind: "int8" or "bf16". */
  quantize(kind) {
    return new Model(addon.modelQuantize(raw(this), number('type', kind)));
  }
  /** options: fields of exphil_session_config; heads as a list of { temperature, deterministic, press, release }. */
  session(options) {
    const { delay_frames: delay, mode, spec, heads, ...fields } = numbers(options, 'options');
    return new Session(addon.sessionCreate(raw(this), fields, delay, mode, arrange(spec), heads));
  }
}

function fixed(name) {
  throw invalid(`session.${name}: is the session's own, and cannot be replaced`);
}

class Session extends Handle {
  #room;
  constructor(made) {
    super(made);
    const info = this.info();
    const own = {
      /** Arrays of the right size, for whoever wants to use them. */
      floats: new Float32Array(info.streams * info.float_count),
      ids: new Int32Array(info.streams * info.id_count),
      actions: new Int32Array(info.streams * info.head_count),
      streams: info.streams,
      logitCount: info.logit_count,
      stateBytes: info.state_bytes,
    };
    for (const [name, value] of Object.entries(own))
      Object.defineProperty(this, name, { enumerable: true, get: () => value, set: () => fixed(name) });
  }
  /**
   * Melee: a frame in, a pad out; of several streams a list of frames, and of pads. A frame is an object with the fields of
   * exphil_melee_frame: players by port - 1, what is left out is not known.
   */
  step(frames) {
    const session = Handle.raw(this, Session);
    const own = this.#room ?? room(this.streams);
    this.#room = undefined; // a getter of a frame may step, too: it gets another
    const pads = step(session, own, frames);
    this.#room = own;
    return pads;
  }
  /**
   * floats [B,F] and ids [B,K] in, actions [B,A] out; noise [B,L] or none. Without floats and ids: the session's own arrays. One of
   * them left out would be an earlier frame's, and is refused.
   */
  stepRow(floats, ids, actions = this.actions, noise = undefined) {
    if (floats === undefined && ids === undefined) {
      floats = this.floats;
      ids = this.ids;
    }
    addon.stepRow(raw(this), floats, ids, actions, noise);
    return actions;
  }
  /** Logits of the last step of a stream. */
  logits(stream = 0, logits = new Float32Array(this.logitCount)) {
    addon.logits(raw(this), stream, logits);
    return logits;
  }
  /** A stream starts an episode; without a number, all do. */
  reset(stream = -1) {
    addon.reset(raw(this), stream);
  }
  /** What was really done instead of the newest decided action. */
  override(stream, action) {
    addon.override(raw(this), stream, action);
  }
  /** All that a stream's next step depends on, as a Uint8Array. */
  saveState(stream = 0, state = new Uint8Array(this.stateBytes)) {
    addon.saveState(raw(this), stream, state);
    return state;
  }
  restoreState(stream, state) {
    addon.restoreState(raw(this), stream, state);
  }
  /** A second session with the same model, configuration and state. */
  clone() {
    return new Session(addon.sessionClone(raw(this)));
  }
  info() {
    return addon.sessionInfo(raw(this));
  }
}

class Dataset extends Handle {
  /** spec: an object as Model.create takes it; none: Melee's. */
  static create(context, spec) {
    return new Dataset(addon.datasetCreate(Handle.raw(context, Context), arrange(spec)));
  }
  /** Opens a corpus file. */
  static open(context, path) {
    return new Dataset(addon.datasetOpen(Handle.raw(context, Context), path));
  }
  save(path) {
    addon.datasetSave(raw(this), path);
  }
  /** options: character, port, opponent_port, first_frame, last_frame. */
  addReplay(path, options) {
    return addon.addReplay(raw(this), path, options);
  }
  /** One episode: floats [T,F], ids [T,K], actions [T,A]. game: a number, or 64 bits as BigInt. */
  addRows(game, floats, ids, actions) {
    addon.addRows(raw(this), game, floats, ids, actions);
  }
  info() {
    return addon.datasetInfo(raw(this));
  }
}

// Node waits for its workers before it ends: runs under way are stopped by process.exit(). A thread of worker_threads that is
// terminated from outside hears nothing, and ends when its run does.
const running = new Set();
process.on('exit', () => running.forEach((trainer) => trainer.stop()));

class Trainer extends Handle {
  /** options: sampling, optimizer, trainer: fields of exphil_sampling, exphil_optimizer_config, exphil_trainer_config. */
  static create(model, dataset, options) {
    const { sampling, optimizer, trainer, ...rest } = object(options, 'options');
    refuse(rest, 'those of a trainer stand in sampling, optimizer or trainer');
    const handles = [Handle.raw(model, Model), Handle.raw(dataset, Dataset)];
    const groups = Object.entries({ sampling, optimizer, trainer }).map(([name, group]) => numbers(group, name));
    return new Trainer(addon.trainerCreate(...handles, ...groups));
  }
  /** One update, on this thread. */
  step() {
    return addon.trainerStep(raw(this));
  }
  /**
   * So many updates on a worker: a promise of the last one's metrics. onProgress hears of each in order; what it throws ends
   * the run, and is what the promise rejects with. Until it is done other calls throw EXPHIL_E_BUSY; stop() ends it after the
   * update under way.
   */
  train(updates, onProgress = () => {}) {
    if (typeof onProgress !== 'function') throw invalid('onProgress: must be a function');
    let thrown;
    const run = addon.trainerTrain(raw(this), updates, (metrics) => {
      if (thrown) return;
      try {
        onProgress(metrics);
      } catch (error) {
        thrown = { error };
        this.stop();
      }
    });
    running.add(this);
    return run.finally(() => {
      running.delete(this);
      if (thrown) throw thrown.error;
    });
  }
  stop() {
    addon.trainerStop(raw(this));
  }
  /** The weights as they are now as a new model. */
  model(options) {
    const { averaged = false, ...rest } = object(options, 'options');
    refuse(rest, 'model takes averaged');
    return new Model(addon.trainerModel(raw(this), averaged));
  }
  save(path) {
    addon.trainerSave(raw(this), path);
  }
  resume(path) {
    addon.trainerResume(raw(this), path);
  }
  /** How well the weights as they are now predict a dataset. */
  evaluate(dataset) {
    return addon.trainerEvaluate(raw(this), Handle.raw(dataset, Dataset));
  }
}

/** "0.2.0 cpu:ref,avx2,avx512" */
const version = () => addon.version();

module.exports = { Context, Model, Session, Dataset, Trainer, ExphilError, melee, version };
