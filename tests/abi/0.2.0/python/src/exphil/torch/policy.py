"""The policy: a torch.nn.Module whose parameters have the names, shapes and meaning of a weights file (doc/model.md)."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .blocks import BLOCKS, Rows, State, make_blocks
from .config import DELAY_WIDTH, Config, make
from .container import PathLike
from .heads import draw, how_of, make_heads
from .layers import Linear, Norm, Table, Tree, declared
from .losses import Loss, loss

_TYPES = {"F32": torch.float32, "F64": torch.float64}


class Output(NamedTuple):
    """logits [B,T,L]; value [B,T], None without a value head; state: what the blocks carry behind the last frame."""

    logits: Tensor
    value: Optional[Tensor]
    state: State


class Step(NamedTuple):
    """actions [B,A]: what to do in this frame; decided [B,A]: what was decided in it; logits [B,L]; value [B], None without a
    value head; state: what the next frame needs."""

    actions: Tensor
    decided: Tensor
    logits: Tensor
    value: Optional[Tensor]
    state: State


class ValueHead(nn.Module):
    """v = out(SiLU(trunk(u)))."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__()
        self.detached = c.value == "detached"
        self.trunk = Linear(c.hidden, c.head_width, rounding="BF16" if c.weights else None, **where)
        self.out = Linear(c.head_width, 1, scale=0.0, **where)

    def forward(self, u: Tensor) -> Tensor:
        value: Tensor = self.out(F.silu(self.trunk(u.detach() if self.detached else u)))
        return value.squeeze(-1)


