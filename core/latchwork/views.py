"""What the monitor returns: frozen dataclasses, plain data all the way down."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import Event

Tag = str | tuple[str, str]
"""A label, or a key and a value."""

FAILED_ENDS = frozenset({JobState.SCHEDULED, JobState.DEAD_LETTERED, JobState.QUARANTINED})
"""Where an attempt leads that did not succeed and was not cancelled."""


@dataclass(frozen=True, slots=True)
class CauseView:
    """Why a job is terminal. ``code`` and ``type`` are public, ``text`` is sensitive.

    For a cascaded cancel: the direct parent that ended otherwise, its state, and the root job.
    """

    code: str
    type: str | None = None
    text: str | None = None
    parent_id: UUID | None = None
    parent_state: JobState | None = None
    root_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as lists show it: no payload, no output."""

    id: UUID
    sequence: int
    wire_name: str
    queue: str
    state: JobState
    state_since: datetime
    attempt: int
    max_attempts: int
    claim_number: int
    enqueued_at: datetime
    due_at: datetime
    owner: str | None
    lease_expires_at: datetime | None
    lapses: int
    parents_remaining: int
    mode: DependencyMode
    cancel_pending: bool
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_delivered_at: datetime | None
    terminal_at: datetime | None
    cause: CauseView | None
    tags: tuple[Tag, ...]
    workflow_id: UUID | None
    step: str | None


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job with everything its page shows."""

    job: JobView
    payload: str
    retry: RetryPolicy
    output: str | None
    parents: tuple["RelatedJob", ...]
    children: tuple["RelatedJob", ...]
    more_children: bool
    """Whether there are more children than are listed."""


@dataclass(frozen=True, slots=True)
class RelatedJob:
    """A parent or child of a job; ``open`` while the parent has not settled the edge."""

    id: UUID
    wire_name: str
    step: str | None
    state: JobState
    open: bool


@dataclass(frozen=True, slots=True)
class TransitionView:
    """One row of the transition log."""

    position: int
    job_id: UUID
    ordinal: int
    at: datetime
    state: JobState
    previous_state: JobState | None
    event: Event
    attempt: int
    queue: str
    wire_name: str
    worker: str | None = None
    due_at: datetime | None = None
    failure_detail: str | None = None

    @property
    def failing(self) -> bool:
        """Whether an attempt ended here without success, and not by a cancel."""
        return self.previous_state is JobState.LEASED and self.state in FAILED_ENDS

    @property
    def lapsed(self) -> bool:
        """Whether an attempt ended here because its lease ran out."""
        return self.event is Event.LEASE_EXPIRED


@dataclass(frozen=True, slots=True)
class History:
    """The kept log rows of one job, oldest first; ``dropped`` rows before them are gone.

    ``unlogged`` rows were never written, because the history policy was off.
    """

    transitions: tuple[TransitionView, ...]
    dropped: int
    unlogged: int = 0
    logged_to_end: bool = True
    """Whether the last row is how the job stands now."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a listing shows; an empty filter shows all."""

    states: tuple[JobState, ...] = ()
    queue: str | None = None
    wire_name: str | None = None
    tag: Tag | None = None
    cause_code: str | None = None
    cause_type: str | None = None
    cause_group: str | None = None


SEARCH_BOUND = 10_000
"""How many rows a search goes through at most before it answers with what it found."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a listing, newest first; ``next`` and ``previous`` are cursors or None.

    ``partial`` says that the search stopped at its bound before the page was full: further matches,
    if any, are found by following the cursor.
    """

    jobs: tuple[JobView, ...]
    next: str | None
    previous: str | None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """Exact numbers of stored jobs, from the counter ledger."""

    as_of: datetime
    by_state: dict[JobState, int]
    by_queue: dict[str, dict[JobState, int]]

    @property
    def total(self) -> int:
        """All stored jobs."""
        return sum(self.by_state.values())


