"""What happens to a world from outside: a plan, drawn from a seed, that can be written down.

Everything else a world does (how long a handler takes, which answer is lost) it draws from its seed
and the name of the thing, never in turn: leaving a step out of the plan changes nothing else.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

FAULTS_UNTIL = 12.0
"""Seconds of faults; then the world is healed and must come to rest."""
ACTIONS_UNTIL = 18.0
"""Seconds in which operators act: on a healed world too, where much has ended."""
QUEUES = ("red", "green", "blue")
BEHAVIOURS = ("ok", "ok", "ok", "fails once", "fails", "gives up", "unroutable", "stubborn", "slow")


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done to the world at ``at`` seconds."""

    at: float
    kind: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: its seed, its size, and the steps that happen to it.

    With ``own_clocks`` each node has a clock of its own, wrong by minutes, and measures the store's
    as on PostgreSQL; else all live by one, as on SQLite.
    """

    seed: int
    nodes: int
    slots: int
    lease_seconds: float
    skew_seconds: float
    lost_answers: float
    slow_ways: float
    weighted: bool
    observed: bool
    own_clocks: bool
    steps: tuple[Step, ...]

    def save(self, path: Path) -> None:
        """Write it down, to be replayed."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def load(path: Path) -> Plan:
    """A plan that was written down."""
    values = json.loads(path.read_text())
    steps = tuple(Step(**step) for step in values.pop("steps"))
    return Plan(**values, steps=steps)


def draw(seed: int) -> Plan:
    """The world of a seed."""
    chance = Random(f"plan {seed}")  # noqa: S311
    jobs, workflows, steps = 0, 0, []
    moments = [round(chance.uniform(0, FAULTS_UNTIL), 3) for _ in range(chance.randint(20, 40))]
    late = [round(chance.uniform(FAULTS_UNTIL, ACTIONS_UNTIL), 3) for _ in range(4)]
    for at in sorted(moments + late):
        kind = chance.choice(_KINDS if at < FAULTS_UNTIL else _LATE_KINDS)
        if "workflow" in kind and not workflows:
            kind = "workflow"
        values: dict[str, Any] = {}
        if kind == "enqueue":
            count = chance.choice((1, 1, 2, 5))
            values = {"jobs": [_draw_job(chance, jobs + n) for n in range(count)]}
            jobs += count
        elif kind == "workflow":
            count = chance.randint(2, 7)
            members = [_draw_member(chance, jobs, jobs + n) for n in range(count)]
            values = {"workflow": workflows, "jobs": members}
            jobs, workflows = jobs + count, workflows + 1
        else:
            values = _VALUES[kind](chance, jobs, workflows)
        steps.append(Step(at, kind, values))
    return Plan(
        seed=seed,
        nodes=chance.randint(1, 4),
        slots=chance.randint(1, 4),
        lease_seconds=chance.choice((1.0, 2.0)),
        skew_seconds=chance.choice((0.0, 0.0, 0.2)),
        lost_answers=chance.choice((0.0, 0.02, 0.1)),
        slow_ways=chance.choice((0.0, 0.05, 0.2)),
        weighted=chance.random() < 0.5,
        observed=chance.random() < 0.5,
        own_clocks=chance.random() < 0.5,
        steps=tuple(steps),
    )


def _draw_job(chance: Random, number: int) -> dict[str, Any]:
    known = min(number, 16)
    count = min(known, chance.choice((0, 0, 1, 2, known)))
    parents = chance.sample(range(number), count)
    return _job(chance, number, parents)


def _draw_member(chance: Random, first: int, number: int) -> dict[str, Any]:
    before = range(first, number)
    return _job(chance, number, chance.sample(before, min(len(before), chance.randint(0, 3))))


def _job(chance: Random, number: int, parents: list[int]) -> dict[str, Any]:
    return {
        "number": number,
        "parents": parents,
        "any_terminal": chance.random() < 0.3,
        "queue": chance.choice(QUEUES),
        "behaviour": chance.choice(BEHAVIOURS),
        "due_in": chance.choice((0.0, 0.0, 0.0, 1.0, 5.0)),
        "max_attempts": chance.randint(1, 4),
        "base_seconds": chance.choice((0.0, 0.3, 1.0)),
    }


def _some_job(chance: Random, jobs: int, _workflows: int) -> dict[str, Any]:
    return {"number": chance.randrange(max(jobs, 1))}


def _some_queue(chance: Random, _jobs: int, _workflows: int) -> dict[str, Any]:
    return {"queue": chance.choice(QUEUES)}


def _limit(chance: Random, _jobs: int, _workflows: int) -> dict[str, Any]:
    return {"queue": chance.choice(QUEUES), "limit": chance.choice((None, 1, 2))}


def _some_workflow(chance: Random, _jobs: int, workflows: int) -> dict[str, Any]:
    return {
        "workflow": chance.randrange(max(workflows, 1)),
        "scope": chance.choice(("unfinished", "downstream", "all")),
    }


def _some_node(chance: Random, _jobs: int, _workflows: int) -> dict[str, Any]:
    return {"node": chance.randrange(4), "seconds": round(chance.uniform(0.1, 6), 3)}


def _outage(chance: Random, _jobs: int, _workflows: int) -> dict[str, Any]:
    return {"seconds": round(chance.uniform(0.2, 4), 3)}


def _clock_step(chance: Random, _jobs: int, _workflows: int) -> dict[str, Any]:
    seconds = chance.choice((-3600.0, -5.0, 2.0, 30.0, 600.0))
    return {"seconds": seconds, "node": chance.randrange(4)}


_VALUES: dict[str, Callable[[Random, int, int], dict[str, Any]]] = {
    "cancel": _some_job, "requeue": _some_job,
    "pause": _some_queue, "resume": _some_queue, "limit": _limit,
    "retry workflow": _some_workflow, "cancel workflow": _some_workflow,
    "crash": _some_node, "freeze": _some_node, "stop": _some_node,
    "outage": _outage, "step clock": _clock_step,
    "cancel running": lambda *_: {}, "requeue ended": lambda *_: {}, "purge": lambda *_: {},
}  # fmt: skip
_KINDS = (
    *["enqueue"] * 12, *["workflow"] * 3, *["requeue"] * 2, *["requeue ended"] * 4,
    *["cancel"] * 3, *["cancel running"] * 3,
    "pause", "resume", "resume", "limit", "limit", *["retry workflow"] * 3, "cancel workflow",
    *["crash"] * 3, *["freeze"] * 5, "stop", "outage", "step clock", "purge",
)  # fmt: skip
_LATE_KINDS = ("enqueue", "requeue ended", "cancel", *["retry workflow"] * 3)
