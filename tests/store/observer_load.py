"""Writers whose transactions stay open and roll back, and an observer that is restarted meanwhile.

``python -m tests.store.observer_load URL --transitions 20000`` runs the whole of it.
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, select
from uuid_utils.compat import uuid7

from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.maintenance.observer_dispatcher import ObserverDispatcher
from latchwork.observers import ObserverContext, ObserverRegistry, checked_scope
from latchwork.settings import Settings
from latchwork.store.claiming import ClaimedJob, claim
from latchwork.store.database import Database
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.outcomes import OutcomeKind, Report, report_outcomes
from latchwork.store.schema import transitions
from latchwork.views import TransitionView

WRITERS = 8
ROWS_TOGETHER = 12
ROLLED_BACK_SHARE = 0.05
LEASE_SECONDS = 3.0
PATIENCE_SECONDS = 100.0

Work = Callable[[Connection], int]


class RolledBack(Exception):
    """This transaction is given up."""


@dataclass
class Load:
    """What was asked for, and what came of it."""

    database: Database
    transitions: int
    hold_seconds: float
    long_hold_seconds: float
    restarts: int
    seed: int = 0
    met: list[tuple[UUID, int]] = field(default_factory=list)
    met_while_held: int = 0
    rolled_back: int = 0
    logged: set[tuple[UUID, int]] = field(default_factory=set)
    _written: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Write, observe and restart until every committed row was met, or patience ends."""
        registry = ObserverRegistry()
        scope = checked_scope("witness", JobState, wire_name=None, queue=None, start="beginning")
        registry.add(scope, self._meet)
        threads = [threading.Thread(target=self._hold_long)]
        threads += [
            threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)
        ]
        ObserverDispatcher(self.database, registry).register()
        for thread in threads:
            thread.start()
        self._observe(registry, threads)
        for thread in threads:
            thread.join()

    def missing(self) -> set[tuple[UUID, int]]:
        """Committed rows that the observer was not called for."""
        return self.logged - set(self.met)

    def out_of_order(self) -> list[UUID]:
        """Jobs whose rows were first met in another order than that of their ordinals."""
        first: dict[UUID, list[int]] = {}
        for job_id, ordinal in dict.fromkeys(self.met):
            first.setdefault(job_id, []).append(ordinal)
        return [job_id for job_id, ordinals in first.items() if ordinals != sorted(ordinals)]

    async def _meet(self, row: TransitionView, _: ObserverContext) -> None:
        self.met.append((row.job_id, row.ordinal))

    def _observe(self, registry: ObserverRegistry, writers: list[threading.Thread]) -> None:
        """Serve the observer in one life after the other; every second one leaves its lease."""
        for life in range(self.restarts + 1):
            dispatcher = ObserverDispatcher(self.database, registry, lease_seconds=LEASE_SECONDS)
            dispatcher.start()
            target = self.transitions * (life + 1) // (self.restarts + 1)
            last = life == self.restarts
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline:
                writing = any(thread.is_alive() for thread in writers)
                if last and not writing and self._all_met():
                    break
                if not last and (self._written >= target or not writing):
                    break
                time.sleep(0.02)
            dispatcher.stop()
            if last or life % 2:
                dispatcher.join(5.0)

    def _all_met(self) -> bool:
        columns = select(transitions.c.job_id, transitions.c.ordinal)
        rows = self.database.read(lambda connection: connection.execute(columns).all())
        self.logged = {(row.job_id, row.ordinal) for row in rows}
        return not self.missing()

    def _hold_long(self) -> None:
        """One transaction that has its positions early and commits late."""
        if not self.long_hold_seconds:
            return
        before = 0

        def hold(connection: Connection) -> int:
            nonlocal before
            written = self._enqueue(connection, "held", 3)
            before = len(self.met)
            time.sleep(self.long_hold_seconds)
            self.met_while_held = len(self.met) - before
            return written

        self.database.write(hold)

    def _write(self, number: int) -> None:
        chance = random.Random(self.seed + number)  # noqa: S311 - a test's own
        queue, held = f"queue-{number}", list[ClaimedJob]()
        while self._written < self.transitions:
            if held:
                done = held[:ROWS_TOGETHER]
                if self._commit(lambda c, done=done: self._end(c, queue, done), chance):  # type: ignore[misc]
                    del held[: len(done)]
                continue
            self._commit(lambda c: self._enqueue(c, queue, ROWS_TOGETHER), chance)
            claimed: list[ClaimedJob] = []

            def take(connection: Connection, claimed: list[ClaimedJob] = claimed) -> int:
                claimed[:] = claim(
                    connection, worker_id=queue, queue=queue, limit=ROWS_TOGETHER,
                    lease_seconds=600, now=self.database.now(),
                ).jobs  # fmt: skip
                return len(claimed)

            if self._commit(take, chance):
                held += claimed

    def _commit(self, work: Work, chance: random.Random) -> bool:
        """Do ``work``, keep its transaction open for a while, commit it mostly."""
        pause, gives_up = (
            chance.uniform(0, self.hold_seconds), chance.random() < ROLLED_BACK_SHARE
        )  # fmt: skip

        def held(connection: Connection) -> int:
            written = work(connection)
            time.sleep(pause)
            if gives_up:
                raise RolledBack
            return written

        try:
            written = self.database.write(held)
        except RolledBack:
            self.rolled_back += 1
            return False
        with self._lock:
            self._written += written
        return True

    def _enqueue(self, connection: Connection, queue: str, count: int) -> int:
        now = self.database.now()
        made = [
            NewJob(
                id=uuid7(), wire_name="pack", queue=queue, payload="{}", retry=RetryPolicy(),
                due_at=now,
            )
            for _ in range(count)
        ]  # fmt: skip
        insert_jobs(connection, made, now=now)
        return count

    def _end(self, connection: Connection, worker: str, done: list[ClaimedJob]) -> int:
        now = self.database.now()
        reports = [
            Report(job.hold, OutcomeKind.FAILURE, next_due_at=now)
            if index % 3 == 0
            else Report(job.hold, OutcomeKind.SUCCESS)
            for index, job in enumerate(done)
        ]
        report_outcomes(connection, worker, reports, now=now, wait=True)
        return len(done)


def describe(load: Load, seconds: float) -> str:
    """What came of a load, in one line."""
    repeats = sum(Counter(load.met).values()) - len(set(load.met))
    return (
        f"{len(load.logged)} rows committed, {load.rolled_back} transactions rolled back, "
        f"{len(load.missing())} missing, {len(load.out_of_order())} jobs out of order, "
        f"{repeats} repeats, {load.met_while_held} met while one transaction was held, "
        f"{seconds:.1f} s"
    )


def main() -> None:
    """Run the whole of it on an empty, migrated database."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("--transitions", type=int, default=20_000)
    arguments = parser.parse_args()
    database = Database(arguments.url, Settings(pool_size=20))
    load = Load(database, arguments.transitions, 0.3, 10.0, restarts=10)
    started = time.monotonic()
    load.run()
    print(describe(load, time.monotonic() - started))
    database.dispose()
    raise SystemExit(bool(load.missing() or load.out_of_order()))


if __name__ == "__main__":
    main()
