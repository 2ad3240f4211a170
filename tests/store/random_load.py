"""Random operations on random graphs, as many threads of them as a test likes."""

import random
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from latchwork.decisions.leases import Hold
from latchwork.store.enqueueing import NewJob
from latchwork.store.outcomes import AnswerStatus, Report
from tests.store.builders import (
    CANCELLED,
    FAILURE,
    ON_ANY_TERMINAL,
    ON_SUCCESS,
    START,
    SUCCESS,
    UNROUTABLE,
    Store,
)

QUEUES = ("a", "b", "c")


@dataclass
class Load:
    """What the threads share: the jobs so far, and a time that each operation moves on.

    ``ids`` are the jobs whose enqueue was answered.
    """

    store: Store
    ids: list[UUID] = field(default_factory=list)
    held: list[tuple[str, Hold]] = field(default_factory=list)
    ticks: Any = field(default_factory=count)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> datetime:
        return START + timedelta(seconds=next(self.ticks) / 4)

    def run(self, seed: int, operations_each: int) -> None:
        """So many operations, chosen by ``seed``, under the name of a worker of its own."""
        chance = random.Random(seed)  # noqa: S311 - a seeded load can be run again
        mine = Store(self.store.database)
        worker = f"node-{seed}"
        operations = (self.enqueue, self.claim, self.finish, self.finish, self.operate, self.beat)
        for number in range(operations_each):
            mine.now = self.now()
            operation = self.expire if number % 25 == 24 else chance.choice(operations)
            operation(mine, chance, worker)

    def some(self, chance: random.Random, most: int) -> list[UUID]:
        recent = self.ids[-60:]
        return chance.sample(recent, min(len(recent), chance.randint(0, most)))

    def enqueue(self, mine: Store, chance: random.Random, _worker: str) -> None:
        graph: list[NewJob] = []
        for _ in range(chance.randint(1, 4)):
            parents = [*self.some(chance, 3), *(job.id for job in graph if chance.random() < 0.5)]
            mode = chance.choice((ON_SUCCESS, ON_SUCCESS, ON_ANY_TERMINAL))
            graph.append(mine.new_job(*parents, mode=mode, queue=chance.choice(QUEUES)))
        self.ids += mine.enqueue_all(graph)

    def claim(self, mine: Store, chance: random.Random, worker: str) -> None:
        for job in mine.claim(chance.choice(QUEUES), limit=4, worker=worker):
            self.held.append((worker, job.hold))

    def taken(self, chance: random.Random, most: int) -> tuple[str, list[Hold]]:
        """Some holds of one worker, taken out of those that are left to report."""
        with self.lock:
            if not self.held:
                return "", []
            worker = chance.choice(self.held)[0]
            own = [entry for entry in self.held if entry[0] == worker][:most]
            self.held = [entry for entry in self.held if entry not in own]
        return worker, [hold for _, hold in own]

    def finish(self, mine: Store, chance: random.Random, worker: str) -> None:
        worker, holds = self.taken(chance, 5)
        kinds = (SUCCESS, SUCCESS, FAILURE, UNROUTABLE)
        reports = [
            Report(
                renewal.hold,
                CANCELLED if renewal.cancel_requested else chance.choice(kinds),
                next_due_at=chance.choice((None, mine.now)),
                output="1",
            )
            for renewal in mine.renew(*holds, worker=worker)
        ]
        answers = mine.report(*reports, worker=worker)
        for report, answer in zip(reports, answers, strict=True):
            if answer.status is AnswerStatus.BUSY:
                assert mine.report(report, worker=worker, wait=True)[0].status != "busy"

    def operate(self, mine: Store, chance: random.Random, _worker: str) -> None:
        for job_id in self.some(chance, 2):
            chance.choice((mine.cancel, mine.requeue))(job_id)

    def beat(self, mine: Store, chance: random.Random, worker: str) -> None:
        with self.lock:
            holds = [hold for owner, hold in self.held if owner == worker]
        mine.renew(*holds[: chance.randint(0, 10)], worker=worker)

    def expire(self, mine: Store, chance: random.Random, _worker: str) -> None:
        mine.sweep(chance.choice((None, mine.now)))
