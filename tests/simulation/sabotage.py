"""Bugs planted on purpose: an instrument that does not find them has a hole.

``python -m tests.simulation.sabotage`` plants each and says after how many worlds it was found.
Races that only PostgreSQL's concurrency can show (a parent read before it is locked, a latch closed
in one statement) are planted in the tests of the boundary walk instead.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sqlalchemy import delete, false, literal

from latchwork.clock import SystemClock
from latchwork.decisions import dependencies, leases
from latchwork.decisions.leases import Fence
from latchwork.decisions.retries import RetryPolicy, delay_seconds
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import Event
from latchwork.store import (
    claiming,
    deliveries,
    enqueueing,
    expiry,
    heartbeats,
    latches,
    log_writing,
    moves,
    outcomes,
    purging,
    queue_gates,
    schema,
)
from tests.simulation import node as virtual
from tests.simulation.plan import draw
from tests.simulation.running import run

MOST_SEEDS = 500
MOST_SECONDS = 60.0
ENOUGH_SEEDS = 200
"""A slow machine still gives a bug this many worlds to be found in."""


@dataclass(frozen=True)
class Bug:
    """A planted bug; ``planted`` is a context in which it is there."""

    name: str
    sentence: str
    planted: Callable[[], Any]


def found_after(bug: Bug) -> tuple[int, str]:
    """How many worlds it took to find the bug, 0 if it was not found, and what was found."""
    until = time.monotonic() + MOST_SECONDS
    with bug.planted():
        for seed in range(MOST_SEEDS):
            if findings := run(draw(seed)).findings:
                return seed + 1, findings[0]
            if seed > ENOUGH_SEEDS and time.monotonic() > until:
                break
    return 0, ""


BUGS: list[Bug] = []


def bug(sentence: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a planted bug, named after its function."""

    def register(planted: Callable[[], Any]) -> Callable[[], Any]:
        BUGS.append(Bug(planted.__name__.replace("_", " "), sentence, planted))
        return planted

    return register


def _fence(held: Callable[[Any, str, Any, Any], bool]) -> Any:
    def check(row: Any, worker_id: str, hold: Any, now: Any) -> Fence:
        if row.state is JobState.LEASED and held(row, worker_id, hold, now):
            return Fence.HELD
        return leases.check_fence(row, worker_id, hold, now)

    return patch.object(outcomes, "check_fence", check)


@bug("an outcome of anybody is accepted while the job is Leased")
def no_fence() -> Any:
    return _fence(lambda *_: True)


@bug("an outcome is accepted from the right worker, whichever claim it was")
def fence_by_worker_only() -> Any:
    return _fence(
        lambda row, worker_id, _, now: row.owner == worker_id and row.lease_expires_at > now
    )


@bug("an outcome is accepted by worker and attempt, without the claim number")
def fence_without_claim_number() -> Any:
    return _fence(
        lambda row, worker_id, hold, now: (
            (row.owner, row.attempt) == (worker_id, hold.attempt) and row.lease_expires_at > now
        )
    )


@bug("an outcome is accepted at and after the instant at which its lease ends")
def outcome_after_the_expiry() -> Any:
    return _fence(
        lambda row, worker_id, hold, _: (
            (row.owner, row.attempt, row.claim_number)
            == (worker_id, hold.attempt, hold.claim_number)
        )
    )


@bug("the sweep writes to the jobs it read, whatever became of them since")
def expiry_by_id_only() -> Any:
    return patch.object(expiry, "_still_lapsed", lambda job, *_: job.state is JobState.LEASED)


@bug("an edge that closes is counted twice")
def double_count_down() -> Any:
    def settle(ended: Any, edges: Any) -> Any:
        settlement = dependencies.settle(ended, edges)
        doubled = {child: 2 * count for child, count in settlement.counted_down.items()}
        return replace(settlement, counted_down=doubled)

    return patch.object(latches, "settle", settle)


@bug("a cascade cancels the children and stops there")
def cascade_of_depth_one() -> Any:
    def settle(ended: Any, edges: Any) -> Any:
        settlement = dependencies.settle(ended, edges)
        direct = {n: by for n, by in settlement.cancelled.items() if by.parent in ended}
        return replace(settlement, cancelled=direct)

    return patch.object(latches, "settle", settle)


@bug("of a child's edges that end together only one is closed")
def cascade_that_skips_a_diamond() -> Any:
    def settle(ended: Any, edges: Any) -> Any:
        settlement = dependencies.settle(ended, edges)
        first = {edge.child: edge for edge in reversed(settlement.closed)}
        return replace(settlement, closed=tuple(first.values()))

    return patch.object(latches, "settle", settle)


@bug("a child that runs after any end is cancelled by a failed parent")
def any_terminal_child_cancelled() -> Any:
    def settle(ended: Any, edges: Any) -> Any:
        strict = [edge._replace(mode=DependencyMode.ON_SUCCESS) for edge in edges]
        return dependencies.settle(ended, strict)

    return patch.object(latches, "settle", settle)


@bug("a lapsed lease moves its job without a log row")
def no_log_row_on_expiry() -> Any:
    append, log = log_writing.append, schema.transitions

    def forgetful(connection: Any, rows: Any, *others: Any) -> int:
        met = append(connection, rows, *others)
        for row in rows:
            if row.event is Event.LEASE_EXPIRED:
                of_row = (log.c.job_sequence == row.job_sequence) & (log.c.ordinal == row.ordinal)
                connection.execute(delete(log).where(of_row))
        return met

    return patch.object(log_writing, "append", forgetful)


