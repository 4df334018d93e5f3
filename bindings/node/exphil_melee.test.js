'use strict';
// Tests of Melee's frames and pads: node --test. $EXPHIL_MELEE names a folder with rows.json, what melee_rows printed, and the
// model.safetensors that it wrote: C filled the same frames and got these rows and pads.

const test = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const addon = require('./exphil.node');
const { Context, Dataset, Model, Trainer, melee } = require('./exphil.js');

const fails = (work, code, word) => assert.throws(work, (error) => {
  assert.strictEqual(error.code, code, error.message);
  assert.match(error.message, word);
  return error instanceof Error;
});

// The numbers of melee_rows.c, field by field in its order.
const characterFields = ['x', 'y', 'facing', 'percent', 'shield', 'state_age', 'misc', 'speed_air_x', 'speed_y',
  'speed_attack_x', 'speed_attack_y', 'speed_ground_x', 'hitlag'];
const itemFields = ['facing', 'speed_x', 'speed_y', 'x', 'y', 'timer'];

function makeFrame(t) {
  let state = t;
  const next = () => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0), (state >>> 16) % 120);
  const quarter = () => next() / 4 - 15;
  const fill = (names, number) => Object.fromEntries(names.map((name) => [name, number()]));
  const bytes = (count) => Array.from({ length: count }, next);
  const character = () => ({
    ...fill(characterFields, quarter),
    action_state: next() * 3, ground: next(), character: next() % 26, stocks: next() % 5, last_attack: next(), combo: next(),
    last_hit_by: next() % 4, airborne: next() % 2 === 1, jumps: next() % 6, l_cancel: next() % 3, hurtbox: next() % 3,
    flags: bytes(5),
  });
  const item = () => ({
    ...fill(itemFields, quarter), spawn_id: next(), type: next(), damage: next(), state: next(), misc: bytes(4), owner: next() % 4,
  });
  const [two, four, nana] = [character(), character(), character()];
  return {
    frame: t - 30, stage: [2, 3, 28, 31, 32][t % 5], own_port: 2, opponent_port: 4,
    player: [undefined, two, null, four], follower: [undefined, nana],
    platform_left: quarter(), platform_right: quarter(), wind: next() % 3, stadium_kind: next(), stadium_event: next(),
    item: Array.from({ length: t % 16 }, item),
  };
}

const folder = process.env.EXPHIL_MELEE;
test('rows and pads are those of C', { skip: !folder }, () => {
  const wanted = JSON.parse(fs.readFileSync(path.join(folder, 'rows.json'), 'utf8'));
  for (const layout of ['melee2', 'exphil288']) {
    assert.strictEqual(wanted[layout].length, 60);
    wanted[layout].forEach(({ floats, ids }, t) => {
      const row = melee.encode(layout, makeFrame(t));
      assert.deepStrictEqual(row, { floats: Float32Array.from(floats), ids: Int32Array.from(ids) }, `${layout}, frame ${t}`);
    });
  }
  assert.deepStrictEqual(melee.encode(undefined, makeFrame(5)), melee.encode('melee2', makeFrame(5)));
  const model = Model.load(new Context(), path.join(folder, 'model.safetensors'));
  const session = model.session({ seed: 7, streams: 2 });
  for (let t = 0; t < 60; t++) {
    const pads = session.step([makeFrame(t), makeFrame(60 - t)]);
    pads.forEach((pad, stream) => {
      const [buttons, ...axes] = wanted.pads[2 * t + stream];
      assert.deepStrictEqual(Object.values(pad), [buttons, ...Float32Array.from(axes)], `frame ${t}, stream ${stream}`);
    });
  }
});

const frame = (rest) => ({ stage: 32, own_port: 1, player: [{ x: -30 }, { x: 30 }], ...rest });

