// Wrong uses of the package, and what it says: a list of what was not said so, empty where all was.

/** load: of the package; trained: bytes of a weights file. */
export async function faults(load, weights) {
  const found = [];
  async function refused(code, words, body) {
    try {
      await body();
      found.push(`not refused: ${words}`);
    } catch (error) {
      if (error.name !== 'ExphilError' || error.code !== code || !words.test(error.message)) found.push(`${words}: ${error.code ?? error.name} ${error.message}`);
      else if (!Number.isInteger(error.status) || error.status >= 0) found.push(`${words}: status ${error.status}`);
    }
  }
  // By the language itself.
  function changeRefused(body) {
    try {
      body();
      found.push(`not refused: ${body}`);
    } catch (error) {
      if (!(error instanceof TypeError)) found.push(`${body}: ${error.message}`);
    }
  }
  const lib = await load();
  const model = lib.load(weights);
  const { spec } = model;
  const session = model.session({ streams: 2 });
  const [floats, ids] = [new Float32Array(session.floatCount * 2), new Int32Array(session.idCount * 2)];
  const before = session.stepRow(floats, ids).join();
  const state = session.saveState(1);

  // lengths and types
  await refused('EXPHIL_E_INVALID', /floats: has 1 elements, must have/, () => session.stepRow(new Float32Array(1), ids));
  await refused('EXPHIL_E_INVALID', /floats: must be a Float32Array/, () => session.stepRow([...floats], ids));
  await refused('EXPHIL_E_INVALID', /ids: must be a Int32Array/, () => session.stepRow(floats));
  await refused('EXPHIL_E_INVALID', /actions: has 1 elements/, () => session.stepRow(floats, ids, new Int32Array(1)));
  await refused('EXPHIL_E_INVALID', /stream: is 2, must be a whole number from 0 to 1/, () => session.logits(2));
  await refused('EXPHIL_E_INVALID', /stream: is 0.5/, () => session.reset(0.5));
  await refused('EXPHIL_E_INVALID', /state: has 3 elements/, () => session.restoreState(0, new Uint8Array(3)));
  // numbers
  await refused('EXPHIL_E_NUMERIC', /float 3|\[3\]|column 3|nan/i, () => session.stepRow(floats.map((x, i) => (i === 3 ? NaN : x)), ids));
  await refused('EXPHIL_E_INVALID', /9999/, () => session.stepRow(floats, ids.map(() => 9999)));
  await refused('EXPHIL_E_FORMAT', /state/, () => session.restoreState(1, state.map((x, i) => (i % 7 ? x : x ^ 255))));
  session.restoreState(1, state);
  await refused('EXPHIL_E_INVALID', /seed: is -1, must be a whole number from 0/, () => model.session({ seed: -1 }));
  await refused('EXPHIL_E_INVALID', /streams/, () => model.session({ streams: 5000 }));
  await refused('EXPHIL_E_INVALID', /lanes: there is no such option/, () => model.session({ lanes: 2 }));
  await refused('EXPHIL_E_INVALID', /deliver: late is none of due, decided/, () => model.session({ deliver: 'late' }));
  await refused('EXPHIL_E_STATE', /adoptable/, () => session.adopt(model));
  await refused('EXPHIL_E_INVALID', /blocks/, () => lib.create({ spec, blocks: 'mumba' }));
  await refused('EXPHIL_E_INVALID', /kind: other is neither/, () => lib.create({ spec: { ...spec, heads: [{ ...spec.heads[0], kind: 'other' }] } }));
  await refused('EXPHIL_E_UNSUPPORTED', /EXPHIL_TYPE_F64/, () => lib.create({ spec, blocks: 'mlp', hidden: 8, type: 'f64' }).session());
  await refused('EXPHIL_E_MISMATCH', /host gives other/, () => model.session({ spec: { ...spec, layout: 'other' } }));
  // files
  await refused('EXPHIL_E_FORMAT', /./, () => lib.load(weights.slice(0, weights.length - 5)));
  await refused('EXPHIL_E_FORMAT', /./, () => lib.load(weights.slice(0, 7)));
  await refused('EXPHIL_E_FORMAT', /./, () => lib.load(new Uint8Array(0)));
  await refused('EXPHIL_E_INVALID', /bytes: must be a Uint8Array/, () => lib.load('policy.safetensors'));
  // batches
  const trainer = model.trainer();
  const rows = { batch: 1, time: 2, floats: floats.slice(), ids: ids.slice(), actions: new Int32Array(2 * spec.heads.length), past: new Int32Array(2 * spec.heads.length) };
  await refused('EXPHIL_E_INVALID', /actions: has 1 elements/, () => trainer.stepBatch({ ...rows, actions: new Int32Array(1) }));
  await refused('EXPHIL_E_INVALID', /floots: a batch has no such field/, () => trainer.stepBatch({ ...rows, floots: floats }));
  await refused('EXPHIL_E_INVALID', /./, () => trainer.stepBatch({ ...rows, actions: rows.actions.map(() => 99) }));
  await refused('EXPHIL_E_NUMERIC', /./, () => trainer.stepBatch({ ...rows, floats: floats.map(() => Infinity) }));
  await refused('EXPHIL_E_FORMAT', /./, () => trainer.resume(weights));
  trainer.stepBatch(rows);
  await refused('EXPHIL_E_UNSUPPORTED', /quantised|quantized|f32/i, () => model.quantize('int8').trainer());
  // worlds
  await refused('EXPHIL_E_INVALID', /no world "ping"/, () => lib.world('ping'));
  const pong = lib.world('pong', 2).reset();
  await refused('EXPHIL_E_INVALID', /actions\[1\]: move is 3, must be 0..2/, () => pong.step(Int32Array.of(0, 3)));
  await refused('EXPHIL_E_MISMATCH', /other rows or seats/, () => lib.beside(pong, lib.world('cartpole')));
  await refused('EXPHIL_E_INVALID', /no value head/, () => trainer.learner(pong));
  await refused('EXPHIL_E_INVALID', /./, () => lib.against(pong, [model]));
  await refused('EXPHIL_E_INVALID', /not the drill/, () => pong.drill());
  const mine = lib.create({ spec: pong.spec, blocks: 'mlp', hidden: 8, value: 'shared', no_previous_action: true });
  const both = lib.beside(pong, lib.world('pong', 2));
  const learner = mine.trainer().learner(both, { rollout: { time: 8 } });
  learner.update();
  pong.close();
  await refused('EXPHIL_E_STATE', /a world of which this one is made: is closed/, () => learner.update());
  await refused('EXPHIL_E_STATE', /a world of which this one is made: is closed/, () => both.reset());
  // a world of which another one is made, of which another one is made
  const [first, second] = [lib.world('pong'), lib.world('pong')];
  const outer = lib.beside(lib.beside(first, second), lib.world('pong')).reset();
  first.close();
  await refused('EXPHIL_E_STATE', /a world of which this one is made: is closed/, () => outer.step(new Int32Array(3)));
  await refused('EXPHIL_E_STATE', /a world of which this one is made: is closed/, () => lib.beside(outer, second));
  // what was given away (transferred), here or by postMessage to a Worker
  const away = (array) => structuredClone(array.buffer, { transfer: [array.buffer] }) && array;
  await refused('EXPHIL_E_FORMAT', /./, () => lib.load(away(weights.slice())));
  await refused('EXPHIL_E_FORMAT', /./, () => lib.load(away(weights.slice()).buffer));
  await refused('EXPHIL_E_INVALID', /floats: has 0 elements/, () => session.stepRow(away(floats.slice()), ids));
  away(second.reset().floats);
  await refused('EXPHIL_E_STATE', /arrays were given away/, () => second.step(new Int32Array(1)));
  await refused('EXPHIL_E_STATE', /arrays were given away/, () => second.reset(0));
  // lengths are checked by a spec, which therefore stays as it is
  for (const change of [() => (spec.floats = 1), () => spec.heads.pop(), () => (outer.spec.heads[0].count = 99), () => (outer.floats = floats)])
    changeRefused(change);
  // texts that make the memory grow while they are copied
  await refused('EXPHIL_E_INVALID', /layout must be 1..31/, () => lib.create({ spec: { ...spec, layout: 'x'.repeat(5000000) } }));
  await refused('EXPHIL_E_INVALID', /layout: must be a text/, () => lib.melee.spec(5));
  await refused('EXPHIL_E_INVALID', /name: must be a text/, () => lib.world('pong\0'));
  await refused('EXPHIL_E_INVALID', /batch: is undefined/, () => trainer.stepBatch());
  // Melee
  const frame = { own_port: 1, stage: 32, player: [{ x: 1 }, { x: 2 }] };
  lib.melee.encode('melee2', frame);
  await refused('EXPHIL_E_INVALID', /frame.players: there is no such field/, () => lib.melee.encode('melee2', { ...frame, players: [] }));
  await refused('EXPHIL_E_INVALID', /frame.player\[0\].stocks: is 300, must be a whole number from 0 to 255/, () => lib.melee.encode('melee2', { ...frame, player: [{ stocks: 300 }] }));
  await refused('EXPHIL_E_INVALID', /frame.player\[0\].speed_y: must be given with/, () => lib.melee.encode('melee2', { ...frame, player: [{ speed_air_x: 1 }] }));
  await refused('EXPHIL_E_NUMERIC', /./, () => lib.melee.encode('melee2', { ...frame, player: [{ x: NaN }] }));
  await refused('EXPHIL_E_STATE', /not one of the Melee specs/, () => session.step([frame, frame]));

  // what is refused has changed nothing
  session.restoreState(1, state);
  const again = model.session({ streams: 2 });
  if (again.stepRow(floats, ids).join() !== before) found.push('a session is not as it was');
  // memory: what does not fit is refused, and the rest goes on
  await refused('EXPHIL_E_MEMORY', /./, () => lib.create({ spec, blocks: 'lstm', hidden: 8192 }));
  const small = await load({ memory_limit_bytes: 2000000 });
  await refused('EXPHIL_E_MEMORY', /./, () => small.create({ blocks: 'lstm', hidden: 512 }));
  small.load(weights).session().close();
  // another module, and what is closed
  const other = small.load(weights);
  await refused('EXPHIL_E_MISMATCH', /model: is of another module/, () => model.session({ adoptable: true }).adopt(other));
  await refused('EXPHIL_E_INVALID', /model: is no Model/, () => model.session({ adoptable: true }).adopt({}));
  await refused('EXPHIL_E_INVALID', /is made by/, () => new session.constructor());
  session.close();
  session.close();
  await refused('EXPHIL_E_STATE', /session: is closed/, () => session.stepRow(floats, ids));
  model.close();
  await refused('EXPHIL_E_STATE', /model: is closed/, () => model.info());
  if (again.stepRow(floats, ids).length !== 2 * spec.heads.length) found.push('a session ends with its model');
  lib.close();
  await refused('EXPHIL_E_STATE', /play: is closed/, () => lib.world('pong'));
  // a module that is lost: its objects can be closed, and another one is as good as new
  const lost = await load();
  const alone = lost.load(weights).session({ streams: 2 });
  const deep = () => {
    try {
      deep();
    } catch (error) {
      try {
        alone.stepRow(floats, ids); // in what little is left of the stack
      } catch {}
      throw error;
    }
  };
  await refused('EXPHIL_E_INTERNAL', /the module failed in .* and is lost: /, () => {
    try {
      deep();
    } catch {}
    lost.load(weights);
  });
  alone.close();
  lost.close();
  (await load()).load(weights).session().close();
  const none = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  await refused('EXPHIL_E_INVALID', /module: is none of this package/, () => load({ module: none }));
  await refused('EXPHIL_E_INVALID', /module: fast is none of relaxed, simd/, () => load({ module: 'fast' }));
  await refused('EXPHIL_E_INVALID', /kind: there is no such option/, () => load({ kind: 'simd' }));
  return found;
}
