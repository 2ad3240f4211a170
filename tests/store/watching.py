"""Observers driven by hand: one round after the other, at a time that the test says."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from latchwork.decisions.states import JobState
from latchwork.maintenance.observer_delivery import ObserverDelivery
from latchwork.maintenance.observer_lease import ObserverLease
from latchwork.observer_views import ObserverScope, ObserverView, Start
from latchwork.observers import ObserverContext, OnTransition, RegisteredObserver
from latchwork.store import observer_cursors
from latchwork.views import TransitionView
from tests.store.scene import Scene

EVERY_STATE = tuple(JobState)
LEASE_SECONDS = 30.0


@dataclass
class Watcher:
    """One dispatcher of one observer, and what the observer was called for."""

    scene: Scene
    scope: ObserverScope
    owner: str = "node-1"
    react: Callable[[TransitionView, ObserverContext], None] = lambda *_: None
    met: list[TransitionView] = field(default_factory=list)
    told: list[ObserverContext] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    call_seconds: float = 5.0

    def __post_init__(self) -> None:
        self.lease = ObserverLease(self.scope.name, self.owner, self.scene.database, LEASE_SECONDS)
        self.delivery = self.delivering(self.on_transition)

    def delivering(self, function: OnTransition) -> ObserverDelivery:
        return ObserverDelivery(
            RegisteredObserver(self.scope, function), self.lease, self.scene.database,
            self.stopping, call_seconds=self.call_seconds,
        )  # fmt: skip

    def on_transition(self, row: TransitionView, context: ObserverContext) -> None:
        self.met.append(row)
        self.told.append(context)
        self.react(row, context)

    def register(self) -> None:
        self.scene.database.write(observer_cursors.register, self.scope, now=self.scene.now)

    def catch_up(self) -> None:
        """A renewal of the lease, then rounds until there is nothing to do."""
        self.lease.renew()
        while self.delivery.run_once():
            pass

    @property
    def view(self) -> ObserverView:
        found = self.scene.monitor.observer(self.scope.name)
        assert found is not None
        return found

    def met_of(self, job_id: object) -> list[int]:
        """The ordinals it was called for, of one job, in the order of the calls."""
        return [row.ordinal for row in self.met if row.job_id == job_id]


def watch(
    scene: Scene,
    name: str = "bell",
    *states: JobState,
    start: Start = "end",
    wire_name: str | None = None,
    queue: str | None = None,
    owner: str = "node-1",
) -> Watcher:
    """A registered observer, of every state unless told."""
    scope = ObserverScope(name, states or EVERY_STATE, wire_name, queue, start)
    watcher = Watcher(scene, scope, owner)
    watcher.register()
    return watcher
