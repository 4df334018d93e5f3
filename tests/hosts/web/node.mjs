// The package in Node: node.mjs PACKAGE FOLDER. FOLDER has policy.safetensors and native.txt, what bits.c printed.

import { readFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { lines } from './bits.mjs';
import { faults } from './misuse.mjs';

const [folder, files] = argv.slice(2);
const { load, supported } = await import(pathToFileURL(`${folder}/exphil_play.js`));
const policy = new Uint8Array(readFileSync(`${files}/policy.safetensors`));
const native = readFileSync(`${files}/native.txt`, 'utf8').trim().split('\n');
let failed = 0;
const fail = (text) => {
  console.error(`FAILED: ${text}`);
  failed = 1;
};
// What this Node cannot run is run by the browser.
for (const module of supported() === 'relaxed' ? ['relaxed', 'simd'] : ['simd']) {
  const lib = await load({ module });
  const other = lines(lib, policy).map((line, i) => [line, native[i]]).filter(([here, there]) => here !== there);
  for (const [here, there] of other) fail(`${module}: ${here}, native ${there}`);
  console.log(`${module}: ${native.length - other.length} of ${native.length} hashes are those of the library`);
}
for (const text of await faults(load, policy)) fail(text);
// A checkpoint goes on where it was, and a world's game too.
const lib = await load();
const world = lib.world('cartpole', 2).reset(0, 1).reset(1, 2);
world.step(Int32Array.of(0, 1));
const game = world.save(1);
const once = world.step(Int32Array.of(1, 1)).floats.join();
world.restore(1, game);
if (world.step(Int32Array.of(1, 1)).floats.slice(4).join() !== once.split(',').slice(4).join()) fail('a saved game goes on otherwise');
const model = lib.create({ spec: world.spec, blocks: 'gru', hidden: 8, seed: 2, no_previous_action: true });
const batch = { batch: 1, time: 2, floats: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8), actions: Int32Array.of(0, 1) };
const [one, two] = [model.trainer(), model.trainer()];
one.stepBatch(batch);
two.resume(one.save());
if (one.stepBatch(batch).loss !== two.stepBatch(batch).loss || Buffer.compare(one.model().save(), two.model().save())) fail('a checkpoint goes on otherwise');
process.exit(failed);
