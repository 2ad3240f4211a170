"""How a node waits when rows are busy and when the store is away."""

import pytest

from latchwork.decisions.leases import Hold
from latchwork.decisions.node_messages import (
    Claim,
    ClaimFailed,
    Ended,
    Hinted,
    LeasesLost,
    Reported,
    ReportFailed,
    ReportOutcomes,
    Woke,
)
from tests.decisions.test_node import Stepped, holds

TRIES = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
"""The waits before a busy row is reported again."""


def next_report(stepped: Stepped, at: float, told: tuple[Hold, ...]) -> float:
    """The moment at which the node reports ``told``, looked for in steps of a millisecond."""
    for milliseconds in range(5000):
        moment = at + milliseconds / 1000
        stepped.step(Woke(moment))
        if stepped.got(ReportOutcomes) == [ReportOutcomes(told)]:
            return moment
    raise AssertionError("it was not reported within five seconds")


def test_a_busy_row_is_tried_again_ever_later_but_each_second() -> None:
    stepped = Stepped()
    busy, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [busy]))
    at, waits = 0.0, []
    for _ in TRIES:
        stepped.step(Reported(at, [], [busy]))
        reported_at = next_report(stepped, at, (busy,))
        waits.append(reported_at - at)
        at = reported_at
    assert waits == pytest.approx(TRIES, abs=0.002)


def test_each_busy_row_is_tried_in_its_own_time() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one]))
    stepped.step(Reported(0, [], [one]))
    at = next_report(stepped, 0, (one,))
    stepped.step(Reported(at, [], [one]))  # its next try is in 0.2 s
    stepped.step(Ended(at, [two]))
    stepped.step(Reported(at, [], [two]))  # the first try of this one is in 0.1 s
    assert next_report(stepped, at, (two,)) == pytest.approx(at + 0.1, abs=0.002)


def test_reports_back_off_while_the_store_is_away_and_begin_anew_when_it_is_back() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one]))
    at, waits = 0.0, []
    for _ in range(4):
        stepped.step(ReportFailed(at, [one], refused=False))
        reported_at = next_report(stepped, at, (one,))
        waits.append(reported_at - at)
        at = reported_at
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8], abs=0.002)
    stepped.step(Reported(at, [one]))
    stepped.step(Ended(at, [two]))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((two,))]
    stepped.step(ReportFailed(at, [two], refused=False))
    assert next_report(stepped, at, (two,)) == pytest.approx(at + 0.1, abs=0.002)


def test_claims_back_off_ever_longer_and_begin_anew_with_an_answer() -> None:
    stepped = Stepped()
    at, waits = 0.0, []
    stepped.step(Woke(at))
    for _ in range(6):
        stepped.step(ClaimFailed(at, "q"))
        moment = at
        while not stepped.got(Claim):
            moment += 0.001
            stepped.step(Hinted(moment, "q"))
        waits.append(moment - at)
        at = moment
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0], abs=0.002)


def test_a_lease_that_is_not_held_cannot_be_lost() -> None:
    stepped = Stepped()
    stepped.running(*holds(2))
    stranger = Hold(99, 1, 1)
    stepped.step(LeasesLost(1, [stranger]))
    assert stepped.commands == [] or not any(
        stranger in getattr(command, "holds", ()) for command in stepped.commands
    )
