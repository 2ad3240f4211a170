"""What "correct" means, checked on the tables themselves (contract section 10).

Each check is a function that yields one sentence per broken rule. The fixtures of ``conftest.py``
run them all after every test that used a database.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Row, select

from latchwork.decisions.states import LIVE_STATES, DependencyMode, HistoryPolicy, JobState
from latchwork.decisions.transitions import (
    EDGES,
    LEGAL_MOVES,
    REQUEUED_DEAD,
    REQUEUED_QUARANTINED,
    REVIVED,
    Event,
)
from latchwork.store import schema
from latchwork.store.history_policy import ACTION
from latchwork.store.outcomes import OPERATOR_CANCEL

FAILING_MOVES = {
    (JobState.LEASED, JobState.SCHEDULED),
    (JobState.LEASED, JobState.DEAD_LETTERED),
}

REQUEUES = {(edge.source, edge.target) for edge in (REQUEUED_DEAD, REQUEUED_QUARANTINED)}
ONLY_WORKFLOW_RETRY = {(edge.source, edge.target) for edge in REVIVED} - REQUEUES

LEGAL_EVENTS = {(edge.source, edge.target, event) for edge in EDGES for event in edge.events}

AnyRow = Row[Any]


@dataclass(frozen=True)
class Tables:
    """All rows the checks read, as of one moment; jobs and logs by enqueue number."""

    jobs: dict[int, AnyRow]
    logs: dict[int, list[AnyRow]]
    edges: Sequence[AnyRow]
    outputs: frozenset[int]
    queues: frozenset[str]
    counted: Counter[tuple[str, JobState]]
    actions: Counter[tuple[str, str]]
    log_was_off: Sequence[tuple[datetime, datetime]]
    """From when to when nothing was logged: the log may have holes there, and nowhere else."""

    def job(self, sequence: int) -> str:
        """How a sentence names a job."""
        row = self.jobs[sequence]
        return f"job {sequence} ({row.wire_name}, {row.state})"

    def whole_log(self, sequence: int) -> bool:
        """Whether every row of a job was logged, and none dropped."""
        log = self.logs[sequence]
        complete = range(self.jobs[sequence].next_ordinal)
        return bool(log) and [row.ordinal for row in log] == list(complete)

    def up_to_date(self, sequence: int) -> bool:
        """Whether the last move of a job was logged."""
        log = self.logs[sequence]
        return bool(log) and log[-1].ordinal == self.jobs[sequence].next_ordinal - 1

    def may_have_hole(self, since: datetime, until: datetime) -> bool:
        """Whether nothing was logged at some time from ``since`` to ``until``."""
        return any(start <= until and since <= end for start, end in self.log_was_off)


Check = Callable[[Tables], Iterator[str]]


def audit(connection: Connection) -> list[str]:
    """Every broken rule, one sentence each; empty when the store is as it must be."""
    tables = read_tables(connection)
    return [sentence for check in CHECKS for sentence in check(tables)]


def read_tables(connection: Connection) -> Tables:
    """Read what the checks need."""
    logs: dict[int, list[AnyRow]] = defaultdict(list)
    order = (schema.transitions.c.job_sequence, schema.transitions.c.ordinal)
    for row in connection.execute(select(schema.transitions).order_by(*order)):
        logs[row.job_sequence].append(row)
    return Tables(
        jobs={row.sequence: row for row in connection.execute(select(schema.jobs))},
        logs=logs,
        edges=connection.execute(select(schema.edges)).all(),
        outputs=frozenset(connection.scalars(select(schema.outputs.c.job_sequence))),
        queues=frozenset(connection.scalars(select(schema.queues.c.name))),
        counted=read_counters(connection),
        actions=Counter(
            (row.action, row.subject) for row in connection.execute(select(schema.audit))
        ),
        log_was_off=read_when_off(connection),
    )


def read_when_off(connection: Connection) -> list[tuple[datetime, datetime]]:
    """When the history policy was OFF, as the audit trail tells."""
    periods: list[tuple[datetime, datetime]] = []
    since: datetime | None = None
    changes = select(schema.audit).where(schema.audit.c.action == ACTION)
    for row in connection.execute(changes.order_by(schema.audit.c.id)):
        off = json.loads(row.detail)["to"] == HistoryPolicy.OFF
        if since is not None and not off:
            periods.append((since, row.at))
        since = row.at if off else None
    return periods if since is None else [*periods, (since, datetime.max.replace(tzinfo=UTC))]


def read_counters(connection: Connection) -> Counter[tuple[str, JobState]]:
    """The ledger's idea of how many jobs there are: folded totals and entries still to fold."""
    counted: Counter[tuple[str, JobState]] = Counter()
    for row in connection.execute(select(schema.counter_totals)):
        counted[row.queue, row.state] += row._mapping["count"]
    for row in connection.execute(select(schema.counter_entries)):
        if row.to_state is not None:
            counted[row.queue, row.to_state] += row._mapping["count"]
        if row.from_state is not None:
            counted[row.queue, row.from_state] -= row._mapping["count"]
    return counted


