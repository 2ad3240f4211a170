"""The node, stepped by hand: what it orders when, without a clock, a thread or a database."""

from collections.abc import Sequence
from typing import TypeVar

from latchwork.decisions.leases import Hold
from latchwork.decisions.node import Node, NodePlan, back_off_seconds
from latchwork.decisions.node_messages import (
    CancelAsked,
    Claim,
    Claimed,
    ClaimFailed,
    Command,
    Ended,
    Event,
    FireTokens,
    Forget,
    Hinted,
    LeasesLost,
    Release,
    Reported,
    ReportFailed,
    ReportOutcomes,
    Run,
    Stop,
    StopAsked,
    WakeAt,
    Woke,
)
from latchwork.decisions.states import CancelReason

C = TypeVar("C", bound=Command)


class Stepped:
    """A node and the clock it is stepped by."""

    def __init__(
        self,
        *,
        queues: Sequence[str] = ("q",),
        slots: int = 4,
        weights: dict[str, int] | None = None,
        grace_seconds: float = 30,
    ) -> None:
        self.node = Node(NodePlan(queues, slots, 1.0, grace_seconds, weights))
        self.commands: list[Command] = []

    def step(self, event: Event) -> list[Command]:
        self.commands = self.node.step(event)
        return self.commands

    def got(self, kind: type[C]) -> list[C]:
        return [command for command in self.commands if isinstance(command, kind)]

    def running(self, *holds: Hold, at: float = 0.0, suspects: Sequence[Hold] = ()) -> None:
        """Bring these jobs to run."""
        self.step(Woke(at))
        self.step(Claimed(at, "q", holds, suspects))


def holds(count: int, first: int = 1) -> list[Hold]:
    return [Hold(number, 1, 1) for number in range(first, first + count)]


def test_a_node_that_starts_claims_as_many_jobs_as_it_has_slots() -> None:
    stepped = Stepped(slots=4)
    assert stepped.step(Woke(0)) == [Claim("q", 4, allow_suspect=True)]


def test_claimed_jobs_run_and_a_full_node_claims_no_more() -> None:
    stepped = Stepped(slots=2)
    stepped.step(Woke(0))
    assert stepped.step(Claimed(0, "q", holds(2))) == [Run(holds(2))]


def test_a_short_answer_means_wait_for_the_poll() -> None:
    stepped = Stepped(slots=4)
    stepped.step(Woke(0))
    commands = stepped.step(Claimed(0.5, "q", holds(1)))
    assert commands == [Run(holds(1)), WakeAt(1.5)]
    assert stepped.step(Woke(1.5))[0] == Claim("q", 3, allow_suspect=True)


def test_a_short_answer_that_names_the_next_due_time_means_wait_until_then() -> None:
    stepped = Stepped(slots=4)
    stepped.step(Woke(0))
    assert stepped.step(Claimed(0.5, "q", (), next_due_at=0.8)) == [WakeAt(0.8)]
    assert stepped.step(Woke(0.8))[0] == Claim("q", 4, allow_suspect=True)
    assert stepped.step(Claimed(0.9, "q", (), next_due_at=60)) == [WakeAt(1.9)]


def test_a_due_time_that_has_passed_while_the_answer_came_is_followed_at_once() -> None:
    stepped = Stepped(slots=4)
    stepped.step(Woke(0))
    stepped.step(Claimed(0.5, "q", (), next_due_at=0.4))
    assert stepped.got(Claim)


def test_a_full_answer_means_look_again_as_soon_as_a_slot_is_free() -> None:
    stepped = Stepped(slots=2)
    stepped.running(*holds(2))
    stepped.step(Ended(0.1, holds(1)))
    assert stepped.got(Claim) == [Claim("q", 1, allow_suspect=True)]
    assert stepped.got(ReportOutcomes) == [ReportOutcomes(tuple(holds(1)))]


def test_a_hint_is_followed_at_once() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    stepped.step(Claimed(0, "q", ()))
    stepped.step(Hinted(0.2, "q"))
    assert stepped.got(Claim)


def test_a_hint_during_a_claim_is_not_forgotten_when_the_claim_comes_back_empty() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    stepped.step(Hinted(0.1, None))
    assert not stepped.got(Claim)
    stepped.step(Claimed(0.2, "q", ()))
    assert stepped.got(Claim)


def test_a_hint_for_a_queue_that_is_not_served_changes_nothing() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    stepped.step(Claimed(0, "q", ()))
    stepped.step(Hinted(0.2, "other"))
    assert not stepped.got(Claim)


def test_never_more_jobs_than_free_slots_are_claimed_over_several_queues() -> None:
    stepped = Stepped(queues=("a", "b"), slots=3)
    assert stepped.step(Woke(0)) == [Claim("a", 3, allow_suspect=True)]
    stepped.step(Claimed(0, "a", holds(1)))
    assert stepped.got(Claim) == [Claim("b", 2, allow_suspect=True)]


