"""Who holds a lease, and whether an outcome may be applied (contract section 2, The fence)."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from latchwork.decisions.states import JobState

SUSPECT_LAPSES = 2
"""A job whose lease lapsed this often in a row may be killing its process (section 4, Poison)."""


class LeaseRow(Protocol):
    """What the fence reads of a stored job."""

    @property
    def state(self) -> JobState: ...  # noqa: D102
    @property
    def owner(self) -> str | None: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def claim_number(self) -> int: ...  # noqa: D102
    @property
    def lease_expires_at(self) -> datetime | None: ...  # noqa: D102
    @property
    def applied_claim(self) -> int | None: ...  # noqa: D102
    @property
    def applied_worker(self) -> str | None: ...  # noqa: D102


class Hold(NamedTuple):
    """One worker's hold on one claimed job: the fence it must show with every report."""

    sequence: int
    attempt: int
    claim_number: int


class Fence(StrEnum):
    """The fence's answer to a report."""

    HELD = "held"
    ALREADY_APPLIED = "already applied"
    STALE = "stale"


def check_fence(row: LeaseRow, worker_id: str, hold: Hold, now: datetime) -> Fence:
    """Whether ``worker_id`` still holds exactly this claim at ``now``.

    At the instant of expiry the lease has lapsed. A report whose answer was lost after the commit
    is recognised by claim number and worker.
    """
    if (
        row.state is JobState.LEASED
        and row.owner == worker_id
        and row.attempt == hold.attempt
        and row.claim_number == hold.claim_number
        and row.lease_expires_at is not None
        and row.lease_expires_at > now
    ):
        return Fence.HELD
    if row.applied_claim == hold.claim_number and row.applied_worker == worker_id:
        return Fence.ALREADY_APPLIED
    return Fence.STALE
