// The page. The game and what decides in it are here, 60 frames a second; what learns is in a Worker (learner.js).
//   ?visitor=script&frames=7200&lockstep=1   a script plays so many frames by a clock of frames: new weights enter after the piece that
//                                            they were learnt from, so that all that is played is the same on every machine
// document.documentElement.dataset.done is then what came of it, as JSON.

import { load } from './exphil-play/exphil_play.js';
import { DrillShow } from './drill.js';
import { drawChart, drawPong, palette } from './draw.js';
import { DOWN, Match, STILL, Script, UP, field } from './match.js';
import { settings } from './practice.js';

const asked = new URLSearchParams(location.search);
const script = asked.get('visitor') === 'script' ? new Script() : undefined;
const lockstep = asked.get('lockstep') === '1';
const most = Number(asked.get('frames') ?? Infinity);
const FRAME = 1000 / 60;
const SEED = Number(asked.get('seed') ?? 1);
const PIECES_MOST = 8; // that may wait to be learnt from

const find = (id) => document.getElementById(id);
const show = (id, text) => (find(id).textContent = text);
function say(text, wrong = false) {
  show('said', text);
  find('said').classList.toggle('wrong', wrong);
}

let colors = palette();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (colors = palette()));

// ---- who learns -------------------------------------------------------------------------------------------------------

class Learning {
  #worker = new Worker(new URL('learner.js', import.meta.url), { type: 'module' });
  #turn = 0;
  #heard;
  waiting = 0;
  lost = 0;
  constructor(heard) {
    this.#heard = heard;
    this.#worker.onmessage = ({ data }) => {
      if (data.turn !== this.#turn) return; // of before a reset
      if (data.failed) {
        say(`Learning stopped. ${data.failed}`, true);
        return;
      }
      this.waiting--;
      this.#heard(data);
    };
    this.#worker.onerror = (event) => say(`Learning stopped. ${event.message ?? 'The Worker did not start.'}`, true);
  }
  begin(weights) {
    this.#turn++;
    this.waiting = this.lost = 0;
    this.#worker.postMessage({ turn: this.#turn, weights, seed: SEED });
  }
  give(piece) {
    if (this.waiting >= PIECES_MOST) return void this.lost++;
    this.waiting++;
    this.#worker.postMessage({ turn: this.#turn, piece }, [piece.floats.buffer, piece.actions.buffer]);
  }
}

// ---- the game -----------------------------------------------------------------------------------------------------------

const fetched = async (name) => {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
};

let play, first, weights, match, learning;
let frozen = false, running = false, pieces = [], latencies = [], dropped = 0, adopted = 0;
let answered; // of lockstep: resolves when the piece has been learnt from

function heard(learnt) {
  if (frozen) return;
  weights = learnt.weights;
  match.adopt(weights); // between two frames: a message comes between two calls
  show('adopted', ++adopted);
  show('practised', learnt.frames.toLocaleString('en'));
  show('updates', learnt.updates.toLocaleString('en'));
  show('clone', learnt.loss === undefined ? '\u2013' : learnt.loss.toFixed(2));
  show('waiting', learning.lost ? `${learning.waiting}, ${learning.lost} lost` : learning.waiting);
  answered?.();
}

function begin(from) {
  const next = new Match(play, from, SEED); // throws where the weights are not of this game
  match?.close();
  match = next;
  weights = from;
  [pieces, latencies, dropped, adopted] = [[], [], 0, 0];
  learning.begin(from);
  for (const id of ['seen', 'practised', 'updates', 'adopted', 'waiting', 'dropped']) show(id, 0);
  show('clone', '\u2013');
  report();
}

const held = new Set();
let pointer; // where on the field, from 0 to 128
function visitor() {
  if (script) return script.press(match.row);
  if (held.has('up') !== held.has('down')) return held.has('up') ? UP : DOWN;
  if (pointer === undefined) return STILL;
  const middle = field(match.row).left + 12;
  return pointer < middle - 2 ? UP : pointer > middle + 2 ? DOWN : STILL;
}

let given; // of lockstep: what has to be learnt from before the next frame
function frame() {
  latencies.push(match.step(visitor(), (piece) => {
    pieces.push(match.points[1] - match.points[0]);
    if (frozen) return;
    given = piece;
    if (!lockstep) learning.give(piece);
  }));
  if (latencies.length > 600) latencies.shift();
}

