"""Worlds of many seeds in which nothing may go wrong, and what they must have reached."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from latchwork.decisions.transitions import EDGES
from tests.simulation.oracles import name_of
from tests.simulation.plan import Plan, draw, load
from tests.simulation.running import PLANS, run, run_seeds, shrink

SEEDS = 300
PARTS = 10
REPLAYED = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_goes_wrong_in_any_world(part: int) -> None:
    count = SEEDS // PARTS
    summary = run_seeds(part * count, count)
    assert not summary.failures, f"replay with: python -m tests.simulation --replay SEED\n{summary}"
    assert summary.steps >= 200 * count


def test_the_worlds_take_every_legal_transition() -> None:
    reached: Counter[str] = Counter()
    wanted = {name_of(edge) for edge in EDGES}
    for seed in range(SEEDS):
        reached += run(draw(seed)).reached
        if wanted <= reached.keys():
            return
    assert wanted - reached.keys() == set()


def test_the_same_seed_gives_the_same_world_bit_for_bit() -> None:
    for seed in range(REPLAYED):
        assert run(draw(seed)) == run(draw(seed))


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_went_wrong_goes_well(path: Path) -> None:
    assert run(load(path)).findings == ()


def test_a_plan_is_shrunk_to_what_it_takes_to_fail() -> None:
    plan = draw(3)
    needed = (plan.steps[2], plan.steps[-1])

    def fails(candidate: Plan) -> bool:
        return all(step in candidate.steps for step in needed)

    assert shrink(plan, fails) == replace(plan, steps=needed)


def test_a_plan_that_was_written_down_is_the_same_world(tmp_path: Path) -> None:
    plan = draw(4)
    plan.save(tmp_path / "plan.json")
    assert load(tmp_path / "plan.json") == plan