def test_weighted_queues_share_the_slots() -> None:
    stepped = Stepped(queues=("a", "b"), slots=4, weights={"a": 3, "b": 1})
    claims = {
        claim.queue: claim.limit for claim in stepped.step(Woke(0)) if isinstance(claim, Claim)
    }
    assert claims == {"a": 3, "b": 1}


def test_only_one_suspect_runs_at_a_time() -> None:
    stepped = Stepped(slots=2)
    suspect, other = holds(2)
    stepped.step(Woke(0))
    stepped.step(Claimed(0, "q", [suspect], [suspect]))
    stepped.step(Woke(1))
    assert stepped.got(Claim) == [Claim("q", 1, allow_suspect=False)]
    stepped.step(Claimed(1, "q", [other]))
    stepped.step(Ended(1.1, [suspect]))
    assert stepped.got(Claim) == [Claim("q", 1, allow_suspect=True)]


def test_outcomes_that_end_while_a_report_is_under_way_go_together_with_the_next() -> None:
    stepped = Stepped(slots=4)
    one, two, three, _ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0.1, [one]))
    stepped.step(Ended(0.2, [two]))
    stepped.step(Ended(0.3, [three]))
    assert not stepped.got(ReportOutcomes)
    stepped.step(Reported(0.4, [one]))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((two, three))]
    assert stepped.got(Forget) == [Forget([one])]


def test_a_lost_answer_is_reported_again_after_a_pause_before_anything_newer() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one]))
    stepped.step(Ended(0, [two]))
    stepped.step(ReportFailed(1, [one], refused=False))
    assert not stepped.got(ReportOutcomes)
    (alarm,) = stepped.got(WakeAt)
    stepped.step(Woke(alarm.at))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((one, two))]


def test_a_busy_row_is_reported_later_and_alone() -> None:
    stepped = Stepped()
    busy, other, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [busy, other]))
    stepped.step(Reported(0, [other], [busy]))
    (alarm,) = stepped.got(WakeAt)
    stepped.step(Woke(alarm.at))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((busy,))]


def test_a_batch_that_is_refused_is_taken_apart_and_the_culprit_given_up() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one, two]))
    stepped.step(ReportFailed(0, [one, two], refused=True))
    stepped.step(Woke(1))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((one,))]
    stepped.step(ReportFailed(1, [one], refused=True))
    assert stepped.got(Forget) == [Forget([one])]
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((two,))]
    stepped.step(Reported(1, [two]))
    stepped.step(Woke(60))
    assert not stepped.got(ReportOutcomes)


def test_while_outcomes_pile_up_no_more_is_claimed_than_there_are_slots() -> None:
    stepped = Stepped(slots=2)
    stepped.running(*holds(2))
    stepped.step(Ended(0, holds(2)))
    stepped.step(Claimed(0, "q", holds(2, first=3)))
    stepped.step(Ended(0, holds(2, first=3)))
    assert not stepped.got(Claim)
    stepped.step(Reported(0, holds(2)))
    assert stepped.got(Claim)


def test_claims_back_off_while_the_store_is_away() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    stepped.step(ClaimFailed(0, "q"))
    assert stepped.commands == [WakeAt(back_off_seconds(1))]
    stepped.step(Hinted(0.01, "q"))
    assert not stepped.got(Claim)
    stepped.step(Woke(0.2))
    assert stepped.got(Claim)


def test_the_back_off_grows_but_never_beyond_what_lets_a_node_come_back_in_time() -> None:
    assert [back_off_seconds(n) for n in (1, 2, 3)] == [0.1, 0.2, 0.4]
    assert back_off_seconds(1000) == 2.0


def test_a_lost_lease_fires_the_token_and_its_outcome_is_never_reported() -> None:
    stepped = Stepped()
    lost, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(LeasesLost(1, [lost]))
    assert stepped.got(FireTokens) == [FireTokens([lost], CancelReason.LEASE_LOST)]
    stepped.step(Ended(2, [lost]))
    assert stepped.got(Forget) == [Forget([lost])]
    assert not stepped.got(ReportOutcomes)
    assert stepped.got(Claim) == [Claim("q", 1, allow_suspect=True)]


def test_a_lost_lease_keeps_its_slot_until_its_handler_has_ended() -> None:
    stepped = Stepped(slots=1)
    stepped.running(*holds(1))
    stepped.step(LeasesLost(1, holds(1)))
    stepped.step(Woke(5))
    assert not stepped.got(Claim)


def test_an_outcome_that_came_before_the_loss_is_still_reported_and_fenced_by_the_store() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one]))
    stepped.step(Ended(0, [two]))
    stepped.step(LeasesLost(1, [two]))
    assert not stepped.got(FireTokens)
    stepped.step(Reported(1, [one]))
    assert stepped.got(ReportOutcomes) == [ReportOutcomes((two,))]


