"""What the networks of ExPhil and slippi-ai compute, in NumPy and in double, written from the descriptions in doc/convert.md and
not from the converter: kernels are [in,out], a residual stays one."""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def relu(x):
    return np.maximum(x, 0)


class Net:
    """Weights by dotted paths, in double."""

    def __init__(self, flat):
        self.weights = {name: np.asarray(value, np.float64) for name, value in flat.items()}
        self.reset()

    def reset(self):
        self.state = {}

    def dense(self, name, x):
        return x @ self.weights[name + ".kernel"] + self.weights[name + ".bias"]

    def norm(self, name, x, epsilon, scale="gamma", shift="beta"):
        centred = x - x.mean()
        return centred / np.sqrt((centred**2).mean() + epsilon) * self.weights[f"{name}.{scale}"] + self.weights[f"{name}.{shift}"]


class ExPhil(Net):
    """A policy of ExPhil; step takes a row of 288 and gives 81 logits."""

    def __init__(self, backbone, flat):
        super().__init__(flat)
        self.backbone = backbone

    def step(self, row):
        x = getattr(self, self.backbone)(np.asarray(row, np.float64))
        heads = ("buttons", "main_x", "main_y", "c_x", "c_y", "shoulder")
        return np.concatenate([self.dense(name + "_logits", relu(self.dense(name + "_hidden", x))) for name in heads])

    def mlp(self, x):
        i = 0
        while f"backbone_dense_{i}.kernel" in self.weights:
            x = self.dense(f"backbone_dense_{i}", x)
            if f"backbone_ln_{i}.gamma" in self.weights:
                x = self.norm(f"backbone_ln_{i}", x, 1e-5)
            x = relu(x)
            i += 1
        return x

    def lstm(self, x):
        return self.recurrent("lstm", x)

    def gru(self, x):
        return self.recurrent("gru", x)

    def recurrent(self, cell, x):
        x = self.norm("input_ln", x, 1e-6)
        layer = 1
        while f"{cell}_{layer}_input_proj.kernel" in self.weights:
            name = f"{cell}_{layer}"
            kernel = self.weights[f"{name}_fused_scan.{name}_recurrent_kernel"]
            h, c = self.state.get(layer, (np.zeros(len(kernel)), np.zeros(len(kernel))))
            wx, rh = self.dense(name + "_input_proj", x), h @ kernel
            if cell == "lstm":
                i, f, g, o = np.split(wx + rh, 4)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            else:
                (xr, xz, xn), (hr, hz, hn) = np.split(wx, 3), np.split(rh, 3)
                r, z = sigmoid(xr + hr), sigmoid(xz + hz)
                h = (1 - z) * np.tanh(xn + r * hn) + z * h
            self.state[layer] = h, c
            x = self.norm(name + "_ln", h, 1e-6)
            layer += 1
        return x

    def mamba(self, x):
        x = self.dense("input_projection", x)
        layer = 1
        while f"mamba_block_{layer}_in_proj.kernel" in self.weights:
            x = x + self.mamba_block(f"mamba_block_{layer}", x)
            layer += 1
        return x

    def mamba_block(self, name, x):
        branch, z = np.split(self.dense(name + "_in_proj", self.norm(name + "_norm", x, 1e-5)), 2)
        kernel = self.weights[name + "_conv_dw_conv.kernel"][:, 0, :]
        before, h = self.state.get(name, (np.zeros((len(kernel) - 1, len(branch))), 0.0))
        window = np.concatenate([before, branch[None]])
        v = silu((window * kernel).sum(0) + self.weights[name + "_conv_dw_conv.bias"])
        b, c = np.split(self.dense(name + "_ssm_bc_proj", v), 2)
        step = np.log1p(np.exp(self.dense(name + "_ssm_dt_proj", self.dense(name + "_ssm_dt_rank", v))))
        step = np.clip(step, 0.001, 0.1)[:, None]
        h = np.exp(-step * np.arange(1, len(b) + 1)) * h + step * b * v[:, None]
        self.state[name] = window[1:], h
        return self.dense(name + "_out_proj", (h * c).sum(1) * silu(z))


class Slippi(Net):
    """A policy of slippi-ai. step takes a frame's inputs, the codes of the newest action and of those that are taken now (one list
    of a vector for each component), and the player's number; it gives the logits of all components."""

    def __init__(self, config, flat):
        super().__init__(flat)
        self.layers = config["network"]["tx_like"]["num_layers"]
        self.depth = config["controller_head"]["autoregressive"]["component_depth"]
        self.cell = getattr(self, config["network"]["tx_like"]["recurrent_layer"])
        self.names = config["max_names"]

    def step(self, frame, previous, taken, name):
        name_code = np.zeros(self.names)
        if name is not None:
            name_code[name] = 1
        x = self.dense("network._network._layers.0._module", np.concatenate([frame, *previous, name_code]))
        for layer in range(self.layers):
            x = x + self.cell(f"network._network._layers.{2 * layer + 1}._net._core", x)
            at = f"network._network._layers.{2 * layer + 2}._module"
            inner = gelu(self.dense(at + ".linear1", self.norm(at + ".layernorm", x, 1e-6, "scale", "bias")))
            x = x + self.dense(at + ".linear2", inner)
        return np.concatenate(self.head(x, previous, taken))

    def lstm(self, name, x):
        h, c = self.state.get(name, (np.zeros(len(x)), np.zeros(len(x))))
        i, f, g, o = (x @ self.weights[f"{name}.{kernel}.kernel"] + self.dense(f"{name}.h{gate}", h)
                      for gate, kernel in (("i", "ii"), ("f", "if_"), ("g", "ig"), ("o", "io")))  # fmt: skip
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        self.state[name] = h, c
        return h

    def gru(self, name, x):
        h = self.state.get(name, np.zeros(len(x)))
        xr, xz, xn = np.split(self.dense(name + ".dense_i", x), 3)
        hr, hz, hn = np.split(h @ self.weights[name + ".dense_h.kernel"], 3)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        self.state[name] = h = (1 - z) * np.tanh(xn + r * hn) + z * h
        return h

    def head(self, x, previous, taken):
        residual, logits = self.dense("_controller_head.to_residual", x), []
        for i, (before, now) in enumerate(zip(previous, taken)):
            at, y = f"_controller_head.res_blocks.{i}", np.concatenate([residual, before])
            for j in range(self.depth + 1):
                y = self.dense(f"{at}._encoder.layers.{2 * j}", relu(y) if j else y)
            logits.append(y)
            residual = residual + self.dense(at + ".decoder", now)
        return logits
