'use strict';
// Melee's frames, pads and encoder. A frame is a plain object with the fields of exphil_melee_frame; it goes to the addon as a
// row of numbers, which is laid out by the addon's own tables of the header's structures.

const addon = require('./exphil.node');
const { invalid, disarrange } = require('./exphil_options.js');

const { members, bytes, buttons, known } = addon.meleeShape();

// Members by name, each with its place in the row; size: numbers in all; bits: which members make a group of known ones.
function layOut(list) {
  const layout = { places: new Map(), size: 0, bits: new Map() };
  for (const { name, count, known: bit, of } of list) {
    const inner = of && layOut(of);
    layout.places.set(name, { at: layout.size, count, bit, of: inner });
    layout.size += count * (inner ? inner.size : 1);
    if (bit) layout.bits.set(bit, [...(layout.bits.get(bit) ?? []), name]);
  }
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

function put(row, index, value, what) {
  if (typeof value !== 'number' && typeof value !== 'boolean') throw invalid(`${what}: must be a number`);
  row[index] = value;
}

function putList(row, place, base, values, what) {
  const step = place.of ? place.of.size : 1;
  const list = Array.isArray(values) || ArrayBuffer.isView(values) ? values : undefined;
  if (!list || list.length > place.count || (!place.of && list.length !== place.count))
    throw invalid(`${what}: must be an array of ${place.of ? 'at most ' : ''}${place.count}`);
  for (let i = 0; i < list.length; i++) {
    const index = base + i * step;
    if (!place.of) put(row, index, list[i], what);
    else if (place === items) putObject(row, place.of, index, list[i], `${what}[${i}]`);
    else if (list[i] !== undefined && list[i] !== null) putCharacter(row, place.of, index, list[i], `${what}[${i}]`);
  }
}

// Returns the groups of which a member was given.
function putObject(row, layout, base, object, what) {
  if (typeof object !== 'object' || object === null) throw invalid(`${what}: must be an object`);
  let groups = 0;
  for (const name in object) {
    const place = layout.places.get(name);
    if (!place) throw invalid(`${what}.${name}: there is no such field`);
    const value = object[name];
    if (value === undefined || value === null) continue;
    groups |= place.bit;
    if (place.count > 1) putList(row, place, base + place.at, value, `${what}.${name}`);
    else if (typeof value === 'number') row[base + place.at] = value;
    else put(row, base + place.at, value, `${what}.${name}`);
  }
  return groups;
}

// Whoever is described is present. What is given is known, group by group: none is known by half.
function putCharacter(row, layout, base, object, what) {
  row[base + at(layout, 'present')] = 1;
  const groups = putObject(row, layout, base, object, what);
  if ((object.known ?? undefined) !== undefined) return;
  for (const [bit, names] of layout.bits) {
    if (!(groups & bit)) continue;
    const missing = names.find((name) => (object[name] ?? undefined) === undefined);
    if (missing) throw invalid(`${what}.${missing}: must be given with ${names.filter((name) => name !== missing).join(', ')}`);
  }
  row[base + at(layout, 'known')] = groups;
}

/** Writes a frame into its place of a row of numbers. */
function putFrame(row, index, frame, what) {
  const base = index * shape.size;
  row.set(blank, base);
  putObject(row, shape, base, frame, what);
  const [given, count] = [frame.item_count ?? undefined, frame.item?.length ?? 0];
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

/** The one encoder: a frame as the row { floats, ids } of a layout. */
function encode(layout, frame) {
  const { floats, ids } = spec(layout);
  const [row, encoded] = [new Float64Array(shape.size), { floats: new Float32Array(floats), ids: new Int32Array(ids.length) }];
  putFrame(row, 0, frame, 'frame');
  addon.meleeEncode(layout, row, encoded.floats, encoded.ids);
  return encoded;
}

/** A pad as the action of a codec. */
function padEncode(codec, pad) {
  const action = new Int32Array(spec(undefined, codec).heads.length);
  addon.meleePadEncode(codec, pad, action);
  return action;
}

/** And back. */
const padDecode = (codec, action) => addon.meleePadDecode(codec, undefined, action);

module.exports = { room, step, melee: { encode, padEncode, padDecode, spec, buttons: Object.freeze(buttons), known: Object.freeze(known) } };
