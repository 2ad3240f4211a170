"""What a worker node is told (events) and what it orders (commands): values, nothing else.

Every event carries ``at``: seconds of a monotonic clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import CancelReason


@dataclass(frozen=True, slots=True)
class Woke:
    """Time has passed: the node has started, or the moment of a WakeAt has come."""

    at: float


@dataclass(frozen=True, slots=True)
class Hinted:
    """Work may be due in ``queue``, or in any queue if None. A hint carries no correctness."""

    at: float
    queue: str | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A Claim was answered; ``suspects`` are those of ``holds`` whose lease lapsed repeatedly.

    ``next_due_at``: when work of this queue becomes due, if the answer was short and it is known.
    """

    at: float
    queue: str
    holds: Sequence[Hold]
    suspects: Sequence[Hold] = ()
    next_due_at: float | None = None


@dataclass(frozen=True, slots=True)
class ClaimFailed:
    """The store did not answer a Claim, or refused it."""

    at: float
    queue: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Handlers have ended: ``outcomes`` are to be reported, shutdown stopped the ``cut_off``."""

    at: float
    outcomes: Sequence[Hold]
    cut_off: Sequence[Hold] = ()


@dataclass(frozen=True, slots=True)
class Reported:
    """A ReportOutcomes was answered: ``settled`` are done with, ``busy`` are locked by others."""

    at: float
    settled: Sequence[Hold]
    busy: Sequence[Hold] = ()


@dataclass(frozen=True, slots=True)
class ReportFailed:
    """The answer to a ReportOutcomes was lost, or never came.

    ``refused``: the database is there but refuses what it was given, so that waiting will not help.
    """

    at: float
    holds: Sequence[Hold]
    refused: bool


@dataclass(frozen=True, slots=True)
class LeasesLost:
    """A heartbeat found these leases lost, or they lapsed before one got through."""

    at: float
    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A heartbeat brought an operator's cancel for these jobs."""

    at: float
    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The node is to drain and stop; asked twice, it does not wait for its jobs any longer."""

    at: float


Event = (
    Woke | Hinted | Claimed | ClaimFailed | Ended | Reported | ReportFailed | LeasesLost
    | CancelAsked | StopAsked
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim up to ``limit`` due jobs of ``queue``; at most one suspect, or none."""

    queue: str
    limit: int
    allow_suspect: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Start the handlers of these jobs."""

    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class FireTokens:
    """Ask these handlers to stop."""

    holds: Sequence[Hold]
    reason: CancelReason


@dataclass(frozen=True, slots=True)
class ReportOutcomes:
    """Report these outcomes, in one batch."""

    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing is left to do for these: stop renewing their leases."""

    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class Release:
    """Let the leases of these expire now: nothing of ours runs for them any more."""

    holds: Sequence[Hold]


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send Woke at this time, instead of any earlier WakeAt."""

    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    """The node has stopped; the handlers of ``running`` have not ended."""

    running: Sequence[Hold]


Command = Claim | Run | FireTokens | ReportOutcomes | Forget | Release | WakeAt | Stop
