"""Nothing of the C header is missing: functions, settings, what is told back, constants, documentation."""
import dataclasses
import inspect
import os
import re
import sys

import pytest
from conftest import rows

import exphil
from exphil import _native, records

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cut_header  # noqa: E402

PACKAGE = os.path.dirname(exphil.__file__)
# Hooks that cost more through an interpreter than they give, and what the binding decides by itself.
NOT_SETTINGS = {
    "struct_size", "reserved", "reserved_2", "reserved_3", "allocator", "io", "executor", "log", "log_user", "cancel",
    "cancel_user",
    "condition_count", "delay_count"}
NOT_CONSTANTS = re.compile(
    r"EXPHIL_(OK|END|AGAIN|E_\w+|IO_\w+|VERSION\w*|\w+_MAX|LATENCY_BUCKETS|NOTES_MOST|AGREE_MOST|RANKS_\w+"
    r"|PLAN_PURPOSES|REFUSED_REASONS"
    r"|OP_\w+|OPS_F32|OPS_F64|PY_\w+"  # exphil.ops has functions, and the type is that of the arrays
    r"|SLP_(FIRST_\w+|FRAME_LIMIT|PORTS|STREAM_ITEMS|CONTAINER|BARE|GAMES|METADATA_\w+))"
)


def source():
    texts = []
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                texts.append(file.read())
    return "\n".join(texts)


def declared():
    return cut_header.all_declarations()


def test_every_function_is_used():
    functions = set(re.findall(r"\b(exphil_\w+)\(", declared()))
    assert len(functions) > 80
    written = source()
    missing = {name for name in functions if f"lib.{name}" not in written and not name.endswith("_destroy")}
    assert missing == set()
    # Worlds are no pointers: the library fills them.
    assert {name for name in functions if name.endswith("_destroy")} == {
        f"{kind}_destroy" for kind in (*exphil.handle._OUTPUT.values(), "exphil_world")
    }


@pytest.mark.parametrize("kinds, function", [
    (("exphil_context_config",), exphil.Context.__init__),
    (("exphil_model_config",), exphil.Model.__init__),
    (("exphil_optimizer_config", "exphil_sampling", "exphil_trainer_config"), exphil.Trainer.__init__),
    (("exphil_sampling",), exphil.Prefetcher.__init__),
    (("exphil_session_config",), exphil.Session.__init__),
    (("exphil_rollout_config", "exphil_session_config"), exphil.Rollout.__init__),
    (("exphil_learner_config",), exphil.Learner.__init__),
    (("exphil_live_config",), exphil.Live.__init__),
    (("exphil_match_config",), exphil.match),
    (("exphil_replay_config",), exphil.Dataset.add_replay),
    (("exphil_replay_config",), exphil.Dataset.add_replays),
    (("exphil_replay_config",), exphil.Replay.rows),
    (("exphil_split_config",), exphil.Dataset.split),
    (("exphil_slp_config",), exphil.Replay.__init__),
    (("exphil_games_config",), exphil.GamesWriter.__init__),
    (("exphil_selection",), exphil.Dataset.add_games),
    (("exphil_pad",), exphil.melee.pad),
    (("exphil_ops_config",), exphil.ops.use),
])
def test_every_setting_is_a_keyword(kinds, function):
    wanted = {name for kind in kinds for name, _ in _native.ffi.typeof(kind).fields} - NOT_SETTINGS - {"flags"}
    no_settings = {
        "self", "model", "dataset", "context", "logger", "path", "games", "paths", "files_from", "exclude", "layout", "codec",
        "episode_seed", "trainer", "teacher", "a", "b", "world"} - {"games" if "exphil_match_config" in kinds else ""}
    if function is exphil.Live.__init__:  # trainer has the settings of three structs, as Trainer has
        no_settings, wanted = {"self", "model"}, wanted - {"optimizer", "sampling"}
    have = {name.rstrip("_") for name in inspect.signature(function).parameters} - no_settings
    assert have == wanted


def makers(spec, path):
    """What takes settings, with all else that it needs."""
    model, dataset = exphil.Model(spec, blocks="gru", hidden=8, head_width=8), exphil.Dataset(spec)
    dataset.add_rows(*rows(100))
    return {
        exphil.Context: lambda **settings: exphil.Context(**settings),
        exphil.Model: lambda **settings: exphil.Model(**settings),
        exphil.Trainer: lambda **settings: exphil.Trainer(model, dataset, **settings),
        exphil.Prefetcher: lambda **settings: exphil.Prefetcher(dataset, **settings),
        exphil.Session: lambda **settings: exphil.Session(model, **settings),
        exphil.Rollout: lambda **settings: exphil.Rollout(model, **settings),
        exphil.Learner: lambda **settings: exphil.Learner(exphil.Trainer(model), **settings),
        exphil.Live: lambda **settings: exphil.Live(model, **settings),
        exphil.match: lambda **settings: exphil.match(model, model, exphil.World("pong-two"), **settings),
        exphil.Dataset.add_replay: lambda **settings: exphil.Dataset().add_replay(path, **settings),
        exphil.Dataset.add_replay_memory: lambda **settings: exphil.Dataset().add_replay_memory(b"", **settings),
        exphil.Dataset.split: lambda **settings: dataset.split(**{"held_out": 0.5, **settings}),
        exphil.Replay: lambda **settings: exphil.Replay(path, **settings),
        exphil.GamesWriter: lambda **settings: exphil.GamesWriter(path, **settings),
        exphil.melee.pad: exphil.melee.pad,
    }


