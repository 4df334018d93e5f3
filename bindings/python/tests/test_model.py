"""Models: making, files, tensors through NumPy and DLPack, fewer bits, pickling."""
import gc
import pickle

import numpy as np
import pytest

import exphil

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed (python3-torch): DLPack with it is untested")


def test_info_tells_the_settings(spec):
    model = exphil.Model(spec, blocks="lstm ffn", hidden=24, head_width=16, delay_frames=2, mode="window",
                         window_frames=12, heads="autoregressive")
    info = model.info
    assert (info.blocks, info.hidden, info.delay_frames, info.action_slots) == ("lstm ffn", 24, 2, 3)
    assert (info.mode, info.window_frames, info.heads) == (exphil.Mode.WINDOW, 12, exphil.Heads.AUTOREGRESSIVE)
    assert (info.float_count, info.id_count, info.head_count, info.logit_count) == (6, 1, 2, 8)
    assert model.spec.heads == spec.heads and model.spec.hash == info.spec_hash == spec.hash != 0
    assert model.sampling()["time"] == 12 and model.sampling()["delay_frames"] == 2


def test_repr(spec):
    model = exphil.Model(spec, blocks="lstm ffn", hidden=24)
    assert repr(model) == f"<exphil.Model lstm ffn, hidden 24, {model.info.parameter_count} parameters, {spec.layout}>"
    model.close()
    assert repr(model) == "<exphil.Model, closed>"


@pytest.mark.parametrize("settings, word", [
    ({"blocks": "gru transformer"}, "transformer"), ({"hidden": -4}, "hidden"), ({"delay_frames": 65}, "delay_frames"),
    ({"mode": 7}, "mode"),
])
def test_wrong_settings(spec, settings, word):
    with pytest.raises(exphil.InvalidError, match=word):
        exphil.Model(spec, **settings)


def test_wrong_specs():
    head = exphil.HeadSpec("stick", "categorical", 3)
    for bad in (exphil.Spec("", "c", 1, (head,)), exphil.Spec("l", "c", 0, (head,)), exphil.Spec("l", "c", 1, ()),
                exphil.Spec("l", "c", 1, (head,) * 17), exphil.Spec("l", "c", 1, (exphil.HeadSpec("A B", 1, 3),)),
                exphil.Spec("l", "c", 1, (head,), (exphil.IdSpec("x", 0),) * 65)):
        assert bad.hash == 0
        with pytest.raises(exphil.InvalidError):
            exphil.Model(bad)
    with pytest.raises(OverflowError):
        exphil.Model(exphil.Spec("l", "c", 2**70, (head,)))


def test_files_and_bytes(model, tmp_path):
    path = tmp_path / "pölicy.safetensors"
    model.save(path)
    again = exphil.Model.load(str(path))
    assert again.info == model.info
    assert model.to_bytes() == path.read_bytes()
    for data in (path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes())):
        assert exphil.Model.load_memory(data).info == model.info
    with pytest.raises(OSError):
        model.save(tmp_path / "no" / "folder")


def test_pickle_keeps_the_weights(model):
    again = pickle.loads(pickle.dumps(model))
    assert again.info == model.info
    small = model.quantize("bf16")
    assert pickle.loads(pickle.dumps(small)).info == small.info


def test_tensors_come_and_go(model):
    names = [info.name for info in model.tensors()]
    assert len(names) == model.info.tensor_count
    for info in model.tensors():
        value = model.tensor_get(info.name)
        assert value.shape == info.shape and value.nbytes == info.size_bytes
    weight = model.tensor_get("input.weight") * 2
    model.tensor_set("input.weight", weight)
    assert np.array_equal(model.tensor_get("input.weight"), weight)
    model.tensor_set("input.weight", weight.astype(np.float64)[:, ::-1])
    assert np.array_equal(model.tensor_get("input.weight"), weight[:, ::-1])
    model.tensor_set("input.weight", weight.tolist())
    assert np.array_equal(model.tensor_get("input.weight"), weight)


