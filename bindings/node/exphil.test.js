'use strict';
// Tests of the addon: node --test, with $EXPHIL_TRACE (what tests/hosts/trace.c makes) and, if there are any, $EXPHIL_REPLAYS.

const test = require('node:test');
const assert = require('node:assert');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const v8 = require('node:v8');
const vm = require('node:vm');
const addon = require('./exphil_addon.js');
const { Context, Model, Session, Dataset, Trainer, ExphilError, version } = require('./exphil.js');

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'exphil-node-'));
process.on('exit', () => fs.rmSync(scratch, { recursive: true }));

const spec = {
  layout: 'pong',
  codec: 'pad',
  floats: 3,
  ids: [{ name: 'side', entries: 2, width: 4 }],
  heads: [
    { name: 'stick', kind: 'categorical', count: 3, neutral: 1 },
    { name: 'buttons', kind: 'bernoulli', count: 2 },
  ],
};

const pong = (context) => Model.create(context, { spec, blocks: 'gru mlp', hidden: 16, head_width: 16, seed: 7n });

function games(context) {
  const dataset = Dataset.create(context, spec);
  for (let game = 0; game < 3; game++) {
    const [floats, ids, actions] = [new Float32Array(600), new Int32Array(200), new Int32Array(400)];
    for (let t = 0; t < 200; t++) {
      const swing = (((t + game) % 20) - 10) / 10;
      floats.set([swing, 1 - swing, 0.5], 3 * t);
      actions[2 * t] = swing < -0.3 ? 0 : swing > 0.3 ? 2 : 1;
    }
    dataset.addRows(game, floats, ids, actions);
  }
  return dataset;
}

const trainer = (context) =>
  Trainer.create(pong(context), games(context), { sampling: { batch: 4, time: 20, seed: 3 }, optimizer: { rate: 1e-2 } });

const fails = (work, code, word) =>
  assert.throws(work, (error) => {
    assert.ok(error instanceof ExphilError && error instanceof Error);
    assert.strictEqual(String(error), `ExphilError: ${error.message}`);
    assert.strictEqual(error.code, code, error.message);
    assert.match(error.message, word);
    return error.status < 0;
  });

test('training runs on a worker and tells its progress', async () => {
  const context = new Context({ threads: 1 });
  const [work, dataset] = [trainer(context), games(context)];
  const seen = [];
  let turns = 0;
  const ticks = setInterval(() => turns++, 1).unref();
  const promise = work.train(400, (metrics) => seen.push(metrics));
  for (const call of ['step', 'model', 'save', 'resume', 'evaluate']) fails(() => work[call](dataset), 'EXPHIL_E_BUSY', /await/);
  fails(() => work.train(1), 'EXPHIL_E_BUSY', /await/);
  fails(() => work.close(), 'EXPHIL_E_BUSY', /await/);
  const last = await promise;
  clearInterval(ticks);
  assert.strictEqual(last.update, 400);
  assert.ok(turns > 0, 'the event loop went on');
  assert.deepStrictEqual(seen.map((metrics) => metrics.update), Array.from({ length: 400 }, (_, i) => i + 1));
  assert.ok(last.loss < 0.5 * seen[0].loss);
  const report = work.evaluate(dataset);
  assert.ok(report.exact_accuracy > report.exact_majority);
  assert.strictEqual(work.model().info().trained_updates, 400);
});

test('a run is stopped, saved and resumed to the last bit', async () => {
  const context = new Context({ threads: 1 });
  const [straight, first, second] = [trainer(context), trainer(context), trainer(context)];
  await straight.train(10);
  await first.train(5);
  const file = path.join(scratch, 'resume');
  first.save(file);
  second.resume(file);
  await second.train(5);
  assert.strictEqual(second.model().info().weights_hash, straight.model().info().weights_hash);
  const stopped = await first.train(1e9, (metrics) => metrics.update === 8 && first.stop());
  assert.ok(stopped.update >= 8 && stopped.update < 1e9);
  assert.strictEqual(first.step().update, stopped.update + 1);
});

test('a failed run rejects', async () => {
  const context = new Context({ threads: 1 });
  const file = path.join(scratch, 'damaged');
  games(context).save(file);
  const bytes = fs.readFileSync(file);
  bytes[bytes.length >> 1] ^= 1; // found when the rows are first used
  fs.writeFileSync(file, bytes);
  const work = Trainer.create(pong(context), Dataset.open(context, file), { sampling: { batch: 2, time: 20 } });
  await assert.rejects(work.train(100), { code: 'EXPHIL_E_FORMAT' });
  work.close();
  fails(() => work.train(1), 'EXPHIL_E_INVALID', /trainer: is closed/);
});

