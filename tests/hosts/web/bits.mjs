// What bits.c computes, by the module: lines "NAME HASH", from the weights that bits.c has left.

const [F, K, A, STREAMS, FRAMES, BACK, BATCH, TIME, UPDATES] = [13, 2, 3, 2, 60, 20, 4, 8, 6];
const NOTHING = 2166136261;

function add(hash, array) {
  for (const byte of new Uint8Array(array.buffer, array.byteOffset, array.byteLength)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash;
}

const drawn = (a, b, c) => Math.fround(Math.fround(((a * 7919 + b * 104729 + c * 31 + ((a * b) % 97)) % 2001) / 1000) - 1);
function row(stream, t, floats, ids, at) {
  for (let i = 0; i < F; i++) floats[at * F + i] = drawn(stream, t, i);
  ids[at * K] = (stream + Math.floor(t / 9)) % 5;
  ids[at * K + 1] = t % 7;
}

function step(hash, session, t) {
  const [floats, ids] = [new Float32Array(STREAMS * F), new Int32Array(STREAMS * K)];
  for (let s = 0; s < STREAMS; s++) row(s, t, floats, ids, s);
  hash = add(hash, session.stepRow(floats, ids));
  for (let s = 0; s < STREAMS; s++) hash = add(hash, session.logits(s));
  return hash;
}

function play(tell, name, model) {
  const session = model.session({ streams: STREAMS, seed: 11 });
  let [hash, clone, states] = [NOTHING];
  for (let t = 0; t < FRAMES; t++) {
    if (t === FRAMES - BACK) [clone, states] = [session.clone(), [session.saveState(0), session.saveState(1)]];
    hash = step(hash, session, t);
  }
  tell(`${name}.play`, hash);
  tell(`${name}.state`, states.reduce(add, NOTHING));
  states.forEach((state, s) => session.restoreState(s, state));
  for (const [word, one] of [['restored', session], ['clone', clone]]) {
    hash = NOTHING;
    for (let t = FRAMES - BACK; t < FRAMES; t++) hash = step(hash, one, t);
    tell(`${name}.${word}`, hash);
    one.close();
  }
}

function train(tell, model) {
  const rows = BATCH * TIME;
  const trainer = model.trainer();
  let losses = NOTHING;
  for (let u = 0; u < UPDATES; u++) {
    const batch = {
      batch: BATCH, time: TIME, floats: new Float32Array(rows * F), ids: new Int32Array(rows * K),
      past: new Int32Array(rows * A), actions: new Int32Array(rows * A), mask: new Float32Array(rows), reset: new Uint8Array(rows),
    };
    for (let i = 0; i < rows; i++) {
      const [t, b] = [u * TIME + (i % TIME), Math.floor(i / TIME)];
      row(b, t, batch.floats, batch.ids, i);
      for (const back of [0, 1]) {
        const values = [(t - back + b) & 7, (t - back + 3 * b + 5) % 5, Math.floor((t - back + 4) / 3) % 4];
        (back ? batch.past : batch.actions).set(values, i * A);
      }
      batch.mask[i] = t % 11 === 10 ? 0 : 1;
      batch.reset[i] = t % 17 === 0 ? 1 : 0;
    }
    losses = add(losses, Float64Array.of(trainer.stepBatch(batch).loss));
  }
  tell('train.losses', losses);
  const trained = trainer.model();
  tell('trained', add(NOTHING, trained.save()));
  const session = model.session({ streams: STREAMS, adoptable: true });
  let hash = NOTHING;
  for (let t = 0; t < BACK; t++) hash = step(hash, session, t);
  session.adopt(trained);
  trained.close();
  for (let t = BACK; t < 2 * BACK; t++) hash = step(hash, session, t);
  tell('adopted.play', hash);
}

function learn(tell, lib) {
  const world = lib.world('pong-two', 4);
  const model = lib.create({
    spec: world.spec, blocks: 'mlp', hidden: 16, head_width: 16, no_previous_action: true, neutral_start: true, value: 'shared', seed: 3,
  });
  const trainer = model.trainer({ trainer: { as_played: true } });
  const learner = trainer.learner(world, { session: { seed: 5 }, rollout: { time: 32, seed: 6 } });
  for (let chunk = 0; chunk < 2; chunk++) learner.update();
  tell('learnt', add(NOTHING, trainer.model().save()));
}

function melee(tell, lib) {
  const model = lib.create({ blocks: 'gru', hidden: 16, head_width: 16, seed: 9 });
  tell('melee', add(NOTHING, model.save()));
  const session = model.session();
  let hash = NOTHING;
  for (let t = 0; t < 30; t++) {
    const player = [0, 1].map((p) => ({
      character: 1, x: Math.fround(40 * drawn(p, t, 0)), facing: p ? -1 : 1, shield: 60, state_age: t, action_state: 14 + (t % 3), stocks: 4,
      last_hit_by: 6,
    }));
    const pad = session.step({ frame: t, stage: 32, own_port: 1, player, item: t % 2 ? [{ type: 54, x: t }] : [] });
    hash = add(hash, Uint32Array.of(pad.buttons));
    hash = add(hash, Float32Array.of(pad.main_x, pad.main_y, pad.c_x, pad.c_y, pad.trigger));
  }
  tell('melee.pads', hash);
}

/** lib: what load() gives; policy: the bytes of policy.safetensors. */
export function lines(lib, policy) {
  const said = [];
  const tell = (name, hash) => said.push(`${name} ${(hash >>> 0).toString(16).padStart(8, '0')}`);
  const model = lib.load(policy);
  tell('policy', add(NOTHING, model.save()));
  play(tell, 'f32', model);
  play(tell, 'bf16', model.quantize('bf16'));
  play(tell, 'int8', model.quantize('int8'));
  train(tell, model);
  learn(tell, lib);
  melee(tell, lib);
  return said;
}