def the_row_is_its_last_log_row(tables: Tables) -> Iterator[str]:
    """State, attempt, time and next ordinal agree; no log without a job."""
    for sequence, job in tables.jobs.items():
        log = tables.logs.get(sequence)
        if not tables.up_to_date(sequence) and tables.may_have_hole(
            job.state_since, job.state_since
        ):
            continue
        if not log:
            yield f"{tables.job(sequence)} has no log"
            continue
        last = log[-1]
        row = (job.state, job.attempt, job.state_since, job.next_ordinal)
        logged = (last.state, last.attempt, last.at, last.ordinal + 1)
        if row != logged:
            yield f"{tables.job(sequence)}: the row says {row}, its log ends with {logged}"
    for sequence in tables.logs.keys() - tables.jobs.keys():
        yield f"log rows of job {sequence}, which does not exist"


def log_rows_are_legal_moves(tables: Tables) -> Iterator[str]:
    """Every kept row is an edge of the table, and carries what that edge may carry."""
    for sequence, job in tables.jobs.items():
        for row in tables.logs[sequence]:
            move = (row.previous_state, row.state)
            at_birth = row.ordinal == 0
            if move not in LEGAL_MOVES or at_birth != (row.previous_state is None):
                yield f"{tables.job(sequence)}: row {row.ordinal} is no legal move: {move}"
            if (*move, row.event) not in LEGAL_EVENTS:
                yield f"{tables.job(sequence)}: row {row.ordinal} was not moved by {row.event}"
            if move in ONLY_WORKFLOW_RETRY and job.workflow_id is None:
                yield f"{tables.job(sequence)}: row {row.ordinal} came back without a workflow"
            if row.failure_detail is not None and move not in FAILING_MOVES:
                yield f"{tables.job(sequence)}: row {row.ordinal} has a failure detail"
            if (row.job_id, row.queue, row.wire_name) != (job.id, job.queue, job.wire_name):
                yield f"{tables.job(sequence)}: row {row.ordinal} describes another job"


def log_rows_follow_each_other(tables: Tables) -> Iterator[str]:
    """No hole between kept rows, each starts where the last ended, time never steps back."""
    for sequence in tables.jobs:
        for earlier, later in pairwise(tables.logs[sequence]):
            in_order = later.at >= earlier.at and later.position > earlier.position
            if not in_order:
                yield f"{tables.job(sequence)}: row {later.ordinal} goes back in time"
            if later.ordinal != earlier.ordinal + 1:
                if not tables.may_have_hole(earlier.at, later.at):
                    yield (
                        f"{tables.job(sequence)}: no row between {earlier.ordinal}, {later.ordinal}"
                    )
                continue
            if later.previous_state is not earlier.state:
                yield f"{tables.job(sequence)}: row {later.ordinal} does not follow from the last"


