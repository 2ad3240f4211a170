"""What all requests of one console share."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from latchwork.errors import StoreError
from latchwork_console.graph_layout import Layouts

if TYPE_CHECKING:
    from latchwork.application import Latchwork
    from latchwork.maintenance.service import ServiceThread
    from latchwork.views import Counts
    from latchwork_console.broadcaster import Broadcaster
    from latchwork_console.rendering import Renderer


UPKEEP_SECONDS = 5.0
"""How long a console that ends waits for a step of its services."""


class Permission(StrEnum):
    """What a route asks of the person who calls it. Every route declares exactly one."""

    PUBLIC = "public"
    VIEW = "view"
    VIEW_SENSITIVE = "view_sensitive"
    """Payload, output, failure detail, cause text."""
    REQUEUE = "requeue"
    CANCEL = "cancel"
    METRICS = "metrics"
    MANAGE_QUEUES = "manage_queues"
    RETRY_WORKFLOW = "retry_workflow"
    """Retry or restart a whole workflow."""
    TRIGGER_SCHEDULE = "trigger_schedule"
    MANAGE_OBSERVERS = "manage_observers"
    """Retire an observer, replay a delivery, set how much the log keeps for them."""


Permissions = Callable[[HTTPConnection], Collection[Permission]]
"""Who may do what: given a request, the permissions its sender has."""


def local_operator(_: HTTPConnection) -> Collection[Permission]:
    """The permissions of whoever reaches a console that answers on loopback only: all of them."""
    return frozenset(Permission)


@dataclass
class Console:
    """One console: the application it shows, and what its pages share."""

    app: "Latchwork"
    renderer: "Renderer"
    actor: str
    environment: str
    permissions: Permissions
    broadcaster: "Broadcaster" = field(init=False)
    layouts: Layouts = field(default_factory=Layouts)
    _upkeep: "tuple[ServiceThread, ...]" = ()
    _counts: "tuple[float, Counts] | None" = None

    def now(self) -> datetime:
        """The store's time, by which every age on screen is told."""
        return self.app.database.clock.now()

    def start_upkeep(self) -> None:
        """See to it that operations go on and failures are sorted also where no node runs."""
        if not self._upkeep:
            self._upkeep = self.app.upkeep()
            for service in self._upkeep:
                service.start()

    def stop_upkeep(self) -> None:
        """End those services after the step they are at."""
        for service in self._upkeep:
            service.stop()
        for service in self._upkeep:
            service.join(UPKEEP_SECONDS)
        self._upkeep = ()

    def counts(self) -> "Counts | None":
        """State counts for badges, at most a second old; None while the store cannot be read."""
        if self._counts is None or time.monotonic() - self._counts[0] > 1:
            try:
                self._counts = (time.monotonic(), self.app.monitor.counts())
            except StoreError:
                return None
        return self._counts[1]


def console_of(request: HTTPConnection) -> Console:
    """The console that serves this request."""
    console: Console = request.app.state.console
    return console


def permits(request: HTTPConnection, permission: Permission) -> bool:
    """Whether the sender of this request has a permission."""
    return permission is Permission.PUBLIC or permission in console_of(request).permissions(request)
