"""exphil.torch computes what the library computes: play, chunks, training, compiled and exported steps."""
import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (package python3-torch): exphil.torch is untested")

from torch_case import (  # noqa: E402
    ALL,
    BARE,
    HEADS,
    ONLY_IDS,
    OTHERS,
    SIZES,
    SPEC,
    TOLD,
    apart,
    draw_actions,
    draw_rows,
    library,
    make,
)

import exphil  # noqa: E402
import exphil.torch  # noqa: E402

FRAMES, STREAMS, SEED, CHUNK = 600, 2, 0x123456789ABCDEF0, 120
# Frames before which a stream is reset; after which the host did something else than what was decided.
RESETS = {0: (150,), 1: (9, 10, 240, 431)}
OVERRIDES = (5, 333)
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def one_thread():
    """Matrices are small: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


HOW = [
    exphil.HeadPlay(temperature=0.7),
    exphil.HeadPlay(temperature=2.0),
    exphil.HeadPlay(deterministic=True),
    exphil.HeadPlay(deterministic=True, press=0.6, release=0.3),
]
AR = dict(heads="autoregressive")
CARRIED = {
    "mamba": dict(blocks="mamba"),
    "lstm": dict(blocks="lstm", delay_frames=1),
    "gru": dict(blocks="gru", delay_frames=18, **AR),
    "attention": dict(blocks="attention", delay_frames=2, no_previous_action=True, **AR),
    "mlp": dict(blocks="mlp", no_previous_action=True),
    "ffn": dict(spec=BARE, blocks="ffn", delay_frames=3, **AR),
    "all": dict(blocks=ALL, delay_frames=2, neutral_start=True, value="shared", **AR),
    "one frame": dict(blocks="attention*2", attention_window_frames=1, value="detached"),
    "told": dict(blocks="gru mamba", value="detached", **TOLD, **AR),
    "told, no delay": dict(spec=BARE, blocks="lstm", no_previous_action=True, delay=0, **TOLD),
    "double": dict(blocks=ALL, delay_frames=1, type="f64", value="shared"),
    "others": dict(blocks=OTHERS, delay_frames=1, **AR),
    "each of others": dict(blocks="norm lstm_only relu dense gru_bare", value="shared"),
    "mamba_exphil": dict(blocks="mamba_exphil", mamba_states=9, no_previous_action=True),
    "layers": dict(blocks="gru mlp", delay_frames=2, head_layers=2, head_units=11, head_last=True, head_activation="relu", **AR),
    "one layer": dict(blocks="lstm_only norm", head_layers=1, no_head_past=True, no_head_trunk=True, no_final_norm=True,
                      norm_epsilon=1e-6),
    "four layers": dict(blocks="mlp", no_previous_action=True, head_layers=4, head_activation="gelu_tanh", value="shared",
                        norm_epsilon=0.05, no_final_norm=True, **AR),
    "layers, told": dict(blocks="ffn", head_layers=1, head_units=7, head_last=True, no_head_trunk=True, **TOLD, **AR),
    "no layers": dict(blocks="ffn mlp", delay_frames=1, no_final_norm=True, no_head_past=True, norm_epsilon=1e-3, **AR),
    "ids alone": dict(spec=ONLY_IDS, blocks="mamba mlp", no_previous_action=True, delay_frames=1),
}
WINDOWS = {
    "window": dict(blocks="mamba attention lstm", mode="window", delay_frames=1),
    "window of all": dict(blocks="ffn gru mlp attention", mode="window", delay_frames=2, attention_window_frames=9, **AR),
    "window of others": dict(blocks=OTHERS, mode="window", delay_frames=1, head_layers=1, head_last=True),
    "window, told": dict(blocks="gru", mode="window", no_previous_action=True, value="shared", delay=2, **TOLD),
}


class Played:
    """What a session did: arrays [T,B,...]. With several delays the one that is played is `delay`."""

    def __init__(self, policy, folder, delay=None, deliver="decided"):
        self.policy, self.spec, c = policy, None, policy.config
        model = library(policy, folder)
        self.floats, self.ids = draw_rows(model.spec, FRAMES, STREAMS)
        self.noise = np.random.default_rng(1).uniform(1e-6, 1 - 1e-6, (FRAMES, STREAMS, c.logits)).astype(np.float32)
        self.given = draw_actions(model.spec, (FRAMES,), seed=2)
        self.how = HOW[: len(c.heads)] if len(c.heads) > 1 else [exphil.HeadPlay()]
        self.delay = delay if c.delays else c.delay_frames
        self.conditions = np.zeros((FRAMES, STREAMS, len(c.conditions)), np.int32)
        session = exphil.Session(
            model, streams=STREAMS, heads=self.how, deliver=deliver, delay_frames=delay, seed=SEED)
        self.actions, self.logits, self.values = [], [], []
        for t in range(FRAMES):
            for stream in (b for b in RESETS if t in RESETS[b]):
                session.reset(stream)
            if t == 100 and c.conditions:
                session.conditions_set([2, 0], stream=1)
                self.conditions[t:, 1] = 2, 0
            self.actions.append(session.step_row(self.floats[t], self.ids[t], self.noise[t]).copy())
            self.logits.append(session.logits.copy())
            self.values.append(session.value.copy() if c.value else np.zeros(STREAMS))
            if t in OVERRIDES:
                session.override(self.given[t])
        self.actions, self.logits, self.values = map(np.stack, (self.actions, self.logits, self.values))
        self.kept = self.actions.copy()
        self.kept[list(OVERRIDES), 0] = self.given[list(OVERRIDES)]
        self.reset = np.zeros((FRAMES, STREAMS), bool)
        for stream, frames in RESETS.items():
            self.reset[list(frames), stream] = True

    def past(self):
        """Slots [T,B,S,A] as the policy saw them."""
        c = self.policy.config
        seen = self.delay + 1 - c.no_previous_action
        made = np.empty((FRAMES, STREAMS, c.slots, len(c.heads)), np.int64)
        made[:] = [head.neutral for head in c.heads]
        for b in range(STREAMS):
            begin = 0
            for t in range(FRAMES):
                begin = t if self.reset[t, b] else begin
                for s in range(min(seen, t - begin)):
                    made[t, b, s] = self.kept[t - 1 - s, b]
        return made


def tensor(array):
    """[T,B,...] of NumPy as [B,T,...] of torch."""
    return torch.from_numpy(np.ascontiguousarray(np.swapaxes(array, 0, 1)))


def made(words):
    words = dict(words)
    return words.pop("delay", 2 if "delays" in words else None), make(words.pop("spec", SPEC), **words)


@pytest.mark.parametrize("name", CARRIED)
def test_chunks_are_what_a_session_plays(name, tmp_path):
    """600 frames in chunks, with resets within them and the state carried from one to the next."""
    delay, policy = made(CARRIED[name])
    played = Played(policy, tmp_path, delay)
    floats, ids, past, reset, conditions, taken = map(tensor, (
        played.floats, played.ids, played.past(), played.reset, played.conditions, played.actions))
    state, logits, values = None, [], []
    with torch.no_grad():
        for at in range(0, FRAMES, CHUNK):
            part = slice(at, at + CHUNK)
            out = policy(
                floats[:, part], ids[:, part], past[:, part] if policy.config.slots else None, actions=taken[:, part],
                conditions=conditions[:, part], delay_frames=played.delay, reset=reset[:, part], state=state)
            state = out.state
            logits.append(out.logits)
            values.append(out.value)
    assert apart(torch.cat(logits, 1).transpose(0, 1), played.logits) < TOLERANCE
    if policy.config.value:
        assert apart(torch.cat(values, 1).transpose(0, 1), played.values) < TOLERANCE
    else:
        assert values[0] is None


def step_through(policy, played, frames, deliver="decided", step=None):
    """The frames one by one: the logits, and that actions are those of the session."""
    state, found = policy.initial_state(STREAMS), []
    for t in range(frames):
        if played.reset[t].any():
            state = policy.reset(state, torch.from_numpy(played.reset[t]))
        done = policy.step(
            state, torch.from_numpy(played.floats[t]), torch.from_numpy(played.ids[t]), torch.from_numpy(played.noise[t]),
            conditions=torch.from_numpy(played.conditions[t]), heads=played.how, delay_frames=played.delay, deliver=deliver)
        assert np.array_equal(done.actions, played.actions[t]), t
        state = done.state
        if t in OVERRIDES:
            state["actions"][0, 0] = torch.from_numpy(played.given[t])
        found.append(done.logits)
        if policy.config.value:
            assert np.allclose(done.value, played.values[t], rtol=0, atol=1e-4)
    return torch.stack(found)


@pytest.mark.parametrize("name", [*WINDOWS, "all", "told", "told, no delay", "gru", "mlp", "layers", "layers, told"])
def test_steps_are_those_of_a_session(name, tmp_path):
    """Frame by frame, with the policy's own decisions as past actions: the same actions, too."""
    delay, policy = made({**CARRIED, **WINDOWS}[name])
    played = Played(policy, tmp_path, delay)
    with torch.no_grad():
        logits = step_through(policy, played, FRAMES)
    assert apart(logits, played.logits) < TOLERANCE


