"""exphil: policies for 60 Hz games, trained by behaviour cloning and played in this process (libexphil).

    model = exphil.Model.load(exphil.ready("drill"))
    session = exphil.Session(model)
    actions = session.step_row(floats, ids)

Settings have the names and defaults of the C header, exphil.h, which is the full manual: a wheel has it with the other headers
in this package's folder, as include/exphil/exphil.h, and an installed libexphil among the system's headers. Numbers come and go as
NumPy arrays. Every object is a context manager and has close().
"""
from __future__ import annotations

try:
    from ._native import lib as _lib
except ImportError as _error:
    from .missing import explain as _explain

    raise _explain(_error) from None

from .library import check_version as _check_version, library_path, library_version, written as _written  # noqa: E402

_check_version(_lib.EXPHIL_VERSION, _lib.exphil_version(), library_path())

from . import melee, ops, slp  # noqa: E402
from .constants import (  # noqa: E402
    Activation,
    BlockWeights,
    Button,
    DataType,
    Deliver,
    Dump,
    End,
    GameResult,
    HeadKind,
    Heads,
    Known,
    LiveWay,
    LogLevel,
    Mode,
    PlanPurpose,
    Precision,
    Presence,
    Reduction,
    Refused,
    Rollback,
    Schedule,
    SlpHas,
    SlpProblem,
    SlpResult,
    Split,
    Stop,
    Sums,
    Value,
    Weights,
)
from .context import Context, default_context, devices  # noqa: E402
from .dataset import Dataset, Rows  # noqa: E402
from .errors import (  # noqa: E402
    BusyError,
    CancelledError,
    ClosedError,
    DeviceError,
    ExphilError,
    FormatError,
    InternalError,
    InvalidError,
    IoError,
    MismatchError,
    NumericError,
    OutOfMemoryError,
    StateError,
    UnsupportedError,
    VersionError,
)
from .files import Added, Refusal  # noqa: E402
from .games import Game, Games, GamesWriter, refused_name  # noqa: E402
from .learner import Learner  # noqa: E402
from .live import Live  # noqa: E402
from .losses import HeadLoss  # noqa: E402
from .match import match  # noqa: E402
from .model import Examined, Model  # noqa: E402
from .plan import plan  # noqa: E402
from .prefetcher import Batch, Prefetcher, rank_lanes  # noqa: E402
from .ranks import Ranks, ranks_id  # noqa: E402
from .ready import ready  # noqa: E402
from .records import (  # noqa: E402
    BlockInfo,
    Comparison,
    DatasetInfo,
    DeviceInfo,
    EpisodeInfo,
    GameEnd,
    GameInfo,
    GamePlayer,
    GamesAdded,
    GamesInfo,
    HeadComparison,
    HeadReport,
    LearnerMetrics,
    LiveInfo,
    MatchResult,
    MeleeField,
    MemoryInfo,
    Metrics,
    ModelInfo,
    OptimizerInfo,
    OutcomeMetrics,
    Plan,
    PrefetcherInfo,
    Record,
    ReplayResult,
    Report,
    SelectionReport,
    SessionInfo,
    SlpInfo,
    SlpPort,
    TensorInfo,
)
from .rollout import Rollout, block_info  # noqa: E402
from .session import HeadPlay, Session  # noqa: E402
from .slp import Replay, ReplayRows, Stream  # noqa: E402
from .spec import HeadSpec, IdSpec, Spec  # noqa: E402
from .tensor import Tensor  # noqa: E402
from .told import Condition  # noqa: E402
from .trainer import Communicator, Forward, Score, Trainer  # noqa: E402
from .world import World  # noqa: E402

__version__ = _written(_lib.EXPHIL_VERSION)

__all__ = [
    "Activation",
    "Added",
    "Batch",
    "BlockInfo",
    "BlockWeights",
    "BusyError",
    "Button",
    "CancelledError",
    "ClosedError",
    "Communicator",
    "Comparison",
    "Condition",
    "Context",
    "DataType",
    "Dataset",
    "DatasetInfo",
    "Deliver",
    "DeviceError",
    "DeviceInfo",
    "Dump",
    "End",
    "EpisodeInfo",
    "Examined",
    "ExphilError",
    "FormatError",
    "Forward",
    "Game",
    "GameEnd",
    "GameInfo",
    "GamePlayer",
    "GameResult",
    "Games",
    "GamesAdded",
    "GamesInfo",
    "GamesWriter",
    "HeadComparison",
    "HeadKind",
    "HeadLoss",
    "HeadPlay",
    "HeadReport",
    "HeadSpec",
    "Heads",
    "IdSpec",
    "InternalError",
    "InvalidError",
    "IoError",
    "Known",
    "Learner",
    "LearnerMetrics",
    "Live",
    "LiveInfo",
    "LiveWay",
    "LogLevel",
    "MatchResult",
    "MeleeField",
    "MemoryInfo",
    "Metrics",
    "MismatchError",
    "Mode",
    "PlanPurpose",
    "Model",
    "ModelInfo",
    "NumericError",
    "OptimizerInfo",
    "OutOfMemoryError",
    "OutcomeMetrics",
    "Precision",
    "Plan",
    "Prefetcher",
    "PrefetcherInfo",
    "Presence",
    "Ranks",
    "Record",
    "Reduction",
    "Refusal",
    "Refused",
    "Replay",
    "ReplayResult",
    "ReplayRows",
    "Report",
    "Rollback",
    "Rollout",
    "Rows",
    "Schedule",
    "Score",
    "SelectionReport",
    "Session",
    "SessionInfo",
    "SlpHas",
    "SlpInfo",
    "SlpPort",
    "SlpProblem",
    "SlpResult",
    "Spec",
    "Split",
    "StateError",
    "Stop",
    "Stream",
    "Sums",
    "Tensor",
    "TensorInfo",
    "Trainer",
    "UnsupportedError",
    "Value",
    "VersionError",
    "Weights",
    "World",
    "block_info",
    "default_context",
    "devices",
    "library_path",
    "library_version",
    "match",
    "melee",
    "ops",
    "plan",
    "rank_lanes",
    "ranks_id",
    "ready",
    "refused_name",
    "slp",
]
