"""Over time a node's slots follow its order or its weights, whatever its claims take."""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest

from latchwork.decisions.leases import Hold
from latchwork.decisions.node import Node, NodePlan
from latchwork.decisions.node_messages import (
    Claim,
    Claimed,
    Ended,
    Event,
    Forget,
    Reported,
    ReportOutcomes,
    Run,
    WakeAt,
    Woke,
)

POLL_SECONDS = 1.0
STORE_SECONDS = 0.003

At = Callable[[float], Event]


@dataclass
class Simulation:
    """A node over virtual time; ``due`` says how many jobs a queue gives out of those asked for."""

    node: Node
    job_seconds: float
    due: Callable[[str, int, float], int] = lambda _queue, limit, _now: limit
    chance: Random = field(default_factory=lambda: Random(7))  # noqa: S311
    started: Counter[str] = field(default_factory=Counter)
    busy_seconds: float = 0.0
    _ahead: list[tuple[float, int, At]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _claimed_at: dict[Hold, float] = field(default_factory=dict)

    def run(self, seconds: float) -> "Simulation":
        now = 0.0
        self._ahead = [(0.0, next(self._numbers), Woke)]
        while self._ahead and now < seconds:
            now, _, event = heapq.heappop(self._ahead)
            for command in self.node.step(event(now)):
                self._carry_out(command, now)
        return self

    def _after(self, now: float, seconds: float, event: At) -> None:
        at = now + seconds * self.chance.uniform(0.5, 1.5)
        heapq.heappush(self._ahead, (at, next(self._numbers), event))

    def _carry_out(self, command: object, now: float) -> None:
        match command:
            case Claim(queue, limit):
                given = self.due(queue, limit, now)
                holds = tuple(Hold(next(self._numbers), 1, 1) for _ in range(given))
                self.started[queue] += given
                self._after(now, STORE_SECONDS, lambda at: Claimed(at, queue, holds))
            case Run(holds):
                for hold in holds:
                    self._after(now, self.job_seconds, self._end(hold))
            case ReportOutcomes(holds):
                self._after(now, STORE_SECONDS, lambda at: Reported(at, tuple(holds), ()))
            case WakeAt(at):
                heapq.heappush(self._ahead, (max(at, now), next(self._numbers), Woke))
            case Forget():
                pass
            case _:
                raise AssertionError(command)

    def _end(self, hold: Hold) -> At:
        def ended(at: float) -> Event:
            self.busy_seconds += self.job_seconds
            return Ended(at, (hold,), ())

        return ended


def node(slots: int, weights: Mapping[str, int] | None, *order: str) -> Node:
    return Node(NodePlan(order or tuple(weights or ()), slots, POLL_SECONDS, 30.0, weights))


@pytest.mark.parametrize("slots", [1, 4, 20])
@pytest.mark.parametrize("job_seconds", [0.001, 0.01, 0.2])
@pytest.mark.parametrize("weights", [{"a": 3, "b": 1}, {"a": 5, "b": 1, "c": 1}])
def test_shares_follow_the_weights_within_a_tenth(
    slots: int, job_seconds: float, weights: dict[str, int]
) -> None:
    seconds = 400 * max(job_seconds, STORE_SECONDS) / slots + 5
    started = Simulation(node(slots, weights), job_seconds).run(seconds).started
    for queue, weight in weights.items():
        fair = started.total() * weight / sum(weights.values())
        assert abs(started[queue] - fair) <= fair / 10 + slots


def test_the_first_in_order_takes_every_slot_while_it_has_due_work() -> None:
    started = Simulation(node(4, None, "high", "low"), 0.02).run(20).started
    assert started["low"] == 0
    assert started["high"] > 100


@pytest.mark.parametrize("weights", [None, {"full": 100, "other": 1}])
def test_no_slot_is_idle_because_another_queue_is_paused_or_full(
    weights: dict[str, int] | None,
) -> None:
    """The queue that comes first gives nothing; the other one has as much as is asked for."""

    def due(queue: str, limit: int, _now: float) -> int:
        return 0 if queue == "full" else limit

    simulation = Simulation(node(8, weights, "full", "other"), 0.2, due).run(40)
    assert simulation.started["full"] == 0
    assert simulation.busy_seconds > 0.95 * 40 * 8


def test_a_queue_that_comes_back_gets_no_more_than_its_share_for_the_time_it_was_empty() -> None:
    def due(queue: str, limit: int, now: float) -> int:
        return 0 if queue == "b" and now < 20 else limit

    simulation = Simulation(node(4, {"a": 1, "b": 1}), 0.02, due).run(20)
    at_20 = Counter(simulation.started)
    assert at_20["b"] == 0
    simulation = Simulation(node(4, {"a": 1, "b": 1}), 0.02, due).run(24)
    later = simulation.started - at_20
    assert abs(later["a"] - later["b"]) < 0.4 * later.total()
