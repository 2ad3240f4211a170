"""A virtual dispatcher: one observer's lease, reading and calls, driven over virtual time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from latchwork.decisions.observers import next_try
from latchwork.decisions.states import JobState
from latchwork.observer_views import ObserverScope
from latchwork.store import deliveries, observer_cursors, observer_leases
from latchwork.store.deliveries import Delivery, Failure, Settlement, Started
from latchwork.store.log_place import Place
from latchwork.store.transition_log import Reading, read_batch

if TYPE_CHECKING:
    from tests.simulation.node import VirtualNode

SCOPE = ObserverScope("witness", tuple(JobState), start="beginning")
LEASE_SECONDS = 4.0
ROUND_SECONDS = 1.5
CALL_SECONDS = 0.02
ROWS, CALLS = 100, 40
FAILING = 0.1


class VirtualDispatcher:
    """Serves the observer while its node holds the lease; ends with its node."""

    def __init__(self, node: "VirtualNode") -> None:
        self._node = node
        self._chance = node.world.chance(f"observer of {node.worker_id}")
        self._reading: Reading | None = None
        self._unsettled: Settlement | None = None
        self._waiting = False
        node.world.database.write(observer_cursors.register, SCOPE, now=node.now())
        node.later(self._chance.uniform(0, ROUND_SECONDS), self._round)

    def _round(self) -> None:
        self._node.later(ROUND_SECONDS, self._round)
        if self._waiting:
            return
        self._waiting = True
        if self._reading is None:
            self._node.in_store(self._take, self._taken)
        elif self._unsettled is not None:
            self._settle(self._unsettled)
        else:
            reading = self._reading
            self._node.in_store(lambda c: self._read(c, reading), self._started)

    def _lost(self) -> None:
        self._reading, self._unsettled, self._waiting = None, None, False

    def _take(self, connection: Connection) -> str | None:
        return observer_leases.take_lease(
            connection, SCOPE.name, self._node.worker_id,
            lease_seconds=LEASE_SECONDS, now=self._node.now(),
        )  # fmt: skip

    def _taken(self, token: str | Exception | None) -> None:
        self._waiting = False
        if isinstance(token, str):
            self._reading = Reading.at(Place.parse(token))

    def _read(self, connection: Connection, reading: Reading) -> tuple[Reading, Started] | None:
        owner, now = self._node.worker_id, self._node.now()
        if not observer_leases.renew_lease(
            connection, SCOPE.name, owner, lease_seconds=LEASE_SECONDS, now=now
        ):
            return None
        batch = read_batch(connection, reading, limit=ROWS)
        observer_cursors.advance(connection, SCOPE.name, owner, batch, batch.reading.place, now=now)
        started = deliveries.start(connection, SCOPE.name, owner, limit=CALLS, now=now)
        return None if started is None else (batch.reading, started)

    def _started(self, answer: tuple[Reading, Started] | Exception | None) -> None:
        if answer is None:
            self._lost()
        elif isinstance(answer, Exception):
            self._waiting = False
        else:
            self._reading, started = answer
            self._call(started.deliveries, Settlement(), frozenset())

    def _call(self, left: Sequence[Delivery], so_far: Settlement, failed: frozenset[int]) -> None:
        """Call for the first that is left, then for the others, each a moment later."""
        if not left:
            self._settle(so_far)
            return
        one, *rest = left
        delivered, failures, not_called = so_far.delivered, so_far.failed, so_far.not_called
        if one.job_sequence in failed:
            not_called += (one,)
        else:
            succeeds = self._node.world.healed or self._chance.random() >= FAILING
            self._node.world.observed.called(one.row, succeeds=succeeds)
            if succeeds:
                delivered += (one,)
            else:
                again = next_try(one.failures + 1, self._node.now())
                failures += (Failure(one, "Boom", again),)
                failed |= {one.job_sequence}
        settlement = Settlement(delivered, failures, not_called)
        self._node.later(CALL_SECONDS, lambda: self._call(rest, settlement, failed))

    def _settle(self, settlement: Settlement) -> None:
        self._unsettled = settlement

        def settle(connection: Connection) -> bool:
            return deliveries.settle(
                connection, SCOPE.name, self._node.worker_id, settlement, now=self._node.now()
            )

        def then(settled: bool | Exception) -> None:
            self._waiting = False
            if settled is False:
                self._lost()
            elif settled is True:
                self._unsettled = None

        self._node.in_store(settle, then)