test('a program may end during a run', () => {
  const program = `
    const { Context, Dataset, Model, Trainer } = require(${JSON.stringify(require.resolve('./exphil.js'))});
    const spec = { layout: 'a', codec: 'b', floats: 1, heads: [{ name: 'x', kind: 'categorical', count: 3 }] };
    const context = new Context({ threads: 1 });
    const dataset = Dataset.create(context, spec);
    dataset.addRows(1, new Float32Array(200), undefined, new Int32Array(200));
    const model = Model.create(context, { spec, blocks: 'mlp', hidden: 8, head_width: 8 });
    Trainer.create(model, dataset, { sampling: { batch: 2, time: 10 } }).train(1e12, () => process.exit(3));`;
  const ended = childProcess.spawnSync(process.execPath, ['-e', program], { timeout: 300000 });
  assert.strictEqual(ended.status, 3, String(ended.stderr));
});

test('what a listener throws ends the run', async () => {
  const context = new Context({ threads: 1 });
  const work = trainer(context);
  for (const thrown of [new Error('of the listener'), undefined]) {
    let heard = 0;
    const begun = work.step().update;
    const run = work.train(1e9, () => {
      heard++;
      throw thrown;
    });
    assert.deepStrictEqual(await run.then(() => assert.fail('resolved'), (error) => [error]), [thrown]);
    assert.strictEqual(heard, 1);
    const { update } = work.step();
    assert.ok(update > begun + 1 && update < 1e9);
  }
  await assert.rejects(work.train(1, () => { throw new Error('of the last'); }), /of the last/);
  for (const wrong of [5, null, {}]) fails(() => work.train(1, wrong), 'EXPHIL_E_INVALID', /^onProgress: must be a function/);
  assert.ok((await work.train(1)).update);
});

test('averaged weights are other weights', () => {
  const context = new Context({ threads: 1 });
  const options = { sampling: { batch: 4, time: 20 }, optimizer: { rate: 1e-2, ema_decay: 0.9 } };
  const work = Trainer.create(pong(context), games(context), options);
  const hash = (averaged) => work.model(averaged).info().weights_hash;
  assert.strictEqual(hash({ averaged: true }), hash());
  for (let i = 0; i < 5; i++) work.step();
  assert.strictEqual(hash({ averaged: false }), hash());
  assert.notStrictEqual(hash({ averaged: true }), hash());
  assert.strictEqual(hash({ averaged: 1 }), hash({ averaged: true }));
  fails(() => hash({ averaged: 'yes' }), 'EXPHIL_E_INVALID', /^averaged: must be a boolean/);
});

// Objects that nobody holds any more are destroyed by the collector: what they took is given back.
test('collected objects are destroyed', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  const context = new Context({ threads: 1 });
  const used = () => context.memory().host_used_bytes;
  const settle = async () => {
    for (let i = 0; i < 4; i++) {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const make = {
    model: () => pong(context),
    session: () => pong(context).session(),
    dataset: () => games(context),
    trainer: () => trainer(context),
  };
  for (const [name, work] of Object.entries(make)) {
    await settle();
    const before = used();
    for (let i = 0; i < 20; i++) work();
    const taken = used() - before;
    assert.ok(taken > 20000, name);
    await settle();
    assert.ok(used() - before < taken / 4, `${name}: ${used() - before} of ${taken} bytes are left`);
  }
});

// A run keeps its trainer, whoever else has let go of it. By the addon, for exphil.js keeps one, too.
test('a run keeps its trainer', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  const begin = (heard) => {
    const kept = addon.contextCreate({ threads: 1 });
    const fields = { layout: 'a', codec: 'b', float_count: 1 };
    const own = { fields, ids: [], heads: [{ name: 'x', kind: 1, count: 3 }] };
    const dataset = addon.datasetCreate(kept, own);
    addon.addRows(dataset, 1, new Float32Array(200), undefined, new Int32Array(200));
    const model = addon.modelCreate(kept, { blocks: 'mlp', hidden: 8, head_width: 8 }, own);
    return addon.trainerTrain(addon.trainerCreate(model, dataset, { batch: 2, time: 10 }), 2000, heard);
  };
  let updates = 0;
  const run = begin(() => ++updates % 100 === 1 && collect());
  assert.strictEqual((await run).update, 2000);
  assert.strictEqual(updates, 2000);
});

// The collector sees only small externals: it is told of the memory behind them, and so comes in time.
test('the collector knows how large objects are', async () => {
  const large = (context) => Model.create(context, { spec, blocks: 'gru', hidden: 256, head_width: 64 });
  const rows = [new Float32Array(9e5), new Int32Array(3e5), new Int32Array(6e5)];
  const make = {
    sessions: (context) => large(context).session({ streams: 512 }).clone(),
    datasets: (context) => Dataset.create(context, spec).addRows(1, ...rows),
    trainers: (context) => Trainer.create(large(context), games(context), { sampling: { batch: 4, time: 20 } }).step(),
  };
  for (const [name, work] of Object.entries(make)) {
    const context = new Context({ threads: 1 });
    let taken = 0; // if nothing came back
    while (taken < 300e6) {
      const before = context.memory().host_used_bytes;
      work(context);
      taken += context.memory().host_used_bytes - before;
      await new Promise((resolve) => setImmediate(resolve)); // Node finalizes between two turns
    }
    const { host_peak_bytes: peak } = context.memory();
    assert.ok(peak < taken / 2, `${name}: ${peak} of ${taken} bytes were taken at once`);
  }
});

