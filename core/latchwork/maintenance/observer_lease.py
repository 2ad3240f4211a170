"""The lease of one observer, as the dispatcher that holds it knows it."""

import threading
from typing import TYPE_CHECKING

from latchwork.store import observer_leases
from latchwork.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection


class ObserverLease:
    """One observer's lease as its dispatcher knows it; renewed by another thread."""

    def __init__(self, name: str, owner: str, database: Database, lease_seconds: float) -> None:
        self.name = name
        self.owner = owner
        self._database = database
        self._lease_seconds = lease_seconds
        self._held = threading.Event()

    @property
    def held(self) -> bool:
        """Whether it was taken and not found lost since; the store has the last word."""
        return self._held.is_set()

    def take(self) -> str | None:
        """Take it if nobody has it; the token to go on from."""
        if not self._database.read(self._is_free):
            return None
        token = self._database.write(self._take)
        if token is not None:
            self._held.set()
        return token

    def renew(self) -> None:
        """Prolong it, or find it lost."""
        if self.held and not self._database.write(self._renew):
            self.lose()

    def lose(self) -> None:
        """Know it lost."""
        self._held.clear()

    def release(self) -> None:
        """Give it back."""
        self._held.clear()
        self._database.write(observer_leases.release_lease, self.name, self.owner)

    def _is_free(self, connection: "Connection") -> bool:
        now = self._database.clock.now()
        return observer_leases.lease_is_free(connection, self.name, now=now)

    def _take(self, connection: "Connection") -> str | None:
        return observer_leases.take_lease(
            connection, self.name, self.owner,
            lease_seconds=self._lease_seconds, now=self._database.clock.now(),
        )  # fmt: skip

    def _renew(self, connection: "Connection") -> bool:
        return observer_leases.renew_lease(
            connection, self.name, self.owner,
            lease_seconds=self._lease_seconds, now=self._database.clock.now(),
        )  # fmt: skip