def test_wrong_tensors(model):
    shape = model.tensor_get("input.weight").shape
    with pytest.raises(KeyError, match="nothing"):
        model.tensor_get("nothing")
    with pytest.raises(KeyError):
        model.tensor_set("nothing", [1.0])
    with pytest.raises(ValueError, match="shape"):
        model.tensor_set("input.weight", np.zeros((shape[0], shape[1] + 1), np.float32))
    with pytest.raises(TypeError, match="type"):
        model.tensor_set("input.weight", np.zeros(shape, complex))
    with pytest.raises(TypeError):
        model.tensor_set("input.weight", np.full(shape, "a"))
    with pytest.raises(exphil.NumericError, match="input.weight"):
        model.tensor_set("input.weight", np.full(shape, np.nan, np.float32))
    with pytest.raises(exphil.NumericError):
        model.tensor_set("input.weight", np.full(shape, 1e300))
    session = exphil.Session(model)
    with pytest.raises(exphil.StateError):
        model.tensor_set("input.weight", np.zeros(shape, np.float32))
    session.close()
    model.tensor_set("input.weight", np.zeros(shape, np.float32))


def test_double_models(spec):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, type="f64")
    value = model.tensor_get("input.weight")
    assert value.dtype == np.float64
    model.tensor_set("input.weight", value + 1e-12)
    assert np.array_equal(model.tensor_get("input.weight"), value + 1e-12)
    assert np.from_dlpack(model.tensor("input.weight")).dtype == np.float64


# ---- DLPack ----


def test_numpy_takes_tensors_without_a_copy(model):
    tensor = model.tensor("input.weight")
    value = np.from_dlpack(tensor)
    assert np.array_equal(value, model.tensor_get("input.weight"))
    other = np.from_dlpack(tensor)
    assert value.__array_interface__["data"] == other.__array_interface__["data"]
    assert not value.flags.writeable
    third = np.asarray(tensor)
    assert third.__array_interface__["data"][0] == value.__array_interface__["data"][0]
    assert not third.flags.writeable and tensor.shape == third.shape
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert tensor.__dlpack_device__() == (1, 0)


def test_a_tensor_outlives_its_model(spec):
    model = exphil.Model(spec, blocks="gru", hidden=16, head_width=16, seed=9)
    kept = model.tensor_get("input.weight")
    value, array = np.from_dlpack(model.tensor("input.weight")), np.asarray(model.tensor("input.weight"))
    model.close()
    del model
    gc.collect()
    exphil.Model(spec, blocks="gru", hidden=16, head_width=16, seed=10)
    assert np.array_equal(value, kept) and np.array_equal(array, kept)


def test_exported_tensors_lock_the_weights(model):
    weight = model.tensor_get("input.weight")
    capsule = model.tensor("input.weight").__dlpack__()
    with pytest.raises(exphil.StateError):
        model.tensor_set("input.weight", weight)
    del capsule
    model.tensor_set("input.weight", weight)
    capsule = model.tensor("input.weight").__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    with pytest.raises(exphil.StateError):
        model.tensor_set("input.weight", weight)
    del capsule
    model.tensor_set("input.weight", weight)


def test_versions_devices_and_copies(model):
    tensor = model.tensor("input.weight")
    assert '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    assert '"dltensor"' in repr(tensor.__dlpack__(stream=None, dl_device=(1, 0)))
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    copied = tensor.__dlpack__(copy=True)
    assert '"dltensor"' in repr(copied)
    model.tensor_set("input.weight", model.tensor_get("input.weight"))


@needs_torch
def test_torch_takes_and_gives_tensors(model):
    weight = torch.from_dlpack(model.tensor("input.weight"))
    assert weight.data_ptr() == np.asarray(model.tensor("input.weight")).__array_interface__["data"][0]
    assert np.array_equal(weight.numpy(), model.tensor_get("input.weight"))
    doubled = weight * 2
    del weight
    model.tensor_set("input.weight", doubled)
    assert np.array_equal(model.tensor_get("input.weight"), doubled.numpy())
    model.tensor_set("input.weight", doubled.double().flip(0))
    assert np.array_equal(model.tensor_get("input.weight"), doubled.numpy()[::-1])
    turned = torch.zeros(doubled.shape[::-1]).t()
    model.tensor_set("input.weight", turned)
    assert not model.tensor_get("input.weight").any()


@needs_torch
def test_torch_tensors_that_do_not_fit(model):
    shape = model.tensor_get("input.weight").shape
    with pytest.raises(exphil.InvalidError, match="input.weight"):
        model.tensor_set("input.weight", torch.zeros(3, 4))
    with pytest.raises(exphil.UnsupportedError, match="float32"):
        model.tensor_set("input.weight", torch.zeros(shape, dtype=torch.int32))
    with pytest.raises(exphil.NumericError):
        model.tensor_set("input.weight", torch.full(shape, float("inf")))
    with pytest.raises(exphil.InvalidError, match="nothing"):
        model.tensor_set("nothing", torch.zeros(3, 4))


