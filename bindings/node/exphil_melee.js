'use strict';
// Melee's frames, pads and encoder. A frame is a plain object with the fields of exphil_melee_frame; it goes to the addon as a
// row of numbers, which is laid out by the addon's own tables of the header's structures.

const { types } = require('node:util');
const addon = require('./exphil_addon.js');
const { invalid, disarrange } = require('./exphil_options.js');

const { members, bytes, buttons, known, pad: noPad } = addon.meleeShape();

// Members by name, each with its place in the row and a mark: one bit for each of the first 31. size: numbers in all. groups: the
// marks of those that are known together.
function layOut(list) {
  const layout = { places: new Map(), size: 0, groups: [] };
  list.forEach(({ name, count, known: bit, of }, i) => {
    const inner = of && layOut(of);
    layout.places.set(name, { at: layout.size, count, mark: i < 31 ? 1 << i : 0, of: inner });
    layout.size += count * (inner ? inner.size : 1);
    if (!bit) return;
    let group = layout.groups.find((one) => one.bit === bit);
    if (!group) layout.groups.push((group = { bit, marks: 0, names: [] }));
    group.marks |= 1 << i;
    group.names.push(name);
  });
  return layout;
}

const shape = layOut(members);
const at = (layout, name) => layout.places.get(name).at;

// What stands where nothing is given: nobody, no items, and what the header says is so before the first event.
const blank = new Float64Array(shape.size);
blank[at(shape, 'platform_left')] = 20;
blank[at(shape, 'platform_right')] = 28;
const items = shape.places.get('item');
for (let i = 0; i < items.count; i++) blank[items.at + i * items.of.size + at(items.of, 'owner')] = -1;

const absent = (value) => value === undefined || value === null;

function put(row, index, value, what) {
  if (typeof value !== 'number' && typeof value !== 'boolean') throw invalid(`${what}: must be a number`);
  row[index] = value;
}

function putList(row, place, base, values, what) {
  const step = place.of ? place.of.size : 1;
  const list = Array.isArray(values) || types.isTypedArray(values) ? values : undefined;
  if (!list || list.length > place.count || (!place.of && list.length !== place.count))
    throw invalid(`${what}: must be an array of ${place.of ? 'at most ' : ''}${place.count}`);
  for (let i = 0; i < list.length; i++) {
    const index = base + i * step;
    if (!place.of) put(row, index, list[i], what);
    else if (place === items) putObject(row, place.of, index, list[i], `${what}[${i}]`);
    else if (!absent(list[i])) putCharacter(row, place.of, index, list[i], `${what}[${i}]`);
  }
}

// A name that is no field; undefined and null, which would be 0 without a word.
function refuse(isField, value, what) {
  throw invalid(`${what}: ${isField ? `is ${value}; leave out what is not known` : 'there is no such field'}`);
}

// Returns the marks of what was given.
function putObject(row, layout, base, object, what) {
  if (typeof object !== 'object' || object === null) throw invalid(`${what}: must be an object`);
  let marks = 0;
  for (const name in object) {
    const place = layout.places.get(name);
    const value = object[name];
    if (!place || absent(value)) refuse(place, value, `${what}.${name}`);
    marks |= place.mark;
    if (place.count > 1) putList(row, place, base + place.at, value, `${what}.${name}`);
    else if (typeof value === 'number') row[base + place.at] = value;
    else put(row, base + place.at, value, `${what}.${name}`);
  }
  return marks;
}

// Whoever is described is present. What is given is known, group by group: none is known by half.
function putCharacter(row, layout, base, object, what) {
  row[base + at(layout, 'present')] = 1;
  const given = putObject(row, layout, base, object, what);
  if (given & layout.places.get('known').mark) return;
  for (const { bit, marks, names } of layout.groups) {
    if ((given & marks) === marks) row[base + at(layout, 'known')] += bit;
    else if (given & marks) halfKnown(layout, given, names, what);
  }
}

function halfKnown(layout, given, names, what) {
  const missing = names.find((name) => !(given & layout.places.get(name).mark));
  throw invalid(`${what}.${missing}: must be given with ${names.filter((name) => name !== missing).join(', ')}`);
}

/** Writes a frame into its place of a row of numbers. */
function putFrame(row, index, frame, what) {
  const base = index * shape.size;
  row.set(blank, base);
  putObject(row, shape, base, frame, what);
  const [given, count] = [frame.item_count, frame.item?.length ?? 0];
  if (given !== undefined && given !== count) throw invalid(`${what}.item_count: is ${given}, ${what}.item has ${count}`);
  row[base + at(shape, 'item_count')] = count;
}

/** Room for the frames and pads of so many streams. */
function room(streams) {
  return { row: new Float64Array(streams * shape.size), structs: new Float64Array((streams * bytes) / 8) };
}

/** frames: one, or a list of one for each stream; so are the pads. */
function step(raw, { row, structs }, frames) {
  const streams = row.length / shape.size;
  const list = Array.isArray(frames);
  if ((list ? frames.length : 1) !== streams)
    throw invalid(`frames: ${list ? `has ${frames.length} entries` : 'is one'}, the session has ${streams} streams`);
  if (list) for (let i = 0; i < streams; i++) putFrame(row, i, frames[i], `frames[${i}]`);
  else putFrame(row, 0, frames, 'frame');
  const pads = addon.meleeStep(raw, row, structs);
  return list ? pads : pads[0];
}

/** A preset as Model.create and Dataset.create take it. */
const spec = (layout, codec) => disarrange(addon.meleeSpec(layout, codec));

// How much a row and an action of a preset hold: asked for once, for the library hashes a preset whenever it is told.
const presets = new Map();
function sizes(layout, codec) {
  const key = `${layout} ${codec}`;
  if (!presets.has(key)) {
    const { floats, ids, heads } = spec(layout, codec);
    presets.set(key, { floats, ids: ids.length, heads: heads.length });
  }
  return presets.get(key);
}

/** The one encoder: a frame as the row { floats, ids } of a layout. */
function encode(layout, frame) {
  const { floats, ids } = sizes(layout);
  const [row, encoded] = [new Float64Array(shape.size), { floats: new Float32Array(floats), ids: new Int32Array(ids) }];
  putFrame(row, 0, frame, 'frame');
  addon.meleeEncode(layout, row, encoded.floats, encoded.ids);
  return encoded;
}

/** A pad as the action of a codec. */
function padEncode(codec, pad) {
  const action = new Int32Array(sizes(undefined, codec).heads);
  if (typeof pad !== 'object' || pad === null) throw invalid('pad: must be an object');
  for (const name in pad) {
    const isField = Object.hasOwn(noPad, name);
    if (!isField || absent(pad[name])) refuse(isField, pad[name], `pad.${name}`);
  }
  addon.meleePadEncode(codec, pad, action);
  return action;
}

/** And back. */
const padDecode = (codec, action) => addon.meleePadDecode(codec, undefined, action);

module.exports = { room, step, melee: { encode, padEncode, padDecode, spec, buttons: Object.freeze(buttons), known: Object.freeze(known) } };
