"""How a child is born, and what its parents' ends mean for it (contract section 3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import BORN_AWAITING, BORN_CANCELLED, BORN_SCHEDULED, Edge


class Parent(NamedTuple):
    """A parent as an enqueuer sees it, its row held."""

    sequence: int
    state: JobState


@dataclass(frozen=True, slots=True)
class Birth:
    """How a job enters: its edge, its latch, and the failed parent that cancels it at once."""

    edge: Edge
    open_parents: tuple[int, ...] = ()
    failed_parent: int | None = None

    @property
    def latch(self) -> int:
        """The number of parents still pending."""
        return len(self.open_parents)


def birth(parents: Sequence[Parent], mode: DependencyMode) -> Birth:
    """The entry state of a job with ``parents``; a failed one is the lowest in enqueue order."""
    if mode is DependencyMode.ON_SUCCESS:
        failed = [
            parent.sequence
            for parent in parents
            if parent.state.terminal and parent.state is not JobState.SUCCEEDED
        ]
        if failed:
            return Birth(BORN_CANCELLED, failed_parent=min(failed))
    pending = tuple(parent.sequence for parent in parents if not parent.state.terminal)
    return Birth(BORN_AWAITING if pending else BORN_SCHEDULED, pending)


class OpenEdge(NamedTuple):
    """One dependency that its parent has not settled."""

    parent: int
    child: int
    mode: DependencyMode


class CancelledBy(NamedTuple):
    """Why a child is cancelled: its direct parent, how that one ended, and the root of it all."""

    parent: int
    parent_state: JobState
    root: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """What ending jobs does to the jobs below them.

    ``cancelled`` children end, each once; ``counted_down`` says how many of its edges close for
    every other child; ``closed`` are all edges that close.
    """

    closed: tuple[OpenEdge, ...]
    cancelled: dict[int, CancelledBy] = field(default_factory=dict)
    counted_down: dict[int, int] = field(default_factory=dict)


def settle(ended: Mapping[int, JobState], edges: Iterable[OpenEdge]) -> Settlement:
    """Settle the open ``edges`` below jobs that ``ended`` (enqueue number to terminal state).

    One pass in enqueue order is enough, because a child's number is above its parents'. ``edges``
    may include edges of jobs that end or are cancelled, from parents that are still live: those
    close with them.
    """
    ordered = sorted(edges)
    settlement = Settlement(tuple(ordered))
    cancelled = settlement.cancelled
    for parent, child, mode in ordered:
        state = ended.get(parent) or (JobState.CANCELLED if parent in cancelled else None)
        if state is None or state is JobState.SUCCEEDED or mode is DependencyMode.ON_ANY_TERMINAL:
            continue
        if child not in cancelled and child not in ended:
            root = cancelled[parent].root if parent in cancelled else parent
            cancelled[child] = CancelledBy(parent, state, root)
    for parent, child, _ in ordered:
        if child in ended or child in cancelled:
            continue
        if parent in ended or parent in cancelled:
            settlement.counted_down[child] = settlement.counted_down.get(child, 0) + 1
    return settlement
