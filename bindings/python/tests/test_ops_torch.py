"""Kernels on torch's tensors: the bits of NumPy's arrays, gradients, and from torch 2.9 on registered operators.

Both ways are tested where both are there: the operators, and the autograd.Function of older versions.
"""
import numpy as np
import pytest
from ops_cases import NAMES, cases, states_word

import exphil
import exphil.ops as ops

torch = pytest.importorskip("torch", reason="torch is not installed (python3-torch): the operations on its tensors are untested")
ops_torch = pytest.importorskip("exphil.ops_torch")

EASY = ("scan", "attention", "lstm", "gru", "norm", "conv")
needs_operators = pytest.mark.skipif(
    not ops_torch.REGISTERED, reason="torch is older than 2.9: its registered operators are untested")


@pytest.fixture(params=["operators", "function"])
def way(request, monkeypatch):
    """Which way is taken."""
    if request.param == "operators" and not ops_torch.REGISTERED:
        pytest.skip("torch is older than 2.9: its registered operators are untested")
    monkeypatch.setattr(ops_torch, "REGISTERED", request.param == "operators")
    return request.param


def tensors(arrays, **more):
    return {key: torch.from_numpy(one.copy()).requires_grad_(one.dtype != bool) for key, one in arrays.items()}


@pytest.mark.parametrize("name", NAMES)
def test_bits(name, way):
    operation, _, arrays, more = cases(1, np.float32)[name]
    want, given = operation(**arrays, **more), tensors(arrays)
    assert operation(**given, **more).detach().numpy().tobytes() == want.tobytes()
    with torch.no_grad():
        assert operation(**given, **more).numpy().tobytes() == want.tobytes()
    if states_word(operation):
        word = {states_word(operation): True}
        for got, wanted in zip(operation(**given, **more, **word), operation(**arrays, **more, **word)):
            assert got.detach().numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name, way):
    operation, _, arrays, more = cases(2)[name]
    given = tensors(arrays)
    keys = [key for key, one in given.items() if one.requires_grad]
    word = {states_word(operation): True} if states_word(operation) and operation is not ops.attention else {}

    def function(*inputs):
        return operation(**{**given, **dict(zip(keys, inputs))}, **more, **word)

    assert torch.autograd.gradcheck(function, [given[key] for key in keys])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_numpy_s(name, way):
    """In float, bit for bit, and only for what asks for one; a gradient that is broadcast is written out."""
    operation, _, arrays, more = cases(3, np.float32)[name]
    out = operation(**arrays, **more)
    want = ops.gradients(operation, np.ones_like(out), **arrays, **more)
    for only in (None, *want):
        given = {key: one.requires_grad_(only in (None, key) and one.dtype != torch.bool) for key, one in tensors(arrays).items()}
        operation(**given, **more).sum().backward()
        for key, one in given.items():
            if one.requires_grad:
                assert one.grad.numpy().tobytes() == want[key].tobytes(), (only, key)
            else:
                assert one.grad is None


@pytest.mark.parametrize("name", EASY)
def test_layouts(name, way):
    operation, _, arrays, more = cases(4, np.float32)[name]
    want, plain = operation(**arrays, **more), tensors(arrays)
    lays = (lambda x: x.repeat_interleave(2, -1)[..., ::2], lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
            lambda x: torch.stack([x, x])[1], lambda x: x[:1].expand(x.shape))
    for lay in lays:
        odd = {key: lay(one.detach()) for key, one in plain.items()}
        expected = want if lay is not lays[3] else operation(**{key: one.contiguous().numpy() for key, one in odd.items()}, **more)
        assert operation(**odd, **more).numpy().tobytes() == expected.tobytes()


def test_refusals(way):
    _, _, arrays, more = cases()["scan"]
    given = {key: one.detach() for key, one in tensors(arrays).items()}
    for key, one in given.items():
        bad = [one[..., None], one.to(torch.int32)] + ([one.float()] if one.dtype == torch.float64 else [])
        for wrong in bad:
            with pytest.raises(exphil.InvalidError, match=rf"^selective_scan: .*(\b{key}\b|those of u are float)"):
                ops.selective_scan(**{**given, key: wrong}, **more)
        if key != "u":  # the first one says which kind all are
            with pytest.raises(TypeError, match=rf"\b{key} must be a torch.Tensor"):
                ops.selective_scan(**{**given, key: arrays[key]}, **more)
    huge = {key: given[key][:1].expand(2**40, *given[key].shape[1:]) for key in ("u", "delta", "B", "C")}
    huge["A"] = given["A"]
    with pytest.raises((exphil.InvalidError, exphil.OutOfMemoryError), match="^selective_scan: "):
        ops.selective_scan(**huge, **more)
    with pytest.raises(TypeError, match="gradients of their own"):
        ops.gradients(ops.selective_scan, given["u"], **given, **more)