test('rollback is a copy', () => {
  const session = pong(new Context()).session({ seed: 5 });
  const play = (who) => Array.from({ length: 50 }, (_, t) => ((who.floats[0] = t / 50), who.stepRow().join()));
  play(session);
  const [state, twin] = [session.saveState(), session.clone()];
  const once = play(session);
  session.restoreState(0, state);
  assert.deepStrictEqual(play(session), once);
  assert.deepStrictEqual(play(twin), once);
  assert.strictEqual(session.info().steps, 150);
  state[9] ^= 255;
  fails(() => session.restoreState(0, state), 'EXPHIL_E_MISMATCH', /./);
});

test('each stream has a state of its own', () => {
  const session = pong(new Context({ threads: 1 })).session({ seed: 5, streams: 2 });
  const play = () => Array.from({ length: 30 }, (_, t) => (session.floats.fill(t / 30), Array.from(session.stepRow())));
  const of = (stream, rows) => rows.map((row) => row.slice(2 * stream, 2 * stream + 2));
  play();
  const state = session.saveState(1);
  const [once, first] = [of(1, play()), session.saveState(0)];
  session.restoreState(1, state);
  assert.deepStrictEqual(session.saveState(0), first);
  assert.deepStrictEqual(session.saveState(1), state);
  assert.deepStrictEqual(of(1, play()), once);
});

// The numbers that a decision is drawn with are the caller's, and no longer the seed's.
test('noise decides', () => {
  const model = pong(new Context({ threads: 1 }));
  const play = (seed, noise) => {
    const session = model.session({ seed });
    return Array.from({ length: 30 }, (_, t) => Array.from(session.stepRow(undefined, undefined, undefined, noise?.(t))));
  };
  const noise = (t) => Float32Array.from({ length: 5 }, (_, i) => (1 + ((7 * t + 3 * i) % 11)) / 13);
  assert.notDeepStrictEqual(play(1), play(2));
  assert.deepStrictEqual(play(1, noise), play(2, noise));
  assert.notDeepStrictEqual(play(1, noise), play(1, (t) => noise(t + 1)));
});

test('wrong rows are refused', () => {
  const session = pong(new Context()).session({ deterministic: true });
  const step = (...rows) => () => session.stepRow(...rows);
  const ids = new Int32Array(1);
  fails(step(new Float32Array(2), ids), 'EXPHIL_E_INVALID', /floats: is Float32Array of 2, must be a Float32Array of 3/);
  fails(step(new Float64Array(3), ids), 'EXPHIL_E_INVALID', /floats: is Float64Array of 3/);
  fails(step([1, 2, 3]), 'EXPHIL_E_INVALID', /floats: is Array of 3/);
  fails(step('text'), 'EXPHIL_E_INVALID', /floats: is string/);
  fails(step(Object.create(null)), 'EXPHIL_E_INVALID', /floats: is object/);
  assert.throws(step({ get length() { throw new Error('of the getter'); } }), /of the getter/);
  fails(step(new Float32Array(3), new Int32Array(0)), 'EXPHIL_E_INVALID', /^ids: is Int32Array of 0/);
  fails(step(new Float32Array(3)), 'EXPHIL_E_INVALID', /^ids: is undefined, must be an Int32Array of 1/);
  fails(step(undefined, ids), 'EXPHIL_E_INVALID', /^floats: is undefined, must be a Float32Array of 3/);
  for (const name of ['floats', 'ids', 'actions', 'streams', 'logitCount', 'stateBytes']) {
    const was = session[name];
    fails(() => (session[name] = name === 'streams' ? 5 : [1, 2, 3]), 'EXPHIL_E_INVALID', new RegExp(`^session\\.${name}: is the session's own`));
    assert.strictEqual(session[name], was);
  }
  fails(step(undefined, undefined, new Int32Array(3)), 'EXPHIL_E_INVALID', /actions/);
  fails(step(undefined, undefined, undefined, new Float32Array(1)), 'EXPHIL_E_INVALID', /noise/);
  fails(() => session.logits(0, new Float32Array(4)), 'EXPHIL_E_INVALID', /logits/);
  fails(() => session.reset(7), 'EXPHIL_E_INVALID', /stream/);
  fails(() => session.reset('x'), 'EXPHIL_E_INVALID', /stream/);
  fails(() => session.logits(NaN), 'EXPHIL_E_INVALID', /stream/);
  fails(() => session.override(0, new Int32Array(1)), 'EXPHIL_E_INVALID', /action/);
  fails(() => session.restoreState(0, new Uint8Array(3)), 'EXPHIL_E_INVALID', /state/);
  fails(step(new Float32Array([0, NaN, 0]), ids), 'EXPHIL_E_NUMERIC', /./);
  const detached = new Float32Array(3);
  structuredClone(detached, { transfer: [detached.buffer] });
  fails(step(detached), 'EXPHIL_E_INVALID', /floats/);
  session.stepRow(undefined, undefined, undefined, new Float32Array(5).fill(0.5));
  assert.ok(session.logits().every(Number.isFinite));
});