test('what is left out is not known', () => {
  const rows = (...frames) => frames.map((one) => melee.encode('melee2', one));
  const who = (rest) => frame({ player: [{ x: -30, ...rest }, { x: 30 }] });
  const [bare, none] = rows(who({}), who({ known: 0, state_age: 7, hitlag: 3, speed_y: 2 }));
  assert.deepStrictEqual(bare, none);
  const groups = {
    AGE: { state_age: 7 },
    FLAGS: { misc: 9, ground: 2, airborne: 1, jumps: 1, l_cancel: 1, flags: [1, 2, 3, 4, 5] },
    HURTBOX: { hurtbox: 1 },
    SPEED: { speed_air_x: 1, speed_y: 2, speed_attack_x: 3, speed_attack_y: 4, speed_ground_x: 5 },
    HITLAG: { hitlag: 3 },
  };
  for (const [name, fields] of Object.entries(groups)) {
    const [derived, said] = rows(who(fields), who({ ...fields, known: melee.known[name] }));
    assert.deepStrictEqual(derived, said, name);
    assert.notDeepStrictEqual(derived, bare, name);
    const [first, ...others] = Object.keys(fields);
    if (others.length) {
      const sentence = new RegExp(`^frame\\.player\\[0\\]\\.${first}: must be given with ${others.join(', ')}$`);
      fails(() => rows(who(Object.fromEntries(others.map((other) => [other, fields[other]])))), 'EXPHIL_E_INVALID', sentence);
    }
  }
  const stadium = { platform_left: 20, platform_right: 28, opponent_port: 0, item: [], follower: [] };
  assert.deepStrictEqual(...rows(frame({ stage: 2 }), frame({ stage: 2, ...stadium })));
  assert.notDeepStrictEqual(...rows(frame({ stage: 2 }), frame({ stage: 2, platform_left: 0 })));
  const owner = (rest) => frame({ item: [{ x: 1, type: 54, ...rest }] });
  assert.deepStrictEqual(...rows(owner({}), owner({ owner: -1 })));
  assert.notDeepStrictEqual(...rows(owner({}), owner({ owner: 0 })));
  assert.deepStrictEqual(...rows(frame(), frame({ player: [{ x: -30 }, { x: 30 }, { x: 9, stocks: -1, present: false }] })));
});

const shape = addon.meleeShape();
const of = (name) => shape.members.find((member) => member.name === name).of;

test('wrong frames are refused by name', () => {
  const session = Model.create(new Context({ threads: 1 }), { blocks: 'mlp', hidden: 8, head_width: 8 }).session({ streams: 2 });
  const cases = [
    [{ stagee: 1 }, /^frame\.stagee: there is no such field/],
    [{ struct_size: 8 }, /^frame\.struct_size: there is no such field/],
    [{ player: [{ xx: undefined }] }, /^frame\.player\[0\]\.xx: there is no such field/],
    [{ item: [{ reserved: [0, 0] }] }, /^frame\.item\[0\]\.reserved: there is no such field/],
    [{ stage: 'fod' }, /^frame\.stage: must be a number/],
    [{ stage: 2.5 }, /^frame\.stage: is 2\.5, must be a whole number$/],
    [{ stage: NaN }, /^frame\.stage: is NaN/],
    [{ frame: 2 ** 40 }, /^frame\.frame: is 1099511627776/],
    [{ player: [{}, { stocks: 256 }] }, /^frame\.player\[1\]\.stocks: is 256, .* from 0 to 255/],
    [{ follower: [{ action_state: -1 }] }, /^frame\.follower\[0\]\.action_state: is -1, .* from 0 to 65535/],
    [{ player: [{ known: Infinity }] }, /^frame\.player\[0\]\.known: is inf/],
    [{ player: [{ known: 2, flags: [0, 0, 0, 0, 0.5] }] }, /^frame\.player\[0\]\.flags\[4\]: is 0\.5/],
    [{ player: [{ known: 2, flags: [0, 0, 0, 0] }] }, /^frame\.player\[0\]\.flags: must be an array of 5/],
    [{ player: [{ known: 2, flags: 7 }] }, /flags: must be an array of 5/],
    [{ player: [{ x: 1e300 }] }, /^frame\.player\[0\]\.x: is 1e\+300/],
    [{ player: [{ x: 1n }] }, /^frame\.player\[0\]\.x: must be a number/],
    [{ player: { 1: {} } }, /^frame\.player: must be an array of at most 4/],
    [{ player: [{}, {}, {}, {}, {}] }, /^frame\.player: must be an array of at most 4/],
    [{ player: [7] }, /^frame\.player\[0\]: must be an object/],
    [{ item: new Array(16).fill({}) }, /^frame\.item: must be an array of at most 15/],
    [{ item: new DataView(new ArrayBuffer(8)) }, /^frame\.item: must be an array of at most 15/],
    [{ player: new DataView(new ArrayBuffer(8)) }, /^frame\.player: must be an array of at most 4/],
    [{ item: [null] }, /^frame\.item\[0\]: must be an object/],
    [{ item: [{ owner: 128 }] }, /^frame\.item\[0\]\.owner: is 128/],
    [{ item: [{}], item_count: 2 }, /^frame\.item_count: is 2, frame\.item has 1/],
    [{ own_port: 3 }, /own_port/],
    [{ own_port: undefined }, /^frame\.own_port: is undefined; leave out what is not known$/],
    [{ item_count: null }, /^frame\.item_count: is null/],
    [{ item: undefined }, /^frame\.item: is undefined/],
    [{ follower: null }, /^frame\.follower: is null/],
    [{ item: [{ owner: null }] }, /^frame\.item\[0\]\.owner: is null/],
    ...shape.members.filter((member) => !member.of).map(({ name }) => [{ [name]: undefined }, new RegExp(`^frame\\.${name}: is undefined`)]),
    ...of('player').map(({ name }) => [{ player: [{}, { [name]: undefined }] }, new RegExp(`^frame\\.player\\[1\\]\\.${name}: is undefined`)]),
  ];
  for (const [rest, sentence] of cases) fails(() => melee.encode('melee2', frame(rest)), 'EXPHIL_E_INVALID', sentence);
  for (const wrong of [undefined, null, 5, 'x']) fails(() => melee.encode('melee2', wrong), 'EXPHIL_E_INVALID', /^frame: must be an object/);
  fails(() => melee.encode('melee2', frame({ player: [{ x: NaN }] })), 'EXPHIL_E_NUMERIC', /own\.x/);
  fails(() => melee.encode('melee9', frame()), 'EXPHIL_E_INVALID', /melee9/);
  fails(() => session.step(frame()), 'EXPHIL_E_INVALID', /^frames: is one, the session has 2 streams/);
  fails(() => session.step([frame()]), 'EXPHIL_E_INVALID', /^frames: has 1 entries, the session has 2 streams/);
  fails(() => session.step([frame(), frame({ wind: 0.5 })]), 'EXPHIL_E_INVALID', /^frames\[1\]\.wind: is 0\.5/);
  fails(() => session.step([frame(), frame({ wnd: 0 })]), 'EXPHIL_E_INVALID', /^frames\[1\]\.wnd: there is no/);
  assert.strictEqual(session.info().steps, 0);
  assert.strictEqual(session.step([frame(), frame()]).length, 2);
  session.close();
  fails(() => session.step([frame(), frame()]), 'EXPHIL_E_INVALID', /session: is closed/);
  const spec = { layout: 'a', codec: 'b', floats: 1, heads: [{ name: 'x', kind: 'categorical', count: 3 }] };
  const other = Model.create(new Context(), { spec, blocks: 'mlp', hidden: 8, head_width: 8 }).session();
  fails(() => other.step(frame()), 'EXPHIL_E_STATE', /not one of the Melee specs/);
});

