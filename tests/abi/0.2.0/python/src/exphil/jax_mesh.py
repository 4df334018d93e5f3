"""Meshes of several devices: along which axes arrays differ inside of jax.shard_map, and shardings that are part of the type.

Old versions of JAX know neither, and nothing is done there.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, FrozenSet, List, Sequence, Tuple

jax: Any = import_module("jax")


def _kind(one: Any) -> Any:
    return jax.typeof(one) if hasattr(jax, "typeof") else None


def _axes(one: Any) -> FrozenSet[Any]:
    kind = _kind(one)
    named = getattr(kind, "manual_axis_type", None)
    return frozenset(getattr(kind, "vma", ()) if named is None else named.varying)


def axes_of(arrays: Sequence[Any]) -> FrozenSet[Any]:
    """Axes of the mesh along which any of these arrays differs, where jax.shard_map checks that."""
    return frozenset().union(*(_axes(one) for one in arrays))


def varying(arrays: Sequence[Any], axes: FrozenSet[Any]) -> List[Any]:
    """The arrays as of a type that differs along all of these axes: a custom call's results forget it. The gradient of an array
    that did not is summed over them by JAX."""
    made = []
    for one in arrays:
        missing = tuple(sorted(axes - _axes(one), key=str))
        if not missing:
            made.append(one)
        elif hasattr(jax.lax, "pcast"):
            made.append(jax.lax.pcast(one, missing, to="varying"))
        else:
            made.append(jax.lax.pvary(one, missing))
    return made


def explicit(arrays: Sequence[Any], batched: Sequence[bool]) -> Tuple[Any, Any]:
    """The mesh whose axes are part of the arrays' types, None where there is none; and how the first batch is divided."""
    mesh, batch = None, None
    for one, has_batch in zip(arrays, batched):
        sharding = getattr(_kind(one), "sharding", None)
        if sharding is None or not getattr(sharding.mesh, "explicit_axes", ()):
            continue
        mesh = sharding.mesh
        if has_batch and batch is None:
            batch = sharding.spec[0]
    return mesh, batch


def by_batch(
    function: Callable[..., Any], mesh: Any, batch: Any, takes: Sequence[bool], gives: Sequence[bool]
) -> Callable[..., Any]:
    """The function on each device's part of the batch; arrays without one are whole on each."""
    spec = jax.sharding.PartitionSpec
    parts, results = ([spec(batch) if has_batch else spec() for has_batch in some] for some in (takes, gives))
    if batch is not None:
        names = set(mesh.explicit_axes)
        function = jax.shard_map(function, mesh=mesh, in_specs=tuple(parts), out_specs=tuple(results), axis_names=names)

    def divided(*arrays: Any) -> Any:
        return function(*(jax.sharding.reshard(one, jax.sharding.NamedSharding(mesh, part)) for one, part in zip(arrays, parts)))

    return divided