def test_no_setting_is_dropped(spec, drill):
    """Something that is no number and no text is refused, so each keyword arrives somewhere."""
    for thing, make in makers(spec, drill).items():
        no_settings = {"self", "model", "dataset", "path", "data", "logger", "trainer", "a", "b", "world"}
        names = set(inspect.signature(thing).parameters) - ({"self", "model"} if thing is exphil.Live else no_settings)
        assert len(names) >= 3
        for name in names:
            with pytest.raises((TypeError, AttributeError)):
                make(**{name: object()})
                pytest.fail(f"{thing}: {name}")


@pytest.mark.parametrize("kind", ["exphil_head_loss", "exphil_head_play", "exphil_id_spec", "exphil_head_spec",
                                  "exphil_condition_spec"])
def test_every_field_of_small_structs_is_there(kind):
    record = {"exphil_head_loss": exphil.HeadLoss, "exphil_head_play": exphil.HeadPlay,
              "exphil_condition_spec": exphil.Condition, "exphil_id_spec": exphil.IdSpec, "exphil_head_spec": exphil.HeadSpec}[kind]
    wanted = {name for name, _ in _native.ffi.typeof(kind).fields} - NOT_SETTINGS
    assert {field.name for field in dataclasses.fields(record)} == wanted


@pytest.mark.parametrize("kind", sorted(records.STRUCTS))
def test_every_field_is_told(kind):
    no_field = ("struct_size", "reserved", "reserved_2", "reserved_3")
    wanted = [name for name, _ in _native.ffi.typeof(kind).fields if name not in no_field]
    assert [field.name for field in dataclasses.fields(records.STRUCTS[kind])] == wanted


def test_every_struct_is_told():
    """A new output struct of the header shows up here."""
    outputs = set(re.findall(r"\bexphil_\w+_info\b|\bexphil_\w*report\b|\bexphil_\w*comparison\b", declared()))
    assert {name for name in outputs if name in _native.ffi.list_types()[0]} <= {*records.STRUCTS, "exphil_op_info"}
    assert exphil.ops.OpInfo._fields == tuple(name for name, _ in _native.ffi.typeof("exphil_op_info").fields)[1:]


def test_every_constant_has_a_name():
    names = [name for name in dir(_native.lib) if name.startswith("EXPHIL_") and not NOT_CONSTANTS.fullmatch(name)]
    written = source()
    assert [name for name in names if f"lib.{name}" not in written] == []
    assert len(names) > 80


def test_everything_public_is_documented():
    def members(thing):
        return [value for name, value in vars(thing).items() if not name.startswith("_")
                and (inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod)))]

    for name in (*exphil.__all__, *(f"ops.{name}" for name in exphil.ops.__all__)):
        thing = getattr(exphil.ops if "." in name else exphil, name.split(".")[-1])
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for member in members(thing):
                assert inspect.getdoc(member), f"{name}: {member}"


def test_version_is_the_header_s():
    assert exphil.__version__ == cut_header.version(cut_header.read("exphil.h"))
    assert exphil.library_version().startswith(exphil.__version__)


SAMPLE = '''#define OUTSIDE 1
#ifdef __cplusplus
extern "C" {
#endif
#if defined(X)
#  define EXPHIL_API __attribute__((x))
#endif
/* a comment; with int code(void); */
#define EXPHIL_SIX 6
#define EXPHIL_LESS (-123)
#define EXPHIL_ZERO_INIT { 0, \\
    0 }
#define EXPHIL_NODISCARD
enum { EXPHIL_A = 1, /* one */ EXPHIL_B = 1 << 3 };
EXPHIL_API EXPHIL_NODISCARD int exphil_do(int a,
                                          int b);
#ifdef __cplusplus
}
#endif
'''


def test_cutting():
    assert cut_header.declarations(SAMPLE).split("\n") == [
        "#define EXPHIL_SIX 6", "#define EXPHIL_LESS ...", "enum { EXPHIL_A = 1,   EXPHIL_B = 1 << 3 };",
        "int exphil_do(int a,", "                                          int b);", ""]


def test_a_header_without_version_is_refused():
    with pytest.raises(SystemExit, match="VERSION"):
        cut_header.version("#define EXPHIL_VERSION_MAJOR 1\n")
