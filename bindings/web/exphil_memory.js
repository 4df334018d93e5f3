// One instance of the module: its memory, its errors, and the structures of the headers by the tables that it brings along.

import names from './exphil_names.js';

/** What failed: code "EXPHIL_E_...", status, and the library's own sentence. */
export class ExphilError extends Error {
  constructor(message, code = 'EXPHIL_E_INVALID', status = -1) {
    super(message);
    Object.assign(this, { code, status });
  }
  get name() {
    return 'ExphilError';
  }
}
export const invalid = (message) => new ExphilError(message);
export const gone = (message) => new ExphilError(message, 'EXPHIL_E_STATE', -7);

/** undefined and null are no options at all; anything but an object is refused. */
export function object(value, what) {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(`${what}: must be an object`);
  return value;
}

// A field's number is what play.h calls it by; the first ten are numbers: how a view reads them, their bytes and their range.
const [TEXT_AT, TEXT, POINTER, STRUCT] = [10, 11, 12, 13];
const safe = Number.MAX_SAFE_INTEGER;
const kinds = [
  ['Int32', 4, -(2 ** 31), 2 ** 31 - 1],
  ['Int32', 4, -(2 ** 31), 2 ** 31 - 1],
  ['BigInt64', 8, -safe, safe],
  ['BigUint64', 8, 0, safe],
  ['Float64', 8],
  ['Float32', 4],
  ['Uint32', 4, 0, 2 ** 32 - 1],
  ['Uint16', 2, 0, 2 ** 16 - 1],
  ['Uint8', 1, 0, 255],
  ['Int8', 1, -128, 127],
].map(([name, bytes, low, high]) => ({ get: `get${name}`, set: `set${name}`, big: bytes === 8 && low !== undefined, bytes, low, high }));
const [FLAG, U64] = [1, 3];

