"""What the library tells about its objects, as frozen dataclasses. Their fields are those of the C structs, by name;
times are nanoseconds (_ns) or frames (_frames), sizes bytes."""
# Made by `tools/abi bindings` from include/exphil: do not edit.
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Dict, Optional, Tuple


@dataclass(frozen=True)
class DeviceInfo:
    """A device that a context can run on; id is what Context(device=) takes."""

    memory_bytes: int
    index: int
    workers: int
    id: str
    name: str
    isa: str


@dataclass(frozen=True)
class MemoryInfo:
    """Memory of a context now, at its peak, and how often it was asked for."""

    host_used_bytes: int
    host_peak_bytes: int
    host_allocations: int
    device_used_bytes: int
    device_peak_bytes: int
    device_requests: int
    device_reused: int
    pinned_used_bytes: int
    pinned_peak_bytes: int


@dataclass(frozen=True)
class MeleeField:
    """One column of a layout: value = clamp(source * scale, low, high); scale 0 is a flag or a one-hot code."""

    offset: int
    count: int
    scale: float
    low: float
    high: float
    is_id: int
    name: str
    source: str


@dataclass(frozen=True)
class ModelInfo:
    """Sizes, hashes and settings of a model, and how much training its weights have seen.

    type is the arithmetic, weights the type that matrices are held in (different once quantised). state_bytes is the
    recurrent state of one stream; action_slots counts the past actions that are inputs.
    """

    spec_hash: int
    weights_hash: int
    parameter_count: int
    tensor_count: int
    float_count: int
    id_count: int
    head_count: int
    logit_count: int
    hidden: int
    window_frames: int
    state_bytes: int
    trained_updates: int
    trained_frames: int
    delay_frames: int
    action_slots: int
    mode: int
    heads: int
    type: int
    layout: str
    codec: str
    blocks: str
    weights: int
    calibrated: int
    neutral_start: int
    condition_count: int
    delay_count: int
    value: int
    norm_epsilon: float
    head_units: int
    no_final_norm: int
    head_layers: int
    head_activation: int
    head_last: int
    no_head_past: int
    no_head_trunk: int
    input_width: int


@dataclass(frozen=True)
class TensorInfo:
    """Name, type and size of a tensor; the first rank entries of dim are its shape."""

    dim: Tuple[int, ...]
    size_bytes: int
    rank: int
    type: int
    name: str

    @property
    def shape(self) -> Tuple[int, ...]:
        """The dimensions in use."""
        return self.dim[: self.rank]


@dataclass(frozen=True)
class HeadComparison:
    """How far one head's decisions are from the reference's."""

    max_error: float
    rms_error: float
    kl: float
    agreement: float


@dataclass(frozen=True)
class Comparison:
    """How far a model's decisions are from a reference's over a dataset.

    Errors are of logits, kl is in nats per frame, agreement the share of frames with the same most likely action.
    """

    reference_hash: int
    content_hash: int
    frames: int
    max_error: float
    rms_error: float
    kl: float
    agreement: float
    heads: int
    head: Tuple[HeadComparison, ...]


@dataclass(frozen=True)
class ReplayResult:
    """What a replay added. frames_masked were left out; truncated is 1 when the replay ends early."""

    episodes: int
    frames: int
    frames_masked: int
    truncated: int


@dataclass(frozen=True)
class DatasetInfo:
    """Size, hashes and layout of a dataset. constant_floats counts columns that never change."""

    spec_hash: int
    content_hash: int
    frames: int
    episodes: int
    games: int
    float_count: int
    id_count: int
    head_count: int
    constant_floats: int
    recovered: int
    layout: str
    codec: str


@dataclass(frozen=True)
class EpisodeInfo:
    """One player's side of one game; what only replays have is 0 (characters -1) for rows."""

    game: int
    first: int
    frames: int
    first_game_frame: int
    port: int
    opponent_port: int
    stage: int
    character: int
    opponent_character: int
    group: int


@dataclass(frozen=True)
class PrefetcherInfo:
    """How many batches an epoch has, and who waited for whom: waited_ns is the taker's, worked_ns the filler's.

    effective_share is the share of rows, weighed alike, that would tell as much as these do.
    """

    batches_per_epoch: int
    frames_per_epoch: int
    delivered: int
    waited_ns: int
    worked_ns: int
    waits: int
    effective_share: float


@dataclass(frozen=True)
class OptimizerInfo:
    """Updates done, rate of the next one, and bytes of moments and averaged weights."""

    updates: int
    rate: float
    state_bytes: int


@dataclass(frozen=True)
class Metrics:
    """One update: loss before the step, one entry of head_loss for each head, norm before clipping.

    frames counts all frames trained so far, skipped the updates refused because of a NaN or an infinity.
    """

    update: int
    epoch: int
    frames: int
    loss: float
    head_loss: Tuple[float, ...]
    gradient_norm: float
    rate: float
    loss_scale: float
    time_ns: int
    waited_ns: int
    skipped: int