test('wrong files and settings are refused', () => {
  const context = new Context();
  const file = path.join(scratch, 'garbage');
  fs.writeFileSync(file, Buffer.alloc(4096, 255));
  fails(() => Model.load(context, file), 'EXPHIL_E_FORMAT', /./);
  fails(() => Model.load(context, fs.readFileSync(file)), 'EXPHIL_E_FORMAT', /./);
  fails(() => Model.load(context, new Uint8Array(0)), 'EXPHIL_E_INVALID', /data/);
  fails(() => Model.load(context, new Float32Array(9)), 'EXPHIL_E_INVALID', /Uint8Array/);
  fails(() => Dataset.open(context, file), 'EXPHIL_E_FORMAT', /./);
  fails(() => Dataset.create(context).addReplay(file), 'EXPHIL_E_FORMAT', /./);
  fails(() => Model.load(context, '/nowhere'), 'EXPHIL_E_IO', /nowhere/);
  fails(() => Model.load(context, 'a\0b'), 'EXPHIL_E_INVALID', /NUL/);
  fails(() => Model.load(context, 5), 'EXPHIL_E_INVALID', /path/);
  fails(() => Model.create(context, { hiden: 8 }), 'EXPHIL_E_INVALID', /hiden/);
  fails(() => Model.create(context, { hidden: 1e300 }), 'EXPHIL_E_INVALID', /hidden/);
  fails(() => Model.create(context, { hidden: 1.5 }), 'EXPHIL_E_INVALID', /hidden/);
  fails(() => Model.create(context, { hidden: 'x' }), 'EXPHIL_E_INVALID', /hidden/);
  fails(() => Model.create(context, { seed: 2n ** 64n }), 'EXPHIL_E_INVALID', /seed/);
  fails(() => Model.create(context, { blocks: 'gru (' }), 'EXPHIL_E_INVALID', /blocks/);
  fails(() => Model.create(context, { type: 'f31' }), 'EXPHIL_E_INVALID', /type/);
  fails(() => Model.create(context, { spec: { ...spec, heads: new Array(99).fill(spec.heads[0]) } }), 'EXPHIL_E_INVALID', /heads/);
  fails(() => Model.create(context, { spec: { ...spec, heads: [{ kind: 'maybe' }] } }), 'EXPHIL_E_INVALID', /maybe/);
  fails(() => new Context({ device: 'abacus' }), 'EXPHIL_E_INVALID', /device/);
  const model = pong(context);
  fails(() => model.session({ streams: -1 }), 'EXPHIL_E_INVALID', /streams/);
  fails(() => model.session({ delay_frames: 3 }), 'EXPHIL_E_MISMATCH', /delay/);
  fails(() => model.quantize('int3'), 'EXPHIL_E_INVALID', /int3/);
  assert.strictEqual(model.quantize('int8').info().weights, 3);
  fails(() => Trainer.create(model, Dataset.create(context)), 'EXPHIL_E_INVALID', /sample/);
  const add = (...rows) => () => games(context).addRows(9, ...rows);
  fails(add(new Float32Array(3), new Int32Array(1), new Int32Array(3)), 'EXPHIL_E_INVALID', /actions: has 3 elements, .* of 2/);
  fails(add([1, 2, 3], [0], [0, 0]), 'EXPHIL_E_INVALID', /actions: is Array of 2, must be an Int32Array$/);
  fails(add([1, 2, 3], [0], new Int32Array(2)), 'EXPHIL_E_INVALID', /floats: is Array of 3, must be a Float32Array of 3/);
  fails(() => trainer(context).resume('/nowhere'), 'EXPHIL_E_IO', /nowhere/);
});

