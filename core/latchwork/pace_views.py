"""How fast work goes: what the monitor returns for the charts."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RatePoint:
    """What ended in one minute or hour: how many outcomes of each kind."""

    starts_at: datetime
    succeeded: int
    failed: int
    """Failed attempts: retries and dead letters together."""
    dead_lettered: int
    cancelled: int
    quarantined: int
    enqueued: int
    started: int


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """How long attempts ran: figures from buckets of powers of two, None while ``count`` is 0."""

    count: int
    mean_seconds: float | None
    median_seconds: float | None
    p95_seconds: float | None
