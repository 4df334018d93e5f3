"""Life and death: closing, destroying in every order, threads, fork, Ctrl-C, the interpreter lock."""
import contextlib
import gc
import inspect
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import rows

import exphil


def everything(spec):
    """One of each kind of object, on a context of their own."""
    context = exphil.Context(threads=1)
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, context=context)
    dataset = exphil.Dataset(spec, context=context)
    dataset.add_rows(*rows(100))
    return {
        "context": context,
        "model": model,
        "dataset": dataset,
        "prefetcher": exphil.Prefetcher(dataset, model, batch=2, time=10),
        "trainer": exphil.Trainer(model, dataset, batch=2, time=10),
        "session": exphil.Session(model),
        "live": exphil.Live(model, piece_frames=4, updates=1),
        "stream": exphil.Stream(context=context),
    }


def test_every_order_of_closing(spec):
    names = ["context", "model", "dataset", "trainer", "session", "live"]
    for order in itertools.permutations(names):
        made = everything(spec)
        for name in order:
            for other in ("session", "trainer", "live"):
                if not made[other].closed:
                    made[other].step() if other == "trainer" else made[other].step_row()
            made[name].close()
            made[name].close()
            assert made[name].closed


def test_every_order_of_forgetting(spec):
    for order in itertools.permutations(["context", "model", "live", "prefetcher", "session"]):
        made = everything(spec)
        for name in order:
            del made[name]
            gc.collect(0)


def test_memory_goes_back(spec):
    context = exphil.Context(threads=1)

    def used():
        gc.collect()
        return context.memory.host_used_bytes

    before = used()
    for _ in range(2):
        with exphil.Model(spec, blocks="gru", hidden=32, context=context) as model:
            session = exphil.Session(model)
            np.from_dlpack(model.tensor("input.weight"))
            model.tensor("input.weight").__dlpack__(max_version=(1, 0))
            with pytest.raises(exphil.ExphilError):
                exphil.Session(model, streams=-1)
            assert used() > before
        session.close()
        assert used() == before


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc: how much memory is used is not known")
def test_nothing_is_left_behind(spec):
    """Each round makes and drops about a megabyte; a kind of object that is never destroyed would show."""
    context = exphil.Context(threads=1)
    data = exphil.Model(spec, blocks="gru", hidden=96, context=context).to_bytes()

    def round_():
        model = exphil.Model.load_memory(data, context)
        dataset = exphil.Dataset(spec, context=context)
        dataset.add_rows(*rows(4000))
        np.from_dlpack(model.tensor("input.weight"))
        model.tensor("input.weight").__dlpack__(max_version=(1, 0))
        exphil.Session(model, streams=64).step_row()
        live = exphil.Live(model, dataset, piece_frames=2, updates=1)
        live.step_row(None, None, [0, 0])
        live.settle()
        live.model()
        trainer = exphil.Trainer(model, dataset, batch=2, time=10, ema_decay=0.9)
        trainer.step()
        trainer.model("averaged").quantize("bf16")
        exphil.Prefetcher(dataset, model, batch=64, time=60).next()
        for wrong in (lambda: exphil.Model.load_memory(data[:-1], context), lambda: exphil.Session(model, streams=-1)):
            with pytest.raises(exphil.ExphilError):
                wrong()

    for _ in range(10):
        round_()
    before = resident_bytes()
    for _ in range(40):
        round_()
    assert resident_bytes() - before < 4 << 20


