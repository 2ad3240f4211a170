"""The sentences that say why a job is where it is."""

from datetime import UTC, datetime, timedelta

import pytest

from latchwork.decisions import explanations as say
from latchwork.decisions.explanations import Ending, Gates, Lease
from latchwork.decisions.states import JobState

S = JobState
NOW = datetime(2026, 5, 4, 14, 2, 30, tzinfo=UTC)
OPEN = Gates(paused_at=None, paused_by=None, limit=None, held=0, serving=2, knowing=2)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def why_due(gates: Gates = OPEN, ahead: int = 0, shown: str = "0") -> tuple[str, str]:
    reason = say.why_not_claimed("payments", "charge", gates, ahead, shown, NOW)
    return reason.code, reason.sentence


def test_a_job_whose_time_has_not_come() -> None:
    reason = say.why_not_due(later(240), 0, 10, NOW)
    assert reason.code == "not_due"
    assert reason.sentence == "Not due until 14:06:30 UTC, in 4 min."
    tomorrow = say.why_not_due(later(86_400 * 2), 0, 10, NOW)
    assert tomorrow.sentence == "Not due until 2026-05-06 14:02:30 UTC, in 2 d."


def test_a_job_that_waits_for_its_retry() -> None:
    reason = say.why_not_due(later(40), 2, 10, NOW)
    assert reason.code == "waiting_to_retry"
    assert reason.sentence == (
        "Waiting to retry until 14:03:10 UTC, in 40 s: attempt 2 of 10 did not succeed."
    )


@pytest.mark.parametrize(
    ("gates", "code", "sentence"),
    [
        (
            Gates(later(-1350), "ann", 4, 4, 0, 0),
            "paused",
            "Queue payments is paused by ann since 13:40:00 UTC.",
        ),
        (Gates(None, None, 4, 4, 0, 0), "not_served", "No live node serves queue payments."),
        (
            Gates(None, None, None, 0, 1, 0),
            "unknown_wire_name",
            "No live node that serves queue payments knows charge: "
            "the job will be quarantined when it is claimed.",
        ),
        (
            Gates(None, None, 4, 4, 1, 1),
            "limit_full",
            "Limit 4 of queue payments is full, held by 4 jobs.",
        ),
        (OPEN, "next", "Due, and the next that a free slot of queue payments takes."),
    ],
)
def test_the_first_gate_that_is_shut_is_named(gates: Gates, code: str, sentence: str) -> None:
    assert why_due(gates) == (code, sentence)


def test_the_jobs_that_are_due_before_it_are_counted_up_to_a_bound() -> None:
    assert why_due(ahead=1, shown="1") == ("behind_others", "1 job is due before it in payments.")
    assert why_due(ahead=1000, shown="1,000+")[1] == "1,000+ jobs are due before it in payments."


def test_a_job_that_waits_for_parents_names_some() -> None:
    one = say.why_waiting([("charge", S.LEASED)], settled=0)
    assert one.code == "awaiting_parents"
    assert one.sentence == "Waiting for its parent: charge (Leased)."
    of_two = say.why_waiting([("charge", S.LEASED)], settled=1)
    assert of_two.sentence == "Waiting for 1 of 2 parents: charge (Leased)."
    of_three = say.why_waiting([("charge", S.LEASED), ("pack", S.SCHEDULED)], settled=1)
    assert of_three.sentence == (
        "Waiting for 2 of 3 parents: charge (Leased) and pack (Scheduled)."
    )
    many = say.why_waiting([(f"hash-{n}", S.SCHEDULED) for n in range(16)], settled=0)
    assert many.sentence.startswith("Waiting for 16 of 16 parents: hash-0 (Scheduled), ")
    assert many.sentence.endswith(" and 13 more.")


def lease(**given: object) -> Lease:
    facts: dict[str, object] = {
        "owner": "n1", "expires_at": later(57), "seen_at": later(-3), "cancel_asked_at": None,
        "cancel_asked_by": None, "cancel_delivered_at": None,
    }  # fmt: skip
    return Lease(**(facts | given))  # type: ignore[arg-type]


def test_a_running_job_names_its_node() -> None:
    reason = say.why_leased(lease(), 0, NOW)
    assert reason.sentence == "Leased by n1, heartbeat 3 s ago; the lease ends in 57 s."
    assert say.why_leased(lease(seen_at=None), 0, NOW).sentence == (
        "Leased by n1; the lease ends in 57 s."
    )
    assert "2 times in a row" in say.why_leased(lease(), 2, NOW).sentence