@pytest.mark.parametrize("name", ["ffn", "attention", "told"])
def test_actions_that_are_due(name, tmp_path):
    delay, policy = made(CARRIED[name])
    played = Played(policy, tmp_path, delay, deliver="due")
    with torch.no_grad():
        step_through(policy, played, 60, deliver="due")


def test_noise_of_a_session(tmp_path):
    """Numbers on both sides of every word: many streams, a long way into each."""
    policy = make(blocks="mlp", delay_frames=1)
    session, state = exphil.Session(library(policy, tmp_path), streams=3, seed=SEED), policy.initial_state(3)
    floats, ids = draw_rows(SPEC, 200, 3)
    count, noise = policy.config.logits, exphil.torch.session_noise(SEED, 0, 3, 200 * policy.config.logits)
    assert float(noise.min()) > 0 and float(noise.max()) < 1
    for t in range(200):
        with torch.no_grad():
            done = policy.step(
                state, torch.from_numpy(floats[t]), torch.from_numpy(ids[t]), noise[:, t * count : (t + 1) * count])
        state = done.state
        assert np.array_equal(done.actions, session.step_row(floats[t], ids[t])), t
    later = exphil.torch.session_noise(SEED, 77, 3, 5)
    assert torch.equal(later, noise[:, 77:82])


