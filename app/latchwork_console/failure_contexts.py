"""What the pages of failures show: groups with their trends drawn."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from latchwork.bulk_views import BulkOperation, BulkPreview
from latchwork.failure_views import FailureGroup
from latchwork.views import BoundedCount, JobView
from latchwork_console.console import Console, Permission
from latchwork_console.formatting import plural
from latchwork_console.job_contexts import without_cause_text

TREND_HEIGHT = 24
BAR_STEP = 4
BAR_WIDTH = 3
MIN_BAR_HEIGHT = 2.0
"""No hour with a failure is too quiet to be seen."""


@dataclass(frozen=True, slots=True)
class TrendBar:
    """One hour with failures, in the drawing's units."""

    x: int
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Trend:
    """Failures by the hour over the last day; ``summary`` says it in words."""

    bars: tuple[TrendBar, ...]
    width: int
    summary: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of failures and its trend."""

    group: FailureGroup
    trend: Trend


@dataclass(frozen=True, slots=True)
class FailuresContext:
    """One page of groups."""

    rows: tuple[GroupRow, ...]
    ungrouped: BoundedCount
    next_page: str | None
    first_page: bool
    sensitive: bool
    stream_token: str


@dataclass(frozen=True, slots=True)
class FailureGroupContext:
    """One group: what failed, how often, and requeueing it."""

    group: FailureGroup
    trend: Trend
    sample: JobView | None
    preview: BulkPreview
    operations: tuple[BulkOperation, ...]
    sensitive: bool


def read_failures(
    console: Console, page: str | None, permissions: Collection[Permission]
) -> FailuresContext:
    """One page of groups, as somebody with ``permissions`` sees them."""
    token = console.app.monitor.log_token()
    found = console.app.monitor.failures(page)
    sensitive = Permission.VIEW_SENSITIVE in permissions
    groups = found.groups if sensitive else tuple(map(without_message, found.groups))
    return FailuresContext(
        rows=tuple(GroupRow(one, draw_trend(one.hours, console.now())) for one in groups),
        ungrouped=found.ungrouped,
        next_page=found.next,
        first_page=page is None,
        sensitive=sensitive,
        stream_token=token,
    )


def without_message(group: FailureGroup) -> FailureGroup:
    """The group as somebody sees it who may not view sensitive content."""
    sample = None if group.sample is None else without_cause_text(group.sample)
    return replace(group, message=None, sample=sample)


def draw_trend(hours: tuple[int, ...], now: datetime) -> Trend:
    """Bars for the hours that end with the one ``now`` is in, scaled to the worst of them."""
    top = max(hours, default=0)
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=len(hours) - 1)
    bars = []
    for place, count in enumerate(hours):
        if count:
            height = round(max(MIN_BAR_HEIGHT, count * TREND_HEIGHT / top), 1)
            hour = first + timedelta(hours=place)
            title = f"{hour:%H:%M} UTC: {plural(count, 'failure')}"
            bars.append(TrendBar(place * BAR_STEP, round(TREND_HEIGHT - height, 1), height, title))
    total = sum(hours)
    summary = f"{plural(total, 'failure')} in the last 24 hours"
    if total:
        summary += f", {hours[-1]:,} in this hour"
    return Trend(tuple(bars), len(hours) * BAR_STEP, summary)
