"""Every clause of the contract and every scenario names tests that exist."""

import pytest

from tests.conformance.clauses import CLAUSES
from tests.conformance.proofs import Proof, missing
from tests.conformance.scenarios import SCENARIOS

ALL = [*CLAUSES, *SCENARIOS]


@pytest.mark.parametrize("proof", ALL, ids=[proof.key for proof in ALL])
def test_what_must_hold_has_tests_or_a_reason(proof: Proof) -> None:
    assert missing(proof) == []
    assert proof.tests or proof.why_not


def test_no_clause_and_no_scenario_stands_twice() -> None:
    assert len({proof.key for proof in ALL}) == len(ALL)


def test_every_scenario_of_the_collection_is_here() -> None:
    assert {proof.key for proof in SCENARIOS} == {f"B{number:02}" for number in range(1, 71)}