def test_empty_tensors(way):
    _, _, arrays, more = cases()["scan bare"]
    for cut in (lambda x: x[..., :0], lambda x: x[:0]):
        given = tensors({key: one if key == "A" else cut(one) for key, one in arrays.items()})
        ops.selective_scan(**given, **more).sum().backward()
        assert not given["A"].grad.any() and given["u"].grad.shape == given["u"].shape


def test_refusals_are_those_of_numpy(way):
    """The class and the words, whichever way an array came; backward's, too."""
    for name, key, change in (
        ("norm", "weight", lambda x: x[:3]), ("conv", "weight", lambda x: x[:3]), ("scan", "delta", lambda x: x[..., :3]),
        ("lstm", "bias", lambda x: x[:3]), ("attention", "v", lambda x: x[..., :1]), ("gru", "gates", lambda x: x[0]),
    ):
        operation, _, arrays, more = cases()[name]
        wrong = dict(arrays, **{key: change(arrays[key])})
        said = []
        for given in (wrong, tensors(wrong), {key: one.detach() for key, one in tensors(wrong).items()}):
            with pytest.raises(exphil.InvalidError, match=f"^{operation.__name__}: {key} ") as refused:
                operation(**given, **more)
            said.append((type(refused.value), str(refused.value), refused.value.status))
        assert said[0] == said[1] == said[2]


def test_arrays_of_two_kinds():
    """NumPy first: tensors would lose their gradients."""
    _, _, arrays, more = cases()["scan bare"]
    for one in (torch.from_numpy(arrays["delta"]), torch.from_numpy(arrays["delta"]).requires_grad_()):
        with pytest.raises(TypeError, match="selective_scan: delta is of torch's type Tensor, u is of numpy's type ndarray: all"):
            ops.selective_scan(**dict(arrays, delta=one), **more)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_halves_are_refused_or_cast(half, way):
    """By themselves they are refused, with what to do; under autocast they are computed as float32, and get their gradient."""
    operation, _, arrays, more = cases(8, np.float32)["scan"]
    given = tensors(arrays)
    given["delta"] = given["delta"].detach().to(half).requires_grad_()
    with pytest.raises(exphil.InvalidError, match=r"delta must have elements of type float32 or float64: give tensor.float\(\)"):
        operation(**given, **more)
    if half == torch.float16 and not ops_torch.REGISTERED:
        return  # older versions cast to bfloat16 alone on the CPU
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = operation(**given, **more)
    made.sum().backward()
    want = tensors(dict(arrays, delta=given["delta"].detach().float().numpy()))
    operation(**want, **more).sum().backward()
    assert made.dtype == torch.float32 and given["delta"].grad.dtype == half
    assert torch.equal(given["delta"].grad, want["delta"].grad.to(half)) and torch.equal(given["A"].grad, want["A"].grad)


@pytest.mark.parametrize("name", EASY)
def test_a_gradient_has_none(name, way):
    """A gradient that was made with create_graph may be used; what needs its own gradient is refused, not silently left out."""
    operation, _, arrays, more = cases()[name]
    given = tensors(arrays)
    keys = [key for key, one in given.items() if one.requires_grad]
    out = operation(**given, **more).sum()
    made = torch.autograd.grad(out, [given[key] for key in keys], create_graph=True)
    out.backward(retain_graph=True)
    assert all(torch.equal(one, given[key].grad) for key, one in zip(keys, made))
    for one in made:
        with pytest.raises(RuntimeError, match="exphil: no gradients of gradients"):
            (out + one.square().sum()).backward(retain_graph=True)


def test_adamw_on_tensors():
    given = [torch.linspace(-1, 1, 12).reshape(3, 4), torch.ones(3, 4), torch.zeros(3, 4), torch.zeros(3, 4)]
    plain = [one.numpy().copy() for one in given]
    ops.adamw(*given, 1, lr=0.1)
    ops.adamw(*plain, 1, lr=0.1)
    assert all(a.numpy().tobytes() == b.tobytes() for a, b in zip(given, plain)) and given[2].any()
    with pytest.raises(ValueError, match="exp_avg must lie"):
        ops.adamw(given[0], given[1], torch.zeros(4, 3).t(), given[3], 1)
    parameter = torch.nn.Parameter(torch.ones(3, 4))
    for bad in (parameter, parameter * 2):
        with pytest.raises(RuntimeError, match="param requires grad"):
            ops.adamw(bad, given[1], given[2], given[3], 2)
    with torch.no_grad():
        ops.adamw(parameter, given[1], given[2], given[3], 2)
    assert not torch.equal(parameter.detach(), torch.ones(3, 4))