test('pads go to actions and back', () => {
  const pad = { buttons: melee.buttons.A | melee.buttons.Z, main_x: 1, main_y: -1, c_x: 0, c_y: 0, trigger: 1 };
  assert.deepStrictEqual(melee.padDecode('exphil81', melee.padEncode('exphil81', pad)), pad);
  assert.deepStrictEqual(melee.padEncode(undefined, {}), Int32Array.from(melee.spec().heads, (head) => head.neutral));
  fails(() => melee.padEncode(undefined, { button: 1 }), 'EXPHIL_E_INVALID', /^pad\.button: there is no such field/);
  fails(() => melee.padEncode(undefined, { toString: 1 }), 'EXPHIL_E_INVALID', /^pad\.toString: there is no such field/);
  fails(() => melee.padEncode(undefined, { main_x: undefined }), 'EXPHIL_E_INVALID', /^pad\.main_x: is undefined/);
  for (const wrong of [undefined, null, 5]) fails(() => melee.padEncode(undefined, wrong), 'EXPHIL_E_INVALID', /^pad: must be an object/);
  fails(() => melee.padEncode(undefined, { buttons: -1 }), 'EXPHIL_E_INVALID', /^buttons: is -1/);
  fails(() => melee.padEncode('exphil82', pad), 'EXPHIL_E_INVALID', /exphil82/);
  fails(() => melee.padEncode(undefined, { main_x: NaN }), 'EXPHIL_E_NUMERIC', /main_x/);
  fails(() => melee.padDecode(undefined, new Int32Array(5)), 'EXPHIL_E_INVALID', /action: is Int32Array of 5, must be an Int32Array of 6/);
  fails(() => melee.padDecode(undefined, new Int32Array(6).fill(99)), 'EXPHIL_E_INVALID', /./);
});

// The addon by itself knows how much a preset writes, whatever exphil_melee.js would give it.
test('arrays of the addon are of the size of the preset', () => {
  const count = (members) => members.reduce((sum, member) => sum + member.count * (member.of ? count(member.of) : 1), 0);
  const row = new Float64Array(count(shape.members));
  for (const layout of ['melee2', 'exphil288', undefined, 'melee2']) {
    const { floats, ids } = melee.spec(layout);
    const encode = (f, i) => () => addon.meleeEncode(layout, row, new Float32Array(f), new Int32Array(i), f, i);
    fails(encode(1, ids.length), 'EXPHIL_E_INVALID', new RegExp(`^floats: is Float32Array of 1, must be a Float32Array of ${floats}$`));
    fails(encode(floats, ids.length + 1), 'EXPHIL_E_INVALID', /^ids: is Int32Array of/);
    fails(encode(floats + 1, ids.length), 'EXPHIL_E_INVALID', /^floats: is/);
  }
  const action = new Int32Array(1);
  fails(() => addon.meleePadEncode(undefined, {}, action, 1), 'EXPHIL_E_INVALID', /^action: is Int32Array of 1, must be an Int32Array of 6$/);
  fails(() => addon.meleePadDecode('exphil81', undefined, action, 1), 'EXPHIL_E_INVALID', /^action: is Int32Array of 1/);
  for (const name of ['', 'x', 'x'.repeat(40)]) fails(() => addon.meleeEncode(name, row, new Float32Array(1)), 'EXPHIL_E_INVALID', /layout|floats/);
  const lost = new Int32Array(6);
  const pad = { get buttons() { return structuredClone(lost, { transfer: [lost.buffer] }), 0; } };
  fails(() => addon.meleePadEncode(undefined, pad, lost), 'EXPHIL_E_INVALID', /^action: is Int32Array of 0/);
});