@dataclass(frozen=True)
class HeadReport:
    """How well one head is predicted, beside three baselines: commonest value, value before, plain frequencies."""

    loss: float
    nll: float
    accuracy: float
    top3: float
    change_accuracy: float
    majority_accuracy: float
    copy_accuracy: float
    frequency_nll: float


@dataclass(frozen=True)
class Report:
    """How well a model predicts a dataset that it is shown. exact_* ask for all heads at once, change frames are those
    where the action differs from the one before."""

    frames: int
    change_frames: int
    loss: float
    nll: float
    frequency_nll: float
    exact_accuracy: float
    exact_change_accuracy: float
    exact_majority: float
    exact_majority_change: float
    exact_copy: float
    heads: int
    head: Tuple[HeadReport, ...]
    alone_most_frames: int
    alone_frames: int
    alone_change_frames: int
    alone_nll: float
    alone_accuracy: float
    alone_change_accuracy: float
    value_frames: int
    value_loss: float
    unexplained: float


@dataclass(frozen=True)
class SessionInfo:
    """Sizes of a session and the latency of its steps. latency counts steps in buckets half a power of two wide."""

    steps: int
    missed: int
    latency: Tuple[int, ...]
    last_ns: int
    max_ns: int
    p50_ns: int
    p99_ns: int
    streams: int
    float_count: int
    id_count: int
    head_count: int
    logit_count: int
    state_bytes: int
    adoptions: int
    weights_hash: int

    def histogram(self) -> Tuple[Tuple[float, int], ...]:
        """(lower edge in nanoseconds, steps) of every bucket that holds a step."""
        return tuple((64 * 2 ** (i / 2), steps) for i, steps in enumerate(self.latency) if steps)


@dataclass(frozen=True)
class SlpPort:
    """Settings of one port at the start of a game."""

    dashback_fix: int
    shield_drop_fix: int
    offence_ratio: float
    defence_ratio: float
    model_scale: float
    start_damage: int
    respawn_damage: int
    character: int
    type: int
    stocks: int
    costume: int
    team_shade: int
    handicap: int
    team: int
    flags: int
    cpu_level: int
    port: int


@dataclass(frozen=True)
class SlpInfo:
    """What a replay holds: sizes, where and why reading stopped (Stop), what it records (SlpHas), oddities
    (SlpProblem), and the settings of the game. Ports are indices 0..3 here."""

    input_bytes: int
    stop_offset: int
    frame_count: int
    instance_count: int
    incomplete_count: int
    item_count: int
    unknown_event_count: int
    problem_count: int
    problems: int
    fields: int
    container: int
    raw_declared_bytes: int
    stop: int
    truncated: int
    rollback: int
    first_frame: int
    last_frame: int
    metadata: int
    metadata_last_frame: int
    end_count: int
    seed: int
    timer_seconds: int
    game_number: int
    tiebreak_number: int
    damage_ratio: float
    stage: int
    version: Tuple[int, ...]
    game_mode: int
    timer_kind: int
    teams: int
    friendly_fire: int
    pal: int
    frozen: int
    minor_scene: int
    major_scene: int
    language: int
    player_count: int
    item_spawn: int
    self_destruct: int
    end_method: int
    end_lras: int
    placements: Tuple[int, ...]
    played_on: str
    ports: Tuple[SlpPort, ...]
    started_at: str


@dataclass(frozen=True)
class GamesInfo:
    """A corpus of games as a whole; recovered is 1 when the end of a file is missing or damaged."""

    games: int
    frames: int
    bytes: int
    hash: int
    recovered: int


@dataclass(frozen=True)
class GamePlayer:
    """What one player did in a game; exphil/games.h says what counts."""

    damage_dealt: int
    damage_taken: int
    stocks_taken: int
    self_destructs: int
    end_stocks: int
    input_frames: int


@dataclass(frozen=True)
class GameInfo:
    """What the index says of a game; player has one entry for each port index.

    match_tag and day are 0 where they are not recorded, winner where it is not known.
    """

    content_hash: int
    source_hash: int
    match_tag: int
    day: int
    winner: int
    certain_end: int
    finite: int
    player: Tuple[GamePlayer, ...]

    @property
    def date(self) -> Optional[date]:
        """Day of the recording; None: not recorded."""
        return date(1970, 1, 1) + timedelta(self.day) if self.day else None


@dataclass(frozen=True)
class GamesAdded:
    """What became of a replay that was added: duplicate is 1 when the same game was there already."""

    content_hash: int
    source_hash: int
    frames: int
    duplicate: int
    truncated: int


