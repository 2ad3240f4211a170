"""Running many worlds, and making a small plan of one that went wrong."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.simulation.plan import Plan, Step, draw
from tests.simulation.world import Verdict, World

PLANS = Path(__file__).parent / "plans"
"""Small plans of worlds that once went wrong: replayed by a test."""


@dataclass
class Summary:
    """What many worlds came to."""

    worlds: int = 0
    steps: int = 0
    reached: Counter[str] = field(default_factory=Counter)
    failures: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, seed: int, verdict: Verdict) -> None:
        """Take in one world."""
        self.worlds += 1
        self.steps += verdict.steps
        self.reached += verdict.reached
        if verdict.findings:
            self.failures[seed] = verdict.findings


def run_seeds(first: int, count: int) -> Summary:
    """The worlds of ``count`` seeds from ``first`` on."""
    summary = Summary()
    for seed in range(first, first + count):
        summary.add(seed, run(draw(seed)))
    return summary


def run(plan: Plan) -> Verdict:
    """One world, from its beginning to its rest."""
    return World(plan).run()


def kind_of(verdict: Verdict) -> str:
    """What was found first, without its times, numbers and names: the oracle that spoke."""
    return _PARTICULARS.sub("#", verdict.findings[0]) if verdict.findings else ""


_PARTICULARS = re.compile(r"[0-9a-f]{8}-[-0-9a-f]{27}|\d[\d.]*|\b(red|green|blue)\b")


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """A plan with as few steps as it takes to fail still: leave out ever smaller parts.

    Raises ValueError if the plan does not fail.
    """
    if not fails(plan):
        raise ValueError("the plan does not fail")
    size = max(1, len(plan.steps) // 2)
    while True:
        smaller = _without_a_part(plan, size, fails)
        if smaller is not None:
            plan = smaller
        elif size == 1:
            return plan
        else:
            size //= 2


def _without_a_part(plan: Plan, size: int, fails: Callable[[Plan], bool]) -> Plan | None:
    for start in range(0, len(plan.steps), size):
        rest: Sequence[Step] = plan.steps[:start] + plan.steps[start + size :]
        candidate = replace(plan, steps=tuple(rest))
        if fails(candidate):
            return candidate
    return None
