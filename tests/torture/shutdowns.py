"""SIGTERM at random moments: a node drains in time and burns no attempt that ends within grace."""

import time
from collections import Counter

from sqlalchemy import select

from latchwork.decisions.node import INTERRUPT_SECONDS
from latchwork.decisions.transitions import Event
from latchwork.store import schema
from tests.torture.runs import Batch, Scene, run_batch

GRACE_SECONDS = 3
LEASE_SECONDS = 12
"""Long enough that no lease lapses by itself, however busy the machine."""

EXIT_SECONDS = GRACE_SECONDS + INTERRUPT_SECONDS + 2
"""What the contract allows, and a little for a process to end on a busy machine."""

STUBBORN_CHANCE = 0.2
STUBBORN = "stubborn"


def shutdown_batch(database_url: str, count: int, seed: int) -> Batch:
    """``count`` nodes told to stop at random moments of their life, each replaced by another."""

    def faults(scene: Scene) -> int:
        for _ in range(count):
            if scene.chance.random() < STUBBORN_CHANCE:
                stubborn = scene.load.app.job_types[STUBBORN].bind(seconds=2 * GRACE_SECONDS)
                scene.load.enqueue_surely(stubborn, "a")
            time.sleep(scene.chance.uniform(0.0, 0.7))
            pid = scene.chance.choice(scene.cluster.pids())
            code, seconds = scene.cluster.terminate(pid)
            if code != 0 or seconds > EXIT_SECONDS:
                scene.batch.findings.append(f"told to stop: exit code {code} after {seconds:.1f} s")
        return count

    def burned(scene: Scene) -> list[str]:
        log = schema.transitions
        lapsed = select(log.c.wire_name).where(log.c.event == Event.LEASE_EXPIRED)
        names = scene.database.read(lambda connection: connection.scalars(lapsed).all())
        counted = Counter(name for name in names if name != STUBBORN)
        return [f"{number} attempts of {name} were burned" for name, number in counted.items()]

    return run_batch(
        database_url, faults, seed, oracle=burned,
        grace_seconds=GRACE_SECONDS, lease_seconds=LEASE_SECONDS,
    )  # fmt: skip
