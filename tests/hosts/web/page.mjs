// The page in a headless browser: page.mjs BROWSER FOLDER [FRAMES]. FOLDER is what examples/web/make-page has made. With FRAMES a scripted
// visitor plays so many frames in lockstep, and must lose at the end as it has not at the beginning; without, few frames, in the browser
// and here, must come to the same, and the page is looked at. Screenshots stay in FOLDER.

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { Browser, serve } from './browser.mjs';

const [program, folder, long] = argv.slice(2);
const frames = Number(long ?? 120);
let failed = 0;
const check = (right, text) => {
  if (right) return;
  console.error(`FAILED: ${text}`);
  failed = 1;
};

const server = await serve(folder);
const browser = await Browser.start(program);
const data = (name) => `document.documentElement.dataset.${name}`;
const text = (id) => browser.value(`document.getElementById('${id}').textContent`);
const click = (id) => browser.value(`document.getElementById('${id}').click()`);
// The bytes that the button gives to be kept.
const saved = async () => Buffer.from(await browser.value(`new Promise((resolve) => {
  URL.createObjectURL = (blob) => (blob.arrayBuffer().then((bytes) => resolve(btoa(String.fromCharCode(...new Uint8Array(bytes))))), 'data:,');
  document.getElementById('save').click();
})`), 'base64');
async function give(name, bytes) {
  await browser.value(`(() => {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(atob('${Buffer.from(bytes).toString('base64')}'), (c) => c.charCodeAt(0))], '${name}'));
    document.getElementById('file').files = files.files;
    document.getElementById('file').dispatchEvent(new Event('change'));
  })()`);
  await browser.until(`document.getElementById('said').textContent.includes('${name}')`, `${name} is given`, 30);
  return text('said');
}
async function opened(query) {
  await browser.open('about:blank');
  await browser.open(server.url + query);
  await browser.until(`${data('ready')} || ${data('failed')}`, 'the page is ready', 120);
  check(!(await browser.value(data('failed'))), `the page does not start: ${await browser.value(data('failed'))}`);
}

// By a clock of frames.
async function lockstep() {
  await opened(`?visitor=script&lockstep=1&frames=${frames}`);
  await browser.until(`${data('done')} || document.querySelector('.wrong')`, 'played to the end', 3600);
  const done = JSON.parse((await browser.value(data('done'))) ?? 'null');
  check(done, `it stopped: ${await text('said')}`);
  return { ...done, weights: await saved() };
}

function scores({ pieces, points, module }) {
  const quarter = Math.floor(pieces.length / 4);
  const [first, before] = [pieces[quarter - 1], pieces[pieces.length - quarter - 1]];
  const last = points.map((count, i) => count - before[i]);
  console.log(`${module}: visitor ${first[0]}:${first[1]} in the first quarter, ${last[0]}:${last[1]} in the last, ${points.join(':')} in all`);
  check(first[0] >= first[1], 'the visitor is behind from the beginning');
  check(last[1] > last[0], 'the policy has not learnt to win');
}

// The same without a browser.
async function compare(done) {
  const here = (name) => import(pathToFileURL(`${folder}/${name}`));
  const [{ load }, { Match, Script }, { Practice }] = await Promise.all(['exphil-play/exphil_play.js', 'match.js', 'practice.js'].map(here));
  const weights = new Uint8Array(readFileSync(`${folder}/pong.safetensors`));
  const [match, script, practice] = [new Match(await load(), weights, 1), new Script(), new Practice(await load(), weights, 1)];
  let piece, learnt;
  while (match.frame < frames) {
    match.step(script.press(match.row), (given) => (piece = given));
    if (!piece) continue;
    learnt = practice.learn(piece);
    match.adopt(learnt.weights);
    piece = undefined;
  }
  check(done.points.join() === match.points.join(), `points are ${done.points} in the browser, ${match.points} in Node`);
  check(done.adopted === frames / 120 && !Buffer.compare(done.weights, Buffer.from(learnt.weights)), 'browser and Node have learnt different weights');
  check(Buffer.compare(done.weights, Buffer.from(weights)), 'nothing was learnt');
}

// As a visitor finds it.
async function visit() {
  await browser.look(1200, 1000, false);
  await opened('');
  for (const [name, width, height, dark, mobile] of [['desk-light', 1200, 1000, false, false], ['desk-dark', 1200, 1000, true, false],
    ['phone-light', 390, 844, false, true], ['phone-dark', 390, 844, true, true]]) {
    await browser.look(width, height, dark, mobile);
    await browser.value('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    const wide = await browser.value(`[document.documentElement, ...document.querySelectorAll('h1, h2, p, dl, dt, dd, button, section')]
      .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0).map((one) => one.textContent.trim().slice(0, 40))`);
    check(!wide.length, `${name}: too wide: ${wide.join('; ')}`);
    const small = mobile ? await browser.value(`[...document.querySelectorAll('button')].filter((one) => one.offsetParent && one.offsetHeight < 40).map((one) => one.textContent)`) : [];
    check(!small.length, `${name}: too small for a finger: ${small.join('; ')}`);
    const picture = await browser.picture();
    check(picture.length > 20000, `${name}: there is nothing to be seen`);
    writeFileSync(`${folder}/${name}.png`, picture);
  }
  await browser.look(1200, 1000, false);
  await click('start');
  await browser.until("Number(document.getElementById('seen').textContent) > 30", 'played', 120);
  // a key moves the paddle, and is not lost where a button has the focus
  const paddle = () => browser.value(`document.getElementById('pong').getContext('2d').getImageData(36, 0, 1, 768).data.findIndex((_, i, all) => i % 4 === 0 && all[i] > 150) >> 2`);
  const stood = await paddle();
  for (const type of ['keyDown', 'keyUp']) {
    await browser.tell('Input.dispatchKeyEvent', { type, key: 'ArrowDown', code: 'ArrowDown', windowsVirtualKeyCode: 40 });
    if (type === 'keyDown') await browser.until(`document.getElementById('pong').getContext('2d').getImageData(36, ${stood + 4}, 1, 1).data[0] < 150`, 'the key moves the paddle', 60);
  }
  await click('pause');
  check((await text('pause')) === 'Go on', 'it does not pause');
  check(/ms$/.test(await text('median')) && /ms$/.test(await text('p99')), 'no latency is shown');
  // weights out and in; what is no policy of this game is refused, and the game goes on
  await click('freeze');
  await click('reset');
  const first = readFileSync(`${folder}/pong.safetensors`);
  check(!Buffer.compare(await saved(), first), 'after a reset other weights play');
  check(/not taken/.test(await give('torn.safetensors', first.subarray(0, 500))), 'a torn file is taken');
  check(/not taken/.test(await give('drill.safetensors', readFileSync(`${folder}/drill.safetensors`))), 'a policy of another game is taken');
  check(!Buffer.compare(await saved(), first), 'refused weights play');
  check(/plays pong2/.test(await give('pong2.safetensors', first)), 'weights are not taken');
  await browser.until("Number(document.getElementById('hits').textContent) > 0", 'the drill hits', 120);
  await click('drill-me');
  await browser.until("document.getElementById('hits').textContent === '0'", 'the drill begins anew', 60); // with its next picture
  check(!browser.complaints.length, browser.complaints.join('; '));
}

try {
  const done = await lockstep();
  writeFileSync(`${folder}/learnt.safetensors`, done.weights);
  if (long) scores(done);
  else {
    await compare(done);
    await visit();
  }
} finally {
  await browser.close();
  server.close();
}
process.exit(failed);