// Chromium rounds times to 0.1 ms, others more.
const milliseconds = (time) => (time < 0.1 ? '< 0.1 ms' : `${time.toFixed(1)} ms`);
function report() {
  show('you', match.points[0]);
  show('it', match.points[1]);
  drawPong(find('pong'), match.row, colors);
  if (match.frame % 15) return;
  const sorted = Float64Array.from(latencies).sort();
  if (sorted.length) {
    show('median', milliseconds(sorted[sorted.length >> 1]));
    show('p99', milliseconds(sorted[Math.floor(sorted.length * 0.99)]));
  }
  show('dropped', dropped);
  show('seen', match.frame.toLocaleString('en'));
  show('waiting', learning.lost ? `${learning.waiting}, ${learning.lost} lost` : learning.waiting);
  drawChart(find('chart'), pieces, settings.pieceFrames / 60);
}

// Frames are due by the clock, however often pictures are drawn; after a long pause (another tab) they are dropped.
let due, drill;
function tick(now) {
  if (!running) return;
  due ??= now;
  let late = Math.floor((now - due) / FRAME + 0.01);
  if (late > 6) {
    dropped += late - 1;
    due += (late - 1) * FRAME;
    late = 1;
  }
  for (; late > 0 && match.frame < most; late--, due += FRAME) frame();
  report();
  if (match.frame >= most) return finish();
  requestAnimationFrame(tick);
}

function run(on) {
  running = on;
  due = undefined;
  held.clear();
  find('cover').hidden = on;
  find('pause').disabled = false;
  show('pause', on ? 'Pause' : 'Go on');
  if (on) requestAnimationFrame(tick);
}

// A clock of frames: a piece is learnt from before the next frame is played.
async function runInLockstep() {
  find('cover').hidden = true;
  const scores = [];
  while (match.frame < most) {
    frame();
    if (!given) continue;
    const done = new Promise((resolve) => (answered = resolve));
    learning.give(given);
    given = undefined;
    await done;
    scores.push([...match.points]);
    report();
  }
  report();
  finish(scores);
}
function finish(scores) {
  running = false;
  const said = { frames: match.frame, points: match.points, pieces: scores, adopted, dropped, module: play.module };
  document.documentElement.dataset.done = JSON.stringify(said);
}

// ---- what the visitor touches -----------------------------------------------------------------------------------------------

const keys = { ArrowUp: 'up', w: 'up', W: 'up', ArrowDown: 'down', s: 'down', S: 'down' };
const ofDrill = () => document.activeElement === find('drill');
function press(event, down) {
  if (event.target instanceof HTMLButtonElement && event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
  const key = ofDrill() || !running ? undefined : keys[event.key];
  if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  pointer = undefined;
  down ? held.add(key) : held.delete(key);
}
addEventListener('keydown', (event) => press(event, true));
addEventListener('keyup', (event) => press(event, false));
addEventListener('blur', () => held.clear());

function point(event) {
  const box = find('pong').getBoundingClientRect();
  pointer = Math.max(0, Math.min(128, ((event.clientY - box.top) / box.height) * 128));
}
find('pong').addEventListener('pointerdown', (event) => {
  find('pong').setPointerCapture(event.pointerId);
  point(event);
});
find('pong').addEventListener('pointermove', (event) => {
  if (event.pointerType !== 'mouse' || event.buttons || pointer !== undefined) point(event);
});

const save = () => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([weights], { type: 'application/octet-stream' }));
  link.download = 'pong.safetensors';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  say(`pong.safetensors: ${weights.length.toLocaleString('en')} bytes.`);
};
async function loadFile(file) {
  if (!file) return;
  try {
    begin(new Uint8Array(await file.arrayBuffer()));
    say(`It plays ${file.name}, and learns on from there.`);
  } catch (error) {
    say(`${file.name} is not taken. ${error.message}`, true);
  }
}

function listen() {
  find('start').onclick = () => run(true);
  find('pause').onclick = () => run(!running);
  find('freeze').onclick = () => {
    frozen = !frozen;
    find('freeze').setAttribute('aria-pressed', String(frozen));
    say(frozen ? 'It stays as it is.' : 'It learns.');
  };
  find('reset').onclick = () => {
    begin(first);
    say('It plays as it began.');
  };
  find('save').onclick = save;
  find('load').onclick = () => find('file').click();
  find('file').onchange = ({ target }) => loadFile(target.files[0]).finally(() => (target.value = ''));
  addEventListener('visibilitychange', () => document.hidden && running && !script && run(false));
}

try {
  play = await load(asked.has('module') ? { module: asked.get('module') } : {});
  show('module', play.module);
  first = await fetched('pong.safetensors');
  learning = new Learning(heard);
  begin(first);
  listen();
  if (!lockstep) drill = new DrillShow(play, await fetched('drill.safetensors'), { colors: () => colors, find, show });
  document.documentElement.dataset.ready = '1';
  if (lockstep) await runInLockstep();
  else if (script) run(true);
} catch (error) {
  say(`${error.code ?? error.name}: ${error.message}`, true);
  document.documentElement.dataset.failed = error.message;
}
