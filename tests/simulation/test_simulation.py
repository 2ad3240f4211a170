"""Worlds of many seeds in which nothing may go wrong, and what they must have reached."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packaging.files import ROOT
from tests.simulation.plan import Plan, draw, load
from tests.simulation.reach import unreached
from tests.simulation.running import PLANS, run, run_seeds, shrink
from tests.simulation.sabotage import BUGS, found_after

SEEDS = 300
PARTS = 10
REPLAYED = 10
PLANTED = (
    "no fence", "double count down", "cascade that skips a diamond", "no log row on expiry",
    "heartbeat in the event loop", "claim ignores the limit",
)  # fmt: skip


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_goes_wrong_in_any_world(part: int) -> None:
    count = SEEDS // PARTS
    summary = run_seeds(part * count, count)
    assert not summary.failures, f"replay with: python -m tests.simulation --replay SEED\n{summary}"
    assert summary.steps >= 200 * count


def test_the_worlds_reach_every_legal_transition_and_every_answer() -> None:
    reached: Counter[str] = Counter()
    for seed in range(SEEDS):
        reached += run(draw(seed)).reached
        if not unreached(reached):
            return
    assert unreached(reached) == []


def test_the_same_seed_gives_the_same_world_bit_for_bit() -> None:
    for seed in range(REPLAYED):
        assert run(draw(seed)) == run(draw(seed))


def test_the_same_seed_gives_the_same_world_in_every_process() -> None:
    told = [fingerprints_of_another_process(seed) for seed in ("1", "2")]
    assert told == [[run(draw(seed)).fingerprint for seed in range(REPLAYED // 2)]] * 2


def fingerprints_of_another_process(hash_seed: str) -> list[str]:
    """What the first worlds come to in a process where sets of strings have another order."""
    script = (
        "from tests.simulation.plan import draw; from tests.simulation.running import run\n"
        f"for seed in range({REPLAYED // 2}): print(run(draw(seed)).fingerprint)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    (planted,) = [one for one in BUGS if one.name == name]
    worlds, _ = found_after(planted)
    assert worlds


def test_what_once_went_wrong_goes_well() -> None:
    for path in sorted(PLANS.glob("*.json")):
        assert run(load(path)).findings == (), path.name


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
