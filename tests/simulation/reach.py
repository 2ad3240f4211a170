"""What the worlds should reach: every legal transition, every answer, every situation of note.

Not here, because one connection to one SQLite database locks nobody out: reports and renewals that
are answered busy, and retried deadlocks. The boundary walk and the torture meet those.
"""

from collections import Counter

from latchwork.action_results import CancelOutcome, RequeueOutcome
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import EDGES
from latchwork.store.outcomes import AnswerStatus
from tests.simulation.oracles.at_rest import name_of

S = JobState

_ENDED = tuple(state for state in JobState if state.terminal)

SITUATIONS = (
    *(f"report {one.value}" for one in AnswerStatus if one is not AnswerStatus.BUSY),
    *(
        f"cancel: {CancelOutcome.CANCELLED.value} ({state.value})"
        for state in (S.SCHEDULED, S.AWAITING_PARENT)
    ),
    f"cancel: {CancelOutcome.REQUESTED.value} ({S.LEASED.value})",
    *(f"cancel: {CancelOutcome.REFUSED.value} ({state.value})" for state in _ENDED),
    f"cancel: {CancelOutcome.NOT_FOUND.value}",
    *(
        f"requeue: {RequeueOutcome.REQUEUED.value} ({state.value})"
        for state in (S.DEAD_LETTERED, S.QUARANTINED)
    ),
    *(
        f"requeue: {RequeueOutcome.REFUSED.value} ({state.value})"
        for state in (S.SCHEDULED, S.AWAITING_PARENT, S.LEASED, S.SUCCEEDED, S.CANCELLED)
    ),
    f"requeue: {RequeueOutcome.NOT_FOUND.value}",
    *(f"retry workflow: {what}" for what in ("retried", "refused", "unchanged", "not_found")),
    *(f"cancel workflow: {what}" for what in ("cancelled", "requested", "refused", "not_found")),
    *("pause: paused", "resume: resumed", "limit: limited", "limit: unlimited"),
    *("swept", "swept less", "lease lost", "claimed a suspect", "purged", "node stopped"),
    *("observer called", "observer called again", "enqueue: unknown parent"),
    *(f"no answer: {when}" for when in ("outage", "before the commit", "after the commit")),
    "arrived after it was given up",
)

WANTED = (*dict.fromkeys(map(name_of, EDGES)), *SITUATIONS)


def unreached(reached: Counter[str]) -> list[str]:
    """What should be reached and was not."""
    return [name for name in WANTED if not reached[name]]
