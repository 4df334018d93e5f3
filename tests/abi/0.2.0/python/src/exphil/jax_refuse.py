"""What exphil.jax cannot do with JAX's arrays, by the name of the argument."""
from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Callable, Dict, Sequence

from .ops_call import Call

jax: Any = import_module("jax")


def _size_by_size(name: str, value: Any) -> None:
    for size in getattr(value, "shape", ()):
        if not isinstance(size, int):
            raise ValueError(f"{name} has a dimension {size} that is not known: dimensions must be constant, also for jax.export")


def _explain(prepare: Callable[..., Call], args: Sequence[Any], kwargs: Dict[str, Any], error: Exception) -> None:
    """Another error where this one is JAX's about an argument that is not known while it traces."""
    signature = inspect.signature(prepare)
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        if signature.parameters[name].annotation == "Any":
            _size_by_size(name, value)
        elif isinstance(value, jax.core.Tracer):
            raise TypeError(f"{name} is traced by JAX, and an option must be known by then: "
                            f"jax.jit(..., static_argnames={name!r}), "
                            "or bind it with functools.partial") from error


def prepared(prepare: Callable[..., Call], args: Sequence[Any], kwargs: Dict[str, Any]) -> Call:
    """A call with JAX's arrays, or why not."""
    try:
        call = prepare(*args, **kwargs)
    except Exception as error:
        _explain(prepare, args, kwargs, error)
        raise
    for field, one in zip(call.op.inputs, call.arrays):
        name, kind = f"{call.op.name}: {field.name}", str(getattr(one, "dtype", ""))
        _size_by_size(name, one)
        if one is not None and field.bytes and kind not in ("bool", "uint8", ""):
            raise ValueError(f"{name} has elements of type {kind}, must have bool or uint8: cast it with .astype(bool)")
        if one is not None and not field.bytes and kind not in ("float32", "float64", ""):
            raise ValueError(f"{name} has elements of type {kind}, must have float32 or float64: cast it with .astype(jnp.float32)")
    return call


def no_second(name: str) -> Callable[..., Any]:
    """The rule of a call that is a derivative already, or that has its own for jax.grad alone."""

    def rule(*_: Any) -> Any:
        raise NotImplementedError(f"{name}: no gradients of gradients, and no forward mode: there is jax.grad once (jax.vjp, "
                                  "jax.jacrev), not jax.jvp, jax.jacfwd, jax.hessian or a grad of a grad")

    return rule