def uses(made):
    """A use of every method of every object."""
    model, dataset, session, trainer, live = (made[name] for name in ("model", "dataset", "session", "trainer", "live"))
    return {
        "context": [lambda c=made["context"]: c.device, lambda c=made["context"]: c.memory, lambda c=made["context"]: c.cancelled,
                    lambda c=made["context"]: exphil.Model(context=c), lambda c=made["context"]: exphil.Stream(context=c)],
        "model": [lambda: model.info, lambda: model.spec, model.tensors, lambda: model.tensor("a"), model.quantize,
                  lambda: model.tensor_set("a", [1]), model.sampling, model.to_bytes, lambda: pickle.dumps(model),
                  lambda: exphil.Session(model), lambda: exphil.Trainer(model), lambda: model.save("x"),
                  lambda: exphil.Prefetcher(dataset, model), lambda: model.evaluate(dataset)],
        "dataset": [lambda: dataset.info, lambda: len(dataset), lambda: dataset.frame(0), lambda: dataset.split(0.5),
                    lambda: dataset.add_rows(*rows(3)), lambda: dataset.episode(0), dataset.verify, lambda: dataset.spec],
        "prefetcher": [made["prefetcher"].next, lambda: made["prefetcher"].info, lambda: made["prefetcher"].seek(0, 0)],
        "trainer": [trainer.step, trainer.model, lambda: trainer.save("x"), lambda: trainer.resume("x"),
                    lambda: trainer.optimizer, lambda: trainer.prefetcher, lambda: list(trainer.train(1))],
        "session": [session.step_row, session.step, session.reset, session.clone, session.state_save, lambda: session.info,
                    lambda: session.logits, lambda: session.override([0, 0]), lambda: session.state_restore(b""),
                    lambda: session.frames, lambda: session.state_size],
        "live": [live.step_row, live.step, lambda: live.reward(0, 1), lambda: live.session, lambda: live.info, live.settle,
                 live.model, lambda: live.save("x"), lambda: live.resume("x")],
        "stream": [lambda: list(made["stream"].push(b"x")), made["stream"].reset, lambda: made["stream"].info,
                   lambda: made["stream"].player(0), lambda: made["stream"].items()],
    }


@pytest.mark.parametrize("name", ["context", "model", "dataset", "prefetcher", "trainer", "session", "live", "stream"])
def test_use_after_close(spec, name):
    made = everything(spec)
    calls = uses(made)[name]
    made[name].close()
    for number, call in enumerate(calls):
        with pytest.raises(exphil.ClosedError, match="closed"):
            call()
            pytest.fail(f"use {number}")
    with pytest.raises(exphil.ClosedError):
        made[name].__enter__()


def test_context_managers(spec, drill):
    with exphil.Context() as context, exphil.Model(spec, blocks="gru", hidden=8, context=context) as model:
        with exphil.Session(model) as session:
            session.step_row()
        assert session.closed and not model.closed
    assert context.closed
    with exphil.Replay(drill) as replay:
        pass
    with pytest.raises(exphil.ClosedError):
        len(replay)


def test_objects_can_be_forgotten_weakly(spec):
    made = everything(spec)
    seen = weakref.ref(made["session"])
    made.clear()
    gc.collect()
    assert seen() is None


# What says nothing about the object, and what makes or ends one.
NOT_USES = {"__init__", "__new__", "__reduce__", "__getattr__", "__exit__", "__repr__", "close", "closed"}


def uses_by_name(kind, given):
    """Every public method and property of a class, as a use with what its parameters are called."""
    for name, value in inspect.getmembers(kind, lambda one: inspect.isfunction(one) or inspect.isdatadescriptor(one)):
        if name.startswith("_") and not name.startswith("__") or name in NOT_USES or name == "__weakref__":
            continue
        if inspect.isfunction(value):
            needed = [one for one in list(inspect.signature(value).parameters.values())[1:]
                      if one.default is one.empty and one.kind == one.POSITIONAL_OR_KEYWORD]
            yield name, lambda made, name=name, needed=needed: getattr(made, name)(*[given[one.name] for one in needed])
        else:
            yield name, lambda made, name=name: getattr(made, name)