test('options are taken or refused by name', () => {
  const context = new Context();
  const model = pong(context);
  const create = (options) => Trainer.create(model, games(context), options);
  fails(() => create({ rate: 0.5 }), 'EXPHIL_E_INVALID', /^rate: there is no such option; .*optimizer/);
  fails(() => create({ optimiser: { rate: 0.5 } }), 'EXPHIL_E_INVALID', /optimiser/);
  fails(() => create({ optimizer: { rat: 0.5 } }), 'EXPHIL_E_INVALID', /rat:/);
  assert.strictEqual(create({ optimizer: { rate: 0.5 }, sampling: { batch: 4, time: 20 } }).step().rate, 0.5);
  fails(() => create({}).model({ average: true }), 'EXPHIL_E_INVALID', /average: /);
  fails(() => model.session({ sed: 1 }), 'EXPHIL_E_INVALID', /sed: /);
  for (const name of ['constructor', 'toString', 'streams\0evil'])
    fails(() => model.session({ [name]: 'x' }), 'EXPHIL_E_INVALID', /: there is no such option/);
  fails(() => create({ sampling: { 'batch\0evil': 4 } }), 'EXPHIL_E_INVALID', /^batch: there is no such option/);
  const { floats, ...same } = spec;
  model.session({ spec: { ...same, float_count: floats }, mode: 0, delay_frames: 0, heads: [{ temperature: 0.5 }, { press: 0.6 }] }).stepRow();
  fails(() => model.session({ spec: { ...spec, floats: 4 } }), 'EXPHIL_E_MISMATCH', /the host gives pong/);
  fails(() => model.session({ spec: { ...spec, float_count: 4 } }), 'EXPHIL_E_INVALID', /float_count/);
  fails(() => model.session({ spec: { ...spec, flots: 4 } }), 'EXPHIL_E_INVALID', /flots/);
  fails(() => model.session({ mode: 1 }), 'EXPHIL_E_MISMATCH', /mode/);
  fails(() => model.session({ mode: 'carried' }), 'EXPHIL_E_INVALID', /^mode: carried is none of carry, window$/);
  fails(() => model.session({ mode: 'window' }), 'EXPHIL_E_MISMATCH', /mode/);
  model.session({ mode: 'carry', deliver: 'decided' }).stepRow();
  fails(() => model.session({ heads: [{}] }), 'EXPHIL_E_INVALID', /heads: has 1 entries, the model has 2/);
  fails(() => model.session({ heads: [{ temprature: 1 }, {}] }), 'EXPHIL_E_INVALID', /temprature/);
  const sure = model.session({ heads: [{ deterministic: true }, { deterministic: 1 }], seed: 1 });
  const other = model.session({ deterministic: true, seed: 2 });
  for (let t = 0; t < 20; t++) assert.deepStrictEqual(sure.stepRow(), other.stepRow());
});

// Every number option that C holds as an integer, with what does not fit it.
test('whole numbers are never cut', () => {
  const context = new Context({ threads: 1 });
  const [model, dataset, work] = [pong(context), games(context), trainer(context)];
  const session = model.session({ streams: 2 });
  const rows = [new Float32Array(3), new Int32Array(1), new Int32Array(2)];
  const own = (list, name) => (value) => Model.create(context, { spec: { ...spec, [list]: [{ ...spec[list][0], [name]: value }] } });
  const of = (make, names, ...range) => names.map((name) => [name, (value) => make({ [name]: value }), ...range]);
  const create = (group) => (options) => Trainer.create(model, dataset, { [group]: options });
  const [i32, i64, u64] = [[-(2 ** 31), 2 ** 31 - 1], [-(2 ** 53) + 1, 2 ** 53 - 1], [0, 2 ** 53 - 1]];
  const cases = [
    ...of((options) => new Context(options), ['threads'], ...i32),
    ...of((options) => new Context(options), ['memory_limit_bytes'], ...u64),
    ...of((options) => Model.create(context, options), ['hidden', 'head_width', 'mamba_states', 'mamba_expand', 'mamba_taps',
      'mamba_rank', 'attention_heads', 'attention_dim', 'attention_window_frames', 'ffn_expand', 'window_frames'], ...i64),
    ...of((options) => Model.create(context, options), ['delay_frames', 'no_previous_action', 'mode', 'heads'], ...i32),
    ...of((options) => Model.create(context, options), ['seed'], ...u64),
    ['float_count', (value) => Model.create(context, { spec: { ...spec, floats: value } }), ...i64],
    ['layout_hash', (value) => Model.create(context, { spec: { ...spec, layout_hash: value } }), ...u64],
    ...['entries', 'width'].map((name) => [name, own('ids', name), ...i32]),
    ...['count', 'neutral'].map((name) => [name, own('heads', name), ...i32]),
    ...of((options) => model.session(options), ['streams', 'deadline_ns'], ...i64),
    ...of((options) => model.session(options), ['deterministic', 'deliver', 'delay_frames', 'mode'], ...i32),
    ...of((options) => model.session(options), ['seed'], ...u64),
    ...of((head) => model.session({ heads: [head, {}] }), ['deterministic'], ...i32),
    ['stream', (value) => session.logits(value), ...i64],
    ['stream', (value) => session.reset(value), ...i64],
    ['stream', (value) => session.override(value, new Int32Array(2)), ...i64],
    ['stream', (value) => session.saveState(value), ...i64],
    ['stream', (value) => session.restoreState(value, session.saveState()), ...i64],
    ['game', (value) => dataset.addRows(value, ...rows), ...u64],
    ...of((options) => dataset.addReplay('none', options), ['port', 'opponent_port', 'first_frame', 'last_frame'], ...i32),
    ...of(create('sampling'), ['batch', 'time', 'stride', 'segment_frames'], ...i64),
    ...of(create('sampling'), ['in_order', 'last_only', 'buffers'], ...i32),
    ...of(create('sampling'), ['seed'], ...u64),
    ...of(create('optimizer'), ['warmup_updates', 'total_updates', 'restart_updates'], ...i64),
    ...of(create('optimizer'), ['schedule'], ...i32),
    ...of(create('trainer'), ['accumulate'], ...i64),
    ...of(create('trainer'), ['precision', 'activations', 'fake_quantize', 'checkpoint_blocks'], ...i32),
    ['updates', (value) => work.train(value), ...i64],
    ['averaged', (value) => work.model({ averaged: value }), ...i32],
  ];
  const before = dataset.info().episodes;
  for (const [name, call, low, high] of cases) {
    const sentence = (value) => new RegExp(`^${name}: is ${String(value).replace('Infinity', 'inf')}, must be a whole number` +
      `${Math.abs(value) === Infinity || value < low ? ` from ${low} to ${high}` : ''}$`);
    for (const value of [0.5, 1.5, NaN, Infinity, -Infinity]) fails(() => call(value), 'EXPHIL_E_INVALID', sentence(value));
    for (const value of [low - 1, high + 1, 2 ** 64]) fails(() => call(value), 'EXPHIL_E_INVALID', new RegExp(`^${name}: is .*, must be a whole number`));
    for (const value of ['1', {}, Symbol('1')]) fails(() => call(value), 'EXPHIL_E_INVALID', new RegExp(`^${name}: (must be a |1 is none of )`));
    if (low || high === 2 ** 31 - 1) fails(() => call(1n), 'EXPHIL_E_INVALID', new RegExp(`^${name}: must be a `));
    else for (const value of [-1n, 2n ** 64n]) fails(() => call(value), 'EXPHIL_E_INVALID', new RegExp(`^${name}: must fit into 64 bits`));
  }
  for (const name of ['hidden', 'delay_frames']) fails(() => Model.create(context, { [name]: true }), 'EXPHIL_E_INVALID', new RegExp(`^${name}: must be a number`));
  fails(() => work.train(0), 'EXPHIL_E_INVALID', /^updates: must be at least 1/);
  for (const value of [2, -2, 2 ** 53 - 1]) fails(() => session.logits(value), 'EXPHIL_E_INVALID', /stream/);
  assert.strictEqual(dataset.info().episodes, before);
  dataset.addRows(2n ** 64n - 1n, ...rows); // games are hashes of 64 bits
});

