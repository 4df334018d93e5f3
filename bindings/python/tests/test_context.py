"""Contexts: devices, settings, memory, the log in Python's logging."""
import logging
import pickle

import pytest

import exphil


def test_devices_start_with_the_cpu():
    found = exphil.devices()
    assert found[0].id == "cpu" and found[0].workers >= 1


def test_settings_are_used():
    with exphil.Context("cpu", cpu_isa="ref", threads=1) as context:
        assert context.device.id == "cpu"
        assert context.device.isa == "ref"
        assert context.memory.host_used_bytes > 0


@pytest.mark.parametrize("settings, word", [
    ({"device": "tpu"}, "tpu"), ({"cpu_isa": "mmx"}, "mmx"), ({"threads": -1}, "threads"), ({"log_level": 9}, "log_level"),
])
def test_wrong_settings(settings, word):
    with pytest.raises(exphil.ExphilError, match=word):
        exphil.Context(**settings)


@pytest.mark.parametrize("settings, kind", [
    ({"threads": 2**40}, OverflowError), ({"threads": "two"}, TypeError), ({"memory_limit_bytes": -1}, OverflowError),
    ({"cpus": 2}, TypeError),
])
def test_settings_that_python_refuses(settings, kind):
    with pytest.raises(kind, match=next(iter(settings))):
        exphil.Context(**settings)


def test_log_lines_reach_logging(tmp_path, caplog):
    """"auto" without the plugin's folder runs on the CPU and says so."""
    with caplog.at_level(logging.DEBUG, "exphil"):
        context = exphil.Context("auto", backend_path=tmp_path)
    assert context.device.id == "cpu"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(tmp_path) in caplog.text


def test_own_logger_and_level(tmp_path, caplog):
    exphil.Context("auto", backend_path=tmp_path, logger=logging.getLogger("mine"))
    assert [record.name for record in caplog.records] == ["mine"]
    caplog.clear()
    exphil.Context("auto", backend_path=tmp_path, log_level="error")
    assert not caplog.records


def test_a_logger_that_raises_does_so_after_the_call(tmp_path):
    class Broken(logging.Handler):
        def emit(self, record):
            raise KeyError("broken")

    logger = logging.getLogger("broken")
    logger.addHandler(Broken())
    with pytest.raises(KeyError, match="broken"):
        exphil.Context("auto", backend_path=tmp_path, logger=logger)


def test_default_context_comes_back_after_close():
    first = exphil.default_context()
    assert exphil.default_context() is first
    first.close()
    assert exphil.default_context() is not first


def test_contexts_are_not_pickled():
    with pytest.raises(TypeError, match="Context cannot be pickled"):
        pickle.dumps(exphil.default_context())
