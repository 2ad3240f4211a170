"""What the page of one queue shows, and what may be done about it."""

from dataclasses import dataclass

from latchwork.queue_views import QueuePreview
from latchwork_console.contexts import QueueRow


@dataclass(frozen=True, slots=True)
class QueueContext:
    """One queue: its figures if it has any yet, who holds its slots, its two gates."""

    queue_name: str
    row: QueueRow | None
    paused: bool
    gate: QueuePreview
    """What a pause would do, or a resume where it is paused."""
    limit: int | None
    wanted: int | None
    """The limit that is being weighed; None with ``limit_preview`` set is to lift it."""
    limit_preview: QueuePreview | None
    stream_token: str