@dataclass(frozen=True, slots=True)
class NodeView:
    """One worker node, live or lately gone."""

    worker_id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    last_seen_at: datetime
    heartbeat_seconds: float
    slots: int
    queues: tuple[str, ...]
    wire_names: tuple[str, ...]
    draining: bool
    stopped_at: datetime | None
    live: bool
    running: tuple[JobView, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue: its depth, its pace, its gates and who serves it."""

    name: str
    counts: dict[JobState, int]
    due: "BoundedCount"
    oldest_due_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    concurrency_limit: int | None
    served_by: tuple[str, ...]
    outcomes_per_minute: float
    enqueued_per_minute: float


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """A count that stops at its bound: ``1,000+`` instead of a scan."""

    value: int
    capped: bool = False

    def __str__(self) -> str:
        """The figure as it is shown."""
        return f"{self.value:,}+" if self.capped else f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One operator action that was carried out."""

    id: int
    at: datetime
    actor: str
    action: str
    subject_kind: str
    subject: str
    detail: dict[str, object]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is where it is: one sentence, a machine-readable code, and the jobs it names."""

    code: str
    sentence: str
    jobs: tuple[UUID, ...] = ()
    queue: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing an operator should look at, most urgent first."""

    code: str
    subject: str
    sentence: str
    state: JobState | None
    job_id: UUID | None = None
    queue: str | None = None
    observer: str | None = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One job in a dependency graph."""

    id: UUID
    sequence: int
    wire_name: str
    step: str | None
    queue: str
    state: JobState
    attempt: int
    parents_remaining: int
    mode: DependencyMode


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One dependency, drawn dashed while it is open."""

    parent: UUID
    child: UUID
    open: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The jobs connected to one job, nearest first, or the members of a workflow in enqueue order.

    ``focus`` is that job, or the workflow. ``truncated`` says that the whole is larger than the
    bound, and that only the first part of it is here.
    """

    focus: UUID
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ActionPreview:
    """What an operator action would do, before it is done.

    ``cascade`` counts the jobs that would be cancelled with it, ``released`` those that would
    become due, ``stays_cancelled`` the children that a requeue does not bring back.
    """

    allowed: bool
    state: JobState | None
    reason: str
    cascade: BoundedCount = BoundedCount(0)
    released: BoundedCount = BoundedCount(0)
    stays_cancelled: BoundedCount = BoundedCount(0)


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One job's output as JSON text; ``state`` is None where there is no such job to read."""

    has_output: bool
    output: str | None
    state: JobState | None


@dataclass(frozen=True, slots=True)
class Facets:
    """The names a filter may be set to."""

    queues: tuple[str, ...]
    wire_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which rows of the transition log are shown; an empty filter shows all."""

    states: tuple[JobState, ...] = ()
    queue: str | None = None
    wire_name: str | None = None
    job_id: UUID | None = None
    failing: bool = False
    """Only ends of attempts that did not succeed: retries, lapses, dead letters, quarantines."""

    def matches(self, transition: TransitionView) -> bool:
        """Whether a row that arrives on the live log belongs on the filtered page."""
        return (
            (not self.states or transition.state in self.states)
            and self.queue in (None, transition.queue)
            and self.wire_name in (None, transition.wire_name)
            and self.job_id in (None, transition.job_id)
            and (not self.failing or transition.failing)
        )


@dataclass(frozen=True, slots=True)
class TransitionPage:
    """A page of the transition log, newest first.

    ``token`` is the place to follow the log from, so that nothing committed after this page was
    read is missed. ``older`` and ``newer`` are positions for ``before_position`` and
    ``after_position``, or None at the ends. ``kept_from`` is the oldest position still kept.
    ``partial`` says that the search stopped at its bound before the page was full; ``older`` (or
    ``newer``) continues it.
    """

    transitions: tuple[TransitionView, ...]
    token: str
    older: int | None
    newer: int | None
    kept_from: int | None
    kept_since: datetime | None
    partial: bool = False
