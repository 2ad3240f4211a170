"""Everything one may read: jobs and their graph, counts, queues, nodes, the log, the audit."""

from datetime import datetime, timedelta
from uuid import UUID

from latchwork.audit_views import AuditFilter, AuditNames, AuditPage
from latchwork.bulk_views import BulkMember, BulkOperation
from latchwork.errors import InvalidValue
from latchwork.failure_views import FailureGroup, FailurePage
from latchwork.metrics_views import Figures
from latchwork.observer_views import DeadDelivery, HistoryPolicyView, ObserverView
from latchwork.pace_views import DurationSummary, RatePoint
from latchwork.reader import at_least_one
from latchwork.schedule_monitor import ScheduleMonitor
from latchwork.store import (
    attention_queries,
    audit_queries,
    bulk_queries,
    counter_queries,
    explanation_queries,
    failure_queries,
    graph_queries,
    history_facts,
    job_queries,
    job_rows,
    log_queries,
    metrics_queries,
    node_queries,
    observer_queries,
    queue_queries,
    tag_queries,
)
from latchwork.store.counter_queries import Period
from latchwork.store.keyset import Cursor
from latchwork.store.transition_log import end_of_log
from latchwork.tag_views import TagFacet
from latchwork.values import checked_filter, checked_id, checked_name
from latchwork.views import (
    Attention,
    AuditRow,
    Counts,
    Explanation,
    Facets,
    Graph,
    History,
    JobDetail,
    JobFilter,
    JobPage,
    JobView,
    LogFilter,
    NodeView,
    OutputRow,
    QueueView,
    TransitionPage,
)
from latchwork.workflow_monitor import WorkflowMonitor

DURATIONS_OVER = timedelta(hours=24)