def test_objects_without_init_are_closed(spec, tmp_path):
    """All classes, all methods: no private name is told."""
    made = everything(spec)
    floats, ids, actions = rows(3)
    exphil.GamesWriter(tmp_path / "games", stored=1).finish()
    given = {"floats": floats, "ids": ids, "actions": actions, "action": actions[0], "dataset": made["dataset"], "index": 0,
             "epoch": 0, "held_out": 0.5, "data": b"x", "path": tmp_path / "x", "name": "input.weight", "value": [1],
             "reference": made["model"], "comparison": exphil.Comparison(0, 0, 0, 0, 0, 0, 0, 0, ()), "updates": 1,
             "batch": made["prefetcher"].next(), "frame": 0, "position": 0, "port_index": 0, "kind": "state", "own_port": 1,
             "port": 1, "state": b"", "games": exphil.Games(tmp_path / "games"), "game": 0,
             "first": 0, "count": 1, "values": {}, "weight": 1.0, "see": lambda seen: None,
             "text": "", "model": made["model"], "dlogits": [], "world": exphil.World("cartpole"), "lane": 0, "opponents": [],
             "rollout": exphil.Rollout(made["model"].with_value()), "reward": [0], "end": [0], "chunks": 1, "rewards": [0.0],
             "block": b"", "communicator": exphil.Communicator(0, 1, print), "array": np.zeros(1)}
    kinds = [kind for kind in vars(exphil).values() if inspect.isclass(kind) and issubclass(kind, exphil.handle.Slots)]
    count = 0
    for kind in kinds:
        unmade = kind.__new__(kind)
        for name, use in uses_by_name(kind, given):
            with pytest.raises(exphil.ClosedError, match=f"^this {kind.__name__} is closed$"):
                done = use(unmade)
                next(done) if inspect.isgenerator(done) else None
                pytest.fail(f"{kind.__name__}.{name}")
            count += 1
        if kind is not exphil.Tensor:
            assert unmade.closed
            unmade.close()
    assert len(kinds) == 16 and count >= 160, count


def test_half_made_objects_are_harmless():
    for kind in (exphil.Model, exphil.Session, exphil.Trainer, exphil.Dataset):
        with pytest.raises(TypeError):
            kind(1, 2, 3)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(exphil.Session.__new__(exphil.Session))


# ---- threads ----


def long_work(spec, context=None):
    """A model and a dataset whose evaluation takes a second or so."""
    model = exphil.Model(spec, blocks="lstm*2", hidden=128, context=context)
    dataset = exphil.Dataset(spec, context=context)
    for game in range(10):
        dataset.add_rows(*rows(2000, game), game=game)
    return model, dataset


def test_a_second_thread_is_told_busy(spec):
    model, dataset = long_work(spec)
    trainer = exphil.Trainer(model, dataset, batch=64, time=100)
    told = []

    def until_told(call):
        while not told:
            try:
                call()
            except exphil.BusyError as error:
                told.append(str(error))

    worker = threading.Thread(target=until_told, args=(trainer.step,))
    worker.start()
    until_told(trainer.model)
    worker.join()
    assert all("trainer" in text for text in told)


def test_busy_sessions_raise(spec):
    session = exphil.Session(exphil.Model(spec, blocks="lstm*2", hidden=512), streams=8)
    stop, busy = threading.Event(), []

    def work():
        while not stop.is_set():
            try:
                session.step_row()
            except exphil.BusyError as error:
                busy.append(str(error))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60
    while not busy and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    for worker in workers:
        worker.join()
    assert busy and all("session" in text for text in busy)


def test_closing_while_another_thread_works(spec):
    """The call goes on to its end; only then is anything destroyed."""
    model, dataset = long_work(spec)
    for _ in range(3):
        session = exphil.Session(model, streams=64)
        trainer = exphil.Trainer(model, dataset, batch=8, time=20)
        started, ended = threading.Barrier(3), []

        def work(call):
            started.wait()
            try:
                while True:
                    call()
            except exphil.ClosedError:
                ended.append(call)

        workers = [threading.Thread(target=work, args=(call,)) for call in (session.step_row, trainer.step)]
        for worker in workers:
            worker.start()
        started.wait()
        time.sleep(0.05)
        session.close()
        trainer.close()
        for worker in workers:
            worker.join(60)
        assert len(ended) == 2


def test_models_are_shared_by_threads(spec):
    model = exphil.Model(spec, blocks="gru", hidden=16)
    found = []

    def work():
        session = exphil.Session(model, seed=1)
        found.append([session.step_row([t / 50] * 6, [0]).tolist() for t in range(200)])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and all(one == found[0] for one in found)


