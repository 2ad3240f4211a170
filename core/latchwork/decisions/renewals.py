"""Which leases a node renews when, and which it must take for lost (contract section 4).

Driven by the heartbeat's own thread, so that a handler which blocks the event loop loses nobody's
lease. Pure, like the node: times come in as arguments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from latchwork.decisions.leases import Hold

RETRY_SECONDS = 1.0
"""How soon a renewal is tried again when the row was busy or the store did not answer."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What to do now: give up the ``lapsed``, renew the ``due`` ones.

    ``regular`` beats also say that the node is alive.
    """

    lapsed: Sequence[Hold]
    due: Sequence[Hold]
    regular: bool


class Renewals:
    """The leases a node holds: when each runs out and when each is renewed next."""

    def __init__(self, heartbeat_seconds: float, at: float) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._expires_at: dict[Hold, datetime] = {}
        # Only holds whose last renewal did not succeed: all others share the regular beat.
        self._unrenewed: set[Hold] = set()
        self._next_beat = at + heartbeat_seconds
        self._next_retry = 0.0

    @property
    def held(self) -> int:
        """How many leases are held."""
        return len(self._expires_at)

    def hold(self, holds: Iterable[Hold], expires_at: datetime) -> None:
        """These jobs were claimed; their leases run until ``expires_at``."""
        self._expires_at.update(dict.fromkeys(holds, expires_at))

    def forget(self, holds: Iterable[Hold]) -> None:
        """These leases are no longer of interest."""
        for one in holds:
            self._expires_at.pop(one, None)
            self._unrenewed.discard(one)

    def beat(self, now: datetime, at: float) -> Beat:
        """What the moment asks for: ``now`` on the store's clock, ``at`` on the monotonic one."""
        lapsed = [one for one, expires_at in self._expires_at.items() if expires_at <= now]
        self.forget(lapsed)
        due: Sequence[Hold] = ()
        regular = at >= self._next_beat
        if regular:
            self._next_beat = at + self._heartbeat_seconds
            due = tuple(self._expires_at)
        elif at >= self._next_retry:
            due = tuple(self._unrenewed)
        self._unrenewed.difference_update(due)
        return Beat(lapsed, due, regular)

    def renewed(self, holds: Iterable[Hold], expires_at: datetime) -> None:
        """The store renewed these leases until ``expires_at``."""
        for one in holds:
            if one in self._expires_at:
                self._expires_at[one] = expires_at

    def not_renewed(self, holds: Iterable[Hold], at: float) -> None:
        """The rows of these were busy, or the store did not answer: try again soon."""
        self._unrenewed.update(one for one in holds if one in self._expires_at)
        self._next_retry = at + RETRY_SECONDS

    def wait_seconds(self, now: datetime, at: float) -> float:
        """How long nothing needs to be done."""
        moments = [self._next_beat - at]
        if self._unrenewed:
            moments.append(self._next_retry - at)
            first = min(self._expires_at[one] for one in self._unrenewed)
            moments.append((first - now).total_seconds())
        return max(0.0, min(moments))
