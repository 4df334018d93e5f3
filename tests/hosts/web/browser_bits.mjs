// The package in a headless browser: browser_bits.mjs BROWSER FOLDER. FOLDER has the package, bits.mjs and misuse.mjs,
// policy.safetensors and native.txt.

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { Browser, serve } from './browser.mjs';

const [program, folder] = argv.slice(2);
writeFileSync(`${folder}/bits.html`, `<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module">
  import { load, supported } from './exphil-play/exphil_play.js';
  import { lines } from './bits.mjs';
  import { faults } from './misuse.mjs';
  const policy = new Uint8Array(await (await fetch('policy.safetensors')).arrayBuffer());
  const found = {};
  for (const module of supported() === 'relaxed' ? ['relaxed', 'simd'] : [supported()]) found[module] = lines(await load({ module }), policy);
  window.found = { modules: found, faults: await faults(load, policy) };
</script>`);
const native = readFileSync(`${folder}/native.txt`, 'utf8').trim();
const server = await serve(folder);
const browser = await Browser.start(program);
let failed = 0;
try {
  await browser.open(`${server.url}bits.html`);
  await browser.until('window.found', 'computed', 300);
  const { modules, faults } = await browser.value('window.found');
  for (const [name, lines] of Object.entries(modules)) {
    const same = lines.join('\n') === native;
    console.log(`${name}: ${same ? 'the hashes are those of the library' : `FAILED: ${lines.join('; ')}`}`);
    failed |= !same;
  }
  for (const text of [...faults, ...browser.complaints]) {
    console.error(`FAILED: ${text}`);
    failed = 1;
  }
} finally {
  await browser.close();
  server.close();
}
process.exit(Number(failed));