test('a getter of a frame may step the same session', () => {
  const context = new Context({ threads: 1 });
  const model = Model.create(context, { blocks: 'gru', hidden: 8, head_width: 8, seed: 3 });
  const [plain, nested] = [model.session({ seed: 1 }), model.session({ seed: 1 })];
  const inner = frame({ frame: 1, wind: 2, follower: [{ x: 9 }], item: [{ x: 5, type: 3 }] });
  const outer = { frame: 2, stage: 31, own_port: 2, player: [{ x: 1 }, { x: 2, percent: 50 }] };
  const wanted = [plain.step(inner), plain.step(outer)];
  let pad;
  const late = Object.defineProperty({ ...outer }, 'stadium_event', { enumerable: true, get: () => ((pad = nested.step(inner)), 0) });
  const got = nested.step(late);
  assert.deepStrictEqual([pad, got], wanted);
  assert.deepStrictEqual(nested.saveState(), plain.saveState());
});

test('a policy of a preset is trained on rows and stepped on frames', () => {
  const context = new Context({ threads: 1 });
  const spec = melee.spec('exphil288');
  const dataset = Dataset.create(context, spec);
  const row = melee.encode('exphil288', frame());
  const [floats, actions] = [new Float32Array(288 * 200), new Int32Array(6 * 200)];
  const jump = melee.padEncode(spec.codec, { buttons: melee.buttons.Y });
  for (let t = 0; t < 200; t++) floats.set(row.floats, 288 * t), actions.set(jump, 6 * t);
  dataset.addRows(2n ** 64n - 1n, floats, undefined, actions);
  const model = Model.create(context, { spec, blocks: 'mlp', hidden: 8, head_width: 8 });
  assert.strictEqual(model.info().layout, 'exphil288');
  const trainer = Trainer.create(model, dataset, { sampling: { batch: 4, time: 20 }, optimizer: { rate: 0.05 } });
  for (let i = 0; i < 30; i++) trainer.step();
  const session = trainer.model().session({ deterministic: true });
  const { X, Y } = melee.buttons;
  assert.ok([X, Y].includes(session.step(frame()).buttons));
});

test('README names every field for those who come from slippi-js', () => {
  const readme = fs.readFileSync(path.join(__dirname, 'README.md'), 'utf8');
  const told = [...readme.matchAll(/\| `(?:\w+\.)?\w+` \| `(\w+)` (?=\|)/g)].map((match) => match[1]);
  const fields = of('player').map(({ name }) => name).filter((name) => !['present', 'known', 'flags'].includes(name));
  assert.deepStrictEqual(told.sort(), fields.sort());
  const [, fox] = readme.match(/^const fox = {\n([^]*?)^};/m);
  const groupless = of('player').filter(({ name, known }) => !known && !['present', 'known'].includes(name)).map(({ name }) => name);
  assert.deepStrictEqual([...fox.matchAll(/(\w+): /g)].map((match) => match[1]).filter((name) => /^[a-z]/.test(name)).sort(), groupless.sort());
});

test('the types name the fields', () => {
  const types = fs.readFileSync(path.join(__dirname, 'exphil.d.ts'), 'utf8');
  const names = (members) => members.map((member) => member.name);
  const told = {
    MeleeFrame: names(shape.members), MeleeCharacter: names(of('player')), MeleeItem: names(of('item')),
    Pad: Object.keys(shape.pad),
  };
  for (const [name, fields] of Object.entries(told)) {
    const [, body] = types.match(new RegExp(`^export interface ${name} {\n([^]*?)^}`, 'm'));
    assert.deepStrictEqual([...body.matchAll(/^  (\w+)\??:/gm)].map((match) => match[1]), fields, name);
  }
  const [, body] = types.match(/^export const melee: {\n([^]*?)^};/m);
  assert.deepStrictEqual([...body.matchAll(/^  (?:readonly )?(\w+)[:(]/gm)].map((match) => match[1]), Object.keys(melee));
});