def test_other_threads_run_during_training(spec):
    """Were the interpreter lock held, the counter could not move between the start and the end of a call."""
    model, dataset = long_work(spec)
    trainer = exphil.Trainer(model, dataset, batch=32, time=60)
    count, stop = [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    # No switch by the clock: the worker runs only when the lock is given up.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    worker = threading.Thread(target=work)
    try:
        worker.start()
        first, deadline = count[0], time.monotonic() + 60
        while (moved := count[0] - first) <= 100 and time.monotonic() < deadline:
            trainer.step()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        worker.join()
    assert moved > 100


# ---- stopping ----


def test_cancelled_from_another_thread(spec):
    context = exphil.Context()
    model, dataset = long_work(spec, context)
    timer = threading.Timer(0.2, setattr, (context, "cancelled", True))
    timer.start()
    with pytest.raises(exphil.CancelledError):
        while True:
            model.evaluate(dataset)
    assert context.cancelled
    trainer = exphil.Trainer(model, dataset, batch=4, time=10)
    with pytest.raises(exphil.CancelledError):
        trainer.step()
    context.cancelled = False
    assert trainer.step().update == 1


def signal_when_busy(number, probe):
    """Sends the signal to this process when the probe finds another call under way; the probe may be in that one's way."""

    def wait():
        with contextlib.suppress(exphil.BusyError):
            while True:
                probe()
        os.kill(os.getpid(), number)

    threading.Thread(target=wait, daemon=True).start()


def until_interrupted(call):
    with pytest.raises(KeyboardInterrupt):
        while True:
            with contextlib.suppress(exphil.BusyError):
                call()


def test_ctrl_c_ends_a_long_call(spec):
    """An update of a million batches, which takes minutes, ends as KeyboardInterrupt long before: it never was. And all goes on."""
    model, dataset = long_work(spec)
    trainer = exphil.Trainer(model, dataset, batch=8, time=20, accumulate=1000000)
    before, want = trainer.model().info.weights_hash, model.evaluate(dataset)
    signal_when_busy(signal.SIGINT, trainer.model)
    until_interrupted(trainer.step)
    assert trainer.model().info.weights_hash == before
    signal_when_busy(signal.SIGINT, lambda: dataset.frame(0))
    until_interrupted(lambda: model.evaluate(dataset))
    assert model.evaluate(dataset) == want


def test_ctrl_c_with_a_handler_of_ones_own(spec):
    """A handler that returns lets the call go on."""
    model, dataset = long_work(spec)
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        signal_when_busy(signal.SIGUSR1, lambda: dataset.frame(0))
        while not seen:
            with contextlib.suppress(exphil.BusyError):
                assert model.evaluate(dataset).frames == len(dataset)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


# ---- fork ----


def in_child(work):
    """Exit status of work in a forked child: 0 when it returns True."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() is True else 2
        except BaseException as error:
            os.write(2, f"child: {error!r}\n".encode())
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def test_objects_do_not_cross_fork(spec):
    made = everything(spec)
    default = exphil.default_context()

    def work():
        for call in (made["session"].step_row, made["trainer"].step, made["prefetcher"].next, made["model"].to_bytes,
                     made["live"].step_row, made["live"].settle, made["live"].model,
                     lambda: made["dataset"].add_rows(*rows(3))):
            try:
                call()
            except exphil.StateError as error:
                if "fork" not in str(error):
                    raise
            else:
                return False
        for thing in made.values():
            thing.close()
        made.clear()
        gc.collect()
        return exphil.default_context() is not default and len(exphil.Session(exphil.Model(spec)).step_row()) == 1

    assert in_child(work) == 0
    made["session"].step_row()
    made["trainer"].step()
    made["live"].step_row()
    made["live"].settle()


def test_models_go_to_forked_workers_by_pickle(spec):
    model = exphil.Model(spec, blocks="gru", hidden=8)
    data = pickle.dumps(model)
    want = model.info
    assert in_child(lambda: pickle.loads(data).info == want) == 0


def test_the_interpreter_ends_quietly():
    """With objects alive, a prefetcher's thread at work, and cycles between them."""
    code = """
import exphil, numpy as np
spec = exphil.Spec("l", "c", 2, (exphil.HeadSpec("h", 1, 3),))
data = exphil.Dataset(spec); data.add_rows(np.zeros((500, 2)), None, np.zeros((500, 1), int))
model = exphil.Model(spec, hidden=8)
trainer = exphil.Trainer(model, data, batch=4, time=10); trainer.step()
prefetcher = exphil.Prefetcher(data); batch = prefetcher.next()
session = exphil.Session(model); session.step_row()
live = exphil.Live(model, updates=1000000, piece_frames=1); live.step_row([0, 0], None, [1])
capsule = model.tensor("input.weight").__dlpack__()
cycle = [trainer, session, live]; cycle.append(cycle)
"""
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(exphil.__file__)))
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