// What WASI (preview 1) asks of its host, as far as the library does: a clock, and random bytes to begin its hashes with. All else
// is answered by 52, ENOSYS: files are in the module's own memory (play_files.c), and nothing is printed.
function imports(module, memory) {
  const view = () => new DataView(memory().buffer);
  const known = {
    clock_time_get(_clock, _precision, at) {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    random_get(at, bytes) {
      for (let done = 0; done < bytes; done += 65536)
        crypto.getRandomValues(new Uint8Array(memory().buffer, at + done, Math.min(65536, bytes - done)));
      return 0;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    sched_yield: () => 0,
    fd_prestat_get: () => 8, // EBADF: no folder is open
    proc_exit(code) {
      throw new ExphilError(`the module ended itself (${code})`, 'EXPHIL_E_INTERNAL', -13);
    },
  };
  const given = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (given[from] ??= {})[name] = known[name] ?? (() => 52);
  return given;
}

export class Memory {
  static async make(module) {
    let own;
    try {
      own = (await WebAssembly.instantiate(module, imports(module, () => own.memory))).exports;
    } catch (error) {
      throw invalid(`module: cannot be begun: ${error.message}`);
    }
    if (!own.play_tables || !own._initialize) throw invalid('module: is none of this package');
    own._initialize();
    return new Memory(own);
  }

  #buffer;
  #views = {};
  #lost;
  constructor(exports) {
    this.exports = exports;
    this.structs = this.#tables(exports.play_tables());
  }

  /** Views of the memory as it is now: it may have grown since the last call. */
  get views() {
    const buffer = this.exports.memory.buffer;
    if (this.#buffer !== buffer) {
      this.#buffer = buffer;
      this.#views = { data: new DataView(buffer), u8: new Uint8Array(buffer), i32: new Int32Array(buffer), f32: new Float32Array(buffer) };
    }
    return this.#views;
  }
  u32(at) {
    return this.views.data.getUint32(at, true);
  }
  text(at, most = Infinity) {
    if (!at) return undefined;
    const { u8 } = this.views;
    let end = at;
    while (u8[end] && end - at < most) end++;
    return new TextDecoder().decode(u8.slice(at, end));
  }

  /** A call by its name in play.c. What stops the module stops it for good. */
  call(name, ...values) {
    if (this.#lost) throw this.#lost;
    try {
      return this.exports[`play_${name}`](...values);
    } catch (error) {
      if (error instanceof ExphilError) throw (this.#lost = error);
      throw (this.#lost = new ExphilError(`the module failed in ${name} and is lost: ${error.message}`, 'EXPHIL_E_INTERNAL', -13));
    }
  }
  /** Of what frees: with a module that is lost, all is gone already. */
  end(name, ...values) {
    if (!this.#lost) this.call(name, ...values);
  }
  fail() {
    const at = this.call('failure');
    const status = this.views.data.getInt32(at + 4, true);
    const code = this.text(this.call('status_name', status));
    throw new ExphilError(this.text(at + 12, 240) || code, code, status);
  }
  /** A call that returns a status. */
  check(name, ...values) {
    const status = this.call(name, ...values);
    if (status < 0) this.fail();
    return status;
  }
  /** A call that returns an object. */
  make(name, ...values) {
    return this.call(name, ...values) || this.fail();
  }

  alloc(bytes, what = 'this') {
    const at = bytes < 2 ** 31 && this.call('alloc', bytes); // a larger number would be cut on its way
    if (!at) throw new ExphilError(`no memory: ${bytes} bytes for ${what}`, 'EXPHIL_E_MEMORY', -2);
    return at;
  }
  free(at) {
    this.end('free', at);
  }
  /** What body takes from `room` is freed when it has returned. */
  within(body) {
    const taken = [];
    const room = (bytes, what) => {
      const at = this.alloc(bytes, what);
      taken.push(at);
      return at;
    };
    try {
      return body(room);
    } finally {
      taken.forEach((at) => this.free(at));
    }
  }
  /** A copy of bytes, numbers or a text, in room. What was given away (transferred) has no bytes, and takes no view. */
  put(room, value, what) {
    const array = typeof value === 'string' ? new TextEncoder().encode(`${value}\0`) : value;
    const at = room(array.byteLength, what);
    if (array.byteLength) this.views.u8.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    return at;
  }
  /** A name, in room; none is 0, what the library takes for its first. */
  name(room, value, what) {
    if (value === undefined || value === null) return 0;
    if (typeof value !== 'string' || value.includes('\0')) throw invalid(`${what}: must be a text`);
    return this.put(room, value, what);
  }

  // ---- structures -------------------------------------------------------------------------------------------------------

  #fields(at) {
    const fields = new Map();
    for (; this.u32(at); at += 24) {
      const [name, offset, kind, count, known, of] = [0, 4, 8, 12, 16, 20].map((place) => this.u32(at + place));
      fields.set(this.text(name), { offset, kind, count, known, of });
    }
    return fields;
  }
  #tables(at) {
    const [structs, byPlace] = [{}, new Map()];
    for (; this.u32(at); at += 16) {
      const one = { size: this.u32(at + 4), led: this.u32(at + 8), fields: this.#fields(this.u32(at + 12)) };
      structs[this.text(this.u32(at))] = one;
      byPlace.set(this.u32(at + 12), one);
    }
    for (const { fields } of Object.values(structs)) for (const one of fields.values()) one.of = byPlace.get(one.of);
    return structs;
  }
  constants(which) {
    const found = {};
    for (let at = this.call('constants', which); this.u32(at); at += 8) found[this.text(this.u32(at))] = this.u32(at + 4);
    return Object.freeze(found);
  }

  /** A structure of zeros, filled from an object: text by text, number by number, pointers from `pointers`. */
  struct(room, name, options, pointers = {}, count = 1) {
    const { size, led, fields } = this.structs[name];
    const at = room(size * count, name);
    this.views.u8.fill(0, at, at + size * count);
    if (led) this.views.data.setUint32(at, size, true);
    for (const [field, value] of Object.entries(pointers)) this.views.data.setUint32(at + fields.get(field).offset, value, true);
    this.fill(room, at, this.structs[name], options, name);
    return at;
  }
  fill(room, at, { fields }, options, what) {
    for (const [name, value] of Object.entries(object(options, what))) {
      if (value === undefined) continue;
      const field = fields.get(name);
      if (!field || field.kind === POINTER || field.kind === STRUCT) throw invalid(`${what}.${name}: there is no such option`);
      const place = at + field.offset;
      if (field.kind === TEXT_AT) {
        if (typeof value !== 'string' || value.includes('\0')) throw invalid(`${what}.${name}: must be a text`);
        const text = this.put(room, value, name); // which may move the memory that views are of
        this.views.data.setUint32(place, text, true);
      } else this.number(place, field.kind, named(name, value), `${what}.${name}`);
    }
  }
  /** Every number goes this way: one that its field cannot hold is refused by its name, never cut. */
  number(at, kind, value, what) {
    const { set, big, low, high } = kinds[kind] ?? (() => { throw invalid(`${what}: cannot be given`); })();
    if (typeof value === 'boolean' && kind === FLAG) value = Number(value);
    const wide = typeof value === 'bigint' && kind === U64;
    if (wide ? value < 0n || value >= 1n << 64n : typeof value !== 'number' || (low !== undefined && !(Number.isInteger(value) && value >= low && value <= high)))
      throw invalid(`${what}: is ${String(value)}, must be a ${low === undefined ? 'number' : `whole number from ${low} to ${high}`}`);
    this.views.data[set](at, big && !wide ? BigInt(value) : value, true);
  }
  /** And back. 64-bit hashes are bigint, counts are numbers. */
  told(at, { fields }) {
    const { data } = this.views;
    const found = {};
    for (const [name, { offset, kind, count, of }] of fields) {
      const read = (place) => {
        if (kind === TEXT_AT) return this.text(data.getUint32(place, true));
        if (kind === TEXT) return this.text(place);
        if (kind === STRUCT) return this.told(place, of);
        const value = data[kinds[kind].get](place, true);
        return kind === FLAG ? value !== 0 : kind === U64 || typeof value !== 'bigint' ? value : Number(value);
      };
      if (kind === POINTER) continue;
      const size = kind === STRUCT ? of.size : kind < kinds.length ? kinds[kind].bytes : 0;
      found[name] = count === 1 ? read(at + offset) : Array.from({ length: count }, (_, i) => read(at + offset + i * size));
    }
    return found;
  }
}

function named(option, value) {
  if (typeof value !== 'string' || !Object.hasOwn(names, option)) return value;
  const found = names[option].indexOf(value);
  if (found < 0) throw invalid(`${option}: ${value} is none of ${names[option].join(', ')}`);
  return found;
}
export { named };
