'use strict';
// Replays a trace that a C program recorded, or times a step; tests/hosts/trace.h has the format.
//   exphil_trace.js check MODEL TRACE      every action and every bit of every logit must be the same
//   exphil_trace.js bench MODEL [STEPS]    median nanoseconds of one stepRow, as one JSON object

const fs = require('node:fs');
const { Context, Model } = require('./exphil.js');

function check(model, file) {
  const bytes = fs.readFileSync(file);
  if (bytes.subarray(0, 8).toString('latin1') !== 'exphtrc1') throw new Error('this is no trace');
  const [floats, ids, heads, logits, deterministic] = [8, 12, 16, 20, 24].map((offset) => bytes.readInt32LE(offset));
  const frames = Number(bytes.readBigInt64LE(40));
  const session = model.session({ seed: bytes.readBigUInt64LE(32), deterministic });
  const shape = [session.floats, session.ids, session.actions].map((row) => row.length);
  if (String([...shape, session.logitCount]) !== String([floats, ids, heads, logits])) throw new Error('the trace is of another model');
  const answer = new Float32Array(logits);
  let place = 48;
  const take = (length) => {
    if (place + length > bytes.length) throw new Error('the trace ends within a frame');
    return bytes.subarray(place, (place += length));
  };
  const bytesOf = (row) => Buffer.from(row.buffer, row.byteOffset, row.byteLength);
  for (let frame = 0; frame < frames; frame++) {
    if (take(4).readInt32LE()) session.reset();
    take(4 * floats).copy(bytesOf(session.floats));
    take(4 * ids).copy(bytesOf(session.ids));
    session.stepRow();
    session.logits(0, answer);
    if (bytesOf(session.actions).compare(take(4 * heads)) || bytesOf(answer).compare(take(4 * logits)))
      throw new Error(`frame ${frame} differs`);
  }
  console.log(`node: ${frames} frames identical`);
}

// Each call is timed alone; the clock's own cost is measured the same way and told, not taken off.
function median(steps, work) {
  const took = new Float64Array(steps);
  for (let i = 0; i < steps; i++) {
    const start = process.hrtime.bigint();
    work();
    took[i] = Number(process.hrtime.bigint() - start);
  }
  return took.sort()[steps >> 1];
}

function bench(model, steps) {
  const session = model.session({ seed: 1, deterministic: true });
  const clock = median(steps, () => {});
  const call = median(steps, () => session.stepRow());
  console.log(JSON.stringify({ host: 'node', median_ns: call, clock_ns: clock, steps }));
}

try {
  const [command, file, argument] = process.argv.slice(2);
  if (!file) throw new Error('exphil_trace.js check MODEL TRACE | bench MODEL [STEPS]');
  const model = Model.load(new Context(), file);
  if (command === 'check') check(model, argument);
  else bench(model, Number(argument ?? 100000));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
