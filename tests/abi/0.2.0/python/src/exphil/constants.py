"""The library's enumerations. Wherever one is asked for, its number and its name in lower case do as well."""
# Made by `tools/abi bindings` from include/exphil: do not edit.
from __future__ import annotations

from enum import IntEnum, IntFlag

from ._native import lib


class LogLevel(IntEnum):
    """How much a context tells; 0 stands for WARNING."""

    ERROR = lib.EXPHIL_LOG_ERROR
    WARNING = lib.EXPHIL_LOG_WARNING
    INFO = lib.EXPHIL_LOG_INFO
    DEBUG = lib.EXPHIL_LOG_DEBUG


class HeadKind(IntEnum):
    """What the value of a head is: bits, each on or off, or one of several classes."""

    BERNOULLI = lib.EXPHIL_BERNOULLI
    CATEGORICAL = lib.EXPHIL_CATEGORICAL


class Mode(IntEnum):
    """CARRY: state is carried from frame to frame. WINDOW: every step computes a window that ends at its frame."""

    CARRY = lib.EXPHIL_MODE_CARRY
    WINDOW = lib.EXPHIL_MODE_WINDOW


class Heads(IntEnum):
    """Whether a head sees the values of the heads before it."""

    INDEPENDENT = lib.EXPHIL_HEADS_INDEPENDENT
    AUTOREGRESSIVE = lib.EXPHIL_HEADS_AUTOREGRESSIVE


class Value(IntEnum):
    """Whether a model estimates the return that is still to come, and whether its blocks learn from that."""

    NONE = lib.EXPHIL_VALUE_NONE
    DETACHED = lib.EXPHIL_VALUE_DETACHED
    SHARED = lib.EXPHIL_VALUE_SHARED


class Activation(IntEnum):
    """What follows a hidden layer of a head."""

    SILU = lib.EXPHIL_ACTIVATION_SILU
    RELU = lib.EXPHIL_ACTIVATION_RELU
    GELU_TANH = lib.EXPHIL_ACTIVATION_GELU_TANH


class DataType(IntEnum):
    """Types of numbers."""

    F32 = lib.EXPHIL_TYPE_F32
    F64 = lib.EXPHIL_TYPE_F64
    BF16 = lib.EXPHIL_TYPE_BF16
    I8 = lib.EXPHIL_TYPE_I8
    F16 = lib.EXPHIL_TYPE_F16


class Split(IntEnum):
    """GAME: whole games are held out, drawn at random. TIME: the last part of every episode is. STABLE: whole games, whose side stays when others are added."""

    GAME = lib.EXPHIL_SPLIT_GAME
    TIME = lib.EXPHIL_SPLIT_TIME
    STABLE = lib.EXPHIL_SPLIT_STABLE


class Schedule(IntEnum):
    """How the rate goes on after the warm-up."""

    CONSTANT = lib.EXPHIL_SCHEDULE_CONSTANT
    COSINE = lib.EXPHIL_SCHEDULE_COSINE
    RESTARTS = lib.EXPHIL_SCHEDULE_RESTARTS


class Precision(IntEnum):
    """Arithmetic of training; weights and moments stay F32."""

    F32 = lib.EXPHIL_PRECISION_F32
    TF32 = lib.EXPHIL_PRECISION_TF32
    BF16 = lib.EXPHIL_PRECISION_BF16
    F16 = lib.EXPHIL_PRECISION_F16


class Weights(IntEnum):
    """Which weights of a trainer: as they are, or the running average."""

    NOW = lib.EXPHIL_WEIGHTS
    AVERAGED = lib.EXPHIL_WEIGHTS_AVERAGED


class Reduction(IntEnum):
    """How gradients of ranks are joined. MEANS: the mean of what each has. SUMS: as of one joint batch."""

    MEANS = lib.EXPHIL_REDUCTION_MEANS
    SUMS = lib.EXPHIL_REDUCTION_SUMS


