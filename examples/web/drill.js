// The drill: a policy for Melee's frames, or the visitor, drives the left fighter.

import { drawDrill } from './draw.js';

const FRAME = 1000 / 60;
const keys = { ArrowLeft: 'left', ArrowRight: 'right', x: 'jump', X: 'jump', b: 'shine', B: 'shine' };

export class DrillShow {
  #play;
  #world;
  #session;
  #page;
  #held = new Set();
  #running = true;
  #mine = false;
  #hits = 0;
  #frames = 0;
  #seed = 1;
  #due;

  constructor(play, weights, page) {
    [this.#play, this.#page] = [play, page];
    this.#world = play.world('drill').reset(0, this.#seed);
    const model = play.load(weights);
    this.#session = model.session({ seed: 1 });
    model.close();
    const { find } = page;
    find('drill-run').onclick = () => {
      this.#running = !this.#running;
      page.show('drill-run', this.#running ? 'Pause' : 'Go on');
      find('drill-run').setAttribute('aria-pressed', String(this.#running));
      this.#due = undefined;
    };
    find('drill-me').onclick = () => {
      this.#mine = !this.#mine;
      find('drill-me').setAttribute('aria-pressed', String(this.#mine));
      this.#again();
      if (this.#mine) find('drill').focus();
    };
    for (const button of document.querySelectorAll('.key')) {
      button.onpointerdown = (event) => {
        event.preventDefault();
        this.#held.add(button.dataset.key);
      };
      button.onpointerup = button.onpointerleave = button.onpointercancel = () => this.#held.delete(button.dataset.key);
    }
    find('drill').addEventListener('keydown', (event) => this.#press(event, true));
    find('drill').addEventListener('keyup', (event) => this.#press(event, false));
    find('drill').addEventListener('blur', () => this.#held.clear());
    requestAnimationFrame((now) => this.#tick(now));
  }
  #press(event, down) {
    const key = keys[event.key];
    if (!key) return;
    event.preventDefault();
    down ? this.#held.add(key) : this.#held.delete(key);
  }
  #again() {
    this.#world.reset(0, ++this.#seed);
    this.#session.reset();
    [this.#hits, this.#frames] = [0, 0];
  }
  // The policy looks on while the visitor plays, so that it can go on at any frame.
  #step() {
    const action = this.#session.stepRow(this.#world.floats, this.#world.ids);
    if (this.#mine) {
      const { buttons } = this.#play.melee;
      const pad = { buttons: 0, main_x: (this.#held.has('right') ? 1 : 0) - (this.#held.has('left') ? 1 : 0), main_y: 0 };
      if (this.#held.has('jump')) pad.buttons |= buttons.X;
      if (this.#held.has('shine')) Object.assign(pad, { buttons: pad.buttons | buttons.B, main_x: 0, main_y: -1 });
      action.set(this.#play.melee.padEncode('exphil81', pad));
      this.#session.override(0, action);
    }
    this.#world.step(action);
    this.#hits += this.#world.reward[0];
    this.#frames++;
    if (this.#world.end[0]) this.#again();
  }
  #tick(now) {
    requestAnimationFrame((next) => this.#tick(next));
    if (!this.#running || document.hidden) return void (this.#due = undefined);
    this.#due ??= now;
    const late = Math.floor((now - this.#due) / FRAME + 0.01);
    this.#due += late * FRAME;
    for (let i = Math.min(late, 3); i > 0; i--) this.#step();
    if (!late) return;
    const { find, show, colors } = this.#page;
    show('hits', this.#hits);
    show('rate', this.#frames < 60 ? 0 : Math.round((this.#hits * 3600) / this.#frames));
    drawDrill(find('drill'), this.#world.drill().frame, colors());
  }
}
