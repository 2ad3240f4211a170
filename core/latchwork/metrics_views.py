"""The figures that a metrics endpoint tells, bounded in number whatever names are in use."""

from dataclasses import dataclass
from datetime import datetime

from latchwork.decisions.states import JobState

OTHER = "(other)"
"""The name under which the figures of names beyond the first ones are summed up."""


@dataclass(frozen=True, slots=True)
class Passages:
    """How many jobs of a wire name ever went from one state to another.

    ``from_state`` is None for births, ``to_state`` for purges.
    """

    wire_name: str
    from_state: JobState | None
    to_state: JobState | None
    count: int


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """How long the attempts of a wire name ran, ever.

    ``buckets[n]`` counts those that took from 2**(n-1) to 2**n milliseconds, ``[0]`` below one.
    """

    wire_name: str
    count: int
    seconds: float
    buckets: dict[int, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """The state of a database in figures; names beyond the first are summed up as ``(other)``."""

    as_of: datetime
    jobs: dict[str, dict[JobState, int]]
    passages: tuple[Passages, ...]
    attempts: tuple[AttemptTimes, ...]
    oldest_due_at: dict[str, datetime]
    lapsed_leases: int
    """Leases that ran out and no sweep has taken back; counted to 1,000."""
    live_nodes: int
    live_slots: int
