"""The learner: policies that improve on what they have played."""
from __future__ import annotations

from typing import Any, Iterator, Optional

from ._native import ffi, lib
from .arrays import number
from .handle import Config, Handle, Path, expect, path_bytes
from .model import Model
from .progress import Progress
from .records import LearnerMetrics
from .rollout import Rollout
from .structs import empty, read
from .trainer import Trainer
from .world import World


class Learner(Handle):
    """Proximal policy optimisation (PPO) on the chunks of a rollout, near a teacher if there is one.

    trainer: of a model with a value head, without a dataset, used by nobody else meanwhile; for the same bits as in play it is
    made as_played. teacher: a model that stays as it is, to which to_teacher and from_teacher draw; with one, a learner has one
    rollout. imitation: weight of what Session.override put in the policy's place. The settings are those of
    exphil_learner_config (exphil/learn.h has the loss), lambda_ is lambda; 0 stands for the library's defaults. normalise is 1
    or -1: always or never, 0: not with a teacher. One thread at a time.
    """

    __slots__ = ("_taught",)

    def __init__(
        self,
        trainer: Trainer,
        teacher: Optional[Model] = None,
        *,
        surrogate: float = 0.0,
        clip: float = 0.0,
        value: float = 0.0,
        to_old: float = 0.0,
        to_teacher: float = 0.0,
        from_teacher: float = 0.0,
        entropy: float = 0.0,
        imitation: float = 0.0,
        half_life_frames: float = 0.0,
        lambda_: float = 0.0,
        most_kl: float = 0.0,
        reward_scale: float = 0.0,
        epochs: int = 0,
        batches: int = 0,
        burn_in: int = 0,
        value_only: int = 0,
        seed: int = 0,
        normalise: int = 0,
    ) -> None:
        config = Config("exphil_learner_config").set(
            surrogate=surrogate,
            clip=clip,
            value=value,
            to_old=to_old,
            to_teacher=to_teacher,
            from_teacher=from_teacher,
            entropy=entropy,
            imitation=imitation,
            half_life_frames=half_life_frames,
            most_kl=most_kl,
            reward_scale=reward_scale,
            epochs=epochs,
            batches=batches,
            burn_in=burn_in,
            value_only=value_only,
            seed=seed,
            normalise=normalise,
            **{"lambda": lambda_},
        )
        self._open(trainer, teacher, config)

    def _open(self, trainer: Trainer, teacher: Optional[Model], config: Config) -> None:
        expect(trainer, Trainer, "trainer")
        if teacher is not None:
            expect(teacher, Model, "teacher")
        self._core = trainer._core
        taught = ffi.NULL if teacher is None else teacher._handle
        self._handle = self._core.create(lib.exphil_learner_create, trainer._handle, taught, config)
        self._taught = "without a teacher" if teacher is None else f"near {teacher!r}"

    def _about(self) -> str:
        return self._taught

    def update(self, rollout: Rollout) -> LearnerMetrics:
        """Learns from a full chunk, gives the rollout's session the new weights, and makes room for the next chunk.

        StateError: it is not full, its world has failed, or the teacher follows another rollout. MismatchError: the rollout
        does not play the trainer's weights, or is of another shape. NumericError: an update was refused; the weights are as
        before the chunk, which is done with. After CancelledError and KeyboardInterrupt nothing has changed, and the call may
        be made again.
        """
        expect(rollout, Rollout, "rollout")
        metrics = empty(LearnerMetrics)
        self._core.call(lib.exphil_learner_update, self._handle, rollout._handle, metrics)
        return read(LearnerMetrics, metrics)

    def train(
        self, rollout: Rollout, world: World, chunks: int, *, progress: Optional[bool] = None
    ) -> Iterator[LearnerMetrics]:
        """Plays and learns in turn, as an iterator: for metrics in learner.train(rollout, world, chunks=80). A chunk is
        streams * time frames, with a delay some more. progress as in Trainer.train."""
        self._handle
        chunks = number(chunks, "chunks")
        shown = Progress(chunks, progress, "chunk")
        try:
            for _ in range(chunks):
                rollout.run(world)
                metrics = self.update(rollout)
                shown.show(f"return {metrics.episode_return:.4g}, reward {metrics.reward:.4g}, entropy {metrics.entropy:.3f}")
                yield metrics
        finally:
            shown.close()

    # ---- keeping ----

    def _kept(self, function: Any, path: Path, rollout: Rollout, world: Optional[World]) -> None:
        handle = self._handle
        expect(rollout, Rollout, "rollout")
        if world is None:
            self._core.call(function, handle, rollout._handle, ffi.NULL, path_bytes(path))
            return
        expect(world, World, "world")
        world._play(None, self._core.call, function, handle, rollout._handle, world._handle, path_bytes(path))

    def save(self, path: Path, rollout: Rollout, world: Optional[World] = None) -> None:
        """Trainer.save between two chunks, with all that the next chunk depends on: the session's states, the teacher's, and the
        games of the world that the rollout runs (UnsupportedError: it cannot be saved). None: you play, and keep your own
        games."""
        self._kept(lib.exphil_learner_save, path, rollout, world)

    def resume(self, path: Path, rollout: Rollout, world: Optional[World] = None) -> None:
        """Goes on where save was called, to the last bit. All objects are made with the same settings, and the rollout has recorded
        nothing yet. Trainer.resume of such a checkpoint takes the trainer alone."""
        self._kept(lib.exphil_learner_resume, path, rollout, world)


__all__ = ["Learner"]
