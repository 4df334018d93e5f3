// A game of Pong between the visitor, on the left, and a policy, on the right; and a visitor who is a script.

import { settings } from './practice.js';

export const STILL = 0, UP = 1, DOWN = 2;

/** What of the game can be seen in a row, in pixels of a field of 160 by 128, by the player on the left of it. */
export function field(row) {
  return {
    x: 80 * row[0] + 77, y: 64 * row[1] + 61, speedX: 3 * row[2], speedY: 3 * row[3],
    left: 64 * row[4] + 52, right: 64 * row[5] + 52, pause: 30 * row[6],
  };
}

/** Follows the ball as it was a sixth of a second ago, when it comes near; else it goes back to the middle. */
export class Script {
  #seen = [];
  press(row) {
    this.#seen.push(field(row));
    if (this.#seen.length > 11) this.#seen.shift();
    const { y, speedX } = this.#seen[0];
    const middle = field(row).left + 12;
    const aim = speedX < 0 ? y + 3 : 64;
    return aim < middle - 4 ? UP : aim > middle + 4 ? DOWN : STILL;
  }
}

export class Match {
  #world;
  #session;
  #play;
  #width;
  #seed;
  #decided = new Int32Array(1);
  #floats;
  #actions;
  #at = 0;

  constructor(play, weights, seed = 1) {
    this.#play = play;
    this.#seed = seed;
    this.#world = play.world('pong-two', 1).reset(0, seed);
    this.#width = this.#world.spec.floats;
    this.#floats = new Float32Array(settings.pieceFrames * this.#width);
    this.#actions = new Int32Array(settings.pieceFrames);
    const model = play.load(weights);
    try {
      // Weights of another game are refused here.
      this.#session = model.session({ spec: this.#world.spec, deterministic: true, adoptable: true });
    } finally {
      model.close();
    }
    this.frame = 0;
    this.points = [0, 0];
    /** Points of this game, of which 21 win it. */
    this.game = [0, 0];
  }

  /** The row that the visitor sees; the policy's is the same from its own side. */
  get row() {
    return this.#world.floats.subarray(0, this.#width);
  }

  /** A frame. What the policy decides takes `latency` ms; after a piece of frames it is given to `piece`. */
  step(pressed, piece) {
    const started = performance.now();
    this.#session.stepRow(this.#world.floats.subarray(this.#width), undefined, this.#decided);
    const latency = performance.now() - started;
    this.#floats.set(this.row, this.#at * this.#width);
    this.#actions[this.#at++] = pressed;
    this.#world.step(Int32Array.of(pressed, this.#decided[0]));
    this.frame++;
    const [reward] = this.#world.reward;
    if (reward) {
      this.points[reward > 0 ? 0 : 1]++;
      this.game[reward > 0 ? 0 : 1]++;
    }
    if (this.#world.end[0]) {
      this.#world.reset(0, this.#seed + this.frame);
      this.game = [0, 0];
    }
    if (this.#at === settings.pieceFrames) {
      this.#at = 0;
      piece?.({ floats: this.#floats.slice(), actions: this.#actions.slice() });
    }
    return latency;
  }

  /** Other weights, between two frames. */
  adopt(weights) {
    const model = this.#play.load(weights);
    try {
      this.#session.adopt(model);
    } finally {
      model.close();
    }
  }

  close() {
    this.#session.close();
    this.#world.close();
  }
}