class Sums(IntEnum):
    """Order in which GPUs add up: of the ranks, as a tree, or as NCCL does."""

    ORDERED = lib.EXPHIL_SUMS_ORDERED
    TREE = lib.EXPHIL_SUMS_TREE
    PLAIN = lib.EXPHIL_SUMS_PLAIN


class Deliver(IntEnum):
    """DUE: a step gives the action that is due on this frame. DECIDED: the one just decided."""

    DUE = lib.EXPHIL_DELIVER_DUE
    DECIDED = lib.EXPHIL_DELIVER_DECIDED


class End(IntEnum):
    """How an episode stands after a frame. OVER: nothing comes any more. CUT_OFF: it would have gone on."""

    GOES_ON = lib.EXPHIL_GOES_ON
    OVER = lib.EXPHIL_OVER
    CUT_OFF = lib.EXPHIL_CUT_OFF


class BlockWeights(IntEnum):
    """Which weights may have played a block. CURRENT: those that the rollout has. ANY: others too."""

    CURRENT = lib.EXPHIL_BLOCK_CURRENT
    ANY = lib.EXPHIL_BLOCK_ANY


class LiveWay(IntEnum):
    """What a policy learns from behind its game. IMITATE: a person who takes over. REINFORCE: rewards."""

    IMITATE = lib.EXPHIL_LIVE_IMITATE
    REINFORCE = lib.EXPHIL_LIVE_REINFORCE


class Rollback(IntEnum):
    """Which simulation of a frame a replay gives: the last complete one, the first, or all of them."""

    LAST = lib.EXPHIL_SLP_LAST
    FIRST = lib.EXPHIL_SLP_FIRST
    ALL = lib.EXPHIL_SLP_ALL


class Dump(IntEnum):
    """Kinds of canonical dumps of a replay."""

    STATE = lib.EXPHIL_SLP_DUMP_STATE
    INPUT = lib.EXPHIL_SLP_DUMP_INPUT
    AUX = lib.EXPHIL_SLP_DUMP_AUX
    ITEMS = lib.EXPHIL_SLP_DUMP_ITEMS


class Stop(IntEnum):
    """Why the events of a replay ended."""

    COMPLETE = lib.EXPHIL_SLP_STOP_COMPLETE
    END_OF_FILE = lib.EXPHIL_SLP_STOP_END_OF_FILE
    METADATA = lib.EXPHIL_SLP_STOP_METADATA
    TRUNCATED = lib.EXPHIL_SLP_STOP_TRUNCATED
    UNKNOWN_CODE = lib.EXPHIL_SLP_STOP_UNKNOWN_CODE


class SlpResult(IntEnum):
    """Why the winner of a replay's game is known, or why there is none."""

    UNKNOWN = lib.EXPHIL_SLP_RESULT_UNKNOWN
    STOCKS = lib.EXPHIL_SLP_RESULT_STOCKS
    TIME_STOCKS = lib.EXPHIL_SLP_RESULT_TIME_STOCKS
    TIME_PERCENT = lib.EXPHIL_SLP_RESULT_TIME_PERCENT
    QUIT = lib.EXPHIL_SLP_RESULT_QUIT
    PLACEMENTS = lib.EXPHIL_SLP_RESULT_PLACEMENTS
    TIE = lib.EXPHIL_SLP_RESULT_TIE
    NO_CONTEST = lib.EXPHIL_SLP_RESULT_NO_CONTEST
    UNFINISHED = lib.EXPHIL_SLP_RESULT_UNFINISHED
    ALONE = lib.EXPHIL_SLP_RESULT_ALONE


class GameResult(IntEnum):
    """Who won, of whom rows are made."""

    ANY = lib.EXPHIL_RESULT_ANY
    WON = lib.EXPHIL_RESULT_WON
    LOST = lib.EXPHIL_RESULT_LOST


class Presence(IntEnum):
    """Which games are taken: any, only those without, or only those with."""

    WITH_OR_WITHOUT = lib.EXPHIL_WITH_OR_WITHOUT
    WITHOUT = lib.EXPHIL_WITHOUT
    WITH = lib.EXPHIL_WITH


