"""What objects say of themselves in a line, where ready policies are, and the module that is the program."""
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import rows

import exphil

PACKAGE = os.path.dirname(os.path.abspath(exphil.__file__))


def test_every_object_says_what_it_is(spec, tmp_path):
    context = exphil.Context(threads=1)
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, value="shared", context=context)
    dataset = exphil.Dataset(spec, context=context)
    dataset.add_rows(*rows(100))
    of_data = "<exphil.Dataset 100 frames, 1 episode, tiny>"
    trainer, played = exphil.Trainer(model, dataset, batch=2, time=10), exphil.Trainer(model)
    trainer.step()
    cart = exphil.World("cartpole", lanes=3, context=context)
    one = exphil.World("cartpole", context=context)
    batches = exphil.Prefetcher(dataset, model, batch=2, time=10)
    info = batches.info
    path = str(tmp_path / "a.games")
    said = [
        (dataset, of_data),
        (trainer, f"<exphil.Trainer 1 update, {of_data}>"),
        (played, "<exphil.Trainer 0 updates, no dataset>"),
        (exphil.Learner(played), "<exphil.Learner without a teacher>"),
        (exphil.Learner(exphil.Trainer(model), model), f"<exphil.Learner near {model!r}>"),
        (exphil.Session(model, streams=2), "<exphil.Session 2 streams, 6 floats, 1 id, 2 heads>"),
        (exphil.Rollout(model, time=4), "<exphil.Rollout 1 stream, 6 floats, 1 id, 2 heads>"),
        (batches, f"<exphil.Prefetcher {info.batches_per_epoch} batches of {info.frames_per_epoch} frames an epoch, 0 delivered>"),
        (exphil.Live(model, piece_frames=4, updates=1), "<exphil.Live 0 frames, 0 updates>"),
        (exphil.Stream(context=context), "<exphil.Stream of a game that is not over>"),
        (exphil.GamesWriter(path, context=context), f"<exphil.GamesWriter to {path!r}>"),
        (cart, f"<exphil.World {cart.spec.layout}, 3 lanes, 1 seat>"),
        (context, f"<exphil.Context cpu, {context.device.name}>"),
    ]
    assert repr(one.env()) == str(one.env()) == f"<exphil.env.Env of {one!r}>"
    for thing, words in said:
        assert repr(thing) == str(thing) == words
    for thing, _ in said:
        thing.close()
        assert repr(thing) == f"<exphil.{type(thing).__name__}, closed>"
        assert repr(type(thing).__new__(type(thing))) == repr(thing)  # never made


def test_batches_do_not_print_their_arrays(dataset, model):
    batch = exphil.Prefetcher(dataset, model, batch=2, time=10).next()
    assert repr(batch) == f"Batch(2 lanes of 10 frames, {batch.frames} that count, epoch=0, index=0)"


def test_a_game_says_what_was_played(drill, tmp_path):
    replay = exphil.Replay(drill)
    assert repr(replay).startswith(f"<exphil.Replay {len(replay)} frames, fox") and " on " in repr(replay)
    path = str(tmp_path / "one.games")
    with exphil.GamesWriter(path) as writer:
        writer.add(drill)
    assert repr(exphil.Games(path)) == f"<exphil.Games 1 game, {len(replay)} frames>"


def test_what_cannot_be_asked_says_its_name(dataset, monkeypatch):
    def busy(self):
        raise exphil.errors.make_error(-9, "in use")

    monkeypatch.setattr(exphil.Dataset, "info", property(busy))
    assert repr(dataset) == "<exphil.Dataset>"


def test_bound_operations_say_which(spec):
    x = np.zeros((2, 3, 8), np.float32)
    bound = exphil.ops.bind(exphil.ops.causal_conv1d, x, np.zeros((3, 4), np.float32), None, activation="silu")
    assert repr(bound) == "<exphil.ops.Bound causal_conv1d>"


# ---- ready policies ----


def copied(folder):
    """A copy of the package that has policies, as a wheel has them."""
    package = folder / "exphil"
    shutil.copytree(PACKAGE, package)
    (package / "policies").mkdir(exist_ok=True)
    return package


def run(folder, *arguments):
    environment = dict(os.environ, PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_policies_of_the_package(tmp_path):
    package = copied(tmp_path)
    for name in ("pong", "own"):
        (package / "policies" / f"{name}.safetensors").write_bytes(b"")
    done = run(tmp_path, "-c", "import exphil; print(exphil.ready('own'))")
    assert done.stdout.strip() == str(package / "policies" / "own.safetensors"), done.stderr
    done = run(tmp_path, "-c", "import exphil; exphil.ready('../pong')")
    there = sorted(name[:-12] for name in os.listdir(package / "policies") if name.endswith(".safetensors"))
    assert f'ValueError: "../pong" is no ready policy; there are {", ".join(there)}' in done.stderr


def test_policies_of_the_library(tmp_path, monkeypatch):
    """Those beside the documents of a prefix, whether its libraries have a folder for the processor or not."""
    from exphil import ready as function

    where = sys.modules["exphil.ready"]
    assert function is where.ready
    monkeypatch.setattr(where, "__file__", str(tmp_path / "package" / "ready.py"))
    documents = tmp_path / "prefix" / "share" / "doc" / "exphil" / "policies"
    for folder in ("lib", "lib/x86_64-linux-gnu"):
        library = tmp_path / "prefix" / folder / "libexphil.so.0"
        monkeypatch.setattr(where, "library_path", lambda library=library: str(library))
        shutil.rmtree(documents, ignore_errors=True)
        with pytest.raises(FileNotFoundError, match='no ready policy "drill": neither .*libexphil.so.0 has any.*share/doc/exphil'):
            function("drill")
        documents.mkdir(parents=True)
        (documents / "drill.safetensors").write_bytes(b"")
        assert function("drill") == str(documents / "drill.safetensors")
    with pytest.raises(ValueError, match='"fox" is no ready policy; there are drill$'):
        function("fox")
    with pytest.raises(TypeError, match="name"):
        function(3)


# ---- the program ----


def test_a_package_with_the_program_runs_it(tmp_path):
    package = copied(tmp_path)
    (package / "bin").mkdir(exist_ok=True)
    (tmp_path / "exphil_program.py").write_text("import sys\ndef main():\n    print('ran', *sys.argv[1:])\n    return 7\n")
    done = run(tmp_path, "-m", "exphil", "drill", "--help")
    assert (done.returncode, done.stdout) == (7, "ran drill --help\n"), done.stderr


def test_a_package_without_the_program_says_so(tmp_path):
    package = copied(tmp_path)
    shutil.rmtree(package / "bin", ignore_errors=True)
    done = run(tmp_path, "-m", "exphil", "--version")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "carries no program, which is libexphil's own" in done.stderr


def test_an_archive_is_no_package(tmp_path):
    copied(tmp_path / "unpacked")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "unpacked")
    environment = dict(os.environ, PYTHONPATH=archive)
    done = subprocess.run([sys.executable, "-c", "import exphil"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: exphil cannot run from an archive, as {archive} is" in done.stderr, done.stderr
