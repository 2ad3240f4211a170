from hypothesis import given
from hypothesis import strategies as st

from latchwork.decisions import dispatch


def test_strict_order_gives_every_slot_to_the_first_ready_queue() -> None:
    assert dispatch.strict(["high", "low"], {"high", "low"}, 7) == {"high": 7}
    assert dispatch.strict(["high", "low"], {"low"}, 7) == {"low": 7}


def test_strict_order_gives_nothing_without_a_ready_queue_or_a_slot() -> None:
    assert dispatch.strict(["high"], set(), 7) == {}
    assert dispatch.strict(["high"], {"high"}, 0) == {}


def test_weights_of_five_one_one_give_the_classic_smooth_sequence() -> None:
    weights = {"a": 5, "b": 1, "c": 1}
    credits_left: dict[str, int] = {}
    order = []
    for _ in range(7):
        shares, credits_left = dispatch.weighted(weights, credits_left, set(weights), 1)
        order += list(shares)
    assert "".join(order) == "aabacaa"
    assert credits_left == {"a": 0, "b": 0, "c": 0}


def test_a_queue_alone_gets_all_slots_whatever_its_weight() -> None:
    shares, _ = dispatch.weighted({"a": 100, "b": 1}, {}, {"b"}, 9)
    assert shares == {"b": 9}


@given(
    weights=st.dictionaries(st.sampled_from("abcde"), st.integers(1, 20), min_size=1),
    rounds=st.integers(1, 5),
)
def test_shares_follow_the_weights_exactly_over_whole_rounds(
    weights: dict[str, int], rounds: int
) -> None:
    total = sum(weights.values())
    shares, credits_left = dispatch.weighted(weights, {}, set(weights), total * rounds)
    assert shares == {queue: weight * rounds for queue, weight in weights.items()}
    assert set(credits_left.values()) == {0}


@given(
    weights=st.dictionaries(st.sampled_from("abcde"), st.integers(1, 20), min_size=1),
    ready=st.sets(st.sampled_from("abcde")),
    slots=st.integers(0, 50),
)
def test_no_slot_stays_idle_while_a_served_queue_is_ready(
    weights: dict[str, int], ready: set[str], slots: int
) -> None:
    shares, _ = dispatch.weighted(weights, {}, ready, slots)
    assert sum(shares.values()) == (slots if ready & weights.keys() else 0)
    assert shares.keys() <= ready


def test_a_turn_of_a_queue_whose_claim_is_under_way_is_not_given_away() -> None:
    assert dispatch.strict(["high", "low"], {"low"}, 3, claiming={"high"}) == {}
    assert dispatch.strict(["high", "low"], {"high"}, 3, claiming={"low"}) == {"high": 3}
    weights = {"a": 3, "b": 1}
    shares, kept = dispatch.weighted(weights, {"a": 0, "b": 0}, {"b"}, 4, claiming={"a"})
    assert (shares, kept) == ({}, {"a": 0, "b": 0})
    shares, kept = dispatch.weighted(weights, {"a": -2, "b": 2}, {"b"}, 4, claiming={"a"})
    assert (shares, kept) == ({"b": 1}, {"a": 1, "b": -1})