# ---- fewer bits ----


def test_quantize_compare_calibrate(model, dataset, tmp_path):
    small = model.quantize("i8")
    assert small.info.weights == exphil.DataType.I8 and model.info.weights == exphil.DataType.F32
    with pytest.raises(exphil.StateError):
        small.calibration_get()
    comparison = small.compare(model, dataset)
    assert comparison.frames == len(dataset) and 0 < comparison.max_error < 1
    assert len(comparison.head) == comparison.heads == 2
    small.calibration_set(comparison)
    small.save(tmp_path / "small")
    assert exphil.Model.load(tmp_path / "small").calibration_get() == comparison
    same = model.compare(model, dataset)
    assert (same.agreement, same.max_error) == (1, 0)
    with pytest.raises(exphil.StateError):
        small.quantize()
    with pytest.raises(exphil.UnsupportedError):
        model.quantize("f16")


def test_notes(model, dataset, tmp_path):
    assert model.notes == ""
    model.notes = '{"trained on": "f\u00f6x"}'
    model.save(tmp_path / "noted")
    loaded = exphil.Model.load(tmp_path / "noted")
    assert loaded.notes == model.notes == '{"trained on": "f\u00f6x"}'
    assert loaded.quantize("bf16").notes == model.notes
    with pytest.raises(exphil.InvalidError, match="byte 1"):
        loaded.notes = b"a\xff"
    trainer = exphil.Trainer(loaded, dataset)
    assert trainer.model().notes == model.notes
    trainer.set_notes("other")
    assert trainer.model().notes == "other" and loaded.notes == model.notes
    with pytest.raises(exphil.StateError):
        loaded.notes = ""


def test_examine(model, dataset):
    seen = []
    model.examine(dataset, seen.append, batch=4)
    report = model.evaluate(dataset, batch=4)
    assert len(seen) == report.frames
    assert sum((frame.likely == frame.recorded).all() for frame in seen) / len(seen) == pytest.approx(report.exact_accuracy)
    assert -sum(frame.log_probability.sum() for frame in seen) / len(seen) == pytest.approx(report.nll)
    assert seen[0].floats.shape == (model.info.float_count,) and seen[0].logits.shape == (model.info.logit_count,)
    assert seen[0].row == 0 and len({frame.frame for frame in seen}) == len(seen)

    def ends(frame):
        raise KeyError("enough")

    with pytest.raises(KeyError):
        model.examine(dataset, ends)


def test_evaluate(model, dataset):
    report = model.evaluate(dataset, batch=4)
    assert report.frames == len(dataset) and report.heads == len(report.head) == 2
    assert 0 <= report.exact_accuracy <= 1 and report.nll > 0
    losses = [exphil.HeadLoss(focal_gamma=2.0, positive_weight=[1, 2, 3]), exphil.HeadLoss(smoothing=0.1)]
    told = model.evaluate(dataset, dataset, losses)
    assert told.head[0].loss != report.head[0].loss and told.head[1].loss != report.head[1].loss
    weighed = [exphil.HeadLoss(positive_weight=[3, 2, 1]), exphil.HeadLoss()]
    told = model.evaluate(dataset, losses=weighed)
    assert told.head[0].loss > report.head[0].loss and told.head[1].loss == pytest.approx(report.head[1].loss)
    with pytest.raises(ValueError, match="losses"):
        model.evaluate(dataset, losses=losses[:1])
    with pytest.raises(ValueError, match="positive_weight"):
        model.evaluate(dataset, losses=[exphil.HeadLoss(positive_weight=[1.0]), exphil.HeadLoss()])
    with pytest.raises(exphil.MismatchError):
        model.evaluate(exphil.Dataset())


def test_onnx_is_a_file_or_says_why_not(model, tmp_path):
    model.export_onnx(tmp_path / "model.onnx")
    assert b"exphil.model" in (tmp_path / "model.onnx").read_bytes()
    with pytest.raises(NotImplementedError, match="mode window"):
        exphil.Model(model.spec, blocks="mlp", hidden=16, mode="window").export_onnx(tmp_path / "window.onnx")
    assert not (tmp_path / "window.onnx").exists()
