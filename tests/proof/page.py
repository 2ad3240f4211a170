"""`docs/reliability.md`: the ledger for people."""

from collections.abc import Sequence

from tests.proof import ledger
from tests.proof.instruments import INSTRUMENTS
from tests.proof.ledger import Entry

FIGURES = {
    "F1": "Simulated worlds: whole nodes over virtual time, from one seed, under every fault",
    "F2": "Planted bugs: the instruments must find each",
    "F3": "Statement boundaries: one operation stopped before each statement, another run there",
    "F4": "Node processes killed with -9 and frozen past their lease, under load",
    "F5": "Crash images of a SQLite file: its log cut at and inside frames, checkpoints half done",
    "F6": "PostgreSQL stopped at once, back-ends terminated, answers to COMMIT lost",
    "F7": "Clocks: skew, steps, time zones",
    "F8": "Shutdown by SIGTERM at random moments",
    "F9": "Handlers that block the event loop, or the interpreter, for three leases",
    "F10": "Cascades, wide and deep",
    "F11": "Observers and streams: every transition delivered",
    "F12": "What a claim costs beside a million finished rows",
    "F13": "The SQLite log stays bounded under writers and slow readers",
    "F18": "The same suite on both databases, with the same results",
    "F20": "Reach: transitions and sweeps met, branches covered, mutants killed",
}


def reliability() -> str:
    """The page: what was run, on what, how often, and what it leaves open."""
    entries = ledger.read()
    names = dict.fromkeys((one.figure, one.what) for one in INSTRUMENTS)
    names |= dict.fromkeys((entry.figure, entry.what) for entry in entries)
    rows = []
    for figure, title in FIGURES.items():
        whats = [what for of_figure, what in names if of_figure == figure]
        rows.append(f"| **{figure}** | **{title}** | | | | | | |")
        rows += [row(figure, what, entries) for what in whats]
        if not whats:
            rows.append(f"| {figure} | | | | | | | not run |")
    table = "\n".join(rows)
    return f"""# Reliability

<!-- Made from docs/reliability.jsonl by `make docs`: run `make prove`, do not edit this page. -->

What is promised: at least one execution of every accepted job, at most one accepted outcome of
each claim, and no state that [the contract](contract.md) does not allow. What handlers do outside
may happen twice; no scheduler can prevent that.

`make prove` works towards the numbers below, instrument after instrument, the one that is furthest
behind first; `make prove MINUTES=30` stops after half an hour, and the next run goes on from
there. Each run is one line of [the ledger](reliability.jsonl). After every run all tables are
checked against section 10 of the contract, and a file to which handlers append outside the
database says what really ran.

Numbers add up as long as `decisions`, `store` and `worker` are unchanged. What was run on an
earlier engine is stale: it shows that an instrument works, and promises nothing about this one.
No failure in n runs leaves a failure rate of at most 3/n, at 95 % confidence.

| figure | what was run | n | of | failures | rate at most | last run | standing |
|---|---|---|---|---|---|---|---|
{table}

## The instruments

- `tests/simulation`: nodes, operators and faults over virtual time, all from one seed.
- `tests/boundary`: one operation is stopped before each of its statements and another runs there;
  both must end as one of their two orders would.
- `tests/crash_images`: what a crash would leave of a SQLite file is opened and audited.
- `tests/torture`: four node processes under colliding load are killed, frozen, stopped, and cut
  off from their database in the middle of each operation. By hand:
  `python -m tests.torture kill --database postgres --cycles 100`; also `restart`, `backends` and
  `cuts`.
- `tests/audit.py`: section 10 of the contract on all tables, after every run and every test.
- `tests/torture/witness.py`: the file outside the database, which says what began, what returned
  and what observers heard.

A run that finds something keeps its files and says where. `python -m tests.proof --only F4` works
on one figure alone.

Crash images say nothing about a disk that reports a write as done and loses it. Real time, real
processes and real chance make most of these runs unrepeatable: they are no part of what a change
must pass, but a red one is always a bug.
"""


def row(figure: str, what: str, entries: Sequence[Entry]) -> str:
    """One instrument: its runs on this engine, else its last runs on an earlier one."""
    mine = [entry for entry in entries if (entry.figure, entry.what) == (figure, what)]
    target = next(
        (f"{o.per_release:,}" for o in INSTRUMENTS if (o.figure, o.what) == (figure, what)), ""
    )
    if not mine:
        return f"| {figure} | {what} | 0 | {target} | | | | not run |"
    last = mine[-1]
    same = [entry for entry in mine if entry.engine == last.engine]
    n, failures = sum(entry.n for entry in same), sum(entry.failures for entry in same)
    bound = f"{ledger.upper_bound_95(n, failures):.2%}"
    standing = "current" if last.engine == ledger.engine() else "stale"
    return (
        f"| {figure} | {what} | {n:,} | {target} | {failures:,} | {bound} "
        f"| {last.date}, {last.commit} | {standing} |"
    )
