// What a frame of the default policy (mamba*2, H 256) costs in V8 beside the library of this machine: medians in ms, and their ratio.
//   bench/web/step.sh [--frames N]      builds the package where it is not, and asks both in turn

import { execFileSync } from 'node:child_process';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';

const [folder, native, frames] = [argv[2], argv[3], Number(argv[4] ?? 600)];
const { load, supported } = await import(pathToFileURL(`${folder}/exphil_play.js`));
const modules = supported() === 'relaxed' ? ['relaxed', 'simd'] : ['simd'];

function measure(lib, kind) {
  const model = lib.create({ blocks: 'mamba*2', hidden: 256, seed: 1 });
  const session = (kind === 'f32' ? model : model.quantize(kind)).session();
  const [floats, ids, times] = [new Float32Array(session.floatCount).fill(0.25), new Int32Array(session.idCount), []];
  for (let t = 0; t < frames + 60; t++) {
    floats[t % floats.length] = Math.sin(t);
    const began = performance.now();
    session.stepRow(floats, ids);
    if (t >= 60) times.push(performance.now() - began); // before, V8 compiles
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

const told = Object.fromEntries(execFileSync(native, [String(frames)], { encoding: 'utf8' }).trim().split('\n').map((line) => line.split(' ')));
console.log('module    weights  ms a frame  native ms  ratio');
for (const module of modules) {
  const lib = await load({ module });
  for (const kind of ['f32', 'int8']) {
    const [here, there] = [measure(lib, kind), Number(told[kind])];
    console.log(`${module.padEnd(9)} ${kind.padEnd(8)} ${here.toFixed(3).padStart(10)} ${there.toFixed(3).padStart(10)} ${(here / there).toFixed(1).padStart(6)}`);
  }
}