class PlanPurpose(IntEnum):
    """What the memory of a training is for; those from SAVING to ALONE are held for a while only."""

    WEIGHTS = lib.EXPHIL_PLAN_WEIGHTS
    GRADIENTS = lib.EXPHIL_PLAN_GRADIENTS
    MOMENTS = lib.EXPHIL_PLAN_MOMENTS
    AVERAGE = lib.EXPHIL_PLAN_AVERAGE
    PACKED = lib.EXPHIL_PLAN_PACKED
    ACTIVATIONS = lib.EXPHIL_PLAN_ACTIVATIONS
    WORKSPACE = lib.EXPHIL_PLAN_WORKSPACE
    STATE = lib.EXPHIL_PLAN_STATE
    BATCHES = lib.EXPHIL_PLAN_BATCHES
    GAMES = lib.EXPHIL_PLAN_GAMES
    ORDER = lib.EXPHIL_PLAN_ORDER
    OTHER = lib.EXPHIL_PLAN_OTHER
    SAVING = lib.EXPHIL_PLAN_SAVING
    EVALUATION = lib.EXPHIL_PLAN_EVALUATION
    ALONE = lib.EXPHIL_PLAN_ALONE
    UPDATES = lib.EXPHIL_PLAN_UPDATES


class Refused(IntEnum):
    """Why a player of a game was not taken: where it counts in SelectionReport.refused."""

    STAGE = lib.EXPHIL_REFUSED_STAGE
    SHORT = lib.EXPHIL_REFUSED_SHORT
    LONG = lib.EXPHIL_REFUSED_LONG
    EARLY = lib.EXPHIL_REFUSED_EARLY
    LATE = lib.EXPHIL_REFUSED_LATE
    VERSION = lib.EXPHIL_REFUSED_VERSION
    TEAMS = lib.EXPHIL_REFUSED_TEAMS
    ITEMS = lib.EXPHIL_REFUSED_ITEMS
    PLAYERS = lib.EXPHIL_REFUSED_PLAYERS
    INCOMPLETE = lib.EXPHIL_REFUSED_INCOMPLETE
    COMPUTER_GAME = lib.EXPHIL_REFUSED_COMPUTER_GAME
    COMPUTER = lib.EXPHIL_REFUSED_COMPUTER
    CHARACTER = lib.EXPHIL_REFUSED_CHARACTER
    PORT = lib.EXPHIL_REFUSED_PORT
    RESULT = lib.EXPHIL_REFUSED_RESULT
    DAMAGE = lib.EXPHIL_REFUSED_DAMAGE
    STOCKS = lib.EXPHIL_REFUSED_STOCKS
    SELF_DESTRUCTS = lib.EXPHIL_REFUSED_SELF_DESTRUCTS
    INPUT = lib.EXPHIL_REFUSED_INPUT
    OPPONENT = lib.EXPHIL_REFUSED_OPPONENT
    OPPONENT_PORT = lib.EXPHIL_REFUSED_OPPONENT_PORT
    EMPTY = lib.EXPHIL_REFUSED_EMPTY
    DUPLICATE = lib.EXPHIL_REFUSED_DUPLICATE
    UNKNOWN = lib.EXPHIL_REFUSED_UNKNOWN


class Button(IntFlag):
    """Buttons of a pad."""

    D_LEFT = lib.EXPHIL_PAD_D_LEFT
    D_RIGHT = lib.EXPHIL_PAD_D_RIGHT
    D_DOWN = lib.EXPHIL_PAD_D_DOWN
    D_UP = lib.EXPHIL_PAD_D_UP
    Z = lib.EXPHIL_PAD_Z
    R = lib.EXPHIL_PAD_R
    L = lib.EXPHIL_PAD_L
    A = lib.EXPHIL_PAD_A
    B = lib.EXPHIL_PAD_B
    X = lib.EXPHIL_PAD_X
    Y = lib.EXPHIL_PAD_Y
    START = lib.EXPHIL_PAD_START