def test_a_window_is_a_chunk():
    policy = make(**WINDOWS["window"])
    floats, ids = draw_rows(SPEC, 7, 1)
    state, seen = policy.initial_state(1), []
    with torch.no_grad():
        for t in range(7):
            done = policy.step(state, torch.from_numpy(floats[t]), torch.from_numpy(ids[t]), deterministic=True)
            seen.append(state["actions"])
            state = done.state
        past = torch.stack(seen, 1)
        out = policy(tensor(floats), tensor(ids), past)
    assert torch.allclose(out.logits[:, -1], done.logits, atol=1e-6)
    with pytest.raises(ValueError, match="carries nothing"):
        policy(tensor(floats), tensor(ids), past, state=out.state)


@pytest.mark.parametrize("words, message", [
    ({}, "head buttons draws its value: give noise"), ({"deterministic": True, "deliver": "late"}, 'deliver is "late"'),
    ({"deterministic": True, "delay_frames": 3}, "delay_frames is 3, the policy is for 0"),
    ({"heads": HOW[:2]}, "heads has 2 entries, the policy has 4 heads"),
    ({"heads": [exphil.torch.HeadPlay(press=1.5)] * 4}, "head buttons: .* is out of range"),
    ({"deterministic": True, "floats": torch.zeros(1, 5)}, r"floats are of shape \[1, 5\], the policy has 6"),
    ({"deterministic": True, "ids": None}, "ids are missing, the policy has 2"),
])
def test_wrong_steps(words, message):
    policy = make(blocks="mlp")
    given = dict(dict(floats=torch.zeros(1, 6), ids=torch.zeros(1, 2, dtype=torch.int64)), **words)
    with pytest.raises(ValueError, match=message):
        policy.step(policy.initial_state(), **given)


