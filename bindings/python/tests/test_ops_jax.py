"""Kernels on JAX's arrays: custom calls of XLA, inside and outside of jax.jit, with gradients and vmap; and that what xla_abi.h
says of XLA's interface is what its own header says."""
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from ops_cases import cases, states_word

import exphil
import exphil.ops as ops

jax = pytest.importorskip("jax", reason="jax is not installed (PyPI): the operations on its arrays are untested")
jax.config.update("jax_enable_x64", True)
import jax.export  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import exphil.jax  # noqa: E402

EASY = ("scan", "attention", "lstm", "gru", "norm", "conv")
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def on_jax(arrays):
    return {key: jnp.asarray(one) for key, one in arrays.items()}


def same(made, want):
    return np.asarray(made).tobytes() == np.asarray(want).tobytes() and made.shape == want.shape


@pytest.mark.parametrize("name", EASY)
def test_bits(name):
    operation, _, arrays, more = cases(1, np.float32)[name]
    want, given = operation(**arrays, **more), on_jax(arrays)
    made = operation(**given, **more)
    assert isinstance(made, jax.Array) and same(made, want)
    assert same(jax.jit(lambda given: operation(**given, **more))(given), want)
    assert same(getattr(exphil.jax, operation.__name__)(**arrays, **more), want)
    if states_word(operation):
        word = {states_word(operation): True}
        assert all(same(a, b) for a, b in zip(operation(**given, **more, **word), operation(**arrays, **more, **word)))


@pytest.mark.parametrize("name", EASY)
def test_gradients(name):
    """The bits of NumPy's, which are those of the formula."""
    operation, _, arrays, more = cases(2, np.float32)[name]
    given = on_jax(arrays)
    want = ops.gradients(operation, np.ones_like(operation(**arrays, **more)), **arrays, **more)
    made = jax.jit(jax.grad(lambda some: operation(**{**given, **some}, **more).sum()))({key: given[key] for key in want})
    assert all(same(made[key], want[key]) for key in want)


def test_gradients_in_double():
    """Those of the states, too, against finite differences."""
    operation, _, arrays, more = cases(3)["scan"]
    given = on_jax(arrays)
    keys = [key for key, one in arrays.items() if one.dtype != bool]
    function = jax.jit(lambda *inputs: operation(**{**given, **dict(zip(keys, inputs))}, **more, return_last_state=True))
    check_grads(function, [given[key] for key in keys], 1, modes=["rev"])


@pytest.mark.parametrize("name", ("scan", "attention", "norm"))
def test_vmap(name):
    operation, _, arrays, more = cases(3, np.float32)[name]
    first = next(iter(arrays))
    given = on_jax(arrays)
    made = jax.vmap(lambda one: operation(**{**given, first: one}, **more))(jnp.stack([given[first], 2 * given[first]]))
    for got, factor in zip(made, (1, 2)):
        assert same(got, operation(**{**arrays, first: factor * arrays[first]}, **more))
    both = jax.vmap(jax.grad(lambda one: operation(**{**given, first: one}, **more).sum()))(jnp.stack([given[first]] * 2))
    want = ops.gradients(operation, np.ones_like(operation(**arrays, **more)), **arrays, **more)[first]
    assert same(both[1], want)


def test_scan_of_calls_and_export():
    operation, _, arrays, more = cases(4, np.float32)["norm"]
    given = on_jax(arrays)
    repeated = jax.jit(lambda x: jax.lax.scan(lambda x, _: (operation(**{**given, "x": x}, **more), None), x, None, length=3)[0])
    want = arrays["x"]
    for _ in range(3):
        want = operation(**{**arrays, "x": want}, **more)
    assert same(repeated(given["x"]), want)
    unchecked = [jax.export.DisabledSafetyCheck.custom_call(target) for target in exphil.jax.TARGETS]
    exported = jax.export.export(jax.jit(lambda x: operation(**{**given, "x": x}, **more)), disabled_checks=unchecked)(given["x"])
    assert same(exported.call(given["x"]), operation(**arrays, **more))


NAMES = ("types", "gradients", "gradients_inside", "explicit", "explicit_gradients", "explicit_refusals", "auto")


