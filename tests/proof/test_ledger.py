"""What the ledger says of a run: how far it may be trusted, and whether it still counts."""

from pathlib import Path

import pytest

from tests.proof import ledger
from tests.proof.instruments import INSTRUMENTS
from tests.proof.page import FIGURES, reliability, row

FIGURE, WHAT = "F4", "kill -9, sqlite"


@pytest.fixture(autouse=True)
def _own_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "reliability.jsonl")
    monkeypatch.setattr(ledger, "commit", lambda: "abc1234")


@pytest.mark.parametrize(
    ("n", "failures", "bound"),
    [(0, 0, 1.0), (2, 0, 1.0), (1000, 0, 0.003), (100, 1, 0.0474), (100, 5, 0.105), (3, 3, 1.0)],
)
def test_the_bound_is_what_so_many_failures_leave_possible(
    n: int, failures: int, bound: float
) -> None:
    assert ledger.upper_bound_95(n, failures) == pytest.approx(bound)


def test_runs_add_up_on_one_engine_and_are_stale_on_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(2):
        ledger.append(FIGURE, WHAT, 20, 0, seconds=1.0)
    assert ledger.total(ledger.read(), FIGURE, WHAT) == 40
    assert "| 40 | 1,000 | 0 | 7.50% |" in row(FIGURE, WHAT, ledger.read())
    assert row(FIGURE, WHAT, ledger.read()).endswith("| current |")
    monkeypatch.setattr(ledger, "engine", lambda: "another")
    assert ledger.total(ledger.read(), FIGURE, WHAT) == 0
    assert row(FIGURE, WHAT, ledger.read()).endswith("| stale |")


def test_a_figure_that_was_not_run_says_so() -> None:
    page = reliability()
    assert all(f"| **{figure}** |" in page for figure in FIGURES)
    assert page.count("| not run |") >= len(INSTRUMENTS)


def test_every_instrument_works_towards_a_figure_of_the_page() -> None:
    assert {one.figure for one in INSTRUMENTS} <= set(FIGURES)
    names = [(one.figure, one.what) for one in INSTRUMENTS]
    assert len(names) == len(set(names))
