"""One batch of faults under load, healed and judged: what every kind of run is made of."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from latchwork.settings import Settings
from latchwork.store.database import Database
from tests.postgres_server import PostgresInstance, postgres_database
from tests.torture.cluster import Cluster
from tests.torture.load import Load
from tests.torture.oracles import drain, judge, wait_for_observer
from tests.torture.witness import Testimony

NODES = 4
PATIENCE_SECONDS = 30.0


@dataclass
class Batch:
    """What one batch did and what was wrong with it."""

    faults: int = 0
    jobs: int = 0
    attempts: int = 0
    freezes: int = 0
    seconds: float = 0.0
    hits: dict[str, int] = field(default_factory=dict)
    """How often each operation was struck, where faults are aimed."""
    findings: list[str] = field(default_factory=list)


@dataclass
class Scene:
    """What a fault may touch: the nodes, the load on them, and the store as the judge reads it."""

    cluster: Cluster
    load: Load
    database: Database
    testimony: Testimony
    chance: random.Random
    batch: Batch

    def wait_until(self, condition: Callable[[], bool], what: str) -> bool:
        """Wait for something that must happen; a finding if it does not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                self.batch.findings.append(f"in {PATIENCE_SECONDS:.0f} s not {what}")
                return False
            time.sleep(0.02)
        return True

    def working(self) -> bool:
        """Wait until every node has begun an attempt."""

        def all_begun() -> bool:
            begun = self.testimony.begun_by()
            return all(begun[pid] for pid in self.cluster.pids())

        return self.wait_until(all_begun, "every node at work")


Faults = Callable[[Scene], int]
"""Brings the faults of one batch about; returns how many there were."""


Oracle = Callable[[Scene], list[str]]


def run_batch(
    database_url: str,
    faults: Faults,
    seed: int,
    *,
    oracle: Oracle | None = None,
    nodes_url: str | None = None,
    **options: Any,
) -> Batch:
    """Load, faults, healing, drain and judgement on an empty database.

    ``oracle`` judges what these faults in particular must not do. ``nodes_url`` is how nodes and
    callers reach the database, if not as the judge does; ``options`` are the nodes'.
    """
    began_at = time.monotonic()
    batch = Batch()
    folder = Path(tempfile.mkdtemp(prefix="latchwork-torture-"))
    database = Database(database_url, Settings())
    database.prepare()
    cluster = Cluster(nodes_url or database_url, folder, count=NODES, **options)
    try:
        testimony = Testimony(cluster.witness_path)
        load = Load(nodes_url or database_url, seed)
        chance = random.Random(seed)  # noqa: S311 - only says when faults come
        scene = Scene(cluster, load, database, testimony, chance, batch)
        try:
            if scene.working():
                batch.faults = faults(scene)
        finally:
            cluster.heal()  # first: a frozen node may hold what a caller waits for
            load.stop()
        database.dispose()  # what the judge held open was cut off like everybody else
        batch.findings += load.findings
        batch.findings += drain(database) or wait_for_observer(database)
        batch.findings += cluster.stop()
        batch.findings += judge(database, testimony, load.accepted)
        batch.findings += oracle(scene) if oracle else []
        batch.jobs, batch.attempts = len(load.accepted), sum(testimony.begun_by().values())
        batch.freezes = cluster.freezes
        load.app.database.dispose()
    finally:
        cluster.kill_all()
        database.dispose()
    batch.seconds = time.monotonic() - began_at
    if batch.findings:
        batch.findings.append(f"kept in {folder}")
    else:
        shutil.rmtree(folder)
    return batch


@contextmanager
def empty_database(kind: str, server: PostgresInstance | None) -> Iterator[str]:
    """An empty database for one batch; a SQLite file is kept if the batch goes wrong."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="latchwork-torture-") as folder:
            yield f"sqlite:///{folder}/torture.db"
        return
    assert server is not None
    with postgres_database(server.url) as url:
        yield text_of(url)


def text_of(url: URL) -> str:
    """The address with its password, as an application is given it."""
    return url.render_as_string(hide_password=False)
