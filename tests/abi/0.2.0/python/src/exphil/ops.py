"""The library's kernels alone, on arrays of your own: NumPy's, torch's, JAX's, CuPy's, or anything with __dlpack__.

    y = exphil.ops.selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus=True)

What comes out is of the kind of what went in: torch tensors have gradients, and torch.compile and torch.export take the calls
(torch 2.9 or later); JAX's arrays go through exphil.jax, inside of jax.jit or outside. Elements are float32 or float64, all of one
type. Arrays may lie in memory as they like: what no strides can say is copied first, and the bits are the same. What does not fit
is refused by the name of its argument. The formulas are in exphil/ops.h.

Arrays on a GPU are computed there where the library has its plugin, on the stream that torch, CuPy or XLA works on. That is written
and compiled, but has not yet run on a card.
"""
from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from ._native import ffi, lib
from .arrays import number
from .context import Context, context_or_default
from .errors import make_error, text
from .handle import Config
from .ops_call import Bound, Call, Numbers, OpInfo, backward, compute, count, look, option
from .ops_table import OPS

_F = TypeVar("_F", bound=Callable[..., Any])
_METHODS = {"auto": lib.EXPHIL_ATTENTION_AUTO, "plain": lib.EXPHIL_ATTENTION_PLAIN, "chunked": lib.EXPHIL_ATTENTION_CHUNKED}


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _any_of_jax(args: Sequence[Any], kwargs: Dict[str, Any]) -> bool:
    """Whether the arguments are JAX's; where torch's tensors come first, nothing is asked that torch.compile cannot follow."""
    first = args[0] if args else next(iter(kwargs.values()), None)
    return not _is_torch(first) and any(_is_jax(one) for one in (*args, *kwargs.values()))


