"""What `make prove` runs: each instrument in steps of a minute or so, towards its figure."""

import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tests.boundary.operations import OPERATIONS
from tests.boundary.scenes import SITUATIONS
from tests.boundary.walk import walking
from tests.crash_images.images import problems, take_images
from tests.postgres_server import postgres_instance
from tests.torture.kills import kill_batch
from tests.torture.outages import backend_batch, cut_batch, restart_batch
from tests.torture.runs import Batch, empty_database

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Step:
    """What one step tried and found; ``detail`` says what else was counted."""

    n: int
    findings: list[str]
    failures: int
    detail: str = ""


@dataclass(frozen=True)
class Instrument:
    """``run(done, most)`` goes on from ``done`` and tries about ``most`` more."""

    figure: str
    what: str
    per_release: int
    step: int
    run: Callable[[int, int], Step]


@contextmanager
def database_of(kind: str) -> "Iterator[str]":
    """An empty database, on PostgreSQL of a server of its own."""
    if kind == "sqlite":
        with empty_database(kind, None) as url:
            yield url
        return
    with postgres_instance() as server, empty_database(kind, server) as url:
        yield url


PAIRS = list(product(OPERATIONS, repeat=2))


def walk_boundaries(kind: str, done: int, most: int) -> Step:
    """The next pairs of operations, every boundary, in every situation."""
    with database_of(kind) as url, walking(url) as walk:
        findings, failures = [], 0
        pairs = PAIRS[done : done + most]
        for first, second in pairs:
            found = [
                finding
                for situation in SITUATIONS
                for finding in walk.pair(first, second, situation.__name__)
            ]
            findings += found
            failures += bool(found)
        return Step(len(pairs), findings, failures, f"{walk.totals.boundaries} boundaries")


def open_crash_images(done: int, most: int) -> Step:
    """Images of as many loads as it takes; every load has a seed of its own."""
    findings: list[str] = []
    tried, failures, seed = 0, 0, done
    with tempfile.TemporaryDirectory(prefix="latchwork-images-") as folder:
        while tried < most:
            seed += 1
            for image in take_images(Path(folder), seed)[: most - tried]:
                found = problems(image, Path(folder))
                findings += [f"seed {seed}: {sentence}" for sentence in found]
                failures += bool(found)
                tried += 1
    return Step(tried, findings, failures)


def kill_nodes(kind: str, done: int, most: int) -> Step:
    """One batch of kills."""
    with database_of(kind) as url:
        return of_batch(kill_batch(url, most, seed=done))


def stop_postgres(done: int, most: int) -> Step:
    """Immediate stops of a server, aimed at each operation in turn."""
    with postgres_instance() as server, empty_database("postgres", server) as url:
        return of_batch(restart_batch(server, url, most, seed=done))


def terminate_backends(done: int, most: int) -> Step:
    """Back-ends terminated in the middle of each operation in turn."""
    with database_of("postgres") as url:
        return of_batch(backend_batch(url, most, seed=done))


def cut_after_commit(done: int, most: int) -> Step:
    """Connections cut between COMMIT and its answer."""
    with database_of("postgres") as url:
        return of_batch(cut_batch(url, most, seed=done))


def of_batch(batch: Batch) -> Step:
    """A batch that found something counts as one failure."""
    detail = f"{batch.jobs} jobs, {batch.attempts} attempts"
    if batch.freezes:
        detail += f", {batch.freezes} freezes"
    if batch.hits:
        detail += ": " + ", ".join(f"{number} x {name}" for name, number in batch.hits.items())
    return Step(batch.faults, batch.findings, int(bool(batch.findings)), detail)


INSTRUMENTS = (
    *(
        Instrument("F3", f"boundary walk, {kind}", len(PAIRS), 33, partial(walk_boundaries, kind))
        for kind in ("sqlite", "postgres")
    ),
    *(
        Instrument("F4", f"kill -9, {kind}", 1_000, 20, partial(kill_nodes, kind))
        for kind in ("sqlite", "postgres")
    ),
    Instrument("F5", "crash images", 5_000, 250, open_crash_images),
    Instrument("F6", "immediate stops of PostgreSQL", 100, 10, stop_postgres),
    Instrument("F6", "back-ends terminated", 1_000, 50, terminate_backends),
    Instrument("F6", "connections cut after COMMIT", 300, 25, cut_after_commit),
)
