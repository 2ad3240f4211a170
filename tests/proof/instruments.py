"""What `make prove` runs: each instrument in steps of a minute or so, towards its figure."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
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
from tests.packaging.files import ROOT
from tests.postgres_server import postgres_instance
from tests.simulation.running import run_seeds
from tests.simulation.sabotage import BUGS, found_after
from tests.torture.kills import kill_batch
from tests.torture.outages import backend_batch, cut_batch, restart_batch
from tests.torture.runs import Batch, empty_database
from tests.torture.shutdowns import shutdown_batch
from tests.torture.stalls import stall_batch
from tests.torture.wal_bound import watch_log

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


def simulate(done: int, most: int) -> Step:
    """The worlds of the next seeds; `python -m tests.simulation --replay SEED` runs one again."""
    summary = run_seeds(done, most)
    findings = [f"seed {seed}: {first}" for seed, (first, *_) in summary.failures.items()]
    detail = f"seeds from {done:,}, {summary.steps:,} steps"
    return Step(summary.worlds, findings, len(summary.failures), detail)


def plant_bugs(done: int, most: int) -> Step:
    """The next planted bugs: one that nothing finds is a hole in an instrument."""
    tried = BUGS[done : done + most]
    worlds = {bug.name: found_after(bug)[0] for bug in tried}
    missed = [f"nothing found: {name}" for name, after in worlds.items() if not after]
    detail = f"found after {max(worlds.values())} worlds at most"
    return Step(len(tried), missed, len(missed), detail)


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


def tell_nodes_to_stop(kind: str, done: int, most: int) -> Step:
    """SIGTERM at random moments."""
    with database_of(kind) as url:
        return of_batch(shutdown_batch(url, most, seed=done))


def stall_nodes(kind: str, done: int, most: int, *, hold_interpreter: bool) -> Step:
    """Handlers that block for three leases."""
    with database_of(kind) as url:
        return of_batch(stall_batch(url, most, seed=done, hold_interpreter=hold_interpreter))


def watch_wal(done: int, most: int) -> Step:
    """So many minutes of writers and readers on one SQLite file."""
    with tempfile.TemporaryDirectory(prefix="latchwork-wal-") as folder:
        samples = watch_log(Path(folder), seconds=60 * most, seed=done)
    largest = samples.largest_bytes / 2**20
    detail = f"largest {largest:.0f} MiB, {samples.writes / samples.seconds:.0f} writes a second"
    return Step(most, samples.findings, int(bool(samples.findings)), detail)


def run_tests(arguments: Sequence[str], _done: int, _most: int) -> Step:
    """Tests of the suite that are a figure by themselves; one run counts as one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = ran.stdout.strip().rpartition("\n")[2]
    failed = ran.returncode != 0
    return Step(1, [ran.stdout[-4000:]] if failed else [], int(failed), last)


def of_batch(batch: Batch) -> Step:
    """A batch that found something counts as one failure."""
    detail = f"{batch.jobs} jobs, {batch.attempts} attempts"
    if batch.freezes:
        detail += f", {batch.freezes} freezes"
    if batch.hits:
        detail += ": " + ", ".join(f"{number} x {name}" for name, number in batch.hits.items())
    return Step(batch.faults, batch.findings, int(bool(batch.findings)), detail)


KINDS = ("sqlite", "postgres")
SUITES = (
    ("F7", "tests of clocks and zones", ("tests", "-k", "clock or zone or skew or offset")),
    ("F10", "tests of cascades", ("tests/store/test_cascades.py",)),
    ("F11", "observers are told everything", ("tests/store/test_observer_completeness.py",)),
    ("F18", "the store's suite, both databases", ("tests/store", "tests/conformance")),
    ("F20", "transitions and answers reached", ("tests/simulation", "-k", "reach")),
)

INSTRUMENTS = (
    Instrument("F1", "simulated worlds", 20_000, 250, simulate),
    Instrument("F2", "planted bugs", len(BUGS), 5, plant_bugs),
    *(
        Instrument("F3", f"boundary walk, {kind}", len(PAIRS), 33, partial(walk_boundaries, kind))
        for kind in KINDS
    ),
    *(Instrument("F4", f"kill -9, {kind}", 1_000, 40, partial(kill_nodes, kind)) for kind in KINDS),
    Instrument("F5", "crash images", 5_000, 250, open_crash_images),
    Instrument("F6", "immediate stops of PostgreSQL", 100, 10, stop_postgres),
    Instrument("F6", "back-ends terminated", 1_000, 50, terminate_backends),
    Instrument("F6", "connections cut after COMMIT", 300, 25, cut_after_commit),
    *(
        Instrument("F8", f"SIGTERM, {kind}", 200, 20, partial(tell_nodes_to_stop, kind))
        for kind in KINDS
    ),
    *(
        Instrument(
            "F9", f"{name}, {kind}", 50, 5, partial(stall_nodes, kind, hold_interpreter=holds)
        )
        for kind in KINDS
        for name, holds in (("event loop blocked", False), ("interpreter held", True))
    ),
    *(
        Instrument(figure, what, 1, 1, partial(run_tests, arguments))
        for figure, what, arguments in SUITES
    ),
    Instrument("F13", "minutes of writers and slow readers", 60, 2, watch_wal),
)