def test_autograd_hears_of_adamw():
    leaf = torch.ones(6, requires_grad=True)
    product = (leaf * leaf).sum()
    given = [leaf.detach(), torch.ones(6), torch.zeros(6), torch.zeros(6)]
    average = torch.zeros(())
    before = [one._version for one in given]
    ops.adamw(*given, 1)
    assert [one._version - was for one, was in zip(given, before)] == [1, 0, 1, 1]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    ops.adamw(*[torch.ones(()) for _ in range(4)], 1, average=average)
    assert average._version == 1


def odd_tensors(one):
    """Tensors whose memory is not what they are, by words of the refusal."""
    freed = one.clone()
    getattr(freed, "untyped_storage", freed.storage)().resize_(0)
    found = [("dense", one.to_sparse()), ("dense", torch.quantize_per_tensor(one, 0.1, 0, torch.qint8)), ("no memory", freed)]
    return found + [("dense", one.to_mkldnn())] * torch.backends.mkldnn.is_available()


@pytest.mark.filterwarnings("ignore")
def test_tensors_without_plain_memory(way):
    gates, weight = torch.randn(2, 7, 15), torch.randn(15, 5)
    for words, odd in odd_tensors(weight):
        with pytest.raises((TypeError, ValueError, RuntimeError), match=f"gru: weight .*{words}"):
            ops.gru(gates, odd)
    with pytest.raises(ValueError, match="gru: weight is missing"):
        ops.gru(gates, None)
    nested = torch.nested.nested_tensor([torch.ones(3, 5), torch.ones(2, 5)]) if hasattr(torch, "nested") else None
    if nested is not None:
        for call in (lambda: ops.layer_norm_silu(nested, weight[0], weight[0]), lambda: ops.gru(gates, nested)):
            with pytest.raises(TypeError, match="x must be|weight must be a dense"):
                call()
    good = [torch.ones(15, 5) for _ in range(4)]
    bad = odd_tensors(weight) + [("negative bit", torch._neg_view(weight)), ("is on meta", weight.to("meta"))]
    for i, name in enumerate(("param", "grad", "exp_avg", "exp_avg_sq")):
        for words, odd in bad:
            with pytest.raises((TypeError, ValueError), match=f"{name} .*{words}"):
                ops.adamw(*good[:i], odd, *good[i + 1:], 1)
    assert all(torch.equal(one, torch.ones(15, 5)) for one in good)


def test_bits_that_stand_for_signs(way):
    """A view whose elements are negated when they are read, as the imaginary part of a conjugate is."""
    gates, weight = torch.complex(torch.randn(2, 7, 15), torch.randn(2, 7, 15)).conj().imag, torch._neg_view(torch.randn(15, 5))
    assert gates.is_neg() and weight.is_neg()
    plain = gates.clone(), weight.clone()
    want = ops.gru(*[one.numpy() for one in plain])
    assert ops.gru(gates, weight).numpy().tobytes() == want.tobytes()
    made = ops.gru(gates, weight.requires_grad_())
    weight_too = plain[1].requires_grad_()
    grads = [torch.autograd.grad(out.sum(), one)[0] for out, one in ((made, weight), (ops.gru(plain[0], weight_too), weight_too))]
    assert made.detach().numpy().tobytes() == want.tobytes() and torch.equal(*grads)


def test_no_forward_mode(way):
    gates, weight = torch.randn(2, 7, 15), torch.randn(15, 5)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(weight, torch.ones(15, 5))
        for gates_too in (gates, gates.clone().requires_grad_()):
            with pytest.raises(NotImplementedError, match="gru: weight has a tangent.*forward-mode"):
                ops.gru(gates_too, dual)
        assert ops.gru(gates, weight).shape == (2, 7, 5)
    if hasattr(torch, "func"):
        with pytest.raises(NotImplementedError, match="forward-mode"):
            torch.func.jvp(lambda one: ops.gru(one, weight), (gates,), (gates,))


# ---- torch 2.9 and later ----