def test_wrong_chunks():
    floats, ids = torch.zeros(1, 4, 6), torch.zeros(1, 4, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="past actions are missing"):
        make(blocks="mlp")(floats, ids)
    with pytest.raises(ValueError, match="autoregressive: give the actions"):
        make(blocks="mlp", no_previous_action=True, **AR)(floats, ids)
    with pytest.raises(ValueError, match="floats and ids are missing"):
        make(blocks="mlp", no_previous_action=True)(None)
    with pytest.raises(ValueError, match="conditions have 4 columns, the policy has 2"):
        make(blocks="mlp", **TOLD)(
            floats, ids, torch.zeros(1, 4, 6, 4), conditions=torch.zeros(1, 4, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="no setting 'width'"):
        exphil.torch.Policy(SPEC, width=3)
    with pytest.raises(exphil.torch.ConfigError, match="head_last needs a past action as input"):
        make(blocks="mlp", no_previous_action=True, head_layers=1, head_last=True)
    with pytest.raises(TypeError, match="a Config has all settings"):
        exphil.torch.Policy(make(blocks="mlp").config, hidden=3)


def test_states_of_other_shapes():
    floats, ids, past = torch.zeros(2, 4, 6), torch.zeros(2, 4, 2, dtype=torch.int64), torch.zeros(2, 4, 1, 4, dtype=torch.int64)
    for words in (dict(blocks="lstm"), dict(blocks="attention", mode="window", window_frames=5)):
        policy, frame = make(**words), dict(floats=floats[:, 0], ids=ids[:, 0], deterministic=True)
        with pytest.raises(ValueError, match=r'state\["actions"\] is of shape \[3, 1, 4\], must be \[2, 1, 4\]'):
            policy.step(policy.initial_state(3), **frame)
        state = policy.initial_state(2)
        for name in [name for name in state if name != "actions"]:
            with pytest.raises(ValueError, match=rf'state\["{name}"\] is of shape \[1'):
                policy.step(dict(state, **{name: state[name][:1]}), **frame)
            with pytest.raises(ValueError, match=f'state has no "{name}"'):
                policy.step({key: value for key, value in state.items() if key != name}, **frame)
    policy = make(blocks="lstm")
    with pytest.raises(ValueError, match=r"state\[.blocks.0.*is of shape \[3"):
        policy(floats, ids, past, state=policy.blocks_state(3))


@pytest.mark.parametrize("column, value", [(0, -1), (1, 1000)])
def test_values_that_no_table_has(column, value):
    policy = make(blocks="mlp")
    name, most = policy.config.ids[column].name, policy.config.ids[column].entries - 1
    ids = torch.zeros(3, 2, dtype=torch.int64)
    ids[1, column] = value
    with pytest.raises(IndexError, match=rf"ids: {name} is {value}, must lie in 0\.\.{most}"):
        policy.step(policy.initial_state(3), torch.zeros(3, 6), ids, deterministic=True)


def test_what_is_no_chunk_and_trains_no_more(tmp_path):
    with pytest.raises(ValueError, match=r"a chunk is \[B,T,...\], this one is of shape \[4, 6\]"):
        make(blocks="mlp", no_previous_action=True)(torch.zeros(4, 6), torch.zeros(4, 2, dtype=torch.int64))
    library(make(blocks="mlp"), tmp_path).quantize("i8").save(tmp_path / "rounded")
    with pytest.raises(ValueError, match="dequantize=True"):
        exphil.torch.load(tmp_path / "rounded").parameter_groups(0.1)
    assert exphil.torch.load(tmp_path / "rounded", dequantize=True).parameter_groups(0.1)


def test_losses_of_other_shapes():
    policy = make(blocks="mlp")
    logits, actions = torch.zeros(2, 5, policy.config.logits), torch.zeros(2, 5, 4, dtype=torch.int64)
    for given, message in (
        ((logits, actions[:1]), r"actions are of shape \[1, 5, 4\], must be \[2, 5, 4\]"),
        ((logits, actions[..., :3]), r"actions are of shape \[2, 5, 3\]"),
        ((logits[..., 1:], actions), "logits are of shape"),
        ((logits, actions, torch.ones(5)), r"mask is of shape \[5\], must be \[2, 5\]"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.loss(*given)


# ---- training ------------------------------------------------------------------------------------------------

TRAINED = {
    "mamba": dict(blocks="mamba"),
    "attention": dict(blocks="attention", value="shared", **AR),
    "lstm": dict(blocks="lstm", delay_frames=1),
    "all": dict(blocks=ALL, delay_frames=2, **AR),
    "others": dict(blocks=OTHERS, **AR),
    "layers": dict(blocks="mlp", delay_frames=1, head_layers=2, head_units=11, head_last=True, head_activation="relu", **AR),
    "layers alone": dict(blocks="gru", head_layers=1, head_last=True, head_activation="gelu_tanh", no_head_trunk=True,
                         no_head_past=True, no_final_norm=True, norm_epsilon=1e-6),
    "double": dict(blocks="gru ffn", type="f64", **AR),
    "told": dict(blocks="mlp", **TOLD),
    "window": dict(blocks="gru attention", mode="window"),
}
LOSSES = [
    dict(weight=2.0, positive_weight=[1.0, 3.0, 0.5], focal_gamma=1.5), dict(smoothing=0.1, focal_gamma=2.0), dict(),
    dict(weight=-1.0)]
LANES, TIME = 3, 7
ADAM = dict(lr=1e-2, betas=(0.8, 0.95), eps=1e-3)


def draw_batch(policy, seed):
    """Rows that mean nothing, with episodes that begin within them and rows that count more or less."""
    c, draw = policy.config, np.random.default_rng(seed)
    floats, ids = draw_rows(SPEC, TIME, LANES, seed)
    mask = draw.choice(np.array([0, 1, 1, 2.5], np.float32), (LANES, TIME))
    reset = (draw.random((LANES, TIME)) < 0.2).astype(np.uint8)
    if c.mode == "window":
        mask[:], reset[:] = mask[:, -1:] + 0.5, 0
        reset[:, 0] = 1
    columns = [draw.integers(0, one.values + 1, (LANES, TIME, 1)) for one in c.conditions]
    columns += [draw.integers(1, len(c.delays) + 1, (LANES, TIME, 1))] if c.delays else []
    return exphil.Batch(
        floats.swapaxes(0, 1).copy(), ids.swapaxes(0, 1).copy(), draw_actions(SPEC, (LANES, TIME, c.slots), seed + 1),
        draw_actions(SPEC, (LANES, TIME), seed + 2), mask, reset,
        conditions=np.concatenate(columns, 2).astype(np.int32) if columns else None)


def update(policy, optimizer, batch, state, losses=None):
    """One update in torch; the loss, and the state behind the batch."""
    given = exphil.torch.tensors(batch)
    mask = given.pop("mask")
    out = policy(**given, state=state)
    loss = policy.loss(out.logits, given["actions"], mask, losses)
    optimizer.zero_grad()
    # What has no gradient does not decay in torch; here the value, which nothing is asked of, does.
    (loss.objective + (0.0 if out.value is None else 0.0 * out.value.sum())).backward()
    optimizer.step()
    return loss, None if policy.config.mode == "window" else exphil.torch.detached(out.state)


@pytest.mark.parametrize("name", TRAINED)
def test_updates_are_those_of_the_library(name, tmp_path):
    """Three updates by AdamW here and there, from the same weights, with losses of all kinds, the state carried on."""
    policy = make(**TRAINED[name])
    fresh = {name: value.detach().clone() for name, value in policy.state_dict().items()}
    trainer = exphil.Trainer(
        library(policy, tmp_path), rate=ADAM["lr"], beta1=ADAM["betas"][0], beta2=ADAM["betas"][1], epsilon=ADAM["eps"],
        decay=0.1, clip_norm=-1, losses=[exphil.HeadLoss(**one) for one in LOSSES])
    optimizer = torch.optim.AdamW(policy.parameter_groups(0.1), **ADAM)
    state = None
    for seed in (10, 20, 30):
        batch = draw_batch(policy, seed)
        loss, state = update(policy, optimizer, batch, state, [exphil.torch.HeadLoss(**one) for one in LOSSES])
        told = trainer.step_batch(batch)
        assert float(loss.objective.detach()) == pytest.approx(told.loss, rel=1e-5)
        assert apart(loss.heads.detach(), told.head_loss) < TOLERANCE
    trained = trainer.model()
    for name, value in policy.state_dict().items():
        moved = float((value - fresh[name]).abs().max())
        off = float(np.abs(value.detach().numpy() - trained.tensor_get(name)).max())
        assert moved > 1e-5 or name.startswith(("value.", "heads.taps.")), name  # nothing is asked of those
        assert off <= max(2e-4 * moved, 1e-7), (name, off, moved)


def test_plain_losses_are_those_of_a_report(tmp_path):
    policy = make(blocks="gru", delay_frames=2, **AR)
    data = exphil.Dataset(SPEC)
    floats, ids = draw_rows(SPEC, 50, 1)
    recorded = draw_actions(SPEC, (50,))
    data.add_rows(floats[:, 0], ids[:, 0], recorded)
    report = library(policy, tmp_path).evaluate(data)
    batch = exphil.Prefetcher(data, delay_frames=2, action_slots=3, batch=1, time=48, in_order=True).next()
    out = policy(*(torch.from_numpy(np.array(one)) for one in (batch.floats, batch.ids, batch.past)),
                 actions=torch.from_numpy(np.array(batch.actions)))
    loss = policy.loss(out.logits, torch.from_numpy(np.array(batch.actions)))
    assert float(loss.nll.sum().detach()) == pytest.approx(report.nll, rel=1e-6)
    assert float(loss.objective.detach()) == pytest.approx(report.loss, rel=1e-6)


def test_trained_in_torch_played_here(tmp_path, dataset):
    """Updates from the library's own batches; then a session plays what torch has learnt."""
    policy = exphil.torch.Policy(dataset.spec, blocks="gru", hidden=16, head_width=16, seed=3)
    optimizer = torch.optim.AdamW(policy.parameter_groups(0.01), lr=1e-2)
    before, state = library(policy, tmp_path).evaluate(dataset).nll, None
    batches = exphil.Prefetcher(dataset, library(policy, tmp_path), batch=8, time=25)
    for _ in range(40):
        _, state = update(policy, optimizer, batches.next() or batches.next(), state)
    policy.trained_updates = 40
    model = library(policy, tmp_path)
    assert model.evaluate(dataset).nll < 0.9 * before and model.info.trained_updates == 40
    rows = dataset.rows(0, 30)
    session, at = exphil.Session(model, deterministic=True), policy.initial_state()
    for t in range(30):
        row = torch.from_numpy(rows.floats[t : t + 1].copy()), torch.from_numpy(rows.ids[t : t + 1].copy())
        with torch.no_grad():
            done = policy.step(at, *row, deterministic=True)
        at = done.state
        assert np.array_equal(session.step_row(rows.floats[t], rows.ids[t]), done.actions)
        assert apart(done.logits, session.logits) < TOLERANCE


def test_trained_here_tuned_in_torch(tmp_path, model, dataset):
    """The other way round, and back: the library goes on from what torch has saved."""
    trainer = exphil.Trainer(model, dataset, rate=1e-2, batch=8, time=25)
    for _ in trainer.train(updates=20):
        pass
    trainer.save(tmp_path / "here.safetensors")
    policy = exphil.torch.load(tmp_path / "here.safetensors")
    assert policy.trained_updates == 20 and policy.trained_frames == 20 * 200
    optimizer, state = torch.optim.AdamW(policy.parameter_groups(0.0), lr=1e-2), None
    batches = exphil.Prefetcher(dataset, model, batch=8, time=25)
    for _ in range(20):
        _, state = update(policy, optimizer, batches.next() or batches.next(), state)
    tuned = library(policy, tmp_path)
    assert tuned.evaluate(dataset).nll < trainer.evaluate(dataset).nll
    again = exphil.Trainer(tuned, dataset, rate=1e-3, batch=8, time=25)
    assert again.step().loss > 0


@pytest.mark.parametrize("value", ["detached", "shared"])
def test_what_a_value_teaches(value):
    policy = make(blocks="mlp", no_previous_action=True, value=value)
    out = policy(torch.ones(1, 2, 6), torch.zeros(1, 2, 2, dtype=torch.int64))
    out.value.sum().backward()
    assert policy.value.trunk.weight.grad.abs().max() > 0
    assert (policy.input.weight.grad is not None) == (value == "shared")


@pytest.mark.parametrize("more", [{}, dict(head_layers=2, head_units=40, head_last=True)])
def test_what_starts_as_what(more):
    """As the library's own first weights, tensor by tensor: equal where nothing is drawn, else of the same spread."""
    words = dict(SIZES, blocks=f"{ALL} {OTHERS}", hidden=40, heads="autoregressive", value="shared", **TOLD, **more)
    ours, other = (exphil.Model(SPEC, seed=seed, **words) for seed in (1, 2))
    policy = exphil.torch.Policy(SPEC, seed=1, **words)
    again = exphil.torch.Policy(SPEC, seed=1, **words)
    for name, value in policy.state_dict().items():
        value, wanted = value.numpy(), ours.tensor_get(name)
        assert np.array_equal(value, again.state_dict()[name].numpy())
        if np.array_equal(wanted, other.tensor_get(name)):
            assert np.allclose(value, wanted, rtol=1e-6, atol=0), name
            continue
        # Of so many numbers between two ends, the outermost lie near them.
        room = (wanted.max() - wanted.min()) * min(0.5, 10 / wanted.size)
        assert abs(value.max() - wanted.max()) < room and abs(value.min() - wanted.min()) < room, name
        assert value.std() == pytest.approx(wanted.std(), rel=3 / np.sqrt(value.size)), name
    assert not torch.equal(exphil.torch.Policy(SPEC, seed=2, **words).input.weight, policy.input.weight)


def test_copies():
    policy = make(blocks=ALL, **TOLD)
    for copied in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert copied.config == policy.config
        assert all(torch.equal(value, policy.state_dict()[name]) for name, value in copied.state_dict().items())
        with torch.no_grad():
            copied.delay.weight += 1
        row = torch.zeros(1, 6), torch.zeros(1, 2, dtype=torch.int64)
        one, other = (each.step(each.initial_state(), *row, deterministic=True).logits for each in (policy, copied))
        assert not torch.equal(one, other)


def test_a_player_has_the_weights_of_its_policy():
    policy = make(blocks="gru", **TOLD)
    names, player = list(policy.state_dict()), policy.player(deterministic=True, delay_frames=0)
    assert list(policy.state_dict()) == names and len(player.state_dict()) == len(names)
    row = policy.initial_state(), torch.zeros(1, 6), torch.zeros(1, 2, dtype=torch.int64)
    with torch.no_grad():
        for parameter in policy.parameters():
            before = player(*row)[1]
            parameter += 0.1 + torch.rand(parameter.shape)
            assert not torch.equal(player(*row)[1], before) or parameter.shape == policy.blocks[0].weight_hh.shape
    policy.double()
    assert player(policy.initial_state(), *row[1:])[1].dtype == torch.float64


# ---- compiled and exported -----------------------------------------------------------------------------------

STEPS = {
    "mamba": dict(blocks="mamba"), "recurrent": dict(blocks="lstm gru", delay_frames=2, **AR),
    "attention": dict(blocks="attention ffn mlp", value="shared", **TOLD),
    "layers": dict(blocks="dense", head_layers=1, head_last=True, **AR), "window": dict(blocks="gru", mode="window")}


def same_steps(policy, player, compiled):
    """Twenty frames by both, each with its own state."""
    floats, ids = draw_rows(SPEC, 20, 1)
    noise = torch.rand(20, 1, policy.config.logits, generator=torch.Generator().manual_seed(1)).clamp(1e-6, 1 - 1e-6)
    states = [policy.initial_state(), policy.initial_state()]
    for t in range(20):
        row = torch.from_numpy(floats[t]), torch.from_numpy(ids[t]).long(), noise[t]
        with torch.no_grad():
            (actions, logits, states[0]), (found, close, states[1]) = player(states[0], *row), compiled(states[1], *row)
        assert torch.equal(actions, found) and torch.allclose(logits, close, rtol=0, atol=1e-5)
    assert set(states[0]) == set(states[1])


@pytest.mark.parametrize("name", STEPS)
def test_exported_steps(name):
    if not hasattr(torch, "export"):
        pytest.skip(f"torch {torch.__version__} has no torch.export: exported steps are untested")
    policy = make(**STEPS[name])
    player = policy.player(delay_frames=2) if policy.config.delays else policy.player()
    example = (policy.initial_state(), torch.zeros(1, 6), torch.zeros(1, 2, dtype=torch.int64),
               torch.full((1, policy.config.logits), 0.5))
    with torch.no_grad():
        exported = torch.export.export(player, example)
    same_steps(policy, player, exported.module())


@pytest.mark.parametrize("name", STEPS)
def test_compiled_steps(name):
    if not hasattr(torch, "compile"):
        pytest.skip(f"torch {torch.__version__} has no torch.compile: compiled steps are untested")
    policy = make(**STEPS[name])
    player = policy.player(delay_frames=2) if policy.config.delays else policy.player()
    same_steps(policy, player, torch.compile(player, backend="aot_eager", fullgraph=True))
    torch._dynamo.reset()


def test_heads_are_as_the_library_names_them():
    assert [head.kind for head in make(blocks="mlp").config.heads] == ["bernoulli", "categorical", "categorical", "bernoulli"]
    assert len(HEADS) == 4
