"""Arrays that lie in memory as C would not have them: the right numbers arrive, or the array is refused."""
import numpy as np
import pytest
from conftest import rows

import exphil
from exphil.arrays import take


def misaligned(plain):
    """The same one byte behind an address that suits the type."""
    memory = np.zeros(plain.nbytes + 1, np.uint8)
    made = memory[1:].view(plain.dtype).reshape(plain.shape)
    made[...] = plain
    return made


LAYOUTS = {
    "every second": lambda plain: np.repeat(plain, 2, axis=-1)[..., ::2],
    "every second row": lambda plain: np.repeat(plain, 2, axis=0)[::2],
    "backward": lambda plain: np.ascontiguousarray(plain[::-1])[::-1],
    "backward rows": lambda plain: np.ascontiguousarray(plain[..., ::-1])[..., ::-1],
    "Fortran's order": np.asfortranarray,
    "swapped bytes": lambda plain: plain.astype(plain.dtype.newbyteorder()),
    "misaligned": misaligned,
    "both": lambda plain: misaligned(plain.astype(plain.dtype.newbyteorder())),
    "wider": lambda plain: plain.astype(f"{plain.dtype.kind}8"),
    "read only": lambda plain: np.broadcast_to(plain, plain.shape),
}


@pytest.fixture(params=LAYOUTS)
def lay(request):
    return LAYOUTS[request.param]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("shape", [(), (7,), (4, 6), (2, 3, 4)])
def test_taken_as_c_has_it(dtype, shape, lay):
    plain = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    odd = plain if shape == () and lay not in (misaligned, LAYOUTS["swapped bytes"]) else lay(plain)
    taken = take(odd, dtype, shape, "it")
    assert type(taken) is np.ndarray and taken.dtype == np.dtype(dtype) and taken.shape == shape
    assert taken.flags.c_contiguous and taken.flags.aligned
    assert taken.tobytes() == plain.tobytes()


def test_rows(spec, lay):
    plain, odd = exphil.Dataset(spec), exphil.Dataset(spec)
    values = rows(50)
    plain.add_rows(*values)
    odd.add_rows(*[lay(value) for value in values])
    assert odd.info.content_hash == plain.info.content_hash


def test_steps(model, lay):
    plain, odd = (exphil.Session(model, seed=2, streams=3) for _ in range(2))
    draw = np.random.default_rng(1)
    for _ in range(4):
        floats, ids = draw.standard_normal((3, 6)).astype(np.float32), draw.integers(0, 4, (3, 1), dtype=np.int32)
        noise = draw.uniform(0.1, 0.9, (3, 8)).astype(np.float32)
        want = plain.step_row(floats, ids, noise)
        assert np.array_equal(odd.step_row(lay(floats), lay(ids), lay(noise)), want)
        assert np.array_equal(odd.logits, plain.logits)
        for session, action in ((plain, want[1]), (odd, lay(np.ascontiguousarray(want[1:2]))[0])):
            session.override(action, 1)


def test_one_stream_without_its_dimension(model, lay):
    floats, ids = np.linspace(-1, 1, 6, dtype=np.float32), np.array([2], np.int32)
    plain, odd = exphil.Session(model, seed=2), exphil.Session(model, seed=2)
    assert np.array_equal(odd.step_row(lay(floats), lay(ids)), plain.step_row(floats, ids))
    assert np.array_equal(odd.logits, plain.logits)


def test_tensors(spec, lay):
    model = exphil.Model(spec, blocks="gru", hidden=16, head_width=16)
    values = np.random.default_rng(3).standard_normal(model.tensor_get("input.weight").shape).astype(np.float32)
    model.tensor_set("input.weight", lay(values))
    assert np.array_equal(model.tensor_get("input.weight"), values)


def test_batches(spec, dataset, lay):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8)
    batch = exphil.Prefetcher(dataset, model, batch=2, time=10).next().copy()
    odd = exphil.Batch(*[lay(getattr(batch, name)) for name in ("floats", "ids", "past", "actions", "mask", "reset")])
    assert exphil.Trainer(model).step_batch(odd).loss == exphil.Trainer(model).step_batch(batch).loss


def test_actions_of_a_pad(lay):
    action = exphil.melee.pad_encode(exphil.melee.pad(buttons=exphil.Button.A, main_x=-1.0, c_y=1.0))
    assert exphil.melee.pad_decode(lay(action)) == exphil.melee.pad_decode(action)


def test_frames(lay):
    sessions = [exphil.Session(exphil.Model(hidden=8, seed=1), seed=1, streams=4) for _ in range(2)]
    plain = exphil.melee.frames(4)
    plain["stage"], plain["own_port"] = 32, 1
    plain["player"]["present"][:, :2], plain["player"]["known"][:, :2] = 1, exphil.Known.ALL
    plain["player"]["x"][:, 0] = [-30, 10, 20, 50]
    want = sessions[0].step(plain)
    odd = lay(plain) if lay not in (LAYOUTS["wider"], LAYOUTS["swapped bytes"], LAYOUTS["both"]) else plain[::-1][::-1]
    assert np.array_equal(sessions[1].step(odd), want)
    with pytest.raises(TypeError, match="FRAME"):
        sessions[1].step(plain.astype(plain.dtype.newbyteorder()))


def test_bytes_with_holes_are_refused(model):
    """What is taken as plain bytes must be whole."""
    data = np.frombuffer(model.to_bytes(), np.uint8)
    session = exphil.Session(model)
    state = np.frombuffer(session.state_save(), np.uint8)
    for call, whole in ((exphil.Model.load_memory, data), (session.state_restore, state)):
        call(whole)
        call(misaligned(whole))
        for holes in (np.repeat(whole, 2)[::2], whole[::-1], memoryview(np.repeat(whole, 2))[::2]):
            with pytest.raises((ValueError, BufferError), match="contiguous"):
                call(holes)