class Monitor(WorkflowMonitor, ScheduleMonitor):
    """Reads one database and returns plain data; it changes nothing.

    Every method raises StoreBusy when the database is locked or a query takes too long, and
    StoreUnavailable when it cannot be reached. Nothing here counts or scans the table of jobs
    (contract section 9, architecture rule 8).
    """

    def job(self, job_id: UUID) -> JobView | None:
        """The job of this id, or None."""
        return self._read(job_rows.find_job, job_id)

    def detail(self, job_id: UUID, *, with_output: bool = True) -> JobDetail | None:
        """The job with payload, output and up to 200 related jobs each way, or None."""
        return self._read(job_rows.find_detail, job_id, with_output=with_output)

    def output(self, job_id: UUID) -> OutputRow:
        """The job's output as JSON text; ``state`` is None for an unknown job."""
        return self._read(job_rows.find_output, job_id)

    def history(self, job_id: UUID) -> History:
        """The kept log rows of one job, oldest first; empty for an unknown job."""
        return self._read(log_queries.read_history, job_id)

    def explain(self, job_id: UUID) -> Explanation | None:
        """Why the job is where it is, in one sentence; None for an unknown job."""
        return self._read(explanation_queries.explain, job_id, now=self._now())

    def graph(self, job_id: UUID, *, limit: int = graph_queries.MAX_GRAPH_JOBS) -> Graph | None:
        """The jobs connected to this one by dependencies, nearest first; None if unknown."""
        return self._read(graph_queries.read_graph, job_id, limit=at_least_one(limit))

    def jobs(
        self,
        job_filter: JobFilter | None = None,
        page: str | None = None,
        *,
        limit: int = 50,
        after: int | None = None,
        before: int | None = None,
    ) -> JobPage:
        """One page of jobs, newest first.

        Args:
            job_filter: Which jobs; all when None.
            page: A cursor from ``JobPage.next`` or ``.previous``: ``before:N`` or ``after:N``.
            limit: Rows of the page, at most 200.
            after: Instead of ``page``: the page of newer jobs after this enqueue number.
            before: Instead of ``page``: the page of older jobs before this enqueue number.

        Raises:
            InvalidValue: the cursor, the limit or a filter is malformed.
        """
        cursor = _cursor("page", after, before)
        if page is not None:
            if cursor is not None:
                raise InvalidValue("page", "cannot be given together with after or before")
            cursor = job_queries.parse_cursor(page)
        chosen = checked_filter(job_filter or JobFilter())
        return self._read(job_queries.list_jobs, chosen, cursor, limit=at_least_one(limit))

    def counts(self) -> Counts:
        """The exact number of stored jobs, by state and by queue."""
        return self._read(counter_queries.read_counts, now=self._now())

    def rates(
        self,
        period: Period,
        *,
        since: datetime,
        until: datetime | None = None,
        wire_name: str | None = None,
        queue: str | None = None,
    ) -> tuple[RatePoint, ...]:
        """What happened in each minute (kept 2 hours) or hour (kept 8 days), without holes."""
        if period not in counter_queries.PERIOD_LENGTH:
            raise InvalidValue("period", "must be minute or hour")
        return self._read(
            counter_queries.read_rates,
            period,
            since=_aware("since", since),
            until=self._now() if until is None else _aware("until", until),
            wire_name=wire_name,
            queue=queue,
        )

    def durations(self, wire_name: str) -> DurationSummary:
        """How long the attempts of a wire name ran in the last day."""
        since = self._now() - DURATIONS_OVER
        return self._read(counter_queries.read_durations, wire_name, since=since)

    def queues(self) -> tuple[QueueView, ...]:
        """Every queue: depth, pace, gates, and the live nodes that serve it."""
        return self._read(queue_queries.read_queue_views, now=self._now())

    def nodes(self) -> tuple[NodeView, ...]:
        """The nodes of the last day, live ones first, each with the jobs it holds."""
        return self._read(node_queries.read_nodes_and_jobs, now=self._now())

    def attention(self) -> tuple[Attention, ...]:
        """What an operator should look at, most urgent first."""
        return self._read(attention_queries.read_attention, now=self._now())

    def failures(self, page: str | None = None, *, limit: int = 25) -> FailurePage:
        """Failed jobs by cause, those that failed last first; at most 50 groups a page."""
        return self._read(
            failure_queries.list_groups, page, limit=at_least_one(limit), now=self._now()
        )

    def failure_group(self, key: str) -> FailureGroup | None:
        """One group of failed jobs, also when its jobs are gone; None if it is not known."""
        return self._read(failure_queries.find_group, checked_name("key", key), now=self._now())

    def bulk_operations(self, *, limit: int = 50) -> tuple[BulkOperation, ...]:
        """The newest operations on many jobs, at most 50."""
        return self._read(bulk_queries.list_operations, limit=at_least_one(limit), now=self._now())

    def bulk_operation(self, operation_id: UUID) -> BulkOperation | None:
        """The operation of this id, or None."""
        checked_id("operation_id", operation_id)
        return self._read(bulk_queries.find_operation, operation_id, now=self._now())

    def bulk_members(
        self, operation_id: UUID, *, after: int = 0, limit: int = 50
    ) -> tuple[BulkMember, ...]:
        """Members of an operation in their order, after number ``after``; at most 200."""
        checked_id("operation_id", operation_id)
        return self._read(
            bulk_queries.list_members, operation_id, after=after, limit=at_least_one(limit)
        )

    def figures(self) -> Figures:
        """What a metrics endpoint tells, from the ledger and a few index look-ups."""
        return self._read(metrics_queries.read_figures, now=self._now())

    def facets(self) -> Facets:
        """The queues and wire names that filters may be set to."""
        return self._read(queue_queries.read_facets)

    def audit(self, *, limit: int = 50, before: int | None = None) -> tuple[AuditRow, ...]:
        """The newest operator actions, before row number ``before``; at most 200."""
        return self._read(audit_queries.read_audit, limit=at_least_one(limit), before=before)

    def audit_page(
        self,
        audit_filter: AuditFilter | None = None,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> AuditPage:
        """One page of the audit trail, newest first, at most 200 rows.

        Raises InvalidValue when a place, the limit or a filter is malformed.
        """
        chosen = audit_filter or AuditFilter()
        _checked_names(
            actor=chosen.actor, action=chosen.action, subject_kind=chosen.subject_kind,
            subject=chosen.subject,
        )  # fmt: skip
        cursor = _cursor("audit row", after, before)
        return self._read(audit_queries.list_audit, chosen, cursor, limit=at_least_one(limit))

    def audit_names(self) -> AuditNames:
        """The actors and actions of late, to filter the audit trail by."""
        return self._read(audit_queries.read_names)

    def tags(self, prefix: str = "", *, limit: int = 50) -> tuple[TagFacet, ...]:
        """The tags in use that begin with ``prefix``, most frequent among the newest jobs first.

        At most 200. A pair begins as it is written, ``key=value``; case does not matter.
        """
        return self._read(tag_queries.read_tags, prefix=prefix, limit=at_least_one(limit))

    def audit_of_job(self, job_id: UUID) -> tuple[AuditRow, ...]:
        """The operator actions on one job, newest first; at most 200."""
        limit = audit_queries.MAX_AUDIT_ROWS
        return self._read(audit_queries.read_audit, limit=limit, job_id=job_id)

    def transitions(
        self,
        log_filter: LogFilter | None = None,
        *,
        after_position: int | None = None,
        before_position: int | None = None,
        limit: int = 50,
    ) -> TransitionPage:
        """One page of the transition log, newest first, at most 200 rows.

        Raises InvalidValue when a position, the limit or a filter is malformed.
        """
        cursor = _cursor("position", after_position, before_position)
        chosen = _checked_log(log_filter or LogFilter())
        return self._read(log_queries.list_transitions, chosen, cursor, limit=at_least_one(limit))

    def transitions_at(
        self, moment: datetime, log_filter: LogFilter | None = None, *, limit: int = 50
    ) -> TransitionPage:
        """The page of the transition log that ends at ``moment``, newest first."""
        position = self._read(log_queries.position_at, _aware("moment", moment))
        return self.transitions(log_filter, before_position=position + 1, limit=limit)

    def history_policy(self) -> HistoryPolicyView:
        """How much the transition log keeps, and since when (contract section 5)."""
        return self._read(history_facts.read_history_policy)

    def observers(self) -> tuple[ObserverView, ...]:
        """Every observer: its place in the log, how far behind, what waits, what is dead."""
        return self._read(observer_queries.read_observers, now=self._now())

    def observer(self, name: str) -> ObserverView | None:
        """The observer of this name, or None."""
        found = self._read(
            observer_queries.read_observers, now=self._now(), name=checked_name("name", name)
        )
        return found[0] if found else None

    def dead_deliveries(
        self, name: str, *, limit: int = 50, before: int | None = None
    ) -> tuple[DeadDelivery, ...]:
        """The newest dead deliveries of an observer, before the one with id ``before``."""
        return self._read(
            observer_queries.read_dead_deliveries,
            checked_name("name", name),
            limit=at_least_one(limit),
            before=before,
        )

    def log_token(self) -> str:
        """The place of the log's end: follow from here to see everything that comes."""
        return str(self._read(end_of_log))


def _aware(field: str, moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidValue(field, "must carry a time zone")
    return moment


def _cursor(field: str, after: int | None, before: int | None) -> Cursor | None:
    if after is not None and before is not None:
        raise InvalidValue(field, "cannot be both after and before")
    key = before if after is None else after
    if key is None:
        return None
    if not 0 <= key < 2**63:
        raise InvalidValue(field, "is out of range")
    return Cursor(key, newer=after is not None)


def _checked_log(log_filter: LogFilter) -> LogFilter:
    _checked_names(queue=log_filter.queue, wire_name=log_filter.wire_name)
    return log_filter


def _checked_names(**names: str | None) -> None:
    for field, name in names.items():
        if name is not None:
            checked_name(field, name)