@bug("a cancel that was asked for is forgotten when the lease lapses or the attempt fails")
def cancel_forgotten() -> Any:
    both = ExitStack()
    for module in (outcomes, expiry):
        both.enter_context(patch.object(module, "pending_cancel", lambda *_: []))
    return both


@contextmanager
def _assignments(change: Callable[[Any, dict[str, Any]], None]) -> Iterator[None]:
    """Change what an edge writes; statements are made once, so they are made anew."""
    original = moves._assignments

    def changed(edge: Any, row: Any) -> dict[str, Any]:
        values = original(edge, row)
        change(edge, values)
        return values

    moves._update_statement.cache_clear()
    try:
        with patch.object(moves, "_assignments", changed):
            yield
    finally:
        moves._update_statement.cache_clear()


@bug("requeue and retry keep the attempt of the life before")
def requeue_keeps_the_attempt() -> Any:
    return _assignments(lambda _edge, values: values.pop("attempt", None))


@bug("a requeued job forgets that its outcomes were ever numbered")
def ordinals_reused() -> Any:
    return _assignments(lambda _edge, values: values.pop("next_ordinal", None))


@bug("a cancelled job does not say why")
def cause_missing() -> Any:
    def forget(edge: Any, values: dict[str, Any]) -> None:
        if edge.target is JobState.CANCELLED:
            values.pop("cause_code", None)

    return _assignments(forget)


@bug("an enqueue does not see that a parent has failed already")
def birth_after_a_failed_parent() -> Any:
    return patch.object(
        enqueueing, "birth", lambda parents, _: _birth(parents, DependencyMode.ON_ANY_TERMINAL)
    )


_birth = dependencies.birth


@contextmanager
def _gate(name: str, answer: Any) -> Iterator[None]:
    claiming._look_statement.cache_clear()
    try:
        with patch.object(queue_gates, name, lambda: answer):
            yield
    finally:
        claiming._look_statement.cache_clear()


@bug("claims do not look whether the queue is paused")
def claim_ignores_the_pause() -> Any:
    return _gate("_is_paused", false())


@bug("claims do not look at the queue's limit")
def claim_ignores_the_limit() -> Any:
    return _gate("_taken", literal(-(10**6)))


@bug("the ledger is not told that a job was claimed")
def ledger_row_left_out() -> Any:
    append = log_writing.append

    def forgetful(connection: Any, rows: Any, passages: Any, *others: Any) -> int:
        told = [
            (*one[:3], one[2], *one[4:]) if one[3] is JobState.LEASED else one for one in passages
        ]
        return append(connection, rows, told, *others)

    return patch.object(log_writing, "append", forgetful)


@bug("a lease that has lapsed can still be renewed")
def renewal_of_a_lapsed_lease() -> Any:
    renew = heartbeats.renew

    def late(connection: Any, worker: Any, holds: Any, *, lease_seconds: Any, now: Any) -> Any:
        before = now - timedelta(seconds=lease_seconds)
        return renew(connection, worker, holds, lease_seconds=2 * lease_seconds, now=before)

    return patch.object(heartbeats, "renew", late)


@bug("anybody may renew or release a lease")
def renewal_by_anybody() -> Any:
    return patch.object(heartbeats, "_holds", lambda row, *_: row.state is JobState.LEASED)


@bug("heartbeats stop while a handler runs, as a task on its event loop would")
def heartbeat_in_the_event_loop() -> Any:
    beat = virtual.VirtualNode._beat

    def blocked(self: Any) -> None:
        if self._attempts:
            self.later(0.1, self._beat)
        else:
            beat(self)

    return patch.object(virtual.VirtualNode, "_beat", blocked)


@bug("an attempt at the ceiling is tried again")
def no_ceiling() -> Any:
    def always(policy: RetryPolicy, attempt: int, now: Any, *, chance: float = 0.0) -> Any:
        return now + timedelta(seconds=delay_seconds(policy, attempt, chance))

    return patch.object(virtual, "next_due", always)


@bug("the purge takes parents that stored children still need")
def purge_of_a_needed_parent() -> Any:
    return patch.object(purging, "may_go", lambda groups, *_: list(groups))


@bug("an observer moves on past a row that it did not keep")
def observer_passes_a_row() -> Any:
    add = deliveries.add

    def all_but_the_last(connection: Any, observer: str, rows: Any, *, now: Any) -> None:
        add(connection, observer, rows[:-1], now=now)

    return patch.object(deliveries, "add", all_but_the_last)


@bug("a delivery in back-off does not hold back the later rows of its job")
def observer_out_of_order() -> Any:
    nothing = SimpleNamespace(execute=lambda *_: None)
    return patch.object(deliveries, "_put_off_statement", lambda *_: nothing)


@bug("a node believes its wall clock between two measurements of the database's")
def wall_clock_believed() -> Any:
    return patch.object(SystemClock, "now", lambda self: self._wall() + self.offset)


def main() -> int:
    """Plant each bug; 1 if one was not found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.sabotage", description=__doc__
    )
    parser.add_argument("--only", default="", help="bugs whose name holds this")
    chosen = parser.parse_args()
    missed = 0
    for one in BUGS:
        if chosen.only in one.name:
            began = time.monotonic()
            worlds, finding = found_after(one)
            missed += not worlds
            seconds = time.monotonic() - began
            found = f"after {worlds} worlds: {finding[:90]}" if worlds else "NOT FOUND"
            print(f"{one.name:30} {seconds:5.1f} s  {found}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