class Known(IntFlag):
    """Which of the later fields of a character are known; a live host sets ALL."""

    AGE = lib.EXPHIL_MELEE_HAS_AGE
    FLAGS = lib.EXPHIL_MELEE_HAS_FLAGS
    HURTBOX = lib.EXPHIL_MELEE_HAS_HURTBOX
    SPEED = lib.EXPHIL_MELEE_HAS_SPEED
    HITLAG = lib.EXPHIL_MELEE_HAS_HITLAG
    ALL = lib.EXPHIL_MELEE_HAS_ALL


class SlpHas(IntFlag):
    """What a replay records (bits of SlpInfo.fields)."""

    STATE_AGE = lib.EXPHIL_SLP_HAS_STATE_AGE
    RAW_JOY_X = lib.EXPHIL_SLP_HAS_RAW_JOY_X
    PRE_PERCENT = lib.EXPHIL_SLP_HAS_PRE_PERCENT
    FLAGS = lib.EXPHIL_SLP_HAS_FLAGS
    LRAS = lib.EXPHIL_SLP_HAS_LRAS
    HURTBOX = lib.EXPHIL_SLP_HAS_HURTBOX
    FRAME_SEED = lib.EXPHIL_SLP_HAS_FRAME_SEED
    BOOKEND = lib.EXPHIL_SLP_HAS_BOOKEND
    ITEMS = lib.EXPHIL_SLP_HAS_ITEMS
    ITEM_MISC = lib.EXPHIL_SLP_HAS_ITEM_MISC
    VELOCITY = lib.EXPHIL_SLP_HAS_VELOCITY
    ITEM_OWNER = lib.EXPHIL_SLP_HAS_ITEM_OWNER
    LATEST_FINAL = lib.EXPHIL_SLP_HAS_LATEST_FINAL
    HITLAG = lib.EXPHIL_SLP_HAS_HITLAG
    SCENE_COUNTER = lib.EXPHIL_SLP_HAS_SCENE_COUNTER
    ANIMATION = lib.EXPHIL_SLP_HAS_ANIMATION
    PLACEMENTS = lib.EXPHIL_SLP_HAS_PLACEMENTS
    RAW_JOY_Y = lib.EXPHIL_SLP_HAS_RAW_JOY_Y
    INSTANCE = lib.EXPHIL_SLP_HAS_INSTANCE
    ITEM_INSTANCE = lib.EXPHIL_SLP_HAS_ITEM_INSTANCE
    RAW_C = lib.EXPHIL_SLP_HAS_RAW_C
    FOUNTAIN = lib.EXPHIL_SLP_HAS_FOUNTAIN
    WHISPY = lib.EXPHIL_SLP_HAS_WHISPY
    STADIUM = lib.EXPHIL_SLP_HAS_STADIUM


class SlpProblem(IntFlag):
    """Oddities met in a replay (bits of SlpInfo.problems); none of them stops reading."""

    NEGATIVE_LENGTH = lib.EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH
    LENGTH = lib.EXPHIL_SLP_PROBLEM_LENGTH
    SHORT_EVENT = lib.EXPHIL_SLP_PROBLEM_SHORT_EVENT
    SECOND_START = lib.EXPHIL_SLP_PROBLEM_SECOND_START
    PORT = lib.EXPHIL_SLP_PROBLEM_PORT
    FRAME_START = lib.EXPHIL_SLP_PROBLEM_FRAME_START
    ITEM = lib.EXPHIL_SLP_PROBLEM_ITEM
    BOOKEND = lib.EXPHIL_SLP_PROBLEM_BOOKEND
    FRAME_LIMIT = lib.EXPHIL_SLP_PROBLEM_FRAME_LIMIT
    METADATA = lib.EXPHIL_SLP_PROBLEM_METADATA
    ITEM_LIMIT = lib.EXPHIL_SLP_PROBLEM_ITEM_LIMIT