def _prepared(prepare: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Call:
    """The call with these arguments."""
    if _any_of_jax(args, kwargs):
        from . import jax_refuse

        return jax_refuse.prepared(prepare, args, kwargs)
    made: Call = prepare(*args, **kwargs)
    return made


def _refuse_jax(call: Call, why: str) -> None:
    for field, one in zip(call.op.inputs, call.arrays):
        if _is_jax(one):
            raise TypeError(f"{call.op.title}: {field.name} is an array of JAX: {why}")


def _shape(value: Any, name: str) -> Tuple[int, ...]:
    """Shape of an argument that is looked at before the call is made."""
    if getattr(value, "is_nested", False) or not hasattr(value, "shape"):
        raise TypeError(f"{name} must be an array of one shape, not {type(value).__name__}")
    return tuple(value.shape)


def run(call: Call) -> Any:
    """What a call gives: one array, or a tuple of it and the states."""
    first = call.arrays[0]
    if _is_torch(first):
        from . import ops_torch

        made = ops_torch.compute(call)
    elif _is_jax(first):
        from . import jax

        made = jax.compute(call)
    else:
        made = compute(call)
    if call.finish is not None:
        made[0] = call.finish(made[0])
    return tuple(made) if call.states else made[0]


def _operation(prepare: _F) -> _F:
    """A function that makes a Call becomes one that runs it; gradients and bind use what it was."""

    @functools.wraps(prepare)
    def operation(*args: Any, **kwargs: Any) -> Any:
        return run(_prepared(prepare, args, kwargs))

    operation.prepare = prepare  # type: ignore[attr-defined]
    return operation  # type: ignore[return-value]


def _of_one_group(value: Any, name: str, u: Any) -> Any:
    """B or C without the axis of groups; mamba_ssm's other forms are refused."""
    rank = 3 if value is None else len(value.shape)
    if rank == 2 and len(u.shape) == 3:
        raise make_error(lib.EXPHIL_E_INVALID, f"selective_scan: {name} has 2 dimensions, must have 3, [B,N,L]: one group only")
    if rank != 4:
        return value
    if value.shape[1] != 1:
        raise make_error(lib.EXPHIL_E_INVALID, f"selective_scan: {name} has {value.shape[1]} groups, one group only is there")
    return value[:, 0]


@_operation
def selective_scan(
    u: Any,
    delta: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    *,
    initial_state: Any = None,
    reset: Any = None,
    A_log: bool = False,
) -> Any:
    """Selective scan of Mamba, with the names and meanings of mamba_ssm's selective_scan_fn.

    u, delta, z [B,D,L]; A [D,N]; B, C [B,N,L] or [B,1,N,L]; D, delta_bias [D]. Gives out [B,D,L], or with return_last_state out and
    the state behind the last frame [B,D,N]. Beyond mamba_ssm: initial_state [B,D,N]; reset [B,L] of bool or uint8, true where an
    episode starts, which nothing crosses; with A_log A is given as log(-A), as Mamba's weights are, and its gradient is that of
    the logarithm. Arrays whose D lies together, such as x.transpose(1, 2) of [B,L,D], are not copied.
    """
    arrays = (u, delta, A, _of_one_group(B, "B", u), _of_one_group(C, "C", u), D, z, delta_bias, reset, initial_state)
    return Call(OPS["scan"], arrays, Numbers(int(not delta_softplus), int(bool(A_log))), bool(return_last_state))


@_operation
def attention(
    q: Any,
    k: Any,
    v: Any,
    window: Optional[int] = None,
    bias: Any = None,
    *,
    initial_state: Any = None,
    reset: Any = None,
    return_last_state: bool = False,
    method: str = "auto",
) -> Any:
    """Causal attention over the last window frames (None: those of bias, or all L), with a bias for each head and distance.

    q, k, v [B,L,H,E], heads side by side; columns of one projection are not copied. bias [H,window]. Gives out [B,L,H,E], or with
    return_last_state out and the ring of keys and values [B, 2*window*H*E + 2], which initial_state takes; no gradient flows
    into it. reset [B,L] as in selective_scan. method: auto, plain or chunked; the bits are the same.
    """
    if window is None:
        named, shape = ("q", _shape(q, "q")) if bias is None else ("bias", _shape(bias, "bias"))
        if len(shape) < 2:
            raise ValueError(f"{named} has {len(shape)} dimensions, must have {4 if bias is None else 2}")
        window = shape[1] if bias is not None else max(int(shape[1]), 1)
    arrays = (q, k, v, bias, reset, initial_state)
    numbers = Numbers(count(window, "window"), option(_METHODS, method, "method"))
    return Call(OPS["attention"], arrays, numbers, bool(return_last_state))


@_operation
def lstm(
    gates: Any,
    weight: Any,
    bias: Any = None,
    h0: Any = None,
    c0: Any = None,
    *,
    reset: Any = None,
    return_last_state: bool = False,
) -> Any:
    """LSTM from the input part of its gates on, which is x W_ih^T + bias_ih.

    gates [B,L,4H] in torch's order i, f, g, o; weight [4H,H] and bias [4H] are torch's weight_hh and bias_hh; h0, c0 [B,H]. Gives
    out [B,L,H], or with return_last_state out, h and c behind the last frame. reset [B,L] as in selective_scan.
    """
    return Call(OPS["lstm"], (gates, weight, bias, reset, h0, c0), Numbers(), bool(return_last_state))


@_operation
def gru(
    gates: Any,
    weight: Any,
    bias: Any = None,
    h0: Any = None,
    *,
    reset: Any = None,
    return_last_state: bool = False,
) -> Any:
    """GRU from the input part of its gates on; gates [B,L,3H] in torch's order r, z, n. The rest is as in lstm, without c."""
    return Call(OPS["gru"], (gates, weight, bias, reset, h0), Numbers(), bool(return_last_state))


@_operation
def layer_norm_silu(x: Any, weight: Any, bias: Any, eps: float = 1e-5, *, silu: bool = True) -> Any:
    """LayerNorm over the last axis and SiLU of it; without silu the LayerNorm alone. x [...,D] of any rank; weight, bias [D]."""
    shape = _shape(x, "x")
    if shape and not shape[-1]:
        raise ValueError("x has no elements along its last axis, must have at least 1")
    rows = x if len(shape) == 3 else x.reshape((1, -1, shape[-1]) if shape else (1, 1, 1))
    back = None if len(shape) == 3 else lambda y: y.reshape(shape)
    if not 0 < eps <= 1:
        raise ValueError(f"eps is {eps}, must be above 0 and at most 1")
    return Call(OPS["norm"], (rows, weight, bias), Numbers(int(bool(silu)), 0, float(eps)), False, back)


@_operation
def causal_conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    reset: Any = None,
    initial_states: Any = None,
    return_final_states: bool = False,
    activation: Optional[str] = None,
) -> Any:
    """Causal depthwise convolution with SiLU, with the names of causal_conv1d's causal_conv1d_fn.

    x [B,D,L]; weight [D,K] or [D,1,K]; bias [D]; initial_states [B,D,K-1]. Gives out [B,D,L], or with return_final_states out and
    the last K-1 inputs. activation must be "silu" or "swish", because the kernel has it built in. In the place of seq_idx
    stands reset [B,L], as in selective_scan.
    """
    if activation not in ("silu", "swish"):
        raise ValueError(f"activation is {activation!r}, must be 'silu' or 'swish': there is no kernel without it")
    if len(_shape(weight, "weight")) == 3 and weight.shape[1] == 1:
        weight = weight[:, 0]
    return Call(OPS["conv"], (x, weight, bias, reset, initial_states), Numbers(), bool(return_final_states))


