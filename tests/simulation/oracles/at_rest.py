"""What the tables must say when the faults are over and at the end, beside the audit's rules.

They are compared with what a witness outside the database saw: which reports were accepted, who
pressed cancel, what was enqueued and purged.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import EDGES, Edge, Event
from latchwork.store.outcomes import OutcomeKind
from latchwork.store.policies import decode_policy
from tests.audit import Tables
from tests.simulation.oracles.running import Oracles

EVENTS = {
    OutcomeKind.SUCCESS: Event.SUCCESS,
    OutcomeKind.FAILURE: Event.FAILURE,
    OutcomeKind.CANCELLED: Event.CANCELLED,
    OutcomeKind.UNROUTABLE: Event.UNROUTABLE,
}
CANCELS = (Event.OPERATOR_CANCEL, Event.CANCELLED)


def every_enqueue_is_stored(tables: Tables, seen: Oracles) -> Iterator[str]:
    """What was answered is there, until it is purged."""
    stored = {job.id for job in tables.jobs.values()}
    for gone in seen.enqueued_ids - seen.purged_ids - stored:
        yield f"job {gone} was enqueued and is gone"


def no_attempt_is_above_the_ceiling(tables: Tables, _: Oracles) -> Iterator[str]:
    """No claim began an attempt that the policy does not give."""
    for sequence, job in tables.jobs.items():
        most = decode_policy(job.retry_policy).max_attempts
        highest = max((row.attempt for row in tables.logs[sequence]), default=0)
        if highest > most:
            yield f"{tables.job(sequence)}: attempt {highest} of {most}"


def accepted_outcomes_are_what_handlers_returned(tables: Tables, seen: Oracles) -> Iterator[str]:
    """As many log rows of each kind of outcome as were accepted, and the last one's output."""
    accepted = Counter((claim[0], EVENTS[report.kind]) for claim, report in seen.accepted.items())
    for sequence, job in tables.jobs.items():
        if not tables.whole_log(sequence):
            continue
        logged = Counter(row.event for row in tables.logs[sequence])
        for event in EVENTS.values():
            if logged[event] > accepted[job.id, event]:
                yield f"{tables.job(sequence)}: {event} was logged and never accepted"
            if logged[event] < accepted[job.id, event]:
                yield f"{tables.job(sequence)}: {event} was accepted and is not logged"
        if job.state is JobState.SUCCEEDED and sequence not in tables.outputs:
            yield f"{tables.job(sequence)} lost its output"


def nothing_is_cancelled_unasked(tables: Tables, seen: Oracles) -> Iterator[str]:
    """Who is cancelled by an operator was asked to stop by one."""
    for sequence, job in tables.jobs.items():
        if job.id not in seen.cancels_tried:
            for row in tables.logs[sequence]:
                if row.event in CANCELS:
                    yield f"{tables.job(sequence)}: row {row.ordinal} is a cancel nobody pressed"


def no_cancel_is_forgotten(tables: Tables, _: Oracles) -> Iterator[str]:
    """A job that was asked to stop does not go back to the queue."""
    for sequence, job in tables.jobs.items():
        waits = job.state in (JobState.SCHEDULED, JobState.AWAITING_PARENT)
        if waits and job.cancel_requested_by is not None:
            yield f"{tables.job(sequence)} was asked to stop and waits to run again"


ORACLES: tuple[Callable[[Tables, Oracles], Iterator[str]], ...] = (
    every_enqueue_is_stored,
    no_attempt_is_above_the_ceiling,
    accepted_outcomes_are_what_handlers_returned,
    nothing_is_cancelled_unasked,
    no_cancel_is_forgotten,
)


def edges_taken(tables: Tables) -> set[str]:
    """The names of the transitions that the log shows."""
    by_move = {(one.source, one.target, event): one for one in EDGES for event in one.events}
    return {
        name_of(by_move[row.previous_state, row.state, row.event])
        for log in tables.logs.values()
        for row in log
        if (row.previous_state, row.state, row.event) in by_move
    }


def name_of(edge: Edge) -> str:
    """How the coverage report names a transition."""
    return f"edge {edge.number}: {edge.source or 'born'} -> {edge.target}"
