"""What the tests of operations share: arguments of each in double, small and odd, and its formula in NumPy, written from ops.h."""
import numpy as np

import exphil.ops as ops


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None, reset=None):
    step = delta if delta_bias is None else delta + delta_bias[:, None]
    step = softplus(step) if delta_softplus else step
    state = np.zeros((*u.shape[:2], A.shape[1])) if initial_state is None else initial_state
    out = []
    for t in range(u.shape[2]):
        if reset is not None:
            state = state * ~reset[:, t, None, None]
        state = np.exp(step[:, :, t, None] * A) * state + (step * u)[:, :, t, None] * B[:, None, :, t]
        y = (state * C[:, None, :, t]).sum(-1)
        out.append(y if D is None else y + D * u[:, :, t])
    y = np.stack(out, 2)
    return y if z is None else y * z * sigmoid(z), state


def attention(q, k, v, window=None, bias=None, reset=None):
    window = bias.shape[1] if window is None else window
    out = np.zeros_like(q)
    episode = np.cumsum(reset, 1) if reset is not None else np.zeros(q.shape[:2])
    for b, t, h in np.ndindex(q.shape[:3]):
        seen = [j for j in range(max(0, t - window + 1), t + 1) if episode[b, j] == episode[b, t]]
        score = np.array([q[b, t, h] @ k[b, j, h] / np.sqrt(q.shape[3]) + (0 if bias is None else bias[h, t - j]) for j in seen])
        weight = np.exp(score - score.max())
        out[b, t, h] = weight / weight.sum() @ v[b, seen, h]
    return out, None


def lstm(gates, weight, bias=None, h0=None, c0=None, reset=None):
    hidden = weight.shape[1]
    h = np.zeros((len(gates), hidden)) if h0 is None else h0
    c = np.zeros((len(gates), hidden)) if c0 is None else c0
    out = []
    for t in range(gates.shape[1]):
        if reset is not None:
            h, c = h * ~reset[:, t, None], c * ~reset[:, t, None]
        all_gates = gates[:, t] + h @ weight.T + (0 if bias is None else bias)
        i, f, g, o = np.split(all_gates, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out, 1), h, c


def gru(gates, weight, bias=None, h0=None, reset=None):
    h = np.zeros((len(gates), weight.shape[1])) if h0 is None else h0
    out = []
    for t in range(gates.shape[1]):
        if reset is not None:
            h = h * ~reset[:, t, None]
        own = np.split(h @ weight.T + (0 if bias is None else bias), 3, 1)
        r, z, n = np.split(gates[:, t], 3, 1)
        n = np.tanh(n + sigmoid(r + own[0]) * own[2])
        z = sigmoid(z + own[1])
        h = (1 - z) * n + z * h
        out.append(h)
    return np.stack(out, 1), h


def layer_norm_silu(x, weight, bias, eps=1e-5, silu=True):
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias
    return (n * sigmoid(n) if silu else n,)


def causal_conv1d(x, weight, bias=None, reset=None, initial_states=None, activation=None):
    taps = weight.shape[1]
    before = np.zeros((*x.shape[:2], taps - 1)) if initial_states is None else initial_states
    out = np.zeros_like(x)
    states = before
    for t in range(x.shape[2]):
        if reset is not None:
            states = states * ~reset[:, t, None, None]
        inputs = np.concatenate([states, x[:, :, t:t + 1]], 2)
        y = (inputs * weight).sum(2) + (0 if bias is None else bias)
        out[:, :, t] = y * sigmoid(y)
        states = inputs[:, :, 1:]
    return out, states


def cases(seed=0, dtype=np.float64):
    """By name: the operation, its formula, its arrays by name, and what else it is told."""
    draw = np.random.default_rng(seed)

    def some(*shape):
        return draw.standard_normal(shape).astype(dtype)

    reset = draw.random((2, 7)) < 0.3
    full = dict(u=some(2, 5, 7), delta=some(2, 5, 7), A=-np.exp(some(5, 3)), B=some(2, 3, 7), C=some(2, 3, 7), D=some(5),
                z=some(2, 5, 7), delta_bias=some(5), reset=reset, initial_state=some(2, 5, 3))
    bare = {name: full[name] for name in ("u", "delta", "A", "B", "C")}
    bare["delta"] = np.abs(bare["delta"])
    qkv = dict(q=some(2, 7, 2, 3), k=some(2, 7, 2, 3), v=some(2, 7, 2, 3))
    rnn = dict(weight=some(20, 5), bias=some(20), reset=reset, h0=some(2, 5))
    return {
        "scan": (ops.selective_scan, scan, full, {"delta_softplus": True}),
        "scan bare": (ops.selective_scan, scan, bare, {}),
        "attention": (ops.attention, attention, dict(qkv, bias=some(2, 4), reset=reset), {}),
        "attention plain": (ops.attention, attention, qkv, {"window": 3}),
        "lstm": (ops.lstm, lstm, dict(rnn, gates=some(2, 7, 20), c0=some(2, 5)), {}),
        "lstm bare": (ops.lstm, lstm, dict(gates=some(2, 7, 20), weight=some(20, 5)), {}),
        "gru": (ops.gru, gru, dict(rnn, gates=some(2, 7, 15), weight=some(15, 5), bias=some(15)), {}),
        "norm": (ops.layer_norm_silu, layer_norm_silu, dict(x=some(2, 7, 6), weight=some(6), bias=some(6)), {}),
        "norm alone": (ops.layer_norm_silu, layer_norm_silu, dict(x=some(4, 6), weight=some(6), bias=some(6)), {"silu": False}),
        "conv": (ops.causal_conv1d, causal_conv1d,
                 dict(x=some(2, 5, 7), weight=some(5, 4), bias=some(5), reset=reset, initial_states=some(2, 5, 3)),
                 {"activation": "silu"}),
        "conv bare": (ops.causal_conv1d, causal_conv1d, dict(x=some(2, 5, 7), weight=some(5, 4)), {"activation": "swish"}),
    }


NAMES = tuple(cases())


def states_word(operation):
    """The keyword with which an operation gives its states, or None."""
    words = {ops.causal_conv1d: "return_final_states", ops.layer_norm_silu: None}
    return words.get(operation, "return_last_state")
