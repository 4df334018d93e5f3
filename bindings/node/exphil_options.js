'use strict';
// Options on their way to the addon: what it cannot see for itself is refused here, with the errors that it throws.

const { ExphilError } = require('./exphil_addon.js');
const names = require('./exphil_names.js');

const kinds = ['bernoulli', 'categorical'];
const invalid = (message) => new ExphilError(message);

/** undefined and null are no options at all; anything but an object is refused. */
function object(value, what) {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(`${what}: must be an object`);
  return value;
}

/** Options that nobody reads are refused by name. */
function refuse(rest, what) {
  const [name] = Object.keys(rest);
  if (name !== undefined) throw invalid(`${name}: there is no such option; ${what}`);
}

// A count under the header's name and what it counts: the same, or refused.
function agree(name, count, given) {
  if (given !== undefined && given !== count) throw invalid(`spec.${name}: is ${String(given)}, must be ${count}, or left out`);
}

/** { layout, codec, floats, ids: [{ name, entries, width }], heads: [{ name, kind, count, neutral }] } as the addon reads it. */
function arrange(spec) {
  if (spec === undefined || spec === null) return undefined;
  const { float_count, floats = float_count, ids, id_count, heads, head_count, ...fields } = object(spec, 'spec');
  const lists = { ids: ids ?? [], heads: heads ?? [] };
  for (const name in lists) if (!Array.isArray(lists[name])) throw invalid(`spec.${name}: must be an array`);
  agree('float_count', floats, float_count);
  agree('id_count', lists.ids.length, id_count);
  agree('head_count', lists.heads.length, head_count);
  return {
    fields: { ...fields, float_count: floats },
    ids: lists.ids,
    heads: lists.heads.map((head) => {
      const kind = kinds.indexOf(object(head, 'spec.heads').kind);
      if (kind < 0) throw invalid(`head ${String(head?.name)}: ${String(head?.kind)} is neither bernoulli nor categorical`);
      return { ...head, kind };
    }),
  };
}

/** And back. */
function disarrange({ fields: { float_count: floats, ...fields }, ids, heads }) {
  return { ...fields, floats, ids, heads: heads.map((head) => ({ ...head, kind: kinds[head.kind] })) };
}

function number(option, value) {
  if (typeof value !== 'string' || !Object.hasOwn(names, option)) return value;
  const found = names[option].indexOf(value);
  if (found < 0) throw invalid(`${option}: ${value} is none of ${names[option].join(', ')}`);
  return found;
}

/** Options with the numbers of what is named. */
const numbers = (options, what) =>
  Object.fromEntries(Object.entries(object(options, what)).map(([option, value]) => [option, number(option, value)]));

module.exports = { ExphilError, invalid, object, refuse, arrange, disarrange, number, numbers };