def test_a_cancel_asked_for_fires_the_token_of_a_running_job_only() -> None:
    stepped = Stepped()
    one, two, *_ = holds(4)
    stepped.running(*holds(4))
    stepped.step(Ended(0, [one]))
    stepped.step(CancelAsked(1, [one, two]))
    assert stepped.got(FireTokens) == [FireTokens([two], CancelReason.OPERATOR_CANCEL)]


def test_an_idle_node_stops_at_once() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    stepped.step(Claimed(0, "q", ()))
    assert stepped.step(StopAsked(0.1)) == [Stop(())]


def test_a_stop_during_a_claim_waits_for_its_jobs_and_runs_them() -> None:
    stepped = Stepped()
    stepped.step(Woke(0))
    assert not any(isinstance(one, Stop) for one in stepped.step(StopAsked(0.1)))
    stepped.step(Claimed(0.2, "q", holds(1)))
    assert stepped.got(Run)
    stepped.step(Ended(0.3, holds(1)))
    stepped.step(Reported(0.4, holds(1)))
    assert stepped.got(Stop) == [Stop(())]


def test_after_a_stop_nothing_is_claimed_although_slots_are_free() -> None:
    stepped = Stepped()
    stepped.running(*holds(2))
    stepped.step(StopAsked(1))
    for event in (Hinted(2, None), Woke(3), Ended(4, holds(1))):
        stepped.step(event)
        assert not stepped.got(Claim)


def test_after_the_grace_time_tokens_fire_then_the_node_stops_without_the_stubborn() -> None:
    stepped = Stepped(grace_seconds=30)
    heeding, stubborn = holds(2)
    stepped.running(heeding, stubborn)
    stepped.step(StopAsked(0))
    stepped.step(Woke(30))
    assert stepped.got(FireTokens) == [FireTokens([heeding, stubborn], CancelReason.SHUTDOWN)]
    stepped.step(Ended(30.1, (), [heeding]))
    assert stepped.got(Release) == [Release([heeding])]
    assert not stepped.got(Stop)
    stepped.step(Woke(32))
    assert stepped.got(Stop) == [Stop((stubborn,))]


def test_asked_to_stop_twice_the_node_waits_no_longer() -> None:
    stepped = Stepped(grace_seconds=30)
    stepped.running(*holds(1))
    stepped.step(StopAsked(0))
    stepped.step(StopAsked(1))
    assert stepped.got(FireTokens)


def test_outcomes_are_flushed_before_the_node_stops() -> None:
    stepped = Stepped()
    stepped.running(*holds(1))
    stepped.step(StopAsked(0))
    stepped.step(Ended(1, holds(1)))
    assert not stepped.got(Stop)
    stepped.step(Reported(1.1, holds(1)))
    assert stepped.got(Stop)


def test_a_store_that_stays_away_does_not_keep_a_stopping_node_for_ever() -> None:
    stepped = Stepped(grace_seconds=0)
    stepped.running(*holds(1))
    stepped.step(Ended(0, holds(1)))
    stepped.step(StopAsked(1))
    at = 1.0
    while not stepped.got(Stop):
        if stepped.got(ReportOutcomes):
            stepped.step(ReportFailed(at, holds(1), refused=False))
            continue
        (alarm,) = stepped.got(WakeAt)
        at = alarm.at
        stepped.step(Woke(at))
    assert 5 <= at <= 10


def test_jobs_claimed_too_late_are_let_go_unrun() -> None:
    stepped = Stepped(grace_seconds=0)
    stepped.step(Woke(0))
    stepped.step(StopAsked(0))
    stepped.step(Woke(3))
    stepped.step(Claimed(3, "q", holds(1)))
    assert stepped.got(Release) == [Release(holds(1))]
    assert not stepped.got(Run)


def test_the_same_events_give_the_same_commands() -> None:
    events: list[Event] = [
        Woke(0), Claimed(0, "q", holds(4)), Ended(1, holds(2)), Hinted(1, None),
        Reported(2, holds(1), holds(1, first=2)), StopAsked(3), Woke(40), Woke(50),
    ]  # fmt: skip
    first, second = Stepped(), Stepped()
    assert [first.step(event) for event in events] == [second.step(event) for event in events]


def test_no_alarm_is_ever_set_for_a_moment_that_has_passed() -> None:
    """Such an alarm would spin the event loop."""
    stepped = Stepped(slots=600)
    at = 0.0
    events: list[Event] = [
        Woke(at), Claimed(at, "q", holds(500)), Ended(at, holds(10)),
        Ended(at, holds(10, first=11)), Hinted(at, None), ClaimFailed(at, "q"),
        ReportFailed(at, holds(10), refused=False),
        StopAsked(at),
    ]  # fmt: skip
    for event in events:
        stepped.step(event)
        assert all(alarm.at > at for alarm in stepped.got(WakeAt)), event
