"""Operations of exphil.jax on two devices, for test_ops_jax.py, which runs this where XLA has two CPUs: of each case whether it is
right, else where it failed, as JSON."""
import functools
import json
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as Spec
from ops_cases import cases

jax.config.update("jax_enable_x64", True)
import exphil.jax  # noqa: E402, F401 (registers the operations)

EASY = ("scan", "attention", "lstm", "gru", "norm", "conv")
# Arrays that are the same for the whole batch.
WHOLE = ("A", "D", "delta_bias", "bias", "weight")


def mesh_of(kind):
    return jax.make_mesh((2,), ("b",), axis_types=(kind,))


def parts_of(arrays):
    return {key: Spec() if key in WHOLE else Spec("b") for key in arrays}


def case(name, kind):
    """An operation, its arrays with a batch of two on a mesh, and which of them have gradients."""
    operation, _, arrays, more = cases(5)[name]
    arrays = {key: one if key in WHOLE else one[:2] for key, one in arrays.items()}
    assert all(key in WHOLE or len(one) == 2 for key, one in arrays.items())
    mesh = mesh_of(kind)
    given = {key: jax.device_put(one, NamedSharding(mesh, parts_of(arrays)[key])) for key, one in arrays.items()}
    floats = {key: one for key, one in given.items() if one.dtype != bool}
    return mesh, functools.partial(operation, **more), arrays, given, floats


def mapped(mesh, arrays, function, out=None):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=(parts_of(arrays),), out_specs=Spec("b") if out is None else out))


def same(made, want):
    return np.asarray(made).tobytes() == np.asarray(want).tobytes()


def near(made, want):
    np.testing.assert_allclose(made, want, rtol=1e-11, atol=1e-12)
    return True


def weighted(out):
    """A sum whose gradient is another one for each element."""
    return (out * jnp.cos(jnp.arange(out.size, dtype=out.dtype)).reshape(out.shape)).sum()


def slopes(operation, arrays):
    """Gradients on one device."""
    fixed = {key: jnp.asarray(one) for key, one in arrays.items()}
    floats = {key: one for key, one in fixed.items() if one.dtype != bool}
    return jax.grad(lambda some: weighted(operation(**{**fixed, **some})))(floats)


def refused(error, part, function, *args):
    try:
        function(*args)
    except error as refusal:
        assert part in str(refusal), refusal
        return
    raise AssertionError(f"not refused: {part}")


def types():
    """Inside of shard_map what comes out differs along the axis: it is carried by scan, and a wrong out_specs is refused."""
    for name in EASY:
        mesh, operation, arrays, given, _ = case(name, AxisType.Auto)
        assert same(mapped(mesh, arrays, lambda some, run=operation: run(**some))(given), operation(**arrays))
        refused(ValueError, "out_specs", mapped(mesh, arrays, lambda some, run=operation: run(**some), Spec()), given)
    mesh, operation, arrays, given, _ = case("norm", AxisType.Auto)

    def twice(some):
        return jax.lax.scan(lambda x, _: (operation(**{**some, "x": x}), None), some["x"], None, length=2)[0]

    assert same(mapped(mesh, arrays, twice)(given), operation(**{**arrays, "x": operation(**arrays)}))
    each = mapped(mesh, arrays, lambda some: jax.vmap(lambda x: operation(**{**some, "x": x}))(some["x"]))
    assert same(each(given), np.stack([operation(**{**arrays, "x": x}) for x in arrays["x"]]))


def gradients():
    """Of a function that has shard_map in it, those of what is whole summed over devices."""
    for name in EASY:
        mesh, operation, arrays, given, floats = case(name, AxisType.Auto)
        inside = mapped(mesh, arrays, lambda some, run=operation: run(**some))
        made = jax.jit(jax.grad(lambda some, run=inside, all=given: weighted(run({**all, **some}))))(floats)
        want = slopes(operation, arrays)
        assert all(near(made[key], want[key]) for key in want)


def gradients_inside():
    """Of a part of the batch on each device."""
    mesh, operation, arrays, given, _ = case("norm", AxisType.Auto)

    def slope(some):
        return jax.grad(lambda weight: operation(**{**some, "weight": weight}).sum())(some["weight"])

    want = jax.grad(lambda weight: operation(jnp.asarray(arrays["x"]), weight, jnp.asarray(arrays["bias"])).sum())
    assert near(mapped(mesh, arrays, slope, Spec())(given), want(jnp.asarray(arrays["weight"])))


def explicit():
    """Each device computes its part of the batch, and the type of what comes out says so."""
    for name in EASY:
        mesh, operation, arrays, given, _ = case(name, AxisType.Explicit)
        compiled = jax.jit(lambda some, run=operation: run(**some)).lower(given).compile()
        made = compiled(given)
        assert "all-gather" not in compiled.as_text()
        assert same(made, operation(**arrays)) and made.sharding.spec[0] == "b"
        assert same(operation(**given), operation(**arrays))
        whole = {key: jax.device_put(one, NamedSharding(mesh, Spec())) for key, one in arrays.items()}
        assert same(operation(**whole), operation(**arrays))


def explicit_gradients():
    """With the mesh set and without."""
    for name in EASY:
        mesh, operation, arrays, given, floats = case(name, AxisType.Explicit)
        want = slopes(operation, arrays)
        step = jax.grad(lambda some, run=operation, all=given: weighted(run(**{**all, **some})))
        whole = {key: jax.device_put(one, NamedSharding(mesh, Spec())) for key, one in arrays.items()}
        alone = jax.grad(lambda some, run=operation, all=whole: weighted(run(**{**all, **some})))
        for function, some in ((step, floats), (alone, {key: whole[key] for key in floats})):
            made = jax.jit(function)(some)
            assert all(near(made[key], want[key]) for key in want)
            with jax.set_mesh(mesh):
                made = jax.jit(function)(some)
            assert all(near(made[key], want[key]) for key in want)


def explicit_refusals():
    """jax.vmap over what is divided, with what to do instead; and a shape that does not fit, by its name."""
    mesh, operation, arrays, given, _ = case("norm", AxisType.Explicit)
    each = jax.vmap(lambda x: operation(x, given["weight"], given["bias"]))
    refused(ValueError, "norm: on a mesh with Explicit axes", jax.jit(each), given["x"])
    inside = jax.shard_map(lambda x, some: jax.vmap(lambda x: operation(**{**some, "x": x}))(x), mesh=mesh,
                           in_specs=(Spec("b"), parts_of(arrays)), out_specs=Spec("b"))
    assert same(jax.jit(inside)(given["x"], given), operation(**arrays))
    refused(ValueError, "layer_norm_silu: weight has", jax.jit(operation), given["x"], given["weight"][1:], given["bias"])


def auto():
    """A batch that is divided by jit alone has the right bits."""
    for name in EASY:
        _, operation, arrays, given, _ = case(name, AxisType.Auto)
        assert same(jax.jit(lambda some, run=operation: run(**some))(given), operation(**arrays))


def main():
    said = {}
    for function in (types, gradients, gradients_inside, explicit, explicit_gradients, explicit_refusals, auto):
        try:
            function()
            said[function.__name__] = "right"
        except Exception:
            said[function.__name__] = traceback.format_exc()
    print(json.dumps(said))


main()