@dataclass(frozen=True)
class SelectionReport:
    """What a selection took and refused, in players of games. refused counts by Refused; refused_name tells it in words."""

    games: int
    players: int
    taken: int
    episodes: int
    frames: int
    frames_masked: int
    refused: Tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The memory that a training will take, in bytes: host_bytes and device_bytes by PlanPurpose, what updates hold
    (steady) and the most (peak), what that is compared with (room), and the largest batch that fits."""

    batch: int
    time: int
    largest_batch: int
    parameter_count: int
    host_bytes: Tuple[int, ...]
    device_bytes: Tuple[int, ...]
    host_steady_bytes: int
    device_steady_bytes: int
    host_peak_bytes: int
    device_peak_bytes: int
    host_room_bytes: int
    device_room_bytes: int
    limited_peak_bytes: int
    limited_room_bytes: int
    weights_file_bytes: int
    checkpoint_file_bytes: int
    host_peak_purpose: int
    device_peak_purpose: int
    fits: int


@dataclass(frozen=True)
class GameEnd:
    """How a game ended: winner and quitter are ports 1..4 or 0, winners has bit port - 1, reason is a SlpResult. Stocks and
    percent are those of each port index's last record, -1 and NaN where there is none."""

    reason: int
    winner: int
    winners: int
    quitter: int
    stocks: Tuple[int, ...]
    percent: Tuple[float, ...]


@dataclass(frozen=True)
class LearnerMetrics:
    """What came of a chunk: means over its rows that were learnt from, of the last epoch where they change.

    That it learns is seen in reward and, where episodes end, in episode_return. recomputed is 0 on the CPU with
    as_played. unexplained is 0 for a perfect value, 1 for one as good as the mean. taken_back is 1 where most_kl was
    exceeded.
    """

    chunks: int
    updates: int
    rows: int
    imitated: int
    episodes: int
    episode_return: float
    episode_frames: float
    reward: float
    kl_old: float
    kl_to_teacher: float
    kl_from_teacher: float
    entropy: float
    ratio: float
    clipped: float
    nll: float
    value_loss: float
    unexplained: float
    loss: float
    gradient_norm: float
    recomputed: float
    taken_back: int


@dataclass(frozen=True)
class BlockInfo:
    """What a block says of itself: streams and time, hashes of the layout of its rows and of the weights that played it."""

    streams: int
    time: int
    spec_hash: int
    weights_hash: int
    delay_frames: int


@dataclass(frozen=True)
class OutcomeMetrics:
    """What came of an update of outcome-weighted imitation: known rows have a return, effective is the share of the rows that
    so many of equal weight would be, clipped the share at the cap."""

    update: int
    frames: int
    known: int
    loss: float
    nll: float
    value_loss: float
    gradient_norm: float
    unexplained: float
    effective: float
    clipped: float


@dataclass(frozen=True)
class MatchResult:
    """What came of a match, for the first policy: score is (won + drawn / 2) / games, low and high are 95 % of the scores that
    other starts would have given. points, points_against and frames are those of all games."""

    games: int
    won: int
    lost: int
    drawn: int
    score: float
    low: float
    high: float
    points: float
    points_against: float
    frames: float


@dataclass(frozen=True)
class LiveInfo:
    """What was played and learnt behind a game so far.

    failed is the status that ended learning, unsaved what the thread's last save came to, 0 where all is well; message
    is the text of failed, else of unsaved.
    """

    frames: int
    person: int
    dropped: int
    taken_back: int
    pieces: int
    learnt: int
    updates: int
    adopted: int
    loss: float
    reward: float
    skipped: int
    saved: int
    failed: int
    unsaved: int
    message: str


@dataclass(frozen=True)
class Record:
    """Episodes that ended against an opponent, of whoever learns: won and lost by the sum of an episode's rewards."""

    episodes: int
    won: int
    lost: int


STRUCTS: Dict[str, type] = {
    "exphil_device_info": DeviceInfo,
    "exphil_memory_info": MemoryInfo,
    "exphil_melee_field": MeleeField,
    "exphil_model_info": ModelInfo,
    "exphil_tensor_info": TensorInfo,
    "exphil_head_comparison": HeadComparison,
    "exphil_comparison": Comparison,
    "exphil_replay_result": ReplayResult,
    "exphil_dataset_info": DatasetInfo,
    "exphil_episode_info": EpisodeInfo,
    "exphil_prefetcher_info": PrefetcherInfo,
    "exphil_optimizer_info": OptimizerInfo,
    "exphil_metrics": Metrics,
    "exphil_head_report": HeadReport,
    "exphil_report": Report,
    "exphil_session_info": SessionInfo,
    "exphil_slp_port": SlpPort,
    "exphil_slp_info": SlpInfo,
    "exphil_games_info": GamesInfo,
    "exphil_game_player": GamePlayer,
    "exphil_game_info": GameInfo,
    "exphil_games_added": GamesAdded,
    "exphil_selection_report": SelectionReport,
    "exphil_plan": Plan,
    "exphil_slp_result": GameEnd,
    "exphil_learner_metrics": LearnerMetrics,
    "exphil_block_info": BlockInfo,
    "exphil_outcome_metrics": OutcomeMetrics,
    "exphil_match_result": MatchResult,
    "exphil_live_info": LiveInfo,
    "exphil_record": Record,
}
