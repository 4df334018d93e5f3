// Melee's frames, pads, rows and presets. A frame is an object with the fields of exphil_melee_frame, players by port - 1; what is
// left out is not known.

import { invalid, object } from './exphil_memory.js';

const absent = (value) => value === undefined || value === null;

// What is given of a character is known, group by group; a group that is given by half is refused.
function knownOf(fields, given, what) {
  const groups = new Map();
  for (const [name, { known }] of fields) if (known) groups.set(known, [...(groups.get(known) ?? []), name]);
  let bits = 0;
  for (const [bit, names] of groups) {
    const missing = names.filter((name) => !(name in given));
    if (!missing.length) bits |= bit;
    else if (missing.length < names.length)
      throw invalid(`${what}.${missing[0]}: must be given with ${names.filter((name) => name !== missing[0]).join(', ')}`);
  }
  return bits;
}

function putObject(memory, at, { fields }, value, what) {
  for (const [name, given] of Object.entries(value)) {
    const field = fields.get(name);
    if (!field) throw invalid(`${what}.${name}: there is no such field`);
    if (absent(given)) throw invalid(`${what}.${name}: is ${given}; leave out what is not known`);
    const { offset, kind, count, of } = field;
    if (of) {
      if (!Array.isArray(given) || given.length > count) throw invalid(`${what}.${name}: must be an array of at most ${count}`);
      given.forEach((one, i) => putOne(memory, at + offset + i * of.size, of, one, `${what}.${name}[${i}]`, name));
    } else if (count > 1) {
      if (!(Array.isArray(given) || ArrayBuffer.isView(given)) || given.length !== count) throw invalid(`${what}.${name}: must be an array of ${count}`);
      for (let i = 0; i < count; i++) memory.number(at + offset + i, kind, given[i], `${what}.${name}[${i}]`); // they are bytes
    } else memory.number(at + offset, kind, typeof given === 'boolean' ? Number(given) : given, `${what}.${name}`);
  }
}

function putOne(memory, at, table, value, what, list) {
  if (list !== 'item' && absent(value)) return;
  if (absent(value) || typeof value !== 'object') throw invalid(`${what}: must be an object`);
  if (list !== 'item') {
    value = { present: 1, ...value };
    value = { known: knownOf(table.fields, value, what), ...value };
  } else value = { owner: -1, ...value };
  putObject(memory, at, table, value, what);
}

export class Melee {
  #memory;
  #toldSpec;
  #sizes;
  constructor(memory, toldSpec, sizesOf) {
    this.#memory = memory;
    this.#toldSpec = toldSpec;
    this.#sizes = (layout, codec) => sizesOf(this.spec(layout, codec));
    /** Bits of a pad's buttons, and of what is known of a character. */
    this.buttons = memory.constants(0);
    this.known = memory.constants(1);
  }
  /** A frame in its place in memory. */
  static put(memory, at, frame, what) {
    if (absent(frame)) throw invalid(`${what}: is ${frame}`);
    const table = memory.structs.melee_frame;
    memory.views.u8.fill(0, at, at + table.size);
    memory.views.data.setUint32(at, table.size, true);
    const { item_count: count, ...fields } = object(frame, what);
    const items = fields.item?.length ?? 0;
    if (count !== undefined && count !== items && fields.item?.length !== table.fields.get('item').count)
      throw invalid(`${what}.item_count: is ${count}, ${what}.item has ${items}`);
    putObject(memory, at, table, { platform_left: 20, platform_right: 28, ...fields, item_count: count ?? items }, what);
  }
  #within(body) {
    return this.#memory.within(body);
  }
  /** A preset, as create() takes it: layouts "melee2", "exphil288", "slippi", "slippi-nana"; codecs "exphil81", ... */
  spec(layout, codec) {
    const memory = this.#memory;
    return this.#within((room) => {
      const spec = memory.struct(room, 'spec');
      memory.check('melee_spec', memory.name(room, layout, 'layout'), memory.name(room, codec, 'codec'), spec);
      return this.#toldSpec(spec);
    });
  }
  /** The one encoder: a frame as the row { floats, ids } of a layout. */
  encode(layout, frame) {
    const memory = this.#memory;
    const [F, K] = this.#sizes(layout);
    return this.#within((room) => {
      const at = memory.struct(room, 'melee_frame');
      Melee.put(memory, at, frame, 'frame');
      const [floats, ids] = [room(F * 4), room(K * 4)];
      memory.check('melee_encode', memory.name(room, layout, 'layout'), at, floats, ids);
      const { f32, i32 } = memory.views;
      return { floats: f32.slice(floats >> 2, (floats >> 2) + F), ids: i32.slice(ids >> 2, (ids >> 2) + K) };
    });
  }
  /** A pad as the action of a codec. */
  padEncode(codec, pad) {
    const memory = this.#memory;
    const [, , A] = this.#sizes(undefined, codec);
    return this.#within((room) => {
      const [at, action] = [memory.struct(room, 'pad', pad), room(A * 4)];
      memory.check('melee_pad_encode', memory.name(room, codec, 'codec'), at, action);
      return memory.views.i32.slice(action >> 2, (action >> 2) + A);
    });
  }
  /** And back. */
  padDecode(codec, action) {
    const memory = this.#memory;
    const [, , A] = this.#sizes(undefined, codec);
    if (!(action instanceof Int32Array) || action.length !== A) throw invalid(`action: must be an Int32Array of ${A}`);
    return this.#within((room) => {
      const pad = memory.struct(room, 'pad');
      memory.check('melee_pad_decode', memory.name(room, codec, 'codec'), memory.put(room, action), pad);
      return memory.told(pad, memory.structs.pad);
    });
  }
}
