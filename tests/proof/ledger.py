"""The ledger: one line of `docs/reliability.jsonl` for each run of an instrument."""

import hashlib
import json
import math
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from tests.packaging.files import ROOT

LEDGER = ROOT / "docs/reliability.jsonl"
ENGINE = ("decisions", "store", "worker")
"""The packages of `core/latchwork` whose change makes every earlier run stale."""


class Entry(NamedTuple):
    """One run: ``n`` things tried, how many went wrong, and on which engine."""

    figure: str
    what: str
    date: str
    commit: str
    n: int
    failures: int
    upper_bound_95: float
    engine: str
    seconds: float
    detail: str = ""


def read() -> list[Entry]:
    """Every entry, oldest first."""
    if not LEDGER.exists():
        return []
    return [Entry(**json.loads(line)) for line in LEDGER.read_text().splitlines()]


def append(
    figure: str, what: str, n: int, failures: int, *, seconds: float, detail: str = ""
) -> Entry:
    """Write down one run on the engine as it is now."""
    entry = Entry(
        figure, what, datetime.now(UTC).strftime("%Y-%m-%d"), commit(), n, failures,
        upper_bound_95(n, failures), engine(), round(seconds, 1), detail,
    )  # fmt: skip
    with LEDGER.open("a") as file:
        file.write(json.dumps(as_object(entry)) + "\n")
    return entry


def as_object(entry: Entry) -> dict[str, Any]:
    """The entry as it is written, without an empty detail."""
    values = entry._asdict()
    if not entry.detail:
        del values["detail"]
    return values


def upper_bound_95(n: int, failures: int) -> float:
    """The failure rate that ``failures`` in ``n`` still allow at 95 %: 3/n for none."""
    if n == 0:
        return 1.0
    if failures == 0:
        return min(1.0, float(f"{3 / n:.3g}"))
    low, high = float(failures), failures + 10 * math.sqrt(failures) + 10
    for _ in range(60):
        mean = (low + high) / 2
        at_most = sum(mean**k / math.factorial(k) for k in range(failures + 1)) * math.exp(-mean)
        low, high = (mean, high) if at_most > 0.05 else (low, mean)
    return min(1.0, float(f"{high / n:.3g}"))


@cache
def engine() -> str:
    """What the engine's code is, as twelve letters: two runs with the same letters add up."""
    digest = hashlib.sha256()
    for package in ENGINE:
        for path in sorted((ROOT / "core/latchwork" / package).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str:
    """The commit that is checked out; a plus says that the engine was changed since."""
    head = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", *(f"core/latchwork/{name}" for name in ENGINE))
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.check_output(("git", *arguments), cwd=ROOT, text=True).strip()


def total(entries: Iterable[Entry], figure: str, what: str) -> int:
    """How many things one instrument has tried on the present engine."""
    return sum(
        entry.n
        for entry in entries
        if (entry.figure, entry.what, entry.engine) == (figure, what, engine())
    )