def attempts_and_claims_are_counted(tables: Tables) -> Iterator[str]:
    """Attempt +1 at a claim, 0 after a return, else unchanged; claim number = Leased rows."""
    for sequence, job in tables.jobs.items():
        log = tables.logs[sequence]
        for earlier, later in pairwise(log):
            if later.ordinal != earlier.ordinal + 1:
                continue
            expected = earlier.attempt
            if later.state is JobState.LEASED:
                expected += 1
            elif earlier.state not in LIVE_STATES:
                expected = 0
            if later.attempt != expected:
                yield f"{tables.job(sequence)}: row {later.ordinal} has attempt {later.attempt}"
        if not tables.whole_log(sequence):
            continue
        if log[0].attempt != 0:
            yield f"{tables.job(sequence)} was born with attempt {log[0].attempt}"
        claims = sum(row.state is JobState.LEASED for row in log)
        if claims != job.claim_number:
            yield f"{tables.job(sequence)}: claim number {job.claim_number}, {claims} Leased rows"


def a_claim_has_one_outcome(tables: Tables) -> Iterator[str]:
    """Each lease ends once, and only an ended one has an accepted outcome."""
    for sequence, job in tables.jobs.items():
        leased = job.state is JobState.LEASED
        if tables.whole_log(sequence):
            log = tables.logs[sequence]
            begun = sum(row.state is JobState.LEASED for row in log)
            ended = sum(row.previous_state is JobState.LEASED for row in log)
            if ended != begun - leased:
                yield f"{tables.job(sequence)}: {begun} leases began, {ended} ended"
        if job.applied_claim is not None and job.applied_claim > job.claim_number - leased:
            yield f"{tables.job(sequence)}: claim {job.applied_claim} settled before it ended"


def states_have_their_columns(tables: Tables) -> Iterator[str]:
    """Owner and expiry if Leased, a time if ended, a cause if Cancelled, output if Succeeded."""
    for sequence, job in tables.jobs.items():
        leased = job.state is JobState.LEASED
        terminal = job.state not in LIVE_STATES
        if {leased} != {job.owner is not None, job.lease_expires_at is not None}:
            yield f"{tables.job(sequence)}: owner {job.owner}, expiry {job.lease_expires_at}"
        if leased and tables.up_to_date(sequence) and tables.logs[sequence][-1].worker != job.owner:
            yield f"{tables.job(sequence)}: the log names another owner than {job.owner}"
        if terminal != (job.terminal_at is not None):
            yield f"{tables.job(sequence)}: terminal time {job.terminal_at}"
        if job.state is JobState.CANCELLED and job.cause_code is None:
            yield f"{tables.job(sequence)} has no cause"
        if job.state in LIVE_STATES | {JobState.SUCCEEDED} and job.cause_code is not None:
            yield f"{tables.job(sequence)} has a cause: {job.cause_code}"
        if job.cancel_pending and not leased:
            yield f"{tables.job(sequence)} has a cancel pending"
        if sequence in tables.outputs and job.state is not JobState.SUCCEEDED:
            yield f"{tables.job(sequence)} has an output"


def latches_count_open_edges(tables: Tables) -> Iterator[str]:
    """The latch is the number of open edges; nobody waits for nothing or for an ended parent."""
    open_edges: Counter[int] = Counter()
    for edge in tables.edges:
        open_edges[edge.child_sequence] += edge.is_open
        parent = tables.jobs.get(edge.parent_sequence)
        if edge.is_open and (parent is None or parent.state not in LIVE_STATES):
            yield f"{tables.job(edge.child_sequence)} waits for {edge.parent_sequence}, which ended"
    for sequence, job in tables.jobs.items():
        if job.parents_remaining != open_edges[sequence]:
            yield (
                f"{tables.job(sequence)}: latch {job.parents_remaining}, "
                f"{open_edges[sequence]} open edges"
            )
        if (job.state is JobState.AWAITING_PARENT) != (job.parents_remaining > 0):
            yield f"{tables.job(sequence)} with latch {job.parents_remaining}"


