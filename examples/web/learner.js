// The Worker: a module of its own, in which Practice learns. Messages: { weights, seed } begins anew, { piece } is learnt from and answered
// by new weights; each is answered in the order in which it came.

import { load } from './exphil-play/exphil_play.js';
import { Practice } from './practice.js';

const ready = load();
let practice;
let work = Promise.resolve();

self.onmessage = ({ data }) => {
  work = work.then(() => answer(data)).catch((error) => self.postMessage({ turn: data.turn, failed: `${error.code ?? error.name}: ${error.message}` }));
};

async function answer({ turn, weights, seed, piece }) {
  if (weights) {
    const play = await ready;
    practice?.close();
    practice = undefined;
    practice = new Practice(play, weights, seed);
    return;
  }
  const learnt = practice.learn(piece);
  self.postMessage({ turn, ...learnt }, [learnt.weights.buffer]);
}
