// What learns from the visitor, in a Worker's own module. A piece of the visitor's frames comes in, new weights go out; what is learnt
// is a function of the frames alone, for all that is drawn follows from seeds and all counts are fixed here.
//   1 A clone of the visitor is trained on the visitor's rows and actions.
//   2 The policy practises pong-two against that clone, and pong against the game's own player, and learns by PPO.

export const settings = {
  pieceFrames: 120, // two seconds of the visitor's game
  clone: { updates: 16, batch: 16, time: 16, rate: 5e-3, hidden: 32 },
  chunks: 12, // of a piece: so many times the policy plays `time` frames in all lanes, and learns from them
  cloneLanes: 16,
  gameLanes: 16,
  time: 64,
  rate: 1e-3,
  entropy: 0.003,
};

/** Draws that follow from a seed (mulberry32). */
export function draws(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

export class Practice {
  #play;
  #clone;
  #trainer;
  #learner;
  #against;
  #held = [];
  #rows; // [frames, F] of the visitor, all that were played
  #moves;
  #frames = 0;
  #draw;

  constructor(play, weights, seed = 1) {
    this.#play = play;
    const hold = (made) => (this.#held.push(made), made);
    const { clone: c } = settings;
    const policy = hold(play.load(weights));
    const first = hold(play.create({
      spec: policy.spec, blocks: 'mlp', hidden: c.hidden, head_width: c.hidden, no_previous_action: true, neutral_start: true, seed,
    }));
    this.#clone = hold(first.trainer({ optimizer: { rate: c.rate } }));
    this.#trainer = hold(policy.trainer({ optimizer: { rate: settings.rate, clip_norm: 0.5 }, trainer: { as_played: true } }));
    this.#against = hold(play.against(hold(play.world('pong-two', settings.cloneLanes)), [first], seed + 1));
    const all = hold(play.beside(this.#against, hold(play.world('pong', settings.gameLanes))));
    this.#learner = hold(this.#trainer.learner(all, {
      session: { seed: seed + 2 },
      rollout: { time: settings.time, seed: seed + 3 },
      learner: { entropy: settings.entropy, seed: seed + 4 },
    }));
    this.#draw = draws(seed + 5);
    this.width = policy.spec.floats;
    this.#rows = new Float32Array(0);
    this.#moves = new Int32Array(0);
  }

  #keep(floats, actions) {
    const frames = actions.length;
    if ((this.#frames + frames) * this.width > this.#rows.length) {
      const more = (old, Type, width) => {
        const array = new Type(Math.max(2 * this.#frames, this.#frames + frames, 7200) * width);
        array.set(old);
        return array;
      };
      this.#rows = more(this.#rows, Float32Array, this.width);
      this.#moves = more(this.#moves, Int32Array, 1);
    }
    this.#rows.set(floats, this.#frames * this.width);
    this.#moves.set(actions, this.#frames);
    this.#frames += frames;
  }

  // Stretches of what the visitor did, drawn from all of it, as batches.
  #imitate() {
    const { updates, batch, time } = settings.clone;
    if (this.#frames < time) return undefined;
    let metrics;
    for (let update = 0; update < updates; update++) {
      const [floats, actions] = [new Float32Array(batch * time * this.width), new Int32Array(batch * time)];
      const reset = new Uint8Array(batch * time);
      for (let b = 0; b < batch; b++) {
        const first = this.#draw(this.#frames - time + 1);
        floats.set(this.#rows.subarray(first * this.width, (first + time) * this.width), b * time * this.width);
        actions.set(this.#moves.subarray(first, first + time), b * time);
        reset[b * time] = 1;
      }
      metrics = this.#clone.stepBatch({ batch, time, floats, actions, reset });
    }
    const model = this.#clone.model();
    this.#against.opponent(0, model);
    model.close();
    return metrics.loss;
  }

  /** piece: floats [T,F] and actions [T] of the visitor. Gives { weights, loss, reward, updates, frames }. */
  learn({ floats, actions }) {
    this.#keep(floats, actions);
    const loss = this.#imitate();
    let metrics;
    for (let chunk = 0; chunk < settings.chunks; chunk++) metrics = this.#learner.update();
    return {
      weights: this.weights(),
      loss,
      reward: metrics.reward,
      updates: metrics.updates,
      frames: metrics.chunks * settings.time * (settings.cloneLanes + settings.gameLanes),
    };
  }

  weights() {
    const model = this.#trainer.model();
    try {
      return model.save();
    } finally {
      model.close();
    }
  }

  close() {
    for (const one of this.#held.reverse()) one.close();
  }
}
