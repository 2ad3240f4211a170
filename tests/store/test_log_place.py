"""Tokens: a reader's place as it is stored and handed out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latchwork.errors import InvalidValue
from latchwork.store.log_place import MAX_GAPS, Place


@st.composite
def places(draw: st.DrawFn) -> Place:
    bounds = sorted(draw(st.sets(st.integers(1, 10**12), max_size=40)))
    pairs = list(zip(bounds[::2], bounds[1::2], strict=False))
    gaps = tuple((low, draw(st.sampled_from([low, high]))) for low, high in pairs)
    top = bounds[-1] if bounds else 0
    return Place(draw(st.integers(top + 1, 2**62)), gaps)


@given(places())
def test_a_token_names_exactly_its_place(place: Place) -> None:
    assert Place.parse(str(place)) == place


@pytest.mark.parametrize(
    ("token", "place"),
    [
        ("0", Place(0)),
        ("17", Place(17)),
        ("20~11,15-17", Place(20, ((11, 11), (15, 17)))),
    ],
)
def test_the_written_form(token: str, place: Place) -> None:
    assert Place.parse(token) == place
    assert str(place) == token


@pytest.mark.parametrize(
    "token",
    [
        "", " 1", "1 ", "-1", "1.5", "x", "1~", "1~0", "5~5", "5~6", "9~4-3", "9~4,4", "9~5,4",
        "9~3-5,5-6", "9~,3", "9~3-", "99999999999999999999", "9223372036854775808", "1\n", "\u0661",
        "300~" + ",".join(str(2 * n + 1) for n in range(MAX_GAPS + 1)),
    ],
)  # fmt: skip
def test_anything_else_is_refused(token: str) -> None:
    with pytest.raises(InvalidValue):
        Place.parse(token)


def test_beyond_a_hundred_gaps_the_token_is_the_position_before_the_lowest() -> None:
    gaps = tuple((2 * n, 2 * n) for n in range(5, 5 + MAX_GAPS + 1))
    assert str(Place(1000, gaps)) == "9"
    assert str(Place(1000, gaps[1:])).startswith("1000~12,14,")


@given(st.lists(st.integers(1, 60), unique=True, max_size=40))
def test_rows_in_any_order_leave_exactly_the_unseen_positions_open(positions: list[int]) -> None:
    place = Place(0)
    for position in positions:
        place = place.after(position)
    unseen = set(range(1, max(positions, default=0) + 1)) - set(positions)
    assert {one for low, high in place.gaps for one in range(low, high + 1)} == unseen
    assert Place.parse(str(place)) == place


def test_places_join_to_what_either_delivered() -> None:
    behind, ahead = Place.parse("12~3,7-9"), Place.parse("20~8-10,15")
    assert str(behind.joined(ahead)) == str(ahead.joined(behind)) == "20~8-9,15"
    assert Place(0).joined(ahead) == ahead
    assert ahead.joined(ahead) == ahead
    assert ahead.holds(7)
    assert not any(ahead.holds(position) for position in (8, 15, 21))