def children_follow_their_parents(tables: Tables) -> Iterator[str]:
    """A child has the higher number, stays in the workflow, and starts after every parent ended."""
    for edge in tables.edges:
        child = tables.jobs[edge.child_sequence]
        parent = tables.jobs.get(edge.parent_sequence)
        if parent is None or parent.sequence >= child.sequence:
            yield f"{tables.job(child.sequence)} has parent {edge.parent_sequence}"
            continue
        if child.workflow_id is not None and parent.workflow_id != child.workflow_id:
            yield f"{tables.job(child.sequence)}: parent {parent.sequence} is outside the workflow"
        if not (tables.whole_log(child.sequence) and tables.whole_log(parent.sequence)):
            continue
        on_success = child.mode is DependencyMode.ON_SUCCESS
        ends = [
            row.position
            for row in tables.logs[parent.sequence]
            if row.state not in LIVE_STATES and (row.state is JobState.SUCCEEDED or not on_success)
        ]
        starts = [
            row.position for row in tables.logs[child.sequence] if row.state is JobState.SCHEDULED
        ]
        if starts and not (ends and ends[0] < starts[0]):
            yield f"{tables.job(child.sequence)} was released before {parent.sequence} ended"


def cascades_are_logged_after_their_parents(tables: Tables) -> Iterator[str]:
    """A job cancelled because of its parent has its row after the parent's."""
    by_id = {job.id: job.sequence for job in tables.jobs.values()}
    for sequence, job in tables.jobs.items():
        parent = by_id.get(job.cause_parent_id)
        if parent is None or not tables.whole_log(parent) or not tables.up_to_date(sequence):
            continue
        own_end = tables.logs[sequence][-1].position
        if not any(
            row.state is job.cause_parent_state and row.position < own_end
            for row in tables.logs[parent]
        ):
            yield f"{tables.job(sequence)} was cancelled before its parent {parent} ended"


def counters_are_exact(tables: Tables) -> Iterator[str]:
    """The ledger's sums are the rows; every job's queue is known."""
    rows = Counter((job.queue, job.state) for job in tables.jobs.values())
    for key in rows.keys() | tables.counted.keys():
        if rows[key] != tables.counted[key]:
            yield f"{key[0]} {key[1]}: {rows[key]} jobs, counted {tables.counted[key]}"
    for queue in {job.queue for job in tables.jobs.values()} - tables.queues:
        yield f"queue {queue} has jobs and no row"


def actions_are_audited(tables: Tables) -> Iterator[str]:
    """Each requeue and retry has its audit row, and each operator's cancel; a refused one none."""
    for sequence, job in tables.jobs.items():
        if tables.whole_log(sequence):
            for action, event in (("requeue", Event.REQUEUE), ("retry", Event.WORKFLOW_RETRY)):
                audited = tables.actions[action, str(job.id)]
                moves = sum(row.event is event for row in tables.logs[sequence])
                if moves != audited:
                    yield f"{tables.job(sequence)}: {moves} times {event}, {audited} audit rows"
        asked = job.cause_code == OPERATOR_CANCEL or job.cancel_requested_by is not None
        if asked and not tables.actions["cancel", str(job.id)]:
            yield f"{tables.job(sequence)} was cancelled by nobody"


CHECKS: tuple[Check, ...] = (
    the_row_is_its_last_log_row,
    log_rows_are_legal_moves,
    log_rows_follow_each_other,
    attempts_and_claims_are_counted,
    a_claim_has_one_outcome,
    states_have_their_columns,
    latches_count_open_edges,
    children_follow_their_parents,
    cascades_are_logged_after_their_parents,
    counters_are_exact,
    actions_are_audited,
)