// The header's enumerations in full, name by name in the order of their numbers.
test('enumerations are taken by name', () => {
  const context = new Context({ threads: 1 });
  const small = { spec, blocks: 'gru', hidden: 8, head_width: 8 };
  const create = (group) => (options) => Trainer.create(pong(context), games(context), { [group]: options });
  const cases = [
    ['mode', (options) => Model.create(context, { ...small, ...options }).info().mode, ['carry', 'window']],
    ['heads', (options) => Model.create(context, { ...small, ...options }).info().heads, ['independent', 'autoregressive']],
    ['type', (options) => Model.create(context, { ...small, ...options }).info().type, ['f32', 'f64']],
  ];
  for (const [name, take, names] of cases) names.forEach((word, number) => assert.strictEqual(take({ [name]: word }), number, word));
  const rate = (schedule) => {
    const work = create('optimizer')({ schedule, rate: 1, total_updates: 8, restart_updates: 2 });
    return Array.from({ length: 4 }, () => work.step().rate.toFixed(3)).join();
  };
  assert.deepStrictEqual(['constant', 'cosine', 'restarts'].map(rate), [0, 1, 2].map(rate));
  assert.strictEqual(new Set(['constant', 'cosine', 'restarts'].map(rate)).size, 3);
  const after = (options) => {
    const work = create('trainer')(options);
    work.step();
    return work.model().info().weights_hash;
  };
  for (const [name, word, number] of [['activations', 'bf16', 2], ['fake_quantize', 'int8', 3], ['fake_quantize', 'bf16', 2], ['precision', 'f32', 0]])
    assert.strictEqual(after({ [name]: word }), after({ [name]: number }), word);
  assert.notStrictEqual(after({ fake_quantize: 'int8' }), after({ fake_quantize: 'bf16' }));
  for (const word of ['tf32', 'bf16', 'f16']) fails(() => create('trainer')({ precision: word }), 'EXPHIL_E_UNSUPPORTED', /./);
  fails(() => create('optimizer')({ schedule: 'cosin' }), 'EXPHIL_E_INVALID', /^schedule: cosin is none of constant, cosine, restarts$/);
  fails(() => pong(context).quantize(), 'EXPHIL_E_INVALID', /^type: must be/);
});

test('an addon that is not built says how', () => {
  for (const file of ['exphil.js', 'exphil_addon.js', 'exphil_melee.js', 'exphil_options.js'])
    fs.copyFileSync(path.join(__dirname, file), path.join(scratch, file));
  assert.throws(() => require(path.join(scratch, 'exphil.js')), /^Error: exphil\.node is not built: run sh '.*build_addon\.sh'$/);
});

