"""What each template gets: one frozen dataclass per page or partial."""

from dataclasses import dataclass
from datetime import datetime

from latchwork.decisions.states import JobState
from latchwork.views import (
    Attention,
    Counts,
    Facets,
    JobFilter,
    JobPage,
    LogFilter,
    NodeView,
    QueueView,
    TransitionPage,
    TransitionView,
)
from latchwork_console.charts import Chart
from latchwork_console.job_filters import FilterChip


@dataclass(frozen=True, slots=True)
class FrameContext:
    """The frame of every page: its surroundings are all it shows."""


@dataclass(frozen=True, slots=True)
class ProblemContext:
    """An error, said to a person."""

    status: int
    title: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a queue will have drained, in a sentence; ``mood`` colours it: good, warn, bad, calm."""

    sentence: str
    mood: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue and its forecast."""

    queue: QueueView
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class OverviewRegions:
    """What changes on the overview. A part that could not be read is None; its panel says so."""

    attention: tuple[Attention, ...] | None
    state_counts: Counts | None
    minutes: Chart | None
    hours: Chart | None
    queue_rows: tuple[QueueRow, ...] | None


@dataclass(frozen=True, slots=True)
class OverviewContext(OverviewRegions):
    """The overview: its regions, the tail of the log, and the place to follow the log from."""

    transitions: tuple[TransitionView, ...] | None
    log_off_since: datetime | None
    stream_token: str | None


@dataclass(frozen=True, slots=True)
class LogContext:
    """The transition log."""

    log_filter: LogFilter
    chips: tuple[FilterChip, ...]
    log_page: TransitionPage
    facets: Facets
    live: bool
    """Whether this page shows the newest rows and follows the log."""
    at: datetime | None
    log_off_since: datetime | None
    """Since when nothing is logged, or None."""
    query: dict[str, object]


@dataclass(frozen=True, slots=True)
class LogRowContext:
    """One row of the log."""

    transition: TransitionView
    fresh: bool


@dataclass(frozen=True, slots=True)
class StateTab:
    """One state of the job listing; ``state`` None is all of them, ``count`` None is unknown."""

    state: JobState | None
    count: int | None
    current: bool
    query: dict[str, object]


@dataclass(frozen=True, slots=True)
class TabsContext:
    """The state tabs of the job listing."""

    tabs: tuple[StateTab, ...]


@dataclass(frozen=True, slots=True)
class JobsContext:
    """The job listing."""

    job_filter: JobFilter
    tabs: tuple[StateTab, ...]
    chips: tuple[FilterChip, ...]
    job_page: JobPage
    next_query: dict[str, object] | None
    previous_query: dict[str, object] | None
    facets: Facets
    tags: tuple[str, ...]
    """The tags most used of late, as the filter takes them."""
    query: dict[str, object]
    back: str
    """This page's query, for the forms that come back to it."""
    search_bound: int
    """How many jobs a search goes through before it stops with what it found."""
    first_page: bool
    stream_token: str
    searched_id: str | None = None


@dataclass(frozen=True, slots=True)
class QueuesContext:
    """All queues."""

    queue_rows: tuple[QueueRow, ...]
    stream_token: str


@dataclass(frozen=True, slots=True)
class NodesContext:
    """All nodes, live ones first."""

    nodes: tuple[NodeView, ...]
    stream_token: str
