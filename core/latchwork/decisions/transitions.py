"""The state machine as one table of data (contract section 2).

SQL guards, CHECK constraints, the audit's oracle, the documentation page and the console's legend
are all made from this table. No edge exists that is not in it.
"""

from dataclasses import dataclass
from enum import StrEnum

from latchwork.decisions.states import JobState

S = JobState


class Event(StrEnum):
    """What makes a job move; each log row names the one it was written for."""

    ENQUEUE = "enqueue"
    PARENTS_SETTLED = "parents_settled"
    PARENT_FAILED = "parent_failed"
    CLAIM = "claim"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    UNROUTABLE = "unroutable"
    LEASE_EXPIRED = "lease_expired"
    OPERATOR_CANCEL = "operator_cancel"
    REQUEUE = "requeue"
    WORKFLOW_RETRY = "workflow_retry"


@dataclass(frozen=True, slots=True)
class Edge:
    """One legal transition.

    ``number`` is the row of the contract's table; ``source`` is None for a birth; ``detail`` says
    whether the log row may carry a failure detail.
    """

    number: str
    source: JobState | None
    target: JobState
    events: tuple[Event, ...]
    guard: str
    effect: str
    detail: bool = False


BORN_SCHEDULED = Edge(
    "B1", None, S.SCHEDULED, (Event.ENQUEUE,),
    "no parents, or all parents terminal and satisfied", "attempt 0; due as given",
)  # fmt: skip
BORN_AWAITING = Edge(
    "B2", None, S.AWAITING_PARENT, (Event.ENQUEUE,),
    "a parent is live and none has already failed it",
    "latch = live parents; one open edge per live parent",
)  # fmt: skip
BORN_CANCELLED = Edge(
    "B3", None, S.CANCELLED, (Event.ENQUEUE,),
    "on-success and a parent already ended otherwise", "latch 0; no open edges; cause",
)  # fmt: skip
RELEASED = Edge(
    "1", S.AWAITING_PARENT, S.SCHEDULED, (Event.PARENTS_SETTLED,),
    "latch reaches 0", "due = later of own due and now",
)  # fmt: skip
CANCELLED_WAITING = Edge(
    "2", S.AWAITING_PARENT, S.CANCELLED, (Event.PARENT_FAILED, Event.OPERATOR_CANCEL),
    "", "latch 0, edges closed, cause; cascade",
)  # fmt: skip
CLAIMED = Edge(
    "3", S.SCHEDULED, S.LEASED, (Event.CLAIM,),
    "due <= now, queue not paused, limit slot free",
    "attempt +1, claim_number +1, owner, expiry",
)  # fmt: skip
CANCELLED_SCHEDULED = Edge(
    "4", S.SCHEDULED, S.CANCELLED, (Event.OPERATOR_CANCEL,), "", "cause; cascade",
)  # fmt: skip
SUCCEEDED = Edge(
    "5", S.LEASED, S.SUCCEEDED, (Event.SUCCESS,), "fence", "output stored; children settled",
)  # fmt: skip
RETRIED = Edge(
    "6", S.LEASED, S.SCHEDULED, (Event.FAILURE,),
    "fence, a next due time", "due = that time; lease cleared", detail=True,
)  # fmt: skip
DEAD_LETTERED = Edge(
    "7", S.LEASED, S.DEAD_LETTERED, (Event.FAILURE,),
    "fence, no next due time", "cause; children settled", detail=True,
)  # fmt: skip
CANCELLED_RUNNING = Edge(
    "8", S.LEASED, S.CANCELLED, (Event.CANCELLED,), "fence", "cause; children settled",
)  # fmt: skip
QUARANTINED = Edge(
    "9", S.LEASED, S.QUARANTINED, (Event.UNROUTABLE,), "fence", "cause = why; children settled",
)  # fmt: skip
LAPSED = Edge(
    "6'", S.LEASED, S.SCHEDULED, (Event.LEASE_EXPIRED,),
    "claim_number and expiry as read, expiry <= now, attempts left",
    "due = now + backoff; attempt not raised again",
)  # fmt: skip
LAPSED_AT_CEILING = Edge(
    "7'", S.LEASED, S.DEAD_LETTERED, (Event.LEASE_EXPIRED,),
    "claim_number and expiry as read, expiry <= now, at the ceiling",
    "cause: lease lapsed, worker, expiry; children settled",
)  # fmt: skip
REQUEUED_DEAD = Edge(
    "10", S.DEAD_LETTERED, S.SCHEDULED, (Event.REQUEUE,),
    "", "attempt 0, due now; cause, terminal time cleared",
)  # fmt: skip
REQUEUED_QUARANTINED = Edge(
    "11", S.QUARANTINED, S.SCHEDULED, (Event.REQUEUE,),
    "", "attempt 0, due now; cause, terminal time cleared",
)  # fmt: skip

REVIVED = tuple(
    Edge("12", source, target, (Event.WORKFLOW_RETRY,), "no member live", "contract section 6")
    for source in (S.SUCCEEDED, S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED)
    for target in (S.SCHEDULED, S.AWAITING_PARENT)
)

EDGES: tuple[Edge, ...] = (
    BORN_SCHEDULED, BORN_AWAITING, BORN_CANCELLED, RELEASED, CANCELLED_WAITING, CLAIMED,
    CANCELLED_SCHEDULED, SUCCEEDED, RETRIED, DEAD_LETTERED, CANCELLED_RUNNING, QUARANTINED,
    LAPSED, LAPSED_AT_CEILING, REQUEUED_DEAD, REQUEUED_QUARANTINED, *REVIVED,
)  # fmt: skip

LEGAL_MOVES = frozenset((edge.source, edge.target) for edge in EDGES)


def requeue_edge(state: JobState) -> Edge | None:
    """The edge an operator's requeue takes from ``state``, or None where requeue is refused."""
    return {S.DEAD_LETTERED: REQUEUED_DEAD, S.QUARANTINED: REQUEUED_QUARANTINED}.get(state)


def cancel_edge(state: JobState) -> Edge | None:
    """The edge an immediate operator cancel takes; None for Leased (cooperative) and terminal."""
    return {S.SCHEDULED: CANCELLED_SCHEDULED, S.AWAITING_PARENT: CANCELLED_WAITING}.get(state)


def revive_edge(state: JobState, *, waits: bool) -> Edge:
    """The edge a workflow retry takes from a terminal ``state``; ``waits`` for parents or not."""
    return _REVIVED_BY_MOVE[state, S.AWAITING_PARENT if waits else S.SCHEDULED]


_REVIVED_BY_MOVE = {(edge.source, edge.target): edge for edge in REVIVED}