test('counts of a spec are honoured or refused', () => {
  const context = new Context({ threads: 1 });
  const create = (rest) => Model.create(context, { spec: { ...spec, ...rest }, blocks: 'mlp', hidden: 8, head_width: 8 });
  const told = create({ floats: undefined, float_count: 4, id_count: 1, head_count: 2 }).info();
  assert.deepStrictEqual([told.float_count, told.id_count, told.head_count], [4, 1, 2]);
  for (const [name, count] of [['float_count', 3], ['id_count', 1], ['head_count', 2]])
    for (const value of [count + 1, 0, NaN, String(count), null, Symbol.iterator])
      fails(() => create({ [name]: value }), 'EXPHIL_E_INVALID', new RegExp(`^spec\\.${name}: is ${String(value).replace(/[()]/g, '.')}, must be ${count}, or left out$`));
  fails(() => Dataset.create(context, { ...spec, float_count: 9 }), 'EXPHIL_E_INVALID', /^spec\.float_count/);
  fails(() => create({ ids: { length: 1 } }), 'EXPHIL_E_INVALID', /^spec\.ids: must be an array/);
  fails(() => create({ heads: [{ ...spec.heads[0], reserved: 1 }] }), 'EXPHIL_E_INVALID', /^reserved: there is no such option/);
  for (const value of [5, 'x', true, []]) {
    fails(() => Model.create(context, value), 'EXPHIL_E_INVALID', /^options: must be an object/);
    fails(() => create().session(value), 'EXPHIL_E_INVALID', /^options: must be an object/);
    fails(() => create({ heads: [value] }), 'EXPHIL_E_INVALID', /^spec.heads: must be an object/);
  }
});

// No compiler of types is asked for: names are compared, and that what info() tells is declared.
test('the types name what there is', () => {
  const types = fs.readFileSync(path.join(__dirname, 'exphil.d.ts'), 'utf8');
  const own = (object, but) => Object.getOwnPropertyNames(object).filter((name) => !but.includes(name));
  for (const Class of [Context, Model, Session, Dataset, Trainer]) {
    const [, body] = types.match(new RegExp(`^export class ${Class.name} extends Handle {\n([^]*?)^}`, 'm'));
    const declared = (start) => [...body.matchAll(new RegExp(`^  ${start}(\\w+)\\(`, 'gm'))].map((match) => match[1]).filter((name, i, all) => name !== all[i - 1]); // overloads
    assert.deepStrictEqual(declared('static '), own(Class, ['length', 'name', 'prototype']), Class.name);
    assert.deepStrictEqual(own(Class.prototype, ['constructor']), declared('(?!constructor)'), Class.name);
  }
  const context = new Context();
  const work = trainer(context);
  const model = pong(context);
  const takes = {
    ContextOptions: (options) => new Context(options), ModelOptions: (options) => Model.create(context, options),
    SessionOptions: (options) => model.session(options), ReplayOptions: (options) => games(context).addReplay('none', options),
    ...Object.fromEntries(['sampling', 'optimizer', 'trainer'].map((group) =>
      [group, (options) => Trainer.create(model, games(context), { [group]: options })])),
  };
  for (const [name, take] of Object.entries(takes)) {
    const [, body] = types.match(new RegExp(`(?:^export interface |^  )${name}\\??:? {\n([^]*?)^ *}`, 'm'));
    const names = [...body.matchAll(/^ +(\w+)\?: /gm)].map((match) => match[1]);
    assert.ok(names.length > 3, name);
    for (const option of names) fails(() => take({ [option]: Symbol(option) }), 'EXPHIL_E_INVALID', /: (?!there is no such option)/);
  }
  const told = { MemoryInfo: context.memory(), Metrics: work.step(), ModelInfo: work.model().info(), SessionInfo: work.model().session().info(),
    DatasetInfo: games(context).info(), Report: work.evaluate(games(context)) };
  for (const [name, object] of Object.entries(told)) {
    const [, body] = types.match(new RegExp(`^export type ${name} = Info<([^]*?)>;`, 'm'));
    assert.deepStrictEqual([...body.matchAll(/'(\w+)'/g)].map((match) => match[1]).sort(), Object.keys(object).sort(), name);
  }
});

test('closed and foreign objects are refused, in any order', () => {
  const context = new Context();
  const [model, dataset, work] = [pong(context), games(context), trainer(context)];
  const session = model.session();
  for (const object of [context, model, model, dataset]) object.close();
  session.stepRow();
  work.step();
  session.close();
  fails(() => session.stepRow(), 'EXPHIL_E_INVALID', /session: is closed/);
  fails(() => session.clone(), 'EXPHIL_E_INVALID', /session: is closed/);
  fails(() => model.info(), 'EXPHIL_E_INVALID', /model: is closed/);
  fails(() => dataset.info(), 'EXPHIL_E_INVALID', /dataset: is closed/);
  fails(() => Model.load(context, 'x'), 'EXPHIL_E_INVALID', /context: is closed/);
  fails(() => Model.load(model, 'x'), 'EXPHIL_E_INVALID', /context: is closed, or is none/);
  fails(() => Trainer.create(work, dataset), 'EXPHIL_E_INVALID', /model/);
  fails(() => new Session({}), 'EXPHIL_E_INVALID', /^Session: is made by session\(\) of a model/);
  fails(() => new Model(), 'EXPHIL_E_INVALID', /^Model: is made by Model\.load or Model\.create/);
  fails(() => new Dataset(new Context()), 'EXPHIL_E_INVALID', /^Dataset: is made by Dataset\.create or Dataset\.open/);
  fails(() => new Trainer(7), 'EXPHIL_E_INVALID', /^Trainer: is made by Trainer\.create/);
  for (let i = 0; i < 200; i++) pong(new Context({ threads: 1 })).session().stepRow();
});