def test_a_cancel_is_followed_from_asked_to_delivered() -> None:
    asked = lease(cancel_asked_at=later(-40), cancel_asked_by="ann")
    assert say.why_leased(asked, 0, NOW).code == "cancel_asked"
    assert say.why_leased(asked, 0, NOW).sentence == (
        "Cancel asked by ann 40 s ago; n1 learns of it at its next heartbeat, heartbeat 3 s ago."
    )
    delivered = lease(
        cancel_asked_at=later(-40), cancel_asked_by="ann", cancel_delivered_at=later(-30)
    )
    reason = say.why_leased(delivered, 0, NOW)
    assert reason.code == "cancel_delivered"
    assert reason.sentence == (
        "Cancel asked by ann 40 s ago and delivered 30 s ago; "
        "the handler on n1 has not returned yet."
    )


def test_a_lapsed_lease_is_said_to_be_lapsed_at_the_instant_it_ends() -> None:
    assert say.why_leased(lease(expires_at=NOW), 0, NOW).code == "lapsed"
    assert say.why_leased(lease(expires_at=later(0.001)), 0, NOW).code == "leased"
    assert say.why_leased(lease(expires_at=later(-4)), 0, NOW).sentence == (
        "The lease of n1 lapsed 4 s ago, heartbeat 3 s ago; the next sweep takes the job back."
    )


def ending(state: JobState, **given: object) -> str:
    """The sentence of an end; its code is the state's name."""
    facts: dict[str, object] = {
        "state": state, "attempt": 3, "max_attempts": 3, "code": None, "type": None,
        "asked_by": None, "parent": None, "parent_state": None, "root": None,
    }  # fmt: skip
    reason = say.why_ended(Ending(**(facts | given)))  # type: ignore[arg-type]
    assert reason.code == state.value
    return reason.sentence


def test_every_end_has_its_reason() -> None:
    assert ending(S.SUCCEEDED) == "Succeeded at attempt 3 of 3."
    assert ending(S.DEAD_LETTERED, code="attempts_exhausted", type="ValueError") == (
        "Dead-Lettered at attempt 3 of 3: ValueError."
    )
    assert ending(S.DEAD_LETTERED, code="lease_lapsed") == (
        "Dead-Lettered at attempt 3 of 3, because its lease lapsed."
    )
    assert ending(S.QUARANTINED, code="payload_refused") == (
        "Quarantined at attempt 3 of 3: its job type refuses the payload."
    )
    assert ending(S.QUARANTINED, type="OddError") == (
        "Quarantined at attempt 3 of 3: it could not be routed: OddError."
    )
    assert ending(S.QUARANTINED) == "Quarantined at attempt 3 of 3: it could not be routed."
    assert ending(S.DEAD_LETTERED) == "Dead-Lettered at attempt 3 of 3."
    assert ending(S.CANCELLED, code="operator_cancel", asked_by="ann") == "Cancelled by ann."
    assert ending(S.CANCELLED) == "Cancelled."
    assert ending(S.CANCELLED, code="handler") == "Cancelled: handler."


def test_a_cascade_names_parent_and_root() -> None:
    cascade = {"parent": "charge", "parent_state": S.DEAD_LETTERED, "root": "charge"}
    assert ending(S.CANCELLED, **cascade) == (
        "Cancelled because its parent charge is Dead-Lettered."
    )
    assert ending(S.CANCELLED, parent="charge", root="charge") == (
        "Cancelled because its parent charge is not Succeeded."
    )
    assert ending(S.CANCELLED, **(cascade | {"root": "order"})) == (
        "Cancelled because its parent charge is Dead-Lettered; it began with order."
    )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0 s"), (0.4, "0 s"), (40, "40 s"), (119, "119 s"),
     (120, "2 min"), (3599, "59 min"), (3600, "1 h"), (86_399, "23 h 59 min"),
     (86_400, "1 d"), (240, "4 min"), (7500, "2 h 5 min"),
     (7200, "2 h"), (90_000, "1 d 1 h"), (172_800, "2 d"), (49 * 3600, "2 d 1 h")],
)  # fmt: skip
def test_lengths_of_time_are_said_in_two_units(seconds: float, shown: str) -> None:
    assert say.span(timedelta(seconds=seconds)) == shown


def test_numbers_and_names_are_said_as_people_say_them() -> None:
    assert [say.plural(number, "job") for number in (0, 1, 2, 1000)] == [
        "0 jobs", "1 job", "2 jobs", "1,000 jobs",
    ]  # fmt: skip
    assert [say.listed(["a", "b", "c"][:number]) for number in range(4)] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip
