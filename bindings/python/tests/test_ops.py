"""Kernels on arrays of one's own: NumPy's. The bits are those of the C call, however arrays lie; what does not fit is refused by
its name."""
import gc
import os
import threading

import numpy as np
import pytest
from ops_cases import NAMES, cases, states_word
from test_arrays import LAYOUTS

import exphil
import exphil.ops as ops
from exphil._native import ffi, lib
from exphil.ops_table import OPS, kept_bytes, sizes_of

EASY = ("scan", "attention", "lstm", "gru", "norm", "conv")


def same(a, b):
    """Equal bits; several arrays one by one."""
    pairs = zip(a, b) if isinstance(a, tuple) else [(a, b)]
    return all(x.shape == y.shape and x.dtype == y.dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_is_its_formula(name):
    operation, formula, arrays, more = cases()[name]
    word = states_word(operation)
    if word is None:
        assert np.abs(operation(**arrays, **more) - formula(**arrays, **more)[0]).max() < 1e-13
        return
    made, wanted = operation(**arrays, **more, **{word: True}), formula(**arrays, **more)
    assert same(made[0], operation(**arrays, **more))
    for got, want in zip(made, wanted):
        assert want is None or np.abs(got - want).max() < 1e-13


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_formula(name):
    """Finite differences of the operation itself, in double, for every element of every array."""
    operation, _, arrays, more = cases(1)[name]
    out = operation(**arrays, **more)
    dout = np.random.default_rng(2).standard_normal(out.shape)
    made = ops.gradients(operation, dout, **arrays, **more)
    assert set(made) == {key for key, one in arrays.items() if one.dtype != bool}
    for key, gradient in made.items():
        assert gradient.shape == arrays[key].shape
        for at in np.ndindex(*gradient.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = arrays[key].copy()
                moved[at] += step
                ends.append((operation(**{**arrays, key: moved}, **more) * dout).sum())
            assert abs((ends[0] - ends[1]) / 2e-6 - gradient[at]) < 1e-7 * (1 + abs(gradient[at])), (key, at)


def test_gradients_of_states():
    """They flow in where the state went out: a sequence in two halves is that in one piece."""
    operation, _, arrays, more = cases(3)["scan"]
    dout = np.random.default_rng(4).standard_normal((2, 5, 7))
    whole = ops.gradients(operation, dout, **arrays, **more)
    first = {key: one[..., :4] if key in ("u", "delta", "B", "C", "z", "reset") else one for key, one in arrays.items()}
    second = {key: one[..., 4:] if key in ("u", "delta", "B", "C", "z", "reset") else one for key, one in arrays.items()}
    second["initial_state"] = operation(**first, **more, return_last_state=True)[1]
    later = ops.gradients(operation, dout[..., 4:], **second, **more)
    earlier = ops.gradients(operation, (dout[..., :4], later["initial_state"]), **first, **more)
    for key in ("A", "D", "delta_bias"):
        assert np.abs(earlier[key] + later[key] - whole[key]).max() < 1e-12
    assert np.abs(np.concatenate([earlier["u"], later["u"]], 2) - whole["u"]).max() < 1e-13


@pytest.mark.parametrize("name", EASY)
@pytest.mark.parametrize("lay", [one for one in LAYOUTS if one != "wider"])
def test_layouts(name, lay):
    """However arrays lie, all of them or one at a time, the bits are the same, forward and backward."""
    operation, _, arrays, more = cases(5, np.float32)[name]
    want = operation(**arrays, **more)
    dout = np.random.default_rng(6).standard_normal(want.shape).astype(np.float32)
    gradients = ops.gradients(operation, dout, **arrays, **more)
    for keys in (list(arrays), *[[key] for key in arrays]):
        odd = {key: LAYOUTS[lay](one) if key in keys else one for key, one in arrays.items()}
        assert same(operation(**odd, **more), want)
        made = ops.gradients(operation, LAYOUTS[lay](dout), **odd, **more)
        assert all(same(made[key], gradients[key]) for key in gradients)


def test_transposed_and_broadcast_arrays():
    operation, _, arrays, more = cases(7, np.float32)["scan"]
    want = operation(**arrays, **more)
    rows = {key: np.ascontiguousarray(one.swapaxes(1, 2)).swapaxes(1, 2) if one.ndim == 3 else one for key, one in arrays.items()}
    assert same(operation(**rows, **more), want)
    one_u = {**arrays, "u": np.broadcast_to(arrays["u"][:1], arrays["u"].shape)}
    assert same(operation(**one_u, **more), operation(**{**arrays, "u": np.ascontiguousarray(one_u["u"])}, **more))
    grouped = {**arrays, "B": arrays["B"][:, None], "C": arrays["C"][:, None]}
    assert same(operation(**grouped, **more), want)


def test_logarithm_of_a():
    operation, _, arrays, more = cases(8)["scan"]
    dout = np.ones((2, 5, 7))
    log = {**arrays, "A": np.log(-arrays["A"])}
    assert np.abs(operation(**log, A_log=True, **more) - operation(**arrays, **more)).max() < 1e-14
    by_log = ops.gradients(operation, dout, **log, **more, A_log=True)["A"]
    plain = ops.gradients(operation, dout, **arrays, **more)["A"]
    assert np.abs(by_log - plain * arrays["A"]).max() < 1e-12


def test_bits_of_the_c_call():
    """The struct of ops.h, filled by hand."""
    _, _, arrays, _ = cases(9, np.float32)["scan"]
    args = ffi.new("exphil_scan_args *")
    args.struct_size, args.op = ffi.sizeof("exphil_scan_args"), lib.EXPHIL_OP_SCAN
    args.batch, args.frames, args.width, args.states = 2, 7, 5, 3
    turned = ("u", "delta", "B", "C", "z")
    rows = {key: np.ascontiguousarray(one.swapaxes(1, 2)) if key in turned else one for key, one in arrays.items()}
    out, state = np.zeros((2, 7, 5), np.float32), np.zeros((2, 5, 3), np.float32)
    fields = {"u": "u", "delta": "delta", "A": "a", "B": "b", "C": "c", "D": "skip", "z": "z", "delta_bias": "delta_bias",
              "reset": "reset", "initial_state": "state_in"}
    for key, field in fields.items():
        getattr(args, field).data = ffi.cast("void *", rows[key].ctypes.data)
    args.y.data, args.state_out.data = (ffi.cast("void *", one.ctypes.data) for one in (out, state))
    error, info = exphil.errors.new_error(), ffi.new("exphil_op_info *")
    info.struct_size = ffi.sizeof("exphil_op_info")
    kernels = lib.exphil_py_ops(-1, error)
    assert lib.exphil_ops_query(kernels, args, info, error) == 0 and info.copies == 0
    workspace = ffi.new("char[]", max(info.workspace_bytes, 1))
    assert lib.exphil_ops_run(kernels, args, workspace, info.workspace_bytes, ffi.NULL, error) == 0
    made = ops.selective_scan(**arrays, delta_softplus=True, return_last_state=True)
    assert same(made, (out.swapaxes(1, 2), state))


@pytest.mark.parametrize("name", EASY)
def test_gradients_in_float(name):
    """Those of float against those of double, of the same numbers."""
    operation, _, arrays, more = cases(10, np.float32)[name]
    double = {key: one.astype(np.float64) if one.dtype == np.float32 else one for key, one in arrays.items()}
    out = operation(**double, **more)
    dout = np.random.default_rng(11).standard_normal(out.shape).astype(np.float32)
    want = ops.gradients(operation, dout.astype(np.float64), **double, **more)
    for key, gradient in ops.gradients(operation, dout, **arrays, **more).items():
        assert np.abs(gradient - want[key]).max() <= 1e-6 * max(1, np.abs(want[key]).max()), key


# ---- what does not fit ----


@pytest.mark.parametrize("name", EASY)
def test_each_argument_is_refused_by_its_name(name):
    operation, _, arrays, more = cases()[name]
    for key, one in arrays.items():
        shown = rf"\b{key}\b"
        for wrong, kind in ((one[..., None], ValueError), (one.astype(complex), ValueError), (np.full(one.shape, "a"), ValueError),
                            ([1.0, 2.0], (TypeError, AttributeError))):
            with pytest.raises(kind, match=shown if kind is ValueError else None):
                operation(**{**arrays, key: wrong}, **more)
        if one.dtype != bool:
            other = one.astype(np.float32)
            with pytest.raises(ValueError, match="float32|float64"):
                operation(**{**arrays, key: other}, **more)
        if (name, key) != ("attention", "bias"):  # it would be another window
            with pytest.raises(ValueError, match=shown):
                operation(**{**arrays, key: np.concatenate([one, one], -1)}, **more)


def test_missing_and_foreign_arguments():
    _, _, arrays, _ = cases()["scan"]
    with pytest.raises(ValueError, match="B is missing"):
        ops.selective_scan(**{**arrays, "B": None})
    with pytest.raises(TypeError, match="u must be an array"):
        ops.selective_scan(**{**arrays, "u": None})
    with pytest.raises(ValueError, match="activation"):
        ops.causal_conv1d(arrays["u"], arrays["A"])
    with pytest.raises(ValueError, match="window"):
        ops.attention(*[np.zeros((1, 2, 1, 2))] * 3, window=0)
    with pytest.raises(ValueError, match="method"):
        ops.attention(*[np.zeros((1, 2, 1, 2))] * 3, method="fast")
    with pytest.raises(ValueError, match="eps"):
        ops.layer_norm_silu(np.zeros((2, 3)), np.ones(3), np.ones(3), eps=0)


def test_odd_arrays_are_refused_by_name():
    one = np.ones(3)
    for bad in (None, [[1.0]], np.ma.masked_array(np.ones((2, 3)), True), np.empty((2, 3), "V0"), np.zeros((2, 0))):
        with pytest.raises((TypeError, ValueError), match=r"\bx\b"):
            ops.layer_norm_silu(bad, one, one)
    for bad in (np.ma.masked_array(one, False), np.empty(3, "V0")):
        with pytest.raises((TypeError, ValueError), match=r"\bweight\b"):
            ops.layer_norm_silu(np.ones((2, 3)), bad, one)
    for call in (lambda: ops.attention(None, one, one), lambda: ops.attention(one[0], one, one)):
        with pytest.raises((TypeError, ValueError), match=r"\bq\b"):
            call()
    with pytest.raises((TypeError, ValueError), match=r"\bbias\b"):
        ops.attention(*[np.zeros((1, 2, 1, 2))] * 3, bias=one)
    with pytest.raises(TypeError, match=r"\bweight\b"):
        ops.causal_conv1d(np.zeros((1, 2, 3)), None, activation="silu")


def test_gradients_of_outputs_that_there_are_not():
    operation, _, arrays, more = cases()["gru"]
    out, state = operation(**arrays, **more, return_last_state=True)
    for wrong in ((), (out, state, state)):
        with pytest.raises(ValueError, match="dout has"):
            ops.gradients(operation, wrong, **arrays, **more)
    with pytest.raises(ValueError, match="dout must have the shape of x"):
        ops.gradients(ops.layer_norm_silu, np.ones(5), np.ones((2, 3)), np.ones(3), np.ones(3))


def test_empty_arrays():
    _, _, arrays, _ = cases()["scan"]
    none = {key: one[:0] if key in ("u", "delta", "B", "C", "z", "reset", "initial_state") else one for key, one in arrays.items()}
    out, state = ops.selective_scan(**none, return_last_state=True)
    assert out.shape == (0, 5, 7) and state.shape == (0, 5, 3)
    short = {key: one[..., :0] if key in ("u", "delta", "B", "C", "z", "reset") else one for key, one in arrays.items()}
    out, state = ops.selective_scan(**short, return_last_state=True)
    assert out.shape == (2, 5, 0) and same(state, arrays["initial_state"])
    gradients = ops.gradients(ops.selective_scan, out, **short)
    assert not gradients["A"].any() and gradients["u"].shape == (2, 5, 0)
    assert ops.layer_norm_silu(np.zeros((0, 4)), np.ones(4), np.ones(4)).shape == (0, 4)


def test_huge_arrays():
    """What no memory holds is refused before anything of it is read."""
    _, _, arrays, _ = cases()["scan bare"]
    many = ("u", "delta", "B", "C")
    for size in (2**36, 2**44):
        huge = {key: np.broadcast_to(one[:1], (size, *one.shape[1:])) if key in many else one for key, one in arrays.items()}
        with pytest.raises((ValueError, MemoryError), match="scan: "):
            ops.selective_scan(**huge)
    thin = {key: np.broadcast_to(np.zeros(1), (2**58, 1, 1)) if key in many else np.zeros((1, 1)) for key in arrays}
    with pytest.raises((ValueError, MemoryError), match="scan: "):
        ops.selective_scan(**thin)


def test_aliased_arrays():
    """Inputs may be one array; an output may not lie on an input, and its name is said."""
    _, _, arrays, _ = cases(12)["scan"]
    u = arrays["u"]
    assert same(ops.selective_scan(u, u, arrays["A"], arrays["B"], arrays["B"], z=u),
                ops.selective_scan(u, u.copy(), arrays["A"], arrays["B"], arrays["B"].copy(), z=u.copy()))
    with pytest.raises(ValueError, match=r"\by\b"):
        ops.bind(ops.selective_scan, u, arrays["delta"], arrays["A"], arrays["B"], arrays["C"], out=(u,))


# ---- made ready once ----


def test_bound_calls():
    operation, _, arrays, more = cases(13, np.float32)["scan"]
    bound = ops.bind(operation, **arrays, **more, return_last_state=True)
    before = [one.copy() for one in bound.outputs]
    assert same(tuple(before), operation(**arrays, **more, return_last_state=True))
    arrays["u"] *= 2
    bound()
    assert same(bound.outputs, operation(**arrays, **more, return_last_state=True)) and not same(bound.outputs[0], before[0])
    out = np.zeros((2, 5, 7), np.float32)
    ops.bind(operation, **arrays, **more, out=(out,))
    assert same(out, bound.outputs[0])
    wide = np.zeros((2, 5, 9), np.float32)
    ops.bind(operation, **arrays, **more, out=(wide[:, :, 1:8],))
    assert same(np.ascontiguousarray(wide[:, :, 1:8]), out) and not wide[:, :, 0].any() and not wide[:, :, 8].any()


def test_arrays_that_cannot_be_bound():
    operation, _, arrays, more = cases(14, np.float32)["scan"]
    for key, one in (("u", arrays["u"][..., ::-1]), ("z", np.broadcast_to(arrays["z"][:1], (2, 5, 7)))):
        with pytest.raises(ValueError, match=rf"\b{key}\b"):
            ops.bind(operation, **{**arrays, key: one}, **more)
    packed = np.zeros(arrays["u"].shape, [("element", np.float32), ("gap", np.int16)])["element"]
    for copied in (arrays["u"].astype(">f4"), packed, Copied(arrays["u"])):
        with pytest.raises(ValueError, match="u would have to be copied"):
            ops.bind(operation, **{**arrays, "u": copied}, **more)
    with pytest.raises(ValueError, match="z would have to be copied"):
        ops.bind(operation, **{**arrays, "z": Copied(arrays["z"])}, **more)
    good = np.zeros((2, 5, 7), np.float32)
    read_only = good.copy()
    read_only.flags.writeable = False
    for bad in (read_only, good[..., ::-1], good.astype(np.float64), good[:1], good.astype(">f4")):
        with pytest.raises(ValueError, match=r"\bout\b"):
            ops.bind(operation, **arrays, **more, out=(bad,))
    with pytest.raises(ValueError, match="out has 2"):
        ops.bind(operation, **arrays, **more, out=(good, good))


# ---- AdamW ----


def adamw_state(count=11, dtype=np.float64):
    draw = np.random.default_rng(15)
    return [draw.standard_normal(count).astype(dtype) for _ in range(2)] + [np.zeros(count, dtype) for _ in range(2)]


def test_adamw():
    p, grad, m, v = adamw_state()
    want, wm, wv, average = p.copy(), m.copy(), v.copy(), p.copy()
    for step in (1, 2, 3):
        ops.adamw(p, grad, m, v, step, lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.2, average=average, average_decay=0.5)
        wm, wv = 0.8 * wm + 0.2 * grad, 0.9 * wv + 0.1 * grad**2
        want -= 0.1 * (wm / (1 - 0.8**step) / (np.sqrt(wv / (1 - 0.9**step)) + 1e-6) + 0.2 * want)
    assert np.abs(p - want).max() < 1e-14 and np.abs(m - wm).max() < 1e-14 and np.abs(v - wv).max() < 1e-14
    assert np.abs(average - p).max() > 0


def test_adamw_refusals():
    good = adamw_state()
    for i, name in enumerate(("param", "grad", "exp_avg", "exp_avg_sq")):
        for wrong in (np.zeros(12), np.zeros(22)[::2], np.zeros(11, np.float32), np.zeros(11, complex)):
            given = list(good)
            given[i] = wrong
            with pytest.raises((ValueError, TypeError), match=name if i else r"param|grad"):
                ops.adamw(*given, 1)
    fixed = good[0].copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="param is read-only"):
        ops.adamw(fixed, *good[1:], 1)
    for word in ({"step": 0}, {"step": 1, "lr": -1.0}, {"step": 1, "betas": (0.0, 0.9)}, {"step": 1, "eps": 0.0}):
        before = [one.copy() for one in good]
        with pytest.raises(ValueError):
            ops.adamw(*good, **word)
        assert all(same(a, b) for a, b in zip(before, good))


# ---- the process ----


def test_threads_and_contexts():
    operation, _, arrays, more = cases(16, np.float32)["scan"]
    want, wrong = operation(**arrays, **more), []

    def work():
        for _ in range(200):
            if not same(operation(**arrays, **more), want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    ops.use(exphil.Context(threads=1))
    for worker in workers:
        worker.join()
    assert not wrong
    ops.use(threads=0)
    gc.collect()
    assert same(operation(**arrays, **more), want)


def test_a_child_computes_too():
    operation, _, arrays, more = cases(17, np.float32)["scan"]
    want = operation(**arrays, **more)
    child = os.fork()
    if child == 0:
        os._exit(0 if same(operation(**arrays, **more), want) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_every_array_of_the_header_is_in_the_table():
    for name in ("scan", "attention", "lstm", "norm", "conv"):
        struct = ffi.typeof(f"exphil_{'rnn' if name == 'lstm' else name}_args")
        fields = {field.offset: key for key, field in struct.fields if field.type.cname in ("exphil_input", "exphil_output")}
        native = OPS[name].native
        known = {native.field[i].offset for i in range(native.fields)}
        assert {key for offset, key in fields.items() if offset not in known} <= {"a_log"}, name
    assert {one.replace("_grad", "") for one in ops.names()} == {*OPS, "adamw"}


@pytest.mark.parametrize("name", EASY)
def test_what_is_kept_is_as_large_as_the_library_says(name):
    """Torch and JAX are told the size before there is anything to ask with."""
    operation, _, arrays, more = cases(18, np.float32)[name]
    call = operation.prepare(**arrays, **more)
    from exphil.ops_call import forward

    _, saved, _ = forward(call, True)
    sizes = sizes_of(call.op, [None if one is None else one.shape for one in call.arrays], call.numbers.first)
    assert kept_bytes(call.op, sizes, 4) == (saved[1] if saved else 0)


def test_info():
    operation, _, arrays, more = cases(19, np.float32)["scan bare"]
    rows = {key: np.ascontiguousarray(one.swapaxes(1, 2)).swapaxes(1, 2) if one.ndim == 3 else one for key, one in arrays.items()}
    assert (ops.info(operation, **rows, **more).copies, ops.info(operation, **arrays, **more).copies) == (0, 4)
    assert ops.info(operation, **rows, **more).kernel


class Foreign:
    """An array of a library that NumPy does not know, with DLPack alone."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **words):
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return self

    def from_dlpack(self, other):
        return Foreign(np.from_dlpack(other))


class Copied(Foreign):
    """Of which NumPy sees a copy."""

    def __array__(self, dtype=None, copy=None):
        return self.array.copy()


class Elsewhere(Foreign):
    def __dlpack_device__(self):
        return 8, 0


def test_dlpack():
    operation, _, arrays, more = cases(19, np.float32)["scan bare"]
    made = operation(**{key: Foreign(one) for key, one in arrays.items()}, **more)
    assert type(made) is Foreign and same(made.array, operation(**arrays, **more))
    with pytest.raises(TypeError, match="u is on a device of DLPack's type 8"):
        operation(**{**arrays, "u": Elsewhere(arrays["u"])}, **more)
    with pytest.raises(TypeError, match="z must be an array"):
        operation(**arrays, z="no array", **more)
    for told in ((), (1, 0, 0), 1):
        class Odd(Foreign):
            def __dlpack_device__(self):
                return told  # noqa: B023

        with pytest.raises(TypeError, match="u: its __dlpack_device__"):
            operation(**{**arrays, "u": Odd(arrays["u"])}, **more)
    seen = {key: Foreign(one) for key, one in arrays.items()}
    bound = ops.bind(operation, **seen, **more)
    arrays["u"] *= 2
    bound()
    assert same(bound.outputs[0], operation(**arrays, **more))