const foreign = process.env.EXPHIL_FOREIGN; // an addon with objects of its own: tests/hosts/node.sh
test('objects of other addons are never read', { skip: !foreign }, () => {
  for (const object of Object.values(require(path.resolve(foreign)))) {
    fails(() => new Model(object).close(), 'EXPHIL_E_INVALID', /^Model: is made by Model\.load or Model\.create/);
    fails(() => addon.modelInfo(object), 'EXPHIL_E_INVALID', /^model: is closed, or is none/);
    fails(() => addon.close(object), 'EXPHIL_E_INVALID', /^close: takes what the addon made/);
  }
});

test('what the addon did not make is refused', () => {
  const context = new Context({ threads: 1 });
  const rawContext = addon.contextCreate();
  const values = [{}, Object.create(rawContext), new Proxy(rawContext, {}), undefined, 5, 'model', () => {}, rawContext];
  for (const value of values) {
    for (const Class of [Model, Session, Dataset, Trainer]) fails(() => new Class(value).close(), 'EXPHIL_E_INVALID', /: is made by /);
    if (value !== rawContext) fails(() => addon.close(value), 'EXPHIL_E_INVALID', /^close: takes what the addon made/);
    if (value !== rawContext) fails(() => addon.contextMemory(value), 'EXPHIL_E_INVALID', /^context: is closed, or is none/);
  }
  addon.close(rawContext);
  const model = pong(context);
  for (const fake of [Object.create(Model.prototype), new Proxy(model, {})]) {
    for (const call of ['info', 'save', 'quantize', 'session', 'close'])
      fails(() => fake[call](), 'EXPHIL_E_INVALID', /is closed, or is none/);
    fails(() => Model.prototype.info.call(fake), 'EXPHIL_E_INVALID', /is closed, or is none/);
  }
  for (const fake of [model, {}, undefined, Object.create(Session.prototype)])
    for (const call of ['step', 'stepRow', 'info', 'clone'])
      fails(() => Session.prototype[call].call(fake ?? 5, {}, {}, {}), 'EXPHIL_E_INVALID', /is closed, or is none|is made by/);
  class Own extends Context {}
  assert.ok(pong(new Own({ threads: 1 })).session().stepRow());
});

test('a getter may close what is asked', () => {
  const [model, dataset] = [pong(new Context({ threads: 1 })), games(new Context({ threads: 1 }))];
  const closing = (object, name) => ({ get [name]() { object.close(); return 1; } });
  fails(() => model.session({ heads: [closing(model, 'temperature'), {}] }), 'EXPHIL_E_INVALID', /./);
  fails(() => dataset.addReplay('none', closing(dataset, 'port')), 'EXPHIL_E_INVALID', /./);
});

test('models of a file', { skip: !process.env.EXPHIL_TRACE }, () => {
  const file = path.join(process.env.EXPHIL_TRACE, 'policy.safetensors');
  const context = new Context();
  const info = Model.load(context, file).info();
  assert.strictEqual(info.blocks, 'mamba gru attention');
  const copy = path.join(scratch, 'copy');
  Model.load(context, fs.readFileSync(file)).save(copy);
  assert.strictEqual(Model.load(context, copy).info().weights_hash, info.weights_hash);
  assert.match(version(), /^\d+\.\d+\.\d+ cpu:/);
});

const replays = path.join(process.env.EXPHIL_REPLAYS ?? '/nowhere', 'training');
test('replays are learnt', { skip: !fs.existsSync(replays) }, async () => {
  const context = new Context({ threads: 1 });
  const dataset = Dataset.create(context);
  const added = dataset.addReplay(path.join(replays, 'fox_multishine_closed.slp'), { last_frame: 600 });
  assert.ok(added.frames > 100);
  fails(() => dataset.addReplay(path.join(replays, 'fox_multishine_closed.slp'), { character: 'nobody' }), 'EXPHIL_E_INVALID', /nobody/);
  const file = path.join(scratch, 'corpus');
  dataset.save(file);
  const opened = Dataset.open(context, file);
  assert.strictEqual(opened.info().content_hash, dataset.info().content_hash);
  const model = Model.create(context, { blocks: 'gru', hidden: 16, head_width: 16 });
  const losses = [];
  await Trainer.create(model, opened, { sampling: { batch: 4 } }).train(8, ({ loss }) => losses.push(loss));
  assert.ok(losses[7] < losses[0]);
});