class Policy(nn.Module):
    """A policy of libexphil. `spec` says what it sees and does, and the keywords are those of exphil.Model: Policy(spec,
    blocks="mamba*2", hidden=256, seed=1). In the place of a spec a Config stands for all of it. The first weights follow the
    library's rules, but are others than exphil.Model draws from the same seed.

    Chunks for training go through forward, single frames of play through step. A state is a dictionary of tensors [B,...]:

        blocks.<i>.<name>     what block i carries, see the classes in exphil.torch.blocks
        actions [B,S',A]      values of the heads decided last, the newest first; S' is S, at least 1; int64
        rows [B,W',I]         in window mode: rows of the last W' = window_frames frames, the newest last
        count [B]             in window mode: how many of them are of this episode; int64

    forward takes and gives those of the blocks. All state is zero at an episode's start, and actions are neutral.
    """

    def __init__(self, spec: Any, *, device: Any = None, generator: Optional[torch.Generator] = None, **words: Any) -> None:
        super().__init__()
        if isinstance(spec, Config) and words:
            raise TypeError(f"a Config has all settings, {sorted(words)[0]!r} too")
        self.config = c = spec if isinstance(spec, Config) else make(spec, words)
        self.notes: Optional[str] = None
        self.trained_updates, self.trained_frames = 0, 0
        where = {"device": device, "dtype": _TYPES[c.type]}
        self.input = Linear(c.inputs, c.hidden, rounding="BF16" if c.weights else None, **where)
        self._add_tables(c, where)
        self.blocks = make_blocks(c, **where)
        self.norm = None if c.no_final_norm else Norm(c.hidden, c.norm_epsilon, **where)
        self.heads = make_heads(c, **where)
        self.value = ValueHead(c, **where) if c.value else None
        if c.weights:
            self.requires_grad_(False)
        if self.input.weight.device.type != "meta":
            self.start(generator)

    def _add_tables(self, c: Config, where: Dict[str, Any]) -> None:
        self.ids, self.conditions, tables = Tree(), Tree(), []
        for tree, several in ((self.ids, c.ids), (self.conditions, c.conditions)):
            for one in several:
                entries = one.values + 1 if tree is self.conditions else one.entries  # type: ignore[attr-defined]
                tables.append(tree.put(f"{one.name}", Table(entries, one.width, 0.5, **where)))  # type: ignore[attr-defined]
        self.delay = Table(len(c.delays) + 1, DELAY_WIDTH, 0.5, **where) if c.delays else None
        if self.delay is not None:
            tables.append(self.delay)
        self._tables = tuple(tables)  # in the order of the row

    @torch.no_grad()
    def start(self, generator: Optional[torch.Generator] = None) -> None:
        """Draws all weights anew, from generator, or from the configuration's seed."""
        if generator is None:
            generator = torch.Generator(self.input.weight.device)
            generator.manual_seed(self.config.seed & (1 << 63) - 1)
        for _, parameter, start, _ in declared(self):
            start(parameter, generator)

    def parameter_groups(self, weight_decay: float) -> List[Dict[str, Any]]:
        """For torch.optim: the tensors that decay as doc/model.md says, and the others, whose weight_decay is 0.

        Unlike the library, torch leaves a tensor without a gradient as it is: a value that no loss asks for does not decay."""
        if self.config.weights:
            raise ValueError("a quantised policy trains no more: exphil.torch.load(path, dequantize=True) makes one that does")
        groups: Tuple[List[nn.Parameter], List[nn.Parameter]] = ([], [])
        for _, parameter, _, decays in declared(self):
            groups[not decays].append(parameter)
        return [{"params": groups[0], "weight_decay": weight_decay}, {"params": groups[1], "weight_decay": 0.0}]

    def save(self, path: PathLike) -> None:
        """Writes a weights file that exphil.Model.load and exphil.torch.load read."""
        from .weights import save

        save(self, path)

    # ---- state -----------------------------------------------------------------------------------------------

    def _carried(self) -> Dict[str, Tuple[int, ...]]:
        """Shapes [...] of what the blocks carry of one lane."""
        return {
            f"blocks.{i}.{name}": tuple(shape)
            for i, kind in enumerate(self.config.kinds)
            for name, shape in BLOCKS[kind].carries(self.config).items()
        }

    def _kept(self) -> Dict[str, Tuple[int, ...]]:
        """The same of what step needs."""
        c = self.config
        shapes: Dict[str, Tuple[int, ...]] = {"actions": (max(c.slots, 1), len(c.heads))}
        if c.mode == "carry":
            return dict(shapes, **self._carried())
        return dict(shapes, rows=(c.window_frames, c.inputs), count=())

    def blocks_state(self, batch: int) -> State:
        """What the blocks carry at an episode's start."""
        zeros = self.input.weight.new_zeros
        return {name: zeros((batch, *shape)) for name, shape in self._carried().items()}

    def initial_state(self, batch: int = 1) -> State:
        """What step needs at an episode's start."""
        neutral, zeros = self.heads.codec.neutral, self.input.weight.new_zeros
        state = {name: zeros((batch, *shape)) for name, shape in self._kept().items()}
        state["actions"] = neutral.expand(state["actions"].shape).clone()
        if "count" in state:
            state["count"] = torch.zeros(batch, dtype=torch.int64, device=neutral.device)
        return state

    def reset(self, state: State, where: Tensor) -> State:
        """The state in which an episode starts where `where` [B] is true."""
        fresh = self.initial_state(len(where))
        return {
            name: torch.where(where.reshape(-1, *[1] * (value.dim() - 1)), fresh[name], value) for name, value in state.items()
        }

    # ---- from a frame to the network -------------------------------------------------------------------------

    def told(self, conditions: Optional[Tensor], delay_frames: Optional[int], lead: Sequence[int]) -> Optional[Tensor]:
        """[*lead,columns]: values of the conditions (None: not known), and with several delays 1 + the index of the delay,
        which may stand in the last column of conditions already, as batches of exphil.Prefetcher have it."""
        c, device = self.config, self.heads.codec.neutral.device
        if not c.told:
            return None
        if conditions is None:
            conditions = torch.zeros((*lead, len(c.conditions)), dtype=torch.int64, device=device)
        conditions = conditions.to(torch.int64)
        while conditions.dim() <= len(lead):
            conditions = conditions.unsqueeze(-2)
        conditions = conditions.expand(*lead, conditions.shape[-1])
        if c.delays and conditions.shape[-1] == len(c.conditions):
            delay = conditions.new_full((*lead, 1), 1 + self.delay_index(delay_frames))
            conditions = torch.cat([conditions, delay], -1)
        if conditions.shape[-1] != c.told:
            raise ValueError(f"conditions have {conditions.shape[-1]} columns, the policy has {len(c.conditions)}")
        return conditions

    def delay_index(self, delay_frames: Optional[int]) -> int:
        """Which of several delays this is; None: the longest."""
        c = self.config
        delays = c.delays or (c.delay_frames,)
        delay = c.delay_frames if delay_frames is None else delay_frames
        if delay not in delays:
            raise ValueError(f"delay_frames is {delay}, the policy is for {', '.join(map(str, delays))}")
        return delays.index(delay)

    def row(self, floats: Optional[Tensor], ids: Optional[Tensor], told: Optional[Tensor], past: Optional[Tensor]) -> Tensor:
        """Rows [...,I] of floats [...,F], ids [...,K], what is told [...,columns], past actions as numbers [...,S*L]."""
        c, parts, kind = self.config, [], self.input.weight.dtype
        if c.float_count:
            parts.append(_wanted(floats, "floats", c.float_count).to(kind))
        picked = [_wanted(ids, "ids", len(c.ids)).to(torch.int64)] if c.ids else []
        picked += [told] if told is not None else []
        if picked:
            columns = torch.cat(picked, -1).unbind(-1)
            try:
                parts += [table(column) for table, column in zip(self._tables, columns)]
            except IndexError:  # torch's, which does not say of what
                raise IndexError(self._out_of_range(columns)) from None
        return torch.cat(parts + ([past] if past is not None else []), -1)

    def _out_of_range(self, columns: Sequence[Tensor]) -> str:
        """Which value of ids, conditions or the delay no table has."""
        c = self.config
        names = [f"ids: {one.name}" for one in c.ids] + [f"conditions: {one.name}" for one in c.conditions] + ["the delay"]
        for name, table, column in zip(names, self._tables, columns):
            most, found = len(table.weight) - 1, [int(column.min()), int(column.max())]
            for value in found:
                if not 0 <= value <= most:
                    return f"{name} is {value}, must lie in 0..{most}"
        return "a value of ids or conditions is out of range"

    def numbers(self, past: Tensor) -> Optional[Tensor]:
        """Past actions [...,S,A] as the numbers [...,S*L] of a row."""
        if not self.config.slots:
            return None
        return self.heads.codec.numbers(past, self.input.weight.dtype).flatten(-2)

    def network(self, row: Tensor, state: State, reset: Optional[Tensor]) -> Tuple[Tensor, State]:
        """The last LayerNorm [B,T,H] of rows [B,T,I], and what the blocks carry."""
        x, rows = self.input(row), Rows(reset, row.shape[1], row.dtype)
        after: State = {}
        for i, block in enumerate(self.blocks):
            prefix = f"blocks.{i}."
            given = {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
            x, kept = block(x, given, rows)
            after.update((prefix + name, value) for name, value in kept.items())
        return x if self.norm is None else self.norm(x), after

    # ---- chunks ----------------------------------------------------------------------------------------------

    def forward(
        self,
        floats: Optional[Tensor],
        ids: Optional[Tensor] = None,
        past: Optional[Tensor] = None,
        *,
        actions: Optional[Tensor] = None,
        conditions: Optional[Tensor] = None,
        delay_frames: Optional[int] = None,
        reset: Optional[Tensor] = None,
        state: Optional[State] = None,
    ) -> Output:
        """Logits of a chunk: floats [B,T,F], ids [B,T,K], past [B,T,S,A], as exphil.Prefetcher and doc/model.md have them.

        actions [B,T,A]: what is done in each frame, which the later ones of autoregressive heads see; else not needed.
        conditions [B,T,C] or [B,C]. reset [B,T]: true in the first row of an episode. state: where the chunk begins (None: at an
        episode's start); its gradient ends here only if it was detached. In window mode a chunk is a window, without a state.
        """
        c = self.config
        if state is not None and c.mode == "window":
            raise ValueError("a policy of window mode carries nothing: a chunk is a whole window")
        if actions is None and self.heads.follows:
            raise ValueError("heads are autoregressive: give the actions [B,T,A]")
        if _any(floats, ids).dim() != 3:
            raise ValueError(f"a chunk is [B,T,...], this one is of shape {list(_any(floats, ids).shape)}")
        lead = (_any(floats, ids)).shape[:2]
        numbers = None if not c.slots else self.numbers(_slots(past, c))
        row = self.row(floats, ids, self.told(conditions, delay_frames, lead), numbers)
        at = self.blocks_state(lead[0]) if state is None else _fitting(state, lead[0], self._carried())
        u, after = self.network(row, at, None if reset is None else reset.to(torch.bool))
        logits, _ = self.heads.decide(u, numbers, lambda h, part: part[..., 0] if actions is None else actions[..., h])
        return Output(logits, None if self.value is None else self.value(u), after)

    def loss(
        self, logits: Tensor, actions: Tensor, mask: Optional[Tensor] = None, losses: Optional[Sequence[Any]] = None
    ) -> Loss:
        """Losses of logits [...,L] for the targets actions [...,A]. mask [...]: what a row counts; losses: a HeadLoss for each
        head (None: plain cross-entropy)."""
        return loss(self.config.heads, logits, actions, mask, losses)

    # ---- a frame ---------------------------------------------------------------------------------------------

    def step(
        self,
        state: State,
        floats: Optional[Tensor],
        ids: Optional[Tensor] = None,
        noise: Optional[Tensor] = None,
        *,
        conditions: Optional[Tensor] = None,
        heads: Optional[Sequence[Any]] = None,
        deterministic: bool = False,
        delay_frames: Optional[int] = None,
        deliver: str = "due",
    ) -> Step:
        """One frame of B streams: floats [B,F], ids [B,K], noise [B,L] in (0, 1), conditions [B,C]. A pure function: the state
        goes in and comes out, and nothing is kept.

        heads: a HeadPlay for each head; deterministic: all of them are, and need no noise. delay_frames: which of several
        delays holds. deliver: "due", what was decided delay_frames frames ago, or "decided". To put another action in the
        place of the one just decided, change state["actions"][:, 0].
        """
        c = self.config
        plays = how_of(c.heads, heads, deterministic)
        delay = (c.delays or (c.delay_frames,))[self.delay_index(delay_frames)]
        if deliver not in ("due", "decided"):
            raise ValueError(f'deliver is "{deliver}", must be "due" or "decided"')
        lead = _any(floats, ids).shape[:1]
        before = _fitting(state, lead[0], self._kept())["actions"]
        numbers = self.numbers(self._seen(before, delay))
        row = self.row(floats, ids, self.told(conditions, delay_frames, lead), numbers)
        u, after = self._frame(row, state)
        parts: Sequence[Optional[Tensor]] = [None] * len(c.heads)
        if noise is not None:
            parts = self.heads.codec.split(noise)

        def choose(h: int, logits: Tensor) -> Tensor:
            return draw(c.heads[h], logits, parts[h], before[:, 0, h], plays[h])

        logits, decided = self.heads.decide(u, numbers, choose)
        after["actions"] = torch.cat([decided.unsqueeze(1), before[:, :-1]], 1)
        due = decided if delay == 0 or deliver == "decided" else before[:, delay - 1]
        return Step(due, decided, logits, None if self.value is None else self.value(u), after)

    def _seen(self, actions: Tensor, delay: int) -> Tensor:
        """[B,S,A], the past actions that a policy of this delay sees; beyond them they are neutral."""
        c = self.config
        slots, seen = actions[:, : c.slots], delay + 1 - c.no_previous_action
        if seen >= c.slots:
            return slots
        neutral = self.heads.codec.neutral.expand(len(actions), c.slots - seen, len(c.heads))
        return torch.cat([slots[:, :seen], neutral], 1)

    def _frame(self, row: Tensor, state: State) -> Tuple[Tensor, State]:
        """The last LayerNorm [B,H] of a row [B,I], and the state of the next frame without its actions."""
        if self.config.mode == "carry":
            u, after = self.network(row.unsqueeze(1), state, None)
            return u[:, 0], after
        window = self.config.window_frames
        rows = torch.cat([state["rows"][:, 1:], row.unsqueeze(1)], 1)
        count = (state["count"] + 1).clamp(max=window)
        # What stands in front of the episode's first row is thrown away by a reset there.
        reset = torch.arange(window, device=row.device) == window - count.unsqueeze(1)
        u, _ = self.network(rows, self.blocks_state(len(row)), reset)
        return u[:, -1], {"rows": rows, "count": count}

    def player(self, **settings: Any) -> "Player":
        """A module of one frame for torch.export and torch.compile; the settings are keywords of step."""
        return Player(self, **settings)


class Player(nn.Module):
    """step as a module: forward(state, floats, ids, noise, conditions) gives (actions, logits, state). Its weights are those of
    the policy."""

    def __init__(self, policy: Policy, **settings: Any) -> None:
        super().__init__()
        self.policy, self.settings = policy, settings

    def forward(
        self,
        state: State,
        floats: Optional[Tensor],
        ids: Optional[Tensor] = None,
        noise: Optional[Tensor] = None,
        conditions: Optional[Tensor] = None,
    ) -> Tuple[Tensor, Tensor, State]:
        step = self.policy.step(state, floats, ids, noise, conditions=conditions, **self.settings)
        return step.actions, step.logits, step.state


def tensors(batch: Any, device: Any = None) -> Dict[str, Tensor]:
    """The arrays of an exphil.Batch that training needs, copied: floats, ids, past, actions, reset and conditions, as forward
    takes them, and mask for loss."""
    names = ("floats", "ids", "past", "actions", "reset", "mask", "conditions")
    given = ((name, getattr(batch, name)) for name in names)
    return {name: torch.tensor(value, device=device) for name, value in given if value is not None}


def detached(state: State) -> State:
    """The same state for the next chunk: gradients end here."""
    return {name: value.detach() for name, value in state.items()}


def _any(floats: Optional[Tensor], ids: Optional[Tensor]) -> Tensor:
    given = floats if floats is not None else ids
    if given is None:
        raise ValueError("floats and ids are missing")
    return given


def _wanted(given: Optional[Tensor], name: str, count: int) -> Tensor:
    if given is None or given.shape[-1] != count:
        found = "missing" if given is None else f"of shape {list(given.shape)}"
        raise ValueError(f"{name} are {found}, the policy has {count} of them")
    return given


def _fitting(state: State, batch: int, shapes: Dict[str, Tuple[int, ...]]) -> State:
    """The state, if it has these tensors for the batch."""
    for name, shape in shapes.items():
        if name not in state:
            raise ValueError(f'state has no "{name}": initial_state and blocks_state give what there must be')
        if tuple(state[name].shape) != (batch, *shape):
            raise ValueError(f'state["{name}"] is of shape {list(state[name].shape)}, must be {[batch, *shape]}')
    return state


def _slots(past: Optional[Tensor], c: Config) -> Tensor:
    wanted = (c.slots, len(c.heads))
    if past is None or tuple(past.shape[-2:]) != wanted:
        found = "missing" if past is None else f"of shape {list(past.shape)}"
        raise ValueError(f"past actions are {found}, the policy has [B,T,{wanted[0]},{wanted[1]}]")
    return past


__all__ = ["Output", "Player", "Policy", "Step", "detached", "tensors"]
