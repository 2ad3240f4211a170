"""What acting on a queue would do and did: pause, resume, limit."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from latchwork.views import BoundedCount


class QueueOutcome(StrEnum):
    """What became of an action on a queue; UNCHANGED when it was so already."""

    PAUSED = "paused"
    RESUMED = "resumed"
    LIMITED = "limited"
    UNLIMITED = "unlimited"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class QueueResult:
    """The answer to an action on a queue, and its gates as they stand since."""

    outcome: QueueOutcome
    queue: str
    paused_at: datetime | None
    paused_by: str | None
    concurrency_limit: int | None


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """A job that runs, and so holds a slot of its queue's limit."""

    id: UUID
    wire_name: str
    owner: str


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """What an action on a queue would do, before it is done.

    ``allowed`` is False when it would change nothing. ``due`` jobs wait for a slot, ``leased`` ones
    run and go on running whatever is done; ``holders`` names the first of those.
    """

    queue: str
    allowed: bool
    reason: str
    due: BoundedCount
    leased: BoundedCount
    holders: tuple[SlotHolder, ...]
    served_by: tuple[str, ...]
