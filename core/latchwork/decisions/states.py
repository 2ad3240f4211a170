"""The words of the state machine: job states, dependency modes, why a handler was told to stop."""

from enum import StrEnum


class JobState(StrEnum):
    """The seven states of a job, in life-cycle order. JSON, URLs and tables hold the values."""

    SCHEDULED = "scheduled"
    AWAITING_PARENT = "awaiting_parent"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"
    QUARANTINED = "quarantined"

    @property
    def terminal(self) -> bool:
        """Whether a job in this state has settled and moves again only by an operator action."""
        return self in TERMINAL_STATES

    @property
    def label(self) -> str:
        """The state's name in prose and on screen, such as ``Dead-Lettered``."""
        return _LABELS[self]


LIVE_STATES = frozenset({JobState.SCHEDULED, JobState.AWAITING_PARENT, JobState.LEASED})
TERMINAL_STATES = frozenset(JobState) - LIVE_STATES

_LABELS = {
    JobState.SCHEDULED: "Scheduled",
    JobState.AWAITING_PARENT: "Awaiting Parent",
    JobState.LEASED: "Leased",
    JobState.SUCCEEDED: "Succeeded",
    JobState.CANCELLED: "Cancelled",
    JobState.DEAD_LETTERED: "Dead-Lettered",
    JobState.QUARANTINED: "Quarantined",
}


class DependencyMode(StrEnum):
    """What a parent's end means for the child that waits on it (contract section 3)."""

    ON_SUCCESS = "on_success"
    ON_ANY_TERMINAL = "on_any_terminal"


class CancelReason(StrEnum):
    """Why a handler's cancellation token fired (contract section 2, Cancel)."""

    OPERATOR_CANCEL = "operator cancel"
    LEASE_LOST = "lease lost"
    SHUTDOWN = "shutdown"
    TIMEOUT = "timeout"


class HistoryPolicy(StrEnum):
    """How much the transition log keeps (contract section 5)."""

    OFF = "off"
    TRANSITIONS = "transitions"
    TRANSITIONS_AND_FAILURE_DETAIL = "transitions_and_failure_detail"
