"""What the pages receive over their stream, declared page by page."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from latchwork.views import TransitionView
from latchwork_console.console import Console
from latchwork_console.rendering import Surroundings

RenderRow = Callable[[Console, Surroundings, TransitionView], str]
RenderRegions = Callable[[Console, Surroundings, str], str]


@dataclass(frozen=True, slots=True)
class LiveView:
    """One kind of live page, named in its stream's address: ``/log/stream?view=NAME&subject=...``.

    ``row`` renders a transition that matches the viewer's filter: a ``<tr>`` for the stream's
    target, or an ``<hx-partial hx-target="#...">``. It runs once per transition, for all viewers.

    ``regions`` renders everything else that changes on the page, as ``<hx-partial>`` elements. It
    runs in a thread, at most once a second for all viewers of the same ``subject`` (a job's id, or
    empty), and its answer is sent only when it differs from the one before.
    """

    row: RenderRow | None = None
    regions: RenderRegions | None = None


def subject_id(subject: str) -> UUID | None:
    """The job a stream's subject names, or None if it is no id."""
    try:
        return UUID(subject)
    except ValueError:
        return None