def gradients(operation: Callable[..., Any], dout: Any, *args: Any, **kwargs: Any) -> Dict[str, Any]:
    """Gradients of an operation's inputs by their names, for arrays that have no automatic ones, such as NumPy's.

        exphil.ops.gradients(exphil.ops.selective_scan, dout, u, delta, A, B, C)["A"]

    dout is the gradient of out, or a tuple of it and those of the states; the rest are the arguments of the operation. Sums over
    all frames and batches are in the order in which training has them.
    """
    call = _prepared(operation.prepare, args, kwargs)  # type: ignore[attr-defined]
    if _is_torch(call.arrays[0]) or _is_jax(call.arrays[0]):
        raise TypeError("torch and JAX have gradients of their own: tensor.backward(), jax.grad")
    douts = list(dout) if isinstance(dout, tuple) else [dout]
    if call.finish is not None:
        try:
            douts[0] = douts[0].reshape(call.arrays[0].shape)
        except (AttributeError, IndexError, ValueError):
            raise ValueError("dout must have the shape of x") from None
    made = backward(call, douts)
    if call.finish is not None and made[0] is not None:
        made[0] = call.finish(made[0])
    return {field.name: one for field, one in zip(call.op.inputs, made) if one is not None}


def bind(operation: Callable[..., Any], *args: Any, out: Optional[Sequence[Any]] = None, **kwargs: Any) -> Bound:
    """Makes an operation ready once, for arrays that stay where they are: each call of the result computes it anew, and adds
    next to nothing to the kernel's own time.

    The arguments are the operation's. out: arrays to write to, one for each output; without it, outputs of the result are new ones.
    What would have to be copied first is refused.
    """
    call = _prepared(operation.prepare, args, kwargs)  # type: ignore[attr-defined]
    _refuse_jax(call, "it has no memory that is written again; inside of jax.jit a call is made ready once")
    if call.finish is not None:
        raise ValueError("x must have 3 dimensions to be bound")
    return Bound(call, out)


def adamw(
    param: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    step: int,
    lr: float = 1e-3,
    betas: Tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    *,
    grad_scale: float = 1.0,
    average: Any = None,
    average_decay: float = 0.0,
) -> None:
    """One step of AdamW, in place, with the names of torch's: param, exp_avg, exp_avg_sq and average are written. Of torch's
    tensors autograd hears that they changed; one that requires grad is written under torch.no_grad() alone.

    All arrays have one shape and lie without gaps. step is 1 for the first. average becomes average_decay * average +
    (1 - average_decay) * param. JAX's arrays cannot be written, and are refused.
    """
    from .ops_adamw import step as take_step

    numbers = {"step": number(step, "step"), "rate": lr, "epsilon": eps, "decay": weight_decay, "grad_scale": grad_scale,
               "average_decay": average_decay, "beta1": betas[0], "beta2": betas[1]}
    for name in ("beta1", "beta2", "epsilon", "grad_scale"):
        if not numbers[name] > 0:
            raise ValueError(f"{name} is {numbers[name]}, must be above 0")
    take_step({"p": param, "grad": grad, "m": exp_avg, "v": exp_avg_sq, "average": average}, numbers)


# Kernels that use() has made, all of them: an operator of torch may still be running on the last but one. And by device.
_made: List[Any] = []
_in_use: Dict[int, Any] = {}


def in_use() -> Dict[int, Any]:
    """What use() has chosen: native kernels by device, -1 the CPU."""
    return _in_use


def use(context: Optional[Context] = None, *, threads: int = 0) -> None:
    """From now on all operations on this context's device run on it, in the whole process; with threads=1 in the calling thread
    alone, else with the context's threads. Without a call they run on a context of their own, with a thread for each core."""
    context = context_or_default(context)
    config = Config("exphil_ops_config").set(threads=threads)
    ops = context._core.create(lib.exphil_ops_create, context._handle, config)
    device = context.device
    place = int(device.name.split(":")[1]) if device.name.startswith("cuda") else -1
    _made.append(ops)
    _in_use[place] = ops
    lib.exphil_py_ops_set(place, ops)
    jax = sys.modules.get(f"{__package__}.jax")
    if jax is not None:
        jax.use(place, int(ffi.cast("uintptr_t", ops)))


def info(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> OpInfo:
    """What a call with these arguments needs, and how it is done: bytes of workspace, bytes that are kept for a gradient, arrays
    that the library copies because no kernel reads them as they lie, and the kernel's name. Not for torch's or JAX's arrays."""
    call = _prepared(operation.prepare, args, kwargs)  # type: ignore[attr-defined]
    _refuse_jax(call, "ask with NumPy's of the same shapes and types")
    return look(call)


def names() -> List[str]:
    """Names of the library's operations, backward ones among them."""
    found: List[str] = []
    while lib.exphil_op_name(len(found) + 1) != ffi.NULL:
        found.append(text(lib.exphil_op_name(len(found) + 1)))
    return found


__all__ = [
    "OpInfo", "adamw", "attention", "bind", "causal_conv1d", "gradients", "gru", "info", "layer_norm_silu", "lstm", "names",
    "selective_scan", "use",
]
