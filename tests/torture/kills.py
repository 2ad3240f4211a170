"""Kill -9 of a node under load, again and again, and now and then a freeze past the lease."""

import time

from tests.torture.node import NODE
from tests.torture.runs import Batch, Scene, run_batch

FREEZE_CHANCE = 0.6
FROZEN_SECONDS = (NODE["lease_seconds"] + 0.3, NODE["lease_seconds"] + 2.5)
"""Long enough that somebody else may be running the job when its first worker goes on."""


def kill_batch(database_url: str, cycles: int, seed: int) -> Batch:
    """``cycles`` kills, each of a node that has begun work and each followed by its restart."""

    def faults(scene: Scene) -> int:
        frozen: dict[int, float] = {}
        while scene.cluster.kills < cycles:
            time.sleep(scene.chance.uniform(0.05, 0.8))
            for pid in [pid for pid, until in frozen.items() if until < time.monotonic()]:
                scene.cluster.thaw(pid)
                del frozen[pid]
            begun = scene.testimony.begun_by()
            at_work = [pid for pid in scene.cluster.pids() if begun[pid] and pid not in frozen]
            if len(at_work) < 2:
                continue
            victim, other = scene.chance.sample(at_work, 2)
            scene.cluster.kill(victim)
            if not frozen and scene.chance.random() < FREEZE_CHANCE:
                scene.cluster.freeze(other)
                frozen[other] = time.monotonic() + scene.chance.uniform(*FROZEN_SECONDS)
        return scene.cluster.kills

    return run_batch(database_url, faults, seed)
