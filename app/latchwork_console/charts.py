"""Charts as plain numbers: percentages of a drawing area that the templates put into SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from latchwork.decisions.states import JobState
from latchwork.pace_views import RatePoint
from latchwork_console.formatting import rfc3339

BAR_SHARE = 0.74
"""How much of its slot a bar fills."""
DIVISIONS = 3
MIN_HEIGHT = 0.9
"""No outcome is too rare to be seen: a bar is at least this many percent high."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a column, in percent of the drawing's height."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """What ended in one minute or hour."""

    slot_x: float
    x: float
    bars: tuple[Bar, ...]
    summary: str
    until: str
    """The end of the span, as a time for the log's address."""


@dataclass(frozen=True, slots=True)
class Total:
    """One kind's sum over the whole chart, for the legend."""

    kind: str
    label: str
    state: JobState
    count: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked columns over time, ready to draw."""

    title: str
    columns: tuple[Column, ...]
    slot_width: float
    bar_width: float
    scale: tuple[str, ...]
    """The labels of the grid, top first, zero last."""
    ticks: tuple[datetime, ...]
    tick_format: str
    totals: tuple[Total, ...]
    empty: bool


KINDS = (
    ("succeeded", "Succeeded", JobState.SUCCEEDED),
    ("failed", "Retried", JobState.LEASED),
    ("cancelled", "Cancelled", JobState.CANCELLED),
    ("quarantined", "Quarantined", JobState.QUARANTINED),
    ("dead_lettered", "Dead-Lettered", JobState.DEAD_LETTERED),
)


def draw_outcomes(
    points: Sequence[RatePoint], *, until: datetime, step: timedelta, count: int, title: str
) -> Chart:
    """A chart of the ``count`` spans of ``step`` that end with the one ``until`` lies in."""
    step_seconds = int(step.total_seconds())
    last = datetime.fromtimestamp(until.timestamp() // step_seconds * step_seconds, UTC)
    starts = [last - step * (count - 1 - index) for index in range(count)]
    by_start = {point.starts_at: point for point in points}
    values = [_values(by_start.get(start)) for start in starts]
    top = nice_top(max((sum(one.values()) for one in values), default=0))
    slot = 100 / count
    columns = tuple(
        Column(
            slot_x=round(index * slot, 3),
            x=round(index * slot + slot * (1 - BAR_SHARE) / 2, 3),
            bars=_stack(value, top),
            summary=_summary(start, value),
            until=rfc3339(start + step),
        )
        for index, (start, value) in enumerate(zip(starts, values, strict=True))
    )
    totals = {kind: sum(value[kind] for value in values) for kind, _, _ in KINDS}
    return Chart(
        title=title,
        columns=columns,
        slot_width=round(slot, 3),
        bar_width=round(slot * BAR_SHARE, 3),
        scale=tuple(f"{top * part // DIVISIONS:,}" for part in range(DIVISIONS, -1, -1)),
        ticks=(starts[0], starts[count // 2], last + step),
        tick_format="%H:%M",
        totals=tuple(Total(kind, label, state, totals[kind]) for kind, label, state in KINDS),
        empty=not any(totals.values()),
    )


def nice_top(largest: int) -> int:
    """The lowest round number at or above ``largest`` that divides evenly into the grid's lines."""
    size = 1
    while True:
        for step in (1, 2, 5):
            top = step * size * DIVISIONS
            if top >= largest:
                return top
        size *= 10


def _values(point: RatePoint | None) -> dict[str, int]:
    if point is None:
        return dict.fromkeys((kind for kind, _, _ in KINDS), 0)
    return {
        "succeeded": point.succeeded,
        "failed": point.failed - point.dead_lettered,
        "cancelled": point.cancelled,
        "quarantined": point.quarantined,
        "dead_lettered": point.dead_lettered,
    }


def _stack(values: dict[str, int], top: int) -> tuple[Bar, ...]:
    bars = []
    floor = 100.0
    for kind, _, _ in KINDS:
        if values[kind] > 0:
            height = min(floor, max(MIN_HEIGHT, values[kind] * 100 / top))
            floor -= height
            bars.append(Bar(kind, round(floor, 2), round(height, 2)))
    return tuple(bars)


def _summary(start: datetime, values: dict[str, int]) -> str:
    parts = [f"{values[kind]:,} {label}" for kind, label, _ in KINDS if values[kind]]
    return f"{start:%H:%M} UTC: {', '.join(parts) or 'nothing ended'}"