@pytest.fixture(scope="module")
def mesh_said():
    """What jax_mesh_case.py says of each case, run where XLA has two CPUs."""
    if not hasattr(jax, "shard_map") or not hasattr(jax.sharding, "AxisType"):
        pytest.skip("this JAX has no jax.shard_map and no Explicit axes")
    run = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "jax_mesh_case.py")]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(run, env={**os.environ, **flags}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_two_devices(name, mesh_said):
    assert sorted(mesh_said) == sorted(NAMES)
    assert mesh_said[name] == "right", mesh_said[name]


def test_once_only():
    """Second derivatives and forward mode are refused by the operation's name."""
    operation, _, arrays, more = cases(2, np.float32)["scan"]
    given = on_jax(arrays)
    total = lambda u: operation(**{**given, "u": u}, **more).sum()  # noqa: E731
    for twice in (jax.hessian(total), jax.jit(jax.hessian(total)), jax.grad(lambda u: jax.grad(total)(u).sum())):
        with pytest.raises(NotImplementedError, match="scan: no gradients of gradients"):
            twice(given["u"])
    with pytest.raises(TypeError, match="forward-mode"):  # JAX's own words
        jax.jvp(total, (given["u"],), (given["u"],))
    again = jax.grad(jax.checkpoint(total))(given["u"])
    assert same(again, jax.grad(total)(given["u"]))


def test_options_that_are_traced():
    """By name, and how to give them."""
    _, _, arrays, more = cases(2, np.float32)["scan"]
    given = on_jax(arrays)
    with pytest.raises(TypeError, match="delta_softplus is traced.*static_argnames='delta_softplus'"):
        jax.jit(exphil.jax.selective_scan)(**{**given, **more})
    static = jax.jit(exphil.jax.selective_scan, static_argnames="delta_softplus")
    assert same(static(**given, **more), ops.selective_scan(**arrays, **more))
    q = jnp.ones((1, 5, 2, 4), np.float32)
    with pytest.raises(TypeError, match="window is traced"):
        jax.jit(ops.attention)(q, q, q, 3)
    with pytest.raises(TypeError, match="eps is traced"):
        jax.jit(ops.layer_norm_silu)(q, q[0, 0, 0], q[0, 0, 0], 1e-5)
    with pytest.raises(TypeError, match="deltabias"):
        ops.selective_scan(**given, deltabias=1)


def test_dimensions_that_are_not_known():
    """jax.export with symbolic ones."""
    unchecked = [jax.export.DisabledSafetyCheck.custom_call(target) for target in exphil.jax.TARGETS]
    x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b,5,2,4"), np.float32)
    some = jnp.ones(4, np.float32)
    for function, name in (
        (lambda x: ops.layer_norm_silu(x[:, :, 0], some, some), "norm: x"), (lambda x: ops.attention(x, x, x), "attention: q"),
        (lambda x: ops.attention(x.transpose(1, 0, 2, 3), x, x), "q"),
    ):
        with pytest.raises(ValueError, match=f"{name} has a dimension b that is not known: dimensions must be constant"):
            jax.export.export(jax.jit(function), disabled_checks=unchecked)(x)


def test_types_that_are_refused():
    """By what was given, and what to do."""
    _, _, arrays, more = cases(2, np.float32)["scan"]
    given = on_jax(arrays)
    for kind in ("bfloat16", "float16"):
        with pytest.raises(ValueError, match=rf"scan: delta has elements of type {kind}, .*astype\(jnp.float32\)"):
            ops.selective_scan(**{**given, "delta": given["delta"].astype(kind)}, **more)
    with pytest.raises(ValueError, match="reset has elements of type float32, must have bool or uint8"):
        ops.selective_scan(**{**given, "reset": given["reset"].astype(np.float32)}, **more)
    with pytest.raises(ValueError, match="A has elements of type float64, those of u are float32"):
        ops.selective_scan(**{**given, "A": given["A"].astype(np.float64)}, **more)


def test_what_is_numpy_s_alone():
    _, _, arrays, more = cases(2, np.float32)["scan"]
    for takes in (ops.bind, ops.info):
        with pytest.raises(TypeError, match="scan: B is an array of JAX"):
            takes(ops.selective_scan, **{**arrays, "B": jnp.asarray(arrays["B"])}, **more)


def test_refusals():
    """While it is traced, by name; NumPy's shapes of nothing, too."""
    _, _, arrays, more = cases()["scan"]
    given = on_jax(arrays)
    for key, one in given.items():
        for wrong in (one[..., None], one.astype(np.int32), *([one.astype(np.float32)] if one.dtype == np.float64 else [])):
            with pytest.raises(ValueError, match=rf"\b{key}\b|those of u are float"):
                jax.jit(lambda given: ops.selective_scan(**given, **more))({**given, key: wrong})
    with pytest.raises(TypeError, match="B is missing"):
        ops.selective_scan(**{**given, "B": None})
    with pytest.raises(TypeError, match="cannot be written"):
        ops.adamw(given["D"], given["D"], given["D"], given["D"], 1)
    empty = {key: one if key == "A" else one[:0] for key, one in on_jax(cases()["scan bare"][2]).items()}
    assert ops.selective_scan(**empty).shape == (0, 5, 7)
    assert not jax.grad(lambda A: ops.selective_scan(**{**empty, "A": A}).sum())(empty["A"]).any()


def test_a_handler_refuses_what_it_is_not_told():
    """A call that is not exphil.jax's own: attributes and arrays that do not go together."""
    x = jnp.ones((1, 2, 3), np.float32)
    shape = jax.ShapeDtypeStruct((1, 2, 3), np.float32)
    room = jax.ShapeDtypeStruct((64,), np.uint8)
    for present, wanted, given, results, said in (
        (7, 1, (x,), [shape, room], "fewer inputs"), (7, 1, (x, x[0, 0], x[0, 0], x), [shape, room], "more arrays"),
        (7, 0, (x, x[0, 0], x[0, 0]), [shape, room], "more arrays"), (7, 1, (x, x[0, 0], x[0, 0]), [shape], "workspace"),
        (7, 1, (x, x[0], x[0, 0]), [shape, room], "weight has 2 dimensions"),
        (7, 1, (x, x[0, 0], x[0, 0]), [jax.ShapeDtypeStruct((1, 2, 4), np.float32), room], "out has 4"),
    ):
        with pytest.raises(Exception, match=said):
            jax.ffi.ffi_call("exphil_norm", results)(*given, present=np.int64(present), wanted=np.int64(wanted), keep=np.int64(0),
                                                     first=np.int64(1), second=np.int64(0), real=np.float64(1e-5))


def test_a_handler_finds_its_attributes():
    """Wherever they lie among others; those that are missing are zero, those of another type, too."""
    operation, _, arrays, _ = cases(6, np.float32)["norm"]
    given = [jnp.asarray(arrays[key]) for key in ("x", "weight", "bias")]
    room = jax.ShapeDtypeStruct((65536,), np.uint8)
    call = jax.ffi.ffi_call("exphil_norm", [jax.ShapeDtypeStruct(given[0].shape, np.float32), room])
    told = {"present": np.int64(7), "wanted": np.int64(1), "first": np.int64(1)}
    for others in ({}, {"real": np.float64(1e-5)}, {"a": 1, "b": 2, "gain": 3.0, "z": 4}, {"real": np.int64(1), "wand": 5}):
        assert same(call(*given, **told, **others)[0], operation(**arrays))
    assert same(call(*given, present=told["present"], wanted=told["wanted"])[0], operation(**arrays, silu=False))


def test_other_kernels():
    operation, _, arrays, more = cases(5, np.float32)["scan"]
    want = operation(**arrays, **more)
    ops.use(exphil.Context(threads=1))
    assert same(operation(**on_jax(arrays), **more), want)
    ops.use()


# ---- the interface ----

PAIRS = {  # ours: XLA's, with the members that have other names
    "xla_extension": ("Extension_Base InternalExtension", {}),
    "xla_version": ("Api_Version", {"extensions": "extension_start", "major": "major_version", "minor": "minor_version"}),
    "xla_metadata": ("Metadata", {"version": "api_version"}),
    "xla_metadata_extension": ("Metadata_Extension", {"base": "extension_base"}),
    "xla_buffer": ("Buffer", {"extensions": "extension_start", "type": "dtype", "sizes": "dims"}),
    "xla_buffers": ("Args", {"extensions": "extension_start", "count": "size", "kinds": "types", "buffer": "args"}),
    "xla_text": ("ByteSpan", {"start": "ptr", "length": "len"}),
    "xla_scalar": ("Scalar", {"type": "dtype"}),
    "xla_attributes": ("Attrs", {"extensions": "extension_start", "count": "size", "kinds": "types", "attribute": "attrs"}),
    "xla_error_create": ("Error_Create_Args", {"extensions": "extension_start", "code": "errc"}),
    "xla_stream_get": ("Stream_Get_Args", {"extensions": "extension_start", "context": "ctx"}),
    "xla_device_get": ("DeviceOrdinal_Get_Args", {"extensions": "extension_start", "context": "ctx", "device": "device_ordinal"}),
    "xla_api": ("Api", {"extensions": "extension_start", "version": "api_version", "internal": "internal_api",
                        "error_create": "XLA_FFI_Error_Create", "stream_get": "XLA_FFI_Stream_Get",
                        "device_get": "XLA_FFI_DeviceOrdinal_Get", "error_message": "", "error_destroy": "XLA_FFI_Error_Destroy",
                        "handler_register": "XLA_FFI_Handler_Register", "not_called": "XLA_FFI_Type_Register"}),
    "xla_call": ("CallFrame", {"extensions": "extension_start", "context": "ctx", "inputs": "args", "outputs": "rets",
                               "attributes": "attrs"}),
}  # fmt: skip
NUMBERS = {
    "XLA_PRED": "DataType_PRED", "XLA_I32": "DataType_S32", "XLA_I64": "DataType_S64", "XLA_U8": "DataType_U8",
    "XLA_F32": "DataType_F32", "XLA_F64": "DataType_F64", "XLA_STAGE_EXECUTE": "ExecutionStage_EXECUTE",
    "XLA_EXTENSION_METADATA": "Extension_Metadata", "XLA_ATTRIBUTE_SCALAR": "AttrType_SCALAR",
    "XLA_TRAIT_RECORDABLE": "HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE", "XLA_ERROR_CANCELLED": "Error_Code_CANCELLED",
    "XLA_ERROR_INVALID": "Error_Code_INVALID_ARGUMENT", "XLA_ERROR_MEMORY": "Error_Code_RESOURCE_EXHAUSTED",
    "XLA_ERROR_PRECONDITION": "Error_Code_FAILED_PRECONDITION", "XLA_ERROR_UNIMPLEMENTED": "Error_Code_UNIMPLEMENTED",
    "XLA_ERROR_INTERNAL": "Error_Code_INTERNAL",
}  # fmt: skip


def assertions(ours, theirs):
    """C that does not compile where a struct, an offset or a number differs."""
    for struct, (names, renamed) in PAIRS.items():
        other = "XLA_FFI_" + next(name for name in names.split() if re.search(rf"\bXLA_FFI_{name}\b", theirs))
        body = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", ours, re.S).group(1)
        body = re.sub(r"/\*.*?\*/|\([^()]*\)(?=;)", "", body, flags=re.S).replace("(*", " ").replace(")", " ")
        for member in re.findall(r"(\w+)(?:\[\d+\])?\s*(?=[;,])", body):
            name = renamed.get(member, member)
            if name:
                yield f"_Static_assert(offsetof({struct}, {member}) == offsetof({other}, {name}), \"{struct}.{member}\");"
                size = f"sizeof((({struct} *)0)->{member}) == sizeof((({other} *)0)->{name})"
                if member not in ("not_called", "inputs", "outputs", "attributes", "version"):
                    yield f"_Static_assert({size}, \"{struct}.{member}\");"
    for number, name in NUMBERS.items():
        yield f"_Static_assert((int){number} == (int)XLA_FFI_{name}, \"{number}\");"
    yield "_Static_assert(XLA_MAJOR == XLA_FFI_API_MAJOR && XLA_MINOR <= XLA_FFI_API_MINOR, \"version\");"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: xla_abi.h is not compared with XLA's header")
def test_the_interface_is_xla_s(tmp_path):
    path = os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    with open(path, encoding="utf-8") as file, open(os.path.join(FOLDER, "xla_abi.h"), encoding="utf-8") as own:
        checks = list(assertions(own.read(), file.read()))
        file.seek(0)
        own.seek(0)
        assert f"XLA_MINOR = {exphil.jax.MINOR} }}" in own.read()
        assert f"XLA_FFI_API_MINOR {exphil.jax._minor()}\n" in file.read()
    assert len(checks) > 120
    compile_it = ["cc", "-std=gnu11", "-w", "-fsyntax-only", f"-I{FOLDER}", f"-I{jax.ffi.include_dir()}"]
    includes = '#include <xla/ffi/api/c_api.h>\n#include "xla_abi.h"\n'
    (tmp_path / "check.c").write_text(includes + "\n".join(checks))
    done = subprocess.run([*compile_it, str(tmp_path / "check.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
