"""Exceptions: their classes, texts and numbers; the check of the loaded library's version."""
import errno
import os
import pickle
import shutil
import subprocess
import sys

import pytest

import exphil
from exphil import errors, library


@pytest.mark.parametrize("kind, builtin", [
    (exphil.InvalidError, ValueError), (exphil.OutOfMemoryError, MemoryError), (exphil.IoError, OSError),
    (exphil.FormatError, ValueError), (exphil.UnsupportedError, NotImplementedError),
    (exphil.ClosedError, ValueError), (exphil.ClosedError, exphil.StateError), (exphil.MismatchError, ValueError),
    (exphil.NumericError, ArithmeticError), (exphil.BusyError, RuntimeError), (exphil.VersionError, ImportError),
])
def test_classes(kind, builtin):
    assert issubclass(kind, builtin) and issubclass(kind, exphil.ExphilError)


def test_every_status_has_a_class():
    for status in range(-1, -14, -1):
        error = errors.make_error(status, "text", 7)
        assert type(error) is not exphil.ExphilError
        assert (error.status, error.native_code, str(error)) == (status, 7, "text")
        assert error.status_name.startswith("EXPHIL_E_")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.status, again.native_code, str(again)) == (type(error), status, 7, "text")


def test_a_missing_file(tmp_path):
    path = tmp_path / "missing.safetensors"
    with pytest.raises(OSError, match="missing.safetensors") as raised:
        exphil.Model.load(path)
    assert raised.value.errno == errno.ENOENT == raised.value.native_code
    assert raised.value.status_name == "EXPHIL_E_IO"


def test_garbage_files(tmp_path, trace_folder):
    with open(os.path.join(trace_folder, "small.safetensors"), "rb") as file:
        good = file.read()
    for name, data in {"empty": b"", "text": b"hello", "cut": good[:-3], "zero": bytes(4096), "long": good + b"x",
                       "length": b"\xff" * 8 + good[8:]}.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(exphil.FormatError) as raised:
            exphil.Model.load(path)
        assert str(raised.value)
        with pytest.raises(exphil.FormatError):
            exphil.Model.load_memory(data)
        with pytest.raises(exphil.FormatError):
            exphil.Dataset.open(path)
        with pytest.raises(exphil.FormatError):
            exphil.Replay(path)


def test_null_characters_in_text(spec):
    with pytest.raises(ValueError, match="null"):
        exphil.Model.load("a\0b")
    with pytest.raises(ValueError, match="blocks"):
        exphil.Model(spec, blocks="gru\0mlp")


def test_unknown_names(spec):
    with pytest.raises(ValueError, match='"loud" is no LogLevel'):
        exphil.Context(log_level="loud")
    with pytest.raises(ValueError, match='"cosine"'):
        exphil.Trainer(exphil.Model(spec, hidden=8, head_width=8), schedule="cosin")


def test_versions_that_fit():
    library.check_version(100, 100, "p")
    library.check_version(100, 101, "p")
    library.check_version(101, 100, "p")
    library.check_version(100, 200, "p")
    library.check_version(10000, 20203, "p")


@pytest.mark.parametrize("built, loaded", [(200, 100), (200, 199), (10200, 10100), (20000, 10900)])
def test_versions_that_do_not(built, loaded):
    with pytest.raises(ImportError) as raised:
        library.check_version(built, loaded, "/somewhere/libexphil.so")
    for word in (library.written(built), library.written(loaded), "/somewhere/libexphil.so"):
        assert word in str(raised.value)


def test_import_with_another_library(tmp_path):
    """An older library in front of the right one is found out at import, with both numbers and its path."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    code = tmp_path / "other.c"
    code.write_text("unsigned exphil_version(void) { return 9u; }\n")
    other = tmp_path / "libother.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(other), str(code)], check=True)
    # By name: a space would end a path there.
    found = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = dict(os.environ, LD_PRELOAD=other.name, LD_LIBRARY_PATH=found,
                       PYTHONPATH=os.path.dirname(os.path.dirname(exphil.__file__)))
    done = subprocess.run([sys.executable, "-c", "import exphil"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    for word in ("ImportError", "0.0.9", exphil.__version__, str(other)):
        assert word in done.stderr


def import_of_a_copy(folder, change):
    """What an interpreter says that imports a copy of the package whose compiled part went through change."""
    source = os.path.dirname(exphil.__file__)
    shutil.copytree(source, folder / "exphil")
    (native,) = (folder / "exphil").glob("_native*.so")
    change(native)
    environment = dict(os.environ, PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", "import exphil"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_sources_are_not_the_package(tmp_path):
    said = import_of_a_copy(tmp_path, lambda native: native.unlink())
    assert f"ImportError: {tmp_path / 'exphil'} is the source of exphil" in said and "build the wheel" in said


def test_the_library_is_gone(tmp_path):
    def rename(native):
        data = native.read_bytes()
        assert b"libexphil.so.0" in data
        native.write_bytes(data.replace(b"libexphil.so.0", b"libexphil.so.x"))

    said = import_of_a_copy(tmp_path, rename)
    assert "ImportError: libexphil.so.x: cannot open shared object file" in said and "LD_LIBRARY_PATH" in said