@needs_operators
def test_operators_look_at_what_they_are_given():
    """Those that a program calls itself: nothing beside an array is read, and shapes without data are checked as those with."""
    gates, weight = torch.randn(2, 7, 15), torch.randn(15, 5)
    out, _, saved = torch.ops.exphil.gru(gates, weight, None, None, None, 3)
    wide = torch.zeros(2 * saved.numel(), dtype=torch.uint8)
    cases_of_saved = (wide[::2], wide[:1].expand(saved.numel()), torch.zeros(saved.numel()), wide[0],
                      torch.zeros(saved.numel(), 0, dtype=torch.uint8), saved[:-4])
    for bad in cases_of_saved:
        with pytest.raises(RuntimeError, match="saved"):
            torch.ops.exphil.gru_backward(gates, weight, None, None, None, out, out, None, bad, 3)
    one = torch.ones(1, 2, 1, 4)
    for method in (3, 2**32, -(2**32)):
        with pytest.raises(RuntimeError, match="method is"):
            torch.ops.exphil.attention_plain(one, one, one, None, None, None, 2, method)
    with pytest.raises(RuntimeError, match="gru: weight"):
        torch.ops.exphil.gru_plain(gates, None, None, None, None)
    for bad in (torch.ones(99, 4), torch.ones(15), weight.double(), weight.int(), weight.to("meta")):
        with pytest.raises((RuntimeError, ValueError), match="gru: (weight|gates)"):
            ops.gru(gates, bad)
        if bad.device.type != "meta":
            with pytest.raises((RuntimeError, ValueError), match="gru: (weight|gates)"):
                ops.gru(gates.to("meta"), bad.to("meta"))
    assert ops.gru(gates.to("meta"), weight.to("meta")).shape == (2, 7, 5)


@needs_operators
@pytest.mark.parametrize("name", EASY)
def test_opcheck(name):
    """Torch's own checks: schema, gradient, shapes without data, tracing with symbolic shapes."""
    operation, _, arrays, more = cases(5, np.float32)[name]
    call = operation.prepare(**tensors(arrays), **more)
    forward, backward, plain = ops_torch._OPERATORS[call.op.name]
    numbers = ops_torch._numbers(call.op, call.numbers)
    detached = [None if one is None else one.detach() for one in call.arrays]
    done = [torch.library.opcheck(forward, (*call.arrays, *numbers, wanted)) for wanted in (2, 3)]
    done.append(torch.library.opcheck(plain, (*detached, *numbers)))
    made = ops_torch._as_tuple(forward(*detached, *numbers, 2))
    read = [made[i] for i, field in enumerate(call.op.gives[0]) if field.read_back]
    saved = [made[-1]] if call.op.saves else []
    douts = [torch.ones_like(made[0])] + [None] * (len(call.op.takes[1]) - len(detached) - len(read) - 1)
    wanted = sum(1 << i for i, field in enumerate(call.op.gives[1]) if detached[field.of_input] is not None)
    done.append(torch.library.opcheck(backward, (*detached, *read, *douts, *saved, *numbers, wanted)))
    assert all(said == "SUCCESS" for one in done for said in one.values())


@needs_operators
@pytest.mark.parametrize("name", EASY)
def test_compile_and_export(name):
    operation, _, arrays, more = cases(6, np.float32)[name]
    given = tensors(arrays)
    keys = list(given)

    def function(*inputs):
        return operation(**dict(zip(keys, inputs)), **more).square()

    class Module(torch.nn.Module):
        def forward(self, *inputs):
            return function(*inputs)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    floats = [one for one in given.values() if one.requires_grad]
    plain, traced = function(*given.values()), compiled(*given.values())
    assert torch.equal(plain, traced)
    for a, b in zip(torch.autograd.grad(plain.sum(), floats), torch.autograd.grad(traced.sum(), floats)):
        assert torch.equal(a, b)
    detached = tuple(one.detach() for one in given.values())
    exported = torch.export.export(Module(), detached)
    assert f"exphil.{operation.prepare(**given, **more).op.name}" in exported.graph_module.code
    assert torch.equal(exported.module()(*detached), plain.detach())


@needs_operators
def test_operators_survive_a_change_of_kernels():
    operation, _, arrays, more = cases(7, np.float32)["scan"]
    given = {key: one.detach() for key, one in tensors(arrays).items()}
    want = operation(**given, **more)
    ops.use(exphil.Context(threads=1))
    assert torch.equal(operation(**given, **more), want)
    ops.use()
